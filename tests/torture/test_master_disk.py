"""The Master's disk fails at its n-th call, for every n: nothing is damaged and nothing falsely acknowledged."""

import errno
import os
import random
from pathlib import Path

import apsw
import pytest

from tests.master_support import ManualClock
from tests.simulation.database import Power
from tests.torture.cuts import Cut, LogPromise, judge_log, open_log
from tests.torture.platter import Fault, Platter
from tests.torture.test_database_cuts import judge, opened, two_rows
from windrow_master.telemetry.model import LogRecord
from windrow_proto.errors import WindrowError
from windrow_proto.ids import BootId, HostId
from windrow_proto.model import Kind
from windrow_proto.segments import SegmentLog
from windrow_proto.units import SECOND

pytestmark = pytest.mark.timeout(1_800)
"""The long form takes minutes of a processor, and more where it is shared."""
STRIDE = 1 if os.environ.get("TORTURE") else 5
"""Of the calls that are let fail: all in the long form, every fifth in the short one."""
BOOT = BootId(b"b" * 16)


async def append_all(disk: Platter) -> LogPromise:
    """Twenty appends with their checkpoints; what was acknowledged and what was given."""
    clock = ManualClock()
    given: dict[tuple[str, bytes, int], bytes] = {}
    acked: set[tuple[str, bytes, int]] = set()
    try:
        log = open_log(disk, 1, clock)
    except WindrowError:
        return LogPromise(frozenset(), {}, 1)
    for number in range(1, 21):
        body = bytes([number]) * 700
        given["host_1", BOOT, number] = body
        record = LogRecord(HostId("host_1"), BOOT, number, Kind.TELEMETRY, clock.wall_ns(), body)
        try:
            await log.append([record])
            acked.add(("host_1", BOOT, number))
        except WindrowError:
            pass  # refused: the agent keeps it
        clock.advance(60 * SECOND)
        log.run_retention()
    log.close()
    return LogPromise(frozenset(acked), given, 1)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC], ids=["eio", "enospc"])
async def test_every_call_of_the_telemetry_logs_disk_may_fail(number: int) -> None:
    whole = Platter()
    assert len((await append_all(whole)).acked) == 20
    failed = 0
    for at in range(1, whole.calls + 1, STRIDE):
        disk = Platter()
        disk.fault = Fault(at, number)
        promise = await append_all(disk)
        failed += disk.refused > 0
        assert judge_log(Cut(disk.image(random.Random(at)), promise, "")) == [], f"call {at} of {whole.calls}"
    assert failed >= whole.calls // STRIDE // 2, "hardly any of the faults happened"


async def test_the_sweep_catches_a_log_that_syncs_the_same_file_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def trusting(log: SegmentLog) -> None:
        log._broken, log._dirty = "", True

    monkeypatch.setattr(SegmentLog, "begin_anew", trusting)
    faults: list[str] = []
    for at in range(1, 60):
        disk = Platter()
        disk.fault = Fault(at, errno.EIO)
        promise = await append_all(disk)
        faults += judge_log(Cut(disk.image(random.Random(at)), promise, ""))
    assert any("is lost" in fault for fault in faults)


class Failing(Power):
    """A disk for SQLite that fails from one call on, as broken or as full."""

    kind: type[apsw.Error] = apsw.IOError

    def step(self) -> None:
        self.steps += 1
        if self.refuse is not None and self.steps >= self.refuse:
            raise self.kind("the disk failed")


def write_some(power: Failing, folder: Path, at: int) -> int:
    """Ten writes; returns how many were answered as stored, which are the first ones."""
    store = opened(power, folder)
    power.refuse = power.steps + at
    stored = 0
    try:
        for number in range(10):
            store.write_now(two_rows(number), name="torture")
            stored += 1
    except WindrowError:
        pass  # said so: nothing false was told
    power.refuse = None
    store.close()
    return stored


@pytest.mark.parametrize("kind", [apsw.IOError, apsw.FullError], ids=["eio", "enospc"])
def test_every_call_of_the_databases_disk_may_fail(tmp_path: Path, kind: type[apsw.Error]) -> None:
    for at in range(1, 60, STRIDE):
        power = Failing()
        power.kind = kind
        stored = write_some(power, tmp_path / str(at), at)
        assert judge(power.cut(random.Random(at)), stored) == [], f"call {at}"
