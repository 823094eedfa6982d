"""The contract of the migrations on every database: code and schema agree, both ways, while writers go on."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect, text
from sqlalchemy.exc import IntegrityError

from windrow_master.app.tables import whole_schema
from windrow_master.store.engine import Engines, engines_of
from windrow_master.store.migrate import MIGRATIONS, differences, downgrade, newest, upgrade

SERVED = pytest.mark.proves("migrations on a real PostgreSQL, up, down and under load")
REVISIONS = sorted(path.stem for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))
FIRST = "0001"
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
    assert newest() == REVISIONS[-1] == ScriptDirectory(str(MIGRATIONS)).get_current_head()
    upgrade(writer)
    assert _version(writer) == [newest()]


def test_upgrading_twice_changes_nothing(writer: Engine) -> None:
    upgrade(writer)
    upgrade(writer)

    assert differences(writer, whole_schema()) == []


def test_every_revision_leads_down_to_an_empty_database_and_up_again(writer: Engine) -> None:
    upgrade(writer)
    for revision in reversed(REVISIONS):
        downgrade(writer, "-1")
        assert revision not in _version(writer)
    left = set(inspect(writer).get_table_names()) - {"alembic_version"}
    upgrade(writer)

    assert left == set()
    assert differences(writer, whole_schema()) == []


def test_the_epoch_goes_on_from_the_terms_that_were_before_there_was_a_leader(writer: Engine) -> None:
    upgrade(writer, FIRST)
    with writer.begin() as connection:
        connection.execute(text("INSERT INTO terms (epoch, started_at_ns, version) VALUES (7, 0, 'old')"))
    upgrade(writer)

    with writer.begin() as connection:
        assert connection.scalar(text("SELECT epoch FROM leader")) == 7


def test_rentals_with_their_lines_are_kept_where_a_cluster_may_have_several_from_now_on(writer: Engine) -> None:
    add = (
        "INSERT INTO rentals (rental_id, cluster_id, cluster_name, renter, tier, price_per_hour, fee_permille,"
        " simulated, state, opened_at_ns, end_reason, held, charged)"
        " VALUES (:id, 'cluster_1', 'lab', 'account_1', 'cpu/C', 1, 0, false, 'open', 0, '', 0, 0)"
    )
    line = (
        "INSERT INTO rental_lines (workload_id, rental_id, host_id, provider, price_per_hour, slots, lease_from_ns,"
        " lease_until_ns, seen_at_ns, signed_ns, receipts, end_reason, charged, fee_charged)"
        " VALUES ('workload_1', :rental, 'host_1', 'account_1', 1, '[]', 0, 0, 0, 0, 0, '', 0, 0)"
    )
    upgrade(writer, "0019_login_of_jobs")
    with writer.begin() as connection:
        connection.execute(text(add), {"id": "rental_1"})
        connection.execute(text(line), {"rental": "rental_1"})
    upgrade(writer)

    with writer.begin() as connection:
        connection.execute(text(add), {"id": "rental_2"})
        assert connection.scalar(text("SELECT count(*) FROM rentals")) == 2
        assert connection.scalar(text("SELECT rental_id FROM rental_lines")) == "rental_1"
    with pytest.raises(IntegrityError), writer.begin() as connection:
        connection.execute(text(line.replace("workload_1", "workload_2")), {"rental": "rental_none"})
    with pytest.raises(IntegrityError):
        downgrade(writer, "0019_login_of_jobs")
    assert differences(writer, whole_schema()) == [], "what cannot lead back has changed nothing"


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


@pytest.mark.parametrize("opener", [pytest.param("postgresql", marks=SERVED)], indirect=True)
def test_writers_go_on_while_the_schema_is_led_up_and_down(opener: Callable[[], Engines]) -> None:
    """Every migration after the first: what a writer was told is committed is there afterwards, and none is refused.

    Only where several Masters may have the database: SQLite's one Master upgrades before it writes.
    """
    mover = opener().writer
    upgrade(mover, FIRST)
    writers = [_Writer(number, opener().writer) for number in range(2)]
    for writer in writers:
        writer.start()
    for _ in range(2):
        _all_add(writers)
        upgrade(mover)
        _all_add(writers)
        downgrade(mover, FIRST)
    upgrade(mover)
    for writer in writers:
        writer.stop()

    assert [writer.failure for writer in writers] == [None, None]
    with mover.begin() as connection:
        found = {row[0] for row in connection.execute(text("SELECT id FROM events"))}
    assert found == {f"event_{writer.number}_{n}" for writer in writers for n in range(writer.written)}
    assert differences(mover, whole_schema()) == []


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
