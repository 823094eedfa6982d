"""Waits for the end of a process that is not a child of this one, without looking at it again and again."""

import asyncio
import contextlib
import os

from windrow_agent.runtimes import shim


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
