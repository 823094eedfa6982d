"""Opens the database: its engines with the settings that durability, speed and fencing rest on.

SQLite: one Master by its file lock. PostgreSQL: several may wait, one leads. In both one connection writes, so that
write transactions follow one another, and readers see one snapshot each:
- SQLite writes in BEGIN IMMEDIATE, which locks the database.
- PostgreSQL writes in READ COMMITTED. That is enough because every write transaction first locks the leader's row for
  its own epoch: within a term there is one writer, and between terms the row's lock keeps the two apart. A stricter
  level would add nothing but serialisation failures to retry.
"""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import QueuePool, StaticPool

from windrow_master.store import json_columns
from windrow_master.store.prepared import say
from windrow_proto.errors import InvalidInput

BUSY_TIMEOUT_MS: Final = 5_000
"""The Master is alone by its lock; only a person with a shell, or a backup, can hold the file for a moment."""
CACHE_KIB: Final = 8 * 1024
READER_CACHE_KIB: Final = 2 * 1024
"""Of each connection that only reads: what more is asked for often is in the kernel's memory, once for all of them."""
STATEMENTS_KEPT: Final = 512
"""Compiled, on each connection. Measured with a select by key: compiling it takes SQLite 16 us and running it 5.

The drivers keep 128 and 100 by themselves."""
WAL_PAGES: Final = 4_000
"""16 MiB of log between checkpoints: bounds the file, and a checkpoint stays well under a commit's deadline."""
READ_CONNECTIONS: Final = 8
POSTGRESQL: Final = "postgresql"
APPLICATION: Final = "windrow-master"
"""The name by which a server lists our sessions."""
CONNECT_S: Final = 5
IDLE_IN_TRANSACTION_MS: Final = 4_000
"""An open transaction whose Master says nothing ends on the server after so long; one that was stopped in the middle of
what it said is ended by whoever takes the seat (leadership.py)."""
STATEMENT_MS: Final = 25_000
LOCK_MS: Final = 10_000
SEAT_LOCK_MS: Final = 1_000
"""For the connection that beats: who waits for the seat asks again rather than queue for it."""

_JSON: Final[dict[str, Any]] = {"json_serializer": json_columns.written, "json_deserializer": json_columns.read}


@dataclass(frozen=True, slots=True)
class Engines:
    """One connection that writes, some that only read; both on the same database."""

    writer: Engine
    reader: Engine
    seat: Engine | None = None
    """The connections of a leader's seat, where several Masters may open the database: they beat and watch, beside
    those that work."""

    @property
    def is_shared(self) -> bool:
        """True if other Masters may have it open, so that the leader's lease decides and not a file lock."""
        return self.seat is not None

    def dispose(self) -> None:
        """Close every connection."""
        for engine in (self.reader, self.writer, self.seat):
            if engine is not None:
                engine.dispose()


def sqlite_url(path: Path) -> str:
    """The URL of a SQLite file."""
    return f"sqlite:///{path}"


def engines_of(url: str) -> Engines:
    """Open the database that a URL names: sqlite:////path or postgresql+psycopg://user@host/name."""
    try:
        read = make_url(url)
    except ArgumentError as error:
        raise InvalidInput("The database's URL cannot be read; its form is postgresql+psycopg://user@host/name.") from (
            error
        )
    if read.drivername == "sqlite" and read.database:
        return sqlite_engines(Path(read.database))
    if read.drivername == "postgresql+psycopg":
        return postgresql_engines(url)
    raise InvalidInput(
        f"{read.drivername[:32]}: the database is sqlite:////path or postgresql+psycopg://user@host/name."
    )


