"""Clusters are placed on hosts that the leader's index nominates; the rows decide, and the index stays as they are."""

import asyncio
import random
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.unit.clusters.world import OTHER, OWNER, STRANGER, Market, market_world, principal
from windrow_master.clusters.model import ClusterKind, ClusterRequest
from windrow_master.clusters.needs import Refused
from windrow_master.clusters.nominations import WHOLE_FLEET, Counts
from windrow_master.clusters.snapshot import Placer
from windrow_master.fleet.states import AdminEvent, LinkEvent
from windrow_master.placement.live import NOMINATED_MAX
from windrow_master.placement.model import Placement
from windrow_master.store import prepared
from windrow_master.store.cache import ANSWERS_MAX, ROWS_MAX, cache_of
from windrow_master.store.store import BATCH_MAX
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict
from windrow_proto.ids import HostId
from windrow_proto.model import CommandKind, CommandPhase, WorkloadPhase
from windrow_proto.units import MINUTE, SECOND, Microcents

ASKED: dict[str, Any] = {"image": "busybox", "gpus": 1}


async def joined(m: Market, count: int, gpus: int = 1) -> list[HostId]:
    """So many real hosts with Docker more, of which the Master has read."""
    hosts = [HostId(f"host_{number:04d}") for number in range(count)]
    for host_id in hosts:
        m.join(host_id, gpus=gpus, runtimes=("docker",))
    await m.fleet.refresh()
    return hosts


def counts(m: Market) -> Counts:
    return m.clusters.nominations.counts


def differing(m: Market) -> list[HostId]:
    return m.read(m.clusters.nominations.differing)


async def over(m: Market, view, workload=None) -> None:
    """End a cluster, as its host does it, or one of its workloads."""
    if workload is None:
        (workload,) = view.workloads
    with suppress(Conflict):
        await m.clusters.delete(principal(view.cluster.account_id), view.cluster.cluster_id)
    m.report(m.spec_of(workload.workload_id), WorkloadPhase.GONE, workload.host_id)
    m.status(CommandKind.DELETE, CommandPhase.SUCCEEDED, workload.host_id)


async def test_a_cluster_runs_on_a_nominated_host_and_the_record_says_how_it_was_found(tmp_path: Path):
    with market_world(tmp_path) as m:
        await joined(m, 30)
        view = await m.create(**ASKED)
        assert counts(m) == Counts(nominated=1, rebuilt=1)
        _, decision = await m.clusters.explain(principal(), view.cluster.cluster_id)
        assert decision.chosen is not None
        assert decision.chosen.host_id == view.workloads[0].host_id
        assert len(decision.verdicts) == NOMINATED_MAX
        assert decision.unkept == {"passed over: the index compared 30 of 31 hosts and named 4": 31 - NOMINATED_MAX}
        assert differing(m) == []


async def test_what_a_creation_reads_and_writes_does_not_grow_with_the_fleet(tmp_path: Path, monkeypatch):
    run, seen = prepared._cursor, list[str]()

    def cursor(connection, text, values, **how):
        seen.append(text)
        return run(connection, text, values, **how)

    monkeypatch.setattr(prepared, "_cursor", cursor)
    with market_world(tmp_path) as m:
        made = []
        for size in (20, 60):
            await joined(m, size)
            await m.create(**ASKED)
            await m.clusters.nominations.fresh()
            seen.clear()
            await m.create(**ASKED)
            made.append(sorted(seen))
        assert made[0] == made[1]
        assert len(made[0]) < 60


def test_what_a_full_commit_reads_ahead_is_remembered_until_its_last_creation_is_made(tmp_path: Path):
    """The hosts have the most slots that a transaction remembers of one host. If it could not remember all of them, it
    would drop everything, and each creation would read its hosts again."""

    def kept(uow: UnitOfWork) -> int:
        m.clusters.read_ahead(uow, [OTHER])
        cache = cache_of(uow.connection)
        assert cache is not None
        return len(cache._answers)

    with market_world(tmp_path) as m:
        m.join(OTHER, gpus=ROWS_MAX - 1, runtimes=("docker",))
        assert ROWS_MAX < m.write(kept) < ANSWERS_MAX // (BATCH_MAX * NOMINATED_MAX)


async def test_a_preview_says_where_the_creation_after_it_runs(tmp_path: Path):
    with market_world(tmp_path) as m:
        await joined(m, 40)
        for _ in range(5):
            preview = await m.clusters.plan(principal(), ClusterRequest(argv=("true",), **ASKED))
            view = await m.create(**ASKED)
            assert [one.host_id for one in preview.members] == [view.workloads[0].host_id]


async def test_requests_at_once_get_every_place_there_is_and_no_place_twice(tmp_path: Path):
    with market_world(tmp_path) as m:
        await joined(m, 30)
        async with asyncio.TaskGroup() as tasks:
            asked = [tasks.create_task(_tried(m)) for _ in range(40)]
        hosts = [one.result() for one in asked if one.result() is not None]
        assert len(hosts) == len(set(hosts)) == 30
        assert differing(m) == []


async def _tried(m: Market) -> HostId | None:
    try:
        return (await m.create(**ASKED)).workloads[0].host_id
    except Refused:
        return None


