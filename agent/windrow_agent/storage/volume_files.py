"""Looks at, reads and puts back the files of a volume in a folder that a workload writes. Blocking: for a thread.

As with checkpoints no link is ever followed (checkpoint_files.py). What files alone do not say is in an index that goes
with them: links, empty folders, and which files are programs. Owners, other permissions and times are not kept: whoever
runs in the workload may read and write all of it.

A file with large holes goes as its data alone, one part after the other: the index says where each belongs. So a hole
costs no time either, however large it is.

What cannot be saved is left out and named. A file that goes away meanwhile is no loss.
"""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from windrow_agent.storage import checkpoint_files
from windrow_agent.storage.checkpoint_files import DEPTH_MAX, DIRECTORY, INCOMING, Entry, blocks, file_in, opened
from windrow_proto.checkpoints import (
    CHECKPOINT_BYTES_MAX,
    LEFT_MAX,
    PIECE_BYTES,
    PIECES_MAX,
    Piece,
    file_name,
    pieces_of,
)
from windrow_proto.errors import Conflict, InvalidInput, TooLarge
from windrow_proto.units import GIB, MIB
from windrow_proto.volumes import INDEX_NAME

INDEX_BYTES_MAX: Final = 16 * MIB
LOOK_MAX: Final = 200_000
"""Entries of one volume that are looked at."""
HOLE_BYTES: Final = 1 * MIB
"""Smaller holes of a file are read and sent as zeros: a line of the index for each would cost more."""
EXTENTS_MAX: Final = 10_000
"""Parts of one file that are asked for; the rest is taken as one. A file has more only if it was made to."""
NAME_SHOWN: Final = 64
"""Characters of a name, in words."""
_KINDS: Final = {
    stat.S_IFIFO: "is a pipe",
    stat.S_IFSOCK: "is a socket",
    stat.S_IFCHR: "is a device",
    stat.S_IFBLK: "is a device",
}
_ANY_X: Final = 0o111
_Stamp = tuple[int, int, int]
"""Inode, size and time of the last change: what tells whether a file was written to."""
_Extents = tuple[tuple[int, int], ...]
"""The parts of a file that hold data: each offset with its length, in order."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The contents of a volume's folder at one moment. seen: the same as long as nothing in it was changed. left, torn:
    as the Master is told. extents: of files with holes, whose pieces are of their data alone."""

    root: Path
    pieces: tuple[Piece, ...]
    seen: str
    index: bytes = field(repr=False)
    stamps: dict[str, _Stamp] = field(repr=False)
    extents: dict[str, _Extents] = field(repr=False)
    left: tuple[str, ...] = ()
    left_count: int = 0
    takes_torn: bool = False
    torn: set[str] = field(default_factory=set)

    def read(self, piece: Piece, block_bytes: int) -> Iterator[bytes]:
        """A piece in blocks. Raises Conflict for a file that was written to meanwhile, unless torn ones are taken."""
        if piece.name == INDEX_NAME:
            yield self.index[piece.offset : piece.offset + piece.size_bytes]
            return
        *above, last = file_name(piece.name).split("/")
        with opened(self.root, tuple(above)) as folder:
            file = file_in(folder, last)
        try:
            is_part = self.stamps[piece.name][1] != piece.size_bytes
            before = self.stamps[piece.name] if is_part else _stamp(os.fstat(file))
            for part in _placed(piece, self.extents[piece.name]) if piece.name in self.extents else (piece,):
                yield from blocks(file, part, block_bytes)
            if _stamp(os.fstat(file)) != before:
                if not self.takes_torn:
                    said = f"The file {piece.name[:64]!r} was written to while it was saved; it may be torn."
                    raise Conflict(said)
                self.torn.add(piece.name)
        finally:
            os.close(file)

    def is_torn(self, piece: Piece) -> bool:
        """True if its file was written to while it was read."""
        return piece.name in self.torn


