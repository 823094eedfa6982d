"""The tables of the view of history and the questions put to them, as SQL text for DuckDB. Pure.

gpu, host, other  samples as they were sent: a row per device and instant, a column per metric (other: a row per
        value of a metric that this version does not know)   kept 4 days (longer than any agent's spool)
raw     all of these as one row per value, a view
minute  low, high, total, count per series        kept 90 days
hour    the same                                  kept 5 years
rolled  up to when samples are in minute, and in hour. Later ones are taken from the level below when a chart asks;
        earlier ones that come late are added as rows of their own: what a series had is the sum of its rows
band    per tier, gauge of GPUs and five minutes: the sum of its GPUs' means, and how many they are   kept 5 years
unbanded  which five minutes are not in band yet, or were touched by late samples since
member  from when on a GPU was in a tier; its first counts for the time before, too
device  the number of each host and each of its GPUs; a series is a device and a metric
cursor  up to where in the log all of this goes: written in the same transaction as the rows
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from windrow_proto.metrics import BY_NUMBER, METRICS, Metric, Scope
from windrow_proto.units import DAY, MILLISECOND

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000
FIVE_MS: Final = 300_000
"""Of a band: the step of a day's chart, and every longer one is made of it."""
RAW_KEPT_MS: Final = 4 * DAY // MILLISECOND
MINUTE_KEPT_MS: Final = 90 * DAY // MILLISECOND
HOUR_KEPT_MS: Final = 5 * 365 * DAY // MILLISECOND

WIDE: Final = {scope: f"{scope.value}_samples" for scope in Scope}
"""The table of each scope."""
NARROW: Final = "other_samples"


def _wide_schema(scope: Scope) -> tuple[str, ...]:
    """The table, and the columns that it may lack because an older version made it."""
    table = WIDE[scope]
    columns = (f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {column(m.number)} BIGINT" for m in _metrics(scope))
    return f"CREATE TABLE IF NOT EXISTS {table} (device INTEGER NOT NULL, at_ms BIGINT NOT NULL)", *columns


def column(metric: int) -> str:
    """The column of a metric in the table of its scope."""
    return f"m{metric}"


def _metrics(scope: Scope) -> tuple[Metric, ...]:
    return tuple(metric for metric in METRICS if metric.scope is scope)


def _raw_view() -> str:
    """A condition on `metric` leaves one of these parts, the others are not even read."""
    parts = [
        f"SELECT device, {m.number}::BIGINT AS metric, at_ms, {column(m.number)} AS value"
        f" FROM {WIDE[scope]} WHERE {column(m.number)} IS NOT NULL"
        for scope in Scope
        for m in _metrics(scope)
    ]
    parts.append(f"SELECT device, metric, at_ms, value FROM {NARROW}")
    return "CREATE OR REPLACE VIEW raw AS " + " UNION ALL ".join(parts)


SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS device (number INTEGER PRIMARY KEY, host VARCHAR NOT NULL, device VARCHAR NOT NULL)",
    *(statement for scope in Scope for statement in _wide_schema(scope)),
    f"CREATE TABLE IF NOT EXISTS {NARROW}"
    " (device INTEGER NOT NULL, at_ms BIGINT NOT NULL, metric BIGINT NOT NULL, value BIGINT NOT NULL)",
    _raw_view(),
    *(
        f"CREATE TABLE IF NOT EXISTS {name} (device INTEGER NOT NULL, metric BIGINT NOT NULL, at_ms BIGINT NOT NULL,"
        " low BIGINT NOT NULL, high BIGINT NOT NULL, total DOUBLE NOT NULL, count BIGINT NOT NULL)"
        for name in ("minute", "hour")
    ),
    "CREATE TABLE IF NOT EXISTS rolled (minute_ms BIGINT NOT NULL, hour_ms BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS member (device INTEGER NOT NULL, from_ms BIGINT NOT NULL, tier VARCHAR NOT NULL)",
    "CREATE TABLE IF NOT EXISTS band (tier VARCHAR NOT NULL, metric BIGINT NOT NULL, at_ms BIGINT NOT NULL,"
    " total DOUBLE NOT NULL, devices BIGINT NOT NULL)",
    # Without a key: a deleted one that a reader still sees would refuse to come back. The same may stand here twice.
    "CREATE TABLE IF NOT EXISTS unbanded (at_ms BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS cursor (epoch BIGINT NOT NULL, segment BIGINT NOT NULL, place BIGINT NOT NULL)",
)
BANDED: Final = tuple(m.number for m in METRICS if m.scope is Scope.GPU and not m.counter)
"""The metrics that bands are made of."""


@dataclass(frozen=True, slots=True)
class Level:
    """One table of rolled-up rows."""

    name: str
    span_ms: int


MINUTE: Final = Level("minute", MINUTE_MS)
HOUR: Final = Level("hour", HOUR_MS)


@dataclass(frozen=True, slots=True)
class Rolled:
    """Up to when (wall milliseconds, whole minutes and hours) all samples are in `minute`, and in `hour`."""

    minute_ms: int = 0
    hour_ms: int = 0

    def of(self, level: Level | None) -> int:
        """From when on a level has nothing and the one below is asked."""
        return {None: 0, MINUTE: self.minute_ms, HOUR: self.hour_ms}[level]


