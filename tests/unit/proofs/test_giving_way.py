"""A renter is never refused because of the Master's own test rental: it ends, and its slot is waited for."""

import asyncio

import pytest

from tests.unit.clusters.world import HOST, OWNER, principal
from tests.unit.proofs.world import commanded, ended, host, proved, proving, started
from windrow_master.acceptance import schedule
from windrow_master.acceptance.under_way import GIVE_WAY_NS
from windrow_master.clusters.model import ClusterPhase, ClusterRequest
from windrow_master.clusters.needs import SOON_NS
from windrow_master.clusters.yielding import LEAVING_NS
from windrow_master.fleet.model import ProofOutcome
from windrow_proto.errors import Conflict, NoCapacity
from windrow_proto.model import CommandKind

ALL = 4
"""Processors of the host: with fewer a request fits beside a proof of its processors."""
ASKED = ClusterRequest(argv=("true",), cpus=ALL)


@pytest.fixture
def asked_to_end(monkeypatch):
    """Tells when a request begins to wait for proofs: `asked_to_end(proofs)` is set then."""

    def watch(proofs):
        waits, give_way = asyncio.Event(), proofs._running.give_way

        async def told(hosts):
            waits.set()
            return await give_way(hosts)

        monkeypatch.setattr(proofs._running, "give_way", told)
        return waits

    return watch


async def test_a_renter_who_finds_no_room_comes_first(m):
    m.inside.said = b""
    async with proving(m) as proofs, asyncio.TaskGroup() as group:
        spec = await started(m)
        renting = group.create_task(m.create(principal(OWNER), cpus=ALL))
        await ended(m, spec)
        view = await renting
        one = await proved(m, proofs)
        assert (one.outcome, one.words) == (ProofOutcome.UNFINISHED, "Not finished: it gave way to a renter.")
        assert view.cluster.phase is ClusterPhase.CREATING
        with pytest.raises(Conflict, match="a part of it is rented"):
            m.clock.advance(schedule.ASKED_EVERY_NS)
            await proofs.ask(HOST, OWNER, "account/account_owner")
    assert host(m).proof_due_ns - one.ended_at_ns == schedule.IN_USE_AGAIN_NS


async def test_a_request_that_it_does_not_stand_in_the_way_of_ends_no_proof(m):
    m.inside.said = b""
    async with proving(m) as proofs:
        spec = await started(m)
        for asked in ({"gpus": 1}, {"host_id": "host_elsewhere"}, {"cpus": 5}, {"max_price_per_hour": 1}):
            with pytest.raises(NoCapacity) as refused:
                await m.create(principal(OWNER), **asked)
            assert refused.value.retry_after_ns == 0
        assert (await m.cluster(spec.cluster_id)).phase is ClusterPhase.RUNNING
        assert (await proofs.of_host(HOST))[0].ended_at_ns is None


async def test_a_plan_counts_on_what_a_running_proof_holds_and_ends_nothing(m):
    m.inside.said = b""
    async with proving(m) as proofs:
        spec = await started(m)
        preview = await m.clusters.plan(principal(OWNER), ASKED)
        assert (len(preview.members), preview.refusal, preview.proofs_on) == (1, None, (HOST,))
        assert (await m.cluster(spec.cluster_id)).phase is ClusterPhase.RUNNING
        assert (await proofs.of_host(HOST))[0].ended_at_ns is None


async def test_a_plan_counts_on_the_slot_of_a_proof_that_is_being_cleared_up(m):
    async with proving(m) as proofs:
        spec = await started(m)
        await commanded(m, CommandKind.DELETE)
        assert set(m.slots().values()) == {"stopping"}
        preview = await m.clusters.plan(principal(OWNER), ASKED)
        await ended(m, spec)
        await proved(m, proofs)
    assert (len(preview.members), preview.refusal) == (1, None)


