"""Spending limits on a real store: what is refused, what is ended, and that no more than a limit is ever charged."""

from dataclasses import replace

import pytest

from tests.support.wired import answers
from tests.unit.clusters.world import OWNER, market_world, principal
from windrow_master.clusters import messages as cluster_says
from windrow_master.clusters.model import ClusterPhase, ClusterRequest
from windrow_master.market.ledger import hold_amount
from windrow_master.market.limit_repository import LimitRepository
from windrow_master.market.limits import Limits, SpendingLimit, month_of
from windrow_master.market.messages import LimitsChanged
from windrow_proto.errors import SpendingLimitReached
from windrow_proto.ids import HostId
from windrow_proto.model import CommandKind, CommandPhase, WorkloadPhase
from windrow_proto.units import HOUR, MINUTE, SECOND, Microcents, charge

CI = replace(principal(), spenders=("token_ci", "token_maker"))
OTHER = replace(principal(), spenders=("token_other",))


@pytest.fixture
def m(tmp_path):
    with market_world(tmp_path) as made:
        yield made


def limit(m, spender=OWNER, **given):
    """Let these be a spender's limits, as if nothing was spent before."""

    def change(uow):
        month = month_of(uow.now_wall_ns)
        row = SpendingLimit(spender, OWNER, "x", Limits(**given), Microcents(0), month, Microcents(0), 0, "user/1")
        uow[LimitRepository].save(row)

    m.write(change)


def row(m, spender=OWNER):
    return m.read(lambda uow: uow[LimitRepository].get(spender))


def join_more(m, number):
    for one in range(number):
        m.join(HostId(f"host_{one}"))


async def price_of(m):
    return (await m.clusters.plan(CI, ClusterRequest(argv=("true",)))).members[0].price_per_hour


async def phase(m, cluster_id):
    cluster = (await m.clusters.get(principal(), cluster_id)).cluster
    return cluster.phase, cluster.reason


async def run_for(m, spec, until_s, number, step_s=30):
    """Let the work run and be signed for, with the Master's loops, until so many seconds since its start or its end."""
    seconds = 0
    while seconds < until_s:
        seconds += step_s
        m.receipt(spec, number, seconds)
        number += 1
        await m.clusters.running.renewals()
        await m.clusters.tick()
    return number


async def test_without_limits_nothing_is_counted(m):
    _, spec = await m.running(who=CI)
    await run_for(m, spec, 300, 2)
    assert row(m) is None and row(m, "token_ci") is None


@pytest.mark.parametrize("spender", [OWNER, "token_ci", "token_maker"])
async def test_the_price_of_all_that_runs_at_once_is_limited_for_a_project_a_token_and_who_made_it(m, spender):
    join_more(m, 3)
    price = await price_of(m)
    limit(m, spender, max_hourly_cost=Microcents(2 * price))
    for _ in range(2):
        await m.create(CI)
    for ask in (m.clusters.plan, m.clusters.create):
        with pytest.raises(SpendingLimitReached, match=r"an hour for all that runs at once, leaves 0\.00"):
            await ask(CI, ClusterRequest(argv=("true",)))
    if spender == OWNER:
        with pytest.raises(SpendingLimitReached):
            await m.create(OTHER)
    else:
        await m.create(OTHER)


async def test_leases_are_counted_and_an_ended_one_makes_room(m):
    join_more(m, 1)
    limit(m, "token_ci", max_leases=1)
    cluster_id, spec = await m.running(who=CI)
    with pytest.raises(SpendingLimitReached, match="1 lease at once, leaves 0"):
        await m.create(CI)
    assert m.balance() > 0 and len(await m.clusters.list(principal(), None, 10)) == 1, "nothing of a refused one stays"
    await m.ended(cluster_id, spec, 2, 10)
    await m.create(CI)


async def test_a_new_machine_ends_unused_as_its_project_says_unless_it_says_so_itself(m):
    join_more(m, 3)
    limit(m, OWNER, idle_ns=30 * MINUTE)
    limit(m, "token_ci", idle_ns=10 * MINUTE)
    machine = {"argv": ()}
    for who, asked, idle_ns in (
        (CI, machine, 10 * MINUTE),
        (OTHER, machine, 30 * MINUTE),
        (CI, machine | {"idle_ns": HOUR}, HOUR),
        (CI, {"argv": ("train",)}, None),
    ):
        assert (await m.create(who, **asked)).cluster.request.idle_ns == idle_ns, asked


async def test_what_was_stopped_starts_again_for_whom_it_is_started(m):
    cluster_id, spec = await m.running(who=OTHER, argv=())
    await m.clusters.stop(principal(), cluster_id)
    m.receipt(spec, 2, 1, final=True, end_reason="deleted", exit_code=143)
    m.report(spec, WorkloadPhase.GONE, running_ns=SECOND)
    m.status(CommandKind.DELETE, CommandPhase.SUCCEEDED)
    limit(m, "token_ci", max_leases=0)
    with pytest.raises(SpendingLimitReached):
        await m.clusters.start(CI, cluster_id)
    _, view = await m.clusters.start(OTHER, cluster_id)
    assert m.rental(view.cluster.cluster_id).spenders == OTHER.spenders


