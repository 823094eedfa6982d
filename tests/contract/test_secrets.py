"""A reader of the database, of either kind, finds nothing in it that signs in or joins a host."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from starlette.testclient import TestClient

from tests.master_support import ManualClock, SeededRng
from tests.support.canaries import Canaries, in_database, plant_over
from windrow_master.api.app import build_app
from windrow_master.app import wiring
from windrow_master.store.executors import InlineExecutor
from windrow_proto.disk_memory import MemoryDisk

PLANTED = {"planted token", "planted join token", "planted session", "wrong token", "cli.json"}


@pytest.fixture(
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.proves("no secret in PostgreSQL's rows"))]
)
def used(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Canaries, Any]]:
    """The secrets of a Master that has used each kind, and a connection to its database."""
    url = str(request.getfixturevalue("postgres_url")) if request.param == "postgresql" else None
    opened = wiring.build(
        tmp_path / "data",
        ManualClock(),
        SeededRng(3),
        database=url,
        disk=MemoryDisk(),
        make_executor=InlineExecutor,
    )
    secrets = Canaries()
    try:
        token = opened.services.identity.local_token(opened.services.identity.first_account(), None)
        secrets.add("cli.json", token)
        static = tmp_path / "static"
        static.mkdir()
        with TestClient(build_app(opened.services, static), base_url="http://master/api/v1") as client:
            plant_over(secrets, client, token)
        if url is None:
            connection: Any = sqlite3.connect(next((tmp_path / "data").glob("*.sqlite3")))
        else:
            connection = psycopg.connect(url.replace("+psycopg", ""), autocommit=True)
        with contextlib.closing(connection):
            yield secrets, connection
    finally:
        opened.close()


def test_no_secret_stands_in_the_rows(used: tuple[Canaries, Any]) -> None:
    secrets, connection = used

    assert set(secrets.found) == PLANTED
    assert in_database(secrets, connection) == []


@pytest.mark.parametrize("how", ["text", "bytes"])
def test_a_secret_that_was_planted_in_a_row_is_found(used: tuple[Canaries, Any], how: str) -> None:
    secrets, connection = used
    secret = max(secrets.found["planted join token"], key=lambda form: form.startswith(b"wj_"))
    column = {"text": "text", "bytes": "bytea"}[how]
    mark = "?" if isinstance(connection, sqlite3.Connection) else "%s"
    connection.execute(f"CREATE TABLE breach (held {column})")
    connection.execute(f"INSERT INTO breach VALUES ({mark})", (secret.decode() if how == "text" else secret,))

    assert in_database(secrets, connection) == ["planted join token stands in the table breach"]
