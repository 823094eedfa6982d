"""Clusters over several hosts, from asking to gone, on a real store with hosts that report."""

from dataclasses import replace

import pytest

from tests.unit.clusters.world import HOST, OTHER, OWNER, market_world, principal
from windrow_master.clusters import lookup
from windrow_master.clusters.kinds.multi_host import FILL_NS, FIRST_END, HURT_KEPT_NS
from windrow_master.clusters.messages import RankFailed
from windrow_master.clusters.model import ClusterKind, ClusterPhase, ClusterRequest, Results, WorkPhase
from windrow_master.clusters.needs import Refused
from windrow_master.clusters.repository import WorkloadRepository
from windrow_master.fleet.states import LinkEvent
from windrow_master.market.model import RentalState
from windrow_master.market.repository import RentalRepository
from windrow_proto.errors import InsufficientFunds, InvalidInput
from windrow_proto.ids import BootId, HostId
from windrow_proto.model import CommandKind, CommandPhase, WorkloadPhase
from windrow_proto.units import MICROCENTS_PER_UNIT, MINUTE, SECOND, Microcents

FULL = 100 * MICROCENTS_PER_UNIT
THIRD = HostId("host_c")
ADDRESSES = {HOST: "10.0.0.1", OTHER: "10.0.0.2", THIRD: "10.0.0.3"}


@pytest.fixture
def m(tmp_path):
    with market_world(tmp_path) as made:
        for host_id in (OTHER, THIRD):
            made.join(host_id)
        for host_id, address in ADDRESSES.items():
            met(made, host_id, address)
        yield made


def met(m, host_id, address):
    """Its Access sees the host at this address, which is its own."""
    where = {"access_id": "access_1", "region": "here", "address": f"ipv4:{address}:40000", "boot_id": BootId(b"boot")}
    m.write(lambda uow: m.fleet.hosts.route(uow, host_id, **where))


def lose(m, host_id):
    """Its host is not heard of for so long that it counts as lost."""
    m.link(LinkEvent.SILENT, host_id)
    m.link(LinkEvent.SILENT_LONG, host_id)


async def gang(m, hosts=2, **more):
    return await m.create(kind=more.pop("kind", ClusterKind.GANG), hosts=hosts, **more)


async def look(m, view):
    return await m.clusters.get(principal(), view.cluster.cluster_id)


def by_rank(view):
    return {one.rank: one for one in view.workloads if one.is_member}


def prepared(m, view):
    """All members say that they wait for each other."""
    for member in by_rank(view).values():
        m.report(m.spec(member.host_id), WorkloadPhase.WAITING_MEMBERS, member.host_id)


async def running(m, hosts=2, **more):
    view = await gang(m, hosts, **more)
    await started(m, view)
    return await look(m, view)


async def started(m, view):
    specs = {one.host_id: m.spec(one.host_id) for one in by_rank(await look(m, view)).values()}
    prepared(m, await look(m, view))
    for host_id, spec in specs.items():
        m.status(CommandKind.CREATE, CommandPhase.SUCCEEDED, host_id)
        m.status(CommandKind.START, CommandPhase.SUCCEEDED, host_id)
        m.report(spec, WorkloadPhase.RUNNING, host_id)
        m.receipt(spec, 1, 0, host_id)
    return specs


def gone(m, specs, *hosts):
    """These hosts do what they were told to delete; what one was told to end only, its results are brought in."""
    for host_id in hosts:
        if any(one.delete and one.delete.keeps_files for one in m.commands(CommandKind.DELETE, host_id)):
            m.report(specs[host_id], WorkloadPhase.EXITED, host_id)
            kept, workload_id = Results(m.clock.wall_ns()), specs[host_id].workload_id
            m.write(lambda uow, one=workload_id, kept=kept: m.clusters.lifecycle.keep_results(uow, one, kept))
        m.report(specs[host_id], WorkloadPhase.GONE, host_id)
        m.status(CommandKind.DELETE, CommandPhase.SUCCEEDED, host_id)


