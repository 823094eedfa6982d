"""The queue of the leading Master: has all that waits placed in its order, and says of each why it waits.

    put, hold, ended ─▶ changes ─┐
    rows of touched hosts (feed) ┴▶ tick ─▶ look: the source places one after another ─▶ started, refused, told
                                     └────▶ every 30 s, in a thread: when each is expected to start

Nothing here lasts: rows decide, and the sources put what waits again after a start. All changes are made in `tick`, so
that neither a look nor the thread ever sees half of one.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from windrow_master.loops import Boundary, ends_alone, when_due
from windrow_master.queue.backfill import DRAIN, PASSED, Holder, Look, Profile, Reservation, RunTimes
from windrow_master.queue.estimate import Estimate, Estimator, Room, room, why
from windrow_master.queue.model import FOREVER, NOTHING, Amounts, End, Entry
from windrow_master.queue.order import FIRST, Factors, Queue, Waits
from windrow_master.queue.ports import Feed, Gone, HostNews, Refused, Source, Started
from windrow_master.queue.shares import HALF_LIFE_NS, Node, Shares
from windrow_master.store.unit import DATABASE_FAULTS
from windrow_master.work_queue import WorkQueue
from windrow_proto.errors import Conflict, NotFound
from windrow_proto.ports import Clock
from windrow_proto.units import MINUTE, SECOND

LOOK_NS: Final = SECOND // 4
"""Between two looks, at least: what happens until then shares the next one."""
STARTS_MAX: Final = 256
"""Entries that start in one look; the next one follows at once."""
COPIES_MAX: Final = 64
"""Copies of a request that start in one transaction: nothing else is written meanwhile, for some 0.2 s."""
AGAIN_FIRST_NS: Final = SECOND
AGAIN_MAX_NS: Final = 30 * SECOND
"""Before what found no place is tried again though nothing was freed for it: doubling from the first to the most."""
RETRIES_MAX: Final = 8
"""Refused shapes that are tried again in one look: half of its tries, so that those in front do not keep others from
being tried at all."""
RETRIES_FIRST: Final = RETRIES_MAX // 2
"""Of these for shapes that had their turn in this round, in which each that is due is tried again once: something may
be freed before every look, and those in front may be too large for all of it."""
CHANGES_MAX: Final = 500
"""Changes that are made without a pause for all else that the Master does: 50 ms."""
DEEP_MAX: Final = 4096
"""Entries of a class that a look passes at most: each that comes to its last one in vain is followed by one of twice as
many, so that what fits is found behind thousands of others. 40 ms a class."""
ESTIMATE_NS: Final = 30 * SECOND
ESTIMATE_SOON_NS: Final = 3 * SECOND
"""After the last estimate, where something was put since."""
ESTIMATE_REST: Final = 10
"""Times as long as the last one took, at least, until the next."""
ROOMS_MAX: Final = 16
"""Kinds of entries for which a list looks at all hosts: 10 ms each for a thousand. Others have a shorter line."""
TOLD_MAX: Final = 64
"""Entries of one shape that are told in one look why they wait; the others are told in the next ones."""
PAST_NS: Final = 4 * HALF_LIFE_NS
NO_PLACE: Final = 2**62
LOOK: Final = "look"
MET_BUG: Final = "The Master met a bug with this; it tries again."

_Shape = tuple[Hashable, ...]


@dataclass(slots=True)
class _Tries:
    """Of a shape that found no place. pools: where it could run; answer: to the last try; round: of that try; freed:
    something was given back there since."""

    wait_ns: int
    due_ns: int
    pools: frozenset[str]
    answer: Refused
    round: int
    freed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """An entry that waits, as people see it. place: from 1; None: it is not ready, or far behind."""

    entry: Entry
    state: Waits
    why: str
    factors: Factors
    place: int | None
    estimate: Estimate | None

    @property
    def rank(self) -> tuple[int, str]:
        """Its place in lists: what has no place comes last, the oldest first."""
        return self.place or NO_PLACE, self.entry.entry_id


@dataclass(frozen=True, slots=True)
class Totals:
    """Entries that wait, and entries that run. held, scored: how many intervals of estimates held, of how many."""

    waiting: int
    running: int
    held: int
    scored: int


class QueueService:
    """Used on the loop. Methods that change something take effect in the next look."""

    def __init__(self, clock: Clock, feed: Feed) -> None:
        self._clock, self._feed = clock, feed
        self.shares = Shares(NOTHING)
        self.queue, self.profile, self.times, self.estimator = Queue(self.shares), Profile(), RunTimes(), Estimator()
        self._changes: list[Callable[[], None]] = []
        self._sources: dict[str, Source] = {}
        self._told: dict[str, str] = {}
        self._shapes: dict[str, _Shape] = {}
        self._alike: dict[_Shape, set[str]] = {}
        self._got: dict[_Shape, Amounts] = {}
        self._wanted_leaves: set[str] = set()
        self._rooms: dict[Hashable, Room] = {}
        self._ranked: list[tuple[int, str]] | None = []
        self._reservations: Mapping[str, Reservation] = {}
        self._is_planning = False
        self._tries: dict[_Shape, _Tries] = {}
        self._retries, self._depth, self._is_behind = 0, PASSED, False
        self._round, self._round_goes_on, self._is_denied = 0, False, False
        self._closes: dict[str, int] = {}
        self._runs: dict[str, dict[str, Entry]] = {}
        self._hosts: dict[str, set[str]] = {}
        self._starts, self._started_as = 0, dict[str, int]()
        self._leaves: set[str] = set()
        self._estimates: Mapping[str, Estimate] = {}
        self._places: dict[str, int] = {}
        self._estimate_due_ns = self._estimate_soon_ns = 0
        self._is_charged = False
        self._offset_ns = clock.wall_ns() - clock.monotonic_ns()
        self._faults = Boundary("queued", DATABASE_FAULTS)
        self._due = WorkQueue[str](clock)
        self._due.add(LOOK)

    async def run(self) -> None:
        """Look at the queue whenever something has changed, until cancelled."""
        await when_due(self._ticks, self._due, LOOK_NS, "queue")

    # --- changes -----------------------------------------------------------------------------------------------------

    def put(self, entry: Entry, source: Source, ended: Mapping[str, End] | None = None) -> None:
        """It waits, or waits again with these needs. ended: those of the jobs it comes after that have ended. Said
        before it started, and heard after that, it changes nothing."""
        if entry.leaf not in self._leaves:
            self._wanted_leaves.add(entry.leaf)
        starts = self._starts

        def change() -> None:
            if self._started_as.get(entry.entry_id, 0) <= starts:
                self._put(entry, source, ended)

        self._later(change)

    def drop(self, entry_id: str) -> None:
        """It waits no more."""
        self._later(lambda: self._drop(entry_id))

    def ended(self, entry: Entry, took_ns: int | None, *, is_ok: bool) -> None:
        """A job has ended. took_ns: how long its last run took; None: it never ran, or was ended."""

        def change() -> None:
            if took_ns is not None:
                self.times.ended(entry, took_ns)
            self._drop(entry.entry_id)
            self.queue.ended(entry.entry_id, End(is_ok, self._clock.wall_ns()))

        self._later(change)

    def tier_costs(self) -> Mapping[str, int]:
        """The cost of a card by tier, for entries that are to be put."""
        return self._feed.tier_costs()

    def touched(self) -> None:
        """Rows that the feed reads have changed."""
        self._due.add(LOOK)

    def nodes_changed(self, nodes: Sequence[Node], dropped: Sequence[str] = ()) -> None:
        """Rules of shares are others, or nodes are gone. nodes: parents first."""

        def change() -> None:
            self._put_nodes(nodes)
            for node_id in dropped:
                if node_id in self.shares and not self.shares.children(node_id):
                    with suppress(Conflict):  # it holds something, and stays until the next start
                        self.shares.drop(node_id)
                        self._leaves.discard(node_id)
            self.queue.shares_changed(self._clock.wall_ns())

        self._later(change)

    # --- what people ask ---------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.queue)

    def standing(self, entry_id: str) -> Standing:
        """Raises NotFound where nothing waits under this id. Its line has ids in the place of names."""
        return self._standing(entry_id, looks=True)

    def standings(
        self, leaves: frozenset[str] | None, limit: int, after: tuple[int, str] = (0, "")
    ) -> Sequence[Standing]:
        """The first in the order in which they are to start, then those that are not ready. leaves: of these alone.
        after: the rank of the last one before these."""
        found = list[Standing]()
        if self._ranked is None:
            self._ranked = sorted((self._places.get(one, NO_PLACE), one) for one in self._sources)
        for _, entry_id in self._ranked[bisect_right(self._ranked, after) :]:
            try:
                if leaves is None or self.queue.entry(entry_id).leaf in leaves:
                    found.append(self._standing(entry_id, looks=len(self._rooms) < ROOMS_MAX))
            except NotFound:
                continue  # it started meanwhile
            if len(found) == limit:
                break
        return found

    def ready_like(self, entry_id: str) -> Sequence[str]:
        """The others that wait for nothing but a place, and fit wherever this one does."""
        alike = self._alike.get(self._shapes.get(entry_id, ()), ())
        return [one for one in alike if one != entry_id and self.queue.state(one) is Waits.READY]

    def totals(self, leaves: frozenset[str] | None) -> Totals:
        """The counts of these leaves; None: of all."""
        waiting, running = self.queue.count(leaves)
        return Totals(waiting, running, self.estimator.held, self.estimator.scored)

    def holders(self, entry_id: str, host_id: str | None = None) -> Sequence[Holder]:
        """The hosts that are large enough for what waits under this id, with what keeps it off each: the first to be
        free first. host_id: of this one alone. Empty while a plan is made. Raises NotFound."""
        entry = self.queue.entry(entry_id)
        if self._is_planning:
            return ()
        run_ns = self.times.expected_ns(entry)
        return self.profile.holders(entry, run_ns, self._clock.wall_ns(), host_id)

    def kept(self, entry: Entry) -> frozenset[str]:
        """The hosts that this may not have now if it does not wait, as they are kept for what does; none while a plan
        is made."""
        if self._is_planning or not self.profile.reservations:
            return frozenset()
        closed = self.profile.closed(entry, self.times.expected_ns(entry), self._clock.wall_ns())
        return frozenset(host_id for host_id, hold in closed.items() if hold.by != DRAIN)

    def _standing(self, entry_id: str, *, looks: bool) -> Standing:
        """looks: at all hosts, unless that is known since the last change."""
        entry, state = self.queue.entry(entry_id), self.queue.state(entry_id)
        now_ns, place = self._clock.wall_ns(), self._places.get(entry_id)
        run_ns = self.times.expected_ns(entry)
        key = entry.need, entry.priority_class, run_ns
        if state is Waits.READY and looks and key not in self._rooms and not self._is_planning:
            self._rooms[key] = room(self.profile, entry, run_ns, now_ns)
        # While a plan is made, the thread has the profile.
        reservations = self._reservations if self._is_planning else self.profile.reservations
        said = why(self.queue, reservations, self._rooms.get(key), entry_id, place, now_ns)
        starts = state is Waits.READY and self.queue.shares.never(entry.leaf, entry.cost) is None
        known = self._tries.get(_shape(entry)) if starts else None
        if known is not None and not known.answer.is_full:  # a place that is free would not help it
            said, starts = known.answer.said, False
        return Standing(
            entry=entry,
            state=state,
            why=said,
            factors=self.queue.factors(entry_id, now_ns),
            place=place,
            estimate=self._estimates.get(entry_id) if starts else None,
        )

    # --- the loop ----------------------------------------------------------------------------------------------------

    async def _ticks(self) -> None:
        while await self.tick():
            await asyncio.sleep(0)

    async def tick(self) -> bool:
        """Take in what has changed, find places, and now and then estimate when the others start. Returns True if as
        many started as may in one look: others may start at once."""
        self._due.take()
        await self._catch_up()
        await self._add_leaves()
        changes, self._changes = self._changes, []  # nothing is awaited since: their leaves are there
        for number, change in enumerate(changes, 1):
            if not number % CHANGES_MAX:
                await asyncio.sleep(0)
            with ends_alone("queue_change"):
                change()
        self._rooms, is_most = {}, False
        if len(self.queue):
            # While each look starts as many as it may, the others are not kept waiting for an estimate.
            is_most = await self._look()
            wait_ns = ESTIMATE_NS if is_most else 0
            if self._clock.monotonic_ns() >= self._estimate_due_ns + wait_ns:
                with ends_alone("queue_estimate"):
                    await self._estimate()
        self._rooms = {}
        now_ns = self._clock.wall_ns()
        ready = self.queue.first(now_ns, FIRST, is_capped=False)
        self._places = {entry.entry_id: at for at, entry in enumerate(ready, 1)}
        self._ranked = None
        self._plan_next()
        return is_most

    async def _estimate(self) -> None:
        plan, now_ns, self._is_planning = self.estimator.plan, self._clock.wall_ns(), True
        began_ns = self._clock.monotonic_ns()
        self._estimate_due_ns = began_ns + ESTIMATE_NS
        self._reservations = dict(self.profile.reservations)
        try:
            self._estimates = await asyncio.to_thread(plan, self.queue, self.profile, self.times, now_ns)
        finally:
            self._is_planning = False
            took_ns = self._clock.monotonic_ns() - began_ns
            self._estimate_soon_ns = began_ns + max(ESTIMATE_SOON_NS, ESTIMATE_REST * took_ns)

    def _plan_next(self) -> None:
        if self._changes:
            self._due.add(LOOK)
        if not len(self.queue):
            return
        mono_ns, wall_ns = self._clock.monotonic_ns(), self._clock.wall_ns()
        tries = (one.due_ns for one in self._tries.values())
        dues = [self._estimate_due_ns, self._feed.due_ns(), *(due_ns for due_ns in tries if due_ns > mono_ns)]
        if (begins_ns := self.queue.due_ns()) is not None:
            dues.append(mono_ns + max(0, begins_ns - wall_ns))
        self._due.add(LOOK, min(dues))

    def _new_look(self) -> Look:
        now_ns, depth = self._clock.wall_ns(), self._depth
        offset_ns = now_ns - self._clock.monotonic_ns()
        if abs(offset_ns - self._offset_ns) > MINUTE:  # a clock was set: all that is planned is for other times
            for entry_id in list(self.profile.reservations):
                self.profile.unreserve(entry_id)
            self.estimator.forget_all()
            self._estimate_due_ns = min(self._estimate_due_ns, self._estimate_soon_ns)
        self._offset_ns = offset_ns
        return Look(self.queue, self.profile, self.times, now_ns, was_full=self._was_full, passed=depth)

    async def _look(self) -> bool:
        """Find places; True if as many started as one look may start."""
        look, starts, self._retries, self._is_behind = self._new_look(), 0, RETRIES_MAX, False
        self._is_denied = self._round_goes_on = False
        own = set[str]()
        began_ns = self._clock.monotonic_ns()
        while starts < STARTS_MAX and (entry := look.next()) is not None:
            placed = await self._place_copies(look, entry, min(COPIES_MAX, STARTS_MAX - starts))
            if placed:
                starts += len(placed)
                own.update(host_id for one in placed for host_id in one.hosts)
                continue
            answer: Started | Refused | Gone = Refused(MET_BUG, is_full=False)
            with self._faults.around(entry.entry_id, "place"):
                # What is free since the last news is for whoever comes first, who will be tried once more.
                newer = self._feed.touched() - own if self._is_behind else frozenset[str]()
                answer = await self._sources[entry.entry_id].place(entry, look.closed(entry) | newer)
            if isinstance(answer, Gone) or (isinstance(answer, Started) and not answer.hosts):
                self._drop(entry.entry_id)
                self._run_after_all(entry.entry_id)
                look = self._new_look()
            elif isinstance(answer, Started):
                starts += 1
                own.update(answer.hosts)
                self._started(look, entry, answer)
            else:
                self._is_behind = True
                look.refused(entry, is_full=answer.is_full)
                self._refuse(entry, answer)
                await self._tell(entry, answer.said)
        is_vain = look.is_at_end and not starts
        self._depth = min(2 * self._depth, DEEP_MAX) if is_vain else PASSED if starts else self._depth
        is_deeper = is_vain and look.passed < self._depth
        self._round += not self._round_goes_on
        if starts < STARTS_MAX and (look.is_spent or self._is_denied or is_deeper):  # half of the time is for all else
            self._due.add(LOOK, 2 * self._clock.monotonic_ns() - began_ns)
        return starts == STARTS_MAX

    async def _place_copies(self, look: Look, entry: Entry, most: int) -> Sequence[Started]:
        """Start an entry of an array and the copies after it together; none where they might not come one after
        another so, since a start changes what is kept for others, or the order among projects."""
        if not entry.array or self._is_behind or self.profile.reservations or look.closed(entry):
            return ()
        if not self.queue.is_alone(entry) and self._got.get(_shape(entry)) != entry.cost:
            return ()
        placed: Sequence[Started] = ()
        copies = look.copies(entry, most)
        if len(copies) > 1:
            with self._faults.around(entry.entry_id, "place"):
                placed = await self._sources[entry.entry_id].place_copies(copies, frozenset())
        for one, answer in zip(copies, placed, strict=False):
            self._started(look, one, answer)
        return placed

    def _started(self, look: Look, entry: Entry, answer: Started) -> None:
        now_ns = self._clock.wall_ns()
        self._tries.pop(_shape(entry), None)
        self._got[_shape(entry)] = answer.entry.cost
        self.estimator.started(entry.entry_id, now_ns)
        places = [self.profile.place(answer.entry, host_id, now_ns) for host_id in answer.hosts]
        look.placed(answer.entry, places)
        for host_id in answer.hosts:
            self._runs.setdefault(host_id, {})[entry.entry_id] = answer.entry
        self._hosts[entry.entry_id] = set(answer.hosts)
        self._starts += 1
        self._started_as[entry.entry_id] = self._starts
        self._feed.read_again(answer.hosts)  # of a place that was made before a restart the rows said it was another's
        self._forget(entry.entry_id)

    def _was_full(self, entry: Entry) -> bool | None:
        """As of Look: None where it is time to try this shape again."""
        known = self._tries.get(_shape(entry))
        if known is None:
            return None
        is_due, had_its_turn = known.freed or known.due_ns <= self._clock.monotonic_ns(), known.round == self._round
        if not is_due or self._retries <= (RETRIES_FIRST if had_its_turn else 0):
            self._is_behind = True
            self._is_denied |= is_due
            self._round_goes_on |= is_due and not had_its_turn
            return known.answer.is_full
        self._retries -= 1
        known.freed, known.round = False, self._round
        return None

    def _refuse(self, entry: Entry, answer: Refused) -> None:
        before = self._tries.get(_shape(entry))
        wait_ns = AGAIN_FIRST_NS if before is None else min(2 * before.wait_ns, AGAIN_MAX_NS)
        due_ns = self._clock.monotonic_ns() + wait_ns
        of_round = self._round if before is None else before.round
        self._tries[_shape(entry)] = _Tries(wait_ns, due_ns, entry.need.pools, answer, of_round)

    async def _tell(self, entry: Entry, said: str) -> None:
        """Tell all that are like it, and wait for nothing but a place, why they wait."""
        alike = [entry.entry_id, *self.ready_like(entry.entry_id)]
        others = [one for one in alike if self._told.get(one) != said][:TOLD_MAX]
        by_source: dict[int, tuple[Source, list[str]]] = {}
        for one in others:
            source = self._sources[one]
            by_source.setdefault(id(source), (source, []))[1].append(one)
        for source, ids in by_source.values():
            with self._faults.around(ids[0], "tell"):
                await source.tell(ids, said)
            self._told |= dict.fromkeys(ids, said)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _later(self, change: Callable[[], None]) -> None:
        self._changes.append(change)
        self._due.add(LOOK)

    def _put(self, entry: Entry, source: Source, ended: Mapping[str, End] | None) -> None:
        entry_id = entry.entry_id
        with ends_alone("queue_need"):
            entry = replace(entry, need=self._feed.need(entry))
        if entry_id in self._sources and self.queue.entry(entry_id) == entry:
            for job_id in self.queue.missing(entry_id).keys() & (ended or {}).keys():
                self.queue.ended(job_id, (ended or {})[job_id])
            return
        if entry_id in self._hosts:  # its run has ended, or it began while its source read: rows of its hosts will tell
            self._feed.read_again(self._hosts[entry_id])
            self._run_over(entry_id)
        if entry_id in self._sources:
            self._forget(entry_id)
        self.queue.put(entry, self._clock.wall_ns(), ended)
        self._sources[entry_id] = source
        self._file(entry)
        self._estimate_due_ns = min(self._estimate_due_ns, self._estimate_soon_ns)

    def _file(self, entry: Entry) -> None:
        shape = self._shapes[entry.entry_id] = _shape(entry)
        self._alike.setdefault(shape, set()).add(entry.entry_id)

    def _refit(self) -> None:
        """There are hosts of a kind that was not there before: find out again which suit what waits."""
        for ids in [set(one) for one in self._alike.values()]:
            entry = self.queue.entry(next(iter(ids)))
            if (need := self._feed.need(entry)) != entry.need:
                for entry_id in ids:
                    self._unfile(entry_id)
                    self._file(self.queue.refit(entry_id, need))

    def _drop(self, entry_id: str) -> None:
        if entry_id in self._sources:
            self._forget(entry_id)
            self.estimator.forget(entry_id)
            self.profile.unreserve(entry_id)
        self.queue.drop(entry_id)

    def _forget(self, entry_id: str) -> None:
        """It waits no more, or is put anew."""
        del self._sources[entry_id]
        self._told.pop(entry_id, None)
        self._faults.forget(entry_id)
        self._unfile(entry_id)

    def _unfile(self, entry_id: str) -> None:
        shape = self._shapes.pop(entry_id)
        self._alike[shape].discard(entry_id)
        if not self._alike[shape]:
            del self._alike[shape]
            self._tries.pop(shape, None)
            self._got.pop(shape, None)

    async def _add_leaves(self) -> None:
        """Have, at the start, what was used before, and nodes for the leaves of what is to be put."""
        if not self._is_charged:
            now_ns = self._clock.wall_ns()
            past = await self._feed.past(now_ns - PAST_NS)
            self._put_nodes(await self._feed.nodes(sorted({one.leaf for one in past} - self._leaves)))
            for one in past:
                if one.leaf in self.shares:
                    self.shares.charge(one.leaf, one.cost, one.from_ns, one.to_ns, now_ns)
            self._is_charged = True
        while self._wanted_leaves:  # more may come meanwhile; nothing is awaited after these
            wanted = sorted(self._wanted_leaves)
            self._put_nodes(await self._feed.nodes(wanted))
            self._wanted_leaves.difference_update(wanted)

    def _put_nodes(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            with ends_alone("queue_node"):
                if self.shares.take(node):
                    self.queue.shares_changed(self._clock.wall_ns())
                self._leaves.add(node.node_id)

    async def _catch_up(self) -> None:
        news = await self._feed.news()
        if news is None:
            return
        self.shares.capacity = news.capacity
        self._put_nodes(news.nodes)
        freed = set[str]()
        for one in news.hosts:
            with ends_alone("queue_host"):
                freed |= {one.host.pool} if self._take(one) else set()
        for host_id in news.gone:
            for entry_id in list(self._runs.get(host_id, ())):
                self._give_back(host_id, entry_id)
            self._runs.pop(host_id, None)
            self._closes.pop(host_id, None)
            self.profile.leave(host_id)
        if news.has_new_pools:
            self._refit()
        for tries in self._tries.values():
            tries.freed |= not tries.pools or not tries.pools.isdisjoint(freed)

    def _take(self, news: HostNews) -> bool:
        """Have a host as it is now; True if something may fit there that did not before."""
        host_id = news.host.host_id
        before, now = self._runs.setdefault(host_id, {}), {one.entry.entry_id: one for one in news.runs}
        was = self.profile.host(host_id)
        self.profile.join(news.host)
        given_back = [one for one in before if one not in now]
        for entry_id in given_back:
            self._give_back(host_id, entry_id)
        for entry_id, run in now.items():
            self._hosts.setdefault(entry_id, set()).add(host_id)
            if entry_id not in before:
                before[entry_id] = run.entry
                if len(self._hosts[entry_id]) == 1:
                    self._adopt(run.entry, run.started_ns)
            self.queue.resized(run.entry, self._clock.wall_ns())
            self.profile.take(run.entry, (host_id, run.cards), run.started_ns, self.times.expected_ns(run.entry))
        self.profile.drain(host_id, *((0, 0) if news.closes_ns is None else (news.closes_ns,)))
        before_ns, closes_ns = self._closes.pop(host_id, FOREVER), news.closes_ns or FOREVER
        if closes_ns < FOREVER:
            self._closes[host_id] = closes_ns
        return bool(given_back) or was != news.host or closes_ns > before_ns

    def _adopt(self, entry: Entry, started_ns: int) -> None:
        """Count what the rows say runs, since it started; whatever waits is its source's to say."""
        if entry.leaf in self.shares and entry.entry_id not in self._sources:
            now_ns = self._clock.wall_ns()
            self.queue.adopt(entry, now_ns)
            self.shares.charge(entry.leaf, entry.cost, started_ns, now_ns, now_ns)

    def _run_after_all(self, entry_id: str) -> None:
        """It was put, and ran all the same: rows of its hosts have said so."""
        for host_id in list(self._hosts.get(entry_id, ()))[:1]:
            self._adopt(self._runs[host_id][entry_id], self._clock.wall_ns())

    def _give_back(self, host_id: str, entry_id: str) -> None:
        self.profile.give_back(entry_id, (host_id,))
        self._runs[host_id].pop(entry_id, None)
        hosts = self._hosts.get(entry_id, set())
        hosts.discard(host_id)
        if not hosts:
            self._hosts.pop(entry_id, None)
            self._started_as.pop(entry_id, None)
            self.queue.end(entry_id, self._clock.wall_ns(), None)

    def _run_over(self, entry_id: str) -> None:
        for host_id in list(self._hosts.get(entry_id, ())):
            self._give_back(host_id, entry_id)


def _shape(entry: Entry) -> _Shape:
    return entry.need, entry.shape, entry.priority_class, entry.leaf
