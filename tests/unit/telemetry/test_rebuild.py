"""History can be made again from the log: charts say what they said, and what only the old file knew is kept."""

import time
from pathlib import Path

import pytest

from tests import as_it_was
from tests.master_support import ManualClock
from tests.unit.telemetry.world import BOOT, HOST, batch, record
from windrow_master.store.executors import InlineExecutor
from windrow_master.telemetry.model import GroupQuery, Place, SeriesKey, SeriesQuery
from windrow_master.telemetry.rebuild import service as rebuild
from windrow_master.telemetry.service import TelemetryService
from windrow_proto.data_directory import DirectoryLock
from windrow_proto.disk import OsDisk
from windrow_proto.errors import Conflict
from windrow_proto.ids import BootId
from windrow_proto.segments import segment_numbers, segment_path
from windrow_proto.units import DAY, HOUR, MILLISECOND, MINUTE

POWER = 6
GPUS = ("GPU-1", "GPU-2")
STEPS_MS = (60_000, 300_000, 3_600_000)


class Master:
    """Telemetry on a real disk, opened and closed as terms go."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.clock, self.epoch, self.sequence = directory, ManualClock(time.time_ns()), 0, 0
        self.clock.advance(HOUR - self.clock.wall_ns() % HOUR)
        self.start_ms = self.clock.wall_ns() // MILLISECOND
        self.tiers: dict[Place, str] = {(HOST, gpu): "h100/A" for gpu in GPUS}
        self.said: list[str] = []
        self.open()

    def open(self) -> None:
        self.epoch += 1
        self.service = TelemetryService(
            OsDisk(),
            self.directory,
            self.epoch,
            self.clock,
            log_executor=InlineExecutor(),
            view_executor=InlineExecutor(),
            tiers=lambda: self.tiers,
        )

    async def live(self, minutes: int) -> None:
        """As long as that, with a batch a minute."""
        for _ in range(minutes):
            self.sequence += 1
            row = {(gpu, POWER): 10 * self.sequence + place for place, gpu in enumerate(GPUS)}
            body = batch(self.clock.wall_ns(), row, row)
            boot = BootId(BOOT[:-4] + self.epoch.to_bytes(4, "big"))
            await self.service.append(HOST, [record(self.sequence, body, boot=boot)])
            self.clock.advance(MINUTE)
        await self.service.view.catch_up()

    async def charts(self) -> list[object]:
        to_ms = self.clock.wall_ns() // MILLISECOND // 3_600_000 * 3_600_000 + 3_600_000
        keys = tuple(SeriesKey(HOST, gpu, POWER) for gpu in GPUS)
        found: list[object] = []
        for step_ms in STEPS_MS:
            found.append(await self.service.series(SeriesQuery(keys, self.start_ms, to_ms, step_ms)))
            found.append(await self.service.grouped(GroupQuery(POWER, self.start_ms, to_ms, step_ms)))
        return found

    def forget_log(self) -> None:
        """The log's first term is gone, as retention leaves it."""
        folder = f"{self.directory}/log/{1:012d}"
        for number in segment_numbers(OsDisk(), folder):
            Path(segment_path(folder, number)).unlink()

    def rebuild(self, *, is_remote: bool = False) -> None:
        rebuild.run(self.directory, OsDisk(), self.clock, self.said.append, is_remote=is_remote)


@pytest.fixture
async def m(tmp_path):
    master = Master(tmp_path)
    yield master
    master.service.close()


@pytest.fixture
async def old(m):
    """Three hours, of which the log still holds the last half; closed."""
    await m.live(90)
    m.service.close()
    m.open()
    m.tiers[HOST, "GPU-2"] = "h100/B"
    await m.live(90)
    m.wanted = await m.charts()
    m.service.close()
    return m


def in_a_thread(work):
    """The command has a loop of its own."""
    import asyncio

    return asyncio.to_thread(work)


async def test_a_rebuilt_history_says_what_the_old_one_said(old):
    old.forget_log()
    await in_a_thread(old.rebuild)
    assert sorted(path.name for path in (old.directory / "history").iterdir()) == [
        "history-0001.duckdb.replaced",
        "history-0002.duckdb",
    ]
    old.open()
    await old.service.view.catch_up()
    assert await old.charts() == old.wanted
    assert any("samples" in line for line in old.said)


@pytest.mark.parametrize("is_there", [True, False], ids=["garbled", "deleted"])
async def test_without_a_readable_file_everything_comes_from_the_log(old, is_there):
    (path,) = (old.directory / "history").glob("*.duckdb")
    path.write_bytes(b"\xff" * 50_000) if is_there else path.unlink()
    old.tiers[HOST, "GPU-2"] = "h100/A"  # who was in which tier is not in the log
    await in_a_thread(old.rebuild)
    old.open()
    await old.service.view.catch_up()
    series = [chart for chart in await old.charts() if isinstance(chart, tuple)]
    assert series == [chart for chart in old.wanted if isinstance(chart, tuple)]
    assert (path.with_name(path.name + ".damaged")).exists() == is_there


async def test_what_is_older_than_samples_are_kept_is_taken_over_rolled_up(old):
    old.forget_log()
    old.clock.advance(6 * DAY)
    old.open()
    await old.service.view.catch_up()
    await old.live(1)
    wanted = await old.charts()
    old.service.close()
    await in_a_thread(old.rebuild)
    old.open()
    await old.service.view.catch_up()
    assert await old.charts() == wanted


async def test_beside_a_master_it_refuses_and_says_why(m):
    await m.live(2)
    lock = DirectoryLock(m.directory)
    with pytest.raises(Conflict, match="Stop it first"):
        await in_a_thread(m.rebuild)
    lock.release()
    with as_it_was.contained():
        assert rebuild.main([], m.directory / "nowhere") == 1


async def test_a_metrics_store_is_sent_the_log_again(m):
    cursor = m.directory / "history" / "remote-0123456789ab.json"
    cursor.parent.mkdir(exist_ok=True)
    cursor.write_text("{}")
    m.rebuild(is_remote=True)
    assert not cursor.exists()
    assert "again" in m.said[-1]
