"""Runs a control daemon of NVIDIA's MPS for each card that is shared now: started for the first lease of a part,
started again if it dies, ended with the last.

The daemon is a process of its own session, so that it and its clients outlive this agent; what is noted of it in its
folder lets the next agent find it. Its commands are those of `nvidia-cuda-mps-control` (NVIDIA, MPS documentation).
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Protocol

import structlog

from windrow_agent.runtimes import shim
from windrow_agent.runtimes.sandbox import SEARCH_PATH
from windrow_proto.errors import RuntimeUnavailable

log = structlog.get_logger()

PROGRAM: Final = "nvidia-cuda-mps-control"
START_S: Final = 10.0
"""From the daemon's launch to its first answer; nobody has measured it here: generous."""
ASK_S: Final = 5.0
END_S: Final = 10.0
"""For `quit`, which waits for the server to let go of the card; then it is killed."""
LOOK_S: Final = 0.05
AGAIN_S: Final = 5.0
"""Between two attempts to start one that died."""
NOTE: Final = "daemon.json"
RUN: Final = Path("/run")
"""The folder for files of running processes: it is empty after a boot, and only root can write to it."""


def meeting_folder(own: Path) -> Path:
    """Return the folder in which daemons, servers and clients meet. own: of this agent's processes.

    NVIDIA's server runs as the user of its clients and finds its daemon by path, so that this user must be able to come
    through every folder above: the agent's own is closed to workloads where the agent is root. (Seen with driver 580:
    clients get error 805 otherwise.)
    """
    if os.geteuid() != 0:
        return own / "mps"
    return RUN / f"windrow-mps-{sha256(str(own).encode()).hexdigest()[:12]}"


class MpsControl(Protocol):
    """The program that serves a card. Both calls block; `folders`: where its pipes and logs are."""

    def launch(self, card: str, folders: "Folders") -> int:
        """Start the daemon for this card in a session of its own; its pid. Raises RuntimeUnavailable."""

    def ask(self, command: str, folders: "Folders") -> str:
        """Tell a daemon one command, and what it says. Raises RuntimeUnavailable."""


@dataclass(frozen=True, slots=True)
class Folders:
    """Those of one card. Names are short: the path of a socket has at most 107 characters."""

    root: Path

    @property
    def pipe(self) -> Path:
        """The folder in which daemon and clients meet."""
        return self.root / "pipe"

    @property
    def log(self) -> Path:
        """The folder of the logs of daemon and server."""
        return self.root / "log"

    def environment(self) -> Mapping[str, str]:
        """The environment that names both to the program."""
        return {"CUDA_MPS_PIPE_DIRECTORY": str(self.pipe), "CUDA_MPS_LOG_DIRECTORY": str(self.log)}


