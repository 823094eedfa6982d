"""A cache of objects on this host's disk for one lease: sealed frames, under a key that exists in memory alone.

That a disk forgets what was overwritten nobody can promise (flash and copy-on-write file systems write elsewhere); that
nobody can read it without the key, everybody can. So the key dies with the lease, with this process at the latest, and
what is left on the disk is noise. The files are removed, too, and what was done is told in a wipe report.
Blocking: for a thread.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from windrow_proto.data_keys import DataKey
from windrow_proto.errors import Conflict, NotFound
from windrow_proto.frames import SALT_BYTES, Opener, Sealer
from windrow_proto.units import MIB

BLOCK_BYTES: Final = 1 * MIB


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One sealed object: its bytes as they lie on the disk, and their SHA-256 in hexadecimal."""

    path: Path
    sealed_bytes: int
    sealed_sha256: str


@dataclass(frozen=True, slots=True)
class WipeResult:
    """The result of a wipe. files, size_bytes: of sealed objects removed; left: of those that could not be."""

    files: int
    size_bytes: int
    left: int
    keys: int

    def fields(self) -> dict[str, str]:
        """As a report says it; values are text."""
        return {
            "method": "key destroyed, then unlinked",
            "cipher": "AES-256-GCM",
            "keys": str(self.keys),
            "files": str(self.files),
            "bytes": str(self.size_bytes),
            "left": str(self.left),
        }


class ObjectWriter:
    """An object on its way into a cache; closed unfinished it leaves nothing."""

    def __init__(self, path: Path, keep: Callable[[StoredObject], None]) -> None:
        self._path, self._keep = path, keep
        self._digest, self._size, self._is_kept = hashlib.sha256(), 0, False
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.fdopen(os.open(path, flags, 0o600), "wb", buffering=0)

    def write(self, sealed: bytes) -> None:
        """Add to it."""
        self._digest.update(sealed)
        self._size += len(sealed)
        view = memoryview(sealed)
        while view:
            view = view[self._file.write(view) :]

    def finish(self) -> StoredObject:
        """Completes the object."""
        kept = StoredObject(self._path, self._size, self._digest.hexdigest())
        self._keep(kept)
        self._is_kept = True
        return kept

    def close(self) -> None:
        """Let go of it; safe to call twice."""
        self._file.close()
        if not self._is_kept:
            self._path.unlink(missing_ok=True)

    def __enter__(self) -> "ObjectWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Cache:
    """The sealed objects of one lease, in a folder of its own (0700)."""

    def __init__(self, folder: Path) -> None:
        """folder: made at the first object. What an earlier process left there is taken away: its keys are gone."""
        self._folder = folder
        self._keys: dict[str, tuple[DataKey, StoredObject]] = {}
        self._is_wiped = False
        self._left_before = self._remove()

    def keep(self, object_id: str, key: DataKey, plain: Iterable[bytes]) -> StoredObject:
        """Seal what comes. Raises Conflict after a wipe."""
        sealer = Sealer(key, object_id, os.urandom(SALT_BYTES))

        def sealed() -> Iterator[bytes]:
            for block in plain:
                yield sealer.feed(block)
            yield sealer.finish()

        return self.take(object_id, key, sealed())

    def take(self, object_id: str, key: DataKey, sealed: Iterable[bytes]) -> StoredObject:
        """Keep what was sealed elsewhere under this key and id."""
        with self.taking(object_id, key) as coming:
            for block in sealed:
                coming.write(block)
            return coming.finish()

    def taking(self, object_id: str, key: DataKey) -> "ObjectWriter":
        """The same, block by block. Raises Conflict after a wipe."""
        if self._is_wiped:
            raise Conflict("This lease's cache was wiped; nothing is kept any more.")
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / hashlib.sha256(object_id.encode()).hexdigest()

        def keep(kept: StoredObject) -> None:
            if self._is_wiped:
                path.unlink(missing_ok=True)
                raise Conflict("This lease's cache was wiped meanwhile.")
            self._keys[object_id] = key, kept

        return ObjectWriter(path, keep)

    def open(self, object_id: str) -> Iterator[bytes]:
        """The plain bytes. Raises NotFound for what is not kept or whose key is gone, BadProof for what was altered."""
        held = self._keys.get(object_id)
        if held is None:
            raise NotFound("The cache does not hold this object, or its key is gone.", subject=object_id[:128])
        key, kept = held
        opener = Opener(key, object_id)
        with kept.path.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                if plain := opener.feed(block):
                    yield plain
        yield opener.finish()

    def drop(self, object_id: str) -> None:
        """Forget one object's key, then take its file away; nothing if it is not there."""
        held = self._keys.pop(object_id, None)
        if held is not None:
            held[1].path.unlink(missing_ok=True)

    def wipe(self) -> WipeResult:
        """Forget all keys, then take all files away; safe to call twice. Nothing is kept afterwards."""
        self._is_wiped = True
        keys = len({key.raw for key, _ in self._keys.values()})
        self._keys.clear()
        before = self._left_before
        removed = self._remove()
        self._left_before = WipeResult(0, 0, 0, 0)
        return WipeResult(before.files + removed.files, before.size_bytes + removed.size_bytes, removed.left, keys)

    def _remove(self) -> WipeResult:
        files = size = left = 0
        if not self._folder.is_dir():
            return WipeResult(0, 0, 0, 0)
        for path in sorted(self._folder.iterdir()):
            try:
                size += path.lstat().st_size
                path.unlink()
                files += 1
            except OSError:
                left += 1
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if not left:
            self._folder.rmdir()
        return WipeResult(files, size, left, 0)


class Caches:
    """The caches of this host's workloads. Nothing of an earlier process' is ever read: its keys are gone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._caches: dict[str, Cache] = {}

    def of(self, workload_id: str) -> Cache:
        """The cache of one workload, made at the first call."""
        if workload_id not in self._caches:
            self._caches[workload_id] = Cache(self._folder / workload_id)
        return self._caches[workload_id]

    def wipe(self, workload_id: str) -> WipeResult | None:
        """At the end of its lease. None where there never was one."""
        cache = self._caches.pop(workload_id, None)
        if cache is None and not (self._folder / workload_id).is_dir():
            return None
        return (cache or Cache(self._folder / workload_id)).wipe()
