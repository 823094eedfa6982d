"""`windrow access`: what it prints of an Access, and what it says when one is drained or resumed."""

import json

import httpx2
import pytest
import typer
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
    "stop_name": "access-local-a",
    "stopped_at": None,
}
DRAINED = SERVING | {
    "state": "draining",
    "rtt_ms": None,
    "drained_at": "2026-01-31T09:00:00Z",
    "drained_by": "account/account_1",
    "drain_reason": "new disk",
}
COUNTED = {
    "acked_samples": 900,
    "acked_batches": 30,
    "lost_samples": 0,
    "lost_batches": 0,
    "lost_evidence": 0,
    "given_up_batches": 0,
    "longest_gap_s": 6.25,
    "usual_gap_s": 5.0,
}
STOPPED = {
    "access_id": "access_1",
    "name": "access-local-a",
    "phase": "finished",
    "agents": 7,
    "back": 7,
    "elsewhere": 6,
    "away_s": 1.5,
    "problem": None,
    "counted": COUNTED,
    "how": "Counted from the log.",
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[httpx2.Request]:
    """Returns the requests at a Master that answers by the path."""
    requests: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        verb = request.url.path.rsplit("/", 1)[1]
        one = {"drain": DRAINED, "resume": SERVING, "access_1": DRAINED, "stop": STOPPED}.get(verb)
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


def test_a_stop_confirms_with_the_id_tells_what_was_lost_and_how_it_was_counted(
    asked: list[httpx2.Request], capsys: pytest.CaptureFixture[str]
) -> None:
    run("stop", "access_1", "--reason", "to see", "--yes")
    assert (asked[1].method, asked[1].url.path) == ("POST", "/api/v1/accesses/access_1/stop")
    assert json.loads(asked[1].content) == {"confirm": "access_1", "reason": "to see"}
    shown, said = capsys.readouterr()
    assert "7 of 7, 6 of them at another relay" in shown
    assert "Acknowledged samples lost" in shown
    assert "Counted from the log." in said


def test_a_stop_without_yes_and_without_a_terminal_kills_nothing(asked: list[httpx2.Request]) -> None:
    with pytest.raises(typer.BadParameter, match="--yes"):
        run("stop", "access_1")
    assert [request.method for request in asked] == ["GET"]


@pytest.mark.parametrize(
    "found",
    [
        STOPPED | {"counted": COUNTED | {"lost_samples": 1}},
        STOPPED | {"counted": COUNTED | {"lost_evidence": 1}},
        STOPPED | {"phase": "unfinished"},
        STOPPED | {"phase": "unfinished", "counted": None, "problem": "It could not be counted."},
    ],
)
def test_a_stop_that_lost_something_or_did_not_finish_fails(
    asked: list[httpx2.Request],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    found: dict[str, object],
) -> None:
    monkeypatch.setitem(globals(), "STOPPED", found)
    assert get_command(app)(["access", "stop", "access_1", "--yes", "--json"], standalone_mode=False) == 1
    assert json.loads(capsys.readouterr().out) == found
