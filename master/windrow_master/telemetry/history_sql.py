"""The tables of the view of history and the questions put to them, as SQL text for DuckDB. Pure.

gpu, host, other  samples as they were sent: a row per device and instant, a column per metric (other: a row per
        value of a metric that this version does not know)   kept 4 days (longer than any agent's spool)
raw     all of these as one row per value, a view
minute  low, high, total, count per series        kept 90 days
hour    the same                                  kept 5 years
device  the number of each host and each of its GPUs; a series is a device and a metric
stale   which minutes and hours are not rolled up yet, or were touched by late samples since
cursor  up to where in the log all of this goes: written in the same transaction as the rows
"""

from dataclasses import dataclass
from typing import Final

from windrow_proto.metrics import METRICS, Metric, Scope
from windrow_proto.units import DAY, MILLISECOND

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000
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
    "CREATE TABLE IF NOT EXISTS stale (span_ms BIGINT NOT NULL, at_ms BIGINT NOT NULL, PRIMARY KEY (span_ms, at_ms))",
    "CREATE TABLE IF NOT EXISTS cursor (epoch BIGINT NOT NULL, segment BIGINT NOT NULL, place BIGINT NOT NULL)",
)


@dataclass(frozen=True, slots=True)
class Level:
    """One table of rolled-up rows, and from what it is made."""

    name: str
    span_ms: int
    kept_ms: int
    grace_ms: int


MINUTE: Final = Level("minute", MINUTE_MS, MINUTE_KEPT_MS, 90_000)
HOUR: Final = Level("hour", HOUR_MS, HOUR_KEPT_MS, 180_000)
"""grace_ms: how long after its end a span is rolled up, so that it is done once and not with every late batch."""

RETAIN: Final = (
    *((f"DELETE FROM {table} WHERE at_ms < ?", RAW_KEPT_MS) for table in (*WIDE.values(), NARROW)),
    ("DELETE FROM minute WHERE at_ms < ?", MINUTE_KEPT_MS),
    ("DELETE FROM hour WHERE at_ms < ?", HOUR_KEPT_MS),
)


def grouped(level: Level, where: str) -> str:
    """Rows of a level as made from the level below, for the spans that `where` names (over at_ms of the source)."""
    key = f"at_ms - at_ms % {level.span_ms}"
    if level is MINUTE:
        columns = "min(value) AS low, max(value) AS high, sum(value)::DOUBLE AS total, count(*) AS count"
        return f"SELECT device, metric, {key} AS at_ms, {columns} FROM raw WHERE {where} GROUP BY 1, 2, 3"
    columns = "min(low) AS low, max(high) AS high, sum(total) AS total, sum(count)::BIGINT AS count"
    return f"SELECT device, metric, {key} AS at_ms, {columns} FROM ({rows(MINUTE, where)}) GROUP BY 1, 2, 3"


def rows(level: Level, where: str) -> str:
    """All rows of a level: what is rolled up, and what is stale made on the spot from the level below."""
    stale = f"(SELECT at_ms FROM stale WHERE span_ms = {level.span_ms})"
    fresh = f"({where}) AND at_ms - at_ms % {level.span_ms} IN {stale}"
    columns = "device, metric, at_ms, low, high, total, count"
    return (
        f"SELECT {columns} FROM {level.name} WHERE ({where}) AND at_ms NOT IN {stale} "
        f"UNION ALL SELECT {columns} FROM ({grouped(level, fresh)})"
    )


def points(level: Level | None, devices: int, metrics: int) -> str:
    """One row per series and step: device, metric, step number, mean, high. Parameters: from, step, then what
    `copies` says how often: the devices, the metrics, from, to."""
    where = (
        f"device IN ({', '.join('?' * devices)}) AND metric IN ({', '.join('?' * metrics)}) "
        "AND at_ms >= ? AND at_ms < ?"
    )
    if level is None:
        source = (
            f"SELECT device, metric, at_ms, value AS high, value::DOUBLE AS total, 1 AS count FROM raw WHERE {where}"
        )
    else:
        source = rows(level, where)
    return (
        "SELECT device, metric, (at_ms - ?) // ? AS step, sum(total) / sum(count) AS mean, max(high) AS high "
        f"FROM ({source}) GROUP BY 1, 2, 3"
    )


def means(level: Level | None, metric: int, from_ms: int, to_ms: int, step_ms: int) -> str:
    """One row per group and step: group, step number, mean of its devices' values. Joins the table `members`
    (device, named), which the caller gives; all numbers come from parsed integers."""
    where = f"metric = {metric:d} AND at_ms >= {from_ms:d} AND at_ms < {to_ms:d}"
    if level is None:
        source = f"SELECT device, at_ms, value::DOUBLE AS total, 1 AS count FROM raw WHERE {where}"
    else:
        source = f"SELECT device, at_ms, total, count FROM ({rows(level, where)})"
    per_device = (
        f"SELECT device, (at_ms - {from_ms:d}) // {step_ms:d} AS step, sum(total) AS total, sum(count) AS count "
        f"FROM ({source}) GROUP BY 1, 2"
    )
    return (
        f"SELECT named, step, avg(total / count) AS mean FROM ({per_device}) JOIN members USING (device) GROUP BY 1, 2"
    )


def copies(level: Level | None) -> int:
    """How often the condition, and so its parameters, stands in `points`."""
    return {None: 1, MINUTE: 2, HOUR: 3}[level]


def level_for(step_ms: int, from_ms: int, now_ms: int) -> Level | None:
    """The coarsest level that still answers a step, or a finer one's age makes necessary; None is raw."""
    age_ms = now_ms - from_ms
    if step_ms >= HOUR_MS or age_ms > MINUTE_KEPT_MS:
        return HOUR
    if step_ms >= MINUTE_MS or age_ms > RAW_KEPT_MS:
        return MINUTE
    return None
