"""Packs the folder of a workload into a tar stream that can be read from any byte on: the same bytes as long as nothing
changes.

So a reader whose connection was cut asks for the rest. Every step down is taken by descriptor without following a link:
what the workload swaps meanwhile is never read. What counts as changed is decided by content, not by time.
"""

import errno
import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final

from windrow_agent.runtimes.file_manifest import FOLDER, LINK, FileEntry, Manifest, digest_of, is_own
from windrow_agent.runtimes.port import CHUNK_BYTES, ByteStream
from windrow_agent.runtimes.tar_unpack import DIRECTORY, mtime_ns, opened_below
from windrow_agent.runtimes.thread_pipe import ThreadPipe
from windrow_proto.errors import RuntimeUnavailable
from windrow_proto.units import MIB, SECOND

DEPTH_MAX: Final = 128
"""Folders in each other; what lies deeper is not packed."""
BLOCK: Final = 512
"""Of a tar archive."""
SPOOL_BYTES: Final = 4 * MIB
"""Of a file whose content is compared, kept in memory; a larger one waits on the disk."""

Sink = Callable[[bytes], None]
Again = Callable[[str], IO[bytes]]
"""Asks a runtime for the archive of one entry alone, by its name below the folder."""


class TarOut:
    """A tar archive to a sink, in pieces, without its first `offset` bytes. What lies before them is not read."""

    def __init__(self, put: Sink, offset: int) -> None:
        self._put, self._skip, self._waiting = put, offset, bytearray()

    def add(self, member: tarfile.TarInfo, content: IO[bytes] | None, *, can_seek: bool = True) -> None:
        """One entry; a file ends exactly where its header says, even if it shrank meanwhile."""
        self._write(member.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
        if content is None:
            return
        left = member.size
        if can_seek and self._skip:
            passed = min(self._skip, left)
            content.seek(passed)
            self._skip, left = self._skip - passed, left - passed
        while left:
            piece = content.read(min(left, CHUNK_BYTES)) or bytes(min(left, CHUNK_BYTES))
            left -= len(piece)
            self._write(piece)
        self._write(bytes(-member.size % BLOCK))

    def end(self) -> None:
        """Say that this was all."""
        self._write(bytes(2 * BLOCK))
        if self._waiting:
            self._put(bytes(self._waiting))

    def _write(self, data: bytes) -> None:
        passed = min(self._skip, len(data))
        self._skip -= passed
        self._waiting += data[passed:]
        while len(self._waiting) >= CHUNK_BYTES:
            self._put(bytes(self._waiting[:CHUNK_BYTES]))
            del self._waiting[:CHUNK_BYTES]


def pack(folder: Path, known: Manifest | None, offset: int, put: Sink) -> None:
    """Write a folder as tar to `put` from byte `offset` on; with `known` only what differs from it."""
    out = TarOut(put, offset)
    root = os.open(folder, DIRECTORY)
    try:
        for name, parent, facts in _walk(root, ""):
            if known is not None and not _counts(name, parent, facts, known):
                continue
            member = _member(name, parent, facts)
            if member is None:
                continue
            if not member.isreg():
                out.add(member, None)
                continue
            with _reading(parent, os.path.basename(name)) as file:
                if file is not None:
                    out.add(member, file)
    finally:
        os.close(root)
    out.end()


def sift(stream: IO[bytes], prefix: str, known: Manifest | None, offset: int, put: Sink, again: Again) -> None:
    """Re-write a runtime's tar stream without `prefix`, filtered as `pack` does. Raises RuntimeUnavailable where it
    has no end."""
    out = TarOut(put, offset)
    counted = _Counted(stream)
    with tarfile.open(fileobj=io.BufferedReader(counted), mode="r|") as source:
        for found in source:
            name = found.name.removeprefix(prefix).strip("/")
            if not name:
                continue
            member = _renamed(found, name)
            is_new = known is None or (known.get(name) != _mark(found) and not is_own(name))
            if not (found.isreg() or found.islnk()):
                if is_new:
                    out.add(member, None)
            elif found.isreg():
                _sift_file(out, member, source.extractfile(found), known)
            else:
                with again(name) as alone, tarfile.open(fileobj=alone, mode="r|") as other:
                    for one in other:
                        _sift_file(out, _renamed(one, name), other.extractfile(one), known)
        if counted.bytes < source.offset + BLOCK:
            raise RuntimeUnavailable("The container daemon ended the files before their end.")
    out.end()


class _Counted(io.RawIOBase):
    """A stream, and how many bytes of it came: tarfile takes one that is cut between two entries for whole."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.bytes = 0
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self.bytes += len(data)
        return len(data)


def packed(folder: Path, known: Manifest | None, offset: int) -> ByteStream:
    """`pack` in a thread of its own, as a stream."""

    def produce(pipe: ThreadPipe[bytes]) -> None:
        pack(folder, known, offset, pipe.put)

    return ByteStream().feed(ThreadPipe(produce, "windrow-pack").read())


def _sift_file(out: TarOut, member: tarfile.TarInfo, content: IO[bytes] | None, known: Manifest | None) -> None:
    if content is None or (known is not None and is_own(member.name)):
        return
    before = None if known is None else known.get(member.name)
    if before is None or before.size != member.size:
        out.add(member, content, can_seek=False)
        return
    with SpooledTemporaryFile(SPOOL_BYTES) as kept:
        while piece := content.read(MIB):
            kept.write(piece)
        kept.seek(0)
        if digest_of(kept) != before.digest:
            kept.seek(0)
            out.add(member, kept)


def _mark(found: tarfile.TarInfo) -> FileEntry:
    """The entry of a folder or a link."""
    return FileEntry(FOLDER) if found.isdir() else FileEntry(LINK, found.linkname)


def _renamed(found: tarfile.TarInfo, name: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.mode = found.mode & 0o777
    if not found.islnk():
        member.type = tarfile.FIFOTYPE if found.ischr() or found.isblk() else found.type
    member.linkname = found.linkname if found.issym() else ""
    member.size = found.size if found.isreg() else 0
    _set_time(member, mtime_ns(found))
    return member


def _walk(root: int, below: str) -> Iterator[tuple[str, int, os.stat_result]]:
    """Each entry: its name, its open folder and its facts; folders before what is in them."""
    parts = below.split("/") if below else []
    if len(parts) > DEPTH_MAX:
        return
    try:
        with _granted(root, parts) as here:
            with os.scandir(here) as found:
                entries = sorted((entry.name for entry in found), key=os.fsencode)
            for last in entries:
                name = f"{below}/{last}" if below else last
                try:
                    facts = os.stat(last, dir_fd=here, follow_symlinks=False)
                except OSError:
                    continue  # it went away: then it is not part of the answer
                yield name, here, facts
                if stat.S_ISDIR(facts.st_mode):
                    yield from _walk(root, name)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.EACCES):
            raise


@contextmanager
def _granted(root: int, parts: list[str]) -> Iterator[int]:
    """A folder that may be read; where its owner, this user, has taken that away it is given back."""
    try:
        with opened_below(root, parts) as here:
            yield here
            return
    except PermissionError:
        pass
    for depth in range(len(parts)):
        with opened_below(root, parts[:depth]) as above:
            _grant(above, parts[depth], os.O_DIRECTORY, 0o700)
    with opened_below(root, parts) as here:
        yield here


def _grant(parent: int, last: str, kind: int, rights: int) -> None:
    """Give this user rights on its own file or folder, whatever lies there now and is no link."""
    descriptor = os.open(last, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC | kind, dir_fd=parent)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISLNK(facts.st_mode) and facts.st_mode & rights != rights:
            os.chmod(f"/proc/self/fd/{descriptor}", stat.S_IMODE(facts.st_mode) | rights)
    finally:
        os.close(descriptor)


@contextmanager
def _reading(parent: int, last: str) -> Iterator[IO[bytes] | None]:
    """A regular file to read; None: gone or swapped. Raises OSError where it is there and cannot be read."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        try:
            descriptor = os.open(last, flags, dir_fd=parent)
        except PermissionError:
            _grant(parent, last, 0, 0o400)
            descriptor = os.open(last, flags, dir_fd=parent)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO):
            raise
        yield None
        return
    with os.fdopen(descriptor, "rb") as file:
        yield file if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


