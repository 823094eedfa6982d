"""Finds the route of a request by the first parts of its path: trying all 270 of them costs more than most answers."""

from collections.abc import Iterable
from typing import Final

from starlette.routing import BaseRoute, Match, Route, WebSocketRoute
from starlette.types import Receive, Scope, Send

PARTS: Final = 3
"""The index looks at so many parts of a path: `api/v1/clusters` has three."""
_FOUND: Final = "windrow.route"


class RouteIndex(BaseRoute):
    """Stands before the routes that it was made of. What it does not find is left to them: a wrong method, a path that
    is not there."""

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        ordered = list(routes)
        self._open = [one for one in ordered if _key_of(one) is None]
        """Whose first parts are not fixed: they may match anything, and keep their place among the others."""
        keys = {key for one in ordered if (key := _key_of(one)) is not None}
        self._by_key = {key: [one for one in ordered if _key_of(one) in (None, key)] for key in keys}

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As a route; a match is whole or none."""
        if scope["type"] in ("http", "websocket"):
            for route in self._by_key.get(_key(scope["path"]), self._open):
                match, found = route.matches(scope)
                if match is Match.FULL:
                    return match, {**found, _FOUND: route}
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """By the route that was found."""
        route: BaseRoute = scope[_FOUND]
        await route.handle(scope, receive, send)


def _key(path: str) -> str:
    return "/".join(path.split("/", PARTS + 1)[: PARTS + 1])


def _key_of(route: BaseRoute) -> str | None:
    """None where one of the first parts of its paths is not fixed."""
    if not isinstance(route, Route | WebSocketRoute):
        return None
    key = _key(route.path)
    return None if "{" in key else key
