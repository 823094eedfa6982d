"""`windrow backend` and `windrow purchase`: what their options say as requests, and what they print."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typer.testing import CliRunner

from tests.support.filled import filled
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config

Json = dict[str, Any]
ID = "purchase_019a000011117000deadbeef00000001"
CAPS: Json = {
    "currency": "USD",
    "per_hour": None,
    "per_day": "40.00",
    "in_all": "500.00",
    "machines": 2,
    "vcpus": None,
}
BACKEND = filled("BackendOut", is_full=True) | {"name": "aws", "caps": CAPS}
PURCHASE = filled("PurchaseOut", is_full=True) | {"id": ID, "state": "booting", "billed_seconds": None}
PURCHASE |= {"for_id": "job_1", "for_name": "train", "forecast": "2.00"}
SWEEP: Json = {"ended": [{"id": "i-9", "purchase_id": None, "said": "running"}], "left_alone": [], "unknown": []}
BUYER = filled("BuyerOut", is_full=True) | {"account": "lab", "per_day": "50.00", "in_all": None, "spent_today": "1.5"}
FINDINGS: Json = {
    "findings": [
        {"what": "credentials", "good": True, "said": "They are good.", "way_out": None},
        {"what": "quota", "good": False, "said": "0 vCPUs are allowed.", "way_out": "Ask for more at the provider."},
    ]
}


class Clouds:
    """A Master that keeps what it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.purchases = [PURCHASE]
        self.asked: list[tuple[str, str, Any]] = []
        transport = httpx2.MockTransport(self._answer)
        for module in ("backends", "purchases"):
            monkeypatch.setattr(
                f"windrow.cli.{module}.client", lambda context: Client(Config("http://master", "wt_x"), transport)
            )

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.raw_path.decode().removeprefix("/api/v1")
        self.asked.append((request.method, path, json.loads(request.content) if request.content else None))
        plain = path.partition("?")[0]
        lists: dict[str, Any] = {
            "/backends": [BACKEND],
            "/purchases": self.purchases,
            "/backends/aws/offers": [filled("MachineOfferOut", is_full=True) | {"price_per_hour": "0.402"}],
            "/backends/aws/buyers": [BUYER],
            "/backend-kinds": [filled("BackendKindOut", is_full=True)],
        }
        if request.method == "GET" and plain in lists:
            return httpx2.Response(200, json={"items": lists[plain], "next_cursor": None})
        by_end = {"check": FINDINGS, "sweep": SWEEP, "stop-all": {"ended": [ID]}, "end": PURCHASE}
        if (end := plain.rpartition("/")[2]) in by_end:
            return httpx2.Response(200, json=by_end[end])
        if "/buyers/" in plain and request.method == "PUT":
            return httpx2.Response(200, json=BUYER)
        if plain.startswith("/purchases"):
            return httpx2.Response(200, json=PURCHASE | {"console": None})
        return httpx2.Response(204) if request.method == "DELETE" else httpx2.Response(200, json=BACKEND)

    def run(self, *words: str, given: str | None = None, code: int = 0) -> str:
        """Returns what is printed, or the error."""
        done = CliRunner().invoke(app, list(words), input=given)
        assert done.exit_code == code, done.output + str(done.exception)
        return done.output if code == 0 else done.output + str(done.exception)


@pytest.fixture
def clouds(monkeypatch: pytest.MonkeyPatch) -> Clouds:
    return Clouds(monkeypatch)


ADD = ("backend", "add", "aws", "--kind", "ec2", "--set", "region=eu-central-1", "--per-day", "40")


def test_a_backend_is_added_with_credentials_of_a_profile_and_a_key_file(clouds: Clouds, tmp_path: Path) -> None:
    profile, key = tmp_path / "aws.ini", tmp_path / "key"
    profile.write_text("# mine\n[default]\naws_access_key_id = AKIA\nexport AWS_SECRET_ACCESS_KEY='a=b'\n")
    key.write_text("-----BEGIN KEY-----\nx\n")
    clouds.run(*ADD, "--credentials", str(profile), "--secret-file", f"private_key={key}", "--machines", "2")
    ((method, path, body),) = clouds.asked
    assert (method, path) == ("POST", "/backends")
    assert body == {
        "name": "aws",
        "kind": "ec2",
        "settings": {"region": "eu-central-1"},
        "secrets": {
            "aws_access_key_id": "AKIA",
            "aws_secret_access_key": "a=b",
            "private_key": "-----BEGIN KEY-----\nx\n",
        },
        "caps": {"per_day": "40", "machines": 2},
        "margin_percent": 0,
    }


def test_credentials_come_from_standard_input_as_json_too(clouds: Clouds) -> None:
    clouds.run(*ADD, "--credentials", "-", given='{"AWS_ACCESS_KEY_ID": "AKIA"}')
    assert clouds.asked[0][2]["secrets"] == {"aws_access_key_id": "AKIA"}


@pytest.mark.parametrize(
    ("words", "given", "says"),
    [
        (ADD[:-2], None, "Say how much may be spent"),
        ((*ADD, "--machines", "many"), None, "give a number, or none"),
        ((*ADD, "--set", "region"), None, "write NAME=VALUE"),
        ((*ADD, "--credentials", "none.ini"), None, "cannot be read"),
        ((*ADD, "--credentials", "-"), "top-secret-words", "line 1: write NAME=VALUE"),
        ((*ADD, "--credentials", "-"), '{"a": ', "is not JSON"),
        ((*ADD, "--credentials", "-"), "[a]\na=1\n[b]\na=2\n", "several profiles"),
        (("backend", "cap", "aws"), None, "No cap was given"),
        (("purchase", "new", "aws", "o", "--hours", "soon", "--yes"), None, "is not a time"),
        (("backend", "stop-all", "aws"), None, "add --yes"),
    ],
)
def test_what_cannot_be_meant_is_refused_without_asking_or_telling_a_secret(
    clouds: Clouds, words: tuple[str, ...], given: str | None, says: str
) -> None:
    said = clouds.run(*words, given=given, code=1)
    assert says in said
    assert "top-secret" not in said
    assert [one for one in clouds.asked if one[0] != "GET"] == []


