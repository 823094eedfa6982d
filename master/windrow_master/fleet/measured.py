"""What the figures of several relays make together, and whom the Master asks. Pure.

A round is a command: the host is measured by its own relay, then by those that the command names. What comes within
ROUND_NS of each other is one round, and the median of it counts; with two relays that is their mean. The history has a
row for each round and region, where it is the command's nonce that says which round it was.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from windrow_master.fleet.model import MeasuredRound, Measurement
from windrow_proto.model import BandwidthSpec
from windrow_proto.units import MINUTE

ROUND_NS: Final = 3 * MINUTE
"""A relay may be busy with others for half a minute (windrow_agent.probes), and is asked again."""
OTHERS_MAX: Final = 2
"""Beside the host's own relay: two or three in all."""


def after(
    before: Measurement | None, access_id: str, region: str, up_bps: int, down_bps: int, now_ns: int
) -> Measurement:
    """The measurement with what this relay counted now."""
    known = before.relays if before is not None else {}
    relays = {name: one for name, one in known.items() if now_ns - one[2] < ROUND_NS}
    relays[access_id] = (up_bps, down_bps, now_ns)
    ups, downs = ([one[at] for one in relays.values()] for at in (0, 1))
    return Measurement(median(ups), median(downs), access_id, region, now_ns, relays)


def with_relay(found: MeasuredRound, access_id: str, up_bps: int, down_bps: int, now_ns: int) -> MeasuredRound:
    """A round with what one more of its region's relays counted."""
    relays = {**found.relays, access_id: (up_bps, down_bps)}
    ups, downs = ([one[at] for one in relays.values()] for at in (0, 1))
    return replace(found, at_ns=now_ns, up_bps=median(ups), down_bps=median(downs), relays=relays)


def median(figures: Sequence[int]) -> int:
    """Of at least one; between the two in the middle where there are two, rounded down."""
    found = sorted(figures)
    return (found[(len(found) - 1) // 2] + found[len(found) // 2]) // 2


def others(serving: Collection[str], chance: bytes) -> tuple[str, ...]:
    """Whom to ask beside the host's own relay, which may be among them: no host knows beforehand. chance: random, a
    byte for each."""
    left, found = sorted(serving), list[str]()
    for one in chance[:OTHERS_MAX]:
        if left:
            found.append(left.pop(one % len(left)))
    return tuple(found) if len(serving) > 1 else ()


def bytes_max(spec: BandwidthSpec | None) -> int:
    """What a measurement may move at most: both ways, by the host's own relay and by each that it names."""
    return 2 * spec.cap_bytes * (1 + len(spec.access_ids)) if spec is not None else 0


def free_again_ns(asked: Sequence[tuple[int, int]], wanted_bytes: int, budget_bytes: int) -> int | None:
    """None where what is wanted fits into the budget beside what was asked; else the time of the last of those that
    have to go first. asked: when, and how many bytes, oldest first."""
    total, found = sum(size for _, size in asked), None
    for at_ns, size in asked:
        if total + wanted_bytes <= budget_bytes:
            break
        total, found = total - size, at_ns
    return found
