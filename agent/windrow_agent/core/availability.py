"""Whether each GPU may be offered now, with the reasons, from what sweeps and events say. Pure.

The agent computes this and the Master checks it again. A reason counts at once; it goes only after it has been absent
for half a minute, so that a flickering sensor does not flicker an offer.

    Initialising --first sweep--> Free <--lease--> Leased
    any --stalled sweep--> Unknown    any --lost--> Lost    any --a reason below--> Degraded or ForeignUse
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from windrow_agent.gpu.port import Condition, ConditionCode, GpuEvent, GpuEventKind, GpuHealth
from windrow_proto.model import Event
from windrow_proto.units import GIB, SECOND

CLEAR_AFTER_NS: Final = 30 * SECOND
"""A reason must be absent this long before it is dropped."""

FOREIGN_AFTER_NS: Final = 60 * SECOND
"""The driver lists a workload's last processes for a while after it ended."""

HOT_MARGIN_CELSIUS: Final = 10
FOREIGN_BYTES: Final = GIB
FOREIGN_DIVISOR: Final = 50
"""Foreign use is more than 1 GiB or a fiftieth of the memory, whichever is larger: a desktop draws windows there."""

TENANT_XIDS: Final = frozenset({13, 31, 43, 45, 68, 109})
"""Faults that a program causes by itself; NVIDIA's Kubernetes device plugin passes over the same ones by default."""

BENIGN_XIDS: Final = frozenset({63, 64, 92})
"""Records of memory repair; whether it worked is in the row remaps, which have conditions of their own."""


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
    """Who an XID is put down to; it decides who pays."""

    TENANT = "tenant"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class GpuState:
    """What is remembered of one GPU between sweeps. Times are monotonic nanoseconds.

    reasons: code to the last time it was seen; foreign_since: when use by others began, None if there is none;
    faulted: a host fault was reported since the driver was opened, which only opening it again clears.
    """

    reasons: Mapping[ConditionCode, int] = field(default_factory=dict)
    foreign_since: int | None = None
    faulted: bool = False
    availability: Availability = Availability.INITIALISING


def blame(xid: int, is_leased: bool) -> Blame:
    """The tenant's for what programs cause while they hold the GPU; anything else is the host's."""
    return Blame.TENANT if is_leased and xid in TENANT_XIDS else Blame.HOST


def after_event(state: GpuState, event: GpuEvent) -> GpuState:
    """The state after one event: faults of the host stand until the driver is opened again."""
    match event.kind:
        case GpuEventKind.XID:
            harmless = event.number in TENANT_XIDS or event.number in BENIGN_XIDS
            faulted = state.faulted or not harmless
        case GpuEventKind.ECC_UNCORRECTED | GpuEventKind.UNAVAILABLE:
            faulted = True
        case GpuEventKind.RECOVERY_ACTION:
            faulted = state.faulted or event.number != 0  # 0: nothing needs doing
        case GpuEventKind.LOST | GpuEventKind.RECOVERED:
            faulted = state.faulted
    return GpuState(state.reasons, state.foreign_since, faulted, state.availability)


def after_sweep(state: GpuState, health: GpuHealth, is_leased: bool, now_ns: int) -> GpuState:
    """The state after one sweep in time."""
    foreign_since = None
    if not is_leased and _in_use(health):
        foreign_since = state.foreign_since if state.foreign_since is not None else now_ns
    seen = {code: now_ns for code, holds in _present(state, health, foreign_since, now_ns).items() if holds}
    kept = {code: at for code, at in state.reasons.items() if now_ns - at < CLEAR_AFTER_NS}
    reasons = {**kept, **seen}
    if is_leased:
        reasons.pop(ConditionCode.FOREIGN_USE, None)
    return GpuState(reasons, foreign_since, state.faulted, _verdict(reasons, health.is_lost, is_leased))


def stalled(state: GpuState) -> GpuState:
    """The state while the driver does not answer: not known, whatever it was."""
    return GpuState(state.reasons, state.foreign_since, state.faulted, Availability.UNKNOWN)


def conditions(states: Mapping[str, GpuState]) -> tuple[Condition, ...]:
    """Every GPU's reasons as conditions, in a fixed order. A lost GPU is the backend's own condition."""
    return tuple(Condition(code, uuid) for uuid, state in sorted(states.items()) for code in sorted(state.reasons))


def event_of(event: GpuEvent, is_leased: bool) -> Event:
    """What is sent to the Master of one GPU event."""
    fields = {"leased": "true" if is_leased else "false"}
    if event.kind is GpuEventKind.XID:
        fields |= {"xid": str(event.number), "blame": blame(event.number, is_leased).value}
    elif event.kind is GpuEventKind.RECOVERY_ACTION:
        fields["action"] = str(event.number)
    return Event(event.kind.value, event.at_wall_ns, event.uuid, event.detail, fields)


def _in_use(health: GpuHealth) -> bool:
    floor = max(FOREIGN_BYTES, (health.memory_bytes or 0) // FOREIGN_DIVISOR)
    return bool(health.compute_processes) or (health.memory_used_bytes or 0) > floor


def _present(
    state: GpuState, health: GpuHealth, foreign_since: int | None, now_ns: int
) -> Mapping[ConditionCode, bool]:
    temperature, slowdown = health.temperature_celsius, health.slowdown_celsius
    hot = temperature is not None and slowdown is not None and temperature > slowdown - HOT_MARGIN_CELSIUS
    return {
        ConditionCode.REMAP_PENDING: health.remap_pending is True,
        ConditionCode.REMAP_FAILED: health.remap_failed is True,
        ConditionCode.HOST_FAULT: state.faulted,
        ConditionCode.HOT: hot,
        ConditionCode.FOREIGN_USE: foreign_since is not None and now_ns - foreign_since >= FOREIGN_AFTER_NS,
    }


def _verdict(reasons: Mapping[ConditionCode, int], is_lost: bool, is_leased: bool) -> Availability:
    if is_lost:
        return Availability.LOST
    if any(code is not ConditionCode.FOREIGN_USE for code in reasons):
        return Availability.DEGRADED
    if reasons:
        return Availability.FOREIGN_USE
    return Availability.LEASED if is_leased else Availability.FREE
