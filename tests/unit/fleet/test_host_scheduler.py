"""Work with hosts: whoever is due has a turn, the longest waiting first, so many at once; nobody else is asked."""

import asyncio
from collections import Counter
from dataclasses import dataclass, replace

import pytest

from tests.unit.fleet.world import world
from windrow_master.fleet.host_scheduler import LOOK_AGAIN_NS, HostScheduler
from windrow_master.fleet.repository import HostRepository
from windrow_proto.errors import StorageFailed
from windrow_proto.ids import HostId
from windrow_proto.units import HOUR, SECOND

AT_ONCE = 2
NAMES = [HostId(f"host_{number}") for number in range(1, 6)]


@dataclass(frozen=True)
class Work:
    """The work that was begun."""

    host_id: HostId


class Scheduler(HostScheduler[Work]):
    """Its work is due when a host's challenge is, and goes on until it is let go."""

    def __init__(self, w) -> None:
        super().__init__("test", w.store, w.clock, w.fleet, SECOND, AT_ONCE, {})
        self.asked, self.begun, self.broken = Counter[HostId](), list[HostId](), list[HostId]()
        self.refuses, self.ends = set[HostId](), dict[HostId, asyncio.Event]()

    def _pick_up(self, uow) -> None:
        """Nothing was left."""

    def _is_due(self, entry, now_ns):
        self.asked[entry.host.host_id] += 1
        return entry.host.verify_due_ns is not None and entry.host.verify_due_ns <= now_ns

    def _next_ns(self, host, now_ns):
        return host.verify_due_ns

    def _due_ns(self, host):
        return host.verify_due_ns

    def _begin(self, uow, host_id, actor):
        if host_id in self.refuses:
            return "not now"
        self.begun.append(host_id)
        return Work(host_id)

    async def _carry_out(self, work):
        ended = self.ends[work.host_id] = asyncio.Event()
        await ended.wait()
        if work.host_id in self.refuses:
            raise ZeroDivisionError

    async def _break_off(self, work):
        self.broken.append(work.host_id)


class Fleet:
    """Five hosts that are connected."""

    def __init__(self, w) -> None:
        self.w, self.away = w, set[HostId]()
        for name in NAMES[1:]:
            w.join(name)
        w.fleet.start()
        w.fleet.is_connected = lambda host_id: host_id not in self.away
        self.scheduler = Scheduler(w)

    async def due(self, host_id, in_ns=0):
        due_ns = self.w.clock.wall_ns() + in_ns
        self.w.write(
            lambda uow: self.w.fleet.hosts.save(uow, replace(uow[HostRepository].get(host_id), verify_due_ns=due_ns))
        )
        await self.w.fleet.refresh()

    async def end(self, host_id):
        """Its work comes to its end."""
        self.scheduler.ends.pop(host_id).set()
        while host_id in self.scheduler._running:
            await asyncio.sleep(0)


@pytest.fixture
async def fleet(tmp_path):
    with world(tmp_path) as w:
        made = Fleet(w)
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            made.scheduler._group = group
            yield made
            for one in made.scheduler.ends.values():
                one.set()


async def test_the_longest_waiting_go_first_and_so_many_at_once(fleet):
    for place, host_id in enumerate(reversed(NAMES)):
        await fleet.due(host_id, place - 10)
    await fleet.scheduler.tick()
    await fleet.scheduler.tick()
    assert fleet.scheduler.begun == [NAMES[4], NAMES[3]]
    await asyncio.sleep(0)
    await fleet.end(NAMES[4])
    await fleet.due(NAMES[4], HOUR)
    await fleet.scheduler.tick()
    assert fleet.scheduler.begun == [NAMES[4], NAMES[3], NAMES[2]]


async def test_a_host_is_asked_when_it_changes_when_it_may_be_due_and_once_a_minute(fleet):
    scheduler, clock = fleet.scheduler, fleet.w.clock
    await fleet.due(NAMES[0], 20 * SECOND)
    for name in NAMES[1:]:
        await fleet.due(name, HOUR)
    await scheduler.tick()
    scheduler.asked.clear()
    for _ in range(LOOK_AGAIN_NS // SECOND - 1):
        clock.advance(SECOND)
        await scheduler.tick()
    assert (scheduler.asked, scheduler.begun) == ({NAMES[0]: 1}, [NAMES[0]])
    clock.advance(SECOND)
    await scheduler.tick()
    assert scheduler.asked == dict.fromkeys(NAMES, 1)


async def test_what_cannot_begin_is_asked_again_in_each_look_and_who_is_away_when_it_is_back(fleet):
    scheduler = fleet.scheduler
    scheduler.refuses.add(NAMES[0])
    fleet.away.add(NAMES[1])
    await fleet.due(NAMES[0])
    await fleet.due(NAMES[1])
    for _ in range(3):
        await scheduler.tick()
    assert (scheduler.asked[NAMES[0]], scheduler.asked[NAMES[1]], scheduler.begun) == (3, 1, [])
    fleet.away.clear()
    await fleet.due(NAMES[1])
    await scheduler.tick()
    assert scheduler.begun == [NAMES[1]]


async def test_a_bug_ends_the_work_of_one_host_and_it_waits_for_its_next_turn(fleet):
    await fleet.due(NAMES[0])
    await fleet.scheduler.tick()
    await asyncio.sleep(0)
    fleet.scheduler.refuses.add(NAMES[0])
    await fleet.end(NAMES[0])
    assert fleet.scheduler.broken == [NAMES[0]]
    fleet.scheduler.refuses.clear()
    await fleet.scheduler.tick()
    assert fleet.scheduler.begun == [NAMES[0], NAMES[0]]


async def test_a_store_that_is_away_costs_no_host_its_turn(fleet, monkeypatch):
    await fleet.due(NAMES[0])

    async def away(change, *, name):
        raise StorageFailed("for a moment")

    with monkeypatch.context() as changed:
        changed.setattr(fleet.w.store, "write", away)
        with pytest.raises(StorageFailed):
            await fleet.scheduler.tick()
    await fleet.scheduler.tick()
    assert fleet.scheduler.begun == [NAMES[0]]
