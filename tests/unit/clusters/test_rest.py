"""A cluster to which nothing happens rests: the work of a tick is counted, not timed."""

from collections import Counter

import pytest

from tests.unit.clusters.world import market_world, principal
from windrow_master.clusters.end_limits import REST_NS, least_budget
from windrow_master.clusters.model import ClusterPhase
from windrow_master.clusters.reports import CREATE_NS
from windrow_proto.units import HOUR, MINUTE, SECOND, Microcents

TICK_NS = 5 * SECOND


@pytest.fixture
def m(tmp_path):
    with market_world(tmp_path) as made:
        yield made


@pytest.fixture
def judged(m, monkeypatch):
    """How often each cluster was judged by time."""
    count, judge = Counter[str](), m.clusters.lifecycle.judge

    def counted(uow, cluster, actor="master"):
        count[cluster.cluster_id] += 1
        return judge(uow, cluster, actor)

    monkeypatch.setattr(m.clusters.lifecycle, "judge", counted)
    return count


async def pass_by(m, duration_ns):
    for _ in range(duration_ns // TICK_NS):
        m.clock.advance(TICK_NS)
        await m.clusters.tick()


async def test_a_cluster_that_runs_is_looked_at_every_five_minutes_and_when_something_happens(m, judged):
    cluster_id, spec = await m.running(argv=())
    await m.clusters.tick()
    judged.clear()
    await pass_by(m, REST_NS - TICK_NS)
    m.receipt(spec, 2, 250)
    await m.clusters.tick()
    assert judged == {}, "what a receipt charges is no reason to look"
    await pass_by(m, TICK_NS)
    assert judged[cluster_id] == 1
    await m.clusters.delete(principal(), cluster_id)
    judged.clear()
    await pass_by(m, 3 * TICK_NS)
    assert judged[cluster_id] == 3, "what is ending is in every look"


async def test_a_duration_ends_a_cluster_in_time_though_it_rests_until_then(m, judged):
    cluster_id, _ = await m.running(argv=(), max_duration_ns=HOUR)
    await m.clusters.tick()
    judged.clear()
    await pass_by(m, HOUR - MINUTE)
    assert judged[cluster_id] <= HOUR // REST_NS
    await pass_by(m, MINUTE)
    assert (await m.cluster(cluster_id)).phase is ClusterPhase.DELETING


@pytest.mark.parametrize("asked", [{"idle_ns": HOUR}, {"client_lease_ns": HOUR}])
async def test_a_cluster_that_ends_without_its_people_is_in_every_look(m, judged, asked):
    cluster_id, _ = await m.running(argv=(), **asked)
    await m.clusters.tick()
    judged.clear()
    await pass_by(m, MINUTE)
    assert judged[cluster_id] == MINUTE // TICK_NS


async def test_a_cluster_that_starts_is_not_judged_until_its_host_says_something_or_may_be_late(m, judged):
    m.join()
    cluster_id = (await m.create(argv=())).cluster.cluster_id
    judged.clear()
    await pass_by(m, REST_NS)
    assert judged[cluster_id] <= 1
    judged.clear()
    await pass_by(m, CREATE_NS - REST_NS)
    assert judged[cluster_id] <= CREATE_NS // REST_NS
    found = await m.cluster(cluster_id)
    assert (found.phase, "did not start it within" in found.reason) == (ClusterPhase.FAILED, True)


async def test_a_host_that_signs_running_time_and_does_not_say_that_it_runs_is_held_to_the_duration(m):
    m.join()
    cluster_id = (await m.create(argv=(), max_duration_ns=3 * MINUTE)).cluster.cluster_id
    spec = m.spec()
    await m.clusters.tick()
    m.receipt(spec, 2, 250)
    await pass_by(m, 3 * MINUTE + TICK_NS)
    assert (await m.cluster(cluster_id)).phase is ClusterPhase.DELETING


async def test_such_a_host_is_held_to_a_budget_of_little_more_than_a_minute(m):
    m.join()
    least = (await m.create(argv=())).cluster
    await m.clusters.delete(principal(), least.cluster_id)
    budget = Microcents(least_budget(least.price_per_hour) + least.price_per_hour * 10 * SECOND // HOUR)
    cluster_id = (await m.create(argv=(), budget=budget)).cluster.cluster_id
    spec = m.spec()
    await m.clusters.tick()
    m.receipt(spec, 1, 1)
    await pass_by(m, 15 * SECOND)
    assert (await m.cluster(cluster_id)).phase is ClusterPhase.DELETING
