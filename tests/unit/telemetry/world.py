"""Batches, and a telemetry service on a disk in memory, for the tests of telemetry."""

from pathlib import Path

from tests.master_support import ManualClock
from windrow_master.store.executors import InlineExecutor
from windrow_master.telemetry.model import Place
from windrow_master.telemetry.service import TelemetryService
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.ids import BootId, HostId
from windrow_proto.messages import Record
from windrow_proto.model import FrameClass, Kind
from windrow_proto.samples import Sample, encode_batch
from windrow_proto.units import SECOND

HOST = HostId("host_1")
BOOT = BootId(b"b" * 16)
GPU = "GPU-1"


def batch(start_ns, *rows):
    """One batch; each row is a mapping of (device, metric) to wire integers, one second apart."""
    return encode_batch([Sample(start_ns + n * SECOND, row) for n, row in enumerate(rows)])


def record(sequence, body, kind=Kind.TELEMETRY, boot=BOOT):
    return Record(boot, sequence, kind, body), FrameClass.LIVE


class Telemetry:
    """The service on a MemoryDisk; `reopen` is a new Master on what the disk kept."""

    def __init__(self, directory: Path) -> None:
        self.disk, self.directory, self.clock, self.epoch = MemoryDisk(), directory, ManualClock(), 0
        self.tiers: dict[Place, str] = {}
        self.reopen()

    def reopen(self):
        self.epoch += 1
        self.service = TelemetryService(
            self.disk,
            self.directory,
            self.epoch,
            self.clock,
            log_executor=InlineExecutor(),
            view_executor=InlineExecutor(),
            tiers=lambda: self.tiers,
        )

    async def send(self, sequence, body, **kwargs):
        await self.service.append(HOST, [record(sequence, body, **kwargs)])

    def have(self, boot=BOOT):
        return self.service.have(HOST, boot).ranges


__all__ = ["BOOT", "GPU", "HOST", "SECOND", "Telemetry", "batch", "record"]
