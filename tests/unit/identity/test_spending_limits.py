"""Spending limits over HTTP: who sets whose, that no token raises its own, and why renting is refused."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.unit.identity.people_world import RENTER, Market, ask, people_market
from tests.unit.master_api.described import assert_described
from windrow_master.api.answers import Page
from windrow_master.api.limit_routes import LimitOut
from windrow_master.fleet.states import LinkEvent
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import AccountId, HostId
from windrow_proto.model import Inventory
from windrow_proto.units import GIB

JSON = dict[str, Any]
ADMIN = [{"project": "default", "roles": ["admin", "renter"]}]
PROJECT = "/projects/default/limits"


@pytest.fixture
async def market(tmp_path: Path) -> AsyncIterator[Market]:
    async with people_market(tmp_path) as found:
        yield found


async def token_of(client: httpx2.AsyncClient, **body: Any) -> JSON:
    made: JSON = await ask(client, "POST", "/tokens", 201, name="ci", **body)
    return made


async def join_hosts(market: Market, count: int) -> None:
    """Hosts of the first project, which is their renter, too."""
    account = AccountId((await ask(market.owner, "GET", "/me"))["account"]["id"])
    fleet = market.opened.fleet

    def join(uow: UnitOfWork, host_id: HostId) -> None:
        fleet.enrol(uow, host_id, host_id.replace("_", "-"), account, False, "test")
        inventory = Inventory(hostname=host_id, cpu_count=4, memory_bytes=16 * GIB, runtimes=("process",))
        fleet.hosts.inventory(uow, host_id, inventory)
        fleet.hosts.link(uow, host_id, LinkEvent.HEARD, uow.now_wall_ns)

    for number in range(count):
        await market.opened.store.write(lambda uow: join(uow, HostId(f"host_{number}")), name="test")  # noqa: B023
    await fleet.refresh()


async def test_admins_set_the_limits_of_a_project_and_its_renters_read_them(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=ADMIN)
    bob = await market.joined("bob@example.org", projects=RENTER)
    none = await bob.get(PROJECT)
    assert_described(none, LimitOut)
    assert none.json()["max_monthly_cost"] is None and none.json()["updated_at"] is None
    set_ = await ada.put(PROJECT, json={"max_monthly_cost": "12.5", "max_leases": 3})
    assert_described(set_, LimitOut)
    limit = set_.json()
    assert (limit["kind"], limit["name"], limit["max_monthly_cost"], limit["max_leases"]) == (
        "project",
        "default",
        "12.50",
        3,
    )
    assert limit["monthly_cost"] == limit["total_cost"] == limit["held"] == "0.00" and limit["leases"] == 0
    assert limit["updated_by"].startswith("user/") and limit["month"] == limit["updated_at"][:7]
    listed = await bob.get("/limits")
    assert_described(listed, Page[LimitOut])
    assert listed.json()["items"] == [limit]
    for method in ("PUT", "DELETE"):
        refused = await ask(bob, method, PROJECT, 403)
        assert "needs the role admin or operator or org_admin or org_owner" in refused["detail"]
    assert (await ask(ada, "PUT", PROJECT, max_total_cost="1"))["max_monthly_cost"] is None, "it is put in place"
    await ask(ada, "DELETE", PROJECT, 204)
    await ask(ada, "DELETE", PROJECT, 204)
    assert (await ask(bob, "GET", PROJECT))["updated_at"] is None
    entries = [one for one in (await ask(market.owner, "GET", "/audit"))["items"] if one["action"].startswith("limit.")]
    assert [one["action"] for one in entries] == ["limit.remove", "limit.set", "limit.set"]


async def test_owners_and_operators_reach_other_projects_and_strangers_none(market: Market) -> None:
    lab = (await ask(market.owner, "POST", "/projects", name="lab"))["id"]
    assert (await ask(market.owner, "PUT", "/projects/lab/limits", max_leases=1))["id"] == lab
    assert {one["name"] for one in (await ask(market.owner, "GET", "/limits"))["items"]} == {"default", "lab"}
    boss = await market.joined("boss@example.org", role="org_admin")
    assert (await ask(boss, "PUT", f"/projects/{lab}/limits", max_leases=2))["max_leases"] == 2
    ada = await market.joined("ada@example.org", projects=ADMIN)
    for method in ("GET", "PUT", "DELETE"):
        await ask(ada, method, "/projects/lab/limits", 404)
    assert [one["name"] for one in (await ask(ada, "GET", "/limits"))["items"]] == ["default"]
    link = (await ask(market.owner, "POST", "/accounts", name="guest", roles=["renter"]))["link"].partition("=")[2]
    text = (await ask(await market.client(), "POST", "/sign-in", secret=link))["token"]["token"]
    guest = await market.client(text)
    await ask(guest, "GET", PROJECT, 404)
    assert (await ask(market.owner, "PUT", "/projects/guest/limits", max_leases=4))["name"] == "guest"
    assert (await ask(guest, "GET", "/projects/guest/limits"))["max_leases"] == 4


async def test_a_token_with_limits_raises_none_and_gives_no_rights_without_them(market: Market) -> None:
    made = await token_of(market.owner, limits={"max_hourly_cost": "2", "max_total_cost": "0.00000001"})
    path = f"/tokens/{made['id']}/limits"
    limit = await ask(market.owner, "GET", path)
    assert (limit["kind"], limit["max_hourly_cost"], limit["max_total_cost"]) == ("token", "2.00", "0.00000001")
    ci = await market.client(made["token"])
    child = await token_of(ci, limits={"max_leases": 9})
    session = await ask(await market.client(), "POST", "/session", token=child["token"])
    grandchild = await market.client((await token_of(await market.client(session["secret"])))["token"])
    service = await ask(market.owner, "POST", "/service-accounts", 201, name="free", roles=["renter"])
    for client in (ci, grandchild):
        for method, wanted in (
            ("PUT", path),
            ("DELETE", path),
            ("PUT", f"/tokens/{child['id']}/limits"),
            ("PUT", PROJECT),
            ("POST", "/service-accounts"),
            ("POST", f"/service-accounts/{service['service_account']['id']}/rotate"),
            ("POST", "/invitations"),
            ("POST", "/accounts"),
        ):
            refused = await ask(client, method, wanted, 403, name="more", roles=["renter"])
            assert "A token with a spending limit makes and ends no rights" in refused["detail"], wanted
    whose = await market.opened.identity.authenticate(grandchild.headers["Authorization"].removeprefix("Bearer "))
    assert set(whose.spenders) >= {made["id"], child["id"]}
    own = await token_of(market.owner)
    refused = await ask(await market.client(own["token"]), "PUT", f"/tokens/{own['id']}/limits", 403, max_leases=1)
    assert "sets no limits of its own" in refused["detail"]


async def test_who_manages_a_token_limits_it(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=ADMIN)
    bob = await market.joined("bob@example.org", projects=RENTER)
    path = f"/tokens/{(await token_of(bob))['id']}/limits"
    await ask(bob, "PUT", path, max_leases=5)
    assert (await ask(ada, "PUT", path, max_leases=1))["max_leases"] == 1, "an admin of the project, too"
    eve = await market.joined("eve@example.org", projects=RENTER)
    for method in ("GET", "PUT", "DELETE"):
        await ask(eve, method, path, 404)
    assert len((await ask(bob, "GET", "/limits"))["items"]) == 2
    assert len((await ask(eve, "GET", "/limits"))["items"]) == 1
    for body in (
        {"max_leases": -1},
        {"max_leases": 1.5},
        {"max_hourly_cost": "-1"},
        {"max_hourly_cost": "much"},
        {"max_monthly_cost": "0.000000001"},
        {"max_total_cost": 5},
        {"more": 1},
    ):
        assert (await bob.put(path, json=body)).status_code == 422, body


async def test_all_tokens_of_a_service_account_share_its_limits(market: Market) -> None:
    made = await ask(
        market.owner, "POST", "/service-accounts", 201, name="ci", roles=["renter"], limits={"max_leases": 2}
    )
    first = made["token"]
    by_token = await ask(market.owner, "GET", f"/tokens/{first['id']}/limits")
    assert (by_token["kind"], by_token["name"], by_token["max_leases"]) == ("service_account", "ci", 2)
    second = (await ask(market.owner, "POST", "/service-accounts/ci/rotate", 201))["token"]
    for token in (first, second):
        client = await market.client(token["token"])
        principal = await market.opened.identity.authenticate(token["token"])
        assert principal.spenders == (made["service_account"]["id"],)
        assert [one["name"] for one in (await ask(client, "GET", "/limits"))["items"]] == ["default", "ci"]
        await ask(client, "PUT", "/service-accounts/ci/limits", 403, max_leases=9)
        await ask(client, "PUT", f"/tokens/{token['id']}/limits", 403, max_leases=9)
    assert (await ask(market.owner, "PUT", "/service-accounts/ci/limits", max_leases=1))["max_leases"] == 1
    await ask(market.owner, "DELETE", "/service-accounts/ci/limits", 204)


async def test_a_cluster_that_would_pass_a_limit_is_refused_with_the_reason(market: Market) -> None:
    await join_hosts(market, 2)
    made = await token_of(market.owner, limits={"max_leases": 1})
    child = await market.client((await token_of(await market.client(made["token"])))["token"])
    await ask(child, "POST", "/clusters", 202, argv=["true"])
    refused = await ask(await market.client(made["token"]), "POST", "/clusters", 409, argv=["true"])
    assert (refused["code"], refused["subject"], refused["retryable"]) == ("spending_limit", made["id"], False)
    assert refused["detail"].startswith("The limit of the token ci, 1 lease at once, leaves 0; ")
    assert refused["detail"].endswith(f"windrow limit set --token {made['id']} --max-leases N")
    assert (await ask(child, "POST", "/clusters/plan", 409, argv=["true"]))["code"] == "spending_limit"
    await ask(market.owner, "POST", "/clusters", 202, argv=["true"])
    used = await ask(market.owner, "GET", f"/tokens/{made['id']}/limits")
    assert used["leases"] == 1 and float(used["held"]) > 0 and float(used["hourly_cost"]) > 0
    whole = await ask(market.owner, "GET", PROJECT)
    assert whole["leases"] == 2
    left = await ask(market.owner, "PUT", PROJECT, max_total_cost=whole["held"])
    assert left["held"] == left["max_total_cost"]
