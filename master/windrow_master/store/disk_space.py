"""Watches the free space on the disks of the log and the database, and reserves some for writes that must succeed.

     free < FLOOR, or a write found no space                   free >= FLOOR + ballast again
has space ─────────────────────────────────────────▶ full ──────────────────────────────────────▶ has space
                                                      new clusters and members are refused, samples are not stored;
                                                      deletes, renewals, results, receipts: in pieces of the ballast

Bulk (samples, history, the programs' logs) never spends the ballast.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from windrow_master.loops import again
from windrow_proto.ballast import Ballast
from windrow_proto.conditions import ConditionCode, Stated
from windrow_proto.errors import DiskFull, WindrowError
from windrow_proto.ports import Clock, Disk
from windrow_proto.units import MIB, SECOND

BALLAST_BYTES: Final = 64 * MIB
"""Of each disk: 16 MiB of SQLite's log between checkpoints (store/engine.py), as much for the database itself, and the
rest for hours of deletes, receipts and renewals."""
PIECE_BYTES: Final = 8 * MIB
"""Given up at a time: who fills the disk without end gets one piece, not all of them."""
FLOOR_BYTES: Final = 64 * MIB
"""Below it the disk counts as full, so that the ordinary end of a disk is met before any write fails."""
UPLOAD_FLOORS: Final = 2
"""People's uploads stop at so many floors: long before new work is refused because of them."""
MORE_ONE_IN: Final = 8
"""The space above the floor that must be free before a full disk counts as having space again: it does not flap."""
LOW_ONE_IN: Final = 16
"""Of the floor: below it a piece goes before anybody asks, for small files that spend nothing, as those of our logs."""
WANTED_BYTES: Final = BALLAST_BYTES + FLOOR_BYTES + FLOOR_BYTES // MORE_ONE_IN
"""Free on a disk without ballast: enough for all of it."""
LOOK_EVERY_NS: Final = 2 * SECOND
BALLAST: Final = "ballast"

