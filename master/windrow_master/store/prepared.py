"""Statements that run with every write: built and compiled once, and handed to the driver itself.

Running one through SQLAlchemy costs six times what SQLite needs for it, and twice what PostgreSQL does on the same
machine; a cluster needs fifty. The text and the conversion of values are SQLAlchemy's own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from operator import attrgetter, itemgetter
from typing import Any, Final, Generic, TypeVar

import structlog
from sqlalchemy import (
    BinaryExpression,
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    Delete,
    Dialect,
    Insert,
    Select,
    SelectBase,
    Table,
    Update,
    bindparam,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.sql import operators, visitors
from sqlalchemy.sql.elements import BooleanClauseList, ClauseElement, ClauseList, Grouping

from windrow_master.store.batch import GIVEN, ROWS_MAX, batch_of
from windrow_master.store.cache import About, Cache, Numbered, above, below, cache_of, tables_in
from windrow_master.store.conversions import Convert, reader_of, with_texts, writer_of
from windrow_proto.conditions import ConditionCode, Stated
from windrow_proto.errors import Conflict
from windrow_proto.ports import Clock

SQLITE: Final = "sqlite"
ROWS_KNOWN_MAX: Final = 512
"""Of one statement, or twice what it found now, before all are forgotten: a row with its value takes 3 KiB and more."""
BYTES_KNOWN_MAX: Final = 256 * 1024
"""The same of the texts in those rows: each change of a cluster is another row, with all that it is to run."""
_NOTHING: Final[Mapping[str, Any]] = {}
T = TypeVar("T")
K = TypeVar("K", bound=str)
Statement = Insert | Update | Delete | Select[Any]
UNREADABLE: Final = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
"""Errors of reading a row that some other program, or a bug of an older release, wrote."""

log = structlog.get_logger(__name__)


def flat(value: Any) -> dict[str, Any]:
    """A dataclass as a row: its fields as they are. `asdict` copies each of them deeply, which costs more than the
    statement."""
    names, values = _fields_of(type(value))
    return dict(zip(names, values(value), strict=True))


_Fields = tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]
_FIELDS: Final[dict[type, _Fields]] = {}


def _fields_of(kind: Any) -> _Fields:
    """The names of a dataclass' fields, and what takes all of them at once."""
    found = _FIELDS.get(kind)
    if found is None:
        names = tuple(kind.__dataclass_fields__)
        found = _FIELDS[kind] = names, all_of(attrgetter, names)
    return found


