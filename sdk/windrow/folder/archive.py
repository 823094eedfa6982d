"""Reads an untrusted tar archive, entry by entry, from a connection that may be cut: bounded headers, a whole end.

What is not wanted is passed over by asking for what comes behind it, so that it is not moved at all.
"""

import re
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from windrow.errors import ApiProblem, MasterUnreachable, WindrowClientError

BLOCK: Final = 512
HEADER_BYTES_MAX: Final = 1 << 20
"""Of all that stands before an entry: its long name, its times."""
USED: Final = ("path", "linkpath", "size", "mtime")
"""The fields of a pax header that are used and kept."""
SPARSE: Final = "GNU.sparse"
_SECONDS: Final = re.compile(r"(-?\d{1,19})(?:\.(\d*))?", re.ASCII)
SIZE_MAX: Final = 1 << 62
JUMP_BYTES: Final = 8 << 20
"""So much is read and thrown away; what is longer is left by asking anew."""
ABSENT_S: Final = 120.0
"""For so long a line that brings nothing is asked for again."""
FIRST_S: Final = 15.0
"""The same before its first byte: who waits is told."""
EMPTY_MAX: Final = 4
"""Answers in a row without a byte where more has to come: then it is not the archive that it was."""
PAUSE_S: Final = 0.5
PAUSE_S_MAX: Final = 8.0


class BrokenArchive(WindrowClientError):
    """What comes is no archive, or not the one that it was before."""


class ArchiveCut(WindrowClientError):
    """The archive ended before its end, and no more of it can be had now."""


class Source(Protocol):
    """The source of an archive. is_cut: the market says that it is not all there was; is_resumed: it was asked for
    from another byte than the first; version: by what two answers are known to be of the same bytes, as the last one
    said; empty: they may be others each time."""

    is_cut: bool
    is_resumed: bool
    version: str

    def pieces(self, offset: int) -> Iterator[bytes]:
        """The archive from this byte on. Raises MasterUnreachable, ApiProblem."""


class Line(Protocol):
    """The bytes of an archive, in their order. openings: how often it was asked for."""

    position: int
    openings: int

    def read(self, count: int) -> bytes:
        """At least one byte and at most `count`. Raises ArchiveCut."""

    def skip(self, count: int) -> None:
        """Leave out so many bytes."""


class Resuming:
    """A stream that is opened again where it was cut, as long as its bytes are the same ones. version: of the archive
    that was read up to `position`."""

    def __init__(self, source: Source, position: int = 0, version: str = "") -> None:
        self.position, self.openings, self.version = position, 0, version
        self._source, self._absent_s = source, FIRST_S
        self._pieces: Iterator[bytes] | None = None
        self._waiting = b""
        self._is_known = False

    def read(self, count: int) -> bytes:
        """At least one byte and at most `count`. Raises ArchiveCut, ApiProblem."""
        if not self._waiting:
            self._waiting = self._more()
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        self.position += len(taken)
        return taken

    def skip(self, count: int) -> None:
        """Leave out so many bytes; many are not asked for at all."""
        inside = min(count, len(self._waiting))
        self._waiting = self._waiting[inside:]
        self.position += inside
        count -= inside
        if count > JUMP_BYTES and self.version:
            self.close()
            self.position += count
            return
        while count:
            count -= len(self.read(count))

    def close(self) -> None:
        """Let go of the stream."""
        pieces, self._pieces, self._waiting = self._pieces, None, b""
        if pieces is not None and (close := getattr(pieces, "close", None)) is not None:
            close()

    def _more(self) -> bytes:
        began, pause_s, empty = time.monotonic(), PAUSE_S, 0
        while True:
            why: Exception | None = None
            try:
                if self._pieces is None:
                    self.openings += 1
                    self._pieces, self._is_known = self._source.pieces(self.position), False
                for piece in self._pieces:
                    if piece:
                        if not self._is_known:
                            self._take_version()
                        self._absent_s = ABSENT_S
                        return piece
                empty += 1
            except MasterUnreachable as error:
                why = error
            except ApiProblem as error:
                if error.status == 409 and self.position:
                    raise BrokenArchive(error.detail) from error  # what is kept now is not what was begun
                if not (error.retryable or error.status >= 500 or error.status == 429):
                    raise
                why = error
            self.close()
            if self._source.is_cut:
                raise ArchiveCut("there was more than the market keeps")
            if empty >= EMPTY_MAX:
                raise BrokenArchive("The files changed during the transfer, or were deleted.")
            if time.monotonic() - began + pause_s > self._absent_s:
                raise ArchiveCut(f"The rest of the files cannot be fetched now. {why or 'The stream ends early.'}")
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_S_MAX)

    def _take_version(self) -> None:
        """Of the archive that comes now. Raises BrokenArchive where it is another than the one that came before."""
        found = self._source.version
        if self.position and (not found or found != self.version):
            raise BrokenArchive("The files may have changed since a part of them came.")
        self.version, self._is_known = found, True


