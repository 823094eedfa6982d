"""Decides who may lead, from what is seen of the leader's row; no clock but one's own monotonic one is trusted.

            seat free ─────────────────────────────┐
waiting ──▶ its session gone for GONE_NS ──────────┼──▶ take (compare-and-set on what was seen) ──▶ leading
   ▲        its beat still for LEASE_NS ───────────┘                                                  │
   └────────── lost: the epoch changed, or no beat could be written for GIVE_UP_NS ◀──────────────────┘
"""

from dataclasses import dataclass
from typing import Final

from windrow_proto.units import SECOND

BEAT_NS: Final = SECOND
"""How often the leader says that it lives."""
LEASE_NS: Final = 6 * SECOND
"""A leader whose beat stands still for so long is stopped, cut off or dead."""
GIVE_UP_NS: Final = 5 * SECOND
"""A leader that cannot beat for so long stops by itself, before another may lead."""
GONE_NS: Final = 3 * SECOND
"""A leader's session that is away for so long did not just come back, though a leader that lives and reaches the
database opens a new one at its next beat: its process has ended, or it is cut off."""
SURE_NS: Final = 5 * SECOND // 2
"""A leader whose last beat is older no longer knows that it leads: its session may have ended right after that beat.
What no row of the database fences, the telemetry log, it neither writes nor acknowledges until it beats again."""


@dataclass(frozen=True, slots=True)
class Seat:
    """The leader's row, and whether the session that keeps it is still there."""

    epoch: int
    beat: int
    holder: str
    address: str
    is_connected: bool

    @property
    def is_free(self) -> bool:
        """Nobody ever led, or the last leader gave it back."""
        return not self.holder


@dataclass(frozen=True, slots=True)
class LeaderObservation:
    """The last sighting of the leader, and since when (monotonic) it has not changed."""

    epoch: int
    beat: int
    beat_since_ns: int
    gone_since_ns: int | None


def see(seat: Seat, before: LeaderObservation | None, now_ns: int) -> LeaderObservation:
    """Return the sighting after looking at the seat."""
    is_same = before is not None and (before.epoch, before.beat) == (seat.epoch, seat.beat)
    same_leader = before is not None and before.epoch == seat.epoch
    gone_before = before.gone_since_ns if before is not None and same_leader else None
    return LeaderObservation(
        seat.epoch,
        seat.beat,
        before.beat_since_ns if before is not None and is_same else now_ns,
        None if seat.is_connected else (gone_before if gone_before is not None else now_ns),
    )


def may_take(seat: Seat, seen: LeaderObservation, now_ns: int) -> bool:
    """Return whether the seat may be taken from whoever has it."""
    if seat.is_free or now_ns - seen.beat_since_ns >= LEASE_NS:
        return True
    return seen.gone_since_ns is not None and now_ns - seen.gone_since_ns >= GONE_NS


def has_lost(last_beat_ns: int, now_ns: int) -> bool:
    """Return whether a leader must stop because it could not say that it lives."""
    return now_ns - last_beat_ns >= GIVE_UP_NS


def is_sure(last_beat_ns: int, now_ns: int) -> bool:
    """Return whether nobody else may lead yet, whatever became of the leader's session since its last beat."""
    return now_ns - last_beat_ns < SURE_NS