RETAIN: Final = (
    *((f"DELETE FROM {table} WHERE at_ms < ?", RAW_KEPT_MS) for table in (*WIDE.values(), NARROW)),
    ("DELETE FROM minute WHERE at_ms < ?", MINUTE_KEPT_MS),
    ("DELETE FROM hour WHERE at_ms < ?", HOUR_KEPT_MS),
    ("DELETE FROM band WHERE at_ms < ?", HOUR_KEPT_MS),
)


# --- rolling up ------------------------------------------------------------------------------------------------------


def rolled_wide(level: Level, source: str, metrics: Sequence[int], where: str) -> str:
    """Rows of a level made of a table with a column per metric: grouped once for all of them, then told apart."""
    columns = ", ".join(
        f"min({c}) AS low_{c}, max({c}) AS high_{c}, sum({c})::DOUBLE AS total_{c}, count({c}) AS count_{c}"
        for c in map(column, metrics)
    )
    parts = (
        f"SELECT device, {m}::BIGINT AS metric, at_ms, low_{c}, high_{c}, total_{c}, count_{c}"
        f" FROM spans WHERE count_{c} > 0"
        for m, c in ((m, column(m)) for m in metrics)
    )
    return (
        f"WITH spans AS MATERIALIZED (SELECT device, at_ms - at_ms % {level.span_ms} AS at_ms, {columns}"
        f" FROM {source} WHERE {where} GROUP BY 1, 2) {' UNION ALL '.join(parts)} ORDER BY 2, 1, 3"
    )


def rolled_narrow(level: Level, source: str, where: str) -> str:
    """The same of a table with a row per value."""
    return (
        f"SELECT device, metric, at_ms - at_ms % {level.span_ms} AS at_ms, min(value), max(value), sum(value)::DOUBLE,"
        f" count(*) FROM {source} WHERE {where} GROUP BY 1, 2, 3 ORDER BY 2, 1, 3"
    )


def rolled_hours(where: str) -> str:
    """Rows of `hour` made of those of `minute`."""
    return (
        f"SELECT device, metric, at_ms - at_ms % {HOUR_MS} AS at_ms, min(low), max(high), sum(total),"
        f" sum(count)::BIGINT FROM minute WHERE {where} GROUP BY 1, 2, 3 ORDER BY 2, 1, 3"
    )


def rolled_samples(level: Level, where: str) -> tuple[str, ...]:
    """Rows of a level made of all samples."""
    wide = (rolled_wide(level, WIDE[scope], [m.number for m in _metrics(scope)], where) for scope in Scope)
    return *wide, rolled_narrow(level, NARROW, where)


def bands(cell_ms: int) -> str:
    """Rows of `band` for one five minutes that are in `minute` as a whole."""
    where = f"metric IN ({_listed(BANDED)}) AND {_between(cell_ms, cell_ms + FIVE_MS)}"
    return _by_tier(f"SELECT device, metric, at_ms, total, count FROM minute WHERE {where}", FIVE_MS, 0)


# --- asking ----------------------------------------------------------------------------------------------------------


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(f"{number:d}" for number in numbers)


def _between(from_ms: int, to_ms: int) -> str:
    return f"at_ms >= {from_ms:d} AND at_ms < {to_ms:d}"


def rows(level: Level | None, metrics: Iterable[int], where: str, rolled: Rolled) -> str:
    """All rows of some metrics: those of a level, and of the levels below what is not in it yet. A series may have
    several rows for a span: their totals and counts add up. Numbers are given as parsed and stand in the text, so that
    of the tables only the columns that are asked for are read."""
    numbers = list(metrics)
    columns = "device, metric, at_ms, low, high, total, count"
    parts = []
    if level is HOUR:
        parts.append(f"SELECT {columns} FROM hour WHERE metric IN ({_listed(numbers)}) AND {where}")
    if level is not None:
        begun = f" AND at_ms >= {rolled.hour_ms}" if level is HOUR else ""
        parts.append(f"SELECT {columns} FROM minute WHERE metric IN ({_listed(numbers)}) AND {where}{begun}")
    begun = f" AND at_ms >= {rolled.minute_ms}" if level is not None else ""
    one = "{0} AS low, {0} AS high, {0}::DOUBLE AS total, 1::BIGINT AS count"
    for number in numbers:
        known = BY_NUMBER.get(number)
        if known is not None:
            parts.append(
                f"SELECT device, {number:d}::BIGINT AS metric, at_ms, {one.format(column(number))}"
                f" FROM {WIDE[known.scope]} WHERE {column(number)} IS NOT NULL AND {where}{begun}"
            )
        else:
            parts.append(
                f"SELECT device, metric, at_ms, {one.format('value')} FROM {NARROW}"
                f" WHERE metric = {number:d} AND {where}{begun}"
            )
    return " UNION ALL ".join(parts)


