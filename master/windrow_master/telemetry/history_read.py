"""Queries the files of history for charts, and turns the rows into points.

Knows of a file only that it has cursors which execute SQL; DuckDB itself is behind duckdb_view.py.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

from windrow_master.telemetry import history_sql as sql
from windrow_master.telemetry.model import GroupPoints, GroupQuery, Place, SeriesKey, SeriesPoints, SeriesQuery
from windrow_proto.metrics import BY_NUMBER

Devices = dict[Place, int]
"""The number of each device in one file."""


class Connection(Protocol):
    """An open file, as far as it is asked here."""

    def cursor(self) -> Any:
        """A connection of one's own to the same file."""


Source = tuple[Connection, Devices]

RANGES_MAX: Final = 16
"""Stretches of a chart that are asked for one by one; beyond it, all between the first and the last at once."""


@contextmanager
def _asking(source: Connection) -> Iterator[tuple[Any, sql.Rolled]]:
    """A cursor that sees one state of the file throughout, and how far that is rolled up."""
    cursor = source.cursor()
    try:
        cursor.begin()
        ((minute_ms, hour_ms),) = cursor.execute("SELECT minute_ms, hour_ms FROM rolled").fetchall()
        yield cursor, sql.Rolled(minute_ms, hour_ms)
    finally:
        cursor.close()


def points(sources: Sequence[Source], query: SeriesQuery, now_ms: int) -> tuple[SeriesPoints, ...]:
    """Points of each series; later sources win."""
    steps = -(-(query.to_ms - query.from_ms) // query.step_ms)
    found: dict[SeriesKey, list[float | None]] = {key: [None] * steps for key in query.keys}
    for connection, numbers in sources:
        _points_of(connection, numbers, query, now_ms, found)
    return tuple(
        SeriesPoints(key, tuple((query.from_ms + n * query.step_ms, value) for n, value in enumerate(values)))
        for key, values in found.items()
    )


def _points_of(
    source: Connection,
    numbers: Devices,
    query: SeriesQuery,
    now_ms: int,
    found: dict[SeriesKey, list[float | None]],
) -> None:
    asked = {
        (numbers[key.host_id, key.device], key.metric): key
        for key in query.keys
        if (key.host_id, key.device) in numbers
    }
    if not asked:
        return
    level = sql.level_for(query.step_ms, query.from_ms, now_ms)
    devices, metrics = {device for device, _ in asked}, {metric for _, metric in asked}
    sums: dict[tuple[int, int, int], tuple[float, int, int]] = {}
    with _asking(source) as (cursor, rolled):
        for text, named in sql.points(level, devices, metrics, query.from_ms, query.to_ms, query.step_ms, rolled):
            for device, step, *values in cursor.execute(text).fetchall():
                for place, number in enumerate(named):
                    total, count, high = values[3 * place : 3 * place + 3]
                    if count and (device, number) in asked:
                        before = sums.get((device, number, step))
                        if before is not None:
                            total, count, high = before[0] + total, before[1] + count, max(before[2], high)
                        sums[device, number, step] = total, count, high
    for (device, number, step), (total, count, high) in sums.items():
        metric = BY_NUMBER.get(number)
        value = high if metric is not None and metric.counter else total / count
        found[asked[device, number]][step] = value * (metric.scale if metric is not None else 1.0)


def workload_means(sources: Sequence[Source], metric: int, from_ms: int, to_ms: int) -> dict[str, float]:
    """The mean of a metric of each workload in its unit; later sources win."""
    found: dict[str, float] = {}
    for connection, _ in sources:
        with _asking(connection) as (cursor, rolled):
            found |= dict(cursor.execute(sql.workload_means(metric, from_ms, to_ms, rolled)).fetchall())
    return {workload_id: mean * BY_NUMBER[metric].scale for workload_id, mean in found.items()}


def means(sources: Sequence[Source], query: GroupQuery, names: Sequence[str], now_ms: int) -> GroupPoints:
    """Means by tier, of these and of all that were; later sources win."""
    steps = -(-(query.to_ms - query.from_ms) // query.step_ms)
    found: dict[str, list[float | None]] = {name: [None] * steps for name in names}
    metric = BY_NUMBER.get(query.metric)
    for connection, _ in sources:
        for tier, step, mean in _means_of(connection, query, now_ms):
            of_tier = found.setdefault(tier, [None] * steps)
            of_tier[step] = mean * (metric.scale if metric is not None else 1.0)
    at = [query.from_ms + n * query.step_ms for n in range(steps)]
    return {name: tuple(zip(at, values, strict=True)) for name, values in sorted(found.items())}


def _means_of(source: Connection, query: GroupQuery, now_ms: int) -> list[tuple[str, int, float]]:
    metric, from_ms, to_ms, step_ms = query.metric, query.from_ms, query.to_ms, query.step_ms
    with _asking(source) as (cursor, rolled):
        if metric in sql.BANDED and from_ms % sql.FIVE_MS == 0 and step_ms % sql.FIVE_MS == 0:
            cells = [row[0] for row in cursor.execute(sql.UNBANDED, [from_ms, to_ms]).fetchall()]
            text = sql.banded_means(metric, from_ms, to_ms, step_ms, _ranges(cells), rolled)
        else:
            level = sql.level_for(step_ms, from_ms, now_ms)
            text = sql.means(level, metric, from_ms, to_ms, step_ms, rolled)
        rows: list[tuple[str, int, float]] = cursor.execute(text).fetchall()
        return rows


def _ranges(cells: Sequence[int]) -> list[tuple[int, int]]:
    """Sorted beginnings of five minutes as half-open ranges that hold them all."""
    ranges: list[tuple[int, int]] = []
    for cell_ms in cells:
        if ranges and ranges[-1][1] == cell_ms:
            ranges[-1] = ranges[-1][0], cell_ms + sql.FIVE_MS
        else:
            ranges.append((cell_ms, cell_ms + sql.FIVE_MS))
    return ranges if len(ranges) <= RANGES_MAX else [(ranges[0][0], ranges[-1][1])]
