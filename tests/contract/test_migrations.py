"""The contract of the migrations on every database: code and schema agree, old rows are kept, writers go on."""

import json
import shutil
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from textwrap import dedent, indent

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, insert, inspect, text
from sqlalchemy.exc import IntegrityError

from windrow_master.app.tables import whole_schema
from windrow_master.store.engine import Engines, engines_of
from windrow_master.store.migrate import MIGRATIONS, differences, newest, upgrade
from windrow_proto.errors import StorageFailed

SERVED = pytest.mark.proves("migrations on a real PostgreSQL, also under load")
REVISIONS = sorted(path.stem for path in MIGRATIONS.glob("[0-9]*.py"))
ENOUGH = 20
"""Rows that each writer adds before, and again after, the schema changes under it."""


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=SERVED)])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Engines]]:
    """Opens the same empty database, once more at each call."""
    is_served = request.param == "postgresql"
    url = request.getfixturevalue("empty_postgres_url") if is_served else f"sqlite:///{tmp_path / 'master.sqlite3'}"
    with ExitStack() as cleanup:

        def open_once_more() -> Engines:
            engines = engines_of(url)
            cleanup.callback(engines.dispose)
            return engines

        yield open_once_more


@pytest.fixture
def writer(opener: Callable[[], Engines]) -> Engine:
    return opener().writer


def test_the_migrated_schema_is_the_schema_in_code(writer: Engine) -> None:
    upgrade(writer)

    assert differences(writer, whole_schema()) == [], "run: python -m windrow_master.app.revision NAME"


def test_the_newest_migration_is_where_alembic_would_lead_to(writer: Engine) -> None:
    assert newest() == REVISIONS[-1] == ScriptDirectory(MIGRATIONS, version_locations=[MIGRATIONS]).get_current_head()
    upgrade(writer)
    assert _version(writer) == [newest()]


def test_upgrading_twice_changes_nothing(writer: Engine) -> None:
    upgrade(writer)
    upgrade(writer)

    assert differences(writer, whole_schema()) == []


@pytest.mark.parametrize(
    ("revision", "said"),
    [("0001", "is too old"), ("0029_job_files", "is too old"), ("9999", "was written by a newer Windrow")],
)
def test_a_database_of_another_revision_is_refused_and_nothing_is_written(
    writer: Engine, revision: str, said: str
) -> None:
    with writer.begin() as connection:
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32))"))
        connection.execute(text("INSERT INTO alembic_version VALUES (:revision)"), {"revision": revision})

    with pytest.raises(StorageFailed, match=f"{said}.* of revision {revision}, .* [Nn]othing was changed"):
        upgrade(writer)

    assert inspect(writer).get_table_names() == ["alembic_version"]
    assert _version(writer) == [revision]


def next_migration(folder: Path, upgrade: str) -> Path:
    """A folder with the migrations and one more, of which this is what it does."""
    for path in MIGRATIONS.glob("[0-9]*.py"):
        shutil.copy(path, folder)
    head = f"import sqlalchemy as sa\nfrom alembic import op\n\nrevision = '9999_next'\ndown_revision = '{newest()}'\n"
    (folder / "9999_next.py").write_text(f"{head}\n\ndef upgrade():\n{indent(dedent(upgrade), '    ')}")
    return folder


REBUILT = """
    with op.batch_alter_table("rentals") as rentals:
        rentals.create_check_constraint("held_at_least_nothing", "held >= 0")
"""
TORN = """
    op.execute("UPDATE rental_lines SET rental_id = 'rental_none'")
"""


def test_rows_that_refer_to_a_table_that_is_made_anew_are_kept(writer: Engine, tmp_path: Path) -> None:
    upgrade(writer)
    _add_rental(writer)

    upgrade(writer, next_migration(tmp_path, REBUILT))

    with writer.begin() as connection:
        assert connection.scalar(text("SELECT rental_id FROM rentals")) == "rental_1"
        assert connection.scalar(text("SELECT rental_id FROM rental_lines")) == "rental_1"
    assert _version(writer) == ["9999_next"]


def test_a_migration_that_tears_rows_from_those_they_refer_to_is_undone(writer: Engine, tmp_path: Path) -> None:
    upgrade(writer)
    _add_rental(writer)

    with pytest.raises((StorageFailed, IntegrityError)):
        upgrade(writer, next_migration(tmp_path, TORN))

    with writer.begin() as connection:
        assert connection.scalar(text("SELECT rental_id FROM rental_lines")) == "rental_1"
    assert _version(writer) == [newest()]


