"""Judges a host's reports: their meaning for a workload, and the meaning of its workloads for a cluster. Pure.

Reports come late, twice and out of order, so a workload's phase only goes forward; a report under other tokens than
those that were granted is not about it. A cluster is judged by all of its workloads together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from windrow_master.clusters.model import Cluster, ClusterPhase, Workload, WorkPhase
from windrow_master.clusters.states import HOLDING, ClusterEvent
from windrow_proto.model import ObservedWorkload, WorkloadPhase
from windrow_proto.units import MINUTE

LOST_AFTER_NS: Final = 30 * MINUTE
"""How long a lost host may still come back with its work: its lease, after which it ends the work itself."""
VOLUMES_WAIT_NS: Final = 130 * MINUTE
"""Likewise for its volumes: as long as one of 64 GiB may take, and a little more."""
FILES_WAIT_NS: Final = 15 * MINUTE
"""How long a workload waits for files that it was promised; waiting costs nothing but keeps others out."""
CREATE_NS: Final = 60 * MINUTE
"""For a host to prepare it: it gives up itself after 30 minutes, and one that says nothing holds its slots for
nothing."""
END_OVERDUE_NS: Final = MINUTE
"""For work to end once that was asked, where its log and files are to be brought in: after that it is just deleted."""
DETAIL_MAX: Final = 400

_RANK: Final = {
    WorkPhase.PENDING: 0,
    WorkPhase.PREPARING: 1,
    WorkPhase.WAITING_VOLUMES: 2,
    WorkPhase.WAITING_FILES: 3,
    WorkPhase.WAITING_MEMBERS: 4,
    WorkPhase.RUNNING: 5,
    WorkPhase.EXITED: 6,
    WorkPhase.FAILED: 6,
    WorkPhase.STOPPING: 7,
    WorkPhase.GONE: 8,
}
_OBSERVED: Final = {
    WorkloadPhase.PREPARING: WorkPhase.PREPARING,
    WorkloadPhase.WAITING_VOLUMES: WorkPhase.WAITING_VOLUMES,
    WorkloadPhase.WAITING_FILES: WorkPhase.WAITING_FILES,
    WorkloadPhase.WAITING_MEMBERS: WorkPhase.WAITING_MEMBERS,
    WorkloadPhase.RUNNING: WorkPhase.RUNNING,
    WorkloadPhase.EXITED: WorkPhase.EXITED,
    WorkloadPhase.STOPPING: WorkPhase.STOPPING,
    WorkloadPhase.GONE: WorkPhase.GONE,
    WorkloadPhase.FAILED: WorkPhase.FAILED,
}
ENDED: Final = frozenset({WorkPhase.EXITED, WorkPhase.FAILED, WorkPhase.GONE})
STARTED: Final = frozenset({WorkPhase.RUNNING, WorkPhase.EXITED})
_ENDING: Final = frozenset({WorkPhase.RUNNING, WorkPhase.STOPPING, WorkPhase.FAILED})
"""Phases in which work may be that was to end with its results kept; FAILED: its GPU fell out meanwhile."""


def advanced(workload: Workload, phase: WorkPhase, now_ns: int, detail: str = "") -> Workload:
    """The workload once it is known to be at least this far; the same one if that is no news."""
    if _RANK[phase] <= _RANK[workload.phase]:
        return workload
    ended = now_ns if phase in ENDED and workload.ended_at_ns is None else workload.ended_at_ns
    return replace(workload, phase=phase, detail=(detail or workload.detail)[:DETAIL_MAX], ended_at_ns=ended)


def observed(workload: Workload, report: ObservedWorkload, now_ns: int) -> Workload:
    """The workload after one report of its host."""
    phase = _OBSERVED.get(report.phase)
    granted = {slot.slot_id: slot.token for slot in workload.slots}
    if phase is None or any(granted.get(slot.slot_id) != slot.token for slot in report.slots):
        return workload
    after = advanced(workload, phase, now_ns, report.detail)
    if _RANK[phase] < _RANK[workload.phase]:
        return after
    return replace(
        after,
        exit_code=report.exit_code if report.exit_code is not None else after.exit_code,
        running_ns=max(after.running_ns, report.running_ns),
        ports=report.ports or after.ports,
        lost_since_ns=None,
    )


def lost(workload: Workload, since_ns: int | None) -> Workload:
    """The workload once its host is lost (since when), or heard of again (None); what is over cannot be lost."""
    if workload.phase is WorkPhase.GONE or workload.is_released:
        return workload
    if since_ns is not None and workload.lost_since_ns is not None:
        return workload
    return replace(workload, lost_since_ns=since_ns)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict of its workloads on a cluster: an event for the table, and the reason to show."""

    event: ClusterEvent
    reason: str


