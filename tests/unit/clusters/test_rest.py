"""A cluster to which nothing happens rests: the work of a tick is counted, not timed."""

from collections import Counter

import pytest

from tests.unit.clusters.world import market_world, principal
from windrow_master.clusters.end_limits import REST_NS
from windrow_master.clusters.model import ClusterPhase
from windrow_proto.units import HOUR, MINUTE, SECOND

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