async def test_one_transaction_leases_every_host_and_tells_each_member_who_the_others_are(m):
    view = await gang(m, argv=("train",), cpus=2)
    members = by_rank(view)
    specs = {rank: m.spec(member.host_id) for rank, member in members.items()}
    told = [ADDRESSES[members[rank].host_id] for rank in (0, 1)]
    assert len({member.host_id for member in members.values()}) == 2
    assert [specs[rank].address for rank in (0, 1)] == told
    assert all(spec.await_members and spec.argv == ("train",) for spec in specs.values())
    assert [specs[rank].env["WINDROW_RANK"] for rank in (0, 1)] == ["0", "1"]
    assert {spec.env["WINDROW_MEMBERS"] for spec in specs.values()} == {",".join(told)}
    assert {spec.env["MASTER_ADDR"] for spec in specs.values()} == {told[0]}
    assert specs[0].listens == (int(specs[0].env["MASTER_PORT"]),) and specs[1].listens == ()


async def test_the_price_is_the_sum_and_each_host_has_a_line_of_its_own(m):
    view = await gang(m, hosts=3)
    rental = m.rental(view.cluster.cluster_id)
    lines = m.read(lambda uow: uow[RentalRepository].lines([rental.rental_id]))
    assert rental.price_per_hour == view.cluster.price_per_hour == sum(line.price_per_hour for line in lines)
    assert {line.host_id for line in lines} == set(ADDRESSES)
    assert rental.held == rental.price_per_hour // 4


async def test_where_one_host_is_missing_nothing_is_leased_anywhere(m):
    lose(m, THIRD)
    with pytest.raises(Refused) as refused:
        await gang(m, hosts=3)
    alone, away = sorted(refused.value.refusal.reasons, key=lambda reason: -reason.count)
    assert alone.text == "2 of your hosts: only 2 of the 3 hosts that you ask for fit"
    assert away.hosts[0][0] == THIRD and away.reason.startswith("offline")
    assert all(set(m.slots(host).values()) == {"free"} for host in ADDRESSES)


async def test_where_the_money_does_not_reach_nothing_is_leased_anywhere(m):
    await m.market.set_ask(OWNER, (await m.clusters.offers())[0].tier, Microcents(500 * MICROCENTS_PER_UNIT), "o")
    with pytest.raises(InsufficientFunds):
        await gang(m)
    assert all(set(m.slots(host).values()) == {"free"} for host in ADDRESSES)


async def test_no_member_starts_before_all_are_prepared(m):
    view = await gang(m)
    members = by_rank(view)
    m.report(m.spec(members[0].host_id), WorkloadPhase.WAITING_MEMBERS, members[0].host_id)
    assert m.commands(CommandKind.START, members[0].host_id) == []

    m.report(m.spec(members[1].host_id), WorkloadPhase.WAITING_MEMBERS, members[1].host_id)
    for member in members.values():
        (command,) = m.commands(CommandKind.START, member.host_id)
        assert command.start.workload_id == member.workload_id


async def test_reports_that_come_again_order_no_second_start(m):
    view = await gang(m)
    prepared(m, view)
    prepared(m, view)
    for member in by_rank(view).values():
        assert len(m.commands(CommandKind.START, member.host_id)) == 1


async def test_it_runs_once_all_members_run(m):
    view = await gang(m)
    members = by_rank(view)
    prepared(m, view)
    m.report(m.spec(members[0].host_id), WorkloadPhase.RUNNING, members[0].host_id)
    assert (await look(m, view)).cluster.phase is ClusterPhase.CREATING
    m.report(m.spec(members[1].host_id), WorkloadPhase.RUNNING, members[1].host_id)
    assert (await look(m, view)).cluster.phase is ClusterPhase.RUNNING


async def test_the_rank_that_failed_first_by_the_masters_clock_is_told_once_with_its_lines(m):
    told: list[RankFailed] = []
    m.store.messages.on(RankFailed, lambda uow, it: told.append(it))
    view = await gang(m, hosts=3)
    specs, members, cluster_id = await started(m, view), by_rank(view), view.cluster.cluster_id
    assert m.read(lambda uow: lookup.first_ends(uow, [cluster_id])) == []
    for rank, code in ((2, 1), (0, 134)):  # the others fail by it
        host_id = members[rank].host_id
        m.report(specs[host_id], WorkloadPhase.EXITED, host_id, exit_code=code)
        m.clock.advance(SECOND)
    ((first, _),) = m.read(lambda uow: lookup.first_ends(uow, [cluster_id]))
    assert (first.rank, first.exit_code) == (2, 1)
    for _ in range(2):
        m.write(lambda uow: m.clusters.lifecycle.tell_first_end(uow, cluster_id, ("CUDA error",)))
    assert [(one.workload.rank, one.ranks, one.lines) for one in told] == [(2, 3, ("CUDA error",))]
    assert m.read(lambda uow: lookup.first_ends(uow, [cluster_id])) == []
    (step,) = [one for one in (await look(m, view)).cluster.steps if one.name == FIRST_END]
    assert (step.member, step.detail) == (f"rank 2 on {members[2].host_name}", "exit 1")


