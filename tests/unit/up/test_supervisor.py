"""Promises of the supervisor: restarts what dies, stops what is asked to, leaves nothing behind."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S, poll, poll_async
from windrow_up import supervisor
from windrow_up.supervisor import Daemon

PYTHON = sys.executable
SLEEPER = (PYTHON, "-c", "import time; print('up', flush=True); time.sleep(600)")
DEAF = (
    PYTHON,
    "-c",
    "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)",
)


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


async def test_a_daemon_that_dies_is_started_again_and_said(tmp_path: Path) -> None:
    said: list[str] = []
    daemon = Daemon("master", SLEEPER, tmp_path / "master.log")
    async with asyncio.TaskGroup() as group:
        group.create_task(supervisor.keep(daemon, said.append))
        first = await poll_async(lambda: daemon.pid or 0)
        os.kill(first, signal.SIGKILL)
        second = await poll_async(lambda: daemon.pid if daemon.pid not in (None, first) else 0) or 0
        await supervisor.stop(daemon)

    assert daemon.restarts == 1
    assert "SIGKILL" in said[0] and str(tmp_path / "master.log") in said[0]
    assert not _is_alive(first) and not _is_alive(second)


async def test_a_daemon_gets_the_environment_that_it_is_given(tmp_path: Path) -> None:
    daemon = Daemon("agent", ("/usr/bin/env",), tmp_path / "agent.log", environment={"ONLY": "this"})
    await supervisor.start(daemon)
    assert daemon.process is not None
    assert await daemon.process.wait() == 0
    assert daemon.tail() == "ONLY=this"


async def test_a_daemon_that_has_died_has_no_pid_before_the_loop_hears_of_it(tmp_path: Path) -> None:
    daemon = Daemon("master", SLEEPER, tmp_path / "master.log")
    async with asyncio.TaskGroup() as group:
        group.create_task(supervisor.keep(daemon, lambda said: None))
        pid = await poll_async(lambda: daemon.pid or 0)
        os.kill(pid, signal.SIGKILL)
        poll(lambda: not _is_alive(pid))  # no turn of the loop in between
        assert daemon.process is not None and daemon.process.returncode is None
        assert daemon.pid is None
        await supervisor.stop(daemon)


async def test_a_daemon_that_cannot_be_started_now_is_started_once_it_can(tmp_path: Path) -> None:
    folder, said = tmp_path / "logs", list[str]()
    folder.write_text("no folder: as where there is no room for one")
    daemon = Daemon("agent", SLEEPER, folder / "agent.log")
    async with asyncio.TaskGroup() as group:
        group.create_task(supervisor.keep(daemon, said.append))
        await poll_async(lambda: said)
        assert daemon.pid is None
        folder.unlink()
        pid = await poll_async(lambda: daemon.pid or 0)
        await supervisor.stop(daemon)
    assert "cannot be started" in said[0] and daemon.restarts >= 1
    assert not _is_alive(pid)


async def test_a_daemon_that_keeps_dying_is_started_ever_more_slowly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "BACKOFF_FIRST_S", 0.01)
    monkeypatch.setattr(supervisor, "BURST", 2)
    said: list[str] = []
    daemon = Daemon("agent", (PYTHON, "-c", "print('no disk'); raise SystemExit(3)"), tmp_path / "agent.log")
    async with asyncio.TaskGroup() as group:
        group.create_task(supervisor.keep(daemon, said.append))
        await poll_async(lambda: len(said) >= 5)
        await supervisor.stop(daemon)

    pauses = [float(line.split(" in ")[1].split(" s")[0]) for line in said[:5]]
    assert pauses == [0.01, 0.01, 0.02, 0.04, 0.08]
    assert "exit code 3" in said[0]
    assert "no disk" in daemon.tail()


def test_the_pause_grows_with_the_deaths_of_a_minute_and_has_an_end() -> None:
    assert [supervisor.pause_after(deaths) for deaths in (1, 20, 21, 22, 25, 26, 200)] == [
        *(0.25, 0.25, 0.5, 1.0, 8.0, 10.0, 10.0)
    ]


async def test_a_daemon_deaf_to_the_signal_is_killed_with_its_children(tmp_path: Path) -> None:
    daemon = Daemon("access", DEAF, tmp_path / "access.log")
    await supervisor.start(daemon)
    await poll_async(lambda: "up" in daemon.tail())
    pid = daemon.pid
    assert pid is not None

    async with asyncio.timeout(PATIENCE_S):  # it sleeps for ten minutes
        await supervisor.stop(daemon, within_s=0.2)

    assert not _is_alive(pid)


async def test_who_is_cancelled_while_it_stops_a_deaf_daemon_kills_it(tmp_path: Path) -> None:
    daemon = Daemon("agent-1", DEAF, tmp_path / "agent-1.log")
    await supervisor.start(daemon)
    assert daemon.process is not None
    await poll_async(lambda: "up" in daemon.tail())
    async with asyncio.TaskGroup() as group:
        stopping = group.create_task(supervisor.stop(daemon, within_s=PATIENCE_S))
        await asyncio.sleep(0)
        stopping.cancel()

    assert stopping.cancelled()
    assert daemon.process.returncode == -signal.SIGKILL


async def test_a_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    what = PYTHON, "-c", "import os; raise SystemExit(int(os.environ['CODE']))"
    assert await supervisor.run_once(what, tmp_path / "a.log", 30, {"CODE": "4"}) == 4
    assert await supervisor.run_once(SLEEPER, tmp_path / "b.log", 0.3, {}) == 124


def test_daemons_do_not_outlive_a_killed_supervisor(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom windrow_up import supervisor\n"
        f"daemon = supervisor.Daemon('x', {SLEEPER!r}, Path({str(tmp_path / 'x.log')!r}))\n"
        "async def main():\n    await supervisor.start(daemon)\n    print(daemon.pid, flush=True)\n"
        "    await asyncio.sleep(600)\nasyncio.run(main())\n"
    )
    parent = subprocess.Popen([PYTHON, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert _is_alive(child)

    parent.kill()
    parent.wait(PATIENCE_S)
    parent.stdout.close()

    poll(lambda: not _is_alive(child), what="the daemon ends with its supervisor")
