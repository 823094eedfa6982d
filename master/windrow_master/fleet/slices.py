"""Lists the slots that a host offers: whole cards, the slices of those that are cut, and its processors. Pure.

A slice's share of its card, in thousandths, is the mean of its share of the processors and of the memory, rounded down:

    share = floor(1000 x (compute slices / the card's most slices + memory / the card's memory) / 2)

The mean adds up over the parts of a card, so that all parts together never cost more than the whole. A card that is cut
is not to be had as a whole; parts that claim more than their card are not offered at all. A part by MPS counts as so
many hundredths of the processors; its card is not in MIG mode.

Of its processors a host has as many slots as work holds, and one that is free: it is carved when the last free one is
taken. A slot is as large as what holds it asked for; all of them together are never larger than the host.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from windrow_master.fleet.model import CPU_KIND, AdminState, Host, Slot
from windrow_master.fleet.states import SLOT_HELD, SlotState
from windrow_proto.errors import Conflict, WindrowError
from windrow_proto.ids import MPS_PREFIX, GpuUuid, SlotId, cpu_slot
from windrow_proto.model import GpuFacts, GpuSlice, Isolation
from windrow_proto.units import Bytes

CPU_SLOTS_MAX: Final = 256
"""Of one host, however many processors it has: each is a row for as long as the host lives."""
WHOLE_MILLI: Final = 1000
PREFIXES: Final = {Isolation.MIG: "MIG-", Isolation.MPS: MPS_PREFIX}
PERCENT: Final = 100
CUT: Final = "it is cut into slices, which are offered one by one"
SHARED: Final = "it is shared in parts by MPS, which are offered one by one to its host's owner"
BARE: Final = "it is in MIG mode and has no slices"
TOO_MUCH: Final = "the slices of its card claim more than there is of it"
UNSHARED: Final = "how much of its card it is, its host does not say"
_QUIET: Final = (AdminState.DRAINING, AdminState.MAINTENANCE)


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that can be rented. card: what it is, or is a part of; closed: why it is not offered in any case."""

    slot_id: SlotId
    kind: str
    isolation: Isolation
    gpu_uuid: GpuUuid | None = None
    card: GpuUuid | None = None
    profile: str = ""
    share_milli: int = WHOLE_MILLI
    closed: str | None = None


@dataclass(frozen=True, slots=True)
class Room:
    """Processors and memory of a host that no slot has with it; below 0 where the host has shrunk."""

    cpus: int
    memory_bytes: Bytes


def room(host: Host, slots: Iterable[Slot]) -> Room:
    """Return what is left of a host. slots: all that it has."""
    cpus, memory = (host.inventory.cpu_count, host.inventory.memory_bytes) if host.inventory else (0, 0)
    held = [one for one in slots if one.holder is not None]
    return Room(cpus - sum(one.cpus for one in held), Bytes(memory - sum(one.memory_bytes for one in held)))


def next_cpu_slot(host: Host, slots: Iterable[Slot]) -> SlotId | None:
    """Return the processor slot that is to be carved; None while one is free, or the host may have no more."""
    mine = [one for one in slots if one.kind == CPU_KIND]
    most = min(host.inventory.cpu_count if host.inventory else 1, CPU_SLOTS_MAX)
    is_enough = any(one.state is SlotState.FREE for one in mine) or len(mine) >= most
    return None if is_enough else cpu_slot(host.host_id, len(mine))


def with_one_cpu_slot(slots: Iterable[Slot]) -> list[Slot]:
    """Return the slots with one processor slot for all of them, a free one if there is any: a host is one thing to
    rent, into however many shares it is carved."""
    found = list(slots)
    shares = [one for one in found if one.kind == CPU_KIND]
    shown = next((one for one in shares if one.is_offered), shares[0] if shares else None)
    return [one for one in found if one.kind != CPU_KIND or one is shown]


def parts(host: Host, cpu_slots: int = 1) -> tuple[Part, ...]:
    """Everything that a host could rent out, as its inventory has it; each slot id once. cpu_slots: that it has."""
    gpus = host.inventory.gpus if host.inventory else ()
    shares = (cpu_slot(host.host_id, number) for number in range(max(1, cpu_slots)))
    found = {one: Part(one, CPU_KIND, Isolation.UNSPECIFIED) for one in shares}
    for gpu in gpus:
        is_shared = any(one.isolation is Isolation.MPS for one in gpu.slices)
        closed = (CUT if gpu.slices else BARE) if gpu.mig_enabled else SHARED if is_shared else None
        slot_id = SlotId(gpu.uuid)
        found[slot_id] = Part(slot_id, "gpu", Isolation.WHOLE, gpu.uuid, gpu.uuid, closed=closed)
    for gpu in gpus:
        for part in _slices(gpu):
            found.setdefault(part.slot_id, part)
    return tuple(found.values())


def _slices(gpu: GpuFacts) -> Iterator[Part]:
    """Those of a card; a name that is none of a slice is passed over."""
    known = [one for one in gpu.slices if _is_named_well(one)]
    shares = {one.uuid: share_milli(gpu, one) for one in known}
    is_too_much = sum(shares.values()) > WHOLE_MILLI
    for one in known:
        share = shares[one.uuid]
        is_of_the_mode = bool(gpu.mig_enabled) is (one.isolation is Isolation.MIG)
        closed = TOO_MUCH if is_too_much else UNSHARED if not share or not is_of_the_mode else None
        yield Part(SlotId(one.uuid), "slice", one.isolation, one.uuid, gpu.uuid, one.profile, share, closed)


def _is_named_well(one: GpuSlice) -> bool:
    prefix = PREFIXES.get(one.isolation)
    return prefix is not None and one.uuid.startswith(prefix) and "/" not in one.uuid


def share_milli(gpu: GpuFacts, one: GpuSlice) -> int:
    """Return how much of its card a slice is, in thousandths; 0: its host does not say enough."""
    most = PERCENT if one.isolation is Isolation.MPS else gpu.more.get("mig_devices_max")
    if not isinstance(most, int) or most < 1 or not gpu.memory_bytes:
        return 0
    return (
        (one.compute_slices * gpu.memory_bytes + one.memory_bytes * most) * WHOLE_MILLI // (2 * most * gpu.memory_bytes)
    )


def sliced_tier(tier: str, profile: str) -> str:
    """The tier of a slice of a card of this tier: `h100/A` and `1g.10gb` make `h100:1g.10gb/A`."""
    tier_class, mark, grade = tier.partition("/")
    return f"{tier_class}:{profile}{mark}{grade}" if profile else tier


def cut_refusal(host: Host, slots: Collection[Slot], gpu: GpuFacts | None) -> WindrowError | None:
    """Return why the Master does not ask a host to cut a card now, or None."""
    if gpu is None:
        return Conflict("This host has no such GPU.", subject=host.host_id)
    if not gpu.layout:
        words = "Its owner has allowed no layout for this GPU: `windrow-agent run --mig CARD=PROFILE,...` does."
        return Conflict(words, subject=gpu.uuid)
    if host.admin_state not in _QUIET:
        return Conflict("Drain the host first: a GPU is cut only where nothing new can start.", subject=host.host_id)
    held = [slot.slot_id for slot in slots if slot.card == gpu.uuid and (slot.state in SLOT_HELD or slot.holder)]
    if held:
        return Conflict(
            f"The GPU is still in use ({', '.join(held)}): wait until the host has drained.", subject=gpu.uuid
        )
    return None
