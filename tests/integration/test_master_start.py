"""Messages of a Master whose database cannot be used: one sentence with the way out, exit code 1, no traceback."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from tests.services import need
from tests.support import postgres as postgresql
from tests.support.stack import WINDROW
from tests.waiting import poll
from windrow_master.store.engine import sqlite_engines
from windrow_master.store.migrate import upgrade
from windrow_proto.master_process import EXIT_HELPLESS

pytestmark = pytest.mark.timeout(300)

ANY_PORT = ("--http-port", "0", "--https-port", "0", "--trunk-port", "0", "--health-port", "0")
FAILS_S = 120


def failing(data_dir: Path, environment: Mapping[str, str] = {}, prefix: tuple[str, ...] = (), code: int = 1) -> str:
    """Start a Master that must fail; returns what it said."""
    command = [*prefix, sys.executable, "-m", "windrow_master", "--data-dir", str(data_dir), *ANY_PORT]
    done = subprocess.run(
        command, env=os.environ | dict(environment), capture_output=True, text=True, timeout=FAILS_S, check=False
    )
    said = done.stdout + done.stderr
    assert done.returncode == code, said
    assert "Traceback" not in said and "sqlalche.me" not in said, said
    (last,) = [line for line in said.splitlines() if '"master_failed"' in line]
    return last


def at(url: str) -> dict[str, str]:
    return {"WINDROW_DATABASE_URL": url}


def test_a_postgresql_that_nobody_listens_for_is_named_with_the_way_out(tmp_path: Path) -> None:
    said = failing(tmp_path, at("postgresql+psycopg://windrow:canary@127.0.0.1:1/market"))

    assert "127.0.0.1:1/market" in said and "refused" in said and "WINDROW_DATABASE_URL" in said
    assert "canary" not in said


@contextmanager
def guarded_server() -> Iterator[str]:
    """A PostgreSQL that wants passwords; the URL of a user whose password is `right`."""
    need("postgresql")
    with postgresql.running() as server:
        data = Path(parse_qs(urlsplit(server.url("postgres")).query)["host"][0])
        with server.connect() as connection:
            connection.execute("CREATE ROLE renter LOGIN PASSWORD 'right'")
            connection.execute("CREATE DATABASE market OWNER renter")
            (data / "pg_hba.conf").write_text("local all postgres trust\nlocal all all scram-sha-256\n")
            connection.execute("SELECT pg_reload_conf()")
        # The server reads it when it gets to it: until then everybody is let in.
        stranger = f"host={data} user=renter password=wrong dbname=market"
        poll(lambda: not _lets_in(stranger), what="the server asks for passwords")
        yield f"{postgresql.PREFIX}renter:right@/market?host={data}"


def _lets_in(conninfo: str) -> bool:
    try:
        psycopg.connect(conninfo).close()
    except psycopg.OperationalError:
        return False
    return True


def test_a_wrong_password_and_a_missing_database_are_told_apart(tmp_path: Path) -> None:
    with guarded_server() as url:
        wrong = failing(tmp_path / "1", at(url.replace(":right@", ":canary@")))
        missing = failing(tmp_path / "2", at(url.replace("/market", "/nowhere")))

    assert "refuses this Master" in wrong and "password authentication failed" in wrong and "canary" not in wrong
    assert "Correct user and password" in wrong
    assert '"nowhere\\" does not exist' in missing and "right" not in missing.replace("right one", "")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("a read-only disk needs root and unshare")
    read_only = ("unshare", "--mount", "--propagation=private", "sh", "-c")
    mounted = (*read_only, 'mount -t tmpfs -o ro tmpfs /mnt && exec "$@"', "sh")

    own = failing(Path("/mnt/data"), prefix=mounted)
    database = failing(tmp_path, at("sqlite:////mnt/market.sqlite3"), mounted)

    assert "/mnt/data cannot be used: Read-only file system" in own and "--data-dir" in own
    assert "/mnt cannot be used" in database and "WINDROW_DATABASE_URL" in database


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "master.sqlite3").write_bytes(b"a letter to my grandmother" * 100)

    said = failing(tmp_path, code=EXIT_HELPLESS)

    assert "master.sqlite3 is damaged: file is not a database" in said
    assert (tmp_path / "master.sqlite3").read_bytes().startswith(b"a letter")


def newer(path: Path) -> None:
    """A database as a later version would leave it."""
    engines = sqlite_engines(path)
    upgrade(engines.writer)
    engines.dispose()
    mark(path, "9999")


def mark(path: Path, revision: str) -> None:
    """Have a database say that it is of this revision."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
        connection.commit()


def test_a_database_of_a_newer_version_is_not_touched(tmp_path: Path) -> None:
    newer(tmp_path / "master.sqlite3")

    said = failing(tmp_path)

    assert "written by a newer Windrow" in said and "9999" in said and "Install that version" in said


@pytest.mark.slow
@pytest.mark.timeout(330)
@pytest.mark.long
def test_windrow_up_says_the_same_and_ends(tmp_path: Path) -> None:
    newer(tmp_path / "master.sqlite3")

    done = subprocess.run(
        [WINDROW, "up", "--data-dir", str(tmp_path)], capture_output=True, text=True, timeout=300, check=False
    )

    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert "written by a newer Windrow" in said and "Traceback" not in said, said
    assert not list(tmp_path.glob("*.lock"))
