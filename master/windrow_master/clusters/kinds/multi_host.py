"""Judges a cluster whose members know each other by the state of its members, and decides how a lost one is replaced.
Pure.

    creating   one that fails, or whose host is lost, breaks all; they start together once all of them wait
    gang       its members end together: where one has failed the cluster fails, after five minutes in which the others
               may end as well, or, if that was asked for, all of them are started again, on hosts that are there
    ray, dask  without rank 0 there is no cluster; any other rank is replaced by one on another host

Whoever is replaced only has to go: it is no member any more, and counts for nothing but for deleting.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from windrow_master.clusters import images
from windrow_master.clusters.model import Cluster, ClusterKind, ClusterPhase, Workload, WorkPhase
from windrow_master.clusters.reports import STARTED, Judgement, broken, ended, exit_text, judge_ending, over
from windrow_master.clusters.states import HOLDING, ClusterEvent
from windrow_proto.units import MINUTE

HURT_KEPT_NS: Final = 5 * MINUTE
"""How long what is left of a gang goes on when one has failed; the others may wait for it in vain, and cost."""
FILL_NS: Final = 10 * MINUTE
"""How long a cluster waits for a host in the place of a lost one: what is left of it costs money meanwhile."""
RESTARTS_MAX: Final = 5
"""Of one cluster: what is lost that often is not lost by chance."""
FIRST_END: Final = "first_end"
"""The step that says which rank of a gang failed first."""
ENDED_ALONE: Final = "has ended while others run"


def named(workload: Workload) -> str:
    """Return which member on which host, for people."""
    return f"rank {workload.rank} on {workload.host_name}"


def members_of(workloads: Sequence[Workload]) -> tuple[Workload, ...]:
    """Those that were not replaced, by rank."""
    return tuple(sorted((one for one in workloads if one.is_member), key=lambda one: one.rank))


def judge(cluster: Cluster, workloads: Sequence[Workload], now_ns: int) -> Judgement | None:
    """Return the verdict on such a cluster; None when nothing does."""
    members = members_of(workloads)
    if cluster.phase in HOLDING and _is_ended(cluster, members):
        return ended(_told(cluster, members))
    match cluster.phase:
        case ClusterPhase.STOPPING | ClusterPhase.DELETING:
            return judge_ending(workloads, now_ns)
        case ClusterPhase.CREATING:
            found = _judge_creating(members, now_ns)
        case ClusterPhase.RUNNING | ClusterPhase.DEGRADED:
            found = _judge_running(cluster, members, workloads, now_ns)
        case _:
            return None
    return found or _judge_whole(cluster, members, now_ns)


def _judge_creating(members: Sequence[Workload], now_ns: int) -> Judgement | None:
    for member in members:
        why = broken(member, now_ns)
        if why is None and member.lost_since_ns is not None:
            why = "its host is not heard of, and the cluster was not up yet"
        if why is not None:
            return Judgement(ClusterEvent.BROKEN, f"{named(member)}: {why}")
    return None


def _judge_running(
    cluster: Cluster, members: Sequence[Workload], workloads: Sequence[Workload], now_ns: int
) -> Judgement | None:
    if cluster.restarts >= RESTARTS_MAX and hurt(cluster, members):
        first = hurt(cluster, members)[0]
        return Judgement(ClusterEvent.BROKEN, f"{_said(first)}; members were replaced {RESTARTS_MAX} times before")
    missing = cluster.request.hosts - len(members)
    if missing > 0:
        since_ns = max((one.replaced_at_ns or 0 for one in workloads), default=now_ns)
        if now_ns - since_ns >= FILL_NS:
            said = f"no host was found within {FILL_NS // MINUTE} minutes in the place of {missing} that were lost"
            return Judgement(ClusterEvent.BROKEN, said)
        return Judgement(ClusterEvent.IMPAIRED, f"{missing} of its {cluster.request.hosts} members are being replaced")
    wounds = hurt(cluster, members)
    for member in wounds:
        if can_mend(cluster, member):
            continue
        ended_ns = now_ns if member.ended_at_ns is None else member.ended_at_ns
        is_late = member.phase is WorkPhase.EXITED and now_ns - ended_ns >= HURT_KEPT_NS
        if is_late or broken(member, now_ns) is not None:
            return Judgement(ClusterEvent.BROKEN, _said(member))
    if wounds:
        return Judgement(ClusterEvent.IMPAIRED, "; ".join(_said(member) for member in wounds))
    return None


def _judge_whole(cluster: Cluster, members: Sequence[Workload], now_ns: int) -> Judgement | None:
    """Of one whose members are all there and well."""
    for member in members:
        why = over(member, now_ns)
        if why is not None:
            return Judgement(ClusterEvent.DELETE, why)
    if not members or len(members) < cluster.request.hosts:
        return None
    if all(member.phase in STARTED for member in members):
        return Judgement(ClusterEvent.READY, "")
    is_due = any(member.phase is WorkPhase.WAITING_MEMBERS and member.start_command is None for member in members)
    if is_due and all(member.phase in (WorkPhase.WAITING_MEMBERS, WorkPhase.RUNNING) for member in members):
        if cluster.phase is ClusterPhase.CREATING and (why := images.disagreement(members)):
            return Judgement(ClusterEvent.BROKEN, why)
        return Judgement(ClusterEvent.ASSEMBLED, "")
    return None


def _is_ended(cluster: Cluster, members: Sequence[Workload]) -> bool:
    """Return whether its work is over."""
    told = _told(cluster, members)
    is_whole = len(told) == cluster.request.hosts if cluster.kind is ClusterKind.GANG else bool(told)
    return is_whole and all(member.phase is WorkPhase.EXITED for member in told)


def _told(cluster: Cluster, members: Sequence[Workload]) -> Sequence[Workload]:
    """Those whose end is the end of the work: every rank of a gang, rank 0 of the others."""
    return members if cluster.kind is ClusterKind.GANG else [member for member in members if member.rank == 0]


def hurt(cluster: Cluster, members: Sequence[Workload]) -> tuple[Workload, ...]:
    """The members without which it does not go on as it was asked for."""
    if _is_ended(cluster, members):
        return ()
    return tuple(member for member in members if _is_hurt(cluster, member))


def _is_hurt(cluster: Cluster, member: Workload) -> bool:
    if member.lost_since_ns is not None or member.phase in (WorkPhase.FAILED, WorkPhase.GONE, WorkPhase.STOPPING):
        return True
    if member.phase is not WorkPhase.EXITED:
        return False
    # A rank of a gang that is done waits for the others; a worker of an engine is never done before its head.
    return member.exit_code != 0 if cluster.kind is ClusterKind.GANG else member.rank > 0


def _said(member: Workload) -> str:
    if member.lost_since_ns is not None:
        return f"host_lost: {named(member)} is not heard of; nothing is charged for it until its host signs again"
    if member.phase is WorkPhase.EXITED:
        return f"{named(member)} {ENDED_ALONE}: {exit_text(member)}"
    return f"{named(member)}: {member.detail or 'its host has ended the work without being asked'}"


def first_ended(cluster: Cluster, workloads: Sequence[Workload]) -> Workload | None:
    """Return the rank of a gang that failed first: the others fail by it, or wait in vain. By the Master's clock when
    it heard of each end, since clocks of hosts differ; None: none has failed."""
    failed = [one for one in members_of(workloads) if one.phase is WorkPhase.EXITED and one.exit_code != 0]
    is_gang = cluster.kind is ClusterKind.GANG
    return min(failed, key=lambda one: (one.ended_at_ns or 0, one.rank), default=None) if is_gang else None


def is_first_end_told(cluster: Cluster) -> bool:
    """Return whether people were told of it in the present run."""
    return any(one.name == FIRST_END and one.at_ns >= (cluster.started_at_ns or 0) for one in cluster.steps)


def is_told_with_its_log(cluster: Cluster, reason: str) -> bool:
    """Return whether the first failed rank, with its last lines, is soon told in place of a degraded cluster."""
    return cluster.kind is ClusterKind.GANG and not cluster.request.restart_members and ENDED_ALONE in reason


def can_mend(cluster: Cluster, member: Workload) -> bool:
    """Return whether a lost member can be made good: all of a gang if that was asked for, all but the head of an
    engine."""
    if cluster.kind is ClusterKind.GANG:
        return cluster.request.restart_members
    return member.rank > 0


@dataclass(frozen=True, slots=True)
class Mending:
    """The repair of a cluster that has lost members. leaving: who only has to go now. ranks: for whom hosts are
    looked for, once nobody is leaving."""

    leaving: tuple[Workload, ...] = ()
    ranks: tuple[int, ...] = ()


def mending(cluster: Cluster, workloads: Sequence[Workload]) -> Mending:
    """Return the repair of a Degraded cluster, as far as it is possible; nothing where it cannot or need not."""
    members = members_of(workloads)
    if cluster.phase is not ClusterPhase.DEGRADED or cluster.restarts > RESTARTS_MAX:
        return Mending()
    wounds = hurt(cluster, members)
    if cluster.restarts < RESTARTS_MAX and wounds and all(can_mend(cluster, member) for member in wounds):
        return Mending(members if cluster.kind is ClusterKind.GANG else wounds)
    held = {member.rank for member in members}
    return Mending((), tuple(rank for rank in range(cluster.request.hosts) if rank not in held))
