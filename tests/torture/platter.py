"""A disk that may lose power or fail at any call: what a cut may legally leave, and faults counted by call number.

Bytes are safe after the file's sync, names after their folder's sync. Of everything else a cut leaves any part: whole
sectors of a write, in any order, with zeros where the length came through and the bytes did not; a name or not.
A sync that fails does what Linux does: what was to be written is forgotten, still seen, and no later sync writes it.
"""

import errno
import random
from collections.abc import Callable
from dataclasses import dataclass, field

SECTOR = 512
FAILING = ("append", "sync", "sync_directory", "truncate", "rename", "delete")
"""The calls that change the disk: those a sweep lets fail."""


@dataclass(slots=True)
class Inode:
    """One file's bytes: what is safe, what is seen, and the steps between (offset and data, or a length)."""

    durable: bytes = b""
    content: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def synced(self) -> None:
        """Makes safe what was written since the last sync; not what an earlier sync gave up."""
        state = bytearray(self.durable)
        for offset, data in self.pending:
            if data is None:
                del state[offset:]
                continue
            state.extend(bytes(max(0, offset - len(state))))
            state[offset : offset + len(data)] = data
        self.durable = bytes(state)
        self.pending.clear()

    def given_up(self) -> None:
        """The pages could not be written and count as clean from now on."""
        self.pending = [(offset, data) for offset, data in self.pending if data is None]

    def left(self, luck: random.Random) -> bytes:
        """Returns the rest that a cut leaves."""
        state = bytearray(self.durable)
        for offset, data in self.pending:
            if data is None:
                if luck.random() < 0.5:
                    del state[offset:]
                continue
            if luck.random() < 0.3:
                continue
            _tear(state, offset, data, luck)
        return bytes(state)


def _tear(state: bytearray, offset: int, data: bytes, luck: random.Random) -> None:
    chance = luck.choice((0.0, 0.5, 1.0, 1.0))
    length = luck.choice((len(data), luck.randint(0, len(data))))
    at = 0
    while at < length:
        end = min(length, at + SECTOR - (offset + at) % SECTOR)
        if luck.random() < chance:
            if len(state) < offset + end:
                state.extend(bytes(offset + end - len(state)))
            state[offset + at : offset + end] = data[at:end]
        at = end
    if luck.random() < 0.3 and len(state) < offset + length:
        state.extend(bytes(offset + length - len(state)))


@dataclass(frozen=True, slots=True)
class Fault:
    """From call number `at` (1 is the first changing call) on, `times` calls fail; None: all of them."""

    at: int
    number: int = errno.EIO
    times: int | None = 1


