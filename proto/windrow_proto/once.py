"""An event that happens once, and the tasks that wait for it.

`asyncio.Event` can be cleared and wakes in order; for that each takes a kilobyte from its beginning, of which an Access
with ten thousand agents would have tens of megabytes.
"""

import asyncio


class Once:
    """Not yet, and then for ever. Any number of tasks may wait."""

    __slots__ = ("_is_set", "_waiting")

    def __init__(self) -> None:
        self._is_set = False
        self._waiting: list[asyncio.Future[None]] = []

    def is_set(self) -> bool:
        """True if it has happened."""
        return self._is_set

    def set(self) -> None:
        """It has happened; safe to call twice."""
        self._is_set = True
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    async def wait(self) -> None:
        """Until it has happened; at once when it has."""
        if self._is_set:
            return
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            await waiting
        finally:
            self._waiting.remove(waiting)
