"""Finds where a request fits once the Master's own test rentals have ended, as they do for a renter who finds no
capacity. Pure.

refused ─▶ vacated: a host's slots and work without them ─▶ retried: where it fits then, and whose proofs are to end
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from windrow_master.clusters.model import Workload
from windrow_master.fleet.model import Slot, SlotState
from windrow_master.placement.model import Refusal, Request, Snapshot
from windrow_master.placement.service import plan
from windrow_proto.ids import ClusterId, HostId
from windrow_proto.units import SECOND

LEAVING_NS: Final = 60 * SECOND
"""For a host to end a proof and to clean up, of which it takes ten seconds where the work does not obey: on what it has
not done by then nobody counts, or whoever asks would wait for it each time."""
_LEAVING: Final = (SlotState.STOPPING, SlotState.SCRUBBING)


def vacated(
    slots: Sequence[Slot], held: Sequence[Workload], proofs: Collection[ClusterId], now_ns: int
) -> tuple[tuple[Slot, ...], tuple[Workload, ...]]:
    """The slots of a host, and the work that holds any, as both will be once these clusters have ended.

    now_ns: wall time; what has been ending for LEAVING_NS stays.
    """
    stuck = {one.holder for one in slots if one.state in _LEAVING and now_ns - one.changed_at_ns >= LEAVING_NS}
    going = {cluster_id for cluster_id in proofs if cluster_id not in stuck}
    after = tuple(_vacated(one) if one.holder in going else one for one in slots)
    return after, tuple(one for one in held if one.cluster_id not in going)


def _vacated(slot: Slot) -> Slot:
    # What is out of order stays so when its holder has gone.
    return replace(slot, holder=None, state=slot.state if slot.state is SlotState.FAULTED else SlotState.FREE)


def retried(request: Request, refusal: Refusal, then: Snapshot, hosts: Collection[HostId]) -> Refusal:
    """The refusal, with where the request fits then. then: the fleet with these hosts vacated, else as it is."""
    if request.hosts == 1:  # wherever else nothing changes it was refused already
        then = replace(then, candidates=tuple(one for one in then.candidates if one.host_id in hosts))
    found = plan(request, then)
    if isinstance(found, Refusal):
        return refusal
    proofs_on = tuple(member.host_id for member in found.members if member.host_id in hosts)
    return replace(refusal, without_proofs=found, proofs_on=proofs_on)
