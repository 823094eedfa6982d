"""The queue of what is due: each key once, in the order of their times, and a wait that ends with the first of them."""

import asyncio

from tests.master_support import ManualClock
from windrow_master.loops import when_due
from windrow_master.work_queue import STALE_MAX, WorkQueue
from windrow_proto.clock import SystemClock
from windrow_proto.units import HOUR, SECOND


def test_keys_are_due_once_at_their_earliest_time_the_longest_due_first() -> None:
    clock = ManualClock()
    queue = WorkQueue[str](clock)
    queue.add("late", 5 * SECOND)
    queue.add("soon", 3 * SECOND)
    queue.add("late", 9 * SECOND)
    queue.add("soon", 2 * SECOND)
    queue.add("now")
    queue.add("dropped")
    queue.drop("dropped")
    assert (queue.take(), queue.take(), len(queue)) == (["now"], [], 2)
    clock.advance(5 * SECOND)
    assert (queue.take(), len(queue)) == (["soon", "late"], 0)


def test_a_key_that_is_moved_again_and_again_leaves_nothing_behind() -> None:
    queue = WorkQueue[str](ManualClock())
    for number in range(10 * STALE_MAX):
        queue.add("key", 10 * STALE_MAX - number)
    assert len(queue._heap) <= STALE_MAX + 2
    assert len(queue) == 1


async def test_a_wait_ends_with_the_first_key_that_is_due_or_is_added() -> None:
    queue = WorkQueue[str](SystemClock())
    queue.add("far", queue.clock.monotonic_ns() + HOUR)
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        waiting = group.create_task(queue.wait())
        queue.add("near", queue.clock.monotonic_ns() + SECOND // 100)
        await waiting
        assert queue.take() == ["near"]
        waiting = group.create_task(queue.wait())
        await asyncio.sleep(0)
        queue.add("now")
        await waiting


async def test_a_loop_has_its_first_turn_at_once_and_rests_while_nothing_is_due() -> None:
    queue, turns = WorkQueue[str](SystemClock()), list[list[str]]()
    turned = asyncio.Event()

    async def turn() -> None:
        turns.append(queue.take())
        turned.set()

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        running = group.create_task(when_due(turn, queue, 0, "test"))
        await turned.wait()
        turned.clear()
        queue.add("one")
        queue.add("two")
        await turned.wait()
        running.cancel()
    assert turns == [[], ["one", "two"]]


async def test_a_turn_that_came_to_nothing_is_followed_by_the_next_though_nothing_is_due() -> None:
    queue, turns = WorkQueue[str](SystemClock()), list[int]()
    turned = asyncio.Event()

    async def turn() -> None:
        turns.append(len(turns))
        if len(turns) < 3:
            raise ZeroDivisionError
        turned.set()

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        running = group.create_task(when_due(turn, queue, 0, "test"))
        await turned.wait()
        running.cancel()
    assert turns == [0, 1, 2]


async def test_what_is_added_while_a_loop_rests_has_its_turn_without_a_pause() -> None:
    clock = SystemClock()
    queue, turned = WorkQueue[str](clock), asyncio.Event()

    async def turn() -> None:
        queue.take()
        paused.append(len(pauses))
        turned.set()

    async def slept(duration_ns: int) -> None:
        pauses.append(duration_ns)

    pauses, paused, clock.sleep_ns = list[int](), list[int](), slept  # type: ignore[method-assign]
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        running = group.create_task(when_due(turn, queue, HOUR, "test"))
        await turned.wait()
        turned.clear()
        while not pauses:
            await asyncio.sleep(0)
        queue.add("one")
        await turned.wait()
        running.cancel()
    assert paused == [0, 1], "there was the pause after the first turn, and none after what was added"
