"""Routes of spending limits: of projects, of tokens and of service accounts, each with what is used so far."""

from typing import Annotated, Any

from fastapi import Response
from pydantic import Field

from windrow_master.api import answers
from windrow_master.api.answers import Amount, Money, Out, Read, Time
from windrow_master.api.auth import Reach
from windrow_master.api.bodies import Body, GivenMoney, money_if
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.paging import Cursor, Limit, page_of
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_master.identity.model import SpenderKind
from windrow_master.market.limits import Limits
from windrow_proto.units import DAY, MINUTE, SECOND

route = Routes("limits")

LEASES_MAX = 1_000_000
IDLE_S_MIN, IDLE_S_MAX = MINUTE // SECOND, 30 * DAY // SECOND
"""As a machine may ask for itself."""


class LimitsBody(Body):
    """Spending limits. Null: no limit."""

    max_hourly_cost: Annotated[GivenMoney | None, Field(description="Price per hour of all that runs at once")] = None
    max_monthly_cost: Annotated[GivenMoney | None, Field(description="Cost in a calendar month, in UTC")] = None
    max_total_cost: Annotated[GivenMoney | None, Field(description="Cost in all, with what was spent before")] = None
    max_leases: Annotated[
        int | None, Field(ge=0, le=LEASES_MAX, description="Machines and clusters rented at once")
    ] = None
    idle_seconds: Annotated[
        int | None,
        Field(
            ge=IDLE_S_MIN,
            le=IDLE_S_MAX,
            description="New machines that do not say so themselves end when unused this long: no command, file "
            "transfer or tunnel. Their changed files are kept",
        ),
    ] = None

    def parsed(self) -> Limits:
        """The same as a value. Raises InvalidInput."""
        return Limits(
            max_hourly_cost=money_if("max_hourly_cost", self.max_hourly_cost),
            max_monthly_cost=money_if("max_monthly_cost", self.max_monthly_cost),
            max_total_cost=money_if("max_total_cost", self.max_total_cost),
            max_leases=self.max_leases,
            idle_ns=None if self.idle_seconds is None else self.idle_seconds * SECOND,
        )


