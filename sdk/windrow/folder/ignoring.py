"""Applies ignore files, which leave files out: `.gitignore` and `.windrowignore` in any folder, by git's rules.

Where the folder lies in a repository, so do its `.git/info/exclude` and the `.gitignore` of the folders above.

`.windrowignore` has the last word: what it names with `!` is sent although a `.gitignore` or its look as a secret would
keep it here. The one adapter of the library of such patterns.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from windrow.errors import WindrowClientError
from windrow.folder.names import IGNORE_FILES

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

OWN, GIT = IGNORE_FILES
FILE_BYTES_MAX: Final = 1 << 20


@dataclass(slots=True)
class _Rules:
    """One ignore file. base: its folder's name below the root, with a slash at its end; above: the root's name below
    its folder, where that is above the root; lines: by pattern; unmatched: those of its patterns that have met
    nothing."""

    base: str
    spec: "GitIgnoreSpec"
    lines: list[str]
    above: str = ""
    unmatched: set[int] = field(default_factory=set)


class Ignores:
    """The ignore files of one look at a folder. A folder is entered before its entries are asked for."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._rules: dict[str, list[_Rules]] = {OWN: [], GIT: list(_of_repository(root))}

    def enter(self, folder: str, names: set[str]) -> None:
        """Read the ignore files of a folder, by its name below the root; names: of its entries. Raises
        WindrowClientError."""
        base = f"{folder}/" if folder else ""
        for file in IGNORE_FILES:
            rules = self._rules[file]
            while rules and not base.startswith(rules[-1].base):
                rules.pop()
            if file in names and (made := _read(self._root / folder / file, base)) is not None:
                rules.append(made)

    def verdict(self, name: str, *, is_folder: bool) -> bool | None:
        """True: left out. False: wished for by name, with `!`, in a `.windrowignore`. None: neither."""
        shown = f"{name}/" if is_folder else name
        for file in IGNORE_FILES:
            found = self._of(file, shown)
            if found is not None:
                return True if found else False if file == OWN else None
        return None

    def _of(self, file: str, shown: str) -> bool | None:
        for rules in reversed(self._rules[file]):
            below = rules.above + shown.removeprefix(rules.base)
            if file == OWN:
                rules.unmatched -= {one for one in rules.unmatched if rules.spec.patterns[one].match_file(below)}
            found = rules.spec.check_file(below).include
            if found is not None:
                return found
        return None

    def idle_lines(self) -> Iterator[str]:
        """The lines of the root's `.windrowignore` that have met nothing."""
        for rules in self._rules[OWN]:
            if not rules.base:
                yield from (rules.lines[one] for one in sorted(rules.unmatched))


def _of_repository(root: Path) -> Iterator[_Rules]:
    """Returns the rules of the repository that a folder lies in, the weakest first."""
    root = root.resolve()
    top = next((one for one in (root, *root.parents) if (one / ".git").exists()), root)
    between = root.relative_to(top).parts
    files = [top / ".git" / "info" / "exclude"]
    files += [top.joinpath(*between[:depth], GIT) for depth in range(len(between))]
    for depth, file in enumerate(files):
        below = between[max(depth - 1, 0) :]
        if (made := _read(file, "", "".join(f"{part}/" for part in below))) is not None:
            yield made


def _read(path: Path, base: str, above: str = "") -> _Rules | None:
    from pathspec import GitIgnoreSpec  # only where there is such a file: each command would wait for it

    try:
        with path.open("rb") as file:
            text = file.read(FILE_BYTES_MAX).decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    except OSError:
        return None
    lines = [_line(one) for one in text.split("\n")]
    lines = [one for one in lines if one.strip() and not one.startswith("#")]
    try:
        spec = GitIgnoreSpec.from_lines(lines)
        if above:  # what leaves out the whole folder is not meant by who works in it
            lines = [line for line, one in zip(lines, spec.patterns, strict=True) if not one.match_file(above)]
            spec = GitIgnoreSpec.from_lines(lines)
    except ValueError as error:
        raise WindrowClientError(f"{path} has a line that is not a pattern: {error}") from error
    return _Rules(base, spec, lines, above, set(range(len(lines))))


def _line(text: str) -> str:
    """`a/**` names what is in a folder, and not the folder."""
    text = text.rstrip("\r")
    return f"{text}/*" if text.endswith("/**") else text
