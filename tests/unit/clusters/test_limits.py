"""Limits that end a cluster: its duration, its budget, nobody in it."""

from dataclasses import replace

import pytest

from tests.unit.clusters.test_routes import ScriptedStream
from tests.unit.clusters.test_tunnels import HeldStream, tunnelling
from tests.unit.clusters.world import OWNER, STRANGER, market_world, principal
from tests.waiting import poll_async
from windrow_master.clusters import end_limits
from windrow_master.clusters.model import ClusterKind, ClusterPhase, ClusterRequest
from windrow_master.clusters.request import checked
from windrow_master.market import metering
from windrow_master.market.model import RentalId, RentalLine
from windrow_master.market.repository import RentalRepository
from windrow_proto.errors import Conflict, InvalidInput, NotFound
from windrow_proto.ids import AccountId, ClusterId, HostId, WorkloadId
from windrow_proto.messages import ChannelClose
from windrow_proto.model import CommandKind, CommandPhase, WorkloadPhase
from windrow_proto.units import DAY, HOUR, MICROCENTS_PER_UNIT, MINUTE, SECOND, Microcents, money_text

NOTHING = metering.Spent(0, 0)
CENT = Microcents(MICROCENTS_PER_UNIT // 100)


@pytest.fixture
def m(tmp_path):
    with market_world(tmp_path) as made:
        yield made


async def running(m, **request):
    """A cluster that runs on the one host."""
    cluster_id, _ = await m.running(**request)
    return cluster_id


async def phase(m, cluster_id):
    cluster = (await m.clusters.get(principal(), cluster_id)).cluster
    return cluster.phase, cluster.reason


async def later(m, span_ns):
    while span_ns > 0:
        m.clock.advance(min(span_ns, 20 * MINUTE))
        span_ns -= 20 * MINUTE
        await m.clusters.running.renewals()
    await m.clusters.tick()


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({"max_duration_ns": SECOND - 1}, "max_duration_seconds"),
        ({"max_duration_ns": 366 * DAY}, "max_duration_seconds"),
        ({"budget": Microcents(0)}, "budget"),
        ({"idle_ns": MINUTE - 1}, "idle_seconds"),
        ({"idle_ns": 31 * DAY}, "idle_seconds"),
        ({"client_lease_ns": 10 * SECOND - 1}, "client_lease_s"),
        ({"client_lease_ns": DAY + 1}, "client_lease_s"),
        ({"idle_ns": HOUR, "argv": ("python", "train.py")}, "idle_seconds"),
        ({"idle_ns": HOUR, "kind": ClusterKind.GANG, "argv": ("torchrun",)}, "idle_seconds"),
        ({"entrypoint": "python"}, "entrypoint"),
        ({"entrypoint": "py\0thon", "image": "debian"}, "entrypoint"),
    ],
)
def test_a_limit_that_is_none_is_refused_by_its_name(request_, field):
    with pytest.raises(InvalidInput) as refused:
        checked(ClusterRequest(**request_), ClusterId("cluster_1"))
    assert refused.value.subject == field


def test_a_service_may_be_idle_though_its_command_runs():
    asked = ClusterRequest(kind=ClusterKind.SERVICE, argv=("serve",), ports=(80,), idle_ns=HOUR)
    assert checked(asked, ClusterId("cluster_1")).idle_ns == HOUR


async def test_a_duration_ends_it_and_says_so(m):
    cluster_id = await running(m, max_duration_ns=HOUR)
    await later(m, HOUR - SECOND)
    assert (await phase(m, cluster_id))[0] is ClusterPhase.RUNNING
    await later(m, SECOND)
    assert await phase(m, cluster_id) == (ClusterPhase.DELETING, "it ran for the 3600 s that it may")


async def test_what_is_extended_runs_for_longer_and_keeps_its_hold(m):
    cluster_id = await running(m, max_duration_ns=HOUR)
    extended = await m.clusters.extend(principal(), cluster_id, 2 * HOUR)
    assert extended.ends_at_ns == extended.cluster.started_at_ns + 2 * HOUR
    again = await m.clusters.extend(principal(), cluster_id, 2 * HOUR)
    assert again.cluster == await m.cluster(cluster_id) and m.events(cluster_id).count("cluster.extended") == 1
    await later(m, 2 * HOUR - SECOND)
    assert (await phase(m, cluster_id))[0] is ClusterPhase.RUNNING and m.rental(cluster_id).held > 0
    await later(m, SECOND)
    assert await phase(m, cluster_id) == (ClusterPhase.DELETING, "it ran for the 7200 s that it may")
    with pytest.raises(Conflict, match="Only a running cluster can be extended"):
        await m.clusters.extend(principal(), cluster_id, 3 * HOUR)


