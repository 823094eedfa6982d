"""Route of bandwidth measurements: the results of a host's line, round by round and region by region."""

from typing import Annotated, Any, Final

from fastapi import Query
from pydantic import Field

from windrow_master.api.answers import Out, Read, Time
from windrow_master.api.auth import Reach
from windrow_master.api.deps import Serving
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_proto.ids import HostId

route = Routes("bandwidth")

ROUNDS_MAX: Final = 1_024
"""As many as are kept of a host."""


class BandwidthRoundOut(Out):
    """The result of one round by the relays of one region, the median of them, in bits a second."""

    region: str
    at: Time
    up_bps: int
    down_bps: int
    relays: Annotated[
        int, Field(description="How many relays of the region measured it"), Read(lambda found: len(found.relays))
    ]


class BandwidthRoundsOut(Out):
    """The measurements of a host's line."""

    host_id: str
    rounds: Annotated[list[BandwidthRoundOut], Field(description="The newest first")]


@route.get("/hosts/{host_id}/bandwidth", may=Permission.FLEET_READ, reach=Reach.ALL, answer=BandwidthRoundsOut)
async def bandwidth(services: Serving, host_id: str, limit: Annotated[int, Query(ge=1, le=ROUNDS_MAX)] = 100) -> Any:
    """Measurements of a host's line by relays: a row for each round and region, the newest first. The newest round's
    median over all regions is the host's `bandwidth`, which its tier counts."""
    entry = services.fleet.entry(HostId(host_id))
    found = await services.store.read(lambda uow: services.fleet.measures.rounds(uow, entry.host.host_id, limit))
    return {"host_id": entry.host.host_id, "rounds": [BandwidthRoundOut.of(one) for one in found]}
