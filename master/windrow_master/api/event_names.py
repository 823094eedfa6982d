"""Gives the ids in events their names: of hosts, GPUs and relays, and of what else the caller may see."""

from collections.abc import Iterable, Mapping

from windrow_master.api import visibility
from windrow_master.api.services import Services
from windrow_master.clusters import lookup as clusters
from windrow_master.identity.model import Principal
from windrow_master.identity.people_lookup import name_of
from windrow_master.jobs import service as jobs
from windrow_master.jobs.model import JobId
from windrow_master.store.model import EventRow
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import ClusterId, HostId

Names = Mapping[str, str]


def names_in(services: Services, uow: UnitOfWork, principal: Principal, rows: Iterable[EventRow]) -> Names:
    """The name of each thing that these events are about, and of who caused them, by its id. An id without a name, or
    whose name is not the caller's to see, is absent."""
    found: dict[str, str] = {}
    for row in rows:
        found |= shared_names(services, row.subjects, row.actor)
    others = {one for row in rows for one in (*row.subjects, _actor_id(row.actor))} - found.keys()
    for one in others:
        if (name := _kept(uow, one)) and (one == principal.user_id or visibility.sees_subject(uow, principal, one)):
            found[one] = name
    return found


def shared_names(services: Services, subjects: Iterable[str], actor: str) -> Names:
    """Of the hosts, GPUs and relays of one event, which everybody may know. A GPU is found on the event's own host."""
    wanted = {*subjects, _actor_id(actor)}
    entries = [entry for one in wanted if (entry := services.fleet.view.get(HostId(one))) is not None]
    found: dict[str, str] = {entry.host.host_id: entry.host.name for entry in entries}
    for one in wanted - found.keys():
        if one.startswith("access_"):
            found[one] = relay_names(services).get(one, "")
        for entry in entries:
            if (gpu := entry.host.gpu(one)) is not None:
                found[one] = f"{entry.host.name} · GPU {gpu.index}"
    return {one: name for one, name in found.items() if name}


def relay_names(services: Services) -> Names:
    """`relay north`, and where a region has several, `relay north 2`, in the order of their ids."""
    regions = {one["access_id"]: one.get("region") or "" for one in services.health.departed()}
    regions |= {access_id: one.region for access_id, one in services.accesses.drained.items()}
    regions |= {one["access_id"]: one["region"] for one in services.health.accesses()}
    beside: dict[str, list[str]] = {}
    for access_id in sorted(regions):
        beside.setdefault(regions[access_id], []).append(access_id)
    return {
        access_id: f"relay {region} {number}" if len(ids) > 1 else f"relay {region}"
        for region, ids in beside.items()
        if region
        for number, access_id in enumerate(ids, 1)
    }


def _actor_id(actor: str) -> str:
    """The id of who caused an event: of `host/host_1` the second half."""
    return actor.partition("/")[2]


def _kept(uow: UnitOfWork, one: str) -> str | None:
    match one.partition("_")[0]:
        case "cluster":
            cluster = clusters.find(uow, ClusterId(one))
            return None if cluster is None else cluster.name
        case "job":
            return jobs.name_of(uow, JobId(one))
        case "account" | "user":
            return name_of(uow, one)
    return None
