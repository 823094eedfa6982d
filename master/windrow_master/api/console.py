"""Serves the built console: hashed assets for ever, the page never cached, and any other path as the page.

Where the console was not built, a plain page says why and how to build it.
"""

import asyncio
import gzip
import html
import mimetypes
from functools import lru_cache
from pathlib import Path
from typing import Final

from fastapi import Request, Response
from fastapi.responses import FileResponse, HTMLResponse

from windrow_master.api.auth import Reach
from windrow_master.api.deps import services_of
from windrow_master.api.headers import NONCE_PLACE, page_policy
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_proto.errors import NotFound

STATIC: Final = Path(__file__).resolve().parent.parent / "static"
REASON_MAX: Final = 2_000
NONCE_BYTES: Final = 16
SQUEEZED: Final = frozenset({".js", ".css", ".svg"})
"""Suffixes of text files that are the same for everybody; a secret is never compressed together with a stranger's
words."""
FILES_KEPT: Final = 128
"""Compressed once and kept: the console has some forty files, half a megabyte in all."""
FOR_EVER: Final = "public, max-age=31536000, immutable"

root = Routes(None)

_ABSENT: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Windrow</title></head>
<body>
<h1>Windrow is running. Its web console was not built.</h1>
<p>Everything else works: try <code>windrow host ls</code>. To build the console, run <code>make setup</code>
(or <code>python master/hatch_build.py build</code>) where npm's registry can be reached, and load this page again.</p>
<pre>{reason}</pre>
</body></html>
"""


@root.get("/{path:path}", may=Permission.NOBODY, reach=Reach.ALL, include_in_schema=False)
async def console_file(request: Request, path: str) -> Response:
    """One file of the console, or its page."""
    static: Path = request.app.state.static
    if path.startswith("api/") or path == "api":
        raise NotFound(f"There is nothing at /{path[:200]}.")
    file = _inside(static, path)
    if file is not None:
        caching = FOR_EVER if path.startswith("assets/") else "no-cache"
        headers = {"Cache-Control": caching, "Vary": "Accept-Encoding"}
        if file.suffix in SQUEEZED and "gzip" in request.headers.get("accept-encoding", ""):
            content = await asyncio.to_thread(_squeezed, file, file.stat().st_mtime_ns)
            kind = mimetypes.guess_type(file.name)[0]
            return Response(content, headers={**headers, "Content-Encoding": "gzip"}, media_type=kind)
        return FileResponse(file, headers=headers)
    if path.startswith("assets/") or "." in path.rsplit("/", 1)[-1]:
        raise NotFound(f"There is no file /{path[:200]}.")
    index = static / "index.html"
    if not index.is_file():
        return HTMLResponse(_ABSENT.format(reason=html.escape(_reason(static))), headers={"Cache-Control": "no-cache"})
    nonce = services_of(request).rng.random_bytes(NONCE_BYTES).hex()
    return page(index.read_text(encoding="utf-8"), nonce)


def page(built: str, nonce: str) -> Response:
    """The console's page with a nonce of its own; never kept, since a nonce serves once."""
    headers = {"Content-Security-Policy": page_policy(nonce), "Cache-Control": "no-store"}
    return HTMLResponse(built.replace(NONCE_PLACE, nonce), headers=headers)


@lru_cache(maxsize=FILES_KEPT)
def _squeezed(file: Path, _changed_ns: int) -> bytes:
    return gzip.compress(file.read_bytes(), mtime=0)


def _inside(static: Path, path: str) -> Path | None:
    if not path or "\0" in path:
        return None
    try:
        candidate = (static / path).resolve()
        return candidate if candidate.is_relative_to(static.resolve()) and candidate.is_file() else None
    except (OSError, ValueError):  # a name that no file can have: too long, or no text
        return None


def _reason(static: Path) -> str:
    marker = static / "NOT_BUILT.txt"
    return marker.read_text(encoding="utf-8", errors="replace")[:REASON_MAX] if marker.is_file() else ""
