"""Virtual time: an hour costs nothing, the same seed repeats itself, a deadlock is reported instead of waited for."""

import asyncio

import pytest

from tests.simulation.loop import Deadlock, VirtualClock, VirtualLoop, run


def trace(seed: int) -> list[tuple[int, str]]:
    seen: list[tuple[int, str]] = []

    async def history(loop: VirtualLoop) -> None:
        clock = VirtualClock(loop)

        async def worker(name: str) -> None:
            for _ in range(5):
                await clock.sleep_ns(60 * 10**9)
                seen.append((clock.monotonic_ns(), name))

        async with asyncio.TaskGroup() as tasks:
            for name in "abcdefgh":
                tasks.create_task(worker(name))

    run(seed, history)
    return seen


def test_the_same_seed_gives_the_same_history_and_another_seed_another_order() -> None:
    assert trace(1) == trace(1)
    assert trace(1) != trace(2)
    assert sorted(trace(1)) == sorted(trace(2))


def test_time_is_made_of_waiting() -> None:
    async def history(loop: VirtualLoop) -> int:
        await VirtualClock(loop).sleep_ns(3600 * 10**9)
        return VirtualClock(loop).monotonic_ns()

    assert run(0, history) == 3600 * 10**9


def test_a_deadlock_says_so() -> None:
    async def history(loop: VirtualLoop) -> None:
        await asyncio.Event().wait()

    with pytest.raises(Deadlock):
        run(0, history)


def test_threads_run_in_line() -> None:
    async def history(loop: VirtualLoop) -> int:
        return await asyncio.to_thread(lambda: 7)

    assert run(0, history) == 7
