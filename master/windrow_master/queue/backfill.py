"""EASY backfill: a reservation for the head of each class, and others start where they do not delay it. Pure.

    look.next() ─▶ an entry ─▶ the caller plans a place, not on look.closed(entry) ─┬▶ look.placed
                                                                                    └▶ look.refused: a head reserves

The profile knows of each host which card, processors and memory are held until when. A run is expected to take the
lesser of its limit and the mean of the last two runs of that owner and name (Tsafrir 2007), and once longer than that,
as long again as it has taken. A reservation and a maintenance window hold from a later time on, and nothing starts that
would still be there then. A class heeds its own reservations and those of the classes before it.
A change costs O(1), and to reserve O(hosts x h log h) for h holds on each: 30 ms for HOSTS_MAX hosts of eight runs.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final

from windrow_master.queue.model import FOREVER, MILLI, Entry, Need, PriorityClass
from windrow_master.queue.order import Queue
from windrow_proto.units import MINUTE

TRIES: Final = 16
"""Plans in vain in one look. What needs the same as an entry that was refused is passed over without a plan."""
PASSED: Final = 256
"""Entries that are looked at after each start. Slurm's default_queue_depth is 100."""
HOSTS_MAX: Final = 1000
"""Hosts that are looked at for a reservation, by when they joined: it need not be the best place, and whoever waits is
still tried on all."""
HEADS_MAX: Final = 16
"""Entries of a class for which a reservation is sought in one look: those before may fit no host that there is."""
NAMES_MAX: Final = 100_000
"""Owners and names whose last runs are kept; the oldest go first."""
DRAIN: Final = "maintenance"
Place = tuple[str, tuple[int, ...]]
"""A host and cards of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A host as the profile sees it. pool: its class, for example its tier and region."""

    host_id: str
    pool: str
    cards: int = 0
    cpus: int = 0
    memory: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A part of a host that is held. level: the class of a reservation; -1: all heed it. is_run: it runs since from_ns,
    and until_ns is a guess (from_ns: not even that). limit_ns: it has ended by then."""

    by: str
    need: Need
    cards: tuple[int, ...]
    from_ns: int
    until_ns: int
    limit_ns: int = FOREVER
    level: int = -1
    is_run: bool = False

    @property
    def is_open(self) -> bool:
        """True of a run of which nothing says when it ends."""
        return self.is_run and self.until_ns == self.from_ns and self.limit_ns == FOREVER

    def ends_ns(self, now_ns: int) -> int:
        """When it is expected to end; for what runs in the future."""
        if not self.is_run or self.until_ns > now_ns:
            return self.until_ns
        again = now_ns + max(MINUTE, now_ns - self.from_ns)
        return min(again, self.limit_ns if self.limit_ns > now_ns else now_ns + MINUTE)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Places that are kept for an entry from a time on."""

    entry: Entry
    start_ns: int
    places: tuple[Place, ...]
    made_ns: int = 0


@dataclass(frozen=True, slots=True)
class Holder:
    """A host that is large enough for an entry, and what holds too much of it: entries, or maintenance. free_ns: when
    there is expected to be room; None: nothing says when that ends. Empty: there is room now."""

    host_id: str
    by: tuple[str, ...]
    free_ns: int | None


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

    def suits(self, need: Need) -> bool:
        """True if it is large enough when empty, and of a kind that will do."""
        host = self.host
        is_size = host.cards >= need.cards and host.cpus >= need.cpus and host.memory >= need.memory
        return is_size and (not need.pools or host.pool in need.pools) and (not need.only or host.host_id in need.only)

    def heeded(self, entry: Entry, level: int | None) -> list[Hold]:
        """The holds that an entry has to leave alone. level: of its class if not given; -1: what runs, and windows."""
        most = entry.priority_class if level is None else level
        return [one for one in self.holds.values() if one.level <= most and one.by != entry.entry_id]

    def cards(self, entry: Entry, from_ns: int, until_ns: int, now_ns: int, level: int | None = None) -> Place | None:
        """The cards that an entry could have all that time, of the fullest first; None: it does not fit."""
        need, heeded, size = entry.need, self.heeded(entry, level), self.host
        room, cpus, memory = [MILLI] * size.cards, size.cpus, size.memory
        for at in {from_ns, *(one.from_ns for one in heeded if from_ns < one.from_ns < until_ns)}:
            held = [one for one in heeded if one.from_ns <= at < one.ends_ns(now_ns)]
            left = [MILLI] * size.cards
            for one in held:
                for card in one.cards:
                    left[card] -= one.need.milli
            room = [min(pair) for pair in zip(room, left, strict=True)]
            cpus = min(cpus, size.cpus - sum(one.need.cpus for one in held))
            memory = min(memory, size.memory - sum(one.need.memory for one in held))
        cards = sorted((left, card) for card, left in enumerate(room) if left >= need.milli)[: need.cards]
        if len(cards) < need.cards or cpus < need.cpus or memory < need.memory:
            return None
        return size.host_id, tuple(sorted(card for _, card in cards))

    def first(self, entry: Entry, run_ns: int | None, now_ns: int, is_refused: bool) -> int | None:
        """When it fits here first. Where nothing holds later on, what fits once fits from then on: a binary search."""
        heeded = self.heeded(entry, None)
        ends = {end for one in heeded if now_ns < (end := one.ends_ns(now_ns)) < FOREVER}
        times = sorted(ends) if is_refused else [now_ns, *sorted(ends)]

        def fits(at: int) -> bool:
            return self.cards(entry, at, _end(at, run_ns), now_ns) is not None

        if any(one.from_ns > now_ns for one in heeded):
            return next((at for at in times if fits(at)), None)
        found = bisect_left(times, True, key=fits)
        return times[found] if found < len(times) else None


