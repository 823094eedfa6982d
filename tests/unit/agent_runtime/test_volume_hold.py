"""The folders of what has ended stay until its volumes are settled, and not for ever."""

import asyncio

from tests.master_support import ManualClock
from windrow_agent.workloads import volume_hold
from windrow_proto.ids import WorkloadId
from windrow_proto.units import MINUTE

ONE = WorkloadId("workload_1")


class Jumping(ManualClock):
    """Sleeping is over at once, and time has passed."""

    async def sleep_ns(self, duration_ns: int) -> None:
        self.advance(duration_ns)
        await asyncio.sleep(0)


async def test_it_goes_on_when_settled_and_a_word_too_early_settles_nothing():
    clock = Jumping()
    held = volume_hold.VolumeHold(clock)
    held.settle(ONE)  # its volumes were put in place
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(held.through(ONE))
        await held.ended(ONE)
        assert not waiting.done()
        held.settle(ONE)
    assert waiting.done()


async def test_a_save_under_way_is_waited_for_and_silence_is_not():
    clock = Jumping()
    held = volume_hold.VolumeHold(clock)
    began_ns = clock.monotonic_ns()
    async with asyncio.TaskGroup() as group:
        with held.moving(ONE):
            waiting = group.create_task(held.through(ONE))
            while clock.monotonic_ns() - began_ns < 60 * MINUTE:
                await asyncio.sleep(0)
            assert not waiting.done()
    passed_ns = clock.monotonic_ns() - began_ns
    assert 60 * MINUTE + volume_hold.SILENCE_NS - volume_hold.LOOK_NS <= passed_ns <= 75 * MINUTE