async def test_only_its_renter_extends_and_only_a_limit_that_is_there(m):
    cluster_id = await running(m, max_duration_ns=HOUR)
    with pytest.raises(InvalidInput, match="only be longer than now"):
        await m.clusters.extend(principal(), cluster_id, HOUR - SECOND)
    with pytest.raises(NotFound):
        await m.clusters.extend(principal(STRANGER), cluster_id, 2 * HOUR)


async def test_what_has_no_longest_running_time_is_not_extended(m):
    cluster_id = await running(m)
    with pytest.raises(Conflict, match="has no longest running time"):
        await m.clusters.extend(principal(), cluster_id, HOUR)


async def test_why_it_ended_is_said_when_it_is_gone_too(m):
    cluster_id, spec = await m.running(max_duration_ns=HOUR)
    await later(m, HOUR)
    await m.ended(cluster_id, spec, 2, 3600)
    assert await phase(m, cluster_id) == (ClusterPhase.DELETED, "it ran for the 3600 s that it may")


async def test_a_budget_ends_it_a_minute_before_it_is_passed(m):
    cluster_id = await running(m, budget=Microcents(100 * CENT))
    price = (await m.cluster(cluster_id)).price_per_hour
    whole_ns = 100 * CENT * HOUR // price
    await later(m, whole_ns - end_limits.BUDGET_MARGIN_NS - SECOND)
    assert (await phase(m, cluster_id))[0] is ClusterPhase.RUNNING
    await later(m, 2 * SECOND)
    assert await phase(m, cluster_id) == (
        ClusterPhase.DELETING,
        "its budget of 1.00 would be passed",
    )


async def test_a_budget_below_a_minute_is_refused_by_the_plan_and_the_creation_and_nothing_starts(m):
    m.join(HostId("gpus"), gpus=8)
    asked = ClusterRequest(argv=("true",), gpus=8)
    price = Microcents(sum(one.price_per_hour for one in (await m.clusters.plan(principal(), asked)).members))
    least = end_limits.least_budget(price)
    assert least * 60 >= price > (least - 1) * 60
    small = replace(asked, budget=Microcents(least - 1))
    for ask in (m.clusters.plan, m.clusters.create):
        with pytest.raises(InvalidInput) as refused:
            await ask(principal(), small)
        said = f"The budget {money_text(Microcents(least - 1))} is less than a minute costs here ({money_text(least)})."
        assert (refused.value.detail, refused.value.subject) == (f"{said} Give more, or ask for less.", "budget")
    assert not await m.clusters.list(principal(), None, 10)
    assert (await m.create(gpus=8, budget=least)).cluster.price_per_hour == price


async def test_a_budget_below_a_minute_of_the_best_place_takes_a_cheaper_one(m):
    m.join(HostId("own"), owner=STRANGER)
    tier = (await m.clusters.offers())[0].tier
    for owner, price in ((OWNER, 60 * CENT), (STRANGER, 63 * CENT)):
        await m.market.set_ask(owner, tier, Microcents(price), "account/1")
    best = await m.create(principal(STRANGER), image="alpine")
    assert best.cluster.price_per_hour == 63 * CENT, "one's own host comes first"
    with pytest.raises(InvalidInput):
        await m.create(principal(STRANGER), image="alpine", budget=Microcents(CENT - 1))
    cheaper = await m.create(principal(STRANGER), image="alpine", budget=Microcents(CENT))
    assert cheaper.cluster.price_per_hour == 60 * CENT


async def test_what_was_stopped_starts_only_where_its_budget_pays_for_a_minute(m):
    cluster_id, spec = await m.running(argv=(), budget=Microcents(CENT))
    await m.clusters.stop(principal(), cluster_id)
    m.receipt(spec, 2, 1, final=True, end_reason="deleted", exit_code=143)
    m.report(spec, WorkloadPhase.GONE, running_ns=SECOND)
    m.status(CommandKind.DELETE, CommandPhase.SUCCEEDED)
    await m.market.set_ask(None, (await m.cluster(cluster_id)).tier, Microcents(61 * CENT), "account/1")
    with pytest.raises(InvalidInput, match="is less than a minute costs here"):
        await m.clusters.start(principal(), cluster_id)
    assert (await phase(m, cluster_id))[0] is ClusterPhase.STOPPED


async def test_a_budget_is_not_charged_more_than_it_is_where_the_master_came_too_late_to_end_it(m):
    cluster_id, spec = await m.running(budget=Microcents(CENT))
    price = (await m.cluster(cluster_id)).price_per_hour
    late_s = 2 * CENT * 3600 / price
    await m.clusters.running.renewals()
    for number in range(2, 6):
        m.receipt(spec, number, late_s * (number - 1) / 4)
        await m.clusters.running.renewals()
    assert m.rental(cluster_id).charged == CENT
    await m.clusters.tick()
    assert (await phase(m, cluster_id))[1] == "its budget of 0.01 would be passed"
    m.receipt(spec, 6, late_s + 5, final=True, end_reason="deleted")
    rental = m.rental(cluster_id)
    (line,) = m.read(lambda uow: uow[RentalRepository].lines([rental.rental_id]))
    assert (rental.charged, line.charged) == (CENT, CENT)
    assert "beyond the budget, a spending limit or the funds" in metering.note(line)


