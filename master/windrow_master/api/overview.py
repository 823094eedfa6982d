"""Sums up the installation: the use of each host and GPU just now, by tier, and the earnings by day. Pure.

One thing is in exactly one of five groups, the first of these that holds: faulty (its slot faulted, or its host is in
quarantine), offline (its host is not online), rented (somebody holds it), withheld (nobody may have it just now:
drained, under maintenance, or busy with another share of the same host), idle. A GPU counts by its slot, a host by all
of its slots.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from windrow_master.fleet.model import AdminState, LinkState, Slot, SlotState
from windrow_master.fleet.states import SLOT_HELD
from windrow_master.fleet.view import Entry
from windrow_master.market.model import PriceUnit
from windrow_master.market.offers import PriceBook, unit_of
from windrow_proto.units import DAY, Microcents

DAYS: Final = 7
"""Shown of what was earned: a week has every kind of day once."""
GPU: Final = "gpu"


class Use(StrEnum):
    """The use of a host or GPU now."""

    IDLE = "idle"
    RENTED = "rented"
    FAULTY = "faulty"
    OFFLINE = "offline"
    WITHHELD = "withheld"


@dataclass(slots=True)
class Tally:
    """The number of one kind in each group."""

    counts: dict[Use, int] = field(default_factory=lambda: dict.fromkeys(Use, 0))

    def add(self, use: Use) -> None:
        """One more."""
        self.counts[use] += 1


@dataclass(slots=True)
class TierTally:
    """One tier, real and simulated apart."""

    tier: str
    simulated: bool
    hosts: Tally = field(default_factory=Tally)
    gpus: Tally = field(default_factory=Tally)


@dataclass(slots=True)
class Glance:
    """The whole fleet: sums, tiers, and what an hour of it brings: of what is rented, and of what lies idle."""

    hosts: Tally = field(default_factory=Tally)
    gpus: Tally = field(default_factory=Tally)
    simulated_hosts: int = 0
    simulated_gpus: int = 0
    tiers: dict[tuple[bool, str], TierTally] = field(default_factory=dict)
    rented_per_hour: int = 0
    idle_per_hour: int = 0

    def of_tier(self, tier: str, simulated: bool) -> TierTally:
        """The tally of one tier, made when it is first met."""
        return self.tiers.setdefault((simulated, tier), TierTally(tier, simulated))


def slot_use(entry: Entry, slot: Slot) -> Use:
    """The group of one slot."""
    host = entry.host
    if slot.state is SlotState.FAULTED or host.admin_state is AdminState.QUARANTINED:
        return Use.FAULTY
    if host.link_state is not LinkState.ONLINE:
        return Use.OFFLINE
    if slot.state in SLOT_HELD:
        return Use.RENTED
    return Use.IDLE if slot.is_offered and host.admin_state is AdminState.ACTIVE else Use.WITHHELD


def host_use(entry: Entry) -> Use:
    """The group of one host: rented when any slot of it is, idle when any may be had."""
    uses = {slot_use(entry, slot) for slot in entry.slots}
    if entry.host.admin_state is AdminState.QUARANTINED:
        return Use.FAULTY
    if entry.host.link_state is not LinkState.ONLINE:
        return Use.OFFLINE
    order = (Use.FAULTY, Use.RENTED, Use.IDLE)
    return next((use for use in order if use in uses), Use.WITHHELD)


def glance(entries: Iterable[Entry], book: PriceBook) -> Glance:
    """Count all hosts that are not retired."""
    sums = Glance()
    for entry in entries:
        host = entry.host
        if host.admin_state is AdminState.RETIRED:
            continue
        use = host_use(entry)
        sums.hosts.add(use)
        sums.simulated_hosts += host.simulated
        if host.tier:
            sums.of_tier(host.tier, host.simulated).hosts.add(use)
        for slot in entry.slots:
            _count_slot(sums, entry, slot, book)
    return sums


def _count_slot(sums: Glance, entry: Entry, slot: Slot, book: PriceBook) -> None:
    use, host = slot_use(entry, slot), entry.host
    if slot.kind == GPU:
        sums.gpus.add(use)
        sums.simulated_gpus += host.simulated
        if slot.tier:
            sums.of_tier(slot.tier, host.simulated).gpus.add(use)
    if not slot.tier or host.simulated:
        return  # what is simulated earns nothing
    processors = (host.inventory.cpu_count if host.inventory else None) or 1
    units = processors if unit_of(slot.tier) is PriceUnit.PROCESSOR else 1
    worth = book.price(host.owner_account, slot.tier, slot.share_milli) * units
    if use is Use.RENTED:
        sums.rented_per_hour += worth
    elif use is Use.IDLE:
        sums.idle_per_hour += worth


@dataclass(slots=True)
class Earnings:
    """The earnings of each account by UTC day, folded from the ledger a part at a time; `number` is the last row in
    it."""

    number: int = 0
    by_day: dict[tuple[str, int], int] = field(default_factory=dict)

    def fold(self, number: int, sums: Iterable[tuple[str, int, int]], now_ns: int) -> None:
        """Add the sums of the rows after the last, up to `number`, and let go of days that are shown no more."""
        self.number = max(self.number, number)
        for account, day, amount in sums:
            key = account, day
            self.by_day[key] = self.by_day.get(key, 0) + amount
        first = now_ns // DAY - DAYS + 1
        self.by_day = {key: amount for key, amount in self.by_day.items() if key[1] >= first}

    def days(self, account: str | None, now_ns: int) -> list[tuple[int, Microcents]]:
        """The last seven UTC days, oldest first, of one ledger account or of all: start of the day and sum."""
        today = now_ns // DAY
        sums = dict.fromkeys(range(today - DAYS + 1, today + 1), 0)
        for (owner, day), amount in self.by_day.items():
            if day in sums and account in (None, owner):
                sums[day] += amount
        return [(day * DAY, Microcents(amount)) for day, amount in sums.items()]
