"""Reads the pages of the documents: blocks of commands and Python, code spans, links.

A block that begins with ```sh holds commands, one a line (a backslash at its end: it goes on); one that begins with
```python is one program. What a program prints stands behind its `print(...)` as a comment.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
RUN: Final = tuple(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "README.md", ROOT / "sdk" / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
)
"""The pages whose commands run as printed."""
READ: Final = tuple(
    path.relative_to(ROOT).as_posix()
    for path in sorted(ROOT.rglob("*.md"))
    if path.name != "CHANGELOG.md" and not {".venv", "node_modules"} & set(path.relative_to(ROOT).parts)
)
"""All pages: their commands, variables and links are compared with the code."""

_FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SPAN: Final = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_LINK: Final = re.compile(r"\]\(([^()\s]+)\)")
_HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)
_PRINTED: Final = re.compile(r"^\s*print\(.*\)  # (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Step:
    """A command or a program of a page. line: where it begins, counted from 1."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"

    @property
    def printed(self) -> list[str]:
        """What a program says that it prints."""
        return _PRINTED.findall(self.text)


def text_of(page: str) -> str:
    """The page as it is written."""
    return (ROOT / page).read_text(encoding="utf-8")


def steps(page: str) -> list[Step]:
    """The commands and programs of a page, in order."""
    text, found = text_of(page), []
    for fence in _FENCE.finditer(text):
        first = text.count("\n", 0, fence.start()) + 2
        if fence[1] == "python":
            found.append(Step(page, first, "python", fence[2]))
        elif fence[1] == "sh":
            found += _commands(page, first, fence[2])
    return found


def _commands(page: str, first: int, block: str) -> list[Step]:
    found, begun, began = [], "", 0
    for number, line in enumerate(block.splitlines(), first):
        began = began if begun else number
        begun += line
        if begun.endswith("\\"):
            begun = begun[:-1]
            continue
        if shlex.split(begun, comments=True):
            found.append(Step(page, began, "sh", begun))
        begun = ""
    return found


def spans(page: str) -> list[str]:
    """The code spans of a page, each as one line, those of blocks left out."""
    prose = _FENCE.sub("", text_of(page))
    return [" ".join(span.split()) for span in _SPAN.findall(prose)]


def plain_blocks(page: str) -> list[str]:
    """The lines of blocks without a language: drawings, and synopses of commands."""
    return [line for kind, block in _FENCE.findall(text_of(page)) if not kind for line in block.splitlines()]


def lost_links(page: str) -> list[str]:
    """The links of a page to files of this tree, or to headings in them, that are not there."""
    prose = _SPAN.sub("", _FENCE.sub("", text_of(page)))
    found = []
    for link in _LINK.findall(prose):
        where, _, heading = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = (ROOT / page).parent / where if where else ROOT / page
        if not target.exists() or (heading and heading not in _anchors(target)):
            found.append(link)
    return found


def _anchors(page: Path) -> set[str]:
    """The headings of a page as its links name them."""
    titles = _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}
