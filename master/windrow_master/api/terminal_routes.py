"""Routes of terminals and notebooks: the ticket for a terminal, the WebSocket that it opens, a notebook's address.

A WebSocket is not held to the rules of other sites' pages, and its caller cannot send a header of their choice. So the
browser asks for a ticket as for anything else, and shows it in the handshake, where no log keeps it; and pages of other
origins are refused, whatever they show. Nothing of the handshake reaches the machine.
"""

import asyncio
import json
from contextlib import suppress
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import structlog
from fastapi import Request, Response
from pydantic import Field
from starlette.datastructures import Headers
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from windrow_master.api import streaming
from windrow_master.api.answers import Out, Read, Time
from windrow_master.api.auth import V1, Declaration, Reach, Repeat
from windrow_master.api.bodies import Body
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.paging import Json
from windrow_master.api.route import Routes, Socket
from windrow_master.api.services import Services
from windrow_master.clusters.model import HOSTS_MAX
from windrow_master.identity.decide import Permission
from windrow_master.identity.object_shares import Level
from windrow_master.network.terminal_tickets import TerminalTicket
from windrow_master.network.terminals import ENDED, Terminal, TerminalService
from windrow_proto.errors import Unauthenticated, WindrowError
from windrow_proto.ids import ClusterId
from windrow_proto.terminals import SIDE_MAX, TerminalSize
from windrow_proto.units import MIB

route = Routes("clusters")
log = structlog.get_logger(__name__)

PATH: Final = "/clusters/{cluster_id}/terminal"
PROTOCOL: Final = "windrow.terminal"
"""The subprotocol; the ticket stands behind it in the list that the browser offers."""
FIRST: Final = TerminalSize(80, 24)
"""The size until the browser has said its own."""
UNREAD_MAX: Final = 1 * MIB
"""Bytes under way to a browser that it has not said to have shown."""
DRIP_S: Final = 2.0
SAY_S: Final = 2.0
"""For the last words to a browser that may read no more."""
POLICY, NORMAL = 1008, 1000
"""Codes of RFC 6455 for a message that is not allowed, and for an end as intended."""


class TerminalBody(Body):
    """The member to enter, where there are several."""

    rank: Annotated[int, Field(default=0, ge=0, lt=HOSTS_MAX)]


class TerminalOut(Out):
    """A ticket for one terminal."""

    ticket: Annotated[str, Field(description="Shown once, in the WebSocket's handshake"), Read("secret")]
    protocol: Annotated[str, Field(description="The subprotocol to offer, with the ticket as the second")]
    expires_at: Annotated[Time, Field(description="To connect by")]


@route.post(
    PATH,
    may=Permission.RENT,
    reach=Reach.OWN,
    shared=Level.USE,
    repeat=Repeat.ALWAYS,
    status_code=201,
    answer=TerminalOut,
)
async def open_terminal(
    request: Request, services: Serving, principal: Asking, cluster_id: str, body: TerminalBody
) -> Response:
    """A ticket for a terminal in the machine, good for 30 seconds and one use. Open a WebSocket at the same path with
    the subprotocols `protocol` and `ticket`, from a page of this Master. Binary messages, of at most 64 KiB, hold what
    is typed and what is printed; the text message `{"columns": 80, "rows": 24}` tells the size, and
    `{"taken": 4096}` how much more of the output was shown, of which 1 MiB may be under way. The Master sends
    `{"open": true}` when the shell runs, and `{"ended": "why", "exit_code": 0}` as the last. The terminal ends within 5
    seconds of the machine, the session or the right to the machine, and after an hour without input and output."""

    async def is_allowed() -> bool:
        return await streaming.is_allowed(request)

    ticket = TerminalTicket(principal, ClusterId(cluster_id), body.rank, is_allowed)
    issued = await services.terminals.issue(ticket)
    return Json(TerminalOut.of(issued, protocol=PROTOCOL), 201, headers={"Cache-Control": "no-store"})


class _Window:
    """What was sent to a browser and is not shown yet: beyond UNREAD_MAX the machine waits, as no buffer of a browser
    has an end."""

    def __init__(self) -> None:
        self._unread = 0
        self._changed = asyncio.Event()

    async def sent(self, count: int) -> None:
        """Count it, and wait until there is room for more, or so long that the browser's word may stand behind a paste
        which the machine does not read before it can print."""
        self._unread += count
        with suppress(TimeoutError):
            async with asyncio.timeout(DRIP_S):
                while self._unread > UNREAD_MAX:
                    self._changed.clear()
                    await self._changed.wait()

    def taken(self, count: int) -> None:
        """The browser has shown so much of it."""
        self._unread = max(0, self._unread - count)
        self._changed.set()


class NotebookOut(Out):
    """The address of a notebook."""

    url: Annotated[str, Field(description="For a browser, with the token that opens it")]
    expires_at: Annotated[Time, Field(description="Until when it leads there, unless your right ends before")]


