"""A job moves off a host that will be gone: saved, asked to end, saved again, and no retry is used up."""

import pytest

from tests.unit.clusters.world import HOST, OTHER
from tests.unit.jobs.test_checkpoints import Twin, running, said
from tests.unit.jobs.world import world
from windrow_master.fleet.messages import HostLeaving
from windrow_master.fleet.states import AdminEvent
from windrow_master.jobs.handover import LAST_NS
from windrow_master.jobs.model import JobState
from windrow_proto.model import CommandKind, CommandPhase, WorkloadPhase
from windrow_proto.units import SECOND

S = JobState


def leave(it, left_ns: int | None, why="spot", host_id=HOST):
    """The host says that it will be gone, as the fleet tells of it."""
    at_ns = None if left_ns is None else it.clock.wall_ns() + left_ns
    it.market.decide(AdminEvent.DRAIN, host_id)
    it.market.write(lambda uow: it.jobs.handovers.host_leaving(uow, HostLeaving(host_id, at_ns, why)))


async def test_a_job_is_saved_twice_with_sigterm_between_and_moves_without_a_retry(tmp_path) -> None:
    async with world(tmp_path) as it:
        twin = Twin()
        job = await running(it, twin)
        it.market.join(OTHER)
        twin.made = 5
        leave(it, 120 * SECOND)
        assert (await it.get(job)).state is S.CHECKPOINTING
        await it.tick()

        (end,) = it.market.commands(CommandKind.DELETE)
        assert twin.held == {job.job_id: 5} and end.delete.keeps_files
        assert end.delete.grace_ns == 120 * SECOND - LAST_NS
        await it.tick(2)
        assert len(it.market.commands(CommandKind.DELETE)) == 1 and (await it.get(job)).state is S.CHECKPOINTING

        twin.made = 6
        it.market.report(it.market.spec_of(end.delete.workload_id), WorkloadPhase.EXITED, exit_code=0)
        await it.tick(3)
        now = await it.get(job)
        assert twin.held == {job.job_id: 6}
        assert now.state is S.STARTING and it.market.spec(OTHER).cluster_id == now.attempts[1].cluster_id
        assert [one.is_requeued for one in now.attempts] == [True, False]
        assert said(it, job)[:2] == [
            "train: its checkpoint of step 5 is saved",
            "train: its checkpoint of step 6 is saved",
        ]


async def test_work_that_does_not_end_in_time_moves_all_the_same(tmp_path) -> None:
    async with world(tmp_path) as it:
        job = await running(it, Twin())
        it.market.join(OTHER)
        leave(it, 60 * SECOND)
        await it.tick()
        it.clock.advance(60 * SECOND - LAST_NS)
        await it.tick(3)
        assert (await it.get(job)).state is S.STARTING


@pytest.mark.parametrize("left_ns", [-5 * SECOND, 0, None])
async def test_a_notice_without_time_or_that_comes_too_late_moves_it_as_well(tmp_path, left_ns) -> None:
    async with world(tmp_path) as it:
        twin = Twin()
        job = await running(it, twin)
        it.market.join(OTHER)
        twin.made = 5
        leave(it, left_ns)
        await it.tick(2)
        it.clock.advance(60 * SECOND)
        await it.tick(3)
        assert (await it.get(job)).state is S.STARTING and twin.held == {job.job_id: 5}


async def test_a_master_that_dies_meanwhile_saves_once_and_moves_the_job(tmp_path) -> None:
    async with world(tmp_path) as it:
        twin = Twin()
        job = await running(it, twin)
        it.market.join(OTHER)
        leave(it, 120 * SECOND)
        it.start_again()
        twin.made = 5
        await it.tick(4)
        assert (await it.get(job)).state is S.STARTING and twin.held == {job.job_id: 5}


async def test_what_may_stay_for_long_keeps_its_job(tmp_path) -> None:
    async with world(tmp_path) as it:
        job = await running(it, Twin())
        leave(it, None, why="rebalance")
        await it.tick()
        assert (await it.get(job)).state is S.RUNNING


async def test_a_job_that_only_starts_is_placed_elsewhere_at_once(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        job = await it.submit(retries=0)
        await it.tick()
        assert (await it.get(job)).state is S.STARTING
        it.market.join(OTHER)
        leave(it, 120 * SECOND)
        assert (await it.get(job)).state is S.MIGRATING
        await it.tick(2)
        assert (await it.get(job)).state is S.STARTING
        it.market.status(CommandKind.CREATE, CommandPhase.RUNNING, OTHER)


async def test_a_second_notice_and_one_of_another_host_change_nothing(tmp_path) -> None:
    async with world(tmp_path) as it:
        job = await running(it, Twin())
        it.market.join(OTHER)
        leave(it, 120 * SECOND, host_id=OTHER)
        assert (await it.get(job)).state is S.RUNNING
        leave(it, 120 * SECOND)
        await it.tick()
        it.market.write(lambda uow: it.jobs.handovers.host_leaving(uow, HostLeaving(HOST, 0, "spot")))
        await it.tick()
        assert (await it.get(job)).state is S.CHECKPOINTING
        assert len(it.market.commands(CommandKind.DELETE)) == 1


async def test_a_job_on_a_machine_that_has_ended_begins_elsewhere_at_once(tmp_path) -> None:
    async with world(tmp_path) as it:
        job = await running(it, Twin())
        it.market.join(OTHER)
        it.market.write(lambda uow: it.market.fleet.gone(uow, HOST, "its provider says that it is terminated"))
        await it.tick(3)
        now = await it.get(job)
        assert now.state is S.STARTING and "terminated" in now.attempts[0].outcome
        assert now.attempts[1].cluster_id == it.market.spec(OTHER).cluster_id
        assert set(it.market.slots(HOST).values()) <= {"free"}
        assert not it.market.commands(CommandKind.DELETE)
