"""The queue of the leading Master: its looks, what it remembers between them, and what the rows tell it."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest

from tests.master_support import START_NS, ManualClock
from windrow_master.queue import service
from windrow_master.queue.backfill import PASSED, TRIES, Host
from windrow_master.queue.model import FOREVER, MILLI, Amounts, Entry, Need, PriorityClass, When
from windrow_master.queue.order import Waits
from windrow_master.queue.ports import Charge, Gone, HostNews, News, Refused, Run, Started
from windrow_master.queue.service import (
    AGAIN_FIRST_NS,
    AGAIN_MAX_NS,
    ESTIMATE_NS,
    RETRIES_MAX,
    STARTS_MAX,
    QueueService,
)
from windrow_master.queue.shares import ROOT, Node
from windrow_proto.errors import NotFound, StorageFailed
from windrow_proto.units import DAY, HOUR, MINUTE, SECOND


@dataclass
class Fleet:
    """A fleet in memory: the queue's feed, and the source of its entries. runs: by host and entry. tried: every entry
    that was to be placed. own: the answers to leaves that may have nothing; nowhere, made: entries that start on no
    host, or on one where they have their place already."""

    hosts: dict[str, Host] = field(default_factory=dict)
    runs: dict[str, dict[str, Run]] = field(default_factory=dict)
    closes: dict[str, int] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    pools: dict[str, frozenset[str]] = field(default_factory=dict)
    charges: list[Charge] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    told: dict[str, str] = field(default_factory=dict)
    raises: dict[str, BaseException] = field(default_factory=dict)
    over: set[str] = field(default_factory=set)
    poor: set[str] = field(default_factory=set)
    own: dict[str, str] = field(default_factory=dict)
    nowhere: set[str] = field(default_factory=set)
    made: dict[str, str] = field(default_factory=dict)
    now_ns: int = START_NS
    has_new_pools: bool = False
    _touched: set[str] = field(default_factory=set)

    def join(self, host_id: str, cards: int = 1, pool: str = "h100") -> None:
        self.hosts[host_id] = Host(host_id=host_id, pool=pool, cards=cards, cpus=64 * MILLI, memory=1 << 20)
        self._touched.add(host_id)

    def leave(self, host_id: str) -> None:
        del self.hosts[host_id]
        self._touched.add(host_id)

    def close(self, host_id: str, at_ns: int | None) -> None:
        self.closes[host_id] = at_ns or 0
        self._touched.add(host_id)

    def start(self, host_id: str, entry: Entry, at_ns: int | None = None) -> None:
        taken = {card for run in self.runs.get(host_id, {}).values() for card in run.cards}
        free = [card for card in range(self.hosts[host_id].cards) if card not in taken][: entry.need.cards]
        run = Run(entry, tuple(free), self.now_ns if at_ns is None else at_ns)
        self.runs.setdefault(host_id, {})[entry.entry_id] = run
        self._touched.add(host_id)

    def end(self, entry_id: str) -> None:
        for host_id, runs in self.runs.items():
            if runs.pop(entry_id, None) is not None:
                self._touched.add(host_id)

    def running(self) -> set[str]:
        return {entry_id for runs in self.runs.values() for entry_id in runs}

    def touched(self) -> frozenset[str]:
        return frozenset(self._touched)

    def read_again(self, host_ids: Iterable[str]) -> None:
        self._touched.update(host_ids)

    # --- the feed ---

    async def news(self) -> News | None:
        if not self._touched:
            return None
        touched, self._touched = sorted(self._touched), set()
        hosts = [
            HostNews(self.hosts[one], tuple(self.runs.get(one, {}).values()), self.closes.get(one) or None)
            for one in touched
            if one in self.hosts
        ]
        capacity = Amounts(gpus=sum(one.cards for one in self.hosts.values()) * MILLI, cpus=10**9, memory=10**9)
        leaves = sorted({run.entry.leaf for one in hosts for run in one.runs})
        gone = [one for one in touched if one not in self.hosts]
        has_new_pools, self.has_new_pools = self.has_new_pools, False
        return News(hosts, gone, capacity, await self.nodes(leaves), has_new_pools)

    def due_ns(self) -> int:
        return FOREVER

    def need(self, entry: Entry) -> Need:
        return replace(entry.need, pools=self.pools.get(entry.name, entry.need.pools))

    async def past(self, since_ns: int) -> Sequence[Charge]:
        return self.charges

    async def nodes(self, leaves: Sequence[str]) -> Sequence[Node]:
        await asyncio.sleep(0)
        return [Node(node_id=one, parent=ROOT) for one in leaves if one not in self.deleted]

    def tier_costs(self) -> Mapping[str, int]:
        return {}

    # --- the source ---

    async def place(self, entry: Entry, closed: frozenset[str]) -> Started | Refused | Gone:
        self.tried.append(entry.entry_id)
        if (error := self.raises.get(entry.entry_id)) is not None:
            raise error
        if entry.entry_id in self.over:
            return Gone()
        if entry.entry_id in self.poor:
            return Refused("no money", is_full=False)
        if (said := self.own.get(entry.leaf)) is not None:
            return Refused(said, is_full=False)
        if entry.entry_id in self.nowhere or entry.entry_id in self.made:
            return Started(entry, tuple(self.made.get(entry.entry_id, "")))
        found = [one for one in self.hosts if one not in closed and self._fits(one, entry)][: entry.need.hosts]
        if len(found) < entry.need.hosts:
            return Refused("no host fits")
        for host_id in found:
            self.start(host_id, entry)
        return Started(entry, tuple(found))

    def _fits(self, host_id: str, entry: Entry) -> bool:
        held = sum(len(run.cards) for run in self.runs.get(host_id, {}).values())
        host = self.hosts[host_id]
        return host.cards - held >= entry.need.cards and (not entry.need.pools or host.pool in entry.need.pools)

    async def place_copies(self, entries: Sequence[Entry], closed: frozenset[str]) -> Sequence[Started]:
        return ()

    async def tell(self, entry_ids: Sequence[str], said: str) -> None:
        self.told |= dict.fromkeys(entry_ids, said)


@dataclass
class World:
    clock: ManualClock = field(default_factory=ManualClock)
    fleet: Fleet = field(default_factory=Fleet)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """A new Master: it knows nothing but the rows."""
        self.fleet._touched = set(self.fleet.hosts)
        self.queue = QueueService(self.clock, self.fleet)

    def put(self, *entries: Entry) -> None:
        for one in entries:
            self.queue.put(one, self.fleet)

    async def look(self, count: int = 1, after_ns: int = 0) -> list[str]:
        """So many ticks, that long after the last; returns what was tried."""
        before = len(self.fleet.tried)
        for _ in range(count):
            self.clock.advance(after_ns)
            self.fleet.now_ns = self.clock.wall_ns()
            await self.queue.tick()
        return self.fleet.tried[before:]

    def held(self, leaf: str) -> int:
        """Milli cards that count for a leaf now."""
        return self.queue.shares._states[leaf].held.gpus


@pytest.fixture
def w() -> World:
    return World()


def entry(entry_id: str, cards: int = 1, leaf: str = "project", **more: Any) -> Entry:
    need = Need(cards=cards, cpus=MILLI, hosts=more.pop("hosts", 1))
    made = Entry(entry_id=entry_id, leaf=leaf, cost=Amounts(gpus=cards * MILLI), need=need, submitted_ns=START_NS)
    return replace(made, **more)


def shapes(names: Iterable[str], **more: Any) -> list[Entry]:
    """Entries that differ in their shapes, one behind the other."""
    return [entry(name, shape=name, submitted_ns=START_NS + at, **more) for at, name in enumerate(names)]


async def test_what_waits_starts_in_its_order_and_the_rest_is_told_why_not(w: World):
    w.fleet.join("a", cards=2)
    w.put(
        entry("late", submitted_ns=START_NS + 2),
        entry("early", submitted_ns=START_NS + 1),
        entry("first", submitted_ns=START_NS + 3, is_top=True),
        entry("urgent", submitted_ns=START_NS + 4, priority_class=PriorityClass.URGENT),
    )
    assert await w.look() == ["urgent", "first", "early"]
    assert w.fleet.running() == {"urgent", "first"}
    assert w.fleet.told == dict.fromkeys(("early", "late"), "no host fits")
    assert (len(w.queue), [one.entry.entry_id for one in w.queue.standings(None, 9)]) == (2, ["early", "late"])


async def test_projects_take_turns_by_what_they_hold(w: World):
    w.fleet.join("a", cards=4)
    w.put(*(entry(f"big{at}", leaf="big", submitted_ns=START_NS + at) for at in range(8)))
    w.put(*(entry(f"small{at}", leaf="small", submitted_ns=START_NS + 100 + at) for at in range(8)))
    await w.look()
    assert (w.held("big"), w.held("small")) == (2 * MILLI, 2 * MILLI)


async def test_a_shape_that_was_refused_is_tried_again_later_and_later(w: World):
    w.fleet.join("a", cards=1)
    w.put(entry("runs"), entry("waits", submitted_ns=START_NS + 1), entry("alike", submitted_ns=START_NS + 2))
    await w.look()
    at_ns, tries = 0, list[int]()
    while at_ns < 5 * MINUTE:
        at_ns += SECOND // 2
        if await w.look(after_ns=SECOND // 2):
            tries.append(at_ns)
    waits = [after - before for before, after in pairwise(tries)]
    assert waits[0] == 2 * AGAIN_FIRST_NS
    assert waits[:5] == sorted(waits[:5])
    assert max(waits) == AGAIN_MAX_NS


async def test_what_is_freed_wakes_what_could_run_there_and_nothing_else(w: World):
    w.fleet.join("a", pool="h100")
    w.fleet.join("b", pool="t4")
    w.fleet.pools = {"h": frozenset({"h100"}), "t": frozenset({"t4"})}
    w.put(*(entry(f"{name}{at}", name=name, submitted_ns=START_NS + at) for name in "ht" for at in range(2)))
    await w.look()
    assert w.fleet.running() == {"h0", "t0"}
    await w.look(after_ns=SECOND // 4)
    w.fleet.end("t0")
    assert await w.look(after_ns=SECOND // 4) == ["t1"]
    assert w.fleet.running() == {"h0", "t1"}


async def test_a_host_that_joins_or_opens_again_wakes_what_waits(w: World):
    w.fleet.join("a", cards=1)
    w.fleet.close("a", START_NS + MINUTE)
    w.put(entry("endless", limit_ns=None))
    await w.look()
    assert w.fleet.tried == ["endless"]
    assert not w.fleet.running()
    w.fleet.close("a", None)
    await w.look()
    assert w.fleet.running() == {"endless"}
    w.put(entry("more"))
    await w.look()
    w.fleet.join("b", cards=1)
    await w.look()
    assert w.fleet.running() == {"endless", "more"}


@pytest.mark.parametrize("count", [TRIES + 1, 4 * TRIES, 2 * PASSED])
async def test_refused_shapes_in_front_do_not_keep_what_fits_from_its_place(w: World, count: int):
    w.fleet.join("a", cards=1)
    w.put(*shapes([f"large{at:04}" for at in range(count)], cards=8))
    w.put(entry("fits", submitted_ns=START_NS + HOUR))
    looks = 0
    while "fits" not in w.fleet.running():
        tried = await w.look(after_ns=SECOND // 4)
        assert len(tried) <= TRIES + 1
        looks += 1
        assert looks <= 2 * count // TRIES + 8


async def test_no_number_of_entries_in_front_keeps_a_later_class_from_a_free_card(w: World, monkeypatch):
    monkeypatch.setattr(service, "DEEP_MAX", PASSED)
    w.fleet.join("a", cards=1)
    w.put(*(entry(f"large{at:04}", cards=8, submitted_ns=START_NS + at) for at in range(2 * PASSED)))
    w.put(entry("fits", leaf="other", priority_class=PriorityClass.SPOT))
    await w.look(count=4, after_ns=SECOND)
    assert w.fleet.running() == {"fits"}


async def test_a_reservation_made_while_the_clock_was_years_ahead_is_made_again(w: World):
    w.fleet.join("a", cards=1)
    w.put(entry("runs", limit_ns=HOUR), entry("waits", submitted_ns=START_NS + 1))
    await w.look()
    w.clock._wall_ns += 3650 * DAY
    await w.look(after_ns=2 * AGAIN_FIRST_NS)
    assert w.queue.profile.reservations["waits"].start_ns > START_NS + 3650 * DAY
    w.clock._wall_ns -= 3650 * DAY
    await w.look(after_ns=4 * AGAIN_FIRST_NS)
    assert w.queue.profile.reservations["waits"].start_ns <= START_NS + HOUR


async def test_jobs_that_are_alike_in_front_cost_one_try_and_keep_nobody_from_a_place(w: World):
    w.fleet.join("a", cards=1)
    w.put(*(entry(f"alike{at}", cards=8, submitted_ns=START_NS + at) for at in range(3 * PASSED)))
    w.put(entry("fits", submitted_ns=START_NS + HOUR))
    await w.look(12, after_ns=SECOND // 4)
    assert w.fleet.running() == {"fits"}
    assert (set(w.fleet.tried), len(w.fleet.tried)) == ({"alike0", "fits"}, 4)


async def test_no_host_is_kept_for_what_a_free_host_would_not_help(w: World):
    w.fleet.join("a", cards=1)
    w.fleet.start("a", entry("runs", limit_ns=HOUR))
    w.fleet.poor = {"poor"}
    w.put(entry("poor"), entry("endless", submitted_ns=START_NS + 1, shape="other"))
    await w.look()
    assert list(w.queue.profile.reservations) == ["endless"], "the first one that a free host helps"
    w.put(entry("later", leaf="third", submitted_ns=START_NS + 2, shape="third"))
    w.queue.drop("endless")
    w.fleet.end("runs")
    await w.look(count=2)
    assert w.fleet.running() == {"later"}


async def test_what_lost_its_money_while_it_waited_gives_up_the_host_that_was_kept_for_it(w: World):
    w.fleet.join("a", cards=1)
    w.fleet.start("a", entry("runs", limit_ns=HOUR))
    w.put(entry("poor"))
    await w.look()
    assert list(w.queue.profile.reservations) == ["poor"]
    w.fleet.poor = {"poor"}
    await w.look(after_ns=2 * AGAIN_FIRST_NS)
    assert not w.queue.profile.reservations


async def test_hosts_that_free_up_all_the_time_do_not_starve_what_was_never_tried(w: World):
    w.fleet.join("busy", cards=1)
    w.fleet.join("calm", cards=2, pool="t4")
    w.put(*shapes([f"large{at:02}" for at in range(3 * TRIES)], cards=8))
    w.put(entry("fits", cards=2, submitted_ns=START_NS + HOUR))
    for number in range(12):
        w.fleet.end(f"short{number - 1}")
        w.fleet.start("busy", entry(f"short{number}"))
        await w.look(after_ns=SECOND // 4)
    assert "fits" in w.fleet.running()


@pytest.mark.parametrize("count", [RETRIES_MAX, 3 * RETRIES_MAX])
async def test_what_is_freed_before_every_look_is_tried_by_all_that_were_refused_and_not_by_the_first_alone(w, count):
    w.fleet.join("busy", cards=8)
    for card in range(8):
        w.fleet.start("busy", entry(f"short{card}"))
    w.put(*shapes([f"large{at:02}" for at in range(count)], cards=8))
    w.put(entry("fits", limit_ns=SECOND, submitted_ns=START_NS + HOUR))
    await w.look(8, after_ns=SECOND // 4)
    w.fleet.end("short0")
    for _ in range(3 * count):
        w.fleet.end("short1")
        w.fleet.start("busy", entry("short1"))
        await w.look(after_ns=SECOND // 4)
        if "fits" in w.fleet.running():
            break
    assert "fits" in w.fleet.running()


async def test_what_its_own_limits_refuse_keeps_nobody_waiting_nor_any_host_and_says_so(w: World):
    w.fleet.join("a", cards=3)
    w.fleet.own = {"poor": "Above its quota."}
    w.put(entry("r1", leaf="rich", is_top=True), entry("p1", leaf="poor"))
    w.put(*(entry(name, leaf="rich", submitted_ns=START_NS + 1) for name in ("r2", "r3")))
    await w.look(3, after_ns=ESTIMATE_NS)
    assert w.fleet.running() == {"r1", "r2", "r3"}
    assert not w.queue.profile.reservations
    assert (w.queue.standing("p1").why, w.queue.standing("p1").estimate) == ("Above its quota.", None)
    w.fleet.own = {}
    w.fleet.end("r1")
    await w.look(after_ns=SECOND)
    assert "p1" in w.fleet.running()


async def test_what_fits_no_host_that_there_is_takes_the_reservation_from_nobody(w: World):
    w.fleet.join("a", cards=8)
    w.put(*(entry(f"runs{at}", limit_ns=HOUR, priority_class=PriorityClass.URGENT) for at in range(4)))
    await w.look()
    wide = entry("wide", hosts=2, submitted_ns=START_NS + 1)
    elsewhere = entry("elsewhere", need=Need(cards=1, only=frozenset({"offline"})))
    w.put(entry("larger", cards=16), wide, elsewhere, entry("large", cards=8, submitted_ns=START_NS + 2))
    for _ in range(3):
        await w.look(after_ns=SECOND)
        assert list(w.queue.profile.reservations) == ["large"]
    w.put(entry("small", submitted_ns=START_NS + 3))
    await w.look()
    assert "small" not in w.fleet.running()


async def test_a_start_on_no_host_is_over_and_it_can_be_put_again(w: World):
    w.fleet.join("a", cards=1)
    w.fleet.nowhere = {"job"}
    w.put(entry("job"))
    await w.look()
    assert (w.held("project"), len(w.queue)) == (0, 0)
    w.fleet.nowhere = set()
    w.put(entry("job", released_ns=START_NS + 9))
    await w.look()
    assert w.fleet.running() == {"job"}


async def test_a_place_that_rows_gave_to_another_entry_before_counts_once(w: World):
    w.fleet.join("a", cards=2)
    w.fleet.start("a", entry("cluster"))
    await w.look()
    w.put(job := entry("job"))
    w.fleet.runs["a"] = {"cluster": Run(entry("cluster"), (0,), START_NS)}
    w.fleet.made = {"job": "a"}
    await w.look()
    w.fleet.runs["a"] = {"job": Run(job, (0,), START_NS)}
    await w.look()
    assert w.held("project") == MILLI


async def test_a_clock_that_is_set_back_keeps_nothing_from_its_place(w: World):
    w.fleet.join("a", cards=1)
    w.put(entry("runs", limit_ns=HOUR), entry("waits", submitted_ns=START_NS + 1))
    await w.look(2, after_ns=ESTIMATE_NS)
    w.clock._wall_ns -= 365 * DAY
    w.fleet.end("runs")
    await w.look()
    assert w.fleet.running() == {"waits"}


async def test_what_was_reserved_by_a_clock_that_was_wrong_is_reserved_anew(w: World):
    w.fleet.join("a", cards=1)
    w.put(entry("runs", limit_ns=HOUR), entry("waits", submitted_ns=START_NS + 1))
    w.clock._wall_ns += 3650 * DAY
    await w.look()
    w.clock._wall_ns -= 3650 * DAY
    w.fleet.runs["a"]["runs"] = Run(entry("runs", limit_ns=HOUR), (0,), START_NS)
    w.fleet._touched.add("a")
    await w.look(after_ns=SECOND)
    assert w.queue.profile.reservations["waits"].start_ns == START_NS + HOUR


async def test_more_than_one_look_can_start_are_started_in_the_next_ones(w: World):
    w.fleet.join("a", cards=2 * STARTS_MAX)
    w.put(*(entry(f"job{at}", submitted_ns=START_NS + at) for at in range(2 * STARTS_MAX)))
    assert len(await w.look()) == STARTS_MAX
    await w.look()
    assert len(w.fleet.running()) == 2 * STARTS_MAX


async def test_what_a_look_has_started_counts_once_when_the_rows_say_so_too(w: World):
    w.fleet.join("a", cards=4)
    w.put(entry("one", cards=2))
    await w.look()
    assert w.held("project") == 2 * MILLI
    await w.look(3, after_ns=SECOND)
    assert w.held("project") == 2 * MILLI
    w.fleet.end("one")
    await w.look()
    assert w.held("project") == 0


async def test_work_on_several_hosts_counts_once_and_until_its_last_host_is_free(w: World):
    for host_id in "ab":
        w.fleet.join(host_id, cards=2)
    gang = entry("gang", cards=2, hosts=2)
    w.put(replace(gang, cost=Amounts(gpus=4 * MILLI)))
    await w.look(2)
    assert w.held("project") == 4 * MILLI
    del w.fleet.runs["a"]["gang"]
    w.fleet._touched.add("a")
    await w.look()
    assert w.held("project") == 4 * MILLI
    w.fleet.end("gang")
    await w.look()
    assert w.held("project") == 0


async def test_what_is_resized_counts_as_much_as_it_has_from_then_on(w: World):
    for name in "ab":
        w.fleet.join(name, cards=2)
    w.put(entry("grows"))
    await w.look()
    (host,) = w.queue._hosts["grows"]
    run = w.fleet.runs[host]["grows"]
    for hosts in (2, 1):
        grown = replace(run.entry, cost=Amounts(gpus=hosts * MILLI))
        for one in "ab"[:hosts] if host == "a" else "ba"[:hosts]:
            w.fleet.runs.setdefault(one, {})["grows"] = replace(run, entry=grown)
        if hosts == 1:
            del w.fleet.runs["b" if host == "a" else "a"]["grows"]
        w.fleet.read_again("ab")
        await w.look()
        assert w.held("project") == hosts * MILLI
    w.fleet.end("grows")
    await w.look()
    assert w.held("project") == 0


async def test_a_new_master_adopts_what_runs_and_places_what_its_sources_put_again(w: World):
    w.fleet.join("a", cards=2)
    w.put(entry("one"), entry("two"), waits := entry("waits"))
    await w.look(2)
    w.fleet.charges = [Charge("other", Amounts(gpus=8 * MILLI), START_NS - HOUR, START_NS)]
    w.restart()
    w.put(waits, entry("of_other", leaf="other"))
    await w.look()
    assert (w.held("project"), w.fleet.running()) == (2 * MILLI, {"one", "two"})
    assert w.queue.shares.standing("other", w.clock.wall_ns()).used > 0
    w.fleet.end("two")
    await w.look()
    assert w.fleet.running() == {"one", "of_other"}


async def test_what_is_freed_while_others_are_refused_is_for_whoever_comes_first(w: World):
    w.fleet.join("a", cards=1)
    w.put(entry("runs"))
    await w.look(2)
    place = w.fleet.place

    async def freed_after(one: Entry, closed: frozenset[str]) -> Any:
        answer = await place(one, closed)
        w.fleet.end("runs")
        return answer

    setattr(w.fleet, "place", freed_after)  # noqa: B010  # for the type checker
    w.put(entry("first", leaf="first", shape="first"), entry("second", leaf="second", shape="second"))
    assert await w.look() == ["first", "second"]
    await w.look()
    assert w.fleet.running() == {"first"}


async def test_a_new_master_ranks_projects_as_the_one_before_did(w: World):
    w.fleet.join("a", cards=2)
    w.put(entry("long", leaf="first"))
    await w.look(2)
    w.put(entry("short", leaf="second"))
    await w.look(2, HOUR)
    waits = entry("of_first", leaf="first"), entry("of_second", leaf="second")
    w.put(*waits)
    await w.look()
    order = [one.entry.entry_id for one in w.queue.standings(None, 9)]
    w.restart()
    w.put(*waits)
    await w.look()
    assert [one.entry.entry_id for one in w.queue.standings(None, 9)] == order == ["of_second", "of_first"]


async def test_what_is_put_while_a_new_master_reads_what_was_used_before_is_placed(w: World, monkeypatch):
    async def past(since_ns: int) -> Sequence[Charge]:
        w.put(entry("early"))
        return ()

    w.fleet.join("a")
    monkeypatch.setattr(w.fleet, "past", past)
    assert await w.look() == ["early"]


async def test_what_its_source_puts_late_though_it_runs_counts_as_running(w: World):
    w.fleet.join("a", cards=2)
    w.put(job := entry("job"))
    await w.look(2)
    w.fleet.over.add("job")
    w.put(job)
    await w.look(3)
    assert (len(w.queue), w.held("project")) == (0, MILLI)
    w.put(entry("large", cards=2))
    await w.look(2)
    assert w.queue.standing("large").why == "1st in the queue: it has a reservation on a from about 08:01 UTC."


async def test_what_was_put_again_while_it_was_being_placed_is_not_taken_from_its_host(w: World):
    w.fleet.join("a", cards=1)
    place = w.fleet.place

    async def again(one: Entry, closed: frozenset[str]) -> Any:
        setattr(w.fleet, "place", place)  # noqa: B010  # for the type checker
        w.queue.put(one, w.fleet)
        return await place(one, closed)

    setattr(w.fleet, "place", again)  # noqa: B010
    w.put(entry("job"))
    await w.look(3)
    assert (len(w.queue), w.held("project"), w.fleet.tried) == (0, MILLI, ["job"])


async def test_what_is_put_again_while_its_last_run_is_still_on_its_host_waits_and_is_placed(w: World):
    w.fleet.join("a", cards=1)
    w.put(job := entry("job"))
    await w.look(2)
    w.put(job)
    await w.look()
    assert len(w.queue) == 1
    w.fleet._touched.add("a")
    await w.look()
    assert len(w.queue) == 1
    w.fleet.end("job")
    await w.look(2)
    assert (len(w.queue), w.fleet.running(), w.held("project")) == (0, {"job"}, MILLI)


async def test_a_host_that_leaves_takes_its_work_along_and_gives_it_back_when_it_returns(w: World):
    w.fleet.join("a", cards=1)
    w.put(entry("one"), entry("two", submitted_ns=START_NS + 1, limit_ns=HOUR))
    await w.look(2)
    host = w.fleet.hosts["a"]
    w.fleet.leave("a")
    await w.look()
    assert (w.held("project"), dict(w.queue.profile.reservations)) == (0, {})
    w.fleet.join("a", cards=host.cards)
    await w.look()
    assert w.held("project") == MILLI
    w.fleet.end("one")
    await w.look(2)
    assert (w.fleet.running(), w.held("project")) == ({"two"}, MILLI)


async def test_a_reservation_on_a_host_that_shrinks_is_made_elsewhere(w: World):
    w.fleet.join("a", cards=2)
    w.fleet.join("b", cards=2)
    w.fleet.start("a", entry("short", cards=2, limit_ns=MINUTE))
    w.fleet.start("b", entry("long", cards=2, limit_ns=HOUR))
    w.put(entry("waits", cards=2, limit_ns=MINUTE))
    await w.look()
    assert "a reservation on a" in w.queue.standing("waits").why
    w.fleet.join("a", cards=1)
    await w.look(2, after_ns=2 * SECOND)
    assert "a reservation on b" in w.queue.standing("waits").why


async def test_an_error_of_a_source_is_told_and_ends_neither_the_look_nor_the_loop(w: World):
    w.fleet.join("a", cards=4)
    w.fleet.raises["broken"] = LookupError("a bug")
    w.put(entry("broken", shape="broken"), entry("fine", submitted_ns=START_NS + 1))
    await w.look()
    assert w.fleet.running() == {"fine"}
    assert "bug" in w.fleet.told["broken"]
    w.fleet.raises.clear()
    await w.look(after_ns=2 * SECOND)
    assert w.fleet.running() == {"fine", "broken"}


async def test_a_database_that_fails_in_a_look_costs_that_look_alone(w: World):
    w.fleet.join("a", cards=4)
    w.fleet.raises["one"] = StorageFailed("the disk is full")
    w.put(entry("one"), entry("two", submitted_ns=START_NS + 1))
    with pytest.raises(StorageFailed):
        await w.look()
    w.fleet.raises.clear()
    await w.look()
    assert w.fleet.running() == {"one", "two"}


async def test_a_change_that_fails_loses_no_other(w: World):
    w.fleet.join("a", cards=4)
    w.put(entry("wrong", priority=1_000), entry("right"))
    await w.look()
    assert w.fleet.running() == {"right"}


async def test_what_is_gone_meanwhile_is_dropped_and_the_look_goes_on(w: World):
    w.fleet.join("a", cards=4)
    w.fleet.over.add("gone")
    w.put(entry("gone"), entry("next", submitted_ns=START_NS + 1))
    await w.look()
    assert (w.fleet.running(), len(w.queue)) == ({"next"}, 0)
    with pytest.raises(NotFound):
        w.queue.standing("gone")


async def test_what_is_dropped_or_waits_for_another_never_starts(w: World):
    w.fleet.join("a", cards=4)
    w.put(entry("dropped"), entry("after", after=(("parent", When.OK),)), entry("parent"))
    w.queue.drop("dropped")
    await w.look()
    assert w.fleet.running() == {"parent"}
    assert w.queue.standing("after").state is Waits.DEPENDENCY
    w.fleet.end("parent")
    w.queue.ended(entry("parent"), MINUTE, is_ok=True)
    await w.look()
    assert w.fleet.running() == {"after"}


async def test_what_its_ceiling_never_lets_start_has_no_expected_start(w: World):
    w.fleet.join("a", cards=4)
    w.put(entry("runs", cards=4, limit_ns=HOUR), waits := entry("waits", cards=2))
    w.clock.advance(ESTIMATE_NS)
    await w.look(2)
    assert w.queue.standing("waits").estimate is not None
    w.queue.nodes_changed([Node(node_id=waits.leaf, parent=ROOT, ceiling=1)])
    await w.look()
    told = w.queue.standing("waits")
    assert told.estimate is None and told.why.startswith("This is more than project may ever have")


async def test_an_entry_of_a_deleted_project_waits_and_its_runs_count_for_nobody(w: World):
    w.fleet.deleted.add("gone")
    w.fleet.join("a", cards=4)
    w.fleet.start("a", entry("ran", leaf="gone"))
    w.put(entry("waits", leaf="gone"))
    await w.look()
    assert w.queue.standing("waits").state is Waits.NO_SHARE
    w.fleet.end("ran")
    await w.look()
    assert w.fleet.tried == []


async def test_estimates_come_with_the_first_look_and_soon_after_something_new(w: World):
    w.fleet.join("a", cards=1)
    w.fleet.start("a", entry("runs", limit_ns=HOUR))
    w.put(entry("one", limit_ns=HOUR))
    await w.look()
    first = w.queue.standing("one").estimate
    assert first is not None
    assert first.start_ns == pytest.approx(START_NS + HOUR, abs=SECOND)
    w.put(entry("two", limit_ns=HOUR, submitted_ns=START_NS + 1))
    await w.look(20, after_ns=SECOND // 4)
    second = w.queue.standing("two").estimate
    assert second is not None
    assert (second.place, second.start_ns > first.start_ns) == (2, True)
    assert 20 * SECOND // 4 < ESTIMATE_NS


async def test_what_starts_does_not_wait_for_an_estimate_of_the_others(w: World):
    w.fleet.join("first")
    w.put(entry("long"))
    await w.look(2)
    w.fleet.join("a", cards=STARTS_MAX + 1)
    w.put(*(entry(f"{number:03}") for number in range(STARTS_MAX + 2)))
    assert len(await w.look(after_ns=ESTIMATE_NS - SECOND)) == STARTS_MAX
    assert w.queue.standing(f"{STARTS_MAX + 1:03}").estimate is None
    await w.look()
    assert w.queue.standing(f"{STARTS_MAX + 1:03}").estimate is not None


async def test_a_standing_says_why_by_what_is_free(w: World):
    w.fleet.join("a", cards=1, pool="h100")
    w.fleet.pools = {"t": frozenset({"t4"})}
    w.put(entry("never", name="t"), entry("first", cards=1), entry("second", submitted_ns=START_NS + 1))
    await w.look()
    assert w.queue.standing("never").why == "1st in the queue: no host has 1 GPU of t4 free."
    assert w.queue.standing("second").place == 2
    assert w.queue.standing("second").why.startswith("2nd in the queue: it has a reservation on a")


async def test_what_waits_is_fitted_again_when_a_new_kind_of_host_comes(w: World):
    w.fleet.pools = {"t": frozenset({"t4"})}
    w.put(entry("waits", name="t"))
    await w.look()
    w.fleet.pools = {"t": frozenset({"t4", "t4 in eu"})}
    w.fleet.has_new_pools = True
    w.fleet.join("a", pool="t4 in eu")
    assert await w.look() == ["waits"]
    assert w.fleet.running() == {"waits"}


async def test_the_loop_looks_by_itself_when_something_is_put_and_again_when_it_is_due(w: World):
    w.fleet.join("a", cards=1)
    async with asyncio.TaskGroup() as group:
        loop = group.create_task(w.queue.run())
        w.put(entry("one"))
        async with asyncio.timeout(10):
            while "one" not in w.fleet.running():
                await asyncio.sleep(0)
            w.put(entry("two"))
            w.fleet.end("one")
            w.queue.touched()
            while "two" not in w.fleet.running():
                w.clock.advance(SECOND // 4)
                await asyncio.sleep(0)
        loop.cancel()