def _counts(name: str, parent: int, facts: os.stat_result, known: Manifest) -> bool:
    """True if the work has made this, or has changed its contents."""
    before = known.get(name)
    if is_own(name):
        return False
    if stat.S_ISDIR(facts.st_mode):
        return before is None or before.size != FOLDER
    if before is None or not stat.S_ISREG(facts.st_mode):
        return before is None or not _is_same_link(parent, os.path.basename(name), before)
    if before.size != facts.st_size:
        return True
    if (before.mtime_ns, before.ctime_ns) == (facts.st_mtime_ns, facts.st_ctime_ns):
        return False
    with _reading(parent, os.path.basename(name)) as file:
        return file is not None and digest_of(file) != before.digest


def _is_same_link(parent: int, last: str, before: FileEntry) -> bool:
    try:
        return before == FileEntry(LINK, os.readlink(last, dir_fd=parent))
    except OSError:
        return False


def _member(name: str, parent: int, facts: os.stat_result) -> tarfile.TarInfo | None:
    member = tarfile.TarInfo(name)
    member.mode = stat.S_IMODE(facts.st_mode) & 0o777
    _set_time(member, facts.st_mtime_ns)
    if stat.S_ISDIR(facts.st_mode):
        member.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(facts.st_mode):
        member.type = tarfile.SYMTYPE
        try:
            member.linkname = os.readlink(os.path.basename(name), dir_fd=parent)
        except OSError:
            return None
    elif stat.S_ISREG(facts.st_mode):
        member.size = facts.st_size
    else:  # a pipe, a socket or a device: only its name travels, so that whoever fetches it says what does not come
        member.type = tarfile.FIFOTYPE
    return member


def _set_time(member: tarfile.TarInfo, at_ns: int) -> None:
    member.mtime = max(0, at_ns // SECOND)
    sign, seconds, part_ns = "-" if at_ns < 0 else "", abs(at_ns) // SECOND, abs(at_ns) % SECOND
    if part_ns or sign:
        member.pax_headers = {"mtime": f"{sign}{seconds}.{part_ns:09d}"}