class LimitOut(Out):
    """The spending limits of a project, a token or a service account, and the use so far. Null: no limit."""

    id: Annotated[str, Field(description="Id of the project, token or service account"), Read("spender.id")]
    kind: Annotated[SpenderKind, Read("spender.kind")]
    name: Annotated[str, Read("spender.name")]
    project_id: Annotated[str, Read("spender.account_id")]
    max_hourly_cost: Annotated[Amount, Read("limit.limits.max_hourly_cost")]
    max_monthly_cost: Annotated[Amount, Read("limit.limits.max_monthly_cost")]
    max_total_cost: Annotated[Amount, Read("limit.limits.max_total_cost")]
    max_leases: Annotated[int | None, Read("limit.limits.max_leases")]
    idle_seconds: Annotated[
        int | None,
        Field(description="New machines end when unused this long, unless they say so themselves"),
        Read(lambda view: None if view.limit.limits.idle_ns is None else view.limit.limits.idle_ns // SECOND),
    ]
    hourly_cost: Annotated[Money, Read("use.hourly_cost")]
    monthly_cost: Annotated[Money, Read("month_spent")]
    total_cost: Annotated[Money, Read("limit.spent")]
    leases: Annotated[int, Read("use.leases")]
    held: Annotated[
        Money, Field(description="Set aside for what runs. It counts for the limits of money"), Read("use.held")
    ]
    month: Annotated[str, Field(description="The month of `monthly_cost`, in UTC")]
    updated_at: Annotated[Time | None, Read(lambda view: view.limit.set_at_ns if view.is_set else None)]
    updated_by: Annotated[str | None, Read("limit.set_by")]


@route.get("/limits", may=Permission.TOKENS, answer=answers.Page[LimitOut])
async def limits(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The limits and the spending of the project, and of its tokens, its service accounts and other projects of the
    organisation that have limits, as far as the caller sees them; by id."""
    return page_of(await services.spending.list(principal), limit, cursor, LimitOut.of, lambda one: one.spender.id)


@route.get("/projects/{project}/limits", may=Permission.SIGNED_IN, reach=Reach.OWN_OR_OVERSEEN, answer=LimitOut)
async def project_limits(services: Serving, principal: Asking, project: str) -> Any:
    """The spending limits of a project, by its id or name."""
    return LimitOut.of(await services.spending.get(principal, SpenderKind.PROJECT, project))


@route.put(
    "/projects/{project}/limits",
    may=Permission.LIMITS,
    reach=Reach.OWN_OR_OPERATED,
    changes_rights=True,
    answer=LimitOut,
)
async def limit_project(services: Serving, principal: Asking, project: str, body: LimitsBody) -> Any:
    """Replace the limits of a project. What runs is ended when it reaches one."""
    return LimitOut.of(await services.spending.set(principal, SpenderKind.PROJECT, project, body.parsed()))


@route.delete(
    "/projects/{project}/limits",
    may=Permission.LIMITS,
    reach=Reach.OWN_OR_OPERATED,
    changes_rights=True,
    status_code=204,
)
async def free_project(services: Serving, principal: Asking, project: str) -> Response:
    """Remove the limits of a project."""
    await services.spending.remove(principal, SpenderKind.PROJECT, project)
    return Response(status_code=204)


@route.get("/tokens/{token_id}/limits", may=Permission.TOKENS, reach=Reach.OWN, answer=LimitOut)
async def token_limits(services: Serving, principal: Asking, token_id: str) -> Any:
    """The spending limits of a token. Tokens that it made count for it. All tokens of a service account share its
    limits."""
    return LimitOut.of(await services.spending.get(principal, SpenderKind.TOKEN, token_id))


@route.put("/tokens/{token_id}/limits", may=Permission.TOKENS, reach=Reach.OWN, changes_rights=True, answer=LimitOut)
async def limit_token(services: Serving, principal: Asking, token_id: str, body: LimitsBody) -> Any:
    """Replace the limits of a token. A token cannot set its own limits."""
    return LimitOut.of(await services.spending.set(principal, SpenderKind.TOKEN, token_id, body.parsed()))


@route.delete("/tokens/{token_id}/limits", may=Permission.TOKENS, reach=Reach.OWN, changes_rights=True, status_code=204)
async def free_token(services: Serving, principal: Asking, token_id: str) -> Response:
    """Remove the limits of a token."""
    await services.spending.remove(principal, SpenderKind.TOKEN, token_id)
    return Response(status_code=204)


@route.get("/service-accounts/{service_account}/limits", may=Permission.MEMBERS_READ, reach=Reach.OWN, answer=LimitOut)
async def service_limits(services: Serving, principal: Asking, service_account: str) -> Any:
    """The spending limits of a service account, by its id or name."""
    return LimitOut.of(await services.spending.get(principal, SpenderKind.SERVICE_ACCOUNT, service_account))


@route.put(
    "/service-accounts/{service_account}/limits",
    may=Permission.MEMBERS,
    reach=Reach.OWN,
    changes_rights=True,
    answer=LimitOut,
)
async def limit_service(services: Serving, principal: Asking, service_account: str, body: LimitsBody) -> Any:
    """Replace the limits of a service account."""
    kind = SpenderKind.SERVICE_ACCOUNT
    return LimitOut.of(await services.spending.set(principal, kind, service_account, body.parsed()))


@route.delete(
    "/service-accounts/{service_account}/limits",
    may=Permission.MEMBERS,
    reach=Reach.OWN,
    changes_rights=True,
    status_code=204,
)
async def free_service(services: Serving, principal: Asking, service_account: str) -> Response:
    """Remove the limits of a service account."""
    await services.spending.remove(principal, SpenderKind.SERVICE_ACCOUNT, service_account)
    return Response(status_code=204)
