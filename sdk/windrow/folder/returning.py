"""Writes files that come back from a host into a folder here: everything that may be written is, each file whole or not
at all.

 entry ─▶ a place that a host never writes? ─▶ named
       ─▶ into a part file beside it ─▶ nothing there, or what was sent and did not change here? ─▶ renamed to its name
                                     └▶ else: NAME.from-ID beside it, and said

Links come last, and only those that stay inside. Every step down is taken by descriptor without following a link. A
file that was sent keeps the rights that it has here; a new one cannot be executed, unless that was asked for.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from windrow.folder.archive import ArchiveCut, BrokenArchive, Content, Kind, Line, Member, members
from windrow.folder.names import (
    ENVIRONMENT_MARK,
    HEAD_BYTES_MAX,
    PART_PREFIX,
    PATH_BYTES_MAX,
    folded,
    is_git_head,
    is_quiet,
    link_target,
    path_flaw,
    refused_part,
)
from windrow.folder.sending import LINK
from windrow.words import counted

ENTRIES_MAX: Final = 200_000
"""Of one archive; also of the folders that are made for it."""
ROOM_KEPT_BYTES: Final = 256 << 20
"""Of the disk, or a twentieth of it where that is less: a host does not fill it to the last byte."""
PIECE_BYTES: Final = 1 << 16
DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
A_REPOSITORY: Final = "git would take its folder for a repository"
LEADS_OUT: Final = "a link that leads out of the folder, or to a place that a host never writes"


@dataclass(slots=True)
class Report:
    """The outcome of bringing files back. written: names; beside: each name and the one that it was given instead;
    refused: what a host may not write here; missing: what could not be written, or did not come, each with why; taken:
    digests of what lies here now; offset: up to which byte of the archive nothing is missing."""

    written: list[str] = field(default_factory=list)
    beside: list[tuple[str, str]] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    missing: list[tuple[str, str]] = field(default_factory=list)
    taken: dict[str, str] = field(default_factory=dict)
    offset: int = 0
    is_cut: bool = False

    @property
    def is_whole(self) -> bool:
        """True if everything that may be here is."""
        return not self.missing and not self.is_cut


@dataclass(frozen=True, slots=True)
class Terms:
    """How a folder takes what comes. sent: digests of what was sent or came before, by name; source: the id of what the
    files come from."""

    root: Path
    sent: Mapping[str, str]
    source: str
    allow_executables: bool = False


class _Refused(Exception):
    """This may not be written here; path: what is named."""

    def __init__(self, path: str, why: str) -> None:
        self.path, self.why = path, why


class _NotWritten(Exception):
    """This could not be written here."""


def unpack(line: Line, terms: Terms, progress: Callable[[Report], object] = lambda report: None) -> Report:
    """Write what comes below the folder, and say what became of it. An archive that is cut ends it without an error;
    one that is none raises BrokenArchive, with everything before that written. Raises OSError where the folder itself
    cannot be used."""
    terms.root.mkdir(parents=True, exist_ok=True)
    folder = _Folder(terms)
    report = folder.report
    report.offset = after = line.position
    openings = line.openings
    try:
        for count, (member, content) in enumerate(members(line)):
            # A file has its name once the archive goes on behind it as it should: parts of two archives are not joined.
            folder.commit(after)
            if count >= ENTRIES_MAX:
                report.missing.append(("the rest", f"more than {ENTRIES_MAX} files came"))
                break
            openings = line.openings
            folder.take(member, content)
            content.finish()
            after = line.position
            progress(report)
        folder.commit(after)
    except (ArchiveCut, BrokenArchive) as cut:
        if line.openings == openings:
            folder.commit(after)
        if isinstance(cut, BrokenArchive):
            raise
        report.is_cut = True
        report.missing.append(("the rest", str(cut)))
    finally:
        folder.finish()
    return report


class _Folder:
    """One folder here while files come into it."""

    def __init__(self, terms: Terms) -> None:
        self.report = Report()
        self.links: list[Member] = []
        self._waiting: tuple[list[str], Member, str] | None = None
        self._terms = terms
        self._root = os.open(terms.root, DIRECTORY & ~os.O_NOFOLLOW)
        self._umask = os.umask(0o077)
        os.umask(self._umask)
        self._made: dict[str, Member | None] = {}
        self._environments: dict[str, bool] = {"": False}
        self._part = PART_PREFIX + terms.source[-24:].replace("/", "_")

    def take(self, member: Member, content: Content) -> None:
        """One entry."""
        parts = [part for part in member.name.split("/") if part not in ("", ".")]
        try:
            if member.name.startswith("/"):
                raise _Refused(member.name, "it leads out of the folder")
            if not parts and member.kind is Kind.FOLDER:
                return
            if (flaw := path_flaw(parts)) is not None:
                raise _Refused(member.name, flaw)
            name = "/".join(parts)
            self._check(name, member)
            if member.kind is Kind.LINK:
                self.links.append(member)
            elif member.kind is Kind.FOLDER:
                with self._opened(parts) as _:
                    if name in self._made:
                        self._made[name] = member
            else:
                self._take_file(parts, member, content)
        except _Refused as refused:
            self._refuse(refused)
        except (_NotWritten, OSError) as error:
            self._miss(member.name, error)

    def commit(self, offset: int) -> None:
        """Give what was written last its name. offset: of the archive behind it."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            try:
                self._settle(*waiting)
            except _Refused as refused:
                self._refuse(refused)
            except (_NotWritten, OSError) as error:
                self._miss(waiting[1].name, error)
        if not self.report.missing and not self.links:
            self.report.offset = offset

    def finish(self) -> None:
        """The links, and the times and rights of the folders that were made."""
        try:
            if self._waiting is not None:
                with suppress(OSError), _below(self._root, self._waiting[0][:-1]) as parent:
                    os.unlink(self._part, dir_fd=parent)
            for member in self.links:
                parts = [part for part in member.name.split("/") if part not in ("", ".")]
                try:
                    self._take_link(parts, member)
                except _Refused as refused:
                    self._refuse(refused)
                except (_NotWritten, OSError) as error:
                    self._miss(member.name, error)
            for name in sorted(self._made, reverse=True):
                if (made := self._made[name]) is not None:
                    with suppress(OSError), _below(self._root, name.split("/")) as folder:
                        os.fchmod(folder, (made.mode & ~self._umask & 0o777) | 0o700)
                        os.utime(folder, ns=(made.mtime_ns, made.mtime_ns))
        finally:
            os.close(self._root)

    def _refuse(self, refused: _Refused) -> None:
        self.report.refused.setdefault(refused.path[:PATH_BYTES_MAX], refused.why)

    def _miss(self, name: str, error: Exception) -> None:
        why = str(error.strerror or error) if isinstance(error, OSError) else str(error)
        self.report.missing.append((name[:PATH_BYTES_MAX], why))

    def _check(self, name: str, member: Member) -> None:
        """Raise _Refused for what a host never writes."""
        if (found := refused_part(name, self._terms.sent)) is not None:
            path, why = found
            if folded(path.rpartition("/")[2]) == ENVIRONMENT_MARK:
                self._undo(path.rpartition("/")[0])
            raise _Refused(path, why)
        if member.kind in (Kind.HARD_LINK, Kind.OTHER):
            raise _Refused(name, f"a {member.kind.value}")
        is_short = member.kind is Kind.FILE and member.size <= HEAD_BYTES_MAX
        if (is_short or member.kind is Kind.LINK) and self._is_head(name):
            raise _Refused(name, A_REPOSITORY)

    def _is_head(self, name: str) -> bool:
        """True if git could take this for what makes a folder a repository."""
        return folded(name.rpartition("/")[2]) == "head" and name not in self._terms.sent

    def _undo(self, environment: str) -> None:
        """Take away what has come of an environment before it was seen to be one."""
        if not environment:
            return
        self._environments[environment] = True
        for name in [one for one in self.report.written if one.startswith(f"{environment}/")]:
            if name not in self._terms.sent:
                parts = name.split("/")
                with suppress(OSError), _below(self._root, parts[:-1]) as parent:
                    os.unlink(parts[-1], dir_fd=parent)
                    self.report.written.remove(name)
                    self.report.taken.pop(name, None)

    @contextmanager
    def _opened(self, parts: list[str]) -> Iterator[int]:
        """A folder here, made where it is missing. Raises _Refused below an environment, _NotWritten, OSError."""
        here, path = os.dup(self._root), ""
        try:
            for part in parts:
                path = f"{path}/{part}" if path else part
                try:
                    os.mkdir(part, 0o700 | (0o777 & ~self._umask), dir_fd=here)
                    self._made[path] = None
                    if len(self._made) > ENTRIES_MAX:
                        raise _NotWritten(f"more than {ENTRIES_MAX} folders would be made")
                except FileExistsError:
                    pass
                above = here
                try:
                    here = os.open(part, DIRECTORY, dir_fd=above)
                except OSError as error:
                    if error.errno in (errno.ELOOP, errno.ENOTDIR):
                        raise _NotWritten(f"{path} is no folder here") from error
                    raise
                os.close(above)
                if self._is_environment(here, path):
                    raise _Refused(path, "a Python environment")
            yield here
        finally:
            os.close(here)

    def _is_environment(self, folder: int, path: str) -> bool:
        found = self._environments.get(path)
        if found is None:
            try:
                os.stat(ENVIRONMENT_MARK, dir_fd=folder, follow_symlinks=False)
                found = True
            except OSError:
                found = False
            self._environments[path] = found
        return found

    def _take_file(self, parts: list[str], member: Member, content: Content) -> None:
        with self._opened(parts[:-1]) as parent:
            self._make_room(member.size)
            with suppress(FileNotFoundError):
                os.unlink(self._part, dir_fd=parent)
            digest = hashlib.sha256()
            descriptor = os.open(self._part, NEW_FILE, 0o600, dir_fd=parent)
            try:
                with os.fdopen(descriptor, "wb", buffering=0) as file:
                    for piece in content.pieces(PIECE_BYTES):
                        digest.update(piece)
                        while piece:
                            piece = piece[file.write(piece) or 0 :]
            except BaseException:
                os.unlink(self._part, dir_fd=parent)
                raise
        self._waiting = parts, member, digest.hexdigest()

    def _settle(self, parts: list[str], member: Member, digest: str) -> None:
        with self._opened(parts[:-1]) as parent:
            part = os.open(self._part, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
            try:
                if self._is_head("/".join(parts)) and is_git_head(os.pread(part, 64, 0)):
                    raise _Refused("/".join(parts), A_REPOSITORY)
                self._name(parent, parts, member, part, digest)
            finally:
                os.close(part)
                with suppress(FileNotFoundError):
                    os.unlink(self._part, dir_fd=parent)

    def _name(self, parent: int, parts: list[str], member: Member, part: int, digest: str) -> None:
        """Give a part file its name, or another where its name is taken."""
        name, last = "/".join(parts), parts[-1]
        facts = _facts(parent, last)
        mode = member.mode & (0o777 if self._terms.allow_executables else 0o666) & ~self._umask | 0o600
        if facts is not None:
            if not stat.S_ISREG(facts.st_mode):
                here = _link_here(parent, last) if stat.S_ISLNK(facts.st_mode) else ""
                is_ours = here != "" and here == self._terms.sent.get(name)
            else:
                here = _digest(parent, last)
                if here == digest:
                    self.report.taken[name] = digest
                    return
                is_ours = here != "" and here == self._terms.sent.get(name) and bool(facts.st_mode & 0o222)
                mode = stat.S_IMODE(facts.st_mode) if is_ours else mode
            now = _facts(parent, last)
            if not is_ours or now is None or _look(now) != _look(facts):
                last = self._beside(parent, parts)
        os.fchmod(part, mode)
        with suppress(OSError, OverflowError):
            os.utime(part, ns=(member.mtime_ns, member.mtime_ns))
        os.rename(self._part, last, src_dir_fd=parent, dst_dir_fd=parent)
        if last == parts[-1]:
            self.report.written.append(name)
            self.report.taken[name] = digest
        else:
            self.report.beside.append((name, "/".join([*parts[:-1], last])))

    def _beside(self, parent: int, parts: list[str]) -> str:
        """Another name for what is taken here already. Raises _NotWritten."""
        ending = f".from-{self._terms.source.replace('/', '_')}"
        room = 255 - len(os.fsencode(ending))
        last = os.fsdecode(os.fsencode(parts[-1])[:room]) + ending
        facts = _facts(parent, last)
        if "/".join([*parts[:-1], last]) in self._terms.sent or (facts is not None and not stat.S_ISREG(facts.st_mode)):
            raise _NotWritten(f"{parts[-1]} and {last} are both taken here")
        return last

    def _make_room(self, size: int) -> None:
        disk = os.statvfs(self._root)
        kept = min(ROOM_KEPT_BYTES, disk.f_blocks * disk.f_frsize // 20)
        if size > disk.f_bavail * disk.f_frsize - kept:
            raise _NotWritten(f"there is no room for its {size} bytes")

    def _take_link(self, parts: list[str], member: Member) -> None:
        name, last = "/".join(parts), parts[-1]
        leads = link_target(parts[:-1], member.target)
        if leads is None or refused_part("/".join(leads), self._terms.sent) is not None:
            raise _Refused(name, LEADS_OUT)
        with self._opened(parts[:-1]) as parent:
            root = os.path.realpath(self._terms.root)
            real = os.path.realpath(os.path.join(root, *parts[:-1], member.target))
            inside = os.path.relpath(real, root)
            if inside != "." and (inside.split("/")[0] == ".." or refused_part(inside, self._terms.sent) is not None):
                raise _Refused(name, LEADS_OUT)
            facts = _facts(parent, last)
            if facts is not None:
                here = _link_here(parent, last) if stat.S_ISLNK(facts.st_mode) else ""
                if here == LINK + member.target:
                    return
                if not here or here != self._terms.sent.get(name):
                    last = self._beside(parent, parts)
            with suppress(FileNotFoundError):
                os.unlink(self._part, dir_fd=parent)
            os.symlink(member.target, self._part, dir_fd=parent)
            os.rename(self._part, last, src_dir_fd=parent, dst_dir_fd=parent)
        if last == parts[-1]:
            self.report.written.append(name)
            self.report.taken[name] = LINK + member.target
        else:
            self.report.beside.append((name, "/".join([*parts[:-1], last])))


def lines(report: Report, into: str, again: str) -> Iterator[str]:
    """Returns the lines that a person is told. into: where to, in words; again: how the rest is fetched."""
    shown = ", ".join(report.written[:8]) + (", ..." if len(report.written) > 8 else "")
    yield f"{counted(len(report.written), 'changed file')} came back{into}" + (f": {shown}" if shown else "")
    if report.beside:
        pairs = ", ".join(f"{name} as {other}" for name, other in report.beside[:8])
        yield f"{counted(len(report.beside), 'file')} changed here, or never sent: left as before; theirs: {pairs}"
    told = {path: why for path, why in report.refused.items() if not is_quiet(path)}
    if told:
        some = "; ".join(f"{path} ({why})" for path, why in list(told.items())[:8])
        yield f"not taken: {some}" + (f" and {len(told) - 8} more" if len(told) > 8 else "")
    if report.missing:
        some = "; ".join(f"{name} ({why})" for name, why in report.missing[:8])
        more = f" and {len(report.missing) - 8} more" if len(report.missing) > 8 else ""
        yield f"MISSING: {some}{more}. Fetch again: {again}"


@contextmanager
def _below(root: int, parts: list[str]) -> Iterator[int]:
    here = os.dup(root)
    try:
        for part in parts:
            above, here = here, os.open(part, DIRECTORY, dir_fd=here)
            os.close(above)
        yield here
    finally:
        os.close(here)


def _facts(parent: int, last: str) -> os.stat_result | None:
    try:
        return os.stat(last, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _look(facts: os.stat_result) -> tuple[int, int, int, int]:
    return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_mode


def _digest(parent: int, last: str) -> str:
    """Of a file here; empty where it cannot be read, which is never what was sent."""
    try:
        descriptor = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    except OSError:
        return ""
    digest = hashlib.sha256()
    with os.fdopen(descriptor, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _link_here(parent: int, last: str) -> str:
    try:
        return LINK + os.readlink(last, dir_fd=parent)
    except OSError:
        return ""
