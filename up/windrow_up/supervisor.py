"""Keeps daemons running: starts each in its own session, restarts what dies with back-off, stops all in order.

A daemon dies with its supervisor (the kernel sends it SIGTERM), so that nothing is left even after SIGKILL.
"""

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from windrow_proto.master_process import EXIT_HELPLESS

BACKOFF_FIRST_S: Final = 0.25
BACKOFF_MAX_S: Final = 10.0
BURST: Final = 20
BURST_S: Final = 60.0
"""So many deaths in so long are each answered at once; only who dies more often than that waits longer and longer. A
start costs a second of a processor, so that a crash loop takes a third of one at first; and whoever serves is missed
for as long as it is away."""
HELPLESS_S: Final = 60.0
"""Before such a one is started again, in case somebody has."""
STOP_S: Final = 10.0
"""For an orderly stop, before SIGKILL."""
LOG_BYTES_MAX: Final = 16 * 1024 * 1024
"""A log larger than this at a start becomes `<name>.log.1`, replacing the one before."""
TAIL_LINES: Final = 12
PR_SET_PDEATHSIG: Final = 1


@dataclass(slots=True)
class Daemon:
    """One program to keep running."""

    name: str
    arguments: tuple[str, ...]
    log_path: Path
    pass_fds: tuple[int, ...] = ()
    """Open files that it is given, under the same numbers."""
    environment: Mapping[str, str] | None = None
    """None: the supervisor's own."""
    restarts: int = 0
    helpless: str = ""
    """Its last words, while no restart helps it; empty: it runs, or may."""
    process: asyncio.subprocess.Process | None = None
    is_wanted: bool = True
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    unwanted: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once it is not to be started again."""

    @property
    def pid(self) -> int | None:
        """The running process; None between two lives. The system is asked: the loop hears of an end a moment later,
        and in that moment a stranger may listen where it did."""
        if self.process is None or self.process.returncode is not None:
            return None
        try:
            ended = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return None  # waited for already
        return self.process.pid if ended is None else None

    def tail(self) -> str:
        """The last lines of its log, for a person who asks why it does not run."""
        try:
            text = self.log_path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-TAIL_LINES:])


def module(name: str, *arguments: str) -> tuple[str, ...]:
    """The command line of one of our daemons, by this very interpreter."""
    return (sys.executable, "-m", name, *arguments)


def _die_with_parent(parent: int) -> Callable[[], None]:
    libc = ctypes.CDLL(None, use_errno=True)

    def prepare() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        # The parent may have died before the line above.
        if os.getppid() != parent:
            os._exit(1)

    return prepare


async def start(daemon: Daemon) -> None:
    """Start it once."""
    daemon.log_path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.suppress(FileNotFoundError):
        if daemon.log_path.stat().st_size > LOG_BYTES_MAX:
            daemon.log_path.replace(daemon.log_path.with_suffix(".log.1"))
    with daemon.log_path.open("ab") as log:
        daemon.process = await asyncio.create_subprocess_exec(
            *daemon.arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=daemon.pass_fds,
            env=daemon.environment,
            preexec_fn=_die_with_parent(os.getpid()),
        )
    daemon.changed.set()


async def keep(daemon: Daemon, say: Callable[[str], None]) -> None:
    """Run it until it is no longer wanted; a death is said, counted and answered by a restart after a pause."""
    deaths: list[float] = []
    while daemon.is_wanted:
        ended = await _run(daemon)
        is_helpless = daemon.process is not None and daemon.process.returncode == EXIT_HELPLESS
        daemon.process = None
        daemon.helpless = last_words(daemon) if is_helpless else ""
        daemon.changed.set()
        if not daemon.is_wanted:
            return
        now = time.monotonic()
        deaths = [*(one for one in deaths if now - one < BURST_S), now]
        pause_s = HELPLESS_S if is_helpless else pause_after(len(deaths))
        daemon.restarts += 1
        if is_helpless:
            say(f"{daemon.helpless} ({daemon.name} is tried again in {pause_s:g} s)")
        else:
            say(f"{daemon.name} ended ({ended}); it starts again in {pause_s:g} s. Log: {daemon.log_path}")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await daemon.unwanted.wait()


async def _run(daemon: Daemon) -> str:
    """Run it to its end; returns how it ended. A machine that has no memory for it now may have some in a moment."""
    try:
        if daemon.process is None:
            await start(daemon)
    except (OSError, subprocess.SubprocessError) as error:
        return f"it cannot be started: {error}"
    assert daemon.process is not None
    return _ending(await daemon.process.wait())


def last_words(daemon: Daemon) -> str:
    """The last words of a daemon that ended by itself."""
    line = daemon.tail().splitlines()[-1:]
    try:
        return str(json.loads(line[0])["error"])
    except (IndexError, ValueError, KeyError, TypeError):
        return f"{daemon.name} ended. Log: {daemon.log_path}"


def pause_after(deaths: int) -> float:
    """Seconds before the next start, by the number of deaths within BURST_S, this one included."""
    return min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2.0 ** max(0, deaths - BURST))


async def stop(daemon: Daemon, within_s: float = STOP_S) -> None:
    """Ask it to end, then make it end, with whatever it started in its session."""
    daemon.is_wanted = False
    daemon.unwanted.set()
    process = daemon.process
    if process is None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await process.wait()
    finally:  # in a cancelled task Python before 3.11.4 tells of a deadline as of a cancellation (gh-102780)
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


def kill(daemon: Daemon) -> int | None:
    """SIGKILL it with whatever it started in its session, as a failing machine would; its keeper starts it again.
    Returns the pid that was killed; None when it does not run."""
    pid = daemon.pid
    if pid is None:
        return None
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return None
    return pid


async def run_once(arguments: Sequence[str], log_path: Path, within_s: float, environment: Mapping[str, str]) -> int:
    """Run a command to its end, its words in the log; returns its exit code, 124 when it took too long."""
    task = Daemon("", tuple(arguments), log_path, environment=environment)
    await start(task)
    assert task.process is not None
    try:
        async with asyncio.timeout(within_s):
            return await task.process.wait()
    except TimeoutError:
        return 124
    finally:
        await stop(task, within_s=1.0)


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
