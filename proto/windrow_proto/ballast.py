"""Space reserved for a full disk: a file of no use that is given up, whole or in pieces, when a write that must not
fail finds no space. Pure.

What is bulk never spends it. While any of it is spent, its owner takes no new work; deletes, results and receipts go
on. Blocking, like the disk; spent and refilled from one thread at a time.
"""

import contextlib
import errno
from typing import Final, Protocol

from windrow_proto.ports import Disk
from windrow_proto.units import MIB

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""The errors by which the system says that there is no space: on the disk, or for this user."""
_CHUNK: Final = bytes(range(256)) * 1024
"""Not zeros: a file system that squeezes or skips those would keep no space for them."""


class Spender(Protocol):
    """Has space to give away."""

    def spend(self) -> bool:
        """Give some away; returns whether there was any."""


class Ballast:
    """One file of `size` bytes; 0: there is none, and nothing is full for its lack."""

    def __init__(self, disk: Disk, path: str, size: int, spare: int = 32 * MIB, piece: int | None = None) -> None:
        """spare: bytes that must stay free beside it, or it is not laid down. piece: bytes given up at a time, so that
        who fills the disk does not get all of it at once; None: the whole."""
        self._disk, self._path, self._size, self._spare = disk, path, size, spare
        self._piece = piece or size
        self._held: int | None = None

    @property
    def is_spent(self) -> bool:
        """True if the disk is so full that the ballast is not whole."""
        return self._size > 0 and (self._held or 0) < self._size

    def tend(self) -> bool:
        """Lay it down where there is space again; returns whether the disk is full. At the start, and now and then."""
        if self.is_spent:
            before = 0
            try:
                before = self._found()
                if before < self._size:
                    self._lay(before)
                self._held = self._size
            except OSError:
                self._cut(before)  # half of it would be in the way of what needs the space
        return self.is_spent

    def spend(self) -> bool:
        """Give a piece of its space away; returns whether there was any."""
        try:
            held = self._found()
        except OSError:
            return False
        return held > 0 and self._cut(max(0, held - self._piece))

    def _found(self) -> int:
        if self._held is None:
            folder, _, name = self._path.rpartition("/")
            is_there = name in self._disk.list(folder)
            self._held = min(self._size, self._disk.size(self._path)) if is_there else 0
        return self._held

    def _lay(self, before: int) -> None:
        folder = self._path.rpartition("/")[0]
        self._disk.make_directory(folder)
        if self._disk.free_bytes(folder) < self._size - before + self._spare:
            raise OSError(errno.ENOSPC, "no room for the ballast yet", self._path)
        left = self._size - before
        while left > 0:
            self._disk.append(self._path, _CHUNK[:left])
            left -= min(left, len(_CHUNK))
        self._disk.sync(self._path)
        self._disk.sync_directory(folder)
        self._disk.release(self._path)

    def _cut(self, size: int) -> bool:
        """Leave so much of it; what is on the disk is looked up again where that fails."""
        self._held = None
        with contextlib.suppress(OSError):
            self._disk.release(self._path)
            if size > 0:
                self._disk.truncate(self._path, size)
            else:
                self._disk.delete(self._path)
            self._held = size
        return self._held is not None


class ReservedDisk:
    """The Disk port for what must be written: an append that finds the disk full spends the ballast and is repeated."""

    def __init__(self, disk: Disk, ballast: Spender) -> None:
        self._disk, self._ballast = disk, ballast

    def append(self, path: str, data: bytes) -> None:
        """Write at the end, with the ballast's space if need be."""
        try:
            before = self._disk.size(path)
        except FileNotFoundError:
            before = 0
        try:
            self._disk.append(path, data)
        except OSError as error:
            if error.errno not in FULL or not self._ballast.spend():
                raise
            self._disk.truncate(path, before)
            self._disk.append(path, data)

    def make_directory(self, path: str) -> None:
        """As the disk does."""
        self._disk.make_directory(path)

    def list(self, path: str) -> tuple[str, ...]:
        """As the disk does."""
        return self._disk.list(path)

    def folders(self, path: str) -> tuple[str, ...]:
        """As the disk does."""
        return self._disk.folders(path)

    def size(self, path: str) -> int:
        """As the disk does."""
        return self._disk.size(path)

    def read(self, path: str, offset: int, count: int) -> bytes:
        """As the disk does."""
        return self._disk.read(path, offset, count)

    def sync(self, path: str) -> None:
        """As the disk does."""
        self._disk.sync(path)

    def sync_directory(self, path: str) -> None:
        """As the disk does."""
        self._disk.sync_directory(path)

    def truncate(self, path: str, size: int) -> None:
        """As the disk does."""
        self._disk.truncate(path, size)

    def rename(self, source: str, target: str) -> None:
        """As the disk does."""
        self._disk.rename(source, target)

    def delete(self, path: str) -> None:
        """As the disk does."""
        self._disk.delete(path)

    def free_bytes(self, path: str) -> int:
        """As the disk does; the ballast is not free."""
        return self._disk.free_bytes(path)

    def release(self, path: str) -> None:
        """As the disk does."""
        self._disk.release(path)
