"""An event loop whose time is made of waiting: when nothing is ready it jumps to the next timer; a seed decides ties.

The same seed gives the same order of everything, whatever else the machine does. Threads are forbidden: what a shell
sends to an executor runs at once, in line. A loop that would wait for ever is a deadlock and says so.

Tasks belong to processes (the context they were started in says which). A killed process takes no further step: no
`finally`, no `except`, as under SIGKILL. `thaw` lets the dead end properly when a history is over.
"""

import asyncio
import contextvars
import heapq
import itertools
import random
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

START_WALL_NS = 1_790_000_000_000_000_000
"""A wall time for the beginning of every history (in September 2026); the same in each."""
CANCELLED_MAX = 100
"""So many timers that were cancelled may wait for their time before they are looked for."""
PIECE_BYTES = 1_024
"""Far more than any key or id; only the bandwidth measurement asks for more, and nobody looks into it."""


PROCESS: contextvars.ContextVar["Process | None"] = contextvars.ContextVar("process", default=None)


class Deadlock(Exception):
    """Nothing is ready and no timer is set: every task waits for another."""


class Process:
    """Whoever runs in a context made by `spawn` of a loop; see `VirtualLoop.kill`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = False
        self.context = contextvars.copy_context()
        self.context.run(PROCESS.set, self)


class NumberedTask(asyncio.Task[Any]):
    """A task whose hash is its number: sets of tasks are walked in the same order in every history."""

    def __init__(
        self, coroutine: Coroutine[Any, Any, Any], *, number: int, process: Process | None, **options: Any
    ) -> None:
        self._number, self.process = number, process
        super().__init__(coroutine, **options)

    def __hash__(self) -> int:
        return self._number


class Step(asyncio.Handle):
    """A callback that is ready, made with fewer questions than asyncio's: millions are made in a history."""

    __slots__ = ()

    def __init__(
        self, callback: Any, args: tuple[Any, ...], loop: asyncio.AbstractEventLoop, context: contextvars.Context | None
    ) -> None:
        self._callback, self._args, self._loop = callback, args, loop
        self._context = contextvars.copy_context() if context is None else context
        self._cancelled, self._repr, self._source_traceback = False, None, None


class Timer(asyncio.TimerHandle):
    """The same with a time at which it becomes ready."""

    __slots__ = ()

    def __init__(
        self,
        when: float,
        callback: Any,
        args: tuple[Any, ...],
        loop: asyncio.AbstractEventLoop,
        context: contextvars.Context | None,
    ) -> None:
        self._callback, self._args, self._loop = callback, args, loop
        self._context = contextvars.copy_context() if context is None else context
        self._cancelled, self._repr, self._source_traceback = False, None, None
        self._when, self._scheduled = when, True


