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


class Refused(NoCapacity):
    """No host can run this now. The reasons follow; change the request or wait."""

    def __init__(self, refusal: Refusal) -> None:
        is_soon = refusal.is_soon or refusal.without_proofs is not None
        super().__init__(refusal.detail, retry_after_ns=SOON_NS if is_soon else 0)
        self.refusal = refusal
        self.retryable = refusal.is_possible


class DearerHere(NoCapacity):
    """A place here costs more than a machine that is bought for it. Wait, or ask without optimize."""

    retryable = False  # no host here is to be kept for it


@dataclass(frozen=True, slots=True)
class Evict:
    """The test rentals on these hosts have to end first. refused: what the renter is told if they do not."""

    hosts: Sequence[HostId]
    refused: Refused


Needs = Look | Evict


def eviction(refusal: Refusal) -> Evict:
    """Return which test rentals have to end; raises Refused where it would not fit without them either."""
    if refusal.without_proofs is None:
        raise Refused(refusal)
    return Evict(refusal.proofs_on, Refused(refusal))
