"""History as a view of the segment log, in DuckDB: follows the log with a cursor of its own, rolls up, answers charts.

The adapter of DuckDB for queries. It may be late, broken or gone without anybody but the charts noticing: acks and the
live view do not know it. What it writes it writes in bulk, with the cursor in the same transaction, so that a crash
repeats nothing and loses nothing. When its file cannot be opened (another Master holds it) it begins another, and
charts read them all; a damaged one is put aside under another name, and the new one takes in again what the log still
holds.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar

import duckdb
import numpy as np
import structlog

from windrow_master.telemetry import history_read, history_roll
from windrow_master.telemetry import history_sql as sql
from windrow_master.telemetry.decode import Decoded, Decoder
from windrow_master.telemetry.follow import follow
from windrow_master.telemetry.history_read import Devices, Source
from windrow_master.telemetry.model import (
    GPU_USE,
    GroupPoints,
    GroupQuery,
    LogPosition,
    Place,
    SeriesPoints,
    SeriesQuery,
    Tiers,
    ViewHealth,
)
from windrow_master.telemetry.ports import Executor
from windrow_proto.errors import Conflict, InvalidInput, Unavailable
from windrow_proto.ids import HostId
from windrow_proto.metrics import Scope
from windrow_proto.ports import Clock, Disk
from windrow_proto.units import HOUR, MIB, MILLISECOND, MINUTE, SECOND, seconds

T = TypeVar("T")

CYCLE_NS: Final = SECOND
CYCLE_BYTES_MAX: Final = 8 * MIB
"""Of log per transaction: bounds memory, and the wait of a chart behind it."""
RETAIN_EVERY_NS: Final = HOUR
ROLL_EVERY_NS: Final = 15 * SECOND
TIERS_EVERY_NS: Final = MINUTE
MEMORY_LIMIT: Final = "256MB"
WAL_BYTES_MAX: Final = "32MB"
"""Of the view's own log before it is worked into the file: each time costs blocks that are not quite full."""
AHEAD_MS_MAX: Final = HOUR // MILLISECOND
"""A host's clock this far ahead of the Master's is wrong; it has a condition that says so."""
FILES_MAX: Final = 16
QUERY_DEADLINE_NS: Final = 5 * SECOND
DAMAGE: Final = ("not a valid duckdb", "corrupt", "checksum", "deserializ", "serialization error", "invalidated")
"""Words of DuckDB about a file that no second try will open; of a lock or a full disk it speaks otherwise."""
ASIDE: Final = ".damaged"
POINTS_MAX: Final = 20_000
SERIES_PER_QUERY_MAX: Final = 1_024

log = structlog.get_logger(__name__)


