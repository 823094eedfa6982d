"""Rolls samples up in a file of history: minutes, hours, and the means of tiers. Exact, however late a sample comes.

Samples up to a mark (`rolled`) are in the roll-ups, in one transaction with the mark; what comes later than that is
added when it comes. Like history_read it knows of a file only that it executes SQL. It never reads a clock.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

import numpy as np

from windrow_master.telemetry import history_sql as sql
from windrow_master.telemetry.decode import Rows
from windrow_proto.metrics import Scope
from windrow_proto.units import MILLISECOND, SECOND

GRACE_MS: Final = 20 * SECOND // MILLISECOND
"""How long after its end a minute is rolled up: four of the usual periods of batches, so that few come late. Charts add
up what is not rolled up yet from single samples, which costs more than all the minutes of an hour."""
BANDS_PER_ROLL: Final = 24
"""Two hours of a fleet's day: a roll holds up what is taken in meanwhile."""
LATE_ROWS: Final = 1 << 16
"""Of a table, rolled up at once: four times as many columns come of them, and each row may be a span of its own."""
INT64: Final = np.iinfo(np.int64)


class Connection(Protocol):
    """An open file that is written."""

    def execute(self, query: str, parameters: Any = ...) -> Any:
        """Run a statement."""

    def begin(self) -> Any:
        """Begin a transaction."""

    def commit(self) -> Any:
        """Keep it."""

    def rollback(self) -> Any:
        """Undo it."""

    def register(self, name: str, columns: Any) -> Any:
        """Give columns a name that statements can use."""

    def unregister(self, name: str) -> Any:
        """Take the name away."""


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """All that is done inside, or nothing of it."""
    connection.begin()
    try:
        yield
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


def prepare(connection: Connection) -> sql.Rolled:
    """Return the time at which a file's roll-ups end; one of an older version is brought up to date."""
    # Answers are always fetched whole: the rest of one would be in the way of what the connection does next.
    marks = connection.execute("SELECT minute_ms, hour_ms FROM rolled").fetchall()
    if marks:
        _widen(connection)
        return sql.Rolled(*marks[0])
    rolled = sql.Rolled()
    connection.execute("INSERT INTO rolled VALUES (?, ?)", [rolled.minute_ms, rolled.hour_ms])
    return rolled


def _widen(connection: Connection) -> None:
    """Move roll-ups with a row per series to where they have a row per device, unless that was done."""
    tables = (level.table(scope) for level in sql.LEVELS for scope in (*Scope, None))
    if any(connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchall() for table in tables):
        return
    found = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    with transaction(connection):
        for level in sql.LEVELS:
            if (level.name,) in found:
                for statement in sql.from_narrow(level):
                    connection.execute(statement)


