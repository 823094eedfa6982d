"""Run several coroutines as one: the first that fails ends the others, and its error comes out as itself."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from windrow_proto.errors import WindrowError


async def together(*works: Coroutine[Any, Any, None]) -> None:
    """Run all until one fails; raises its WindrowError or TimeoutError plain, anything else (a bug) as its group."""
    try:
        async with asyncio.TaskGroup() as tasks:
            for work in works:
                tasks.create_task(work)
    except BaseExceptionGroup as group:
        expected, rest = group.split((WindrowError, TimeoutError))
        if rest is not None or expected is None:
            raise
        raise _first(expected) from None


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
