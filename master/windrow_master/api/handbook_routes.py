"""Serves the documentation under /docs, to everybody: its pages, a search, pictures."""

import asyncio
import gzip
from functools import lru_cache
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response
from fastapi.responses import FileResponse, HTMLResponse

from windrow_master.api.auth import Reach
from windrow_master.api.headers import HANDBOOK_POLICY
from windrow_master.api.route import Routes
from windrow_master.handbook import book as books
from windrow_master.handbook import layout
from windrow_master.identity.decide import Permission
from windrow_proto.errors import NotFound

QUERY_CHARS: Final = 100
PAGES_KEPT: Final = 128
"""Compressed once and kept: the documentation has some sixty pages, half a megabyte in all."""
PARTS: Final = frozenset({"style.css", "page.js"})
HEADERS: Final = {"Cache-Control": "no-cache", "Vary": "Accept-Encoding"}

Words = Annotated[str, Query(max_length=QUERY_CHARS)]

root = Routes(None)


@root.get("/docs", may=Permission.NOBODY, include_in_schema=False)
async def first(request: Request, q: Words = "") -> Response:
    """The list of all pages, or what a search found."""
    if not q.strip():
        return await page(request, "")
    book = books.book()
    found = await asyncio.to_thread(book.search, q)
    return HTMLResponse(layout.results(book.menu, q, found), headers={"Content-Security-Policy": HANDBOOK_POLICY})


@root.get("/docs/search.json", may=Permission.NOBODY, include_in_schema=False)
async def search(q: Words = "") -> dict[str, Any]:
    """What a search found, for the console's palette."""
    found = await asyncio.to_thread(books.book().search, q)
    return {"items": [{"title": one.title, "heading": one.heading, "address": one.address} for one in found]}


@root.get("/docs/{path:path}", may=Permission.NOBODY, reach=Reach.ALL, include_in_schema=False)
async def page(request: Request, path: str) -> Response:
    """One page, a picture, or the description of the API."""
    if path in PARTS:
        return FileResponse(books.HERE / path, headers=HEADERS)
    if (file := books.book().file(path)) is not None:
        return FileResponse(file, headers=HEADERS)
    content = await asyncio.to_thread(_drawn, path.removesuffix("/").removesuffix(".md"))
    if content is None:
        raise NotFound(f"There is no page /docs/{path[:200]}. /docs lists all pages.")
    headers = HEADERS | {"Content-Security-Policy": HANDBOOK_POLICY}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return HTMLResponse(content, headers={**headers, "Content-Encoding": "gzip"})
    return HTMLResponse(gzip.decompress(content), headers=headers)


@lru_cache(maxsize=PAGES_KEPT)
def _drawn(path: str) -> bytes | None:
    """A page, compressed; None where there is none."""
    book = books.book()
    found = book.page(path)
    return None if found is None else gzip.compress(layout.page(book.menu, found).encode(), mtime=0)
