"""The form that a statement has for many rows at once on PostgreSQL: they travel as one parameter, a text of JSON.

    INSERT INTO t (a, b) VALUES (%(a)s, %(b)s)    ─▶  INSERT INTO t (a, b) SELECT given.a, given.b FROM the rows
    UPDATE t SET a=%(a)s WHERE t.key = %(key)s    ─▶  UPDATE t SET a=given.a FROM the rows WHERE t.key = given.key

The driver's own way sends a message for each row, which costs the Master four times as much and the server twice.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import (
    Column,
    Dialect,
    Float,
    Insert,
    LargeBinary,
    PrimaryKeyConstraint,
    String,
    Table,
    UniqueConstraint,
    Update,
)
from sqlalchemy.sql import visitors
from sqlalchemy.types import JSON, TypeEngine

ROWS_MAX: Final = 128
"""Rows of one statement: what it costs by itself is little then, and no text comes near the server's 1 GiB."""
GIVEN: Final = "given_rows"
"""The name of the parameter."""
_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode
_NUL: Final = "\\u0000"
_VALUES: Final = re.compile(r" VALUES \((.*?)\)(?= ON CONFLICT | RETURNING |$)", re.DOTALL)
_RETURNING: Final = re.compile(r" RETURNING [a-z_., ]+$")
Row = Mapping[str, Any]


class Batch:
    """Such a statement, with one parameter, GIVEN. text: of one that gives nothing back; numbered: of an insert that
    gives back the numbers of the new rows."""

    __slots__ = ("_convert", "_key", "numbered", "text")

    def __init__(self, text: str, convert: Mapping[str, Callable[[Any], str]], key: Sequence[str]) -> None:
        """convert: makes a text of values that JSON does not have. key: values by which no two rows may be equal."""
        self.text, self.numbered = _RETURNING.sub("", text), text
        self._convert, self._key = tuple(convert.items()), tuple(key)

    def rows(self, many: Sequence[Row]) -> str | None:
        """Return the parameter for these; None: they have to be sent one by one, in their order."""
        if self._key and len({tuple([row[name] for name in self._key]) for row in many}) < len(many):
            return None
        for name, convert in self._convert:
            many = [row if row[name] is None else {**row, name: convert(row[name])} for row in many]
        text = _ENCODE(many)
        # A value may have these letters or the character itself, of which the driver says what the server cannot.
        return None if _NUL in text else text


def batch_of(
    statement: Insert | Update,
    text: str,
    kinds: Mapping[str, TypeEngine[Any]],
    dialect: Dialect,
    *,
    key: Sequence[str],
    sets: Sequence[str],
) -> Batch | None:
    """Return the form of a statement for many rows, or None where it has none. kinds: by the names of its values.

    key: the names of values that say which row it changes; empty: it changes none, or it is not known which one. sets:
    the columns that it sets.
    """
    if isinstance(statement, Update):
        is_one_each = bool(key) and _unique(statement.table).isdisjoint(sets)
        if not is_one_each or text.count(" WHERE ") != 1 or "SELECT" in text:
            return None
        said = text.replace(" WHERE ", f" FROM {_given(kinds, dialect)} WHERE ")
    else:
        found = _VALUES.search(text)
        if found is None or ("DO UPDATE" in text and not key):
            return None
        said = f"{text[: found.start()]} SELECT {found[1]} FROM {_in_order(kinds, dialect)}{text[found.end() :]}"
    for name in kinds:
        said = said.replace(f"%({name})s", f'given."{name}"')
    convert = {
        name: _hex if isinstance(kind, LargeBinary) else _float for name, kind in kinds.items() if _is_text(kind)
    }
    return Batch(said, convert, key)


def _given(kinds: Mapping[str, TypeEngine[Any]], dialect: Dialect) -> str:
    return f"json_to_recordset(%({GIVEN})s::json) AS given({_typed(kinds, dialect)})"


def _in_order(kinds: Mapping[str, TypeEngine[Any]], dialect: Dialect) -> str:
    """The rows as they were given: numbers are given to them in this order, on which a chain of them may rest."""
    names = ", ".join(f'"{name}"' for name in kinds)
    rows = f"ROWS FROM (json_to_recordset(%({GIVEN})s::json) AS ({_typed(kinds, dialect)}))"
    return f"{rows} WITH ORDINALITY AS given({names}, place_of_row) ORDER BY given.place_of_row"


def _typed(kinds: Mapping[str, TypeEngine[Any]], dialect: Dialect) -> str:
    """The columns with their types. JSON is text in it, since a null of JSON is no NULL."""
    return ", ".join(
        f'"{name}" {"TEXT" if isinstance(kind, String | JSON) else kind.compile(dialect)}'
        for name, kind in kinds.items()
    )


def _is_text(kind: TypeEngine[Any]) -> bool:
    return isinstance(kind, LargeBinary | Float)


def _hex(value: bytes) -> str:
    return "\\x" + memoryview(value).hex()  # which makes no bytes of a number


def _float(value: float) -> str:
    return repr(float(value))


def _unique(table: Any) -> set[str]:
    """The columns by which rows must differ: in which order such are changed may matter."""
    assert isinstance(table, Table), "no statement of ours changes anything else"
    found = set[str]()
    for rule in table.constraints:
        if isinstance(rule, UniqueConstraint | PrimaryKeyConstraint):
            found.update(str(column.key) for column in rule.columns)
    for index in table.indexes:
        if index.unique:
            where = index.dialect_options["postgresql"]["where"]
            of_some = [] if where is None else visitors.iterate(where)
            found.update(str(one.key) for one in (*index.columns, *of_some) if isinstance(one, Column))
    return found