async def test_progress_is_kept_for_each_member_in_a_line_of_its_own(m):
    view = await gang(m)
    for permille in (100, 700):
        for member in by_rank(view).values():
            m.status(
                CommandKind.CREATE, CommandPhase.RUNNING, member.host_id, step="pulling", progress_permille=permille
            )
    steps = [step for step in (await look(m, view)).cluster.steps if step.name == "pulling"]
    names = {f"rank {rank} on {member.host_name}" for rank, member in by_rank(view).items()}
    assert len(steps) == 2
    assert {(step.member, step.progress_permille) for step in steps} == {(name, 700) for name in names}


@pytest.mark.parametrize("at", ["pending", "prepared", "starting"])
async def test_one_member_that_fails_takes_all_back_with_its_host_and_step_as_the_reason(m, at):
    view = await gang(m)
    members = by_rank(view)
    specs = {member.host_id: m.spec(member.host_id) for member in members.values()}
    if at != "pending":
        m.report(specs[members[0].host_id], WorkloadPhase.WAITING_MEMBERS, members[0].host_id)
    if at == "starting":
        m.report(specs[members[1].host_id], WorkloadPhase.WAITING_MEMBERS, members[1].host_id)
        m.report(specs[members[0].host_id], WorkloadPhase.RUNNING, members[0].host_id)
    m.status(CommandKind.CREATE, CommandPhase.RUNNING, members[1].host_id, step="pulling")
    m.status(
        CommandKind.CREATE,
        CommandPhase.FAILED,
        members[1].host_id,
        step="pulling",
        error_code="image_unavailable",
        error_detail="there is none",
    )

    after = (await look(m, view)).cluster
    assert after.phase is ClusterPhase.FAILED
    assert after.reason == f"rank 1 on {members[1].host_name}: while pulling: image_unavailable: there is none"
    gone(m, specs, *specs)
    assert all(set(m.slots(host).values()) == {"free"} for host in specs)
    assert m.rental(view.cluster.cluster_id).state is RentalState.CLOSED
    assert m.balance() == FULL


async def test_a_start_that_its_host_refuses_takes_all_back(m):
    view = await gang(m)
    prepared(m, view)
    member = by_rank(view)[1]
    m.status(CommandKind.START, CommandPhase.REFUSED, member.host_id, error_code="fenced", error_detail="too old")
    after = (await look(m, view)).cluster
    assert (after.phase, after.reason) == (
        ClusterPhase.FAILED,
        f"rank 1 on {member.host_name}: not started: fenced: too old",
    )


async def test_a_host_lost_while_the_cluster_is_made_takes_all_back(m):
    view = await gang(m)
    member = by_rank(view)[1]
    lose(m, member.host_id)
    after = (await look(m, view)).cluster
    assert after.phase is ClusterPhase.FAILED and after.reason.startswith(f"rank 1 on {member.host_name}: ")


async def test_deleting_ends_every_member_and_every_receipt_counts(m):
    view = await running(m)
    members = by_rank(view)
    specs = {member.host_id: m.spec_of(member.workload_id) for member in members.values()}
    await m.clusters.delete(principal(), view.cluster.cluster_id)
    m.clock.advance(100 * SECOND)
    for number, host_id in enumerate(specs, start=1):
        m.receipt(specs[host_id], 2, 10 * number, host_id, final=True, end_reason="deleted", exit_code=143)
    gone(m, specs, *specs)
    rental = m.rental(view.cluster.cluster_id)
    lines = m.read(lambda uow: uow[RentalRepository].lines([rental.rental_id]))
    assert (await look(m, view)).cluster.phase is ClusterPhase.DELETED
    assert rental.state is RentalState.CLOSED
    assert rental.charged == sum(line.charged for line in lines) > 0
    assert sorted(line.signed_ns for line in lines) == [10 * SECOND, 20 * SECOND]


