"""Spending limits and jobs: what waits says why, what runs ends with its files, and each token has its own turn."""

from dataclasses import replace

import pytest

from tests.unit.clusters.test_spending import limit
from tests.unit.clusters.world import principal
from tests.unit.jobs.world import world
from windrow_master.jobs.model import JobState
from windrow_master.market.ledger import hold_amount
from windrow_master.market.limit_repository import LimitRepository
from windrow_proto.ids import HostId
from windrow_proto.units import MINUTE

CI = replace(principal(), spenders=("token_ci",))
OTHER = replace(principal(), spenders=("token_other",))


@pytest.fixture
async def w(tmp_path):
    async with world(tmp_path) as made:
        made.market.join()
        yield made


async def test_a_job_of_a_limited_token_waits_with_the_reason_and_others_do_not(w):
    w.market.join(HostId("host_b"))
    limit(w.market, "token_ci", max_leases=0)
    limited = await w.submit(who=CI)
    other = await w.submit(who=OTHER)
    await w.tick(2)
    waits, runs = await w.get(limited), await w.get(other)
    assert waits.state is JobState.QUEUED and runs.state is JobState.STARTING
    assert waits.reason.startswith("The limit of the token x, 0 leases at once, leaves 0")
    assert w.market.rental(runs.attempts[-1].cluster_id).spenders == ("token_other",)
    w.market.write(lambda uow: uow[LimitRepository].remove("token_ci"))
    w.clock.advance(MINUTE)
    await w.tick()
    assert (await w.get(limited)).state is JobState.STARTING


async def test_a_job_that_comes_to_a_limit_brings_in_its_files_and_fails_with_the_reason(w):
    job = await w.submit(who=CI)
    await w.tick(2)
    spec = w.run()
    w.market.receipt(spec, 1, 0)
    await w.tick()
    job = await w.get(job)
    assert job.state is JobState.RUNNING
    price = (await w.market.cluster(job.attempts[-1].cluster_id)).price_per_hour
    limit(w.market, "token_ci", max_total_cost=hold_amount(price))
    w.market.receipt(spec, 2, 14 * 60 + 30)
    await w.market.clusters.tick()
    await w.tick(3)
    job = await w.get(job)
    assert job.state is JobState.FAILED and job.attempts[-1].files_bytes is not None
    assert job.reason.startswith("the limit of the token x, ") and "would be passed" in job.reason


async def test_a_job_counts_for_who_runs_it_again(w):
    job = await w.submit(who=CI)
    await w.tick(2)
    spec = w.run()
    w.exit(spec)
    await w.tick(3)
    again = (await w.jobs.rerun(OTHER, job.job_id)).job
    assert (await w.get(job)).spenders == CI.spenders and again.spenders == OTHER.spenders
