"""The store: runs plain functions one after the other, commits many at a time, and answers only after the commit.

write(fn) ──▶ pending ──▶ one transaction: fn1, fn2, ..., what they hold back ──▶ COMMIT (one fsync) ──▶ futures
              (bounded)   a function that raises is undone alone                fails: all of them StorageFailed

What functions hold back (cache.py) is sent together at the end. Where the database refuses it, it does not say whose it
was: the transaction is undone, and the functions run again, each in a savepoint in which all that it writes is sent.
So a function may run several times, and does nothing but by its unit of work.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import structlog
from sqlalchemy import Connection, RootTransaction
from sqlalchemy.exc import DatabaseError, DataError, DBAPIError, InternalError, OperationalError

from windrow_master.store.cache import Cache, NotAlone, cache_of, cached, watch
from windrow_master.store.disk_space import DiskSpace
from windrow_master.store.engine import Engines, engines_of, rewrite, sqlite_url
from windrow_master.store.executors import Executor, ThreadExecutor
from windrow_master.store.leadership import Claim
from windrow_master.store.messages import Messages
from windrow_master.store.migrate import upgrade
from windrow_master.store.model import AuditQuery, EventRow
from windrow_master.store.open_errors import explained, is_damage
from windrow_master.store.prepared import TransactionState, state_of
from windrow_master.store.repository import AuditRepository, ChainHead, TermRepository
from windrow_master.store.unit import ENDED, ORIGIN, LatePart, Part, UnitOfWork
from windrow_proto.data_directory import DirectoryLock
from windrow_proto.errors import (
    DeadlineExceeded,
    DiskFull,
    Fenced,
    InvalidInput,
    StorageFailed,
    Unavailable,
    WindrowError,
)
from windrow_proto.ports import Clock, Rng
from windrow_proto.units import SECOND, seconds

T = TypeVar("T")

PENDING_MAX: Final = 8_192
"""Functions waiting to be written; at the limit a write is refused as Unavailable, before anything ran."""
BATCH_MAX: Final = 256
"""Functions in one transaction: amortises the fsync and keeps the last one's wait short."""
WRITE_DEADLINE_NS: Final = 30 * SECOND
READ_DEADLINE_NS: Final = 30 * SECOND
SQLITE_IOERR: Final = 10
"""SQLite's primary code for an input or output error: what was written before it is no longer certain."""
SQLITE_FULL: Final = 13
SQLITE_IOERR_SHMSIZE: Final = 4_874
"""The error when there is no space for the index of SQLite's log: nothing was written yet."""
POSTGRESQL_DISK_FULL: Final = "53100"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Ahead:
    """The rows that a function reads first. Functions that share a transaction have theirs read at once, where one
    `read` reads them. read: remembers the rows with these keys for the transaction."""

    read: Callable[[UnitOfWork, Sequence[Any]], None]
    keys: Sequence[str]


@dataclass(slots=True)
class _Job:
    name: str
    function: Callable[[UnitOfWork], Any]
    future: "asyncio.Future[Any]"
    ahead: Ahead | None = None
    origin: Mapping[str, str] = field(default_factory=ORIGIN.get)
    unit: UnitOfWork | None = None
    result: Any = None
    error: BaseException | None = None


@dataclass(slots=True)
class StoreFigures:
    """The counters of the store."""

    commits: int = 0
    writes: int = 0
    failures: int = 0
    pending: int = 0
    last_commit_ns: int = 0
    by_name: dict[str, int] = field(default_factory=dict)


