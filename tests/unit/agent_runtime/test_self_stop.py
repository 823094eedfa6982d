"""A host ends the work itself when its time is over: without a link, a disk, an answer of its runtime, a sane clock."""

import errno
import time
from unittest import mock

import pytest

from tests.unit.agent_runtime.lives import DELETE, SLACK_NS, WORK, YEARS, Host, Life, create, final, played
from windrow_agent.runtimes.simulated import TERMINATED
from windrow_agent.workloads import manager
from windrow_proto.clock import BootClock
from windrow_proto.errors import RuntimeUnavailable, WindrowError
from windrow_proto.model import (
    LeaseRenewal,
    WorkloadPhase,
)
from windrow_proto.units import MINUTE, SECOND


@pytest.mark.parametrize(
    ("lease_ns", "paid_ns", "reason"),
    [(20 * SECOND, MINUTE, "lease_lapsed"), (MINUTE, 20 * SECOND, "unpaid")],
)
def test_the_earlier_deadline_ends_the_work_and_the_receipt_goes_to_its_last_second(lease_ns, paid_ns, reason):
    async def story(host: Host) -> None:
        async def life(agent: Life) -> None:
            await agent.started(create(lease_ns=lease_ns, paid_ns=paid_ns))
            box = host.box()
            await agent.pass_ns(MINUTE)
            assert agent.phase is WorkloadPhase.GONE
            assert final(host).running_ns == box.stopped_ns - box.started_ns

        await host.live(life)

    receipt = final(played(story))
    assert receipt.end_reason == reason
    assert receipt.running_ns <= 20 * SECOND + SLACK_NS


def test_of_what_has_ended_the_newest_are_told_of_and_nothing_for_ever(monkeypatch):
    monkeypatch.setattr(manager, "GONE_KEPT", 2)

    async def story(host: Host) -> None:
        async def life(agent: Life) -> None:
            for number in range(4):
                await agent.commands.arrived(create(f"work_{number}", token=number + 1, lease_ns=2 * SECOND))
                await agent.pass_ns(10 * SECOND)
            await agent.pass_ns(MINUTE)
            assert [one.workload_id for one in agent.workloads.observed()] == ["work_2", "work_3"]
            await agent.pass_ns(manager.GONE_KEPT_NS)
            assert agent.workloads.observed() == ()

        await host.live(life)

    assert len([receipt for receipt in played(story).receipts if receipt.final]) == 4


@pytest.mark.parametrize("jump_ns", [YEARS, -YEARS])
def test_a_wall_clock_that_jumps_ten_years_ends_nothing_early_and_nothing_late(jump_ns):
    async def story(host: Host) -> None:
        async def life(agent: Life) -> None:
            await agent.started(create(lease_ns=40 * SECOND))
            host.clock.skew_ns += jump_ns
            await agent.pass_ns(30 * SECOND)
            assert agent.phase is WorkloadPhase.RUNNING

        async def next_life(agent: Life) -> None:
            host.clock.skew_ns -= 2 * jump_ns
            assert agent.phase is WorkloadPhase.RUNNING
            await agent.pass_ns(20 * SECOND)

        await host.live(life)
        await host.live(next_life)

    receipt = final(played(story))
    assert receipt.end_reason == "lease_lapsed"
    assert 38 * SECOND <= receipt.running_ns <= 40 * SECOND + SLACK_NS


def test_an_agent_that_was_away_past_the_deadline_ends_the_work_at_once():
    async def story(host: Host) -> None:
        async def life(agent: Life) -> None:
            await agent.started(create(lease_ns=20 * SECOND))

        async def next_life(agent: Life) -> None:
            await agent.pass_ns(SLACK_NS)

        await host.live(life)
        await host.clock.sleep_ns(5 * MINUTE)
        await host.live(next_life)

    host = played(story)
    assert host.machine.boxes == {}
    assert final(host).end_reason == "lease_lapsed"
    assert final(host).running_ns >= 5 * MINUTE, "what it ran is signed; what of it is charged is the Master's to say"


