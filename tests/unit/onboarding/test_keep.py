"""The small supervisor ends its agent whenever it is told to end, also in the moment in which it starts it."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S, poll
from windrow_master.onboarding.service import carried

KEEP = carried("windrow-agent-keep")
AGENT = """#!/bin/sh
echo $$ >"$3/agent.pid"
[ -z "$ENDS_ONCE" ] || [ -e "$3/ended" ] || { : >"$3/ended"; exit 1; }
exec sleep 600
"""
"""Called as `PROGRAM run --data-dir STATE`."""
TELLING = """#!/bin/sh
n=$(cat "$STATE/asked" 2>/dev/null)
echo "x$n" >"$STATE/asked"
[ "x$n" != "$AT" ] || kill -TERM "$(cat "$STATE/keep.pid")"
exec /bin/date "$@"
"""
"""Stands in for `date`, which is asked just before each start: at the wanted one, the supervisor is told to end."""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir()
    return folder


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@contextmanager
def kept(state: Path, **environment: str) -> "Iterator[subprocess.Popen[bytes]]":
    """The supervisor with a pretend agent; whatever is left of both is killed in the end."""
    agent = program(state.parent / "agent", AGENT)
    path = f"{state.parent / 'bin'}:{os.defpath}"
    keeper = subprocess.Popen(
        ["sh", str(KEEP), str(agent), str(state)], env={"PATH": path, **environment}, start_new_session=True
    )
    try:
        yield keeper
    finally:
        with suppress(ProcessLookupError):
            os.killpg(keeper.pid, signal.SIGKILL)
        keeper.wait()


@pytest.mark.parametrize(("at", "ends_once"), [("x", ""), ("xx", "yes"), ("xxx", "yes")])
def test_told_to_end_just_before_a_start_it_ends_what_it_starts(
    state: Path, tmp_path: Path, at: str, ends_once: str
) -> None:
    """`date` is asked before each start and after each end: so before the first, in the pause, before the next."""
    program(tmp_path / "bin" / "date", TELLING)
    with kept(state, STATE=str(state), AT=at, ENDS_ONCE=ends_once) as keeper:
        assert keeper.wait(PATIENCE_S) == 0
        assert not (state / "keep.pid").exists()
        assert not (state / "agent.pid").exists() or not lives(int((state / "agent.pid").read_text() or "0"))


def test_told_to_end_while_the_agent_runs_it_ends_with_it(state: Path) -> None:
    with kept(state) as keeper:
        poll(lambda: (state / "agent.pid").exists() and (state / "agent.pid").read_text().strip(), what="it runs")
        pid = int((state / "agent.pid").read_text())
        keeper.send_signal(signal.SIGTERM)
        assert keeper.wait(PATIENCE_S) == 0
        assert not lives(pid)
