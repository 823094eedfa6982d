"""Test rentals make way for whatever is placed: gangs, what grows, what lacks a member."""

from dataclasses import replace

import pytest

from tests.unit.clusters.test_networks import TUNNELS, Said, translated
from tests.unit.clusters.test_over_hosts import THIRD, by_rank, gang, look, lose, running
from tests.unit.clusters.test_over_hosts import m as m
from tests.unit.clusters.world import HOST, OPERATOR, OTHER, OWNER, principal
from windrow_master.clusters import yielding
from windrow_master.clusters.model import ClusterKind, ClusterPhase, ClusterRequest, Workload
from windrow_master.clusters.needs import Refused
from windrow_master.fleet.model import Slot, SlotState
from windrow_master.identity.model import Account, Role
from windrow_master.identity.repository import AccountRepository
from windrow_master.market.model import PROOF_ACCOUNT
from windrow_proto.errors import NoCapacity
from windrow_proto.ids import ClusterId, SlotId, WorkloadId
from windrow_proto.model import NO_GPU, CommandKind, CommandPhase, SlotGrant, WorkloadPhase
from windrow_proto.units import Bytes

ALL = 4
"""Processors of each host: with fewer a request fits beside a proof of its processors."""
PROOF, RENTED = ClusterId("cluster_proof"), ClusterId("cluster_rented")


class Proofs:
    """Those of a Master; each ends as soon as it is to."""

    def __init__(self, m):
        self.m, self.ended = m, []
        m.tests.proofs = self

    async def begin(self, host_id):
        """Rent it, as the Master does."""
        _, view = await self.m.clusters.create(
            principal(PROOF_ACCOUNT), ClusterRequest(argv=("true",), host_id=host_id), is_proof=True
        )
        return view.cluster.cluster_id

    def end_on(self, hosts):
        self.ended += hosts

    async def give_way(self, hosts):
        self.end_on(hosts)
        for host_id in hosts:
            await self.end(host_id)
        return True

    async def end(self, host_id):
        spec = self.m.spec(host_id)
        await self.m.clusters.delete(principal(PROOF_ACCOUNT), spec.cluster_id)
        self.m.report(spec, WorkloadPhase.GONE, host_id)
        self.m.status(CommandKind.DELETE, CommandPhase.SUCCEEDED, host_id)


@pytest.fixture
def proofs(m):
    def open_account(uow):
        uow[AccountRepository].add(Account(PROOF_ACCOUNT, "proof", frozenset({Role.RENTER}), uow.now_wall_ns))
        m.market.keep_funded(uow, PROOF_ACCOUNT)

    m.write(open_account)
    return Proofs(m)


async def test_tests_of_hosts_are_listed_for_who_asks_for_them(m, proofs):
    await proofs.begin(HOST)
    (proof,) = await m.clusters.list(OPERATOR, None, 9)
    assert not await m.clusters.list(OPERATOR, None, 9, with_tests=False)
    (receipt,) = await m.market.statements(None, None, None, 9)
    assert not await m.market.statements(None, None, None, 9, with_tests=False)
    of_it = await m.market.statements(None, proof.cluster.cluster_id, None, 9, with_tests=False)
    assert [one.rental.rental_id for one in of_it] == [receipt.rental.rental_id]


async def test_a_gang_has_those_proofs_end_that_stand_in_its_way(m, proofs):
    await proofs.begin(HOST)
    await proofs.begin(OTHER)
    assert len((await gang(m, 1, cpus=ALL)).workloads) == 1, "a third host is free"
    assert proofs.ended == []
    view = await gang(m, 2, cpus=ALL)
    assert sorted(proofs.ended) == sorted(one.host_id for one in view.workloads) == [HOST, OTHER]


async def test_a_gang_for_which_there_are_too_few_hosts_ends_none(m, proofs):
    proof_id = await proofs.begin(HOST)
    with pytest.raises(NoCapacity):
        await gang(m, 4, cpus=ALL)
    assert proofs.ended == [] and (await m.cluster(proof_id)).phase is ClusterPhase.CREATING