class Profile:
    """Everything that is free on hosts over time: runs, reservations and maintenance."""

    def __init__(self) -> None:
        self._hosts: dict[str, _Host] = {}
        self._later: set[str] = set()
        self.reservations: dict[str, Reservation] = {}

    def join(self, host: Host) -> None:
        """A host joins, or has another size; what runs on cards that it still has stays, and what was reserved on more
        than it has is reserved no more."""
        holds = self._hosts[host.host_id].holds if host.host_id in self._hosts else {}
        kept = {by: one for by, one in holds.items() if max(one.cards, default=-1) < host.cards}
        self._hosts[host.host_id] = _Host(host, kept)
        for by in holds.keys() & self.reservations.keys():
            need = holds[by].need
            if by not in kept or need.cpus > host.cpus or need.memory > host.memory:
                self.unreserve(by)

    def leave(self, host_id: str) -> None:
        """A host is gone, and with it what was reserved with a part on it."""
        host = self._hosts.pop(host_id, None)
        self._later.discard(host_id)
        for by in host.holds.keys() & self.reservations.keys() if host else ():
            self.unreserve(by)

    def host(self, host_id: str) -> Host | None:
        """A host as it joined last; None: it is not there."""
        return self._hosts[host_id].host if host_id in self._hosts else None

    def place(self, entry: Entry, host_id: str, now_ns: int) -> Place:
        """The cards that an entry gets which starts on a host; none where the host has another size by now."""
        host = self._hosts.get(host_id)
        return (host and host.cards(entry, now_ns, now_ns + 1, now_ns, -1)) or (host_id, ())

    def take(self, entry: Entry, place: Place, started_ns: int, expected_ns: int | None) -> None:
        """An entry runs on a host since then. expected_ns: for how long; None: unknown."""
        self._add(
            place[0],
            Hold(
                by=entry.entry_id,
                need=entry.need,
                cards=place[1],
                from_ns=started_ns,
                until_ns=started_ns + (expected_ns or 0),
                limit_ns=_end(started_ns, entry.limit_ns),
                is_run=True,
            ),
        )

    def give_back(self, entry_id: str, hosts: Iterable[str]) -> None:
        """Its run is over. Said twice it changes nothing."""
        for host_id in hosts:
            if host_id in self._hosts:
                self._hosts[host_id].holds.pop(entry_id, None)

    def drain(self, host_id: str, from_ns: int, until_ns: int = FOREVER) -> None:
        """Maintenance is planned: nothing may run on the host then, and what was reserved there for then is reserved no
        more. An empty span takes it back."""
        if host_id not in self._hosts:
            return
        if from_ns >= until_ns:
            self._remove(host_id, DRAIN)
            return
        host = self._hosts[host_id].host
        need = Need(cards=host.cards, cpus=host.cpus, memory=host.memory)
        cards = tuple(range(host.cards))
        self._add(host_id, Hold(by=DRAIN, need=need, cards=cards, from_ns=from_ns, until_ns=until_ns))
        holds = self._hosts[host_id].holds
        for by in [one for one in self.reservations if one in holds]:
            if holds[by].from_ns < until_ns and holds[by].until_ns > from_ns:
                self.unreserve(by)

    def free(self, entry: Entry, now_ns: int) -> set[str]:
        """The hosts that have room for it now, whatever is planned for later. O(hosts)."""
        span = now_ns, now_ns + 1
        return {one for one, host in self._fitting(entry) if host.cards(entry, *span, now_ns, -1)}

    def closed(self, entry: Entry, run_ns: int | None, now_ns: int) -> dict[str, Hold]:
        """Return the hosts that would suit the entry but are closed to it by a reservation or planned maintenance, each
        with the first such hold. Hosts that are too small or of another kind are left out."""
        found = dict[str, Hold]()
        for host_id in self._later:
            host = self._hosts[host_id]
            if host.suits(entry.need) and host.cards(entry, now_ns, _end(now_ns, run_ns), now_ns) is None:
                heeded = (one for one in host.heeded(entry, None) if not one.is_run and one.until_ns > now_ns)
                if (first := min(heeded, key=_order, default=None)) is not None:
                    found[host_id] = first
        return found

    def holders(self, entry: Entry, run_ns: int | None, now_ns: int, host_id: str | None = None) -> list[Holder]:
        """The hosts that are large enough for it, or this one, those that are free first at the front. O(hosts)."""
        found = list[Holder]()
        for one, host in islice(self._fitting(entry), HOSTS_MAX):
            if host_id not in (None, one):
                continue
            first = host.first(entry, run_ns, now_ns, is_refused=False)
            end_ns = _end(now_ns, run_ns) if first is None else first
            holds = [
                each for each in host.heeded(entry, None) if each.from_ns < end_ns and each.ends_ns(now_ns) > now_ns
            ]
            by = () if first == now_ns else tuple(each.by for each in holds)
            is_open = any(each.is_open for each in holds) and bool(by)
            found.append(Holder(one, by, None if is_open else first))
        return sorted(found, key=lambda one: (FOREVER if one.free_ns is None else one.free_ns, one.host_id))

    def reserve(self, entry: Entry, run_ns: int | None, now_ns: int, *, is_refused: bool = True) -> Reservation | None:
        """Keep the places that it can have first; what it has stays until its time has passed, or the clock was put
        back. is_refused: it cannot start now, whatever the profile says. None: it fits nowhere."""
        kept = self.reservations.get(entry.entry_id)
        if kept is not None and kept.made_ns <= now_ns < kept.start_ns:
            return kept
        self.unreserve(entry.entry_id)
        pools = dict[str, list[tuple[int, int, _Host]]]()
        hosts = list(islice(self._fitting(entry), max(HOSTS_MAX, 2 * entry.need.hosts)))
        if len(hosts) < entry.need.hosts:
            return None
        for number, (_, host) in enumerate(hosts):
            if (at := host.first(entry, run_ns, now_ns, is_refused)) is not None:
                pools.setdefault(host.host.pool, []).append((at, number, host))
        all_found = (_gang(entry, run_ns, now_ns, sorted(firsts)) for firsts in pools.values())
        found = min((one for one in all_found if one), key=lambda one: one.start_ns, default=None)
        if found is not None:
            self.keep(found, run_ns)
        return found

    def keep(self, one: Reservation, run_ns: int | None) -> None:
        """Hold the places of a reservation."""
        entry, span = one.entry, (one.start_ns, _end(one.start_ns, run_ns))
        self.reservations[entry.entry_id] = one
        for host_id, cards in one.places:
            of = entry.priority_class
            hold = Hold(by=entry.entry_id, need=entry.need, cards=cards, from_ns=span[0], until_ns=span[1], level=of)
            self._add(host_id, hold)

    def unreserve(self, entry_id: str) -> None:
        """Let its places go."""
        one = self.reservations.pop(entry_id, None)
        for host_id, _ in one.places if one else ():
            self._remove(host_id, entry_id)

    def _fitting(self, entry: Entry) -> Iterator[tuple[str, _Host]]:
        """The hosts of its pools that are large enough when empty."""
        return ((host_id, one) for host_id, one in self._hosts.items() if one.suits(entry.need))

    def _remove(self, host_id: str, by: str) -> None:
        if (host := self._hosts.get(host_id)) is not None:
            host.holds.pop(by, None)
            if all(each.is_run for each in host.holds.values()):
                self._later.discard(host_id)

    def _add(self, host_id: str, hold: Hold) -> None:
        if host_id in self._hosts:
            self._hosts[host_id].holds[hold.by] = hold
            if not hold.is_run:
                self._later.add(host_id)


