"""Stopping a cluster and starting it again, on a real store with hosts that report."""

from dataclasses import replace
from itertools import pairwise

import pytest

from tests.master_support import ManualClock, opened_store
from tests.unit.clusters.test_images import KEYS, LOGIN, PINNED, TAG, found, keyed
from tests.unit.clusters.test_limits import later
from tests.unit.clusters.test_over_hosts import ADDRESSES, by_rank, gone, look, met, started
from tests.unit.clusters.test_over_hosts import running as gang_running
from tests.unit.clusters.test_routes import site as site
from tests.unit.clusters.world import HOST, OPERATOR, OTHER, OWNER, STRANGER, Market, market_world, principal
from tests.unit.jobs.test_decide import job
from tests.unit.master_api.described import assert_described
from windrow_master.api import cluster_routes
from windrow_master.clusters.model import ClusterKind, ClusterPhase, ClusterRequest, WorkPhase
from windrow_master.clusters.reports import LOST_AFTER_NS
from windrow_master.fleet.states import AdminEvent, LinkEvent
from windrow_master.jobs.model import Attempt, JobState
from windrow_master.jobs.repository import JobRepository
from windrow_master.market.model import RentalState
from windrow_master.market.repository import RentalRepository
from windrow_master.store.model import OperationState
from windrow_proto.errors import Conflict, InsufficientFunds, InvalidInput, NoCapacity, NotFound
from windrow_proto.ids import ClusterId
from windrow_proto.model import CommandKind, CommandPhase, CommandStatus, WorkloadPhase
from windrow_proto.units import HOUR, MICROCENTS_PER_UNIT, MINUTE, SECOND, Microcents, charge

FULL = 100 * MICROCENTS_PER_UNIT


@pytest.fixture
def m(tmp_path):
    with market_world(tmp_path) as made:
        yield made


def told(m, operation):
    return m.read(lambda uow: uow.operations.get(operation.id))


def let_go(m, spec, number, seconds, host_id=HOST):
    """The host does what it was told to delete: last receipt, gone, result."""
    m.receipt(spec, number, seconds, host_id, final=True, end_reason="deleted", exit_code=143)
    m.report(spec, WorkloadPhase.GONE, host_id, running_ns=int(seconds * SECOND))
    m.status(CommandKind.DELETE, CommandPhase.SUCCEEDED, host_id)


async def stop(m, cluster_id):
    return await m.clusters.stop(principal(), cluster_id)


async def start(m, cluster_id, **more):
    return await m.clusters.start(principal(), cluster_id, **more)


async def stopped(m, seconds=10, **request):
    """A cluster that ran for so long and is stopped."""
    cluster_id, spec = await m.running(**request)
    await stop(m, cluster_id)
    let_go(m, spec, 2, seconds)
    assert (await m.cluster(cluster_id)).phase is ClusterPhase.STOPPED
    return cluster_id


async def runs_again(m, cluster_id):
    spec = m.spec()
    m.status(CommandKind.CREATE, CommandPhase.SUCCEEDED)
    m.report(spec, WorkloadPhase.RUNNING)
    m.receipt(spec, 1, 0)
    assert (await m.cluster(cluster_id)).phase is ClusterPhase.RUNNING
    return spec


async def test_a_stop_ends_the_work_as_a_delete_does_and_keeps_what_was_asked_for(m):
    request = {"name": "lab", "env": {"A": "b"}, "ports": (80,), "idle_ns": HOUR, "argv": ()}
    cluster_id, spec = await m.running(**request)
    m.clock.advance(25 * SECOND)
    operation, view = await stop(m, cluster_id)
    assert (view.cluster.phase, told(m, operation).state) == (ClusterPhase.STOPPING, OperationState.RUNNING)
    assert [one.delete.workload_id for one in m.commands(CommandKind.DELETE)] == [spec.workload_id]
    assert set(m.slots().values()) == {"stopping"}
    let_go(m, spec, 2, 24.5)
    cluster, rental = await m.cluster(cluster_id), m.rental(cluster_id)
    assert (cluster.phase, told(m, operation).state) == (ClusterPhase.STOPPED, OperationState.SUCCEEDED)
    assert (cluster.name, cluster.request.env, cluster.request.ports) == ("lab", {"A": ""}, (80,))
    assert cluster.ended_at_ns is not None and cluster.request.idle_ns == HOUR
    assert set(m.slots().values()) == {"free"}
    assert (rental.state, rental.charged) == (RentalState.CLOSED, charge(rental.price_per_hour, int(24.5 * SECOND)))
    assert [one.cluster.cluster_id for one in await m.clusters.list(principal(), None, 9)] == [cluster_id]


