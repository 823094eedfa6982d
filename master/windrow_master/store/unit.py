"""The unit of work: what one function sees of the store inside one savepoint.

`uow[ClusterRepository]` is a package's repository in this transaction; nothing in this file knows the packages.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, PendingRollbackError

from windrow_master.store.cache import FAULTS, Cache, NotAlone, cache_of
from windrow_master.store.messages import Fact, Messages, Question
from windrow_master.store.model import AuditEntry, EventRow, Operation, OperationState
from windrow_master.store.prepared import TransactionState, say, state_of
from windrow_master.store.repository import (
    AuditRepository,
    ChainHead,
    EventRepository,
    IdempotencyRepository,
    OperationRepository,
    Repository,
    TermRepository,
)
from windrow_proto.errors import StorageFailed
from windrow_proto.ids import AccountId, EventId, OperationId, mint

T = TypeVar("T")
R = TypeVar("R", bound=Repository)
MINT_BYTES = 10
"""The bytes of randomness that an id needs (windrow_proto.ids)."""


ORIGIN: Final[ContextVar[Mapping[str, str]]] = ContextVar("origin", default=MappingProxyType({}))
"""By which token and session, and from which address, an account asks for what is written now."""
DATABASE_FAULTS: Final = FAULTS
"""As there, for loops."""
ENDED: Final = "The database has ended the transaction. Nothing was changed."


class Part:
    """A part of a transaction that may fail alone. SQLAlchemy's own costs three times as much, and runs per record."""

    __slots__ = ("_cache", "_connection")

    def __init__(self, connection: Connection) -> None:
        """Begin it, after all that was asked for before."""
        self._connection, self._cache = connection, cache_of(connection)
        if self._cache is not None:
            self._cache.start(connection)
            self._cache.flush(connection)
        say(connection, "SAVEPOINT part")

    def keep(self) -> None:
        """End it; it is now as good as the rest of the transaction. Raises what its last statements do."""
        if self._cache is not None:
            self._cache.flush(self._connection)
        say(self._connection, "RELEASE SAVEPOINT part")

    def undo(self) -> None:
        """End it as if it had not been. Raises StorageFailed, and lets nothing more be done, where the database ended
        the whole transaction or is gone: what came after would be committed by itself."""
        if self._cache is not None:
            self._cache.drop()
        try:
            say(self._connection, "ROLLBACK TO SAVEPOINT part")
            say(self._connection, "RELEASE SAVEPOINT part")
        except (DBAPIError, PendingRollbackError) as error:
            with suppress(DBAPIError, PendingRollbackError):  # a connection that is let go may keep its locks for long
                say(self._connection, "ROLLBACK")
            self._connection.invalidate()
            raise StorageFailed(ENDED) from error


class LatePart(Part):
    """The part of one of the functions that share a transaction: it begins with the first of its writes that goes to
    the database, and leaves what it holds back to be sent with what the others do."""

    __slots__ = ("_is_begun", "_shared")

    def __init__(self, connection: Connection, shared: Cache) -> None:
        self._connection, self._cache, self._shared, self._is_begun = connection, shared, shared, False
        shared.may_fail_alone(self._begin)

    def _begin(self) -> None:
        say(self._connection, "SAVEPOINT part")
        self._is_begun = True

    def keep(self) -> None:
        """End it. Raises what those of its writes met that went to the database."""
        self._shared.check()
        self._shared.ends_well()
        if self._is_begun:
            say(self._connection, "RELEASE SAVEPOINT part")

    def undo(self) -> None:
        """As of Part. Raises NotAlone where it takes those before it along."""
        state = state_of(self._connection)
        if self._is_begun or state is TransactionState.ENDED:
            super().undo()
        elif state is TransactionState.FAILED:
            raise NotAlone
        else:
            self._shared.drop_own()


