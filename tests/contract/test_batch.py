"""Rows written by one statement on PostgreSQL: the same rows, and the same errors, as if written one by one."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Column, Float, LargeBinary, MetaData, Table, bindparam, insert, select, update
from sqlalchemy.exc import DataError, IntegrityError, ProgrammingError
from sqlalchemy.types import JSON, BigInteger, Boolean, String

from tests.master_support import opened_store
from windrow_master.app.tables import whole_schema
from windrow_master.clusters.tables import decisions
from windrow_master.market.tables import balances
from windrow_master.store.batch import ROWS_MAX
from windrow_master.store.prepared import Made, Upsert
from windrow_master.store.store import Store
from windrow_master.store.tables import operations
from windrow_master.store.unit import UnitOfWork
from windrow_master.watch.tables import alerts
from windrow_proto.errors import Conflict
from windrow_proto.model import Kind

pytestmark = pytest.mark.proves("stores on a real PostgreSQL")
TEXTS: Final = ("", "null", 'a "quoted" \\ path', "\\x00", "%s %(given_rows)s {}", "\u2028\x01\t\n", "日本 🌾", "'; --")
VALUES: Final[tuple[Any, ...]] = (None, {}, [], {"a": None, "b": [1, 2.5, True, 'x "\\ \u2028 🌾']}, "text", 0, False)
ADD: Final = Made(insert(operations), operations.c.keys())
MOVE: Final = Made(
    update(balances)
    .where(balances.c.account == bindparam("wanted"))
    .values(balance=balances.c.balance + bindparam("moved", type_=BigInteger))
)
DETAIL: Final = Made(
    update(operations).where(operations.c.id == bindparam("was_id"), operations.c.kind == bindparam("was_kind")),
    ("error_detail",),
    is_late=True,
    refused="It is another one.",
)


@pytest.fixture
def store(postgres_url: str, tmp_path: Path) -> Iterator[Store]:
    with opened_store(tmp_path, database=postgres_url) as opened:
        yield opened


def _value(column: Column[Any], place: int) -> Any:
    if column.nullable and place % 3 == 1:
        return None
    match column.type:
        case JSON():
            return VALUES[place % len(VALUES)]
        case String(length=most):
            text = f"{TEXTS[place % len(TEXTS)]}{place}"
            return text if most is None else text[-most:]
        case LargeBinary():
            return bytes((0, 255, place, 92))
        case Boolean():
            return place % 2 == 0
        case Float():
            return (0.1, -1e300, math.inf, 1e16)[place % 4]
        case _:
            return (place, -place, 2**63 - 1 - place, -(2**63) + place)[place % 4]


def _rows(table: Table, count: int) -> list[dict[str, Any]]:
    columns = [column for column in table.c if column is not table.autoincrement_column]
    return [{column.name: _value(column, row + place) for place, column in enumerate(columns)} for row in range(count)]


def _all(uow: UnitOfWork, table: Table) -> list[tuple[Any, ...]]:
    number = table.autoincrement_column
    columns = [column for column in table.c if column is not number]
    rows = uow.connection.execute(select(*columns).order_by(*([number] if number is not None else [])))
    return sorted(rows, key=repr) if number is None else [tuple(row) for row in rows]


def _written(uow: UnitOfWork, table: Table, rows: Sequence[Mapping[str, Any]], *, together: bool) -> list[Any]:
    """The rows of a table after these were added, which are then taken back."""
    made, found = Made(insert(table), list(rows[0])), list[Any]()
    with pytest.raises(KeyError), uow.attempt():
        for some in [rows] if together else [[row] for row in rows]:
            made.run_all(uow.connection, some)
        found = _all(uow, table)
        raise KeyError
    return found


def test_rows_of_every_table_that_are_written_together_are_those_written_one_by_one(store: Store) -> None:
    def check(uow: UnitOfWork) -> None:
        for table in whole_schema().sorted_tables:
            kept = "INCLUDING DEFAULTS INCLUDING IDENTITY"  # and no rule about its rows: they may say anything
            uow.connection.exec_driver_sql(f"CREATE TEMPORARY TABLE {table.name} (LIKE {table.name} {kept})")
            rows = _rows(table, 9)
            assert _written(uow, table, rows, together=True) == _written(uow, table, rows, together=False), table.name

    store.write_now(check, name="check")


def test_a_text_that_the_server_does_not_hold_is_refused_as_when_it_is_alone(store: Store) -> None:
    def add(uow: UnitOfWork, *details: str) -> None:
        row = _rows(operations, 1)[0]
        ADD.run_all(uow.connection, [row | {"id": f"op{n}", "error_detail": said} for n, said in enumerate(details)])

    def check(uow: UnitOfWork) -> None:
        for bad in ("a\x00b", "\ud800"):
            refused = list[tuple[type[Exception], str]]()
            for details in ((bad,), ("good", bad, "good")):
                with pytest.raises((DataError, UnicodeEncodeError)) as found, uow.attempt():
                    add(uow, *details)
                refused.append((type(found.value), str(getattr(found.value, "orig", ""))))
            assert refused[0] == refused[1]
        add(uow, "the letters \\u0000 alone", "good")
        assert len(_all(uow, operations)) == 2

    store.write_now(check, name="check")


def test_rows_are_numbered_in_their_order_however_many_there_are(store: Store) -> None:
    count, told = 2 * ROWS_MAX + 2, list[int]()

    def add(uow: UnitOfWork) -> None:
        for place in range(count):
            uow.audit("me", "act", f"it/{place}")
            uow.event("kind", [f"it/{place}"], str(place))
        uow.after_commit(lambda: told.extend(event.number for event in uow.told))

    store.write_now(add, name="add")
    assert told == sorted(set(told)) and len(told) == count
    with_number = store.read_now(lambda uow: uow.events.after(told[0] - 1, limit=count))
    assert [(event.number, event.text) for event in with_number] == [(told[n], str(n)) for n in range(count)]
    assert store.read_now(lambda uow: uow.audit_log.first_broken()) is None
    assert len(store.read_now(lambda uow: uow.audit_log.list(limit=2 * count))) > count


def test_a_row_that_changes_more_than_once_has_all_changes_in_their_order(store: Store) -> None:
    put = Upsert(decisions, ["cluster_id", "at_ns"], ["engine", "record"], is_late=True)

    def check(uow: UnitOfWork) -> None:
        uow.connection.execute(insert(balances), [{"account": name, "balance": 1} for name in "ab"])
        moves = zip("abab", (1, 2, 4, 8), strict=True)
        MOVE.run_all(uow.connection, [{"wanted": name, "moved": moved} for name, moved in moves])
        assert _all(uow, balances) == [("a", 6), ("b", 11)]
        for place, name in enumerate("aab"):
            put.run(uow.connection, {"cluster_id": name, "at_ns": 1, "engine": place, "record": b"%d" % place})
        uow.flush()
        assert [tuple(row) for row in _all(uow, decisions)] == [("a", 1, 1, b"1"), ("b", 1, 2, b"2")]

    store.write_now(check, name="check")


@pytest.mark.parametrize("refused", ["another", "missing", ""])
def test_one_row_of_many_that_is_not_as_it_was_known_is_refused(store: Store, refused: str) -> None:
    rows = [{"was_id": row["id"], "was_kind": row["kind"], "error_detail": "new"} for row in _rows(operations, 5)]
    rows[3] |= {"another": {"was_kind": "other"}, "missing": {"was_id": "none"}, "": {}}[refused]

    def change(uow: UnitOfWork) -> None:
        DETAIL.run_all(uow.connection, rows)

    store.write_now(lambda uow: ADD.run_all(uow.connection, _rows(operations, 5)), name="add")
    if refused:
        with pytest.raises(Conflict, match="another one"):
            store.write_now(change, name="change")
    else:
        store.write_now(change, name="change")
    found = store.read_now(lambda uow: uow.connection.scalars(select(operations.c.error_detail)).all())
    assert (found == ["new"] * 5) is not bool(refused)


def test_rows_that_make_room_for_each_other_are_written_in_their_order(store: Store) -> None:
    """The rule about them may be of only some rows, or be their key."""
    end = Made(update(alerts).where(alerts.c.alert_id == bindparam("was_id")), ("resolved_at_ns",))
    rename = Made(update(balances).where(balances.c.account == bindparam("was")), ("account",))
    count, row = 300, _rows(alerts, 1)[0] | {"rule": "a", "resolved_at_ns": 1}

    def check(uow: UnitOfWork) -> None:
        rows = [row | {"alert_id": f"{place:04d}", "cause": f"{place}"} for place in range(count)]
        rows += [row | {"alert_id": "to_open", "cause": "it"}, row | {"alert_id": "to_end", "cause": "it"}]
        rows[-1]["resolved_at_ns"] = None
        Made(insert(alerts), list(row)).run_all(uow.connection, rows)
        uow.connection.exec_driver_sql("ANALYZE alerts")
        ends = [{"was_id": name, "resolved_at_ns": at_ns} for name, at_ns in (("to_end", 9), ("to_open", None))]
        end.run_all(uow.connection, ends)
        uow.connection.execute(insert(balances), [{"account": name, "balance": n} for n, name in enumerate("ab")])
        rename.run_all(uow.connection, [{"was": "b", "account": "c"}, {"was": "a", "account": "b"}])
        assert _all(uow, balances) == [("b", 0), ("c", 1)]

    store.write_now(check, name="check")


def test_values_of_a_kind_that_the_driver_makes_another_of_are_so_for_many_too(store: Store) -> None:
    class Odd(float):
        def __repr__(self) -> str:
            return "odd"

    def check(uow: UnitOfWork) -> None:
        table = Table("odd", MetaData(), Column("figure", Float), Column("data", LargeBinary), prefixes=["TEMPORARY"])
        table.create(uow.connection)
        add = Made(insert(table), ("figure", "data"))
        good = [{"figure": one, "data": b"x"} for one in (Odd(1.5), 3, Kind.RECEIPT)]
        assert _written(uow, table, good, together=True) == _written(uow, table, good, together=False)
        for bad in (3, True, [1]):
            with pytest.raises((TypeError, ProgrammingError)), uow.attempt():
                add.run_all(uow.connection, [{"figure": 1.0, "data": bad}] * 2)

    store.write_now(check, name="check")


def test_a_key_that_is_there_is_the_same_error_for_many(store: Store) -> None:
    def check(uow: UnitOfWork) -> None:
        rows = _rows(operations, 3)
        with pytest.raises(IntegrityError, match="pk_operations"), uow.attempt():
            ADD.run_all(uow.connection, [*rows, rows[1]])
            uow.flush()
        assert not _all(uow, operations)

    store.write_now(check, name="check")