async def test_what_is_stopped_costs_nothing_and_nothing_of_it_is_looked_at(m):
    cluster_id = await stopped(m, max_duration_ns=HOUR, budget=Microcents(MICROCENTS_PER_UNIT), idle_ns=HOUR, argv=())
    before = m.balance()
    m.clock.advance(48 * HOUR)
    await m.clusters.tick()
    assert (await m.cluster(cluster_id)).phase is ClusterPhase.STOPPED
    assert m.balance() == before and await m.clusters.running.renewals() == {}
    assert m.read(lambda uow: m.clusters.running.desired(uow, HOST)) == ()
    assert (await m.clusters.get(principal(), cluster_id)).ends_at_ns is None


async def test_a_start_rents_anew_under_the_same_id_and_name_and_goes_on_to_running(m):
    cluster_id = await stopped(m, name="lab", argv=())
    first = m.rental(cluster_id)
    m.clock.advance(HOUR)
    operation, view = await start(m, cluster_id)
    second, new = m.rental(cluster_id), m.spec()
    assert (view.cluster.cluster_id, view.cluster.name, view.cluster.phase) == (
        cluster_id,
        "lab",
        ClusterPhase.CREATING,
    )
    assert second.rental_id == view.cluster.rental_id != first.rental_id
    assert (second.state, second.charged, second.held) == (RentalState.OPEN, 0, second.price_per_hour // 4)
    assert [one.workload_id for one in view.workloads] == [new.workload_id]
    assert new.slots[0].token == 2, "the slot was leased anew"
    await runs_again(m, cluster_id)
    after = await m.clusters.get(principal(), cluster_id)
    assert told(m, operation).state is OperationState.SUCCEEDED
    assert after.cluster.started_at_ns == m.clock.wall_ns() and after.cluster.ended_at_ns is None
    assert after.cost == first.charged > 0, "what it has cost is that of all its runs"
    assert [step.name for step in after.cluster.steps][:4] == ["placed", "running", "stopping", "stopped"]
    assert {"cluster.stopped", "cluster.creating"} <= set(m.events(cluster_id))


async def test_a_late_word_of_the_earlier_run_changes_nothing_of_the_present_one(m):
    cluster_id, spec = await m.running()
    await stop(m, cluster_id)
    let_go(m, spec, 2, 10)
    await start(m, cluster_id)
    new = await runs_again(m, cluster_id)
    m.report(spec, WorkloadPhase.GONE)
    m.receipt(spec, 9, 500)
    cluster = await m.clusters.get(principal(), cluster_id)
    assert (cluster.cluster.phase, [one.workload_id for one in cluster.workloads]) == (
        ClusterPhase.RUNNING,
        [new.workload_id],
    )
    assert m.rental(cluster_id).charged == 0 and set(m.slots().values()) == {"running"}


async def test_it_is_stopped_started_and_deleted_again_and_again_with_a_receipt_for_each_run(m):
    cluster_id, spec = await m.running()
    for seconds in (10, 20):
        m.clock.advance(seconds * SECOND)
        await stop(m, cluster_id)
        let_go(m, spec, 2, seconds)
        await start(m, cluster_id)
        spec = await runs_again(m, cluster_id)
    m.clock.advance(30 * SECOND)
    await m.ended(cluster_id, spec, 2, 30)
    rentals = m.read(lambda uow: uow[RentalRepository].of_cluster(cluster_id))
    assert [one.state for one in rentals] == [RentalState.CLOSED] * 3
    price = rentals[0].price_per_hour
    assert [one.charged for one in rentals] == [charge(price, seconds * SECOND) for seconds in (10, 20, 30)]
    view = await m.clusters.get(principal(), cluster_id)
    assert (view.cluster.phase, view.cost) == (ClusterPhase.DELETED, sum(one.charged for one in rentals))
    assert m.balance() == FULL  # the owner rents of itself, without a fee


async def test_every_move_of_a_cluster_that_is_started_again_is_in_the_audit(m):
    cluster_id = await stopped(m)
    await start(m, cluster_id)
    await runs_again(m, cluster_id)
    rows = m.read(lambda uow: [row for row in uow.audit_log.list() if row.subject == cluster_id])
    moves = [(row.fields["from"], row.fields["to"]) for row in rows if "from" in row.fields]
    ways = ["Creating", "Running", "Stopping", "Stopped", "Placing", "Creating", "Running"]
    assert moves == list(pairwise(ways))
    assert {row.actor for row in rows if row.action in ("cluster.place", "cluster.granted")} == {principal().actor}


async def test_a_second_stop_is_answered_as_the_first_and_orders_nothing_more(m):
    cluster_id, spec = await m.running()
    first, _ = await stop(m, cluster_id)
    second, _ = await stop(m, cluster_id)
    assert first.id == second.id and len(m.commands(CommandKind.DELETE)) == 1
    let_go(m, spec, 2, 5)
    third, view = await stop(m, cluster_id)
    assert (third.state, view.cluster.phase) == (OperationState.SUCCEEDED, ClusterPhase.STOPPED)


async def test_a_start_before_the_stop_is_through_is_told_so_and_changes_nothing(m):
    cluster_id, spec = await m.running()
    await stop(m, cluster_id)
    with pytest.raises(Conflict, match="still stopping") as refused:
        await start(m, cluster_id)
    assert refused.value.subject == cluster_id
    assert (await m.cluster(cluster_id)).phase is ClusterPhase.STOPPING
    let_go(m, spec, 2, 5)
    assert (await start(m, cluster_id))[1].cluster.phase is ClusterPhase.CREATING


async def test_a_second_start_is_answered_with_what_the_first_made(m):
    cluster_id = await stopped(m)
    first, one = await start(m, cluster_id)
    second, two = await start(m, cluster_id)
    assert first.id == second.id and one.cluster.rental_id == two.cluster.rental_id
    assert len(m.commands(CommandKind.CREATE)) == 1
    await runs_again(m, cluster_id)
    assert (await start(m, cluster_id))[0].state is OperationState.SUCCEEDED
    assert len(m.read(lambda uow: uow[RentalRepository].of_cluster(cluster_id))) == 2


async def test_a_stop_that_comes_before_its_creation_has_reached_the_host(m):
    made, view = await m.clusters.create(principal(), ClusterRequest(argv=("true",)))
    cluster_id = view.cluster.cluster_id
    spec = m.spec()
    await stop(m, cluster_id)
    assert told(m, made).state is OperationState.FAILED and "stopped first" in told(m, made).error_detail
    m.status(CommandKind.DELETE, CommandPhase.SUCCEEDED)
    assert ((await m.cluster(cluster_id)).phase, m.balance()) == (ClusterPhase.STOPPED, FULL)
    m.status(CommandKind.CREATE, CommandPhase.FAILED, error_code="conflict", error_detail="it was deleted first")
    m.report(spec, WorkloadPhase.RUNNING)
    assert (await m.cluster(cluster_id)).phase is ClusterPhase.STOPPED
    assert m.rental(cluster_id).state is RentalState.CLOSED and set(m.slots().values()) == {"free"}


async def test_a_host_lost_while_stopping_is_given_up_after_its_lease_and_another_takes_the_work(m):
    m.join(OTHER)
    m.decide(AdminEvent.DRAIN, OTHER)
    cluster_id, spec = await m.running()
    m.link(LinkEvent.SILENT)
    m.link(LinkEvent.SILENT_LONG)
    await stop(m, cluster_id)
    await m.clusters.tick()
    assert (await m.cluster(cluster_id)).phase is ClusterPhase.STOPPING
    m.clock.advance(LOST_AFTER_NS + 2 * MINUTE)
    await m.clusters.tick()
    cluster = await m.cluster(cluster_id)
    assert cluster.phase is ClusterPhase.STOPPED and "longer than the lease" in cluster.reason
    assert m.rental(cluster_id).state is RentalState.CLOSED
    with pytest.raises(NoCapacity):
        await start(m, cluster_id)
    assert (await m.cluster(cluster_id)).phase is ClusterPhase.STOPPED
    m.decide(AdminEvent.ACTIVATE, OTHER)
    _, view = await start(m, cluster_id)
    assert [one.host_id for one in view.workloads] == [OTHER]
    new = m.spec(OTHER)
    m.report(new, WorkloadPhase.RUNNING, OTHER)
    m.link(LinkEvent.HEARD)
    (left,) = m.read(lambda uow: m.clusters.running.desired(uow, HOST))
    assert (left.workload_id, left.should_run) == (spec.workload_id, False)
    m.status(CommandKind.DELETE, CommandPhase.SUCCEEDED)
    assert (await m.cluster(cluster_id)).phase is ClusterPhase.RUNNING
    assert set(m.slots().values()) == {"free"}


async def test_a_master_that_is_killed_in_between_goes_on_where_it_was(tmp_path):
    clock = ManualClock()
    with opened_store(tmp_path, clock) as store:
        m = Market(store, clock)
        m.join()
        cluster_id, spec = await m.running()
        operation, _ = await stop(m, cluster_id)
    with opened_store(tmp_path, clock) as store:
        m = restarted(store, clock)
        assert (await m.cluster(cluster_id)).phase is ClusterPhase.STOPPING
        assert len(m.commands(CommandKind.DELETE)) == 1
        let_go(m, spec, 2, 5)
        assert told(m, operation).state is OperationState.SUCCEEDED
        begun, _ = await start(m, cluster_id)
    with opened_store(tmp_path, clock) as store:
        m = restarted(store, clock)
        assert (await start(m, cluster_id))[0].id == begun.id
        await runs_again(m, cluster_id)
        assert told(m, begun).state is OperationState.SUCCEEDED
        m.check()


def restarted(store, clock):
    """Another Master on the same store; its accounts are there already."""
    clock.advance(SECOND)
    made = Market.__new__(Market)
    made.wired(store, clock)
    return made


async def test_a_start_that_breaks_half_way_is_as_if_it_had_not_been(m, monkeypatch):
    cluster_id = await stopped(m)
    before, clean = m.balance(), await m.cluster(cluster_id)

    def broken(*_):
        raise RuntimeError("killed here")

    with monkeypatch.context() as patch:
        patch.setattr(m.clusters, "_starts", broken)
        with pytest.raises(RuntimeError):
            await start(m, cluster_id)
    assert (await m.cluster(cluster_id), m.balance()) == (clean, before)
    assert set(m.slots().values()) == {"free"} and not m.commands(CommandKind.CREATE)
    assert (await start(m, cluster_id))[1].cluster.phase is ClusterPhase.CREATING


async def test_a_start_is_refused_as_a_creation_is_and_it_stays_stopped(m):
    cluster_id = await stopped(m)
    clean = await m.cluster(cluster_id)
    other = await m.create(cpus=4)
    with pytest.raises(NoCapacity, match="too few CPUs"):
        await start(m, cluster_id)
    await m.clusters.delete(principal(), other.cluster.cluster_id)
    m.status(CommandKind.DELETE, CommandPhase.SUCCEEDED)
    with pytest.raises(NoCapacity):
        await start(m, cluster_id, most=Microcents(1))
    await m.market.set_ask(OWNER, "cpu/C", Microcents(500 * MICROCENTS_PER_UNIT), "account/1")
    with pytest.raises(InsufficientFunds):
        await start(m, cluster_id)
    assert await m.cluster(cluster_id) == clean
    await m.market.set_ask(OWNER, "cpu/C", Microcents(2 * MICROCENTS_PER_UNIT), "account/1")
    _, view = await start(m, cluster_id)
    assert view.cluster.price_per_hour == m.rental(cluster_id).price_per_hour == 2 * MICROCENTS_PER_UNIT


async def test_what_was_stopped_is_deleted_at_once_and_then_started_no_more(m):
    cluster_id = await stopped(m)
    operation, view = await m.clusters.delete(principal(), cluster_id)
    assert (view.cluster.phase, operation.state) == (ClusterPhase.DELETED, OperationState.SUCCEEDED)
    for ask in (stop, start):
        with pytest.raises(Conflict, match=r"this one is Deleted\. Create another"):
            await ask(m, cluster_id)


async def test_a_delete_while_it_is_stopping_ends_the_stop(m):
    cluster_id, spec = await m.running()
    stopping, _ = await stop(m, cluster_id)
    await m.clusters.delete(principal(), cluster_id)
    assert told(m, stopping).state is OperationState.FAILED and len(m.commands(CommandKind.DELETE)) == 1
    let_go(m, spec, 2, 5)
    assert (await m.cluster(cluster_id)).phase is ClusterPhase.DELETED


async def test_what_has_failed_is_not_stopped(m):
    view = await m.create()
    m.status(CommandKind.CREATE, CommandPhase.FAILED, error_code="image_unavailable", error_detail="no such image")
    with pytest.raises(Conflict, match="this one is Failed"):
        await stop(m, view.cluster.cluster_id)


async def test_only_its_renter_stops_and_starts_it(m):
    cluster_id, _ = await m.running()
    for who in (principal(STRANGER), OPERATOR):
        for ask in (m.clusters.stop, m.clusters.start):
            with pytest.raises(NotFound):
                await ask(who, cluster_id)
    with pytest.raises(NotFound):
        await stop(m, ClusterId("cluster_none"))


async def test_the_cluster_of_a_job_is_not_stopped_beneath_it(m):
    its = job("a", JobState.RUNNING)
    cluster_id, _ = await m.running(key=f"{its.job_id}/1")
    its = replace(its, attempts=(Attempt(cluster_id, 0),))
    m.write(lambda uow: uow[JobRepository].add(its, None, b""))
    with pytest.raises(Conflict, match="cancel the job"):
        await stop(m, cluster_id)
    assert (await m.cluster(cluster_id)).phase is ClusterPhase.RUNNING


async def test_a_duration_counts_from_the_start_of_the_present_run(m):
    cluster_id, spec = await m.running(max_duration_ns=HOUR)
    await later(m, 50 * MINUTE)
    await stop(m, cluster_id)
    let_go(m, spec, 2, 3000)
    await start(m, cluster_id)
    await runs_again(m, cluster_id)
    await later(m, 50 * MINUTE)
    assert (await m.cluster(cluster_id)).phase is ClusterPhase.RUNNING
    await later(m, 10 * MINUTE)
    assert (await m.cluster(cluster_id)).phase is ClusterPhase.DELETING


async def test_an_image_by_tag_is_the_same_digest_after_a_start_and_its_login_is_to_be_given_again(m):
    keyed(m, HOST)
    asked = ClusterRequest(image=TAG, argv=("true",))
    _, view = await m.clusters.create(principal(), asked, login=LOGIN)
    cluster_id = view.cluster.cluster_id
    found(m, HOST)
    m.report(m.spec(), WorkloadPhase.RUNNING)
    await stop(m, cluster_id)
    m.status(CommandKind.DELETE, CommandPhase.SUCCEEDED)
    with pytest.raises(InvalidInput, match="Give it again") as refused:
        await start(m, cluster_id)
    assert refused.value.subject == "registry_login"
    assert (await m.cluster(cluster_id)).phase is ClusterPhase.STOPPED
    await start(m, cluster_id, login=LOGIN)
    spec = m.spec()
    assert spec.image == PINNED
    assert KEYS[HOST].open_login(spec.registry_login, spec.workload_id) == LOGIN


async def test_a_gang_over_hosts_waits_for_all_its_new_members_and_starts_whole(m):
    m.join(OTHER)
    for host_id in (HOST, OTHER):
        met(m, host_id, ADDRESSES[host_id])
    view = await gang_running(m, 2)
    before = by_rank(view)
    specs = {one.host_id: m.spec_of(one.workload_id) for one in before.values()}
    await stop(m, view.cluster.cluster_id)
    gone(m, specs, HOST)
    assert (await look(m, view)).cluster.phase is ClusterPhase.STOPPING
    gone(m, specs, OTHER)
    assert (await look(m, view)).cluster.phase is ClusterPhase.STOPPED
    _, again = await start(m, view.cluster.cluster_id)
    assert set(by_rank(again)) == {0, 1} and len(again.workloads) == 2
    assert m.whole(again).secret not in (None, m.whole(view).secret) and again.cluster.kind is ClusterKind.GANG
    await started(m, again)
    after = await look(m, view)
    assert after.cluster.phase is ClusterPhase.RUNNING
    assert {one.phase for one in after.workloads} == {WorkPhase.RUNNING}


async def test_over_http_it_is_stopped_and_started_once_for_one_key(site):
    cluster_id, spec = await site.running()
    path = f"/api/v1/clusters/{cluster_id}"
    answer = await site.client.post(f"{path}/stop", headers={"Idempotency-Key": "off"})
    assert_described(answer, cluster_routes.ClusterAcceptedOut, 202)
    early = await site.client.post(f"{path}/start", json={}, headers={"Idempotency-Key": "on"})
    assert (early.status_code, early.json()["code"]) == (409, "conflict")
    site.receipt(spec, 2, 10, final=True)
    done = CommandStatus(site.spec(CommandKind.DELETE).command_id, CommandPhase.SUCCEEDED)
    site.write(lambda uow: site.rooms.fleet.commands.on_status(uow, HOST, done))
    shown = await site.get(f"/clusters/{cluster_id}")
    assert (shown["phase"], shown["needs_login"], shown["ended_at"] is None) == ("Stopped", False, False)
    plan = (await site.client.post("/api/v1/clusters/plan", json=shown["request"])).json()
    asked = {"json": {"max_price_per_hour": plan["price_per_hour"]}, "headers": {"Idempotency-Key": "on"}}
    first, again = [await site.client.post(f"{path}/start", **asked) for _ in range(2)]
    assert_described(first, cluster_routes.ClusterAcceptedOut, 202)
    assert (first.json(), first.json()["cluster"]["phase"]) == (again.json(), "Creating")
    dear = await site.client.post(f"{path}/start", json={"max_price_per_hour": "a"})
    assert dear.status_code == 422
    assert len((await site.get("/receipts", cluster=cluster_id))["items"]) == 2
