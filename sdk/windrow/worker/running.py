"""Runs calls in processes: chooses the code and the child, gives up in time, and reports the end."""

import asyncio
import signal
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from windrow.worker.envs import Envs
from windrow.worker.processes import Child, Code, Died, Zygote
from windrow.worker.runs import Run
from windrow.worker.trees import Trees

RUNNING_MAX: Final = 64
"""Calls at once; more wait for their turn."""
CODES_KEPT: Final = 4
"""Processes that have imported some code and that nothing runs in; the oldest goes."""
POOL_MAX: Final = 256
SPARE_S: Final = 0.01
"""After a call, before the process of the next one is forked: what the call returned is on its way by then."""
GRACE_S: Final = 5.0
"""Between the interrupt of a cancelled call and its end by force."""

Key = tuple[str | None, str | None, str, bool, str]


@dataclass(frozen=True, slots=True)
class Call:
    """A call to run. name: empty where the arguments bring the function along. file: of a script
    that no name finds, in its tree; empty: the module is imported. pool: its processes; 0 is none."""

    tree: str | None
    module: str
    name: str
    is_main: bool
    file: str
    env: str | None
    variables: dict[str, str]
    pool: int
    timeout_s: float | None
    part: dict[str, Any] | None
    """In a call over several processes."""

    @property
    def key(self) -> Key:
        return (self.env, self.tree, self.module, self.is_main, self.file)


@dataclass(slots=True)
class _Pool:
    """Children that stay, and what they have loaded with them."""

    size: int
    idle: "asyncio.Queue[Child | None]" = field(default_factory=asyncio.Queue)
    count: int = 0


