"""Runs a Master that waits: asks for the leader's seat, and tells callers where the leader is.

Its trunk port is not listened on, so that an Access goes on to the next Master of its list. It has no services: what it
would know would be old by the time it leads.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

import structlog

from windrow_master.app.serving import HttpServer
from windrow_master.store.leadership import Candidate, Claim
from windrow_proto.errors import StorageFailed, Unavailable

ASK_S: Final = 0.5
"""Between two looks at the seat: short beside the time after which a leader is given up."""
RETRY_AFTER_S: Final = 5

log = structlog.get_logger("windrow_master")


class StandbyApp:
    """Answers every request with 503 and the leader's address, as an ASGI application."""

    def __init__(self) -> None:
        self.leader = ""

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        error = Unavailable(
            f"This Master waits; the one that leads is at {self.leader}." if self.leader else "No Master leads yet."
        )
        body: dict[str, Any] = {
            "type": f"https://windrow.dev/errors/{error.code}",
            "title": "Not possible now",
            "status": error.http,
            "detail": error.detail,
            "code": error.code,
            "subject": error.subject,
            "retryable": error.retryable,
            "leader": self.leader or None,
        }
        payload = json.dumps(body).encode()
        headers = [
            (b"content-type", b"application/problem+json"),
            (b"content-length", str(len(payload)).encode()),
            (b"retry-after", str(RETRY_AFTER_S).encode()),
            (b"cache-control", b"no-store"),
        ]
        await send({"type": "http.response.start", "status": error.http, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else payload})


async def wait(candidate: Candidate, app: StandbyApp, servers: list[HttpServer], stop: asyncio.Event) -> Claim | None:
    """Serve 503 until the seat may be taken; None when this process is to stop instead."""
    closing = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        serving = [group.create_task(server.run_until(closing)) for server in servers]
        try:
            return await seat_of(candidate, app, stop)
        finally:
            closing.set()
            await asyncio.wait(serving)


async def seat_of(candidate: Candidate, app: StandbyApp, stop: asyncio.Event) -> Claim | None:
    """Ask for the seat until it may be taken; None when this process is to stop instead."""
    while not stop.is_set():
        try:
            seat, claim = await asyncio.to_thread(candidate.ask)
            if claim is not None:
                return claim
            if seat.address != app.leader:
                log.info("standing_by", leader=seat.holder, address=seat.address, epoch=seat.epoch)
            app.leader = seat.address
        except StorageFailed as error:
            app.leader = ""
            log.warning("seat_not_seen", error=str(error))
        try:
            async with asyncio.timeout(ASK_S):
                await stop.wait()
        except TimeoutError:
            continue
    return None