async def test_nobody_in_it_for_so_long_ends_it(m):
    cluster_id = await running(m, argv=(), idle_ns=10 * MINUTE)
    await later(m, SECOND)
    await later(m, 10 * MINUTE - SECOND)
    assert (await phase(m, cluster_id))[0] is ClusterPhase.RUNNING
    await later(m, SECOND)
    assert await phase(m, cluster_id) == (ClusterPhase.DELETING, "unused for 600 s")


async def test_whoever_is_in_it_keeps_it_and_its_idle_time_begins_when_the_last_has_left(m):
    cluster_id = await running(m, argv=(), idle_ns=10 * MINUTE)
    uses = m.clusters.lifecycle.uses
    with uses.inside(cluster_id):
        with uses.inside(cluster_id):
            await later(m, HOUR)
        await later(m, HOUR)
    await later(m, SECOND)
    await later(m, 9 * MINUTE)
    assert (await phase(m, cluster_id))[0] is ClusterPhase.RUNNING
    with uses.inside(cluster_id):
        pass
    await later(m, 9 * MINUTE)
    assert (await phase(m, cluster_id))[0] is ClusterPhase.RUNNING
    await later(m, 10 * MINUTE)
    assert (await phase(m, cluster_id))[0] is ClusterPhase.DELETING


async def test_what_does_not_run_yet_comes_to_no_limit(m):
    view = await m.create(argv=(), max_duration_ns=MINUTE, idle_ns=MINUTE)
    waiting = replace(view.cluster, phase=ClusterPhase.CREATING)
    assert end_limits.reached(waiting, NOTHING, HOUR, waiting.created_at_ns + HOUR) == ""
    assert end_limits.ends_at_ns(waiting, NOTHING, waiting.created_at_ns) is None


async def test_the_sooner_of_duration_and_budget_is_when_it_ends(m):
    cluster_id = await running(m, max_duration_ns=HOUR, budget=Microcents(100 * CENT))
    cluster = (await m.clusters.get(principal(), cluster_id)).cluster
    began = cluster.started_at_ns
    assert end_limits.ends_at_ns(cluster, NOTHING, began) == began + HOUR
    dear = replace(cluster, price_per_hour=Microcents(400 * CENT))
    assert end_limits.ends_at_ns(dear, NOTHING, began) == began + 14 * MINUTE
    assert end_limits.ends_at_ns(dear, metering.Spent(0, 50 * CENT), began) == began + 6 * MINUTE + 30 * SECOND
    assert end_limits.ends_at_ns(replace(cluster, price_per_hour=Microcents(0)), NOTHING, began) == began + HOUR


