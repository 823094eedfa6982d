"""Computes how far regions are from each other, from the round trips that hosts measured to relays. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from statistics import median_low
from typing import Final

from windrow_proto.units import MILLISECOND

HOSTS_MAX: Final = 100
"""Of each region, whose measurements count: enough for a median, however large the fleet is."""
Distances = Mapping[tuple[str, str], int]
"""Whole milliseconds, rounded up, by two regions in the order of their names. A pair that nobody measured is not in
it."""


def distances(measured: Iterable[tuple[str, Mapping[str, int]]], regions: Mapping[str, str]) -> Distances:
    """The lower median of what hosts of one region measured to relays of the other, both ways together. measured: of
    each host its region and its round trips in nanoseconds by Access; regions: of each Access."""
    counted, found = Counter[str](), dict[tuple[str, str], list[int]]()
    for own, rtts_ns in measured:
        if not rtts_ns or not own or counted[own] >= HOSTS_MAX:
            continue
        counted[own] += 1
        for access_id, rtt_ns in rtts_ns.items():
            other = regions.get(access_id, own)
            if other and other != own and rtt_ns >= 0:
                found.setdefault((min(own, other), max(own, other)), []).append(rtt_ns)
    return {pair: -(-median_low(rtts_ns) // MILLISECOND) for pair, rtts_ns in found.items()}


def distance(known: Distances, one: str, other: str) -> int | None:
    """Milliseconds between two regions, 0 in the same; None: not known."""
    return 0 if one == other else known.get((min(one, other), max(one, other)))
