"""The documentation under /docs: every page is listed and drawn, links lead to pages, a search finds words."""

import re
from html import unescape
from pathlib import Path

import pytest

from tests.unit.master_api.conftest import Api
from windrow_master import config
from windrow_master.handbook.book import book
from windrow_master.handbook.markdown import drawn
from windrow_proto.conditions import ConditionCode
from windrow_proto.errors import table

DOCS = Path(__file__).parents[3] / "docs"
PATHS = ["", *(path for _, rows in book().menu for _, path in rows)]


def test_the_first_page_lists_every_page_once() -> None:
    pages = {path.relative_to(DOCS).as_posix().removesuffix(".md") for path in DOCS.rglob("*.md")} - {"README"}

    assert sorted(PATHS[1:]) == sorted(pages)


def test_every_link_of_every_page_leads_to_a_page_and_a_heading() -> None:
    anchors = {(page.address, one.anchor) for path in PATHS if (page := book().page(path)) for one in page.sections}
    addresses = {address for address, _ in anchors} | {"/docs/openapi.json"}
    lost = []
    for path in PATHS:
        page = book().page(path)
        assert page is not None
        for link in map(unescape, re.findall(r'href="([^"]+)"', page.html)):
            place, _, anchor = link.partition("#")
            place = place or page.address
            if not link.startswith("http") and (place not in addresses or (anchor and (place, anchor) not in anchors)):
                lost.append((path, link))

    assert lost == []


def test_every_error_and_every_condition_has_its_paragraph() -> None:
    errors, conditions = book().page("errors"), book().page("conditions")

    assert errors is not None and set(table()) <= {one.anchor for one in errors.sections}
    assert conditions is not None
    assert {code.runbook.partition("#")[2] for code in ConditionCode} <= {one.anchor for one in conditions.sections}


def test_every_variable_of_the_master_is_among_the_settings() -> None:
    read = set(re.findall(r'"(WINDROW_[A-Z0-9_]+[A-Z0-9])"', Path(config.__file__).read_text(encoding="utf-8")))

    assert [
        name for name in sorted(read) if f"`{name}`" not in (DOCS / "settings.md").read_text(encoding="utf-8")
    ] == []


def test_what_a_page_holds_is_shown_and_not_run() -> None:
    text = "# A & B\n<script>x</script> [c.md](c.md#d) [out](../../x.py) [js](javascript:x)\n\n## A & B\n"
    page = drawn("a/b.md", text, {"a/c": "See"})

    assert "<script>" not in page.html and 'href="javascript' not in page.html
    assert '<a href="/docs/a/c#d">See</a> <span>out</span>' in page.html
    assert [one.anchor for one in page.sections] == ["a--b", "a--b-1"]


@pytest.mark.parametrize("path", ["", "/", "/jobs", "/jobs.md", "/architecture/leases"])
async def test_a_page_is_served_to_everybody_and_runs_nothing_inline(api: Api, path: str) -> None:
    answer = await api.stranger.get(f"/docs{path}")

    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert "<script>" not in answer.text and "<style" not in answer.text and " style=" not in answer.text


async def test_a_picture_and_the_description_are_served_and_no_other_file(api: Api) -> None:
    asked = (
        "images/fleet.png",
        "openapi.json",
        "style.css",
        "page.js",
        "book.py",
        "../README.md",
        "images/x.md",
        "nosuch",
        f"images/{'a' * 300}.png",
    )
    answers = [(await api.stranger.get(f"/docs/{path}")).status_code for path in asked]

    assert answers == [200, 200, 200, 200, 404, 404, 404, 404, 404]


async def test_a_search_finds_the_heading_first(api: Api) -> None:
    found = (await api.stranger.get("/docs/search.json", params={"q": "no_capacity"})).json()["items"]
    page = await api.stranger.get("/docs", params={"q": "drain <host>"})

    assert found[0] == {"title": "Errors", "heading": "no_capacity", "address": "/docs/errors#no_capacity"}
    assert "Search: drain &lt;host&gt;" in page.text
    assert (await api.stranger.get("/docs/search.json")).json() == {"items": []}
    assert "No results" in (await api.stranger.get("/docs", params={"q": "xyzzyx"})).text