def _add_rental(writer: Engine) -> None:
    with writer.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO rentals (rental_id, cluster_id, cluster_name, renter, tier, price_per_hour, fee_permille,"
                " simulated, state, opened_at_ns, end_reason, held, charged)"
                " VALUES ('rental_1', 'cluster_1', 'lab', 'account_1', 'cpu/C', 1, 0, false, 'open', 0, '', 0, 0)"
            )
        )
        connection.execute(
            text(
                "INSERT INTO rental_lines (workload_id, rental_id, host_id, provider, price_per_hour, slots,"
                " lease_from_ns, lease_until_ns, seen_at_ns, signed_ns, receipts, end_reason, charged, fee_charged)"
                " VALUES ('workload_1', 'rental_1', 'host_1', 'account_1', 1, '[]', 0, 0, 0, 0, 0, '', 0, 0)"
            )
        )


def test_masters_that_start_together_upgrade_one_after_the_other(opener: Callable[[], Engines]) -> None:
    failures: list[BaseException] = []

    def start(engine: Engine) -> None:
        try:
            upgrade(engine)
        except BaseException as error:
            failures.append(error)

    engines = [opener().writer for _ in range(3)]
    for engine in engines:
        engine.connect().close()  # SQLite's switch to a log waits for nobody, and is made at the first connection
    threads = [threading.Thread(target=start, args=(engine,)) for engine in engines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert differences(engines[0], whole_schema()) == []


GROWN = """
    op.add_column("events", sa.Column("note", sa.Text(), nullable=True))
    op.create_index("ix_events_kind", "events", ["kind"])
    op.create_table("notes", sa.Column("number", sa.BigInteger(), primary_key=True))
"""


@pytest.mark.parametrize("opener", [pytest.param("postgresql", marks=SERVED)], indirect=True)
def test_writers_go_on_while_the_schema_grows(opener: Callable[[], Engines], tmp_path: Path) -> None:
    """Every write that was confirmed is there afterwards, and no write is refused.

    Only where several Masters may have the database: SQLite's one Master upgrades before it writes.
    """
    mover = opener().writer
    upgrade(mover)
    writers = [_Writer(number, opener().writer) for number in range(2)]
    for writer in writers:
        writer.start()
    _all_add(writers)
    upgrade(mover, next_migration(tmp_path, GROWN))
    _all_add(writers)
    for writer in writers:
        writer.stop()

    assert [writer.failure for writer in writers] == [None, None]
    with mover.begin() as connection:
        found = {row[0] for row in connection.execute(text("SELECT id FROM events"))}
    assert found == {f"event_{writer.number}_{n}" for writer in writers for n in range(writer.written)}
    assert _version(mover) == ["9999_next"]


class _Writer:
    """Adds rows as fast as it may, and counts what was committed."""

    def __init__(self, number: int, engine: Engine) -> None:
        self.number, self._engine = number, engine
        self.written = 0
        self.failure: Exception | None = None
        self._changed, self._is_wanted = threading.Condition(), True
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_wanted = False
        self._thread.join()

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.written >= count or self.failure is not None, 60)

    def _run(self) -> None:
        add = text(
            "INSERT INTO events (id, at_ns, kind, actor, text, fields) VALUES (:id, 0, 'load', 'writer', '', '{}')"
        )
        while self._is_wanted and self.failure is None:
            failure = None
            try:
                with self._engine.begin() as connection:
                    connection.execute(add, {"id": f"event_{self.number}_{self.written}"})
            except Exception as error:
                failure = error
            with self._changed:
                self.failure = failure
                self.written += failure is None
                self._changed.notify_all()


def _all_add(writers: list[_Writer]) -> None:
    for writer in writers:
        writer.wait_for(writer.written + ENOUGH)


def _version(engine: Engine) -> list[str]:
    with engine.connect() as connection:
        return [row[0] for row in connection.execute(text("SELECT version_num FROM alembic_version"))]


def test_a_route_that_was_kept_before_its_lists_had_a_forecast_gets_it(writer: Engine, tmp_path: Path) -> None:
    older = tmp_path / "older"
    older.mkdir()
    for path in MIGRATIONS.glob("[0-9]*.py"):
        if path.stem < "0035":
            shutil.copy(path, older)
    upgrade(writer, older)
    places = (("modal", "elsewhere", "not connected"), ("lab", "resource", ""), ("h100/A", "market", ""))
    ranked = [
        {"place": {"backend": name, "where": where, "offer": name, "host": "", "not_usable": why}, "score": 9.0}
        for name, where, why in places
    ]
    records = {"route_1": ranked, "route_2": [], "route_3": ranked, "route_4": None}
    with writer.begin() as connection:
        for route_id, found in records.items():
            said = json.dumps({"work": {"hours": 2.5}, "ranked": found, "refused": []}).encode()
            record = b"spoilt" if found is None else zlib.compress(said)
            values = {"route_id": route_id, "record": record}
            connection.execute(text("INSERT INTO routes VALUES (:route_id, 'account_1', 1, :record)"), values)
        _add_job(connection, "job_2", {"route_id": "route_3", "tier": "h100/A", "host_id": None})
        _add_job(connection, "job_3", {"route_id": "route_3", "tier": None, "host_id": None})

    upgrade(writer)

    with writer.begin() as connection:
        rows = connection.execute(text("SELECT hours, chosen, taken, job_id FROM routes ORDER BY route_id")).all()
    shown = [(*row[:2], json.loads(row[2]) if isinstance(row[2], str) else row[2], row[3]) for row in rows]
    assert shown == [
        (2.5, "lab", ranked[1], None),
        (2.5, None, None, None),
        (2.5, "lab", ranked[2], "job_2"),
        (None, None, None, None),
    ]


