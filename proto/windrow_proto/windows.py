"""Tracks which records of a lane go, are on their way, have come, and are missing: the sliding windows of both ends.
Pure.

    agent   offered -> pending --take--> in flight --on_ack--> gone
                          ^-----------------'  disconnect, asked for again, overdue
    master  arrived --accept--> NEW, uncommitted --commit--> had, acknowledged
                      |            '--abort--> may come again
                      '-> DUPLICATE: dropped and acknowledged again; LATER: dropped

A record is known by the boot and sequence it was born with, so that it counts once however often it comes.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from windrow_proto.errors import TooMany
from windrow_proto.ids import BootId
from windrow_proto.intervals import RANGES_MAX, Intervals
from windrow_proto.messages import Ack, LaneMarks
from windrow_proto.model import FrameClass, Lane
from windrow_proto.units import SECOND

MISSING_AFTER_NS: Final = 2 * SECOND
"""A hole is asked for once it is this old: longer than one round of acks, shorter than anybody's patience."""
OVERDUE_NS: Final = 15 * SECOND
"""A record in flight this long without an ack was shed on the way; it goes again."""
WINDOW_RECORDS_MAX: Final = 4096
"""Records offered to one window; the spool keeps the rest and offers them as these go."""


_NOTHING: Final = Intervals()


class RecordKey(NamedTuple):
    """By what a record is known wherever it goes: the boot and the sequence it was born with, within its lane."""

    origin_boot: BootId
    origin_sequence: int


@dataclass(frozen=True, slots=True)
class Ready:
    """A record that may go now, and in which class."""

    key: RecordKey
    frame_class: FrameClass


@dataclass(slots=True)
class _Flight:
    """One offered record; sent_ns is None while it waits."""

    is_live: bool
    sent_ns: int | None = None


class SendWindow:
    """The records that one lane of the agent has to send: live first, then backlog, never more in flight than the
    credits."""

    def __init__(self, lane: Lane, credits: int) -> None:
        """credits: records in flight, from the Settings; 0 stops the lane."""
        self.lane, self.credits = lane, credits
        self._known: dict[BootId, dict[int, _Flight]] = {}
        self._live: deque[RecordKey] = deque()
        self._backlog: deque[RecordKey] = deque()
        self._in_flight: dict[RecordKey, _Flight] = {}
        self._count = 0

    @property
    def in_flight(self) -> int:
        """Records sent and not yet acknowledged."""
        return len(self._in_flight)

    @property
    def pending(self) -> int:
        """Records that wait to be sent."""
        return self._count - len(self._in_flight)

    def offer(self, key: RecordKey, is_live: bool) -> bool:
        """Have a durable record sent; False if the window is full (offer it again later). Twice is once."""
        boot = self._known.setdefault(key.origin_boot, {})
        if key.origin_sequence in boot:
            return True
        if self._count >= WINDOW_RECORDS_MAX:
            return False
        is_live = is_live and self.lane is Lane.TELEMETRY  # evidence goes in the order it was born in
        boot[key.origin_sequence] = _Flight(is_live)
        self._count += 1
        queue = self._live if is_live else self._backlog
        if len(queue) >= 2 * WINDOW_RECORDS_MAX:  # what was acknowledged while it waited is swept out now and then
            kept = [k for k in queue if k.origin_sequence in self._known.get(k.origin_boot, {})]
            queue.clear()
            queue.extend(kept)
        queue.append(key)
        return True

    def holds(self, key: RecordKey) -> bool:
        """True if this record was offered and is not acknowledged yet."""
        return key.origin_sequence in self._known.get(key.origin_boot, {})

    def take(self, limit: int, now_ns: int) -> list[Ready]:
        """At most `limit` records that may go now; they are in flight from here on. now_ns: monotonic."""
        ready: list[Ready] = []
        while len(ready) < limit and len(self._in_flight) < self.credits:
            queue = self._live or self._backlog
            if not queue:
                break
            key = queue.popleft()
            flight = self._known.get(key.origin_boot, {}).get(key.origin_sequence)
            if flight is None or flight.sent_ns is not None:
                continue
            flight.sent_ns = now_ns
            self._in_flight[key] = flight
            ready.append(Ready(key, self._class_of(flight)))
        return ready

    def _class_of(self, flight: _Flight) -> FrameClass:
        if self.lane is Lane.EVIDENCE:
            return FrameClass.EVIDENCE
        return FrameClass.LIVE if flight.is_live else FrameClass.BACKLOG

    def on_ack(self, ack: Ack) -> list[RecordKey]:
        """Which offered records the Master now holds; they are gone from here. What it misses goes again if it is
        here; what is missing and not here is the spool's to look for (`ack.missing`)."""
        acked: list[RecordKey] = []
        for marks in ack.have:
            for key in self._named(marks):
                self._drop(key)
                acked.append(key)
        for marks in ack.missing:
            self._again(key for key in self._named(marks) if key in self._in_flight)
        return acked

    def _named(self, marks: LaneMarks) -> list[RecordKey]:
        known = self._known.get(marks.origin_boot, {}) if marks.lane is self.lane else {}
        if not known:
            return []
        named = Intervals(marks.ranges)
        return [RecordKey(marks.origin_boot, sequence) for sequence in known if named.contains(sequence)]

    def forget(self, key: RecordKey) -> None:
        """Send this record no more (a cap forced it out of the spool and a gap tells of it)."""
        if self.holds(key):
            self._drop(key)

    def _drop(self, key: RecordKey) -> None:
        boot = self._known[key.origin_boot]
        del boot[key.origin_sequence]
        if not boot:
            del self._known[key.origin_boot]
        self._in_flight.pop(key, None)
        self._count -= 1

    def on_disconnect(self) -> None:
        """All that is in flight waits again, before everything else; nothing of it is live any more."""
        self._again(self._in_flight)

    def overdue(self, now_ns: int) -> int:
        """Let what is in flight for OVERDUE_NS go again; returns how many that are. now_ns: monotonic."""
        late = [key for key, flight in self._in_flight.items() if (flight.sent_ns or 0) + OVERDUE_NS <= now_ns]
        self._again(late)
        return len(late)

    def overdue_at_ns(self) -> int | None:
        """When the oldest in flight is overdue, monotonic; None while nothing is in flight."""
        oldest = next(iter(self._in_flight.values()), None)  # they are in the order in which they were taken
        return None if oldest is None else (oldest.sent_ns or 0) + OVERDUE_NS

    def _again(self, keys: Iterable[RecordKey]) -> None:
        again = set(keys)
        for key in [k for k in reversed(self._in_flight) if k in again]:  # keeps the order in which they were taken
            flight = self._in_flight.pop(key)
            flight.sent_ns = None
            flight.is_live = False
            self._backlog.appendleft(key)


