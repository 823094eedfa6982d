"""Waits for the end of a process that is no child of this one, ends the processes of a workload, and removes what they
leave."""

import asyncio
import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from windrow_agent.runtimes import cgroups, shared_memory, shim
from windrow_proto.errors import RuntimeUnavailable
from windrow_proto.ids import WorkloadId

KILL_S: Final = 15.0
"""For SIGKILL to end a tree; what is in uninterruptible sleep may not."""
LOOK_S: Final = 0.02
"""Between two looks for what was killed."""


async def ends_within(pid: int, ticks: int, span_s: float) -> bool:
    """Wait for the end of this very process, at most so long; returns whether it could be waited for."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:  # it has ended, or the kernel is older than 5.3
        return False
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(handle, ended.set)
    try:
        if shim.is_alive(pid, ticks):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(span_s):
                    await ended.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)
    return True


def kill_marked(workload_id: WorkloadId) -> None:
    """Kill every process whose environment carries this workload's mark: what a killed shim left behind."""
    end = time.monotonic() + KILL_S
    while time.monotonic() < end:
        found = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _has(pid, mark(workload_id))]
        if not found:
            return
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(LOOK_S)


def mark(workload_id: WorkloadId) -> bytes:
    """The mark in the environment of every process of a workload."""
    return f"WINDROW_WORKLOAD_ID={workload_id}".encode()


def _has(pid: int, marked: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return pid != os.getpid() and marked in file.read().split(b"\0")
    except OSError:
        return False


def delete_tree(folder: Path, groups: Sequence[cgroups.Group]) -> None:
    """Delete a workload's folder, even where it made it unreadable, and first what else there may be of it: processes,
    control groups, shared memory."""
    workload_id = WorkloadId(folder.name)
    cgroups.end(groups)
    kill_marked(workload_id)
    cgroups.drop(groups)
    shared_memory.delete(workload_id)

    def again(function: Callable[..., object], path: str, _: object) -> None:
        with contextlib.suppress(OSError):
            os.chmod(os.path.dirname(path), 0o700)
            os.chmod(path, 0o700)
            function(path)

    shutil.rmtree(folder, onerror=again)
    if folder.exists():
        raise RuntimeUnavailable(f"The folder of {folder.name} could not be deleted.", subject=folder.name)