async def test_a_gang_whose_rank_has_failed_is_degraded_for_its_log_and_then_fails(m):
    view = await running(m)
    member = by_rank(view)[1]
    m.report(m.spec_of(member.workload_id), WorkloadPhase.EXITED, member.host_id, exit_code=3)
    hurt = (await look(m, view)).cluster
    assert hurt.phase is ClusterPhase.DEGRADED
    assert hurt.reason == f"rank 1 on {member.host_name} has ended while others run: exit 3"

    m.clock.advance(HURT_KEPT_NS)
    await m.clusters.tick()
    assert (await look(m, view)).cluster.phase is ClusterPhase.FAILED


async def test_ranks_that_end_well_wait_for_the_others_however_long_that_takes(m):
    view = await running(m)
    members = by_rank(view)
    m.report(m.spec_of(members[1].workload_id), WorkloadPhase.EXITED, members[1].host_id, exit_code=0)
    m.clock.advance(30 * MINUTE)
    await m.clusters.tick()
    assert (await look(m, view)).cluster.phase is ClusterPhase.RUNNING

    m.report(m.spec_of(members[0].workload_id), WorkloadPhase.EXITED, members[0].host_id, exit_code=0)
    after = (await look(m, view)).cluster
    assert (after.phase, after.reason) == (ClusterPhase.FINISHED, "exit 0")


async def test_a_gang_whose_ranks_have_all_ended_fails_with_the_first_that_failed(m):
    view = await running(m)
    members = by_rank(view)
    for rank, code in ((1, 3), (0, 0)):
        m.report(m.spec_of(members[rank].workload_id), WorkloadPhase.EXITED, members[rank].host_id, exit_code=code)
    after = (await look(m, view)).cluster
    assert (after.phase, after.reason) == (ClusterPhase.FAILED, f"rank 1 on {members[1].host_name}: exit 3")
    assert not any(m.commands(CommandKind.DELETE, member.host_id) for member in members.values())


@pytest.mark.parametrize("kind", [ClusterKind.RAY, ClusterKind.DASK])
async def test_the_end_of_the_head_is_the_end_of_its_cluster_and_its_workers_are_ended(m, kind):
    view = await running(m, kind=kind, argv=("python", "main.py"))
    members = by_rank(view)
    m.report(m.spec_of(members[0].workload_id), WorkloadPhase.EXITED, members[0].host_id, exit_code=0)
    assert (await look(m, view)).cluster.phase is ClusterPhase.FINISHED
    assert [len(m.commands(CommandKind.DELETE, members[rank].host_id)) for rank in (0, 1)] == [0, 1]


async def test_a_gang_that_asked_for_it_starts_all_members_again_on_hosts_that_are_there(m):
    view = await running(m, restart_members=True)
    before = by_rank(view)
    specs = {member.host_id: m.spec_of(member.workload_id) for member in before.values()}
    lose(m, before[1].host_id)
    assert (await look(m, view)).cluster.phase is ClusterPhase.DEGRADED

    await m.clusters.tick()
    assert by_rank(await look(m, view)) == {}
    gone(m, specs, before[0].host_id)
    await m.clusters.tick()
    fresh = by_rank(await look(m, view))
    assert before[1].host_id not in {member.host_id for member in fresh.values()}
    again = await started(m, view)
    after = (await look(m, view)).cluster
    assert (after.phase, after.restarts) == (ClusterPhase.RUNNING, 1)
    assert {spec.env["WINDROW_MEMBERS"] for spec in again.values()} == {
        ",".join(ADDRESSES[fresh[rank].host_id] for rank in (0, 1))
    }


@pytest.mark.parametrize("kind", [ClusterKind.RAY, ClusterKind.DASK])
async def test_a_lost_worker_of_an_engine_is_replaced_on_another_host_and_the_head_stays(m, kind):
    view = await running(m, kind=kind, argv=())
    before = by_rank(view)
    lose(m, before[1].host_id)
    await m.clusters.tick()
    await m.clusters.tick()
    after = by_rank(await look(m, view))
    spec = m.spec(after[1].host_id)
    assert (after[0].workload_id, after[1].host_id) == (
        before[0].workload_id,
        next(host for host in ADDRESSES if host not in (before[0].host_id, before[1].host_id)),
    )
    assert spec.env["WINDROW_MEMBERS"] == f"{before[0].address},{after[1].address}"
    m.report(spec, WorkloadPhase.WAITING_MEMBERS, after[1].host_id)
    assert len(m.commands(CommandKind.START, after[1].host_id)) == 1
    m.report(spec, WorkloadPhase.RUNNING, after[1].host_id)
    assert (await look(m, view)).cluster.phase is ClusterPhase.RUNNING