def points(
    level: Level | None,
    devices: Iterable[int],
    metrics: Iterable[int],
    from_ms: int,
    to_ms: int,
    step_ms: int,
    rolled: Rolled,
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Questions, and the metrics that each answers for: rows of device, step number, then for each of these metrics
    total, count and highest. The same device and step may stand in several answers. Small ones, since what a chart of
    one host costs is the planning of a large one."""
    numbers = tuple(metrics)
    step = f"(at_ms - {from_ms:d}) // {step_ms:d}"
    where = f"device IN ({_listed(devices)}) AND {_between(from_ms, to_ms)}"
    if level is HOUR:
        for m in numbers:
            yield _rolled_points("hour", m, step, where), (m,)
    if level is not None:
        begun = f" AND at_ms >= {rolled.hour_ms}" if level is HOUR else ""
        for m in numbers:
            yield _rolled_points("minute", m, step, where + begun), (m,)
    if level is not None:
        where += f" AND at_ms >= {rolled.minute_ms}"
    for scope in Scope:
        known = tuple(m for m in numbers if m in BY_NUMBER and BY_NUMBER[m].scope is scope)
        if known:
            values = ", ".join(f"sum({c})::DOUBLE, count({c}), max({c})" for c in map(column, known))
            yield f"SELECT device, {step}, {values} FROM {WIDE[scope]} WHERE {where} GROUP BY 1, 2", known
    for m in numbers:
        if m not in BY_NUMBER:
            values = "sum(value)::DOUBLE, count(value), max(value)"
            yield f"SELECT device, {step}, {values} FROM {NARROW} WHERE metric = {m:d} AND {where} GROUP BY 1, 2", (m,)


def _rolled_points(table: str, metric: int, step: str, where: str) -> str:
    return (
        f"SELECT device, {step}, sum(total), sum(count), max(high) FROM {table}"
        f" WHERE metric = {metric:d} AND {where} GROUP BY 1, 2"
    )


def _by_tier(source: str, span_ms: int, from_ms: int) -> str:
    """Tier, metric, beginning of the span, sum of the means of the tier's GPUs, how many they are. A GPU is in the
    tier that it was in when the span began. source: device, metric, at_ms, total, count."""
    begun = f"at_ms - (at_ms - {from_ms:d}) % {span_ms:d}"
    means = f"SELECT device, metric, {begun} AS at_ms, sum(total) / sum(count) AS mean FROM ({source}) GROUP BY 1, 2, 3"
    return (
        "SELECT tier, metric, at_ms, sum(mean) AS total, count(*) AS devices"
        f" FROM ({means}) AS means ASOF JOIN member ON means.device = member.device AND means.at_ms >= member.from_ms"
        " GROUP BY 1, 2, 3"
    )


def means(level: Level | None, metric: int, from_ms: int, to_ms: int, step_ms: int, rolled: Rolled) -> str:
    """One row per tier and step: tier, step number, mean of its GPUs' means."""
    source = rows(level, [metric], _between(from_ms, to_ms), rolled)
    return (
        f"SELECT tier, (at_ms - {from_ms:d}) // {step_ms:d} AS step, total / devices"
        f" FROM ({_by_tier(source, step_ms, from_ms)})"
    )


UNBANDED: Final = "SELECT DISTINCT at_ms FROM unbanded WHERE at_ms >= ? AND at_ms < ? ORDER BY at_ms"


def banded_means(
    metric: int, from_ms: int, to_ms: int, step_ms: int, fresh: Iterable[tuple[int, int]], rolled: Rolled
) -> str:
    """The same for steps of whole five minutes: the mean over the five minutes of each GPU. fresh: ranges (ms, half
    open) that hold all of `unbanded` between the ends; what is in it is made of the minutes on the spot."""
    is_fresh = f"at_ms - at_ms % {FIVE_MS} IN (SELECT at_ms FROM unbanded)"
    parts = [
        f"SELECT tier, at_ms, total, devices FROM band WHERE metric = {metric:d} AND {_between(from_ms, to_ms)}"
        " AND at_ms NOT IN (SELECT at_ms FROM unbanded)"
    ]
    for begin_ms, end_ms in fresh:
        where = f"{_between(max(begin_ms, from_ms), min(end_ms, to_ms))} AND {is_fresh}"
        made = _by_tier(rows(MINUTE, [metric], where, rolled), FIVE_MS, 0)
        parts.append(f"SELECT tier, at_ms, total, devices FROM ({made})")
    return (
        f"SELECT tier, (at_ms - {from_ms:d}) // {step_ms:d} AS step, sum(total) / sum(devices)"
        f" FROM ({' UNION ALL '.join(parts)}) GROUP BY 1, 2"
    )


def level_for(step_ms: int, from_ms: int, now_ms: int) -> Level | None:
    """The coarsest level that steps are whole multiples of, or whose age makes a finer one empty; None is raw."""
    age_ms = now_ms - from_ms
    if (step_ms % HOUR_MS == 0 and from_ms % HOUR_MS == 0) or age_ms > MINUTE_KEPT_MS:
        return HOUR
    if (step_ms % MINUTE_MS == 0 and from_ms % MINUTE_MS == 0) or age_ms > RAW_KEPT_MS:
        return MINUTE
    return None