@route.post(
    "/clusters/{cluster_id}/notebook",
    may=Permission.RENT,
    reach=Reach.OWN,
    shared=Level.USE,
    repeat=Repeat.ALWAYS,
    status_code=201,
    answer=NotebookOut,
)
async def open_notebook(request: Request, services: Serving, principal: Asking, cluster_id: str) -> Response:
    """Give a box's notebook an HTTPS address, as services have, for 12 hours at most: it leads there no longer than
    your session or token, your right to the box and the box last. The notebook lets in whoever has its token."""

    async def is_allowed() -> bool:
        return await streaming.is_allowed(request)

    opened = await services.tunnels.open_notebook(principal, ClusterId(cluster_id), is_allowed)
    return Json(NotebookOut.of(opened), 201, headers={"Cache-Control": "no-store"})


def is_own_origin(headers: Headers, scheme: str) -> bool:
    """Return whether a page of this very Master asks: its origin is what the request names as its host. scheme: of the
    WebSocket as it came here; a proxy before it may have taken TLS off."""
    origin = headers.getlist("origin")
    try:
        found = urlsplit(origin[0]) if len(origin) == 1 else None
    except ValueError:
        found = None
    schemes = ("https",) if scheme == "wss" else ("http", "https")
    return found is not None and found.scheme in schemes and found.netloc.lower() == headers.get("host", "").lower()


async def terminal(socket: WebSocket) -> None:
    """Serve one WebSocket: refuse it in its handshake, or carry a terminal to its end."""
    services: Services = socket.app.state.services
    cluster_id = ClusterId(socket.path_params["cluster_id"])
    offered = socket.scope.get("subprotocols", [])
    try:
        if not is_own_origin(socket.headers, socket.url.scheme) or len(offered) != 2 or offered[0] != PROTOCOL:
            raise Unauthenticated
        ticket = services.terminals.redeem(offered[1], cluster_id)
        if not await ticket.is_allowed():
            raise Unauthenticated
    except Unauthenticated:
        log.info("terminal_refused", cluster=cluster_id)
        await socket.close()  # before it is accepted: the handshake is answered with 403
        return
    await socket.accept(PROTOCOL)
    last: dict[str, Any] = {}
    with suppress(WebSocketDisconnect):
        try:
            last = await _carried(socket, services, ticket)
        except WindrowError as error:
            last = {"ended": error.detail, "code": error.code}
        with suppress(TimeoutError):
            async with asyncio.timeout(SAY_S):
                await socket.send_text(json.dumps(last))
                await socket.close(NORMAL)


async def _carried(socket: WebSocket, services: Services, ticket: TerminalTicket) -> dict[str, Any]:
    """Move bytes both ways until one end is over; returns the last words to the browser. Raises WebSocketDisconnect,
    and what the host says went wrong."""
    terminals = services.terminals
    async with terminals.open(ticket, FIRST) as open_one:
        await socket.send_text(json.dumps({"open": True}))
        loop = asyncio.get_running_loop()
        window = _Window()
        printing = loop.create_task(_print(socket, open_one, services, window))
        typing = loop.create_task(_type(socket, open_one, services, window))
        watching = loop.create_task(terminals.until_over(open_one))
        tasks: tuple[asyncio.Task[Any], ...] = (printing, typing, watching)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if watching.done():
                return {"ended": watching.result()}
            for one in (typing, printing):
                if one.done():
                    one.result()
            return await _shell_over(terminals, open_one)
        finally:
            for one in tasks:
                one.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _shell_over(terminals: TerminalService, open_one: Terminal) -> dict[str, Any]:
    if not await terminals.runs(open_one):
        return {"ended": ENDED}
    return {"ended": "The shell has ended.", "exit_code": open_one.exit_code}


async def _print(socket: WebSocket, open_one: Terminal, services: Services, window: _Window) -> None:
    while (data := await open_one.output(services.clock.monotonic_ns())) is not None:
        await socket.send_bytes(data)
        await window.sent(len(data))


async def _type(socket: WebSocket, open_one: Terminal, services: Services, window: _Window) -> None:
    """Raises WebSocketDisconnect when the browser has gone."""
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", NORMAL))
        if message.get("bytes") is not None:
            await open_one.type(message["bytes"], services.clock.monotonic_ns())
            continue
        told = said_by(message["text"])
        if isinstance(told, TerminalSize):
            await open_one.resize(told)
        elif told is not None:
            window.taken(told)
        else:
            await socket.close(POLICY, "neither keys nor a size")
            raise WebSocketDisconnect(POLICY)


def said_by(text: str) -> TerminalSize | int | None:
    """The size that a message of the browser tells, or how many bytes it has shown; None: neither that can be."""
    try:
        told = json.loads(text)
        found = [told["taken"]] if "taken" in told else [told["columns"], told["rows"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    most = UNREAD_MAX if len(found) == 1 else SIDE_MAX
    if not all(type(one) is int and 1 <= one <= most for one in found):
        return None
    return found[0] if len(found) == 1 else TerminalSize(*found)


SOCKET: Final = Socket(WebSocketRoute(V1 + PATH, terminal), Declaration(Permission.RENT, Reach.OWN, shared=Level.USE))
"""Open to whoever shows a ticket, which these may have."""
