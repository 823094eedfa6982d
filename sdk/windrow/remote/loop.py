"""One event loop in a thread of its own, for all lines of this program, so that plain and async callers share them."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Found = TypeVar("Found")
_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def start(work: Coroutine[Any, Any, Found]) -> "Future[Found]":
    """Run it there; its future may be waited for, and cancelled."""
    return asyncio.run_coroutine_threadsafe(work, _running())


def finish(work: Coroutine[Any, Any, Found]) -> Found:
    """Run it there to its end; cancelled where the wait for it is interrupted."""
    future = start(work)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _running() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="windrow", daemon=True).start()
        return _loop
