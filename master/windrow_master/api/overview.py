"""Sums up the installation: the state of each host and GPU just now, by tier, and the earnings by day. Pure.

The states are those of fleet/availability.py. A GPU counts once, whole or in parts.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from windrow_master.fleet.availability import Availability, Headline, gpus_shown, headline, needs, slots_shown
from windrow_master.fleet.model import CPU_KIND, AdminState
from windrow_master.fleet.slices import room
from windrow_master.fleet.view import Entry
from windrow_master.market.model import PriceUnit
from windrow_master.market.offers import PriceBook, unit_of
from windrow_proto.ids import AccountId
from windrow_proto.units import DAY, Microcents

DAYS: Final = 31
"""Known of what was earned: a month has no more."""


@dataclass(slots=True)
class Tally:
    """The number of one kind in each state."""

    counts: dict[Availability, int] = field(default_factory=lambda: dict.fromkeys(Availability, 0))

    def add(self, state: Availability) -> None:
        """One more."""
        self.counts[state] += 1


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


def glance(entries: Iterable[Entry], book: PriceBook | None, owner: AccountId | None = None) -> Glance:
    """Count all hosts that are not retired. book: None: without what they earn. owner: whose hosts' earnings are
    summed; None: everybody's."""
    sums = Glance()
    for entry in entries:
        host = entry.host
        if host.admin_state is AdminState.RETIRED:
            continue
        state = headline(entry).state
        sums.hosts.add(state)
        sums.simulated_hosts += host.simulated
        for tier in _count_gpus(sums, entry) or {host.tier} - {""}:
            sums.of_tier(tier, host.simulated).hosts.add(state)
        if book is None or host.simulated:  # what is simulated earns nothing
            continue
        if owner in (None, host.owner_account):
            _add_worth(sums, entry, book)
    return sums


def troubled(entries: Iterable[Entry]) -> list[tuple[Entry, Headline]]:
    """Return the hosts that a person has to look after, by name."""
    found = [(entry, shown) for entry in entries if (shown := needs(entry)) is not None]
    return sorted(found, key=lambda one: one[0].host.name)


def _count_gpus(sums: Glance, entry: Entry) -> set[str]:
    """Count the GPUs of a host, and return each tier in which it has a GPU or processors."""
    host, tiers = entry.host, {slot.gpu_uuid: slot.tier for slot in entry.slots}
    found = {slot.tier for slot in entry.slots if slot.tier and unit_of(slot.tier) is PriceUnit.PROCESSOR}
    for uuid, shown in gpus_shown(entry).items():
        sums.gpus.add(shown.state)
        sums.simulated_gpus += host.simulated
        tier = tiers.get(uuid)
        if tier:
            sums.of_tier(tier, host.simulated).gpus.add(shown.state)
            found.add(tier)
    return found


def _add_worth(sums: Glance, entry: Entry, book: PriceBook) -> None:
    """Processors that work has are rented, the others are idle; free slots of a host count once."""
    host, is_told = entry.host, False
    for slot, shown in zip(entry.slots, slots_shown(entry), strict=True):
        units = 1
        if slot.kind == CPU_KIND:
            is_idle = shown.state is Availability.IDLE
            units = 0 if is_idle and is_told else room(host, entry.slots).cpus if is_idle else slot.cpus
            is_told = is_told or is_idle
        worth = book.price(host.owner_account, slot.tier, slot.share_milli) * units if slot.tier else 0
        if shown.state is Availability.RENTED:
            sums.rented_per_hour += worth
        elif shown.state is Availability.IDLE:
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
        """The last DAYS UTC days, oldest first, of one ledger account or of all: start of the day and sum."""
        today = now_ns // DAY
        sums = dict.fromkeys(range(today - DAYS + 1, today + 1), 0)
        for (owner, day), amount in self.by_day.items():
            if day in sums and account in (None, owner):
                sums[day] += amount
        return [(day * DAY, Microcents(amount)) for day, amount in sums.items()]
