"""Remembers within one transaction what was read, and holds writes back until something may look for them.

    select ─▶ answered before, and no row of it was written since? ─▶ the same answer
    write  ─▶ held back ─▶ such a row is read or changed, or the transaction ends ─▶ one executemany each

Several functions may share a transaction, and one may fail without the others. While none of its writes was sent to
the database, it is undone by dropping the rows that are held for it. Before its first write is sent, the rows of the
functions before it are sent, and a savepoint begins.

Most selects are about rows in which one column has one of a few values. A write of a row in which it has another one
changes nothing of their answers, and may wait until they are answered.

A bound cluster needs fifty statements, of which half ask again what was asked a moment ago, or write rows that nothing
reads before the commit.
"""

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Protocol

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import InterfaceError, InternalError, OperationalError, PendingRollbackError

from windrow_master.store.schema import metadata

ANSWERS_MAX: Final = 32_768
"""Answers that one transaction remembers, before all are forgotten. A full commit of 256 creations reads four hosts
ahead for each: 20,000 answers if every host has 16 slots."""
ROWS_MAX: Final = 16
"""Rows of an answer that is remembered: larger ones are read once, by a look at everything."""
LATE_MAX: Final = 4_096
"""Rows that are held back, before all are sent."""
_KEY: Final = "windrow_cache"
_WORD: Final = re.compile(r"[a-z_]+")
FAULTS: Final = (OperationalError, InterfaceError, InternalError, PendingRollbackError)
"""Errors that the database itself meets, whatever was asked of it."""
Bound = Any
Numbered = Callable[[int], None]
"""Is told the number that the database gave to a row."""
About = tuple[str, str, Collection[Any]]
"""The rows of a table in which a column has one of these values."""


class NotAlone(BaseException):
    """The functions of a transaction have to run again, one by one. Either one failed and cannot be undone without the
    others, or the database refused a row of an earlier one. A BaseException, so that the function which runs at that
    moment does not take it for its own error."""


class Write(Protocol):
    """A statement that writes one row of a table for each of its values. is_insert: a new one and nothing else."""

    table: str
    is_insert: bool

    def send(self, connection: Connection, rows: list[tuple[Bound, Numbered | None]]) -> None:
        """Run it for these; each that has a Numbered is told its number."""

    def values_of(self, connection: Connection, column: str, row: Bound) -> Collection[Any] | None:
        """Return the values that a column of the written row may have, before and after; None: any."""


@dataclass(slots=True)
class _Answers:
    """The keys of the answers that rows of one table are in. by_value: of those about a column, by its values."""

    of_any: set[Hashable] = field(default_factory=set)
    by_value: dict[str, dict[Any, set[Hashable]]] = field(default_factory=dict)


@dataclass(slots=True)
class _Held:
    """The values of one column in the first rows that a statement holds back. is_any: one of them may have any."""

    count: int = 0
    values: set[Any] = field(default_factory=set)
    is_any: bool = False


