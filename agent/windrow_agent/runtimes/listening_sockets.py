"""Finds the listening sockets of one workload's processes in /proc; blocking, some milliseconds."""

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from windrow_agent.core.listeners import Listener, dialled, parse

TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")
_SOCKET: Final = re.compile(r"socket:\[(\d+)\]")


def addresses(port: int, shim_pid: int, mark: bytes) -> tuple[str, ...]:
    """The addresses at which this port is the workload's own and nobody else's; empty: there are none.

    Its processes are those below its shim, and those that carry its mark in their environment: commands that were
    started beside it.
    """
    return dialled(tuple(_listeners()), port, owned(shim_pid, mark))


def owned(shim_pid: int, mark: bytes) -> frozenset[int]:
    """The inodes of all sockets of the workload's processes."""
    return frozenset(inode for pid in processes(shim_pid, mark) for inode in _sockets(pid))


def _listeners() -> Iterable[Listener]:
    for table in TABLES:
        with contextlib.suppress(OSError):
            yield from parse(Path(table).read_text())


def processes(shim_pid: int, mark: bytes) -> set[int]:
    """The workload's processes: its shim's children, and all that have its mark in their environment."""
    below: dict[int, list[int]] = {}
    found: set[int] = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError, IndexError):
            stat = Path("/proc", name, "stat").read_text(errors="replace")
            below.setdefault(int(stat.rsplit(")", 1)[1].split()[1]), []).append(int(name))
            if mark in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                found.add(int(name))
    todo = [shim_pid]
    while todo:
        children = below.get(todo.pop(), [])
        todo += children
        found.update(children)
    return found


def _sockets(pid: int) -> Iterable[int]:
    with contextlib.suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                named = _SOCKET.fullmatch(os.readlink(entry.path))
                if named is not None:
                    yield int(named[1])
