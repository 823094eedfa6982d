"""A transaction that remembers and holds rows back gives the answers of one that asks and sends at once.

The same random work is done twice in one store, with the cache and without, and taken back each time.
"""

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.exc import IntegrityError

from tests.master_support import opened_store
from windrow_master.clusters.tables import decisions
from windrow_master.store import prepared
from windrow_master.store import store as store_module
from windrow_master.store.model import EventRow, Operation, OperationState
from windrow_master.store.prepared import ByKey, Found, Made, Upsert
from windrow_master.store.store import Store
from windrow_master.store.tables import audit, event_subjects, events, operations
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict
from windrow_proto.ids import AccountId, EventId, OperationId

SERVED = pytest.mark.proves("stores on a real PostgreSQL")
OWNER: Final = AccountId("account_1")
STEPS: Final = 40
SEEDS: Final = 60
PUT: Final = Upsert(decisions, ["cluster_id", "at_ns"], ["engine", "record"], is_late=True)
LATEST: Final = Made(select(decisions).where(decisions.c.cluster_id == bindparam("wanted")))
DROP: Final = Made(delete(operations).where(operations.c.subject == bindparam("wanted")))
DROP_EVENTS: Final = Made(delete(events).where(events.c.kind == bindparam("wanted")))
NAMES: Final = ("a", "b", "c")


def _said(row: Mapping[Any, Any]) -> tuple[Any, ...]:
    return row["id"], row["subject"], row["kind"], row["state"], row["error_detail"]


DETAIL: Final = Made(update(operations).where(operations.c.id == bindparam("was_id")), ("error_detail",), is_late=True)
MOVE: Final = Made(update(operations).where(operations.c.id == bindparam("was_id")), ("subject", "kind"), is_late=True)
KNOWN: Final = Made(
    update(operations).where(operations.c.id == bindparam("was_id")),
    ("kind",),
    is_late=True,
    refused="It is gone.",
)
BY_ID: Final = ByKey(select(operations), operations.c.id, _said, itemgetter(0))
BY_SUBJECT: Final = ByKey(select(operations), operations.c.subject, _said, itemgetter(1), itemgetter(0), BY_ID)

EVENTS: Final = Found(select(events).where(events.c.kind == bindparam("wanted")), dict)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=SERVED)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    with opened_store(tmp_path, database=url) as opened:
        yield opened


class TakenBack(Exception):
    """Ends a transaction with nothing of it kept; said: what it was answered."""

    def __init__(self, said: list[Any]) -> None:
        super().__init__()
        self.said = said


