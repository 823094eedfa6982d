"""The state machine of one workload, from its command to its removal, and the receipts that it is billed by. Pure.

    PREPARING ──Prepared──▶ [WAITING_VOLUMES ──VolumesCame──▶] [WAITING_FILES ──FilesCame──▶]
        [WAITING_MEMBERS ──MembersCame──▶] (start) ──Started──▶ RUNNING ──Ended──▶ EXITED
        │ any ──Broke──▶ FAILED                                                  │ EndAsked
        └────────────────────────── EndAsked ──▶ STOPPING ──Removed──▶ GONE ◀────┘

A receipt goes out when it starts, while it runs, and exactly once as the final one. Running time never falls and
never exceeds what the runtime's own records show. GONE never changes again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, assert_never

from windrow_proto.ids import ClusterId, SlotId, WorkloadId
from windrow_proto.model import ObservedWorkload, Receipt, SlotGrant, WorkloadPhase, WorkloadSpec
from windrow_proto.units import SECOND

RECEIPT_EVERY_NS: Final = 10 * SECOND
"""Between two receipts of a running workload (design.md section 12)."""
ENDED: Final = frozenset({WorkloadPhase.EXITED, WorkloadPhase.GONE, WorkloadPhase.FAILED})
"""Nothing of it runs in these."""
AWAITED: Final = {
    WorkloadPhase.WAITING_VOLUMES: "waiting_volumes",
    WorkloadPhase.WAITING_FILES: "waiting_files",
    WorkloadPhase.WAITING_MEMBERS: "waiting_members",
}
"""The phases in which a prepared workload waits, and the step of its creation that says so."""
TAKEN_AWAY: Final = "the workload was taken away on its host, by hand or by another program"
"""Why it ended where its runtime knows nothing of it any more."""
_NOT_STARTED: Final = (WorkloadPhase.PREPARING, *AWAITED)


@dataclass(frozen=True, slots=True)
class WorkloadState:
    """The state of a workload on this host. running_ns and started_wall_ns are None before it started.

    modes: of its cards by the granted UUID, as it found them; faults: its slots that it did not leave so, and why.
    keeps_volumes: what it leaves in a volume is saved before it is removed. is_unmade: its creation failed before its
    runtime was asked to make anything, so that nothing has to be removed.
    """

    workload_id: WorkloadId
    cluster_id: ClusterId
    slots: tuple[SlotGrant, ...]
    runtime: str
    await_files: bool = False
    await_members: bool = False
    phase: WorkloadPhase = WorkloadPhase.PREPARING
    started_wall_ns: int | None = None
    running_ns: int = 0
    receipts: int = 0
    is_final_sent: bool = False
    exit_code: int | None = None
    end_reason: str = ""
    detail: str = ""
    ports: Mapping[str, int] = field(default_factory=dict)
    modes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    faults: Mapping[SlotId, str] = field(default_factory=dict)
    await_volumes: bool = False
    keeps_volumes: bool = False
    is_unmade: bool = False

    @property
    def token(self) -> int:
        """The highest token of its slots; part of its container's name."""
        return max((slot.token for slot in self.slots), default=0)


def begin(spec: WorkloadSpec) -> WorkloadState:
    """The state of a workload that was just asked for."""
    awaits = spec.await_files, spec.await_members
    keeps = any(not one.read_only for one in spec.volumes)
    state = WorkloadState(spec.workload_id, spec.cluster_id, spec.slots, spec.runtime, *awaits)
    return replace(state, await_volumes=bool(spec.volumes), keeps_volumes=keeps)


# --- events -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prepared:
    """Image, folder and container are there; nothing runs yet. modes: of its cards now."""

    modes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VolumesCame:
    """All of its volumes are in place."""


@dataclass(frozen=True, slots=True)
class FilesCame:
    """The files channel was closed with commit."""


@dataclass(frozen=True, slots=True)
class MembersCame:
    """All members of its cluster are ready to start."""


