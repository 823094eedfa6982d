"""The server's side of the processes that calls run in: zygotes, code processes, children, and what they write."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from windrow.worker import config
from windrow.worker.runs import ERR, OUT, Lines, Run
from windrow.worker.zygote import PACKET_BYTES_MAX, send

READ_BYTES: Final = 64 * 1024
READS_AFTER_END: Final = 1024
"""Of what a run left in its pipes: what its own processes wrote fits in far fewer."""
STATUS_S: Final = 2.0
"""For a code process to say how a child of its ended; it looks five times a second."""
BEGIN_S: Final = 60.0
"""For a fork to say that it is there; milliseconds, unless the machine stands still."""


class Died(Exception):
    """A process ended by itself; the message says how."""


class Output:
    """Two pipes, for standard output and error, whose lines go to a run."""

    def __init__(self) -> None:
        self.run: Run | None = None
        self._lines = {OUT: Lines(), ERR: Lines()}
        self._near: dict[int, int] = {}
        self._far: list[int] = []
        for stream in (OUT, ERR):
            near, far = os.pipe()
            os.set_blocking(near, False)
            self._near[stream] = near
            self._far.append(far)
            asyncio.get_running_loop().add_reader(near, self._read, stream)

    def given(self) -> list[int]:
        """The ends for the process."""
        return self._far

    def let_go(self) -> None:
        """The process has them now."""
        while self._far:
            os.close(self._far.pop())

    def finish(self) -> None:
        """All that was written before now goes to the run, which is then let go."""
        for stream in tuple(self._near):
            for _ in range(READS_AFTER_END):
                if not self._read(stream):
                    break
            if self.run is not None and (rest := self._lines[stream].end()):
                self.run.add(stream, rest)
        self.run = None

    def close(self) -> None:
        """Read no more."""
        self.let_go()
        for near in self._near.values():
            asyncio.get_running_loop().remove_reader(near)
            os.close(near)
        self._near.clear()

    def _read(self, stream: int) -> bool:
        try:
            data = os.read(self._near[stream], READ_BYTES)
        except (BlockingIOError, KeyError):
            return False
        if not data:
            asyncio.get_running_loop().remove_reader(self._near[stream])
        elif self.run is not None and (lines := self._lines[stream].feed(data)):
            self.run.add(stream, lines)
        return bool(data)


class Child:
    """A process for calls, one at a time."""

    def __init__(self) -> None:
        self.output = Output()
        self.pid = 0
        self.is_gone = False
        self.channel, self.far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.setblocking(False)

    async def said(self) -> dict[str, Any] | None:
        """Returns the next message of the process; None: it has gone."""
        return await _said(self.channel)

    def begin(self, job: Mapping[str, Any]) -> None:
        """Give it a call; raises OSError."""
        send(self.channel, dict(job))

    def signal(self, number: int) -> None:
        """To it and all it has started, unless they left its process group."""
        if self.pid:
            with contextlib.suppress(OSError):
                os.killpg(self.pid, number)

    def close(self) -> None:
        """End it with all it has started, and let go of it."""
        self.signal(signal.SIGKILL)
        self.far.close()
        self.channel.close()
        self.output.close()


class Code:
    """A process that has imported one state of the code, and forks children."""

    def __init__(self, channel: socket.socket, output: Output) -> None:
        self._channel, self._output = channel, output
        self._pid = 0
        self.modules: list[str] = []
        self.forks = True
        self.users = 0
        self._ended: dict[int, asyncio.Future[int]] = {}
        self._children: dict[int, Child] = {}

    async def load(self, run: Run) -> dict[str, Any] | None:
        """Wait until it has imported; returns how that failed, if it did. What it prints meanwhile is the run's."""
        self._output.run = run
        said = await _said(self._channel)
        if said is not None and said["do"] == "began":
            self._pid = int(said["pid"])
            said = await _said(self._channel)
        self._output.finish()
        if said is None:
            raise Died("The process that imports the code ended before it had: something in it exits or is killed.")
        self.modules, self.forks = said["modules"], said["forks"]
        failed: dict[str, Any] | None = said["failed"]
        return failed

    async def watch(self) -> None:
        """Note which children ended and how, until this process has."""
        while (said := await _said(self._channel)) is not None:
            pid = int(said["pid"])
            if self._future(pid).done():  # of one that had this number before, and was never waited for
                del self._ended[pid]
            self._future(pid).set_result(int(said["status"]))
            if (child := self._children.get(pid)) is not None:
                with contextlib.suppress(OSError):
                    child.channel.shutdown(socket.SHUT_RDWR)  # whatever it started may still hold the other end

    async def child(self, inside: bool) -> Child:
        """A new one. inside: this process itself, since it cannot be forked. Raises Died."""
        child = Child()
        try:
            message = {"do": "child", "inside": inside}
            send(self._channel, message, [child.far.fileno(), *child.output.given()])
            child.far.close()
            child.output.let_go()
            async with asyncio.timeout(BEGIN_S):
                said = await child.said()
        except (OSError, TimeoutError) as error:
            child.close()
            raise Died("The process of the call could not be started; perhaps too many run.") from error
        except BaseException:
            child.close()
            raise
        if said is None:
            child.close()
            raise Died("The process of the call ended before it began.")
        child.pid = int(said["pid"])
        self._children[child.pid] = child
        return child

    def has_ended(self, child: Child) -> bool:
        """True if it was seen to."""
        return child.pid in self._ended and self._ended[child.pid].done()

    async def how_ended(self, child: Child) -> str:
        """In words, of a child that has gone."""
        try:
            async with asyncio.timeout(STATUS_S):
                status = await self._future(child.pid)
        except TimeoutError:
            return "The process of the call ended, nobody knows how."
        if os.WIFSIGNALED(status):
            name = signal.Signals(os.WTERMSIG(status)).name
            more = ", as where memory runs out" if name == "SIGKILL" else ""
            return f"The process of the call was ended by {name}{more}."
        return f"The process of the call ended by itself, with exit code {os.waitstatus_to_exitcode(status)}."

    def let_go(self, child: Child) -> None:
        """This child is over."""
        child.close()
        self._children.pop(child.pid, None)
        self._ended.pop(child.pid, None)

    def close(self) -> None:
        """End it, whatever it is at."""
        if self._pid:
            with contextlib.suppress(OSError):
                os.killpg(self._pid, signal.SIGKILL)
        self._channel.close()
        self._output.close()

    def _future(self, pid: int) -> "asyncio.Future[int]":
        if len(self._ended) > 4096:
            self._ended.clear()
        return self._ended.setdefault(pid, asyncio.get_running_loop().create_future())