def test_a_cap_that_is_given_changes_and_the_others_stay(clouds: Clouds) -> None:
    clouds.run("backend", "cap", "aws", "--per-day", "60", "--in-all", "none", "--margin", "5")
    assert clouds.asked[-1] == (
        "PUT",
        "/backends/aws/caps",
        CAPS | {"per_day": "60", "in_all": None, "margin_percent": 5},
    )


def test_other_credentials_are_sent_and_not_shown(clouds: Clouds) -> None:
    said = clouds.run("backend", "renew", "aws", "--credentials", "-", given="KEY=top-secret\n")
    assert clouds.asked == [("PUT", "/backends/aws/secrets", {"secrets": {"key": "top-secret"}})]
    assert "top-secret" not in said


def test_offers_are_asked_for_as_they_are_wanted(clouds: Clouds) -> None:
    said = clouds.run("backend", "offers", "aws", "--gpu", "a10g", "--spot")
    assert "0.402 " in said
    path = clouds.asked[0][1]
    assert all(one in path for one in ("gpu=a10g", "gpus=1", "kind=spot")) and "region" not in path


def test_a_check_that_finds_something_wrong_says_what_to_do_and_fails(clouds: Clouds) -> None:
    said = clouds.run("backend", "check", "aws", code=1)
    assert "ok     credentials: They are good." in said
    assert "wrong  quota: 0 vCPUs are allowed.\n       Ask for more at the provider." in said


def test_a_sweep_says_what_it_ended(clouds: Clouds) -> None:
    said = clouds.run("backend", "sweep", "aws", "--market", "lost")
    assert "ended  i-9  running" in said and "1 machine ended, 0 left alone." in said
    assert clouds.asked == [("POST", "/backends/aws/sweep", {"market_id": "lost"})]


def test_a_machine_is_bought_for_hours_and_a_project(clouds: Clouds) -> None:
    said = clouds.run("purchase", "new", "aws", "g5/spot", "--hours", "90m", "--project", "lab", "--yes")
    assert clouds.asked == [
        ("POST", "/purchases", {"backend": "aws", "offer": "g5/spot", "hours": 1.5, "account": "lab"})
    ]
    assert f"windrow purchase show {ID}" in said


def test_a_purchase_is_found_by_the_start_of_its_id_and_ended(clouds: Clouds) -> None:
    clouds.run("purchase", "end", "deadbeef", "--reason", "done", "--yes")
    assert clouds.asked[-1] == ("POST", f"/purchases/{ID}/end", {"reason": "done"})


def test_everything_of_a_backend_and_of_a_purchase_is_shown(clouds: Clouds) -> None:
    for words in (("backend", "ls"), ("backend", "show", "aws"), ("backend", "kinds"), ("purchase", "ls", "--all")):
        said = clouds.run(*words)
        assert "None" not in said and "{" not in said, said
    assert "500.00 USD" in clouds.run("backend", "show", "aws")
    assert ID in clouds.run("purchase", "show", ID)
    assert json.loads(clouds.run("purchase", "show", ID, "--json"))["id"] == ID


def test_what_purchases_cost_is_said_beside_what_was_forecast_and_for_what_each_was_bought(clouds: Clouds) -> None:
    def gone(spent: str, forecast: str | None, **more: Any) -> Json:
        return PURCHASE | {"state": "gone", "spent": spent, "forecast": forecast, "paid": "1.00"} | more

    clouds.purchases = [gone("1.10", "1.00"), gone("0.50", "1.00"), gone("9", None), gone("9", "1", paid=None)]
    said = clouds.run("backend", "show", "aws")
    assert "0.80 times the forecast in the mean of 2 ended purchases, 1 of them within 15%" in said
    clouds.purchases = []
    assert "no purchase that had a forecast has ended yet" in clouds.run("backend", "show", "aws")
    assert "train (job_1)" in clouds.run("purchase", "show", ID)


def test_removing_and_stopping_ask_for_it(clouds: Clouds) -> None:
    clouds.run("backend", "stop-all", "aws", "--yes")
    clouds.run("backend", "rm", "aws", "--yes")
    assert [(one[0], one[1]) for one in clouds.asked] == [
        ("POST", "/backends/aws/stop-all"),
        ("DELETE", "/backends/aws"),
    ]


def test_a_project_is_allowed_to_buy_shown_and_disallowed(clouds: Clouds) -> None:
    said = clouds.run("backend", "allow", "aws", "lab", "--per-day", "50")
    assert clouds.asked[-1] == ("PUT", "/backends/aws/buyers/lab", {"per_day": "50"})
    assert "lab may buy at aws: 1.50 of 50.00 today" in said
    assert "May buy: lab" in clouds.run("backend", "show", "aws")
    clouds.run("backend", "disallow", "aws", "lab")
    assert clouds.asked[-1][:2] == ("DELETE", "/backends/aws/buyers/lab")
    assert "--per-day" in clouds.run("backend", "allow", "aws", "lab", code=1)