class Store:
    """The Master's transactional memory, used from one event loop."""

    def __init__(
        self,
        engines: Engines,
        clock: Clock,
        rng: Rng,
        executor: Executor,
        *,
        version: str,
        lock: DirectoryLock | None,
        claim: Claim | None = None,
        disk_space: DiskSpace | None = None,
    ) -> None:
        """Begin a new term on a migrated database. Use `open` unless you bring your own engines.

        disk_space: watches the disks, and has space to give away; without it nothing is full until a write says so.
        """
        self._engines = engines
        watch(engines.writer)
        self._clock = clock
        self._rng = rng
        self._executor = executor
        self._lock = lock
        self._disk_space = disk_space
        self._pending: deque[_Job] = deque()
        self._is_flushing = False
        self._broken: str | None = None
        self._is_closed = False
        self.is_damaged = False
        self._guard = threading.Lock()
        self._listeners: list[Callable[[EventRow], None]] = []
        self._chain = ChainHead()
        self.messages = Messages()
        """Between packages; whoever puts the Master together registers the handlers."""
        self.figures = StoreFigures()
        self.epoch = 0
        self.epoch = self.write_now(lambda uow: self._begin_term(uow, version, claim), name="begin_term")
        self._leadership = None if claim is None else claim.leadership
        if self._leadership is not None:
            self._leadership.keep(self.epoch, self._lose)

    @classmethod
    def open(
        cls,
        directory: Path,
        clock: Clock,
        rng: Rng,
        *,
        executor: Executor | None = None,
        version: str = "0",
        database: str | None = None,
        open_engines: Callable[[str], Engines] = engines_of,
        claim: Claim | None = None,
        disk_space: DiskSpace | None = None,
        resume: Callable[[int | None], None] = lambda last_ns: None,
        lock: DirectoryLock | None = None,
    ) -> "Store":
        """Open (or create) the database, bring its schema up to date and begin a new term.

        A database that is this Master's alone is guarded by a lock of the directory; a shared one by the leader's row,
        taken as `claim` says, or from whoever has it where there is none.
        database: its URL; a SQLite file in `directory` by default.
        claim: from a Candidate, with the engines it opened.
        resume: told the time of the audit log's last entry (None: there is none) before the term begins.
        open_engines: opens the database at a URL; another one only where its disk is simulated.
        lock: of the directory, where the caller holds it already; let go with the store.
        """
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        url = database or sqlite_url(directory / "master.sqlite3")
        engines = claim.engines if claim is not None else open_engines(url)
        try:
            if lock is None and not engines.is_shared:
                lock = DirectoryLock(directory)
            worker = executor or ThreadExecutor()
            with explained(url):
                upgrade(engines.writer)
                resume(_last_ns(engines))
                return cls(engines, clock, rng, worker, version=version, lock=lock, claim=claim, disk_space=disk_space)
        except BaseException:
            if claim is not None:
                claim.leadership.close()
            engines.dispose()
            if lock is not None:
                lock.release()
            raise

    @staticmethod
    def _begin_term(uow: UnitOfWork, version: str, claim: Claim | None) -> int:
        holder, address = ("", "") if claim is None else (claim.leadership.holder, claim.leadership.address)
        over = None if claim is None else (claim.seat.epoch, claim.seat.beat)
        epoch = uow.terms.begin(uow.now_wall_ns, version, holder, address, over)
        uow.epoch = epoch
        uow.audit("master", "term.begin", f"term/{epoch}", fields={"version": version})
        return epoch

    # --- what packages use --------------------------------------------------------------------------

    async def write(
        self,
        fn: Callable[[UnitOfWork], T],
        *,
        name: str,
        deadline_ns: int = WRITE_DEADLINE_NS,
        ahead: Ahead | None = None,
    ) -> T:
        """Run `fn` in the next transaction; returns after COMMIT. What `fn` raises is raised here, and nothing stays.
        ahead: what it reads first.

        Raises StorageFailed when the commit failed, Unavailable when too much waits, DeadlineExceeded when it takes
        too long (then the outcome is not known).
        """
        if self._broken is not None or self._is_closed:
            raise StorageFailed(self._broken or "The store is closed; nothing was written.")
        if len(self._pending) >= PENDING_MAX:
            raise Unavailable(f"{PENDING_MAX} writes wait already; nothing was changed. Try again in a moment.")
        job = _Job(name, fn, asyncio.get_running_loop().create_future(), ahead)
        self._pending.append(job)
        self._flush_soon()
        answer: T = await self._answer(job, deadline_ns)
        return answer

    async def read(self, fn: Callable[[UnitOfWork], T], *, deadline_ns: int = READ_DEADLINE_NS) -> T:
        """Run `fn` on one consistent snapshot, beside the writer; it sees every write that was answered before."""
        try:
            async with asyncio.timeout(seconds(deadline_ns)):
                return await self._executor.read(lambda: self._read(fn))
        except TimeoutError:
            raise DeadlineExceeded(f"Reading took longer than {seconds(deadline_ns):g} s.") from None

    def admit(self) -> None:
        """Raise DiskFull, with the way out, while there is no space for new work; for that before it begins."""
        if self._disk_space is not None:
            self._disk_space.admit()

    def on_event(self, listener: Callable[[EventRow], None]) -> None:
        """Call `listener` on the loop for every event row, after its commit and in order."""
        self._listeners.append(listener)

    @property
    def problem(self) -> str | None:
        """Why the store refuses writes; None while it works."""
        return self._broken

    # --- before and after the loop ---------------------------------------------------------------

    def write_now(self, fn: Callable[[UnitOfWork], T], *, name: str) -> T:
        """The same as `write` in the calling thread, for start, stop and tests; callbacks run before it returns."""
        job = _Job(name, fn, None)  # type: ignore[arg-type] # nobody awaits this one
        self._commit([job])
        if job.error is not None:
            raise job.error
        self._tell([job])
        result: T = job.result
        return result

    def read_now(self, fn: Callable[[UnitOfWork], T]) -> T:
        """The same as `read` in the calling thread."""
        return self._read(fn)

    def rewrite(self) -> None:
        """Leave nothing of what was changed or deleted in the database's files. Before the loop."""
        try:
            rewrite(self._engines)
        except DatabaseError as error:
            log.warning("what_was_in_clear_may_be_left_in_free_pages", error=_reason(error), way_out="VACUUM")

    async def drain(self, deadline_ns: int = WRITE_DEADLINE_NS) -> None:
        """Wait until everything asked so far is written; call before `close`."""
        if self._pending or self._is_flushing:
            await self.write(lambda uow: None, name="drain", deadline_ns=deadline_ns)

    def close(self) -> None:
        """Record the end of the term, close the database and release the lock; safe to call twice."""
        if self._is_closed:
            return
        self._executor.close()
        if self._broken is None:
            try:
                self.write_now(lambda uow: uow.terms.end(self.epoch, uow.now_wall_ns), name="end_term")
            except WindrowError as error:
                log.warning("term_end_not_recorded", error=str(error))
        if self._leadership is not None:
            self._leadership.close()
        self._is_closed = True
        self._engines.dispose()
        if self._lock is not None:
            self._lock.release()

    # --- on the loop -----------------------------------------------------------------------------

    def _flush_soon(self) -> None:
        if self._is_flushing or not self._pending:
            return
        self._is_flushing = True
        batch: list[_Job] = []

        def work() -> None:
            # Taken here, not when asked for: what arrives until the writer is free shares this commit.
            while self._pending and len(batch) < BATCH_MAX:
                batch.append(self._pending.popleft())
            self._commit(batch)

        self._executor.write(work, lambda: self._flushed(batch))

    def _flushed(self, batch: list[_Job]) -> None:
        self._is_flushing = False
        self._flush_soon()
        self._tell([job for job in batch if job.error is None])
        for job in batch:
            if job.future.done():
                continue
            if job.error is None:
                job.future.set_result(job.result)
            else:
                job.future.set_exception(job.error)

    def _tell(self, jobs: list[_Job]) -> None:
        for job in jobs:
            assert job.unit is not None
            for row in job.unit.told:
                for listener in self._listeners:
                    self._call(job.name, lambda listener=listener, row=row: listener(row))  # type: ignore[misc]
            for callback in job.unit.callbacks:
                self._call(job.name, callback)

    def _call(self, name: str, callback: Callable[[], None]) -> None:
        # The commit stands whatever a wake-up does: a callback's bug must not look like a failed write.
        try:
            callback()
        except Exception:
            log.exception("after_commit_failed", write=name)

    async def _answer(self, job: _Job, deadline_ns: int) -> Any:
        # Shielded: a caller that goes away does not undo what the writer does. The reader of a late error is the log.
        job.future.add_done_callback(lambda future: None if future.cancelled() else future.exception())
        try:
            async with asyncio.timeout(seconds(deadline_ns)):
                return await asyncio.shield(job.future)
        except TimeoutError:
            if job.future.done() and not job.future.cancelled() and job.future.exception() is not None:
                raise  # the function's own TimeoutError
            raise DeadlineExceeded(
                f"The write {job.name} took longer than {seconds(deadline_ns):g} s; it may still be done."
            ) from None

    # --- on the writer and reader threads --------------------------------------------------------

    def _unit(self, connection: Connection) -> UnitOfWork:
        return self._made(connection, self._chain)

    def _made(self, connection: Connection, chain: ChainHead | None) -> UnitOfWork:
        now_ns, random_bytes = self._clock.wall_ns(), self._rng.random_bytes
        return UnitOfWork(connection, now_ns, self.epoch, random_bytes, self.messages, chain)

    def _read(self, fn: Callable[[UnitOfWork], T]) -> T:
        try:
            with self._engines.reader.begin() as connection, cached(connection, holds=False):
                return fn(self._made(connection, None))
        except (OperationalError, InternalError) as error:
            raise StorageFailed(f"The database could not be read: {_reason(error)}.") from error
        except DatabaseError as error:
            if not is_damage(error):
                raise
            self._find_damage(error)
            raise StorageFailed(f"The database could not be read: {_reason(error)}.") from error

    def _commit(self, jobs: list[_Job]) -> None:
        """Run the jobs in one transaction; afterwards each has its unit and result, or its error. Never raises."""
        with self._guard:
            try:
                self._transact_in_room(jobs)
            except BaseException as error:
                self._fail(jobs, error)
            self.figures.pending = len(self._pending)

    def _transact_in_room(self, jobs: list[_Job]) -> None:
        """Run the same again, as long as it finds the disk full and there is space to give away; and once each job by
        itself, where one of them failed and it is not known which."""
        is_shared = len(jobs) > 1
        while True:
            try:
                return self._transact(jobs, is_shared)
            except NotAlone as error:
                is_shared = False
                log.info(
                    "commit_one_by_one", count=len(jobs), error=_reason(error.__cause__ or error.__context__ or error)
                )
            except DBAPIError as error:
                if not _is_full(error) or self._disk_space is None or not self._disk_space.spend():
                    raise
                log.warning("commit_spends_ballast", count=len(jobs), error=_reason(error))
            for job in jobs:
                job.unit, job.result, job.error = None, None, None

    def _transact(self, jobs: list[_Job], is_shared: bool) -> None:
        """is_shared: what the jobs hold back is sent together."""
        if self._broken is not None:
            raise StorageFailed(self._broken)
        with self._engines.writer.connect() as connection, cached(connection):
            transaction = connection.begin()
            try:
                self._check_epoch(connection)
                cache = cache_of(connection) if is_shared else None
                # Alone in its transaction a job needs no part of its own to fail in.
                is_alone = len(jobs) == 1
                if cache is not None:
                    self._read_ahead(connection, jobs)
                for job in jobs:
                    part = None if is_alone else Part(connection) if cache is None else LatePart(connection, cache)
                    self._run(connection, job, part)
                if is_alone and jobs[0].error is not None:
                    transaction.rollback()
                    return
                if cache is not None:
                    _send(connection, cache)
                self._end(transaction)
            except BaseException:
                self._chain.value = None
                transaction.close()
                raise
        self.figures.commits += 1
        self.figures.writes += len(jobs)
        self.figures.last_commit_ns = self._clock.wall_ns()

    def _read_ahead(self, connection: Connection, jobs: list[_Job]) -> None:
        """Raises NotAlone where that fails: each job then reads by itself, and only who cannot fails."""
        wanted: dict[Callable[[UnitOfWork, Sequence[Any]], None], dict[str, None]] = {}
        for job in jobs:
            if job.ahead is not None:
                wanted.setdefault(job.ahead.read, {}).update(dict.fromkeys(job.ahead.keys))
        try:
            for read, keys in wanted.items():
                read(self._unit(connection), list(keys))
        except Exception as error:
            if _is_of_all(error):
                raise
            raise NotAlone from error

    def _end(self, transaction: RootTransaction) -> None:
        try:
            transaction.commit()
        except DBAPIError as error:
            if error.connection_invalidated:
                # Whether it was committed is not known. What is kept in memory may be behind it: begin anew.
                self._broken = "The connection was lost in a commit; nothing more is written before a restart."
            raise

    def _check_epoch(self, connection: Connection) -> None:
        terms = TermRepository(connection)
        if self.epoch and not terms.is_mine(self.epoch):
            self._lose(f"Term {terms.latest()} has begun on this database; this Master holds term {self.epoch}.")
            raise Fenced(self._broken or "")

    def _find_damage(self, error: BaseException) -> None:
        self.is_damaged = True
        self._lose(f"The database is damaged ({_reason(error)}); nothing more is written to it.")

    def _lose(self, why: str) -> None:
        self._broken = self._broken or why

    def _run(self, connection: Connection, job: _Job, part: Part | None) -> None:
        unit, chain = self._unit(connection), self._chain.value
        unit.origin = job.origin
        try:
            job.result = job.function(unit)
            if state_of(connection) is not TransactionState.OPEN:  # a job may have passed over the error that ended it
                raise StorageFailed(ENDED)
            if part is None:
                unit.flush()
            else:
                part.keep()
        except Exception as error:
            if _is_of_all(error):
                raise
            # Where the database has thrown the whole transaction away this raises, and all jobs fail with it.
            if part is not None:
                part.undo()
            self._chain.value = chain
            job.error = _told(error)
            return
        job.unit = unit

    def _fail(self, jobs: list[_Job], error: BaseException) -> None:
        self.figures.failures += 1
        failure = error if isinstance(error, WindrowError) else _storage_failed(error)
        if isinstance(error, DBAPIError) and _is_disk_error(error):
            self._broken = f"The disk failed ({_reason(error)}); nothing is written before the Master starts again."
        elif is_damage(error):
            self._find_damage(error)
        log.error("commit_failed", writes=[job.name for job in jobs][:8], count=len(jobs), error=str(error)[:400])
        for job in jobs:
            job.unit, job.result = None, None
            job.error = job.error or failure


