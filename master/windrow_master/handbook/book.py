"""Reads the pages of the documentation where they lie, once each, and finds words in them."""

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Final

from windrow_master.handbook.markdown import FIRST, Page, Section, drawn, links, path_of

HERE: Final = Path(__file__).resolve().parent
FOLDER: Final = HERE / "pages" if (HERE / "pages").is_dir() else HERE.parents[2] / "docs"
"""In the installed package, else in the repository that this package is run from."""
FOUND_MAX: Final = 30
"""Results of one search: more are not read."""
WORDS_MAX: Final = 8
AROUND_CHARS: Final = 70
"""Characters shown on either side of the first word that was found."""


@dataclass(frozen=True, slots=True)
class Found:
    """A place in which all words stand. address: of its heading."""

    title: str
    heading: str
    address: str
    around: str


class Book:
    """All pages of one folder; those that its first page lists, and no other file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def menu(self) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
        """The sections of the documentation: (name, [(title, path of the page)]); empty where there is none."""
        first = self._folder / FIRST
        text = first.read_text(encoding="utf-8") if first.is_file() else ""
        return tuple((name, tuple((words, path_of(file)) for words, file in rows)) for name, rows in links(text))

    @cached_property
    def _files(self) -> dict[str, str]:
        return {"": FIRST, **{path: f"{path}.md" for path in self._titles}} if self._titles else {}

    @cached_property
    def _titles(self) -> dict[str, str]:
        return {path: title for _, rows in self.menu for title, path in rows}

    @cached_property
    def _drawn(self) -> dict[str, Page]:
        return {}

    @cached_property
    def _others(self) -> dict[str, Path]:
        """What is served beside pages, by its path; so no name from outside reaches the file system."""
        files = [self._folder / "openapi.json", *(self._folder / "images").glob("*.png")]
        return {one.relative_to(self._folder).as_posix(): one for one in files if one.is_file()}

    def page(self, path: str) -> Page | None:
        """The page at this path below /docs; None where there is none."""
        name = self._files.get(path)
        if name is None:
            return None
        if path not in self._drawn:
            self._drawn[path] = drawn(name, (self._folder / name).read_text(encoding="utf-8"), self._titles)
        return self._drawn[path]

    def file(self, path: str) -> Path | None:
        """A picture, or the description of the API; None for any other file."""
        return self._others.get(path)

    def search(self, text: str) -> list[Found]:
        """The places that have all these words, the best first: words of headings count most; then guides come before
        the reference."""
        words = text.lower().split()[:WORDS_MAX]
        if not words:
            return []
        pages = [page for path in self._files if path and (page := self.page(path))]
        rated = [
            (-score, number, _found(page, section, words))
            for number, page in enumerate(pages)
            for section in page.sections
            if (score := _score(page, section, words))
        ]
        return [found for _, _, found in sorted(rated, key=lambda one: one[:2])[:FOUND_MAX]]


def _score(page: Page, section: Section, words: list[str]) -> int:
    """0 where a word is in neither of them; a section's own heading has to have one of them, or its text."""
    title, heading, text = page.title.lower(), section.heading.lower(), section.text.lower()
    own = 0
    for word in words:
        points = 20 * (word in heading) + (word in text)
        if not points and word not in title:
            return 0
        own += points + (10 if section.level == 1 else 3) * (word in title)
    return own + 100 * (heading == " ".join(words)) if any(word in heading or word in text for word in words) else 0


def _found(page: Page, section: Section, words: list[str]) -> Found:
    text = " ".join(section.text.split())
    at = min((place for word in words if (place := text.lower().find(word)) >= 0), default=0)
    begin, end = text.find(" ", at - AROUND_CHARS) + 1 if at > AROUND_CHARS else 0, at + 2 * AROUND_CHARS
    around = ("… " if begin else "") + text[begin:end].strip() + (" …" if end < len(text) else "")
    address = page.address if section.level == 1 else f"{page.address}#{section.anchor}"
    return Found(page.title, section.heading, address, around)


@cache
def book() -> Book:
    """The documentation of this Master; its pages are read once."""
    return Book(FOLDER)
