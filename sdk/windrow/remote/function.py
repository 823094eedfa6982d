"""Functions that run on a cluster as if they were local, and their runs."""

import asyncio
import contextlib
import functools
import itertools
import re
import secrets
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeVar, cast

from windrow.errors import CannotSend, FunctionError, WaitTimedOut
from windrow.remote import loop, pickles
from windrow.remote.cluster import Cluster, Env, connect, session_of
from windrow.remote.code import Folders, Pointer, Tree, pointer_of
from windrow.remote.outcome import value_of
from windrow.remote.pickles import Reader
from windrow.remote.session import Asked, Ended, OnOutput, Session
from windrow.remote.together import Together
from windrow.worker import engines
from windrow.worker.config import is_in_call

if TYPE_CHECKING:
    from windrow.client import Client

P = ParamSpec("P")
R = TypeVar("R")

IN_FLIGHT: Final = 64
"""Calls of a `map` that are sent and not yet taken."""
CANCEL_S: Final = 10.0
"""For a cancelled call to end, before whoever interrupted it gets the word back."""
HOST_PROCESSES_MAX: Final = 64
"""Of one call on one host: as many calls as its worker runs at once."""
_RUN_ID: Final = re.compile(r"run_([0-9a-f]{32})\.(cluster_[\w-]+)")
_folders = Folders()


@dataclass(frozen=True, slots=True)
class Options:
    """How calls are made. kind: over all hosts, by this; size: in so many processes of each host, 0: one for each GPU.
    pool: so many processes that stay, 0 is a fresh one for each; timeout_s: of each, above 0."""

    cluster: Cluster | None = None
    env: Env | None = None
    kind: str | None = None
    size: int = 0
    pool: int = 0
    timeout_s: float | None = None
    on_output: OnOutput | None = None


class Run(Generic[R]):
    """A call under way. Await it, or ask for its `result`."""

    def __init__(
        self, run_id: str, calls: "Session | Together", ended: "Future[Ended]", reader: Reader, root: Path | None
    ) -> None:
        self.id = run_id
        self._calls, self._ended, self._reader, self._root = calls, ended, reader, root

    def __repr__(self) -> str:
        return f"<windrow {self.id} {'ended' if self.done() else 'running'}>"

    def done(self) -> bool:
        """True if it has ended."""
        return self._ended.done()

    def result(self, timeout_s: float | None = None) -> R:
        """Returns the function's result; raises what it raised, a FunctionError, or WaitTimedOut after `timeout_s`."""
        try:
            return self._value(self._ended.result(timeout_s))
        except NotYet:
            if self._ended.done():
                raise
            raise WaitTimedOut(f"{self.id} has not ended within {timeout_s} s; it goes on.") from None

    def cancel(self) -> None:
        """Interrupt it on its host; it has five seconds to end by itself."""
        if not self.done():
            loop.finish(self._calls.cancel(_hex(self.id)))

    def __await__(self) -> Generator[Any, None, R]:
        return self._awaited().__await__()

    async def _awaited(self) -> R:
        try:
            return self._value(await asyncio.shield(asyncio.wrap_future(self._ended)))
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.wrap_future(loop.start(self._calls.cancel(_hex(self.id)))))
            raise

    def _value(self, ended: Ended) -> R:
        return cast(R, value_of(ended, self._reader, self._root))


