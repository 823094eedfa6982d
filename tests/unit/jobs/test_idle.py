"""What waits and what has ended costs nothing: the work of a look is counted, not timed."""

from collections import Counter
from dataclasses import replace

from sqlalchemy import text

from tests.unit.clusters.world import principal
from tests.unit.jobs.world import World, world
from windrow_master.jobs.controller import LOOK_AGAIN_NS
from windrow_master.jobs.decide import TRY_MAX_NS
from windrow_master.jobs.model import JobId, JobRequest, JobState
from windrow_master.store.tables_jobs import jobs
from windrow_proto.ids import AccountId
from windrow_proto.units import HOUR, SECOND

ACCOUNTS, EACH = 10, 1_000


def many(it: World, ended: int) -> None:
    """Jobs that wait, an array of each account, and so many that have ended."""
    made = it.store.read_now(lambda uow: uow.jobs.readable(uow.jobs.living_ids()))[0]

    def write(uow) -> None:
        for account in range(ACCOUNTS):
            who = AccountId(f"account_{account}")
            for index in range(EACH):
                job = replace(made, job_id=f"job_w{account}-{index:04}", group=f"job_w{account}-0000", account_id=who)
                uow.jobs.add(replace(job, array_index=index, state=JobState.QUEUED), None, b"")
        ended_one = replace(made, job_id=JobId("job_ended"), group="job_ended", ended_at_ns=1, state=JobState.SUCCEEDED)
        uow.jobs.add(ended_one, None, b"")
        others = ", ".join(column.name for column in jobs.c if column.name not in ("job_id", "group_id"))
        numbers = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)"
        copies = f"SELECT 'job_e' || n, 'job_e' || n, {others} FROM jobs, numbers WHERE job_id = 'job_ended'"
        insert = f"{numbers} INSERT INTO jobs (job_id, group_id, {others}) {copies}"
        uow.connection.execute(text(insert), {"count": ended})

    it.market.write(write)


class Counted:
    """Counts what jobs read and write."""

    def __init__(self, it: World) -> None:
        self.calls = Counter[str]()
        store = it.store
        self._read, self._write = store.read, store.write
        store.read, store.write = self.read, self.write

    async def read(self, fn, **more):
        self.calls["read"] += 1
        return await self._read(fn, **more)

    async def write(self, fn, **more):
        self.calls[more["name"]] += 1
        return await self._write(fn, **more)


async def test_a_look_costs_nothing_while_10000_jobs_wait_and_100000_have_ended(tmp_path) -> None:
    async with world(tmp_path) as it:
        first = await it.submit()
        many(it, ended=100_000)
        await it.tick()
        assert "No host has joined yet" in (await it.get(first)).reason
        for _ in range(40):  # until all say why they wait, or are tried as rarely as they ever are
            it.clock.advance(TRY_MAX_NS)
            await it.tick()
        counted = Counted(it)
        for _ in range(TRY_MAX_NS // SECOND - 2):
            it.clock.advance(SECOND)
            await it.tick()
        assert counted.calls == {}


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
        await it.jobs.submit(principal(), JobRequest(("true",), array_size=3, cpus=4))
        await it.tick()
        it.start_again()
        await it.tick()
        it.market.join()
        await it.tick()
        living = it.store.read_now(lambda uow: uow.jobs.readable(uow.jobs.living_ids()))
        assert sorted(job.state for job in living) == [JobState.QUEUED, JobState.QUEUED, JobState.STARTING]