@dataclass(slots=True)
class Cache:
    """Of one transaction. Used from one thread. holds: it may hold rows back; one that only reads refuses each at
    once. locked: the ids of rows that it has locked and need not lock again."""

    holds: bool = True
    locked: set[str] = field(default_factory=set)
    late: dict[Write, list[tuple[Bound, Numbered | None]]] = field(default_factory=dict)
    _answers: dict[Hashable, list[Any]] = field(default_factory=dict)
    _of_table: dict[str, _Answers] = field(default_factory=dict)
    _held: dict[tuple[Write, str], _Held] = field(default_factory=dict)
    _writes: dict[str, int] = field(default_factory=dict)
    """By table, how many statements hold rows back."""
    _late_rows: int = 0
    _begin: Callable[[], None] | None = None
    """Begins the savepoint of the function that runs; None: it has begun, or there is to be none."""
    _before: dict[Write, int] = field(default_factory=dict)
    """As long as there is `_begin`: how many of the first rows of a statement are of functions before this one."""
    _sends_before: bool = False
    _failed: BaseException | None = None
    """The error with which the database refused held rows. They are lost: the transaction has to be undone."""

    def hold(self, connection: Connection, write: Write, row: Bound, numbered: Numbered | None = None) -> None:
        """Send this row later."""
        self.wrote(connection, write, row)
        if not self.holds:
            write.send(connection, [(row, numbered)])
            return
        table = write.table
        if self._writes.get(table, 0) > (write in self.late) and self._is_beside(connection, write, row):
            self.flush(connection, frozenset({table}))
        rows = self.late.get(write)
        if rows is None:
            rows = self.late[write] = []
            self._writes[table] = self._writes.get(table, 0) + 1
        if self._sends_before:  # what such a row brings with it is of the same function
            place = self._before.get(write, 0)
            rows.insert(place, (row, numbered))
            self._before[write] = place + 1
            self._summaries_end(write)
        else:
            rows.append((row, numbered))
        self._late_rows += 1
        if self._late_rows > LATE_MAX:
            self.flush(connection)

    def flush(self, connection: Connection, tables: frozenset[str] | None = None) -> None:
        """Send the rows that are held for these tables, and for the tables that they refer to; None: all. Raises the
        error of the database, also in each later call until the transaction is undone."""
        self.check()
        if not self.late:
            return
        wanted = None if tables is None else _with_above(tables)
        if self._begin is not None and not self._sends_before and self._has_own(wanted):
            self.start(connection)
        self._send(connection, wanted)

    def check(self) -> None:
        """Raise the error with which held rows were refused, if they were."""
        if self._failed is not None:
            raise self._failed

    def may_fail_alone(self, begin: Callable[[], None]) -> None:
        """A function begins. begin: called once, before the first of its writes goes to the database."""
        self._begin, self._before = begin, {one: len(rows) for one, rows in self.late.items()}

    def start(self, connection: Connection) -> None:
        """Something that the function writes goes to the database now. Raises as `flush`."""
        if self._begin is None:
            return
        self.check()
        self._send(connection, None)
        self._begin()
        self._begin = None  # not before: what did not begin cannot be undone

    def ends_well(self) -> None:
        """The function has ended: what it holds is sent with what others do."""
        self._begin = None

    def drop_own(self) -> None:
        """The function has failed before anything of it went to the database: forget what it holds."""
        for write, rows in list(self.late.items()):
            del rows[self._before.get(write, 0) :]
            if not rows:
                self._forget_write(write)
        self._held.clear()
        self._late_rows = sum(map(len, self.late.values()))
        self._begin = None
        self.forget()

    def _has_own(self, wanted: frozenset[str] | None) -> bool:
        before = self._before
        return any(
            len(rows) > before.get(one, 0) for one, rows in self.late.items() if wanted is None or one.table in wanted
        )

    def _send(self, connection: Connection, wanted: frozenset[str] | None) -> None:
        """Send what is held for these tables: of functions before this one alone, as long as this has not started."""
        is_before = self._begin is not None
        held: Mapping[Write, Any] = self._before if is_before else self.late
        while ready := [one for one in held if wanted is None or one.table in wanted]:
            first = min(ready, key=lambda one: len(_above(one.table)))  # what others refer to comes before them
            rows = self._taken(first, self._before.pop(first) if is_before else len(self.late[first]))
            was, self._sends_before = self._sends_before, is_before
            try:
                first.send(connection, rows)
            except BaseException as error:
                is_of_others = is_before and not isinstance(error, FAULTS)
                self._failed = NotAlone() if is_of_others else error
                if is_of_others:
                    raise self._failed from error
                raise
            finally:
                self._sends_before = was

    def _taken(self, write: Write, count: int) -> list[tuple[Bound, Numbered | None]]:
        """The first rows of a statement, which are held no longer."""
        rows = self.late[write]
        found, rows[:count] = rows[:count], []
        if not rows:
            self._forget_write(write)
        self._late_rows -= len(found)
        self._summaries_end(write)
        return found

    def _forget_write(self, write: Write) -> None:
        del self.late[write]
        self._writes[write.table] -= 1

    def _summaries_end(self, write: Write) -> None:
        for column in _columns(write.table):
            self._held.pop((write, column), None)

    def flush_about(self, connection: Connection, about: About) -> None:
        """Send them where one of them may be among these."""
        if self._writes.get(about[0]) and any(
            self._may_hold(connection, one, *about[1:]) for one in self._others(about[0])
        ):
            self.flush(connection, frozenset({about[0]}))

    def known(self, key: Hashable) -> list[Any] | None:
        """The answer to a select that was remembered."""
        return self._answers.get(key)

    def remember(self, key: Hashable, tables: Collection[str], answer: list[Any], about: About | None = None) -> None:
        """Keep the answer to a select until one of its tables is written. about: until one of these rows is."""
        if len(answer) > ROWS_MAX:
            return
        if len(self._answers) >= ANSWERS_MAX:
            self.forget()
        self._answers[key] = answer
        if about is None:
            for table in tables:
                self._of_table.setdefault(table, _Answers()).of_any.add(key)
            return
        table, column, values = about
        by_value = self._of_table.setdefault(table, _Answers()).by_value.setdefault(column, {})
        for value in values:
            by_value.setdefault(value, set()).add(key)

    def wrote(self, connection: Connection, write: Write, row: Bound) -> None:
        """Ask again what this row may be in."""
        found = self._of_table.get(write.table)
        if found is None:
            return
        self._drop(found.of_any)
        found.of_any.clear()
        for column, by_value in found.by_value.items():
            values = write.values_of(connection, column, row)
            for value in list(by_value) if values is None else values:
                self._drop(by_value.pop(value, ()))

    def forget(self, tables: Collection[str] | None = None) -> None:
        """Ask again what these tables have; None: whatever any has."""
        if tables is None:
            self._answers.clear()
            self._of_table.clear()
            return
        for table in tables:
            found = self._of_table.pop(table, _NONE)
            self._drop(found.of_any)
            for by_value in found.by_value.values():
                for keys in by_value.values():
                    self._drop(keys)

    def drop(self) -> None:
        """What was written is undone: send nothing of what is held back, and remember nothing."""
        self.late.clear()
        self._held.clear()
        self._writes.clear()
        self._late_rows, self._failed = 0, None
        self.locked.clear()
        self.forget()

    def _drop(self, keys: Iterable[Hashable]) -> None:
        for key in keys:
            self._answers.pop(key, None)

    def _others(self, table: str, but: Write | None = None) -> list[Write]:
        return [one for one in self.late if one.table == table and one is not but]

    def _is_beside(self, connection: Connection, write: Write, row: Bound) -> bool:
        """Return whether another statement holds what may be the same row: which comes first matters then."""
        others = [one for one in self._others(write.table, write) if not (one.is_insert and write.is_insert)]
        if not others:
            return False
        key = _key_of(write.table)
        values = None if key is None else write.values_of(connection, key, row)
        return key is None or any(self._may_hold(connection, one, key, values) for one in others)

    def _may_hold(self, connection: Connection, write: Write, column: str, values: Collection[Any] | None) -> bool:
        held, rows = self._held.setdefault((write, column), _Held()), self.late[write]
        for row, _ in rows[held.count :]:
            found = write.values_of(connection, column, row)
            held.is_any |= found is None
            held.values.update(found or ())
        held.count = len(rows)
        return held.is_any or values is None or not held.values.isdisjoint(values)