@dataclass(frozen=True, slots=True)
class Started:
    """The workload runs."""

    started_wall_ns: int
    running_ns: int
    ports: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ran:
    """The workload still runs and has run so long, by the runtime's records."""

    running_ns: int


@dataclass(frozen=True, slots=True)
class Ended:
    """Nothing of it runs any more. exit_code None: nobody saw it (the host went down). detail: why, in words."""

    exit_code: int | None
    running_ns: int
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Broke:
    """The workload could not be prepared or started. is_unmade: its runtime was asked to make nothing of it."""

    detail: str
    is_unmade: bool = False


@dataclass(frozen=True, slots=True)
class EndAsked:
    """The workload is to end: deleted, its lease lapsed, or the host stops."""

    reason: str


@dataclass(frozen=True, slots=True)
class Removed:
    """Its container or folder is gone. faults: its slots that are not as it found them, and why."""

    faults: Mapping[SlotId, str] = field(default_factory=dict)


Event = Prepared | VolumesCame | FilesCame | MembersCame | Started | Ran | Ended | Broke | EndAsked | Removed


# --- effects ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Start:
    """Start it in its runtime."""


@dataclass(frozen=True, slots=True)
class SendReceipt:
    """Sign and send a receipt; the state it came with holds its number and running time. Store the state first."""

    final: bool


@dataclass(frozen=True, slots=True)
class SendObserved:
    """The phase changed: tell the Master what runs here."""


@dataclass(frozen=True, slots=True)
class StopAndRemove:
    """End it, then take its container or folder away; answer with Ended (if it ran) and Removed."""


Effect = Start | SendReceipt | SendObserved | StopAndRemove
Step = tuple[WorkloadState, tuple[Effect, ...]]


def step(state: WorkloadState, event: Event) -> Step:
    """Advance one workload by one event. Total: every (phase, event) pair has an answer."""
    match event:
        case Prepared():
            return _prepared(state, event)
        case VolumesCame():
            if state.phase is not WorkloadPhase.WAITING_VOLUMES:
                return state, ()
            return _equipped(replace(state, phase=WorkloadPhase.PREPARING, await_volumes=False), SendObserved())
        case FilesCame():
            if state.phase is not WorkloadPhase.WAITING_FILES:
                return state, ()  # more files for what runs already
            return _ready(replace(state, phase=WorkloadPhase.PREPARING, await_files=False), SendObserved())
        case MembersCame():
            if state.phase is not WorkloadPhase.WAITING_MEMBERS:
                return state, ()
            return replace(state, phase=WorkloadPhase.PREPARING, await_members=False), (Start(), SendObserved())
        case Started():
            return _started(state, event)
        case Ran():
            if state.phase is not WorkloadPhase.RUNNING and state.phase is not WorkloadPhase.STOPPING:
                return state, ()
            return _receipt(_ran(state, event.running_ns), final=False)
        case Ended():
            return _ended(state, event)
        case Broke():
            if state.phase not in _NOT_STARTED:
                return state, ()  # what has started ends by Ended
            failed = replace(state, phase=WorkloadPhase.FAILED, detail=event.detail, is_unmade=event.is_unmade)
            return failed, (SendObserved(),)
        case EndAsked():
            if state.phase in (WorkloadPhase.GONE, WorkloadPhase.STOPPING):
                return state, ()
            reason = state.end_reason or event.reason
            return replace(state, phase=WorkloadPhase.STOPPING, end_reason=reason), (SendObserved(), StopAndRemove())
        case Removed():
            return _removed(state, event)
        case _:
            assert_never(event)


def _prepared(state: WorkloadState, event: Prepared) -> Step:
    if state.phase is not WorkloadPhase.PREPARING:
        return state, ()
    state = replace(state, modes=event.modes)
    if state.await_volumes:
        return replace(state, phase=WorkloadPhase.WAITING_VOLUMES), (SendObserved(),)
    return _equipped(state)