Tell = Callable[[str, str, Mapping[str, str]], Awaitable[None]]
"""Writes an event: kind, text, fields. Raises a WindrowError when it cannot."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Shortage:
    """A disk that is full: a folder on it, the bytes that are free (None: nobody knows), since when."""

    folder: str
    free_bytes: int | None
    since_ns: int

    @property
    def detail(self) -> str:
        """For a person: what, what follows, what to do."""
        left = "no room could be seen" if self.free_bytes is None else f"{self.free_bytes // MIB} MiB are free"
        return (
            f"The disk of {self.folder} is full ({left}): nothing new starts, and samples stay with "
            f"the agents. Deletes, renewals and results go on. Free {WANTED_BYTES // MIB} MiB there; "
            "the rest happens by itself."
        )


class DiskSpace:
    """The disks of one Master, each with its ballast. Looked at from threads; told and asked on the loop."""

    def __init__(
        self,
        disk: Disk,
        folders: Sequence[str],
        clock: Clock,
        *,
        ballast_bytes: int = BALLAST_BYTES,
        floor_bytes: int = FLOOR_BYTES,
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        """folders: one on each disk. The first look comes with `keep`, or by `look`."""
        self._disk, self._clock, self._floor_bytes = disk, clock, floor_bytes
        self._ballasts = {
            folder: Ballast(disk, f"{folder}/{BALLAST}", ballast_bytes, floor_bytes, piece_bytes) for folder in folders
        }
        self._guard = threading.Lock()
        self._shortage: Shortage | None = None
        self._told: Shortage | None = None

    @property
    def shortage(self) -> Shortage | None:
        """The disk that is full; None while every one has space."""
        return self._shortage

    def has_room(self) -> bool:
        """Return whether bulk may be written and new work taken."""
        return self._shortage is None

    def admit(self) -> None:
        """Raises DiskFull with the way out: for new work, before anything is begun."""
        shortage = self._shortage
        if shortage is not None:
            raise DiskFull(shortage.detail, subject=ConditionCode.MASTER_DISK_FULL.value)

    def admit_upload(self, more_bytes: int) -> None:
        """Raises DiskFull where so much more would leave less than UPLOAD_FLOORS floors on a disk."""
        for folder, free in self.free_bytes().items():
            if free - more_bytes < UPLOAD_FLOORS * self._floor_bytes:
                raise DiskFull(
                    f"The disk of {folder} has {free // MIB:,} MiB left, too little for this upload: nothing of it is "
                    "kept. Delete artefacts, or try again later.",
                    subject=ConditionCode.MASTER_DISK_FULL.value,
                )

    def spend(self) -> bool:
        """Give a piece of a ballast away, since a write that must not fail found no space. False: there is none
        left."""
        with self._guard:
            for folder in sorted(self._ballasts, key=self._free_or_none):
                if self._ballasts[folder].spend():
                    self._note(folder)
                    return True
        return False

    def look(self) -> bool:
        """Lay down missing ballast where there is space, give a piece away where there is hardly any; blocking.

        Returns whether every disk has space.
        """
        with self._guard:
            full = [folder for folder, ballast in self._ballasts.items() if self._is_full(folder, ballast)]
            if full:
                self._note(full[0])
            else:
                self._shortage = None
        return not full

    def look_before_start(self) -> None:
        """Make space for the start itself on a disk that is full; where it has space this costs nothing."""
        if any(free < self._floor_bytes for free in self.free_bytes().values()):
            self.look()

    async def keep(self, tell: Tell) -> None:
        """Look now and then, and tell of each change when that can be written; until cancelled."""

        async def turn() -> None:
            await asyncio.to_thread(self.look)
            await self.tell(tell)

        await again(turn, LOOK_EVERY_NS, self._clock, "disks")

    async def tell(self, tell: Tell) -> None:
        """Write what has changed since the last time; what cannot be written now waits."""
        now, before = self._shortage, self._told
        if (now is None) == (before is None):
            return
        try:
            if now is not None:
                log.warning("disk_full", folder=now.folder, free_bytes=now.free_bytes)
                await tell("master_disk_full", now.detail, {"folder": now.folder})
            elif before is not None:
                log.warning("disk_has_room", folder=before.folder)
                text = f"The disk of {before.folder} has room again: new work is taken, samples are stored."
                await tell("master_disk_has_room", text, {"folder": before.folder})
            self._told = now
        except WindrowError as error:
            log.warning("event_not_written", kind=ConditionCode.MASTER_DISK_FULL, error=str(error))

    def conditions(self) -> Iterable[Stated]:
        """For health: the disk that is full."""
        if self._shortage is not None:
            yield ConditionCode.MASTER_DISK_FULL, self._shortage.detail, self._shortage.since_ns

    def free_bytes(self) -> Mapping[str, int]:
        """Return the free space beside each ballast, by folder; a disk that does not answer is left out."""
        found = {folder: self._free(folder) for folder in self._ballasts}
        return {folder: free for folder, free in found.items() if free is not None}

    def _is_full(self, folder: str, ballast: Ballast) -> bool:
        free = self._free(folder)
        if free is None:
            return True
        if free < self._floor_bytes // LOW_ONE_IN:
            ballast.spend()
        edge = self._floor_bytes + (self._floor_bytes // MORE_ONE_IN if self._shortage is not None else 0)
        # A ballast that was spent is laid down first, out of the space that came back.
        return free < edge or (ballast.is_spent and ballast.tend())

    def _note(self, folder: str) -> None:
        since_ns = self._clock.wall_ns() if self._shortage is None else self._shortage.since_ns
        self._shortage = Shortage(folder, self._free(folder), since_ns)

    def _free(self, folder: str) -> int | None:
        try:
            return self._disk.free_bytes(folder)
        except OSError as error:
            log.warning("disk_not_seen", folder=folder, error=str(error))
            return None

    def _free_or_none(self, folder: str) -> int:
        return self._free(folder) or 0


def one_of_each_disk(folders: Iterable[Path]) -> list[str]:
    """Of these folders the first on each file system."""
    found: dict[int, str] = {}
    for folder in folders:
        found.setdefault(os.stat(folder).st_dev, str(folder))
    return list(found.values())