class HistoryView:
    """One DuckDB file that is written, and older ones that are only read."""

    def __init__(
        self,
        disk: Disk,
        log_directory: str,
        epoch: int,
        directory: Path,
        clock: Clock,
        executor: Executor,
        tiers: Tiers = dict,
    ) -> None:
        """directory: where the files are; the log of all terms up to `epoch` is read through `disk`. Opens nothing."""
        self._tiers = tiers
        self._epoch = epoch
        self._disk, self._log_directory, self._directory = disk, log_directory, directory
        self._clock, self._executor = clock, executor
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._older: dict[int, tuple[duckdb.DuckDBPyConnection, Devices]] = {}
        self._awaited: list[int] = []
        self._path = ""
        self._problem = ""
        self._numbers: Devices = {}
        self._last_number = 0
        self._new_devices: list[tuple[HostId, str]] = []
        self._decoder = Decoder(self._number)
        self._rolled = sql.Rolled()
        self._unbanded: set[int] = set()
        self._members: dict[int, str] = {}
        self._cursor: LogPosition | None = None
        self._taken_ns = 0
        self._rows = self._bad_batches = self._misdated = 0
        self._is_behind = self._is_far = False
        self._due: dict[str, int] = {}
        self._is_new_wanted = False
        self._stuck: set[object] = set()

    def begin_new(self) -> None:
        """Begin another file with the next cycle, which takes in the whole log again; older ones stay readable."""
        self._is_new_wanted = True

    # --- on the loop -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow the log until cancelled; a failure is said, counted and tried again."""
        while True:
            is_failing = False
            try:
                await self.catch_up_once()
            except Exception as error:
                is_failing = True
                # The top of this task: whatever the view suffers, the Master goes on without charts.
                self._problem = str(error)[:300]
                log.exception("history_view_failed", error=self._problem)
                if is_damage(error):
                    await self._on_writer(self._set_aside)
            if is_failing or not self._is_far:
                await self._clock.sleep_ns(CYCLE_NS)

    async def catch_up_once(self) -> int:
        """One cycle: take in what the log holds behind the cursor, at most CYCLE_BYTES_MAX; returns how many rows."""
        tiers = self._tiers() if self._is_due("tiers", TIERS_EVERY_NS) else None
        return await self._on_writer(lambda: self._cycle(tiers))

    async def catch_up(self) -> None:
        """Take in all there is; for tests and before closing."""
        while await self.catch_up_once() or self._is_behind:
            pass

    async def series(self, query: SeriesQuery) -> tuple[SeriesPoints, ...]:
        """Points of each series in the order asked. Raises Unavailable without a view, InvalidInput over the caps."""
        _check(query.to_ms - query.from_ms, query.step_ms, len(query.keys))
        return await self._ask(
            lambda: history_read.points(self._sources(), query, self._clock.wall_ns() // MILLISECOND)
        )

    async def grouped(self, query: GroupQuery) -> GroupPoints:
        """Means by tier."""
        _check(query.to_ms - query.from_ms, query.step_ms)
        names, now_ms = sorted(set(self._tiers().values())), self._clock.wall_ns() // MILLISECOND
        return await self._ask(lambda: history_read.means(self._sources(), query, names, now_ms))

    async def workload_use(self, from_ms: int, to_ms: int) -> dict[str, float]:
        """How busy the GPUs of each workload were."""
        return await self._ask(lambda: history_read.workload_means(self._sources(), GPU_USE, from_ms, to_ms))

    async def _ask(self, work: Callable[[], T]) -> T:
        """Run a question beside the writer; while an earlier one hangs, refuse at once."""
        if self._connection is None:
            raise Unavailable("The history is not open (yet); live figures and commands are not affected.")
        if self._stuck:
            raise Unavailable("The history is unavailable: it has not answered an earlier question yet.")
        question = object()
        running = {question}

        def answer() -> T:
            try:
                return work()
            except duckdb.Error as error:
                raise Unavailable(f"The history is unavailable: {str(error)[:200]}") from error
            finally:
                running.discard(question)
                self._stuck.discard(question)

        try:
            async with asyncio.timeout(seconds(QUERY_DEADLINE_NS)):
                return await self._executor.read(answer)
        except TimeoutError:
            self._stuck |= running
            raise Unavailable("The history is unavailable: it did not answer in time.") from None

    def health(self) -> ViewHealth:
        """Return how it is doing."""
        return ViewHealth(
            is_open=self._connection is not None,
            path=self._path,
            problem=self._problem,
            lag_ns=max(0, self._clock.wall_ns() - self._taken_ns) if self._is_far else 0,
            rows=self._rows,
            bad_batches=self._bad_batches,
            misdated=self._misdated,
        )

    @property
    def cursor(self) -> LogPosition | None:
        """The view's place in the log; None before it was opened."""
        return self._cursor

    @property
    def is_behind(self) -> bool:
        """True if there may be more in the log than it has taken in."""
        return self._is_behind

    def close(self) -> None:
        """Write the file out and let go of it; safe to call twice."""
        self._executor.close()
        for connection, _ in self._older.values():
            connection.close()
        if self._connection is not None:
            self._connection.close()
        self._connection, self._older = None, {}

    async def _on_writer(self, work: Callable[[], T]) -> T:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        outcome: list[T] = []
        failure: list[BaseException] = []

        def run() -> None:
            try:
                outcome.append(work())
            except Exception as error:
                failure.append(error)

        def done() -> None:
            if future.done():
                return
            if failure:
                future.set_exception(failure[0])
            else:
                future.set_result(outcome[0])

        self._executor.write(run, done)
        return await future

    # --- opening ---------------------------------------------------------------------------------------------------

    def _open(self) -> duckdb.DuckDBPyConnection:
        """The newest file that opens, or a new one beside it; older ones are opened for reading."""
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        numbers = sorted(int(p.stem.split("-")[1]) for p in self._directory.glob("history-[0-9]*.duckdb"))
        following = (numbers[-1] if numbers else 0) + 1
        for number in [following] if self._is_new_wanted else [*reversed(numbers), following]:
            path = self._file(number)
            try:
                connection = open_file(path)
            except (duckdb.Error, Conflict) as error:
                log.warning("history_file_not_opened", path=str(path), error=str(error)[:300])
                if is_damage(error):
                    put_aside(path)
                continue
            self._is_new_wanted = False
            self._path = str(path)
            self._read_state(connection)
            self._awaited = [n for n in numbers if n != number][-FILES_MAX:]
            self._open_older()
            self._connection = connection
            return connection
        raise Unavailable("No file for the history could be opened.", subject=str(self._directory))

    def _set_aside(self) -> None:
        """The file in use is damaged: close it and keep it under another name; the next cycle begins anew."""
        broken, older, path = self._connection, self._older, Path(self._path)
        self._connection, self._older, self._cursor = None, {}, None
        for connection in (broken, *(one for one, _ in older.values())):
            if connection is not None:
                with contextlib.suppress(duckdb.Error):
                    connection.close()
        put_aside(path)
        self._is_new_wanted = True

    def _file(self, number: int) -> Path:
        return self._directory / f"history-{number:04d}.duckdb"

    def _open_older(self) -> None:
        """Open the older files that are not open yet: who held one a while ago may be gone."""
        for number in self._awaited:
            path = self._file(number)
            try:
                # Of an older version, or of one that was killed: brought up to date before it is only read.
                with open_file(path) as written:
                    history_roll.prepare(written)
                connection = _connect(path, read_only=True)
                self._older = {**self._older, number: (connection, _devices_of(connection))}
            except (duckdb.Error, Conflict) as error:
                log.debug("older_history_not_opened", path=str(path), error=str(error)[:300])
        self._awaited = [number for number in self._awaited if number not in self._older]

    def _read_state(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._numbers = _devices_of(connection)
        self._last_number = max(self._numbers.values(), default=0)
        self._new_devices.clear()
        self._decoder.forget()
        self._rolled = history_roll.prepare(connection)
        self._unbanded.clear()
        self._members = history_roll.members_of(connection)
        kept = connection.execute("SELECT epoch, segment, place FROM cursor").fetchall() or [(0, 0, 0)]
        self._cursor = LogPosition(*kept[0])

    # --- following the log -----------------------------------------------------------------------------------------

    def _cycle(self, tiers: Mapping[Place, str] | None) -> int:
        """tiers: of all GPUs, now and then."""
        connection = self._connection or self._open()
        if self._is_due("roll", ROLL_EVERY_NS):
            self._open_older()
            self._roll(connection)
        found = follow(
            self._disk, self._log_directory, self._epoch, self._cursor or LogPosition(0, 0, 0), CYCLE_BYTES_MAX
        )
        self._bad_batches += found.bad
        self._taken_ns = found.taken_ns or self._taken_ns
        self._is_behind = found.taken_ns is not None  # maybe: a cycle that finds nothing says that there is no more
        self._is_far = found.is_far
        decoded = self._dated(self._decoder.decode(found.batches))
        if found.cursor != self._cursor:
            self._insert(connection, decoded, found.cursor)
        if tiers is not None:
            self._tell(connection, tiers)
        self._problem = ""
        if self._is_due("retain", RETAIN_EVERY_NS):
            self._retain(connection)
        return decoded.values

    def _retain(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Delete what is old, and the numbers of workloads of which nothing is left."""
        for statement, kept_ms in sql.RETAIN:
            connection.execute(statement, [self._clock.wall_ns() // MILLISECOND - kept_ms])
        for host, device in connection.execute(sql.FORGET_WORKLOADS).fetchall():
            self._numbers.pop((HostId(host), device), None)
        self._decoder.forget()

    def _dated(self, decoded: Decoded) -> Decoded:
        """Without values from a time that no chart can show: a host's clock may be years off."""
        now_ms = self._clock.wall_ns() // MILLISECOND
        oldest, newest = now_ms - sql.RAW_KEPT_MS, now_ms + AHEAD_MS_MAX
        kept = {
            scope: tuple(rows.where((rows.at_ms > oldest) & (rows.at_ms < newest)) for rows in tables)
            for scope, tables in decoded.rows.items()
        }
        dated = Decoded(kept, decoded.bad_batches)
        self._misdated += decoded.values - dated.values
        return dated

    def _number(self, host_id: HostId, device: str) -> int:
        key = host_id, device
        number = self._numbers.get(key)
        if number is None:
            self._last_number += 1
            number = self._numbers[key] = self._last_number
            self._new_devices.append(key)
        return number

    def _insert(self, connection: duckdb.DuckDBPyConnection, decoded: Decoded, cursor: LogPosition) -> None:
        """Rows, devices, the roll-ups of late rows, what is to be banded, and the cursor: all of it or nothing."""
        touched: set[int] = set()
        try:
            with history_roll.transaction(connection):
                if self._new_devices:
                    self._insert_devices(connection, self._new_devices)
                for scope, tables in decoded.rows.items():
                    for rows in tables:
                        history_roll.insert_rows(connection, scope, rows)
                        history_roll.take_late(connection, scope, rows, self._rolled)
                        if scope is Scope.GPU:
                            touched.update((np.unique(rows.at_ms // sql.FIVE_MS) * sql.FIVE_MS).tolist())
                added = sorted(touched - self._unbanded)
                if added:
                    connection.executemany("INSERT INTO unbanded VALUES (?)", [[at_ms] for at_ms in added])
                connection.execute("DELETE FROM cursor")
                connection.execute("INSERT INTO cursor VALUES (?, ?, ?)", [cursor.epoch, cursor.segment, cursor.offset])
        except BaseException:
            self._read_state(connection)
            raise
        self._new_devices = []
        self._unbanded |= touched
        self._cursor = cursor
        self._rows += decoded.values
        self._bad_batches += decoded.bad_batches

    def _insert_devices(self, connection: duckdb.DuckDBPyConnection, added: list[tuple[HostId, str]]) -> None:
        incoming = {
            "number": np.array([self._numbers[key] for key in added], dtype=np.int32),
            "host": np.array([host_id for host_id, _ in added], dtype=object),
            "device": np.array([device for _, device in added], dtype=object),
        }
        connection.register("added", incoming)
        connection.execute("INSERT INTO device SELECT number, host, device FROM added")
        connection.unregister("added")
        self._due.pop("tiers", None)  # the next cycle says which tiers these are in

    def _roll(self, connection: duckdb.DuckDBPyConnection) -> None:
        now_ns = self._clock.wall_ns()
        if self._is_far or not self._taken_ns:  # what is not taken in yet would come after its roll-up
            now_ns = min(now_ns, self._taken_ns)
        self._rolled = history_roll.roll(connection, self._rolled, now_ns // MILLISECOND)
        # Until it is told who is in which tier, there is nothing to make bands of: they stay due.
        cells, is_more = history_roll.band(connection, self._rolled) if self._members else ((), False)
        self._unbanded.difference_update(cells)
        if is_more:
            self._due.pop("roll", None)

    def _tell(self, connection: duckdb.DuckDBPyConnection, tiers: Mapping[Place, str]) -> None:
        told = {self._numbers[place]: tier for place, tier in tiers.items() if place in self._numbers}
        history_roll.tell_members(connection, self._members, told, self._clock.wall_ns() // MILLISECOND)
        self._members |= told

    def _is_due(self, what: str, every_ns: int) -> bool:
        now_ns = self._clock.monotonic_ns()
        if now_ns < self._due.get(what, 0):
            return False
        self._due[what] = now_ns + every_ns
        return True

    def _sources(self) -> tuple[Source, ...]:
        """The files, the newest last: where two hold the same step, its word counts."""
        if self._connection is None:
            raise Unavailable("The history was closed.")
        older = self._older
        return (*(older[number] for number in sorted(older)), (self._connection, dict(self._numbers)))


def _check(span_ms: int, step_ms: int, series: int = 1) -> None:
    if step_ms <= 0 or not 0 < -(-span_ms // step_ms) <= POINTS_MAX or series > SERIES_PER_QUERY_MAX:
        limits = f"1 to {POINTS_MAX} points and at most {SERIES_PER_QUERY_MAX} series"
        raise InvalidInput(f"A chart has {limits}; ask for a longer step or a shorter time.")


def is_damage(error: BaseException) -> bool:
    """Return whether DuckDB speaks of a damaged file; one that another process holds is none."""
    said = str(error).lower()
    return isinstance(error, duckdb.Error) and "lock" not in said and any(words in said for words in DAMAGE)


def open_file(path: Path) -> duckdb.DuckDBPyConnection:
    """A file of history for writing, made or brought up to date; raises Conflict where another process holds it."""
    try:
        connection = _connect(path, read_only=False)
    except duckdb.IOException as error:
        if is_damage(error):
            raise
        raise Conflict(f"{path} cannot be opened ({str(error)[:200]}). Stop the Master that uses it first.") from error
    for statement in sql.SCHEMA:
        connection.execute(statement)
    have = {table: connection.execute(sql.described(table)).fetchall() for table in sql.COLUMNS}
    for statement in (*sql.lacking(have), *sql.VIEWS):
        connection.execute(statement)
    return connection


def put_aside(path: Path) -> None:
    """Keep a damaged file and its write-ahead log for whoever wants to look at them, where nobody opens them again."""
    for one in (path, path.with_name(path.name + ".wal")):
        if one.exists():
            one.replace(one.with_name(one.name + ASIDE))
    log.error("history_file_damaged", path=str(path), kept_as=path.name + ASIDE)


def _connect(path: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": MEMORY_LIMIT,
        "threads": 1,
        "checkpoint_threshold": WAL_BYTES_MAX,
    }
    return duckdb.connect(str(path), read_only=read_only, config=settings)


def _devices_of(connection: duckdb.DuckDBPyConnection) -> Devices:
    rows = connection.execute("SELECT number, host, device FROM device").fetchall()
    return {(HostId(host), device): number for number, host, device in rows}
