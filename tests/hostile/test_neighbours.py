"""Noisy neighbours: one account takes all it can of each shared thing, and another is served all the same."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.unit.clusters.world import OWNER, STRANGER, principal
from tests.unit.jobs.world import World, once, world
from tests.waiting import poll_async
from windrow_master.clusters.jobs.course.service import TRANSFERS_MAX
from windrow_master.clusters.jobs.model import JobRequest, JobState
from windrow_master.clusters.jobs.service import LIVING_MAX
from windrow_proto.errors import TooMany
from windrow_proto.ids import HostId
from windrow_proto.model import WorkloadPhase
from windrow_proto.units import SECOND

NOISY, QUIET = principal(STRANGER), principal(OWNER)


def count_tries(it: World) -> Counter[str]:
    """Counts the plans that jobs cost, by account."""
    tries: Counter[str] = Counter()
    clusters: Any = it.market.clusters
    create = clusters.create

    async def counted(who, *args, **kwargs):
        tries[who.account_id] += 1
        return await create(who, *args, **kwargs)

    clusters.create = counted
    return tries


# --- jobs ------------------------------------------------------------------------------------------------------------


@pytest.mark.row("F11")
async def test_a_job_that_fits_starts_in_the_next_look_whatever_another_account_has_waiting(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        asked = JobRequest(argv=("true",), array_size=LIVING_MAX, priority=100, gpus=8, gpu_model="H100")
        await it.jobs.submit(NOISY, asked)
        it.market.join()
        tries = count_tries(it)
        for _ in range(40):  # until each was due once, in the order of before
            it.clock.advance(SECOND)
            await it.tick()
        assert tries[STRANGER] <= 6  # one plan for all of them, at 1, 2, 4, 8, 16 and 30 s
        job = await it.submit(who=QUIET)
        await it.tick()
        assert (await it.jobs.get(QUIET, job.job_id)).job.state is JobState.STARTING


@pytest.mark.row("F11")
async def test_jobs_that_all_differ_take_no_more_than_their_turns(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        for extra in range(200):
            await it.submit(who=NOISY, memory_bytes=2**40 + extra, priority=100)
        for number in range(3):
            it.market.join(HostId(f"host_{number}"))
            job = await it.submit(who=QUIET)
            await it.tick()
            assert (await it.jobs.get(QUIET, job.job_id)).job.state is JobState.STARTING
            it.clock.advance(SECOND)


@pytest.mark.row("F11")
async def test_each_job_of_a_shape_says_why_it_waits_and_all_are_tried_when_there_is_room(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        asked = JobRequest(argv=("true",), array_size=8, cpus=4, image="busybox")
        first, *others = await it.jobs.submit(NOISY, asked)
        await it.tick()
        states = [(await it.jobs.get(NOISY, one.job.job_id)).job for one in (first, *others)]
        assert [one.state for one in states] == [JobState.STARTING] + [JobState.QUEUED] * 7
        assert all("cores" in one.reason or "host_a" in one.reason for one in states[1:])


@pytest.mark.row("F11")
async def test_an_account_has_a_bounded_number_of_jobs_whatever_way_they_come(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        (first, *_) = await it.jobs.submit(NOISY, JobRequest(argv=("true",), array_size=LIVING_MAX))
        await it.jobs.cancel(NOISY, first.job.job_id)
        await it.submit(who=NOISY)
        for again in (it.jobs.submit(NOISY, JobRequest(argv=("true",))), it.jobs.rerun(NOISY, first.job.job_id)):
            with pytest.raises(TooMany, match="1,000 jobs that have not ended"):
                await again
        await it.submit(who=QUIET)


@pytest.mark.row("F11")
async def test_hosts_that_answer_slowly_hold_up_their_own_accounts_jobs_only(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        answers = asyncio.Event()

        async def stuck(who, cluster_id, *, changed_only):
            if who.account_id == STRANGER:
                await answers.wait()
            return once(b"tar"), 3, False

        it.inside.fetch_files = stuck
        jobs = [await it.submit(who=NOISY, image="busybox") for _ in range(4 * TRANSFERS_MAX)]
        jobs.append(await it.submit(who=QUIET))
        for number in range(len(jobs)):
            it.market.join(HostId(f"host_{number:03}"))
        async with asyncio.TaskGroup() as group:
            it.jobs.course._group = group
            for _ in range(6):
                await it.market.fleet.refresh()
                await it.jobs.course.tick()
            for number in range(len(jobs)):
                host_id = HostId(f"host_{number:03}")
                spec = it.market.spec(host_id)
                it.market.report(spec, WorkloadPhase.EXITED, host_id, exit_code=0)

            async def is_brought_in() -> bool:
                await it.jobs.course.tick()
                return (await it.jobs.get(QUIET, jobs[-1].job_id)).job.state is JobState.SUCCEEDED

            await poll_async(is_brought_in)
            assert (await it.jobs.get(NOISY, jobs[0].job_id)).job.state is JobState.CHECKPOINTING
            answers.set()
