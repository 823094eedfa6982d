"""The disk of the simulation: committed survives every power cut, unsynced does not, a failing disk refuses."""

import random

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import StaticPool

from tests.simulation.database import Power, driver, migrated, sharing_engines
from windrow_master.app.tables import whole_schema
from windrow_master.store.engine import set_up
from windrow_master.store.migrate import differences

PRAGMAS = ("PRAGMA locking_mode=EXCLUSIVE", "PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL")


def engine(power: Power, *pragmas: str) -> Engine:
    made = create_engine("sqlite:////db", module=driver(power), poolclass=StaticPool)
    set_up(made, begin="BEGIN IMMEDIATE", pragmas=(*PRAGMAS, *pragmas))
    return made


def insert(to: Engine, value: int) -> None:
    with to.begin() as connection:
        connection.execute(text("insert into t values (:v)"), {"v": value})


def table(to: Engine) -> None:
    with to.begin() as connection:
        connection.execute(text("create table if not exists t (v integer primary key)"))


@pytest.mark.parametrize("seed", range(20))
def test_what_was_committed_survives_a_power_cut(seed: int) -> None:
    power, luck = Power(), random.Random(seed)
    committed = 0
    for _ in range(3):
        opened = engine(power)  # one connection for each life of the machine, as the lock has no owner here
        table(opened)
        for _ in range(luck.randrange(1, 20)):
            insert(opened, committed)
            committed += 1
        power = power.cut(luck)
    with engine(power).begin() as connection:
        assert connection.execute(text("select count(*) from t")).scalar_one() == committed
        assert connection.execute(text("pragma integrity_check")).scalar_one() == "ok"


def test_the_control_without_syncs_loses_what_was_committed() -> None:
    power = Power()
    power.ignores_sync = True
    opened = engine(power)
    table(opened)
    insert(opened, 1)
    assert all(not file.content for file in power.cut().files.values())


def test_a_failing_disk_is_an_error_and_not_a_commit() -> None:
    power = Power()
    opened = engine(power)
    table(opened)
    insert(opened, 1)
    power.refuse = power.steps + 2
    with pytest.raises(OperationalError):
        insert(opened, 2)
    with engine(power.cut()).begin() as connection:
        assert connection.execute(text("select v from t")).scalars().all() == [1]


def test_who_reads_cannot_write_though_both_share_one_connection() -> None:
    engines = sharing_engines(Power())
    table(engines.writer)
    insert(engines.writer, 1)
    for statement in ("insert into t values (2)", "  DELETE FROM t", "update t set v = 3", "drop table t"):
        with pytest.raises(OperationalError, match="readonly"), engines.reader.begin() as connection:
            connection.execute(text(statement))
    insert(engines.writer, 4)
    with engines.reader.begin() as connection:
        assert connection.execute(text("select v from t")).scalars().all() == [1, 4]


def test_a_disk_that_comes_migrated_lacks_nothing_even_after_a_cut_and_each_is_its_own() -> None:
    written = migrated()
    table(sharing_engines(written).writer)

    assert differences(sharing_engines(migrated().cut()).writer, whole_schema()) == []
    # What was written may still be in the log beside the file: who closes it, and when, is the collector's affair.
    own = {name: bytes(file.content) for name, file in written.files.items()}
    assert own != {name: bytes(file.content) for name, file in migrated().files.items()}