def _add_job(connection: Connection, job_id: str, request: dict[str, str | None]) -> None:
    jobs = whole_schema().tables["jobs"]
    values = {
        column.name: _SAMPLE[type(column.type).__name__]
        for column in jobs.columns
        if not column.nullable and column.server_default is None
    }
    connection.execute(insert(jobs).values({**values, "job_id": job_id, "request": request}))


_SAMPLE: dict[str, object] = {
    "String": "x",
    "Text": "x",
    "BigInteger": 1,
    "Integer": 1,
    "JSON": [],
    "LargeBinary": b"x",
    "Boolean": False,
}


def _add_accounts(writer: Engine) -> None:
    """Two accounts with a token each, and the Master's own, as before there were users."""
    every = ["auditor", "operator", "provider", "renter"]
    accounts: tuple[tuple[str, str, list[str], int], ...] = (
        ("account_1", "owner", every, 1),
        ("account_2", "home", ["renter"], 2),
        ("account_proof", "p", [], 0),
    )
    with writer.begin() as connection:
        for account_id, name, roles, at_ns in accounts:
            values = {"id": account_id, "name": name, "roles": json.dumps(roles), "at": at_ns}
            add = "INSERT INTO accounts (id, name, roles, created_at_ns) VALUES (:id, :name, :roles, :at)"
            connection.execute(text(add), values)
        for number, roles in ((1, every), (2, ["renter"])):
            token = {"id": f"token_{number}", "account": f"account_{number}", "sha256": bytes([number]) * 32}
            add = (
                "INSERT INTO api_tokens (id, account_id, name, sha256, roles, created_at_ns, expires_at_ns)"
                " VALUES (:id, :account, 'n', :sha256, :roles, 0, 9)"
            )
            connection.execute(text(add), {**token, "roles": json.dumps(roles)})


def test_an_account_from_before_there_were_users_is_a_users_project_and_its_tokens_hold(
    writer: Engine, tmp_path: Path
) -> None:
    older = tmp_path / "older"
    older.mkdir()
    for path in MIGRATIONS.glob("[0-9]*.py"):
        if path.stem < "0036":
            shutil.copy(path, older)
    upgrade(writer, older)
    _add_accounts(writer)

    upgrade(writer)

    def rows(query: str) -> list[tuple[object, ...]]:
        with writer.begin() as connection:
            return [
                tuple(json.loads(one) if isinstance(one, str) and one[:1] == "[" else one for one in row)
                for row in connection.execute(text(query))
            ]

    assert rows("SELECT id, name, organisation_id FROM accounts ORDER BY id") == [
        ("account_1", "default", "organisation_1"),
        ("account_2", "home", "organisation_2"),
        ("account_proof", "p", None),
    ]
    assert rows("SELECT id, name FROM organisations ORDER BY id") == [
        ("organisation_1", "home"),
        ("organisation_2", "home-2"),
    ]
    assert rows("SELECT id, name, roles FROM users ORDER BY id") == [
        ("user_1", "owner", ["auditor", "operator"]),
        ("user_2", "home", []),
    ]
    assert rows("SELECT user_id, role FROM organisation_members ORDER BY user_id") == [
        ("user_1", "org_owner"),
        ("user_2", "org_owner"),
    ]
    assert rows("SELECT account_id, user_id, roles FROM project_members ORDER BY user_id") == [
        ("account_1", "user_1", ["admin", "provider", "renter"]),
        ("account_2", "user_2", ["admin", "renter"]),
    ]
    (whole, narrow) = rows("SELECT user_id, roles, is_sign_in FROM api_tokens ORDER BY id")
    assert (whole[0], len(list(whole[1])), bool(whole[2])) == ("user_1", 10, False)  # type: ignore[call-overload]
    assert (narrow[0], narrow[1]) == ("user_2", ["renter"])
