"""Remembers within one transaction what was read, and holds plain inserts back until something may look for them.

    select ─▶ answered before, and its tables were not written since? ─▶ the same answer
    insert ─▶ held back ─▶ its table is read or changed, a part or the function ends ─▶ one executemany for each table

A bound cluster needs fifty statements, of which half ask again what was asked a moment ago, or add rows that nothing
reads before the commit.
"""

import re
from collections.abc import Callable, Collection, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Protocol

from sqlalchemy import Connection, Engine, event

from windrow_master.store.schema import metadata

ANSWERS_MAX: Final = 4_096
"""Answers that one transaction remembers, before all are forgotten."""
ROWS_MAX: Final = 16
"""Rows of an answer that is remembered: larger ones are read once, by a look at everything."""
LATE_MAX: Final = 4_096
"""Rows that are held back, before all are sent."""
_KEY: Final = "windrow_cache"
_WORD: Final = re.compile(r"[a-z_]+")
Bound = Any
Numbered = Callable[[int], None]
"""Is told the number that the database gave to a row."""


class Insert(Protocol):
    """A plain insert into one table. `send` sends rows; each that has a Numbered is told its number."""

    table: str

    def send(self, connection: Connection, rows: list[tuple[Bound, Numbered | None]]) -> None: ...


@dataclass(slots=True)
class Cache:
    """Of one transaction. Used from one thread. holds: it may hold rows back; one that only reads refuses each at
    once."""

    holds: bool = True
    late: dict[Insert, list[tuple[Bound, Numbered | None]]] = field(default_factory=dict)
    _answers: dict[Hashable, list[Any]] = field(default_factory=dict)
    _of_table: dict[str, list[Hashable]] = field(default_factory=dict)
    _late_rows: int = 0

    def hold(self, connection: Connection, insert: Insert, row: Bound, numbered: Numbered | None = None) -> None:
        """Send this row later."""
        if not self.holds:
            insert.send(connection, [(row, numbered)])
            return
        self.late.setdefault(insert, []).append((row, numbered))
        self._late_rows += 1
        self.forget((insert.table,))
        if self._late_rows > LATE_MAX:
            self.flush(connection)

    def flush(self, connection: Connection, tables: frozenset[str] | None = None) -> None:
        """Send the rows that are held back for these tables, and for those that they refer to; None: all."""
        if not self.late:
            return
        wanted = None if tables is None else _with_above(tables)
        while ready := [one for one in self.late if wanted is None or one.table in wanted]:
            first = min(ready, key=lambda one: len(_above(one.table)))  # what others refer to comes before them
            rows = self.late.pop(first)
            self._late_rows -= len(rows)
            first.send(connection, rows)

    def known(self, key: Hashable) -> list[Any] | None:
        """The answer to a select that was remembered."""
        return self._answers.get(key)

    def remember(self, key: Hashable, tables: Collection[str], answer: list[Any]) -> None:
        """Keep the answer to a select until one of its tables is written."""
        if len(answer) > ROWS_MAX:
            return
        if len(self._answers) >= ANSWERS_MAX:
            self.forget()
        self._answers[key] = answer
        for table in tables:
            self._of_table.setdefault(table, []).append(key)

    def forget(self, tables: Collection[str] | None = None) -> None:
        """Ask again what these tables have; None: whatever any has."""
        if tables is None:
            self._answers.clear()
            self._of_table.clear()
            return
        for table in tables:
            for key in self._of_table.pop(table, ()):
                self._answers.pop(key, None)

    def drop(self) -> None:
        """What was written is undone: send nothing of what is held back, and remember nothing."""
        self.late.clear()
        self._late_rows = 0
        self.forget()


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


def forget(connection: Connection, table: str) -> None:
    """Ask again what a table has: others may have written it until now."""
    if (found := cache_of(connection)) is not None:
        found.forget((table,))


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
    found.flush(connection, tables)
    if not statement.startswith("SELECT") or " FOR " in statement:
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
def below(table: str) -> frozenset[str]:
    """A table, and all that refer to it, directly or not: with its rows theirs may go."""
    return frozenset(name for name in metadata.tables if table in _above(name)) | {table}
