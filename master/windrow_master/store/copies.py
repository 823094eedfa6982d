"""Copies a database while it is used, looks whether one is whole, and makes a copy the market's database again."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from sqlalchemy import make_url

from windrow_master.store.engine import Engines, engines_of
from windrow_master.store.leadership import is_led
from windrow_master.store.messages import Messages
from windrow_master.store.migrate import check_revision, revision_of, upgrade
from windrow_master.store.open_errors import explained, shown
from windrow_master.store.repository import TermRepository
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, StorageFailed

BUSY_S: Final = 30.0
"""For a writer's checkpoint to pass."""
DUMP_S: Final = 3600.0
PROBLEMS_MAX: Final = 20
"""Of a damaged file, so many lines are told."""
_REVISION: Final = "SELECT version_num FROM alembic_version"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Copied:
    """The content of a copied database: the last migration it has seen and the term of its leader."""

    schema: str
    epoch: int


def copy_sqlite(source: Path, target: Path) -> Copied:
    """Write a whole, compact copy of a SQLite database that others may be writing. Raises StorageFailed."""
    check_revision(revision_of_sqlite(source), f"The database {source}")
    try:
        with closing(_read_only(source)) as connection:
            connection.execute("VACUUM INTO ?", (str(target),))
        target.chmod(0o600)
        with closing(_read_only(target)) as connection:
            return Copied(_scalar(connection, _REVISION), _epoch(connection))
    except sqlite3.Error as error:
        raise StorageFailed(f"The database {source} could not be copied: {error}.", subject="database") from error


def problems_of_sqlite(path: Path) -> list[str]:
    """Return the damage of a SQLite database, as SQLite says it; empty when it is whole. Others may be writing it."""
    try:
        with closing(_read_only(path)) as connection:
            said = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({PROBLEMS_MAX})")]
            if said != ["ok"]:
                return said
            broken = connection.execute("PRAGMA foreign_key_check").fetchmany(PROBLEMS_MAX)
            return [f"a row of {row[0]} refers to one of {row[2]} that is not there" for row in broken]
    except sqlite3.Error as error:
        return [str(error)]


def revision_of_sqlite(path: Path) -> str:
    """The last migration that a database has seen. Raises StorageFailed where it cannot be read."""
    try:
        with closing(_read_only(path)) as connection:
            return _scalar(connection, _REVISION)
    except sqlite3.Error as error:
        raise StorageFailed(f"The database {path} cannot be read: {error}.", subject="database") from error


def epoch_of_sqlite(path: Path) -> int:
    """The term of a database's leader; 0 where it cannot be read."""
    try:
        with closing(_read_only(path)) as connection:
            return _epoch(connection)
    except sqlite3.Error:
        return 0


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_S)


def _scalar(connection: sqlite3.Connection, query: str) -> str:
    row = connection.execute(query).fetchone()
    return "" if row is None else str(row[0])


def _epoch(connection: sqlite3.Connection) -> int:
    return int(_scalar(connection, "SELECT epoch FROM leader") or 0)


# --- PostgreSQL ------------------------------------------------------------------------------------------------------


def can_dump() -> bool:
    """Return whether PostgreSQL's own programs are on this machine."""
    return shutil.which("pg_dump") is not None and shutil.which("pg_restore") is not None


def copy_postgresql(url: str, target: Path) -> Copied:
    """Have pg_dump write the database into one file. Raises StorageFailed."""
    copied = look(url)
    check_revision(copied.schema, f"The database {shown(url)}")
    _run_tool("pg_dump", url, "--format=custom", f"--file={target}")
    return copied


def restore_postgresql(url: str, dump: Path) -> None:
    """Put a dump in place of what the database holds, all of it or nothing. Raises StorageFailed."""
    flags = ("--clean", "--if-exists", "--no-owner", "--single-transaction", "--exit-on-error")
    _run_tool("pg_restore", url, *flags, f"--dbname={_named(url)}", str(dump))


def look(url: str) -> Copied:
    """The schema and the term of any database. Raises StorageFailed where it cannot be asked."""
    with _opened(url) as engines, engines.reader.begin() as connection:
        return Copied(revision_of(connection), TermRepository(connection).latest())


def _named(url: str) -> str:
    """The database's URL as PostgreSQL's programs take it, without the password: a command line is no secret."""
    return make_url(url).set(drivername="postgresql", password=None).render_as_string(hide_password=False)


def _run_tool(name: str, url: str, *flags: str) -> None:
    password = str(make_url(url).password or "")
    environment = {**os.environ, **({"PGPASSWORD": password} if password else {})}
    words = [name, *flags] if name == "pg_restore" else [name, *flags, _named(url)]
    try:
        done = subprocess.run(
            words,
            env=environment,
            capture_output=True,
            text=True,
            timeout=DUMP_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StorageFailed(f"{name} did not end well: {error}.", subject="database") from error
    if done.returncode != 0:
        said = " ".join(done.stderr.split())[-400:]
        raise StorageFailed(f"{name} ended with exit code {done.returncode}: {said}", subject="database")


# --- any -------------------------------------------------------------------------------------------------------------


@contextmanager
def _opened(url: str) -> Iterator[Engines]:
    engines = engines_of(url)
    try:
        with explained(url):
            yield engines
    finally:
        engines.dispose()


def check_unused(url: str) -> None:
    """Raises Conflict while a Master leads on a shared database."""
    with _opened(url) as engines:
        if engines.seat is not None and is_led(engines.seat):
            raise Conflict("A Master leads on this database. Stop all of them first.", subject="database")


def make_current(
    url: str, also: Callable[[UnitOfWork], None], *, at_least: int, now_ns: int, version: str, backup_at_ns: int
) -> int:
    """Bring a restored database up to date, and begin a term on it above all that hosts may have seen.

    also: what the packages change in the same transaction. Returns the term. Raises StorageFailed.
    """
    with _opened(url) as engines:
        upgrade(engines.writer)
        with engines.writer.connect() as connection, connection.begin():
            uow = UnitOfWork(connection, now_ns, 0, os.urandom, Messages())
            uow.epoch = uow.terms.begin_restored(at_least, now_ns, version, backup_at_ns)
            also(uow)
            fields = {"epoch": str(uow.epoch), "backup_at_ns": str(backup_at_ns)}
            uow.audit("operator", "market.restore", f"term/{uow.epoch}", "restored from a backup", fields)
        return uow.epoch


def read_of(url: str, read: Callable[[UnitOfWork], T]) -> T:
    """Run a function that only reads, without beginning a term. Raises StorageFailed."""
    with _opened(url) as engines, engines.reader.begin() as connection:
        return read(UnitOfWork(connection, 0, 0, os.urandom, Messages()))
