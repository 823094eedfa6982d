"""An event loop whose time is made of waiting: when nothing is ready it jumps to the next timer; a seed decides ties.

The same seed gives the same order of everything, whatever else the machine does. Threads are forbidden: what a shell
sends to an executor runs at once, in line. A loop that would wait for ever is a deadlock and says so.

Tasks belong to processes (the context they were started in says which). A killed process takes no further step: no
`finally`, no `except`, as under SIGKILL. A halted one takes none until it goes on, as between SIGSTOP and SIGCONT, and
then at once all that became ready meanwhile. `thaw` lets the dead end properly when a history is over.
"""

import asyncio
import contextvars
import heapq
import itertools
import random
import selectors
from collections.abc import Callable, Coroutine
from functools import lru_cache
from typing import Any, TypeVar

T = TypeVar("T")
Ready = tuple[contextvars.Context, Callable[..., Any], tuple[Any, ...]]
"""A step that is ready: in which context what is called with what."""

START_WALL_NS = 1_790_000_000_000_000_000
"""A wall time for the beginning of every history (in September 2026); the same in each."""
CANCELLED_MAX = 100
"""So many timers that were cancelled may wait for their time before they are looked for."""
PIECE_BYTES = 1_024
"""Far more than any key or id; only the bandwidth measurement asks for more, and nobody looks into it."""
FILLERS_KEPT = 8
"""Made once for each kind and length: they are megabytes, and every measurement wants one."""


PROCESS: contextvars.ContextVar["Process | None"] = contextvars.ContextVar("process", default=None)


class Deadlock(Exception):
    """Nothing is ready and no timer is set: every task waits for another."""


