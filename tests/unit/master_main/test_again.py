"""Work in turns: what one of them meets does not end the ones after it."""

import asyncio

from tests.waiting import PATIENCE_S
from windrow_master.again import again
from windrow_proto.clock import SystemClock
from windrow_proto.errors import StorageFailed
from windrow_proto.units import MILLISECOND


async def test_a_turn_that_fails_and_one_that_crashes_are_followed_by_the_next() -> None:
    meets: list[Exception | None] = [StorageFailed("for a moment"), ZeroDivisionError("of one row"), None]
    enough = asyncio.Event()

    async def turn() -> None:
        if not meets:
            enough.set()
            return
        if (error := meets.pop(0)) is not None:
            raise error

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        running = group.create_task(again(turn, MILLISECOND, SystemClock(), "rows"))
        await enough.wait()
        running.cancel()
    assert running.cancelled()
