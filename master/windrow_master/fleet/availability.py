"""Says of each slot, GPU and host whether it is rented, idle, paused, faulty or offline. Pure.

The first that holds is said:

    faulty    it is broken, or its host is in quarantine
    offline   its host does not answer
    rented    somebody holds it; of a GPU in parts: holds a part of it
    idle      somebody may rent it now; of a GPU in parts: may rent a part of it
    paused    nobody may rent it now: its host drains, it is too hot, something else uses it

These are the words of API, console, command line and metrics. A host has finer words, of which the first in HOST_WORDS
that holds is said: it is degraded where a person has to look after it or one of its GPUs (conditions.py).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from windrow_master.fleet.conditions import unavailable_reason
from windrow_master.fleet.liveness import NOT_HEARD_YET
from windrow_master.fleet.model import CPU_KIND, AdminState, Host, LinkState, Slot, SlotState, VerifyState
from windrow_master.fleet.slices import room
from windrow_master.fleet.states import SLOT_HELD
from windrow_master.fleet.view import Entry, once_per_entry
from windrow_proto.conditions import ConditionCode, Effect, Severity, find, split
from windrow_proto.ids import GpuUuid
from windrow_proto.model import GpuFacts

HOST_WORDS: Final = (
    "retired",
    "quarantined",
    "offline",
    "maintenance",
    "draining",
    "enrolled",
    "verifying",
    "degraded",
    "rented",
    "idle",
    "paused",
)
"""The order in which one fact hides another in the one word that is shown for a host."""
AT_WORK: Final = HOST_WORDS[HOST_WORDS.index("degraded") :]
"""The words of a host that may take work, as far as its link and people's decisions go."""
TROUBLED: Final = ("quarantined", "offline", "degraded")
"""The words of hosts that a person has to look after."""
HOST_STATES: Final = dict.fromkeys((*HOST_WORDS, *map(str, AdminState), *map(str, LinkState)))
"""All that a list of hosts can be narrowed to."""
UNVERIFIED: Final = "it was faulty, and was not verified since"
VERIFY: Final = "Run `windrow host verify HOST`: the GPU is offered again when it passes."
OFFLINE_REMEDY: Final = "Look whether the host has power and network, then `systemctl status windrow-agent` on it."
QUARANTINE_REMEDY: Final = "Verify the host again, or remove it."
_GRAVITY: Final = {
    code: rank for rank, code in enumerate(sorted(ConditionCode, key=lambda one: one.effect is not Effect.FAULT))
}
"""The gravest first; a GPU that lost its verification comes before all."""
_OFFLINE: Final = {
    LinkState.LOST: "it has not reported for two minutes or more",
    LinkState.SUSPECT: "its heartbeats stopped; it may be on its way to another relay",
    LinkState.UNKNOWN: NOT_HEARD_YET,
    LinkState.UNSEEN: "it joined; its first inventory has not come yet",
}


class Availability(StrEnum):
    """The state of a GPU or slot, as everybody reads it."""

    RENTED = "rented"
    IDLE = "idle"
    PAUSED = "paused"
    FAULTY = "faulty"
    OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class Shown:
    """The state of a slot or GPU. reason: why nobody may rent it, or a part of it; parts: of a GPU that is cut by MIG
    or shared by MPS, else 0."""

    state: Availability
    reason: str | None = None
    parts: int = 0
    parts_rented: int = 0

    @property
    def text(self) -> str:
        """The state with the count of rented parts, as lists show it: `rented, 1 of 2 parts`."""
        is_counted = self.parts and self.state in (Availability.RENTED, Availability.IDLE)
        return f"{self.state}, {self.parts_rented} of {self.parts} parts" if is_counted else str(self.state)


NO_PROCESSORS: Final = Shown(Availability.PAUSED, "all CPUs of its host are in use")


