"""Power cuts over the Master's SQLite: committed rows are there, half a transaction never is, and the store starts."""

import os
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import apsw
import pytest

from tests.master_support import ManualClock, SeededRng
from tests.simulation import database
from tests.simulation.database import MemoryFile, Power, sharing_engines
from windrow_master.store.executors import InlineExecutor
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import StorageFailed

IMAGES = 1_200 if os.environ.get("TORTURE") else 16
STARTS = 20 if os.environ.get("TORTURE") else 2
"""Of the images, those on which a whole store is opened; the others are read with SQLite itself."""
pytestmark = pytest.mark.timeout(1_800)
"""The long form takes minutes of a processor, and more where it is shared."""
FIRST = int(os.environ.get("SEED") or "1")


@dataclass
class Cutting(Power):
    """A disk of which images are taken before each write or sync, as luck has it."""

    luck: random.Random = field(default_factory=random.Random)
    share: float = 0.0
    committed: int = 0
    images: list[tuple[Power, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        Power.__init__(self)

    def step(self) -> None:
        if self.luck.random() < self.share:
            self.images.append((Power.cut(self, self.luck), self.committed))
        super().step()


def opened(power: Power, folder: Path) -> Store:
    engines = sharing_engines(power)
    return Store.open(
        folder, ManualClock(), SeededRng(power.steps), executor=InlineExecutor(), open_engines=lambda _: engines
    )


def two_rows(number: int):
    """Two audit rows that belong together."""

    def change(uow: UnitOfWork) -> None:
        uow.audit("master", "torture.first", f"subject/{number}", fields={"pad": "x" * (number * 37 % 900)})
        uow.audit("master", "torture.second", f"subject/{number}")

    return change


def taken(folder: Path, seed: int, wanted: int, ignores_sync: bool = False) -> list[tuple[Power, int]]:
    power = Cutting(luck=random.Random(seed))
    store = opened(power, folder)
    power.share, power.ignores_sync = 0.05, ignores_sync
    while len(power.images) < wanted:
        store.write_now(two_rows(power.committed), name="torture")
        power.committed += 1
        if power.committed % 60 == 0:  # a checkpoint in between: the WAL goes into the database
            with store._engines.writer.connect() as connection:
                raw: Any = connection.connection.driver_connection
                raw.raw.pragma("wal_checkpoint(TRUNCATE)")
    power.share = 0.0
    store.close()
    return power.images[:wanted]


def judge(power: Power, committed: int) -> list[str]:
    connection = apsw.Connection("/master.sqlite3", vfs=power.name)
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    try:
        whole = connection.execute("PRAGMA integrity_check").fetchall()
        rows = connection.execute(
            "SELECT subject, count(*) FROM audit WHERE action LIKE 'torture.%' GROUP BY subject"
        ).fetchall()
    except apsw.Error as error:
        return [f"cannot be read: {error}"]
    finally:
        connection.close(True)
    faults = [] if whole == [("ok",)] else [f"integrity: {whole[:2]}"]
    faults += [f"{subject} is there by half" for subject, count in rows if count != 2]
    lost = {f"subject/{n}" for n in range(committed)} - {subject for subject, _ in rows}
    extra = len(rows) - committed
    return faults + [f"{subject} was committed and is lost" for subject in lost] + ["false rows"] * (extra > 1)


def test_sqlite_keeps_what_was_committed_through_power_cuts(tmp_path: Path) -> None:
    images = taken(tmp_path / "first", FIRST, IMAGES)
    for number, (power, committed) in enumerate(images):
        assert judge(power.cut(), committed) == [], f"image {number}"
    for number, (power, _) in enumerate(images[:: max(1, len(images) // STARTS)]):
        store = opened(power, tmp_path / f"again-{number}")
        assert store.epoch == 2
        store.close()


def lost_behind_a_failed_sync(folder: Path) -> set[str]:
    """A commit's fsync fails, the Master is killed and started again, goes on, and the power goes; what is missing."""
    power = Power()
    first = opened(power, folder / "first")
    first.write_now(two_rows(0), name="torture")
    power.refuse = power.steps + steps_to_sync(folder / "probe")
    with pytest.raises(StorageFailed):
        first.write_now(two_rows(1), name="torture")
    power.refuse = None
    again = opened(power, folder / "again")
    for number in (2, 3):
        again.write_now(two_rows(number), name="torture")
    cut = power.cut()
    connection = apsw.Connection("/master.sqlite3", vfs=cut.name)
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    kept = {
        str(subject) for (subject,) in connection.execute("SELECT subject FROM audit WHERE action LIKE 'torture.%'")
    }
    connection.close(True)
    again.close()
    return {"subject/0", "subject/2", "subject/3"} - kept


def steps_to_sync(folder: Path) -> int:
    """Which step of the second write is its sync."""
    power = Power()
    store = opened(power, folder)
    store.write_now(two_rows(0), name="torture")
    began, seen, sync = power.steps, [], MemoryFile.sync

    def noted(file: MemoryFile) -> None:
        seen.append(power.steps - began)
        sync(file)

    with mock.patch.object(MemoryFile, "sync", noted):
        store.write_now(two_rows(1), name="torture")
    store.close()
    return seen[0]


def test_what_is_committed_after_a_failed_fsync_and_a_new_start_survives_a_power_cut(tmp_path: Path) -> None:
    assert lost_behind_a_failed_sync(tmp_path) == set()


def test_without_moving_what_was_left_it_would_be_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "RECOVERED", "PRAGMA user_version")
    assert lost_behind_a_failed_sync(tmp_path) == {"subject/2", "subject/3"}


def test_the_judge_catches_a_database_without_syncs(tmp_path: Path) -> None:
    images = taken(tmp_path, FIRST, 12, ignores_sync=True)
    assert any(judge(power.cut(), committed) for power, committed in images)
