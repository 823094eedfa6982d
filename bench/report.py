"""`report`: one month of cost, earnings and hours by project and day, beside a bare DuckDB query of the same rows.

BENCH_SCALE of 1,000 hosts with 30 days of rentals lie in a shipped database (SQLite). Ours: the report as the API asks
for it, with what it reads of the database, once what is closed has been read; the first one is told besides. Peer:
DuckDB with the same rows as a table of its own, asked with SQL that divides the charges among days by the same rule.
Both must say the same to the microcent.
"""

import asyncio
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from bench._report import last_line, median, scale, table
from tests.master_support import ManualClock, opened_store
from tests.support.rented_history import Made, history, people
from windrow_master.fleet.view import FleetView
from windrow_master.reports.days import Days
from windrow_master.reports.model import Dimension, Measure, Query, Scope, View
from windrow_master.reports.service import ReportService
from windrow_proto.units import SECOND

HOSTS, DAYS = 1_000, 30
FIRST = date(2026, 10, 1)
FIRST_DAY = FIRST.toordinal() - date(1970, 1, 1).toordinal()
RUNS = 9
GOAL_RATIO = 3
BARE = """
WITH line AS (
  SELECT renter, charged, fee, begin_s, billed_s, greatest(1, billed_s + silent_s) AS span FROM lines
), cut AS (
  SELECT renter, day, charged, fee, billed_s, span,
    least(greatest(day * 86400 - begin_s, 0), span) AS t0, least(greatest((day + 1) * 86400 - begin_s, 0), span) AS t1
  FROM line JOIN (SELECT unnest(range(?, ?)) AS day) AS days
    ON day BETWEEN begin_s // 86400 AND (begin_s + span - 1) // 86400
)
SELECT renter, day,
  sum(charged // span * (t1 - t0) + charged % span * t1 // span - charged % span * t0 // span)::BIGINT,
  sum(fee // span * (t1 - t0) + fee % span * t1 // span - fee % span * t0 // span)::BIGINT,
  sum(billed_s // span * (t1 - t0) + billed_s % span * t1 // span - billed_s % span * t0 // span)::BIGINT
FROM cut GROUP BY renter, day
"""


class NoHistory:
    """Nothing was measured: nobody asks for it here."""

    async def workload_use(self, from_ms: int, to_ms: int) -> dict[str, float]:
        """Nothing."""
        return {}


def bare(made: Made) -> duckdb.DuckDBPyConnection:
    """The same rows in DuckDB."""
    connection = duckdb.connect()
    renters = {one["rental_id"]: one["renter"] for one in made.rentals}

    def column(values: Sequence[Any]) -> Any:
        return np.array(values, dtype=object if isinstance(values[0], str) else np.int64)

    lines = {
        "renter": column([renters[one["rental_id"]] for one in made.lines]),
        "charged": column([one["charged"] for one in made.lines]),
        "fee": column([one["fee_charged"] for one in made.lines]),
        "begin_s": column([one["runs_from_ns"] // SECOND for one in made.lines]),
        "billed_s": column([one["charged"] * 3600 // one["price_per_hour"] for one in made.lines]),
        "silent_s": column([one["silent_ns"] // SECOND for one in made.lines]),
    }
    connection.register("given", lines)
    connection.execute("CREATE TABLE lines AS SELECT * FROM given")
    return connection


async def measure(folder: Path, made: Made) -> tuple[float, list[float], dict[tuple[str, ...], tuple[int, int]]]:
    """Our first answer, the following ones (ms), and what they say."""
    now_ns = int(datetime.combine(FIRST + timedelta(days=DAYS + 1), datetime.min.time(), UTC).timestamp()) * SECOND
    with opened_store(folder, ManualClock(now_ns)) as store:
        store.write_now(people, name="bench")
        store.write_now(made.write, name="bench")
        service = ReportService(store, ManualClock(now_ns), FleetView(), NoHistory())
        query = Query(
            scope=Scope(View.ALL),
            measures=(Measure.COST, Measure.FEES, Measure.HELD),
            by=(Dimension.PROJECT, Dimension.DAY),
            days=Days(FIRST, FIRST + timedelta(days=DAYS - 1)),
            filters={},
        )
        took = []
        for _ in range(RUNS + 1):
            began = time.perf_counter()
            found = await service.report(query)
            took.append((time.perf_counter() - began) * 1000)
        said = {one.keys: (one.values[Measure.COST], one.values[Measure.FEES]) for one in found.cells}
        return took[0], took[1:], said


def main() -> None:
    """Measure, compare, print, end."""
    made = history(hosts=max(2, round(HOSTS * scale())), first_day=FIRST_DAY, days=DAYS)
    with tempfile.TemporaryDirectory(prefix="windrow-report-") as name:
        first, ours, said = asyncio.run(measure(Path(name), made))
    connection, theirs = bare(made), list[float]()
    rows: list[tuple[Any, ...]] = []
    for _ in range(RUNS):
        began = time.perf_counter()
        rows = connection.execute(BARE, [FIRST_DAY, FIRST_DAY + DAYS]).fetchall()
        theirs.append((time.perf_counter() - began) * 1000)
    day = date(1970, 1, 1)
    bare_said = {(renter, (day + timedelta(days=n)).isoformat()): (cost, fee) for renter, n, cost, fee, _ in rows}
    assert said == bare_said, "both say the same"
    ratio = median(ours) / median(theirs)
    found = {
        "report_ms": round(median(ours), 2),
        "first_report_ms": round(first, 1),
        "duckdb_ms": round(median(theirs), 2),
        "ratio": round(ratio, 3),
        "rental_lines": len(made.lines),
        "cells": len(said),
        "charged_microcents": made.charged,
    }
    table(list(found.items()))
    last_line("report", median(ours), "ms", "a bare DuckDB query", ratio, found | {"goal_ratio": GOAL_RATIO})


if __name__ == "__main__":
    main()
