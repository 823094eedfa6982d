"""Which Access to dial, from round trips and what each says of itself; nearest first, and not for every millisecond.

An agent stays where it is unless another is at least 10 ms and a third nearer, or its own drains. What was never
measured comes last, in an order of this host's own, so that the hosts of a dead Access spread.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from windrow_proto.ids import HostId
from windrow_proto.messages import AccessPoint, RegionMap
from windrow_proto.units import MILLISECOND, SECOND

NEARER_NS: Final = 10 * MILLISECOND
"""Below this nobody notices, and moving costs a handshake."""
TIE_NS: Final = 2 * MILLISECOND
"""Round trips this close count as equal; then the less loaded is taken."""
BACKOFF_NS: Final = SECOND // 2
BACKOFF_MAX_NS: Final = 15 * SECOND


@dataclass(frozen=True, slots=True)
class Measured:
    """What one ping found."""

    rtt_ns: int
    load_permille: int = 0
    is_draining: bool = False


def order(
    host_id: HostId, regions: RegionMap, measured: Mapping[str, Measured], current: str | None
) -> tuple[str, ...]:
    """Addresses to dial, the best first. measured: by address; an address that did not answer is not in it.

    current: the address in use or last used; it leads unless another is clearly better.
    """
    known = [point for point in regions.points if point.address in measured]
    known.sort(key=lambda point: _rank(point, measured[point.address]))
    unknown = [point for point in regions.points if point.address not in measured]
    unknown.sort(key=lambda point: (point.draining, _own_order(host_id, point.access_id)))
    addresses = tuple(point.address for point in (*known, *unknown))
    if current is None or current not in measured or not known:
        return addresses
    best, here = measured[known[0].address], measured[current]
    leaves = here.is_draining or any(point.draining for point in known if point.address == current)
    if leaves or is_clearly_nearer(best.rtt_ns, here.rtt_ns):
        return addresses
    return (current, *(address for address in addresses if address != current))


def is_clearly_nearer(other_ns: int, here_ns: int) -> bool:
    """Whether a move is worth it: at least 10 ms and at least one third nearer."""
    return here_ns - other_ns >= NEARER_NS and 3 * other_ns <= 2 * here_ns


def backoff_ns(attempt: int, uniform: float) -> int:
    """How long to wait after `attempt` rounds without any Access (from 1): full jitter, doubling up to 15 s."""
    return int(uniform * min(BACKOFF_MAX_NS, BACKOFF_NS * (1 << min(attempt, 10))))


def _rank(point: AccessPoint, found: Measured) -> tuple[bool, int, int, str]:
    return (found.is_draining or point.draining, found.rtt_ns // TIE_NS, found.load_permille, point.access_id)


def _own_order(host_id: HostId, access_id: str) -> bytes:
    return hashlib.sha256(f"{host_id}|{access_id}".encode()).digest()
