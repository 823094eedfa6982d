"""Makes calls that may block: on one owned daemon thread, or right here for what is simulated.

A thread stuck in a driver cannot be stopped; being a daemon it does not keep the process alive either.
`to_its_end` is for the other kind of call, which makes something that somebody must be able to take away again.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final, Protocol, TypeVar

from windrow_proto.ports import Clock
from windrow_proto.units import MILLISECOND

T = TypeVar("T")

HUNG_LOOK_NS: Final = 100 * MILLISECOND
"""How often a simulated call that hangs is tried again; in virtual time it costs nothing."""

END_S: Final = 25.0
"""For a call whose caller was cancelled: less than a delete waits for a creation that it has cancelled (30 s)."""

_Job = tuple[Callable[[], object], asyncio.AbstractEventLoop, "asyncio.Future[object]"]


async def to_its_end(work: Callable[[], T], executor: Executor | None = None, end_s: float = END_S) -> T:
    """Make the call in a thread, of the loop's own unless others are given. Who is cancelled meanwhile waits for its
    end first, for at most end_s seconds.

    Cancelling stops no thread: without this wait it would still be making things while its caller clears them away.
    """
    call = asyncio.get_running_loop().run_in_executor(executor, work)
    try:
        return await asyncio.shield(call)
    except asyncio.CancelledError:
        call.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # looked at: nobody else will
        await asyncio.wait({call}, timeout=end_s)
        raise


class Runner(Protocol):
    """Makes one call after the other. Cancelling the wait does not stop the call."""

    async def call(self, work: Callable[[], T]) -> T:
        """Make the call and give its result, or raise what it raised."""

    def at_once(self, work: Callable[[], T]) -> "asyncio.Future[T] | None":
        """Its result, where the call never blocks and has been made; None where it has to be waited for: by `call`.
        Raises what it raised."""

    def close(self) -> None:
        """Make no further calls; does not wait for the one under way."""


class ThreadRunner:
    """Calls on one thread of its own, started with the first call."""

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._started = False

    async def call(self, work: Callable[[], T]) -> T:
        """Make the call on the thread."""
        if not self._started:
            self._started = True
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put((work, loop, future))  # type: ignore[arg-type]  # the thread gives back what work returns
        return await future

    def at_once(self, work: Callable[[], T]) -> "asyncio.Future[T] | None":
        """None: a call needs the thread."""
        return None

    def close(self) -> None:
        """Let the thread end after the call under way."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, loop, future = job
            result: object = None
            failure: BaseException | None = None
            try:
                result = work()
            except Exception as error:  # the thread's top level: whoever awaits gets it
                failure = error
            try:
                loop.call_soon_threadsafe(_settle, future, result, failure)
            except RuntimeError:  # the loop has ended; nobody waits any more
                return


class InlineRunner:
    """Calls on the loop itself, for what never blocks. BlockingIOError means that it would: tried again later."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def call(self, work: Callable[[], T]) -> T:
        """Make the call here."""
        while True:
            try:
                return work()
            except BlockingIOError:
                await self._clock.sleep_ns(HUNG_LOOK_NS)

    def at_once(self, work: Callable[[], T]) -> "asyncio.Future[T] | None":
        """Make the call here; None where it would block."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        try:
            future.set_result(work())
        except BlockingIOError:
            return None
        return future

    def close(self) -> None:
        """Nothing to end."""


class SharedRunner:
    """A runner that several hosts of one process use; closing one host does not end it for the others."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    async def call(self, work: Callable[[], T]) -> T:
        """Make the call where all of them are made."""
        return await self._runner.call(work)

    def at_once(self, work: Callable[[], T]) -> "asyncio.Future[T] | None":
        """As all of them do."""
        return self._runner.at_once(work)

    def close(self) -> None:
        """The threads are daemons and end with the process."""


def _settle(future: "asyncio.Future[object]", result: object, failure: BaseException | None) -> None:
    if future.done():
        return
    if failure is not None:
        future.set_exception(failure)
    else:
        future.set_result(result)
