"""Copies into a new file of history, made of the log, what only an older file has. Exact where either is whole. Pure.

The log keeps a day; the older file may know years. Of each series and span the file that knows of more samples counts,
samples themselves are united, and what charts by tier are made of is made again where the log says more. Like
history_roll it knows of a file only that it executes SQL. In one transaction: what cannot be read leaves no trace.
"""

from windrow_master.telemetry import history_sql as sql
from windrow_master.telemetry.history_roll import Connection, transaction
from windrow_proto.metrics import Scope

OLD = "older"
"""Under which name the older file is attached."""

_DEVICES = (
    f"INSERT INTO device SELECT (SELECT coalesce(max(number), 0) FROM device) + row_number() OVER (ORDER BY number),"
    f" host, device FROM {OLD}.device AS o"
    " WHERE NOT EXISTS (SELECT 1 FROM device AS n WHERE n.host = o.host AND n.device = o.device)",
    "CREATE OR REPLACE TEMP TABLE same AS SELECT o.number AS old, n.number AS new"
    f" FROM {OLD}.device AS o JOIN device AS n ON n.host = o.host AND n.device = o.device",
)

_BANDS = (
    f"INSERT INTO unbanded SELECT at_ms FROM {OLD}.unbanded",
    f"DELETE FROM band WHERE at_ms IN (SELECT at_ms FROM {OLD}.band)",
    f"INSERT INTO band SELECT * FROM {OLD}.band WHERE at_ms NOT IN (SELECT at_ms FROM unbanded)",
    f"DELETE FROM member WHERE device IN (SELECT s.new FROM same AS s JOIN {OLD}.member AS o ON o.device = s.old)",
    f"INSERT INTO member SELECT s.new, o.from_ms, o.tier FROM {OLD}.member AS o JOIN same AS s ON o.device = s.old",
)


def take_over(connection: Connection, path: str) -> int:
    """Take over from the file at `path`, rolled up and held by nobody; returns how many rolled-up rows there are then.

    Files are taken over oldest first.
    """
    quoted = path.replace("'", "''")
    connection.execute(f"ATTACH '{quoted}' AS {OLD} (READ_ONLY)")
    try:
        with transaction(connection):
            for statement in statements():
                connection.execute(statement)
    finally:
        connection.execute(f"DETACH {OLD}")
    tables = [level.table(scope) for level in sql.LEVELS for scope in (*Scope, None)]
    counted = (connection.execute(f"SELECT count(*) FROM {table}").fetchall() for table in tables)
    return sum(int(rows) for ((rows,),) in counted)


def statements() -> tuple[str, ...]:
    """All of it, in order."""
    samples = (_united(table) for table in (*sql.WIDE.values(), sql.NARROW))
    rolled = (text for level in sql.LEVELS for scope in (*Scope, None) for text in _better(level, scope))
    return *_DEVICES, *samples, *rolled, *_BANDS


def _united(table: str) -> str:
    narrow = " AND n.metric = o.metric" if table == sql.NARROW else ""
    return (
        f"INSERT INTO {table} BY NAME SELECT o.* REPLACE (s.new AS device) FROM {OLD}.{table} AS o"
        f" JOIN same AS s ON o.device = s.old WHERE NOT EXISTS (SELECT 1 FROM {table} AS n"
        f" WHERE n.device = s.new AND n.at_ms = o.at_ms{narrow})"
    )


def _better(level: sql.Level, scope: Scope | None) -> tuple[str, ...]:
    """The series and spans of which the older file knows more, one by one."""
    table = level.table(scope)
    keys, metrics = sql.keys_and_metrics(scope)
    named, summed = ", ".join(keys), ", ".join(map(sql.summed, metrics))
    counts = [f"count{sql.suffix(metric)}" for metric in metrics]
    more = " OR ".join(f"o.{count} > coalesce(n.{count}, 0)" for count in counts)
    chosen = ", ".join(
        f"CASE WHEN o.{count} > coalesce(n.{count}, 0) THEN o.{name} ELSE n.{name} END AS {name}"
        for metric, count in zip(metrics, counts, strict=True)
        for name in (f"{kept}{sql.suffix(metric)}" for kept in sql.TYPES)
    )
    same = " AND ".join(f"n.{key} = b.{key}" for key in keys)
    return (
        f"CREATE OR REPLACE TEMP TABLE better AS SELECT {', '.join(f'o.{key}' for key in keys)}, {chosen}"
        f" FROM (SELECT {named.replace('device', 's.new AS device')}, {summed} FROM {OLD}.{table}"
        f" JOIN same AS s ON device = s.old GROUP BY ALL) AS o"
        f" LEFT JOIN (SELECT {named}, {summed} FROM {table} GROUP BY ALL) AS n USING ({named}) WHERE {more}",
        f"DELETE FROM {table} AS n USING better AS b WHERE {same}",
        f"INSERT INTO {table} BY NAME SELECT * FROM better ORDER BY {named}",
    )