class Kind(Enum):
    """The kind of an entry."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    HARD_LINK = "hard link"
    OTHER = "pipe, socket or device"


@dataclass(frozen=True, slots=True)
class Member:
    """One entry. size: of its content, which follows; target: where a link leads; mtime_ns: since 1970."""

    name: str
    kind: Kind
    size: int
    mode: int
    mtime_ns: int
    target: str = ""


class Content:
    """The content of one entry, to be read once."""

    def __init__(self, line: Line, size: int) -> None:
        self._line, self._left, self._padding = line, size, -size % BLOCK

    def pieces(self, count: int) -> Iterator[bytes]:
        """All of it, in pieces of at most `count` bytes."""
        while self._left:
            piece = self._line.read(min(self._left, count))
            self._left -= len(piece)
            yield piece

    def finish(self) -> None:
        """Pass over what was not read."""
        left, self._left = self._left + self._padding, 0
        self._padding = 0
        if left:
            self._line.skip(left)


def members(line: Line) -> Iterator[tuple[Member, Content]]:
    """Each entry and its content. Raises BrokenArchive, and ArchiveCut unless the archive has its whole end."""
    while True:
        more: dict[str, str] = {}
        left = HEADER_BYTES_MAX
        while True:
            block = _exactly(line, BLOCK)
            if not block.strip(b"\0"):
                if _exactly(line, BLOCK).strip(b"\0"):
                    raise BrokenArchive("The archive is incomplete.")
                return
            info = _parsed(block)
            if info.type not in (b"x", b"g", b"L", b"K", b"X"):
                break
            left -= BLOCK + info.size
            if left < 0:
                raise BrokenArchive("An entry's header has more than 1 MiB.")
            _take_header(line, info, more)
        member = _member(info, more)
        content = Content(line, member.size)
        yield member, content
        content.finish()


def _parsed(block: bytes) -> tarfile.TarInfo:
    try:
        info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except (tarfile.TarError, ValueError) as error:
        raise BrokenArchive("The data is not an archive, or the files changed during the transfer.") from error
    if not 0 <= info.size <= SIZE_MAX:
        raise BrokenArchive("An entry claims an impossible size.")
    return info


def _take_header(line: Line, info: tarfile.TarInfo, more: dict[str, str]) -> None:
    """Takes the headers that stand before an entry and belong to it."""
    raw = _exactly(line, info.size + -info.size % BLOCK)[: info.size]
    if info.type in (b"L", b"K"):
        more["path" if info.type == b"L" else "linkpath"] = _text(raw.split(b"\0")[0])
    elif info.type != b"g":  # one for all entries says nothing that matters here
        more.update((key, value) for key, value in _records(raw) if key in USED or key.startswith(SPARSE))


def _records(raw: bytes) -> Iterator[tuple[str, str]]:
    """The records of a pax header: `LENGTH KEY=VALUE` and a newline each."""
    at = 0
    while at < len(raw):
        blank = raw.find(b" ", at, at + 20)
        length = raw[at:blank] if blank > 0 else b""
        if not length.isdigit() or not blank - at < int(length) <= len(raw) - at:
            raise BrokenArchive("An entry's header cannot be read.")
        key, found, value = raw[blank + 1 : at + int(length) - 1].partition(b"=")
        if not found:
            raise BrokenArchive("An entry's header cannot be read.")
        yield _text(key), _text(value)
        at += int(length)


def _member(info: tarfile.TarInfo, more: dict[str, str]) -> Member:
    is_sparse = info.type == tarfile.GNUTYPE_SPARSE or any(key.startswith(SPARSE) for key in more)
    kinds = {tarfile.DIRTYPE: Kind.FOLDER, tarfile.SYMTYPE: Kind.LINK, tarfile.LNKTYPE: Kind.HARD_LINK}
    kind = kinds.get(info.type, Kind.FILE if info.type in tarfile.REGULAR_TYPES and not is_sparse else Kind.OTHER)
    size = more.get("size", str(info.size))
    if not size.isascii() or not size.isdigit() or len(size) > 20 or int(size) > SIZE_MAX:
        raise BrokenArchive("An entry claims an impossible size.")
    has_content = kind is Kind.FILE or (kind is Kind.OTHER and info.type not in (b"3", b"4", b"6"))
    return Member(
        name=more.get("path", info.name),
        kind=kind,
        size=int(size) if has_content else 0,
        mode=info.mode & 0o777,
        mtime_ns=_time_ns(more.get("mtime", ""), info.mtime),
        target=more.get("linkpath", info.linkname),
    )


def _time_ns(said: str, plain: float) -> int:
    if (match := _SECONDS.fullmatch(said)) is not None:
        part_ns = int((match[2] or "")[:9].ljust(9, "0"))
        found = int(match[1]) * 10**9 + (-part_ns if said.startswith("-") else part_ns)
    else:
        found = int(plain) * 10**9
    return max(-(1 << 62), min(found, 1 << 62))


def _exactly(line: Line, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        found += line.read(count - len(found))
    return bytes(found)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
