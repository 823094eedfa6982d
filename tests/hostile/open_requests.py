"""Requests to an application that go on for as long as a test wants, as a server would hand them over."""

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote


@dataclass
class Open:
    """One request under way. `closes`: its caller goes; `reads`: what is answered is read from now on."""

    task: "asyncio.Task[None]"
    status: "asyncio.Future[int]"
    closes: asyncio.Event
    reads: asyncio.Event
    body: bytearray = field(default_factory=bytearray)
    asked_for_body: list[bool] = field(default_factory=list)
    pieces: "asyncio.Queue[bytes]" = field(default_factory=asyncio.Queue)
    """Of its own body, that are still to be sent."""

    async def refusal(self) -> dict[str, Any]:
        """Read to the end what a refused request is answered."""
        self.reads.set()
        await self.task
        found: dict[str, Any] = json.loads(self.body)
        return found | {"status": self.status.result()}

    async def end(self) -> None:
        """Its caller goes."""
        self.closes.set()
        self.reads.set()
        with suppress(ConnectionAbortedError):
            await self.task


def begin(
    app: Any,
    method: str,
    path: str,
    token: str | None,
    *,
    body: list[bytes] | None = None,
    length: int | None = None,
    is_reading: bool = True,
) -> Open:
    """Send a request whose body is these pieces, and what a test puts to them later. length: what it announces."""
    route, _, query = path.partition("?")
    headers = [(b"host", b"master")] + ([(b"authorization", f"Bearer {token}".encode())] if token else [])
    headers += [(b"content-length", str(length).encode())] if length is not None else []
    scope: dict[str, Any] = {"type": "http", "method": method, "path": f"/api/v1{route}", "scheme": "http"}
    scope |= {"query_string": quote(query, safe="=&_").encode(), "headers": headers, "client": ("192.0.2.1", 1)}
    scope |= {"http_version": "1.1", "asgi": {"version": "3.0"}, "root_path": "", "server": ("master", 80)}
    loop = asyncio.get_running_loop()
    found: Open

    async def receive() -> dict[str, Any]:
        found.asked_for_body.append(True)
        if body is None and len(found.asked_for_body) == 1:
            return {"type": "http.request", "body": b"", "more_body": False}
        piece, gone = loop.create_task(found.pieces.get()), loop.create_task(found.closes.wait())
        try:
            await asyncio.wait((piece, gone), return_when=asyncio.FIRST_COMPLETED)
            if piece.done():
                return {"type": "http.request", "body": piece.result(), "more_body": True}
            return {"type": "http.disconnect"}
        finally:
            piece.cancel()
            gone.cancel()

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start" and not found.status.done():
            found.status.set_result(message["status"])
        elif message["type"] == "http.response.body":
            await found.reads.wait()
            found.body.extend(message.get("body", b""))

    async def run() -> None:
        await app(scope, receive, send)

    task = loop.create_task(run())
    found = Open(task, loop.create_future(), asyncio.Event(), asyncio.Event())
    for piece in body or ():
        found.pieces.put_nowait(piece)
    if is_reading:
        found.reads.set()
    return found
