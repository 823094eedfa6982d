"""Brings a database to this version's schema, and says what differs; the adapter of Alembic."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Engine, MetaData, inspect

from windrow_master.store.engine import LOCK_MS
from windrow_master.store.open_errors import shown
from windrow_proto.errors import StorageFailed

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory

MIGRATIONS: Final = Path(__file__).with_name("migrations")
PASSAGE: Final = "60b70ad199e9"
"""The last commit that leads a database of an earlier revision to the first one of today."""
ALONE: Final = 0x57696E64
"""The advisory lock under which PostgreSQL's schema is changed: of two Masters that start, one waits for the other."""


def upgrade(engine: Engine, migrations: Path = MIGRATIONS) -> None:
    """Run every migration that this database lacks, in one transaction; others may go on writing meanwhile.

    migrations: the folder with one file for each. Raises StorageFailed, before anything is written, for a revision that
    none of them knows.
    """
    with _alone(engine) as connection:
        found = revision_of(connection)
        if found == newest(migrations):
            return  # Alembic takes as long to load as the rest of a restart
        check_revision(found, f"The database {shown(str(engine.url))}", migrations)
        from alembic.config import Config
        from alembic.runtime.environment import EnvironmentContext

        scripts = _scripts(migrations)
        steps = {"fn": lambda before, _: scripts._upgrade_revs("head", before)}
        with EnvironmentContext(Config(), scripts, **steps) as environment:
            environment.configure(connection=connection, transactional_ddl=True)
            environment.run_migrations()
        _check_references(connection)


def newest(migrations: Path = MIGRATIONS) -> str:
    """The last migration there is."""
    return _revisions(migrations)[-1]


def check_revision(revision: str, subject: str, migrations: Path = MIGRATIONS) -> None:
    """Raises StorageFailed, with the way out, where no migration leads on from this revision (empty: a new database).

    subject: what is of this revision, as the beginning of a sentence.
    """
    known = _revisions(migrations)
    if revision in ("", *known):
        return
    if revision < known[0]:
        raise StorageFailed(
            f"{subject} is too old: its schema is of revision {revision}, and this Windrow goes on from {known[0]}. "
            f"Install Windrow as of commit {PASSAGE} (restore a backup there), start its Master once until it logs "
            "`master_ready`, stop it, and make a backup; then install this version again. Nothing was changed.",
            subject="database",
        )
    raise StorageFailed(
        f"{subject} was written by a newer Windrow: its schema is of revision {revision}, and this version knows none "
        f"after {known[-1]}. Install that version or a later one, or restore the backup from before it; nothing was "
        "changed.",
        subject="database",
    )


def _revisions(migrations: Path) -> list[str]:
    """The migrations there are, the first one first, by the names of their files."""
    return sorted(path.stem for path in migrations.glob("[0-9]*_*.py"))


def revision_of(connection: Connection) -> str:
    """The migration that this database is at; empty before the first."""
    if not inspect(connection).has_table("alembic_version"):
        return ""
    return str(connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar() or "")


@contextmanager
def _alone(engine: Engine) -> Iterator[Connection]:
    with engine.connect() as connection, _unbound(connection), connection.begin():
        if connection.dialect.name == "postgresql":
            # It waits behind another's upgrade, however long that takes, and for tables no longer than writers bear.
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
            connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
            connection.exec_driver_sql("SET LOCAL lock_timeout = 0")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ALONE})")
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {LOCK_MS}")
        yield connection


@contextmanager
def _unbound(connection: Connection) -> Iterator[None]:
    """SQLite changes some tables by making them anew; the rows that refer to the old one must not stand in the way."""
    driver: Any = connection.connection.driver_connection
    is_sqlite = connection.dialect.name == "sqlite"
    if is_sqlite:
        driver.execute("PRAGMA foreign_keys=OFF").close()
    try:
        yield
    finally:
        if is_sqlite:
            driver.execute("PRAGMA foreign_keys=ON").close()


def _check_references(connection: Connection) -> None:
    """Raises StorageFailed where a row refers to one that is not there, which undoes the migration."""
    if connection.dialect.name != "sqlite":
        return
    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
    if broken is not None:
        raise StorageFailed(f"After the migration a row of {broken[0]} refers to one of {broken[2]} that is not there.")


def differences(engine: Engine, schema: MetaData) -> list[Any]:
    """Return the differences between the migrated database and this schema; empty when nobody forgot a migration."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with engine.connect() as connection:
        if connection.dialect.name == "postgresql":  # between two questions it thinks, on a slow machine for seconds
            connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        return list(compare_metadata(context, schema))


def write_revision(engine: Engine, schema: MetaData, message: str, revision: str) -> Path:
    """Write the migration that leads from this database's schema to the given one; returns its file."""
    from alembic.autogenerate import produce_migrations, render_python_code
    from alembic.migration import MigrationContext

    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        steps = produce_migrations(context, schema).upgrade_ops
        assert steps is not None
        code = render_python_code(steps, render_as_batch=True, migration_context=context)
    script = _scripts(MIGRATIONS).generate_revision(revision, message, upgrades=code, imports="")
    assert script is not None
    return Path(script.path)


def _scripts(migrations: Path) -> "ScriptDirectory":
    # Imported late: the Master's start pays for Alembic once, readers of this module do not.
    from alembic.script import ScriptDirectory

    return ScriptDirectory(migrations, version_locations=[migrations], file_template="%(rev)s")
