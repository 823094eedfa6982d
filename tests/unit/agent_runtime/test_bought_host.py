"""A machine that the market bought: it tells that it will be gone, and that the Master speaks."""

import asyncio
from types import SimpleNamespace

from tests.support.agent_world import World, world
from tests.waiting import poll_async
from windrow_agent.core.notices import REBALANCE, SPOT, Notice
from windrow_agent.report.bought_host import HEARD_FILE, LEAVE_NS, BoughtHost, words_of
from windrow_agent.threads import InlineRunner, ThreadRunner
from windrow_proto.clock import SystemClock
from windrow_proto.model import Kind
from windrow_proto.units import SECOND
from windrow_proto.wire_host import decode_event

__all__ = ["world"]


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now_ns = 0

    def monotonic_ns(self) -> int:
        return self.now_ns

    def wall_ns(self) -> int:
        return 1_000 * SECOND + self.now_ns

    async def sleep_ns(self, span_ns: int) -> None:
        self.now_ns += span_ns
        await asyncio.sleep(0)


class Told(list):
    async def __call__(self, event) -> None:
        self.append((event.code, dict(event.fields)))


def bought(folder, clock, notices=None, *, is_ending=False) -> BoughtHost:
    return BoughtHost(folder, notices, InlineRunner(clock), clock, lambda: is_ending)


async def test_each_notice_is_told_once_with_its_time(tmp_path) -> None:
    said, told = [None, Notice(REBALANCE), Notice(REBALANCE), Notice(SPOT, 7), Notice(SPOT, 7)], Told()
    host = bought(tmp_path, Clock(), SimpleNamespace(notice=lambda: said.pop(0)))
    for _ in range(5):
        await host.look(told)
    assert told == [("host.leaving", {"why": "rebalance"}), ("host.leaving", {"why": "spot", "at_ns": "7"})]


async def test_the_file_of_the_dead_man_is_touched_only_when_the_master_has_spoken(tmp_path) -> None:
    file, host = tmp_path / HEARD_FILE, bought(tmp_path, Clock())
    await host.look(Told())
    assert not file.exists()
    host.heard()
    await host.look(Told())
    assert file.exists()
    file.unlink()
    await host.look(Told())
    assert not file.exists()


async def test_a_folder_that_takes_no_file_hides_no_notice(tmp_path) -> None:
    told = Told()
    host = bought(tmp_path / "missing", Clock(), SimpleNamespace(notice=lambda: Notice(SPOT)))
    host.heard()
    await host.look(told)
    assert told == [("host.leaving", {"why": "spot"})]


async def test_a_machine_that_shuts_down_says_so_and_stays_until_its_work_has_moved(tmp_path) -> None:
    clock, told = Clock(), Told()
    host = bought(tmp_path, clock, is_ending=True)
    await host.end(told, lambda: clock.now_ns >= 3 * SECOND)
    assert told == [("host.leaving", {"why": "shutdown", "at_ns": str(1_000 * SECOND + LEAVE_NS)})]
    assert 3 * SECOND <= clock.now_ns < 4 * SECOND
    await host.end(told, lambda: False)
    assert len(told) == 1 and clock.now_ns < 2 * LEAVE_NS


async def test_an_agent_that_is_only_started_again_says_nothing(tmp_path) -> None:
    told = Told()
    await bought(tmp_path, Clock()).end(told, lambda: False)
    assert told == []


def test_its_inventory_says_which_machine_it_is_if_that_is_known() -> None:
    assert words_of("i-1") == {"cloud_provider": "aws", "cloud_instance": "i-1"}
    assert words_of("") == {}


async def test_the_agent_hears_the_master_and_leaves_in_order(world: World) -> None:
    world.bought = BoughtHost(world.folder, None, ThreadRunner("test-notices"), SystemClock(), lambda: True)
    async with world.running() as service:
        await poll_async(lambda: (world.folder / HEARD_FILE).exists() or None)
        service.terminate()
        await poll_async(lambda: world.master.count(Kind.EVENT) or None)
    (event,) = world.master._all(Kind.EVENT, decode_event)
    assert (event.code, event.fields["why"]) == ("host.leaving", "shutdown")
