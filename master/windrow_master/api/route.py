"""Declares routes: `@route.get("/hosts", may=Permission.FLEET_READ)` makes a FastAPI route that carries its rules."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar

from fastapi import APIRouter, Depends, Request, Response
from fastapi.routing import APIRoute
from starlette.routing import Match, Route, WebSocketRoute
from starlette.types import Receive, Scope, Send

from windrow_master.api import idempotency, names, streaming, values
from windrow_master.api.auth import V1, Declaration, Reach, Repeat, declaration_of
from windrow_master.api.deps import principal_of, services_of
from windrow_master.api.paging import Json
from windrow_master.api.sharing import ShareKind
from windrow_master.identity.decide import Permission
from windrow_master.identity.object_shares import Level
from windrow_proto.errors import Unauthenticated

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class Decorator(Protocol):
    """Makes a route of a function and gives the function back."""

    def __call__(self, endpoint: Endpoint, /) -> Endpoint: ...


class DeclaredRoute(APIRoute):
    """A route whose POSTs honour Idempotency-Key, that reads no body of anybody who may not ask, and that is asked
    nothing that it does not know and nothing whose texts and numbers cannot be (values.py)."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler FastAPI makes, wrapped."""
        handler = super().get_route_handler()
        is_post = "POST" in (self.methods or ())
        declaration, queries = declaration_of(self), values.queries_of(self)

        async def permitted(request: Request) -> Response:
            if declaration.may is Permission.NOBODY:
                await values.check(request, queries, has_body=self.body_field is not None)
                return await handler(request)
            await declaration(request)
            services_of(request).shares.take(request.scope, declaration.share, await principal_of(request))
            if declaration.share is ShareKind.UPLOADS:
                return await streaming.while_allowed(request, checked(request))
            return await checked(request)

        async def checked(request: Request) -> Response:
            has_body = self.body_field is not None
            await values.check(request, queries, has_body=has_body)
            if has_body and not await streaming.is_allowed(request):  # its body may have taken long to come
                raise Unauthenticated(streaming.GONE)
            names.resolve(request, services_of(request))
            if is_post and declaration.repeat is not Repeat.ALWAYS:
                may_resume = declaration.repeat is Repeat.REPEATABLE
                return await idempotency.once(request, handler, may_resume=may_resume)
            return await handler(request)

        return permitted


class DeferredRoute(Route):
    """A route that FastAPI works out at its first request: 2 ms each, a quarter of a Master's start for all of them."""

    def __init__(
        self, path: str, endpoint: Callable[..., Any], method: str, rules: Declaration, make: Callable[[], APIRoute]
    ) -> None:
        """make: FastAPI's own. Nothing here looks at it before the path and the method fit."""
        super().__init__(path, endpoint, methods=[method])
        self.methods = {method}
        self.rules = rules
        self._make = make

    @cached_property
    def made(self) -> APIRoute:
        """FastAPI's route."""
        return self._make()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As FastAPI's."""
        match, found = super().matches(scope)
        return match, found if match is Match.NONE else {**found, "route": self.made}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """By FastAPI's."""
        await self.made.handle(scope, receive, send)


def operation_id(route: APIRoute) -> str:
    """The name by which the API's description lists a route: its function's."""
    return route.name


@dataclass(frozen=True, slots=True)
class Socket:
    """The route of a WebSocket, and the rules by which it is listed; it lets nobody in but by a ticket that a route
    with the same rules gave."""

    route: WebSocketRoute
    rules: Declaration


