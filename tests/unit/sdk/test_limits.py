"""`windrow limit`, and limits of new tokens: what they ask for, and that limits which are not named stay."""

import json

import httpx2
import pytest
from typer.main import get_command

from windrow.cli import account, limits
from windrow.cli.main import app
from windrow.cli.tables import table_lines
from windrow.client import Client
from windrow.config import Config
from windrow.errors import InvalidInput

LIMIT = {
    "id": "account_1",
    "kind": "project",
    "name": "lab",
    "max_hourly_cost": None,
    "max_monthly_cost": "100.00",
    "max_total_cost": None,
    "max_leases": 3,
    "idle_seconds": None,
    "hourly_cost": "0.50",
    "monthly_cost": "12.25",
    "total_cost": "40.00",
    "leases": 1,
    "held": "0.12",
}
MADE = {"token": "wt_x", "created_at": "2030-01-01T00:00:00.000Z", "expires_at": "2030-01-31T00:00:00.000Z"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[httpx2.Request]:
    """Returns the requests at a Master with one token, `ci`, and these limits of everything."""
    requests: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        match request.method, request.url.path.removeprefix("/api/v1"):
            case "POST", _:
                return httpx2.Response(201, json=MADE)
            case "GET", "/me":
                return httpx2.Response(200, json={"account": {"id": "account_1", "name": "lab"}})
            case "GET", "/tokens":
                return httpx2.Response(200, json={"items": [{"id": "token_1", "name": "ci"}], "next_cursor": None})
            case "GET", "/limits":
                return httpx2.Response(200, json={"items": [LIMIT], "next_cursor": None})
            case _:
                return httpx2.Response(200, json=LIMIT)

    config = Config("http://master", "wt_secret")
    for module in (account, limits):
        monkeypatch.setattr(
            module,
            "client",
            lambda context: context.with_resource(Client(config, transport=httpx2.MockTransport(answer))),
        )
    return requests


def run(*words: str) -> None:
    get_command(app)(list(words), standalone_mode=False)


def test_limits_that_are_not_named_stay_and_none_ends_one(
    asked: list[httpx2.Request], capsys: pytest.CaptureFixture[str]
) -> None:
    run("limit", "set", "--max-hourly", "2", "--max-leases", "none")
    assert asked[-1].method == "PUT" and asked[-1].url.path == "/api/v1/projects/account_1/limits"
    assert json.loads(asked[-1].content) == {
        "max_hourly_cost": "2",
        "max_monthly_cost": "100.00",
        "max_total_cost": None,
        "max_leases": None,
        "idle_seconds": None,
    }
    assert "The project lab may spend: 100.00 a month, 3 leases at once." in capsys.readouterr().err


def test_a_token_is_named_and_several_are_refused(asked: list[httpx2.Request]) -> None:
    run("limit", "set", "--token", "ci", "--max-leases", "5")
    assert asked[-1].url.path == "/api/v1/tokens/token_1/limits"
    assert json.loads(asked[-1].content)["max_leases"] == 5
    run("limit", "set", "--token", "ci", "--idle", "30m")
    assert json.loads(asked[-1].content)["idle_seconds"] == 1800
    run("limit", "rm", "--token", "ci", "--yes")
    assert (asked[-1].method, asked[-1].url.path) == ("DELETE", "/api/v1/tokens/token_1/limits")
    for words in (("--token", "ci", "--project", "lab", "--max-leases", "1"), (), ("--max-leases", "x")):
        with pytest.raises(InvalidInput):
            run("limit", "set", *words)


def test_a_new_token_takes_limits_and_a_join_token_none(asked: list[httpx2.Request]) -> None:
    run("token", "add", "ci", "--max-hourly", "2", "--max-monthly", "100", "--max-total", "50", "--max-leases", "3")
    assert json.loads(asked[-1].content)["limits"] == {
        "max_hourly_cost": "2",
        "max_monthly_cost": "100",
        "max_total_cost": "50",
        "max_leases": 3,
    }
    with pytest.raises(InvalidInput):
        run("token", "add", "--join", "--max-leases", "3")


def test_each_is_shown_as_used_and_limit(asked: list[httpx2.Request], capsys: pytest.CaptureFixture[str]) -> None:
    run("limit", "ls", "--output", "tsv")
    shown = capsys.readouterr().out
    assert "0.50 / none" in shown and "12.25 / 100.00" in shown and "1 / 3" in shown


def test_both_amounts_of_a_limit_are_readable_on_a_narrow_screen() -> None:
    long = LIMIT | {"name": "a-project-with-a-long-name", "monthly_cost": "0.004520041234", "max_hourly_cost": "2.5"}
    head, line = table_lines(limits.SHOWN.columns, [long], 80)
    assert "THIS MONTH" in head and "0.0045 / 100.00" in line and "0.50 / 2.50" in line
    assert "40.00 / none" in line and len(line) <= 80
