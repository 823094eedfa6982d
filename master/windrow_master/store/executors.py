"""Runs the store's blocking work: on threads in a real Master, inline under virtual time."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

T = TypeVar("T")

READERS = 4
"""Reader threads: enough for a page's parallel requests on two cores; each holds one connection while it reads."""


class Executor(Protocol):
    """Runs blocking work for the loop. Writes run one at a time in the order given; reads may run beside them."""

    def write(self, work: Callable[[], None], done: Callable[[], None]) -> None:
        """Run `work` on the writer, then call `done` on the loop. Neither raises."""

    async def read(self, work: Callable[[], T]) -> T:
        """Run `work` beside the writer and return or raise what it does."""

    def close(self) -> None:
        """Finish what runs and let go of the threads."""


class ThreadExecutor:
    """One writer thread and a few readers."""

    def __init__(self, readers: int = READERS) -> None:
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="store-write")
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="store-read")

    def write(self, work: Callable[[], None], done: Callable[[], None]) -> None:
        """Run on the writer thread; `done` follows on the loop that asked."""
        loop = asyncio.get_running_loop()

        def run() -> None:
            work()
            # A loop that was closed meanwhile has nobody left to tell.
            if not loop.is_closed():
                loop.call_soon_threadsafe(done)

        self._writer.submit(run)

    async def read(self, work: Callable[[], T]) -> T:
        """Run on one of the reader threads."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    def close(self) -> None:
        """Wait for the running write and reads; what was not begun is dropped."""
        self._writer.shutdown(wait=True, cancel_futures=True)
        self._readers.shutdown(wait=True, cancel_futures=True)


class InlineExecutor:
    """No threads: work runs on the loop, at its next turn, so that writes of one turn still share a commit."""

    def write(self, work: Callable[[], None], done: Callable[[], None]) -> None:
        """Run at the loop's next turn."""

        def run() -> None:
            work()
            done()

        asyncio.get_running_loop().call_soon(run)

    async def read(self, work: Callable[[], T]) -> T:
        """Run now."""
        return work()

    def close(self) -> None:
        """Nothing is held."""
