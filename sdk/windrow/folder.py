"""A working folder as a tar stream and back: what is sent, what is left behind, and what may come back where.

Nothing that comes back can leave the folder: no absolute names, no `..`, no links, no devices.
"""

import fnmatch
import glob
import os
import re
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Final

from windrow.errors import WindrowClientError

FOLDER_BYTES_MAX: Final = 1 << 30
FILES_MAX: Final = 100_000
LEFT_BEHIND: Final = (
    ".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".windrow", ".mypy_cache", ".ruff_cache",
    ".pytest_cache", ".tox", ".DS_Store",
)  # fmt: skip
"""Made by tools, large, or meaningless on another machine. `.windrowignore` names more, one pattern a line."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """What will be sent. files: names relative to the folder; size_bytes: their sum."""

    root: Path
    files: tuple[str, ...]
    size_bytes: int


def _patterns(root: Path) -> tuple[str, ...]:
    path = root / ".windrowignore"
    lines = path.read_text().splitlines() if path.is_file() else []
    return tuple(line.strip().rstrip("/") for line in lines if line.strip() and not line.lstrip().startswith("#"))


def walk(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Each file that is sent, by its name relative to the folder; no links, nothing that is left behind.

    Without a path object for each: the folder of a function is looked at with every call.
    """
    left = re.compile("|".join(fnmatch.translate(one) for one in (*_patterns(root), *map(glob.escape, LEFT_BEHIND))))
    yield from _below(str(root), "", left.match)


def _below(
    folder: str, prefix: str, is_left: Callable[[str], re.Match[str] | None]
) -> Iterator[tuple[str, os.stat_result]]:
    folders = []
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        name = prefix + entry.name
        if is_left(entry.name) or is_left(name):
            continue
        if entry.is_dir(follow_symlinks=False):
            folders.append(entry)
        elif entry.is_file(follow_symlinks=False):
            yield name, entry.stat(follow_symlinks=False)
    for entry in folders:
        yield from _below(entry.path, f"{prefix}{entry.name}/", is_left)


def survey(root: Path) -> Parcel:
    """List what would be sent; raises WindrowClientError when it is more than 1 GiB or 100,000 files."""
    names: list[str] = []
    total = 0
    for name, state in walk(root):
        names.append(name)
        total += state.st_size
        if total > FOLDER_BYTES_MAX or len(names) > FILES_MAX:
            raise WindrowClientError(
                f"{root} holds more than 1 GiB or {FILES_MAX} files. Run from a smaller folder, or name what is not "
                "needed in .windrowignore."
            )
    return Parcel(root, tuple(names), total)


def pack(parcel: Parcel, into: IO[bytes]) -> None:
    """Write the parcel as a tar stream; owners are left out, modes and times kept."""
    with tarfile.open(fileobj=into, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for name in parcel.files:
            info = tar.gettarinfo(parcel.root / name, arcname=name)
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            with (parcel.root / name).open("rb") as file:
                tar.addfile(info, file)


def unpack(stream: IO[bytes], root: Path) -> list[str]:
    """Write what came back below `root`; returns the names written. Anything that would leave the folder is refused."""
    written: list[str] = []
    total = 0
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        for member in tar:
            name = PurePosixPath(member.name)
            if name.is_absolute() or ".." in name.parts or not (member.isreg() or member.isdir()):
                raise WindrowClientError(
                    f"The answer holds {member.name!r}, which may not be written here; nothing after it was."
                )
            target = root.joinpath(*name.parts)
            if any(
                part.is_symlink() for part in (target, *target.parents) if part.is_relative_to(root) and part != root
            ):
                raise WindrowClientError(
                    f"{member.name!r} would be written through a link; nothing after it was written."
                )
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            total += member.size
            if total > FOLDER_BYTES_MAX or len(written) >= FILES_MAX:
                raise WindrowClientError("The answer is larger than 1 GiB or 100,000 files; the rest was not written.")
            _write(tar, member, target)
            written.append(name.as_posix())
    return written


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    source = tar.extractfile(member)
    if source is None:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        while data := source.read(1 << 16):
            file.write(data)
    target.chmod(member.mode & 0o755 | 0o600)