async def test_a_proof_that_has_seen_all_and_is_being_cleared_up_is_waited_for_and_counts(m, asked_to_end):
    async with proving(m) as proofs, asyncio.TaskGroup() as group:
        waits, spec = asked_to_end(proofs), await started(m)
        await commanded(m, CommandKind.DELETE)
        renting = group.create_task(m.create(principal(OWNER), cpus=ALL))
        await waits.wait()
        await ended(m, spec)
        view, one = await renting, await proved(m, proofs)
    assert (view.cluster.phase, one.outcome) == (ClusterPhase.CREATING, ProofOutcome.PASSED)


async def test_a_proof_that_is_over_between_the_refusal_and_the_waiting_refuses_nobody(m, monkeypatch):
    async with proving(m) as proofs:
        spec = await started(m)
        await commanded(m, CommandKind.DELETE)
        give_way = m.tests.proofs.give_way

        async def late(hosts):
            await ended(m, spec)
            await proved(m, proofs)
            return await give_way(hosts)

        monkeypatch.setattr(m.tests.proofs, "give_way", late)
        view = await m.create(principal(OWNER), cpus=ALL)
    assert view.cluster.phase is ClusterPhase.CREATING


async def test_what_a_master_before_this_one_had_rented_is_waited_for(m, asked_to_end):
    async with proving(m):
        spec = await started(m)
    async with proving(m, is_automatic=False) as proofs, asyncio.TaskGroup() as group:
        waits = asked_to_end(proofs)
        await proved(m, proofs)
        renting = group.create_task(m.create(principal(OWNER), cpus=ALL))
        await waits.wait()
        await ended(m, spec)
        view = await renting
    assert view.cluster.phase is ClusterPhase.CREATING


async def test_a_host_that_does_not_end_a_proof_in_time_refuses_for_now_and_later_for_good(m, asked_to_end):
    async with proving(m) as proofs:
        waits = asked_to_end(proofs)
        await started(m)
        await commanded(m, CommandKind.DELETE)
        renting = asyncio.gather(m.create(principal(OWNER), cpus=ALL), return_exceptions=True)
        await waits.wait()
        m.clock.advance(GIVE_WAY_NS)
        (refused,) = await renting
        assert isinstance(refused, NoCapacity)
        assert (refused.code, refused.retry_after_ns) == ("no_capacity", SOON_NS)
        assert "too few CPUs (3 free, you ask for 4)" in refused.detail

        waits.clear()
        m.clock.advance(LEAVING_NS)
        with pytest.raises(NoCapacity) as later:
            await m.create(principal(OWNER), cpus=ALL)
        assert (later.value.retry_after_ns, waits.is_set()) == (0, False), "nobody waits for it any more"
        assert not (await m.clusters.plan(principal(OWNER), ASKED)).members


async def test_processors_that_a_proof_of_gpus_needs_are_waited_for_as_well(m, asked_to_end):
    m.join(gpus=1)
    async with proving(m) as proofs, asyncio.TaskGroup() as group:
        waits, spec = asked_to_end(proofs), await started(m)
        renting = group.create_task(m.create(principal(OWNER), cpus=4))
        await waits.wait()
        await ended(m, spec)
        assert (await renting).cluster.phase is ClusterPhase.CREATING


async def test_what_was_stopped_is_started_again_where_a_proof_runs(m, asked_to_end):
    async with proving(m, is_automatic=False) as proofs, asyncio.TaskGroup() as group:
        waits = asked_to_end(proofs)
        cluster_id, work = await m.running(cpus=ALL)
        await m.clusters.stop(principal(OWNER), cluster_id)
        await ended(m, work)
        await proofs.ask(HOST, OWNER, "account/account_owner")
        spec = await started(m)
        starting = group.create_task(m.clusters.start(principal(OWNER), cluster_id))
        await waits.wait()
        await ended(m, spec)
        _, view = await starting
    assert view.cluster.phase is ClusterPhase.CREATING
