"""`windrow machine create --wait` against a Master that says what a test has written down."""

import json
from typing import Any

import httpx2
import pytest
from typer.main import get_command

from windrow.cli import clusters
from windrow.cli.main import app
from windrow.cli.waiting import ENDLESS_S, waits_text, with_value
from windrow.client import Client
from windrow.config import Config
from windrow.errors import ApiProblem, InvalidInput

QUEUED: dict[str, Any] = {
    "id": "cluster_1",
    "name": "lab",
    "account_id": "account_1",
    "phase": "Queued",
    "reason": "All GPUs are in use.",
    "version": 1,
    "steps": [],
    "workloads": [],
    "request": {"wait_seconds": 7200},
}
PLACE = {"summary": "3rd in the queue, starts 14:20 UTC ± 6 min", "why": "No host has 1 GPU free."}


class Master:
    """Answers about one cluster: each look shows the next of its states."""

    def __init__(self, *states: dict[str, Any]) -> None:
        self.states = [QUEUED | {"version": at} | state for at, state in enumerate(states)]
        self.asked: list[dict[str, Any]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path.removeprefix("/api/v1")
        if request.method == "POST":
            self.asked.append(json.loads(request.content))
            return httpx2.Response(202, json={"cluster": self.states[0]})
        if path.endswith("/stream"):
            lines = [f"event: cluster\nid: {one['version']}\ndata: {json.dumps(one)}\n\n" for one in self.states[1:]]
            return httpx2.Response(200, text="".join(lines), headers={"content-type": "text/event-stream"})
        shown = {"/me": {"account": {"id": "account_1"}}, "/clusters": {"items": []}}
        return httpx2.Response(200, json=shown.get(path, self.states[0]))


@pytest.fixture
def windrow(monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(master: Master, *words: str) -> None:
        told = Client(Config("http://master", "wr_x"), transport=httpx2.MockTransport(master))
        monkeypatch.setattr(clusters, "client", lambda context: context.with_resource(told))
        get_command(app)(["cluster", "create", "--yes", "--no-ssh", *words], standalone_mode=False)

    return run


@pytest.mark.parametrize(
    ("words", "wait_s"),
    [
        (("--wait", "2h"), 7_200),
        (("--wait=90s",), 90),
        (("--wait",), ENDLESS_S),
        (("--wait", "--gpu", "1"), ENDLESS_S),
        (("--wait", "--", "sleep", "5"), ENDLESS_S),
        (("--", "true", "--wait", "2h"), None),
        ((), None),
    ],
)
def test_wait_has_a_time_or_stands_for_no_end(windrow: Any, words: tuple[str, ...], wait_s: float | None) -> None:
    master = Master({"phase": "Running"})
    windrow(master, "--no-wait", *words)
    assert [one.get("wait_seconds") for one in master.asked] == [wait_s]


def test_a_time_that_is_none_is_refused(windrow: Any) -> None:
    with pytest.raises(InvalidInput, match="soon"):
        windrow(Master({}), "--wait=soon")


def test_it_says_its_place_and_why_it_waits_and_goes_on_when_it_starts(windrow: Any, capsys: Any) -> None:
    master = Master({}, {"queue": PLACE}, {"queue": PLACE}, {"phase": "Creating"}, {"phase": "Running", "reason": ""})
    windrow(master, "--wait")
    said = "".join(capsys.readouterr()).replace("\n", " ")
    assert said.count("3rd in the queue") == 1
    assert said.index("All GPUs are in use") < said.index("3rd in the queue") < said.index("lab is Running")


def test_what_nobody_follows_returns_at_once(windrow: Any, capsys: Any) -> None:
    windrow(Master({}), "--wait", "--no-wait")
    assert "lab is Queued" in "".join(capsys.readouterr())


@pytest.mark.parametrize("words", [("--wait", "soon", "--", "sleep", "5"), ("--wait", "2hours")])
def test_a_word_behind_it_that_is_no_time_is_refused_and_never_the_command(
    windrow: Any, words: tuple[str, ...]
) -> None:
    master = Master({})
    with pytest.raises(InvalidInput, match=words[1]):
        windrow(master, *words)
    assert master.asked == []


@pytest.mark.parametrize(
    ("words", "is_possible", "says"), [((), True, True), ((), False, False), (("--wait", "1h"), True, False)]
)
def test_a_refusal_says_how_to_wait_where_that_helps(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], is_possible: bool, says: bool
) -> None:
    class Full(Master):
        def __call__(self, request: httpx2.Request) -> httpx2.Response:
            problem = {"code": "no_capacity", "detail": "No free GPU.", "retryable": is_possible}
            return httpx2.Response(409, json=problem) if request.method == "POST" else super().__call__(request)

    client = Client(Config("http://master", "wr_x"), transport=httpx2.MockTransport(Full({})))
    monkeypatch.setattr(clusters, "client", lambda context: context.with_resource(client))
    with pytest.raises(ApiProblem) as refused:
        get_command(app)(["cluster", "create", "--yes", "--no-ssh", *words], standalone_mode=False)
    assert any("--wait" in line for line in refused.value.lines) is says


def test_words_behind_two_dashes_are_those_of_the_command() -> None:
    assert with_value(["--wait", "--", "run", "--wait", "1h"]) == ["--wait=endless", "--", "run", "--wait", "1h"]


def test_a_machine_without_a_known_place_says_that_it_waits() -> None:
    assert waits_text(QUEUED | {"reason": None}) == "waiting for a place."
