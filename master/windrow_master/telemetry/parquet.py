"""The second door to DuckDB: rows of an export as one Parquet file. Blocking; call it from a thread."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import duckdb
import numpy as np

from windrow_master.telemetry.export import HEADER, Row

MEMORY_LIMIT: Final = "256MB"


class ParquetFile:
    """Collects rows part by part in a database beside the file, then writes it."""

    def __init__(self, folder: Path) -> None:
        """folder: of its own, removed by the caller with all that is in it."""
        self.path = folder / "export.parquet"
        settings: dict[str, str | bool | int | float | list[str]] = {"memory_limit": MEMORY_LIMIT, "threads": 1}
        self._connection = duckdb.connect(str(folder / "rows.duckdb"), config=settings)
        texts = ", ".join(f"{name} VARCHAR NOT NULL" for name in HEADER[1:-1])
        self._connection.execute(f"CREATE TABLE rows (time TIMESTAMPTZ NOT NULL, {texts}, value DOUBLE NOT NULL)")

    def add(self, rows: Sequence[Row]) -> None:
        """Append rows."""
        if not rows:
            return
        at_ms, *texts, values = zip(*rows, strict=True)
        columns = {"at_ms": np.array(at_ms, dtype=np.int64), "value": np.array(values, dtype=np.float64)}
        columns |= {name: np.array(column, dtype=object) for name, column in zip(HEADER[1:-1], texts, strict=True)}
        self._connection.register("incoming", columns)
        named = ", ".join(HEADER[1:])
        self._connection.execute(f"INSERT INTO rows SELECT to_timestamp(at_ms / 1000.0), {named} FROM incoming")
        self._connection.unregister("incoming")

    def write(self) -> Path:
        """Write the file and say where it is."""
        target = str(self.path).replace("'", "''")
        self._connection.execute(f"COPY rows TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
        return self.path

    def close(self) -> None:
        """Let go of the database."""
        self._connection.close()
