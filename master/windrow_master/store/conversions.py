"""Converts values of rows for a database driver, and back."""

import json
from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, Dialect, LargeBinary, Select, Text, cast
from sqlalchemy.types import JSON, TypeEngine

Convert = Callable[[Any], Any]


def writer_of(kind: TypeEngine[Any], dialect: Dialect) -> Convert | None:
    """Return what makes of a value what the driver takes: text and bytes, which can be compared and joined."""
    if isinstance(kind, LargeBinary):
        return None
    if isinstance(kind, JSON) and dialect.name != "sqlite":
        written: Convert = getattr(dialect, "_json_serializer", None) or json.dumps  # the engine's own, else the usual
        return (lambda value: None if value is None else written(value)) if kind.none_as_null else written
    return kind.bind_processor(dialect)


def reader_of(kind: TypeEngine[Any], dialect: Dialect, code: Any) -> Convert | None:
    """Return what makes of what the driver gives a value."""
    if not isinstance(kind, JSON) or dialect.name == "sqlite":
        return kind.result_processor(dialect, code)
    read: Convert = getattr(dialect, "_json_deserializer", None) or json.loads
    return lambda text: None if text is None else read(text)


def with_texts(statement: Select[Any]) -> Select[Any]:
    """A select of the texts of JSON: a driver that reads them by itself does so for rows that are known, too."""
    columns: list[ColumnElement[Any]] = list(statement.selected_columns)
    if not any(isinstance(one.type, JSON) for one in columns):
        return statement
    texts = (cast(one, Text).label(one.key) if isinstance(one.type, JSON) else one for one in columns)
    return statement.with_only_columns(*texts, maintain_column_froms=True)