def _send(connection: Connection, cache: Cache) -> None:
    """Send what the functions of a transaction hold back. Raises NotAlone where some of it is refused."""
    try:
        cache.flush(connection)
    except Exception as error:
        if _is_of_all(error) or state_of(connection) is TransactionState.ENDED:
            raise
        raise NotAlone from error


def _last_ns(engines: Engines) -> int | None:
    with engines.reader.begin() as connection:
        entries = AuditRepository(connection, ChainHead()).newest(AuditQuery(), None, 1)
    return entries[0].at_ns if entries else None


def _told(error: Exception) -> Exception:
    if isinstance(error, OperationalError):
        return _storage_failed(error)
    if isinstance(error, DataError):
        failure = InvalidInput(f"The database cannot hold this value: {_reason(error)}. Nothing was changed.")
        failure.__cause__ = error
        return failure
    return error


def _storage_failed(error: BaseException) -> WindrowError:
    kind = DiskFull if isinstance(error, DBAPIError) and _is_full(error) else StorageFailed
    failure = kind(f"The database refused a write: {_reason(error)}. Nothing was changed.")
    failure.__cause__ = error
    return failure


def _reason(error: BaseException) -> str:
    origin = getattr(error, "orig", None) or error
    return str(origin).splitlines()[0][:200] if str(origin) else type(origin).__name__


def _is_full(error: DBAPIError) -> bool:
    code = getattr(error.orig, "sqlite_errorcode", None)
    if isinstance(code, int):
        return code & 0xFF == SQLITE_FULL or code == SQLITE_IOERR_SHMSIZE
    return getattr(error.orig, "sqlstate", None) == POSTGRESQL_DISK_FULL


def _is_of_all(error: BaseException) -> bool:
    """Return whether it is an error of the whole transaction, whichever function met it."""
    return isinstance(error, DBAPIError) and (_is_disk_error(error) or _is_full(error) or is_damage(error))


def _is_disk_error(error: DBAPIError) -> bool:
    code = getattr(error.orig, "sqlite_errorcode", None)
    return isinstance(code, int) and code & 0xFF == SQLITE_IOERR and not _is_full(error)
