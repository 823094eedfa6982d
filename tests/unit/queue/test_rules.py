"""Shares and quotas over HTTP: who sets whose, what cannot be, what quotas refuse, and what the queue gets."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.unit.identity.people_world import RENTER, Market, ask, people_market
from tests.unit.master_api.described import assert_described
from windrow_master.api.answers import Page
from windrow_master.api.fair_share_routes import FairShareOut
from windrow_master.api.quota_routes import QuotaOut
from windrow_master.clusters import repository as clusters
from windrow_master.fleet.states import LinkEvent
from windrow_master.jobs import repository as jobs
from windrow_master.queue.model import Amounts, Entry, Need, PriorityClass
from windrow_master.queue.order import Queue, Waits
from windrow_master.queue.quota import NodeLevel
from windrow_master.queue.rules import may_use_class, nodes_of
from windrow_master.queue.shares import ROOT, Shares
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import AccountId, HostId
from windrow_proto.model import Inventory
from windrow_proto.units import GIB, MINUTE

JSON = dict[str, Any]
ADMIN = [{"project": "default", "roles": ["admin", "renter"]}]
QUARTER = 250_000
MACHINE = {"argv": ["sleep", "9"], "cpus": 1}


@pytest.fixture
async def market(tmp_path: Path) -> AsyncIterator[Market]:
    async with people_market(tmp_path) as found:
        yield found


async def own(client: httpx2.AsyncClient) -> AccountId:
    return AccountId((await ask(client, "GET", "/me"))["account"]["id"])


async def join_hosts(market: Market, count: int) -> None:
    """Hosts of the first project, which is their renter, too."""
    account, fleet = await own(market.owner), market.opened.fleet

    def join(uow: UnitOfWork, host_id: HostId) -> None:
        fleet.enrol(uow, host_id, host_id.replace("_", "-"), account, False, "test")
        inventory = Inventory(hostname=host_id, cpu_count=4, memory_bytes=16 * GIB, runtimes=("process",))
        fleet.hosts.inventory(uow, host_id, inventory)
        fleet.hosts.link(uow, host_id, LinkEvent.HEARD, uow.now_wall_ns)

    for number in range(count):
        await market.opened.store.write(lambda uow: join(uow, HostId(f"host_{number}")), name="test")  # noqa: B023
    await fleet.refresh()


async def guest_of(market: Market, name: str = "guest") -> httpx2.AsyncClient:
    """The owner of another organisation, with one project of the same name."""
    made = await ask(market.owner, "POST", "/accounts", name=name, roles=["renter"])
    secret = made["link"].partition("=")[2]
    text = (await ask(await market.client(), "POST", "/sign-in", secret=secret))["token"]["token"]
    return await market.client(text)


async def audited(market: Market, prefix: str) -> list[JSON]:
    found = (await ask(market.owner, "GET", "/audit"))["items"]
    return [one for one in found if one["action"].startswith(prefix)]


# --- shares ---


async def test_a_share_is_set_read_and_removed_and_the_audit_log_says_how_it_was(market: Market) -> None:
    none = await market.owner.get("/fair-shares/org:home")
    assert_described(none, FairShareOut)
    assert (none.json()["guarantee_ppm"], none.json()["weight"], none.json()["rank"]) == (0, 1, None)
    put = await market.owner.put("/fair-shares/org:home", json={"guarantee_ppm": QUARTER, "weight": 4})
    assert_described(put, FairShareOut)
    assert (put.json()["level"], put.json()["name"], put.json()["parent_id"]) == ("organisation", "home", ROOT)
    listed = await market.owner.get("/fair-shares")
    assert_described(listed, Page[FairShareOut])
    assert [(one["level"], one["guarantee_ppm"]) for one in listed.json()["items"]] == [
        ("installation", 1_000_000),
        ("organisation", QUARTER),
    ]
    for _ in range(2):
        await ask(market.owner, "DELETE", "/fair-shares/org:home", 204)
    entries = await audited(market, "fair_share.")
    assert [one["fields"].get("guarantee") for one in entries] == [None, "250000 -> 0", "0 -> 250000"]


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("org:guest", {"guarantee_ppm": 800_000}, "guarantee must be at most 75 %, which installation has left"),
        ("project:default", {"guarantee_ppm": 300_000}, "at most 25 %, which the organisation home has left"),
        ("org:home", {"guarantee_ppm": 100_000}, "guarantee must be at least 20 %, which is given on below it"),
        ("org:guest", {"guarantee_ppm": 3, "ceiling_ppm": 2}, "ceiling must be between the guarantee and 100 %"),
        ("installation", {"weight": 2}, "the installation is all of itself"),
    ],
)
async def test_rules_that_do_not_go_together_are_refused_with_names(
    market: Market, path: str, body: JSON, said: str
) -> None:
    await guest_of(market)
    await ask(market.owner, "POST", "/projects", name="lab")
    await ask(market.owner, "PUT", "/fair-shares/org:home", guarantee_ppm=QUARTER)
    await ask(market.owner, "PUT", "/fair-shares/lab", guarantee_ppm=200_000)
    if path == "project:default":
        await ask(market.owner, "DELETE", "/fair-shares/lab", 204)
    refused = await ask(market.owner, "PUT", f"/fair-shares/{path}", 422, **body)
    assert said in refused["detail"]
    await ask(market.owner, "PUT", "/fair-shares/nobody", 404, weight=2)


async def test_operators_set_organisations_and_their_admins_what_is_below(market: Market) -> None:
    guest = await guest_of(market)
    await ask(market.owner, "PUT", "/fair-shares/org:guest", guarantee_ppm=QUARTER)
    assert (await ask(guest, "GET", "/fair-shares/org:guest"))["guarantee_ppm"] == QUARTER
    assert (await ask(guest, "PUT", "/fair-shares/guest", guarantee_ppm=QUARTER, weight=2))["weight"] == 2
    refused = await ask(guest, "PUT", "/fair-shares/org:guest", 403, guarantee_ppm=QUARTER)
    assert refused["detail"] == "Operators set the shares and quotas of the organisation guest."
    assert "grant" in (await ask(guest, "PUT", "/fair-shares/guest", 403, may_use_urgent=True))["detail"]
    for path in ("org:home", "default", "installation"):
        for method in ("GET", "PUT", "DELETE"):
            await ask(guest, method, f"/fair-shares/{path}", 404)
    assert [one["name"] for one in (await ask(guest, "GET", "/fair-shares"))["items"]] == ["guest", "guest"]
    ada = await market.joined("ada@example.org", projects=ADMIN)
    assert (await ask(ada, "GET", "/fair-shares/default"))["name"] == "default"
    await ask(ada, "PUT", "/fair-shares/default", 403, weight=2)
    bob = await market.joined("bob@example.org", role="org_admin")
    assert (await ask(bob, "PUT", "/fair-shares/default", weight=2))["weight"] == 2


async def test_urgent_is_a_grant_to_a_project_or_its_organisation(market: Market) -> None:
    guest = await own(await guest_of(market))

    async def may(priority_class: PriorityClass = PriorityClass.URGENT) -> bool:
        return await market.opened.store.read(lambda uow: may_use_class(uow, guest, priority_class))

    assert await may(PriorityClass.NORMAL) and not await may()
    for path in ("org:guest", "guest"):
        await ask(market.owner, "PUT", f"/fair-shares/{path}", may_use_urgent=True)
        assert await may()
        await ask(market.owner, "DELETE", f"/fair-shares/{path}", 204)
        assert not await may()


async def test_the_tree_of_leaves_comes_from_the_rows_parents_first(market: Market) -> None:
    guest, first = await own(await guest_of(market)), await own(market.owner)
    await ask(market.owner, "PUT", "/fair-shares/org:guest", guarantee_ppm=QUARTER, is_borrowing=False)

    def read(uow: UnitOfWork) -> list[tuple[str, str | None, int]]:
        found = nodes_of(uow, [guest, first, "account_gone", guest])
        return [
            (one.node_id.partition("_")[0], one.parent and one.parent.partition("_")[0], one.guarantee) for one in found
        ]

    assert await market.opened.store.read(read) == [
        ("organisation", ROOT, QUARTER),
        ("account", "organisation", 0),
        ("organisation", ROOT, 0),
        ("account", "organisation", 0),
    ]


async def test_the_queue_hears_of_rules_and_a_moved_project_takes_its_use_along(market: Market) -> None:
    queue, store = market.opened.services.queue, market.opened.store
    guest = await guest_of(market)
    lab = (await ask(market.owner, "POST", "/projects", name="lab"))["id"]
    queue.nodes_changed(await store.read(lambda uow: nodes_of(uow, [lab])))
    await changed(market)
    queue.shares.capacity = Amounts(gpus=4000)
    queue.queue.adopt(Entry(entry_id="run", leaf=lab, cost=Amounts(gpus=1000), need=Need(), submitted_ns=0), 0)
    await ask(market.owner, "PUT", "/fair-shares/lab", weight=7)
    await changed(market)
    shown = await ask(market.owner, "GET", "/fair-shares/lab")
    assert (shown["held_ppm"], shown["weight"], shown["rank"]) == (QUARTER, 7, 1)
    assert queue.shares.standing(lab, 0).node.weight == 7

    await ask(market.owner, "POST", f"/accounts/{lab}/transfer", organisation="guest", reason="test")
    await changed(market)
    assert (await ask(guest, "GET", "/fair-shares/org:guest"))["held_ppm"] == QUARTER
    assert (await ask(market.owner, "GET", "/fair-shares/org:home"))["held_ppm"] == 0
    assert (await ask(guest, "GET", "/fair-shares/lab"))["weight"] == 1, "its old organisation gave it that"
    queue.queue.end("run", 0, None)
    await ask(guest, "DELETE", "/projects/lab", 204)
    await changed(market)
    assert lab not in queue.shares


async def changed(market: Market) -> None:
    """Let the queue take in what it was told."""
    queue = market.opened.services.queue
    changes, queue._changes = queue._changes, []
    for change in changes:
        change()


async def test_a_thousand_projects_of_an_organisation_are_one_leaf_beside_another(market: Market) -> None:
    shares = Shares(Amounts(gpus=4000))
    queue = Queue(shares)
    guest = await own(await guest_of(market))
    organisation = (await ask(market.owner, "GET", "/organisation"))["id"]
    many = [f"account_{number:04}" for number in range(1000)]

    def add(uow: UnitOfWork) -> None:
        registry = market.opened.identity.accounts
        first = registry.find(uow, "default")
        assert first is not None and first.organisation_id == organisation
        from dataclasses import replace

        from windrow_master.identity.repository import AccountRepository

        for one in many:
            uow[AccountRepository].add(replace(first, id=AccountId(one), name=one))

    await market.opened.store.write(add, name="test")
    for node in await market.opened.store.read(lambda uow: nodes_of(uow, [*many, guest])):
        shares.put(node)
    for number, leaf in enumerate((*many, *[guest] * 1000)):
        entry = Entry(
            entry_id=f"{number:04}", leaf=leaf, cost=Amounts(gpus=1), need=Need(cards=1), submitted_ns=MINUTE + number
        )
        queue.put(entry, MINUTE)
    first = list(queue.first(MINUTE, 200))
    assert sum(entry.leaf == guest for entry in first) == 100


def test_what_waits_follows_its_leaf_to_another_organisation() -> None:
    from tests.unit.queue.test_shares import node

    shares = Shares(Amounts(gpus=4000), [node("acme"), node("other"), node("lab", "acme"), node("beside", "acme")])
    queue = Queue(shares)
    for number, leaf in enumerate(("lab", "lab", "beside")):
        queue.put(Entry(entry_id=f"{number}", leaf=leaf, cost=Amounts(gpus=1), need=Need(), submitted_ns=number), 9)
    shares.take(node("lab", "other"))
    queue.shares_changed(9)
    assert [one.entry_id for one in queue.first(9)] == ["2", "0", "1"], "its organisation has a turn of its own"
    queue.drop("0")
    queue.drop("1")
    assert [one.entry_id for one in queue.first(9)] == ["2"] and queue.state("2") is Waits.READY


# --- quotas ---


async def test_a_quota_is_set_shown_with_its_use_and_removed(market: Market) -> None:
    await join_hosts(market, 1)
    put = await market.owner.put("/quotas", json={"node": "default", "item": "cpus", "limit": "3.5"})
    assert_described(put, QuotaOut)
    await ask(market.owner, "PUT", "/quotas", node="org:home", item="memory", limit=str(64 * GIB))
    await ask(market.owner, "PUT", "/quotas", node="installation", item="gpus", tier="h100/A", limit="8")
    await ask(market.owner, "POST", "/clusters", 202, **MACHINE)
    listed = await market.owner.get("/quotas")
    assert_described(listed, Page[QuotaOut])
    assert [(one["name"], one["item"], one["tier"], one["limit"], one["used"]) for one in listed.json()["items"]] == [
        ("installation", "gpus", "h100", "8", "0"),
        ("home", "memory", None, str(64 * GIB), "0"),
        ("default", "cpus", None, "3.5", "1"),
    ]
    guest = await guest_of(market)
    assert (await ask(guest, "GET", "/quotas"))["items"] == []
    for _ in range(2):
        await ask(market.owner, "DELETE", "/quotas?node=default&item=cpus", 204)
    entries = await audited(market, "quota.")
    assert (entries[0]["action"], entries[0]["fields"]["limit"]) == ("quota.remove", "3.5 -> none")
    assert (entries[-1]["action"], entries[-1]["fields"]["limit"]) == ("quota.set", "none -> 3.5")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"item": "gpus", "limit": "0.0001"}, "is no amount of gpus"),
        ({"item": "gpus", "limit": "-1"}, "is no amount of gpus"),
        ({"item": "clusters", "limit": "1.5"}, "is no amount of clusters"),
        ({"item": "spend_per_hour", "limit": "a lot"}, "is no amount of spend_per_hour"),
        ({"item": "spend_per_hour", "limit": "-1"}, "limit must be 0 or more"),
        ({"item": "clusters", "limit": "9" * 30}, "limit must be 0 or more"),
        ({"item": "cpus", "limit": "1", "tier": "h100"}, "only GPUs have tiers"),
        ({"item": "gpus", "limit": "1", "tier": "x9000"}, "a model of GPUs"),
    ],
)
async def test_a_quota_that_cannot_be_is_refused(market: Market, body: JSON, said: str) -> None:
    assert said in (await ask(market.owner, "PUT", "/quotas", 422, node="default", **body))["detail"]
    assert (await ask(market.owner, "GET", "/quotas"))["items"] == []


async def test_operators_set_quotas_of_organisations_and_their_admins_of_projects(market: Market) -> None:
    guest = await guest_of(market)
    await ask(guest, "PUT", "/quotas", node="guest", item="clusters", limit="2")
    for method, path, body in (
        ("PUT", "/quotas", {"node": "org:guest", "item": "clusters", "limit": "2"}),
        ("DELETE", "/quotas?node=org:guest&item=clusters", {}),
    ):
        assert "Operators set" in (await ask(guest, method, path, 403, **body))["detail"]
    for node in ("default", "org:home", "installation"):
        await ask(guest, "PUT", "/quotas", 404, node=node, item="clusters", limit="2")
    bob = await market.joined("bob@example.org", projects=RENTER)
    await ask(bob, "PUT", "/quotas", 403, node="default", item="clusters", limit="2")


@pytest.mark.parametrize(
    ("quota", "asked", "said"),
    [
        (
            ("default", "clusters", "1"),
            {},
            "clusters of the project default: limit 1, used 1, asked 1. An admin of the",
        ),
        (
            ("org:home", "cpus", "2"),
            {"cpus": 2},
            "cpus of the organisation home: limit 2, used 1, asked 2. An op",
        ),
        (("installation", "spend_per_hour", "0.000001"), {}, "spend_per_hour of the installation: limit 0.000001"),
        (("default", "memory", str(GIB)), {"memory_bytes": 2 * GIB}, "memory of the project default: limit 1024 MiB"),
    ],
)
async def test_a_machine_above_a_quota_is_refused_with_its_name_and_who_can_raise_it(
    market: Market, quota: tuple[str, str, str], asked: JSON, said: str
) -> None:
    await join_hosts(market, 2)
    first = (await ask(market.owner, "POST", "/clusters", 202, **MACHINE))["cluster"]["id"]
    node, item, limit = quota
    await ask(market.owner, "PUT", "/quotas", node=node, item=item, limit=limit)
    for path in ("/clusters", "/clusters/plan"):
        refused = await ask(market.owner, "POST", path, 409, **MACHINE | asked)
        assert refused["code"] == "quota_exceeded" and said in refused["detail"]
    assert [one["id"] for one in (await ask(market.owner, "GET", "/clusters"))["items"]] == [first]
    await ask(market.owner, "DELETE", f"/quotas?node={node}&item={item}", 204)
    await ask(market.owner, "POST", "/clusters", 202, **MACHINE | asked)


async def test_a_quota_below_what_is_used_ends_nothing_and_nothing_more_starts(market: Market) -> None:
    await join_hosts(market, 3)
    for _ in range(2):
        await ask(market.owner, "POST", "/clusters", 202, **MACHINE)
    lowered = await ask(market.owner, "PUT", "/quotas", node="default", item="clusters", limit="1")
    assert (lowered["limit"], lowered["used"]) == ("1", "2")
    refused = await ask(market.owner, "POST", "/clusters", 409, **MACHINE)
    assert "limit 1, used 2, asked 1" in refused["detail"]
    assert {one["phase"] for one in (await ask(market.owner, "GET", "/clusters"))["items"]} == {"Creating"}


async def test_two_requests_at_once_do_not_pass_a_quota_together(market: Market) -> None:
    await join_hosts(market, 3)
    await ask(market.owner, "PUT", "/quotas", node="default", item="clusters", limit="1")
    answers = await asyncio.gather(*(market.owner.post("/clusters", json=MACHINE) for _ in range(4)))
    assert sorted(one.status_code for one in answers) == [202, 409, 409, 409]


async def test_jobs_above_a_quota_are_refused_if_they_can_never_run_and_else_wait(market: Market) -> None:
    await join_hosts(market, 1)
    await ask(market.owner, "POST", "/clusters", 202, **MACHINE)
    for item, limit in (("cpus", "2"), ("waiting_jobs", "2")):
        await ask(market.owner, "PUT", "/quotas", node="org:home", item=item, limit=limit)
    job: JSON = {"argv": ["true"], "await_files": True}
    refused = await ask(market.owner, "POST", "/jobs", 409, **job, cpus=3)
    assert "limit 2, used 1, asked 3" in refused["detail"]
    await ask(market.owner, "POST", "/jobs", **job, cpus=2)
    refused = await ask(market.owner, "POST", "/jobs", 409, **job, array_size=2)
    assert "waiting_jobs of the organisation home: limit 2, used 1, asked 2" in refused["detail"]
    listed = (await ask(market.owner, "GET", "/quotas"))["items"]
    assert [(one["item"], one["used"]) for one in listed] == [("cpus", "1"), ("waiting_jobs", "1")]


async def test_what_is_used_is_read_from_what_lives_and_not_from_all_that_an_account_ever_had(market: Market) -> None:
    def plans(uow: UnitOfWork) -> list[str]:
        found = []
        for made in (clusters._HELD_BELOW, clusters._RUN_BELOW, clusters._QUEUED_BELOW, jobs._WAITING_BELOW):
            for level in (NodeLevel.ORGANISATION, NodeLevel.PROJECT):
                words, values = made[level].made(uow.connection).text, {"node": "x"}
                bound = tuple(made[level].made(uow.connection).bound(values))
                rows = uow.connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {words}", bound)
                found.append(next(row[3] for row in rows if " clusters " in row[3] or " jobs " in row[3]))
        return found

    used = {plan.split("INDEX ")[1].split()[0] for plan in await market.opened.store.read(plans)}
    assert used <= {"ix_clusters_living", "ix_clusters_phase", "ix_jobs_living_of"}
