"""A working folder as a tar stream: what is sent, what stays here and is named, and what was sent, to compare later."""

import hashlib
import os
import pwd
import stat
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from windrow.errors import InvalidInput
from windrow.folder.ignoring import Ignores
from windrow.folder.names import (
    ENVIRONMENT_MARK,
    NAME_BYTES_MAX,
    SECRET_LOOK_BYTES,
    SYSTEM,
    WHOLE_SYSTEM,
    is_left_behind,
    is_secret_name,
    is_secret_text,
    link_target,
)

FOLDER_BYTES_MAX: Final = 1 << 30
FILES_MAX: Final = 100_000
PIECE_BYTES: Final = 1 << 16
BLOCK: Final = 512
"""Of a tar archive."""
LINK: Final = "link:"
"""Before where a link leads, in the place of a content's digest."""
FOLDER: Final = "folder"
"""In the place of one."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that is sent. name: relative to the folder; target: where it leads, if it is a link."""

    name: str
    facts: os.stat_result
    target: str | None = None

    @property
    def is_file(self) -> bool:
        """True if it is a regular file."""
        return stat.S_ISREG(self.facts.st_mode)


@dataclass(slots=True)
class Left:
    """The files of a folder that stay here, by name, each list with its own reason."""

    secrets: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    environments: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    idle_lines: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Returns the lines that a person is told, one for each reason."""
        if self.secrets:
            how = "To send one: --include-secrets, or !NAME in .windrowignore."
            yield f"left out, as they look like secrets: {named(self.secrets)}. {how}"
        if self.ignored:
            yield f"left out by .gitignore and .windrowignore: {named(self.ignored)}"
        if self.environments:
            yield f"left out, as they are Python environments: {named(self.environments)}"
        if self.links:
            yield f"left out, as these links lead out of the folder: {named(self.links)}"
        if self.odd:
            yield f"left out: {named(self.odd)}"
        if self.idle_lines:
            yield f"these lines of .windrowignore match nothing here: {named(self.idle_lines)}"


@dataclass(frozen=True, slots=True)
class Parcel:
    """The files that will be sent. size_bytes: of all its files."""

    root: Path
    entries: tuple[Entry, ...]
    size_bytes: int
    left: Left = field(default_factory=Left)

    @property
    def files(self) -> int:
        """How many files and links."""
        return sum(not stat.S_ISDIR(entry.facts.st_mode) for entry in self.entries)


class Looks:
    """Which files were found to hold a private key; what did not change is not read again."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[tuple[int, int, int], bool]] = {}

    def is_secret(self, path: str, facts: os.stat_result) -> bool:
        """True if this file holds one."""
        look = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
        known = self._seen.get(path)
        if known is None or known[0] != look:
            known = self._seen[path] = (look, _has_key(path, facts))
        return known[1]


def named(names: list[str], shown: int = 8) -> str:
    """Some of many names in a line."""
    return ", ".join(names[:shown]) + (f" and {len(names) - shown} more" if len(names) > shown else "")


def refuse_root(root: Path) -> None:
    """Raise InvalidInput where nobody means to send all that a folder holds: `/`, a home, what is above one, a
    folder of the system."""
    if is_home(root):
        raise InvalidInput(
            f"{root} is a home folder or holds one, and all of it would be sent, with its keys. Run this in a folder "
            "of its own, or send nothing: --no-files"
        )
    if is_of_system(root):
        raise InvalidInput(
            f"{root} is a folder of the system, and all of it would be sent. Run this in a folder of its own, or send "
            "nothing: --no-files"
        )


def is_home(root: Path) -> bool:
    """True if this is a home of this user, by the environment or by its account, or holds one."""
    place = root.resolve()
    homes = {Path.home().resolve()}
    with suppress(KeyError, OSError):
        homes.add(Path(pwd.getpwuid(os.getuid()).pw_dir).resolve())
    return place == Path("/") or any(place == home or place in home.parents for home in homes)


