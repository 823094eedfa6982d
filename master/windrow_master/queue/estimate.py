"""Estimates when an entry starts, how sure that is, and says in one true line why it still waits. Pure.

The first entries of the queue are placed one after another in what is expected to become free; later ones go on at the
same pace. Each first estimate is scored when its entry starts, by the logarithm of the real wait over the planned one.
The 80 % interval lies between two quantiles of the last scores; their level follows the hits, so that four in five
intervals hold whatever the plan is worth (adaptive conformal inference, Gibbs and Candes 2021).
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Final

from windrow_master.queue.backfill import DRAIN, Hold, Profile, Reservation, RunTimes
from windrow_master.queue.model import MILLI, Entry, Need, When
from windrow_master.queue.order import Queue, Waits
from windrow_proto.units import DAY, GIB, MIB, MINUTE, SECOND, time_text

NAMES_SHOWN: Final = 3
"""Pools that a line names; what suits more of them is called by its amount alone."""
DEPTH: Final = 32
"""Entries that are planned one by one: each costs as much as a reservation."""
SCORES: Final = 200
FEW: Final = 20
"""Scores without which nothing is learnt yet."""
LEVEL: Final = 0.8
RATE: Final = 0.05
"""Each miss widens the level so much more than a hit narrows it that 80 % balance."""
FLAT_NS: Final = 30 * SECOND
"""Added to both waits, so that a second instead of two is no error of factor two."""
UNKNOWN: Final = log(4)
"""Before anything was scored: a quarter of the planned wait, to four times as much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """When an entry is expected to start; 80 % of such intervals hold. place: 1 is the first. planned_ns: by the plan
    alone, without what earlier errors teach."""

    place: int
    made_ns: int
    planned_ns: int
    start_ns: int
    low_ns: int
    high_ns: int

    @property
    def words(self) -> str:
        """As people read it: 14:20 UTC ± 6 min."""
        half = max(self.high_ns - self.start_ns, self.start_ns - self.low_ns)
        return f"{clock_text(self.start_ns, self.made_ns)} ± {max(1, round(half / MINUTE))} min"


class Estimator:
    """Makes estimates and learns from how they turned out. held, scored: how many intervals held, of how many."""

    def __init__(self) -> None:
        self._scores = deque[float](maxlen=SCORES)
        self._level = LEVEL
        self._open: dict[str, Estimate] = {}
        self.held = self.scored = 0

    def plan(
        self, queue: Queue, profile: Profile, times: RunTimes, now_ns: int, depth: int = DEPTH
    ) -> dict[str, Estimate]:
        """The estimates of the first entries of the queue, in its order. A thread's work: with many hosts 1 s."""
        entries = list(queue.first(now_ns, is_capped=False))
        planned = self._planned(entries[:depth], profile, times, now_ns)
        known = [one - now_ns for one in planned if one is not None]
        pace = max(known, default=0) / max(1, len(planned))
        found = dict[str, Estimate]()
        for at, entry in enumerate(entries):
            wait = round(pace * (at + 1))
            if at < len(planned):
                if (start := planned[at]) is None:
                    continue
                wait = start - now_ns
            found[entry.entry_id] = self._estimate(at + 1, now_ns, wait)
            self._open.setdefault(entry.entry_id, found[entry.entry_id])
        return found

    def started(self, entry_id: str, now_ns: int) -> None:
        """It starts: its first estimate is scored."""
        if (one := self._open.pop(entry_id, None)) is None:
            return
        planned, waited = one.planned_ns - one.made_ns, max(0, now_ns - one.made_ns)  # clocks are set back
        is_held = one.low_ns <= now_ns <= one.high_ns
        self.held, self.scored = self.held + is_held, self.scored + 1
        self._scores.append(log((waited + FLAT_NS) / (planned + FLAT_NS)))
        self._level = min(1.0, max(0.0, self._level + RATE * (LEVEL - is_held)))

    def forget(self, entry_id: str) -> None:
        """It never starts: nothing is learnt from it."""
        self._open.pop(entry_id, None)

    def forget_all(self) -> None:
        """The clock was set: nobody knows how long these have waited, and nothing is learnt from them."""
        self._open.clear()

    def _planned(self, entries: Sequence[Entry], profile: Profile, times: RunTimes, now_ns: int) -> list[int | None]:
        """When each starts if all starts in this order and nothing new comes: reservations one after another."""
        kept, found = dict(profile.reservations), list[int | None]()
        for entry_id in kept:
            profile.unreserve(entry_id)
        for entry in entries:
            one = profile.reserve(entry, times.expected_ns(entry), now_ns, is_refused=False)
            found.append(None if one is None else one.start_ns)
        for entry_id in list(profile.reservations):
            profile.unreserve(entry_id)
        for one in kept.values():
            profile.keep(one, times.expected_ns(one.entry))
        return found

    def _estimate(self, place: int, now_ns: int, planned_ns: int) -> Estimate:
        ordered = sorted(self._scores) if len(self._scores) >= FEW else [-UNKNOWN, 0.0, UNKNOWN]
        parts = ((1 - self._level) / 2, 0.5, (1 + self._level) / 2)
        scores = (ordered[min(len(ordered) - 1, max(0, round(part * (len(ordered) + 1)) - 1))] for part in parts)
        low, start, high = (now_ns + max(0, round((planned_ns + FLAT_NS) * exp(one)) - FLAT_NS) for one in scores)
        return Estimate(
            place=place, made_ns=now_ns, planned_ns=now_ns + planned_ns, low_ns=low, start_ns=start, high_ns=high
        )


