"""Writes the next migration from the difference between the tables in code and the migrations: `... revision NAME`.

Revisions are only added, and only add to the schema: a Master of the version before may write while they run.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from windrow_master.app.tables import whole_schema
from windrow_master.store.engine import sqlite_engines
from windrow_master.store.migrate import newest, upgrade, write_revision


def make(name: str) -> Path:
    """Write the next migration under this name; formatted where ruff is there."""
    revision = f"{int(newest().partition('_')[0]) + 1:04d}_{'_'.join(name.lower().split())}"
    with tempfile.TemporaryDirectory() as directory:
        engines = sqlite_engines(Path(directory) / "empty.sqlite3")
        try:
            upgrade(engines.writer)
            path = write_revision(engines.writer, whole_schema(), name, revision)
        finally:
            engines.dispose()
    for verb in (["check", "--fix", "--quiet", "--select", "F401,I"], ["format", "--quiet"]):
        subprocess.run([sys.executable, "-m", "ruff", *verb, str(path)], check=False, timeout=60)
    return path


if __name__ == "__main__":
    print(make(sys.argv[1]))