class _Look:
    """One look at a folder, entry by entry."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}
        self.stamps: dict[str, _Stamp] = {}
        self.extents: dict[str, _Extents] = {}
        self.links: dict[str, str] = {}
        self.folders: list[str] = []
        self.programs: list[str] = []
        self.left: list[str] = []
        self.left_count = 0
        self.digest = hashlib.sha256()
        self._entries = self._bytes = self._pieces = 0

    def leave(self, name: str, why: str) -> None:
        """This is not saved."""
        self.left_count += 1
        self.digest.update(f"{name!a} {why}\n".encode())
        if len(self.left) < LEFT_MAX:
            shown = os.fsencode(name).decode(errors="replace")
            shown = "".join(one if one.isprintable() else "?" for one in shown)[:NAME_SHOWN]
            self.left.append(f"{shown!r} {why}")

    def walk(self, folder: int, above: str = "", depth: int = 0) -> None:
        """All that is below an open folder, never following a link."""
        for name in sorted(_names(folder)):
            if self._entries >= LOOK_MAX:
                self.leave(above + name, f"comes after {LOOK_MAX} others")
                return
            self._entries += 1
            with contextlib.suppress(FileNotFoundError):  # gone since it was listed
                self._take(folder, name, above + name, depth)

    def _take(self, folder: int, last: str, name: str, depth: int) -> None:
        facts = os.stat(last, dir_fd=folder, follow_symlinks=False)
        mode = facts.st_mode
        try:
            file_name(name)
        except InvalidInput:
            self.leave(name, "has a name that is too long, is not UTF-8 or has a backslash")
            return
        if name.startswith(INCOMING) or name == INDEX_NAME:
            self.leave(name, "has a name that is kept for what is on its way")
        elif stat.S_ISLNK(mode):
            self._take_link(folder, last, name, facts)
        elif stat.S_ISDIR(mode):
            self._take_folder(folder, last, name, facts, depth)
        elif stat.S_ISREG(mode):
            self._take_file(folder, last, name, facts)
        else:
            self.leave(name, _KINDS.get(stat.S_IFMT(mode), "is neither file, folder nor link"))

    def _take_link(self, folder: int, last: str, name: str, facts: os.stat_result) -> None:
        target = os.readlink(last, dir_fd=folder)
        try:
            target.encode()
        except UnicodeEncodeError:
            self.leave(name, "leads to a name that is not UTF-8")
            return
        self.links[name] = target
        _digest(self.digest, Entry(name, facts, target))

    def _take_folder(self, folder: int, last: str, name: str, facts: os.stat_result, depth: int) -> None:
        if depth >= DEPTH_MAX:
            self.leave(name, f"lies in {DEPTH_MAX} folders already")
            return
        try:
            below = os.open(last, DIRECTORY, dir_fd=folder)
        except FileNotFoundError:
            raise
        except OSError as error:
            self.leave(name, f"cannot be read ({error.strerror})")
            return
        try:
            self.folders.append(name)
            _digest(self.digest, Entry(name, facts, ""))
            self.walk(below, f"{name}/", depth + 1)
        finally:
            os.close(below)

    def _take_file(self, folder: int, last: str, name: str, facts: os.stat_result) -> None:
        if self._bytes + facts.st_size > CHECKPOINT_BYTES_MAX - INDEX_BYTES_MAX:
            self.leave(name, f"is too large: a version has at most {CHECKPOINT_BYTES_MAX // GIB} GiB")
            return
        try:
            file = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except FileNotFoundError:
            raise
        except OSError as error:
            self.leave(name, f"cannot be read ({error.strerror})")
            return
        try:
            extents = _extents(file, facts)
        finally:
            os.close(file)
        size = sum(length for _, length in extents)
        pieces = max(1, -(-size // PIECE_BYTES))
        if self._pieces + pieces >= PIECES_MAX:
            self.leave(name, f"is one file too many: a version has at most {PIECES_MAX}")
            return
        self._pieces += pieces
        self._bytes += facts.st_size  # with its holes: not every file system that it comes to may have any
        self.files[name] = size
        if size != facts.st_size:
            self.extents[name] = extents
        self.stamps[name] = _stamp(facts)
        self.programs += [name] if facts.st_mode & stat.S_IXUSR else []
        _digest(self.digest, Entry(name, facts, ""))


def look(root: Path, *, takes_torn: bool = False) -> Tree:
    """Reads the contents of this folder. Raises TooLarge where the names alone are too long."""
    found = _Look()
    with opened(root, ()) as folder:
        found.walk(folder)
    told: dict[str, Any] = {"links": found.links, "folders": found.folders, "programs": found.programs}
    if found.extents:  # not beside the others: an older agent must refuse what it would put back without its holes
        told = {"index": told, "sparse": {name: [found.stamps[name][1], at] for name, at in found.extents.items()}}
    index = json.dumps(told, sort_keys=True).encode()
    if len(index) > INDEX_BYTES_MAX:
        raise TooLarge("The names in this volume are too long together.")
    pieces = pieces_of([*found.files.items(), (INDEX_NAME, len(index))])
    left = tuple(found.left), found.left_count, takes_torn
    return Tree(root, pieces, found.digest.hexdigest(), index, found.stamps, found.extents, *left)


def _names(folder: int) -> list[str]:
    """Of a folder with more than anybody needs only the first that come."""
    with os.scandir(folder) as entries:
        return [one.name for one in islice(entries, LOOK_MAX + 1)]


class Incoming(checkpoint_files.Incoming):
    """A version on its way into a volume's folder, before the workload starts."""

    modes = 0o666, 0o777

    def __init__(self, root: Path, is_anew: bool) -> None:
        """is_anew: it takes the place of what is there, which an attempt that was broken off may have left."""
        super().__init__(root, 0, ())
        os.fchmod(self._above, self.modes[1])
        self._root, self._is_anew, self._index = root, is_anew, b""

    def write(self, name: str, content: Iterator[bytes]) -> None:
        """Add to a file; the index is kept for the end."""
        if name != INDEX_NAME:
            super().write(name, content)
            return
        for block in content:
            self._index += block
            if len(self._index) > INDEX_BYTES_MAX:
                raise TooLarge("The index of this volume is too long.")

    def finish(self) -> str:
        """Make links and folders, then put all of it in its place."""
        if self._is_anew:
            try:
                self._apply(json.loads(self._index))
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
                # Whoever had the volume before made it, on a host of their own.
                raise InvalidInput("The index of this volume is damaged.") from error
            for name in os.listdir(self._above):
                if name != self._name:
                    self._remove(name)
            for name in os.listdir(self._folder):
                os.rename(name, name, src_dir_fd=self._folder, dst_dir_fd=self._above)
        os.rmdir(self._name, dir_fd=self._above)
        os.fsync(self._above)
        return look(self._root).seen

    def _apply(self, index: Any) -> None:
        """Links last: until then every name below is a folder or a file of ours."""
        for name, (size, extents) in index.get("sparse", {}).items():
            with self._parent(name) as (folder, last):
                self._spread(folder, last, size, extents)
        index = index.get("index", index)
        for name in index["folders"]:
            at = os.dup(self._folder)
            for part in file_name(name).split("/"):
                below = self._make(at, part)
                os.close(at)
                at = below
            os.close(at)
        for name in index["programs"]:
            with self._parent(name) as (folder, last):
                file = file_in(folder, last)
                os.fchmod(file, self.modes[0] | _ANY_X)
                os.close(file)
        for name, target in index["links"].items():
            with self._parent(name) as (folder, last):
                os.symlink(target, last, dir_fd=folder)
                if os.geteuid() == 0:
                    os.chown(last, *self._owner, dir_fd=folder, follow_symlinks=False)

    def _spread(self, folder: int, last: str, size: int, extents: list[tuple[int, int]]) -> None:
        """Put the data of a file with holes where it belongs. Raises ValueError for what cannot be so."""
        packed = file_in(folder, last)
        try:
            ends = [0, *(at + length for at, length in extents)]
            is_ordered = all(end <= at and length > 0 for end, (at, length) in zip(ends, extents, strict=False))
            is_whole = sum(length for _, length in extents) == os.fstat(packed).st_size
            if not is_ordered or not is_whole or not ends[-1] <= size <= CHECKPOINT_BYTES_MAX:
                raise ValueError("no parts of this file")
            os.unlink(last, dir_fd=folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(last, flags, self.modes[0], dir_fd=folder), "wb") as file:
                self._give(file.fileno(), self.modes[0])
                at = 0
                for begin, length in extents:
                    file.seek(begin)
                    file.writelines(blocks(packed, Piece(last, at, length), MIB))
                    at += length
                file.truncate(size)
                os.fsync(file.fileno())
        finally:
            os.close(packed)

    def _parent(self, name: str) -> "_Parent":
        return _Parent(self._root / self._name, name)

    def _remove(self, name: str) -> None:
        try:
            os.unlink(name, dir_fd=self._above)
        except IsADirectoryError:
            shutil.rmtree(name, dir_fd=self._above)


