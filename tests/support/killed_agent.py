"""Agents that are killed at a numbered step of their work, each in a process of its own.

A step is a moment before or after what leaves a trace: a write to the journal or the spool, a call of the runtime, and
what that makes in turn, a question to the container daemon or a record for a shim. `python -m
tests.support.killed_agent` has everything loaded and forks one life after the other, each as a line of its input says.
"""

import asyncio
import base64
import contextlib
import functools
import inspect
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker

from tests.support.agent_world import World, until_done
from tests.waiting import PATIENCE_S
from windrow_agent.runtimes import cgroups, process, shim
from windrow_agent.runtimes.docker import DockerRuntime
from windrow_agent.runtimes.port import Runtime
from windrow_agent.runtimes.process import ProcessRuntime
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.disk import OsDisk
from windrow_proto.ids import HostId
from windrow_proto.link_memory import MemoryNetwork
from windrow_proto.model import Command
from windrow_proto.wire_command import decode_command, encode_command

KILLED, DONE = "killed", "done"
DISK = ("append", "sync", "sync_directory", "rename", "truncate", "delete")
RUNTIME = ("prepare", "start", "stop", "remove")


@dataclass(frozen=True, slots=True)
class Life:
    """The tasks of one agent. url: of a container daemon; empty: processes. It does all commands, and dies at the
    step of this number of the last one."""

    folder: Path
    url: str
    host: HostId
    step: int
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class Nursery:
    """The process that forks them."""

    process: "subprocess.Popen[str]"

    def lived(self, life: Life) -> bool:
        """Have one live and die; whether it was killed at its step, and had not done with all its work before."""
        words = [base64.b64encode(encode_command(one)).decode() for one in life.commands]
        line = [str(life.folder), life.url, life.host, life.step, *words]
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline().strip()
        assert said in (KILLED, DONE), said
        return said == KILLED


@contextlib.contextmanager
def nursery() -> Iterator[Nursery]:
    """One that is ready."""
    words = [sys.executable, "-m", "tests.support.killed_agent"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Nursery(process)
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_S)


def runtime_of(folder: Path, url: str, host: HostId) -> Runtime:
    """That of each of them, and of whoever comes after."""
    if url:
        return DockerRuntime(folder / "docker", host, url)
    return ProcessRuntime(folder / "process", folder, host, is_bubblewrap_wanted=False)


class Steps:
    """Counts from `begin` on, and ends this process without a last word at step `last`."""

    def __init__(self, last: int) -> None:
        self.last, self.count, self._is_counting = last, 0, False
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Counts what comes from now on."""
        self._is_counting = True

    def step(self) -> None:
        """One moment."""
        if not self._is_counting:
            return
        with self._lock:
            self.count += 1
            if self.count == self.last:
                os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner: Any, name: str, is_after: bool = True) -> None:
        """A step before each call of it, and one after."""
        inner: Callable[..., Any] = getattr(owner, name)

        @functools.wraps(inner)
        def called(*args: Any, **more: Any) -> Any:
            self.step()
            try:
                return inner(*args, **more)
            finally:
                if is_after:
                    self.step()

        @functools.wraps(inner)
        async def awaited(*args: Any, **more: Any) -> Any:
            self.step()
            try:
                return await inner(*args, **more)
            finally:
                self.step()

        setattr(owner, name, awaited if inspect.iscoroutinefunction(inner) else called)


def watched(steps: Steps, runtime: Runtime) -> None:
    """Have them counted."""
    for name in DISK:
        steps.around(OsDisk, name, False)  # the next one's comes at once
    for name in RUNTIME:
        steps.around(runtime, name)
    if isinstance(runtime, DockerRuntime):
        steps.around(docker.APIClient, "send")
    else:
        steps.around(shim, "write_whole")
        steps.around(process, "_launch")
        steps.around(cgroups, "make")
        steps.around(cgroups, "drop")


async def live(life: Life) -> None:
    """To the step, or to the end. Its Master acknowledges nothing, so that the next one is told all of it again."""
    steps, runtime = Steps(life.step), runtime_of(life.folder, life.url, life.host)
    watched(steps, runtime)
    async with MemoryNetwork(SystemClock(), SystemRng()) as network:
        world = World(life.folder, network, {runtime.name: runtime})
        world.master.is_acking = False
        await world.open()
        async with world.running():
            for command in life.commands:
                if command is life.commands[-1]:
                    steps.begin()
                await world.master.command(command)
                await until_done(world, command)
            os._exit(0)


def main() -> None:
    """One life for each line, until there are no more."""
    for line in sys.stdin:
        folder, url, host, step, *words = json.loads(line)
        commands = tuple(decode_command(base64.b64decode(one)) for one in words)
        pid = os.fork()
        if not pid:
            with open(os.devnull, "w") as null:
                os.dup2(null.fileno(), 1)
            asyncio.run(live(Life(Path(folder), url, HostId(host), step, commands)))
            os._exit(1)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print({-signal.SIGKILL: KILLED, 0: DONE}.get(code, f"it ended with {code}"), flush=True)


if __name__ == "__main__":
    main()
