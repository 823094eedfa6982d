"""Routes of simulated hosts, which somebody who tries Windrow adds by one click."""

from typing import Annotated, Any

from pydantic import Field

from windrow_master.api.answers import Out
from windrow_master.api.bodies import Body
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission

route = Routes("onboarding")


class SimulatedHostsOut(Out):
    """The simulated hosts of a market on one machine."""

    can_set: Annotated[bool, Field(description="True where `windrow up` started the market")]
    wanted: Annotated[int, Field(description="How many there are to be; they join within a minute")]
    at_most: int


class SimulatedHostsSet(Body):
    """How many simulated hosts there are to be."""

    count: Annotated[int, Field(ge=0, le=100_000)]


@route.get("/simulated-hosts", may=Permission.HEALTH_READ, answer=SimulatedHostsOut)
async def simulated_hosts(services: Serving) -> Any:
    """How many simulated hosts `windrow up` runs beside this Master."""
    return await services.simulated.look()


@route.put("/simulated-hosts", may=Permission.SIMULATED_HOSTS, answer=SimulatedHostsOut)
async def set_simulated_hosts(services: Serving, principal: Asking, body: SimulatedHostsSet) -> Any:
    """Add simulated hosts, or take some away: those are retired, with what runs on them. Only where `windrow up`
    started the market; elsewhere a conflict."""
    return await services.simulated.set(body.count, principal.actor)
