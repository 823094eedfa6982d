"""Unpacks a renter's tar archive into the folder of a workload, without trusting the archive or the workload.

Refused are absolute names, `..`, devices, sparse files, links that lead out and names that pass through links. Every
step down is taken by descriptor without following a link: what the workload swaps meanwhile leads nowhere. What root
makes there belongs to whom the folder belongs to.
"""

import asyncio
import errno
import hashlib
import os
import re
import stat
import tarfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from windrow_agent.runtimes.file_manifest import FOLDER, LINK, FileEntry, Manifest, digest_of
from windrow_agent.runtimes.port import CHUNK_BYTES, FilesTaken
from windrow_proto.errors import InvalidInput, TooLarge
from windrow_proto.units import SECOND

ENTRIES_MAX: Final = 200_000
"""Of one archive; a folder of code and data has fewer, and each costs an inode."""
NAME_BYTES_MAX: Final = 1024
"""Of one entry's path."""
HEADER_BYTES_MAX: Final = 1 << 16
"""The largest extra header of one archive entry, in bytes: the library reads it into memory."""
_DIGITS: Final = re.compile(rb"\d{256}")
"""No name has so many in a row; the library looks through them again from each."""
DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class _Header(tarfile.TarInfo):
    """One that is neither so long that reading it holds everything up, nor of less than no bytes: the library would go
    back for those, and read the same content again and again."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.size < 0 or (self.type in _BEFORE and self.size > HEADER_BYTES_MAX):
            raise tarfile.ReadError("a header claims an impossible size")
        if self.type in _BEFORE and (file := archive.fileobj) is not None:
            at = file.tell()
            if _DIGITS.search(file.read(self.size)):
                raise tarfile.ReadError("a header holds a number that is none")
            file.seek(at)
        found: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]  # made to be overridden
        if found.size < 0:
            raise tarfile.ReadError("a header claims an impossible size")
        return found


_BEFORE: Final = (b"x", b"g", b"X", b"L", b"K")
"""Kinds of such headers."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The size of an archive, and each entry as it was written, to find later changes."""

    files: FilesTaken
    manifest: Manifest


def unpack(archive: Path, folder: Path, cap_bytes: int) -> Unpacked:
    """Unpack a plain tar file into an existing folder. Raises InvalidInput or TooLarge, naming the entry."""
    manifest: dict[str, FileEntry] = {}
    folders: dict[str, tarfile.TarInfo] = {}
    written = 0
    with _reading(archive), tarfile.open(archive, mode="r:", tarinfo=_Header) as tar, _opened(folder) as root:
        for name, member in _entries(tar, archive, cap_bytes):
            written += member.size if member.isreg() else 0
            if member.isdir():
                folders[name] = member
                with _parent(root, f"{name}/.", member):
                    manifest[name] = FileEntry(FOLDER)
                continue
            with _parent(root, name, member) as parent:
                manifest[name] = _unpack_one(tar, member, root, parent, name)
        for name, member in sorted(folders.items(), reverse=True):
            with _parent(root, f"{name}/.", member) as made:
                os.fchmod(made, (member.mode & 0o777) | 0o700)
                os.utime(made, ns=(mtime_ns(member), mtime_ns(member)))
    return Unpacked(FilesTaken(sum(mark.size != FOLDER for mark in manifest.values()), written), manifest)


def check_archive(archive: Path, cap_bytes: int) -> Unpacked:
    """The same checks without writing anything, for a runtime that unpacks by itself; with what the archive brings."""
    manifest: dict[str, FileEntry] = {}
    written = 0
    with _reading(archive), tarfile.open(archive, mode="r:", tarinfo=_Header) as tar:
        for name, member in _entries(tar, archive, cap_bytes):
            if any(manifest[parent].size == LINK for parent in _parents(name) if parent in manifest):
                raise InvalidInput(f"{member.name!r} passes through a link.")
            written += member.size if member.isreg() else 0
            if member.isdir():
                manifest[name] = FileEntry(FOLDER)
            elif member.issym():
                manifest[name] = FileEntry(LINK, member.linkname)
            elif member.islnk():
                manifest[name] = manifest.get(os.path.normpath(member.linkname), FileEntry(0))
            elif (source := tar.extractfile(member)) is not None:
                manifest[name] = FileEntry(member.size, digest_of(source))
    return Unpacked(FilesTaken(sum(mark.size != FOLDER for mark in manifest.values()), written), manifest)


async def receive(path: Path, chunks: AsyncIterator[bytes], cap_bytes: int) -> None:
    """Write a stream to a file, writing in a thread. Raises TooLarge as soon as it is longer than any allowed tar."""
    allowed = cap_bytes + ENTRIES_MAX * 1536 + CHUNK_BYTES  # headers and padding come on top of the files
    total = 0
    file = await asyncio.to_thread(open, path, "wb")
    try:
        async for chunk in chunks:
            total += len(chunk)
            if total > allowed:
                raise TooLarge(f"The files are larger than the limit of {cap_bytes} bytes.")
            await asyncio.to_thread(file.write, chunk)
    finally:
        await asyncio.to_thread(file.close)


def mtime_ns(member: tarfile.TarInfo) -> int:
    """When an entry was last changed, to the nanosecond where its archive says so."""
    seconds, _, rest = str(member.pax_headers.get("mtime", "")).partition(".")
    if seconds.lstrip("-").isdecimal() and (rest.isdecimal() or not rest):
        part_ns = int(rest[:9].ljust(9, "0"))
        found = int(seconds) * SECOND + (-part_ns if seconds.startswith("-") else part_ns)
    else:
        found = int(member.mtime) * SECOND
    return max(-(1 << 62), min(found, 1 << 62))


