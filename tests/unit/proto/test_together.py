"""Several coroutines as one: whose error comes out, and that a cancellation is never lost."""

import asyncio
import gc
import weakref
from contextlib import suppress

import pytest

from windrow_proto.errors import LinkClosed
from windrow_proto.once import Once
from windrow_proto.together import together


async def _for_ever() -> None:
    await asyncio.Event().wait()


async def _fail(error: Exception) -> None:
    await asyncio.sleep(0)
    raise error


async def test_all_run_to_their_end() -> None:
    done: list[int] = []

    async def work(number: int) -> None:
        await asyncio.sleep(0)
        done.append(number)

    await together(work(1), work(2))
    await together()

    assert done == [1, 2]


@pytest.mark.parametrize("error", [LinkClosed("gone"), TimeoutError()])
async def test_an_expected_error_ends_the_others_and_comes_out_plain(error: Exception) -> None:
    with pytest.raises(type(error)) as raised:
        await together(_for_ever(), _fail(error))

    assert raised.value is error


async def test_what_a_work_held_that_failed_is_free_without_a_search_for_garbage() -> None:
    class Held:
        pass

    held: list[weakref.ref[Held]] = []

    async def fail() -> None:
        one = Held()
        held.append(weakref.ref(one))
        raise LinkClosed("gone")

    gc.disable()
    try:
        with suppress(LinkClosed):
            await together(_for_ever(), fail())
        assert [one() for one in held] == [None]
    finally:
        gc.enable()


async def test_a_bug_comes_out_as_a_group_beside_what_was_expected() -> None:
    async def clumsy() -> None:
        try:
            await _for_ever()
        finally:
            raise KeyError("bug")

    with pytest.raises(BaseExceptionGroup) as raised:
        await together(_fail(LinkClosed("gone")), clumsy())

    assert [type(error) for error in raised.value.exceptions] == [LinkClosed, KeyError]


@pytest.mark.parametrize("breaks", [ConnectionResetError(), LinkClosed("gone")])
async def test_a_cancellation_comes_out_although_a_work_fails_in_that_moment(breaks: Exception) -> None:
    begun = asyncio.Event()

    async def break_when_stopped() -> None:
        try:
            begun.set()
            await _for_ever()
        finally:
            raise breaks

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(together(break_when_stopped(), _for_ever()))
        await begun.wait()
        task.cancel()

    assert task.cancelled()


async def test_a_failure_leaves_no_cancellation_behind() -> None:
    async def caller() -> int:
        with pytest.raises(LinkClosed):
            await together(_fail(LinkClosed("gone")), _for_ever())
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(caller())

    assert task.result() == 0


async def test_what_happens_once_is_heard_by_all_who_wait_for_it_and_by_who_comes_later() -> None:
    once, heard = Once(), []

    async def hear(name: str) -> None:
        await once.wait()
        heard.append(name)

    async with asyncio.TaskGroup() as tasks:
        impatient = tasks.create_task(hear("impatient"))
        tasks.create_task(hear("first"))
        tasks.create_task(hear("second"))
        await asyncio.sleep(0)
        impatient.cancel()
        await asyncio.sleep(0)
        assert (once.is_set(), heard) == (False, [])
        once.set()
        once.set()
    await hear("late")

    assert once.is_set()
    assert heard == ["first", "second", "late"]
