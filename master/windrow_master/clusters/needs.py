"""The answers to a request for hosts, as values: Ready, or what has to happen first, outside the unit of work; then the
request is made again. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from windrow_master.clusters.model import Network
from windrow_master.clusters.topology import Meeting
from windrow_master.placement.model import Placement, Refusal
from windrow_proto.errors import NoCapacity
from windrow_proto.ids import HostId
from windrow_proto.units import SECOND

REASONS_MAX: Final = 200
SOON_NS: Final = 2 * SECOND
"""When to ask again for a card that is being challenged, or is cleared up after a proof: a matter of seconds."""


@dataclass(frozen=True, slots=True)
class Ready:
    """It fits in these places, and its members meet in this way."""

    found: Placement
    network: Network


@dataclass(frozen=True, slots=True)
class Look:
    """These hosts have to look for each other first: of them it is not known how they meet."""

    hosts: Sequence[Meeting]


@dataclass(frozen=True, slots=True)
class Evict:
    """The test rentals on these hosts have to end first. refused: what the renter is told if they do not."""

    hosts: Sequence[HostId]
    refused: NoCapacity


Needs = Look | Evict


def eviction(refusal: Refusal) -> Evict:
    """Return which test rentals have to end; raises NoCapacity where it would not fit without them either."""
    if refusal.without_proofs is None:
        raise _no_capacity(refusal)
    return Evict(refusal.proofs_on, _no_capacity(refusal))


def _no_capacity(refusal: Refusal) -> NoCapacity:
    reasons = [
        {"host_id": verdict.host_id, "host_name": verdict.host_name, "reason": verdict.reason or ""}
        for verdict in refusal.reasons[:REASONS_MAX]
    ]
    if not reasons:
        return NoCapacity("No host has joined yet. Start one with `windrow up`, or make a join token for one.")
    again_ns = SOON_NS if refusal.is_soon or refusal.without_proofs is not None else 0
    only = f"{reasons[0]['host_name']} does not fit: {reasons[0]['reason']}." if len(refusal.reasons) == 1 else None
    return NoCapacity(only, reasons=reasons, retry_after_ns=again_ns)