class Routes:
    """The routes of one file. A route whose path names an object says whose objects it reaches.

    `answer` is the model that describes what the route writes itself; `fastapi` are options of FastAPI's own.
    """

    def __init__(self, tag: str | None, prefix: str = V1) -> None:
        """tag: the heading under which the API's description lists them. None: routes beside the API, open to all."""
        words: dict[str, Any] = {} if tag is None else {"prefix": prefix, "tags": [tag], "route_class": DeclaredRoute}
        self._router = APIRouter(**words, default_response_class=Json, generate_unique_id_function=operation_id)
        self.routes: list[DeferredRoute] = []

    def get(
        self,
        path: str,
        *,
        may: Permission,
        reach: Reach | None = None,
        shared: Level | None = None,
        share: ShareKind = ShareKind.REQUESTS,
        is_unlimited: bool = False,
        hears_token: bool = False,
        is_local: bool = False,
        answer: Any = None,
        **fastapi: Any,
    ) -> Decorator:
        """A route that reads. share: what its answer takes of the Master. shared: the level of a share of its object
        by which others reach it."""
        rules = Declaration(
            may,
            reach,
            share=share,
            shared=shared,
            is_unlimited=is_unlimited,
            hears_token=hears_token,
            is_local=is_local,
        )
        return self._add("GET", path, rules, answer, fastapi)

    def post(
        self,
        path: str,
        *,
        may: Permission,
        reach: Reach | None = None,
        shared: Level | None = None,
        repeat: Repeat = Repeat.REMEMBERED,
        share: ShareKind = ShareKind.REQUESTS,
        signs_in: bool = False,
        hashes: bool = False,
        body_max: int | None = None,
        changes_rights: bool = False,
        keeps_limits: bool = False,
        is_local: bool = False,
        answer: Any = None,
        **fastapi: Any,
    ) -> Decorator:
        """A route that does something. repeat: how it is answered when it comes again with its Idempotency-Key."""
        rules = Declaration(
            *(may, reach, repeat, share, shared, body_max, signs_in, hashes),
            changes_rights=changes_rights,
            keeps_limits=keeps_limits,
            is_local=is_local,
        )
        return self._add("POST", path, rules, answer, fastapi)

    def put(
        self,
        path: str,
        *,
        may: Permission,
        reach: Reach | None = None,
        shared: Level | None = None,
        share: ShareKind = ShareKind.REQUESTS,
        body_max: int | None = None,
        changes_rights: bool = False,
        is_local: bool = False,
        answer: Any = None,
        **fastapi: Any,
    ) -> Decorator:
        """A route that keeps what it is sent. body_max: bytes, of an upload or where others' limit is too much."""
        rules = Declaration(
            may, reach, share=share, shared=shared, body_max=body_max, changes_rights=changes_rights, is_local=is_local
        )
        return self._add("PUT", path, rules, answer, fastapi)

    def delete(
        self,
        path: str,
        *,
        may: Permission,
        reach: Reach | None = None,
        shared: Level | None = None,
        hears_token: bool = False,
        changes_rights: bool = False,
        is_local: bool = False,
        answer: Any = None,
        **fastapi: Any,
    ) -> Decorator:
        """A route that ends or removes something."""
        rules = Declaration(
            may, reach, shared=shared, hears_token=hears_token, changes_rights=changes_rights, is_local=is_local
        )
        return self._add("DELETE", path, rules, answer, fastapi)

    def _add(self, method: str, path: str, declaration: Declaration, answer: Any, fastapi: dict[str, Any]) -> Decorator:
        if ("{" in path) is (declaration.reach is None):
            raise ValueError(f"{method} {path}: a route has a reach exactly where its path names an object.")
        if answer is not None:
            fastapi["responses"] = {fastapi.get("status_code", 200): {"model": answer}}

        def decorator(endpoint: Endpoint, /) -> Endpoint:
            def make() -> APIRoute:
                rules = [Depends(declaration)]
                self._router.add_api_route(path, endpoint, methods=[method], dependencies=rules, **fastapi)
                made = self._router.routes.pop()
                assert isinstance(made, APIRoute), "the router makes no others"
                return made

            self.routes.append(DeferredRoute(self._router.prefix + path, endpoint, method, declaration, make))
            return endpoint

        return decorator