@contextmanager
def opened_below(root: int, parts: Sequence[str], is_made: bool = False) -> Iterator[int]:
    """A folder below an open one, step by step without following a link; `is_made`: missing ones are made. Raises
    OSError."""
    here = os.dup(root)
    try:
        for part in parts:
            is_new = is_made and _is_new(part, here)
            above, here = here, os.open(part, DIRECTORY, dir_fd=here)
            os.close(above)
            if is_new:
                _give(here, root)
        yield here
    finally:
        os.close(here)


def _is_new(part: str, parent: int) -> bool:
    """Make this folder; whether it was not there."""
    try:
        os.mkdir(part, 0o755, dir_fd=parent)
    except FileExistsError:
        return False
    return True


def _give(descriptor: int, root: int) -> None:
    """Have an open file or folder belong to whom the working folder belongs to."""
    if os.geteuid() == 0:
        owner = os.fstat(root)
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _parent(root: int, name: str, member: tarfile.TarInfo) -> Iterator[int]:
    """The folder in which `name` is to be, made if need be. Raises InvalidInput where a link is in the way."""
    try:
        with opened_below(root, name.split("/")[:-1], is_made=True) as parent:
            yield parent
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise InvalidInput(f"{member.name!r} passes through a link.") from error
        raise


@contextmanager
def _reading(archive: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, EOFError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInput(f"This is not a whole tar archive: {error}") from error
    except OSError as error:
        raise InvalidInput(f"The archive could not be unpacked: {error.strerror}") from error


def _entries(tar: tarfile.TarFile, archive: Path, cap_bytes: int) -> Iterator[tuple[str, tarfile.TarInfo]]:
    """Each entry by its checked name. Raises InvalidInput, TooLarge."""
    written, allowed = 0, min(cap_bytes, archive.stat().st_size)  # plain tar never holds more than its own size
    for count, member in enumerate(tar):
        if count >= ENTRIES_MAX:
            raise TooLarge(f"The archive has more than {ENTRIES_MAX} entries.")
        name = _checked_name(member)
        written += member.size if member.isreg() else 0
        if written > allowed:
            raise TooLarge(f"The files are larger than the limit of {cap_bytes} bytes.")
        if name != ".":
            yield name, member


def _checked_name(member: tarfile.TarInfo) -> str:
    name = os.path.normpath(member.name)
    if member.name.startswith("/") or name.startswith("../") or name == ".." or "\0" in member.name:
        raise InvalidInput(f"{member.name[:200]!r} leads out of the folder.")
    if len(os.fsencode(name)) > NAME_BYTES_MAX:
        raise InvalidInput(f"The name {member.name[:60]!r}... is too long.")
    if member.issparse() or not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        raise InvalidInput(f"{name!r} is neither a file nor a folder nor a link.")
    if member.issym():
        target = os.path.normpath(os.path.join(os.path.dirname(name), member.linkname))
        if member.linkname.startswith("/") or target.startswith("../") or target == "..":
            raise InvalidInput(f"The link {name!r} leads out of the folder.")
    if member.islnk() and os.path.normpath(member.linkname).startswith(("../", "/")):
        raise InvalidInput(f"The link {name!r} leads out of the folder.")
    return name


def _parents(name: str) -> Iterator[str]:
    while name := os.path.dirname(name):
        yield name


def _unpack_one(tar: tarfile.TarFile, member: tarfile.TarInfo, root: int, parent: int, name: str) -> FileEntry:
    last = os.path.basename(name)
    try:
        os.unlink(last, dir_fd=parent)
    except FileNotFoundError:
        pass
    except (IsADirectoryError, PermissionError) as error:
        raise InvalidInput(f"{name!r} is a folder already, or may not be replaced.") from error
    if member.issym():
        os.symlink(member.linkname, last, dir_fd=parent)
        if os.geteuid() == 0:
            owner = os.fstat(root)
            os.chown(last, owner.st_uid, owner.st_gid, dir_fd=parent, follow_symlinks=False)
        return FileEntry(LINK, member.linkname)
    if member.islnk():
        other = os.path.normpath(member.linkname)
        with _parent(root, other, member) as source:
            os.link(os.path.basename(other), last, src_dir_fd=source, dst_dir_fd=parent, follow_symlinks=False)
        descriptor = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
        with os.fdopen(descriptor, "rb") as file:
            return _mark(os.fstat(descriptor), digest_of(file))
    return _copy(tar, member, root, parent, last)


def _copy(tar: tarfile.TarFile, member: tarfile.TarInfo, root: int, parent: int, last: str) -> FileEntry:
    source = tar.extractfile(member)
    if source is None:
        raise InvalidInput(f"{member.name!r} has no content.")
    digest = hashlib.sha256()
    descriptor = os.open(last, NEW_FILE, 0o600, dir_fd=parent)
    with os.fdopen(descriptor, "wb") as file:
        while piece := source.read(CHUNK_BYTES):
            digest.update(piece)
            file.write(piece)
        file.flush()
        _give(descriptor, root)
        os.fchmod(descriptor, member.mode & 0o777 | stat.S_IRUSR)
        os.utime(descriptor, ns=(mtime_ns(member), mtime_ns(member)))
        return _mark(os.fstat(descriptor), digest.hexdigest())


def _mark(facts: os.stat_result, digest: str) -> FileEntry:
    return FileEntry(facts.st_size, digest, facts.st_mtime_ns, facts.st_ctime_ns)