_NONE: Final = _Answers()


@contextmanager
def cached(connection: Connection, *, holds: bool = True) -> Iterator[None]:
    """Have a cache for the transaction on this connection. holds: as of Cache."""
    setattr(connection, _KEY, Cache(holds))
    try:
        yield
    finally:
        delattr(connection, _KEY)


def cache_of(connection: Connection) -> Cache | None:
    """The cache of the transaction on this connection, if it has one."""
    found: Cache | None = getattr(connection, _KEY, None)
    return found


def watch(engine: Engine) -> None:
    """Keep the caches of an engine's transactions right about what runs through SQLAlchemy itself."""
    event.listen(engine, "before_cursor_execute", _runs)


def _runs(connection: Connection, _cursor: object, statement: str, *_: object) -> None:
    found = cache_of(connection)
    if found is None:
        return
    tables = tables_in(statement)
    if statement.startswith("DELETE"):
        tables = tables.union(*map(below, tables))
    is_read = statement.startswith("SELECT")
    try:
        found.flush(connection, tables)
        if not is_read:
            found.start(connection)
    except NotAlone as error:  # SQLAlchemy would end the connection with it; whatever comes next raises it again
        raise error.__cause__ or error from None
    if not is_read or " FOR " in statement:
        found.forget()


def tables_in(statement: str) -> frozenset[str]:
    """The tables that a statement may name; a column of that name counts, too."""
    return frozenset(metadata.tables.keys() & set(_WORD.findall(statement)))


@cache
def _above(table: str) -> frozenset[str]:
    """A table, and all that it refers to, directly or not."""
    keys = metadata.tables[table].foreign_keys if table in metadata.tables else ()
    others = {one.column.table.name for one in keys} - {table}
    return frozenset({table}).union(*map(_above, others))


@cache
def _with_above(tables: frozenset[str]) -> frozenset[str]:
    return frozenset[str]().union(*map(_above, tables))


@cache
def above(table: str) -> frozenset[str]:
    """Those that a table refers to, directly or not."""
    return _above(table) - {table}


@cache
def below(table: str) -> frozenset[str]:
    """A table, and all that refer to it, directly or not: with its rows theirs may go."""
    return frozenset(name for name in metadata.tables if table in _above(name)) | {table}


@cache
def _columns(table: str) -> tuple[str, ...]:
    return tuple(metadata.tables[table].c.keys()) if table in metadata.tables else ()


@cache
def _key_of(table: str) -> str | None:
    """The column that alone is a table's primary key; None: several are."""
    keys = [one.name for one in metadata.tables[table].primary_key] if table in metadata.tables else []
    return keys[0] if len(keys) == 1 else None