class Work:
    """Random steps by a seed; each says what it was answered."""

    def __init__(self, uow: UnitOfWork, seed: int) -> None:
        self.uow, self.rng, self.made = uow, random.Random(seed), 0

    def steps(self, count: int, depth: int = 0) -> list[Any]:
        """So many of them."""
        said = list[Any]()
        for _ in range(count):
            if depth < 2 and self.rng.random() < 0.12:
                said += self._part(depth)
            else:
                said.append(self.rng.choice(CHANGES if self.rng.random() < 0.5 else LOOKS)(self))
        return said

    def name(self) -> str:
        return self.rng.choice(NAMES)

    def _part(self, depth: int) -> list[Any]:
        """A part, which may fail of itself or by a row that is there twice; then it says nothing."""
        seed, ends = self.rng.random(), self.rng.choice(("well", "fails", "twice"))
        outer, self.rng = self.rng, random.Random(seed)  # where one ends early, the other goes on as it would have
        said, made = list[Any](), self.made
        try:
            with suppress(KeyError, IntegrityError), self.uow.attempt():
                inner = self.steps(6, depth + 1)
                if ends == "twice":
                    self.uow.operations.add(self.operation("a", f"twice_{made}"))
                    self.uow.operations.add(self.operation("a", f"twice_{made}"))
                    LOOKS[0](self)
                if ends == "fails":
                    raise KeyError
                said = inner
        finally:
            self.rng = outer
        return [ends, *said]

    def operation(self, subject: str, name: str = "") -> Operation:
        self.made += 1
        operation_id = OperationId(name or f"operation_{self.made:04d}")
        running = OperationState.RUNNING
        return Operation(operation_id, self.name(), subject, OWNER, "me", running, None, None, self.made, None)

    def add_operation(self) -> None:
        self.uow.operations.add(self.operation(self.name()))

    def finish(self) -> None:
        self.uow.operations.finish(OperationId(f"operation_{self.rng.randint(1, self.made + 1):04d}"), 7)

    def add_event(self) -> None:
        self.made += 1
        subjects = tuple(self.rng.sample(NAMES, 2))
        self.uow.events.append(EventRow(0, EventId(f"event_{self.made}"), 1, self.name(), subjects, "said", "me", {}))

    def put(self) -> None:
        self.made += 1
        values = {"cluster_id": self.name(), "at_ns": self.rng.randint(1, 2), "engine": 1, "record": b"%d" % self.made}
        PUT.run(self.uow.connection, values)

    def note(self) -> None:
        self.uow.audit("me", f"act.{self.name()}", "it")

    def raw_update(self) -> int:
        wanted = operations.c.subject == self.name()
        return self.uow.connection.execute(update(operations).where(wanted).values(kind=self.name())).rowcount

    def raw_delete(self) -> int:
        return self.uow.connection.execute(delete(events).where(events.c.kind == self.name())).rowcount

    def drop_events(self) -> int:
        return DROP_EVENTS.run(self.uow.connection, {"wanted": self.name()})

    def drop(self) -> int:
        return DROP.run(self.uow.connection, {"wanted": self.name()})

    def some_id(self) -> str:
        return f"operation_{self.rng.randint(1, self.made + 1):04d}"

    def late_detail(self) -> None:
        DETAIL.run(self.uow.connection, {"was_id": self.some_id(), "error_detail": f"{self.rng.random()}"})

    def late_move(self) -> None:
        MOVE.run(self.uow.connection, {"was_id": self.some_id(), "subject": self.name(), "kind": self.name()})

    def known_kind(self) -> None:
        """One that is there is written later, and the transaction knows already how it will be."""
        wanted, kind = self.some_id(), self.name()
        found = BY_ID.one(self.uow.connection, wanted)
        if found is not None:
            KNOWN.run(self.uow.connection, {"was_id": wanted, "kind": kind})
            BY_ID.note(self.uow.connection, wanted, [(*found[:2], kind, *found[3:])])

    def by_id(self) -> Any:
        return BY_ID.one(self.uow.connection, self.some_id())

    def by_subject(self) -> Any:
        return BY_SUBJECT.of(self.uow.connection, self.name())

    def by_subjects(self) -> Any:
        found = BY_SUBJECT.some(self.uow.connection, [*NAMES, "nobody", *(f"other {one}" for one in range(8))])
        return sorted(found.items())

    def running(self) -> Any:
        return self.uow.operations.running(self.name())

    def page(self) -> Any:
        return self.uow.operations.list(OWNER, limit=5)

    def one(self) -> Any:
        return self.uow.operations.get(OperationId(f"operation_{self.rng.randint(1, self.made + 1):04d}"))

    def told(self) -> Any:
        return [(one.id, one.subjects) for one in self.uow.events.after(0, self.name())]

    def decided(self) -> Any:
        rows = LATEST.rows(self.uow.connection, {"wanted": self.name()})
        return sorted((row["at_ns"], bytes(row["record"])) for row in rows)

    def subjects(self) -> Any:
        rows = self.uow.connection.execute(select(event_subjects.c.subject).order_by(event_subjects.c.subject))
        return rows.scalars().all()

    def noted(self) -> Any:
        return [(one.action, one.chain) for one in self.uow.audit_log.list("it")]

    def mine(self) -> Any:
        return self.uow.terms.is_mine(self.uow.epoch)


Step = Callable[[Work], Any]
CHANGES: Final[tuple[Step, ...]] = (
    *(Work.add_operation, Work.add_operation, Work.finish, Work.add_event, Work.add_event, Work.put, Work.put),
    *(Work.note, Work.raw_update, Work.raw_delete, Work.drop, Work.drop_events),
    *(Work.late_detail, Work.late_move, Work.known_kind),
)
LOOKS: Final[tuple[Step, ...]] = (
    *(Work.running, Work.running, Work.page, Work.one, Work.told, Work.decided, Work.subjects, Work.noted, Work.mine),
    *(Work.by_id, Work.by_id, Work.by_subject, Work.by_subjects),
)


def answers(store: Store, seed: int) -> list[Any]:
    """All that a transaction of these steps says, and all that it would commit."""

    def work(uow: UnitOfWork) -> None:
        said = Work(uow, seed).steps(STEPS)
        for table in (operations, events, event_subjects, decisions, audit):
            columns = [column for column in table.c if column.name not in ("number", "event_number")]
            said.append(sorted(map(str, uow.connection.execute(select(*columns)))))
        raise TakenBack(said)

    with pytest.raises(TakenBack) as found:
        store.write_now(work, name="test")
    return found.value.said


