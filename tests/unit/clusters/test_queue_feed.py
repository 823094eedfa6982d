"""The queue's feed: hosts, what runs on them and whose it is, as the rows say it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.wired import answers
from tests.unit.clusters.test_nominations import over
from tests.unit.clusters.test_stopping import runs_again, start, stopped
from tests.unit.clusters.world import HOST, OWNER, STRANGER, Market, market_world, principal
from windrow_master.clusters import queue_feed
from windrow_master.clusters.entries import entry_of
from windrow_master.clusters.messages import EntriesOf, HostLimit, HostLimits
from windrow_master.clusters.model import ClusterRequest
from windrow_master.clusters.queue_feed import CLOSED, TERMS_EVERY_NS, QueueFeed
from windrow_master.clusters.snapshot import Placer
from windrow_master.fleet.availability import UNVERIFIED
from windrow_master.fleet.repository import SlotRepository
from windrow_master.fleet.states import AdminEvent, LinkEvent, SlotState
from windrow_master.identity.model import Account, Role
from windrow_master.identity.people import Organisation, OrganisationId
from windrow_master.identity.people_repository import OrganisationRepository
from windrow_master.identity.repository import AccountRepository
from windrow_master.market.model import PROOF_ACCOUNT
from windrow_master.queue.model import Entry
from windrow_master.queue.ports import HostNews, News
from windrow_master.queue.shares import ROOT, Node
from windrow_proto.ids import AccountId, HostId
from windrow_proto.units import DAY, MINUTE, SECOND, Microcents

GPU = HostId("host_gpu")
ASKED: dict[str, Any] = {"image": "busybox", "gpus": 1}


def feed_of(m: Market) -> QueueFeed:
    return QueueFeed(m.store, m.clock, m.fleet, m.market, Placer(m.fleet, m.market))


async def seen(feed: QueueFeed) -> News:
    news = await feed.news()
    assert news is not None
    return news


def by_id(news: News) -> dict[str, HostNews]:
    return {one.host.host_id: one for one in news.hosts}


def asked(account: AccountId = OWNER, **more: Any) -> Entry:
    request = ClusterRequest(**{"argv": ("true",), **ASKED, **more})
    return entry_of(request, account, "cluster_waits", 0, tier_costs={})


def register(m: Market, account: AccountId, organisation: str | None, **more: Any) -> None:
    def change(uow):
        if organisation is not None and uow[OrganisationRepository].get(OrganisationId(organisation)) is None:
            uow[OrganisationRepository].add(Organisation(OrganisationId(organisation), organisation, uow.now_wall_ns))
        made = Account(account, str(account), frozenset({Role.RENTER}), uow.now_wall_ns, organisation_id=organisation)
        uow[AccountRepository].add(replace(made, **more))

    m.write(change)


async def test_the_first_news_are_of_all_hosts_and_the_next_of_what_was_touched(tmp_path: Path):
    with market_world(tmp_path) as m:
        feed = feed_of(m)
        m.join(GPU, gpus=2)
        first = await seen(feed)
        assert by_id(first).keys() == {HOST, GPU}
        host = by_id(first)[GPU].host
        assert (host.cards, host.cpus, host.memory) == (2, 4_000, 16 * 1024)
        assert first.capacity == (2_000 * feed.tier_costs()["h100-pcie/C"] // 1_000, 8_000, 32 * 1024)
        assert await feed.news() is None
        view = await m.create(**ASKED)
        (one,) = (await seen(feed)).hosts
        assert (one.host, [run.entry.entry_id for run in one.runs]) == (host, [view.cluster.cluster_id])
        assert (one.runs[0].cards, one.runs[0].entry.need.cards, one.runs[0].entry.leaf) == ((0,), 1, OWNER)
        await over(m, view)
        assert by_id(await seen(feed))[GPU].runs == ()


async def test_a_card_that_was_faulty_and_is_not_verified_since_is_no_card(tmp_path: Path):
    with market_world(tmp_path) as m:
        m.join(GPU, gpus=2)
        (first, _) = (one for one in m.read(lambda uow: uow[SlotRepository].of_host(GPU)) if one.gpu_uuid)
        m.write(lambda uow: uow[SlotRepository].swap(first, replace(first, state=SlotState.FAULTED)))
        assert by_id(await seen(feed_of(m)))[GPU].host.cards == 1
        refused = m.clusters.plan(principal(), ClusterRequest(argv=("true",), image="busybox", gpus=2))
        assert f"unavailable: {UNVERIFIED}" in str(await refused)


async def test_a_cluster_that_a_job_made_is_the_job_until_it_ends(tmp_path: Path):
    with market_world(tmp_path) as m:
        feed = feed_of(m)
        m.join(GPU, gpus=1)
        job = replace(asked(), entry_id="job_1")
        answers(m.store, EntriesOf, lambda uow, it: {one.cluster_id: job for one in it.clusters})
        view = await m.create(**ASKED)
        assert by_id(await seen(feed))[GPU].runs[0].entry is job
        await m.clusters.delete(principal(), view.cluster.cluster_id)
        assert by_id(await seen(feed))[GPU].runs[0].entry.entry_id == view.cluster.cluster_id


async def test_test_rentals_of_the_master_hold_nothing(tmp_path: Path):
    with market_world(tmp_path) as m:
        feed = feed_of(m)
        m.join(GPU, gpus=1)
        m.write(lambda uow: m.market.open_account(uow, PROOF_ACCOUNT))
        request = ClusterRequest(argv=("true",), **ASKED)
        await m.clusters.create(principal(PROOF_ACCOUNT), request, is_proof=True)
        news = by_id(await seen(feed))[GPU]
        assert (news.host.cards, news.runs) == (1, ())


async def test_a_host_that_takes_no_work_is_gone_and_its_work_still_counts(tmp_path: Path):
    with market_world(tmp_path) as m:
        feed = feed_of(m)
        m.join(GPU, gpus=1)
        whole = (await seen(feed)).capacity
        view = await m.create(**ASKED)
        m.decide(AdminEvent.DRAIN, GPU)
        news = await seen(feed)
        one = by_id(news)[GPU]
        assert (one.host.pool, one.host.cpus, [run.entry.leaf for run in one.runs]) == (CLOSED, 0, [OWNER])
        assert news.capacity == whole
        await over(m, view)
        assert (await seen(feed)).gone == [GPU]
        m.decide(AdminEvent.ACTIVATE, GPU)
        back = await seen(feed)
        assert (by_id(back)[GPU].host.cards, back.capacity) == (1, whole)


async def test_a_host_that_is_back_counts_once_its_link_has_held_although_nothing_touches_it(tmp_path: Path):
    with market_world(tmp_path) as m:
        feed = feed_of(m)
        await seen(feed)
        m.link(LinkEvent.SILENT)
        m.link(LinkEvent.SILENT)
        m.link(LinkEvent.HEARD)
        assert (await seen(feed)).gone == [HOST]
        m.clock.advance(2 * MINUTE)
        assert feed.due_ns() <= m.clock.monotonic_ns()
        assert by_id(await seen(feed))[HOST].host.cpus == 4_000


async def test_a_limit_that_changes_is_seen_without_a_touch(tmp_path: Path):
    with market_world(tmp_path) as m:
        feed = feed_of(m)
        assert by_id(await seen(feed))[HOST].closes_ns is None
        answers(m.store, HostLimits, lambda uow, it: {HOST: HostLimit(closes_at_ns=77)})
        assert await feed.news() is None
        m.clock.advance(TERMS_EVERY_NS)
        assert by_id(await seen(feed))[HOST].closes_ns == 77


async def test_what_was_touched_is_read_again_when_a_read_fails(tmp_path: Path, monkeypatch):
    with market_world(tmp_path) as m:
        feed = feed_of(m)
        await seen(feed)
        m.join(GPU, gpus=1)

        async def broken(look):
            raise OSError("the disk is gone")

        with monkeypatch.context() as patched:
            patched.setattr(m.store, "read", broken)
            with pytest.raises(OSError, match="gone"):
                await feed.news()
        assert by_id(await seen(feed)).keys() == {GPU}


async def test_a_project_is_below_its_organisation_and_a_deleted_one_is_nowhere(tmp_path: Path):
    with market_world(tmp_path) as m:
        feed = feed_of(m)
        register(m, OWNER, "org_a")
        register(m, STRANGER, None)
        register(m, AccountId("account_gone"), "org_b", deleted_at_ns=1)
        assert await feed.nodes([OWNER, STRANGER, "account_gone", "account_never"]) == [
            Node(node_id="org_a", parent=ROOT),
            Node(node_id=OWNER, parent="org_a"),
            Node(node_id=STRANGER, parent=ROOT),
        ]
        m.join(GPU, gpus=1)
        await m.create(**ASKED)
        assert [one.node_id for one in (await seen(feed)).nodes] == ["org_a", OWNER]


async def test_what_was_had_and_given_back_is_charged_after_a_start(tmp_path: Path):
    with market_world(tmp_path) as m:
        feed = feed_of(m)
        m.join(GPU, gpus=1)
        began_ns = m.clock.wall_ns()
        view = await m.create(**ASKED, cpus=2)
        assert await feed.past(0) == []
        m.clock.advance(MINUTE)
        await over(m, view)
        (one,) = await feed.past(began_ns)
        card = feed.tier_costs()["h100-pcie/C"]
        assert (one.leaf, one.cost, one.from_ns, one.to_ns) == (OWNER, (card, 2_000, 0), began_ns, began_ns + MINUTE)
        assert await feed.past(m.clock.wall_ns()) == []


async def test_each_run_of_what_was_stopped_is_charged_once_after_a_start_and_its_rest_never(tmp_path: Path):
    with market_world(tmp_path) as m:
        feed, began_ns = feed_of(m), m.clock.wall_ns()
        cluster_id = await stopped(m, 600)
        m.clock.advance(6 * DAY)
        await start(m, cluster_id)
        spec = await runs_again(m, cluster_id)
        (one,) = await feed.past(began_ns)
        assert (one.from_ns, one.to_ns) == (began_ns, began_ns + 10 * MINUTE)
        await m.ended(cluster_id, spec, 2, 30)
        took = sorted(one.to_ns - one.from_ns for one in await feed.past(began_ns))
        assert took == [30 * SECOND, 10 * MINUTE]


async def test_a_request_waits_for_the_pools_that_suit_it(tmp_path: Path):
    with market_world(tmp_path) as m:
        feed = feed_of(m)
        m.join(GPU, gpus=2)
        m.join(HostId("host_more"), gpus=8)
        m.join(HostId("host_simulated"), gpus=1, simulated=True)
        news = by_id(await seen(feed))
        real, other, simulated = (news[one].host.pool for one in (GPU, HostId("host_more"), HostId("host_simulated")))
        assert (real, other, simulated) == ("h100-pcie/C", "h100-pcie/C", "h100-pcie/C #2")
        assert feed.need(asked()).pools == {real}
        assert feed.need(asked(gpu_model="H100", gpus=8)).pools == {real}
        assert feed.need(asked(simulated=True, image=None)).pools == {simulated}
        assert feed.need(asked(gpus=0)).pools == {real, news[HOST].host.pool}
        assert feed.need(asked(tier="a100")).pools == {"a100"}
        assert feed.need(asked(max_price_per_hour=Microcents(1))).pools == {"a suitable kind"}
        assert feed.need(asked(region="moon")).pools == {"moon"}
        assert feed.need(asked(host_id=GPU)).only == {GPU}
        assert feed.need(asked(host_id=GPU)).pools == frozenset()


async def test_requests_that_differ_in_amounts_are_fitted_to_the_kinds_of_hosts_once(tmp_path: Path):
    with market_world(tmp_path) as m:
        feed = feed_of(m)
        m.join(GPU, gpus=8)
        await seen(feed)
        amounts: list[dict[str, Any]] = [
            {"gpus": gpus, "cpus": gpus + 1, "memory_bytes": gpus << 30} for gpus in range(1, 9)
        ]
        assert len({feed.need(asked(**one)).pools for one in amounts}) == len(feed._pools._shapes) == 1
        (price,) = {one.price_per_hour for kind in feed._pools._kinds for one in kind.slots if not one.is_gpu}
        for cpus in (1, 3):
            dear = feed.need(asked(gpus=0, cpus=cpus, max_price_per_hour=Microcents(cpus * price)))
            cheap = feed.need(asked(gpus=0, cpus=cpus, max_price_per_hour=Microcents(cpus * price - 1)))
            assert len(dear.pools) == 2 and cheap.pools == {"a suitable kind"}


async def test_a_process_runs_on_hosts_of_its_owner_only(tmp_path: Path):
    with market_world(tmp_path) as m:
        feed = feed_of(m)
        m.join(GPU, gpus=1, runtimes=("process",))
        pool = by_id(await seen(feed))[GPU].host.pool
        assert feed.need(asked(image=None)).pools == {pool}
        assert feed.need(asked(STRANGER, image=None)).pools == {"a suitable kind"}


async def test_after_too_many_kinds_all_hosts_are_read_anew_and_keep_no_old_name(tmp_path: Path, monkeypatch):
    with market_world(tmp_path) as m:
        feed = feed_of(m)
        m.join(HostId("host_simulated"), gpus=1, simulated=True)
        m.join(GPU, gpus=1)
        await seen(feed)
        monkeypatch.setattr(queue_feed, "POOLS_MAX", 1)
        m.join(HostId("host_more"), gpus=2)
        news = await seen(feed)
        assert by_id(news).keys() == {HOST, HostId("host_simulated"), GPU, HostId("host_more")}
        assert news.has_new_pools
        assert feed.need(asked()).pools == {by_id(news)[GPU].host.pool}


async def test_a_new_kind_of_host_is_told(tmp_path: Path):
    with market_world(tmp_path) as m:
        feed = feed_of(m)
        assert (await seen(feed)).has_new_pools
        entry = asked()
        assert feed.need(entry).pools == {"a suitable kind"}
        m.join(GPU, gpus=1)
        assert (await seen(feed)).has_new_pools
        assert feed.need(entry).pools == {"h100-pcie/C"}
        m.join(HostId("host_alike"), gpus=3)
        assert not (await seen(feed)).has_new_pools
