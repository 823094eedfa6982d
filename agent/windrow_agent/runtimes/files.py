"""Folders of workloads as tar streams: unpacked without trusting them, packed without following them.

Unpacking refuses absolute names, `..`, devices, sparse files, links that lead out and names that pass through links.
What is refused is refused before anything of that entry is written. Packing takes regular files, links and folders.
"""

import asyncio
import io
import json
import os
import stat
import tarfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Final

from windrow_agent.runtimes.port import CHUNK_BYTES, ByteStream, FilesTaken
from windrow_agent.runtimes.streams import ThreadPipe
from windrow_proto.errors import InvalidInput, TooLarge
from windrow_proto.model import ENVIRONMENT

ENTRIES_MAX: Final = 200_000
"""Of one archive; a folder of code and data has fewer, and each costs an inode."""
NAME_BYTES_MAX: Final = 1024
"""Of one entry's path."""

Manifest = Mapping[str, tuple[int, int]]
"""Path to (size in bytes, mtime in ns); links have size -1."""
Sink = Callable[[bytes], None]


def unpack(archive: Path, folder: Path, cap_bytes: int) -> tuple[FilesTaken, Manifest]:
    """Unpack a plain tar file into an existing folder; with what it brought, to compare with later. Raises InvalidInput
    or TooLarge, naming the entry."""
    taken = written = 0
    names = set[str]()
    allowed = min(cap_bytes, archive.stat().st_size)  # plain tar never holds more than its own size
    try:
        with tarfile.open(archive, mode="r:") as tar:
            for count, member in enumerate(tar):
                if count >= ENTRIES_MAX:
                    raise TooLarge(f"The archive has more than {ENTRIES_MAX} entries.")
                written += member.size if member.isreg() else 0
                if written > allowed:
                    raise TooLarge(f"The files are larger than the limit of {cap_bytes} bytes.")
                if name := _unpack_one(tar, member, folder):
                    taken += 1
                    names.add(name)
    except (tarfile.TarError, EOFError) as error:
        raise InvalidInput(f"This is not a whole tar archive: {error}") from error
    except OSError as error:
        raise InvalidInput(f"The archive could not be unpacked: {error.strerror}") from error
    return FilesTaken(taken, written), {name: mark for name, mark in scan(folder).items() if name in names}


def check_archive(archive: Path, cap_bytes: int) -> tuple[FilesTaken, Manifest]:
    """The same checks by name and size only, for a runtime that unpacks by itself; with what it would bring."""
    taken = written = 0
    manifest: dict[str, tuple[int, int]] = {}
    allowed = min(cap_bytes, archive.stat().st_size)
    links: set[str] = set()
    try:
        with tarfile.open(archive, mode="r:") as tar:
            for count, member in enumerate(tar):
                if count >= ENTRIES_MAX:
                    raise TooLarge(f"The archive has more than {ENTRIES_MAX} entries.")
                name = _checked_name(member)
                if any(parent in links for parent in _parents(name)):
                    raise InvalidInput(f"{member.name!r} passes through a link.")
                written += member.size if member.isreg() else 0
                if written > allowed:
                    raise TooLarge(f"The files are larger than the limit of {cap_bytes} bytes.")
                if member.issym():
                    links.add(name)
                if not member.isdir():
                    taken += 1
                    manifest[name] = _tar_mark(member)
    except (tarfile.TarError, EOFError) as error:
        raise InvalidInput(f"This is not a whole tar archive: {error}") from error
    return FilesTaken(taken, written), manifest


def scan(folder: Path) -> Manifest:
    """What a folder holds now, to compare with later."""
    return {name: _mark(entry) for name, entry in _walk(folder) if not stat.S_ISDIR(entry.st_mode)}


def save_manifest(path: Path, manifest: Manifest) -> None:
    """Write a manifest in one piece."""
    path.with_suffix(".new").write_text(json.dumps(manifest))
    path.with_suffix(".new").replace(path)


