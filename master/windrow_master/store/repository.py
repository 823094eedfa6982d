"""Reads and writes the store's own tables, and is the base of what reads and writes those of the packages.

Rows go in and out as values of `model.py`.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    RowMapping,
    Table,
    Text,
    bindparam,
    cast,
    delete,
    func,
    insert,
    not_,
    or_,
    select,
    update,
)

from windrow_master.store.model import (
    CHAIN_START,
    AuditEntry,
    AuditQuery,
    EventRow,
    Operation,
    OperationState,
    RememberedAnswer,
)
from windrow_master.store.prepared import Found, Made, flat, page
from windrow_master.store.tables import audit, event_subjects, events, idempotency, leader, operations, terms
from windrow_proto.errors import Conflict
from windrow_proto.ids import AccountId, OperationId
from windrow_proto.units import SECOND

# Made once: building a statement costs more than running it, and these run with every write.
_SEAT: Final = select(leader.c.epoch, leader.c.beat)
# Held until the transaction ends: a new term waits for it, so what is written in this one is written before that one.
_MINE: Final = Made(
    select(leader.c.epoch).where(leader.c.epoch == bindparam("mine")).with_for_update(read=True, key_share=True)
)
_LAST_CHAIN: Final = select(audit.c.chain).order_by(audit.c.number.desc()).limit(1)
_ADD_AUDIT: Final = Made(
    insert(audit), ("at_ns", "epoch", "actor", "action", "subject", "reason", "fields", "chain"), is_late=True
)
_RUNNING: Final = Found(
    select(operations).where(
        operations.c.subject == bindparam("wanted"), operations.c.state == OperationState.RUNNING.value
    ),
    lambda row: _operation(row),
    attrgetter("id"),
)
_ADD_OPERATION: Final = Made(insert(operations), operations.c.keys(), is_late=True)
_GET_OPERATION: Final = Made(select(operations).where(operations.c.id == bindparam("wanted")))
_FINISH: Final = Made(
    update(operations).where(
        operations.c.id == bindparam("was_id"), operations.c.state == OperationState.RUNNING.value
    ),
    ("state", "error_code", "error_detail", "done_at_ns"),
)
WALK_ROWS: Final = 1_000
"""Entries of the audit log that are read at a time."""
_ADD_EVENT: Final = Made(insert(events), ("id", "at_ns", "kind", "actor", "text", "fields"))
_ADD_SUBJECT: Final = Made(insert(event_subjects), ("subject", "event_number"), is_late=True)


def with_text(table: Table, name: str) -> list[ColumnElement[Any]]:
    """The columns of a table for a select, this one of JSON as its text."""
    return [cast(one, Text).label(one.key) if one.key == name else one for one in table.c]


class Repository:
    """Reads and writes some tables in one transaction; `uow[ClusterRepository]` makes one."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection


class TermRepository(Repository):
    """The Master's terms, one row per start, numbered by the epoch; and the leader's row, which says whose is now."""

    def latest(self) -> int:
        """The epoch of whoever leads or led last; 0 before the first start."""
        return int(self._connection.execute(_SEAT).one().epoch)

    def is_mine(self, epoch: int) -> bool:
        """Return whether this epoch is still the leader's; while this transaction is open it stays so."""
        return _MINE.row(self._connection, {"mine": epoch}) is not None

    def begin(self, now_ns: int, version: str, holder: str, address: str, over: tuple[int, int] | None) -> int:
        """Begin a new epoch; returns it. over: epoch and beat of the leader as it was seen; None: whoever leads.

        Raises Conflict when that leader has moved since, or another took its place.
        """
        found = self._connection.execute(_SEAT.with_for_update()).one()
        if over is not None and over != (found.epoch, found.beat):
            raise Conflict("Another Master leads.", subject=f"term/{found.epoch}")
        epoch = int(found.epoch) + 1
        self._connection.execute(update(leader).values(epoch=epoch, beat=0, holder=holder, address=address))
        self._connection.execute(insert(terms).values(epoch=epoch, started_at_ns=now_ns, version=version))
        return epoch

    def begin_restored(self, at_least: int, now_ns: int, version: str, backup_at_ns: int) -> int:
        """Begin and end, on a restored database, a term above all that hosts may have seen; returns it. at_least: what
        is known of those; no Master starts more often than once a second, so the time in seconds is above all."""
        epoch = max(self.latest() + 1, at_least, now_ns // SECOND)
        self._connection.execute(update(leader).values(epoch=epoch, beat=0, holder="", address=""))
        self._connection.execute(
            insert(terms).values(
                epoch=epoch, started_at_ns=now_ns, stopped_at_ns=now_ns, version=version, backup_at_ns=backup_at_ns
            )
        )
        return epoch

    def backup_at_ns(self) -> int | None:
        """Return when the backup was made that this database was last restored from; None: it never was."""
        query = select(terms.c.backup_at_ns).where(terms.c.backup_at_ns.is_not(None)).order_by(terms.c.epoch.desc())
        found = self._connection.execute(query.limit(1)).scalar()
        return None if found is None else int(found)

    def first_at_ns(self) -> int:
        """When the first term began that is known: about when the market did."""
        return int(self._connection.scalar(select(func.min(terms.c.started_at_ns))) or 0)

    def end(self, epoch: int, now_ns: int) -> None:
        """Record an orderly stop and give the seat back; a term without an end ended by a crash."""
        self._connection.execute(update(terms).where(terms.c.epoch == epoch).values(stopped_at_ns=now_ns))
        self._connection.execute(update(leader).where(leader.c.epoch == epoch).values(holder=""))


class ChainHead:
    """The chain of the newest audit entry, kept by the only writer so that it is not read for each new one.

    None: not known, to be read. Whoever rolls back puts back what it was.
    """

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: bytes | None = None


class AuditRepository(Repository):
    """The audit log: appended to, read, verified; never changed, but for old entries that leave it for a file."""

    def __init__(self, connection: Connection, head: ChainHead) -> None:
        super().__init__(connection)
        self._head = head

    def append(self, entry: AuditEntry) -> None:
        """Add one entry; `number` and `chain` of the argument are ignored and computed here."""
        if self._head.value is None:
            last = self._connection.execute(_LAST_CHAIN).scalar()
            self._head.value = CHAIN_START if last is None else bytes(last)
        chain = entry.link(self._head.value)
        values = {
            "at_ns": entry.at_ns,
            "epoch": entry.epoch,
            "actor": entry.actor,
            "action": entry.action,
            "subject": entry.subject,
            "reason": entry.reason,
            "fields": dict(entry.fields),
            "chain": chain,
        }
        _ADD_AUDIT.run(self._connection, values)
        self._head.value = chain

    def list(self, subject: str | None = None, after: int = 0, limit: int = 100) -> Sequence[AuditEntry]:
        """Entries in order, from the one after number `after`."""
        query = select(audit).where(audit.c.number > after).order_by(audit.c.number).limit(limit)
        if subject is not None:
            query = query.where(audit.c.subject == subject)
        return [AuditEntry(**row._mapping) for row in self._connection.execute(query)]

    def newest(self, wanted: AuditQuery, before: int | None, limit: int) -> Sequence[AuditEntry]:
        """The latest entries first, from below number `before`."""
        query = select(audit).order_by(audit.c.number.desc()).limit(limit)
        if before is not None:
            query = query.where(audit.c.number < before)
        for column, value in ((audit.c.subject, wanted.subject), (audit.c.actor, wanted.actor)):
            if value is not None:
                query = query.where(column == value)
        if wanted.action is not None and wanted.action.endswith("."):
            query = query.where(audit.c.action.startswith(wanted.action, autoescape=True))
        elif wanted.action is not None:
            below = audit.c.action.startswith(f"{wanted.action}.", autoescape=True)
            query = query.where((audit.c.action == wanted.action) | below)
        if wanted.since_ns is not None:
            query = query.where(audit.c.at_ns >= wanted.since_ns)
        if wanted.until_ns is not None:
            query = query.where(audit.c.at_ns < wanted.until_ns)
        return [AuditEntry(**row._mapping) for row in self._connection.execute(query)]

    def get(self, number: int) -> AuditEntry | None:
        """One entry, or None."""
        row = self._connection.execute(select(audit).where(audit.c.number == number)).one_or_none()
        return None if row is None else AuditEntry(**row._mapping)

    def walk(self, after: int = 0) -> Iterator[AuditEntry]:
        """Every entry in order, from the one after number `after`, some at a time."""
        while found := self.list(None, after, WALK_ROWS):
            yield from found
            after = found[-1].number

    def drop(self, upto: int, most: int) -> int:
        """Remove the oldest entries up to this number, at most so many, which are kept elsewhere; returns how many."""
        oldest = select(audit.c.number).where(audit.c.number <= upto).order_by(audit.c.number).limit(most)
        return self._connection.execute(delete(audit).where(audit.c.number.in_(oldest))).rowcount

    def first_broken(self) -> int | None:
        """The number of the first entry whose chain does not hold; None when the whole log verifies."""
        previous = CHAIN_START
        for entry in self.walk():
            if entry.link(previous) != entry.chain:
                return entry.number
            previous = entry.chain
        return None


class EventRepository(Repository):
    """The events of all resources, each with the subjects it concerns."""

    def append(self, event: EventRow, numbered: Callable[[int], None] = lambda _: None) -> None:
        """Add one event. numbered: is told its number once it has one, before the commit."""
        values = {
            "id": event.id,
            "at_ns": event.at_ns,
            "kind": event.kind,
            "actor": event.actor,
            "text": event.text,
            "fields": dict(event.fields),
        }

        def add_subjects(number: int) -> None:
            rows = [{"subject": subject, "event_number": number} for subject in dict.fromkeys(event.subjects)]
            _ADD_SUBJECT.run_all(self._connection, rows)
            numbered(number)

        _ADD_EVENT.insert_late(self._connection, values, add_subjects)

    def newest(
        self,
        subject: str | None = None,
        before: int | None = None,
        limit: int = 100,
        kind: str | None = None,
        first: int | None = None,
        but: Sequence[str] = (),
        but_for: Sequence[str] = (),
    ) -> Sequence[EventRow]:
        """The latest events first, from below number `before` down to number `first`; of one kind, where it is given.
        but: how the kinds begin that are left out; but_for: kinds that begin so and are told all the same."""
        query = select(events).order_by(events.c.number.desc()).limit(limit)
        if kind is not None:
            query = query.where(events.c.kind == kind)
        if subject is not None:
            query = query.join(event_subjects).where(event_subjects.c.subject == subject)
        if before is not None:
            query = query.where(events.c.number < before)
        if first is not None:
            query = query.where(events.c.number >= first)
        if but:
            left_out = or_(*(events.c.kind.startswith(one, autoescape=True) for one in but))
            query = query.where(or_(events.c.kind.in_(but_for), not_(left_out)))
        return self._with_subjects(self._connection.execute(query).all())

    def number_at(self, at_ns: int) -> int:
        """The number from which on no event is older than this time; found by halving, for numbers grow with time."""
        low, high = 1, (self._connection.scalar(select(func.max(events.c.number))) or 0) + 1
        while low < high:
            middle = (low + high) // 2
            query = select(events.c.number, events.c.at_ns).where(events.c.number >= middle)
            row = self._connection.execute(query.order_by(events.c.number).limit(1)).one_or_none()
            if row is None or row.at_ns >= at_ns:
                high = middle
            else:
                low = int(row.number) + 1
        return low

    def after(
        self, number: int, subject: str | None = None, limit: int = 100, kinds: Collection[str] = ()
    ) -> Sequence[EventRow]:
        """Events in order, from the one after `number`; this is what a stream resumes from. kinds: empty: all."""
        query = select(events).where(events.c.number > number).order_by(events.c.number).limit(limit)
        if kinds:
            query = query.where(events.c.kind.in_(kinds))
        if subject is not None:
            query = query.join(event_subjects).where(event_subjects.c.subject == subject)
        return self._with_subjects(self._connection.execute(query).all())

    def _with_subjects(self, rows: Sequence[Row[tuple[object, ...]]]) -> Sequence[EventRow]:
        numbers = [row._mapping["number"] for row in rows]
        found: dict[int, list[str]] = {number: [] for number in numbers}
        query = select(event_subjects).where(event_subjects.c.event_number.in_(numbers))
        for subject, number in self._connection.execute(query):
            found[number].append(subject)
        return [_event(row._mapping, tuple(sorted(found[row._mapping["number"]]))) for row in rows]


def _event(row: RowMapping, subjects: tuple[str, ...]) -> EventRow:
    return EventRow(subjects=subjects, **row)


class OperationRepository(Repository):
    """Long actions, from 202 to their end."""

    def add(self, operation: Operation) -> None:
        """Add one; `uow.operation(...)` mints and adds."""
        _ADD_OPERATION.run(self._connection, flat(operation) | {"state": operation.state.value})

    def get(self, operation_id: OperationId) -> Operation | None:
        """One operation, or None."""
        row = _GET_OPERATION.row(self._connection, {"wanted": operation_id})
        return None if row is None else _operation(row)

    def running(self, subject: str, kind: str | None = None) -> Sequence[Operation]:
        """Return the operations under way on this subject, oldest first."""
        found = _RUNNING.all(self._connection, {"wanted": subject})
        return [operation for operation in found if kind is None or operation.kind == kind]

    def list(self, account_id: AccountId | None, before: str | None = None, limit: int = 100) -> Sequence[Operation]:
        """The latest first; of all accounts where `account_id` is None."""
        query = select(operations).order_by(operations.c.id.desc())
        if account_id is not None:
            query = query.where(operations.c.account_id == account_id)
        if before is not None:
            query = query.where(operations.c.id < before)
        return page(self._connection, query, _operation, limit)

    def finish(self, operation_id: OperationId, now_ns: int, error_code: str | None = None, detail: str = "") -> None:
        """End one that runs, well or with an error; one that has ended stays as it ended."""
        ended = {
            "state": (OperationState.SUCCEEDED if error_code is None else OperationState.FAILED).value,
            "error_code": error_code,
            "error_detail": detail if error_code is not None else None,
            "done_at_ns": now_ns,
        }
        _FINISH.run(self._connection, ended | {"was_id": operation_id})


def _operation(row: Mapping[Any, Any]) -> Operation:
    return Operation(**dict(row) | {"state": OperationState(row["state"])})


class IdempotencyRepository(Repository):
    """Answers remembered by account and Idempotency-Key."""

    def get(self, account_id: AccountId, key: str) -> RememberedAnswer | None:
        """Return the remembered answer, or None."""
        query = select(idempotency).where(idempotency.c.account_id == account_id, idempotency.c.key == key)
        row = self._connection.execute(query).one_or_none()
        if row is None:
            return None
        values = dict(row._mapping)
        return RememberedAnswer(**values | {"headers": values["headers"] or {}, "body": bytes(values["body"] or b"")})

    def count(self, account_id: AccountId) -> int:
        """Return how many keys of an account are remembered."""
        query = select(func.count()).select_from(idempotency).where(idempotency.c.account_id == account_id)
        return int(self._connection.scalar(query) or 0)

    def reserve(self, account_id: AccountId, key: str, request_sha256: bytes, epoch: int, now_ns: int) -> None:
        """Remember that a request has begun."""
        self._connection.execute(
            insert(idempotency).values(
                account_id=account_id, key=key, request_sha256=request_sha256, epoch=epoch, created_at_ns=now_ns
            )
        )

    def remember(self, account_id: AccountId, key: str, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Remember the answer of a request that has begun."""
        self._connection.execute(
            update(idempotency)
            .where(idempotency.c.account_id == account_id, idempotency.c.key == key)
            .values(status=status, headers=dict(headers), body=body)
        )

    def forget(self, account_id: AccountId, key: str) -> None:
        """Forget a request that changed nothing, so that it may be sent again."""
        self._connection.execute(
            delete(idempotency).where(idempotency.c.account_id == account_id, idempotency.c.key == key)
        )

    def forget_older(self, than_ns: int) -> None:
        """Forget what was asked before this wall time."""
        self._connection.execute(delete(idempotency).where(idempotency.c.created_at_ns < than_ns))
