"""Keeps the keys of items to look at, each once, with the time at which its look is due: an item to which nothing
happens and that has no time of its own costs nothing."""

import asyncio
from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, Generic, TypeVar

from windrow_proto.ports import Clock

K = TypeVar("K", bound=Hashable)

STALE_MAX: Final = 256
"""Entries of the heap, beside twice the keys, that were replaced by earlier ones, before the heap is made anew."""


class WorkQueue(Generic[K]):
    """A queue of keys by due time. Used on the loop only."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._due_ns: dict[K, int] = {}
        self._heap: list[tuple[int, int, K]] = []
        self._numbers = count()
        self._added = asyncio.Event()

    def __len__(self) -> int:
        return len(self._due_ns)

    def add(self, key: K, due_ns: int = 0) -> None:
        """Have it looked at at this monotonic time, by default at once; where it is queued already, at the earlier."""
        known_ns = self._due_ns.get(key)
        if known_ns is not None and known_ns <= due_ns:
            return
        self._due_ns[key] = due_ns
        heappush(self._heap, (due_ns, next(self._numbers), key))
        if len(self._heap) > 2 * len(self._due_ns) + STALE_MAX:
            self._heap = [(due_ns, next(self._numbers), key) for key, due_ns in self._due_ns.items()]
            heapify(self._heap)
        self._added.set()

    def drop(self, key: K) -> None:
        """Do not look at it any more, unless it is added again."""
        self._due_ns.pop(key, None)

    def take(self) -> list[K]:
        """The keys that are due now, the longest due first; they are queued no more."""
        now_ns, found = self.clock.monotonic_ns(), list[K]()
        while (next_ns := self._next_ns()) is not None and next_ns <= now_ns:
            _, _, key = heappop(self._heap)
            del self._due_ns[key]
            found.append(key)
        return found

    async def wait(self) -> None:
        """Return once something is due."""
        while (next_ns := self._next_ns()) is None or next_ns > self.clock.monotonic_ns():
            self._added.clear()
            async with asyncio.TaskGroup() as group:
                timer = None
                if next_ns is not None:
                    timer = group.create_task(self._wake_in(next_ns - self.clock.monotonic_ns()))
                await self._added.wait()
                if timer is not None:
                    timer.cancel()

    async def _wake_in(self, duration_ns: int) -> None:
        await self.clock.sleep_ns(duration_ns)
        self._added.set()

    def _next_ns(self) -> int | None:
        """Return when the first key is due; entries that were replaced or dropped go on the way."""
        while self._heap:
            due_ns, _, key = self._heap[0]
            if self._due_ns.get(key) == due_ns:
                return due_ns
            heappop(self._heap)
        return None