def postgresql_engines(url: str) -> Engines:
    """Open a PostgreSQL database: one connection that writes, some that only read, one that beats."""
    # A server that is gone is noticed in seconds, whatever the kernel's own patience.
    arguments = {
        "connect_timeout": CONNECT_S,
        "application_name": APPLICATION,
        "keepalives_idle": CONNECT_S,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": 1_000 * CONNECT_S,
    }
    one = {"poolclass": QueuePool, "pool_size": 1, "max_overflow": 0, "pool_timeout": CONNECT_S, **_JSON}
    writer = create_engine(url, isolation_level="READ COMMITTED", connect_args=arguments, **one)
    reader = create_engine(
        url,
        isolation_level="REPEATABLE READ",
        connect_args=arguments,
        poolclass=QueuePool,
        pool_size=READ_CONNECTIONS,
        max_overflow=0,
        pool_timeout=CONNECT_S,
        pool_pre_ping=True,
        **_JSON,
    )
    seat = create_engine(url, isolation_level="READ COMMITTED", connect_args=arguments, **one)
    _settings(writer, LOCK_MS, "off")
    _settings(reader, LOCK_MS, "on")
    _settings(seat, SEAT_LOCK_MS, "off")
    return Engines(writer, reader, seat)


def _settings(engine: Engine, lock_ms: int, read_only: str) -> None:
    def connected(connection: Any, _record: object) -> None:
        connection.prepared_max = STATEMENTS_KEPT
        connection.execute(f"SET idle_in_transaction_session_timeout = {IDLE_IN_TRANSACTION_MS}")
        connection.execute(f"SET statement_timeout = {STATEMENT_MS}")
        connection.execute(f"SET lock_timeout = {lock_ms}")
        connection.execute(f"SET default_transaction_read_only = {read_only}")
        # A server that is told to answer before the disk has it would let us acknowledge what can be lost.
        connection.execute(
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )
        connection.commit()

    event.listen(engine, "connect", connected)


def sqlite_engines(path: Path) -> Engines:
    """Open (or create) the SQLite file with WAL, synchronous=FULL and foreign keys."""
    url = sqlite_url(path)
    # One connection for ever: only the writer thread uses it, guarded by the store.
    arguments = {"check_same_thread": False, "cached_statements": STATEMENTS_KEPT}
    writer = create_engine(url, poolclass=StaticPool, connect_args=arguments, **_JSON)
    reader = create_engine(
        url,
        poolclass=QueuePool,
        pool_size=READ_CONNECTIONS,
        max_overflow=0,
        connect_args=arguments,
        **_JSON,
    )
    set_up(writer, begin="BEGIN IMMEDIATE", pragmas=_WRITER)
    set_up(reader, begin="BEGIN", pragmas=_READER)
    return Engines(writer, reader)


RECOVERED: Final = "PRAGMA wal_checkpoint(TRUNCATE)"
"""The statement that moves what an earlier process left in SQLite's log into the database before anything is written
behind it: where that process' last fsync failed, the log may be whole in memory only, and a commit behind a hole is
lost with it."""


def rewrite(engines: Engines) -> None:
    """Leave nothing of what was changed or deleted in the files of SQLite. Outside of transactions; it takes as much
    disk once more."""
    if engines.is_shared:
        return  # PostgreSQL's own upkeep does
    with engines.writer.connect() as connection:
        for words in ("PRAGMA temp_store=FILE", "VACUUM", "PRAGMA temp_store=MEMORY", RECOVERED):
            say(connection, words)


_COMMON: Final = (
    f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}",
    "PRAGMA foreign_keys=ON",
    "PRAGMA temp_store=MEMORY",
)
_WRITER: Final = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    RECOVERED,
    f"PRAGMA wal_autocheckpoint={WAL_PAGES}",
    f"PRAGMA cache_size=-{CACHE_KIB}",
    *_COMMON,
)
_READER: Final = (f"PRAGMA cache_size=-{READER_CACHE_KIB}", *_COMMON, "PRAGMA query_only=ON")


def set_up(engine: Engine, *, begin: str, pragmas: tuple[str, ...]) -> None:
    """Take transactions into our own hands (the driver would begin late and break savepoints) and set the pragmas."""

    def connected(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None
        for pragma in pragmas:
            connection.execute(pragma).close()

    def begun(connection: Connection) -> None:
        say(connection, begin)

    on_connect: Callable[..., None] = connected
    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", begun)
