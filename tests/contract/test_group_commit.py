"""Functions that share a commit leave, return and raise what they would each in a transaction of its own.

Random functions, of which some fail, are run one by one and then together on the same empty tables.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Connection, delete, insert, select, text
from sqlalchemy.exc import IntegrityError, OperationalError

from tests.contract.test_cache import BY_ID, KNOWN, SERVED, Work
from tests.master_support import opened_store
from windrow_master.clusters.tables import decisions
from windrow_master.loops import Boundary
from windrow_master.store import prepared, unit
from windrow_master.store.executors import InlineExecutor
from windrow_master.store.store import Store
from windrow_master.store.tables import audit, event_subjects, events, operations
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, StorageFailed

SEEDS: Final = 30
JOBS: Final = 7
CONFLICT: Final = ("Conflict", "as planned [conflict]")
TABLES: Final = (event_subjects, events, operations, decisions, audit)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=SERVED)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    with opened_store(tmp_path, database=url, executor=InlineExecutor()) as opened:
        yield opened


def _ends_well(work: Work) -> None:
    """It reads what those before it may have made the transaction know."""
    found = [BY_ID.one(work.uow.connection, f"operation_{number:04d}") for number in range(1, 9)]
    work.uow.audit("me", f"found {found}", "it")


def _fails(work: Work) -> None:
    raise Conflict("as planned")


def _notes_and_fails(work: Work) -> None:
    """The transaction knows how rows will be that are not written."""
    for number in range(8):
        work.made = number
        work.known_kind()
    _fails(work)


def _twice(work: Work) -> None:
    """A row whose key is there already, of this function or of one before it: held back."""
    for _ in range(2):
        work.uow.operations.add(work.operation("a", "twice"))


def _maybe_twice(work: Work) -> None:
    work.uow.operations.add(work.operation("b", f"maybe_{work.rng.randint(1, 3)}"))


def _gone(work: Work) -> None:
    KNOWN.run(work.uow.connection, {"was_id": work.rng.choice(("nobody", "operation_0001")), "kind": "a"})


def _passes_over(work: Work) -> None:
    """An error of the database that nobody hears of. PostgreSQL ends the transaction with it."""
    row = {"event_number": -1, "subject": "nobody's"}
    with pytest.raises(IntegrityError):
        work.uow.connection.execute(insert(event_subjects).values(row))


def _asks_wrongly(work: Work) -> None:
    """A read that the database refuses."""
    work.uow.connection.execute(text("SELECT no_such_column FROM operations"))


End = Callable[[Work], None]
AT_ONCE: Final[tuple[End, ...]] = (_ends_well, _ends_well, _fails, _notes_and_fails)
"""Ends that are known when the function ends: nothing is run again for these."""
ENDS: Final[tuple[End, ...]] = (*AT_ONCE, _twice, _maybe_twice, _maybe_twice, _gone, _passes_over, _asks_wrongly)


@dataclass
class Told:
    """All that a store said of its commits."""

    said: list[str]

    def job(self, seed: int, number: int) -> Callable[[UnitOfWork], Any]:
        """The function of one number: a few random steps, and how it ends."""

        def run(uow: UnitOfWork) -> Any:
            work = Work(uow, 1000 * seed + number)
            work.made = number // 2 % 2 * 20  # so that some have the same ids
            ends = work.rng.choice(ENDS if seed % 2 else AT_ONCE)
            early = work.rng.random() < 0.3
            if early:
                ends(work)
            said = work.steps(work.rng.randint(0, 6))
            uow.event("done", (f"job {number}",), "done")
            uow.audit("me", "done", f"job {number}")
            uow.after_commit(lambda: self.said.append(f"committed {number}"))
            if not early:
                ends(work)
            return said

        return run


def _judged(outcome: Any) -> Any:
    return (type(outcome).__name__, str(outcome)[:60]) if isinstance(outcome, BaseException) else outcome


def _alone(store: Store, job: Callable[[UnitOfWork], Any]) -> Any:
    try:
        return store.write_now(job, name="test")
    except Exception as error:
        return error


def _emptied(store: Store) -> None:
    def empty(uow: UnitOfWork) -> None:
        for table in TABLES:
            uow.connection.execute(delete(table))

    store.write_now(empty, name="empty")
    store._chain.value = None


def _left(uow: UnitOfWork) -> list[Any]:
    """All rows but their numbers, in the order of those."""
    found = list[Any]()
    for table in TABLES:
        query = select(*(column for column in table.c if column.name not in ("number", "event_number", "id")))
        rows = [str(row) for row in uow.connection.execute(query.order_by(*table.primary_key))]
        found.append(sorted(rows) if table is event_subjects else rows)
    told = select(event_subjects.c.subject, events.c.kind, events.c.text).join(
        events, events.c.number == event_subjects.c.event_number
    )
    return [*found, sorted(str(row) for row in uow.connection.execute(told))]


async def test_a_batch_of_which_some_fail_leaves_what_each_would_alone(store: Store) -> None:
    told = Told([])
    store.on_event(lambda row: told.said.append(f"{row.kind} {row.subjects}"))
    for seed in range(SEEDS):
        found = []
        for is_shared in (False, True):
            _emptied(store)
            told.said.clear()
            commits, jobs = store.figures.commits, [told.job(seed, number) for number in range(JOBS)]
            if is_shared:
                writes = (store.write(job, name="test") for job in jobs)
                outcomes = await asyncio.gather(*writes, return_exceptions=True)
                assert store.figures.commits == commits + 1
            else:
                outcomes = [_alone(store, job) for job in jobs]
            found.append(([_judged(one) for one in outcomes], store.read_now(_left), list(told.said)))
            assert store.read_now(lambda uow: uow.audit_log.first_broken()) is None
        assert found[0] == found[1], f"seed {seed}"


async def test_functions_that_only_hold_rows_back_cost_the_statements_of_one_even_where_some_fail(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write_now(lambda uow: Work(uow, 0).add_operation(), name="test")

    def changes(uow: UnitOfWork) -> Any:
        found = BY_ID.one(uow.connection, "operation_0001") or ()
        uow.audit("me", "act", f"{found}")
        KNOWN.run(uow.connection, {"was_id": "operation_0001", "kind": "known"})
        BY_ID.note(uow.connection, "operation_0001", [(*found[:2], "known", *found[3:])])
        raise Conflict("as planned")

    def notes(uow: UnitOfWork) -> Any:
        found = BY_ID.one(uow.connection, "operation_0001")
        uow.audit("me", "act", "it")
        return found

    said = list[str]()
    run = prepared._cursor

    def counted(connection: Any, words: str, *values: Any, **how: Any) -> Any:
        said.append(words.partition(" ")[0])
        return run(connection, words, *values, **how)

    before = store.read_now(lambda uow: BY_ID.one(uow.connection, "operation_0001"))
    monkeypatch.setattr(prepared, "_cursor", counted)
    writes = (store.write(one, name="test") for one in (notes, changes, notes, changes, notes))
    found = await asyncio.gather(*writes, return_exceptions=True)
    monkeypatch.undo()

    assert [_judged(one) for one in found] == [before, CONFLICT, before, CONFLICT, before]
    assert "SAVEPOINT" not in said
    assert said.count("INSERT") == 1
    assert len(store.read_now(lambda uow: uow.audit_log.list("it"))) == 3


async def test_a_function_whose_savepoint_could_not_begin_leaves_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    say, fails = prepared.say, ["SAVEPOINT part"]

    def busy(connection: Connection, words: str) -> None:
        if words in fails:
            fails.remove(words)
            raise OperationalError(words, None, Exception("busy"))
        say(connection, words)

    def writes(uow: UnitOfWork) -> None:
        with suppress(OperationalError):
            uow.connection.execute(delete(operations))
        uow.connection.execute(delete(operations))
        raise Conflict("as planned")

    def looks(uow: UnitOfWork) -> int:
        return len(uow.operations.running("a"))

    def adds(uow: UnitOfWork) -> None:
        uow.operations.add(Work(uow, 0).operation("a", "kept"))

    monkeypatch.setattr(unit, "say", busy)
    asked = (store.write(one, name="test") for one in (adds, writes, looks))
    found = await asyncio.gather(*asked, return_exceptions=True)

    assert ([_judged(one) for one in found], fails) == ([None, CONFLICT, 1], [])
    assert store.read_now(looks) == 1


async def test_a_savepoint_that_cannot_be_undone_keeps_no_lock_from_the_next_write(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    say = prepared.say

    def broken(connection: Connection, words: str) -> None:
        say(connection, words.replace("ROLLBACK TO SAVEPOINT part", "ROLLBACK TO SAVEPOINT nobody"))

    def writes(uow: UnitOfWork) -> None:
        uow.connection.execute(delete(operations))
        raise Conflict("as planned")

    def adds(uow: UnitOfWork) -> None:
        uow.operations.add(Work(uow, 0).operation("a", "kept"))

    monkeypatch.setattr(unit, "say", broken)
    found = await asyncio.gather(*[store.write(one, name="test") for one in (adds, writes)], return_exceptions=True)
    await store.write(adds, name="test")  # while the errors, and so the frames that met them, are kept

    assert [type(one) for one in found] == [StorageFailed, StorageFailed]


async def test_a_row_that_is_refused_while_a_later_function_runs_is_the_error_of_its_own(store: Store) -> None:
    def adds_twice(uow: UnitOfWork) -> None:
        for _ in range(2):
            uow.operations.add(Work(uow, 0).operation("a", "twice"))

    def reads(uow: UnitOfWork) -> int:
        return len(uow.operations.running("a"))

    writes = (store.write(one, name="test") for one in (reads, adds_twice, reads))
    found = await asyncio.gather(*writes, return_exceptions=True)

    assert [_judged(one)[0] if isinstance(one, Exception) else one for one in found] == [0, "IntegrityError", 0]


async def test_a_row_that_is_refused_is_no_error_within_a_later_function_and_counts_against_nothing_in_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    met, faults = list[object](), Boundary("test", ())
    monkeypatch.setattr(faults, "crashed", lambda *item: met.append(item))

    def adds_twice(uow: UnitOfWork) -> None:
        for _ in range(2):
            uow.operations.add(Work(uow, 0).operation("a", "twice"))

    def looks(uow: UnitOfWork) -> str:
        for name in ("first", "second"):
            with faults.around(name), uow.attempt():
                uow.audit("me", "look", name)
        return "looked"

    def reads(uow: UnitOfWork) -> str:
        try:
            uow.operations.running("a")
        except Exception as error:
            met.append(str(error))
        return "read"

    writes = (store.write(one, name="test") for one in (adds_twice, looks, adds_twice, reads))
    refused, *said = await asyncio.gather(*writes, return_exceptions=True)
    assert isinstance(refused, IntegrityError) and isinstance(said.pop(1), IntegrityError)
    assert said == ["looked", "read"]
    assert met == []
