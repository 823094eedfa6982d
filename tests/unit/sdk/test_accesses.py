"""`windrow access`: what it prints of an Access, and what it says when one is drained or resumed."""

import json

import httpx2
import pytest
from typer.main import get_command

from windrow.cli import accesses
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config

SERVING = {
    "id": "access_1",
    "region": "north",
    "address": "relay:7443",
    "version": "0.1.0",
    "state": "serving",
    "workers": 2,
    "agents": 7,
    "load_permille": 15,
    "rtt_ms": 4.25,
    "since": "2026-01-31T08:00:00Z",
    "drained_at": None,
    "drained_by": None,
    "drain_reason": None,
}
DRAINED = SERVING | {
    "state": "draining",
    "rtt_ms": None,
    "drained_at": "2026-01-31T09:00:00Z",
    "drained_by": "account/account_1",
    "drain_reason": "new disk",
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[httpx2.Request]:
    """What arrives at a Master that answers by the path."""
    requests: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        verb = request.url.path.rsplit("/", 1)[1]
        one = {"drain": DRAINED, "resume": SERVING, "access_1": DRAINED}.get(verb)
        return httpx2.Response(200, json=one or {"items": [SERVING, DRAINED], "next_cursor": None})

    transport = httpx2.MockTransport(answer)
    config = Config("http://master", "wr_secret")
    monkeypatch.setattr(accesses, "client", lambda context: context.with_resource(Client(config, transport=transport)))
    return requests


def run(*words: str) -> None:
    get_command(app)(["access", *words], standalone_mode=False)


def test_a_list_shows_load_and_round_trip_and_a_dash_where_nothing_is_known(
    asked: list[httpx2.Request], capsys: pytest.CaptureFixture[str]
) -> None:
    run("ls", "--json")
    assert json.loads(capsys.readouterr().out) == [SERVING, DRAINED]
    assert (accesses.load_text(SERVING), accesses.rtt_text(SERVING)) == ("1.5 %", "4.2 ms")
    assert accesses.rtt_text(DRAINED) == "–"


def test_drain_and_resume_send_their_reason_and_say_what_happens(
    asked: list[httpx2.Request], capsys: pytest.CaptureFixture[str]
) -> None:
    run("drain", "access_1", "--reason", "new disk")
    run("resume", "access_1", "--json")
    assert [(one.method, one.url.path, json.loads(one.content)) for one in asked] == [
        ("POST", "/api/v1/accesses/access_1/drain", {"reason": "new disk"}),
        ("POST", "/api/v1/accesses/access_1/resume", {"reason": ""}),
    ]
    assert json.loads(capsys.readouterr().out) == SERVING
