"""Routes of fair shares: the parts of the installation that organisations and projects have, and how they stand."""

from typing import Annotated, Any, Final

from fastapi import Response
from pydantic import Field

from windrow_master.api import answers
from windrow_master.api.answers import Out, Read
from windrow_master.api.auth import Reach
from windrow_master.api.bodies import Body
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.paging import Cursor, Limit, page_of
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_master.queue.quota import NodeLevel
from windrow_master.queue.rules import WEIGHT_MAX, ShareView
from windrow_master.queue.shares import WHOLE, Rule

route = Routes("fair-shares")

PARTS: Final = "parts per million of the installation"


class FairShareBody(Body):
    """The rules of a share. A field that is left out has its default."""

    guarantee_ppm: Annotated[int, Field(ge=0, le=WHOLE, description=f"Guaranteed, {PARTS}")] = 0
    ceiling_ppm: Annotated[int, Field(ge=0, le=WHOLE, description=f"The most at once, {PARTS}")] = WHOLE
    weight: Annotated[int, Field(ge=1, le=WEIGHT_MAX, description="Among those beside it: 2 is due twice as much")] = 1
    is_borrowing: Annotated[bool, Field(description="May have more than the guarantee while others leave it")] = True
    may_use_urgent: Annotated[bool, Field(description="Jobs may have the class urgent. Operators grant it")] = False

    def parsed(self) -> Rule:
        """The same as a value."""
        return Rule(
            node_id="",
            guarantee=self.guarantee_ppm,
            ceiling=self.ceiling_ppm,
            weight=self.weight,
            is_borrowing=self.is_borrowing,
            may_use_urgent=self.may_use_urgent,
        )


def _parts(field: str) -> Read:
    def read(view: ShareView) -> int:
        return 0 if view.standing is None else round(getattr(view.standing, field) * WHOLE)

    return Read(read)


class FairShareOut(Out):
    """The share of an organisation or a project, and how it stands in the queue."""

    id: Annotated[str, Read("place.id")]
    level: Annotated[NodeLevel, Read("place.level")]
    name: Annotated[str, Read("place.name")]
    parent_id: Annotated[str | None, Field(description="The node above it"), Read("place.parent")]
    guarantee_ppm: Annotated[int, Read("rule.guarantee")]
    ceiling_ppm: Annotated[int, Read("rule.ceiling")]
    weight: Annotated[int, Read("rule.weight")]
    is_borrowing: Annotated[bool, Read("rule.is_borrowing")]
    may_use_urgent: Annotated[bool, Read("rule.may_use_urgent")]
    held_ppm: Annotated[int, Field(description=f"Held now, {PARTS}"), _parts("held")]
    used_ppm: Annotated[
        int, Field(description=f"Held on average of late, {PARTS}: what is 7 days old counts half"), _parts("used")
    ]
    rank: Annotated[
        int | None, Field(description="Among those beside it; 1 is served first. Null: nothing of it waits or runs")
    ]


@route.get("/fair-shares", may=Permission.SIGNED_IN, answer=answers.Page[FairShareOut])
async def fair_shares(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The shares of the project and its organisation, and of the organisation's other projects for who sees them; for
    operators and auditors of all with rules or work. Each stands behind the one above it."""
    found = await services.fair_shares.list(principal)
    return page_of(found, limit, cursor, FairShareOut.of, lambda one: one.place.path)


@route.get("/fair-shares/{node}", may=Permission.SIGNED_IN, reach=Reach.OWN_OR_OVERSEEN, answer=FairShareOut)
async def fair_share(services: Serving, principal: Asking, node: str) -> Any:
    """One share: by the id of an organisation or project, `org:NAME`, `project:NAME`, or a project's name."""
    return FairShareOut.of(await services.fair_shares.get(principal, node))


@route.put(
    "/fair-shares/{node}", may=Permission.QUOTAS, reach=Reach.OWN_OR_OPERATED, changes_rights=True, answer=FairShareOut
)
async def set_fair_share(services: Serving, principal: Asking, node: str, body: FairShareBody) -> Any:
    """Replace the rules of a share. What runs goes on."""
    return FairShareOut.of(await services.fair_shares.set(principal, node, body.parsed()))


@route.delete(
    "/fair-shares/{node}",
    may=Permission.QUOTAS,
    reach=Reach.OWN_OR_OPERATED,
    changes_rights=True,
    status_code=204,
)
async def remove_fair_share(services: Serving, principal: Asking, node: str) -> Response:
    """Let a share have the default rules again."""
    await services.fair_shares.remove(principal, node)
    return Response(status_code=204)