@dataclass(frozen=True, slots=True)
class Room:
    """The hosts that have room for an entry now. free: how many; allowed: how many of them it may have; hold: the first
    reservation or maintenance that keeps it off the others."""

    free: int
    allowed: int
    hold: Hold | None


def room(profile: Profile, entry: Entry, run_ns: int | None, now_ns: int) -> Room:
    """The hosts that have room for an entry now. run_ns: for how long; None: unknown. O(hosts)."""
    free, closed = profile.free(entry, now_ns), profile.closed(entry, run_ns, now_ns)
    holds = (closed[one] for one in free & closed.keys())
    hold = min(holds, key=lambda one: (one.from_ns, one.level, one.by), default=None)
    return Room(len(free), len(free - closed.keys()), hold)


def why(
    queue: Queue,
    reservations: Mapping[str, Reservation],
    room: Room | None,
    entry_id: str,
    place: int | None,
    now_ns: int,
) -> str:
    """One line that says why it still waits, with ids in the place of names. room: None: not known now. place: in the
    queue, from 1."""
    entry, state = queue.entry(entry_id), queue.state(entry_id)
    if state is not Waits.READY:
        return _obstacle(queue, entry, state, now_ns)
    shares = queue.shares
    for node, text in (
        (shares.never(entry.leaf, entry.cost), "is more than {} may ever have: raise its ceiling, or ask for less"),
        (shares.over(entry.leaf, entry.cost, {}), "waits until {} holds less: with this it would pass its ceiling"),
    ):
        if node is not None:
            return f"This {text.format(node)}."
    start, own = f"{ordinal(place)} in the queue" if place else "In the queue", reservations.get(entry_id)
    if own is not None:
        hosts = ", ".join(host_id for host_id, _ in own.places[:3])
        return f"{start}: it has a reservation on {hosts} from about {clock_text(own.start_ns, now_ns)}."
    what = _need_text(entry)
    if room is None:
        return f"{start} for {what}."
    if not room.free:
        return f"{start}: no host has {what} free."
    if room.free < entry.need.hosts:
        return f"{start}: {room.free} of {entry.need.hosts} hosts have {what} free."
    if room.allowed >= entry.need.hosts or room.hold is None:
        return f"{start}: hosts have {what} free, and the entries before it are placed first."
    since = clock_text(room.hold.from_ns, now_ns)
    if room.hold.by == DRAIN:
        return f"{start}: maintenance begins at {since} on hosts that have {what} free, and it might not end before."
    return f"{start}: the hosts that have {what} free are reserved for {room.hold.by} from about {since}."


def _obstacle(queue: Queue, entry: Entry, state: Waits, now_ns: int) -> str:
    missing = queue.missing(entry.entry_id)
    job_id, when = next(iter(missing.items()), ("", When.ANY))
    more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
    ends = {When.ANY: "to end", When.OK: "to succeed", When.FAILURE: "to fail"}[when]
    return {
        Waits.HELD: f"Held by {entry.held_by} until it is released.",
        Waits.NO_SHARE: f"Its share {entry.leaf} is deleted: it cannot start.",
        Waits.NEVER: "A job that it comes after has ended in another way: it can never start.",
        Waits.DEPENDENCY: f"Waits for {job_id} {ends}{more}.",
        Waits.BEGIN: f"Begins at {clock_text(entry.begin_ns, now_ns)} at the earliest.",
        Waits.THROTTLED: f"At most {entry.at_once} of its array run at once: {_throttle(entry, queue)}.",
    }[state]


def _throttle(entry: Entry, queue: Queue) -> str:
    running = queue.running(entry.array)
    before = (entry.at_once or 0) - running
    return f"{running} run, and {before} come before it" if before > 0 else f"{running} run"


def _need_text(entry: Entry) -> str:
    need = entry.need
    names = sorted({pool.partition(" #")[0] for pool in need.pools})
    pools = f" of {' or '.join(names)}" if 0 < len(names) <= NAMES_SHOWN else ""
    if need.cards:
        cards = need.cards if need.milli == MILLI else need.milli / MILLI
        return f"{cards:g} GPU{'s' if cards > 1 else ''}{pools}"
    return f"{need.cpus / MILLI:g} CPU{'s' if need.cpus > MILLI else ''}{pools}"


def asks_text(need: Need) -> str:
    """All that it asks for, in words: 2 x (8 GPUs, 64 CPUs, 128 GiB)."""
    cards = need.cards if need.milli == MILLI else need.milli / MILLI
    parts = [
        f"{cards:g} GPU{'' if cards <= 1 else 's'}" if need.cards else "",
        f"{need.cpus / MILLI:g} CPU{'' if need.cpus <= MILLI else 's'}" if need.cpus else "",
        f"{need.memory * MIB / GIB:.3g} GiB" if need.memory else "",
    ]
    said = ", ".join(part for part in parts if part) or "a place"
    return f"{need.hosts} x ({said})" if need.hosts > 1 else said


def ordinal(place: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 21st."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{'th' if place % 100 in {11, 12, 13} else ending}"


def clock_text(at_ns: int, now_ns: int) -> str:
    """A time: 14:20 UTC within a day from now, else with its date."""
    text = time_text(at_ns)
    return f"{text[11:16]} UTC" if 0 <= at_ns - now_ns < DAY else f"{text[:10]} {text[11:16]} UTC"
