"""`windrow run` against a Master that says where it would run, and takes nothing."""

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


def test_a_host_that_the_market_tests_is_named_before_it_is_waited_for(said: Any) -> None:
    found = said({"tested": ["h1"]})
    assert WAITS in found
    assert "rig is being tested" not in found


@pytest.mark.parametrize("tested", [{"tested": []}, {}], ids=["none", "of a Master before this field"])
def test_nothing_is_said_of_tests_where_none_runs(said: Any, tested: dict[str, Any]) -> None:
    assert "tested" not in said(tested)


def test_who_wants_json_is_told_no_such_line(said: Any) -> None:
    assert "tested" not in said({"tested": ["h1"]}, "--json")
