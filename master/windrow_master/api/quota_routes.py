"""Routes of quotas: the most that the installation, an organisation or a project has of something at once."""

from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import Field

from windrow_master.api import answers
from windrow_master.api.answers import Out, Read
from windrow_master.api.bodies import Body
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.paging import Cursor, Limit, page_of
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_master.queue.quota import NodeLevel, QuotaItem, amount_of, written

route = Routes("quotas")

NodeName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=128,
        description="`installation`, the id of an organisation or project, `org:NAME`, `project:NAME`, or the name of "
        "a project",
    ),
]
TierName = Annotated[str, Field(max_length=64, description="Model of the GPUs, such as h100. Empty: all GPUs")]


class QuotaBody(Body):
    """A quota. It replaces an earlier one of the node, item and tier."""

    node: NodeName
    item: QuotaItem
    tier: TierName = ""
    limit: Annotated[
        str,
        Field(
            min_length=1,
            max_length=40,
            description="GPUs and processors, such as 8 or 0.5; memory in bytes; money an hour, such as 12.50; "
            "clusters and waiting jobs by their number",
        ),
    ]


class QuotaOut(Out):
    """A quota, and how much of it is used."""

    node_id: Annotated[str, Read("place.id")]
    level: Annotated[NodeLevel, Read("place.level")]
    name: Annotated[str, Read("place.name")]
    item: Annotated[QuotaItem, Read("quota.item")]
    tier: Annotated[str | None, Field(description="Null: all tiers together"), Read("quota.tier")]
    limit: Annotated[str, Read(lambda view: written(view.quota.item, view.quota.limit))]
    used: Annotated[str, Field(description="In the unit of the limit"), Read(lambda v: written(v.quota.item, v.used))]


@route.get("/quotas", may=Permission.SIGNED_IN, answer=answers.Page[QuotaOut])
async def quotas(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The quotas of the project and its organisation, and of the organisation's other projects for who sees them; for
    operators and auditors all."""
    found = await services.fair_shares.quotas.list(principal)
    return page_of(found, limit, cursor, QuotaOut.of, lambda one: f"{one.place.path} {one.quota.item} {one.quota.tier}")


@route.put("/quotas", may=Permission.QUOTAS, changes_rights=True, answer=QuotaOut)
async def set_quota(services: Serving, principal: Asking, body: QuotaBody) -> Any:
    """Set a quota. What is above it goes on, and nothing more starts until there is room."""
    limit = amount_of(body.item, body.limit)
    return QuotaOut.of(await services.fair_shares.quotas.set(principal, body.node, body.item, body.tier, limit))


@route.delete("/quotas", may=Permission.QUOTAS, changes_rights=True, status_code=204)
async def remove_quota(
    services: Serving,
    principal: Asking,
    node: Annotated[str, Query(max_length=128)],
    item: QuotaItem,
    tier: Annotated[str, Query(max_length=64)] = "",
) -> Response:
    """Remove a quota."""
    await services.fair_shares.quotas.remove(principal, node, item, tier)
    return Response(status_code=204)