class Process:
    """A simulated process, whose code runs in a context made by `spawn` of a loop; see `VirtualLoop.kill` and
    `halt`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_still = False
        """It takes no step now."""
        self.held: list[Ready] = []
        """The steps that it would have taken since it was halted or killed."""
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
    """A callback that is ready, made with fewer questions than asyncio's."""

    __slots__ = ()

    def __init__(
        self, callback: Any, args: tuple[Any, ...], loop: asyncio.AbstractEventLoop, context: contextvars.Context
    ) -> None:
        self._callback, self._args, self._loop, self._context = callback, args, loop, context
        self._cancelled, self._repr, self._source_traceback = False, None, None

    def __call__(self) -> None:
        """Run it, unless it was cancelled."""
        if not self._cancelled:
            self._callback(*self._args)


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

    def __call__(self) -> None:
        """Run it, unless it was cancelled."""
        if not self._cancelled:
            self._callback(*self._args)


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
        self._halted: list[Process] = []
        self._buried: list[asyncio.Task[Any]] = []
        self._numbers = itertools.count(1)
        super().__init__(self.virtual)
        self.get_debug = bool  # type: ignore[method-assign]  # False, as fast as it can be said
        self.set_task_factory(self._number)  # type: ignore[arg-type]  # Any is not generic enough for it

    def _number(
        self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any
    ) -> NumberedTask:
        context = options.get("context")
        process = PROCESS.get() if context is None else context.get(PROCESS)
        return NumberedTask(coroutine, number=next(self._numbers), process=process, loop=loop, **options)

    def call_soon(  # type: ignore[override]  # the same, but for how exactly the arguments are typed
        self, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle | None:
        """As usual, but for those who take no step: the dead, and the halted.

        Who names a context is a future or a task, which never asks for the handle: none is made, since a history has
        millions of these.
        """
        if context is None:
            return self._call_soon(callback, args, None)
        process = context.get(PROCESS)
        if process is not None and process.is_still:
            process.held.append((context, callback, args))
        else:
            self._ready.append((context, callback, args))  # type: ignore[attr-defined]
        return None

    def _call_soon(self, callback: Any, args: tuple[Any, ...], context: contextvars.Context | None) -> asyncio.Handle:
        handle = Step(callback, args, self, contextvars.copy_context() if context is None else context)
        self._ready.append((handle._context, handle, ()))  # type: ignore[attr-defined]
        return handle

    def call_at(  # type: ignore[override]  # likewise
        self, when: float, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """As usual; the queue is one of plain tuples, which are compared without asking Python."""
        timer = Timer(when, callback, args, self, context)
        at = (round(when * 1e9), next(self._numbers), timer)
        heapq.heappush(self._scheduled, at)  # type: ignore[attr-defined]  # as below
        return timer

    def sleeper(self, duration_ns: int) -> "asyncio.Future[None]":
        """Returns a future that is done after so long (at least 1 ns), or cancelled before. Most of a history is
        waiting like this."""
        future: asyncio.Future[None] = asyncio.Future(loop=self)
        self.wake_at(self.virtual.now_ns + duration_ns, future)
        return future

    def wake_at(self, at_ns: int, sleeper: "asyncio.Future[None]") -> None:
        """Complete this future, unless it is done by then, at this time of the loop."""
        heapq.heappush(self._scheduled, (at_ns, next(self._numbers), sleeper))  # type: ignore[attr-defined]

    def kill(self, process: Process) -> None:
        """SIGKILL: from here on nothing of it runs."""
        if process in self._halted:
            self._halted.remove(process)
        self._dead.append(process)
        # Held, since nobody else may: a task that is collected runs its `finally` after all.
        self._buried += [task for task in asyncio.all_tasks(self) if getattr(task, "process", None) is process]
        self._hold(process)
        for _, _, timer in self._scheduled:  # type: ignore[attr-defined]
            if isinstance(timer, Timer) and timer._context.get(PROCESS) is process:
                timer.cancel()  # a sleeper wakes, and takes no step

    def halt(self, process: Process) -> None:
        """SIGSTOP: it takes no step until `go_on`; its timers run out meanwhile, and what it is sent waits for it."""
        self._halted.append(process)
        self._hold(process)

    def go_on(self, process: Process) -> None:
        """SIGCONT; nothing for who was not halted, or was killed since."""
        if process in self._halted:
            self._halted.remove(process)
            process.is_still = False
            held, process.held = process.held, []
            self._ready.extend(held)  # type: ignore[attr-defined]  # as below

    def _hold(self, process: Process) -> None:
        process.is_still = True
        queue = self._ready  # type: ignore[attr-defined]  # as below
        ready = list(queue)
        queue.clear()
        for step in ready:
            (process.held if step[0].get(PROCESS) is process else queue).append(step)

    async def thaw(self) -> None:
        """The end of a history: cancel every task but the caller, the dead ones too, and let all of them end."""
        tasks = [task for task in asyncio.all_tasks(self) if task is not asyncio.current_task()]
        for process in (*self._dead, *self._halted):
            process.is_still = False
            held, process.held = process.held, []
            self._ready.extend(held)  # type: ignore[attr-defined]
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
        """Turn after turn until somebody stops it: as asyncio's own but for the order, the time and the readiness of
        files, of which there is none."""
        ready, scheduled = self._ready, self._scheduled  # type: ignore[attr-defined]  # the queues asyncio keeps
        virtual, take = self.virtual, ready.popleft
        while True:
            if self._timer_cancelled_count > max(CANCELLED_MAX, len(scheduled) // 2):  # type: ignore[has-type]
                scheduled[:] = [at for at in scheduled if not (isinstance(at[2], Timer) and at[2]._cancelled)]
                heapq.heapify(scheduled)
                self._timer_cancelled_count = 0
            if not ready and not self._stopping:  # type: ignore[attr-defined]
                if not scheduled:
                    raise Deadlock("every task waits for another")
                virtual.now_ns = max(virtual.now_ns, scheduled[0][0])
            now_ns = virtual.now_ns
            while scheduled and scheduled[0][0] <= now_ns:
                what = heapq.heappop(scheduled)[2]
                if type(what) is Timer:
                    self._due(what)
                elif not what.done():  # a sleeper
                    what.set_result(None)
            count = len(ready)
            if count > 1:
                self._shuffle(ready, count)
            for _ in range(count):
                try:
                    context, callback, args = take()
                except IndexError:
                    break  # the others of this turn were killed in it
                try:
                    context.run(callback, *args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:
                    self.call_exception_handler({"message": f"Exception in callback {callback}", "exception": error})
            if self._stopping:  # type: ignore[attr-defined]
                return

    def _shuffle(self, ready: Any, count: int) -> None:
        """The seed's order: any of them is as likely as another."""
        order, luck = list(ready), self._ties.random
        for place in range(count - 1, 0, -1):
            other = int(luck() * (place + 1))
            order[place], order[other] = order[other], order[place]
        ready.clear()
        ready.extend(order)

    def _due(self, timer: Timer) -> None:
        timer._scheduled = False
        if timer._cancelled:
            self._timer_cancelled_count -= 1
            return
        process = timer._context.get(PROCESS) if self._halted else None
        queue = process.held if process is not None and process.is_still else self._ready  # type: ignore[attr-defined]
        queue.append((timer._context, timer, ()))

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
        self._loop, self._virtual = loop, loop.virtual
        self._booted_ns = 0
        self.skew_ns = skew_ns

    def reboot(self) -> None:
        """The monotonic clock begins anew, as after a power cut."""
        self._booted_ns = self._virtual.now_ns

    def monotonic_ns(self) -> int:
        """Nanoseconds since the start of the history, or since this machine's last boot."""
        return self._virtual.now_ns - self._booted_ns

    def wall_ns(self) -> int:
        """Returns the time that this machine believes it is."""
        return START_WALL_NS + self._virtual.now_ns + self.skew_ns

    async def sleep_ns(self, duration_ns: int) -> None:
        """Wait in virtual time."""
        if duration_ns <= 0:
            await asyncio.sleep(0)
            return
        loop = self._loop
        sleeper: asyncio.Future[None] = asyncio.Future(loop=loop)
        at = (self._virtual.now_ns + duration_ns, next(loop._numbers), sleeper)
        heapq.heappush(loop._scheduled, at)  # type: ignore[attr-defined]  # the queue asyncio keeps
        await sleeper


@lru_cache(FILLERS_KEPT)
def _filler(kind: int, count: int) -> bytes:
    return (random.Random(kind).randbytes(PIECE_BYTES) * (count // PIECE_BYTES + 1))[:count]


class SeededRng:
    """The port's randomness from a seed; not fit for real keys, which is the point."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def random_bytes(self, count: int) -> bytes:
        """Bytes that depend on the seed alone. What fills a measured line repeats itself soon."""
        if count <= PIECE_BYTES:
            return self._random.randbytes(count)
        return _filler(self._random.getrandbits(2), count)

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
