"""The tables of the view of history and the questions put to them, as SQL text for DuckDB. Pure.

gpu, host, workload, other  samples as they were sent: a row per device and instant, a column per metric (other: a row
        per value of a metric that this version does not know)   kept 4 days (longer than any agent's spool)
raw     all of these as one row per value, a view
gpu_minute, ..._minute  low, high, total and count of each metric of a device   kept 90 days (workloads: 30)
gpu_hour, ..._hour      the same                                                kept 5 years (workloads: 30 days)
rolled  up to when samples are in minute, and in hour. Later ones are taken from the level below when a chart asks;
        earlier ones that come late are added as rows of their own: what a series had is the sum of its rows
band    per tier, gauge of GPUs and five minutes: the sum of its GPUs' means, and how many they are   kept 5 years
unbanded  which five minutes are not in band yet, or were touched by late samples since
member  from when on a GPU was in a tier; its first counts for the time before, too
device  the number of each host, of each of its GPUs, and of each of its workloads while anything of it is kept; a
        series is a device and a metric
cursor  up to where in the log all of this goes: written in the same transaction as the rows
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from windrow_proto.metrics import BY_NUMBER, METRICS, Scope
from windrow_proto.units import DAY, MILLISECOND

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000
FIVE_MS: Final = 300_000
"""Of a band: the step of a day's chart, and every longer one is made of it."""
RAW_KEPT_MS: Final = 4 * DAY // MILLISECOND
MINUTE_KEPT_MS: Final = 90 * DAY // MILLISECOND
HOUR_KEPT_MS: Final = 5 * 365 * DAY // MILLISECOND
WORKLOAD_KEPT_MS: Final = 30 * DAY // MILLISECOND
"""Of roll-ups of workloads: there are ever new ones, and each has a number."""

WIDE: Final = {scope: f"{scope.value}_samples" for scope in Scope}
"""The table of each scope."""
NARROW: Final = "other_samples"


def column(metric: int) -> str:
    """The column of a metric in the table of its scope."""
    return f"m{metric}"


def metrics_of(scope: Scope) -> tuple[int, ...]:
    """The metrics that tables of a scope have columns for."""
    return tuple(metric.number for metric in METRICS if metric.scope is scope)


@dataclass(frozen=True, slots=True)
class Level:
    """One length of spans, and its tables of rolled-up rows."""

    name: str
    span_ms: int

    def table(self, scope: Scope | None) -> str:
        """The table of a scope; None: the narrow one."""
        return f"{scope.value if scope is not None else 'other'}_{self.name}"


MINUTE: Final = Level("minute", MINUTE_MS)
HOUR: Final = Level("hour", HOUR_MS)
LEVELS: Final = (MINUTE, HOUR)
TYPES: Final = {"low": "BIGINT", "high": "BIGINT", "total": "DOUBLE", "count": "BIGINT"}
"""The columns that are kept of a metric's values in a span. Wide tables have these of each metric, and a null where
none came."""


def suffix(metric: int | None) -> str:
    """Of the columns of a metric; None: in a narrow table."""
    return "" if metric is None else f"_{column(metric)}"


def _wide_columns() -> dict[str, dict[str, str]]:
    """The type of each column of each wide table."""
    found = {}
    for scope in Scope:
        metrics = metrics_of(scope)
        found[WIDE[scope]] = dict.fromkeys(map(column, metrics), "BIGINT")
        kept = {f"{name}{suffix(m)}": kind for m in metrics for name, kind in TYPES.items()}
        found |= {level.table(scope): kept for level in LEVELS}
    return found


COLUMNS: Final = _wide_columns()


def _raw_view() -> str:
    """A condition on `metric` leaves one of these parts, the others are not even read."""
    parts = [
        f"SELECT device, {m}::BIGINT AS metric, at_ms, {column(m)} AS value"
        f" FROM {WIDE[scope]} WHERE {column(m)} IS NOT NULL"
        for scope in Scope
        for m in metrics_of(scope)
    ]
    parts.append(f"SELECT device, metric, at_ms, value FROM {NARROW}")
    return "CREATE OR REPLACE VIEW raw AS " + " UNION ALL ".join(parts)


SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS device (number INTEGER PRIMARY KEY, host VARCHAR NOT NULL, device VARCHAR NOT NULL)",
    *(
        f"CREATE TABLE IF NOT EXISTS {table} (device INTEGER NOT NULL, at_ms BIGINT NOT NULL,"
        f" {', '.join(f'{name} {kind}' for name, kind in columns.items())})"
        for table, columns in COLUMNS.items()
    ),
    f"CREATE TABLE IF NOT EXISTS {NARROW}"
    " (device INTEGER NOT NULL, at_ms BIGINT NOT NULL, metric BIGINT NOT NULL, value BIGINT NOT NULL)",
    *(
        f"CREATE TABLE IF NOT EXISTS {level.table(None)} (device INTEGER NOT NULL, metric BIGINT NOT NULL,"
        f" at_ms BIGINT NOT NULL, {', '.join(f'{name} {kind} NOT NULL' for name, kind in TYPES.items())})"
        for level in LEVELS
    ),
    "CREATE TABLE IF NOT EXISTS rolled (minute_ms BIGINT NOT NULL, hour_ms BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS member (device INTEGER NOT NULL, from_ms BIGINT NOT NULL, tier VARCHAR NOT NULL)",
    "CREATE TABLE IF NOT EXISTS band (tier VARCHAR NOT NULL, metric BIGINT NOT NULL, at_ms BIGINT NOT NULL,"
    " total DOUBLE NOT NULL, devices BIGINT NOT NULL)",
    # Without a key: a deleted one that a reader still sees would refuse to come back. The same may stand here twice.
    "CREATE TABLE IF NOT EXISTS unbanded (at_ms BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS cursor (epoch BIGINT NOT NULL, segment BIGINT NOT NULL, place BIGINT NOT NULL)",
)
VIEWS: Final = (_raw_view(),)


def described(table: str) -> str:
    """Asks for the columns of a table; DuckDB's list of all tables takes twenty times as long."""
    return f"SELECT name FROM pragma_table_info('{table}')"


def lacking(have: Mapping[str, Iterable[tuple[str]]]) -> Iterator[str]:
    """Adds the columns that a file does not have because an older version made it. have: what `described` answered."""
    for table, found in have.items():
        names = {name for (name,) in found}
        for name, kind in COLUMNS[table].items():
            if name not in names:
                yield f"ALTER TABLE {table} ADD COLUMN {name} {kind}"


BANDED: Final = tuple(m.number for m in METRICS if m.scope is Scope.GPU and not m.counter)
"""The metrics that bands are made of."""


@dataclass(frozen=True, slots=True)
class Rolled:
    """Up to when (wall milliseconds, whole minutes and hours) all samples are in the minutes, and in the hours."""

    minute_ms: int = 0
    hour_ms: int = 0

    def of(self, level: Level | None) -> int:
        """From when on a level has nothing and the one below is asked."""
        return {None: 0, MINUTE: self.minute_ms, HOUR: self.hour_ms}[level]


def _kept_ms(scope: Scope | None, kept_ms: int) -> int:
    """Of roll-ups: those of a workload end with the longest chart of it."""
    return min(kept_ms, WORKLOAD_KEPT_MS) if scope is Scope.WORKLOAD else kept_ms


RETAIN: Final = (
    *((f"DELETE FROM {table} WHERE at_ms < ?", RAW_KEPT_MS) for table in (*WIDE.values(), NARROW)),
    *((f"DELETE FROM {MINUTE.table(s)} WHERE at_ms < ?", _kept_ms(s, MINUTE_KEPT_MS)) for s in (*Scope, None)),
    *((f"DELETE FROM {HOUR.table(s)} WHERE at_ms < ?", _kept_ms(s, HOUR_KEPT_MS)) for s in (*Scope, None)),
    ("DELETE FROM band WHERE at_ms < ?", HOUR_KEPT_MS),
)


_OF_WORKLOADS: Final = (WIDE[Scope.WORKLOAD], *(level.table(Scope.WORKLOAD) for level in LEVELS))
FORGET_WORKLOADS: Final = (
    r"DELETE FROM device WHERE device LIKE 'workload\_%' ESCAPE '\'"
    + "".join(f" AND number NOT IN (SELECT device FROM {table})" for table in _OF_WORKLOADS)
    + " RETURNING host, device"
)
"""Deletes the numbers of workloads of which no row is left; answers which these were."""


# --- rolling up ------------------------------------------------------------------------------------------------------


def _spans(level: Level) -> str:
    return f"at_ms - at_ms % {level.span_ms}"


def rolled_wide(level: Level, source: str, metrics: Sequence[int], where: str) -> str:
    """Rows of a level made of a table with a column per metric; their columns have names."""
    made = ", ".join(
        f"min({c}) AS low_{c}, max({c}) AS high_{c}, sum({c})::DOUBLE AS total_{c}, count({c}) AS count_{c}"
        for c in map(column, metrics)
    )
    return (
        f"SELECT device, {_spans(level)} AS at_ms, {made} FROM {source} WHERE {where}"
        " GROUP BY ALL ORDER BY device, at_ms"
    )