class _Parent:
    """The folder that something is in, opened step by step, and its last name."""

    def __init__(self, root: Path, name: str) -> None:
        *above, self._last = file_name(name).split("/")
        self._opening = opened(root, tuple(above))

    def __enter__(self) -> tuple[int, str]:
        return self._opening.__enter__(), self._last

    def __exit__(self, *_: object) -> None:
        self._opening.__exit__(None, None, None)


def _extents(file: int, facts: os.stat_result) -> _Extents:
    """Returns the parts of an open file that hold data; one part for all of it where it has no large holes."""
    size, found = facts.st_size, list[tuple[int, int]]()
    if size - facts.st_blocks * 512 < HOLE_BYTES:  # st_blocks counts in 512 bytes on every file system (stat(2))
        return ((0, size),)
    end = 0
    for number in range(EXTENTS_MAX + 1):
        try:
            begin = os.lseek(file, end, os.SEEK_DATA)
            end = size if number == EXTENTS_MAX else min(os.lseek(file, begin, os.SEEK_HOLE), size)
        except OSError as error:
            if error.errno != errno.ENXIO:
                return ((0, size),)  # a file system that cannot say
            break  # nothing but a hole follows
        if found and begin - sum(found[-1]) < HOLE_BYTES:
            begin = found.pop()[0]
        if begin < end:
            found.append((begin, end - begin))
        if end >= size:
            break
    return tuple(found)


def _placed(piece: Piece, extents: _Extents) -> Iterator[Piece]:
    """The parts of a file that a piece of its data is of."""
    before = 0
    for at, length in extents:
        begin, end = max(piece.offset, before), min(piece.offset + piece.size_bytes, before + length)
        if begin < end:
            yield Piece(piece.name, at + begin - before, end - begin)
        before += length


def _stamp(facts: os.stat_result) -> _Stamp:
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


def _digest(digest: "hashlib._Hash", entry: Entry) -> None:
    facts = entry.facts
    is_folder = stat.S_ISDIR(facts.st_mode)  # its time changes with what is in it, which is told by itself
    told = [entry.name, facts.st_mode, entry.link] + ([] if is_folder else list(_stamp(facts)))
    digest.update(json.dumps(told).encode() + b"\n")
