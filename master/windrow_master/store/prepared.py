"""Statements that run with every write: built and compiled once, and handed to the driver itself.

Running one through SQLAlchemy costs six times what SQLite needs for it, and twice what PostgreSQL does on the same
machine; a cluster needs fifty. The text and the conversion of values are SQLAlchemy's own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import structlog
from sqlalchemy import ColumnElement, Connection, Delete, Dialect, Insert, Select, Table, Update, bindparam
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError

from windrow_master.store.cache import Numbered, below, cache_of, tables_in
from windrow_proto.conditions import ConditionCode, Stated
from windrow_proto.ports import Clock

SQLITE: Final = "sqlite"
ROWS_KNOWN_MAX: Final = 512
"""Of one statement, or twice what it found now, before all are forgotten: a row with its value takes 3 KiB and more."""
BYTES_KNOWN_MAX: Final = 256 * 1024
"""The same of the texts in those rows: each change of a cluster is another row, with all that it is to run."""
_NOTHING: Final[Mapping[str, Any]] = {}
T = TypeVar("T")
Statement = Insert | Update | Delete | Select[Any]
Convert = Callable[[Any], Any]
UNREADABLE: Final = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
"""Errors of reading a row that some other program, or a bug of an older release, wrote."""

log = structlog.get_logger(__name__)


def flat(value: Any) -> dict[str, Any]:
    """A dataclass as a row: its fields as they are. `asdict` copies each of them deeply, which costs more than the
    statement."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def settable(table: Table) -> tuple[str, ...]:
    """Return the columns of a row that may change: all but its key. Set to what it was, SQLite would write the key's
    index anew all the same, and look for whatever refers to it."""
    return tuple(str(column.key) for column in table.c if not column.primary_key)


def say(connection: Connection, words: str) -> None:
    """Run words without parameters, such as those of a savepoint."""
    _cursor(connection, words, ())


FEW: Final = 8
"""Values that one statement asks for at once: with the same text each time it stays prepared."""


def is_one_of_few(column: ColumnElement[Any]) -> ColumnElement[bool]:
    """The condition that a column is one of at most FEW values; its parameters are what `few` gives."""
    return column.in_([bindparam(f"few_{number}") for number in range(FEW)])


def few(values: Sequence[str]) -> Iterator[dict[str, str]]:
    """The parameters of such a condition, for FEW of these values after the other."""
    for first in range(0, len(values), FEW):
        some = values[first : first + FEW]
        yield {f"few_{number}": some[min(number, len(some) - 1)] for number in range(FEW)}


