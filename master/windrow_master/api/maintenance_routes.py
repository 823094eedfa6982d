"""Routes of maintenance windows: see them, plan one around leases, declare, change and remove one."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import Field

from windrow_master.api import answers
from windrow_master.api.answers import Out, Read, Time
from windrow_master.api.auth import Reach
from windrow_master.api.bodies import Body
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.paging import Cursor, Limit, moment, page_of
from windrow_master.api.route import Routes
from windrow_master.api.visibility import oversees
from windrow_master.identity.decide import Permission
from windrow_master.identity.model import Principal
from windrow_master.watch.maintenance import HOSTS_MAX
from windrow_master.watch.model import Window
from windrow_proto.ids import HostId

route = Routes("alerts")

Text = Annotated[str, Field(min_length=1, max_length=200)]


class HostsBody(Body):
    """Hosts by id or name, and all that have these labels."""

    hosts: Annotated[list[Text], Field(default_factory=list, max_length=HOSTS_MAX)]
    scope: Annotated[Mapping[str, Text] | None, Field(max_length=2, description="Labels of hosts: region, tier")] = None


class NewMaintenanceBody(HostsBody):
    """The hosts, the times, and why."""

    starts_at: Annotated[str | None, Field(max_length=40, description="RFC 3339; null: now")] = None
    ends_at: Annotated[str, Field(max_length=40, description="RFC 3339, at most 30 days later")]
    reason: Annotated[str, Field(max_length=300, description="Renters and owners of the hosts read it")] = ""


class MaintenanceEndBody(Body):
    """When the window ends now."""

    ends_at: Annotated[str, Field(max_length=40, description="RFC 3339, at most 30 days after the start")]


class MaintenanceOut(Out):
    """A maintenance window: no alert about its hosts is told, and nothing new runs there."""

    id: Annotated[str, Read("window_id")]
    hosts: Annotated[list[str], Field(description="Their ids")]
    names: Annotated[list[str], Field(description="Their names")]
    starts_at: Annotated[Time, Read("from_ns")]
    ends_at: Annotated[Time, Read("until_ns")]
    state: Annotated[str, Field(description="`planned` or `running`")]
    reason: str | None
    owner: Annotated[str | None, Field(description="`operators`, or an account; null: not the caller's to see")]


class MaintenancePlanOut(Out):
    """The leases on some hosts now."""

    hosts: int
    leases: int
    open_ended: Annotated[int, Field(description="How many of the leases have no duration, and so no planned end")]
    earliest_start: Annotated[
        Time | None, Read("earliest_ns"), Field(description="When all are over by their duration; null: never")
    ]


def _out(services: Serving, principal: Principal, window: Window) -> dict[str, Any]:
    known = [services.fleet.view.get(HostId(host_id)) for host_id in window.hosts]
    is_shown = oversees(principal) or window.owner == principal.account_id
    return MaintenanceOut.of(
        window,
        names=[host if entry is None else entry.host.name for host, entry in zip(window.hosts, known, strict=True)],
        state="planned" if window.started_at_ns is None else "running",
        owner=window.owner if is_shown else None,
    )


@route.get("/maintenance-windows", may=Permission.FLEET_READ, answer=answers.Page[MaintenanceOut])
async def maintenance_windows(
    services: Serving,
    principal: Asking,
    host: Annotated[str | None, Query(max_length=200, description="Only those of this host, by its id")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Any:
    """The maintenance windows that are not over. Everybody may rent these hosts, and sees them."""
    found = await services.maintenance.open(host)
    return page_of(found, limit, cursor, lambda one: _out(services, principal, one), lambda one: one.window_id)


@route.post("/maintenance-windows", may=Permission.FLEET_OPERATE, status_code=201, answer=MaintenanceOut)
async def add_maintenance_window(services: Serving, principal: Asking, body: NewMaintenanceBody) -> Any:
    """Declare a window, an operator for any host, a provider for its own. Owners and renters are told."""
    now_ns = services.clock.wall_ns()
    from_ns, until_ns = moment("starts_at", body.starts_at) or now_ns, moment("ends_at", body.ends_at) or 0
    wanted = Window(
        window_id="", owner="", hosts=(), from_ns=from_ns, until_ns=until_ns, reason=" ".join(body.reason.split()),
        created_by="", created_at_ns=now_ns,
    )  # fmt: skip
    made = await services.maintenance.add(principal, body.hosts, body.scope or {}, wanted)
    return _out(services, principal, made)


@route.post("/maintenance-windows/plan", may=Permission.FLEET_OPERATE, answer=MaintenancePlanOut)
async def plan_maintenance_window(services: Serving, principal: Asking, body: HostsBody) -> Any:
    """Say when nothing runs any more on these hosts by the durations of the leases; nothing is saved."""
    return MaintenancePlanOut.of(await services.maintenance.plan(principal, body.hosts, body.scope or {}))


@route.put(
    "/maintenance-windows/{window_id}", may=Permission.FLEET_OPERATE, reach=Reach.OWN_OR_OPERATED, answer=MaintenanceOut
)
async def move_maintenance_end(services: Serving, principal: Asking, window_id: str, body: MaintenanceEndBody) -> Any:
    """Move the end of a window, also of one that runs. Owners and renters are told."""
    until_ns = moment("ends_at", body.ends_at) or 0
    return _out(services, principal, await services.maintenance.set_end(principal, window_id, until_ns))


@route.delete(
    "/maintenance-windows/{window_id}", may=Permission.FLEET_OPERATE, reach=Reach.OWN_OR_OPERATED, status_code=204
)
async def remove_maintenance_window(services: Serving, principal: Asking, window_id: str) -> Response:
    """Remove a window that has not begun, or end one that has. Owners and renters are told."""
    await services.maintenance.remove(principal, window_id)
    return Response(status_code=204)