class Zygote:
    """The process of an environment. Started when it is needed, and anew when it has ended."""

    def __init__(self, python: str, lib: Path) -> None:
        self._python, self._lib = python, lib
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._loaded: set[str] = set()

    def code(self, message: Mapping[str, Any]) -> Code:
        """Fork a process that imports this code; raises Died."""
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        near.setblocking(False)
        output = Output()
        try:
            with far:
                send(self._alive(), {"do": "code", **message}, [far.fileno(), *output.given()])
            output.let_go()
        except OSError as error:
            near.close()
            output.close()
            raise Died("The process of the environment has ended; the next call starts it again.") from error
        return Code(near, output)

    def preload(self, modules: list[str]) -> None:
        """Have these imported before the next code is."""
        new = [name for name in modules if name not in self._loaded]
        self._loaded.update(new)
        if new:
            with contextlib.suppress(OSError):
                send(self._alive(), {"do": "preload", "modules": new})

    def close(self) -> None:
        """End it."""
        if self._channel is not None:
            self._channel.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _alive(self) -> socket.socket:
        if self._process is None or self._channel is None or self._process.poll() is not None:
            near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            near.setblocking(False)
            self._loaded.clear()
            with far:
                words = [self._python, "-m", "windrow.worker.zygote", str(far.fileno())]
                self._process = subprocess.Popen(
                    words, stdin=subprocess.DEVNULL, pass_fds=[far.fileno()], env=config.passed_on(self._lib)
                )
            self._channel = near
        return self._channel


async def _said(channel: socket.socket) -> dict[str, Any] | None:
    try:
        data = await asyncio.get_running_loop().sock_recv(channel, PACKET_BYTES_MAX)
    except OSError:
        return None
    if not data:
        return None
    found: dict[str, Any] = json.loads(data)
    return found
