"""The command line, and that the agent stays slim."""

import io
import subprocess
import sys

import pytest

from tests import as_it_was
from windrow_agent.app import config, main
from windrow_proto.errors import Conflict, InvalidInput

HEAVY = ("docker", "requests", "urllib3", "numpy", "pydantic", "sqlalchemy")


@pytest.fixture
def command(monkeypatch):
    """The command in this process, which it takes for its own: what it sets is put back. The heap stays the tests'."""
    monkeypatch.setattr("windrow_agent.app.memory_trim.keep_small", lambda: None)
    with as_it_was.contained():
        yield main.main


def test_importing_the_agent_loads_nothing_heavy():
    code = f"import sys, windrow_agent.app.main; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_a_token_comes_from_a_file_and_never_from_an_argument(tmp_path):
    (tmp_path / "t").write_text("wj_secret\n")
    assert config.read_token(str(tmp_path / "t")).strip() == "wj_secret"
    with pytest.raises(InvalidInput):
        config.read_token(str(tmp_path / "missing"))
    with pytest.raises(SystemExit):
        config.parse(["join", "https://x", "--token", "wj_secret"])


def test_two_agents_do_not_share_a_folder(tmp_path):
    with main.only_agent(tmp_path), pytest.raises(Conflict), main.only_agent(tmp_path):
        pass


def test_running_before_joining_says_how_to_join(tmp_path, capsys, command):
    assert command(["run", "--data-dir", str(tmp_path)]) == 1
    assert "windrow-agent join" in capsys.readouterr().err


def test_uninstalling_removes_all_that_was_kept_and_asks_first(tmp_path, command, monkeypatch):
    folder = tmp_path / "agent"
    (folder / "identity").mkdir(parents=True)
    (folder / "spool").mkdir()
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert command(["uninstall", "--data-dir", str(folder)]) == 1
    assert folder.exists()
    assert command(["uninstall", "--yes", "--data-dir", str(folder)]) == 0
    assert not folder.exists()


def test_unknown_runtimes_and_counts_are_refused(tmp_path):
    with pytest.raises(InvalidInput):
        config.parse(["run", "--runtimes", "docker,magic"])
    with pytest.raises(InvalidInput):
        config.parse(["simulate", "--count", "0"])
    with pytest.raises(InvalidInput, match="1 to 60"):
        config.parse(["simulate", "--count", "1", "--sample-every", "0"])
