"""Finds the address of whoever asks where a trusted reverse proxy forwards it."""

from collections.abc import Sequence
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from windrow_master.proxies import client_of
from windrow_proto.networks import Network

FORWARDED: Final = "x-forwarded-for"


class Proxied:
    """The application behind trusted proxies."""

    def __init__(self, app: ASGIApp, proxies: Sequence[Network]) -> None:
        self._app, self._proxies = app, proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] in {"http", "websocket"} and scope.get("client") is not None:
            peer, port = scope["client"]
            reported = ",".join(v.decode("latin-1") for name, v in scope["headers"] if name == FORWARDED.encode())
            client = client_of(peer, reported, self._proxies)
            scope = {**scope, "client": (client, port if client == peer else 0)}
        await self._app(scope, receive, send)
