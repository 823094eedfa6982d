"""A transaction asks nothing twice and sends rows late, and nobody can tell."""

import gc
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Table, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql import visitors

from tests.master_support import ManualClock, opened_store
from windrow_master.app.tables import whole_schema
from windrow_master.store import prepared
from windrow_master.store.cache import tables_in
from windrow_master.store.prepared import Made
from windrow_master.store.store import Store
from windrow_master.store.tables import operations
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import AccountId

OWNER = AccountId("account_1")


@pytest.fixture
def store(tmp_path: Path):
    with opened_store(tmp_path, ManualClock()) as opened:
        yield opened


@pytest.fixture
def sent(monkeypatch) -> list[str]:
    """The statements that the driver is given."""
    found, run = list[str](), prepared._cursor

    def cursor(connection: Any, text: str, *more: Any, **how: Any) -> Any:
        found.append(text)
        return run(connection, text, *more, **how)

    monkeypatch.setattr(prepared, "_cursor", cursor)
    return found


def _running(uow: UnitOfWork) -> list[str]:
    return [one.kind for one in uow.operations.running("it")]


def test_what_is_read_twice_is_asked_once_until_it_is_written(store: Store, sent: list[str]) -> None:
    def change(uow: UnitOfWork) -> tuple[list[str], ...]:
        before = _running(uow), _running(uow)
        asked = sum("FROM operations" in one for one in sent)
        uow.operation("first", "it", OWNER, "me")
        after = _running(uow), _running(uow)
        assert (asked, sum("FROM operations" in one for one in sent)) == (1, 2)
        return before + after

    assert store.write_now(change, name="test") == ([], [], ["first"], ["first"])


def test_an_answer_that_its_reader_changes_is_as_it_was_for_the_next(store: Store) -> None:
    def change(uow: UnitOfWork) -> None:
        operation = uow.operation("first", "it", OWNER, "me")
        uow.operations.running("it").clear()  # type: ignore[attr-defined]
        assert _running(uow) == ["first"]
        assert uow.operations.get(operation.id) == uow.operations.get(operation.id)

    store.write_now(change, name="test")


def test_rows_of_a_table_go_together_and_in_their_order(store: Store, sent: list[str]) -> None:
    def change(uow: UnitOfWork) -> None:
        for number in range(3):
            uow.audit("me", f"act.{number}", "it")
            uow.event(f"kind.{number}", ("it", "other"), "said")

    store.write_now(change, name="test")
    assert sum("INSERT INTO audit" in one for one in sent) == 1
    assert sum("INSERT INTO event_subjects" in one for one in sent) == 1
    read = store.read_now(
        lambda uow: (uow.audit_log.list("it"), uow.events.after(0, "it"), uow.audit_log.first_broken())
    )
    assert [one.action for one in read[0]] == ["act.0", "act.1", "act.2"]
    assert [(one.kind, one.subjects) for one in read[1]] == [(f"kind.{n}", ("it", "other")) for n in range(3)]
    assert read[2] is None, "the chain holds"


def test_listeners_are_told_the_numbers_that_events_got(store: Store) -> None:
    told = list[int]()
    store.on_event(lambda row: told.append(row.number))

    def change(uow: UnitOfWork) -> None:
        for _ in range(3):
            uow.event("kind", ("it",), "said")

    store.write_now(change, name="test")
    assert told == [one.number for one in store.read_now(lambda uow: uow.events.after(0, "it"))]


def test_statements_of_sqlalchemy_see_late_rows_and_are_seen(store: Store) -> None:
    def change(uow: UnitOfWork) -> None:
        uow.operation("first", "it", OWNER, "me")
        assert uow.connection.execute(select(operations.c.kind)).scalars().all() == ["first"]
        assert _running(uow) == ["first"]
        uow.connection.execute(update(operations).values(kind="second"))
        assert _running(uow) == ["second"]
        uow.operation("third", "it", OWNER, "me")
        uow.connection.execute(update(operations).values(kind="same"))

    store.write_now(change, name="test")
    assert store.read_now(_running) == ["same", "same"]


def test_a_part_that_is_undone_leaves_no_row_and_no_answer(store: Store) -> None:
    def change(uow: UnitOfWork) -> None:
        uow.operation("kept", "it", OWNER, "me")
        with pytest.raises(KeyError), uow.attempt():
            uow.operation("undone", "it", OWNER, "me")
            uow.event("undone", ("it",), "said")
            assert len(_running(uow)) == 2
            uow.operation("never sent", "it", OWNER, "me")
            raise KeyError
        assert _running(uow) == ["kept"]

    store.write_now(change, name="test")
    assert store.read_now(_running) == ["kept"]
    assert store.read_now(lambda uow: uow.events.after(0, "it")) == []


async def test_a_late_row_that_is_refused_fails_its_own_function_alone(store: Store) -> None:
    def twice(uow: UnitOfWork) -> None:
        operation = uow.operation("first", "it", OWNER, "me")
        uow.operations.add(operation)

    with pytest.raises(IntegrityError):
        await store.write(twice, name="bad")
    await store.write(lambda uow: uow.operation("other", "it", OWNER, "me"), name="good")
    assert store.read_now(_running) == ["other"]


def test_each_statement_knows_the_tables_that_it_names() -> None:
    whole_schema()
    for made in [one for one in gc.get_objects() if isinstance(one, Made)]:
        tables = {one.name for one in visitors.iterate(made._statement) if isinstance(one, Table)}
        if tables and tables <= whole_schema().tables.keys():
            text = str(made._statement.compile())
            assert tables <= tables_in(text), text
