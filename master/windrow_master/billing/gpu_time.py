"""Adds up the time of GPUs by host, GPU, project or model: rented, idle, paused, faulty and offline. Pure.

Of a GPU in parts the parts count, each as its share. The processors of a host count in its owner's sums, where it has
no GPU, as one: the time of a share of them is the part of that which it has. In the sums of all projects GPUs alone
count.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from windrow_master.fleet.model import CPU_KIND, Slot, SlotState
from windrow_master.fleet.slices import BARE, CUT, SHARED, WHOLE_MILLI
from windrow_master.fleet.slot_leases import UNREPORTED
from windrow_master.fleet.view import Entry
from windrow_master.market.model import PriceUnit
from windrow_master.market.months import Cell, Row
from windrow_master.market.occupancy import YES, Change, Fact, Times, by_day, spans
from windrow_master.market.offers import PriceBook, card_tier, unit_of
from windrow_proto.ids import HostId, SlotId, cpu_slot
from windrow_proto.units import DAY, SECOND, Microcents

EARNED_BY_ALL: Final = ("project", "model")
"""What the earnings of all projects are divided by."""
_NO_TIME: Final = (CUT, SHARED, BARE, UNREPORTED)
"""Slots that are unavailable for this are another's time, or nobody's."""


@dataclass(slots=True)
class Share:
    """A row with its name. host_id: of a host or GPU. times: of GPUs, where it has any."""

    row: Row
    name: str
    host_id: str | None = None
    is_simulated: bool = False
    times: Times | None = None


def model_of(tier: str) -> str:
    """The GPU model of a tier: `h100` of `h100:1g.10gb/A`; `cpu` of processors."""
    return card_tier(tier).partition("/")[0]


class Hosts:
    """The hosts whose time counts, and which row each slot belongs to. by: host, gpu, project or model."""

    def __init__(self, by: str, entries: Sequence[Entry]) -> None:
        self._by = by
        self._slots = {slot.slot_id: (slot, entry) for entry in entries for slot in entry.slots}
        self._hosts = {str(entry.host.host_id): entry for entry in entries}
        self.counted = [(slot, entry) for slot, entry in self._slots.values() if self._counts(slot, entry)]
        self.counted_ids = {slot.slot_id for slot, _ in self.counted}

    def _counts(self, slot: Slot, entry: Entry) -> bool:
        has_gpus = bool(entry.host.inventory and entry.host.inventory.gpus) or self._by in EARNED_BY_ALL
        is_gone = slot.unavailable in _NO_TIME and slot.state is not SlotState.FAULTED
        is_its_processors = slot.slot_id == cpu_slot(entry.host.host_id, 0) and not has_gpus
        return (slot.card is not None or is_its_processors) and not is_gone

    @property
    def subjects(self) -> set[str]:
        """The ids whose changes say in which state their slots were."""
        return {*self._hosts, *self.counted_ids}

    def key_of(self, cell: str) -> str:
        """The row of a cell: one of a slot has the ids of host and slot as its key."""
        if self._by == "project":
            return cell
        if self._by == "model":
            return model_of(cell)
        host_id, _, slot_id = cell.partition(" ")
        known = self._slots.get(SlotId(slot_id))
        if self._by == "host":
            return host_id
        if known is not None and known[0].kind == CPU_KIND:
            return cpu_slot(HostId(host_id), 0)
        return str(known[0].card or slot_id) if known is not None else slot_id

    def part(self, cell: str) -> tuple[int, int]:
        """How much of the time that counts a billed second of a slot is, as a fraction; of processors it is billed for
        each."""
        slot, entry = self._slots.get(SlotId(cell.partition(" ")[2]), (None, None))
        if slot is None or entry is None:
            return (0, 1) if " " in cell else (1, 1)
        if slot.kind == CPU_KIND and entry.host.inventory is not None:
            whole = cpu_slot(entry.host.host_id, 0)
            return int(whole in self.counted_ids), max(1, entry.host.inventory.cpu_count)
        return (slot.share_milli if slot.slot_id in self.counted_ids else 0), WHOLE_MILLI

    def key_of_slot(self, slot: Slot, entry: Entry) -> str:
        """The row of a slot."""
        if self._by == "project":
            return entry.host.owner_account
        if self._by == "model":
            return model_of(slot.tier) or "no tier yet"
        return str(entry.host.host_id if self._by == "host" else slot.card or slot.slot_id)

    def share(self, row: Row, names: Mapping[str, str], times: Times | None) -> Share:
        """A row with its name."""
        entry = self._hosts.get(row.key)
        if self._by == "host" and entry is not None:
            return Share(row, entry.host.name, row.key, entry.host.simulated, times)
        found = next(((slot, one) for slot, one in self._of_card(row.key)), None) if self._by == "gpu" else None
        if found is None:
            return Share(row, names.get(row.key, row.key), times=times)
        host = found[1].host
        gpus = host.inventory.gpus if host.inventory else ()
        index = next((gpu.index for gpu in gpus if gpu.uuid == found[0].card), None)
        what = "CPUs" if found[0].card is None else "GPU" if index is None else f"GPU {index}"
        return Share(row, f"{host.name} {what}", host.host_id, host.simulated, times)

    def _of_card(self, key: str) -> Iterable[tuple[Slot, Entry]]:
        known = self._slots.get(SlotId(key))
        return [known] if known is not None else (one for one in self._slots.values() if one[0].card == key)


class GpuTime:
    """The times of the counted slots in these days, up to now."""

    def __init__(self, hosts: Hosts, days: range, now_ns: int) -> None:
        self._hosts, self._days = hosts, days
        self._from_ns, self._to_ns = days.start * DAY, min(days.stop * DAY, now_ns)
        self.times: dict[str, Times] = {}
        self._capacity = dict.fromkeys(days, 0)
        self._rented = dict.fromkeys(days, 0)

    def count(self, changes: Mapping[str, Sequence[Change]], book: PriceBook, cells: Iterable[Cell]) -> None:
        """Add up. changes: of hosts and slots since the first day, by their ids; cells: with billed seconds."""
        for slot, entry in self._hosts.counted:
            host = entry.host
            facts = {Fact.ADMIN: str(host.admin_state), Fact.LINK: str(host.link_state)}
            facts |= {Fact.FAULTY: YES if slot.state is SlotState.FAULTED else ""}
            facts |= {Fact.CLOSED: YES if slot.unavailable else ""}
            its = [*changes.get(host.host_id, ()), *changes.get(slot.slot_id, ())]
            found = spans(facts, its, max(self._from_ns, host.created_at_ns), self._to_ns)
            times = self.times.setdefault(self._hosts.key_of_slot(slot, entry), Times())
            price = _price(book, slot, entry)
            for span in found:
                times.add(span, slot.share_milli, price)
            for day, time_ns in by_day(found, self._days).items():
                self._capacity[day] += time_ns * slot.share_milli // 1000
        self._rent(cells)

    def _rent(self, cells: Iterable[Cell]) -> None:
        billed: dict[str, int] = {}
        for cell in cells:
            share, whole = self._hosts.part(cell.key)
            time_ns = cell.seconds * SECOND * share // whole
            key = self._hosts.key_of(cell.key)
            billed[key] = billed.get(key, 0) + time_ns
            self._rented[cell.day] += time_ns
        for key, time_ns in billed.items():
            if key in self.times:
                self.times[key].rent(time_ns)

    @property
    def whole(self) -> Times:
        """All of it."""
        found = Times()
        for one in self.times.values():
            found.plus(one)
        return found

    @property
    def occupancy(self) -> list[float | None]:
        """The part of each day's time that was billed, at most 1; None of no time."""
        pairs = zip(self._rented.values(), self._capacity.values(), strict=True)
        return [min(1.0, rented / capacity) if capacity else None for rented, capacity in pairs]

    def with_idle(self, rows: Sequence[Row]) -> list[Row]:
        """These rows, and one for each key that earned nothing."""
        return [*rows, *(Row(key) for key in sorted(set(self.times) - {row.key for row in rows}))]


def _price(book: PriceBook, slot: Slot, entry: Entry) -> Microcents:
    """The present price of an hour of a slot; nothing where it has no tier."""
    if not slot.tier:
        return Microcents(0)
    inventory = entry.host.inventory
    units = (inventory.cpu_count if inventory else None) or 1 if unit_of(slot.tier) is PriceUnit.PROCESSOR else 1
    return Microcents(book.price(entry.host.owner_account, slot.tier, slot.share_milli) * units)