def is_of_system(root: Path) -> bool:
    """True if this is a folder of the system, such as /etc or /opt, and not somebody's own in one."""
    place = root.resolve()
    if place in (Path(one).resolve() for one in SYSTEM):
        return True
    return any(place.is_relative_to(Path(one).resolve()) for one in WHOLE_SYSTEM)


def walk(root: Path, left: Left, looks: Looks, *, include_secrets: bool = False) -> Iterator[Entry]:
    """Each file, link and folder that is sent, folders before what is in them; `left` learns what is not.

    Without a path object for each: the folder of a function is looked at with every call.
    """
    ignores = Ignores(root)
    yield from _Walk(str(root), ignores, left, looks, include_secrets).below("", None)
    left.idle_lines += ignores.idle_lines()


@dataclass(frozen=True, slots=True)
class _Walk:
    root: str
    ignores: Ignores
    left: Left
    looks: Looks
    include_secrets: bool

    def below(self, folder: str, own: Entry | None) -> Iterator[Entry]:
        """A folder and what is in it; nothing of one that is left out. own: of the folder, None for the root."""
        prefix, folders = f"{folder}/" if folder else "", []
        try:
            with os.scandir(f"{self.root}/{folder}") as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            if not folder:
                raise
            self.left.odd.append(f"{folder}/ ({error.strerror})")
            return
        names = {entry.name for entry in entries}
        if folder and ENVIRONMENT_MARK in names:
            self.left.environments.append(f"{folder}/")
            return
        if own is not None:
            yield own
        self.ignores.enter(folder, names)
        for entry in entries:
            name = prefix + entry.name
            try:
                is_folder = entry.is_dir(follow_symlinks=False)
                if self._is_left(entry, name, is_folder):
                    continue
                facts = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # gone since it was listed, as an editor's own files are
            made = self._entry(entry, name, facts)
            if made is not None and is_folder:
                folders.append(made)
            elif made is not None:
                yield made
        for one in folders:
            yield from self.below(one.name, one)

    def _is_left(self, entry: os.DirEntry[str], name: str, is_folder: bool) -> bool:
        verdict = self.ignores.verdict(name, is_folder=is_folder)
        if is_left_behind(entry.name):
            return True
        if verdict:
            self.left.ignored.append(f"{name}/" if is_folder else name)
            return True
        if self.include_secrets or verdict is False:
            return False
        if is_secret_name(name, is_folder=is_folder) or (
            entry.is_file(follow_symlinks=False) and self.looks.is_secret(entry.path, entry.stat(follow_symlinks=False))
        ):
            self.left.secrets.append(f"{name}/" if is_folder else name)
            return True
        return False

    def _entry(self, entry: os.DirEntry[str], name: str, facts: os.stat_result) -> Entry | None:
        if len(os.fsencode(name)) > NAME_BYTES_MAX:
            self.left.odd.append(f"{name[:60]}... (its name has more than {NAME_BYTES_MAX} bytes)")
        elif stat.S_ISREG(facts.st_mode) or stat.S_ISDIR(facts.st_mode):
            return Entry(name, facts)
        elif not stat.S_ISLNK(facts.st_mode):
            self.left.odd.append(f"{name} ({_kind(facts.st_mode)})")
        elif (target := _inner_target(self.root, name)) is not None:
            return Entry(name, facts, target)
        else:
            self.left.links.append(name)
        return None


def survey(root: Path, *, include_secrets: bool = False) -> Parcel:
    """List what would be sent; raises InvalidInput when it is more than 1 GiB or 100,000 files, a home or a folder of
    the system."""
    refuse_root(root)
    entries: list[Entry] = []
    total, left = 0, Left()
    for entry in walk(root, left, Looks(), include_secrets=include_secrets):
        entries.append(entry)
        total += entry.facts.st_size if entry.is_file else 0
        if total > FOLDER_BYTES_MAX or len(entries) > FILES_MAX:
            raise InvalidInput(
                f"{root} holds more than 1 GiB or {FILES_MAX} files. Run from a smaller folder, or name what is not "
                "needed in .windrowignore."
            )
    return Parcel(root, tuple(entries), total, left)