class Look:
    """One look at the queue. `next` is asked again after each try, once its outcome is told."""

    def __init__(
        self,
        queue: Queue,
        profile: Profile,
        times: RunTimes,
        now_ns: int,
        tries: int = TRIES,
        was_full: Callable[[Entry], bool | None] = lambda _: None,
        passed: int = PASSED,
    ) -> None:
        """was_full: of an entry that was refused before, with nothing changed since that could help it, if that was for
        want of room; None: of any other. passed: entries of each class that are looked at until one starts."""
        self._queue, self._profile, self._times, self._now_ns, self._tries = queue, profile, times, now_ns, tries
        self._was_full, self.passed, self._seen = was_full, passed, 0
        self._entries = queue.first(now_ns, passed)
        self._heads: dict[PriorityClass, int] = {}
        self._full: dict[_Key, int] = {}
        self._own: dict[tuple[_Key, str], int] = {}
        for entry_id in [one for one in profile.reservations if not queue.is_ready(one)]:
            profile.unreserve(entry_id)

    def next(self) -> Entry | None:
        """The next entry to find a place for; None: this look is over."""
        while self._tries and (entry := next(self._entries, None)) is not None:
            self._seen += 1
            key, end_ns = _key(entry), _end(0, self._times.expected_ns(entry))
            if end_ns >= self._full.get(key, FOREVER + 1) or end_ns >= self._own.get((key, entry.leaf), FOREVER + 1):
                continue
            if (is_full := self._was_full(entry)) is None:
                return entry
            self._refuse(entry, is_full=is_full)
        return None

    def copies(self, entry: Entry, most: int) -> list[Entry]:
        """The entry that `next` gave, and those that follow it in turn as long as they are of its array and need the
        same, if all before them start at the cost that they ask for. They are still to come."""
        found, alike = [entry], (entry.array, entry.leaf, *_key(entry))
        while entry.array and len(found) < most and (other := next(self._entries, None)) is not None:
            if (other.array, other.leaf, *_key(other)) != alike:
                self._entries = chain([other], self._entries)
                break
            found.append(other)
        self._entries = chain(found[1:], self._entries)
        return found

    @property
    def is_spent(self) -> bool:
        """True if it has made all of its tries in vain: there may be more entries to try."""
        return not self._tries

    @property
    def is_at_end(self) -> bool:
        """True if it has passed as many entries as it may: there may be more."""
        return self._seen >= self.passed

    def closed(self, entry: Entry) -> frozenset[str]:
        """The hosts that it may not have now, because of reservations and maintenance."""
        return frozenset(self._profile.closed(entry, self._times.expected_ns(entry), self._now_ns))

    def placed(self, entry: Entry, places: Iterable[Place]) -> None:
        """It starts there. entry: with the cost and need of what it got, where it got something else than it asked."""
        self._profile.unreserve(entry.entry_id)
        self._queue.start(entry, self._now_ns)
        self.passed, self._seen = PASSED, 0
        self._entries = self._queue.first(self._now_ns, PASSED)
        taken = {place[0]: place for place in places}
        for place in taken.values():
            self._profile.take(entry, place, self._now_ns, self._times.expected_ns(entry))
        for one in list(self._profile.reservations.values()):  # it may have got other cards than those left for it
            if any(host_id in taken for host_id, _ in one.places):
                self._profile.unreserve(one.entry.entry_id)
                self._profile.reserve(one.entry, self._times.expected_ns(one.entry), self._now_ns)

    def refused(self, entry: Entry, *, is_full: bool = True) -> None:
        """There is no place for it now. The first of its class for which hosts can be reserved has them reserved.
        is_full: for want of room; False: for a reason of its own, such as a quota, and others are not kept waiting."""
        self._tries -= 1
        self._refuse(entry, is_full=is_full)

    def _refuse(self, entry: Entry, *, is_full: bool) -> None:
        expected_ns, of = self._times.expected_ns(entry), entry.priority_class
        if not is_full:
            self._own[_key(entry), entry.leaf] = _end(0, expected_ns)
            self._profile.unreserve(entry.entry_id)
            return
        self._full[_key(entry)] = _end(0, expected_ns)
        if self._heads.get(of, 0) >= HEADS_MAX:
            return
        reserved = list(self._profile.reservations.values())
        others = [one for one in reserved if one.entry.priority_class is of and one.entry.entry_id != entry.entry_id]
        for one in others:
            self._profile.unreserve(one.entry.entry_id)
        if self._profile.reserve(entry, expected_ns, self._now_ns) is not None:
            self._heads[of] = HEADS_MAX
            return
        self._heads[of] = self._heads.get(of, 0) + 1
        for one in others:
            self._profile.keep(one, self._times.expected_ns(one.entry))


_Key = tuple[Need, Hashable, PriorityClass]


def _key(entry: Entry) -> _Key:
    return entry.need, entry.shape, entry.priority_class


def _order(hold: Hold) -> tuple[int, int, str]:
    """Of holds from the same time on, that of the first class is told."""
    return hold.from_ns, hold.level, hold.by


def _end(start_ns: int, run_ns: int | None) -> int:
    return FOREVER if run_ns is None else start_ns + run_ns


def _gang(entry: Entry, run_ns: int | None, now_ns: int, firsts: list[tuple[int, int, _Host]]) -> Reservation | None:
    """The first time at which as many hosts of a pool as it needs have room together. firsts: by when each has."""
    for at in range(entry.need.hosts - 1, len(firsts)):
        start_ns = firsts[at][0]
        places = [host.cards(entry, start_ns, _end(start_ns, run_ns), now_ns) for _, _, host in firsts[: at + 1]]
        fit = [one for one in places if one is not None]
        if len(fit) >= entry.need.hosts:
            return Reservation(entry, start_ns, tuple(fit[: entry.need.hosts]), now_ns)
    return None