class VirtualSelector(selectors.SelectSelector):
    """Keeps the loop's time. Nobody is asked for readiness: in a history nothing comes from outside."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ns = 0


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop in virtual time. seed: decides the order of callbacks that are ready at the same instant."""

    def __init__(self, seed: int) -> None:
        self.virtual = VirtualSelector()
        self._ties = random.Random(seed)
        self._dead: list[Process] = []
        self._buried: list[asyncio.Task[Any]] = []
        self._left: list[asyncio.Handle] = []  # steps that the dead did not take
        self._numbers = itertools.count(1)
        super().__init__(self.virtual)
        self.set_task_factory(self._number)  # type: ignore[arg-type]  # Any is not generic enough for it

    def _number(
        self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any
    ) -> NumberedTask:
        context = options.get("context")
        process = PROCESS.get() if context is None else context.get(PROCESS)
        return NumberedTask(coroutine, number=next(self._numbers), process=process, loop=loop, **options)

    def call_soon(  # type: ignore[override]  # the same, but for how exactly the arguments are typed
        self, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """As usual, but for the dead, who take no further step."""
        handle = Step(callback, args, self, context)
        process = None if context is None else context.get(PROCESS)
        if process is not None and process.is_dead:
            self._left.append(handle)
        else:
            self._ready.append(handle)  # type: ignore[attr-defined]  # as below
        return handle

    def call_at(  # type: ignore[override]  # likewise
        self, when: float, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """As usual; the queue is one of plain tuples, which are compared without asking Python."""
        timer = Timer(when, callback, args, self, context)
        heapq.heappush(self._scheduled, (when, next(self._numbers), timer))  # type: ignore[attr-defined]  # as below
        return timer

    def kill(self, process: Process) -> None:
        """SIGKILL: from here on nothing of it runs."""
        process.is_dead = True
        self._dead.append(process)
        # Held, since nobody else may: a task that is collected runs its `finally` after all.
        self._buried += [task for task in asyncio.all_tasks(self) if getattr(task, "process", None) is process]
        queue = self._ready  # type: ignore[attr-defined]  # as below
        ready = list(queue)
        queue.clear()
        for handle in ready:
            (self._left if handle._context.get(PROCESS) is process else queue).append(handle)
        for _, _, timer in self._scheduled:  # type: ignore[attr-defined]
            if timer._context.get(PROCESS) is process:
                timer.cancel()

    async def thaw(self) -> None:
        """The end of a history: cancel every task but the caller, the dead ones too, and let all of them end."""
        tasks = [task for task in asyncio.all_tasks(self) if task is not asyncio.current_task()]
        for process in self._dead:
            process.is_dead = False
        left, self._left = self._left, []
        for handle in left:
            self._ready.append(handle)  # type: ignore[attr-defined]
        for _ in range(100):
            pending = [task for task in tasks if not task.done()]
            if not pending:
                return
            for task in pending:
                task.cancel()
            await asyncio.wait(pending, timeout=30)
        raise Deadlock(f"{len(pending)} tasks do not end: {pending[:3]}")

    def time(self) -> float:
        """Virtual seconds since the start."""
        return self.virtual.now_ns / 1e9

    def _run_once(self) -> None:
        """One turn, as asyncio's own but for the order, the time and the readiness of files, of which there is none."""
        ready, scheduled = self._ready, self._scheduled  # type: ignore[attr-defined]  # the queues asyncio keeps
        if len(ready) > 1:
            order = list(ready)
            self._ties.shuffle(order)
            ready.clear()
            ready.extend(order)
        if self._timer_cancelled_count > max(CANCELLED_MAX, len(scheduled) // 2):  # type: ignore[has-type]
            scheduled[:] = [entry for entry in scheduled if not entry[2]._cancelled]
            heapq.heapify(scheduled)
            self._timer_cancelled_count = 0
        while scheduled and scheduled[0][2]._cancelled:
            self._pop_timer()
        if not ready and not self._stopping:  # type: ignore[attr-defined]
            if not scheduled:
                raise Deadlock("every task waits for another")
            wait_s = scheduled[0][0] - self.time()
            if wait_s > 0:
                self.virtual.now_ns += max(1, round(wait_s * 1e9))
        until_s = self.time() + 1e-9
        while scheduled and scheduled[0][0] < until_s:
            ready.append(self._pop_timer())
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _pop_timer(self) -> asyncio.TimerHandle:
        timer: asyncio.TimerHandle = heapq.heappop(self._scheduled)[2]  # type: ignore[attr-defined]
        timer._scheduled = False  # type: ignore[attr-defined]
        if timer._cancelled:
            self._timer_cancelled_count -= 1
        return timer

    def run_in_executor(  # type: ignore[override]  # the same, but for the names
        self, executor: Any, function: Callable[..., Any], *arguments: Any
    ) -> "asyncio.Future[Any]":
        """Run it now; its result is there at the next turn."""
        future = self.create_future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


class VirtualClock:
    """Both clocks of the port on one virtual loop. skew_ns: how far this machine's wall clock is off."""

    def __init__(self, loop: VirtualLoop, skew_ns: int = 0) -> None:
        self._loop = loop
        self._booted_ns = 0
        self.skew_ns = skew_ns

    def reboot(self) -> None:
        """The monotonic clock begins anew, as after a power cut."""
        self._booted_ns = self._loop.virtual.now_ns

    def monotonic_ns(self) -> int:
        """Nanoseconds since the start of the history, or since this machine's last boot."""
        return self._loop.virtual.now_ns - self._booted_ns

    def wall_ns(self) -> int:
        """What this machine believes the time to be."""
        return START_WALL_NS + self._loop.virtual.now_ns + self.skew_ns

    async def sleep_ns(self, duration_ns: int) -> None:
        """Wait in virtual time."""
        if duration_ns <= 0:
            await asyncio.sleep(0)
            return
        loop = self._loop
        woken = loop.create_future()
        timer = loop.call_at(loop.virtual.now_ns / 1e9 + duration_ns / 1e9, _wake, woken)
        try:
            await woken
        finally:
            timer.cancel()


def _wake(sleeper: "asyncio.Future[None]") -> None:
    if not sleeper.done():
        sleeper.set_result(None)


class SeededRng:
    """The port's randomness from a seed; not fit for real keys, which is the point."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def random_bytes(self, count: int) -> bytes:
        """Bytes that depend on the seed alone. What fills a measured line repeats itself after PIECE_BYTES."""
        piece = self._random.randbytes(min(count, PIECE_BYTES))
        return piece if count <= PIECE_BYTES else (piece * (count // PIECE_BYTES + 1))[:count]

    def uniform(self) -> float:
        """A float in [0, 1)."""
        return self._random.random()


def run(seed: int, history: Callable[[VirtualLoop], Coroutine[Any, Any, T]]) -> T:
    """Run one history from its seed and return what it returns; leaves no task and no loop behind."""
    loop = VirtualLoop(seed)
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(history(loop))
    finally:
        _end(loop)
        asyncio.set_event_loop(None)
        loop.close()


def _end(loop: VirtualLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
