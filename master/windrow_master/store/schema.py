"""The one MetaData that all packages' tables hang on, and the column types they share."""

from typing import Any, Final

from sqlalchemy import BigInteger, Integer, MetaData
from sqlalchemy.types import TypeEngine

# Names by rule, so that a migration made on one database can drop a constraint on another.
metadata: Final = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Whole: Final[TypeEngine[Any]] = BigInteger()
"""Nanoseconds, microcents, bytes, tokens: 64 bits everywhere."""

Serial: Final[TypeEngine[Any]] = BigInteger().with_variant(Integer(), "sqlite")
"""A growing row number; SQLite only counts by itself in a column called INTEGER."""
