"""Puts a page of the documentation, or the results of a search, into the frame with menu and search. Pure."""

import html
from collections.abc import Iterable, Sequence
from typing import Final

from windrow_master.handbook.book import Found
from windrow_master.handbook.markdown import ADDRESS, Page

Menu = Sequence[tuple[str, Sequence[tuple[str, str]]]]
"""Sections of (title, path of the page)."""
HEADINGS_MIN: Final = 3
"""A page with fewer headings has no table of contents."""
HEADINGS_MAX: Final = 120
"""A page with more shows those of the upper level only."""

_FRAME: Final = """<!doctype html>
<html lang="en-GB"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>{title} · Windrow</title>
<link rel="icon" type="image/svg+xml" href="/windrow.svg"><link rel="stylesheet" href="{address}/style.css">
<script src="{address}/page.js"></script></head>
<body>
<a class="skip" href="#main">Skip to the page</a>
<header>
<a class="brand" href="{address}"><img src="/windrow.svg" alt="" width="24" height="24">Windrow docs</a>
<form action="{address}" role="search"><input type="search" name="q" value="{words}" maxlength="100"
aria-label="Search the documentation" placeholder="Search"><button type="submit">Search</button></form>
<a class="console" href="/">Console</a>
</header>
<div class="columns">
<nav aria-label="Pages"><details class="menu" open><summary>All pages</summary>
{menu}
</details></nav>
<main id="main" tabindex="-1">
{body}
</main>
{contents}
</div>
</body></html>
"""


def page(menu: Menu, shown: Page) -> str:
    """A page, with its own headings beside it."""
    wanted = [one for one in shown.sections if one.level in (2, 3)]
    if len(wanted) > HEADINGS_MAX:
        wanted = [one for one in wanted if one.level == 2]
    rows = [(one.heading, f"#{one.anchor}") for one in wanted]
    contents = f'<nav class="contents" aria-label="On this page"><h2>On this page</h2>{_list(rows)}</nav>'
    return _framed(menu, shown.title, shown.html, shown.path, contents=contents if len(rows) >= HEADINGS_MIN else "")


def results(menu: Menu, words: str, found: Sequence[Found]) -> str:
    """What a search found."""
    shown = html.escape(words)
    head = f"<h1>Search: {shown}</h1>"
    none = f'<p>No results. Try fewer words, or look through the <a href="{ADDRESS}">list of all pages</a>.</p>'
    items = "".join(
        f'<li><a href="{html.escape(one.address)}">{html.escape(_named(one))}</a><p>{html.escape(one.around)}</p></li>'
        for one in found
    )
    body = head + (f'<ol class="results">{items}</ol>' if found else none)
    return _framed(menu, "Search", body, None, words=shown)


def _framed(menu: Menu, title: str, body: str, path: str | None, *, words: str = "", contents: str = "") -> str:
    sections = "".join(
        f"<h2>{html.escape(name)}</h2>{_list(((title, f'{ADDRESS}/{one}') for title, one in rows), path)}"
        for name, rows in menu
    )
    return _FRAME.format(
        address=ADDRESS, title=html.escape(title), words=words, menu=sections, body=body, contents=contents
    )


def _list(rows: Iterable[tuple[str, str]], path: str | None = None) -> str:
    here = f"{ADDRESS}/{path}"
    items = "".join(
        f'<li><a href="{html.escape(link)}"{" aria-current=page" if link == here else ""}>{html.escape(words)}</a></li>'
        for words, link in rows
    )
    return f"<ul>{items}</ul>"


def _named(found: Found) -> str:
    return found.title if found.heading == found.title else f"{found.title}: {found.heading}"