def test_the_clock_counts_each_line_from_its_own_start_and_a_final_one_as_it_was_signed():
    named = WorkloadId("w1"), RentalId("r"), HostId("h"), AccountId("p")
    one = RentalLine(*named, Microcents(60), (), 0, 100 * HOUR, 0, runs_from_ns=HOUR, started_at_ns=-(10**18))
    late = replace(one, workload_id=WorkloadId("w2"), runs_from_ns=2 * HOUR)
    done = replace(one, workload_id=WorkloadId("w3"), signed_ns=HOUR // 2, final_number=3)
    gone = replace(one, workload_id=WorkloadId("w4"), lease_until_ns=2 * HOUR)
    ending = replace(one, workload_id=WorkloadId("w5"), cut_at_ns=2 * HOUR)
    unborn = replace(one, workload_id=WorkloadId("w6"), runs_from_ns=None)
    spent = metering.spent_of(None, [one, late, done, gone, ending, unborn], 3 * HOUR)
    assert spent == metering.Spent(0, 120 + 60 + 30 + 60 + 60, HOUR)


async def test_a_host_that_bills_and_does_not_say_that_it_runs_is_held_to_the_limits(m):
    view = await m.create(max_duration_ns=MINUTE)
    spec = m.spec()
    for number in range(7):
        m.receipt(spec, number + 1, 10 * number)
    await m.clusters.tick()
    assert await phase(m, view.cluster.cluster_id) == (ClusterPhase.DELETING, "it ran for the 60 s that it may")


async def test_a_command_inside_counts_as_somebody_and_a_reader_of_the_log_does_not(site):
    cluster_id, _ = await site.running(argv=[], idle_seconds=600, max_duration_seconds=3600)
    uses, seen = site.rooms.clusters.lifecycle.uses, []

    class Looking(ScriptedStream):
        async def receive(self):
            seen.append(cluster_id in uses._inside)
            return await super().receive()

    site.broker.streams = [Looking([ChannelClose(exit_code=0)]), Looking([ChannelClose()])]
    await site.client.post(f"/api/v1/clusters/{cluster_id}/exec", json={"argv": ["ls"]})
    await site.client.get(f"/api/v1/clusters/{cluster_id}/logs")
    assert seen == [True, False] and not uses._inside
    shown = (await site.client.get(f"/api/v1/clusters/{cluster_id}")).json()
    asked = shown["request"]
    assert (asked["idle_seconds"], asked["max_duration_seconds"], asked["budget"]) == (600, 3600, None)
    assert shown["ends_at"] > shown["started_at"]


async def test_a_tunnel_counts_as_somebody_until_it_is_closed(site):
    cluster_id, _ = await site.running()
    uses = site.rooms.clusters.lifecycle.uses
    async with tunnelling(site):
        channel = HeldStream()
        site.broker.streams = [channel]
        await site.client.post(f"/api/v1/clusters/{cluster_id}/tunnels", json={"port": 80})
        await poll_async(lambda: cluster_id in uses._inside)
        await channel.close(ChannelClose())
        await poll_async(lambda: cluster_id not in uses._inside)


def test_nothing_is_remembered_of_what_has_ended():
    uses = end_limits.Uses()
    with uses.inside(ClusterId("cluster_1")):
        assert uses.idle_ns(ClusterId("cluster_1"), 5) == 0
    assert uses.idle_ns(ClusterId("cluster_1"), 5) == 0
    uses.forget(ClusterId("cluster_1"))
    assert not uses._inside and not uses._idle_since_ns


async def test_a_client_that_is_silent_for_its_lease_ends_it_and_each_word_begins_the_lease_anew(m):
    cluster_id = await running(m, client_lease_ns=15 * MINUTE)
    shown = await m.clusters.get(principal(), cluster_id)
    assert shown.client_lease_ends_at_ns == m.clock.wall_ns() + 15 * MINUTE
    await later(m, 14 * MINUTE)
    await m.clusters.renew(principal(), cluster_id)
    await later(m, 14 * MINUTE)
    assert (await phase(m, cluster_id))[0] is ClusterPhase.RUNNING
    await later(m, MINUTE)
    why = "Its client has not been heard from for 15 minutes"
    assert await phase(m, cluster_id) == (ClusterPhase.DELETING, why)
    assert any(why in row.text for row in m.read(lambda uow: uow.events.newest(cluster_id, limit=100)))
    assert not m.clusters.lifecycle.clients._heard_at_ns


async def test_a_lease_counts_while_it_is_made_and_its_holder_must_be_the_renter(m):
    view = await m.create(argv=(), client_lease_ns=MINUTE)
    with pytest.raises(NotFound):
        await m.clusters.renew(principal(STRANGER), view.cluster.cluster_id)
    await later(m, MINUTE)
    assert (await phase(m, view.cluster.cluster_id))[1] == "Its client has not been heard from for 1 minute"
    await m.clusters.renew(principal(), view.cluster.cluster_id)
    assert (await m.clusters.get(principal(), view.cluster.cluster_id)).client_lease_ends_at_ns is None


async def test_another_master_gives_each_client_a_fresh_lease(m):
    cluster_id = await running(m, client_lease_ns=2 * MINUTE)
    m.clock.advance(HOUR)
    m.wired(m.store, m.clock)
    await later(m, 0)
    await later(m, MINUTE)
    assert (await phase(m, cluster_id))[0] is ClusterPhase.RUNNING
    await later(m, MINUTE)
    assert (await phase(m, cluster_id))[0] is ClusterPhase.DELETING


async def test_the_lease_of_a_client_is_asked_for_shown_and_renewed_over_http(site):
    cluster_id, _ = await site.running(argv=[], client_lease_s=60)
    shown = (await site.client.get(f"/api/v1/clusters/{cluster_id}")).json()
    assert shown["request"]["client_lease_s"] == 60 and shown["client_lease_ends_at"] > shown["started_at"]
    for key in ("a", "a"):
        answer = await site.client.post(f"/api/v1/clusters/{cluster_id}/renew", headers={"Idempotency-Key": key})
        assert answer.status_code == 204 and not answer.content
    assert (await site.client.post("/api/v1/clusters/cluster_none/renew")).status_code == 404
    for wrong in (9, 86_401, 60.5):
        refused = await site.client.post("/api/v1/clusters", json={"client_lease_s": wrong})
        assert refused.status_code in (400, 422), wrong
