"""Gives routes the services of the packages and the principal who asks."""

from typing import Annotated, Final

from fastapi import Depends, Request

from windrow_master.api.local_user import LOCAL
from windrow_master.api.services import Services as Services
from windrow_master.identity.model import Principal
from windrow_master.store.unit import ORIGIN
from windrow_proto.errors import Unauthenticated

PROJECT: Final = "Windrow-Project"


def services_of(request: Request) -> Services:
    """The services of the application that serves this request."""
    services: Services = request.app.state.services
    return services


def bearer_of(request: Request) -> str:
    """The secret that a request carries; empty where it carries none."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


async def principal_of(request: Request) -> Principal:
    """Return the caller, by the secret in the `Authorization` header: an API token, or a browser's session.

    Nothing that a browser sends by itself counts (no cookie), so that no page of another site can ask in a user's name.
    The header `Windrow-Project` names the project in which a session acts, so that each tab of a browser has its own.
    """
    known: Principal | None = getattr(request.state, "principal", None)
    if known is not None:
        return known
    secret = bearer_of(request)
    if not secret:
        raise Unauthenticated
    address = request.client.host if request.client is not None else ""
    project_id = request.headers.get(PROJECT, "")
    principal = await services_of(request).identity.authenticate(secret, address, project_id)
    request.state.principal = principal
    session = {} if principal.session_id is None else {"session": principal.session_id}
    ORIGIN.set({"token": principal.token_id, "address": address, **session})
    return principal


def recognises_local_user(request: Request) -> bool:
    """True if the request has no token and comes from the Master's own user, who then asks as the account `local`."""
    local_user = services_of(request).local_user
    if local_user is None or bearer_of(request) or not local_user.sends(request.scope):
        return False
    request.state.principal = LOCAL
    ORIGIN.set({"token": LOCAL.token_id, "address": request.client.host if request.client is not None else ""})
    return True


def announced(request: Request) -> int | None:
    """The size of a request's body, where it says so."""
    text = request.headers.get("content-length", "")
    return int(text) if text.isdecimal() else None


async def _serving(request: Request) -> Services:
    """The same without a thread of its own, which FastAPI gives to what does not await."""
    return services_of(request)


Serving = Annotated[Services, Depends(_serving)]
Asking = Annotated[Principal, Depends(principal_of)]
"""Use as parameter types: `async def route(services: Serving, principal: Asking)`."""
