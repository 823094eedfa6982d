"""Keeps what one write transaction has read, and the rows that it has yet to insert: those go to the database by one
statement a table, and what was read is not asked for again before a row of it changes.

    insert ─▶ waiting ─▶ a statement could miss the row, or COMMIT ─▶ one statement a table
    select ─▶ known ───▶ the same select ─▶ what was found, until a row that it could find is written

Only the writer's transactions have one: while one is open nobody else writes (engine.py). A part that fails takes what
it had waiting with it, and nothing of others. What the database refuses late cannot be told to whoever asked for it:
the transaction is rolled back and done again without any of this (Redo).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from sqlalchemy import BindParameter, Column, Connection, Engine, Insert, Select, Table, Update, event
from sqlalchemy.exc import PendingRollbackError
from sqlalchemy.sql import operators, visitors
from sqlalchemy.sql.elements import BinaryExpression, BooleanClauseList

if TYPE_CHECKING:
    from windrow_master.store.prepared import Made

KEY: Final = "windrow.batch"
"""Of `Connection.info`."""
KNOWN_MAX: Final = 4_096
"""Answers of selects, before all are forgotten."""
Values = Mapping[str, Any]


class Waits(Protocol):
    """A statement whose rows can wait."""

    @property
    def scope(self) -> "Scope": ...

    def write(self, connection: Connection, many: Sequence[Values], batch: "Batch") -> None:
        """Write these rows now, together."""


class Redo(BaseException):
    """The transaction has to be rolled back and done again, each statement when it is asked for. Past all who handle
    exceptions of what they do themselves."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The rows that a statement concerns. names: of its parameters. equal: by column, the parameters of which its value
    must be one; is_exact: that is all it asks for. sets: the columns that it writes, those of `by_name` with the value
    of that name. is_insert: of rows that are all in their values."""

    tables: tuple[Table, ...]
    names: tuple[str, ...]
    equal: Mapping[str, tuple[str, ...]]
    sets: frozenset[str]
    by_name: frozenset[str]
    is_insert: bool
    is_exact: bool
    is_locking: bool

    @property
    def one(self) -> bool:
        """True if there is one parameter, and it is the value of a column."""
        return len(self.names) == 1 and len(self.equal) == 1

    def key(self, values: Values) -> tuple[Any, ...]:
        """The parameters in their order."""
        return tuple([values[name] for name in self.names])

    def may_concern(self, values: Values, row: Values) -> bool:
        """False if a statement with these parameters cannot concern this row."""
        for column, names in self.equal.items():
            if column in row and all(row[column] != values[name] for name in names):
                return False
        return True


def scope_of(statement: Any, columns: Iterable[str]) -> Scope:
    """Read it off a statement. columns: as of Made."""
    tables = tables_of(statement)
    where = getattr(statement, "whereclause", None)
    is_and = isinstance(where, BooleanClauseList) and where.operator is operators.and_
    parts: tuple[Any, ...] = () if where is None else tuple(where.clauses) if is_and else (where,)
    equal = {name: names for part in parts if len(tables) == 1 for name, names in _equal(part)}
    is_update, is_insert = isinstance(statement, Update), isinstance(statement, Insert)
    by_name = frozenset(columns) if is_update else frozenset[str]()
    asked = [one.key for one in visitors.iterate(statement) if isinstance(one, BindParameter) and one.required]
    return Scope(
        tables=tables,
        names=tuple(dict.fromkeys(asked)),
        equal=equal,
        sets=by_name | {str(getattr(one, "key", one)) for one in (statement._values or ())} if is_update else by_name,
        by_name=by_name,
        is_insert=is_insert and statement._post_values_clause is None,
        is_exact=len(equal) == len(parts) and all(len(names) == 1 for names in equal.values()),
        is_locking=isinstance(statement, Select) and statement._for_update_arg is not None,
    )


def tables_of(statement: Any) -> tuple[Table, ...]:
    """All that it names."""
    found = [statement.table] if isinstance(getattr(statement, "table", None), Table) else []
    for one in visitors.iterate(statement):
        table = one.table if isinstance(one, Column) else one
        if isinstance(table, Table):
            found.append(table)
    return tuple(dict.fromkeys(found))


def _equal(part: Any) -> Iterable[tuple[str, tuple[str, ...]]]:
    is_one = isinstance(part, BinaryExpression) and isinstance(part.left, Column)
    if is_one and part.operator in (operators.eq, operators.in_op):
        asked = [one for one in visitors.iterate(part.right) if isinstance(one, BindParameter)]
        if asked and all(one.required for one in asked):
            yield str(part.left.key), tuple(one.key for one in asked)


@dataclass(slots=True)
class _Row:
    number: int
    made: "Waits"
    values: dict[str, Any]


@dataclass(slots=True)
class _Part:
    """first: the number of the first row of its own. written: rows that had gone to the database before it. is_rare: it
    fails so rarely that the database is not told of it."""

    first: int
    written: int
    is_rare: bool
    is_said: bool = False
    has_changed: bool = False


class Batch:
    """Of one transaction."""

    def __init__(self, connection: Connection, say: Callable[[Connection, str], None]) -> None:
        self._connection, self._say = connection, say
        self._count = self._learnt = 0
        self._waiting: dict[str, list[_Row]] = {}
        self._tables: dict[str, Table] = {}
        self._written: list[_Row] = []
        self._parts: list[_Part] = []
        self._known: dict[str, dict[Made, dict[tuple[Any, ...], tuple[Values, list[Any]]]]] = {}
        self._locked: set[tuple[Any, ...]] = set()
        self.is_own = False
        """While a statement runs of which all of this knows."""

    # --- what statements do ------------------------------------------------------------------------------------------

    def known(self, made: "Made", scope: Scope, values: Values) -> list[Any] | None:
        """What this select found when it was asked before, as long as that holds; None: ask."""
        found = self._known.get(scope.tables[0].name, {}).get(made, {}).get(scope.key(values))
        return None if found is None else found[1]

    def learn(self, made: "Made", scope: Scope, values: Values, found: list[Any]) -> None:
        """Keep what a select found."""
        if self._learnt >= KNOWN_MAX:
            self._known.clear()
            self._learnt = 0
        self._learnt += 1
        for table in scope.tables:
            self._known.setdefault(table.name, {}).setdefault(made, {})[scope.key(values)] = values, found

    def before_select(self, scope: Scope, values: Values) -> None:
        """Let it find what waits."""
        for table in scope.tables:
            if any(scope.may_concern(values, row.values) for row in self._waiting.get(table.name, ())):
                self._write(table)
        if scope.is_locking:  # what others wrote until they let go of it is to be seen
            locked = {table.name for table in scope.tables}
            for name in [name for name in self._known if locked & {name, *self._parent_names(name)}]:
                del self._known[name]

    def locks(self, made: "Made", values: Values) -> bool:
        """True if this transaction has these rows already, which it keeps until its end."""
        key = (made, *values.values())
        if key in self._locked:
            return True
        self._locked.add(key)
        return False

    def insert(self, made: "Waits", scope: Scope, values: Values) -> None:
        """Have a row inserted before anybody could miss it."""
        (table,) = scope.tables
        row = dict(values)
        self._tables[table.name] = table
        self._waiting.setdefault(table.name, []).append(_Row(self._count, made, row))
        self._count += 1
        self._forget(table.name, (row,))

    def merged(self, scope: Scope, values: Values) -> bool:
        """True if a change was one of a row that waits, and has been made there."""
        if not (scope.is_exact and scope.equal and scope.sets == scope.by_name):
            return False
        name = scope.tables[0].name
        for row in reversed(self._waiting.get(name, ())):
            if all(column in row.values for column in scope.equal) and scope.may_concern(values, row.values):
                if self._parts and row.number < self._parts[-1].first:
                    return False
                before = dict(row.values)
                row.values |= {column: values[column] for column in scope.sets}
                self._forget(name, (before, row.values))
                return True
        return False

    def before_change(self, scope: Scope, values: Values) -> None:
        """Let it find what waits, and forget what it changes."""
        self.begin_parts()
        for table in scope.tables:
            for parent in _parents(table):
                self._write(parent)
            waiting = self._waiting.get(table.name, ())
            if scope.is_insert or any(scope.may_concern(values, row.values) for row in waiting):
                self._write(table)
        if scope.is_insert or not scope.equal or len(scope.tables) != 1:
            for table in scope.tables:
                self._known.pop(table.name, None)
            return
        were = {column: values[names[0]] for column, names in scope.equal.items() if len(names) == 1}
        are = {column: value for column, value in were.items() if column not in scope.sets}
        self._forget(scope.tables[0].name, (were, are | {column: values[column] for column in scope.by_name}))

    def before_other(self, statement: Any) -> None:
        """A statement runs of which no more is known than its tables, if that."""
        if self.is_own:
            return
        tables = tables_of(statement)
        if not isinstance(statement, Select):
            self.begin_parts()
            tables += tuple(parent for one in tables for parent in _parents(one))
            for table in tables:
                self._known.pop(table.name, None)
        if not tables:
            self.write_all()
            self._known.clear()
        for table in tables:
            self._write(table)

    def write_all(self) -> None:
        """Have everything in the database that waits. Raises Redo."""
        for name in list(self._waiting):
            self._write(self._tables[name])

    # --- parts that may fail alone -----------------------------------------------------------------------------------

    def begin(self, *, is_rare: bool) -> None:
        """A part begins. The database is told with its first change, or never where it is rare that one fails then."""
        self._parts.append(_Part(self._count, len(self._written), is_rare))

    def begin_parts(self, last: int | None = None) -> None:
        """Something changes, or a row of this number and those before it go to the database: tell it of the parts that
        are open and have a share in that."""
        for part in self._parts:
            if last is not None and last < part.first:
                return
            part.has_changed = True
            if not (part.is_said or part.is_rare):
                self._say(self._connection, "SAVEPOINT part")
                part.is_said = True

    def keep(self) -> None:
        """The part is now as good as the rest."""
        part = self._parts.pop()
        if part.is_said:
            self._say(self._connection, "RELEASE SAVEPOINT part")
        if not self._parts:
            self._written.clear()

    def undo(self) -> None:
        """The part is as if it had not been. Raises Redo where the database cannot do that alone."""
        part = self._parts.pop()
        for rows in self._waiting.values():
            while rows and rows[-1].number >= part.first:
                rows.pop()
        self._known.clear()
        self._locked.clear()
        if part.is_said:
            self._say(self._connection, "ROLLBACK TO SAVEPOINT part")
            self._say(self._connection, "RELEASE SAVEPOINT part")
        elif _is_aborted(self._connection) or part.has_changed:
            raise Redo
        else:
            return
        for row in self._written[part.written :]:
            if row.number < part.first:
                rows = self._waiting.setdefault(row.made.scope.tables[0].name, [])
                rows.append(row)
                rows.sort(key=lambda one: one.number)
        del self._written[part.written :]

    # --- inside ------------------------------------------------------------------------------------------------------

    def _write(self, table: Table) -> None:
        if not (rows := self._waiting.get(table.name)):
            return
        for parent in _parents(table):
            self._write(parent)
        self.begin_parts(rows[-1].number)
        del self._waiting[table.name]
        by_made: dict[Waits, list[Values]] = {}
        for row in rows:
            by_made.setdefault(row.made, []).append(row.values)
        try:
            for made in sorted(by_made, key=lambda one: not one.scope.is_insert):  # what is changed is there by then
                made.write(self._connection, by_made[made], self)
        except Exception as error:  # of the driver, too, which has no number so large, say
            raise Redo from error
        if self._parts:
            self._written += rows

    def _forget(self, name: str, rows: Sequence[Values]) -> None:
        """Forget the selects that could find one of these rows."""
        for made, entries in self._known.get(name, {}).items():
            scope = made.scope
            if not scope.equal:
                entries.clear()
            elif scope.one and all(column in row for row in rows for column in scope.equal):
                (column,) = scope.equal
                for row in rows:
                    entries.pop((row[column],), None)
            else:
                for key in [key for key, (of, _) in entries.items() if any(scope.may_concern(of, one) for one in rows)]:
                    del entries[key]

    def _parent_names(self, name: str) -> set[str]:
        of = next((made.scope.tables for made in self._known[name]), ())
        return {parent.name for table in of if table.name == name for parent in _parents(table)}


def _parents(table: Table) -> tuple[Table, ...]:
    """The tables that rows of this one refer to."""
    found = table.info.get(KEY)
    if found is None:
        others = {one.column.table.name: one.column.table for one in table.foreign_keys}
        found = table.info[KEY] = tuple(one for name, one in others.items() if name != table.name)
    return found


def _is_aborted(connection: Connection) -> bool:
    """True where PostgreSQL takes nothing more of this transaction. Raises PendingRollbackError where it is over."""
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        is_open, is_aborted = driver.in_transaction, False
    else:
        status = driver.info.transaction_status.name
        is_open, is_aborted = status in ("INTRANS", "INERROR"), status == "INERROR"
    if not is_open:
        raise PendingRollbackError("The transaction has ended.")
    return bool(is_aborted)


def batch_of(connection: Connection) -> Batch | None:
    """The writer's, while its transaction is open."""
    found: Batch | None = connection.info.get(KEY)
    return found


@contextmanager
def opened(connection: Connection, say: Callable[[Connection, str], None], *, is_used: bool) -> Iterator[Batch]:
    """The batch of one transaction. say: runs words without parameters. is_used: else each statement runs when it is
    asked for."""
    info, batch = connection.info, Batch(connection, say)
    if is_used:
        info[KEY] = batch
    try:
        yield batch
    finally:
        info.pop(KEY, None)


def watch(writer: Engine) -> None:
    """Have batches told of the statements that are not made ahead (prepared.py)."""
    if not event.contains(writer, "before_execute", _heard):
        event.listen(writer, "before_execute", _heard)


def _heard(connection: Connection, statement: Any, *_: object) -> None:
    batch = batch_of(connection)
    if batch is not None:
        batch.before_other(statement)
