"""Whether each GPU may be offered now, with the reasons, from what sweeps and events say. Pure.

The agent computes this and the Master checks it again. A reason counts at once; it goes only after it has been absent
for half a minute, so that a flickering sensor does not flicker an offer.

    Initialising --first sweep--> Free <--lease--> Leased
    any --stalled sweep--> Unknown    any --lost--> Lost    any --a reason below--> Degraded or ForeignUse
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, TypeVar

from windrow_agent.core.gpu_port import Condition, GpuEvent, GpuEventKind, GpuHealth
from windrow_proto import xids
from windrow_proto.conditions import ConditionCode
from windrow_proto.model import Event
from windrow_proto.units import GIB, SECOND

T = TypeVar("T")

CLEAR_AFTER_NS: Final = 30 * SECOND
"""A reason must be absent this long before it is dropped."""

FOREIGN_AFTER_NS: Final = 60 * SECOND
"""The driver lists a workload's last processes for a while after it ended, so use of a GPU right after a lease is not
foreign yet."""

HOT_MARGIN_CELSIUS: Final = 10
FOREIGN_BYTES: Final = GIB
FOREIGN_DIVISOR: Final = 50
"""Foreign use is more than 1 GiB or a fiftieth of the memory, whichever is larger: a desktop draws windows there."""

SLOWED_BY_HARDWARE: Final = 0x08 | 0x40 | 0x80
"""NVML's bits for clocks halved by heat, by the power supply, or by one of them without saying which. 0x08 also appears
for an instant when clocks change (nvml.h says so), so a reason must hold for two sweeps."""

SLOWED_BY_DRIVER: Final = 0x20
"""The driver lowers clocks to keep a hot card below its limit. Under load many sound cards live there, and what it
costs shows in their measured speed; a card that must do so while nobody rents it has a cooling that fails."""

AFTERMATH_NS: Final = 10 * SECOND
"""A program that an XID ended may be seen to end before the XID is heard, and ending one causes XIDs (45) as well."""


class Availability(StrEnum):
    """What one GPU is good for at this moment."""

    INITIALISING = "initialising"
    FREE = "free"
    LEASED = "leased"
    FOREIGN_USE = "foreign_use"
    DEGRADED = "degraded"
    LOST = "lost"
    UNKNOWN = "unknown"


class Blame(StrEnum):
    """Who an XID is put down to; it decides who pays. NOBODY: a program caused it while nobody rented the GPU."""

    TENANT = "tenant"
    HOST = "host"
    NOBODY = "nobody"


_SAID: Final = {
    Blame.TENANT: "caused by the program that rents this GPU",
    Blame.HOST: "a fault of the host",
    Blame.NOBODY: "caused by a program while nobody rented this GPU",
}


@dataclass(frozen=True, slots=True)
class GpuState:
    """What is remembered of one GPU between sweeps. Times are monotonic nanoseconds.

    reasons: code to the last time it was seen; foreign_since, slowed_since: the first of the sweeps in a row that saw
    use by others, or clocks held down, None if the last saw none; faulted: a host fault was reported since the driver
    was opened, which only opening it again clears; leased_ns: the last sweep in which a lease held it;
    ecc_uncorrected: as last read; mig_listed: the MIG mode it had first.
    """

    reasons: Mapping[ConditionCode, int] = field(default_factory=dict)
    foreign_since: int | None = None
    faulted: bool = False
    availability: Availability = Availability.INITIALISING
    slowed_since: int | None = None
    leased_ns: int | None = None
    ecc_uncorrected: int | None = None
    mig_listed: bool | None = None

    def is_in_doubt(self, now_ns: int) -> bool:
        """Whether the sweep at `now_ns` saw something that counts if the next one sees it as well."""
        return now_ns in (self.foreign_since, self.slowed_since)


def holder(now: str | None, last: tuple[str, int] | None, now_ns: int) -> str | None:
    """The workload that an event belongs to: what holds the GPU, or what held it a moment ago; None if nothing did.

    last: what held it at the latest sweep in which anything did, and when that was.
    """
    if now is not None or last is None:
        return now
    return last[0] if now_ns - last[1] <= AFTERMATH_NS else None


def stricken(event: GpuEvent) -> str:
    """The card, or the slice of it, that an event is about: what the driver puts down to a slice stays in it."""
    is_contained = event.slice_uuid and event.kind is GpuEventKind.XID and event.number not in xids.CARD_XIDS
    return event.slice_uuid if is_contained else event.uuid


def blame(xid: int, is_leased: bool) -> Blame:
    """What programs cause is the tenant's while there is one; what they do not is the host's, whoever rents."""
    if xid not in xids.PROGRAM_XIDS:
        return Blame.HOST
    return Blame.TENANT if is_leased else Blame.NOBODY


def after_event(state: GpuState, event: GpuEvent, now_ns: int) -> GpuState:
    """The state after one event: faults of the host count at once and stand until the driver is opened again."""
    match event.kind:
        case GpuEventKind.XID:
            faulted = state.faulted or event.number not in xids.PROGRAM_XIDS | xids.RECORD_XIDS
        case GpuEventKind.ECC_UNCORRECTED | GpuEventKind.UNAVAILABLE:
            faulted = True
        case GpuEventKind.RECOVERY_ACTION:
            faulted = state.faulted or event.number != 0  # 0: nothing needs doing
        case GpuEventKind.LOST | GpuEventKind.RECOVERED | GpuEventKind.MIG_CHANGED:
            faulted = state.faulted
    if not faulted:
        return state
    sound = state.availability not in (Availability.LOST, Availability.UNKNOWN)
    return replace(
        state,
        faulted=True,
        reasons={**state.reasons, ConditionCode.GPU_HOST_FAULT: now_ns},
        availability=Availability.DEGRADED if sound else state.availability,
    )


def after_sweep(state: GpuState, health: GpuHealth, is_leased: bool, now_ns: int) -> GpuState:
    """The state after one sweep in time."""
    state = GpuState(
        reasons=state.reasons,
        availability=state.availability,
        foreign_since=_since(state.foreign_since, not is_leased and _in_use(health), now_ns),
        slowed_since=_since(state.slowed_since, _is_slowed(health, is_leased), now_ns),
        faulted=state.faulted or ecc_growth(state, health) > 0,
        leased_ns=now_ns if is_leased else state.leased_ns,
        ecc_uncorrected=_newer(health.ecc_uncorrected, state.ecc_uncorrected),
        mig_listed=_newer(state.mig_listed, health.mig_enabled),
    )
    seen = {code: now_ns for code, holds in _present(state, health, now_ns).items() if holds}
    kept = {code: at for code, at in state.reasons.items() if now_ns - at < CLEAR_AFTER_NS}
    reasons = {**kept, **seen}
    if is_leased:
        reasons.pop(ConditionCode.GPU_FOREIGN_USE, None)
    verdict = _verdict(reasons, health.is_lost, is_leased)
    if verdict is state.availability and reasons == state.reasons:
        return state  # nearly always: nothing is the matter with it
    return replace(state, reasons=reasons, availability=verdict)


def ecc_growth(state: GpuState, health: GpuHealth) -> int:
    """Uncorrected memory errors since the sweep before; 0 where there was none, or the driver was loaded anew."""
    if state.ecc_uncorrected is None or health.ecc_uncorrected is None:
        return 0
    return max(0, health.ecc_uncorrected - state.ecc_uncorrected)


def stalled(state: GpuState) -> GpuState:
    """The state while the driver does not answer: not known, whatever it was."""
    return replace(state, availability=Availability.UNKNOWN)


def conditions(states: Mapping[str, GpuState]) -> tuple[Condition, ...]:
    """Every GPU's reasons as conditions, in a fixed order. A lost GPU is the backend's own condition."""
    return tuple(Condition(code, uuid) for uuid, state in sorted(states.items()) for code in sorted(state.reasons))


def event_of(event: GpuEvent, workload_id: str | None) -> Event:
    """What is sent to the Master of one GPU event, with the evidence. workload_id: what held the GPU, None: nothing."""
    fields = {"leased": "false" if workload_id is None else "true"}
    if event.slice_uuid:
        fields["slice"] = event.slice_uuid
    if workload_id:
        fields["workload"] = workload_id
    detail = event.detail
    if event.kind is GpuEventKind.XID:
        found = blame(event.number, workload_id is not None)
        fields |= {"xid": str(event.number), "blame": found.value}
        if event.pid is not None:
            fields |= {"pid": str(event.pid), "process": event.process}
        where = f" in slice {event.slice_uuid}" if event.slice_uuid else ""
        detail = f"{xids.name_of(event.number)}{where}; {_SAID[found]}" + (f": {event.detail}" if event.detail else "")
    elif event.kind is GpuEventKind.RECOVERY_ACTION:
        fields["action"] = str(event.number)
    elif event.kind is GpuEventKind.ECC_UNCORRECTED and event.number:
        fields["count"] = str(event.number)
    return Event(event.kind.value, event.at_wall_ns, event.uuid, detail, fields)


def is_in_use(processes: int | None, used_bytes: int | None, memory_bytes: int | None) -> bool:
    """Whether somebody works on a card, by the programs on it and by what is used of its memory."""
    return bool(processes) or (used_bytes or 0) > max(FOREIGN_BYTES, (memory_bytes or 0) // FOREIGN_DIVISOR)


def _in_use(health: GpuHealth) -> bool:
    return is_in_use(health.compute_processes, health.memory_used_bytes, health.memory_bytes)


def _newer(first: T | None, second: T | None) -> T | None:
    return first if first is not None else second


def _since(before: int | None, holds: bool, now_ns: int) -> int | None:
    return None if not holds else _newer(before, now_ns)


def _is_slowed(health: GpuHealth, is_leased: bool) -> bool:
    return bool((health.slowed_by or 0) & (SLOWED_BY_HARDWARE | (0 if is_leased else SLOWED_BY_DRIVER)))


def _present(state: GpuState, health: GpuHealth, now_ns: int) -> Mapping[ConditionCode, bool]:
    """What is the matter by this sweep; `state` already holds what it saw first."""
    is_settled = state.leased_ns is None or now_ns - state.leased_ns >= FOREIGN_AFTER_NS
    modes = (state.mig_listed, health.mig_enabled, health.mig_pending)
    temperature, slowdown = health.temperature_celsius, health.slowdown_celsius
    hot = temperature is not None and slowdown is not None and temperature > slowdown - HOT_MARGIN_CELSIUS
    return {
        ConditionCode.GPU_REMAP_PENDING: health.remap_pending is True,
        ConditionCode.GPU_REMAP_FAILED: health.remap_failed is True,
        ConditionCode.GPU_HOST_FAULT: state.faulted,
        ConditionCode.GPU_HOT: hot,
        ConditionCode.GPU_THROTTLED: state.slowed_since is not None and state.slowed_since < now_ns,
        ConditionCode.GPU_MIG_CHANGED: health.mig_enabled is not None and len(set(modes)) > 1,
        ConditionCode.GPU_FOREIGN_USE: state.foreign_since is not None and state.foreign_since < now_ns and is_settled,
    }


def _verdict(reasons: Mapping[ConditionCode, int], is_lost: bool, is_leased: bool) -> Availability:
    if is_lost:
        return Availability.LOST
    if any(code is not ConditionCode.GPU_FOREIGN_USE for code in reasons):
        return Availability.DEGRADED
    if reasons:
        return Availability.FOREIGN_USE
    return Availability.LEASED if is_leased else Availability.FREE
