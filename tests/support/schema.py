"""The schema that the migrations make, made once: an empty SQLite gets it as it came out of them."""

import functools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from sqlalchemy import Engine

from windrow_master.store.engine import engines_of
from windrow_master.store.migrate import upgrade


def lay_down(engine: Engine) -> None:
    """Does the work of `upgrade` by the statements that it came to where the database is an empty SQLite; else by
    itself."""
    with engine.connect() as connection:
        is_sqlite = connection.dialect.name == "sqlite"
        is_empty = is_sqlite and not connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar()
    if not is_empty:
        upgrade(engine)
        return
    with engine.begin() as connection:
        for statement in _statements():
            connection.exec_driver_sql(statement)


@pytest.fixture(autouse=True)
def migrated_once() -> Iterator[None]:
    """For a folder's conftest.py: its stores open on the schema that the migrations made once in this process, not for
    each of hundreds; contract/test_migrations.py runs the migrations on every database."""
    with mock.patch("windrow_master.store.store.upgrade", lay_down):
        yield


@functools.cache
def _statements() -> tuple[str, ...]:
    with tempfile.TemporaryDirectory() as folder:
        engines = engines_of(f"sqlite:///{Path(folder) / 'made.sqlite3'}")
        try:
            upgrade(engines.writer)
            with engines.writer.connect() as connection:
                made: Any = connection.connection.driver_connection
                dump = tuple(made.iterdump())
        finally:
            engines.dispose()
    return tuple(line for line in dump if line not in ("BEGIN TRANSACTION;", "COMMIT;"))