def all_of(getter: Any, names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What takes all of these from a value, as a tuple also of one or none. getter: attrgetter or itemgetter."""
    if len(names) > 1:
        found: Callable[[Any], tuple[Any, ...]] = getter(*names)
        return found
    return (lambda value: (getter(names[0])(value),)) if names else (lambda _: ())


def settable(table: Table) -> tuple[str, ...]:
    """Return the columns of a row that may change: all but its key. Set to what it was, SQLite would write the key's
    index anew all the same, and look for whatever refers to it."""
    return tuple(str(column.key) for column in table.c if not column.primary_key)


def say(connection: Connection, words: str) -> None:
    """Run words without parameters, such as those of a savepoint."""
    _cursor(connection, words, ())


class TransactionState(Enum):
    """The state of a transaction. Some errors of the database change it, also where the caller ignores them."""

    OPEN = "open"
    FAILED = "failed"
    """Nothing can be done but to undo it, or a part of it."""
    ENDED = "ended"


def state_of(connection: Connection) -> TransactionState:
    """Return the state of the transaction on this connection."""
    if connection.invalidated:
        return TransactionState.ENDED
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == SQLITE:
        return TransactionState.OPEN if driver.in_transaction else TransactionState.ENDED
    return _OF_POSTGRESQL.get(driver.info.transaction_status.name, TransactionState.ENDED)


_OF_POSTGRESQL: Final = {
    "IDLE": TransactionState.OPEN,  # it begins with its first statement
    "INTRANS": TransactionState.OPEN,
    "INERROR": TransactionState.FAILED,
}


FEW: Final = 8
"""Values that one statement asks for at once: with the same text each time it stays prepared."""
MANY: Final = 64
"""The same, where there are more."""


def is_one_of_few(column: ColumnElement[Any], most: int = FEW) -> ColumnElement[bool]:
    """The condition that a column is one of at most so many values; its parameters are what `few` gives."""
    return column.in_([bindparam(f"few_{number}") for number in range(most)])


def few(values: Sequence[str], most: int = FEW) -> Iterator[dict[str, str]]:
    """The parameters of such a condition, for so many of these values after the other."""
    for first in range(0, len(values), most):
        some = values[first : first + most]
        yield {f"few_{number}": some[min(number, len(some) - 1)] for number in range(most)}


class Made:
    """One statement. Its parameters are those of its bindparams and of `columns`, which an insert or update sets.

    In a transaction that has a cache, a select is answered from there where it can be, and a write that is late is
    sent when its row is read, or at the end.
    """

    __slots__ = ("_columns", "_forms", "_is_late", "_refused", "_statement", "_upserted", "is_insert", "table")

    def __init__(
        self,
        statement: Statement,
        columns: Iterable[str] = (),
        *,
        is_late: bool = False,
        refused: str | None = None,
        upserted: Sequence[str] = (),
    ) -> None:
        """is_late: a write of whose errors, and of how many rows it changes, nobody needs to know at once. refused: of
        such a one, what is said in a Conflict where it does not write every row, or one has a key that is there.
        upserted: the key of an insert that changes the row which has it."""
        self._statement, self._columns, self._is_late = statement, tuple(columns), is_late
        self._refused, self._upserted = refused, tuple(upserted)
        self._forms: dict[str, _Form] = {}
        """By dialect: a process may open both databases, as a test does."""
        self.table = "" if isinstance(statement, Select) else _changed_by(statement)
        self.is_insert = isinstance(statement, Insert) and not is_upsert(statement)

    def run(self, connection: Connection, values: Mapping[str, Any]) -> int:
        """Run it; returns how many rows it changed."""
        form, cache = self.made(connection), cache_of(connection)
        if cache is not None:
            if self._is_late:
                cache.hold(connection, self, form.bound(values))
                return 1
            bound = form.bound(values)
            self._wrote(connection, form, cache, [bound])
            return int(_cursor(connection, form.text, bound).rowcount)
        return int(_cursor(connection, form.text, form.bound(values)).rowcount)

    def run_all(self, connection: Connection, many: Sequence[Mapping[str, Any]]) -> None:
        """Run it once for each of many."""
        form, cache = self.made(connection), cache_of(connection)
        rows = [form.bound(values) for values in many]
        if cache is not None and self._is_late:
            for row in rows:
                cache.hold(connection, self, row)
        elif rows:
            if cache is not None:
                self._wrote(connection, form, cache, rows)
            form.run_all(connection, rows)

    def values_of(self, connection: Connection, column: str, row: Any) -> Sequence[Any] | None:
        """As cache.Write says."""
        return self.made(connection).values_of(column, row)

    def _wrote(self, connection: Connection, form: "_Form", cache: Cache, rows: Sequence[Any]) -> None:
        """Before it runs for these rows: send what has to come first, and forget what it makes wrong."""
        cache.start(connection)
        if isinstance(self._statement, Delete):
            cache.flush(connection, form.tables | form.changed)
            cache.forget(form.changed)
            return
        for row in rows:
            about = form.about_of(row)
            if about is None:
                cache.flush(connection, form.tables)
            else:
                cache.flush(connection, above(self.table))
                cache.flush_about(connection, about)
            cache.wrote(connection, self, row)

    def insert(self, connection: Connection, values: Mapping[str, Any]) -> int:
        """Run an insert into a table whose rows are numbered; returns the number."""
        form, cache, numbers = self.made(connection), cache_of(connection), list[int]()
        bound = form.bound(values)
        if cache is not None:
            self._wrote(connection, form, cache, [bound])
        self.send(connection, [(bound, numbers.append)])
        return numbers[0]

    def insert_late(self, connection: Connection, values: Mapping[str, Any], numbered: Numbered) -> None:
        """The same, where nobody waits for the number but `numbered`, which is told it now or later."""
        cache = cache_of(connection)
        if cache is None:
            numbered(self.insert(connection, values))
        else:
            cache.hold(connection, self, self.made(connection).bound(values), numbered)

    def send(self, connection: Connection, rows: list[tuple[Any, Numbered | None]]) -> None:
        """Send rows of an insert; each that has a Numbered is told its number."""
        form, many = self.made(connection), [row for row, _ in rows]
        if rows[0][1] is None:
            try:
                changed = form.run_all(connection, many)
            except IntegrityError as error:
                if self._refused is None:
                    raise
                # The savepoint of whoever asked is rolled back with this: nothing of the transaction stays.
                raise Conflict(self._refused) from error
            if self._refused is not None and changed != len(many):
                raise Conflict(self._refused)
            return
        numbers = list[int]()
        form.run_all(connection, many, numbers)
        for number, (_, numbered) in zip(numbers, rows, strict=True):
            assert numbered is not None, "all rows of a statement are numbered, or none"
            numbered(number)

    def rows(self, connection: Connection, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Run a select; returns its rows by the names of their columns."""
        form, cache = self.made(connection), cache_of(connection)
        bound = form.bound(values)
        if cache is None:
            return form.rows(_cursor(connection, form.text, bound))
        key = self, *(bound.values() if type(bound) is dict else bound)
        known = None if form.locks else cache.known(key)
        if known is None:
            about = form.flushed(connection, cache, bound)
            known = form.rows(_cursor(connection, form.text, bound))
            if form.locks:
                cache.forget()  # it may have waited for whoever wrote them
                return known
            cache.remember(key, form.tables, known, about)
        return [dict(row) for row in known]

    def row(self, connection: Connection, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """The one row of a select by a key, or None."""
        found = self.rows(connection, values)
        assert len(found) <= 1
        return found[0] if found else None

    def made(self, connection: Connection) -> "_Form":
        """As the driver takes it."""
        name = connection.dialect.name
        form = self._forms.get(name)
        if form is None:
            form = _Form(self._statement, self._columns, connection.dialect, self._upserted)
            self._forms[name] = form
        return form


class Found(Generic[T]):
    """A select whose rows become values. A row that was read before gives the value that it gave then: most of what a
    look at the whole fleet finds is as it was at the last look, and making the value costs most of it."""

    __slots__ = ("_by", "_bytes", "_known", "_made", "_value")

    def __init__(
        self,
        statement: Select[Any],
        value: Callable[[Mapping[Any, Any]], T],
        by: Callable[[T], Any] | None = None,
    ) -> None:
        """value: what a row says, by the names of its columns; the same for the same row, and never changed. by: the
        values' order, where the rows come in any: for a few rows a sorter of SQLite's costs more than all the rest."""
        self._made, self._value, self._by = Made(statement), value, by
        self._known: dict[Sequence[Any], T] = {}
        self._bytes = 0

    def all(self, connection: Connection, values: Mapping[str, Any] = _NOTHING) -> list[T]:
        """Every row's value, in their order."""
        return self.sorted(self._all(connection, values, skips=False))

    def of_few(self, connection: Connection, keys: Sequence[K], key: Callable[[T], K]) -> dict[K, list[T]]:
        """The values of a select about one of few, for all of these keys: by the key of each, in their order."""
        found: dict[K, list[T]] = {}
        for wanted in few(keys):
            for one in self.all(connection, wanted):
                found.setdefault(key(one), []).append(one)
        return found

    def readable(self, connection: Connection, values: Mapping[str, Any] = _NOTHING) -> list[T]:
        """The same for a loop over all rows: those that cannot be read are passed over, and operators are told."""
        return self.sorted(self._all(connection, values, skips=True))

    def sorted(self, found: list[T]) -> list[T]:
        """These, in their order."""
        if self._by is not None and len(found) > 1:
            found.sort(key=self._by)
        return found

    def _all(self, connection: Connection, values: Mapping[str, Any], *, skips: bool) -> list[T]:
        form, cache = self._made.made(connection), cache_of(connection)
        bound = form.bound(values)
        if cache is None:
            return self._read(connection, form, bound, skips=skips)[0]
        key = self, *(bound.values() if type(bound) is dict else bound)
        answer = cache.known(key)
        if answer is None:
            about = form.flushed(connection, cache, bound)
            answer, is_whole = self._read(connection, form, bound, skips=skips)
            if is_whole:  # one that passes rows over is no answer to who wants them all
                cache.remember(key, form.tables, answer, about)
        return list(answer)

    def _read(self, connection: Connection, form: "_Form", bound: Any, *, skips: bool) -> tuple[list[T], bool]:
        """The values, and whether they are of all rows."""
        known, found, is_whole = self._known, list[T](), True
        for row in form.fetched(_cursor(connection, form.text, bound)):
            value = known.get(row)
            if value is None:
                try:
                    value = known[row] = self._value(form.row(row))
                except UNREADABLE as error:
                    if not skips:
                        raise
                    pass_over(row[0], error)
                    is_whole = False
                    continue
                self._bytes += _size(row)
            found.append(value)
        many = len(known) > 2 * len(found)
        if many and (len(known) > ROWS_KNOWN_MAX or self._bytes > BYTES_KNOWN_MAX):
            known.clear()
            self._bytes = 0
        return found, is_whole

    def now(
        self, connection: Connection, made: Made, values: Mapping[str, Any], *, skips: bool
    ) -> tuple[list[T], bool]:
        """The values of this select's rows in order, as they are now, and whether none was passed over. skips: those
        that cannot be read are, and operators are told."""
        form, cache = made.made(connection), cache_of(connection)
        bound = form.bound(values)
        if cache is not None:
            form.flushed(connection, cache, bound)
        found, is_whole = self._read(connection, form, bound, skips=skips)
        return self.sorted(found), is_whole

    def one(self, connection: Connection, values: Mapping[str, Any]) -> T | None:
        """The value of the one row of a select by a key, or None."""
        found = self.all(connection, values)
        assert len(found) <= 1
        return found[0] if found else None


class ByKey(Generic[T]):
    """The rows of a table that have one value in some column, for one such value or for many at once. A transaction
    remembers those of each value by itself, so that who will ask for one after the other asks for all of them first."""

    __slots__ = ("_asks", "_beside", "_column", "_found", "_key", "_table")

    def __init__(
        self,
        statement: Select[Any],
        column: Column[str],
        value: Callable[[Mapping[Any, Any]], T],
        key: Callable[[T], str],
        by: Callable[[T], Any] | None = None,
        beside: "ByKey[T] | None" = None,
    ) -> None:
        """key: of a value, what its row has in the column. value, by: as of Found. beside: the same rows by another
        key, one of each, by which a transaction that writes has them then, too."""
        self._asks = tuple((most, Made(statement.where(is_one_of_few(column, most)))) for most in (1, FEW, MANY))
        self._found = Found(statement, value, by)
        self._beside = beside
        self._column, self._key, self._table = str(column.key), key, str(column.table.description)

    def of(self, connection: Connection, key: str) -> list[T]:
        """Those that have this value."""
        known = self.known(connection, key)
        return list(self.some(connection, (key,), skips=False)[key] if known is None else known)

    def one(self, connection: Connection, key: str) -> T | None:
        """The one that has it, or None."""
        found = self.of(connection, key)
        assert len(found) <= 1
        return found[0] if found else None

    def some(self, connection: Connection, keys: Iterable[str], *, skips: bool = True) -> dict[str, list[T]]:
        """By each of these values, those that have it. skips: rows that cannot be read are passed over."""
        cache, found, asked = cache_of(connection), dict[str, list[T]](), list[str]()
        for key in dict.fromkeys(keys):
            known = None if cache is None else cache.known((self, key))
            if known is None:
                asked.append(key)
            found[key] = [] if known is None else known
        while asked:
            most, ask = next((one for one in self._asks if one[0] >= len(asked)), self._asks[-1])
            now, asked = asked[:most], asked[most:]
            (values,) = few(now, most)
            rows, is_whole = self._found.now(connection, ask, values, skips=skips)
            for row in rows:
                found[self._key(row)].append(row)
                if self._beside is not None:
                    self._beside.note(connection, self._beside._key(row), [row])
            if cache is not None and is_whole:  # one that passes rows over is no answer to who wants them all
                for key in now:
                    self._remember(cache, key, found[key])
        return found

    def known(self, connection: Connection, key: str) -> list[T] | None:
        """Those that have it, where this transaction has read them and wrote none since; None: that is not so."""
        cache = cache_of(connection)
        return None if cache is None else cache.known((self, key))

    def note(self, connection: Connection, key: str, rows: list[T]) -> None:
        """These have it, as this transaction knows by what it has just read or written."""
        cache = cache_of(connection)
        if cache is not None and cache.holds:
            self._remember(cache, key, rows)

    def insert(self, connection: Connection, made: Made, values: Mapping[str, Any], row: T) -> None:
        """Run an insert of the row that has this value. Where the others with its key are known, it is known with
        them: who asks for these need not have it sent first."""
        key = self._key(row)
        known = self.known(connection, key)
        made.run(connection, values)
        if known is not None:
            self.note(connection, key, self._found.sorted([*known, row]))

    def _remember(self, cache: Cache, key: str, rows: list[T]) -> None:
        cache.remember((self, key), (), rows, (self._table, self._column, (key,)))


PASSED_OVER: Final[dict[str, str]] = {}
"""Rows that this process could not read, by their keys, and why."""
PASSED_OVER_MAX: Final = 1_000
SHOWN_MAX: Final = 10


def pass_over(key: object, error: Exception) -> None:
    """Note that a row could not be read; it is logged the first time."""
    name = str(key)[:100].encode("ascii", "backslashreplace").decode()
    if name not in PASSED_OVER and len(PASSED_OVER) < PASSED_OVER_MAX:
        PASSED_OVER[name] = type(error).__name__
        log.exception("row_unreadable", row=name)


def readable(connection: Connection, query: Select[Any], value: Callable[[Mapping[Any, Any]], T]) -> list[T]:
    """The values of a select in order, without those of rows that cannot be read."""
    return [one for one in _rows(connection, query, value) if one is not None]


def page(connection: Connection, query: Select[Any], value: Callable[[Mapping[Any, Any]], T], limit: int) -> list[T]:
    """At most `limit` values of a select in order; a row that cannot be read is passed over, and the next one comes in
    its place, so that no list ends there."""
    found: list[T] = []
    offset = 0
    while True:
        rows = _rows(connection, query.limit(limit).offset(offset), value)
        found += [one for one in rows if one is not None]
        if len(rows) < limit or len(found) >= limit:
            return found[:limit]
        offset += len(rows)


def _rows(connection: Connection, query: Select[Any], value: Callable[[Mapping[Any, Any]], T]) -> list[T | None]:
    if connection.dialect.name != SQLITE:
        rows: list[Any] = [dict(row._mapping) for row in connection.execute(query)]
        convert: Callable[[Any], Mapping[str, Any]] = dict
    else:
        form = _Form(query, (), connection.dialect)
        if (cache := cache_of(connection)) is not None:
            cache.flush(connection, form.tables)
        rows, convert = _cursor(connection, form.text, form.bound(_NOTHING)).fetchall(), form.row
    found: list[T | None] = []
    for row in rows:
        try:
            found.append(value(convert(row)))
        except UNREADABLE as error:
            pass_over(next(iter(row.values()), "") if isinstance(row, dict) else row[0], error)
            found.append(None)
    return found


class Unreadable:
    """Tells operators of rows that are passed over."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_ns: int | None = None

    def conditions(self) -> Iterator[Stated]:
        """For health: the rows, by their keys."""
        if PASSED_OVER:
            self._since_ns = self._since_ns or self._clock.wall_ns()
            names = ", ".join(list(PASSED_OVER)[:SHOWN_MAX])
            said = f"{len(PASSED_OVER)} rows of the database cannot be read and are passed over: {names} ..."
            yield ConditionCode.MASTER_ROW_UNREADABLE, f"{said} Everything else goes on.", self._since_ns


class Upsert:
    """An insert that changes these columns of the row that has the same key; made once, run on either database."""

    __slots__ = ("_by_dialect", "_is_late", "_parts")

    def __init__(self, table: Table, key: Sequence[str], changed: Sequence[str], *, is_late: bool = False) -> None:
        """is_late: as of Made."""
        self._parts, self._is_late = (table, tuple(key), tuple(changed)), is_late
        self._by_dialect: dict[str, Made] = {}

    def run(self, connection: Connection, values: Mapping[str, Any]) -> None:
        """Insert or change one row."""
        name = connection.dialect.name
        made = self._by_dialect.get(name)
        if made is None:
            made = self._by_dialect[name] = self._made(name)
        made.run(connection, values)

    def _made(self, dialect: str) -> Made:
        table, key, changed = self._parts
        if dialect == SQLITE:
            of_sqlite = sqlite.insert(table)
            new = {name: of_sqlite.excluded[name] for name in changed}
            statement: Insert = of_sqlite.on_conflict_do_update(index_elements=key, set_=new)
            return Made(statement, (*key, *changed), is_late=self._is_late, upserted=key)
        from sqlalchemy.dialects import postgresql  # a tenth of a second, which who stays with SQLite need not wait for

        of_postgresql = postgresql.insert(table)
        new = {name: of_postgresql.excluded[name] for name in changed}
        made = of_postgresql.on_conflict_do_update(index_elements=key, set_=new)
        return Made(made, (*key, *changed), is_late=self._is_late, upserted=key)


def _changed_by(statement: Insert | Update | Delete) -> str:
    table = statement.table
    assert isinstance(table, Table), "no statement of ours changes anything else"
    return table.name


class _Form:
    """A statement as a driver takes it: its text, the order of its values, and their conversion both ways. tables: that
    it names; changed: in which rows may change; locks: it locks rows, of which nothing read before may be believed."""

    __slots__ = (
        *(
            "_about",
            "_after",
            "_before",
            "_dialect",
            "_fixed",
            "_is_named",
            "_kinds",
            "_names",
            "_read",
            "_take",
            "_write",
        ),
        *("batch", "changed", "locks", "tables", "text"),
    )

    def __init__(
        self, statement: Statement, columns: Sequence[str], dialect: Dialect, upserted: Sequence[str] = ()
    ) -> None:
        said = with_texts(statement) if isinstance(statement, Select) and dialect.name != SQLITE else statement
        compiled: Any = said.compile(dialect=dialect, column_keys=list(columns) or None)
        self.text: str = compiled.string
        self.tables, self.locks = tables_in(self.text), isinstance(statement, Select) and "FOR " in self.text
        self.changed = frozenset[str]()
        if not isinstance(statement, Select):
            name = _changed_by(statement)
            self.changed = below(name) if isinstance(statement, Delete) else frozenset({name})
        self._is_named = not compiled.positional
        self._names: tuple[str, ...] = tuple(compiled.bind_names.values() if self._is_named else compiled.positiontup)
        self._take = all_of(itemgetter, self._names)
        self._fixed = {name: value for name, value in compiled.params.items() if value is not None}
        types = [compiled.binds[name].type.dialect_impl(dialect) for name in self._names]
        self._write = _converted((writer_of(kind, dialect) for kind in types), self._names)
        selected = statement.selected_columns if isinstance(statement, Select) else ()
        self._kinds = [(str(column.key), column.type.dialect_impl(dialect)) for column in selected]
        self._dialect = dialect
        self._read = None if self._is_named else self._readers([None] * len(self._kinds))
        places = {one: one if self._is_named else self._names.index(one) for one in set(self._names)}
        self._about, self._before, self._after = _rows_of(statement, columns, compiled.bind_names, places)
        self.batch = None
        if self._is_named and isinstance(statement, Insert | Update):
            kinds = dict(zip(self._names, types, strict=True))
            before, keys = self._before or {}, [one.name for one in statement.table.primary_key]
            known = [before[name] for name in keys if before.get(name) is not None]
            key = upserted or (known if len(known) == len(keys) else ())
            self.batch = batch_of(statement, self.text, kinds, dialect, key=key, sets=list(self._after))

    def about_of(self, bound: Any) -> About | None:
        """The rows that it reads or changes; None: not known beyond its tables."""
        if self._about is None:
            return None
        table, column, places = self._about
        return table, column, [bound[place] for place in places]

    def flushed(self, connection: Connection, cache: Cache, bound: Any) -> About | None:
        """Send what a select may have to see; returns which rows it is about."""
        about = self.about_of(bound)
        if about is None:
            cache.flush(connection, self.tables)
        else:
            cache.flush_about(connection, about)
        return about

    def values_of(self, column: str, bound: Any) -> Sequence[Any] | None:
        """The values that a column of the row which it writes may have, before and after; None: any."""
        after = self._after.get(column, _STAYS)
        if self._before is None:
            return None if after is _STAYS or after is None else (bound[after],)
        before = self._before.get(column)
        if before is None or after is None:
            return None
        return (bound[before],) if after is _STAYS else (bound[before], bound[after])

    def bound(self, values: Mapping[str, Any]) -> Sequence[Any] | Mapping[str, Any]:
        """The values in their order, or by name."""
        found = list(self._take({**self._fixed, **values} if self._fixed else values))
        for place, convert in self._write:
            found[place] = convert(found[place])
        return dict(zip(self._names, found, strict=True)) if self._is_named else found

    def run_all(self, connection: Connection, rows: Sequence[Any], numbers: list[int] | None = None) -> int:
        """Run a write once for each of these; returns how many rows that changed. numbers: takes those of new rows."""
        changed = 0
        for first in range(0, len(rows), ROWS_MAX):
            some = rows[first : first + ROWS_MAX]
            given = None if self.batch is None or len(some) == 1 else self.batch.rows(some)
            if self.batch is None or given is None:
                changed += self._run_each(connection, some, numbers)
                continue
            text = self.batch.text if numbers is None else self.batch.numbered
            cursor = _cursor(connection, text, {GIVEN: given})
            changed += cursor.rowcount
            if numbers is not None:  # which grow with the rows, and are given back in no order that the server names
                numbers += sorted(int(number) for (number,) in cursor.fetchall())
        return changed

    def _run_each(self, connection: Connection, rows: Sequence[Any], numbers: list[int] | None) -> int:
        is_many, returns = len(rows) > 1, self._is_named and numbers is not None
        cursor = _cursor(connection, self.text, rows if is_many else rows[0], is_many=is_many, returns=returns)
        if numbers is None:
            return int(cursor.rowcount)
        if not returns:  # SQLite numbers new rows one after the other, and nobody else writes meanwhile
            (last,) = _cursor(connection, "SELECT last_insert_rowid()", ()).fetchone()
            numbers += range(last - len(rows) + 1, last + 1)
        for _ in rows if returns else ():
            numbers.append(int(cursor.fetchone()[0]))
            cursor.nextset()
        return len(rows)

    def rows(self, found: Any) -> list[dict[str, Any]]:
        """The rows of a cursor by names."""
        return [self.row(row) for row in self.fetched(found)]

    def fetched(self, found: Any) -> list[Any]:
        """The rows of a cursor, of which `row` makes something: equal ones the same."""
        if self._read is None:  # the types that the server gives, which it gives with each result
            self._read = self._readers([column.type_code for column in found.description])
        rows: list[Any] = found.fetchall()
        return rows

    def _readers(self, codes: Sequence[int | None]) -> tuple[tuple[str, Convert | None], ...]:
        pairs = zip(self._kinds, codes, strict=True)
        return tuple((name, reader_of(kind, self._dialect, code)) for (name, kind), code in pairs)

    def row(self, row: Sequence[Any]) -> dict[str, Any]:
        """One row by names."""
        assert self._read is not None, "of SQLite, or of a result whose types are known"
        pairs = zip(self._read, row, strict=True)
        return {name: value if convert is None else convert(value) for (name, convert), value in pairs}


_STAYS: Final = object()
"""In place of the place of a column's value after a write that does not set it."""
Places = Mapping[str, Any]
"""By column, the place of its value among those that the driver is given; None: it is computed."""


def _rows_of(
    statement: Statement, columns: Sequence[str], names: Mapping[Any, str], places: Mapping[str, Any]
) -> tuple[tuple[str, str, Sequence[Any]] | None, Places | None, Places]:
    """Return which rows a statement is about: table, column and places of its values; and the places of the values of
    columns before a write (None: of an insert there are none), and of those it sets."""
    if isinstance(statement, Select):
        return _about(statement, names, places), None, {}
    if isinstance(statement, Delete) or is_upsert(statement):
        return None, {}, {}
    sets: dict[str, Any] = {name: places.get(name) for name in columns}
    for column, given in (getattr(statement, "_values", None) or {}).items():
        name = names.get(given, given.key) if isinstance(given, BindParameter) else ""  # a copy of it has its type
        sets[str(getattr(column, "key", column))] = places.get(name)
    if isinstance(statement, Insert):
        return None, None, sets
    is_one = {name: found[0] for name, found in _equal(statement, names, places).items() if len(found) == 1}
    return _about(statement, names, places), is_one, sets


def _about(
    statement: Select[Any] | Update, names: Mapping[Any, str], places: Mapping[str, Any]
) -> tuple[str, str, Sequence[Any]] | None:
    """The table, and of the columns that have to have some values the one that says most; None: it is of several
    tables, or no column has to."""
    tables = [statement.table] if isinstance(statement, Update) else statement.get_final_froms()
    has_inner = any(isinstance(one, SelectBase) and one is not statement for one in visitors.iterate(statement))
    if len(tables) != 1 or not isinstance(tables[0], Table) or has_inner:
        return None
    found = _equal(statement, names, places)
    name = next((one.name for one in tables[0].primary_key if one.name in found), None) or next(reversed(found), None)
    return None if name is None else (tables[0].name, name, found[name])


def _equal(
    statement: Select[Any] | Update, names: Mapping[Any, str], places: Mapping[str, Any]
) -> dict[str, Sequence[Any]]:
    """By column, the places of the values of which it has to have one."""
    found, whole = dict[str, Sequence[Any]](), statement.whereclause
    is_all = isinstance(whole, BooleanClauseList) and whole.operator is operators.and_
    for one in whole.clauses if isinstance(whole, BooleanClauseList) and is_all else (whole,):
        if not isinstance(one, BinaryExpression) or not isinstance(one.left, Column):
            continue
        given = _listed(one.right) if one.operator in (operators.eq, operators.in_op) else []
        binds = [each for each in given if isinstance(each, BindParameter) and each in names]
        if binds and len(binds) == len(given):
            found[one.left.name] = [places[names[each]] for each in binds]
    return found


def _listed(one: ClauseElement) -> list[ClauseElement]:
    """What stands between the brackets of a list, or this one by itself."""
    if isinstance(one, Grouping | ClauseList):
        return [leaf for each in one.get_children() for leaf in _listed(each)]
    return [one]


def is_upsert(statement: Statement) -> bool:
    """Return whether it is an insert that changes a row where there is one."""
    return getattr(statement, "_post_values_clause", None) is not None


def _size(row: Sequence[Any]) -> int:
    return sum([len(value) for value in row if type(value) is str or type(value) is bytes])


def _converted(processors: Iterable[Convert | None], names: Sequence[str]) -> tuple[tuple[int, Convert], ...]:
    pairs = zip(range(len(names)), processors, strict=True)
    return tuple((place, convert) for place, convert in pairs if convert is not None)


def _cursor(
    connection: Connection,
    text: str,
    values: Sequence[Any] | Mapping[str, Any],
    *,
    is_many: bool = False,
    returns: bool = False,
) -> Any:
    """Let the driver run it; raises what SQLAlchemy would, and as there a connection that is lost is not used again.
    is_many: for each of these values; returns: with what each gives back."""
    driver: Any = connection.connection.driver_connection
    errors: Any = connection.dialect.loaded_dbapi
    try:
        cursor = driver.cursor()
        if not is_many:
            return cursor.execute(text, values)
        cursor.executemany(text, values, **({"returning": True} if returns else {}))
        return cursor
    except errors.Error as error:
        is_lost = connection.dialect.is_disconnect(error, driver, None)
        if is_lost:
            connection.invalidate(error)
        raise DBAPIError.instance(
            text, None, error, errors.Error, connection_invalidated=is_lost, dialect=connection.dialect
        ) from error
