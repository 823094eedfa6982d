"""A deadline that is extended again and again: like asyncio.timeout, but each extension is one assignment.

`asyncio.timeout` for each message of a line sets a timer and takes it back, thousands of times a second of which none
ever rings. Here the one that is set rings now and then, finds that it was put off, and is set anew.
"""

import asyncio
from types import TracebackType


class Patience:
    """Raises TimeoutError out of its block when `span_s` has passed since the last `renew`; it begins at rest."""

    __slots__ = ("_due_s", "_loop", "_span_s", "_timeout", "_timer")

    def __init__(self, span_s: float) -> None:
        self._span_s = span_s
        self._loop = asyncio.get_running_loop()
        self._timeout = asyncio.timeout(None)
        self._timer: asyncio.TimerHandle | None = None
        self._due_s: float | None = None

    def renew(self) -> None:
        """It ends in `span_s` from now."""
        self._due_s = self._loop.time() + self._span_s
        if self._timer is None:
            self._timer = self._loop.call_at(self._due_s, self._look)

    def rest(self) -> None:
        """It does not end before the next `renew`."""
        self._due_s = None

    async def __aenter__(self) -> "Patience":
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._timeout.__aexit__(kind, error, trace)

    def _look(self) -> None:
        self._timer = None
        if self._due_s is None:
            return
        if self._loop.time() < self._due_s:
            self._timer = self._loop.call_at(self._due_s, self._look)
        else:
            self._timeout.reschedule(self._loop.time())
