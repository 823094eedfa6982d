"""The contract of every store: grouped commits, savepoints, callbacks, terms.

On SQLite with threads, inline and on a simulated disk, and on PostgreSQL.
"""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import event

from tests.master_support import opened_store
from tests.simulation.database import Power, sharing_engines
from windrow_master.store.executors import InlineExecutor, ThreadExecutor
from windrow_master.store.prepared import say
from windrow_master.store.store import Ahead, Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, Fenced, NotFound, StorageFailed

SERVED = pytest.mark.proves("stores on a real PostgreSQL")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=SERVED)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path / 'master.sqlite3'}"


@pytest.fixture(params=["inline", "threads", "simulated", pytest.param("postgresql", marks=SERVED)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "simulated":
        yield from _simulated(tmp_path / "data")
        return
    executor = InlineExecutor() if request.param == "inline" else ThreadExecutor()
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    with opened_store(tmp_path / "data", executor=executor, database=url) as store:
        yield store


def _simulated(directory: Path) -> Iterator[Store]:
    """The store as the simulation has it: SQLite on a disk in memory whose power can be cut."""
    power = Power()  # SQLite forgets a disk that nobody holds
    engines = sharing_engines(power)
    store = Store.open(directory, *_world(), executor=InlineExecutor(), open_engines=lambda _: engines)
    try:
        yield store
    finally:
        store.close()


def _note(kind: str, subject: str = "host_1"):
    def note(uow: UnitOfWork) -> int:
        uow.event(kind, [subject], kind)
        return uow.events.newest(subject, limit=1)[0].number

    return note


async def test_a_write_is_seen_by_every_read_after_its_answer(store: Store) -> None:
    number = await store.write(_note("seen"), name="note")

    rows = await store.read(lambda uow: uow.events.newest("host_1"))

    assert [(row.number, row.kind, row.subjects) for row in rows] == [(number, "seen", ("host_1",))]


async def test_writes_asked_together_share_commits_and_keep_their_order(store: Store) -> None:
    before = store.figures.commits

    numbers = await asyncio.gather(*[store.write(_note(f"kind.{n}"), name="note") for n in range(100)])

    assert numbers == sorted(numbers)
    assert store.figures.commits - before < 20
    rows = await store.read(lambda uow: uow.events.after(0, limit=200))
    assert [row.kind for row in rows] == [f"kind.{n}" for n in range(100)]


async def test_a_function_that_raises_leaves_nothing_and_does_not_disturb_its_neighbours(store: Store) -> None:
    def raises(uow: UnitOfWork) -> None:
        uow.event("never", ["host_1"], "never")
        raise Conflict("as planned")

    answers = await asyncio.gather(
        store.write(_note("first"), name="note"),
        store.write(raises, name="raises"),
        store.write(_note("last"), name="note"),
        return_exceptions=True,
    )

    assert [type(answer) for answer in answers] == [int, Conflict, int]
    rows = await store.read(lambda uow: uow.events.after(0))
    assert [row.kind for row in rows] == ["first", "last"]


async def test_writes_that_share_a_commit_have_what_they_read_first_read_at_once(store: Store) -> None:
    read, before = list[list[str]](), store.figures.commits

    def ahead(uow: UnitOfWork, keys: Sequence[str]) -> None:
        read.append(list(keys))

    wanted = [Ahead(ahead, (f"host_{number}", "both")) for number in range(100)]
    await asyncio.gather(*[store.write(_note("seen"), name="note", ahead=one) for one in wanted])

    assert 0 < len(read) <= store.figures.commits - before < 100
    assert all(keys.count("both") == 1 for keys in read)
    numbers = [int(key.removeprefix("host_")) for keys in read for key in keys if key != "both"]
    assert len(numbers) > 90 and numbers == sorted(set(numbers))  # who is alone in a commit reads by itself


async def test_a_read_ahead_that_fails_disturbs_no_write(store: Store) -> None:
    def ahead(uow: UnitOfWork, keys: Sequence[str]) -> None:
        uow.audit("master", "read", keys[0])
        uow.events.newest(keys[0], limit=1)
        raise ValueError("a row that cannot be read")

    asked = [store.write(_note(key, key), name="note", ahead=Ahead(ahead, (key,))) for key in ("one", "two", "three")]
    numbers = await asyncio.gather(*asked)

    assert numbers == sorted(numbers)
    assert await store.read(lambda uow: [len(uow.events.newest(key)) for key in ("one", "two", "three")]) == [1, 1, 1]
    assert await store.read(lambda uow: [one for one in uow.audit_log.list() if one.action == "read"]) == []
    assert await store.read(lambda uow: uow.audit_log.first_broken()) is None


async def test_where_the_database_has_ended_the_transaction_nothing_of_it_stays_and_the_next_one_is_written(
    store: Store,
) -> None:
    def ended(uow: UnitOfWork) -> None:
        uow.event("before", ["host_1"], "before")
        with uow.attempt():
            uow.event("within", ["host_1"], "within")
            say(uow.connection, "ROLLBACK")  # as where a server is stopped, or a session ended
            raise Conflict("whatever it was")

    answers = await asyncio.gather(*[store.write(ended, name="ended") for _ in range(2)], return_exceptions=True)

    assert [type(answer) for answer in answers] == [StorageFailed] * 2
    assert await store.read(lambda uow: uow.events.after(0)) == []
    later = await store.write(_note("later"), name="note")
    assert [row.number for row in await store.read(lambda uow: uow.events.after(0))] == [later]


async def test_callbacks_and_listeners_run_after_the_commit_and_only_for_what_was_committed(store: Store) -> None:
    said: list[str] = []
    store.on_event(lambda row: said.append(f"event {row.kind}"))

    def good(uow: UnitOfWork) -> None:
        uow.event("good", ["a"], "good")
        uow.after_commit(lambda: said.append("callback"))

    def bad(uow: UnitOfWork) -> None:
        uow.event("bad", ["a"], "bad")
        uow.after_commit(lambda: said.append("never"))
        raise NotFound

    await asyncio.gather(store.write(bad, name="bad"), store.write(good, name="good"), return_exceptions=True)

    assert said == ["event good", "callback"]


async def test_a_failed_commit_fails_every_write_in_it_and_acknowledges_none(store: Store) -> None:
    told: list[str] = []
    store.on_event(lambda row: told.append(row.kind))

    def refuse(connection: object) -> None:
        raise OSError("no space left on device")

    event.listen(store._engines.writer, "commit", refuse)
    answers = await asyncio.gather(*[store.write(_note("lost"), name="note") for _ in range(3)], return_exceptions=True)
    event.remove(store._engines.writer, "commit", refuse)

    assert [type(answer).__name__ for answer in answers] == ["StorageFailed"] * 3
    assert told == []
    assert await store.read(lambda uow: uow.events.after(0)) == []
    # Numbers of what failed may be missing for ever; they never come twice.
    later = await store.write(_note("later"), name="note")
    assert [row.number for row in await store.read(lambda uow: uow.events.after(0))] == [later]


async def test_reading_cannot_write(store: Store) -> None:
    with pytest.raises(StorageFailed):
        await store.read(_note("never"))


async def test_a_newer_term_fences_this_one(store: Store) -> None:
    with store._engines.writer.begin() as connection:
        connection.exec_driver_sql("UPDATE leader SET epoch = 2")

    with pytest.raises(Fenced):
        await store.write(_note("late"), name="note")
    assert store.problem is not None


async def test_the_epoch_grows_by_one_at_each_start_and_stops_are_recorded(tmp_path: Path, database: str) -> None:
    epochs = []
    for _ in range(3):
        with opened_store(tmp_path / "again", database=database) as store:
            epochs.append(store.epoch)

    assert epochs == [1, 2, 3]
    with opened_store(tmp_path / "again", database=database) as store:
        query = "SELECT stopped_at_ns FROM terms ORDER BY epoch"
        rows = store.read_now(lambda uow: uow.connection.exec_driver_sql(query).all())
    assert [row[0] is not None for row in rows] == [True, True, True, False]


def test_a_second_master_in_the_same_directory_is_refused_by_name(tmp_path: Path) -> None:
    with opened_store(tmp_path / "one"), pytest.raises(Conflict, match="Another Master"):
        Store.open(tmp_path / "one", *_world())
    with opened_store(tmp_path / "one"):
        pass
    assert not (tmp_path / "one" / "master.lock").exists()


def _world():
    from tests.master_support import ManualClock, SeededRng

    return ManualClock(), SeededRng()
