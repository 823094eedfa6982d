"""`windrow cluster stop`, `start` and `extend` against a Master that says what a test has written down."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typer.main import get_command

from windrow.cli import stopping
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config
from windrow.errors import InvalidInput

LAB: dict[str, Any] = {
    "id": "cluster_1",
    "name": "lab",
    "account_id": "account_1",
    "phase": "Stopped",
    "needs_login": False,
    "version": 3,
    "request": {"argv": [], "gpus": 1, "image": "reg.example/a:1", "tier": None, "max_price_per_hour": None},
}
PLAN = {"fits": True, "price_per_hour": "2.50", "hold": "0.625", "balance": "9", "placement": [], "refusal": None}


class Master:
    """Answers about one cluster."""

    def __init__(self, **more: Any) -> None:
        self.cluster = LAB | more
        self.asked: list[tuple[str, Any]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path.removeprefix("/api/v1")
        if path == "/me":
            return httpx2.Response(200, json={"account": {"id": "account_1"}})
        if request.method == "GET":
            return httpx2.Response(200, json={"items": [self.cluster]} if path == "/clusters" else self.cluster)
        self.asked.append((path, json.loads(request.content or b"{}")))
        if path.endswith("/plan"):
            return httpx2.Response(200, json=PLAN)
        if path.endswith("/extend"):
            return httpx2.Response(200, json=self.cluster)
        return httpx2.Response(202, json={"cluster": self.cluster | {"phase": "Creating"}})


@pytest.fixture
def windrow(monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(master: Master, *words: str) -> None:
        told = Client(Config("http://master", "wr_x"), transport=httpx2.MockTransport(master))
        monkeypatch.setattr(stopping, "client", lambda context: context.with_resource(told))
        get_command(app)(["cluster", *words], standalone_mode=False)

    return run


def test_a_start_shows_its_price_and_asks_for_no_more_than_was_said(
    windrow: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    master = Master()
    windrow(master, "start", "lab", "--no-wait", "--max-price", "3")
    (plan, asked), (path, body) = master.asked
    assert plan == "/clusters/plan" and path == "/clusters/cluster_1/start"
    assert asked == {"argv": [], "gpus": 1, "image": "reg.example/a:1", "max_price_per_hour": "3"}
    assert body == {"max_price_per_hour": "3"}
    assert "2.50" in capsys.readouterr().err


def test_a_plan_starts_nothing(windrow: Any) -> None:
    master = Master()
    windrow(master, "start", "lab", "--plan")
    assert [path for path, _ in master.asked] == ["/clusters/plan"]


def test_who_wants_to_see_no_price_starts_at_once_with_the_login_beside_it(windrow: Any, tmp_path: Path) -> None:
    master = Master(needs_login=True)
    (tmp_path / "login").write_text("a-renter:a:b")
    windrow(master, "start", "lab", "--yes", "--no-wait", "--registry-login", str(tmp_path / "login"))
    login = {"registry_login": {"username": "a-renter", "password": "a:b"}}
    assert master.asked == [("/clusters/cluster_1/start", login)]


def test_a_start_of_what_waits_for_files_says_so_and_does_not_wait(
    windrow: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    windrow(Master(request=LAB["request"] | {"await_files": True}), "start", "lab", "--yes")
    assert "waits for its files" in capsys.readouterr().err


def test_a_stop_is_sent_and_says_how_it_is_started_again(windrow: Any, capsys: pytest.CaptureFixture[str]) -> None:
    master = Master()
    windrow(master, "stop", "lab", "--yes")
    assert master.asked == [("/clusters/cluster_1/stop", {})]
    assert "windrow cluster start lab" in capsys.readouterr().err


def test_a_start_says_none_of_the_steps_of_the_run_before(windrow: Any, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("pulling", "stopped", "placed", "pulling")
    steps = [
        {"at": f"2026-01-01T00:00:0{number}Z", "name": name, "progress": None, "detail": f"of {number}", "member": None}
        for number, name in enumerate(names)
    ]

    class Starting(Master):
        def __call__(self, request: httpx2.Request) -> httpx2.Response:
            if request.method == "GET" and self.asked and self.asked[-1][0].endswith("/start"):
                self.cluster |= {"phase": "Running", "steps": steps}
            return super().__call__(request)

    windrow(Starting(steps=steps[:3]), "start", "lab", "--yes")
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if line.startswith("  ")] == ["  placed of 2", "  pulling of 3"]


def test_an_extension_is_asked_for_as_the_whole_time_and_says_when_it_ends(
    windrow: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = LAB["request"] | {"max_duration_seconds": 3600}
    master = Master(phase="Running", price_per_hour="2.50", request=asked, ends_at="2026-01-01T12:00:00Z")
    windrow(master, "extend", "lab", "--hours", "1.5")
    assert master.asked == [("/clusters/cluster_1/extend", {"max_duration_seconds": 9000})]
    assert "lab ends at 2026-01-01T12:00:00Z" in capsys.readouterr().err
    with pytest.raises(InvalidInput, match="has no --max-duration"):
        windrow(Master(phase="Running"), "extend", "lab", "--hours", "1")