class NvidiaMps:
    """MpsControl by NVIDIA's own program. search: where it is looked for."""

    def __init__(self, search: str = SEARCH_PATH) -> None:
        self._search = search

    def launch(self, card: str, folders: Folders) -> int:
        """In the foreground of its own session."""
        env = {"PATH": self._search, "CUDA_VISIBLE_DEVICES": card, **folders.environment()}
        said = os.open(folders.log / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
            actions += [(os.POSIX_SPAWN_DUP2, said, number) for number in (1, 2)]
            return os.posix_spawn(self._program(), [PROGRAM, "-f"], env, file_actions=actions, setsid=True)
        except OSError as error:
            raise RuntimeUnavailable(f"{PROGRAM} cannot be started: {error}") from error
        finally:
            os.close(said)

    def ask(self, command: str, folders: Folders) -> str:
        """By the same program, which then is the daemon's client."""
        try:
            done = subprocess.run(
                [self._program()],
                input=f"{command}\n",
                capture_output=True,
                text=True,
                errors="replace",
                timeout=ASK_S,
                env={"PATH": self._search, **folders.environment()},
                cwd="/",
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RuntimeUnavailable(f"The MPS control daemon does not answer: {error}") from error
        if done.returncode != 0:
            said = " ".join((done.stderr or done.stdout).split())[:200]
            raise RuntimeUnavailable(f"The MPS control daemon does not answer: {said or 'no word of it'}")
        return done.stdout

    def _program(self) -> str:
        found = shutil.which(PROGRAM, path=self._search)
        if found is None:
            raise RuntimeUnavailable(f"There is no {PROGRAM} on this host; it comes with NVIDIA's driver.")
        return found


class Daemons:
    """The daemons of this host; all below `folder`. used: the cards of which parts are leased now."""

    def __init__(self, folder: Path, control: MpsControl, used: Callable[[], frozenset[str]]) -> None:
        self._folder, self._control, self._used = folder, control, used
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._again_s: dict[str, float] = {}

    @property
    def is_any(self) -> bool:
        """True if a daemon was ever started here and not forgotten."""
        return self._folder.is_dir()

    def folders(self, card: str) -> Folders:
        """The folders of a card's daemon, running or not."""
        return Folders(self._folder / sha256(card.encode()).hexdigest()[:12])

    async def up(self, card: str) -> None:
        """See to it that the card's daemon runs and answers. Raises RuntimeUnavailable with what it said."""
        async with self._locks[card]:
            if not self.is_alive(card):
                await asyncio.to_thread(self._start, card)

    async def keep(self, card: str) -> None:
        """The same for a card whose daemon ran already: one that died is started again, but not again and again.

        What was computing under the dead one has lost its card; what starts anew has it.
        """
        if self.is_alive(card) or time.monotonic() < self._again_s.get(card, 0.0):
            return
        self._again_s[card] = time.monotonic() + AGAIN_S
        log.warning("mps_daemon_died", gpu_uuid=card)
        try:
            await self.up(card)
        except RuntimeUnavailable as error:
            log.warning("mps_daemon_not_started", gpu_uuid=card, detail=error.detail)

    async def end_unused(self) -> None:
        """End the daemons of cards of which nothing is leased any more, those of an earlier agent included."""
        for note in await asyncio.to_thread(lambda: list(self._folder.glob(f"*/{NOTE}"))):
            card = str(_read(note).get("card", ""))
            async with self._locks[card]:
                if card not in self._used():
                    await asyncio.to_thread(self._end, Folders(note.parent))
                    log.info("mps_daemon_ended", gpu_uuid=card)

    def is_alive(self, card: str) -> bool:
        """True if the process that is noted as the card's daemon runs."""
        return _is_alive(self.folders(card))

    def _start(self, card: str) -> None:
        folders = self.folders(card)
        _kill(folders)  # what a dead daemon left of its session
        shutil.rmtree(folders.pipe, ignore_errors=True)
        is_root = os.geteuid() == 0
        for folder, mode in ((self._folder, 0o711), (folders.root, 0o711), (folders.pipe, 0o777), (folders.log, 0o777)):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if is_root:  # workloads are another user then, and write to no other folder of these
                folder.chmod(mode)
        try:
            pid = self._control.launch(card, folders)
        except RuntimeUnavailable:
            self._forget(folders)
            raise
        with contextlib.suppress(OSError):  # it may have ended already
            shim.write_whole(str(folders.root), NOTE, {"card": card, "pid": pid, "ticks": shim.start_ticks(pid)})
        until_s, why = time.monotonic() + START_S, RuntimeUnavailable("The MPS control daemon has ended at once.")
        while _is_alive(folders) and time.monotonic() < until_s:
            try:
                self._control.ask("get_server_list", folders)
            except RuntimeUnavailable as error:
                why = error
                time.sleep(LOOK_S)
            else:
                log.info("mps_daemon_started", gpu_uuid=card, pid=pid)
                return
        said = _last_words(folders)
        self._forget(folders)
        raise RuntimeUnavailable(f"{card} cannot be shared by MPS. {why.detail}{said}", subject=card) from why

    def _end(self, folders: Folders) -> None:
        if _is_alive(folders):
            with contextlib.suppress(RuntimeUnavailable):
                self._control.ask("quit", folders)
            until_s = time.monotonic() + END_S
            while _is_alive(folders) and time.monotonic() < until_s:
                time.sleep(LOOK_S)
        self._forget(folders)

    def _forget(self, folders: Folders) -> None:
        _kill(folders)
        shutil.rmtree(folders.root, ignore_errors=True)
        with contextlib.suppress(OSError):  # another card's are there
            self._folder.rmdir()


def _is_alive(folders: Folders) -> bool:
    note = _read(folders.root / NOTE)
    if not note:
        return False
    with contextlib.suppress(OSError):  # not a child of this process, or an older one's: then nobody has to reap it
        os.waitpid(int(note["pid"]), os.WNOHANG)
    return shim.is_alive(int(note["pid"]), int(note["ticks"]))


def _kill(folders: Folders) -> None:
    """The daemon with its servers, which are of its session. Never a process that has its number by chance."""
    note = _read(folders.root / NOTE)
    if note and shim.is_alive(int(note["pid"]), int(note["ticks"])):
        with contextlib.suppress(OSError):
            os.killpg(int(note["pid"]), signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.waitpid(int(note["pid"]), 0)


def _read(path: Path) -> dict[str, int | str]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and {"card", "pid", "ticks"} <= found.keys() else {}


def _last_words(folders: Folders) -> str:
    try:
        text = " ".join((folders.log / "said").read_text(errors="replace").split())[-200:]
    except OSError:
        return ""
    return f" It said: {text}" if text else ""
