"""Waiting without sleeping blind: poll a condition until it holds or its deadline passes."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")

PATIENCE_S = 60.0
"""Far beyond what any condition needs: it is spent only where a test fails, and a busy machine is no failure."""
STEP_S = 0.02
"""Between two looks: short beside any deadline used in tests, long beside one look."""


def poll(condition: Callable[[], T], deadline_s: float = PATIENCE_S, what: str = "") -> T:
    """Call `condition` until it returns something true, and return that; fail after `deadline_s` seconds."""
    end = time.monotonic() + deadline_s
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() >= end:
            raise AssertionError(_missed(condition, deadline_s, what, answer))
        time.sleep(STEP_S)


@overload
async def poll_async(condition: Callable[[], Awaitable[T]], deadline_s: float = PATIENCE_S, what: str = "") -> T: ...
@overload
async def poll_async(condition: Callable[[], T], deadline_s: float = PATIENCE_S, what: str = "") -> T: ...
async def poll_async(condition: Callable[[], Any], deadline_s: float = PATIENCE_S, what: str = "") -> Any:
    """The same on the event loop; `condition` may be a function or a coroutine function."""
    end = time.monotonic() + deadline_s
    while True:
        found = condition()
        answer = await found if inspect.isawaitable(found) else found
        if answer:
            return answer
        if time.monotonic() >= end:
            raise AssertionError(_missed(condition, deadline_s, what, answer))
        await asyncio.sleep(STEP_S)


def _missed(condition: object, deadline_s: float, what: str, answer: object) -> str:
    name = what or getattr(condition, "__qualname__", repr(condition))
    return f"not within {deadline_s} s: {name}; last answer: {answer!r}"