class UnitOfWork:
    """One function's view of the store: reads its own writes, commits or vanishes as a whole.

    now_wall_ns is read once per function. Callbacks of `after_commit` run on the loop after the commit, in order.
    """

    def __init__(
        self,
        connection: Connection,
        now_wall_ns: int,
        epoch: int,
        random_bytes: Callable[[int], bytes],
        messages: Messages,
        chain: ChainHead | None = None,
    ) -> None:
        self.connection = connection
        self.now_wall_ns = now_wall_ns
        self.epoch = epoch
        self.random_bytes = random_bytes
        self._messages = messages
        self.chain = chain or ChainHead()
        self.callbacks: list[Callable[[], None]] = []
        self.told: list[EventRow] = []
        self.origin: Mapping[str, str] = {}
        self._repositories: dict[type[Any], Any] = {}

    def __getitem__(self, kind: type[R]) -> R:
        """The repository of this type in this transaction."""
        found: R | None = self._repositories.get(kind)
        if found is None:
            found = self._repositories[kind] = kind(self.connection)
        return found

    def mint(self, prefix: str) -> str:
        """A new id of this kind."""
        return mint(prefix, self.now_wall_ns, self.random_bytes(MINT_BYTES))

    def publish(self, fact: Fact) -> None:
        """Tell the packages above in this transaction that something has happened."""
        self._messages.publish(self, fact)

    def ask(self, question: Question[T]) -> T:
        """Return a package above's answer to a question, in this transaction."""
        return self._messages.ask(self, question)

    def after_commit(self, callback: Callable[[], None]) -> None:
        """Call this on the loop once the transaction is on disk; never if it fails."""
        self.callbacks.append(callback)

    def flush(self) -> None:
        """Have the database do now what was only to be done before the commit; raises what that does."""
        if (cache := cache_of(self.connection)) is not None:
            cache.flush(self.connection)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """A part that may fail alone: what it wrote and wanted done vanishes when it raises; the rest goes on. Raises
        StorageFailed where it cannot, since the whole transaction is over."""
        callbacks, told, chain = len(self.callbacks), len(self.told), self.chain.value
        part = Part(self.connection)
        try:
            yield
            part.keep()
        except BaseException:
            del self.callbacks[callbacks:], self.told[told:]
            self.chain.value = chain
            part.undo()
            raise

    def audit(
        self, actor: str, action: str, subject: str, reason: str = "", fields: Mapping[str, str] | None = None
    ) -> None:
        """Write who did what and why, chained to all before it, in this transaction."""
        said = {**(self.origin if actor.startswith(("account/", "user/")) else {}), **(fields or {})}
        entry = AuditEntry(0, self.now_wall_ns, self.epoch, actor, action, subject, reason, said, b"")
        self.audit_log.append(entry)

    def event(
        self,
        kind: str,
        subjects: Sequence[str],
        text: str,
        fields: Mapping[str, str] | None = None,
        actor: str = "",
    ) -> None:
        """Write an event for the pages of its subjects; it is told to open streams after the commit."""
        row = EventRow(
            0,
            EventId(self.mint("event")),
            self.now_wall_ns,
            kind,
            tuple(dict.fromkeys(subjects)),
            text,
            actor,
            fields or {},
        )
        told, place = self.told, len(self.told)
        told.append(row)

        def numbered(number: int) -> None:
            told[place] = replace(row, number=number)

        self.events.append(row, numbered)

    def operation(self, kind: str, subject: str, account_id: AccountId, begun_by: str) -> Operation:
        """Begin a long action: the value that a 202 answers with. begun_by: the actor, who may read it, too."""
        operation = Operation(
            OperationId(self.mint("operation")),
            kind,
            subject,
            account_id,
            begun_by,
            OperationState.RUNNING,
            None,
            None,
            self.now_wall_ns,
            None,
        )
        self.operations.add(operation)
        return operation

    @cached_property
    def terms(self) -> TermRepository:
        return TermRepository(self.connection)

    @cached_property
    def audit_log(self) -> AuditRepository:
        return AuditRepository(self.connection, self.chain)

    @cached_property
    def events(self) -> EventRepository:
        return EventRepository(self.connection)

    @cached_property
    def operations(self) -> OperationRepository:
        return OperationRepository(self.connection)

    @cached_property
    def idempotency(self) -> IdempotencyRepository:
        return IdempotencyRepository(self.connection)
