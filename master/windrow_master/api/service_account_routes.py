"""Routes of service accounts: programs that act in the caller's project."""

from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import Field

from windrow_master.api import answers
from windrow_master.api.answers import Out, Read, Time
from windrow_master.api.auth import Reach, Repeat
from windrow_master.api.bodies import Body
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.identity_routes import TokenMadeOut, TokenOut
from windrow_master.api.limit_routes import LimitsBody
from windrow_master.api.paging import Cursor, Limit, page, read_cursor
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_master.identity.model import ApiToken, Role, SpenderKind
from windrow_master.identity.service_accounts import OVERLAP_NS, OVERLAP_NS_MAX, ServiceView
from windrow_master.market.limits import NO_LIMITS
from windrow_proto.units import SECOND

route = Routes("service-accounts")

Life = Annotated[int, Field(gt=0, le=90 * 86_400, description="Lifetime of the token")]


class ServiceBody(Body):
    """A new service account."""

    name: Annotated[str, Field(min_length=1, max_length=64)]
    roles: Annotated[list[Literal["renter", "viewer", "provider"]], Field(min_length=1, max_length=3)]
    expires_in_s: Life = 90 * 86_400
    limits: LimitsBody = LimitsBody()


class RotateBody(Body):
    """A new token of a service account. overlap_s: the old token stays valid for so long."""

    expires_in_s: Life = 90 * 86_400
    overlap_s: Annotated[int, Field(ge=0, le=OVERLAP_NS_MAX // SECOND)] = OVERLAP_NS // SECOND


class ServiceOut(Out):
    """A service account. roles: its present roles."""

    id: Annotated[str, Read("account.id")]
    name: Annotated[str, Read("account.name")]
    roles: Annotated[list[Role], Read(lambda view: sorted(view.account.roles))]
    created_by: Annotated[str, Read("account.made_by")]
    created_at: Annotated[Time, Read("account.created_at_ns")]
    tokens: Annotated[list[TokenOut], Field(description="Its valid tokens, the oldest first")]


class ServiceMadeOut(Out):
    """A service account and its new token."""

    service_account: ServiceOut
    token: TokenMadeOut


@route.get("/service-accounts", may=Permission.MEMBERS_READ, answer=answers.Page[ServiceOut])
async def service_accounts(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The service accounts of the project, the oldest first."""
    found = await services.identity.service_accounts.list(principal, read_cursor(cursor), limit + 1)
    return page(found, limit, ServiceOut.of, lambda view: view.account.id)


@route.post(
    "/service-accounts",
    may=Permission.MEMBERS,
    changes_rights=True,
    repeat=Repeat.ALWAYS,
    status_code=201,
    answer=ServiceMadeOut,
)
async def add_service_account(services: Serving, principal: Asking, body: ServiceBody) -> Any:
    """Create a service account with a token, which is shown this once. It gets no roles that the caller lacks."""
    roles = frozenset(map(Role, body.roles))
    life_ns, limits = body.expires_in_s * SECOND, body.limits.parsed()
    view, token, text = await services.identity.service_accounts.add(principal, body.name, roles, life_ns)
    if limits != NO_LIMITS:  # before anybody knows its token
        await services.spending.set(principal, SpenderKind.SERVICE_ACCOUNT, view.account.id, limits)
    return _made(view, token, text)


@route.post(
    "/service-accounts/{service_account}/rotate",
    may=Permission.MEMBERS,
    changes_rights=True,
    reach=Reach.OWN,
    repeat=Repeat.ALWAYS,
    status_code=201,
    answer=ServiceMadeOut,
)
async def rotate_service_account(services: Serving, principal: Asking, service_account: str, body: RotateBody) -> Any:
    """Create a new token of a service account, which is shown this once. The old token ends after the overlap."""
    life_ns, overlap_ns = body.expires_in_s * SECOND, body.overlap_s * SECOND
    return _made(*await services.identity.service_accounts.rotate(principal, service_account, life_ns, overlap_ns))


@route.delete(
    "/service-accounts/{service_account}", may=Permission.MEMBERS, changes_rights=True, reach=Reach.OWN, status_code=204
)
async def remove_service_account(services: Serving, principal: Asking, service_account: str) -> Response:
    """Remove a service account, by its id or name. Its tokens end at once; its clusters and jobs go on."""
    await services.identity.service_accounts.remove(principal, service_account)
    return Response(status_code=204)


def _made(view: ServiceView, token: ApiToken, text: str) -> dict[str, Any]:
    return {"service_account": ServiceOut.of(view), "token": {**TokenOut.of(token), "token": text}}