@dataclass(frozen=True, slots=True)
class Headline:
    """One word for a host, why, and what its owner can do. state: its group, where hosts are counted."""

    word: str
    reason: str
    state: Availability
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that a person has to look after. gpu: the GPU that it is about; None: the whole host. known: the row of
    the condition; None: none says so, or one that has no row here. since_ns: None where nobody knows."""

    words: str
    remedy: str
    gpu: GpuFacts | None = None
    known: ConditionCode | None = None
    since_ns: int | None = None

    @property
    def is_minor(self) -> bool:
        """True if a host is as good as others with it, though a person has to look at it within days."""
        return self.known is not None and self.known.effect is Effect.NONE and self.known.severity is not Severity.PAGE


def slot_shown(host: Host, slot: Slot) -> Shown:
    """The state of one slot by itself: a whole GPU, a part of one, or processors."""
    if slot.state is SlotState.FAULTED:
        return Shown(Availability.FAULTY, slot.unavailable or UNVERIFIED)
    closed = _host_closed(host)
    if closed is not None:
        return closed
    if slot.state in SLOT_HELD:
        return Shown(Availability.RENTED, slot.unavailable)
    if slot.unavailable is not None:
        return Shown(Availability.PAUSED, slot.unavailable)
    if host.admin_state is not AdminState.ACTIVE:
        return Shown(Availability.PAUSED, _about_decision(host))
    return Shown(Availability.IDLE)


@once_per_entry
def slots_shown(entry: Entry) -> tuple[Shown, ...]:
    """The state of each slot of a host, in their order. The free processor slot of a host that has no processor left is
    not to be had."""
    found = tuple(slot_shown(entry.host, slot) for slot in entry.slots)
    if entry.host.inventory is None or room(entry.host, entry.slots).cpus > 0:
        return found
    is_cpu = (slot.kind == CPU_KIND for slot in entry.slots)
    pairs = zip(is_cpu, found, strict=True)
    return tuple(NO_PROCESSORS if cpu and one.state is Availability.IDLE else one for cpu, one in pairs)


@once_per_entry
def gpus_shown(entry: Entry) -> Mapping[GpuUuid, Shown]:
    """The state of each GPU that the host has, whole or in parts."""
    inventory, slots = entry.host.inventory, dict[GpuUuid, list[Slot]]()
    for slot in entry.slots:
        if slot.card is not None:
            slots.setdefault(slot.card, []).append(slot)
    gpus = inventory.gpus if inventory else ()
    return {gpu.uuid: _gpu_shown(entry.host, gpu, slots.get(gpu.uuid, ())) for gpu in gpus}


@once_per_entry
def headline(entry: Entry) -> Headline:
    """The one word shown for a host, by precedence of HOST_WORDS, with its reason."""
    host, state = entry.host, _group(entry)
    decided = _about_decision(host)
    if host.admin_state in (AdminState.RETIRED, AdminState.QUARANTINED):
        is_held = host.admin_state is AdminState.QUARANTINED
        return Headline(str(host.admin_state), decided, state, QUARANTINE_REMEDY if is_held else "")
    if host.link_state in _OFFLINE and host.link_state is not LinkState.UNSEEN:
        is_lost = host.link_state is LinkState.LOST
        return Headline("offline", _OFFLINE[host.link_state], state, OFFLINE_REMEDY if is_lost else "")
    if host.admin_state in (AdminState.MAINTENANCE, AdminState.DRAINING):
        return Headline(str(host.admin_state), decided, state)
    if host.admin_state is AdminState.ENROLLED or host.link_state is LinkState.UNSEEN:
        return Headline("enrolled", _OFFLINE[LinkState.UNSEEN], state)
    if host.verify_state is VerifyState.VERIFYING:
        return Headline("verifying", "its hardware is being checked", state)
    found = [one for one in troubles(entry) if not one.is_minor]
    if found:
        return Headline("degraded", _told(entry, found), state, _remedies(found))
    return _at_work(entry)


def _at_work(entry: Entry) -> Headline:
    gpus = gpus_shown(entry).values()
    rented = sum(one.state is Availability.RENTED for one in gpus)
    found = slots_shown(entry)
    if rented:
        return Headline("rented", f"{rented} of {_gpus(len(gpus))} rented", Availability.RENTED)
    if any(one.state is Availability.RENTED for one in found):
        cpus = sum(slot.cpus for slot in entry.slots if slot.kind == CPU_KIND)
        count = f"{cpus} of {entry.host.inventory.cpu_count}" if entry.host.inventory and cpus else "its"
        return Headline("rented", f"{count} CPUs are rented", Availability.RENTED)
    if any(one.state is Availability.IDLE for one in found):
        return Headline("idle", "ready for work", Availability.IDLE)
    reason = next((one.reason for one in found if one.reason), "it offers nothing")
    return Headline("paused", f"nothing of it can be rented now: {reason}", Availability.PAUSED)


def _host_closed(host: Host) -> Shown | None:
    """The state that its host gives to all of its slots; None where each has its own."""
    if host.admin_state is AdminState.QUARANTINED:
        return Shown(Availability.FAULTY, "its host is in quarantine")
    if host.link_state is not LinkState.ONLINE:
        return Shown(Availability.OFFLINE, f"its host is not connected: {_OFFLINE[host.link_state]}")
    return None


def _about_decision(host: Host) -> str:
    return host.admin_reason or f"an operator set it {host.admin_state}"


def _gpu_shown(host: Host, gpu: GpuFacts, slots: Sequence[Slot]) -> Shown:
    names = {part.uuid for part in gpu.slices}
    whole = next((slot for slot in slots if slot.gpu_uuid == gpu.uuid), None)
    parts = [slot for slot in slots if slot.profile and (slot.gpu_uuid in names or slot.state in SLOT_HELD)]
    if not parts or (whole is not None and whole.state is SlotState.FAULTED):
        return _of_card(host, gpu) if whole is None else slot_shown(host, whole)
    found = [slot_shown(host, slot) for slot in parts]
    order = (Availability.RENTED, Availability.IDLE, Availability.PAUSED, Availability.OFFLINE, Availability.FAULTY)
    state = min((one.state for one in found), key=order.index)
    reason = next((one.reason for one in found if one.reason), None)
    return Shown(state, reason, len(parts), sum(slot.state in SLOT_HELD for slot in parts))


def _of_card(host: Host, gpu: GpuFacts) -> Shown:
    """The state of a card without a slot: another host has it."""
    reason = unavailable_reason(gpu.uuid, host.conditions) or "another host offers this GPU"
    return _host_closed(host) or Shown(Availability.PAUSED, reason)


def _group(entry: Entry) -> Availability:
    """The group of a host: rented when any slot of it is, idle when any may be had."""
    closed = _host_closed(entry.host)
    if closed is not None:
        return closed.state
    found = {one.state for one in slots_shown(entry)}
    order = (Availability.FAULTY, Availability.RENTED, Availability.IDLE)
    return next((state for state in order if state in found), Availability.PAUSED)


# --- what a person has to look after ---------------------------------------------------------------------------------


@once_per_entry
def troubles(entry: Entry) -> tuple[Trouble, ...]:
    """Return what a person has to look after at this host."""
    return tuple(_troubles(entry))


def needs(entry: Entry) -> Headline | None:
    """Return what a person has to look after at this host, in a line; None: nothing."""
    shown, host = headline(entry), entry.host
    if shown.word in TROUBLED:
        return None if host.link_state is LinkState.UNKNOWN and shown.word == "offline" else shown
    found = troubles(entry) if shown.word == "draining" or shown.word in AT_WORK else ()
    return replace(shown, reason=_told(entry, found), remedy=_remedies(found)) if found else None


def _troubles(entry: Entry) -> Iterator[Trouble]:
    """By the host's conditions, and the GPUs that are faulty though no condition says so any more."""
    host, told = entry.host, set[GpuUuid]()
    cards = _cards(host)
    for one in host.conditions:
        known, subject = find(one.code), split(one.code)[1]
        if known is None or known.severity is Severity.INFO:
            continue
        gpu = cards.get(subject)
        if gpu is not None and known.effect is Effect.FAULT:
            told.add(gpu.uuid)
        yield Trouble(one.detail or known.words, known.remedy, gpu, known, one.since_ns)
    for uuid, shown in gpus_shown(entry).items():
        if shown.state is Availability.FAULTY and uuid not in told:
            yield Trouble(shown.reason or UNVERIFIED, VERIFY, cards[uuid])


