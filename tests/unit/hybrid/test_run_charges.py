"""Runs at services are charged like rentals: what they cost and the margin, by the second, within budget and limits."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.clusters.test_spending import limit
from tests.unit.clusters.world import OWNER, principal
from tests.unit.hybrid.purchases.examples import purchase
from tests.unit.jobs.world import World, world
from windrow_master.hybrid.purchases.model import BackendRow, Caps, Purchase
from windrow_master.hybrid.purchases.repository import BackendRepository
from windrow_master.hybrid.purchases.service import place_at
from windrow_master.hybrid.runs.charges import RunCharges
from windrow_master.identity.model import BUYER_ACCOUNT
from windrow_master.jobs.model import Job, JobState
from windrow_master.market.lookup import open_of
from windrow_master.market.model import account_of
from windrow_master.market.repository import LedgerRepository
from windrow_proto.errors import InsufficientFunds
from windrow_proto.ids import ClusterId
from windrow_proto.units import HOUR, MINUTE, SECOND, Microcents, parse_money

PRICE = parse_money("3.60")
"""An hour at the service; with the margin of 10 % a second costs 0.0011."""
SECOND_COSTS = parse_money("0.0011")


class Runs:
    """A market with one run, and whoever charges for it."""

    def __init__(self, w: World) -> None:
        self.w, self.charges = w, RunCharges(w.market.market)
        offer = replace(purchase().offer, price_per_hour=PRICE, gpu="a10", gpu_count=1)
        self.bought: Purchase = replace(purchase(), backend="modal", offer=offer, account_id=OWNER)
        row = BackendRow(name="modal", kind="modal", settings={}, caps=Caps(), margin_percent=10, created_at_ns=0)
        w.market.write(lambda uow: uow[BackendRepository].save(row))

    async def begin(self, **more: Any) -> Job:
        job = await self.w.submit(**more)
        await self.w.tick(1)
        place = place_at("modal", self.bought.offer, 10, run_id=self.bought.purchase_id)

        def rent(uow: Any, found: Job) -> None:
            self.charges.open(self.bought, uow, found)

        assert await self.w.jobs.runs.begin(job.job_id, place, rent)
        self.w.market.write(lambda uow: self.w.jobs.runs.running(uow, job.job_id, self.bought.purchase_id))
        return await self.w.get(job)

    def run(self, job: Job, for_s: int) -> None:
        """Let it run, and be charged and looked at every 10 s."""
        for _ in range(for_s // 10):
            self.w.clock.advance(10 * SECOND)
            self.w.market.write(lambda uow: self.charges.count(uow, self.bought))
            self.w.market.write(lambda uow: self.w.jobs.runs.looked(uow, job.job_id, self.bought.purchase_id))

    def close(self, code: int | None = 0) -> None:
        self.w.market.write(lambda uow: self.charges.close(uow, self.bought, "its command ended", code))

    async def cost(self, job: Job) -> Microcents:
        return (await self.w.jobs.get(principal(), job.job_id)).cost


@pytest.fixture
async def r(tmp_path: Path) -> AsyncIterator[Runs]:
    async with world(tmp_path) as w:
        yield Runs(w)


async def test_a_renter_pays_each_second_of_a_run_with_the_margin_to_the_account_that_bought_it(r: Runs) -> None:
    before = r.w.market.read(lambda uow: r.w.market.market.balance(uow, OWNER))
    job = await r.begin()
    r.run(job, 100)
    r.w.clock.advance(5 * SECOND)
    r.close()
    r.close()
    paid = Microcents(105 * SECOND_COSTS)
    assert await r.cost(job) == paid
    assert r.w.market.read(lambda uow: r.w.market.market.balance(uow, OWNER)) == before - paid
    assert r.w.market.read(lambda uow: uow[LedgerRepository].balance(account_of(BUYER_ACCOUNT))) == paid
    (said,) = await r.w.market.market.statements(OWNER, None, None, 10)
    assert (said.rental.state, said.rental.charged, said.rental.held_left) == ("closed", paid, 0)
    assert r.w.market.read(r.w.market.market.verify) == ()


async def test_a_run_is_ended_before_it_costs_more_than_the_budget_of_its_job(r: Runs) -> None:
    job = await r.begin(budget=Microcents(200 * SECOND_COSTS))
    r.run(job, 130)
    assert (await r.w.get(job)).state is JobState.RUNNING
    r.run(job, 20)
    now = await r.w.get(job)
    assert now.state is JobState.CHECKPOINTING and "budget" in now.reason
    r.w.clock.advance(10 * MINUTE)
    r.close(None)
    assert await r.cost(job) <= 200 * SECOND_COSTS


async def test_a_spending_limit_and_empty_funds_end_a_run_with_the_reason(r: Runs) -> None:
    job = await r.begin()
    limit(r.w.market, OWNER, max_total_cost=Microcents(900 * SECOND_COSTS))
    r.run(job, 900)
    now = await r.w.get(job)
    assert now.state is JobState.CHECKPOINTING and "would be passed" in now.reason
    assert await r.cost(job) <= 900 * SECOND_COSTS


async def test_a_run_does_not_begin_for_a_project_without_funds_and_nothing_is_held(r: Runs) -> None:
    r.w.market.write(lambda uow: r.w.market.market.settle(uow, OWNER, None, "a test", "test"))
    with pytest.raises(InsufficientFunds):
        await r.begin()
    assert r.w.market.read(lambda uow: open_of(uow, ClusterId(r.bought.purchase_id))) is None


async def test_time_after_the_service_ended_it_and_beyond_the_lease_is_not_charged(r: Runs) -> None:
    job = await r.begin()
    r.run(job, 60)
    r.bought = replace(r.bought, ended_at_ns=r.w.clock.wall_ns() + 5 * SECOND)
    r.w.clock.advance(3 * HOUR)
    assert r.w.market.read(r.charges.unclosed) == [r.bought.purchase_id]
    r.close(None)
    assert await r.cost(job) == 65 * SECOND_COSTS
    assert r.w.market.read(r.charges.unclosed) == []
