"""Routes of the home pages: troubles, GPUs by state over time, the hosts of a provider."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from fastapi import Query
from pydantic import Field

from windrow_master.api.answers import Out, Read, Time
from windrow_master.api.attention import SUBJECTS_MAX, attention
from windrow_master.api.deps import Asking, Services, Serving
from windrow_master.api.health import conditions_of
from windrow_master.api.overview import Tally
from windrow_master.api.overview_routes import Own, UseCounts, counts_json
from windrow_master.api.route import Routes
from windrow_master.api.standing_routes import slot_beside, slots_beside
from windrow_master.api.visibility import oversees
from windrow_master.fleet import use_history_repository as use_history
from windrow_master.fleet.availability import Availability, Headline, gpus_shown, headline, slots_shown
from windrow_master.fleet.model import AdminState, Slot, Verification
from windrow_master.fleet.slices import with_one_cpu_slot
from windrow_master.fleet.view import Entry
from windrow_master.identity.decide import Permission
from windrow_master.identity.model import Principal
from windrow_master.market import unrented
from windrow_master.store.unit import UnitOfWork
from windrow_proto.conditions import Severity
from windrow_proto.ids import GpuUuid, HostId
from windrow_proto.units import DAY, HOUR, SECOND, time_text

route = Routes("overview")

HOSTS_MAX: Final = 12
"""Named on a provider's home; a page of all is /hosts."""
EXPLAINED_MAX: Final = 40
"""Idle slots that are asked why nobody rents them: one of each tier of a host."""
SPANS: Final = {"day": DAY, "week": 7 * DAY, "month": 30 * DAY}
PRICE_FITS: Final = "Its price is not the reason"


class AffectedOut(Out):
    """One host, GPU or relay that has the trouble."""

    name: Annotated[str, Field(description="Of the host or the region")]
    detail: str
    host_id: str | None
    gpu_id: str | None
    gpu: Annotated[int | None, Field(description="The index of the GPU")]
    access_id: str | None
    rented: Annotated[bool, Field(description="Somebody has it now")]
    simulated: bool
    since: Time | None


class AttentionOut(Out):
    """One kind of trouble, with all that has it."""

    kind: Annotated[str, Field(description="Stable: faulty, hot, offline, … or `condition:` and its code")]
    title: str
    remedy: str
    severity: Severity
    count: int
    affected: Annotated[list[AffectedOut], Field(description=f"{SUBJECTS_MAX} at most"), Read("shown")]


class AttentionListOut(Out):
    """What a person has to look after, the most pressing first."""

    items: list[AttentionOut]


class UsePointOut(Out):
    """The mean number of GPUs in each state in one span of time."""

    at: Time
    rented: float
    idle: float
    paused: float
    faulty: float
    offline: float


class UseHistoryOut(Out):
    """GPUs by state over time. A span in which no Master looked is absent."""

    step_s: int
    points: list[UsePointOut]


class OwnHostOut(Out):
    """One of the account's hosts."""

    id: str
    name: str
    simulated: bool
    headline: str
    reason: str
    remedy: str | None
    gpus: UseCounts


class WhyOut(Out):
    """A reason why slots are not rented, or a step to a better grade, with the hosts that it is about."""

    tier: str
    words: str
    host_id: Annotated[str, Field(description="The first of them by name")]
    host_name: str
    hosts: int


class OwnHostsOut(Out):
    """The hosts of the account."""

    hosts: UseCounts
    gpus: UseCounts
    items: Annotated[list[OwnHostOut], Field(description=f"Those with a trouble first, {HOSTS_MAX} at most")]
    unrented: list[WhyOut]
    grades: Annotated[list[WhyOut], Field(description="What keeps their grade down")]


@route.get("/overview/attention", may=Permission.FLEET_READ, answer=AttentionListOut)
async def attention_now(services: Serving, principal: Asking, own: Own = False) -> Any:
    """What a person has to look after: for operators and auditors in the whole market, for others at their hosts."""
    if own or not oversees(principal):
        groups = attention(_own(services, principal), no_relay=False)
    else:
        attached = {one["access_id"] for one in services.health.accesses()}
        away = attached | services.accesses.drained.keys()
        gone = [
            (one["access_id"], one.get("region") or "")
            for one in services.health.departed()
            if one["access_id"] not in away
        ]
        groups = attention(services.fleet.view, conditions_of(services), gone, no_relay=not attached)
    return {"items": [AttentionOut.of(group) for group in groups]}


