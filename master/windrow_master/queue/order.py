"""Keeps what waits in the order in which it is to start: class, share, priority with aging, submission. Pure.

    put ─▶ held ─▶ comes after jobs ─▶ begins later ─▶ array is full ─▶ ready ─▶ start ─▶ end
           each obstacle in this order; the first that is there is the reason

In a leaf of the tree of shares the ready entries of a class are a sorted list. Its key is the time since when an entry
could start, less what its priority is worth: the whole range of priorities is worth AGE_CAP_NS. As all entries age
alike the key never changes and nothing is ever sorted anew: an event costs a binary search, a shift of pointers (10 us
among 100,000 entries) and O(depth) counters. `first(limit)` ranks the siblings of each node that it comes to, O(active
siblings), and then takes O(depth x log siblings) an entry, each as if those before it had started.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from heapq import heapify, heappop, heappush, heapreplace
from itertools import chain, islice, pairwise
from typing import Final

from windrow_master.queue.model import AGE_CAP_NS, NOTHING, PRIORITY_MAX, Amounts, End, Entry, Need, PriorityClass, When
from windrow_master.queue.shares import ROOT, Rank, Shares
from windrow_master.spec import require
from windrow_proto.errors import Conflict, NotFound

FIRST: Final = 1000
"""Entries that are put in order for one look: 10 ms. Slurm's default_queue_depth is 100."""

STALE_MAX: Final = 256
"""Times of entries that begin later, beside twice the entries, that are of none any more: it was dropped or held."""

Key = tuple[bool, int, int, str, int, str]
"""Not at the top, since when less the worth of its priority, submitted, array, index, id."""