def test_random_work_is_answered_as_without_a_cache(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(SEEDS):
        cached = answers(store, seed)
        with monkeypatch.context() as patch:
            patch.setattr(store_module, "cached", lambda _connection, **_how: nullcontext())
            plain = answers(store, seed)
        assert cached == plain, f"seed {seed}"


def test_a_write_of_a_row_that_is_not_there_undoes_the_transaction_that_knew_it(store: Store) -> None:
    def work(uow: UnitOfWork) -> None:
        uow.audit("me", "act", "it")
        KNOWN.run(uow.connection, {"was_id": "operation_0001", "kind": "a"})

    with pytest.raises(Conflict, match="It is gone"):
        store.write_now(work, name="test")
    assert not store.read_now(lambda uow: uow.audit_log.list("it"))


def test_rows_that_are_asked_for_together_are_answered_one_by_one_without_a_statement(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(uow: UnitOfWork) -> list[Any]:
        steps = Work(uow, 0)
        for name in ("a", "b", "b"):
            uow.operations.add(steps.operation(name))
        BY_SUBJECT.some(uow.connection, NAMES)
        uow.operations.add(steps.operation("d"))  # of none of these
        monkeypatch.setattr(prepared, "_cursor", None)
        found = [[row[0] for row in BY_SUBJECT.of(uow.connection, name)] for name in NAMES]
        assert BY_ID.one(uow.connection, "operation_0003") is not None
        monkeypatch.undo()
        return found

    assert store.write_now(work, name="test") == [["operation_0001"], ["operation_0002", "operation_0003"], []]


def test_a_row_is_as_the_last_of_several_statements_wrote_it(store: Store) -> None:
    def work(uow: UnitOfWork) -> Any:
        steps, to = Work(uow, 0), uow.connection
        for _ in range(2):
            uow.operations.add(steps.operation("a"))
        MOVE.run(to, {"was_id": "operation_0001", "subject": "b", "kind": "first"})
        KNOWN.run(to, {"was_id": "operation_0002", "kind": "second"})
        MOVE.run(to, {"was_id": "operation_0002", "subject": "b", "kind": "last"})
        return BY_ID.one(to, "operation_0002")

    assert store.write_now(work, name="test")[2] == "last"


def test_a_row_that_was_read_before_gives_the_value_that_it_gave_then(store: Store) -> None:
    fields = {"a": "1"}
    store.write_now(lambda uow: uow.event("a", ["it"], "said", fields), name="test")
    ((first,), (again,)) = [store.read_now(lambda uow: EVENTS.all(uow.connection, {"wanted": "a"})) for _ in range(2)]
    assert again is first and first["fields"] == fields
    store.write_now(lambda uow: uow.connection.execute(update(events).values(text="changed")), name="test")
    (changed,) = store.read_now(lambda uow: EVENTS.all(uow.connection, {"wanted": "a"}))
    assert changed == first | {"text": "changed"}


def test_a_write_that_was_refused_is_not_forgotten_by_who_goes_on(store: Store) -> None:
    def begins_a_part(uow: UnitOfWork) -> None:
        with uow.attempt():
            uow.audit("me", "part", "it")

    def reads(uow: UnitOfWork) -> None:
        BY_ID.one(uow.connection, "operation_0001")

    def work(uow: UnitOfWork, step: Callable[[UnitOfWork], None]) -> None:
        uow.audit("me", "act", "it")
        KNOWN.run(uow.connection, {"was_id": "operation_0001", "kind": "a"})
        with suppress(Conflict):
            step(uow)

    for step in (begins_a_part, reads):
        with pytest.raises(Conflict, match="It is gone"):
            store.write_now(partial(work, step=step), name="test")
    assert not store.read_now(lambda uow: uow.audit_log.list("it"))


async def test_a_write_that_is_refused_is_the_error_of_its_job_alone(store: Store) -> None:
    def begin(uow: UnitOfWork) -> None:
        uow.operations.add(Work(uow, 0).operation("a"))

    def known(uow: UnitOfWork, *numbers: int) -> None:
        for number in numbers:
            KNOWN.run(uow.connection, {"was_id": f"operation_{number:04d}", "kind": f"{numbers}"})

    store.write_now(begin, name="test")

    def job(*numbers: int) -> Callable[[UnitOfWork], None]:
        return lambda uow: known(uow, *numbers)

    jobs = job(1), job(1, 2), job(1, 1), job(2), job(1)
    found = await asyncio.gather(*(store.write(one, name="test") for one in jobs), return_exceptions=True)
    assert [type(one) for one in found] == [type(None), Conflict, type(None), Conflict, type(None)]
    row = store.read_now(lambda uow: BY_ID.one(uow.connection, "operation_0001"))
    assert row is not None and row[2] == "(1,)"
