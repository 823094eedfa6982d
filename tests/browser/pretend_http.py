"""Shared parts of the pretend Master's routes: problems, pages, events, operations, in the HTTP API's shapes."""

import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from fastapi.responses import JSONResponse, StreamingResponse

from tests.browser.pretend_world import Json, at

TICK_S = 1.0
"""Between two steps of whatever goes on by itself."""


def problem(
    status: int, code: str, title: str, detail: str, subject: str | None = None, reasons: Sequence[Json] = ()
) -> JSONResponse:
    """An error as the API words it. reasons: objects, as the real Master sends them."""
    body: Json = {
        "type": f"https://windrow.dev/errors/{code}",
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
    }
    if reasons:
        body["reasons"] = list(reasons)
    return JSONResponse(
        body | {"subject": subject, "retryable": status > 500, "request_id": "req_pretend_0001"},
        status,
        media_type="application/problem+json",
    )


def listed(items: list[Any]) -> Json:
    """One page that holds all."""
    return {"items": items, "next_cursor": None}


def sse(name: str, data: Any) -> str:
    """One server-sent event."""
    return f"id: {time.monotonic_ns()}\nevent: {name}\ndata: {json.dumps(data)}\n\n"


def stream(frames: Callable[[], AsyncIterator[str]]) -> StreamingResponse:
    """An event stream."""
    return StreamingResponse(frames(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


def operation(kind: str, subject: str) -> Json:
    """A long action that goes on."""
    started = {"id": "op_1", "kind": kind, "state": "running", "subject": subject, "error": None}
    return started | {"created_at": at(), "done_at": None}