async def test_an_index_that_is_wrong_costs_a_try_and_is_made_anew(tmp_path: Path):
    with market_world(tmp_path) as m:
        hosts = await joined(m, 48)
        for host_id in hosts[1:]:
            m.decide(AdminEvent.DRAIN, host_id)
        await m.clusters.nominations.fresh()
        for one in m.read(lambda uow: Placer(m.fleet, m.market).candidates(uow, 1, hosts[1:])):
            m.clusters.nominations.live.put(replace(one, admin_state="active"))
        assert (await m.create(**ASKED)).workloads[0].host_id == hosts[0]
        assert (counts(m).missed > 0, counts(m).rebuilt) == (True, 2)
        assert differing(m) == []


async def test_a_host_that_the_index_does_not_have_is_found_all_the_same(tmp_path: Path):
    with market_world(tmp_path) as m:
        hosts = await joined(m, 20)
        await m.clusters.nominations.fresh()
        for host_id in hosts:
            m.clusters.nominations.live.drop(host_id)
        assert (await m.create(**ASKED)).workloads
        assert counts(m) == Counts(whole=1, rebuilt=1)


async def test_what_fits_nowhere_is_refused_in_the_words_of_a_look_at_all_hosts(tmp_path: Path):
    with market_world(tmp_path) as m:
        await joined(m, 20)
        for wanted in ({"gpus": 2}, {"gpu_model": "B200"}, {"max_price_per_hour": Microcents(1)}, {"cpus": 64}):
            asked = ClusterRequest(argv=("true",), **ASKED | wanted)
            whole = m.read(lambda uow, asked=asked: Placer(m.fleet, m.market).place(uow, asked, OWNER))
            with pytest.raises(Refused) as refused:
                await m.create(**ASKED | wanted)
            assert (refused.value.refusal.detail, refused.value.refusal.reasons) == (whole.detail, whole.reasons)
        assert counts(m) == Counts(whole=4, rebuilt=1)


async def test_small_fleets_and_kinds_that_the_index_does_not_know_are_looked_at_as_a_whole(tmp_path: Path):
    with market_world(tmp_path) as m:
        await joined(m, WHOLE_FLEET - 1)
        await m.create(**ASKED)
        assert counts(m) == Counts(whole=1)
        await joined(m, 30)
        await m.create(**ASKED, kind=ClusterKind.GANG, hosts=2)
        assert counts(m) == Counts(whole=2)
        await m.create(**ASKED, host_id=HostId("host_0007"))
        assert counts(m).nominated == 1


async def test_a_price_that_changes_moves_the_choice(tmp_path: Path):
    with market_world(tmp_path) as m:
        m.join(HostId("host_cheap"), gpus=1, runtimes=("docker",), owner=STRANGER)
        await joined(m, 30)
        await m.create(**ASKED)
        ((_, slots),) = m.read(lambda uow: m.fleet.hosts.with_slots(uow, [HostId("host_cheap")]))
        (tier,) = (slot.tier for slot in slots if slot.gpu_uuid is not None)
        await m.market.set_ask(STRANGER, tier, Microcents(1_000), "test")
        m.clock.advance(2 * SECOND)
        assert (await m.create(**ASKED)).workloads[0].host_id == "host_cheap"
        assert differing(m) == []


def disturbed(m: Market, chance: random.Random, hosts: list[HostId]) -> None:
    """Something happens to a host, or time passes."""
    host_id = chance.choice(hosts)
    act = chance.randrange(6)
    with suppress(Conflict):
        if act == 0:
            m.link(LinkEvent.SILENT, host_id)
        elif act == 1:
            m.link(LinkEvent.HEARD, host_id)
        elif act == 2:
            m.decide(chance.choice((AdminEvent.DRAIN, AdminEvent.ACTIVATE)), host_id)
        elif act == 3:
            m.join(host_id, gpus=chance.choice((1, 2, 4)), runtimes=("docker",))
        else:
            m.clock.advance(chance.choice((SECOND, MINUTE)))


async def history(m: Market, operations: int, seed: int) -> int:
    """Random requests, ends and disturbances; returns how many requests found a place. What is refused fits nowhere."""
    chance, living, found = random.Random(seed), [], 0
    hosts = await joined(m, 24, gpus=2)
    for number in range(operations):
        act = chance.random()
        if act < 0.45:
            gpus = chance.choice((0, 1, 1, 2, 4))
            asked: dict[str, Any] = {"image": "busybox", "gpus": gpus, "cpus": chance.choice((1, 2))}
            who = chance.choice((OWNER, STRANGER))
            request = ClusterRequest(argv=("true",), **asked)
            whole = m.read(lambda uow, r=request, who=who: Placer(m.fleet, m.market).place(uow, r, who))
            try:
                living.append(await m.create(principal(who), **asked))
                found += 1
            except Refused:
                assert not isinstance(whole, Placement), (seed, number)
        elif act < 0.8 and living:
            await over(m, living.pop(chance.randrange(len(living))))
        else:
            disturbed(m, chance, hosts)
        if number % 10 == 0 or number == operations - 1:
            assert differing(m) == [], (seed, number)
    return found


async def test_after_random_operations_the_index_equals_one_made_of_the_rows(tmp_path: Path):
    with market_world(tmp_path) as m:
        assert await history(m, 100, seed=1) > 20
        assert counts(m).nominated > 15
        assert counts(m).rebuilt == 1


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_after_20_000_random_operations_the_index_equals_one_made_of_the_rows(tmp_path: Path):
    for seed in range(10):
        with market_world(tmp_path / str(seed)) as m:
            for who in (OWNER, STRANGER):
                m.write(partial(m.market.credit, account_id=who, amount=Microcents(10**13), key="more", actor="test"))
            await history(m, 2_000, seed)
            assert counts(m).rebuilt == 1
