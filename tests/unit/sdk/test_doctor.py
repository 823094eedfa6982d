"""`windrow doctor`: whatever needs somebody is a line with its repair."""

from typing import Any

import httpx2
import pytest

from windrow.cli import doctor
from windrow.cli.context import Options
from windrow.client import Client
from windrow.config import Config

Json = dict[str, Any]
REASON = "This GPU fell off its bus; the others go on."
REMEDY = "Reboot the host."
HEALTH: Json = {"master": {"problems": []}, "accesses": [{"access_id": "access_1", "region": "eu"}]}


def affected(name: str, gpu: int | None = None, detail: str = REASON) -> Json:
    return {"name": name, "gpu": gpu, "detail": detail}


def group(*hosts: Json, title: str = "2 GPUs faulty", count: int = 2) -> Json:
    return {"kind": "faulty", "title": title, "remedy": REMEDY, "count": count, "affected": list(hosts)}


def examined(
    monkeypatch: pytest.MonkeyPatch,
    roles: list[str],
    *groups: Json,
    alerts: tuple[Json, ...] = (),
    hosts: tuple[Json, ...] = ({"link_state": "online"}, {"link_state": "lost"}),
    backends: tuple[Json, ...] = (),
) -> list[doctor.Check]:
    answers: dict[str, Any] = {
        "me": {"account": {"id": "account_1", "name": "ann"}, "roles": roles},
        "health": HEALTH,
        "attention": {"items": list(groups)},
        "alerts": {"items": list(alerts), "next_cursor": None},
        "hosts": {"items": list(hosts), "next_cursor": None},
        "backends": {"items": list(backends), "next_cursor": None},
    }

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, json=answers[request.url.path.rpartition("/")[2]])

    config, transport = Config("http://master", "wr_secret"), httpx2.MockTransport(answer)
    monkeypatch.setattr(doctor, "find", lambda url, token: config)
    monkeypatch.setattr(doctor, "Client", lambda found: Client(found, transport=transport))
    return doctor.examine(Options())


@pytest.mark.case("M-11")
def test_dead_gpus_fail_with_where_they_are_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    found = examined(monkeypatch, ["operator"], group(affected("rack", 1), affected("rack", 5)))
    assert ("hosts", True, "1 of 2 online") in found
    assert [one for one in found if not one[1]] == [
        ("2 GPUs faulty", False, f"rack GPU 1, rack GPU 5: {REASON} {REMEDY}")
    ]


@pytest.mark.case("M-11")
def test_many_of_one_kind_are_cut_with_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    many = group(affected("gone", detail=""), title="11 hosts not answering", count=11)
    found = examined(monkeypatch, ["provider"], many)
    assert ("11 hosts not answering", False, f"gone and 10 more: {REMEDY}") in found


def test_an_alert_is_told_where_no_list_says_the_same_and_not_what_is_rented(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = ("driver.changed", "gpu.lost", "host.lost", "job.failed")
    alerts = tuple({"rule": rule, "title": rule, "text": "it happened", "remedy": REMEDY} for rule in rules)
    found = examined(monkeypatch, ["operator"], alerts=alerts)
    assert [one for one in found if not one[1]] == [("driver.changed", False, f"it happened. {REMEDY}")]


@pytest.mark.parametrize("roles", [["operator"], ["renter"]])
def test_a_market_that_is_well_passes(monkeypatch: pytest.MonkeyPatch, roles: list[str]) -> None:
    assert all(ok for _, ok, _ in examined(monkeypatch, roles))


def test_a_market_without_hosts_is_well_where_its_jobs_run_at_a_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    modal = ({"name": "modal"},)
    found = examined(monkeypatch, ["renter"], hosts=(), backends=modal)
    assert found[-1] == ("hosts", True, "None here; jobs with --backend run at modal")
    assert examined(monkeypatch, ["provider"], hosts=(), backends=modal)[-1][:2] == ("hosts", False)
    assert examined(monkeypatch, ["renter"], hosts=())[-1][:2] == ("hosts", False)
