"""What a route may use: the rooms' services, and who is asking."""

from typing import Annotated

from fastapi import Depends, Request

from windrow_master.api import browsers
from windrow_master.api.browsers import COOKIE as COOKIE
from windrow_master.api.services import Services as Services
from windrow_master.identity.model import Principal
from windrow_proto.errors import Unauthenticated

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def services_of(request: Request) -> Services:
    """The services of the application that serves this request."""
    services: Services = request.app.state.services
    return services


async def principal_of(request: Request) -> Principal:
    """Who asks: by bearer token, or by the console's cookie (then changes must come from its own pages)."""
    known: Principal | None = getattr(request.state, "principal", None)
    if known is not None:
        return known
    identity = services_of(request).identity
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token:
        principal = await identity.authenticate(token.strip())
    elif COOKIE in request.cookies:
        principal = await identity.asking.authenticate_session(request.cookies[COOKIE])
        if request.method not in SAFE_METHODS:
            browsers.check_change(request)
    else:
        raise Unauthenticated
    request.state.principal = principal
    return principal


Serving = Annotated[Services, Depends(services_of)]
Asking = Annotated[Principal, Depends(principal_of)]
"""Use as parameter types: `async def route(services: Serving, principal: Asking)`."""
