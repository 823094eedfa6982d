"""Room kept for a full disk: a file of no use that is deleted when a write that must not fail finds no room.

What is bulk never spends it. While it is spent, its owner takes no new work; deletes, results and receipts go on.
Blocking, like the disk; spent and refilled from one thread at a time.
"""

import errno
from typing import Final

from windrow_proto.ports import Disk
from windrow_proto.units import MIB

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_CHUNK: Final = bytes(range(256)) * 1024
"""Not zeros: a file system that squeezes or skips those would keep no room for them."""


class Ballast:
    """One file of `size` bytes; 0: there is none, and nothing is full for its lack."""

    def __init__(self, disk: Disk, path: str, size: int, spare: int = 32 * MIB) -> None:
        """spare: bytes that must stay free beside it, or it is not laid down."""
        self._disk, self._path, self._size, self._spare = disk, path, size, spare
        self._is_whole = False

    @property
    def is_spent(self) -> bool:
        """Whether the disk is so full that there is no ballast."""
        return self._size > 0 and not self._is_whole

    def tend(self) -> bool:
        """Lay it down where there is room again; returns whether the disk is full. At the start, and now and then."""
        if self._is_whole or self._size == 0:
            return False
        try:
            self._is_whole = self._has_file() or self._laid()
        except OSError:
            self._remove()  # half of it would be in the way of what needs the room
        return not self._is_whole

    def spend(self) -> bool:
        """Give its room away; returns whether there was any."""
        had = self._is_whole
        self._is_whole = False
        return self._remove() and had

    def _has_file(self) -> bool:
        folder, _, name = self._path.rpartition("/")
        return name in self._disk.list(folder) and self._disk.size(self._path) >= self._size

    def _laid(self) -> bool:
        folder = self._path.rpartition("/")[0]
        self._disk.make_directory(folder)
        if self._disk.free_bytes(folder) < self._size + self._spare:
            return False
        self._disk.delete(self._path)
        left = self._size
        while left > 0:
            self._disk.append(self._path, _CHUNK[:left])
            left -= min(left, len(_CHUNK))
        self._disk.sync(self._path)
        self._disk.sync_directory(folder)
        self._disk.release(self._path)
        return True

    def _remove(self) -> bool:
        try:
            self._disk.release(self._path)
            self._disk.delete(self._path)
        except OSError:
            return False
        return True


class ReservedDisk:
    """The Disk port for what must be written: an append that finds the disk full spends the ballast and is repeated."""

    def __init__(self, disk: Disk, ballast: Ballast) -> None:
        self._disk, self._ballast = disk, ballast

    def append(self, path: str, data: bytes) -> None:
        """Write at the end, with the ballast's room if need be."""
        try:
            before = self._disk.size(path)
        except FileNotFoundError:
            before = 0
        try:
            self._disk.append(path, data)
        except OSError as error:
            if error.errno not in _FULL or not self._ballast.spend():
                raise
            self._disk.truncate(path, before)
            self._disk.append(path, data)

    def make_directory(self, path: str) -> None:
        """As the disk does."""
        self._disk.make_directory(path)

    def list(self, path: str) -> tuple[str, ...]:
        """As the disk does."""
        return self._disk.list(path)

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
