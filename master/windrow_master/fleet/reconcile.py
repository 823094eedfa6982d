"""Compares what should run on a host with what the host says runs there, and names what to do. Pure, level-triggered.

    desired and running, same token      nothing
    desired, not among what runs         ask once more; still missing half a minute later, it is lost: tell its cluster
    running, not desired, or old token   an orphan: delete it, 5 minutes after it was first seen
    should not run, but is still there   the same; usually its own delete is under way and comes first

A workload whose create is still open is not judged: the command's own answer will come.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Final

from windrow_master.fleet.model import DesiredWorkload
from windrow_proto.ids import WorkloadId
from windrow_proto.model import DeleteSpec, ObservedWorkload, WorkloadPhase
from windrow_proto.units import MINUTE, SECOND

RECONCILE_NS: Final = 30 * SECOND
ORPHAN_GRACE_NS: Final = 5 * MINUTE
"""An orphan may be a workload whose row is still being written, or one a person is looking at."""
MISSING_GRACE_NS: Final = 25 * SECOND
"""A report may be older than the start it does not show; the next comparison, one period later, decides."""
DELETE_GRACE_NS: Final = 10 * SECOND


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of one comparison. The two `since` maps are to be given to the next one; ask: let the host say
    again."""

    lost: tuple[DesiredWorkload, ...] = ()
    delete: tuple[DeleteSpec, ...] = ()
    ask: bool = False
    orphan_since_ns: Mapping[WorkloadId, int] = field(default_factory=dict)
    missing_since_ns: Mapping[WorkloadId, int] = field(default_factory=dict)


def compare(
    desired: Iterable[DesiredWorkload],
    observed: Iterable[ObservedWorkload],
    *,
    under_way: Set[str],
    before: Findings,
    now_ns: int,
) -> Findings:
    """One comparison of one host. `under_way`: workloads with an open create or delete; `now_ns`: monotonic."""
    wanted = {workload.workload_id: workload for workload in desired}
    seen = {workload.workload_id: workload for workload in observed if workload.phase is not WorkloadPhase.GONE}
    missing = [w for w in wanted.values() if w.should_run and not {w.workload_id} & (seen.keys() | under_way)]
    orphans = [workload for workload in seen.values() if _is_orphan(workload, wanted.get(workload.workload_id))]
    missing_since = {w.workload_id: before.missing_since_ns.get(w.workload_id, now_ns) for w in missing}
    orphan_since = {w.workload_id: before.orphan_since_ns.get(w.workload_id, now_ns) for w in orphans}
    return Findings(
        lost=tuple(w for w in missing if now_ns - missing_since[w.workload_id] >= MISSING_GRACE_NS),
        delete=tuple(
            DeleteSpec(w.workload_id, w.slots, DELETE_GRACE_NS)
            for w in orphans
            if w.workload_id not in under_way and now_ns - orphan_since[w.workload_id] >= ORPHAN_GRACE_NS
        ),
        ask=bool(missing or orphans),
        orphan_since_ns=orphan_since,
        missing_since_ns=missing_since,
    )


def _is_orphan(seen: ObservedWorkload, wanted: DesiredWorkload | None) -> bool:
    if wanted is None:
        return True
    if not wanted.should_run:
        return True
    granted = {grant.slot_id: grant.token for grant in wanted.slots}
    return any(granted.get(grant.slot_id) != grant.token for grant in seen.slots)
