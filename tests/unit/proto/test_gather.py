"""The writer of gathered messages wakes in time: at once, or a moment after the first that can wait, and never
twice."""

import asyncio

import pytest

from windrow_proto.gather import Gather

LONG_S = 3600.0


async def _turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_what_is_urgent_wakes_at_once_also_while_others_wait() -> None:
    gather = Gather(LONG_S)
    async with asyncio.TaskGroup() as tasks:
        writer = tasks.create_task(gather.wait())
        gather.nudge(is_urgent=False)
        await _turns()
        assert not writer.done()
        gather.nudge(is_urgent=True)


async def test_what_can_wait_wakes_once_and_after_its_time() -> None:
    loop, gather = asyncio.get_running_loop(), Gather(0.01)
    began = loop.time()
    gather.nudge(is_urgent=False)
    gather.nudge(is_urgent=False)
    await gather.wait()
    assert loop.time() - began >= 0.01

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await gather.wait()


async def test_a_wait_that_was_over_early_leaves_no_alarm_behind() -> None:
    gather = Gather(0.01)
    gather.nudge(is_urgent=False)
    gather.nudge(is_urgent=True)
    await gather.wait()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await gather.wait()
