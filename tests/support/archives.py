"""Tar archives as a host may send them, and the line by which they come."""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

from windrow.errors import MasterUnreachable
from windrow.folder import archive
from windrow.folder.returning import Report, Terms, unpack

Entry = tuple[tarfile.TarInfo, bytes]


def file(name: str, data: bytes = b"theirs", mode: int = 0o644) -> Entry:
    """A regular file."""
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(data), mode
    return member, data


def special(name: str, kind: bytes, target: str = "") -> Entry:
    """Something that is no regular file."""
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member, b""


def link(name: str, target: str) -> Entry:
    """A symbolic link."""
    return special(name, tarfile.SYMTYPE, target)


def tar_of(*entries: Entry) -> bytes:
    """Them as an archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for member, data in entries:
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


class Sent:
    """Bytes that come by a line that is cut after each `every` bytes. asked: the offsets that were asked for."""

    def __init__(self, data: bytes, every: int = 0) -> None:
        self.data, self.every = data, every
        self.asked: list[int] = []
        self.is_cut = self.is_resumed = False
        self.version = "1"

    def pieces(self, offset: int) -> Iterator[bytes]:
        """Returns the pieces from this byte on."""
        self.asked.append(offset)
        self.is_resumed = self.is_resumed or offset > 0
        end = offset + self.every if self.every else len(self.data)
        for start in range(offset, min(end, len(self.data)), 4096):
            yield self.data[start : min(start + 4096, end)]
        if end < len(self.data):
            raise MasterUnreachable("cut")


def put(root: Path, *entries: Entry, sent: dict[str, str] | None = None, allow_executables: bool = False) -> Report:
    """Unpack these as if a host had sent them."""
    terms = Terms(root, sent or {}, "cluster_x", allow_executables)
    return unpack(archive.Resuming(Sent(tar_of(*entries))), terms)


def tree(root: Path) -> dict[str, bytes | str]:
    """Everything below a folder: the content of files, where links lead."""
    return {
        path.relative_to(root).as_posix(): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_symlink() or path.is_file()
    }
