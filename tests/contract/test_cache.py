"""A transaction that remembers and holds rows back gives the answers of one that asks and sends at once.

The same random work is done twice in one store, with the cache and without, and taken back each time.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.exc import IntegrityError

from tests.master_support import opened_store
from windrow_master.clusters.tables import decisions
from windrow_master.store import store as store_module
from windrow_master.store.model import EventRow, Operation, OperationState
from windrow_master.store.prepared import Made, Upsert
from windrow_master.store.store import Store
from windrow_master.store.tables import audit, event_subjects, events, operations
from windrow_master.store.unit import UnitOfWork
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
)
LOOKS: Final[tuple[Step, ...]] = (
    *(Work.running, Work.running, Work.page, Work.one, Work.told, Work.decided, Work.subjects, Work.noted, Work.mine),
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