class Waits(StrEnum):
    """Why an entry is not ready, or that it is."""

    HELD = "held"
    NO_SHARE = "no_share"
    NEVER = "dependency_never_satisfied"
    DEPENDENCY = "dependency"
    BEGIN = "begin"
    THROTTLED = "throttled"
    READY = "ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """The place of an entry in numbers, as Slurm's `sprio`. is_above, usage: of the nodes from below the installation
    down to its leaf: whether they hold their guarantee already, and their usage by weight. age: points that waiting is
    worth; points: with `priority`."""

    priority_class: PriorityClass
    is_top: bool
    is_above: tuple[bool, ...]
    usage: tuple[float, ...]
    priority: int
    age: float
    points: float
    submitted_ns: int


@dataclass(slots=True)
class _Waiting:
    entry: Entry
    after: dict[str, When]
    since_ns: int
    is_never: bool = False
    state: Waits = Waits.HELD
    key: Key = (False, 0, 0, "", 0, "")


@dataclass(slots=True)
class _Array:
    """admitted: ready or running; parked: keys of the others."""

    admitted: set[str] = field(default_factory=set)
    parked: list[Key] = field(default_factory=list)


class Queue:
    """The entries that wait, and those that run. Times are wall time; the order of calls is the caller's."""

    def __init__(self, shares: Shares, age_cap_ns: int = AGE_CAP_NS) -> None:
        self.shares, self._point_ns = shares, age_cap_ns // (2 * PRIORITY_MAX)
        self._waiting: dict[str, _Waiting] = {}
        self._running: dict[str, Entry] = {}
        self._leaves: dict[PriorityClass, dict[str, list[Key]]] = {one: {} for one in PriorityClass}
        self._active: dict[PriorityClass, dict[str, dict[str, int]]] = {one: defaultdict(dict) for one in PriorityClass}
        self._paths: dict[str, tuple[str, ...]] = {}
        self._arrays: dict[str, _Array] = {}
        self._children: dict[str, set[str]] = defaultdict(set)
        self._begins: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, entry: Entry, now_ns: int, ended: Mapping[str, End] | None = None) -> None:
        """It waits, or waits again; below a deleted leaf for ever. ended: those of the jobs it comes after that have
        ended. Raises InvalidInput."""
        require("priority", abs(entry.priority) <= PRIORITY_MAX, f"between {-PRIORITY_MAX} and {PRIORITY_MAX}")
        require("at_once", entry.at_once is None or entry.at_once > 0, "above 0")
        require("share", not self.shares.children(entry.leaf), "one without others below it")
        require("id", entry.entry_id not in self._running, "that of work which does not run")
        self.drop(entry.entry_id)
        one = _Waiting(entry, dict(entry.after), max(entry.submitted_ns, entry.begin_ns, entry.released_ns))
        self._waiting[entry.entry_id] = one
        for job_id in one.after:
            self._children[job_id].add(entry.entry_id)
        for job_id, end in (ended or {}).items():
            self._satisfy(one, job_id, end)
        self._settle(one, now_ns)

    def drop(self, entry_id: str) -> None:
        """It waits no more: cancelled."""
        one = self._waiting.pop(entry_id, None)
        if one is not None:
            self._unplace(one)
            self._leave_array(one.entry)
            for job_id in one.after.keys() & self._children.keys():
                self._children[job_id].discard(entry_id)
                if not self._children[job_id]:
                    del self._children[job_id]

    def hold(self, entry_id: str, by: str, now_ns: int) -> None:
        """It does not start until it is released. by: who says so."""
        one = self._one(entry_id)
        one.entry = replace(one.entry, held_by=by)
        self._settle(one, now_ns)

    def release(self, entry_id: str, now_ns: int) -> None:
        """It waits from now on, if it was held."""
        one = self._one(entry_id)
        if one.entry.held_by:
            one.since_ns = max(one.since_ns, now_ns)
            one.entry = replace(one.entry, held_by="", released_ns=now_ns)
            self._settle(one, now_ns)

    def top(self, entry_id: str, now_ns: int) -> None:
        """It comes before all others of its leaf and class; of several the first by the usual order."""
        one = self._one(entry_id)
        one.entry = replace(one.entry, is_top=True)
        self._settle(one, now_ns)

    def refit(self, entry_id: str, need: Need) -> Entry:
        """It needs the same of other hosts; its place in the order stays. Returns it with that."""
        one = self._one(entry_id)
        one.entry = replace(one.entry, need=need)
        return one.entry

    def start(self, entry: Entry, now_ns: int) -> None:
        """It runs: with another cost and need than it asked for where it got an alternative, or more hosts. Raises
        Conflict unless it was ready."""
        one = self._one(entry.entry_id)
        if one.state is not Waits.READY:
            raise Conflict(f"{entry.entry_id} is not ready to start: {one.state}.", subject=entry.entry_id)
        self._unplace(one)
        del self._waiting[entry.entry_id]
        self.adopt(entry, now_ns)

    def adopt(self, entry: Entry, now_ns: int) -> None:
        """It runs already, as a new Master finds it in the rows; what it used before is charged apart."""
        self._running[entry.entry_id] = entry
        if entry.array:
            self._arrays.setdefault(entry.array, _Array()).admitted.add(entry.entry_id)
        self.shares.start(entry.leaf, entry.cost, now_ns)

    def resized(self, entry: Entry, now_ns: int) -> None:
        """What runs costs its share more or less from now on: it has another number of hosts."""
        known = self._running.get(entry.entry_id)
        if known is not None and known.cost != entry.cost:
            self.shares.stop(known.leaf, known.cost, now_ns)
            self.shares.start(known.leaf, entry.cost, now_ns)
            self._running[entry.entry_id] = replace(known, cost=entry.cost)

    def end(self, entry_id: str, now_ns: int, is_ok: bool | None) -> list[str]:
        """Its run is over; None: it is not finished, and is put again by the caller (requeue, preempted). Returns what
        can never start now, since it comes after another end of it."""
        entry = self._running.pop(entry_id, None)
        if entry is not None:
            self.shares.stop(entry.leaf, entry.cost, now_ns)
            self._leave_array(entry)
        return [] if is_ok is None else self.ended(entry_id, End(is_ok, now_ns))

    def ended(self, job_id: str, end: End) -> list[str]:
        """A job has ended, whether or not it ever ran (cancelled while it waited). Returns what can never start."""
        never = list[str]()
        for entry_id in sorted(self._children.pop(job_id, ())):
            one = self._waiting[entry_id]
            self._satisfy(one, job_id, end)
            self._settle(one, end.at_ns)
            if one.is_never:
                never.append(entry_id)
        return never

    def wake(self, now_ns: int) -> None:
        """Let those begin whose time has come; O(log n) each."""
        while self._begins and self._begins[0][0] <= now_ns:
            one = self._waiting.get(heappop(self._begins)[1])
            if one is not None and one.state is Waits.BEGIN:
                self._settle(one, now_ns)

    def due_ns(self) -> int | None:
        """When the next one may begin; None: no entry waits for its time."""
        return self._begins[0][0] if self._begins else None

    def shares_changed(self, now_ns: int) -> None:
        """The tree has lost or got nodes, or leaves have moved: what waits below one that is gone is not ready. O(all
        that wait)."""
        for leaf in [one for one in self._paths if one in self.shares and self._paths[one] != self.shares.path(one)]:
            ready = {of: len(leaves[leaf]) for of, leaves in self._leaves.items() if leaf in leaves}
            for of, number in ready.items():
                self._count(leaf, of, -number)
            self._paths[leaf] = self.shares.path(leaf)
            for of, number in ready.items():
                self._count(leaf, of, number)
        for one in self._waiting.values():
            if (one.state is Waits.NO_SHARE) is (one.entry.leaf in self.shares):
                self._settle(one, now_ns)

    def first(self, now_ns: int, limit: int = FIRST, *, is_capped: bool = True) -> Iterator[Entry]:
        """The ready entries in the order in which they are to start, so many of each class; over once anything of the
        queue changes. An entry that would pass the ceiling of a node ends that node's turn, so that nothing smaller
        keeps it waiting for ever; is_capped False: so many of all, as people see their places."""
        self.wake(now_ns)
        extra: dict[str, Amounts] = {}
        walks = (islice(self._walk(one, now_ns, extra, is_capped), limit) for one in PriorityClass)
        return chain.from_iterable(walks) if is_capped else islice(chain.from_iterable(walks), limit)

    def is_alone(self, entry: Entry) -> bool:
        """True if nothing of another leaf is ready in its class: no start changes the order there."""
        return self._leaves[entry.priority_class].keys() <= {entry.leaf}

    def is_ready(self, entry_id: str) -> bool:
        """True if it waits for nothing but a place."""
        return entry_id in self._waiting and self._waiting[entry_id].state is Waits.READY

    def state(self, entry_id: str) -> Waits:
        """Why it waits. Raises NotFound."""
        return self._one(entry_id).state

    def entry(self, entry_id: str) -> Entry:
        """As it was put, with what was changed since. Raises NotFound."""
        return self._one(entry_id).entry

    def missing(self, entry_id: str) -> dict[str, When]:
        """The jobs that it still comes after."""
        return dict(self._one(entry_id).after)

    def count(self, leaves: frozenset[str] | None) -> tuple[int, int]:
        """How many wait, and how many run, of these leaves; None: of all."""
        if leaves is None:
            return len(self._waiting), len(self._running)
        waiting = sum(one.entry.leaf in leaves for one in self._waiting.values())
        return waiting, sum(one.leaf in leaves for one in self._running.values())

    def running(self, array: str) -> int:
        """How many of an array run."""
        return sum(one in self._running for one in self._arrays[array].admitted) if array in self._arrays else 0

    def factors(self, entry_id: str, now_ns: int) -> Factors:
        """Its place in numbers."""
        one = self._one(entry_id)
        path = self.shares.path(one.entry.leaf)[1:] if one.entry.leaf in self.shares else ()
        ranks = [self.shares.rank(node, now_ns) for node in path]
        age = max(0, now_ns - one.since_ns) / self._point_ns
        return Factors(
            priority_class=one.entry.priority_class,
            is_top=one.entry.is_top,
            is_above=tuple(rank[0] for rank in ranks),
            usage=tuple(rank[1] for rank in ranks),
            priority=one.entry.priority,
            age=age,
            points=one.entry.priority + age,
            submitted_ns=one.entry.submitted_ns,
        )

    def _one(self, entry_id: str) -> _Waiting:
        if entry_id not in self._waiting:
            raise NotFound(f"Nothing waits under the id {entry_id}.", subject=entry_id)
        return self._waiting[entry_id]

    def _satisfy(self, one: _Waiting, job_id: str, end: End) -> None:
        if (when := one.after.get(job_id)) is None:
            return
        if end.satisfies(when):
            del one.after[job_id]
            one.since_ns = max(one.since_ns, end.at_ns)
        else:
            one.is_never = True

    def _obstacle(self, one: _Waiting, now_ns: int) -> Waits:
        checks = (
            (bool(one.entry.held_by), Waits.HELD),
            (one.entry.leaf not in self.shares, Waits.NO_SHARE),
            (one.is_never, Waits.NEVER),
            (bool(one.after), Waits.DEPENDENCY),
            (one.entry.begin_ns > now_ns, Waits.BEGIN),
        )
        return next((state for is_so, state in checks if is_so), Waits.READY)

    def _settle(self, one: _Waiting, now_ns: int) -> None:
        """Find out why it waits, and put it where that keeps it."""
        self._unplace(one)
        entry = one.entry
        worth_ns = entry.priority * self._point_ns
        one.key = (
            *(not entry.is_top, one.since_ns - worth_ns, entry.submitted_ns),
            *(entry.array, entry.index, entry.entry_id),
        )
        one.state = self._obstacle(one, now_ns)
        if one.state is Waits.BEGIN:
            heappush(self._begins, (entry.begin_ns, entry.entry_id))
            if len(self._begins) > 2 * len(self._waiting) + STALE_MAX:
                begins = (other.entry for other in self._waiting.values() if other.state is Waits.BEGIN)
                self._begins = [(other.begin_ns, other.entry_id) for other in begins]
                heapify(self._begins)
        if one.state is not Waits.READY:
            self._leave_array(entry)
        elif self._admits(one):
            self._place(one)

    def _admits(self, one: _Waiting) -> bool:
        """True if it has its place in its array already; else it is parked, and placed when there is room."""
        entry = one.entry
        if entry.at_once is None or not entry.array:
            return True
        array = self._arrays.setdefault(entry.array, _Array())
        if entry.entry_id in array.admitted:
            return True
        insort(array.parked, one.key)
        one.state = Waits.THROTTLED
        self._admit(entry.array)
        return False

    def _admit(self, name: str) -> None:
        array = self._arrays[name]
        while array.parked:
            one = self._waiting[array.parked[0][-1]]
            if len(array.admitted) >= (one.entry.at_once or 0) or one.entry.leaf not in self.shares:
                return  # below a leaf that was just deleted all of them are about to be settled
            del array.parked[0]
            array.admitted.add(one.entry.entry_id)
            one.state = Waits.READY
            self._place(one)

    def _leave_array(self, entry: Entry) -> None:
        array = self._arrays.get(entry.array)
        if array is None:
            return
        if entry.entry_id in array.admitted:
            array.admitted.remove(entry.entry_id)
            self._admit(entry.array)
        if not array.admitted and not array.parked:
            del self._arrays[entry.array]

    def _place(self, one: _Waiting) -> None:
        leaf, of = one.entry.leaf, one.entry.priority_class
        insort(self._leaves[of].setdefault(leaf, []), one.key)
        self._paths[leaf] = self.shares.path(leaf)
        self._count(leaf, of, 1)

    def _unplace(self, one: _Waiting) -> None:
        leaf, of = one.entry.leaf, one.entry.priority_class
        if one.state is Waits.THROTTLED:
            _remove(self._arrays[one.entry.array].parked, one.key)
        elif one.state is Waits.READY:
            keys = self._leaves[of][leaf]
            _remove(keys, one.key)
            self._count(leaf, of, -1)
            if not keys:
                del self._leaves[of][leaf]
        one.state = Waits.HELD

    def _count(self, leaf: str, of: PriorityClass, change: int) -> None:
        """So many more ready entries below each node of the path."""
        path = self._paths[leaf]
        for parent, child in pairwise(path):
            below = self._active[of][parent]
            below[child] = below.get(child, 0) + change
            if not below[child]:
                del below[child]
                if not below:
                    del self._active[of][parent]

    def _walk(self, of: PriorityClass, now_ns: int, extra: dict[str, Amounts], is_capped: bool) -> Iterator[Entry]:
        """The order of one class. extra: what each node would hold besides if all so far had started."""
        heaps: dict[str, list[tuple[Rank, str]]] = {}
        at: dict[str, int] = {}

        def rank(node: str) -> Rank:
            return self.shares.rank(node, now_ns, extra.get(node, NOTHING))

        def siblings(node: str) -> list[tuple[Rank, str]]:
            if node not in heaps:
                below = self._active[of].get(node, {})
                heaps[node] = [(rank(child), child) for child in below]
                heapify(heaps[node])
            return heaps[node]

        while siblings(ROOT):
            path = [ROOT]
            while path[-1] not in self._leaves[of]:
                path.append(siblings(path[-1])[0][1])
            leaf = path[-1]
            keys, number = self._leaves[of][leaf], at.get(leaf, 0)
            entry = self._waiting[keys[number][-1]].entry
            over = self.shares.over(leaf, entry.cost, extra)
            is_never = over is not None and self.shares.never(leaf, entry.cost) is not None
            over = over if is_capped or is_never else None
            if over is None or is_never:
                at[leaf] = number + 1
                is_over = at[leaf] == len(keys)
            else:
                path, is_over = path[: path.index(over) + 1], True
            if over is None:
                for node in path:
                    extra[node] = extra.get(node, NOTHING).plus(entry.cost)
                yield entry
            for parent, child in reversed(list(pairwise(path))):
                if is_over:
                    heappop(heaps[parent])
                else:
                    heapreplace(heaps[parent], (rank(child), child))
                is_over = not heaps[parent]


def _remove(keys: list[Key], key: Key) -> None:
    at = bisect_left(keys, key)
    assert keys[at] == key, "an entry is where its key says"
    del keys[at]
