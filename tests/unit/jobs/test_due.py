"""A job to which nothing happens is looked at again when a time of it is due, and after a restart."""

from collections import Counter

from tests.unit.clusters.world import principal
from tests.unit.jobs.world import world
from windrow_master.jobs import decide
from windrow_master.jobs.controller import LOOK_AGAIN_NS
from windrow_master.jobs.model import JobRequest, JobState
from windrow_master.jobs.repository import JobRepository
from windrow_proto.units import HOUR, MINUTE, SECOND


async def test_all_that_wait_are_looked_at_once_in_ten_minutes(tmp_path) -> None:
    async with world(tmp_path) as it:
        job = await it.submit(deadline_ns=it.clock.wall_ns() + HOUR)
        await it.tick()
        it.clock._wall_ns += HOUR  # the clock of this host is set
        it.clock.advance(LOOK_AGAIN_NS)
        await it.tick()
        assert (await it.get(job)).reason == "its deadline has passed"


async def test_jobs_that_wait_start_with_the_next_look_after_a_restart_and_when_slots_are_free(tmp_path) -> None:
    async with world(tmp_path) as it:
        await it.jobs.submit(principal(), JobRequest(argv=("true",), array_size=3, cpus=4))
        await it.tick()
        it.start_again()
        await it.tick()
        it.market.join()
        await it.tick()
        living = it.store.read_now(lambda uow: uow[JobRepository].readable(uow[JobRepository].living_ids()))
        assert sorted(job.state for job in living) == [JobState.QUEUED, JobState.QUEUED, JobState.STARTING]


async def test_a_limit_of_a_job_that_nothing_happens_to_is_met_in_time(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        late = await it.submit(deadline_ns=it.clock.wall_ns() + 90 * SECOND, cpus=64)
        job = await it.submit(max_duration_ns=MINUTE)
        await it.tick()
        it.run()
        await it.tick()
        for after_ns, states in (
            (59 * SECOND, (JobState.QUEUED, JobState.RUNNING)),
            (SECOND, (JobState.QUEUED, JobState.FAILED)),
            (30 * SECOND, (JobState.FAILED, JobState.FAILED)),
        ):
            it.clock.advance(after_ns)
            await it.tick()
            assert ((await it.get(late)).state, (await it.get(job)).state) == states


async def test_copies_that_have_just_got_their_places_are_not_looked_at_until_something_happens_to_them(
    tmp_path, monkeypatch
) -> None:
    looks, decided = Counter[str](), decide.decide

    def counted(job, *more):
        looks[job.job_id] += 1
        return decided(job, *more)

    async with world(tmp_path) as it:
        it.market.join()
        views = await it.jobs.submit(principal(), JobRequest(argv=("true",), array_size=2))
        await it.tick()
        states = [(await it.get(one.job)).state for one in views]
        assert states == [JobState.STARTING] * 2
        monkeypatch.setattr(decide, "decide", counted)
        await it.tick()
        assert looks == {}
        spec = it.run()
        await it.tick()
        found = [await it.get(one.job) for one in views]
        (running,) = (one for one in found if one.state is JobState.RUNNING)
        assert (running.attempts[0].cluster_id, set(looks)) == (spec.cluster_id, {running.job_id})


async def test_the_deadline_of_a_copy_that_has_its_place_is_met_in_time(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        asked = JobRequest(argv=("true",), array_size=2, deadline_ns=it.clock.wall_ns() + 90 * SECOND)
        views = await it.jobs.submit(principal(), asked)
        await it.tick()
        for after_ns, state in ((89 * SECOND, JobState.STARTING), (SECOND, JobState.FAILED)):
            it.clock.advance(after_ns)
            await it.tick()
            assert [(await it.get(one.job)).state for one in views] == [state] * 2
