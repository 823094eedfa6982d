"""`admit`: from a submit over HTTP to slots that are leased, at 1,000 simulated hosts of 4 cards, on SQLite and on
PostgreSQL. Goals: an array of 1,000 at 300 a second at least, and at least half as fast as bare statements.

An array is one request for 1,000 copies of a job, until all have their slots; beside it as many requests for machines
over 32 connections, and single submits, which follow one another on one. Beside them what the full path does, which
reads and tries all hosts inside the transaction. Peers: the rows that were written, changed or added, written once
more, a statement each, with as many commits as the Master made: as a program of the same libraries writes them, from
values by SQLAlchemy Core, and by the driver alone from what the rows hold, texts of JSON included. Hosts are rows
(bench/_admit.py): no agent takes part. PostgreSQL is the tests' own, with its fsync off, or TEST_POSTGRES_URL.

BENCH_SCALE 0.1: arrays of 100. ADMIT_HOSTS: another fleet.
"""

import http.client
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psycopg.types.json import Json
from sqlalchemy import Connection, Executable, Table, bindparam, insert, select, update

from bench._load import Ordered
from bench._report import cpu_seconds, last_line, median, percentile, scale, table
from tests.services import found
from tests.support.postgres import GIVEN, Postgres, running, scratch
from windrow_master.app.tables import whole_schema
from windrow_master.store.engine import engines_of

ARRAY, SINGLES, WARM_UP = 1_000, 200, 20
WHOLES = 16
"""By the full path, of which one may take a second."""
CONNECTIONS, WHOLE_CONNECTIONS = 32, 8
GOAL_PER_S, GOAL_RATIO = 300, 0.5
JOB = {"argv": ["true"], "runtime": "simulated", "gpus": 1, "cpus": 1}
ARRAY_DEADLINE_S, LOOK_S = 300, 0.05
BODY = json.dumps({"kind": "box", "argv": ["true"], "runtime": "simulated", "gpus": 1, "cpus": 1}).encode()
TABLES = whole_schema().sorted_tables
Rows = dict[str, dict[str, tuple[Any, ...]]]
"""By table: each row as text, and the row."""


class Submitter:
    """Submits to one Master, over a connection for each thread."""

    def __init__(self, port: int, token: str) -> None:
        self._port, self._own = port, threading.local()
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def one(self, _: int = 0) -> float:
        """Milliseconds until the cluster has its slots. Raises RuntimeError for any other answer."""
        return self._post("clusters", BODY)

    def _post(self, path: str, body: bytes) -> float:
        if not hasattr(self._own, "connection"):
            self._own.connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)
        began = time.perf_counter()
        self._own.connection.request("POST", f"/api/v1/{path}", body, self._headers)
        answer = self._own.connection.getresponse()
        said = answer.read()
        if answer.status not in (201, 202):
            raise RuntimeError(f"{answer.status} {said[:300]!r}")
        return (time.perf_counter() - began) * 1_000

    def array(self, count: int, server: Ordered) -> float:
        """Seconds until so many copies of a job have their slots. Raises RuntimeError where they do not come."""
        before, began = server.ask()["held"], time.perf_counter()
        self._post("jobs", json.dumps(JOB | {"array_size": count}).encode())
        while server.ask()["held"] < before + count:
            if time.perf_counter() - began > ARRAY_DEADLINE_S:
                raise RuntimeError(f"Not all of {count} copies have their slots.")
            time.sleep(LOOK_S)
        return time.perf_counter() - began

    def together(self, count: int, connections: int = CONNECTIONS) -> float:
        """Seconds for so many machines at once."""
        began = time.perf_counter()
        with ThreadPoolExecutor(connections) as threads:
            list(threads.map(self.one, range(count)))
        return time.perf_counter() - began