def judge(phase: ClusterPhase, workloads: Sequence[Workload], now_ns: int) -> Judgement | None:
    """Return the verdict on a cluster in this phase; None when nothing does."""
    if phase in (ClusterPhase.STOPPING, ClusterPhase.DELETING):
        return judge_ending(workloads, now_ns)
    if phase not in (ClusterPhase.CREATING, ClusterPhase.RUNNING, ClusterPhase.DEGRADED):
        return None
    for workload in workloads:
        why = broken(workload, now_ns)
        if why is not None:
            return Judgement(ClusterEvent.BROKEN, why)
    away = [workload for workload in workloads if workload.lost_since_ns is not None]
    if away:
        names = ", ".join(workload.host_name for workload in away)
        said = f"{names} is not heard of; nothing is charged until it signs again, and it is given up after 30 minutes"
        return Judgement(ClusterEvent.IMPAIRED, said)
    for workload in workloads:
        why = over(workload, now_ns)
        if why is not None:
            return Judgement(ClusterEvent.DELETE, why)
    if workloads and all(workload.phase is WorkPhase.EXITED for workload in workloads):
        return ended(workloads)
    if workloads and all(workload.phase in STARTED for workload in workloads):
        return Judgement(ClusterEvent.READY, "")
    return None


def judge_ending(workloads: Sequence[Workload], now_ns: int) -> Judgement | None:
    """Of what is being stopped or deleted: whether nothing of it is left on any host that answers."""
    if all(workload.phase is WorkPhase.GONE for workload in workloads):
        return Judgement(ClusterEvent.GONE, "")
    if all(workload.phase is WorkPhase.GONE or is_given_up(workload, now_ns) for workload in workloads):
        said = "its host is gone for longer than the lease, so the host has ended the work itself"
        return Judgement(ClusterEvent.GONE, said)
    return None


def broken(workload: Workload, now_ns: int) -> str | None:
    """Return why this workload cannot go on; None: it can."""
    if workload.phase is WorkPhase.FAILED:
        return workload.detail or f"the work failed on {workload.host_name}"
    if workload.phase in (WorkPhase.GONE, WorkPhase.STOPPING):
        return workload.detail or f"{workload.host_name} has ended the work without being asked"
    is_begun = workload.phase not in (WorkPhase.PENDING, WorkPhase.PREPARING)
    if not is_begun and now_ns - workload.created_at_ns >= CREATE_NS and workload.lost_since_ns is None:
        return f"{workload.host_name} did not start it within {CREATE_NS // MINUTE} minutes"
    if is_given_up(workload, now_ns):
        return f"host_lost: {workload.host_name} was not heard of for 30 minutes"
    return None


def is_given_up(workload: Workload, now_ns: int) -> bool:
    """Return whether its host is lost for longer than the host would let it run."""
    return workload.lost_since_ns is not None and now_ns - workload.lost_since_ns >= LOST_AFTER_NS


def over(workload: Workload, now_ns: int) -> str | None:
    """Return why its time is over; None: it is not."""
    if workload.phase is WorkPhase.WAITING_VOLUMES and now_ns - workload.created_at_ns >= VOLUMES_WAIT_NS:
        return "it waited more than two hours for its volumes and they did not come"
    if workload.phase is WorkPhase.WAITING_FILES and now_ns - workload.created_at_ns >= FILES_WAIT_NS:
        return "it waited 15 minutes for its files and they did not come"
    return None


def ended(workloads: Sequence[Workload]) -> Judgement:
    """Return the verdict once all of these have ended by themselves: done where each ended with 0, else the first
    that did not, in words."""
    failed = [workload for workload in workloads if workload.exit_code != 0]
    if not failed:
        return Judgement(ClusterEvent.DONE, "exit 0")
    who = f"rank {failed[0].rank} on {failed[0].host_name}: " if len(workloads) > 1 else ""
    return Judgement(ClusterEvent.UNDONE, f"{who}{exit_text(failed[0])}")


def has_results(workload: Workload) -> bool:
    """Return whether it has ended by itself and its host still has its log and files, which nobody has brought in
    yet."""
    return workload.phase is WorkPhase.EXITED and workload.delete_command is None and not workload.is_released


def is_end_overdue(cluster: Cluster, workload: Workload, now_ns: int) -> bool:
    """Return whether its end was asked for long ago, with its results to be kept, and it still runs or has failed."""
    if cluster.phase in HOLDING or workload.phase not in _ENDING:
        return False
    asked_ns = next((step.at_ns for step in reversed(cluster.steps) if step.name == cluster.phase.value.lower()), 0)
    return now_ns - asked_ns >= END_OVERDUE_NS


def exit_text(workload: Workload) -> str:
    """Return how a workload's command ended, in words."""
    if workload.exit_code is None:
        return f"its exit code is not known{_why(workload)}"
    return f"exit {workload.exit_code}{_why(workload)}"


def _why(workload: Workload) -> str:
    return f": {workload.detail}" if workload.detail else ""
