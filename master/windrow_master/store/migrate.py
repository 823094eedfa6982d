"""Brings a database to this version's schema, and says what differs; the adapter of Alembic."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, MetaData, inspect

from windrow_master.store.engine import LOCK_MS
from windrow_proto.errors import StorageFailed

MIGRATIONS = Path(__file__).with_name("migrations")


ALONE: Final = 0x57696E64
"""The advisory lock under which PostgreSQL's schema is changed: of two Masters that start, one waits for the other."""


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Run every migration that this database lacks, in one transaction; others may go on writing meanwhile."""
    with _alone(engine) as connection:
        if revision == "head" and revision_of(connection) == newest():
            return  # Alembic takes as long to load as the rest of a restart
        from alembic import command

        command.upgrade(_config(connection), revision)
        _check_references(connection)


def newest() -> str:
    """The last migration there is, by the names of their files."""
    return max(path.stem for path in (MIGRATIONS / "versions").glob("[0-9]*_*.py"))


def revision_of(connection: Connection) -> str:
    """The migration that this database is at; empty before the first."""
    if not inspect(connection).has_table("alembic_version"):
        return ""
    return str(connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar() or "")


def downgrade(engine: Engine, revision: str) -> None:
    """Lead back to an earlier revision ("base": none), in one transaction."""
    from alembic import command

    with _alone(engine) as connection:
        command.downgrade(_config(connection), revision)
        _check_references(connection)


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
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        return list(compare_metadata(context, schema))


def write_revision(engine: Engine, schema: MetaData, message: str, revision: str) -> Path:
    """Write the migration that leads from this database's schema to the given one; returns its file."""
    from alembic import command

    with engine.begin() as connection:
        script = command.revision(_config(connection, schema), message=message, autogenerate=True, rev_id=revision)
    assert script is not None and not isinstance(script, list)
    return Path(script.path)


def _config(connection: Any, schema: MetaData | None = None) -> Any:
    # Imported late: the Master's start pays for Alembic once, readers of this module do not.
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("file_template", "%%(rev)s_%%(slug)s")
    config.attributes["connection"] = connection
    config.attributes["schema"] = schema
    return config
