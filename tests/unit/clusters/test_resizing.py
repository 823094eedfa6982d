"""More and fewer hosts of a cluster that runs, on a real store with hosts that report."""

from dataclasses import replace

import pytest

from tests.unit.clusters.test_images import KEYS, LOGIN, TAG, keyed
from tests.unit.clusters.test_over_hosts import ADDRESSES, FULL, by_rank, gone, look, lose, met, running, started
from tests.unit.clusters.test_over_hosts import m as m
from tests.unit.clusters.world import OWNER, STRANGER, principal
from windrow_master.clusters.model import ClusterKind, ClusterPhase, ClusterRequest, Network, NetworkMode, WorkPhase
from windrow_master.clusters.needs import Refused
from windrow_master.market.limit_repository import LimitRepository
from windrow_master.market.limits import Limits, SpendingLimit, month_of
from windrow_master.market.repository import RentalRepository
from windrow_proto.errors import Conflict, Forbidden, InsufficientFunds, InvalidInput, NoCapacity, NotFound
from windrow_proto.model import CommandKind, WorkloadPhase
from windrow_proto.units import MICROCENTS_PER_UNIT, MINUTE, SECOND, Microcents


async def ray(m, hosts=2, **more):
    return await running(m, hosts, kind=ClusterKind.RAY, argv=(), **more)


async def resize(m, view, hosts, **more):
    return await m.clusters.resize(principal(), view.cluster.cluster_id, hosts, **more)


async def test_a_new_host_gets_the_next_rank_and_is_started_by_itself(m):
    view = await ray(m)
    grown = await resize(m, view, 3)
    members, before = by_rank(grown), by_rank(view)
    assert [members[rank].workload_id for rank in (0, 1)] == [before[rank].workload_id for rank in (0, 1)]
    added = members[2]
    spec = m.spec(added.host_id)
    assert spec.env["WINDROW_MEMBERS"] == ",".join(ADDRESSES[members[rank].host_id] for rank in (0, 1, 2))
    assert spec.env["RAY_ADDRESS"].startswith(f"{members[0].address}:") and spec.env["WINDROW_RANK"] == "2"
    assert grown.cluster.phase is ClusterPhase.RUNNING and grown.cluster.request.hosts == 3

    m.report(spec, WorkloadPhase.WAITING_MEMBERS, added.host_id)
    assert len(m.commands(CommandKind.START, added.host_id)) == 1
    m.report(spec, WorkloadPhase.RUNNING, added.host_id)
    after = await look(m, view)
    assert {one.phase for one in by_rank(after).values()} == {WorkPhase.RUNNING}
    assert after.cluster.phase is ClusterPhase.RUNNING
    assert "cluster.resized" in m.events(view.cluster.cluster_id)


async def test_the_price_follows_and_the_hold_with_it(m):
    view = await ray(m, 1)
    one = view.cluster.price_per_hour
    grown = await resize(m, view, 3)
    assert grown.cluster.price_per_hour == m.rental(view.cluster.cluster_id).price_per_hour == 3 * one
    assert m.rental(view.cluster.cluster_id).held >= 3 * one // 4
    assert len(m.read(lambda uow: uow[RentalRepository].lines([grown.cluster.rental_id]))) == 3
    shrunk = await resize(m, view, 1)
    assert shrunk.cluster.price_per_hour == m.rental(view.cluster.cluster_id).price_per_hour == one


