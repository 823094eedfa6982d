"""The Disk port in memory, for tests and simulation: only what was synced survives `crash`; faults come on order."""

import errno
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class _File:
    data: bytearray = field(default_factory=bytearray)
    synced: int = 0
    before_cut: bytes | None = None  # what a crash brings back while a truncation is not synced


@dataclass(slots=True)
class _Fault:
    operation: str
    number: int
    skip: int
    times: int


class MemoryDisk:
    """Files in memory. Folders are durable at once; names and bytes only after their sync, as on a real disk."""

    def __init__(self, capacity_bytes: int | None = None) -> None:
        self.capacity_bytes = capacity_bytes
        self._names: dict[str, _File] = {}
        self._durable: dict[str, _File] = {}
        self._faults: list[_Fault] = []

    # --- what tests do to it --------------------------------------------------------------------------------------

    def crash(self, keep_unsynced: Callable[[str, int], int] = lambda path, count: 0) -> None:
        """Cut the power: names and bytes that were not synced are gone, but for as many first bytes of each file's
        unsynced tail as `keep_unsynced(path, count)` says (0 to count)."""
        self._names = dict(self._durable)
        for path, file in self._names.items():
            if file.before_cut is not None:
                file.data = bytearray(file.before_cut)
                file.before_cut = None
            unsynced = len(file.data) - file.synced
            del file.data[file.synced + min(unsynced, max(0, keep_unsynced(path, unsynced))) :]
            file.synced = len(file.data)
        self._faults.clear()

    def inject(self, operation: str, number: int = errno.EIO, skip: int = 0, times: int = 1) -> None:
        """Let `operation` (a method's name) raise OSError(number) `times` times, after `skip` calls that succeed."""
        self._faults.append(_Fault(operation, number, skip, times))

    def corrupt(self, path: str, offset: int, mask: int = 1) -> None:
        """Flip bits of one byte, synced or not."""
        self._names[path].data[offset] ^= mask

    def _step(self, operation: str) -> None:
        for fault in self._faults:
            if fault.operation != operation:
                continue
            if fault.skip > 0:
                fault.skip -= 1
            elif fault.times > 0:
                fault.times -= 1
                raise OSError(fault.number, f"injected into {operation}")

    def _file(self, path: str) -> _File:
        if path not in self._names:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return self._names[path]

    # --- the port -------------------------------------------------------------------------------------------------

    def make_directory(self, path: str) -> None:
        """Folders need not exist here."""
        self._step("make_directory")

    def list(self, path: str) -> tuple[str, ...]:
        """Names of the files directly in a folder, sorted."""
        self._step("list")
        prefix = path.rstrip("/") + "/"
        inside = (name[len(prefix) :] for name in self._names if name.startswith(prefix))
        return tuple(sorted(name for name in inside if "/" not in name))

    def folders(self, path: str) -> tuple[str, ...]:
        """Names of the folders with files below them, sorted."""
        self._step("list")
        prefix = path.rstrip("/") + "/"
        inside = (name[len(prefix) :] for name in self._names if name.startswith(prefix))
        return tuple(sorted({name.partition("/")[0] for name in inside if "/" in name}))

    def size(self, path: str) -> int:
        """Bytes in a file."""
        self._step("size")
        return len(self._file(path).data)

    def read(self, path: str, offset: int, count: int) -> bytes:
        """At most `count` bytes from `offset`."""
        self._step("read")
        return bytes(self._file(path).data[offset : offset + count])

    def append(self, path: str, data: bytes) -> None:
        """Write at the end; a full disk takes what fits and then raises, as a real one does."""
        self._step("append")
        room = self.free_bytes(path)
        file = self._names.setdefault(path, _File())
        file.data += data[:room]
        if len(data) > room:
            raise OSError(errno.ENOSPC, "no space left", path)

    def sync(self, path: str) -> None:
        """Make the file's bytes survive `crash`."""
        self._step("sync")
        file = self._names.setdefault(path, _File())
        file.synced, file.before_cut = len(file.data), None

    def sync_directory(self, path: str) -> None:
        """Make the folder's names survive `crash`."""
        self._step("sync_directory")
        prefix = path.rstrip("/") + "/"
        inside = {name for name in {*self._names, *self._durable} if name.startswith(prefix)}
        for name in inside:
            if name in self._names:
                self._durable[name] = self._names[name]
            else:
                del self._durable[name]

    def truncate(self, path: str, size: int) -> None:
        """Cut a file; a crash before the next sync brings the synced part back."""
        self._step("truncate")
        file = self._file(path)
        if size < file.synced and file.before_cut is None:
            file.before_cut = bytes(file.data[: file.synced])
        del file.data[size:]
        if file.before_cut is None:
            file.synced = min(file.synced, size)

    def rename(self, source: str, target: str) -> None:
        """Give a file another name."""
        self._step("rename")
        self._names[target] = self._file(source)
        del self._names[source]

    def delete(self, path: str) -> None:
        """Remove a file; nothing if it is not there."""
        self._step("delete")
        self._names.pop(path, None)

    def free_bytes(self, path: str) -> int:
        """The bytes that are left of the capacity."""
        self._step("free_bytes")
        if self.capacity_bytes is None:
            return 1 << 62
        return max(0, self.capacity_bytes - sum(len(file.data) for file in self._names.values()))

    def release(self, path: str) -> None:
        """Nothing is held open here."""