async def test_what_a_replaced_host_runs_from_then_on_is_nobodys_to_pay(m):
    view = await running(m, kind=ClusterKind.DASK, argv=())
    lost = by_rank(view)[1]
    spec = m.spec_of(lost.workload_id)
    m.clock.advance(100 * SECOND)
    lose(m, lost.host_id)
    await m.clusters.tick()
    m.clock.advance(10 * MINUTE)
    m.receipt(spec, 2, 700, lost.host_id)
    line = m.read(lambda uow: uow[RentalRepository].line(lost.workload_id))
    assert line.charged == line.price_per_hour * 100 // 3600


async def test_a_replacement_costs_no_more_than_what_it_replaces(m):
    view = await running(m, kind=ClusterKind.DASK, argv=())
    lost = by_rank(view)[1]
    free = next(host for host in ADDRESSES if host not in {one.host_id for one in view.workloads})
    assert free
    lose(m, lost.host_id)
    await m.clusters.tick()
    await m.market.set_ask(OWNER, view.cluster.tier, view.cluster.price_per_hour * 4, "account/owner")
    await m.clusters.tick()
    assert set(by_rank(await look(m, view))) == {0}


async def test_a_cluster_that_finds_no_host_in_time_fails_and_says_so(m):
    view = await running(m, hosts=3, kind=ClusterKind.DASK, argv=())
    lost = by_rank(view)[2]
    lose(m, lost.host_id)
    await m.clusters.tick()
    await m.clusters.tick()
    assert (await look(m, view)).cluster.reason == "1 of its 3 members are being replaced"
    m.clock.advance(FILL_NS)
    await m.clusters.tick()
    after = (await look(m, view)).cluster
    assert after.phase is ClusterPhase.FAILED and "no host was found within 10 minutes" in after.reason


async def test_a_replaced_member_is_not_wanted_on_its_host_any_more(m):
    view = await running(m, kind=ClusterKind.DASK, argv=())
    lost = by_rank(view)[1]
    lose(m, lost.host_id)
    await m.clusters.tick()
    (wanted,) = m.read(lambda uow: m.clusters.running.desired(uow, lost.host_id))
    assert not wanted.should_run
    workload = m.read(lambda uow: uow[WorkloadRepository].get(lost.workload_id))
    assert workload.delete_command is not None and workload.phase is WorkPhase.RUNNING


async def test_the_secret_of_an_engine_is_told_to_its_members_and_shown_to_nobody(m):
    view = await gang(m, kind=ClusterKind.RAY, argv=())
    tokens = {m.spec(one.host_id).env["RAY_AUTH_TOKEN"] for one in view.workloads}
    secret = m.whole(view).secret
    assert tokens == {secret} and len(secret) == 64
    assert secret not in repr(view)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"kind": ClusterKind.BOX, "hosts": 2}, "hosts"),
        ({"kind": ClusterKind.GANG, "hosts": 65}, "hosts"),
        ({"kind": ClusterKind.GANG, "hosts": 2, "host_id": HOST}, "host_id"),
        ({"kind": ClusterKind.RAY, "hosts": 2, "restart_members": True}, "restart_members"),
        ({"kind": ClusterKind.GANG, "argv": ()}, "argv"),
    ],
)
async def test_what_cannot_be_is_refused_by_the_name_of_its_field(m, wrong, field):
    with pytest.raises(InvalidInput) as refused:
        await m.create(**wrong)
    assert refused.value.subject == field


async def test_the_preview_shows_every_host_and_the_price_of_all(m):
    request = replace(ClusterRequest(kind=ClusterKind.GANG, argv=("x",), hosts=2))
    preview = await m.clusters.plan(principal(), request)
    view = await gang(m)
    assert [one.host_id for one in preview.members] == [one.host_id for _, one in sorted(by_rank(view).items())]
    assert preview.hold == view.cluster.price_per_hour // 4
