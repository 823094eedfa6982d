"""Takes over from an older file of history what a new one, made of the log, does not have. Exact where either is whole.

The log keeps a day; the older file may know years. Of each series and span the file that knows of more samples counts,
samples themselves are united, and what charts by tier are made of is made again where the log says more. Like
history_roll it knows of a file only that it executes SQL. In one transaction: what cannot be read leaves no trace.
"""

from windrow_master.telemetry import history_sql as sql
from windrow_master.telemetry.history_roll import Connection

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
        connection.begin()
        try:
            for statement in statements():
                connection.execute(statement)
            connection.commit()
        except BaseException:
            connection.rollback()
            raise
    finally:
        connection.execute(f"DETACH {OLD}")
    ((rows,),) = connection.execute("SELECT (SELECT count(*) FROM minute) + (SELECT count(*) FROM hour)").fetchall()
    return int(rows)


def statements() -> tuple[str, ...]:
    """All of it, in order."""
    samples = (_united(table) for table in (*sql.WIDE.values(), sql.NARROW))
    rolled = (text for level in (sql.MINUTE, sql.HOUR) for text in _better(level))
    return *_DEVICES, *samples, *rolled, *_BANDS


def _united(table: str) -> str:
    narrow = " AND n.metric = o.metric" if table == sql.NARROW else ""
    return (
        f"INSERT INTO {table} BY NAME SELECT o.* REPLACE (s.new AS device) FROM {OLD}.{table} AS o"
        f" JOIN same AS s ON o.device = s.old WHERE NOT EXISTS (SELECT 1 FROM {table} AS n"
        f" WHERE n.device = s.new AND n.at_ms = o.at_ms{narrow})"
    )


def _better(level: sql.Level) -> tuple[str, ...]:
    """The rows of the series and spans of which the older file knows more."""
    table, key = level.name, "n.device = b.device AND n.metric = b.metric AND n.at_ms = b.at_ms"
    return (
        f"CREATE OR REPLACE TEMP TABLE better AS SELECT o.* FROM (SELECT s.new AS device, metric, at_ms,"
        f" sum(count) AS had FROM {OLD}.{table} JOIN same AS s ON device = s.old GROUP BY ALL) AS o"
        f" LEFT JOIN (SELECT device, metric, at_ms, sum(count) AS has FROM {table} GROUP BY ALL) AS n"
        " USING (device, metric, at_ms) WHERE n.has IS NULL OR o.had > n.has",
        f"DELETE FROM {table} AS n USING better AS b WHERE {key}",
        f"INSERT INTO {table} SELECT n.* FROM (SELECT o.* REPLACE (s.new AS device) FROM {OLD}.{table} AS o"
        f" JOIN same AS s ON o.device = s.old) AS n JOIN better AS b ON {key} ORDER BY metric, device, at_ms",
    )