def load_manifest(path: Path) -> Manifest:
    """Read a manifest; empty if there is none that is whole: then everything counts as changed."""
    try:
        return {name: (int(size), int(mtime)) for name, (size, mtime) in json.loads(path.read_text()).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def pack(folder: Path, known: Manifest | None, cap_bytes: int, put: Sink) -> bool:
    """Write a folder as tar to `put` in chunks; with `known` only what differs from it.

    Returns whether the cap left something out; a file that does not fit is left out whole.
    """
    truncated, total = False, 0
    with tarfile.open(fileobj=Chunked(put), mode="w|", bufsize=CHUNK_BYTES, format=tarfile.PAX_FORMAT) as tar:
        for name, entry in _walk(folder):
            if known is not None and (stat.S_ISDIR(entry.st_mode) or not _counts(name, known.get(name), _mark(entry))):
                continue
            member = _member(folder, name, entry)
            if member is None:
                continue
            if total + member.size > cap_bytes:
                truncated = True
                continue
            total += member.size
            _add(tar, folder / name, member)
    return truncated


def sift(stream: IO[bytes], prefix: str, known: Manifest | None, cap_bytes: int, put: Sink) -> bool:
    """Re-write a runtime's tar stream without `prefix`, filtered and capped as `pack` does; returns what it returns."""
    truncated, total = False, 0
    with (
        tarfile.open(fileobj=stream, mode="r|") as source,
        tarfile.open(fileobj=Chunked(put), mode="w|", bufsize=CHUNK_BYTES, format=tarfile.PAX_FORMAT) as tar,
    ):
        for member in source:
            name = member.name.removeprefix(prefix).strip("/")
            if not name or not (member.isreg() or member.issym() or member.isdir()):
                continue
            if known is not None and (member.isdir() or not _counts(name, known.get(name), _tar_mark(member))):
                continue
            if total + member.size > cap_bytes:
                truncated = True
                continue
            total += member.size
            member.name = name
            member.pax_headers = {}
            tar.addfile(member, source.extractfile(member) if member.isreg() else None)
    return truncated


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


def packed(folder: Path, known: Manifest | None, cap_bytes: int) -> ByteStream:
    """`pack` in a thread of its own, as a stream."""
    stream = ByteStream()

    def produce(pipe: ThreadPipe[bytes]) -> None:
        stream.truncated = pack(folder, known, cap_bytes, pipe.put)

    return stream.feed(ThreadPipe(produce, "windrow-pack").read())


class Chunked(io.RawIOBase):
    """A file to write to whose bytes go to a sink in pieces of at most CHUNK_BYTES."""

    def __init__(self, put: Sink) -> None:
        self._put = put

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]  # tarfile only ever writes bytes
        for start in range(0, len(data), CHUNK_BYTES):
            self._put(bytes(data[start : start + CHUNK_BYTES]))
        return len(data)


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


def _counts(name: str, before: tuple[int, int] | None, now: tuple[int, int]) -> bool:
    """Whether this is a file that the work changed."""
    return before != now and not name.startswith(f"{ENVIRONMENT}/")


def _parents(name: str) -> Iterator[str]:
    while name := os.path.dirname(name):
        yield name


def _unpack_one(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> str:
    """Returns its name in the folder; empty for a folder."""
    name = _checked_name(member)
    target = folder / name
    if any((folder / parent).is_symlink() for parent in _parents(name)):
        raise InvalidInput(f"{member.name!r} passes through a link.")
    if member.isdir():
        if target.is_symlink():
            raise InvalidInput(f"{member.name!r} passes through a link.")
        target.mkdir(parents=True, exist_ok=True)
        return ""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_symlink() or target.exists():
        if target.is_dir() and not target.is_symlink():
            raise InvalidInput(f"{name!r} is a folder already.")
        target.unlink()
    if member.issym():
        target.symlink_to(member.linkname)
        return name
    if member.islnk():
        os.link(folder / os.path.normpath(member.linkname), target, follow_symlinks=False)
        return name
    _copy(tar, member, target)
    return name


def _copy(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    source = tar.extractfile(member)
    if source is None:
        raise InvalidInput(f"{member.name!r} has no content.")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(target, flags, (member.mode & 0o755) | 0o600), "wb") as file:
        while piece := source.read(CHUNK_BYTES):
            file.write(piece)
    mtime_ns = max(0, int(member.mtime * 1_000_000_000))
    os.utime(target, ns=(mtime_ns, mtime_ns))


def _walk(folder: Path, below: str = "") -> Iterator[tuple[str, os.stat_result]]:
    try:
        entries = sorted(os.scandir(folder / below), key=lambda entry: entry.name)
    except OSError:
        return  # it went away or may not be read: then it is not part of the answer
    for entry in entries:
        name = f"{below}/{entry.name}" if below else entry.name
        try:
            facts = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        yield name, facts
        if stat.S_ISDIR(facts.st_mode):
            yield from _walk(folder, name)


def _mark(entry: os.stat_result) -> tuple[int, int]:
    return (-1 if stat.S_ISLNK(entry.st_mode) else entry.st_size), entry.st_mtime_ns


def _tar_mark(member: tarfile.TarInfo) -> tuple[int, int]:
    return (-1 if member.issym() else member.size), int(member.mtime * 1000) * 1_000_000


def _member(folder: Path, name: str, entry: os.stat_result) -> tarfile.TarInfo | None:
    member = tarfile.TarInfo(name)
    member.mode = stat.S_IMODE(entry.st_mode) & 0o755
    member.mtime = entry.st_mtime_ns / 1_000_000_000
    if stat.S_ISDIR(entry.st_mode):
        member.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(entry.st_mode):
        member.type = tarfile.SYMTYPE
        try:
            member.linkname = os.readlink(folder / name)
        except OSError:
            return None
    elif stat.S_ISREG(entry.st_mode):
        member.size = entry.st_size
    else:
        return None
    return member


def _add(tar: tarfile.TarFile, path: Path, member: tarfile.TarInfo) -> None:
    if not member.isreg():
        tar.addfile(member)
        return
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return  # gone or unreadable since the walk
    with os.fdopen(handle, "rb") as file:
        tar.addfile(member, _Padded(file, member.size))


class _Padded(io.RawIOBase):
    """A file that ends exactly where its header says, even if it shrank meanwhile."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self._left = file, size

    def read(self, count: int = -1) -> bytes:
        wanted = self._left if count < 0 else min(count, self._left)
        piece = self._file.read(wanted) or b""
        piece += b"\0" * (wanted - len(piece))
        self._left -= wanted
        return piece
