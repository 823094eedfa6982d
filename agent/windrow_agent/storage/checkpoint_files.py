"""Reads and writes files of checkpoints in a folder that a workload writes, and may try to turn against the agent.

Every step down is taken by descriptor, from the folder that the runtime made, without following any link: whatever the
workload swaps meanwhile, nothing outside is ever read or written. Blocking: for a thread.
"""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from windrow_proto.checkpoints import FILES_MAX, FOLDER, Piece, file_name, folder_name, pieces_of, step_of
from windrow_proto.errors import Conflict, InvalidInput, NotFound, TooLarge

DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
DEPTH_MAX: Final = 16
"""Folders in each other, of one checkpoint."""
INCOMING: Final = ".incoming-"
"""How the folder begins into which something comes."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing in a folder. link: where it leads, if it is a link."""

    name: str
    facts: os.stat_result
    link: str


def newest(work: Path, after_step: int) -> int | None:
    """The largest step above `after_step` whose folder has its final name; None where there is none."""
    try:
        with opened(work, (FOLDER,)) as folder:
            steps = [step for entry in _entries(folder) if (step := _step(entry)) is not None]
    except NotFound:
        return None
    found = max(steps, default=-1)
    return found if found > after_step else None


def listed(work: Path, step: int) -> tuple[Piece, ...]:
    """The files of a checkpoint, cut into pieces. Raises InvalidInput for what is no file or folder, and TooLarge."""
    with opened(work, (FOLDER, _named(work, step))) as folder:
        return pieces_of(_files(walk(folder)))


@dataclass(frozen=True, slots=True)
class Source:
    """A whole checkpoint that is to be read."""

    work: Path
    step: int

    def read(self, piece: Piece, block_bytes: int) -> Iterator[bytes]:
        """As `read` does."""
        return read(self.work, self.step, piece, block_bytes)

    def is_torn(self, piece: Piece) -> bool:
        """Never: it is whole once it has its name."""
        return False


def read(work: Path, step: int, piece: Piece, block_bytes: int) -> Iterator[bytes]:
    """A piece in blocks. Raises Conflict if the file does not have that many bytes any more."""
    *above, last = file_name(piece.name).split("/")
    with opened(work, (FOLDER, _named(work, step), *above)) as folder:
        file = file_in(folder, last)
    try:
        yield from blocks(file, piece, block_bytes)
    finally:
        os.close(file)


def blocks(file: int, piece: Piece, block_bytes: int) -> Iterator[bytes]:
    """A piece of an open file in blocks. Raises Conflict if the file does not have that many bytes any more."""
    at, end = piece.offset, piece.offset + piece.size_bytes
    while at < end:
        block = os.pread(file, min(block_bytes, end - at), at)
        if not block:
            raise Conflict(f"The file {piece.name[:64]!r} became shorter while it was read.")
        at += len(block)
        yield block


class Incoming:
    """A checkpoint on its way into a folder: invisible to the workload's eyes until `finish` gives it its name."""

    modes = 0o600, 0o700
    """Of its files and folders."""

    def __init__(self, work: Path, step: int, below: tuple[str, ...] = (FOLDER,)) -> None:
        """work: as the runtime made it; what it makes belongs to whom the working folder belongs to."""
        facts = os.stat(work)
        self._owner = (facts.st_uid, facts.st_gid)
        self._step, self._name = step, f"{INCOMING}{secrets.token_hex(8)}"
        self._above = os.open(work, DIRECTORY)
        for name in below:
            above, self._above = self._above, self._make(self._above, name)
            os.close(above)
        self._folder = self._make(self._above, self._name)

    def write(self, name: str, content: Iterator[bytes]) -> None:
        """Add to a file, making it and the folders above it."""
        *above, last = file_name(name).split("/")
        folder = os.dup(self._folder)
        try:
            for part in above:
                below = self._make(folder, part)
                os.close(folder)
                folder = below
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            file = os.open(last, flags, self.modes[0], dir_fd=folder)
            try:
                if not stat.S_ISREG(os.fstat(file).st_mode):
                    raise InvalidInput(f"{name[:64]!r} is something else already.")
                self._give(file, self.modes[0])
                for block in content:
                    view = memoryview(block)
                    while view:
                        view = view[os.write(file, view) :]
                os.fsync(file)
            finally:
                os.close(file)
        finally:
            os.close(folder)

    def finish(self) -> str:
        """Give it its name. A folder that has it already stays: it is whole, or the workload's own doing."""
        os.fsync(self._folder)
        try:
            os.rename(self._name, folder_name(self._step), src_dir_fd=self._above, dst_dir_fd=self._above)
        except OSError as error:
            if error.errno not in {errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR}:
                raise
        os.fsync(self._above)
        return ""

    def close(self) -> None:
        """Take away what was not finished; safe to call twice."""
        if self._above < 0:
            return
        with suppress(OSError):
            shutil.rmtree(self._name, dir_fd=self._above)
        os.close(self._folder)
        os.close(self._above)
        self._above = self._folder = -1

    def _make(self, above: int, name: str) -> int:
        with suppress(FileExistsError):
            os.mkdir(name, self.modes[1], dir_fd=above)
        try:
            made = os.open(name, DIRECTORY, dir_fd=above)
        except OSError as error:
            raise InvalidInput(f"{name[:64]!r} is no folder.") from error
        self._give(made, self.modes[1])
        return made

    def _give(self, descriptor: int, mode: int) -> None:
        os.fchmod(descriptor, mode)
        if os.geteuid() == 0:
            os.fchown(descriptor, *self._owner)