def _equipped(state: WorkloadState, *told: Effect) -> Step:
    """Its volumes are in place, if it has any: next come its files."""
    if state.await_files:
        return replace(state, phase=WorkloadPhase.WAITING_FILES), (SendObserved(),)
    return _ready(state, *told)


def _ready(state: WorkloadState, *told: Effect) -> Step:
    """Nothing of its own is missing: it starts, or waits until the other members are as far."""
    if state.await_members:
        return replace(state, phase=WorkloadPhase.WAITING_MEMBERS), (SendObserved(),)
    return state, (Start(), *told)


def _started(state: WorkloadState, event: Started) -> Step:
    if state.phase in (WorkloadPhase.GONE, WorkloadPhase.EXITED, WorkloadPhase.RUNNING):
        return state, ()
    stopping = state.phase is WorkloadPhase.STOPPING
    running = replace(
        _ran(state, event.running_ns),
        phase=state.phase if stopping else WorkloadPhase.RUNNING,
        started_wall_ns=event.started_wall_ns,
        ports=dict(event.ports),
    )
    receipted, effects = _receipt(running, final=False)
    return receipted, (*effects, SendObserved())


def _ended(state: WorkloadState, event: Ended) -> Step:
    if state.phase in (WorkloadPhase.GONE, WorkloadPhase.EXITED) or state.started_wall_ns is None:
        return state, ()
    stopping = state.phase is WorkloadPhase.STOPPING
    ended = replace(
        _ran(state, event.running_ns),
        phase=state.phase if stopping else WorkloadPhase.EXITED,
        exit_code=event.exit_code,
        end_reason=state.end_reason or event.reason,
        detail=event.detail or state.detail,
    )
    receipted, effects = _receipt(ended, final=True)
    return receipted, (*effects, SendObserved())


def _removed(state: WorkloadState, event: Removed) -> Step:
    if state.phase is WorkloadPhase.GONE:
        return state, ()
    gone = replace(state, phase=WorkloadPhase.GONE, faults=event.faults)
    if state.started_wall_ns is None:
        return gone, (SendObserved(),)
    receipted, effects = _receipt(gone, final=True)
    return receipted, (*effects, SendObserved())


def _ran(state: WorkloadState, running_ns: int) -> WorkloadState:
    return replace(state, running_ns=max(state.running_ns, running_ns))


def _receipt(state: WorkloadState, final: bool) -> Step:
    if state.is_final_sent or state.started_wall_ns is None:
        return state, ()
    numbered = replace(state, receipts=state.receipts + 1, is_final_sent=final)
    return numbered, (SendReceipt(final),)


def receipt(state: WorkloadState, at_wall_ns: int) -> Receipt:
    """The receipt that this state's last SendReceipt asks for."""
    return Receipt(
        state.workload_id,
        state.cluster_id,
        state.slots,
        number=state.receipts,
        running_ns=state.running_ns,
        started_wall_ns=state.started_wall_ns or 0,
        at_wall_ns=at_wall_ns,
        final=state.is_final_sent,
        exit_code=state.exit_code if state.is_final_sent else None,
        end_reason=state.end_reason if state.is_final_sent else "",
    )


_BY_ITSELF: Final = frozenset({"unpaid", "lease_lapsed", "fenced", "host_stopped"})
"""Reasons for an end that nobody above ordered: said with the first word of it, since the receipt comes later."""


def observed(state: WorkloadState) -> ObservedWorkload:
    """The workload as the Master is told of it."""
    is_ending = state.phase in (WorkloadPhase.STOPPING, WorkloadPhase.GONE)
    why = state.end_reason if is_ending and state.end_reason in _BY_ITSELF else ""
    return ObservedWorkload(
        state.workload_id,
        state.phase,
        state.slots,
        state.exit_code,
        state.running_ns,
        state.runtime,
        dict(state.ports),
        state.detail or why,
        dict(state.faults),
    )
