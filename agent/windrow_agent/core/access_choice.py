"""Chooses the Access to dial, from round trips and from the load that each Access tells: the nearest first, but not for
every millisecond. Pure.

An agent stays where it is unless another is at least 10 ms and a third nearer, or its own drains, or its home serves
again. Those that are about as near as each other come in an order of this host's own, by the free capacity that each
tells, so that the hosts of a dead Access spread over the others in proportion to it; what was never measured comes
last, in such an order, too. One of the nearest is the host's home, whatever the loads are: hosts return to an Access
that has drained or died, as long as it is not the fuller one.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from windrow_proto.ids import HostId
from windrow_proto.messages import AccessPoint, RegionMap
from windrow_proto.nearness import RTTS_MAX, is_about_as_near, is_clearly_nearer
from windrow_proto.units import SECOND

LOAD_FULL_PERMILLE: Final = 1000
BACKOFF_NS: Final = SECOND // 2
BACKOFF_MAX_NS: Final = 15 * SECOND


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of one ping."""

    rtt_ns: int
    load_permille: int = 0
    is_draining: bool = False


def order(
    host_id: HostId, regions: RegionMap, measured: Mapping[str, Measured], current: str | None
) -> tuple[str, ...]:
    """Addresses to dial, the best first. measured: by address; an address that did not answer is not in it.

    current: the address in use or last used; it leads unless another is clearly better, or is this host's home.
    """
    known = _by_nearness(host_id, [point for point in regions.points if point.address in measured], measured)
    unknown = [point for point in regions.points if point.address not in measured]
    unknown.sort(key=lambda point: (point.draining, turn(f"{host_id}|{point.access_id}", 1)))
    addresses = tuple(point.address for point in (*known, *unknown))
    if current is None or current not in measured or not known:
        return addresses
    best, here = measured[known[0].address], measured[current]
    leaves = here.is_draining or any(point.draining for point in known if point.address == current)
    if leaves or is_clearly_nearer(best.rtt_ns, here.rtt_ns):
        return addresses
    first = _home(host_id, known, measured, current) or current
    return (first, *(address for address in addresses if address != first))


def second(
    host_id: HostId,
    regions: RegionMap,
    measured: Mapping[str, Measured],
    current: str | None,
    held: str | None = None,
) -> str | None:
    """Chooses the Access of the second, warm connection: the best one in another region, so that one outage does not
    end both connections; without one, the best other Access. Skips those that drain or answered no ping.

    All than which none is clearly nearer are equals here, in this host's own order: whoever is measured while a crowd
    connects does not find the nearer one. held: where it is now; it stays there while that is among them.
    """
    here = next((point.region for point in regions.points if point.address == current), None)
    able = [
        point
        for point in regions.points
        if point.address != current and point.address in measured and not _drains(point, measured)
    ]
    able = [point for point in able if point.region != here] or able
    nearest_ns = min((measured[point.address].rtt_ns for point in able), default=0)
    equals = [point for point in able if not is_clearly_nearer(nearest_ns, measured[point.address].rtt_ns)]
    if any(point.address == held for point in equals):
        return held
    equals.sort(key=lambda point: _own_turn(host_id, point, measured))
    return equals[0].address if equals else None


def to_tell(told: Mapping[str, int], measured: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """The round trips to Accesses by id that the Master should hear of, the nearest first: all of them when one came,
    went or differs from what was told, else none. Over one line of several addresses the shorter counts."""
    rtts_ns: dict[str, int] = {}
    for access_id, rtt_ns in measured:
        rtts_ns[access_id] = min(rtt_ns, rtts_ns.get(access_id, rtt_ns))
    nearest = sorted(rtts_ns.items(), key=lambda one: (one[1], one[0]))[:RTTS_MAX]
    is_known = told.keys() == dict(nearest).keys() and all(
        is_about_as_near(max(told[access_id], rtt_ns), min(told[access_id], rtt_ns)) for access_id, rtt_ns in nearest
    )
    return () if is_known else tuple(nearest)


def mixed(host_id: HostId, addresses: Iterable[str]) -> list[str]:
    """These in an order of this host's own: on a busy machine it counts who is measured first, and that is not to be
    the same Access for all hosts."""
    return sorted(addresses, key=lambda address: turn(f"{host_id}|{address}", 1))


def backoff_ns(attempt: int, uniform: float) -> int:
    """The pause after `attempt` rounds without any Access (from 1): full jitter, doubling up to 15 s."""
    return int(uniform * min(BACKOFF_MAX_NS, BACKOFF_NS * (1 << min(attempt, 10))))


def turn(key: str, weight: int) -> float:
    """When something comes up for the host and the thing that `key` names; the least turn leads.

    weight: >= 1. Over many hosts each thing leads in proportion to its weight, and one that goes moves only the hosts
    it led for (weighted rendezvous hashing).
    """
    digest = hashlib.sha256(key.encode()).digest()
    uniform = (int.from_bytes(digest[:6], "big") + 1) / ((1 << 48) + 1)  # above 0 and below 1
    return -math.log(uniform) / weight


def _by_nearness(
    host_id: HostId, points: Sequence[AccessPoint], measured: Mapping[str, Measured]
) -> tuple[AccessPoint, ...]:
    """Those that drain last; otherwise groups of about the same round trip, the nearest first.

    Within a group the host's own order, weighted by free capacity. The least loaded for everybody would be wrong: the
    figures are minutes old, and all hosts of a dead Access would go to the same one.
    """
    near = sorted(points, key=lambda point: (_drains(point, measured), measured[point.address].rtt_ns))
    groups: list[list[AccessPoint]] = []
    for point in near:
        first = groups[-1][0] if groups else None
        if (
            first is None
            or _drains(first, measured) is not _drains(point, measured)
            or not is_about_as_near(measured[point.address].rtt_ns, measured[first.address].rtt_ns)
        ):
            groups.append([])
        groups[-1].append(point)

    return tuple(
        point for group in groups for point in sorted(group, key=lambda one: _own_turn(host_id, one, measured))
    )


def _home(host_id: HostId, known: Sequence[AccessPoint], measured: Mapping[str, Measured], current: str) -> str | None:
    """The one of the nearest Accesses, `current` among them, that is this host's own. The choice never changes with the
    loads, so that a host moves once and no two Accesses exchange hosts for ever. None where it is fuller than
    `current`."""
    nearest_ns = min(measured[point.address].rtt_ns for point in known)
    equals = [
        point
        for point in known
        if not _drains(point, measured) and is_about_as_near(measured[point.address].rtt_ns, nearest_ns)
    ]
    if all(point.address != current for point in equals):
        return None
    home = min(equals, key=lambda point: turn(f"{host_id}|{point.access_id}", 1)).address
    return home if measured[home].load_permille <= measured[current].load_permille else None


def _own_turn(host_id: HostId, point: AccessPoint, measured: Mapping[str, Measured]) -> float:
    """The place of this Access among equals, for this host."""
    free = max(1, LOAD_FULL_PERMILLE - measured[point.address].load_permille)
    return turn(f"{host_id}|{point.access_id}", free)


def _drains(point: AccessPoint, measured: Mapping[str, Measured]) -> bool:
    return measured[point.address].is_draining or point.draining
