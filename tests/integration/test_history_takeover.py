"""A leader that hangs keeps its file of history; the next one goes on with another, and charts read both in the end."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.master_support import ManualClock
from tests.unit.telemetry.world import HOST, batch, record
from windrow_master.store.executors import InlineExecutor
from windrow_master.telemetry.model import GroupQuery, SeriesKey, SeriesQuery
from windrow_master.telemetry.service import TelemetryService
from windrow_proto.disk import OsDisk
from windrow_proto.ids import BootId
from windrow_proto.units import MILLISECOND, MINUTE, SECOND

POWER = 6
KEY = SeriesKey(HOST, "GPU-1", POWER)
FIRST = """
import asyncio, sys
from pathlib import Path
from tests.integration.test_history_takeover import Leader

async def main():
    leader = Leader(Path(sys.argv[1]), 1, int(sys.argv[2]))
    await leader.send(10)
    print("ready", flush=True)
    sys.stdin.read()

asyncio.run(main())
"""


class Leader:
    """The part of a Master that follows its log: telemetry of one term, at a time that stands still."""

    def __init__(self, directory: Path, epoch: int, now_ns: int) -> None:
        self.epoch, self.clock = epoch, ManualClock(now_ns)
        self.service = TelemetryService(
            OsDisk(),
            directory,
            epoch,
            self.clock,
            log_executor=InlineExecutor(),
            view_executor=InlineExecutor(),
            tiers=lambda: {(HOST, "GPU-1"): "h100/A"},
        )

    async def send(self, value: int) -> None:
        body = batch(self.clock.wall_ns() - 2 * SECOND, {("GPU-1", POWER): value})
        await self.service.append(HOST, [record(1, body, boot=BootId(bytes([self.epoch]) * 16))])
        await self.service.view.catch_up()

    async def chart(self, from_ms: int, minutes: int) -> list[float | None]:
        to_ms = from_ms + minutes * 60_000
        (series,) = await self.service.series(SeriesQuery((KEY,), from_ms, to_ms, 60_000))
        tiers = await self.service.grouped(GroupQuery(POWER, from_ms, to_ms, 60_000))
        assert tiers["h100/A"] == series.points, "the fleet is that one GPU"
        return [value for _, value in series.points]


@pytest.fixture
def now_ns() -> int:
    """A whole minute, at which the first leader leads."""
    return time.time_ns() // MINUTE * MINUTE


@pytest.fixture
def first(tmp_path: Path, now_ns: int) -> Iterator["subprocess.Popen[str]"]:
    """A leader in a process of its own, stopped when it has taken in what it was sent."""
    command = [sys.executable, "-c", FIRST, str(tmp_path), str(now_ns)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGSTOP)
            yield process
        finally:
            process.kill()


@pytest.mark.proves("history across a leader that hangs: the next goes on, and reads the old file when it may")
async def test_charts_read_the_file_of_a_leader_that_hung_as_soon_as_it_is_gone(
    tmp_path: Path, now_ns: int, first: "subprocess.Popen[str]"
) -> None:
    start_ms = now_ns // MILLISECOND - 60_000
    second = Leader(tmp_path, 2, now_ns + MINUTE)
    await second.send(20)
    assert second.service.view.health().path.endswith("history-0002.duckdb")
    assert await second.chart(start_ms, 2) == [1.0, 2.0], "the log of the term before is in the new file, too"
    second.service.close()

    # What only the file of the one that hangs knows, since retention has taken its log.
    for path in (tmp_path / "history").glob("history-0002.duckdb*"):
        path.unlink()
    for path in (tmp_path / "log" / f"{1:012d}").iterdir():
        path.unlink()
    third = Leader(tmp_path, 3, now_ns + MINUTE)
    await third.service.view.catch_up()
    assert await third.chart(start_ms, 2) == [None, 2.0]

    first.kill()
    first.wait()
    third.clock.advance(2 * MINUTE)
    await third.service.view.catch_up()
    assert await third.chart(start_ms, 2) == [1.0, 2.0]
    third.service.close()
