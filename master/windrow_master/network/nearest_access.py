"""Chooses the Access of a tunnel by the round trips that the renter and the host measured. Pure.

A tunnel costs both its round trips: renter to Access, Access to host. The host's own Access is what it is without a
reason against it, and wins ties: another has to be clearly nearer in sum, as when an agent moves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from windrow_proto.nearness import is_about_as_near, is_clearly_nearer
from windrow_proto.units import MINUTE

LISTED_MAX: Final = 16
"""Accesses that a renter is told of, or tells of: the nearest to the host."""
UNREACHED_KEPT_NS: Final = 10 * MINUTE
"""How long a host is not sent again to an Access whose port for tunnels it did not reach: a try takes 8 s."""
UNREACHED_MAX: Final = 4_096
"""Pairs of host and Access."""


@dataclass(frozen=True, slots=True)
class TunnelPlace:
    """One worker of an Access that may carry a tunnel. renters, hosts: where either finds it."""

    access_id: str
    worker: str
    renters: str
    hosts: str
    load_permille: int = 0


@dataclass(frozen=True, slots=True)
class Nearby:
    """The measurements that the Master knows. own: the Access that the host is connected to; rtts_ns: what it
    measured, by Access."""

    own: str = ""
    places: tuple[TunnelPlace, ...] = ()
    rtts_ns: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wish:
    """The renter's wish and measurements. rtts_ns: what it measured, by Access; without: those that did not answer
    it."""

    rtts_ns: Mapping[str, int] = field(default_factory=dict)
    without: frozenset[str] = frozenset()


NO_WISH: Final = Wish()


class Unreached:
    """Accesses whose tunnels a host did not reach a while ago: so many, the oldest are forgotten first."""

    def __init__(self, kept_ns: int = UNREACHED_KEPT_NS, most: int = UNREACHED_MAX) -> None:
        self._kept_ns, self._most = kept_ns, most
        self._until_ns: dict[tuple[str, str], int] = {}

    def note(self, host_id: str, access_id: str, now_ns: int) -> None:
        """It did not now."""
        self._until_ns.pop((host_id, access_id), None)
        self._until_ns[host_id, access_id] = now_ns + self._kept_ns
        if len(self._until_ns) > self._most:
            del self._until_ns[next(iter(self._until_ns))]

    def but(self, host_id: str, nearby: Nearby, now_ns: int) -> Nearby:
        """The same without them."""
        able = tuple(one for one in nearby.places if now_ns >= self._until_ns.get((host_id, one.access_id), 0))
        return replace(nearby, places=able)


def choose(nearby: Nearby, wish: Wish) -> TunnelPlace | None:
    """Another Access than the host's own, where that is better or did not answer the renter; None: the host's own."""
    others = [one for one in nearby.places if one.access_id != nearby.own and one.access_id not in wish.without]
    sums_ns = {
        access_id: rtt_ns + nearby.rtts_ns[access_id]
        for access_id, rtt_ns in wish.rtts_ns.items()
        if access_id in nearby.rtts_ns
    }
    known = [one for one in others if one.access_id in sums_ns]
    if nearby.own in wish.without:
        # Whichever else there is, by what is known of it, which may be nothing.
        return _best(known, sums_ns) or min(others, key=lambda one: _guess(one, nearby, wish), default=None)
    best = _best(known, sums_ns)
    if best is None or nearby.own not in sums_ns:
        return None
    return best if is_clearly_nearer(sums_ns[best.access_id], sums_ns[nearby.own]) else None


def listed(nearby: Nearby) -> tuple[TunnelPlace, ...]:
    """Those that a renter may measure: the host's own first, then the nearest to the host; none where none could be
    chosen."""
    if all(one.access_id == nearby.own for one in nearby.places):
        return ()
    own_first = sorted(
        nearby.places, key=lambda one: (one.access_id != nearby.own, _far(one, nearby.rtts_ns), one.access_id)
    )
    return tuple(own_first[:LISTED_MAX])


def _best(places: list[TunnelPlace], sums_ns: Mapping[str, int]) -> TunnelPlace | None:
    """The nearest in sum; of about as near ones the least loaded."""
    nearest_ns = min((sums_ns[one.access_id] for one in places), default=0)
    equals = [one for one in places if is_about_as_near(sums_ns[one.access_id], nearest_ns)]
    return min(equals, key=lambda one: (one.load_permille, sums_ns[one.access_id], one.access_id), default=None)


def _guess(place: TunnelPlace, nearby: Nearby, wish: Wish) -> tuple[tuple[bool, int], tuple[bool, int], int, str]:
    return _far(place, wish.rtts_ns), _far(place, nearby.rtts_ns), place.load_permille, place.access_id


def _far(place: TunnelPlace, rtts_ns: Mapping[str, int]) -> tuple[bool, int]:
    """An order: those that were measured first, the nearest of them first."""
    return place.access_id not in rtts_ns, rtts_ns.get(place.access_id, 0)
