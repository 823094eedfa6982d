"""The second adapter of DuckDB: writes rows of an export as one Parquet file. Blocking; call it from a thread."""

import shutil
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final

import duckdb
import numpy as np

from windrow_master.telemetry.export import HEADER, Row

MEMORY_LIMIT: Final = "256MB"


class ParquetFile:
    """Collects rows part by part in a database in a folder of its own, then writes the file; none of it stays."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="windrow-export-"))
        self._turn = threading.Lock()
        settings: dict[str, str | bool | int | float | list[str]] = {"memory_limit": MEMORY_LIMIT, "threads": 1}
        self._connection = duckdb.connect(str(self._folder / "rows.duckdb"), config=settings)
        texts = ", ".join(f"{name} VARCHAR NOT NULL" for name in HEADER[1:-1])
        self._connection.begin()  # and never committed: nothing of it has to outlive this object, or wait for the disk
        self._connection.execute(f"CREATE TABLE rows (time TIMESTAMPTZ NOT NULL, {texts}, value DOUBLE NOT NULL)")

    def add(self, rows: Sequence[Row]) -> None:
        """Append rows."""
        if not rows:
            return
        at_ms, *texts, values = zip(*rows, strict=True)
        columns = {"at_ms": np.array(at_ms, dtype=np.int64), "value": np.array(values, dtype=np.float64)}
        columns |= {name: np.array(column, dtype=object) for name, column in zip(HEADER[1:-1], texts, strict=True)}
        named = ", ".join(HEADER[1:])
        with self._turn:
            self._connection.register("incoming", columns)
            self._connection.execute(f"INSERT INTO rows SELECT to_timestamp(at_ms / 1000.0), {named} FROM incoming")
            self._connection.unregister("incoming")

    def finish(self) -> BinaryIO:
        """Write the file and give it, open; what it was made of is gone then, and it goes when it is closed."""
        path = self._folder / "export.parquet"
        target = str(path).replace("'", "''")
        with self._turn:
            self._connection.execute(f"COPY rows TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
        file = path.open("rb")
        self.close()
        return file

    def close(self) -> None:
        """Remove the folder, after what another thread still writes into it; safe to call twice."""
        with self._turn:
            self._connection.close()
            shutil.rmtree(self._folder, ignore_errors=True)