async def test_a_gang_of_hosts_that_do_not_see_each_other_has_a_proof_end_as_well(m, proofs):
    translated(m, OTHER, "93.184.216.34")
    translated(m, THIRD, "93.184.216.35")
    m.reachability.script = Said(TUNNELS)
    await proofs.begin(THIRD)
    view = await gang(m, 3, cpus=ALL)
    assert (proofs.ended, len(view.workloads)) == ([THIRD], 3)


async def test_what_grows_finds_the_host_of_a_proof(m, proofs):
    view = await running(m, kind=ClusterKind.RAY, argv=(), cpus=ALL)
    (free,) = {"host_a", "host_b", "host_c"} - {one.host_id for one in view.workloads}
    await proofs.begin(free)
    grown = await m.clusters.resize(principal(OWNER), view.cluster.cluster_id, 3)
    assert (proofs.ended, by_rank(grown)[2].host_id) == ([free], free)


async def test_what_lacks_a_member_has_a_proof_end_and_takes_its_host_with_the_next_look(m, proofs):
    view = await running(m, kind=ClusterKind.RAY, argv=(), cpus=ALL)
    (free,) = {"host_a", "host_b", "host_c"} - {one.host_id for one in view.workloads}
    await proofs.begin(free)
    lose(m, by_rank(view)[1].host_id)
    await m.clusters.tick()
    await m.clusters.tick()
    assert (proofs.ended, set(by_rank(await look(m, view)))) == ([free], {0})
    await proofs.end(free)
    await m.clusters.tick()
    assert by_rank(await look(m, view))[1].host_id == free


async def test_without_proofs_a_refusal_is_one(m, proofs):
    m.tests.proofs = None
    await proofs.begin(HOST)
    with pytest.raises(Refused) as refused:
        await m.create(principal(OWNER), host_id=HOST, cpus=ALL)
    assert "too few CPUs (3 free, you ask for 4)" in str(refused.value.refusal.reasons)


# --- the decision alone ---------------------------------------------------------------------------------------------


def slot(holder, state, **more):
    return Slot(SlotId("slot"), HOST, "cpu", None, state=state, holder=holder, tier="cpu/C", changed_at_ns=100, **more)


def work(cluster_id):
    grant = SlotGrant(SlotId("slot"), 1, NO_GPU)
    return Workload(WorkloadId(f"of {cluster_id}"), cluster_id, HOST, "a", "process", "", (grant,), 1, Bytes(1), 0)


@pytest.mark.parametrize("state", [one for one in SlotState if one not in (SlotState.FREE, SlotState.FAULTED)])
def test_what_a_proof_holds_is_free_once_it_has_ended(state):
    slots, held = yielding.vacated((slot(PROOF, state),), (work(PROOF),), {PROOF}, 100)
    assert (slots, held) == ((slot(None, SlotState.FREE),), ())
    assert slots[0].is_offered


def test_what_somebody_else_holds_stays_held():
    before = (slot(RENTED, SlotState.STOPPING),), (work(RENTED),)
    assert yielding.vacated(*before, {PROOF}, 100) == before


def test_what_is_out_of_order_or_not_offered_stays_so():
    faulted, closed = slot(PROOF, SlotState.FAULTED), slot(PROOF, SlotState.RUNNING, unavailable="why")
    (one, other), _ = yielding.vacated((faulted, closed), (), {PROOF}, 100)
    assert one == replace(faulted, holder=None) and not one.is_offered
    assert other == replace(closed, holder=None, state=SlotState.FREE) and not other.is_offered


@pytest.mark.parametrize("state", [SlotState.STOPPING, SlotState.SCRUBBING])
def test_on_what_a_host_does_not_end_nobody_counts(state):
    before = (slot(PROOF, state),), (work(PROOF),)
    assert yielding.vacated(*before, {PROOF}, 100 + yielding.LEAVING_NS) == before
    assert yielding.vacated(*before, {PROOF}, 99 + yielding.LEAVING_NS)[1] == ()
