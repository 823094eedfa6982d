"""Divides the time of slots into rented, idle, paused, faulty and offline, from what is known of their states. Pure.

The words and their precedence are those of fleet/availability.py, but that what was billed counts as rented first: a
host that drains still earns. A slot's states come from the changes that the audit log has; before the first change it
was what that one says, and without any it is what it is now. What happened between is not known, so these times are
estimates; the billed time is not.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from windrow_master.fleet.availability import Availability
from windrow_master.fleet.model import AdminState, LinkState
from windrow_proto.units import DAY, HOUR, Microcents

LOST: Final = (Availability.IDLE, Availability.PAUSED, Availability.FAULTY, Availability.OFFLINE)
"""The states in which a slot earns nothing, in the order in which they are told."""
_GIVEN_UP: Final = (Availability.IDLE, Availability.PAUSED, Availability.OFFLINE, Availability.FAULTY)
"""The order in which billed time is taken from the others."""


YES: Final = "yes"


class Fact(StrEnum):
    """What changed: a decision about the host, its link, whether the slot is faulty, or whether it is offered."""

    ADMIN = "admin"
    LINK = "link"
    FAULTY = "faulty"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a host or slot. before, after: a state; of FAULTY and CLOSED: YES or empty."""

    at_ns: int
    fact: Fact
    before: str
    after: str


Facts = dict[Fact, str]


def state_of(facts: Facts) -> Availability | None:
    """The state of a slot that nobody rents; None: its host is retired, or not here yet."""
    admin = facts[Fact.ADMIN]
    if admin == AdminState.RETIRED:
        return None
    if facts[Fact.FAULTY] or admin == AdminState.QUARANTINED:
        return Availability.FAULTY
    if facts[Fact.LINK] not in (LinkState.ONLINE, LinkState.UNKNOWN):  # unknown: the Master was away, not the host
        return Availability.OFFLINE
    if facts[Fact.CLOSED] or admin != AdminState.ACTIVE:
        return Availability.PAUSED
    return Availability.IDLE


@dataclass(frozen=True, slots=True)
class Span:
    """A time in which a slot was in one state as far as nobody rents it."""

    from_ns: int
    to_ns: int
    state: Availability


def spans(now: Facts, changes: Iterable[Change], from_ns: int, to_ns: int) -> list[Span]:
    """The states of a slot in a window, in their order. now: the facts of this moment; changes: since the window's
    begin, those after its end, too."""
    ordered = sorted(changes, key=lambda one: one.at_ns)
    facts = dict(now) | {one.fact: one.before for one in reversed(ordered)}
    found: list[Span] = []
    at_ns = from_ns
    for one in ordered:
        until_ns = min(one.at_ns, to_ns)
        _append(found, at_ns, until_ns, state_of(facts))
        at_ns = max(at_ns, until_ns)
        facts[one.fact] = one.after
    _append(found, at_ns, to_ns, state_of(facts))
    return found


def _append(found: list[Span], from_ns: int, to_ns: int, state: Availability | None) -> None:
    if state is not None and to_ns > from_ns:
        found.append(Span(from_ns, to_ns, state))


@dataclass(slots=True)
class Times:
    """Nanoseconds of GPUs by state, and what the time that was not billed would have brought at the present price. A
    part of a GPU counts as its share of it."""

    by_state: dict[Availability, int] = field(default_factory=lambda: dict.fromkeys(Availability, 0))
    lost: dict[Availability, int] = field(default_factory=lambda: dict.fromkeys(LOST, 0))

    @property
    def total_ns(self) -> int:
        """All of it."""
        return sum(self.by_state.values())

    @property
    def occupancy(self) -> float | None:
        """The part of the time that was billed, from 0 to 1; None of no time."""
        return self.by_state[Availability.RENTED] / self.total_ns if self.total_ns else None

    def add(self, span: Span, share_milli: int, price_per_hour: Microcents) -> None:
        """The time of one slot. share_milli: how much of its GPU it is; price_per_hour: of the slot itself."""
        time_ns = span.to_ns - span.from_ns
        self.by_state[span.state] += time_ns * share_milli // 1000
        self.lost[span.state] += price_per_hour * time_ns // HOUR

    def rent(self, billed_ns: int) -> None:
        """Say how much of it was billed: it is taken from the idle time first, then from what was paused, offline or
        faulty. More than there is counts for nothing."""
        for state in _GIVEN_UP:
            have = self.by_state[state]
            taken = min(billed_ns, have)
            if taken:
                self.lost[state] = self.lost[state] * (have - taken) // have
                self.by_state[state] -= taken
                self.by_state[Availability.RENTED] += taken
                billed_ns -= taken

    def plus(self, other: "Times") -> None:
        """Both together."""
        for state, time_ns in other.by_state.items():
            self.by_state[state] += time_ns
        for state, amount in other.lost.items():
            self.lost[state] += amount


def by_day(found: Iterable[Span], days: range) -> dict[int, int]:
    """The nanoseconds of these spans in each of the days."""
    sums = dict.fromkeys(days, 0)
    for span in found:
        for day in range(max(days.start, span.from_ns // DAY), min(days.stop, (span.to_ns - 1) // DAY + 1)):
            sums[day] += min(span.to_ns, (day + 1) * DAY) - max(span.from_ns, day * DAY)
    return sums
