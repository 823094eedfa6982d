"""A command beside a workload ends with whoever attached it."""

import asyncio
import signal

from tests.waiting import poll_async
from windrow_agent.runtimes.process_exec import AttachedExec

DEAF = ("sh", "-c", "trap '' TERM; echo up; exec sleep 600")


async def test_who_is_cancelled_while_it_closes_kills_a_deaf_command():
    transport, session = await asyncio.get_running_loop().subprocess_exec(AttachedExec, *DEAF)
    session._transport = transport
    assert await session.read() == (1, b"up\n")
    async with asyncio.TaskGroup() as group:
        closing = group.create_task(session.close())
        await asyncio.sleep(0)
        closing.cancel()

    assert closing.cancelled()
    assert transport.is_closing()
    await poll_async(lambda: transport.get_returncode() is not None)
    assert transport.get_returncode() == -signal.SIGKILL
