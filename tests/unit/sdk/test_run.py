"""`windrow run` against a Master that says where it would run, and takes nothing."""

import json
from typing import Any

import httpx2
import pytest
from typer.main import get_command

from windrow.cli import run
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config
from windrow.errors import ApiProblem

HOSTS = (("h1", "box"), ("h2", "rig"))
PLACES = [{"host_id": host_id, "host_name": name, "slots": ["slot"]} for host_id, name in HOSTS]
WAITS = "box is being tested by the market; your work replaces the test in a moment."


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def ask(tested: dict[str, Any], *words: str) -> str:
        plan = {"fits": True, "placement": PLACES, "hold": "1", "balance": "9", "refusal": None} | tested

        def master(request: httpx2.Request) -> httpx2.Response:
            if request.url.path.endswith("/plan"):
                return httpx2.Response(200, json=plan)
            return httpx2.Response(400, json={"code": "invalid_input", "detail": "No."})

        told = Client(Config("http://master", "wr_x"), transport=httpx2.MockTransport(master))
        monkeypatch.setattr(run, "client", lambda context: told)
        with pytest.raises(ApiProblem):
            get_command(app)(["run", "--no-files", *words, "true"], standalone_mode=False)
        return " ".join(capsys.readouterr().err.split())

    return ask


UNMADE: dict[str, Any] = {
    "id": "cluster_1", "name": "nosuch", "version": 1, "request": {}, "phase": "Failed",
    "workloads": [{"id": "w", "rank": 0, "phase": "failed", "host_name": "rig"}],
}  # fmt: skip
RECEIPT = {
    "id": "receipt_1", "amount": "0", "currency": "EUR", "price_per_hour": "2.00", "running_seconds": "0",
    "ended_at": "2030-01-01T00:00:00Z",
}  # fmt: skip


@pytest.mark.parametrize(
    ("why", "code"),
    [
        ("There is no command 'nosuch' on this host.", 127),
        ("'nosuch' could not be run: No such file or directory", 127),
        ("'/etc/passwd' could not be run: Permission denied", 126),
        ("the image could not be pulled", 1),
    ],
)
@pytest.mark.parametrize("words", [(), ("--json",)], ids=["for a person", "as json"])
def test_a_command_that_never_began_gives_its_reason_once_a_shells_code_and_its_cost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], why: str, code: int, words: tuple[str, ...]
) -> None:
    reason = f"workload_failed: {why}"
    failed = UNMADE | {"reason": reason, "steps": [{"name": "failed", "detail": reason, "at": "2030"}]}

    def master(request: httpx2.Request) -> httpx2.Response:
        path = request.url.path.removeprefix("/api/v1")
        plan = {"fits": True, "placement": [], "hold": "1", "balance": "9", "refusal": None}
        created = {"cluster": failed}
        found = {"/clusters/plan": plan, "/clusters": created, "/receipts": {"items": [RECEIPT]}}
        return httpx2.Response(200, json=RECEIPT if "receipt_" in path else found.get(path, failed))

    told = Client(Config("http://master", "wr_x"), transport=httpx2.MockTransport(master))
    monkeypatch.setattr(run, "client", lambda context: told)

    assert get_command(app)(["run", *words, "--no-files", "--", "nosuch"], standalone_mode=False) == code

    said = capsys.readouterr()
    assert said.err.count(why) == 1 and "What it changed" not in said.err
    if words:
        assert json.loads(said.out)["exit_code"] == code
    else:
        assert "cost 0.00 EUR" in said.err


def test_a_host_that_the_market_tests_is_named_before_it_is_waited_for(said: Any) -> None:
    found = said({"tested": ["h1"]})
    assert WAITS in found
    assert "rig is being tested" not in found


@pytest.mark.parametrize("tested", [{"tested": []}, {}], ids=["none", "of a Master before this field"])
def test_nothing_is_said_of_tests_where_none_runs(said: Any, tested: dict[str, Any]) -> None:
    assert "tested" not in said(tested)


def test_who_wants_json_is_told_no_such_line(said: Any) -> None:
    assert "tested" not in said({"tested": ["h1"]}, "--json")