def single(path: Path) -> Parcel:
    """One file alone, as a folder with nothing else in it."""
    facts = path.stat()
    return Parcel(path.parent, (Entry(path.name, facts),), facts.st_size)


def pack(parcel: Parcel, into: IO[bytes]) -> dict[str, str]:
    """Write the parcel as a tar archive to a file that can be written anew; owners are left out, modes and times kept.

    Returns what was sent: the digest of each file, FOLDER, or LINK and where it leads. What goes or changes while
    it is read is left out, and added to what the parcel says is left.
    """
    sent: dict[str, str] = {}
    for entry in parcel.entries:
        member = _member(entry)
        if entry.is_file:
            began = into.tell()
            digest = _pack_file(parcel.root, entry, member, into)
            if digest is None:
                into.seek(began)
                into.truncate()
                parcel.left.odd.append(f"{entry.name} (it went away, changed while it was read, or may not be read)")
            else:
                sent[entry.name] = digest
        else:
            into.write(_header(member))
            sent[entry.name] = FOLDER if entry.target is None else LINK + entry.target
    into.write(bytes(2 * BLOCK))
    return sent


def _pack_file(root: Path, entry: Entry, member: tarfile.TarInfo, into: IO[bytes]) -> str | None:
    """The digest of what was written; None: not all of it was, or it is not what it was at the beginning."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(f"{root}/{entry.name}", flags)
    except OSError:
        return None
    digest = hashlib.sha256()
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            return None
        member.size = before.st_size
        into.write(_header(member))
        left = before.st_size
        try:
            while left and (piece := file.read(min(left, PIECE_BYTES))):
                left -= len(piece)
                digest.update(piece)
                into.write(piece)
        except OSError:
            return None
        after = os.fstat(descriptor)
    if left or (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        return None
    into.write(bytes(-before.st_size % BLOCK))
    return digest.hexdigest()


def _member(entry: Entry) -> tarfile.TarInfo:
    member = tarfile.TarInfo(entry.name)
    member.mode = stat.S_IMODE(entry.facts.st_mode) & 0o777
    at_ns = entry.facts.st_mtime_ns
    member.mtime = max(0, at_ns // 10**9)
    sign, seconds, part_ns = "-" if at_ns < 0 else "", abs(at_ns) // 10**9, abs(at_ns) % 10**9
    member.pax_headers = {"mtime": f"{sign}{seconds}.{part_ns:09d}"}
    if stat.S_ISDIR(entry.facts.st_mode):
        member.type = tarfile.DIRTYPE
    elif entry.target is not None:
        member.type, member.linkname = tarfile.SYMTYPE, entry.target
    return member


def _header(member: tarfile.TarInfo) -> bytes:
    return member.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _inner_target(root: str, name: str) -> str | None:
    """Returns the target of a link as it is sent: relative, inside the folder, and not by way of another link out of
    it."""
    path = f"{root}/{name}"
    try:
        target = os.readlink(path)
    except OSError:
        return None
    if target.startswith("/"):
        inside = os.path.relpath(target, os.path.dirname(path))
        target = inside if os.path.commonpath([root, os.path.normpath(target)]) == root else ""
    parent = name.split("/")[:-1]
    if link_target(parent, target) is None:
        return None
    real_root, real = os.path.realpath(root), os.path.realpath(path)
    return target if real == real_root or real.startswith(f"{real_root}/") else None


def _has_key(path: str, facts: os.stat_result) -> bool:
    if not 64 <= facts.st_size <= SECRET_LOOK_BYTES:
        return False
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    with os.fdopen(descriptor, "rb") as file:
        return is_secret_text(file.read(SECRET_LOOK_BYTES))


def _kind(mode: int) -> str:
    kinds: Mapping[int, str] = {stat.S_IFSOCK: "a socket", stat.S_IFIFO: "a pipe"}
    return kinds.get(stat.S_IFMT(mode), "a device")