class Platter:
    """The Disk port; `image` is the disk that the next start would find if the power went now."""

    def __init__(self, names: dict[str, bytes] | None = None, capacity_bytes: int | None = None) -> None:
        self._names = {path: Inode(data, bytearray(data)) for path, data in (names or {}).items()}
        self._safe_names = dict(self._names)
        self._name_steps: list[tuple[str, str | None, str | None, Inode | None]] = []
        self.capacity_bytes = capacity_bytes
        self.calls = 0
        self.refused = 0
        self.fault: Fault | None = None
        self.before_change: Callable[[str], None] = lambda operation: None

    # --- what tests do to it --------------------------------------------------------------------------------------

    def image(self, luck: random.Random) -> "Platter":
        """Returns the image that a power cut leaves; this disk goes on unharmed."""
        names = dict(self._safe_names)
        for _, gone, made, inode in self._name_steps:
            if luck.random() < 0.5:
                continue
            if gone is not None:
                names.pop(gone, None)
            if made is not None and inode is not None:
                names[made] = inode
        return Platter({path: inode.left(luck) for path, inode in names.items()})

    @property
    def used_bytes(self) -> int:
        """Bytes in all files."""
        return sum(len(inode.content) for inode in self._names.values())

    def _step(self, operation: str) -> None:
        self.before_change(operation)
        self.calls += 1
        fault = self.fault
        if fault is None or self.calls < fault.at:
            return
        if fault.number == errno.ENOSPC:
            # A full disk is not an odd call that fails: from here on nothing more fits until something is deleted.
            if self.capacity_bytes is None and self.refused == 0:
                self.capacity_bytes = self.used_bytes
            return
        if fault.times is None or self.refused < fault.times:
            self.refused += 1
            raise OSError(fault.number, f"injected into {operation}")

    def _file(self, path: str) -> Inode:
        if path not in self._names:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return self._names[path]

    def _made(self, path: str) -> Inode:
        if path not in self._names:
            self._names[path] = Inode()
            self._name_steps.append((_folder(path), None, path, self._names[path]))
        return self._names[path]

    # --- the port -------------------------------------------------------------------------------------------------

    def make_directory(self, path: str) -> None:
        """Folders are safe at once, as OsDisk makes them."""

    def list(self, path: str) -> tuple[str, ...]:
        """Names directly in a folder, sorted."""
        prefix = path.rstrip("/") + "/"
        inside = (name[len(prefix) :] for name in self._names if name.startswith(prefix))
        return tuple(sorted(name for name in inside if "/" not in name))

    def folders(self, path: str) -> tuple[str, ...]:
        """Names of the folders with files below them, sorted."""
        prefix = path.rstrip("/") + "/"
        inside = (name[len(prefix) :] for name in self._names if name.startswith(prefix))
        return tuple(sorted({name.partition("/")[0] for name in inside if "/" in name}))

    def size(self, path: str) -> int:
        """Bytes in a file."""
        return len(self._file(path).content)

    def read(self, path: str, offset: int, count: int) -> bytes:
        """At most `count` bytes from `offset`."""
        return bytes(self._file(path).content[offset : offset + count])

    def append(self, path: str, data: bytes) -> None:
        """Write at the end; a full disk takes what fits, then refuses."""
        self._step("append")
        taken = data[: self.free_bytes(path)]
        inode = self._made(path)
        if taken:
            inode.pending.append((len(inode.content), bytes(taken)))
            inode.content += taken
        if len(taken) < len(data):
            self.refused += 1
            raise OSError(errno.ENOSPC, "no space left", path)

    def sync(self, path: str) -> None:
        """Make the bytes safe."""
        inode = self._made(path)
        try:
            self._step("sync")
        except OSError:
            inode.given_up()
            raise
        inode.synced()

    def sync_directory(self, path: str) -> None:
        """Make the names directly in a folder safe."""
        self._step("sync_directory")
        folder = path.rstrip("/")
        for at, gone, made, inode in self._name_steps:
            if at != folder:
                continue
            if gone is not None:
                self._safe_names.pop(gone, None)
            if made is not None and inode is not None:
                self._safe_names[made] = inode
        self._name_steps = [step for step in self._name_steps if step[0] != folder]

    def truncate(self, path: str, size: int) -> None:
        """Cut a file."""
        self._step("truncate")
        inode = self._file(path)
        del inode.content[size:]
        inode.pending.append((size, None))

    def rename(self, source: str, target: str) -> None:
        """Give a file another name, atomically."""
        self._step("rename")
        inode = self._file(source)
        self._names[target] = inode
        del self._names[source]
        self._name_steps.append((_folder(target), source, target, inode))

    def delete(self, path: str) -> None:
        """Remove a file; nothing if it is not there."""
        if path not in self._names:
            return
        self._step("delete")
        del self._names[path]
        self._name_steps.append((_folder(path), path, None, None))

    def free_bytes(self, path: str) -> int:
        """The bytes that are left of the capacity."""
        return 1 << 62 if self.capacity_bytes is None else max(0, self.capacity_bytes - self.used_bytes)

    def release(self, path: str) -> None:
        """Nothing is held open here."""


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
