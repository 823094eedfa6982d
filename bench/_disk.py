"""The physical limit of a promise: one fsync of this disk, and one commit of SQLite as the Master sets it up.

Both are taken alone, one after the other, in the folder in which the measured daemons keep their data.
"""

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from bench._report import percentile

BYTES = 400
"""About one record of the agent's journal."""


def limits(folder: Path, count: int) -> dict[str, float]:
    """fsync_ms and sqlite_commit_ms, the median of `count` each, in milliseconds."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "fsync").open("ab", buffering=0) as file:

        def sync() -> None:
            file.write(b"x" * BYTES)
            os.fsync(file.fileno())

        fsync_ms = _median_ms(sync, count)
    connection = sqlite3.connect(folder / "limit.sqlite3", isolation_level=None)
    try:
        for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "CREATE TABLE row (body BLOB)"):
            connection.execute(statement)

        def commit() -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO row VALUES (?)", (b"x" * BYTES,))
            connection.execute("COMMIT")

        commit_ms = _median_ms(commit, count)
    finally:
        connection.close()
    return {"fsync_ms": fsync_ms, "sqlite_commit_ms": commit_ms}


def _median_ms(work: Callable[[], None], count: int) -> float:
    times = []
    for _ in range(count):
        began = time.perf_counter()
        work()
        times.append((time.perf_counter() - began) * 1000)
    return percentile(times, 0.5)
