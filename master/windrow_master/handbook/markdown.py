"""Turns one Markdown page of the documentation into HTML, and into sections for the search. Pure."""

import html
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

ADDRESS: Final = "/docs"
FIRST: Final = "README.md"
"""The page that lists all others."""
_SCHEME: Final = re.compile(r"[a-z]+:")


@dataclass(frozen=True, slots=True)
class Section:
    """What stands under one heading. level: 1 for the page's title. anchor: as in links, unique on its page."""

    level: int
    heading: str
    anchor: str
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page as it is served. path: below /docs, without a suffix, empty for the first page."""

    path: str
    html: str
    sections: tuple[Section, ...]

    @property
    def title(self) -> str:
        """Its first heading."""
        return self.sections[0].heading if self.sections else self.path

    @property
    def address(self) -> str:
        """The path of its URL."""
        return f"{ADDRESS}/{self.path}" if self.path else ADDRESS


def path_of(name: str) -> str:
    """The path of a file's page: `architecture/leases` of `architecture/leases.md`, empty for the first page."""
    return "" if name == FIRST else name.removesuffix(".md")


def drawn(name: str, text: str, titles: Mapping[str, str]) -> Page:
    """Draws a page. name: of its file, below docs/. titles: by path, for links that a file names. HTML in the text
    is shown as it is written."""
    tokens = _PARSER.parse(text)
    sections = _sections(tokens)
    for token in tokens:
        _lead(token.children or (), posixpath.dirname(name), titles)
    return Page(path_of(name), _PARSER.renderer.render(tokens, _PARSER.options, {}), sections)


def links(text: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """The lists of links on a page by heading: (heading, [(words, file)]), as the first page has them."""
    found: list[tuple[str, list[tuple[str, str]]]] = []
    for line in text.splitlines():
        if line.startswith("## "):
            found.append((line[3:].strip(), []))
        elif found and (item := re.match(r"- \[([^]]+)]\(([^)]+)\)", line)):
            found[-1][1].append((item[1], item[2]))
    return found


def anchor_of(heading: str) -> str:
    """A heading as links name it, on GitHub and here."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def _sections(tokens: Sequence[Token]) -> tuple[Section, ...]:
    """The sections; each heading is given its anchor as id."""
    found: list[tuple[int, str, str, list[str]]] = []
    taken: dict[str, int] = {}
    heading: Token | None = None
    for token in tokens:
        if token.type == "heading_open":
            heading = token
        elif token.type == "inline" and heading is not None:
            words, anchor = _words(token), anchor_of(_words(token))
            times = taken[anchor] = taken.get(anchor, -1) + 1
            anchor = f"{anchor}-{times}" if times else anchor
            heading.attrSet("id", anchor)
            found.append((int(heading.tag[1]), words, anchor, []))
            heading = None
        elif found and token.type in ("inline", "fence", "code_block"):
            found[-1][3].append(_words(token))
    return tuple(Section(level, words, anchor, " ".join(texts)) for level, words, anchor, texts in found)


def _words(token: Token) -> str:
    if token.children is None:
        return token.content
    plain = ("text", "code_inline")
    return "".join(one.content if one.type in plain else " " * (one.type == "softbreak") for one in token.children)


def _lead(tokens: Sequence[Token], folder: str, titles: Mapping[str, str]) -> None:
    """Has links to files lead to their pages; those to files that are not served become plain words."""
    is_dropped = False
    for index, token in enumerate(tokens):
        if token.type == "link_open":
            target = _target(str(token.attrGet("href")), folder)
            is_dropped = target is None
            token.attrs = {} if target is None else {"href": target}
            words = tokens[index + 1]
            if target is not None and words.content.endswith(".md"):
                path = target.partition("#")[0].removeprefix(f"{ADDRESS}/")
                words.content = titles.get(path, words.content)
        elif token.type == "image":
            token.attrs["src"] = _target(str(token.attrGet("src")), folder) or ""
            token.attrs["loading"] = "lazy"
        if is_dropped and token.type in ("link_open", "link_close"):
            token.tag = "span"


def _target(link: str, folder: str) -> str | None:
    if _SCHEME.match(link) or link.startswith("#"):
        return link
    place, _, anchor = link.partition("#")
    file = posixpath.normpath(posixpath.join(folder, place))
    if file.startswith(".."):
        return None
    path = path_of(file)
    return (f"{ADDRESS}/{path}" if path else ADDRESS) + (f"#{anchor}" if anchor else "")


def _fence(_renderer: Any, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    return f'<pre tabindex="0"><code>{html.escape(tokens[index].content)}</code></pre>\n'


def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False}).enable("table")
    for kind in ("fence", "code_block"):
        made.add_render_rule(kind, _fence)
    made.add_render_rule("table_open", lambda *_: '<div class="table" tabindex="0"><table>\n')
    made.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return made


_PARSER: Final = _parser()