def roll(connection: Connection, rolled: sql.Rolled, now_ms: int) -> sql.Rolled:
    """Roll up what is over; returns how far that is now."""
    minute_ms = max(rolled.minute_ms, (now_ms - GRACE_MS) // sql.MINUTE_MS * sql.MINUTE_MS)
    after = sql.Rolled(minute_ms, max(rolled.hour_ms, minute_ms // sql.HOUR_MS * sql.HOUR_MS))
    if after == rolled:
        return rolled
    with transaction(connection):
        for statement in sql.roll_minutes(f"at_ms >= {rolled.minute_ms} AND at_ms < {after.minute_ms}"):
            connection.execute(statement)
        if after.hour_ms > rolled.hour_ms:
            for statement in sql.roll_hours(f"at_ms >= {rolled.hour_ms} AND at_ms < {after.hour_ms}"):
                connection.execute(statement)
        connection.execute("UPDATE rolled SET minute_ms = ?, hour_ms = ?", [after.minute_ms, after.hour_ms])
    return after


def insert_rows(connection: Connection, scope: Scope | None, rows: Rows) -> None:
    """Append rows to their table: a column per metric, or (scope None) a row per value."""
    if not len(rows.device):
        return
    connection.register("incoming", incoming(rows.in_order()))
    named = ", ".join(sql.column(metric) for metric in rows.columns)
    if scope is not None:
        connection.execute(
            f"INSERT INTO {sql.WIDE[scope]} (device, at_ms, {named}) SELECT device, at_ms, {named} FROM incoming"
        )
    else:
        (metric,) = rows.columns
        connection.execute(
            f"INSERT INTO {sql.NARROW} SELECT device, at_ms, {metric}, {named} FROM incoming WHERE {named} IS NOT NULL"
        )
    connection.unregister("incoming")


def take_late(connection: Connection, scope: Scope | None, rows: Rows, rolled: sql.Rolled) -> None:
    """Add rows that come later than the roll-ups they belong to; within the transaction that inserts them."""
    for level in sql.LEVELS:
        late = rows.where(rows.at_ms < rolled.of(level)).in_order()
        for first in range(0, len(late.device), LATE_ROWS):
            part = late.part(slice(first, first + LATE_ROWS))
            columns = spans_of(part, level.span_ms, is_named=scope is not None)
            if scope is None:
                (metric,) = late.columns
                columns["metric"] = np.full(len(columns["device"]), metric, dtype=np.int64)
            connection.register("late", columns)
            where = "" if scope is not None else " WHERE count > 0"
            connection.execute(f"INSERT INTO {level.table(scope)} BY NAME SELECT * FROM late{where}")
            connection.unregister("late")


def spans_of(rows: Rows, span_ms: int, *, is_named: bool) -> dict[str, Any]:
    """The rolled-up columns of rows: one row for each run of rows of a device and a span of time. Rows that are not in
    order of time only make more of them. is_named: whether columns carry the name of their metric."""
    at_ms = rows.at_ms - rows.at_ms % span_ms
    is_first = np.ones(len(at_ms), dtype=np.bool_)
    is_first[1:] = (at_ms[1:] != at_ms[:-1]) | (rows.device[1:] != rows.device[:-1])
    first = np.flatnonzero(is_first)
    lengths = np.diff(first, append=len(at_ms))
    columns: dict[str, Any] = {"device": rows.device[first].astype(np.int32), "at_ms": at_ms[first]}
    for metric, values in rows.columns.items():
        absent = rows.absent.get(metric)
        is_there = None if absent is None else ~absent
        count = lengths if is_there is None else np.add.reduceat(is_there, first, dtype=np.int64)
        low = np.minimum.reduceat(values if absent is None else np.where(absent, INT64.max, values), first)
        high = np.maximum.reduceat(values if absent is None else np.where(absent, INT64.min, values), first)
        # As whole numbers wherever their sum is sure to be one; DOUBLE is what the table keeps of it.
        largest = max(abs(int(low.min())), abs(int(high.max())))
        exact = values if largest * int(lengths.max()) <= INT64.max else values.astype(np.float64)
        total = np.add.reduceat(exact if is_there is None else exact * is_there, first).astype(np.float64)
        s = sql.suffix(metric if is_named else None)
        kept = {"low": low, "high": high, "total": total}
        nothing = None if is_there is None else count == 0
        for name, column in kept.items():
            columns[f"{name}{s}"] = column if nothing is None else np.ma.MaskedArray(column, nothing)
        columns[f"count{s}"] = count
    return columns


def incoming(rows: Rows) -> dict[str, Any]:
    """Rows as columns that a statement can read."""
    columns: dict[str, Any] = {"device": rows.device.astype(np.int32), "at_ms": rows.at_ms}
    for metric, values in rows.columns.items():
        mask = rows.absent.get(metric)
        name = sql.column(metric)
        columns[name] = values if mask is None else np.ma.MaskedArray(values, mask)
    return columns


def tell_members(connection: Connection, known: Mapping[int, str], told: Mapping[int, str], now_ms: int) -> None:
    """Write down which GPUs (by number) are in another tier than before."""
    changed = [(device, tier) for device, tier in told.items() if known.get(device) != tier]
    if not changed:
        return
    added = {
        "device": np.array([device for device, _ in changed], dtype=np.int32),
        "from_ms": np.array([now_ms if device in known else 0 for device, _ in changed], dtype=np.int64),
        "tier": np.array([tier for _, tier in changed], dtype=object),
    }
    connection.register("added", added)
    try:
        connection.execute("INSERT INTO member SELECT device, from_ms, tier FROM added")
    finally:
        connection.unregister("added")


def members_of(connection: Connection) -> dict[int, str]:
    """The tier that each GPU was last told to be in."""
    rows = connection.execute("SELECT device, arg_max(tier, from_ms) FROM member GROUP BY 1").fetchall()
    return dict(rows)


def band(connection: Connection, rolled: sql.Rolled) -> tuple[Sequence[int], bool]:
    """Make the bands that are due; returns which, and whether there are more."""
    due = connection.execute(
        f"SELECT DISTINCT at_ms FROM unbanded WHERE at_ms <= {rolled.minute_ms - sql.FIVE_MS}"
        f" ORDER BY at_ms DESC LIMIT {BANDS_PER_ROLL + 1}"
    ).fetchall()
    cells = [int(row[0]) for row in due]
    for cell_ms in cells[:BANDS_PER_ROLL]:
        with transaction(connection):
            connection.execute("DELETE FROM band WHERE at_ms = ?", [cell_ms])
            connection.execute(f"INSERT INTO band {sql.bands(cell_ms)} ORDER BY 2, 1")
            connection.execute("DELETE FROM unbanded WHERE at_ms = ?", [cell_ms])
    return cells[:BANDS_PER_ROLL], len(cells) > BANDS_PER_ROLL
