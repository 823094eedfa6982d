"""A machine that may wait is queued where there is no place, placed when its turn comes, and ends in good order."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.clusters.test_nominations import over
from tests.unit.clusters.test_queue_feed import register
from tests.unit.clusters.test_spending import limit
from tests.unit.clusters.world import KEY, OWNER, STRANGER, Market, market_world, principal
from windrow_master.clusters.model import ClusterPhase, ClusterRequest
from windrow_master.clusters.needs import Refused
from windrow_master.clusters.waiting import WAITING_MAX
from windrow_master.fleet.states import AdminEvent
from windrow_master.queue.ports import NOT_OPEN
from windrow_master.queue.ports import Refused as NotNow
from windrow_master.queue.quota import NodeLevel, Quota, QuotaItem
from windrow_master.queue.repository import QuotaRepository, RuleRepository
from windrow_master.queue.shares import WHOLE, Rule
from windrow_master.secrets.model import SecretKind
from windrow_master.secrets.service import SecretService
from windrow_master.store.model import OperationState
from windrow_proto.errors import Conflict, IdempotencyMismatch, InvalidInput, NoCapacity, QuotaExceeded, TooMany
from windrow_proto.ids import HostId
from windrow_proto.model import CommandKind, CommandPhase, WorkloadPhase
from windrow_proto.sealed import RegistryLogin
from windrow_proto.units import DAY, HOUR, MINUTE, SECOND

GPU = HostId("host_gpu")
FILLS: dict[str, Any] = {"image": "busybox", "gpus": 1}
WAITS: dict[str, Any] = {**FILLS, "wait_ns": 2 * HOUR}


@pytest.fixture
def m(tmp_path: Path) -> Iterator[Market]:
    """A market with one card, whose renters are in the tree of shares."""
    with market_world(tmp_path) as made:
        made.join(GPU, gpus=1)
        for account in (OWNER, STRANGER):
            register(made, account, None)
        yield made


async def ordered(m: Market, key: str | None = None, who=None, **request: Any):
    return await m.clusters.create(who or principal(), ClusterRequest(**{"argv": ("true",), **request}), key)


async def look(m: Market, after_ns: int = 2 * SECOND) -> None:
    m.clock.advance(after_ns)
    await m.queue.tick()
    await m.clusters.tick()


def state_of(m: Market, operation):
    return m.read(lambda uow: uow.operations.get(operation.id))


async def test_without_a_word_of_waiting_it_is_refused_as_ever(m: Market):
    await m.create(**FILLS)
    with pytest.raises(Refused):
        await m.create(**FILLS)


async def test_what_fits_starts_at_once_although_it_might_wait(m: Market):
    view = await m.create(**WAITS)
    assert (view.cluster.phase, len(m.queue)) == (ClusterPhase.CREATING, 0)


async def test_what_finds_no_place_is_queued_without_a_rental_and_starts_when_its_turn_comes(m: Market):
    first = await m.create(**FILLS)
    before = m.balance()
    operation, view = await ordered(m, **WAITS, name="lab", env={"A": "b"})
    assert (view.cluster.phase, view.workloads, view.cluster.price_per_hour) == (ClusterPhase.QUEUED, (), 0)
    assert m.balance() == before
    await look(m)
    waiting = await m.cluster(view.cluster.cluster_id)
    assert (waiting.phase, waiting.reason) == (ClusterPhase.QUEUED, view.cluster.reason)
    assert state_of(m, operation).state is OperationState.RUNNING
    assert m.queue.standing(waiting.cluster_id).place == 1
    await over(m, first)
    await look(m)
    found = await m.clusters.get(principal(), waiting.cluster_id)
    assert (found.cluster.phase, [one.host_id for one in found.workloads]) == (ClusterPhase.CREATING, [GPU])
    assert (len(m.queue), m.rental(waiting.cluster_id).held > 0) == (0, True)
    spec = m.spec(GPU)
    assert spec.env["A"] == "b"
    m.status(CommandKind.CREATE, CommandPhase.SUCCEEDED, GPU)
    m.report(spec, WorkloadPhase.RUNNING, GPU)
    assert (await m.cluster(waiting.cluster_id)).phase is ClusterPhase.RUNNING
    assert state_of(m, operation).state is OperationState.SUCCEEDED
    kinds = [one for one in m.events(waiting.cluster_id) if one.startswith("cluster.")]
    assert kinds[::-1][:3] == ["cluster.queued", "cluster.creating", "cluster.running"]


async def test_those_that_wait_start_in_the_order_in_which_they_came_and_nobody_passes_them(m: Market):
    first = await m.create(**FILLS)
    waiting = []
    for _ in range(2):
        waiting.append(await m.create(**WAITS))
        await look(m)
    await over(m, first)
    late = await m.create(**WAITS)
    assert late.cluster.phase is ClusterPhase.QUEUED
    await look(m)
    phases = [(await m.cluster(one.cluster.cluster_id)).phase for one in (*waiting, late)]
    assert phases == [ClusterPhase.CREATING, ClusterPhase.QUEUED, ClusterPhase.QUEUED]


async def test_after_a_restart_it_waits_as_before(m: Market):
    first = await m.create(**FILLS)
    operation, view = await ordered(m, "key", **WAITS)
    await look(m)
    m.wired(m.store, m.clock)
    await look(m)
    assert len(m.queue) == 0, "tick has just listed what waits"
    await look(m)
    assert len(m.queue) == 1
    await over(m, first)
    again, same = await ordered(m, "key", **WAITS)
    assert (again.id, same.cluster.cluster_id) == (operation.id, view.cluster.cluster_id)
    await look(m)
    assert (await m.cluster(view.cluster.cluster_id)).phase is ClusterPhase.CREATING


async def test_its_key_answers_with_the_same_machine_and_refuses_another_request(m: Market):
    await m.create(**FILLS)
    operation, view = await ordered(m, "key", **WAITS)
    again, same = await ordered(m, "key", **WAITS)
    assert (again.id, same.cluster.cluster_id) == (operation.id, view.cluster.cluster_id)
    with pytest.raises(IdempotencyMismatch):
        await ordered(m, "key", **WAITS, cpus=2)


async def test_when_its_wait_is_over_it_fails_and_says_so(m: Market):
    await m.create(**FILLS)
    operation, view = await ordered(m, **WAITS)
    await look(m)
    await look(m, 2 * HOUR - MINUTE)
    assert (await m.cluster(view.cluster.cluster_id)).phase is ClusterPhase.QUEUED
    await look(m, MINUTE)
    cluster, done = await m.cluster(view.cluster.cluster_id), state_of(m, operation)
    assert (cluster.phase, done.state) == (ClusterPhase.FAILED, OperationState.FAILED)
    assert cluster.reason.startswith("It found no place in the 2 h that it might wait. At last: ")
    await look(m)
    assert len(m.queue) == 0


async def test_a_delete_ends_it_and_a_stop_is_refused(m: Market):
    await m.create(**FILLS)
    operation, view = await ordered(m, **WAITS)
    await look(m)
    with pytest.raises(Conflict, match="Queued"):
        await m.clusters.stop(principal(), view.cluster.cluster_id)
    gone, _ = await m.clusters.delete(principal(), view.cluster.cluster_id)
    assert (await m.cluster(view.cluster.cluster_id)).phase is ClusterPhase.DELETED
    assert (state_of(m, gone).state, state_of(m, operation).state) == (OperationState.SUCCEEDED, OperationState.FAILED)
    await look(m)
    assert len(m.queue) == 0


async def test_what_is_larger_than_any_host_is_refused_at_once(m: Market):
    await m.create(**FILLS)
    await m.create(**WAITS)
    for wanted in ({"gpus": 9}, {"region": "moon"}):
        with pytest.raises(Refused) as refused:
            await m.create(**WAITS | wanted)
        assert not refused.value.refusal.is_possible


async def test_a_login_that_is_kept_nowhere_cannot_wait(m: Market):
    asked = ClusterRequest(argv=("true",), **WAITS)
    with pytest.raises(InvalidInput, match="secret"):
        await m.clusters.create(principal(), asked, login=RegistryLogin("name", "password"))


async def test_a_spending_limit_of_its_token_keeps_it_waiting_with_the_reason(m: Market):
    first = await m.create(**FILLS)
    who = replace(principal(), spenders=("token_capped",))
    _, view = await ordered(m, who=who, **WAITS)
    limit(m, "token_capped", max_leases=0)
    await over(m, first)
    await look(m)
    cluster = await m.cluster(view.cluster.cluster_id)
    assert (cluster.phase, "limit" in cluster.reason) == (ClusterPhase.QUEUED, True)


async def test_a_secret_that_is_gone_meanwhile_ends_it(m: Market):
    first = await m.create(**FILLS)
    secrets = SecretService(m.store, KEY)
    await secrets.set(principal(), "TOKEN", SecretKind.TEXT, "x")
    operation, view = await ordered(m, **WAITS, secrets=("TOKEN",))
    await secrets.delete(principal(), "TOKEN")
    await over(m, first)
    await look(m)
    cluster = await m.cluster(view.cluster.cluster_id)
    assert (cluster.phase, "TOKEN" in cluster.reason) == (ClusterPhase.FAILED, True)
    assert state_of(m, operation).state is OperationState.FAILED


async def test_an_account_has_so_many_waiting_machines_at_most(m: Market, monkeypatch):
    await m.create(**FILLS)
    assert WAITING_MAX == 1_000
    monkeypatch.setattr("windrow_master.clusters.waiting.WAITING_MAX", 2)
    for _ in range(2):
        await m.create(**WAITS)
    with pytest.raises(TooMany):
        await m.create(**WAITS)
    assert (await m.create(principal(STRANGER), **WAITS)).cluster.phase is ClusterPhase.QUEUED


async def test_work_that_would_run_into_maintenance_is_not_put_there(m: Market):
    m.decide(AdminEvent.DRAIN, GPU)
    view = await m.create(**WAITS, max_duration_ns=HOUR)
    await look(m)
    assert (await m.cluster(view.cluster.cluster_id)).phase is ClusterPhase.QUEUED
    m.decide(AdminEvent.ACTIVATE, GPU)
    await look(m)
    assert (await m.cluster(view.cluster.cluster_id)).phase is ClusterPhase.CREATING


async def test_everything_of_an_account_ends_with_it_and_what_waits_too(m: Market):
    await m.create(**FILLS)
    view = await m.create(**WAITS)
    m.write(lambda uow: m.clusters.end_all(uow, OWNER, "the project was deleted", "test"))
    assert (await m.cluster(view.cluster.cluster_id)).phase is ClusterPhase.DELETED


async def test_it_says_nothing_of_how_long_starts_take(m: Market):
    first = await m.create(**FILLS)
    await m.create(**WAITS)
    await over(m, first)
    await look(m, HOUR // 2)
    m.status(CommandKind.CREATE, CommandPhase.SUCCEEDED, GPU)
    m.report(m.spec(GPU), WorkloadPhase.RUNNING, GPU)
    assert await m.clusters.starts() == []


async def test_a_wait_is_a_second_at_least_and_a_year_at_most(m: Market):
    for wait_ns in (0, -1, 366 * DAY):
        with pytest.raises(InvalidInput, match="wait_seconds"):
            await m.create(**FILLS, wait_ns=wait_ns)


async def test_what_a_quota_keeps_out_may_wait_until_there_is_room_in_it(m: Market):
    m.join(HostId("host_other"), gpus=1)
    quota = Quota(node_id=OWNER, level=NodeLevel.PROJECT, item=QuotaItem.CLUSTERS, limit=1)
    m.write(lambda uow: uow[QuotaRepository].save(quota))
    first = await m.create(**FILLS)
    with pytest.raises(QuotaExceeded):
        await m.create(**FILLS)
    view = await m.create(**WAITS)
    await look(m)
    assert (await m.cluster(view.cluster.cluster_id)).phase is ClusterPhase.QUEUED
    await over(m, first)
    await look(m)
    assert (await m.cluster(view.cluster.cluster_id)).phase is ClusterPhase.CREATING


def ceiling(m: Market, ppm: int, **more: Any) -> None:
    m.write(lambda uow: uow[RuleRepository].save(Rule(node_id=OWNER, ceiling=ppm, **more)))


@pytest.mark.parametrize("rule", [{"ppm": 500_000}, {"ppm": WHOLE, "guarantee": 500_000, "is_borrowing": False}])
async def test_nothing_passes_the_ceiling_of_its_share_by_not_waiting(m: Market, rule: dict[str, Any]):
    m.join(HostId("host_other"), gpus=1)
    ceiling(m, **rule)
    await look(m)
    first = await m.create(**FILLS)
    said = "Ceiling of the share of the project account_owner: 50 %, held 50 %, asked 50 %. An admin of"
    with pytest.raises(QuotaExceeded, match=said):
        await m.create(**FILLS)
    view = await m.create(**WAITS)
    await look(m)
    assert (await m.cluster(view.cluster.cluster_id)).phase is ClusterPhase.QUEUED
    await m.create(principal(STRANGER), **FILLS)
    await over(m, first)
    await look(m)
    assert (await m.cluster(view.cluster.cluster_id)).phase is ClusterPhase.CREATING


async def test_no_host_is_kept_for_what_a_quota_keeps_out(m: Market):
    other = HostId("host_other")
    m.join(other, gpus=1)
    quota = Quota(node_id=OWNER, level=NodeLevel.PROJECT, item=QuotaItem.GPUS, limit=1000)
    m.write(lambda uow: uow[QuotaRepository].save(quota))
    await m.create(**FILLS)
    theirs = await m.create(principal(STRANGER), **FILLS, max_duration_ns=2 * HOUR)
    await m.create(**WAITS)
    await look(m)
    assert not m.queue.profile.reservations
    view = await m.create(principal(STRANGER), **WAITS)
    await over(m, theirs)
    await look(m)
    assert (await m.clusters.get(principal(STRANGER), view.cluster.cluster_id)).cluster.phase is ClusterPhase.CREATING


async def test_of_hosts_that_are_kept_nobody_is_told_that_they_have_not_what_it_asks_for(m: Market):
    first = await m.create(**FILLS)
    view = await m.create(**WAITS)
    await look(m)
    await over(m, first)
    entry = m.queue.queue.entry(view.cluster.cluster_id)
    answer = await m.clusters.waiting.place(entry, frozenset({GPU}))
    assert isinstance(answer, NotNow)
    said = f"{NOT_OPEN} Besides, 1 host is kept for work that comes first, or for maintenance."
    assert (answer.said, answer.is_full) == (said, True)


async def test_what_does_not_wait_gets_no_host_that_is_kept_for_what_does(m: Market):
    other = HostId("host_other")
    first = await m.create(**FILLS, max_duration_ns=HOUR)
    m.join(other, gpus=1)
    second = await m.create(principal(STRANGER), **FILLS, max_duration_ns=2 * HOUR)
    waits = await m.create(**WAITS)
    await look(m)
    assert m.queue.profile.reservations[waits.cluster.cluster_id].places[0][0] == GPU
    await over(m, first)
    with pytest.raises(NoCapacity):
        await m.create(principal(STRANGER), **FILLS)
    await over(m, second)
    assert (await m.create(principal(STRANGER), **FILLS)).workloads[0].host_id == other
    await look(m)
    assert (await m.cluster(waits.cluster.cluster_id)).phase is ClusterPhase.CREATING
    m.join(HostId("host_third"), gpus=1)
    assert (await m.create(principal(STRANGER), **FILLS)).cluster.phase is ClusterPhase.CREATING


async def test_where_all_hosts_are_kept_for_what_waits_it_says_so_and_how_to_wait(m: Market):
    first = await m.create(**FILLS, max_duration_ns=HOUR)
    await m.create(**WAITS)
    await look(m)
    await over(m, first)
    with pytest.raises(NoCapacity, match=r" 1 host is kept for work that comes first, .* your turn: --wait"):
        await m.create(principal(STRANGER), **FILLS)
