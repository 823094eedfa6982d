"""Wraps every request: checks the name it came by, gives it an id, limits its body, sets headers, counts it, writes
one log line."""

import time
from typing import Any, Final

import structlog
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from windrow_master.api import problems, sharing
from windrow_master.api.auth import declaration_of
from windrow_master.api.headers import headers_of
from windrow_master.api.metrics import HttpFigures
from windrow_master.api.own_names import OwnNames
from windrow_master.identity.decide import Permission
from windrow_proto.errors import InvalidInput, Misdirected
from windrow_proto.ports import Rng
from windrow_proto.units import KIB, MIB

BODY_MAX: Final = 1 * MIB
OPEN_BODY_MAX: Final = 64 * KIB
"""Of a request that needs no token: a certificate's request and a few names."""

log = structlog.get_logger(__name__)


def body_limit(scope: Scope) -> int:
    """Return how long the body may be of a request whose route is found, in bytes."""
    route = scope.get("route")
    if route is None:
        return BODY_MAX
    declaration = declaration_of(route)
    if declaration.body_max is not None:
        return declaration.body_max
    return OPEN_BODY_MAX if declaration.may is Permission.NOBODY else BODY_MAX


class Edge:
    """The outermost application."""

    def __init__(self, app: ASGIApp, rng: Rng, figures: HttpFigures, names: OwnNames | None) -> None:
        """names: under which it answers; None under any, where no browser can come."""
        self._app = app
        self._names = names
        self._rng = rng
        self._figures = figures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = f"request_{self._rng.random_bytes(8).hex()}"
        scope["windrow.request_id"] = request_id
        began = time.perf_counter_ns()
        status = 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _dress(MutableHeaders(scope=message), scope, request_id)
            await send(message)

        try:
            await self._meant(scope)(scope, _limited(scope, receive), sending)
        finally:
            sharing.give_back(scope)
            took_ns = time.perf_counter_ns() - began
            template = getattr(scope.get("route"), "path", "unmatched")
            self._figures.count(scope["method"], template, status, took_ns)
            level = log.info if status >= 500 else log.debug
            level("request", request_id=request_id, method=scope["method"], path=scope["path"][:200], status=status)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one WebSocket; one that is refused in its handshake is answered with 403."""
        try:
            self._check(scope)
        except (InvalidInput, Misdirected):
            await send({"type": "websocket.close"})
            return
        await self._app(scope, receive, send)

    def _meant(self, scope: Scope) -> ASGIApp:
        """The application, or the refusal of what was meant for another host. A person in a browser gets the console,
        which says that there is no such page."""
        try:
            self._check(scope)
        except InvalidInput as error:
            if scope["path"].startswith("/api/") or "text/html" not in Request(scope).headers.get("accept", ""):
                return problems.problem(Request(scope), error)
            scope["path"], scope["raw_path"] = "/", b"/"
        except Misdirected as error:
            return problems.problem(Request(scope), error)
        return self._app

    def _check(self, scope: Scope) -> None:
        if self._names is not None:
            self._names.check(scope)
        # A router's pattern ends before a last newline, and whatever compares paths does not.
        if any(one < " " or one == "\x7f" for one in scope["path"]):
            raise InvalidInput("The path has a control character.")


def _dress(headers: MutableHeaders, scope: Scope, request_id: str) -> None:
    headers["X-Request-Id"] = request_id
    host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
    for name, value in headers_of(scope.get("scheme", "http"), host).items():
        headers.setdefault(name, value)


def _too_large(limit: int) -> HTTPException:
    # FastAPI lets only its own kind of exception through while it reads a body; problems.py makes it TooLarge again.
    return HTTPException(413, f"A request's body is at most {limit} bytes here.")


def _limited(scope: Scope, receive: Receive) -> Receive:
    seen: int | None = None

    async def receiving() -> Any:
        nonlocal seen
        limit = body_limit(scope)  # the route reads, so it is known by now
        if seen is None:
            declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
            seen = int(declared) if declared.isdigit() and int(declared) > limit else 0
        if seen > limit:
            raise _too_large(limit)
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise _too_large(limit)
        return message

    return receiving