def _cards(host: Host) -> Mapping[str, GpuFacts]:
    """Each GPU of a host by its id and by those of its parts."""
    gpus = host.inventory.gpus if host.inventory else ()
    return {uuid: gpu for gpu in gpus for uuid in (gpu.uuid, *(part.uuid for part in gpu.slices))}


def _told(entry: Entry, troubles: Sequence[Trouble]) -> str:
    """The troubles in a sentence each: GPUs with the same trouble stand together."""
    cards: dict[str, list[int]] = {}
    for one in troubles:
        named = cards.setdefault(one.words, [])
        named += [] if one.gpu is None or one.gpu.index in named else [one.gpu.index]
    shown = gpus_shown(entry).values()
    faulty = sum(one.state is Availability.FAULTY for one in shown)
    counted = f"{faulty} of {_gpus(len(shown))} faulty. " if faulty else ""
    told = (f"{_named(named)}{words.rstrip('.')}." for words, named in cards.items())
    return (counted + " ".join(told)).rstrip(".")


def _gpus(number: int) -> str:
    return "1 GPU" if number == 1 else f"{number} GPUs"


def _named(indices: Sequence[int]) -> str:
    return f"GPU {', '.join(str(index) for index in sorted(indices))}: " if indices else ""


def gravest_first(troubles: Sequence[Trouble]) -> list[Trouble]:
    """The troubles of a host in their order, the gravest first."""
    return sorted(troubles, key=lambda one: -1 if one.known is None else _GRAVITY[one.known])


def _remedies(troubles: Sequence[Trouble]) -> str:
    """One remedy for each GPU and for the host. A GPU with several troubles gets that of the gravest: others might
    contradict it."""
    graded = gravest_first(troubles)
    first = {one.gpu.uuid: one for one in reversed(graded) if one.gpu is not None}
    told = (one for one in troubles if one.gpu is None or first[one.gpu.uuid] is one)
    return " ".join(dict.fromkeys(one.remedy for one in told if one.remedy))


def part_name(host: Host, one: str) -> str | None:
    """The name of a part of a host by the id of its GPU, slice or slot: `GPU 3`, `GPU 3 part 1g.10gb`, `CPU share 2`;
    None: it has no such part."""
    if one.startswith(f"{host.host_id}/cpu/"):
        return f"CPU share {one.rpartition('/')[2]}"
    gpu = _cards(host).get(one)
    if gpu is None:
        return None
    profile = next((part.profile for part in gpu.slices if part.uuid == one), None)
    return f"GPU {gpu.index}" if profile is None else f"GPU {gpu.index} part {profile}"


def about(host: Host, code: str) -> str | None:
    """The GPU that a condition of a host is about, by its number; None: the whole host, or a GPU that is gone."""
    gpu = _cards(host).get(split(code)[1])
    return None if gpu is None else f"GPU {gpu.index}"