async def test_more_hosts_are_refused_where_the_rest_of_the_budget_does_not_pay_for_a_minute_of_all(m):
    price = (await m.clusters.offers())[0].price_per_hour
    view = await ray(m, 1, budget=Microcents(2 * price // 60))
    with pytest.raises(InvalidInput, match=r"The rest of the budget, .* is less than a minute costs here"):
        await resize(m, view, 3)
    assert (await look(m, view)).cluster.request.hosts == 1


async def test_a_token_with_a_limit_adds_no_hosts_to_what_does_not_count_for_it(m):
    view = await ray(m, 1)
    month = month_of(m.read(lambda uow: uow.now_wall_ns))
    counted = Microcents(0), month, Microcents(0)
    row = SpendingLimit("token_ci", OWNER, "ci", Limits(max_leases=9), *counted, 0, "user/1")
    m.write(lambda uow: uow[LimitRepository].save(row))
    limited = replace(principal(), spenders=("token_ci",))
    with pytest.raises(Forbidden, match="does not count for the token ci"):
        await m.clusters.resize(limited, view.cluster.cluster_id, 2)
    await m.clusters.resize(replace(principal(), spenders=("token_other",)), view.cluster.cluster_id, 2)
    await m.clusters.resize(limited, view.cluster.cluster_id, 1)


async def test_the_highest_ranks_go_and_cost_nothing_from_then_on(m):
    view = await ray(m, 3)
    last = by_rank(view)[2]
    spec = m.spec_of(last.workload_id)
    m.clock.advance(100 * SECOND)
    shrunk = await resize(m, view, 2)
    assert set(by_rank(shrunk)) == {0, 1} and shrunk.cluster.phase is ClusterPhase.RUNNING
    assert len(m.commands(CommandKind.DELETE, last.host_id)) == 1
    m.clock.advance(10 * MINUTE)
    m.receipt(spec, 2, 700, last.host_id)
    line = m.read(lambda uow: uow[RentalRepository].line(last.workload_id))
    assert line.charged == line.price_per_hour * 100 // 3600
    gone(m, {last.host_id: spec}, last.host_id)
    assert set(m.slots(last.host_id).values()) == {"free"}
    await m.clusters.tick()
    assert (await look(m, view)).cluster.phase is ClusterPhase.RUNNING


async def test_the_same_again_changes_nothing(m):
    view = await ray(m)
    await resize(m, view, 3)
    before = await look(m, view)
    assert replace(await resize(m, view, 3), whole=before.whole) == before


async def test_a_new_host_that_fails_on_the_way_is_replaced_like_a_lost_one(m):
    m.join("host_d")
    met(m, "host_d", "10.0.0.4")
    view = await ray(m)
    added = by_rank(await resize(m, view, 3))[2]
    lose(m, added.host_id)
    await m.clusters.tick()
    await m.clusters.tick()
    again = by_rank(await look(m, view))[2]
    assert again.host_id not in {one.host_id for one in by_rank(view).values()} | {added.host_id}


async def test_all_that_is_asked_for_fits_or_nothing_is_leased(m):
    view = await ray(m)
    free = next(host for host in ADDRESSES if host not in {one.host_id for one in view.workloads})
    with pytest.raises(Refused) as refused:
        await resize(m, view, 4)
    assert [reason.hosts[0][0] for reason in refused.value.refusal.reasons] == [free]
    assert (await look(m, view)).cluster.request.hosts == 2 and set(m.slots(free).values()) == {"free"}


async def test_it_costs_no_more_than_was_asked_unless_more_is_said(m):
    view = await ray(m, max_price_per_hour=Microcents(50 * MICROCENTS_PER_UNIT // 1000))
    assert view.cluster.price_per_hour * 3 > 50 * MICROCENTS_PER_UNIT // 1000
    with pytest.raises(NoCapacity):
        await resize(m, view, 3)
    assert (await resize(m, view, 3, most=Microcents(MICROCENTS_PER_UNIT))).cluster.request.hosts == 3


async def test_where_the_money_does_not_reach_nothing_is_leased(m):
    view = await ray(m)
    await m.market.set_ask(OWNER, view.cluster.tier, Microcents(5 * FULL), "account/owner")
    with pytest.raises(InsufficientFunds):
        await resize(m, view, 3)
    assert (await look(m, view)).cluster.price_per_hour == view.cluster.price_per_hour


async def test_what_cannot_be_resized_says_why(m):
    gang = await running(m)
    with pytest.raises(InvalidInput, match="its members know how many they are"):
        await resize(m, gang, 3)
    with pytest.raises(NotFound):
        await m.clusters.resize(principal(STRANGER), gang.cluster.cluster_id, 1)
    await m.clusters.delete(principal(), gang.cluster.cluster_id)


@pytest.mark.parametrize("hosts", [0, -1, 65])
async def test_a_number_of_hosts_that_is_none_is_refused(m, hosts):
    view = await ray(m)
    with pytest.raises(InvalidInput, match="hosts must be between 1 and 64"):
        await resize(m, view, hosts)


async def test_only_what_runs_is_resized(m):
    view = await m.create(kind=ClusterKind.DASK, hosts=2, argv=())
    with pytest.raises(Conflict, match="Only a running cluster can be resized, and this one is Creating"):
        await resize(m, view, 3)


@pytest.mark.parametrize("given_at_first", [True, False])
async def test_hosts_are_added_to_a_private_image_with_its_login_and_taken_away_without(m, given_at_first):
    for host_id in ADDRESSES:
        keyed(m, host_id)
    request = ClusterRequest(kind=ClusterKind.RAY, hosts=1, image=TAG)
    _, view = await m.clusters.create(principal(), request, login=LOGIN if given_at_first else None)
    await started(m, view)
    assert (await look(m, view)).cluster.needs_login is given_at_first
    if given_at_first:
        with pytest.raises(InvalidInput, match="Give it again to add hosts") as refused:
            await resize(m, view, 2)
        assert refused.value.subject == "registry_login"
        after = await look(m, view)
        assert after.cluster.request.hosts == 1 == len(after.workloads)
    grown = await resize(m, view, 2, login=LOGIN)
    spec = m.spec(by_rank(grown)[1].host_id)
    assert KEYS[by_rank(grown)[1].host_id].open_login(spec.registry_login, spec.workload_id) == LOGIN
    assert grown.cluster.needs_login
    assert (await resize(m, view, 2)).cluster.request.hosts == 2
    assert (await resize(m, view, 1)).cluster.request.hosts == 1
    with pytest.raises(InvalidInput, match="Give it again"):
        await resize(m, view, 2)


class Seen:
    """Hosts that meet like this, once they have looked."""

    def __init__(self, network):
        self.network, self.looked = network, []

    def decide(self, hosts):
        return self.network if self.looked or len(hosts) < 2 else None

    async def look(self, hosts):
        self.looked.append({host.host_id for host in hosts})


async def test_new_hosts_look_for_those_that_are_there_first(m):
    view = await ray(m, 1)
    m.reachability.script = Seen(Network(NetworkMode.DIRECT, "every host sees every other"))
    grown = await resize(m, view, 3)
    assert m.reachability.script.looked == [set(ADDRESSES)]
    assert (grown.cluster.network, grown.cluster.request.hosts) == (NetworkMode.DIRECT, 3)


async def test_members_at_their_hosts_addresses_take_none_that_does_not_see_them(m):
    view = await ray(m, 1)
    m.reachability.script = Seen(Network(NetworkMode.TUNNELS, "host_a does not see host_b"))
    with pytest.raises(NoCapacity, match="create a cluster over more hosts from the start"):
        await resize(m, view, 2)
    assert (await look(m, view)).cluster.request.hosts == 1