class Accepted(Enum):
    """The verdict on an arrived record. LATER: too many holes are open; it is dropped, and comes again as others fill
    them."""

    NEW = "new"
    DUPLICATE = "duplicate"
    LATER = "later"


class ReceiveLane:
    """The Master's records of one lane and one boot of one host."""

    def __init__(self, have: Intervals) -> None:
        """have: what is committed, from where it was committed with the data."""
        self.have = have
        self._uncommitted = Intervals()
        self._holes = Intervals()
        self._holes_at_ns: int | None = None

    def accept(self, origin_sequence: int) -> Accepted:
        """Judge a record by its birth; a NEW one must be committed or aborted."""
        if self.have.contains(origin_sequence) or self._uncommitted.contains(origin_sequence):
            return Accepted.DUPLICATE
        try:
            self._uncommitted = self._uncommitted.add(origin_sequence)
            if len(self.have.ranges) + len(self._uncommitted.ranges) > RANGES_MAX:
                self.have.union(self._uncommitted)
        except TooMany:
            self._uncommitted = self._uncommitted.without(Intervals(((origin_sequence, origin_sequence),)))
            return Accepted.LATER
        return Accepted.NEW

    def commit(self, sequences: Iterable[int]) -> None:
        """These records are durable together with the new marks (`have`); they may be acknowledged."""
        done = Intervals.of([(n, n) for n in sequences])
        self.have = self.have.union(done)
        self._uncommitted = self._uncommitted.without(done)

    def abort(self, sequences: Iterable[int]) -> None:
        """These could not be committed; they are as if they had not come."""
        self._uncommitted = self._uncommitted.without(Intervals.of((n, n) for n in sequences))

    def fill(self, ranges: Iterable[tuple[int, int]]) -> None:
        """A committed gap says that these will never come: count them as had, so that nobody asks again."""
        self.have = self.have.union(Intervals.of(ranges))

    def ack(self, lane: Lane, origin_boot: BootId) -> LaneMarks:
        """All that is committed."""
        return self.have.to_marks(lane, origin_boot)

    @property
    def is_whole(self) -> bool:
        """True if all that came is committed, and nothing is missing below it."""
        return not self._uncommitted.ranges and self.have.is_whole

    def missing(self, now_ns: int) -> Intervals:
        """Holes that were there MISSING_AFTER_NS ago and still are; each is named at most that often."""
        if self.is_whole:  # nearly always: nothing is missing
            self._holes, self._holes_at_ns = _NOTHING, now_ns
            return _NOTHING
        here = self.have.union(self._uncommitted)
        holes = here.missing_below(here.highest)
        if self._holes_at_ns is None or not self._holes.ranges:
            self._holes, self._holes_at_ns = holes, now_ns
            return Intervals()
        if now_ns - self._holes_at_ns < MISSING_AFTER_NS:
            return Intervals()
        lasting = holes.without(holes.without(self._holes))
        self._holes, self._holes_at_ns = holes, now_ns
        return lasting
