"""Resolves names: where a path or a request names a host, its name does as well as its id while no other host has it;
and what a request wants to be near may be a volume."""

from dataclasses import replace
from typing import TypeVar

from fastapi import Request

from windrow_master.api.services import Services
from windrow_master.fleet.model import AdminState
from windrow_master.identity.model import Principal
from windrow_master.spec import Resources
from windrow_proto.errors import Conflict, NotFound
from windrow_proto.ids import HostId, starts

HOST = "host_id"
R = TypeVar("R", bound=Resources)


def resolve(request: Request, services: Services) -> None:
    """Put the id of a host in the place of its name; raise Conflict that says the ids where it may mean several: those
    of that name, and those whose ids begin so.

    A retired host is meant only where no other has the name. What names no host stays, and its route says so.
    """
    wanted = request.path_params.get(HOST)
    if wanted is not None:
        request.path_params[HOST] = host_of(services, wanted)


def host_of(services: Services, wanted: str) -> str:
    """The id of the host of this name; what names none, or is an id, as it is. Raises Conflict as `resolve` does."""
    hosts = [entry.host for entry in services.fleet.view]
    if any(host.host_id == wanted for host in hosts):
        return wanted
    named = [host for host in hosts if host.name == wanted]
    named = [host for host in named if host.admin_state is not AdminState.RETIRED] or named
    meant = named and [host for host in hosts if host in named or starts(wanted, host.host_id)]
    if len(meant) > 1:
        ids = ", ".join(f"{host.host_id} ({host.name})" for host in meant)
        raise Conflict(f"{wanted} may mean {len(meant)} hosts: name one of them by its id: {ids}")
    return named[0].host_id if named else wanted


def with_host(services: Services, asked: R) -> R:
    """The request with the id of the host that it names, if any. Raises Conflict as `host_of` does."""
    return asked if asked.host_id is None else replace(asked, host_id=HostId(host_of(services, asked.host_id)))


async def with_region(services: Services, principal: Principal, asked: R) -> R:
    """The request with a region in the place of the volume of the caller's that its `near` names: where the machine is
    that has the volume now. A region of that name comes first. Raises Conflict where no machine has it."""
    name, colon, most_ms = (asked.near or "").partition(":")
    fleet = services.fleet
    if not name or name in fleet.relays.regions().values() or any(one.host.region == name for one in fleet.view):
        return asked
    try:
        volume = await services.volumes.get(principal, name)
    except NotFound:
        return asked  # a region of which nothing is known: the refusal says so
    for use, _ in sorted(volume.users, key=lambda one: not one[0].writes):
        view = await services.clusters.get(principal, use.cluster_id)
        for workload in view.workloads:
            region = "" if workload.is_past else services.fleet.entry(workload.host_id).host.region
            if region:
                return replace(asked, near=f"{region}{colon}{most_ms}")
    said = f"No machine that has the volume {name} is in a known region now: name a region, or leave near out."
    raise Conflict(f"{said} Who has it: windrow volume ls", subject="near")
