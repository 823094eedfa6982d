"""`windrow fair-share` and `windrow quota`: what they ask for, and that percentages and sizes are what was written."""

import json
from typing import Any

import httpx2
import pytest
from typer.main import get_command

from windrow.cli import fair_shares
from windrow.cli.fair_shares import parts_of
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config
from windrow.errors import InvalidInput

RULES: dict[str, Any] = {"guarantee_ppm": 0, "ceiling_ppm": 1_000_000, "weight": 1, "is_borrowing": True}
RULES |= {"may_use_urgent": False}
SHARE = {"id": "account_1", "level": "project", "name": "lab", "held_ppm": 0, "used_ppm": 0, "rank": None} | RULES
QUOTA = {"node_id": "account_1", "level": "project", "name": "lab", "item": "memory", "tier": None}
QUOTA |= {"limit": str(64 << 30), "used": str(1 << 29)}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[httpx2.Request]:
    """Returns the requests at a Master with one share and one quota."""
    requests: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        if request.method == "DELETE":
            return httpx2.Response(204)
        one = QUOTA if "quota" in request.url.path else SHARE
        body = json.loads(request.content or b"{}")
        is_list = request.method == "GET" and request.url.path.count("/") == 3
        return httpx2.Response(200, json={"items": [one], "next_cursor": None} if is_list else {**one, **body})

    def made(context: Any) -> Client:
        return context.with_resource(Client(Config("http://master", "wt_secret"), httpx2.MockTransport(answer)))

    monkeypatch.setattr(fair_shares, "client", made)
    return requests


def run(*words: str) -> None:
    get_command(app)(list(words), standalone_mode=False)


def test_rules_that_are_not_named_stay(asked: list[httpx2.Request], capsys: pytest.CaptureFixture[str]) -> None:
    run("fair-share", "set", "org:acme", "--guarantee", "12.5%", "--weight", "4", "--no-borrowing")
    assert [(one.method, one.url.path) for one in asked] == [
        ("GET", "/api/v1/fair-shares/org:acme"),
        ("PUT", "/api/v1/fair-shares/org:acme"),
    ]
    assert json.loads(asked[1].content) == RULES | {"guarantee_ppm": 125_000, "weight": 4, "is_borrowing": False}
    assert "guarantee 12.5%, ceiling 100%, weight 4, does not borrow." in capsys.readouterr().err
    with pytest.raises(InvalidInput, match="Name a rule"):
        run("fair-share", "set", "lab")
    run("fair-share", "rm", "lab", "--yes")
    assert (asked[-1].method, asked[-1].url.path) == ("DELETE", "/api/v1/fair-shares/lab")


@pytest.mark.parametrize("text", ["-1%", "101%", "1.00001%", "nan", "inf", "", "a quarter"])
def test_a_part_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="25%"):
        parts_of("--guarantee", text)


def test_a_quota_is_set_in_units_of_people(asked: list[httpx2.Request], capsys: pytest.CaptureFixture[str]) -> None:
    run("quota", "set", "lab", "memory", "--limit", "64GiB")
    run("quota", "set", "lab", "gpus", "--limit", "0.5", "--tier", "h100")
    assert [json.loads(one.content) for one in asked] == [
        {"node": "lab", "item": "memory", "tier": "", "limit": str(64 << 30)},
        {"node": "lab", "item": "gpus", "tier": "h100", "limit": "0.5"},
    ]
    assert "Quota memory of the project lab: limit 64 GiB, used 0.5 GiB." in capsys.readouterr().err
    run("quota", "ls", "-o", "tsv")
    assert "memory\t0.5 GiB\t64 GiB" in capsys.readouterr().out
    run("quota", "rm", "lab", "gpus", "--tier", "h100", "--yes")
    assert dict(asked[-1].url.params) == {"node": "lab", "item": "gpus", "tier": "h100"}
