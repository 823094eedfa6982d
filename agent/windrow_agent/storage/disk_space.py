"""Watches the free space of the disk: reports a full disk, and holds a reserve for what must be written."""

from collections.abc import Callable
from typing import Final

import structlog

from windrow_agent.threads import Runner
from windrow_proto.ballast import Ballast, ReservedDisk
from windrow_proto.conditions import ConditionCode
from windrow_proto.errors import StorageFailed, WindrowError
from windrow_proto.ports import Clock, Disk
from windrow_proto.units import MIB, SECOND

log = structlog.get_logger()

LOOK_EVERY_NS: Final = 5 * SECOND
BALLAST_BYTES: Final = 4 * MIB
"""Space for thousands of results, receipts and deletes on a disk that others have filled."""
DISK_FULL: Final = "agent.disk_full"
STORAGE_FAILED: Final = "agent.storage_failed"
STORAGE_DAMAGED: Final = "agent.storage_damaged"


class DiskSpace:
    """One host's disk with its ballast.

    reserved: the Disk for what must be written. faults: the conditions of this disk, as the Master is told.
    """

    def __init__(self, disk: Disk, directory: str, ballast_bytes: int, runner: Runner, clock: Clock) -> None:
        self._ballast = Ballast(disk, f"{directory}/ballast", ballast_bytes)
        self._directory, self._runner, self._clock = directory, runner, clock
        self.reserved = ReservedDisk(disk, self._ballast)
        self.faults: set[str] = set()

    @property
    def is_full(self) -> bool:
        """True if no new work may be taken."""
        return self._ballast.is_spent

    def note(self, error: WindrowError) -> None:
        """Something failed; if it was the disk, that is a condition until the agent starts again."""
        if isinstance(error, StorageFailed):
            self.faults.add(ConditionCode.AGENT_STORAGE_FAILED)

    async def look(self) -> bool:
        """Lay the ballast down where there is space; returns whether the disk is full."""
        is_full = await self._runner.call(self._ballast.tend)
        (self.faults.add if is_full else self.faults.discard)(ConditionCode.AGENT_DISK_FULL)
        return is_full

    async def keep(self, changed: Callable[[], None]) -> None:
        """Look now and then; `changed` is called when it became full or has space again. Until cancelled."""
        was_full = False
        while True:
            is_full = await self.look()
            if is_full != was_full:
                was_full = is_full
                log.warning("disk_full" if is_full else "disk_has_room", directory=self._directory)
                changed()
            await self._clock.sleep_ns(LOOK_EVERY_NS)
