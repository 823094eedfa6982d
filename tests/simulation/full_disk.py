"""One disk for the Master's log and its database, that somebody fills and empties while everything goes on."""

import apsw

from tests.simulation.database import Power
from windrow_master.store.disk_space import DiskSpace
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.ports import Clock
from windrow_proto.units import MIB

FLOOR_BYTES = MIB
PIECE_BYTES = MIB
BLOCK_BYTES = 4_096
BALLAST_BYTES = 16 * MIB
"""SQLite's log grows by as much between two checkpoints."""


class SharedDisk(MemoryDisk):
    """The log's part of it. `power` is the database's."""

    def __init__(self) -> None:
        super().__init__()
        self.power = SharedPower(self)
        self.refused = 0

    def used_bytes(self) -> int:
        """In all files, the database's with them."""
        own = sum(len(file.data) for file in self._names.values())
        return own + sum(len(file.content) for file in self.power.files.values())

    def free_bytes(self, path: str) -> int:
        """The bytes that are left of the capacity."""
        self._step("free_bytes")
        return 1 << 62 if self.capacity_bytes is None else max(0, self.capacity_bytes - self.used_bytes())

    def append(self, path: str, data: bytes) -> None:
        """As a real one does, and counted where it refuses."""
        self.refused += self.capacity_bytes is not None and len(data) > self.free_bytes(path)
        super().append(path, data)

    def fill(self) -> None:
        """Somebody takes all that is left."""
        self.capacity_bytes = self.used_bytes()

    def empty(self) -> None:
        """Somebody gives it back."""
        self.capacity_bytes = None

    def room(self, clock: Clock) -> DiskSpace:
        """Returns the guard of this disk in a Master."""
        return DiskSpace(
            self,
            ["/data"],
            clock,
            ballast_bytes=BALLAST_BYTES,
            floor_bytes=FLOOR_BYTES,
            piece_bytes=PIECE_BYTES,
        )


class SharedPower(Power):
    """The database's part of it. fill_at: the write or sync before which somebody fills it."""

    def __init__(self, disk: SharedDisk) -> None:
        super().__init__()
        self.disk, self.fill_at = disk, 0

    def __deepcopy__(self, memo: object) -> "SharedPower":
        """A copy of the log's part is judged alone."""
        return self

    def step(self) -> None:
        """Count; fill when it is time."""
        super().step()
        if 0 < self.fill_at <= self.steps:
            self.fill_at = 0
            self.disk.fill()

    def take(self, growth_bytes: int) -> None:
        """Refuse where there is no space: as some file systems do, also for what is written over something old."""
        if max(growth_bytes, BLOCK_BYTES) > self.disk.free_bytes(""):
            self.disk.refused += 1
            raise apsw.FullError("no room")