@dataclass(slots=True)
class _Loaded:
    """A code process in use."""

    code: Code
    watch: "asyncio.Task[None]"
    spare: Child | None = None
    is_sparing: bool = False
    forking: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the spare is: a call that comes meanwhile waits for it, which takes less than another."""
    is_over: bool = False
    pools: dict[tuple[int, str], _Pool] = field(default_factory=dict)


class Runner:
    """All processes of this worker."""

    def __init__(self, group: asyncio.TaskGroup, trees: Trees, envs: Envs, work: Path, lib: Path) -> None:
        """work: the working folder of calls."""
        self._group, self._trees, self._envs, self._work, self._lib = group, trees, envs, work, lib
        self._zygotes: dict[str | None, Zygote] = {}
        self._loaded: dict[Key, _Loaded] = {}
        self._locks: dict[Key, asyncio.Lock] = {}
        self._turn = asyncio.Semaphore(RUNNING_MAX)
        self._children: dict[str, Child] = {}
        self._why: dict[str, str] = {}

    def start(self, run: Run, call: Call) -> None:
        """Begin it; its run is told of the end."""
        run.task = self._group.create_task(self._run(run, call))

    def cancel(self, run: Run, why: str = "cancelled") -> None:
        """Interrupt it, and end it GRACE_S later if it goes on. why: the status it ends with."""
        if run.outcome is not None or run.task is None:
            return
        self._why.setdefault(run.id, why)
        child = self._children.get(run.id)
        if child is None:
            run.task.cancel()
            return
        child.signal(signal.SIGINT)
        asyncio.get_running_loop().call_later(GRACE_S, self._kill, run, child)

    def used_trees(self) -> set[str]:
        """The states of the code that something runs from or may."""
        return {key[1] for key in self._loaded if key[1] is not None}

    def close(self) -> None:
        """End all processes."""
        for loaded in self._loaded.values():
            self._end(loaded)
        for zygote in self._zygotes.values():
            zygote.close()

    def _kill(self, run: Run, child: Child) -> None:
        if self._children.get(run.id) is child:
            child.signal(signal.SIGKILL)

    async def _run(self, run: Run, call: Call) -> None:
        limit = None
        if call.timeout_s is not None:
            limit = asyncio.get_running_loop().call_later(call.timeout_s, self.cancel, run, "timed_out")
        try:
            async with self._turn:
                outcome = await self._outcome(run, call)
        except Died as error:
            outcome = {"status": "died", "message": str(error)}
        except asyncio.CancelledError:
            if run.id not in self._why:
                raise  # the worker itself ends
            outcome = {"status": "cancelled"}
        except Exception as error:  # of one call; the others go on
            traceback.print_exc()
            outcome = {"status": "died", "message": f"The worker could not run the call: {error}"}
        finally:
            if limit is not None:
                limit.cancel()
        why = self._why.pop(run.id, None)
        if why is not None and outcome["status"] in ("cancelled", "died"):
            outcome["status"] = why
        run.end(outcome)

    async def _outcome(self, run: Run, call: Call) -> dict[str, Any]:
        found = await self._code(run, call)
        if not isinstance(found, _Loaded):
            return found
        found.code.users += 1
        try:
            async with self._child(found, call) as child:
                return await self._in_child(run, call, found.code, child)
        finally:
            found.code.users -= 1
            if not found.code.forks:
                self._end(found)
            elif not call.pool and not found.is_sparing:
                found.is_sparing = True
                self._group.create_task(self._spare(found))
            self._forget_old()

    async def _in_child(self, run: Run, call: Call, code: Code, child: Child) -> dict[str, Any]:
        self._children[run.id] = child
        child.output.run = run
        try:
            job = {"args": str(run.arguments), "result": str(run.result), "name": call.name, "folder": str(self._work)}
            child.begin({**job, "env": call.variables, "part": call.part})
            said = await child.said()
        except OSError:
            said = None
        finally:
            del self._children[run.id]
            child.output.finish()
        if said is None:
            message = await code.how_ended(child)
            child.is_gone = True
            return {"status": "died", "message": message}
        return said

    @asynccontextmanager
    async def _child(self, loaded: _Loaded, call: Call) -> AsyncIterator[Child]:
        if not call.pool or not loaded.code.forks:
            async with loaded.forking:
                child, loaded.spare = loaded.spare, None
            if child is None or loaded.code.has_ended(child):
                if child is not None:
                    loaded.code.let_go(child)
                child = await loaded.code.child(not loaded.code.forks)
            try:
                yield child
            finally:
                loaded.code.let_go(child)
            return
        pool = loaded.pools.setdefault((call.pool, str(sorted(call.variables.items()))), _Pool(call.pool))
        child = await self._idle(pool, loaded.code)
        try:
            yield child
        except BaseException:
            child.is_gone = True
            raise
        finally:
            if child.is_gone:
                loaded.code.let_go(child)
                pool.count -= 1
                pool.idle.put_nowait(None)  # whoever waits may make another
            else:
                pool.idle.put_nowait(child)

    @staticmethod
    async def _idle(pool: _Pool, code: Code) -> Child:
        """A child of the pool that has nothing to do."""
        while pool.count >= pool.size or not pool.idle.empty():
            if (child := await pool.idle.get()) is not None:
                return child
        pool.count += 1
        try:
            return await code.child(False)
        except BaseException:
            pool.count -= 1
            pool.idle.put_nowait(None)
            raise

    @staticmethod
    async def _spare(loaded: _Loaded) -> None:
        """Have a process ready for the next call, that it need not wait for a fork."""
        await asyncio.sleep(SPARE_S)
        try:
            async with loaded.forking:
                if loaded.spare is None and not loaded.is_over:
                    loaded.spare = await loaded.code.child(False)
        except Died:
            pass  # the next call says so, if it is still so then
        finally:
            loaded.is_sparing = False
            if loaded.is_over and loaded.spare is not None:
                loaded.code.let_go(loaded.spare)

    async def _code(self, run: Run, call: Call) -> _Loaded | dict[str, Any]:
        """The process that has imported this code; or how importing it failed."""
        async with self._locks.setdefault(call.key, asyncio.Lock()):
            if (known := self._loaded.pop(call.key, None)) is not None:
                if known.code.forks and not known.watch.done():
                    self._loaded[call.key] = known  # the newest again
                    return known
                self._end(known)
            zygote = self._zygote(call.env)
            folder = None if call.tree is None else str(self._trees.folder(call.tree) or "")
            entry = {"module": call.module, "is_main": call.is_main, "file": call.file}
            code = zygote.code({"tree": folder, **entry})
            try:
                failed = await code.load(run)
            except BaseException:
                code.close()
                raise
            if failed is not None:
                code.close()
                return failed
            zygote.preload(code.modules)
            made = _Loaded(code, self._group.create_task(code.watch()))
            if code.forks:
                self._loaded[call.key] = made
            return made

    def _zygote(self, env: str | None) -> Zygote:
        if env not in self._zygotes:
            python = self._envs.python(env)
            if python is None:
                raise Died("The environment of this call is not made.")
            self._zygotes[env] = Zygote(python, self._lib)
        return self._zygotes[env]

    def _forget_old(self) -> None:
        unused = [key for key, one in self._loaded.items() if not one.code.users]
        for key in unused[: max(0, len(unused) - CODES_KEPT)]:
            self._end(self._loaded.pop(key))
            self._locks.pop(key, None)
        self._trees.forget_old(self.used_trees())

    @staticmethod
    def _end(loaded: _Loaded) -> None:
        loaded.is_over = True
        if loaded.spare is not None:
            loaded.code.let_go(loaded.spare)
            loaded.spare = None
        for pool in loaded.pools.values():
            while not pool.idle.empty():
                if (child := pool.idle.get_nowait()) is not None:
                    loaded.code.let_go(child)
        loaded.watch.cancel()
        loaded.code.close()