@route.get("/overview/history", may=Permission.FLEET_READ, answer=UseHistoryOut)
async def use_over_time(services: Serving, span: Annotated[Literal["day", "week", "month"], Query()] = "day") -> Any:
    """GPUs by state over the last day (in steps of five minutes), week or month (of an hour)."""
    step_ns = use_history.SHORT_NS if span == "day" else HOUR
    from_ns = services.clock.wall_ns() - SPANS[span]
    points = await services.fleet.uses_since(step_ns, from_ns)
    return {
        "step_s": step_ns // SECOND,
        "points": [
            {"at": time_text(one.at_ns), **{state.value: count for state, count in one.counts.items()}}
            for one in points
        ],
    }


@route.get("/overview/hosts", may=Permission.FLEET_READ, answer=OwnHostsOut)
async def own_hosts(services: Serving, principal: Asking) -> Any:
    """The account's hosts: how they are, why their idle slots are not rented, what keeps their grade down."""
    found = [(entry, headline(entry)) for entry in _own(services, principal)]
    ordered = sorted(found, key=lambda one: (not one[1].remedy and one[1].word != "offline", one[0].host.name))
    hosts, gpus = Tally(), Tally()
    for entry, shown in found:
        hosts.add(shown.state)
        for gpu in gpus_shown(entry).values():
            gpus.add(gpu.state)
    entries = [entry for entry, _ in sorted(found, key=lambda one: one[0].host.name)]
    return {
        "hosts": counts_json(hosts),
        "gpus": counts_json(gpus),
        "items": [_own_host(entry, shown) for entry, shown in ordered[:HOSTS_MAX]],
        "unrented": await _unrented(services, entries),
        "grades": _why(
            (entry, slot.tier, reason.partition(": ")[2])
            for entry in entries
            for slot in with_one_cpu_slot(entry.slots)
            for reason in slot.tier_reasons
            if reason.startswith(unrented.GRADE_MARKS)
        ),
    }


def _own(services: Services, principal: Principal) -> list[Entry]:
    return [
        entry
        for entry in services.fleet.view
        if entry.host.owner_account == principal.account_id and entry.host.admin_state is not AdminState.RETIRED
    ]


def _own_host(entry: Entry, shown: Headline) -> dict[str, Any]:
    tally = Tally()
    for gpu in gpus_shown(entry).values():
        tally.add(gpu.state)
    return {
        "id": entry.host.host_id,
        "name": entry.host.name,
        "simulated": entry.host.simulated,
        "headline": shown.word,
        "reason": shown.reason,
        "remedy": shown.remedy or None,
        "gpus": counts_json(tally),
    }


async def _unrented(services: Services, entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """One idle slot of each tier of a host speaks for the others."""
    idle = {
        (entry.host.host_id, slot.tier): (entry, slot)
        for entry in entries
        for slot, shown in zip(entry.slots, slots_shown(entry), strict=True)
        if slot.tier and shown.state is Availability.IDLE
    }
    chosen = list(idle.values())[:EXPLAINED_MAX]
    now_ns = services.clock.wall_ns()

    def read(uow: UnitOfWork) -> Any:
        latest = {one.host.host_id: services.fleet.challenges.latest(uow, one.host.host_id) for one, _ in chosen}
        return services.market.book(uow), services.market.demand(uow, now_ns - unrented.DEMAND_DAYS * DAY), latest

    book, demand, latest = await services.store.read(read)
    beside = slots_beside(services, book)
    return _why(
        (entry, slot.tier, reason)
        for entry, slot in chosen
        for reason in _reasons(slot_beside(beside, entry, slot, demand, _of(latest, entry), now_ns), slot)
    )


def _of(latest: Mapping[HostId, Mapping[GpuUuid, Verification]], entry: Entry) -> Mapping[GpuUuid, Verification]:
    return latest[entry.host.host_id]


def _reasons(around: unrented.Slot, slot: Slot) -> list[str]:
    """Without those of its grade, and without the word that its price is no reason."""
    grades = unrented.grades(slot.tier_reasons)
    return [one for one in unrented.reasons(around) if one not in grades and not one.startswith(PRICE_FITS)]


def _why(found: Iterable[tuple[Entry, str, str]]) -> list[dict[str, Any]]:
    """Each reason once, the most frequent first."""
    hosts: dict[tuple[str, str], dict[HostId, str]] = {}
    for entry, tier, words in found:
        hosts.setdefault((tier, words), {})[entry.host.host_id] = entry.host.name
    most = Counter({key: len(of) for key, of in hosts.items()}).most_common(SUBJECTS_MAX)
    firsts = {key: next(iter(hosts[key].items())) for key, _ in most}
    return [
        {"tier": tier, "words": words, "host_id": host_id, "host_name": name, "hosts": count}
        for (tier, words), count in most
        for host_id, name in [firsts[tier, words]]
    ]