def rolled_narrow(level: Level, source: str, where: str) -> str:
    """The same of a table with a row per value."""
    return (
        f"SELECT device, metric, {_spans(level)} AS at_ms, min(value) AS low, max(value) AS high,"
        f" sum(value)::DOUBLE AS total, count(*) AS count FROM {source} WHERE {where}"
        " GROUP BY ALL ORDER BY device, metric, at_ms"
    )


def summed(metric: int | None) -> str:
    """Return the sum of several rows of a metric and span."""
    s = suffix(metric)
    return (
        f"min(low{s}) AS low{s}, max(high{s}) AS high{s}, sum(total{s}) AS total{s}, sum(count{s})::BIGINT AS count{s}"
    )


def keys_and_metrics(scope: Scope | None) -> tuple[tuple[str, ...], tuple[int | None, ...]]:
    """Return the key of one row of the rolled-up tables of a scope, and the metrics that it has columns for."""
    if scope is None:
        return ("device", "metric", "at_ms"), (None,)
    return ("device", "at_ms"), metrics_of(scope)


def roll_minutes(where: str) -> Iterator[str]:
    """Put minutes made of all samples into their tables."""
    for scope in Scope:
        made = rolled_wide(MINUTE, WIDE[scope], metrics_of(scope), where)
        yield f"INSERT INTO {MINUTE.table(scope)} BY NAME {made}"
    yield f"INSERT INTO {MINUTE.table(None)} BY NAME {rolled_narrow(MINUTE, NARROW, where)}"


def roll_hours(where: str) -> Iterator[str]:
    """Put hours made of minutes into their tables."""
    for scope in (*Scope, None):
        keys, metrics = keys_and_metrics(scope)
        names = ", ".join(f"{_spans(HOUR)} AS at_ms" if key == "at_ms" else key for key in keys)
        yield (
            f"INSERT INTO {HOUR.table(scope)} BY NAME SELECT {names}, {', '.join(map(summed, metrics))}"
            f" FROM {MINUTE.table(scope)} WHERE {where} GROUP BY ALL ORDER BY {', '.join(keys)}"
        )


def from_narrow(level: Level) -> Iterator[str]:
    """Put the rows of `minute` or `hour`, a row per series as versions before kept them, where they belong: as rows of
    one metric each, which add up."""
    for scope in Scope:
        metrics = metrics_of(scope)
        named = ", ".join(f"{name}{suffix(m)}" for m in metrics for name in TYPES)
        made = ", ".join(f"CASE WHEN metric = {m} THEN {name} END" for m in metrics for name in TYPES)
        yield (
            f"INSERT INTO {level.table(scope)} (device, at_ms, {named}) SELECT device, at_ms, {made}"
            f" FROM {level.name} WHERE metric IN ({_listed(metrics)})"
        )
    yield (
        f"INSERT INTO {level.table(None)} BY NAME SELECT * FROM {level.name} WHERE metric NOT IN ({_listed(BY_NUMBER)})"
    )
    yield f"DROP TABLE {level.name}"


def bands(cell_ms: int) -> str:
    """Rows of `band` for one five minutes that are in the minutes as a whole."""
    means = ", ".join(f"sum(total_{c}) / nullif(sum(count_{c}), 0) AS {c}" for c in map(column, BANDED))
    sums = ", ".join(f"sum({c}) AS total_{c}, count({c}) AS devices_{c}" for c in map(column, BANDED))
    parts = " UNION ALL ".join(
        f"SELECT tier, {m}::BIGINT, {cell_ms:d}, total_{column(m)}, devices_{column(m)} FROM tiers"
        f" WHERE devices_{column(m)} > 0"
        for m in BANDED
    )
    return (
        f"WITH means AS (SELECT device, {cell_ms:d} AS at_ms, {means} FROM {MINUTE.table(Scope.GPU)}"
        f" WHERE {_between(cell_ms, cell_ms + FIVE_MS)} GROUP BY device),"
        f" tiers AS (SELECT tier, {sums} FROM means ASOF JOIN member"
        f" ON means.device = member.device AND means.at_ms >= member.from_ms GROUP BY tier) {parts}"
    )


# --- asking ----------------------------------------------------------------------------------------------------------


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(f"{number:d}" for number in numbers)