class Function(Generic[P, R]):
    """A function and where it runs. Values: each method returns another."""

    def __init__(self, local: Callable[P, R], options: Options | None = None) -> None:
        functools.update_wrapper(self, local)
        self.__windrow_local__ = local
        self._options = options or Options()

    def to(self, cluster: Cluster, env: Env | None = None) -> "Function[P, R]":
        """The same on this cluster; env: instead of the cluster's own."""
        return self._with(cluster=cluster, env=env)

    def distribute(self, kind: str, n: int | None = None) -> "Function[P, R]":
        """The same over all hosts of the cluster, or over a "pool" of n processes that stay and keep what they loaded.

        "pytorch": it runs in n processes of each host, else one for each GPU, that find each other by
        `torch.distributed.init_process_group`; what rank 0 returns is returned. "ray", "dask": it runs once, and
        `ray.init()` or `Client()` finds all hosts.
        """
        if kind == "pool":
            if n is None or not 1 <= n <= 256:
                raise FunctionError('.distribute("pool", n) needs a number of processes from 1 to 256.')
            return self._with(kind=None, pool=n)
        if kind not in engines.KINDS:
            raise FunctionError(f"Unknown way to distribute: {kind!r}; there are pool, {', '.join(engines.KINDS)}.")
        if n is not None and (kind in engines.ENGINES or not 1 <= n <= HOST_PROCESSES_MAX):
            said = f'.distribute("pytorch", n) takes a number of processes of each host from 1 to {HOST_PROCESSES_MAX}'
            raise FunctionError(f"{said}; ray and dask take none.")
        return self._with(kind=kind, size=n or 0, pool=0)

    def options(self, *, timeout_s: float | None = None, on_output: OnOutput | None = None) -> "Function[P, R]":
        """The same with a time limit for each call; or with the output given to `on_output(stream, lines)`."""
        return self._with(timeout_s=timeout_s, on_output=on_output)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run it there and return what it returns. Ctrl-C cancels it there, too."""
        if self._options.cluster is None and is_in_call():
            return self.__windrow_local__(*args, **kwargs)
        _, run = self._prepared().begin((args, kwargs))
        try:
            return run.result()
        except KeyboardInterrupt:
            if not run.done():
                run.cancel()
                with contextlib.suppress(Exception):
                    run.result(CANCEL_S)
            raise

    async def aio(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The same for callers that are asynchronous; cancelled here, it is cancelled there."""
        run = await asyncio.to_thread(functools.partial(self.remote, *args, **kwargs))
        return await run

    def remote(self, *args: P.args, **kwargs: P.kwargs) -> Run[R]:
        """Begin it, and go on here once its host has it: it then runs to its end whatever becomes of this program."""
        asked, run = self._prepared().begin((args, kwargs), is_begun_told=True)
        asked.begun.result()
        return run

    def map(self, *iterables: Iterable[Any], in_flight: int = IN_FLIGHT) -> Iterator[R]:
        """One call for each item, many at a time; what they return, in order. The first that raises ends it."""
        prepared = self._prepared()
        items = zip(*iterables, strict=False)
        runs = deque(prepared.begin((args, {}))[1] for args in itertools.islice(items, in_flight))
        try:
            while runs:
                value = runs[0].result()
                runs.popleft()
                runs.extend(prepared.begin((args, {}))[1] for args in itertools.islice(items, 1))
                yield value
        finally:
            for run in runs:
                with contextlib.suppress(Exception):
                    run.cancel()

    async def aio_map(self, *iterables: Iterable[Any], in_flight: int = IN_FLIGHT) -> AsyncIterator[R]:
        """The same for callers that are asynchronous."""
        found = self.map(*iterables, in_flight=in_flight)
        nothing = object()
        try:
            while (value := await asyncio.to_thread(next, found, nothing)) is not nothing:
                yield cast(R, value)
        finally:
            await asyncio.to_thread(found.close)  # type: ignore[attr-defined]  # a generator

    def _with(self, **changes: Any) -> "Function[P, R]":
        return Function(self.__windrow_local__, replace(self._options, **changes))

    def _prepared(self) -> "_Prepared[R]":
        options, local = self._options, self.__windrow_local__
        if options.cluster is None:
            raise FunctionError(f"{local!r:.80} is on no cluster yet: windrow.function(f).to(cluster).")
        cluster = options.cluster
        pointer = pointer_of(local)
        tree = _folders.look(pointer.root) if pointer.root is not None else None  # what is refused rents nothing
        session = cluster.session()
        env = options.env or cluster.default_env
        record = {
            "tree": tree.digest if tree else None,
            "module": pointer.module,
            "name": pointer.name,
            "is_main": pointer.is_main,
            "file": pointer.file,
            "env": cluster.env_name(env),
            "variables": dict(env.variables),
            "pool": options.pool,
            "timeout_s": options.timeout_s,
        }
        sent = tree.paths if tree is not None else pickles.NOTHING
        reader = Reader(sent, pointer.module if pointer.is_main else None, cluster.trusts_host)
        hosts = cluster.sessions() if options.kind else []
        if options.kind in engines.ENGINES and len(hosts) == 1:
            hosts = []  # alone, Ray and Dask start in the call itself
        on_output = options.on_output or _print
        return _Prepared(local, cluster, session, pointer, tree, record, reader, on_output, options, hosts)


@dataclass(slots=True)
class _Prepared(Generic[R]):
    """The state that the calls of one `map` share."""

    local: Callable[..., Any]
    cluster: Cluster
    session: Session
    pointer: Pointer
    tree: Tree | None
    record: dict[str, Any]
    reader: Reader
    on_output: OnOutput
    options: Options
    hosts: list[Session]
    """Of a call over all of them; empty for one on the first host alone."""

    def begin(self, arguments: tuple[Any, Any], is_begun_told: bool = False) -> tuple[Asked, Run[R]]:
        """is_begun_told: the host says that it has it, which `asked.begun` waits for."""
        name = getattr(self.local, "__name__", "it")
        value = arguments if self.pointer.name else (self.local, *arguments)
        what = f"The arguments of {name}" if self.pointer.name else f"{name} and its arguments"
        body = pickles.dump(
            *(value, what, self.reader.brought), by_value=not self.pointer.name, is_main_sent=self.pointer.is_main
        )
        number = secrets.token_hex(16)
        asked = Asked({**self.record, "run": number, "begun": is_begun_told}, body, self.tree, self.on_output)
        run_id = f"run_{number}.{self.cluster.id}"
        if not self.hosts:
            return asked, Run(
                run_id, self.session, loop.start(self.session.call(asked)), self.reader, self.pointer.root
            )
        kind, shape = str(self.options.kind), self.cluster.shape
        size = 1 if kind in engines.ENGINES else self.options.size or shape["gpus"] or 1
        calls = Together(self.hosts, asked, kind, size, shape["cpus"] or 1, self.cluster.turn)
        return asked, Run(run_id, calls, loop.start(calls.call()), self.reader, self.pointer.root)


def function(local: Callable[P, R]) -> Function[P, R]:
    """A function that can run on clusters: `windrow.function(f).to(cluster)`, or as a decorator."""
    if isinstance(local, Function):
        return local
    if not callable(local):
        raise CannotSend(f"{local!r:.80} is no function.")
    return Function(local)


def attach(run_id: str, *, trusts_host: bool = False, client: "Client | None" = None) -> Run[Any]:
    """A run from before, of this program or another: its whole output comes again, then its result."""
    match = _RUN_ID.fullmatch(run_id)
    if match is None:
        raise FunctionError(f"{run_id!r:.120} is not the id of a run; `.remote(...)` gives it as `.id`.")
    session = session_of(client or connect(), match[2])
    ended = loop.start(session.attach(match[1], _print))
    here = Path.cwd()
    return Run(run_id, session, ended, Reader(lambda: _folders.look(here).paths(), None, trusts_host), None)


def _hex(run_id: str) -> str:
    return run_id.removeprefix("run_").partition(".")[0]


def _print(stream: int, data: bytes) -> None:
    target = sys.stdout if stream == 1 else sys.stderr
    target.write(data.decode(errors="backslashreplace"))
    target.flush()
