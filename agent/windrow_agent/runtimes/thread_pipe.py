"""A pipe from a blocking thread to the event loop, bounded both ways, so that neither piles up what the other cannot
take."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

DEPTH: Final = 8
"""Pieces on their way: half a mebibyte of 64 KiB chunks per stream."""
LOOK_S: Final = 0.2
"""How soon a blocked producer notices that nobody reads any more."""


class PipeClosed(Exception):
    """Nobody reads any more; the producing thread ends by this."""


class ThreadPipe(Generic[T]):
    """One producing thread, one reader on the loop."""

    def __init__(self, produce: Callable[["ThreadPipe[T]"], None], name: str) -> None:
        self._produce = produce
        self._loop = asyncio.get_running_loop()
        self._arrived: asyncio.Queue[T | BaseException | None] = asyncio.Queue()
        self._slots = threading.Semaphore(DEPTH)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, item: T) -> None:
        """From the thread: hand over one piece; waits while the reader is slow, raises PipeClosed when it is gone."""
        while not self._slots.acquire(timeout=LOOK_S):
            if self._closed.is_set():
                raise PipeClosed
        if self._closed.is_set():
            raise PipeClosed
        self._hand_over(item)

    async def read(self) -> AsyncGenerator[T, None]:
        """On the loop: every piece in order; raises what the thread raised."""
        try:
            while (item := await self._arrived.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                self._slots.release()
                yield item
        finally:
            self._closed.set()

    def close(self) -> None:
        """Tell the thread that nobody reads any more; it ends at its next piece."""
        self._closed.set()

    def _run(self) -> None:
        try:
            self._produce(self)
            self._hand_over(None)
        except PipeClosed:
            self._hand_over(None)
        except Exception as error:  # the thread's top level: the reader gets it
            self._hand_over(error)

    def _hand_over(self, item: T | BaseException | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._arrived.put_nowait, item)
        except RuntimeError:
            self._closed.set()  # the loop has ended; there is nobody to tell