def _between(from_ms: int, to_ms: int) -> str:
    return f"at_ms >= {from_ms:d} AND at_ms < {to_ms:d}"


def rows(level: Level | None, metric: int, where: str, rolled: Rolled) -> str:
    """All rows of a metric: those of a level, and of the levels below what is not in it yet. A device may have several
    rows for a span: their totals and counts add up. Numbers are given as parsed and stand in the text, so that of the
    tables only the columns that are asked for are read."""
    known = BY_NUMBER.get(metric)
    scope = known.scope if known is not None else None
    only = f" AND metric = {metric:d}" if scope is None else ""
    s = suffix(metric if scope is not None else None)
    parts = []
    for one, begun in _levels(level, rolled):
        text = f"SELECT device, at_ms, total{s} AS total, count{s} AS count FROM {one.table(scope)}"
        parts.append(f"{text} WHERE count{s} > 0 AND {where}{only}{begun}")
    value, table = ("value", NARROW) if scope is None else (column(metric), WIDE[scope])
    parts.append(
        f"SELECT device, at_ms, {value}::DOUBLE AS total, 1::BIGINT AS count FROM {table}"
        f" WHERE {value} IS NOT NULL AND {where}{only}{_raw_begun(level, rolled)}"
    )
    return " UNION ALL ".join(parts)


def _levels(level: Level | None, rolled: Rolled) -> Iterator[tuple[Level, str]]:
    """The levels that are asked, and from when on each."""
    if level is HOUR:
        yield HOUR, ""
    if level is not None:
        yield MINUTE, f" AND at_ms >= {rolled.hour_ms}" if level is HOUR else ""


def _raw_begun(level: Level | None, rolled: Rolled) -> str:
    return f" AND at_ms >= {rolled.minute_ms}" if level is not None else ""


def workload_means(metric: int, from_ms: int, to_ms: int, rolled: Rolled) -> str:
    """Rows of workload and the mean of one of its metrics, from whole hours where there are."""
    found = rows(HOUR, metric, _between(from_ms, to_ms), rolled)
    return (
        f"SELECT device.device, sum(total) / sum(count) FROM ({found}) AS found"
        " JOIN device ON device.number = found.device GROUP BY device.device"
    )


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

    def question(table: str, values: Iterable[str], begun: str) -> str:
        return f"SELECT device, {step}, {', '.join(values)} FROM {table} WHERE {where}{begun} GROUP BY 1, 2"

    for scope in Scope:
        known = tuple(m for m in numbers if m in BY_NUMBER and BY_NUMBER[m].scope is scope)
        if known:
            for one, begun in _levels(level, rolled):
                yield question(one.table(scope), map(_added, map(suffix, known)), begun), known
            values = (f"sum({c})::DOUBLE, count({c}), max({c})" for c in map(column, known))
            yield question(WIDE[scope], values, _raw_begun(level, rolled)), known
    for m in numbers:
        if m not in BY_NUMBER:
            only = f" AND metric = {m:d}"
            for one, begun in _levels(level, rolled):
                yield question(one.table(None), [_added("")], begun + only), (m,)
            alone = ["sum(value)::DOUBLE, count(value), max(value)"]
            yield question(NARROW, alone, _raw_begun(level, rolled) + only), (m,)


def _added(s: str) -> str:
    return f"sum(total{s}), sum(count{s}), max(high{s})"


def _by_tier(source: str, span_ms: int, from_ms: int) -> str:
    """Tier, beginning of the span, sum of the means of the tier's GPUs, how many they are. A GPU is in the tier that it
    was in when the span began. source: device, at_ms, total, count."""
    begun = f"at_ms - (at_ms - {from_ms:d}) % {span_ms:d}"
    means = f"SELECT device, {begun} AS at_ms, sum(total) / sum(count) AS mean FROM ({source}) GROUP BY 1, 2"
    return (
        "SELECT tier, at_ms, sum(mean) AS total, count(*) AS devices"
        f" FROM ({means}) AS means ASOF JOIN member ON means.device = member.device AND means.at_ms >= member.from_ms"
        " GROUP BY 1, 2"
    )


def means(level: Level | None, metric: int, from_ms: int, to_ms: int, step_ms: int, rolled: Rolled) -> str:
    """One row per tier and step: tier, step number, mean of its GPUs' means."""
    source = rows(level, metric, _between(from_ms, to_ms), rolled)
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
        made = _by_tier(rows(MINUTE, metric, where, rolled), FIVE_MS, 0)
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
