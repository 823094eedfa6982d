"""A statement that SQLite's driver runs itself does and says what SQLAlchemy would."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Column, Integer, LargeBinary, MetaData, String, Table, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.types import JSON

from windrow_master.store import prepared
from windrow_master.store.engine import sqlite_engines
from windrow_master.store.prepared import Found, Made, Upsert, say

metadata = MetaData()
things = Table(
    "things",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("name", String(20), nullable=False, unique=True),
    Column("fields", JSON, nullable=False),
    Column("body", LargeBinary),
)
ADD = Made(insert(things), ("name", "fields", "body"))
GET = Made(select(things).where(things.c.name == bindparam("wanted")))
NAMED = Made(update(things).where(things.c.number == bindparam("was"), things.c.name != "kept").values(name="changed"))
PUT = Upsert(things, ["name"], ["fields", "body"])
ONE = {"name": "one", "fields": {"a": ["ü", 1, None]}, "body": b"\0\xff"}
TWO: dict[str, Any] = {"name": "two", "fields": {}, "body": None}


@pytest.fixture
def connection(tmp_path: Path):
    engines = sqlite_engines(tmp_path / "made.sqlite3")
    metadata.create_all(engines.writer)
    with engines.writer.begin() as opened:
        yield opened
    engines.dispose()


def test_what_it_writes_sqlalchemy_reads_and_the_other_way_round(connection):
    assert ADD.insert(connection, ONE) == 1
    connection.execute(insert(things), TWO)
    read = [dict(row._mapping) for row in connection.execute(select(things).order_by(things.c.number))]
    assert read == [{"number": 1, **ONE}, {"number": 2, **TWO}]
    assert [GET.row(connection, {"wanted": name}) for name in ("one", "two", "three")] == [*read, None]


def test_it_counts_what_it_changed_and_keeps_the_values_it_was_made_with(connection):
    ADD.run_all(connection, [ONE, TWO, TWO | {"name": "kept"}])
    assert [NAMED.run(connection, {"was": number}) for number in (1, 3, 4)] == [1, 0, 0]
    assert GET.row(connection, {"wanted": "changed"}) == {"number": 1, **ONE, "name": "changed"}


def test_an_upsert_changes_the_row_that_is_there(connection):
    PUT.run(connection, ONE)
    PUT.run(connection, ONE | {"fields": {"b": 2}, "body": None})
    assert GET.rows(connection, {"wanted": "one"}) == [{"number": 1, "name": "one", "fields": {"b": 2}, "body": None}]


def test_a_row_is_made_a_value_once_and_anew_when_it_has_changed(connection):
    read: list[dict[str, Any]] = []

    def value(row: Mapping[Any, Any]) -> dict[str, Any]:
        read.append(dict(row))
        return read[-1]

    found = Found(select(things).order_by(things.c.number), value)
    ADD.run_all(connection, [ONE, TWO])
    first = found.all(connection)
    assert first == read == [{"number": 1, **ONE}, {"number": 2, **TWO}]
    assert found.all(connection) == first
    assert len(read) == 2, "rows as they were are not read again"
    NAMED.run(connection, {"was": 2})
    assert found.all(connection) == [first[0], {"number": 2, **TWO, "name": "changed"}]
    assert len(read) == 3


def test_rows_come_in_the_order_of_their_values_where_one_is_named(connection):
    ADD.run_all(connection, [TWO | {"name": name} for name in ("b", "c", "a")])
    names = Found(select(things), lambda row: str(row["name"]), str)
    assert names.all(connection) == names.all(connection) == ["a", "b", "c"]


def test_what_was_rolled_back_is_not_remembered_as_what_is(connection):
    names = Found(select(things).where(things.c.number == bindparam("wanted")), lambda row: str(row["name"]))
    ADD.run(connection, TWO)
    say(connection, "SAVEPOINT part")
    NAMED.run(connection, {"was": 1})
    assert names.one(connection, {"wanted": 1}) == "changed"
    say(connection, "ROLLBACK TO SAVEPOINT part")
    assert names.one(connection, {"wanted": 1}) == "two"
    assert names.one(connection, {"wanted": 2}) is None


def test_not_more_rows_are_remembered_than_it_says(connection, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(prepared, "ROWS_KNOWN_MAX", 3)
    names = Found(select(things).order_by(things.c.number), lambda row: str(row["name"]))
    for number in range(20):
        ADD.run(connection, TWO | {"name": f"thing {number}"})
        assert len(names.all(connection)) == number + 1
    assert len(names._known) == 20, "all that it finds now is remembered"
    connection.execute(delete(things).where(things.c.number > 1))
    assert names.all(connection) == ["thing 0"]
    assert not names._known


def test_rows_that_are_large_are_forgotten_sooner(connection, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(prepared, "BYTES_KNOWN_MAX", 100)
    one = Found(select(things).where(things.c.number == bindparam("wanted")), lambda row: str(row["name"]))
    for number in range(1, 30):
        ADD.run(connection, {"name": f"thing {number}", "fields": {}, "body": bytes(40)})
        assert one.one(connection, {"wanted": number}) == f"thing {number}"
        assert len(one._known) <= 2
        assert one.one(connection, {"wanted": number}) == f"thing {number}"


def test_what_the_driver_refuses_is_told_as_sqlalchemy_tells_it(connection):
    ADD.run(connection, ONE)
    with pytest.raises(IntegrityError) as refused:
        ADD.run(connection, ONE)
    assert getattr(refused.value.orig, "sqlite_errorname", "") == "SQLITE_CONSTRAINT_UNIQUE"
    with pytest.raises(OperationalError):
        say(connection, "RELEASE SAVEPOINT never_begun")


def test_a_savepoint_takes_back_what_was_written_in_it(connection):
    say(connection, "SAVEPOINT part")
    ADD.run(connection, ONE)
    say(connection, "ROLLBACK TO SAVEPOINT part")
    say(connection, "RELEASE SAVEPOINT part")
    assert connection.execute(select(things)).all() == []
