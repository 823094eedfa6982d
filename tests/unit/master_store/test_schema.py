"""Promises about the schema and the audit chain."""

from functools import partial
from pathlib import Path
from typing import Any

from tests.master_support import opened_store
from tests.support import schema
from windrow_master.app.tables import whole_schema
from windrow_master.store.engine import engines_of
from windrow_master.store.migrate import differences, upgrade
from windrow_master.store.unit import UnitOfWork


def test_sqlite_commits_to_disk_before_it_answers(tmp_path: Path) -> None:
    with opened_store(tmp_path) as store:
        modes = store.read_now(lambda uow: uow.connection.exec_driver_sql("PRAGMA journal_mode").scalar())
        with store._engines.writer.connect() as connection:
            synchronous = connection.exec_driver_sql("PRAGMA synchronous").scalar()
            foreign_keys = connection.exec_driver_sql("PRAGMA foreign_keys").scalar()

    assert (modes, synchronous, foreign_keys) == ("wal", 2, 1)


def act(reason: str, uow: UnitOfWork) -> None:
    uow.audit("me", "act", "it", reason)


def test_a_changed_audit_entry_is_found(tmp_path: Path) -> None:
    with opened_store(tmp_path) as store:
        for reason in ("one", "two", "three"):
            store.write_now(partial(act, reason), name="act")
        before = store.read_now(lambda uow: uow.audit_log.first_broken())
        store.write_now(
            lambda uow: uow.connection.exec_driver_sql("UPDATE audit SET reason = 'forged' WHERE reason = 'two'"),
            name="forge",
        )
        after = store.read_now(lambda uow: uow.audit_log.first_broken())

    assert before is None
    assert after == 3


def test_what_other_tests_are_laid_down_is_what_the_migrations_make(tmp_path: Path) -> None:
    dumps = []
    for name, make in (("migrated", upgrade), ("laid down", schema.lay_down), ("again", schema.lay_down)):
        engines = engines_of(f"sqlite:///{tmp_path / name}.sqlite3")
        make(engines.writer)
        make(engines.writer)
        assert differences(engines.writer, whole_schema()) == []
        with engines.writer.connect() as connection:
            made: Any = connection.connection.driver_connection
            dumps.append(list(made.iterdump()))
        engines.dispose()

    assert len(dumps[0]) > 50
    assert dumps[0] == dumps[1] == dumps[2]
