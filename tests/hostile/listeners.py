"""Listeners of the Master on loopback with connections that misbehave."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from windrow_master.app import serving
from windrow_master.app.admission import AdmissionLimits, Patience
from windrow_proto.units import MILLISECOND, SECOND

HASTY = Patience(head_ns=2 * SECOND, look_ns=200 * MILLISECOND)
"""The product's, many times as fast."""
GET = b"GET /small HTTP/1.1\r\nHost: master\r\n\r\n"


@dataclass
class Listener:
    """One listener and what its application saw."""

    port: int
    limits: AdmissionLimits
    asked: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    server: Any = None

    async def connect(self, source: str = "127.0.0.1") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection from an address of this machine."""
        return await asyncio.open_connection("127.0.0.1", self.port, local_addr=(source, 0))

    async def ask(self, request: bytes = GET) -> bytes:
        """Returns the answer to a request on a connection of its own."""
        reader, writer = await self.connect()
        try:
            writer.write(request)
            return await reader.read(400)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


@asynccontextmanager
async def listening(
    limits: AdmissionLimits, patience: Patience = HASTY, tls: tuple[Path, Path] | None = None
) -> AsyncIterator[Listener]:
    """A real listener of the Master's with a small application."""
    bound = serving.bind("127.0.0.1", 0, 0)
    found = Listener(serving.port_of(bound), limits)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        found.asked.append(scope["path"])
        try:
            if scope["path"] == "/body":
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        found.ended.append("body broken off")
                        return
                    if not message.get("more_body"):
                        break
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for _ in range(2_000 if scope["path"] == "/large" else 0):
                await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
            await send({"type": "http.response.body", "body": b"here", "more_body": False})
        finally:
            found.ended.append(scope["path"])

    found.server = server = serving.HttpServer(app, bound, tls, limits, patience)
    closing = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(server.run_until(closing))
        while not server.started:
            await asyncio.sleep(0)
        try:
            yield found
        finally:
            closing.set()
            await task


def close_all(streams: Iterable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]) -> None:
    """Close them, whatever became of them."""
    for _, writer in streams:
        writer.close()


def small_receiver(port: int) -> socket.socket:
    """A connected socket that holds little of what it does not read."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    plain.connect(("127.0.0.1", port))
    plain.setblocking(False)
    return plain
