"""Run several coroutines as one: the first that fails ends the others, and its error comes out as itself."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from windrow_proto.errors import WindrowError
from windrow_proto.once import Once


async def together(*works: Coroutine[Any, Any, None]) -> None:
    """Run all until one fails; raises its WindrowError or TimeoutError plain, anything else (a bug) as its group.

    A cancellation always comes out, also when it arrives in the very moment that one of them fails. A bare TaskGroup
    would raise the failure alone then, and a caller that tries again after a failure would never end.
    """
    failures: list[Exception] = []
    over = Once()
    left = len(works)

    async def watched(work: Coroutine[Any, Any, None]) -> None:
        nonlocal left
        try:
            await work
        except Exception as failure:
            failures.append(failure)
            over.set()
        left -= 1
        if not left:
            over.set()

    try:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(watched(work)) for work in works]
            if running:
                await over.wait()
            for task in running:
                task.cancel()
        if failures:
            raise _plain(BaseExceptionGroup("what ended several works", failures))
    finally:
        failures.clear()  # by its traceback each leads here: a ring, which only a search for garbage would free


def _plain(group: BaseExceptionGroup[BaseException]) -> BaseException:
    expected, rest = group.split((WindrowError, TimeoutError))
    if rest is not None or expected is None:
        return group
    first: BaseException = expected
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first
