"""`windrow usage` and `windrow earnings`: what they ask, and what a person, a pipe and a program are shown."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from rich.console import Console
from typer.testing import CliRunner

from windrow.cli import billing, output
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config
from windrow.words import money_text

SUPPORT = Path(__file__).parents[2] / "support"

ROW = {"id": "cluster_1", "name": "train", "amount": "4.25000001", "running_hours": 2.5, "days": ["4.25000001"]}
SPENT = {
    "month": "2026-11", "months": ["2026-11"], "by": "machine", "scope": "project", "currency": "TEST",
    "spent": "4.25000001", "today": "0.01", "forecast": "9.50", "forecast_method": "By the mean", "limit": "50.00",
    "per_hour": "1.70", "running": 2, "held": "0.42", "balance": "95.33", "empty_at": "2999-01-01T00:00:00.000Z",
    "days": [{"day": "2026-11-01", "amount": "4.25000001"}], "rows": [ROW],
}  # fmt: skip
LOST = {"idle": "3.00", "paused": "0.00", "faulty": "1.50", "offline": "0.00"}
TIMES = {"occupancy_ratio": 0.25, "lost": LOST}
EARNED = {
    "month": "2026-11", "currency": "TEST", "earned": "4.00", "today": "0.00", "per_hour": "1.53", "fees": "0.00",
    "days": [{"day": "2026-11-01", "amount": "4.00", "occupancy_ratio": None}], "times": TIMES,
    "rows": [{"id": "host_1", "name": "rack7", "amount": "4.00", "times": TIMES},
             {"id": "host_2", "name": "gone", "amount": "0.00", "times": None}],
}  # fmt: skip


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the Master was asked."""
    paths: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        paths.append(request.url.raw_path.decode().removeprefix("/api/v1"))
        return httpx2.Response(200, json=SPENT if request.url.path.endswith("/usage") else EARNED)

    transport = httpx2.MockTransport(answer)
    monkeypatch.setattr(billing, "client", lambda context: Client(Config("http://master", "wt_x"), transport))
    return paths


def run(*words: str) -> str:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output + str(done.exception)
    return done.stdout


def test_the_words_are_the_question_and_json_is_the_whole_answer(asked: list[str]) -> None:
    said: dict[str, Any] = json.loads(run("usage", "--by", "gpu", "--month", "2026-11", "--json"))
    assert said == SPENT
    assert json.loads(run("earnings", "--by", "day", "--all-projects", "--json")) == EARNED
    assert asked == ["/usage?by=gpu&month=2026-11", "/earnings?scope=all"]


def test_a_pipe_has_rows_with_whole_amounts(asked: list[str]) -> None:
    assert run("usage").splitlines() == ["NAME\tAMOUNT\tHOURS\tID", "train\t4.25000001\t2.5\tcluster_1"]
    _, first, second = run("earnings").splitlines()
    assert first == "rack7\t4.00\t25 %\t3.00\t0.00\t1.50\t0.00\thost_1"
    assert second == "gone\t0.00\t\t\t\t\t\thost_2"
    assert run("earnings", "--by", "day").splitlines()[1] == "2026-11-01\t4.00\t"


def test_a_person_reads_the_forecast_its_method_and_until_when_there_is_money(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Console(force_terminal=True, color_system=None, width=120, highlight=False)
    for module in (billing, output):
        monkeypatch.setattr(module, "out", screen)
    with screen.capture() as shown:
        run("usage")
        run("earnings")
    text = shown.get()
    for words in (
        "4.25 TEST, today 0.01",
        "9.50 TEST. By the mean.",
        "50.00",
        "95.33 TEST, empty in",
        "1.70 TEST an hour",
    ):
        assert words in text
    assert "25 % of the time" in text and "idle 3.00, paused 0.00, faulty 1.50" in text
    assert "the Master's own tests of hosts" in text
    assert "None" not in text


@pytest.mark.parametrize(("amount", "digits", "shown"), json.loads((SUPPORT / "money_shown.json").read_text()))
def test_money_is_shown_by_one_rule_here_and_in_the_console(amount: str, digits: int, shown: str) -> None:
    assert money_text(amount, digits) == shown