class Made:
    """One statement. Its parameters are those of its bindparams and of `columns`, which an insert or update sets.

    In a transaction that has a cache, a select is answered from there where it can be, and an insert that is late is
    sent when its table is read, or at the end.
    """

    __slots__ = ("_columns", "_forms", "_is_late", "_statement", "table")

    def __init__(self, statement: Statement, columns: Iterable[str] = (), *, is_late: bool = False) -> None:
        """is_late: an insert whose errors nobody waits for at once."""
        self._statement, self._columns, self._is_late = statement, tuple(columns), is_late
        self._forms: dict[str, _Form] = {}
        """By dialect: a process may open both databases, as a test does."""
        self.table = "" if isinstance(statement, Select) else _changed_by(statement)

    def run(self, connection: Connection, values: Mapping[str, Any]) -> int:
        """Run it; returns how many rows it changed."""
        form, cache = self.made(connection), cache_of(connection)
        if cache is not None:
            if self._is_late:
                cache.hold(connection, self, form.bound(values))
                return 1
            cache.flush(connection, form.tables | form.changed)
            cache.forget(form.changed)
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
                cache.flush(connection, form.tables | form.changed)
                cache.forget(form.changed)
            _cursor(connection, form.text, rows, is_many=True)

    def insert(self, connection: Connection, values: Mapping[str, Any]) -> int:
        """Run an insert into a table whose rows are numbered; returns the number."""
        form, cache, numbers = self.made(connection), cache_of(connection), list[int]()
        if cache is not None:
            cache.flush(connection, form.tables)
            cache.forget(form.changed)
        self.send(connection, [(form.bound(values), numbers.append)])
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
        text, is_sqlite = self.made(connection).text, connection.dialect.name == SQLITE
        if rows[0][1] is None:
            many = [row for row, _ in rows]
            _cursor(connection, text, many if len(many) > 1 else many[0], is_many=len(many) > 1)
            return
        cursor = None if is_sqlite else _cursor(connection, text, [row for row, _ in rows], is_many=True, returns=True)
        for row, numbered in rows:
            assert numbered is not None, "all rows of a statement are numbered, or none"
            if cursor is None:
                numbered(int(_cursor(connection, text, row).lastrowid))
            else:
                numbered(int(cursor.fetchone()[0]))
                cursor.nextset()

    def rows(self, connection: Connection, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Run a select; returns its rows by the names of their columns."""
        form, cache = self.made(connection), cache_of(connection)
        bound = form.bound(values)
        if cache is None:
            return form.rows(_cursor(connection, form.text, bound))
        key = self, *(bound.values() if isinstance(bound, Mapping) else bound)
        known = None if form.locks else cache.known(key)
        if known is None:
            cache.flush(connection, form.tables)
            known = form.rows(_cursor(connection, form.text, bound))
            if form.locks:
                cache.forget()  # it may have waited for whoever wrote them
                return known
            cache.remember(key, form.tables, known)
        return [dict(row) for row in known]

    def row(self, connection: Connection, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """The one row of a select by a key, or None."""
        found = self.rows(connection, values)
        assert len(found) <= 1
        return found[0] if found else None

    def made(self, connection: Connection) -> "_Form":
        """As the driver takes it."""
        form = self._forms.get(connection.dialect.name)
        if form is None:
            form = self._forms[connection.dialect.name] = _Form(self._statement, self._columns, connection.dialect)
        return form


class Found(Generic[T]):
    """A select whose rows become values. On SQLite a row that was read before gives the value that it gave then: most
    of what a look at the whole fleet finds is as it was at the last look, and making the value costs most of it."""

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
        return self._sorted(self._all(connection, values, skips=False))

    def readable(self, connection: Connection, values: Mapping[str, Any] = _NOTHING) -> list[T]:
        """The same for a loop over all rows: those that cannot be read are passed over, and operators are told."""
        return self._sorted(self._all(connection, values, skips=True))

    def _sorted(self, found: list[T]) -> list[T]:
        if self._by is not None and len(found) > 1:
            found.sort(key=self._by)
        return found

    def _all(self, connection: Connection, values: Mapping[str, Any], *, skips: bool) -> list[T]:
        form, cache = self._made.made(connection), cache_of(connection)
        bound = form.bound(values)
        if cache is None:
            return self._read(connection, form, bound, skips=skips)
        key = self, *(bound.values() if isinstance(bound, Mapping) else bound)
        answer = cache.known(key)
        if answer is None:
            cache.flush(connection, form.tables)
            answer = self._read(connection, form, bound, skips=skips)
            if not skips:  # one that passes rows over is no answer to who wants them all
                cache.remember(key, form.tables, answer)
        return list(answer)

    def _read(self, connection: Connection, form: "_Form", bound: Any, *, skips: bool) -> list[T]:
        cursor = _cursor(connection, form.text, bound)
        if connection.dialect.name != SQLITE:
            return list(_values(form.rows(cursor), self._value, skips=skips))
        known, found = self._known, list[T]()
        for row in cursor.fetchall():
            value = known.get(row)
            if value is None:
                try:
                    value = known[row] = self._value(form.row(row))
                except UNREADABLE as error:
                    if not skips:
                        raise
                    pass_over(row[0], error)
                    continue
                self._bytes += _size(row)
            found.append(value)
        many = len(known) > 2 * len(found)
        if many and (len(known) > ROWS_KNOWN_MAX or self._bytes > BYTES_KNOWN_MAX):
            known.clear()
            self._bytes = 0
        return found

    def one(self, connection: Connection, values: Mapping[str, Any]) -> T | None:
        """The value of the one row of a select by a key, or None."""
        found = self.all(connection, values)
        assert len(found) <= 1
        return found[0] if found else None


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


def _values(rows: Iterable[Mapping[str, Any]], value: Callable[[Mapping[Any, Any]], T], *, skips: bool) -> Iterator[T]:
    for row in rows:
        try:
            yield value(row)
        except UNREADABLE as error:
            if not skips:
                raise
            pass_over(next(iter(row.values()), ""), error)


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
            return Made(statement, (*key, *changed), is_late=self._is_late)
        from sqlalchemy.dialects import postgresql  # a tenth of a second, which who stays with SQLite need not wait for

        of_postgresql = postgresql.insert(table)
        new = {name: of_postgresql.excluded[name] for name in changed}
        made = of_postgresql.on_conflict_do_update(index_elements=key, set_=new)
        return Made(made, (*key, *changed), is_late=self._is_late)


def _changed_by(statement: Insert | Update | Delete) -> str:
    table = statement.table
    assert isinstance(table, Table), "no statement of ours changes anything else"
    return table.name


class _Form:
    """A statement as a driver takes it: its text, the order of its values, and their conversion both ways. tables: that
    it names; changed: in which rows may change; locks: it locks rows, of which nothing read before may be believed."""

    __slots__ = (
        *("_dialect", "_fixed", "_is_named", "_kinds", "_names", "_read", "_write"),
        *("changed", "locks", "tables", "text"),
    )

    def __init__(self, statement: Statement, columns: Sequence[str], dialect: Dialect) -> None:
        compiled: Any = statement.compile(dialect=dialect, column_keys=list(columns) or None)
        self.text: str = compiled.string
        self.tables, self.locks = tables_in(self.text), isinstance(statement, Select) and "FOR " in self.text
        self.changed = frozenset[str]()
        if not isinstance(statement, Select):
            name = _changed_by(statement)
            self.changed = below(name) if isinstance(statement, Delete) else frozenset({name})
        self._is_named = not compiled.positional
        self._names: tuple[str, ...] = tuple(compiled.bind_names.values() if self._is_named else compiled.positiontup)
        self._fixed = {name: value for name, value in compiled.params.items() if value is not None}
        types = [compiled.binds[name].type.dialect_impl(dialect) for name in self._names]
        self._write = _converted((kind.bind_processor(dialect) for kind in types), self._names)
        selected = statement.selected_columns if isinstance(statement, Select) else ()
        self._kinds = [(str(column.key), column.type.dialect_impl(dialect)) for column in selected]
        self._dialect = dialect
        self._read = None if self._is_named else self._readers([None] * len(self._kinds))

    def bound(self, values: Mapping[str, Any]) -> Sequence[Any] | Mapping[str, Any]:
        """The values in their order, or by name."""
        given = {**self._fixed, **values} if self._fixed else values
        found = [given[name] for name in self._names]
        for place, convert in self._write:
            found[place] = convert(found[place])
        return dict(zip(self._names, found, strict=True)) if self._is_named else found

    def rows(self, found: Any) -> list[dict[str, Any]]:
        """The rows of a cursor by names."""
        if self._read is None:  # the types that the server gives, which it gives with each result
            self._read = self._readers([column.type_code for column in found.description])
        return [self.row(row) for row in found.fetchall()]

    def _readers(self, codes: Sequence[int | None]) -> tuple[tuple[str, Convert | None], ...]:
        pairs = zip(self._kinds, codes, strict=True)
        return tuple((name, kind.result_processor(self._dialect, code)) for (name, kind), code in pairs)

    def row(self, row: Sequence[Any]) -> dict[str, Any]:
        """One row by names."""
        assert self._read is not None, "of SQLite, or of a result whose types are known"
        pairs = zip(self._read, row, strict=True)
        return {name: value if convert is None else convert(value) for (name, convert), value in pairs}


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
