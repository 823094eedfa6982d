"""Waiting without sleeping blind: poll a condition until it holds or its deadline passes."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")

PATIENCE_S = 60.0
"""Far beyond what any condition needs: it is spent only where a test fails, and a busy machine is no failure."""
STEP_S, STEP_MAX_S, STEP_PART = 0.02, 0.25, 20
"""Between two looks: such a part of the wait so far, since who looks all the time takes the processor from what it
waits for."""


def poll(condition: Callable[[], T], deadline_s: float = PATIENCE_S, what: str = "") -> T:
    """Call `condition` until it returns something true, and return that; fail after `deadline_s` seconds."""
    began = time.monotonic()
    while True:
        answer = condition()
        if answer:
            return answer
        if (waited_s := time.monotonic() - began) >= deadline_s:
            raise AssertionError(_missed(condition, deadline_s, what, answer))
        time.sleep(_step_s(waited_s))


@overload
async def poll_async(condition: Callable[[], Awaitable[T]], deadline_s: float = PATIENCE_S, what: str = "") -> T: ...
@overload
async def poll_async(condition: Callable[[], T], deadline_s: float = PATIENCE_S, what: str = "") -> T: ...
async def poll_async(condition: Callable[[], Any], deadline_s: float = PATIENCE_S, what: str = "") -> Any:
    """The same on the event loop; `condition` may be a function or a coroutine function."""
    began = time.monotonic()
    while True:
        found = condition()
        answer = await found if inspect.isawaitable(found) else found
        if answer:
            return answer
        if (waited_s := time.monotonic() - began) >= deadline_s:
            raise AssertionError(_missed(condition, deadline_s, what, answer))
        await asyncio.sleep(_step_s(waited_s))


def _step_s(waited_s: float) -> float:
    return min(STEP_MAX_S, max(STEP_S, waited_s / STEP_PART))


def _missed(condition: object, deadline_s: float, what: str, answer: object) -> str:
    name = what or getattr(condition, "__qualname__", repr(condition))
    return f"not within {deadline_s} s: {name}; last answer: {answer!r}"