@contextmanager
def opened(work: Path, below: tuple[str, ...]) -> Iterator[int]:
    """The folder at this path, step by step. Raises NotFound where there is none, or a link in its place."""
    descriptor = os.open(work, DIRECTORY)
    try:
        for name in below:
            try:
                found = os.open(name, DIRECTORY, dir_fd=descriptor)
            except OSError as error:
                raise NotFound(f"The workload has no folder {'/'.join(below)[:128]!r}.") from error
            os.close(descriptor)
            descriptor = found
        yield descriptor
    finally:
        os.close(descriptor)


def _entries(folder: int) -> list["os.DirEntry[str]"]:
    """By name; of a folder with more than anybody needs only the first that come. Raises nothing for those."""
    with os.scandir(folder) as entries:
        return sorted(islice(entries, 2 * FILES_MAX + 1), key=lambda one: one.name)


def _step(entry: "os.DirEntry[str]") -> int | None:
    try:
        return step_of(entry.name) if entry.is_dir(follow_symlinks=False) else None
    except OSError:
        return None


def _named(work: Path, step: int) -> str:
    """The folder's name as the workload wrote it: zeros before the number are its own choice."""
    with opened(work, (FOLDER,)) as folder:
        for entry in _entries(folder):
            if _step(entry) == step:
                return entry.name
    raise NotFound(f"There is no whole checkpoint of step {step}.")


def walk(folder: int, above: str = "", depth: int = 0, count: list[int] | None = None) -> Iterator[Entry]:
    """All that is below an open folder, never following a link. Raises TooLarge."""
    count = [0] if count is None else count
    if depth > DEPTH_MAX:
        raise TooLarge(f"A checkpoint or volume has at most {DEPTH_MAX} folders in each other.")
    for entry in _entries(folder):
        name = f"{above}{entry.name}"
        count[0] += 1
        if count[0] > 2 * FILES_MAX:
            raise TooLarge(f"A checkpoint or volume has at most {FILES_MAX} files.")
        facts = entry.stat(follow_symlinks=False)
        is_link = stat.S_ISLNK(facts.st_mode)
        yield Entry(name, facts, os.readlink(entry.name, dir_fd=folder) if is_link else "")
        if stat.S_ISDIR(facts.st_mode):
            below = os.open(entry.name, DIRECTORY, dir_fd=folder)
            try:
                yield from walk(below, f"{name}/", depth + 1, count)
            finally:
                os.close(below)


def _files(entries: Iterator[Entry]) -> Iterator[tuple[str, int]]:
    for entry in entries:
        if stat.S_ISREG(entry.facts.st_mode):
            yield entry.name, entry.facts.st_size
        elif not stat.S_ISDIR(entry.facts.st_mode):
            raise InvalidInput(f"{entry.name[:64]!r} is neither a file nor a folder; a checkpoint has nothing else.")


def file_in(folder: int, name: str) -> int:
    """A file of an open folder, opened. Raises Conflict where it is none, or none any more."""
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        raise Conflict(f"The file {name[:64]!r} is gone.") from error
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    raise Conflict(f"The file {name[:64]!r} became something else.")