def test_work_whose_time_is_over_stops_although_the_disk_takes_nothing_and_is_told_by_the_next_agent():
    async def story(host: Host) -> None:
        async def life(agent: Life) -> None:
            await agent.started(create(lease_ns=20 * SECOND))
            host.disk.inject("sync", errno.EIO, times=1 << 30)
            await agent.pass_ns(MINUTE)
            assert host.ran_ns() <= 20 * SECOND + SLACK_NS

        async def next_life(agent: Life) -> None:
            await agent.pass_ns(SLACK_NS)

        await host.live(life)
        host.disk.crash()
        await host.live(next_life)

    host = played(story)
    assert host.machine.boxes == {}
    assert final(host).exit_code == TERMINATED, "why could not be written down, what came of it is seen"
    assert final(host).running_ns <= 20 * SECOND + SLACK_NS


def test_on_a_full_disk_the_end_is_told_once_there_is_room_and_keeps_its_reason():
    async def story(host: Host) -> None:
        async def life(agent: Life) -> None:
            await agent.started(create(paid_ns=20 * SECOND))
            host.disk.capacity_bytes = 0
            await agent.pass_ns(MINUTE)
            assert host.ran_ns() <= 20 * SECOND + SLACK_NS
            host.disk.capacity_bytes = None
            await agent.pass_ns(20 * SECOND)

        await host.live(life)

    host = played(story)
    assert host.machine.boxes == {}
    assert final(host).end_reason == "unpaid"
    assert final(host).running_ns <= 20 * SECOND + SLACK_NS


async def _no_halt(*_: object) -> None:
    """The careless way: first the journal, then the stop."""


def test_control_without_the_halt_a_full_disk_keeps_work_running_past_its_time():
    async def story(host: Host) -> None:
        async def life(agent: Life) -> None:
            await agent.started(create(paid_ns=20 * SECOND))
            host.disk.capacity_bytes = 0
            with mock.patch.object(agent.workloads, "halt", _no_halt):
                await agent.pass_ns(MINUTE)
            assert host.ran_ns() > 50 * SECOND

        await host.live(life)

    played(story)


def test_a_delete_stops_the_work_although_the_disk_takes_nothing_and_is_not_answered():
    async def story(host: Host) -> None:
        async def life(agent: Life) -> None:
            await agent.started(create())
            host.disk.capacity_bytes = 0
            with pytest.raises(WindrowError):
                await agent.commands.arrived(DELETE)
            assert host.box().stopped_ns is not None
            host.disk.capacity_bytes = None
            await agent.commands.arrived(DELETE)
            await agent.pass_ns(SLACK_NS)

        await host.live(life)

    host = played(story)
    assert host.machine.boxes == {}
    assert final(host).end_reason == "deleted"


def test_a_runtime_that_hangs_over_its_list_keeps_nothing_running():
    async def story(host: Host) -> None:
        async def life(agent: Life) -> None:
            await agent.started(create(lease_ns=2 * MINUTE))
            host.runtime.hangs = True
            await agent.pass_ns(3 * MINUTE)
            assert agent.phase is WorkloadPhase.GONE

        await host.live(life)

    assert final(played(story)).running_ns <= 2 * MINUTE + SLACK_NS


def test_a_runtime_that_cannot_stop_is_asked_until_it_does():
    async def story(host: Host) -> None:
        async def life(agent: Life) -> None:
            await agent.started(create(lease_ns=20 * SECOND))

            async def broken(*_: object) -> None:
                raise RuntimeUnavailable("It does not answer.")

            with mock.patch.object(host.runtime, "stop", broken):
                await agent.pass_ns(MINUTE)
            await agent.pass_ns(10 * SECOND)

        await host.live(life)

    assert final(played(story)).end_reason == "lease_lapsed"


def test_a_renewal_outlives_the_agent_and_keeps_the_work():
    async def story(host: Host) -> None:
        async def life(agent: Life) -> None:
            await agent.started(create(lease_ns=20 * SECOND))
            await agent.workloads.renew((LeaseRenewal(WORK, 10 * MINUTE, 10 * MINUTE, 1),))

        async def next_life(agent: Life) -> None:
            await agent.pass_ns(5 * MINUTE)
            assert agent.phase is WorkloadPhase.RUNNING

        await host.live(life)
        await host.live(next_life)

    assert played(story).receipts[-1].running_ns >= 4 * MINUTE


def test_a_hosts_clock_counts_the_time_it_sleeps():
    clock = BootClock()
    before_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    assert before_ns <= clock.monotonic_ns() <= time.clock_gettime_ns(time.CLOCK_BOOTTIME)
