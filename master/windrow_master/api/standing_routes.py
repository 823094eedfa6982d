"""Route of a host's standing: its reliability with the evidence, and why nobody rents its free slots."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from windrow_master.api.answers import Out
from windrow_master.api.auth import Reach
from windrow_master.api.deps import Services, Serving
from windrow_master.api.route import Routes
from windrow_master.fleet import availability, reliability_counts
from windrow_master.fleet.model import AdminState, Slot, Verification
from windrow_master.fleet.slices import with_one_cpu_slot
from windrow_master.fleet.states import VerifyState
from windrow_master.fleet.view import Entry
from windrow_master.identity.decide import Permission
from windrow_master.market import unrented
from windrow_master.market.offers import PriceBook
from windrow_master.verification import schedule
from windrow_proto.ids import GpuUuid, HostId
from windrow_proto.units import DAY, Microcents

route = Routes("standing")


class ReliabilityOut(Out):
    """The reliability of a host: the lower bound of the chance that it is there, less its faults."""

    figure: Annotated[float | None, Field(description="From 0 to 1, as its tier counts it; null: too little was seen")]
    words: str
    good: Annotated[
        float,
        Field(description="Points: 1 for five minutes there, 4 while rented; halved in 14 days"),
    ]
    bad: float
    faults: Annotated[float, Field(description="Of its own: of its cards, and of starts")]
    aborts: Annotated[float, Field(description="Leases that it broke off")]


class UnrentedOut(Out):
    """A slot that nobody rents, and why."""

    slot_id: str
    name: Annotated[str, Field(description="`GPU 3`, or `CPU share 0`")]
    gpu: str | None
    tier: str | None
    reasons: Annotated[list[str], Field(description="The most telling first")]


class StandingOut(Out):
    """The standing of a host."""

    host_id: str
    reliability: ReliabilityOut
    unrented: list[UnrentedOut]


@route.get("/hosts/{host_id}/standing", may=Permission.FLEET_READ, reach=Reach.ALL, answer=StandingOut)
async def standing(services: Serving, host_id: str) -> Any:
    """The reliability of a host, with the evidence, and why each of its slots without a lease is not rented."""
    entry = services.fleet.entry(HostId(host_id))
    now_ns = services.clock.wall_ns()
    since_ns = now_ns - unrented.DEMAND_DAYS * DAY
    held, latest, book, demand = await services.store.read(
        lambda uow: (
            services.fleet.reliability.record(uow, entry.host.host_id),
            services.fleet.challenges.latest(uow, entry.host.host_id),
            services.market.book(uow),
            services.market.demand(uow, since_ns),
        )
    )
    beside = slots_beside(services, book)
    return {
        "host_id": entry.host.host_id,
        "reliability": {
            "figure": held.figure if held is not None else None,
            "words": reliability_counts.words(held, now_ns),
            **reliability_counts.evidence(held, now_ns),
        },
        "unrented": [
            {
                "slot_id": slot.slot_id,
                "name": availability.part_name(entry.host, slot.slot_id) or slot.slot_id,
                "gpu": slot.gpu_uuid,
                "tier": slot.tier or None,
                "reasons": list(unrented.reasons(slot_beside(beside, entry, slot, demand, latest, now_ns))),
            }
            for slot in with_one_cpu_slot(entry.slots)
            if slot.holder is None
        ],
    }


Beside = Mapping[tuple[str, bool], Sequence[tuple[Slot, Microcents]]]
"""The slots of a tier, real or simulated, with their prices."""


def slots_beside(services: Services, book: PriceBook) -> Beside:
    """Return all slots that have a tier; of the processors of a host one."""
    found: dict[tuple[str, bool], list[tuple[Slot, Microcents]]] = {}
    for one in services.fleet.view:
        for slot in with_one_cpu_slot(one.slots):
            if slot.tier:
                price = Microcents(book.price(one.host.owner_account, slot.tier))
                found.setdefault((slot.tier, one.host.simulated), []).append((slot, price))
    return found


def slot_beside(
    beside: Beside,
    entry: Entry,
    slot: Slot,
    demand: Mapping[tuple[str, bool], int],
    latest: Mapping[GpuUuid, Verification],
    now_ns: int,
) -> unrented.Slot:
    """Return a slot with what is around it. latest: the verifications of its host's GPUs."""
    host = entry.host
    all_of_tier = beside.get((slot.tier, host.simulated), ())
    others = [(other, price) for other, price in all_of_tier if other.slot_id != slot.slot_id]
    own = next((price for other, price in all_of_tier if other.slot_id == slot.slot_id), Microcents(0))
    is_proved = host.verify_state is VerifyState.VERIFIED or slot.gpu_uuid is None
    return unrented.Slot(
        slot.tier,
        _hindrance(entry, slot, now_ns),
        own,
        [price for _, price in others],
        sum(other.is_offered for other, _ in others),
        demand.get((slot.tier, host.simulated), 0),
        "" if is_proved or host.simulated else schedule.summary(host, latest),
        slot.tier_reasons,
        host.simulated,
    )


def _hindrance(entry: Entry, slot: Slot, now_ns: int) -> str:
    host = entry.host
    if not slot.is_offered:
        return (slot.unavailable or f"it is {slot.state}").rstrip(".")
    if host.admin_state is not AdminState.ACTIVE or not host.is_settled(now_ns):
        headline = availability.headline(entry)
        is_back = headline.word in availability.AT_WORK
        return "its host came back just now" if is_back else f"its host is {headline.word}: {headline.reason}"
    return ""
