"""EASY backfill: a reservation for the head of each class, and others start where they do not delay it. Pure.

    look.next() ─▶ an entry ─▶ the caller plans a place, not on look.closed(entry) ─┬▶ look.placed
                                                                                    └▶ look.refused: a head reserves

The profile knows of each host which card, processors and memory are held until when. A run is expected to take the
lesser of its limit and the mean of the last two runs of that owner and name (Tsafrir 2007), and once longer than that,
as long again as it has taken. A reservation and a maintenance window hold from a later time on, and nothing starts that
would still be there then. A class heeds its own reservations and those of the classes before it.
A change costs O(1); to ask one host O(h^2) for h holds on it; to reserve O(hosts x h log h).
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from windrow_master.queue.model import FOREVER, MILLI, Entry, Need, PriorityClass
from windrow_master.queue.order import FIRST, Queue
from windrow_proto.units import MINUTE

TRIES: Final = 16
"""Plans in one look: entries that need the same as a refused one are passed over without a plan."""
NAMES_MAX: Final = 100_000
"""Owners and names whose last runs are kept; the oldest go first."""
DRAIN: Final = "maintenance"
Place = tuple[str, tuple[int, ...]]
"""A host and cards of it."""
Shape = tuple[Need, PriorityClass]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A part of a host that is held: `milli` of each of the cards. level: the class of a reservation; -1: all heed it.
    is_run: it runs, from from_ns on, and until_ns is a guess (from_ns: not even that). limit_ns: it ends by then."""

    by: str
    cards: tuple[int, ...]
    milli: int
    cpus: int
    memory: int
    from_ns: int
    until_ns: int
    limit_ns: int = FOREVER
    level: int = -1
    is_run: bool = False

    def ends_ns(self, now_ns: int) -> int:
        """When it is expected to end, in the future for what runs."""
        if not self.is_run or self.until_ns > now_ns:
            return self.until_ns
        again = now_ns + max(MINUTE, now_ns - self.from_ns)
        return min(again, self.limit_ns if self.limit_ns > now_ns else now_ns + MINUTE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A host as the profile sees it. pool: its class, for example its tier and region."""

    host_id: str
    pool: str
    cards: int = 0
    cpus: int = 0
    memory: int = 0


@dataclass(frozen=True, slots=True)
class Reservation:
    """Places that are kept for an entry from a time on."""

    entry: Entry
    start_ns: int
    places: tuple[Place, ...]


class RunTimes:
    """The last two run times of each owner and name."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], deque[int]] = {}

    def ended(self, entry: Entry, took_ns: int) -> None:
        """A run has ended by itself."""
        last = self._last.pop((entry.leaf, entry.name), deque(maxlen=2))
        last.append(took_ns)
        self._last[entry.leaf, entry.name] = last
        if len(self._last) > NAMES_MAX:
            del self._last[next(iter(self._last))]

    def expected_ns(self, entry: Entry) -> int | None:
        """How long it will run; None: nothing is known."""
        last = self._last.get((entry.leaf, entry.name))
        known = [] if entry.limit_ns is None else [entry.limit_ns]
        return min([*known, sum(last) // len(last)] if last else known, default=None)


@dataclass(slots=True)
class _Host:
    host: Host
    holds: dict[str, Hold] = field(default_factory=dict)

    def room(self, from_ns: int, until_ns: int, level: int, now_ns: int, but: str) -> tuple[list[int], int, int]:
        """The least that is free at any time between: milli of each card, processors, memory."""
        heeded = [one for one in self.holds.values() if one.level <= level and one.by != but]
        cards, cpus, memory = [MILLI] * self.host.cards, self.host.cpus, self.host.memory
        for at in {from_ns, *(one.from_ns for one in heeded if from_ns < one.from_ns < until_ns)}:
            held = [one for one in heeded if one.from_ns <= at < one.ends_ns(now_ns)]
            left = [MILLI] * self.host.cards
            for one in held:
                for card in one.cards:
                    left[card] -= one.milli
            cards = [min(pair) for pair in zip(cards, left, strict=True)]
            cpus = min(cpus, self.host.cpus - sum(one.cpus for one in held))
            memory = min(memory, self.host.memory - sum(one.memory for one in held))
        return cards, cpus, memory


class Profile:
    """Everything that is free on hosts over time: runs, reservations and maintenance."""

    def __init__(self) -> None:
        self._hosts: dict[str, _Host] = {}
        self._special: set[str] = set()
        self.reservations: dict[str, Reservation] = {}

    def join(self, host: Host) -> None:
        """A host joins, or has another size; what runs on it stays."""
        holds = self._hosts[host.host_id].holds if host.host_id in self._hosts else {}
        kept = {by: one for by, one in holds.items() if max(one.cards, default=-1) < host.cards}
        self._hosts[host.host_id] = _Host(host, kept)

    def leave(self, host_id: str) -> None:
        """A host is gone, and with it reservations on it."""
        host = self._hosts.pop(host_id, None)
        self._special.discard(host_id)
        for by in [] if host is None else [one for one in host.holds if one in self.reservations]:
            self.unreserve(by)

    def take(self, entry: Entry, place: Place, started_ns: int, expected_ns: int | None) -> None:
        """An entry runs on a host since then. expected_ns: for how long; None: unknown."""
        until = started_ns + (expected_ns or 0)
        limit = FOREVER if entry.limit_ns is None else started_ns + entry.limit_ns
        self._add(place[0], _hold(entry, place[1], started_ns, until, -1, limit_ns=limit, is_run=True))

    def give_back(self, entry_id: str, hosts: Iterable[str]) -> None:
        """Its run is over. Said twice it changes nothing."""
        for host_id in hosts:
            if host_id in self._hosts:
                self._hosts[host_id].holds.pop(entry_id, None)

    def drain(self, host_id: str, from_ns: int, until_ns: int = FOREVER) -> None:
        """Maintenance is planned: nothing may run on the host then. An empty span takes it back."""
        host = self._hosts[host_id].host
        cards = tuple(range(host.cards))
        whole = {"milli": MILLI, "cpus": host.cpus, "memory": host.memory}
        self._add(host_id, Hold(by=DRAIN, cards=cards, from_ns=from_ns, until_ns=until_ns, **whole))
        self._special.add(host_id)

    def fits(self, host_id: str, need: Need, from_ns: int, until_ns: int, level: int, now_ns: int, but: str) -> Place:
        """The cards that it could have all that time, the fullest first. Raises LookupError if it does not fit."""
        room, cpus, memory = self._hosts[host_id].room(from_ns, until_ns, level, now_ns, but)
        cards = sorted((left, card) for card, left in enumerate(room) if left >= need.milli)[: need.cards]
        if len(cards) < need.cards or cpus < need.cpus or memory < need.memory:
            raise LookupError(host_id)
        return host_id, tuple(sorted(card for _, card in cards))

    def has_room(self, host_id: str, need: Need, span: tuple[int, int], level: int, now_ns: int, but: str = "") -> bool:
        """Whether it fits there all that time."""
        try:
            self.fits(host_id, need, *span, level, now_ns, but)
        except LookupError:
            return False
        return True

    def hosts(self, need: Need) -> list[str]:
        """Those of its pools that are large enough when empty."""
        return [one.host.host_id for one in self._hosts.values() if _holds(one.host, need)]

    def closed(self, entry: Entry, run_ns: int | None, now_ns: int) -> dict[str, Hold]:
        """The hosts on which it may not start, though it would fit for now: each with the hold that it would delay."""
        found = dict[str, Hold]()
        for host_id in self._special:
            host, span = self._hosts[host_id], (now_ns, _end(now_ns, run_ns))
            if not self.has_room(host_id, entry.need, span, entry.priority_class, now_ns, entry.entry_id):
                later = [one for one in host.holds.values() if not one.is_run and one.by != entry.entry_id]
                heeded = [one for one in later if one.level <= entry.priority_class and one.ends_ns(now_ns) > now_ns]
                if heeded:
                    found[host_id] = min(heeded, key=lambda one: one.from_ns)
        return found

    def earliest(self, entry: Entry, run_ns: int | None, now_ns: int, *, is_refused: bool) -> Reservation | None:
        """When and where it fits first. is_refused: not now, whatever the profile says. None: nowhere."""
        need, pools = entry.need, dict[str, list[tuple[int, int, str]]]()
        for number, host_id in enumerate(self.hosts(need)):
            if (at := self._first(host_id, entry, run_ns, now_ns, is_refused)) is not None:
                pools.setdefault(self._hosts[host_id].host.pool, []).append((at, number, host_id))
        found = [one for firsts in pools.values() if (one := self._gang(entry, run_ns, now_ns, sorted(firsts)))]
        return min(found, key=lambda one: one.start_ns, default=None)

    def reserve(self, entry: Entry, run_ns: int | None, now_ns: int, *, is_refused: bool = True) -> Reservation | None:
        """Keep the places of `earliest` for it. One that it has stays until its time has passed."""
        kept = self.reservations.get(entry.entry_id)
        if kept is not None and kept.start_ns > now_ns:
            return kept
        self.unreserve(entry.entry_id)
        found = self.earliest(entry, run_ns, now_ns, is_refused=is_refused)
        if found is not None:
            self.keep(found, run_ns)
        return found

    def keep(self, one: Reservation, run_ns: int | None) -> None:
        """Hold the places of a reservation."""
        self.reservations[one.entry.entry_id] = one
        for host_id, cards in one.places:
            until_ns = _end(one.start_ns, run_ns)
            self._add(host_id, _hold(one.entry, cards, one.start_ns, until_ns, one.entry.priority_class))
            self._special.add(host_id)

    def unreserve(self, entry_id: str) -> None:
        """Let its places go."""
        one = self.reservations.pop(entry_id, None)
        for host_id, _ in one.places if one else ():
            if host_id in self._hosts:
                holds = self._hosts[host_id].holds
                holds.pop(entry_id, None)
                if all(each.is_run for each in holds.values()):
                    self._special.discard(host_id)

    def _first(self, host_id: str, entry: Entry, run_ns: int | None, now_ns: int, is_refused: bool) -> int | None:
        """When it fits on one host first: with nothing that holds later, what fits once fits from then on."""
        heeded = [one for one in self._hosts[host_id].holds.values() if one.level <= entry.priority_class]
        ends = {end for one in heeded if now_ns < (end := one.ends_ns(now_ns)) < FOREVER}
        times = sorted(ends) if is_refused else [now_ns, *sorted(ends)]

        def fits(at: int) -> bool:
            span = at, _end(at, run_ns)
            return self.has_room(host_id, entry.need, span, entry.priority_class, now_ns, entry.entry_id)

        if any(one.from_ns > now_ns for one in heeded):
            return next((at for at in times if fits(at)), None)
        found = bisect_left(times, True, key=fits)
        return times[found] if found < len(times) else None

    def _gang(
        self, entry: Entry, run_ns: int | None, now_ns: int, firsts: list[tuple[int, int, str]]
    ) -> Reservation | None:
        """The first time at which as many hosts of a pool as it needs have room together."""
        need, of = entry.need, entry.priority_class
        for at in range(need.hosts - 1, len(firsts)):
            start_ns, until_ns = firsts[at][0], _end(firsts[at][0], run_ns)
            hosts = (host_id for _, _, host_id in firsts[: at + 1])
            fit = [one for one in hosts if self.has_room(one, need, (start_ns, until_ns), of, now_ns, entry.entry_id)]
            if len(fit) >= need.hosts:
                span = (start_ns, until_ns, of, now_ns, entry.entry_id)
                return Reservation(entry, start_ns, tuple(self.fits(one, need, *span) for one in fit[: need.hosts]))
        return None

    def _add(self, host_id: str, hold: Hold) -> None:
        if host_id in self._hosts:
            self._hosts[host_id].holds[hold.by] = hold


class Look:
    """One look at the queue. `next` is asked again after each try, once its outcome is told."""

    def __init__(self, queue: Queue, profile: Profile, times: RunTimes, now_ns: int, tries: int = TRIES) -> None:
        self._queue, self._profile, self._times, self._now_ns, self._tries = queue, profile, times, now_ns, tries
        self._entries = queue.first(now_ns)
        self._heads: set[PriorityClass] = set()
        self._refused: dict[Shape, int] = {}
        for entry_id in [one for one in profile.reservations if not queue.is_ready(one)]:
            profile.unreserve(entry_id)

    def next(self) -> Entry | None:
        """The next entry to find a place for; None: this look is over."""
        for entry in self._entries:
            if not self._tries:
                break
            if self._run(entry) < self._refused.get((entry.need, entry.priority_class), FOREVER + 1):
                self._tries -= 1
                return entry
        return None

    def closed(self, entry: Entry) -> frozenset[str]:
        """The hosts that it may not have now, because of reservations and maintenance."""
        return frozenset(self._profile.closed(entry, self._times.expected_ns(entry), self._now_ns))

    def placed(self, entry: Entry, places: Iterable[Place]) -> None:
        """It starts there."""
        self._profile.unreserve(entry.entry_id)
        self._queue.start(entry.entry_id, self._now_ns)
        self._entries = self._queue.first(self._now_ns)
        taken = {place[0]: place for place in places}
        for place in taken.values():
            self._profile.take(entry, place, self._now_ns, self._times.expected_ns(entry))
        for one in list(self._profile.reservations.values()):  # it may have got other cards than those left for it
            if any(host_id in taken for host_id, _ in one.places):
                self._profile.unreserve(one.entry.entry_id)
                self._profile.reserve(one.entry, self._times.expected_ns(one.entry), self._now_ns)

    def refused(self, entry: Entry) -> None:
        """There is no place for it now. The first of its class that is refused gets a reservation."""
        self._refused[entry.need, entry.priority_class] = self._run(entry)
        of, reservations = entry.priority_class, self._profile.reservations
        if of in self._heads:
            return
        self._heads.add(of)
        for one in [one.entry for one in reservations.values()]:
            if one.priority_class is of and one.entry_id != entry.entry_id:
                self._profile.unreserve(one.entry_id)
        self._profile.reserve(entry, self._times.expected_ns(entry), self._now_ns)

    def _run(self, entry: Entry) -> int:
        run_ns = self._times.expected_ns(entry)
        return FOREVER if run_ns is None else run_ns


def _holds(host: Host, need: Need) -> bool:
    is_size = host.cards >= need.cards and host.cpus >= need.cpus and host.memory >= need.memory
    return is_size and (not need.pools or host.pool in need.pools)


def _end(start_ns: int, run_ns: int | None) -> int:
    return FOREVER if run_ns is None else start_ns + run_ns


def _hold(
    entry: Entry,
    cards: tuple[int, ...],
    from_ns: int,
    until_ns: int,
    level: int,
    *,
    limit_ns: int = FOREVER,
    is_run: bool = False,
) -> Hold:
    need = entry.need
    return Hold(
        by=entry.entry_id,
        cards=cards,
        milli=need.milli,
        cpus=need.cpus,
        memory=need.memory,
        from_ns=from_ns,
        until_ns=until_ns,
        limit_ns=limit_ns,
        level=level,
        is_run=is_run,
    )
