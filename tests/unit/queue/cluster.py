"""A cluster in virtual time that runs the queue: jobs arrive, are looked at after every event, run and end."""

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Any

from windrow_master.queue.backfill import Host, Look, Place, Profile, RunTimes
from windrow_master.queue.estimate import Estimator
from windrow_master.queue.model import Amounts, Entry, Need
from windrow_master.queue.order import Queue
from windrow_master.queue.shares import ROOT, Node, Shares
from windrow_proto.units import MINUTE, SECOND

MILLI = 1000
BEGAN = 1_700_000_000 * SECOND


@dataclass(frozen=True, slots=True)
class Job:
    """An entry that arrives, and how long it takes."""

    entry: Entry
    takes_ns: int


def job(entry_id: str, leaf: str, at_ns: int, takes_ns: int, cards: int = 1, **more: Any) -> Job:
    """A job that asks for whole cards, unless `milli` says otherwise, and for a processor."""
    milli = more.pop("milli", MILLI)
    entry = Entry(
        entry_id=entry_id,
        leaf=leaf,
        cost=Amounts(gpus=cards * milli, cpus=MILLI),
        need=Need(cards=cards, milli=milli, cpus=MILLI),
        submitted_ns=BEGAN + at_ns,
        limit_ns=takes_ns,
    )
    return Job(replace(entry, **more), takes_ns)


def tree(capacity_cards: int, half_life_ns: int, *nodes: Node) -> Shares:
    """Shares of that many cards."""
    capacity = Amounts(gpus=capacity_cards * MILLI, cpus=capacity_cards * 100 * MILLI, memory=1)
    return Shares(capacity, nodes, half_life_ns)


def projects(*weights: int, organisation: str = "home") -> list[Node]:
    """An organisation with projects p0, p1 and so on."""
    found = [Node(node_id=organisation, parent=ROOT)]
    return found + [Node(node_id=f"p{at}", parent=organisation, weight=one) for at, one in enumerate(weights)]


@dataclass(slots=True)
class Cluster:
    """Hosts of eight cards. started, ended: when, by job; served: nanoseconds of milli cards by leaf."""

    shares: Shares
    hosts: int
    age_cap_ns: int = 100 * MINUTE
    estimates: bool = False
    now_ns: int = BEGAN
    started: dict[str, int] = field(default_factory=dict)
    served: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    most: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    queue: Queue = field(init=False)
    profile: Profile = field(init=False, default_factory=Profile)
    times: RunTimes = field(init=False, default_factory=RunTimes)
    estimator: Estimator = field(init=False, default_factory=Estimator)
    _events: list[tuple[int, int, str, Job]] = field(init=False, default_factory=list)
    _places: dict[str, Place] = field(init=False, default_factory=dict)
    _free: dict[str, list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.queue = Queue(self.shares, self.age_cap_ns)
        self._free = {f"host-{at}": [MILLI] * 8 for at in range(self.hosts)}
        for host_id in self._free:
            self.profile.join(Host(host_id=host_id, pool="a100", cards=8, cpus=800 * MILLI))

    def submit(self, jobs: Iterable[Job]) -> None:
        """They arrive when they say."""
        for one in jobs:
            heappush(self._events, (one.entry.submitted_ns, len(self._events), "arrive", one))

    def run(self, for_ns: int) -> None:
        """Until that much time has passed since the beginning, or nothing happens any more."""
        waiting = dict[str, Job]()
        until_ns = BEGAN + for_ns
        while self._events and self._events[0][0] <= until_ns:
            self.now_ns = self._events[0][0]
            while self._events and self._events[0][0] == self.now_ns:
                _, _, what, one = heappop(self._events)
                if what == "arrive":
                    waiting[one.entry.entry_id] = one
                    self.queue.put(one.entry, self.now_ns)
                else:
                    self._end(one)
            self._look(waiting)
        self.now_ns = until_ns

    def _look(self, waiting: dict[str, Job]) -> None:
        look = Look(self.queue, self.profile, self.times, self.now_ns)
        while (entry := look.next()) is not None:
            place = self._place(entry, look.closed(entry))
            if place is None:
                look.refused(entry)
                if not any(any(cards) for cards in self._free.values()):
                    break
                continue
            one = waiting.pop(entry.entry_id)
            look.placed(entry, [place])
            self.estimator.started(entry.entry_id, self.now_ns)
            self.started[entry.entry_id] = self.now_ns - BEGAN
            self._places[entry.entry_id] = place
            for card in place[1]:
                self._free[place[0]][card] -= entry.need.milli
                assert self._free[place[0]][card] >= 0
            if entry.array:
                self.most[entry.array] = max(self.most[entry.array], self.queue.running(entry.array))
            heappush(self._events, (self.now_ns + one.takes_ns, len(self.started) + (1 << 40), "end", one))
        if self.estimates and len(self.queue):
            self.estimator.plan(self.queue, self.profile, self.times, self.now_ns)

    def _place(self, entry: Entry, closed: frozenset[str]) -> Place | None:
        """Best fit, as the engine would: the host with the least left, whichever cards."""
        fit = []
        for host_id, cards in self._free.items():
            usable = [at for at, left in enumerate(cards) if left >= entry.need.milli]
            if host_id not in closed and len(usable) >= entry.need.cards:
                fit.append((sum(cards), host_id, tuple(usable[: entry.need.cards])))
        return min(fit)[1:] if fit else None

    def _end(self, one: Job) -> None:
        entry = one.entry
        host_id, cards = self._places.pop(entry.entry_id)
        for card in cards:
            self._free[host_id][card] += entry.need.milli
        self.profile.give_back(entry.entry_id, [host_id])
        self.times.ended(entry, one.takes_ns)
        self.queue.end(entry.entry_id, self.now_ns, True)
        self.served[entry.leaf] += one.takes_ns * entry.need.cards * entry.need.milli


def backlog(leaves: Iterable[str], jobs: int, chance: random.Random, longest_ns: int, cards: int = 1) -> list[Job]:
    """So many jobs of each leaf, all there from the beginning, a tenth to all of that long."""
    return [
        job(f"{leaf}-{at}", leaf, 0, chance.randint(longest_ns // 10, longest_ns), cards)
        for leaf in leaves
        for at in range(jobs)
    ]


def flood(leaf: str, until_ns: int, every_ns: int, takes_ns: int, **more: Any) -> list[Job]:
    """Small jobs at this pace."""
    return [job(f"{leaf}-small-{at}", leaf, at, takes_ns, **more) for at in range(0, until_ns, every_ns)]