@dataclass(frozen=True, slots=True)
class Stage:
    """Figures of many clusters. *_per_s: clusters a second; bare_*: by bare statements of SQLAlchemy; driver_*: of the
    driver. statements: bare statements a cluster. cpu_ms: processor time of the Master a cluster."""

    per_s: float
    bare_per_s: float
    driver_per_s: float
    statements: float
    commits: int
    cpu_ms: float

    @property
    def ratio(self) -> float:
        """Ours over the peer's."""
        return self.per_s / self.bare_per_s

    @property
    def driver_ratio(self) -> float:
        """Ours over the driver's."""
        return self.per_s / self.driver_per_s


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of one database. array: of copies of a job; together: of machines at once; whole_*: by the full path."""

    array: Stage
    together: Stage
    single_ms: list[float]
    whole_per_s: float
    whole_ms: list[float]
    missed: int


@contextmanager
def _driver(url: str) -> Iterator[tuple[Any, str]]:
    """The writer's connection as the driver has it, with the settings that the Master gives it, and its mark for a
    value."""
    engines = engines_of(url)
    held = engines.writer.raw_connection()
    try:
        yield held.driver_connection, "?" if url.startswith("sqlite") else "%s"
    finally:
        held.close()
        engines.dispose()


def rows_of(url: str) -> Rows:
    """All rows of all tables."""
    with _driver(url) as (driver, _):
        cursor, read = driver.cursor(), Rows()
        for one in TABLES:
            columns = ", ".join(f'"{column.name}"' for column in one.columns)
            read[one.name] = {repr(row): row for row in cursor.execute(f"SELECT {columns} FROM {one.name}").fetchall()}
        driver.rollback()
        return read


@dataclass(frozen=True, slots=True)
class _Changed:
    """A row that was added, or changed from `was`, to `now`, as the driver has them. at: its place in its table's
    primary key."""

    table: Table
    at: tuple[Any, ...]
    was: tuple[Any, ...] | None
    now: tuple[Any, ...]


def _changed(before: Rows, after: Rows) -> Iterator[_Changed]:
    for one in TABLES:
        names = [column.name for column in one.columns]
        keys = [names.index(column.name) for column in one.primary_key.columns]
        was = {tuple(row[key] for key in keys): row for row in before[one.name].values()}
        for text, row in after[one.name].items():
            at = tuple(row[key] for key in keys)
            if at not in was or text not in before[one.name]:
                yield _Changed(one, at, was.get(at), row)


def _written(one: _Changed, mark: str, *, is_undone: bool = False) -> tuple[str, tuple[Any, ...]]:
    """The driver's statement that writes it, or that undoes it."""
    names, keys = [column.name for column in one.table.columns], [key.name for key in one.table.primary_key.columns]
    where = " AND ".join(f'"{key}" = {mark}' for key in keys)
    if one.was is None and is_undone:
        return f"DELETE FROM {one.table.name} WHERE {where}", one.at
    if one.was is None:
        columns, marks = ", ".join(f'"{name}"' for name in names), ", ".join(mark for _ in names)
        return f"INSERT INTO {one.table.name} ({columns}) VALUES ({marks})", _values(one.now)
    setting = ", ".join(f'"{name}" = {mark}' for name in names)
    row = one.was if is_undone else one.now
    return f"UPDATE {one.table.name} SET {setting} WHERE {where}", (*_values(row), *one.at)


