"""Combines the bandwidth figures of several relays, chooses the relays to ask, and checks which answers were asked for.
Pure.

A round is a command: the host is measured by its own relay, then by those that the command names. What comes within
ROUND_NS of each other is one round, and the median of it counts; with two relays that is their mean. The history has a
row for each round and region, where it is the command's nonce that says which round it was.

No relay signs a nonce that no command named yet, so a result answers its command if it has that one's nonce; what
nobody asked for, whoever signed it, counts nowhere.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from windrow_master.fleet.model import CommandRow, MeasuredRound, Measurement
from windrow_proto.bandwidth import BandwidthClaim
from windrow_proto.model import BandwidthSpec
from windrow_proto.units import MINUTE
from windrow_proto.wire_command import decode_command

ROUND_NS: Final = 3 * MINUTE
"""A relay may be busy with others for half a minute (windrow_agent.link.bandwidth_probe), and is asked again."""
OTHERS_MAX: Final = 2
"""Beside the host's own relay: two or three in all."""
ANSWER_NS: Final = 10 * MINUTE
"""From a measurement's not-after until its result is too late: three relays one after the other, each of them busy for
a while, and the way here while the host looks for another Access. What comes later says nothing of now."""

Relays = Mapping[str, tuple[int, int]]
"""The counts of each relay of a round: bits a second up and down."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The request of a command for a measurement. until_ns: wall time."""

    spec: BandwidthSpec
    until_ns: int


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


def asked_for(rows: Iterable[CommandRow], nonce: str) -> Asked | None:
    """Return the request with this nonce among these commands to measure, all of one host."""
    for row in rows:
        spec = decode_command(row.body).bandwidth
        if spec is not None and spec.nonce == nonce:
            return Asked(spec, row.not_after_ns + ANSWER_NS)
    return None


def refusal(asked: Asked | None, claim: BandwidthClaim, answered: Relays, now_ns: int) -> str | None:
    """Return why this claim is no answer to what was asked; None: it is one.

    answered: by other relays, to the same command. Beside those that it names, one may answer: the Access that the host
    had when the command came. Which one that is, only the host knows; it may move as it likes, so no choice is lost.
    """
    if asked is None:
        return "nobody asked for it"
    named = asked.spec.access_ids
    if claim.access_id in answered:
        return "it was answered before"
    if claim.access_id not in named and (others := sorted(answered.keys() - set(named))):
        return f"it was asked of other relays than {claim.access_id}, and {others[0]} answered as the host's own"
    if now_ns > asked.until_ns:
        return "it comes too late"
    if max(claim.up_bytes, claim.down_bytes) > asked.spec.cap_bytes:
        return f"more was moved than the {asked.spec.cap_bytes} bytes each way that were asked for"
    return None


def bytes_max(spec: BandwidthSpec | None) -> int:
    """Return the most bytes that a measurement may move: both ways, by the host's own relay and by each that it
    names."""
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
