"""Turns silence into a verdict: Suspect, Lost, the breaker for mass silence, the grace after a start. Pure.

All times are the Master's own monotonic nanoseconds. Only silence counts: a closed stream is no verdict, since the
agent may be on its way to another Access.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from windrow_master.fleet.states import LinkEvent, LinkState
from windrow_proto.ids import HostId
from windrow_proto.units import MINUTE, SECOND

SUSPECT_MIN_NS: Final = 15 * SECOND
SUSPECT_INTERVALS: Final = 3
LOST_MIN_NS: Final = 120 * SECOND
LOST_INTERVALS: Final = 8
START_GRACE_NS: Final = 300 * SECOND
"""After its own start the Master waits this long for each agent to find it again: that silence was its own."""

BREAKER_WINDOW_NS: Final = 60 * SECOND
BREAKER_AGENTS_MIN: Final = 5
BREAKER_ACCESS_PERCENT: Final = 30
BREAKER_FLEET_PERCENT: Final = 10
BREAKER_HOLD_NS: Final = 10 * MINUTE
"""How long Lost verdicts stay frozen after the last mass silence: long enough for a person to look, not for ever."""


@dataclass(frozen=True, slots=True)
class Presence:
    """The state of one host's link.

    heard_ns: of the last proven message of its live boot, None if it has not spoken since this Master started.
    is_leaving: it said that it will be gone.
    """

    host_id: HostId
    link: LinkState
    access_id: str = ""
    heard_ns: int | None = None
    is_leaving: bool = False


@dataclass(frozen=True, slots=True)
class Breaker:
    """The breaker that freezes Lost verdicts, and until when."""

    frozen_until_ns: int = 0

    def is_frozen(self, now_ns: int) -> bool:
        """Return whether a long silence is now taken for our own fault."""
        return now_ns < self.frozen_until_ns


def suspect_after_ns(interval_ns: int) -> int:
    """Silence that makes a host Suspect, given the heartbeat interval it was told."""
    return max(SUSPECT_MIN_NS, SUSPECT_INTERVALS * interval_ns)


def lost_after_ns(interval_ns: int) -> int:
    """Silence that makes it Lost."""
    return max(LOST_MIN_NS, LOST_INTERVALS * interval_ns)


def silence_ns(presence: Presence, *, started_ns: int, now_ns: int) -> int:
    """Return how long the host has been silent; before its first word since the Master's start, counted from that
    start."""
    return now_ns - (presence.heard_ns if presence.heard_ns is not None else started_ns)


def verdict(
    presence: Presence, *, interval_ns: int, started_ns: int, now_ns: int, breaker: Breaker
) -> LinkEvent | None:
    """Return the verdict on the silence of one host now; None while it is not long enough, or while Lost is frozen."""
    silent = silence_ns(presence, started_ns=started_ns, now_ns=now_ns)
    grace = START_GRACE_NS if presence.heard_ns is None else 0
    if presence.link in (LinkState.ONLINE, LinkState.UNKNOWN) and silent >= max(suspect_after_ns(interval_ns), grace):
        return LinkEvent.SILENT
    if presence.link is LinkState.SUSPECT and silent >= max(lost_after_ns(interval_ns), grace):
        return None if breaker.is_frozen(now_ns) else LinkEvent.SILENT_LONG
    return None


def is_quiet(presence: Presence, *, interval_ns: int, now_ns: int) -> bool:
    """Return whether its silence may mean something: of all others `trip` and `verdict` say nothing."""
    if presence.link not in (LinkState.ONLINE, LinkState.UNKNOWN, LinkState.SUSPECT):
        return False
    return presence.heard_ns is None or now_ns - presence.heard_ns >= suspect_after_ns(interval_ns)


def trip(breaker: Breaker, presences: Iterable[Presence], *, interval_ns: int, now_ns: int) -> Breaker:
    """The breaker after looking at everybody: trips when many fell silent within one minute.

    Many: at least 5 agents that are 30 % of one Access or 10 % of all. A host counts by the moment its silence began
    to be suspicious; hosts that were Lost, never spoke to this Master or said that they leave do not count on either
    side.
    """
    fresh: dict[str, int] = {}
    every: dict[str, int] = {}
    for presence in presences:
        if (
            presence.heard_ns is None
            or presence.link not in (LinkState.ONLINE, LinkState.SUSPECT)
            or presence.is_leaving
        ):
            continue
        every[presence.access_id] = every.get(presence.access_id, 0) + 1
        suspicious_ns = presence.heard_ns + suspect_after_ns(interval_ns)
        if suspicious_ns <= now_ns < suspicious_ns + BREAKER_WINDOW_NS:
            fresh[presence.access_id] = fresh.get(presence.access_id, 0) + 1
    if _is_mass(fresh, every):
        return replace(breaker, frozen_until_ns=now_ns + BREAKER_HOLD_NS)
    return breaker


def _is_mass(fresh: Mapping[str, int], every: Mapping[str, int]) -> bool:
    silent, fleet = sum(fresh.values()), sum(every.values())
    if silent >= BREAKER_AGENTS_MIN and silent * 100 >= BREAKER_FLEET_PERCENT * fleet:
        return True
    return any(
        count >= BREAKER_AGENTS_MIN and count * 100 >= BREAKER_ACCESS_PERCENT * every[access]
        for access, count in fresh.items()
    )


def heard(presence: Presence, access_id: str, now_ns: int) -> Presence:
    """The presence after a proven message."""
    # Not `replace`, which costs three times as much: each heartbeat comes here.
    return Presence(presence.host_id, LinkState.ONLINE, access_id, now_ns, presence.is_leaving)


NOT_HEARD_YET: Final = "not heard yet since the Master started"
"""Of a host whose link is UNKNOWN."""
