"""Counts what a process workload uses: by its control groups where it has some, else process by process.

Blocking, but for the size of its folder, which is measured beside and rarely: it may hold millions of files.
"""

import contextlib
import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from windrow_agent.core.workload_usage import Usage
from windrow_agent.runtimes import cgroups, listening_sockets
from windrow_agent.runtimes.cgroups import Group
from windrow_agent.runtimes.docker_disk import Limits, Used, read_through

TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
NS_PER_S: Final = 1_000_000_000
SIZE_EVERY_S: Final = 60.0
SIZE_SHARE: Final = 20
"""Reading through a folder takes at most one part in so many of the time."""
NO_LIMITS: Final = Limits(0, 0)


def used(groups: Sequence[Group], shim_pid: int, mark: bytes, network_pid: int | None) -> Usage:
    """The resources of one workload. groups: its own; network_pid: a process in its own network; None: it has none.

    Memory by process leaves out what processes share; by group it leaves out the file cache that could be freed.
    """
    pids = cgroups.members(groups) or listening_sockets.processes(shim_pid, mark)
    cpu_ns, memory_bytes = cgroups.cpu_ns(groups), cgroups.memory_bytes(groups)
    moved = [_moved(pid) for pid in pids]
    network = None if network_pid is None else network_bytes(network_pid)
    return Usage(
        cpu_ns=_sum(map(_cpu_ns, pids)) if cpu_ns is None else cpu_ns,
        memory_bytes=_sum(map(_memory_bytes, pids)) if memory_bytes is None else memory_bytes,
        disk_read_bytes=_sum(one.get("read_bytes") for one in moved),
        disk_write_bytes=_sum(one.get("write_bytes") for one in moved),
        network_receive_bytes=None if network is None else network[0],
        network_transmit_bytes=None if network is None else network[1],
    )


def network_bytes(pid: int) -> tuple[int, int] | None:
    """Bytes received and sent in the network of this process, its loopback left out; None: it cannot be read."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
        rows = [(name.strip(), rest.split()) for name, _, rest in (line.partition(":") for line in lines)]
        return tuple(sum(int(row[at]) for name, row in rows if name != "lo") for at in (0, 8))  # type: ignore[return-value]
    return None


def _sum(found: Iterable[int | None]) -> int | None:
    """The sum over the processes that could be read; one may end meanwhile."""
    values = [value for value in found if value is not None]
    return sum(values) if values else None


def _cpu_ns(pid: int) -> int | None:
    """Its own, and that of its children that have ended."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        said = Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()
        return sum(map(int, said[11:15])) * NS_PER_S // TICKS_PER_S
    return None


def _memory_bytes(pid: int) -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text().split()
        return (int(resident) - int(shared)) * PAGE_BYTES
    return None


def _moved(pid: int) -> Mapping[str, int]:
    with contextlib.suppress(OSError, ValueError):
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
        return {name: int(value) for name, _, value in (line.partition(":") for line in lines)}
    return {}


class FolderSizes:
    """The sizes of the folders of workloads, measured in threads of their own, one at a time for each."""

    def __init__(self) -> None:
        self._found: dict[Path, int] = {}
        self._due_s: dict[Path, float] = {}

    def of(self, folder: Path) -> int | None:
        """As measured last; None: not yet."""
        now_s = time.monotonic()
        if now_s >= self._due_s.get(folder, 0.0):
            self._due_s[folder] = float("inf")
            threading.Thread(target=self._measure, args=(folder,), daemon=True, name="windrow-folder-size").start()
        return self._found.get(folder)

    def forget(self, folder: Path) -> None:
        """The folder is gone."""
        self._found.pop(folder, None)
        self._due_s.pop(folder, None)

    def _measure(self, folder: Path) -> None:
        began_s, found = time.monotonic(), Used()
        with contextlib.suppress(OSError):
            at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                read_through(at, 0, found, NO_LIMITS)
            finally:
                os.close(at)
        ended_s = time.monotonic()
        if folder in self._due_s:
            self._found[folder] = found.bytes
            self._due_s[folder] = ended_s + max(SIZE_EVERY_S, SIZE_SHARE * (ended_s - began_s))
