"""Stores objects in a folder of the Master's own disk: written aside, fsynced, and renamed into place.

<root>/.incoming/<random>   what is on its way; a crash leaves it there, and `check` takes it away
<root>/ckpt/job_1/7~        the object `ckpt/job_1/7`

An object's file ends with `~`, which no key has, so that `a` and `a/b` can both be there, as in any other store. Not
for two Masters on two machines, unless the folder is on storage that they share.
"""

import asyncio
import errno
import os
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import BinaryIO, Final, TypeVar, cast

from windrow_master.storage.model import (
    LIST_MAX,
    SMALL_BYTES_MAX,
    ObjectKey,
    ObjectPage,
    ObjectStat,
    Presigned,
    key_prefix,
    object_key,
)
from windrow_master.storage.object_store import BLOCK_BYTES, capped
from windrow_proto.errors import DiskFull, NotFound, StorageFailed, TooLarge

T = TypeVar("T")

MARK: Final = "~"
INCOMING: Final = ".incoming"
LEFT_S: Final = 24 * 3600
"""Since the last write: nothing that is on its way pauses for so long."""
TRIES: Final = 5
"""To put a file into a folder that a delete, seeing it empty, takes away at the same moment."""


class FolderStore:
    """One folder. Blocking work goes to threads; there are no addresses, so nothing is presigned."""

    def __init__(self, root: Path, admit: Callable[[int], None] = lambda more_bytes: None) -> None:
        """root: made with mode 0700 at the first object. admit: raises DiskFull where the disk is too full for so many
        more bytes of what is large, whoever sends it; what is small has its place below that."""
        self._root, self._admit = root, admit
        self._incoming = root / INCOMING

    async def put(self, key: ObjectKey, chunks: AsyncIterator[bytes], cap_bytes: int) -> ObjectStat:
        """Write aside, fsync, rename, fsync the folder."""
        target, coming, is_large = self._path(key), _Incoming(self._incoming), False
        try:
            async for block in capped(chunks, cap_bytes):
                if is_large:
                    await _in_thread(partial(self._admit, len(block)))
                await _in_thread(partial(coming.write, block))
                is_large = True
            return await _in_thread(lambda: self._finish(coming, target, key))
        finally:
            await asyncio.shield(_in_thread(coming.drop))

    async def put_if_absent(self, key: ObjectKey, content: bytes) -> bool:
        """Write aside, fsync, and link: the file system lets one of all links with a name be made."""
        if len(content) > SMALL_BYTES_MAX:
            raise TooLarge(f"What is created only if absent has at most {SMALL_BYTES_MAX} bytes.", subject=key)
        target = self._path(key)
        return await _in_thread(lambda: self._create(content, target))

    async def get(self, key: ObjectKey, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        """Opened at once, so that a delete meanwhile changes nothing for this reader."""
        target = self._path(key)
        pieces = _pieces(target, key, offset, length)
        await anext(pieces)  # it has started, so its file is closed however it ends, also if nobody ever reads from it
        return pieces

    async def stat(self, key: ObjectKey) -> ObjectStat | None:
        """Size and time of its file."""
        target = self._path(key)

        def look() -> ObjectStat | None:
            try:
                facts = target.stat(follow_symlinks=False)
            except (FileNotFoundError, NotADirectoryError):
                return None
            return ObjectStat(key, facts.st_size, facts.st_mtime_ns)

        return await _in_thread(look)

    async def list(self, prefix: str, after: ObjectKey | None = None, limit: int = LIST_MAX) -> ObjectPage:
        """Walk the tree in the order of keys, skipping folders that lie before `after` whole."""
        prefix = key_prefix(prefix)

        def look() -> ObjectPage:
            found: list[ObjectStat] = []
            for one in _walk(self._root / prefix, prefix, after or ""):
                if len(found) == limit:
                    return ObjectPage(tuple(found), found[-1].key)
                found.append(one)
            return ObjectPage(tuple(found), None)

        return await _in_thread(look)

    async def delete(self, key: ObjectKey) -> None:
        """Unlink, and take away the folders that are empty then."""
        target = self._path(key)

        def remove() -> None:
            try:
                target.unlink()
            except (FileNotFoundError, NotADirectoryError):
                return
            _sync(target.parent)
            folder = target.parent
            while folder != self._root:
                try:
                    folder.rmdir()
                except OSError:
                    return
                folder = folder.parent

        await _in_thread(remove)

    def presign_put(self, key: ObjectKey, size_bytes: int, expires_s: int) -> Presigned | None:
        """A folder has no addresses."""
        return None

    def presign_get(self, key: ObjectKey, expires_s: int) -> Presigned | None:
        """A folder has no addresses."""
        return None

    async def check(self) -> int:
        """Remove what a crash left on its way a day ago; returns how many."""

        def remove() -> int:
            if not self._incoming.is_dir():
                return 0
            before = time.time() - LEFT_S
            left = [path for path in self._incoming.iterdir() if path.lstat().st_mtime < before]
            for path in left:
                path.unlink(missing_ok=True)
            return len(left)

        return await _in_thread(remove)

    async def close(self) -> None:
        """Nothing is held."""

    # --- on threads ---------------------------------------------------------------------------------------------------

    def _path(self, key: ObjectKey) -> Path:
        """Checked again, since a path is what makes a wrong key dangerous."""
        return self._root / (object_key(key) + MARK)

    def _finish(self, coming: "_Incoming", target: Path, key: ObjectKey) -> ObjectStat:
        with coming.whole() as (file, path):
            self._into(target, lambda: os.replace(path, target))
            facts = os.fstat(file.fileno())
        return ObjectStat(key, facts.st_size, facts.st_mtime_ns)

    def _create(self, content: bytes, target: Path) -> bool:
        if os.path.lexists(target):
            return False
        coming = _Incoming(self._incoming)
        try:
            coming.write(content)
            with coming.whole() as (_, path):
                self._into(target, lambda: os.link(path, target, follow_symlinks=False))
        except FileExistsError:
            return False
        finally:
            coming.drop()
        return True

    def _into(self, target: Path, act: Callable[[], None]) -> None:
        """Do what gives the file its name, its folders made before, its name durable afterwards."""
        for turn in range(TRIES):
            missing = [folder for folder in target.parents if not folder.exists()]
            try:
                _make(target.parent)
                act()
            except FileNotFoundError:  # a deletion beside this took an empty folder away
                if turn == TRIES - 1:
                    raise
                continue
            for folder in {target.parent, *(folder.parent for folder in missing)}:
                _sync(folder)
            return


class _Incoming:
    """A file on its way. Locked: a put that is cancelled leaves its last step running on a thread."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / secrets.token_hex(16)
        self._lock = Lock()
        self._file: BinaryIO | None = None
        self._is_over = False

    def write(self, content: bytes) -> None:
        """Add to it, all or OSError."""
        with self._lock:
            file, view = self._opened(), memoryview(content)
            while view:
                view = view[file.write(view) :]

    @contextmanager
    def whole(self) -> Iterator[tuple[BinaryIO, Path]]:
        """Its file and path, with all of it durable, and nobody taking it away meanwhile."""
        with self._lock:
            file = self._opened()
            os.fsync(file.fileno())
            yield file, self._path

    def drop(self) -> None:
        """Close it and take its first name away; what it was renamed or linked to stays."""
        with self._lock:
            self._is_over = True
            if self._file is not None:
                self._file.close()
                self._path.unlink(missing_ok=True)

    def _opened(self) -> BinaryIO:
        if self._is_over:
            raise OSError(errno.ECANCELED, "it was given up")
        if self._file is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._file = cast(BinaryIO, os.fdopen(os.open(self._path, flags, 0o600), "wb", buffering=0))
        return self._file


async def _in_thread(work: Callable[[], T]) -> T:
    """On a thread; a disk's refusal becomes an error of ours."""
    try:
        return await asyncio.to_thread(work)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise DiskFull from error
        raise StorageFailed(f"The folder of artefacts refused: {error.strerror}. Nothing was changed.") from error


def _make(folder: Path) -> None:
    """Make a folder and those above it. Raises FileNotFoundError where one is taken away meanwhile."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        if folder.is_dir() or not os.path.lexists(folder):  # pathlib looked what it is while it was gone
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder)) from None
        raise


def _open(target: Path, key: ObjectKey) -> int:
    try:
        return os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound("There is no such object.", subject=key) from None


async def _pieces(target: Path, key: ObjectKey, offset: int, length: int | None) -> AsyncGenerator[bytes]:
    """First an empty piece, then the object's."""
    descriptor = await _in_thread(lambda: _open(target, key))
    try:
        yield b""
        at, end = offset, None if length is None else offset + length
        while end is None or at < end:
            count = BLOCK_BYTES if end is None else min(BLOCK_BYTES, end - at)
            block = await _in_thread(partial(os.pread, descriptor, count, at))
            if not block:
                return
            at += len(block)
            yield block
    finally:
        os.close(descriptor)


def _sync(folder: Path) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return  # a delete took it meanwhile, and nothing of ours with it: rmdir takes no folder that holds a name
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _walk(folder: Path, prefix: str, after: str) -> Iterator[ObjectStat]:
    """Objects in the order of their keys' bytes: a folder stands where its name with a slash would."""
    try:
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    named: list[tuple[str, os.DirEntry[str]]] = []
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            named.append((entry.name + "/", entry))
        elif entry.name.endswith(MARK) and entry.is_file(follow_symlinks=False):
            named.append((entry.name[: -len(MARK)], entry))
    for name, entry in sorted(named, key=lambda one: one[0]):
        key = prefix + name
        if name.startswith("."):
            continue
        if name.endswith("/"):
            if key > after or after.startswith(key):
                yield from _walk(folder / name, key, after)
        elif key > after:
            with suppress(FileNotFoundError):
                facts = entry.stat(follow_symlinks=False)
                yield ObjectStat(ObjectKey(key), facts.st_size, facts.st_mtime_ns)