@pytest.mark.parametrize("field", ["max_monthly_cost", "max_total_cost"])
async def test_two_at_once_are_refused_what_one_leaves(m, field):
    join_more(m, 1)
    hold = hold_amount(await price_of(m))
    limit(m, **{field: Microcents(2 * hold - 1)})
    await m.create(CI)
    with pytest.raises(SpendingLimitReached, match="15 minutes of this need"):
        await m.create(OTHER)
    limit(m, **{field: Microcents(2 * hold)})
    await m.create(OTHER)


async def test_a_limit_ends_what_runs_a_minute_before_it_is_passed_as_a_budget_does(m):
    price = await price_of(m)
    most = charge(price, HOUR)
    limit(m, max_total_cost=most)
    cluster_id, spec = await m.running(who=CI)
    number = await run_for(m, spec, 3600 - 90, 2)
    assert (await phase(m, cluster_id))[0] is ClusterPhase.RUNNING
    await run_for(m, spec, 3600 - 30, number, step_s=3600 - 30)
    ended, reason = await phase(m, cluster_id)
    assert ended is ClusterPhase.DELETING
    assert reason.startswith("the limit of the project x, ") and reason.endswith(" in all, would be passed")
    assert row(m).spent == m.rental(cluster_id).charged <= most


async def test_no_more_than_a_limit_is_charged_however_late_the_end_comes_and_whoever_shares_it(m):
    price = await price_of(m)
    join_more(m, 1)
    most = charge(price, 40 * MINUTE)
    limit(m, max_monthly_cost=most)
    ids = []
    for _ in range(2):
        cluster_id, spec = await m.running(who=CI)
        ids.append((cluster_id, spec, (await m.workload(cluster_id)).host_id))
    for number in range(2, 14):
        for _, spec, host_id in ids:
            m.receipt(spec, number, number * 600, host_id)
        await m.clusters.running.renewals()
    charged = [m.rental(cluster_id).charged for cluster_id, *_ in ids]
    assert sum(charged) == row(m).spent == most, "all of it and no more"
    await m.clusters.tick()
    for cluster_id, *_ in ids:
        assert "would be passed" in (await phase(m, cluster_id))[1]


async def test_a_limit_that_is_lowered_below_what_is_held_is_not_passed(m):
    price = await price_of(m)
    cluster_id, spec = await m.running(who=CI)
    most = charge(price, 5 * MINUTE)
    limit(m, max_total_cost=most)
    m.receipt(spec, 2, 800)
    assert m.rental(cluster_id).charged == most < hold_amount(price)
    await m.clusters.tick()
    assert (await phase(m, cluster_id))[0] is ClusterPhase.DELETING


async def test_what_rests_is_looked_at_once_a_limit_is_set(m):
    price = await price_of(m)
    cluster_id, spec = await m.running(who=CI)
    m.receipt(spec, 2, 60)
    await m.clusters.tick()
    limit(m, max_total_cost=charge(price, MINUTE))
    await m.clusters.tick()
    assert (await phase(m, cluster_id))[0] is ClusterPhase.RUNNING, "nothing was due"
    m.write(lambda uow: uow.publish(LimitsChanged([cluster_id])))
    await m.clusters.tick()
    assert (await phase(m, cluster_id))[0] is ClusterPhase.DELETING


async def test_a_limit_that_is_withdrawn_lets_it_go_on(m):
    price = await price_of(m)
    limit(m, max_total_cost=charge(price, 20 * MINUTE))
    cluster_id, spec = await m.running(who=CI)
    number = await run_for(m, spec, 600, 2)
    m.write(lambda uow: uow[LimitRepository].remove(OWNER))
    await run_for(m, spec, 3600, number, step_s=600)
    assert (await phase(m, cluster_id))[0] is ClusterPhase.RUNNING
    assert m.rental(cluster_id).charged > charge(price, 20 * MINUTE)


async def test_who_runs_is_warned_before_a_limit_ends_it(m):
    price = await price_of(m)
    limit(m, max_total_cost=hold_amount(price))
    cluster_id, spec = await m.running(who=CI)
    await run_for(m, spec, 400, 2, step_s=200)
    told = m.read(lambda uow: uow.events.newest(cluster_id, limit=10, kind="rental.funds_low"))
    assert len(told) == 1 and "leaves no more" in told[0].text and "in all" in told[0].text


async def test_a_job_is_told_to_end_its_cluster_itself(m):
    price = await price_of(m)
    told: list[str] = []
    m.clusters.on_step(told.append)
    limit(m, max_total_cost=hold_amount(price))
    cluster_id, spec = await m.running(who=CI)
    answers(m.store, cluster_says.IsOfJob, lambda uow, it: True)
    m.receipt(spec, 2, 14 * 60 + 30)
    told.clear()
    await m.clusters.tick()
    assert cluster_id in told and (await phase(m, cluster_id))[0] is ClusterPhase.RUNNING