def bare_s(url: str, before: Rows, after: Rows, commits: int) -> tuple[float, float, int]:
    """Undo what was written between two looks, and write it again, a statement for each row: seconds by SQLAlchemy,
    seconds by the driver, statements."""
    changed = list(_changed(before, after))
    each = -(-len(changed) // max(1, commits))
    with _driver(url) as (driver, mark):
        driver.cursor().execute(
            "PRAGMA foreign_keys = OFF" if mark == "?" else "SET session_replication_role = replica"
        )
        driver.commit()
        undo = [_written(one, mark, is_undone=True) for one in changed[::-1]]
        redo = [_written(one, mark) for one in changed]
        _run(driver, mark, undo)
        began = time.perf_counter()
        for first in range(0, len(redo), each):
            _run(driver, mark, redo[first : first + each])
        driver_s = time.perf_counter() - began
    return _core_s(url, changed, each, undo), driver_s, len(changed)


def _core_s(url: str, changed: list[_Changed], each: int, undo: list[tuple[str, tuple[Any, ...]]]) -> float:
    """The same by SQLAlchemy, from the values of the rows."""
    engines = engines_of(url)
    try:
        with engines.writer.connect() as connection:
            off = "PRAGMA foreign_keys = OFF" if url.startswith("sqlite") else "SET session_replication_role = replica"
            connection.exec_driver_sql(off)
            connection.commit()
            statements = list(_core_statements(connection, changed))
            connection.commit()
            _run(connection.connection.driver_connection, "?" if url.startswith("sqlite") else "%s", undo)
            began = time.perf_counter()
            for first in range(0, len(statements), each):
                for statement, values in statements[first : first + each]:
                    connection.execute(statement, values)
                connection.commit()
            return time.perf_counter() - began
    finally:
        engines.dispose()


def _core_statements(connection: Connection, changed: list[_Changed]) -> Iterator[tuple[Executable, dict[str, Any]]]:
    """The statement of each with its values, as they are read now."""
    made: dict[str, tuple[Executable, Executable, dict[tuple[Any, ...], dict[str, Any]]]] = {}
    for one in changed:
        keys = [column.name for column in one.table.primary_key.columns]
        if one.table.name not in made:
            where = [one.table.c[key] == bindparam(f"at_{key}") for key in keys]
            marks: dict[str, Any] = {column.name: bindparam(column.name) for column in one.table.c}
            setting = update(one.table).where(*where).values(marks)
            rows = [dict(row) for row in connection.execute(select(one.table)).mappings()]
            by_key = {tuple(row[key] for key in keys): row for row in rows}
            made[one.table.name] = insert(one.table), setting, by_key
        adding, changing, rows_by_key = made[one.table.name]
        row = rows_by_key[one.at]
        yield (adding, row) if one.was is None else (changing, row | {f"at_{key}": row[key] for key in keys})


def _run(driver: Any, mark: str, statements: list[tuple[str, tuple[Any, ...]]]) -> None:
    """In one transaction, which SQLite's driver is told of."""
    cursor = driver.cursor()
    if mark == "?":
        cursor.execute("BEGIN IMMEDIATE")
    for statement, values in statements:
        cursor.execute(statement, values)
    driver.commit()


def _values(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(Json(value) if isinstance(value, dict | list) else value for value in row)


def measured(folder: Path, database: str, hosts: int, array: int) -> Figures:
    """One Master on one database. database: empty for SQLite."""
    with folder.with_suffix(".log").open("wb") as log:
        server = Ordered("bench._admit", [str(folder), database, str(hosts)], log)
    url = database or f"sqlite:///{folder / 'master.sqlite3'}"
    singles = max(20, array * SINGLES // ARRAY)
    try:
        said = server.answer()
        ours = Submitter(said["port"], said["token"])
        for _ in range(WARM_UP):
            ours.one()
        arrays = _staged(url, server, lambda: ours.array(array, server), array)
        together = _staged(url, server, lambda: ours.together(array), array)
        single_ms = [ours.one() for _ in range(singles)]
        missed = server.ask(whole=True)["missed"]
        whole_ms = [ours.one() for _ in range(WHOLES)]
        whole_s = ours.together(WHOLES, WHOLE_CONNECTIONS)
    finally:
        server.close()
    return Figures(arrays(), together(), single_ms, WHOLES / whole_s, whole_ms, missed)


def _staged(url: str, server: Ordered, act: Callable[[], float], count: int) -> Callable[[], Stage]:
    """Measure so many clusters; what this returns is asked once the Master has ended: its peer needs the database."""
    before, start, used_s = rows_of(url), server.ask(), cpu_seconds([server.process.pid])
    took_s = act()
    used_s = cpu_seconds([server.process.pid]) - used_s
    commits, after = server.ask()["commits"] - start["commits"], rows_of(url)

    def stage() -> Stage:
        core_s, driver_s, statements = bare_s(url, before, after, commits)
        ours = count / took_s
        return Stage(ours, count / core_s, count / driver_s, statements / count, commits, 1_000 * used_s / count)

    return stage


def shown(name: str, of: Figures) -> list[tuple[str, Any]]:
    """Its rows of the table."""
    found: list[tuple[str, Any]] = []
    for words, stage in (("array of jobs", of.array), (f"machines over {CONNECTIONS} connections", of.together)):
        found += [
            (f"{name}: {words}, a second", f"{stage.per_s:.0f} (goal {GOAL_PER_S})"),
            (f"{name}: the same rows by bare statements, a second", stage.bare_per_s),
            (f"{name}: of that", f"{stage.ratio:.2f} (goal {GOAL_RATIO})"),
            (f"{name}: the same rows by the driver alone, a second", stage.driver_per_s),
            (f"{name}: of that", f"{stage.driver_ratio:.2f}"),
            (f"{name}: rows each, commits in all", f"{stage.statements:.1f}, {stage.commits}"),
            (f"{name}: the Master's processor time, ms each", stage.cpu_ms),
        ]
    return [
        *found,
        (f"{name}: single submits, ms p50", median(of.single_ms)),
        (f"{name}: single submits, ms p99", percentile(of.single_ms, 0.99)),
        (f"{name}: full path, machines, a second", of.whole_per_s),
        (f"{name}: full path, single submits, ms p50", median(of.whole_ms)),
        (f"{name}: nominations on which nothing was found", of.missed),
    ]


def detail(of: Figures) -> dict[str, Any]:
    """The same for the last line."""
    return {
        **{
            name: {
                "per_s": round(stage.per_s, 1),
                "bare_per_s": round(stage.bare_per_s, 1),
                "ratio": round(stage.ratio, 3),
                "driver_per_s": round(stage.driver_per_s, 1),
                "driver_ratio": round(stage.driver_ratio, 3),
                "cpu_ms": round(stage.cpu_ms, 2),
            }
            for name, stage in (("array", of.array), ("together", of.together))
        },
        "single_p50_ms": round(median(of.single_ms), 2),
        "whole_per_s": round(of.whole_per_s, 1),
        "missed": of.missed,
    }


def main() -> None:
    """Measure, print, end."""
    hosts, array = int(os.environ.get("ADMIT_HOSTS") or 1_000), max(100, round(ARRAY * scale()))
    figures: dict[str, Figures] = {}
    rows: list[tuple[str, Any]] = [("hosts, requests of an array", f"{hosts:,}, {array:,}")]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="windrow-bench-")))
        figures["SQLite"] = measured(folder / "sqlite", "", hosts, array)
        if found()["postgresql"].version is None:
            rows.append(("PostgreSQL", "not measured: it is missing here"))
        else:
            given = os.environ.get(GIVEN)
            head = (given or "").rpartition("/")[0]
            server = Postgres(lambda name: f"{head}/{name}", None) if given else stack.enter_context(running())
            database = stack.enter_context(scratch(server))
            figures["PostgreSQL"] = measured(folder / "postgresql", database, hosts, array)
    for name, of in figures.items():
        rows += shown(name, of)
    table(rows)
    ours = figures["SQLite"].array
    goals = {"goal_per_s": GOAL_PER_S, "goal_ratio": GOAL_RATIO, "hosts": hosts}
    found_here = {name.lower(): detail(of) for name, of in figures.items()}
    last_line("admit", ours.per_s, "jobs/s", "bare statements", ours.ratio, goals | found_here)


if __name__ == "__main__":
    main()
