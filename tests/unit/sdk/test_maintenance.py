"""`windrow maintenance`: what it asks for, and the times that it writes."""

import json
from datetime import datetime, timedelta
from typing import Any

import httpx2
import pytest
from typer.main import get_command

from windrow.cli import maintenance
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config
from windrow.errors import InvalidInput

WINDOW: dict[str, Any] = {
    "id": "maintenance_1",
    "names": ["gpu-7"],
    "starts_at": "2030-01-01T10:00:00.000Z",
    "state": "planned",
}
WINDOW |= {"ends_at": "2030-01-01T14:00:00.000Z", "reason": None, "owner": None}
PLAN = {"hosts": 1, "leases": 2, "open_ended": 0, "earliest_start": "2030-01-01T09:00:00.000Z"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[httpx2.Request]:
    """Returns the requests at a Master with one window and one host."""
    requests: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        match request.method, request.url.path.removeprefix("/api/v1"):
            case "GET", "/hosts":
                return httpx2.Response(200, json={"items": [{"id": "host_1", "name": "gpu-7"}], "next_cursor": None})
            case "GET", _:
                return httpx2.Response(200, json={"items": [WINDOW], "next_cursor": None})
            case "POST", "/maintenance-windows/plan":
                return httpx2.Response(200, json=PLAN)
            case "DELETE", _:
                return httpx2.Response(204)
            case _:
                return httpx2.Response(200, json=WINDOW)

    def made(context: Any) -> Client:
        return context.with_resource(Client(Config("http://master", "wt_secret"), httpx2.MockTransport(answer)))

    monkeypatch.setattr(maintenance, "client", made)
    return requests


def run(*words: str) -> None:
    get_command(app)(["maintenance", *words], standalone_mode=False)


def test_a_window_is_declared_by_times_or_by_spans(
    asked: list[httpx2.Request], capsys: pytest.CaptureFixture[str]
) -> None:
    run("add", "gpu-7", "--from", "2030-01-01T11:00+01:00", "--for", "4h", "--reason", "new fans")
    assert json.loads(asked[-1].content) == {
        "hosts": ["host_1"],
        "scope": {},
        "reason": "new fans",
        "starts_at": "2030-01-01T10:00:00Z",
        "ends_at": "2030-01-01T14:00:00Z",
    }
    assert "windrow maintenance rm" in capsys.readouterr().err
    run("add", "--where", "region=north", "--from", "2d", "--for", "30m")
    body = json.loads(asked[-1].content)
    begins, ends = (datetime.fromisoformat(body[name]) for name in ("starts_at", "ends_at"))
    assert (body["hosts"], body["scope"], ends - begins) == ([], {"region": "north"}, timedelta(minutes=30))
    run("add", "gpu-7")
    assert json.loads(asked[-1].content)["starts_at"] is None, "now, by the Master's clock"


@pytest.mark.parametrize("words", [("--from", "soon"), ("--from", "2030-01-01T10:00"), ("--where", "north")])
def test_what_is_no_time_or_label_is_refused(asked: list[httpx2.Request], words: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput):
        run("add", "gpu-7", *words)


def test_the_plan_the_end_and_the_removal(
    asked: list[httpx2.Request], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run("plan", "gpu-7")
    assert "By their durations all have ended at 2030-01-01T09:00:00.000Z." in capsys.readouterr().err
    monkeypatch.setitem(PLAN, "leases", 0)
    run("plan", "gpu-7")
    assert "0 leases on " in (said := capsys.readouterr().err) and said.endswith("Nothing runs there now.\n")
    run("set", "maintenance_1", "--until", "2030-01-01T16:00Z")
    assert (asked[-1].method, json.loads(asked[-1].content)) == ("PUT", {"ends_at": "2030-01-01T16:00:00Z"})
    run("rm", "maintenance_1", "--yes")
    assert (asked[-1].method, asked[-1].url.path) == ("DELETE", "/api/v1/maintenance-windows/maintenance_1")
