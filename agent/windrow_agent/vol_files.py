"""Files of a volume in a folder that a workload writes: looked at, read, and put back. Blocking: for a thread.

As with checkpoints no link is ever followed (ckpt_files.py). What files alone do not say is in an index that goes with
them: links, empty folders, and which files are programs. Owners, other permissions and times are not kept: whoever runs
in the workload may read and write all of it.
"""

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from windrow_agent import ckpt_files
from windrow_agent.ckpt_files import INCOMING, Entry, blocks, file_in, opened, walk
from windrow_proto.checkpoints import Piece, file_name, pieces_of
from windrow_proto.errors import Conflict, InvalidInput, TooLarge
from windrow_proto.units import MIB
from windrow_proto.volumes import INDEX_NAME

INDEX_BYTES_MAX: Final = 16 * MIB
_ANY_X: Final = 0o111
_Stamp = tuple[int, int, int]
"""Inode, size and time of the last change: what tells whether a file was written to."""


@dataclass(frozen=True, slots=True)
class Tree:
    """What a volume's folder holds at one moment. seen: the same as long as nothing in it was changed."""

    root: Path
    pieces: tuple[Piece, ...]
    seen: str
    index: bytes = field(repr=False)
    stamps: dict[str, _Stamp] = field(repr=False)

    def read(self, piece: Piece, block_bytes: int) -> Iterator[bytes]:
        """A piece in blocks. Raises Conflict for a file that was written to meanwhile: it may be torn."""
        if piece.name == INDEX_NAME:
            yield self.index[piece.offset : piece.offset + piece.size_bytes]
            return
        *above, last = file_name(piece.name).split("/")
        with opened(self.root, tuple(above)) as folder:
            file = file_in(folder, last)
        try:
            is_part = self.stamps[piece.name][1] != piece.size_bytes
            before = self.stamps[piece.name] if is_part else _stamp(os.fstat(file))
            yield from blocks(file, piece, block_bytes)
            if _stamp(os.fstat(file)) != before:
                raise Conflict(f"The file {piece.name[:64]!r} was written to while it was saved; it may be torn.")
        finally:
            os.close(file)


def look(root: Path) -> Tree:
    """What is in this folder. Raises TooLarge, InvalidInput for a pipe, a socket or a device."""
    files: list[tuple[str, int]] = []
    stamps: dict[str, _Stamp] = {}
    links: dict[str, str] = {}
    folders: list[str] = []
    programs: list[str] = []
    digest = hashlib.sha256()
    with opened(root, ()) as folder:
        for entry in walk(folder):
            if entry.name.startswith(INCOMING) or entry.name == INDEX_NAME:
                continue
            _digest(digest, entry)
            mode = entry.facts.st_mode
            if stat.S_ISLNK(mode):
                links[file_name(entry.name)] = entry.link
            elif stat.S_ISDIR(mode):
                folders.append(file_name(entry.name))
            elif stat.S_ISREG(mode):
                files.append((entry.name, entry.facts.st_size))
                stamps[entry.name] = _stamp(entry.facts)
                programs += [entry.name] if mode & stat.S_IXUSR else []
            else:
                said = "is a pipe, a socket or a device; a volume has files, folders and links"
                raise InvalidInput(f"{entry.name[:64]!r} {said}.")
    index = json.dumps({"links": links, "folders": folders, "programs": programs}, sort_keys=True).encode()
    if len(index) > INDEX_BYTES_MAX:
        raise TooLarge("The names in this volume are too long together.")
    return Tree(root, pieces_of([*files, (INDEX_NAME, len(index))]), digest.hexdigest(), index, stamps)


class Incoming(ckpt_files.Incoming):
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


def _stamp(facts: os.stat_result) -> _Stamp:
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


def _digest(digest: "hashlib._Hash", entry: Entry) -> None:
    facts = entry.facts
    is_folder = stat.S_ISDIR(facts.st_mode)  # its time changes with what is in it, which is told by itself
    told = [entry.name, facts.st_mode, entry.link] + ([] if is_folder else list(_stamp(facts)))
    digest.update(json.dumps(told).encode() + b"\n")
