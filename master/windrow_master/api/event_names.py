"""Gives ids their names, in events and in the audit log: of hosts, GPUs and relays, and of what else the caller may
see."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from windrow_master.api import visibility
from windrow_master.api.answers import EventOut
from windrow_master.api.event_texts import ID, text_of, title_of
from windrow_master.api.services import Services
from windrow_master.clusters import lookup as clusters
from windrow_master.fleet import lookup as fleet
from windrow_master.fleet.availability import part_name
from windrow_master.fleet.commands import WORDS
from windrow_master.fleet.tiers import tier_words
from windrow_master.identity.model import Principal
from windrow_master.identity.people_lookup import name_of
from windrow_master.jobs import service as jobs
from windrow_master.jobs.model import JobId
from windrow_master.market import lookup as market
from windrow_master.market.model import RentalId
from windrow_master.store.model import AuditEntry, EventRow
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import ClusterId, CommandId, HostId

Names = Mapping[str, str]
TIER = "tier/"
OTHERS: Final = {
    "job": "other work",
    "cluster": "other work",
    "account": "another project",
    "organisation": "your organisation",
    "user": "somebody else",
    "service": "a service account",
}
"""The words for what a caller may not see the name of. The only organisation that is told of is the caller's."""
_ACTOR: Final = re.compile(r"\b(?:account|user|service)/(?=[a-z]+_[0-9a-f]{32}\b)")
_OF_RENTERS = ("cluster.", "job.", "rental.", "terminal.", "tunnel.", "volume.")
"""How the kinds of events begin whose texts have names by renters."""


def names_in(services: Services, uow: UnitOfWork, principal: Principal, rows: Iterable[EventRow]) -> Names:
    """The name of each thing that these events are about, and of who caused them, by its id. An id without a name, or
    whose name is not the caller's to see, is absent."""
    found: dict[str, str] = {}
    for row in rows:
        found |= shared_names(services, row.subjects, row.actor, row.text)
    others = {one for row in rows for one in _mentioned(row.subjects, row.actor, row.text)} - found.keys()
    return found | _seen(uow, principal, others)


def _seen(uow: UnitOfWork, principal: Principal, ids: Iterable[str]) -> dict[str, str]:
    """The names that the caller may see."""
    return {
        one: name
        for one in ids
        if (name := _kept(uow, one)) and (one == principal.user_id or visibility.sees_subject(uow, principal, one))
    }


def as_told(services: Services, uow: UnitOfWork, principal: Principal, texts: Sequence[str]) -> list[str]:
    """Texts with names in the place of ids. What is not the caller's to see is called by its kind."""
    wanted = {one for text in texts for one in ID.findall(text)}
    names = shared_names(services, wanted, "")
    names = {**names, **_seen(uow, principal, wanted - names.keys())}

    def name(one: str) -> str:
        return names.get(one) or OTHERS.get(one.partition("_")[0]) or one

    return [ID.sub(lambda found: name(found[0]), _ACTOR.sub("", text)) for text in texts]


def as_seen(uow: UnitOfWork, principal: Principal, row: EventRow) -> EventRow:
    """An event as the caller may know it: the owner of a host reads what happens there, but neither the ids of who
    rents it nor the names of their work."""
    if visibility.oversees(principal):
        return row
    hidden = {one for one in row.subjects if not visibility.sees_subject(uow, principal, one)}
    if not hidden:
        return row
    subjects = tuple(one for one in row.subjects if one not in hidden)
    actor = _actor_id(row.actor)
    is_known = actor == principal.user_id or visibility.sees_subject(uow, principal, actor)
    shown = replace(row, subjects=subjects, actor=row.actor if is_known else "")
    names = [name for one in hidden if (name := _kept(uow, one))]
    if not row.kind.startswith(_OF_RENTERS) and not any(name in row.text for name in names):
        fields = {key: text for key, text in row.fields.items() if not any(one in text for one in (*hidden, *names))}
        return replace(shown, fields=fields)
    hosts = ", ".join(one for one in subjects if one.startswith("host_"))
    return replace(shown, text=f"{title_of(row.kind, row.subjects, row.fields)}: {hosts}", fields={})


def event_json(row: EventRow, names: Names) -> dict[str, Any]:
    """One event with the names of what it mentions. names: of a whole page."""
    mine = {one: names[one] for one in _mentioned(row.subjects, row.actor, row.text) if one in names}
    return EventOut.of(row, names=mine, text=text_of(row.kind, row.text, row.fields, mine))


def audit_names(services: Services, uow: UnitOfWork, entries: Sequence[AuditEntry]) -> Names:
    """The name of each thing that these entries of the audit log mention, by its id: who reads the log sees all."""
    wanted = {one for entry in entries for one in mentioned(entry)}
    relays = relay_names(services)
    found = {one: relays[one] for one in wanted if one in relays}
    parts = {one for one in wanted if "/cpu/" in one or one.startswith(("GPU-", "MIG-", "MPS-"))}
    for known in services.fleet.view:
        host = known.host
        found |= {host.host_id: host.name} if host.host_id in wanted else {}
        found |= {one: f"{host.name} · {name}" for one in parts if (name := part_name(host, one)) is not None}
    for one in wanted - found.keys():
        if name := _kept(uow, one):
            found[one] = name
    return found


def mentioned(entry: AuditEntry) -> set[str]:
    """The ids in an entry of the audit log."""
    return _mentioned((entry.subject,), entry.actor, " ".join((entry.reason, *entry.fields.values())))


def shared_names(services: Services, subjects: Iterable[str], actor: str, text: str = "") -> Names:
    """Of the hosts, GPUs and relays of one event, which everybody may know. A GPU is found on the event's own host."""
    wanted = _mentioned(subjects, actor, text)
    entries = [entry for one in wanted if (entry := services.fleet.view.get(HostId(one))) is not None]
    found: dict[str, str] = {entry.host.host_id: entry.host.name for entry in entries}
    for one in wanted - found.keys():
        if one.startswith("access_"):
            found[one] = relay_names(services).get(one, "")
        elif one.startswith(TIER):
            found[one] = tier_words(one.removeprefix(TIER))
        for entry in entries:
            if (part := part_name(entry.host, one)) is not None:
                found[one] = f"{entry.host.name} · {part}"
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


def _mentioned(subjects: Iterable[str], actor: str, text: str) -> set[str]:
    """The ids of subjects and of the actor, and those in a text."""
    return {*subjects, _actor_id(actor), *ID.findall(text)} - {""}


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
        case "rental":
            return market.name_of(uow, RentalId(one))
        case "command":
            command = fleet.find_command(uow, CommandId(one))
            return None if command is None else WORDS.get(command.kind)
        case "account" | "user" | "token" | "service" | "organisation":
            return name_of(uow, one)
    return None
