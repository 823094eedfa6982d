"""Virtual time: an hour costs nothing, the same seed repeats itself, a deadlock is reported instead of waited for."""

import asyncio

import pytest

from tests.simulation.loop import Deadlock, Process, VirtualClock, VirtualLoop, run


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


def test_those_who_wake_at_one_instant_go_on_in_the_order_of_the_seed() -> None:
    def order(seed: int) -> list[str]:
        woken: list[str] = []

        async def history(loop: VirtualLoop) -> None:
            clock = VirtualClock(loop)

            async def sleeper(name: str, after_ns: int) -> None:
                await clock.sleep_ns(after_ns)
                await clock.sleep_ns(100 - after_ns)
                woken.append(name)

            async with asyncio.TaskGroup() as tasks:
                for number, name in enumerate("abcdefgh"):
                    tasks.create_task(sleeper(name, 1 + number))

        run(seed, history)
        return woken

    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(8)}) > 1


def test_what_was_cancelled_while_it_was_ready_does_not_run() -> None:
    async def history(loop: VirtualLoop) -> list[str]:
        ran: list[str] = []
        loop.set_exception_handler(lambda _, context: ran.append(str(context)))
        loop.call_later(1, ran.append, "later")
        for handle in (loop.call_soon(ran.append, "soon"), loop.call_later(1, ran.append, "a second on")):
            assert handle is not None
            handle.cancel()
        await asyncio.sleep(2)
        return ran

    assert run(0, history) == ["later"]


def test_a_killed_sleeper_takes_no_further_step_before_the_thaw() -> None:
    async def history(loop: VirtualLoop) -> list[str]:
        said: list[str] = []

        async def live() -> None:
            try:
                await VirtualClock(loop).sleep_ns(10**9)
                said.append("woke")
            finally:
                said.append("ended")

        process = Process("killed")
        loop.create_task(live(), context=process.context.copy())
        await asyncio.sleep(0.5)
        loop.kill(process)
        await asyncio.sleep(5)
        assert said == []
        await loop.thaw()
        return said

    assert run(0, history) == ["ended"]


def test_a_halted_process_takes_its_steps_when_it_goes_on() -> None:
    async def history(loop: VirtualLoop) -> list[tuple[float, str]]:
        said: list[tuple[float, str]] = []

        async def live() -> None:
            for _ in range(4):
                await VirtualClock(loop).sleep_ns(10**9)
                said.append((loop.time(), "woke"))

        process = Process("halted")
        loop.create_task(live(), context=process.context.copy())
        process.context.run(loop.call_later, 2, lambda: said.append((loop.time(), "timer")))
        await asyncio.sleep(1.5)
        loop.halt(process)
        await asyncio.sleep(5)
        loop.go_on(process)
        loop.go_on(process)  # who was not halted goes on as it does
        await asyncio.sleep(10)
        return said

    said = run(0, history)
    assert said[0] == (1, "woke")
    assert sorted(said[1:3]) == [(6.5, "timer"), (6.5, "woke")]
    assert said[3:] == [(7.5, "woke"), (8.5, "woke")]


def test_who_is_killed_while_halted_never_goes_on() -> None:
    async def history(loop: VirtualLoop) -> list[str]:
        said: list[str] = []

        async def live() -> None:
            await VirtualClock(loop).sleep_ns(10**9)
            said.append("woke")

        process = Process("halted")
        loop.create_task(live(), context=process.context.copy())
        await asyncio.sleep(0.5)
        loop.halt(process)
        await asyncio.sleep(1)
        loop.kill(process)
        loop.go_on(process)
        await asyncio.sleep(1)
        before = list(said)
        await loop.thaw()
        return before

    assert run(0, history) == []


def test_a_deadlock_says_so() -> None:
    async def history(loop: VirtualLoop) -> None:
        await asyncio.Event().wait()

    with pytest.raises(Deadlock):
        run(0, history)


def test_threads_run_in_line() -> None:
    async def history(loop: VirtualLoop) -> int:
        return await asyncio.to_thread(lambda: 7)

    assert run(0, history) == 7
