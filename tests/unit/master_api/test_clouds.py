"""Backends and purchases over HTTP: what is added, bought, shown, capped, swept and ended, on the cloud in memory."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.memory_backend import MemoryBackend, MemoryCloud, Planned, Terms
from tests.unit.hybrid.purchases.world import MARKET, OFFER, RULES, AnyKind, Hosts
from tests.unit.master_api.conftest import Api
from tests.unit.master_api.described import assert_described
from windrow_master.api import answers
from windrow_master.api.backend_routes import (
    BackendCheckOut,
    BackendKindOut,
    BackendOut,
    BuyerOut,
    MachineOfferOut,
    StoppedOut,
    SweepOut,
    UsableBackendOut,
)
from windrow_master.api.purchase_routes import PurchaseOut, WholePurchaseOut
from windrow_master.hybrid.backends.port import TAG_MARKET, TAG_PURCHASE, Finding
from windrow_master.hybrid.purchases.backends import BackendService
from windrow_master.hybrid.purchases.controller import LOOK_EVERY_NS
from windrow_master.hybrid.purchases.service import PurchaseService
from windrow_proto.units import HOUR, MINUTE

Json = dict[str, Any]
SECRET = "do-not-tell-anybody"
RECORD: Json = {
    "name": "aws",
    "kind": "ec2",
    "settings": {"region": "eu-central-1"},
    "secrets": {"aws_secret_access_key": SECRET},
    "caps": {"per_day": "40", "machines": 2},
    "margin_percent": 10,
}


@dataclass
class Clouds:
    """A market that is connected to the cloud in memory, under the name of EC2."""

    api: Api
    cloud: MemoryCloud

    async def ask(self, method: str, path: str, body: Json | None = None, status: int = 200) -> Any:
        """The answer as JSON."""
        answer = await self.api.client.request(method, f"/api/v1{path}", json=body)
        assert answer.status_code == status, answer.text
        assert SECRET not in answer.text
        return answer.json() if answer.content else None

    async def buy(self, **more: Any) -> Json:
        """A machine that is bought; the provider was not asked yet."""
        body = {"backend": "aws", "offer": OFFER, "hours": 2} | more
        found: Json = await self.ask("POST", "/purchases", body, 201)
        return found

    async def turns(self, number: int = 1) -> None:
        """Let time pass, and the loop look."""
        for _ in range(number):
            self.api.clock.advance(LOOK_EVERY_NS)
            self.api.services.backends.queue.add("aws")
            await self.api.services.purchases.controller.turn()


@pytest.fixture
async def clouds(api: Api) -> AsyncIterator[Clouds]:
    services = api.services
    cloud = MemoryCloud(api.clock.wall_ns, Planned(is_stale=False), Terms())
    unreachable = Finding("reachability", False, "The Master listens on loopback.", "windrow up --public")
    services.backends = BackendService(
        *(services.store, api.clock, services.identity.seal_key, {"ec2": AnyKind(), "modal": AnyKind()}),
        lambda *_: MemoryBackend(cloud, api.clock),
        lambda: unreachable,
    )
    services.purchases = PurchaseService(services.store, api.clock, services.backends, Hosts(), MARKET, RULES)
    assert (await api.client.post("/api/v1/backends", json=RECORD)).status_code == 201
    yield Clouds(api, cloud)


async def test_a_backend_is_shown_with_its_level_and_caps_and_without_its_secrets(clouds: Clouds) -> None:
    client = clouds.api.client
    assert_described(await client.get("/api/v1/backend-kinds"), answers.Page[BackendKindOut])
    assert_described(await client.get("/api/v1/backends"), answers.Page[BackendOut])
    shown = await clouds.ask("GET", "/backends/aws")
    assert (shown["title"], shown["level"], shown["has_secrets"]) == ("Amazon EC2", "emulator", True)
    assert shown["settings"] == {"region": "eu-central-1"}
    assert shown["caps"] == {
        "currency": "USD",
        "per_hour": None,
        "per_day": "40.00",
        "in_all": None,
        "machines": 2,
        "vcpus": None,
    }
    assert (shown["margin_percent"], shown["market_id"], shown["checked_at"]) == (10, MARKET, None)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"caps": {"machines": 2}}, "per_hour"),
        ({"caps": {"per_day": "-1"}}, "per_day"),
        ({"caps": {"per_day": "40", "vcpus": -1}}, "vcpus"),
        ({"name": "Not A Name"}, "name"),
        ({"name": "two", "kind": "mars"}, "kind"),
        ({"name": "two", "settings": {"region": 7}}, "region"),
    ],
)
async def test_a_backend_that_cannot_be_is_refused_and_nothing_is_kept(clouds: Clouds, change: Json, says: str) -> None:
    refused = await clouds.ask("POST", "/backends", RECORD | {"name": "two"} | change, 422)
    assert says in str(refused)
    assert [one["name"] for one in (await clouds.ask("GET", "/backends"))["items"]] == ["aws"]


async def test_a_check_is_kept_and_shown(clouds: Clouds) -> None:
    assert_described(await clouds.api.client.post("/api/v1/backends/aws/check"), BackendCheckOut)
    shown = await clouds.ask("GET", "/backends/aws")
    assert [(one["what"], one["good"]) for one in shown["findings"]] == [("credentials", True), ("reachability", False)]
    assert shown["findings"][1]["way_out"] == "windrow up --public"
    assert shown["checked_at"] is not None


async def test_offers_are_narrowed_and_the_cheapest_is_first(clouds: Clouds) -> None:
    answer = await clouds.api.client.get("/api/v1/backends/aws/offers", params={"gpu": "a10g", "gpus": 1})
    assert_described(answer, answers.Page[MachineOfferOut])
    prices = [one["price_per_hour"] for one in answer.json()["items"]]
    assert prices == sorted(prices)
    (one,) = (await clouds.ask("GET", f"/backends/aws/offers?offer={OFFER}"))["items"]
    assert (one["offer"], one["kind"], one["price_per_hour"]) == (OFFER, "on-demand", "1.006")
    assert (await clouds.ask("GET", "/backends/aws/offers?kind=reserved"))["items"] == []


async def test_a_machine_is_bought_for_a_project_costs_and_is_ended(clouds: Clouds) -> None:
    await clouds.ask("POST", "/accounts", {"name": "lab", "roles": ["renter"]}, 201)
    bought = await clouds.buy(account="lab")
    assert (bought["state"], bought["account"], bought["spent"]) == ("wanted", "lab", "0.00")
    assert bought["forecast"] == "2.012"  # of the two hours that were asked for
    assert (bought["for_id"], bought["for_name"]) == (None, None)
    await clouds.turns()
    clouds.api.clock.advance(HOUR)
    path = f"/purchases/{bought['id']}"
    assert_described(await clouds.api.client.get(f"/api/v1{path}"), WholePurchaseOut)
    shown = await clouds.ask("GET", path)
    assert (shown["state"], shown["offer"], shown["paid"]) == ("booting", OFFER, None)
    assert 1.0 < float(shown["spent"]) < float(shown["reserved"])
    owed = (await clouds.ask("GET", "/backends/aws"))["owed"]
    assert (owed["per_hour"], owed["living"], owed["vcpus"]) == ("1.006", 1, 4)

    ended = await clouds.api.client.post(f"/api/v1{path}/end", json={"reason": "done"})
    assert_described(ended, PurchaseOut)
    assert (await clouds.ask("DELETE", "/backends/aws", status=409))["code"] == "conflict"
    await clouds.turns(40)
    over = await clouds.ask("GET", path)
    assert (over["state"], clouds.cloud.living()) == ("gone", [])
    assert over["billed_seconds"] > 3_600 and over["paid"] is not None and over["ended_at"] is not None
    await clouds.ask("DELETE", "/backends/aws", status=204)


async def test_purchases_come_in_pages_by_backend_and_by_whether_they_live(clouds: Clouds) -> None:
    first, second = [(await clouds.buy())["id"] for _ in range(2)]
    await clouds.ask("POST", f"/purchases/{first}/end", {})

    async def ids(query: str) -> list[str]:
        return [one["id"] for one in (await clouds.ask("GET", f"/purchases{query}"))["items"]]

    assert_described(await clouds.api.client.get("/api/v1/purchases"), answers.Page[PurchaseOut])
    page = await clouds.ask("GET", "/purchases?limit=1")
    assert [one["id"] for one in page["items"]] == [second]
    assert await ids(f"?cursor={page['next_cursor']}") == [first]
    assert await ids("?living=true") == await ids("?state=wanted") == [second]
    assert await ids("?living=false") == [first]
    assert await ids("?living=false&state=wanted") == await ids("?backend=other") == []


async def test_a_cap_refuses_more_and_can_be_raised(clouds: Clouds) -> None:
    for _ in range(2):
        await clouds.buy()
    refused = await clouds.ask("POST", "/purchases", {"backend": "aws", "offer": OFFER, "hours": 2}, 409)
    assert "machines" in refused["detail"]
    caps = {"per_day": "50", "machines": 3, "margin_percent": 5}
    shown = await clouds.ask("PUT", "/backends/aws/caps", caps)
    assert (shown["caps"]["machines"], shown["caps"]["currency"], shown["margin_percent"]) == (3, "USD", 5)
    await clouds.buy()


@pytest.mark.parametrize("body", [{"hours": 0}, {"hours": 745}, {"offer": "none/such"}, {"account": "nobody"}])
async def test_what_cannot_be_bought_is_refused_and_costs_nothing(clouds: Clouds, body: Json) -> None:
    answer = await clouds.api.client.post(
        "/api/v1/purchases", json={"backend": "aws", "offer": OFFER, "hours": 1} | body
    )
    assert answer.status_code in (404, 409, 422), answer.text
    assert (await clouds.ask("GET", "/backends/aws"))["owed"]["reserved"] == "0.00"


async def test_a_sweep_ends_what_nobody_has_and_leaves_what_is_anothers(clouds: Clouds) -> None:
    await clouds.buy()
    await clouds.turns()
    lost = clouds.cloud.add_foreign({TAG_MARKET: MARKET, TAG_PURCHASE: "purchase_0"})
    other = clouds.cloud.add_foreign({TAG_MARKET: "another", TAG_PURCHASE: "purchase_0"})
    answer = await clouds.api.client.post("/api/v1/backends/aws/sweep", json={})
    assert_described(answer, SweepOut)
    found = answer.json()
    assert [one["id"] for one in found["ended"]] == [lost.machine_id]
    assert (len(found["left_alone"]), found["unknown"]) == (1, [])
    clouds.api.clock.advance(5 * MINUTE)
    assert other.machine_id in [one.machine_id for one in clouds.cloud.living()]
    assert (await clouds.ask("GET", "/backends/aws"))["swept_at"] is not None


async def test_stop_all_ends_every_purchase_and_buys_no_more(clouds: Clouds) -> None:
    bought = await clouds.buy()
    answer = await clouds.api.client.post("/api/v1/backends/aws/stop-all")
    assert_described(answer, StoppedOut)
    assert answer.json()["ended"] == [bought["id"]]
    assert (await clouds.ask("GET", "/backends/aws"))["caps"]["machines"] == 0
    await clouds.ask("POST", "/purchases", {"backend": "aws", "offer": OFFER, "hours": 2}, 409)


async def test_a_project_is_allowed_to_buy_for_so_much_shown_and_disallowed(clouds: Clouds) -> None:
    me = (await clouds.ask("GET", "/me"))["account"]
    path = f"/backends/aws/buyers/{me['name']}"
    made = await clouds.ask("PUT", path, {"per_day": "50", "in_all": "200"})
    assert_described(await clouds.api.client.get("/api/v1/backends/aws/buyers"), answers.Page[BuyerOut])
    assert (made["account_id"], made["account"], made["per_day"]) == (me["id"], me["name"], "50.00")
    assert (made["spent_today"], made["living"]) == ("0.00", 0)
    changed = await clouds.ask("PUT", path, {"in_all": "7"})
    assert (changed["per_day"], changed["in_all"], changed["created_at"]) == (None, "7.00", made["created_at"])
    refused = await clouds.ask("PUT", path, {}, 422)
    assert refused["subject"] == "per_day"
    await clouds.ask("PUT", "/backends/aws/buyers/nobody", {"in_all": "7"}, 404)
    await clouds.ask("PUT", f"/backends/mars/buyers/{me['id']}", {"in_all": "7"}, 404)
    assert len((await clouds.ask("GET", "/backends/aws/buyers"))["items"]) == 1
    await clouds.ask("DELETE", path, status=204)
    assert (await clouds.ask("GET", "/backends/aws/buyers"))["items"] == []


async def test_a_project_sees_the_backends_where_it_may_buy_and_its_recommendations_name_them(clouds: Clouds) -> None:
    mine = "/api/v1/me/backends"
    assert (await clouds.api.client.get(mine)).json()["items"] == []
    me = (await clouds.ask("GET", "/me"))["account"]["id"]
    await clouds.ask("PUT", f"/backends/aws/buyers/{me}", {"in_all": "7"})
    answer = await clouds.api.client.get(mine)
    assert_described(answer, answers.Page[UsableBackendOut])
    (one,) = answer.json()["items"]
    assert (one["name"], one["level"], one["per_day"], one["in_all"]) == ("aws", "emulator", None, "7.00")
    assert "level_text" in one and "caps" not in one

    await clouds.ask("POST", "/accounts", {"name": "lab", "roles": ["renter"]}, 201)
    lab = (await clouds.ask("POST", "/tokens", {"name": "lab", "roles": ["renter"]}, 201))["token"]
    asked = await clouds.api.client.get(mine, headers={"Authorization": f"Bearer {lab}"})
    assert asked.status_code == 200, "a renter may ask"


async def test_modal_is_among_the_recommendations_of_a_project_that_may_use_it(clouds: Clouds) -> None:
    await clouds.ask("POST", "/backends", RECORD | {"name": "runs", "kind": "modal", "settings": {}}, 201)
    asked = {"requirements": {"gpu": "h100", "gpu_count": 1, "interruptible": True, "duration_hours_estimated": 2}}

    async def bought() -> dict[str, str]:
        places = (await clouds.ask("POST", "/route", asked))["recommendations"]
        return {one["backend"]: one["buys"] for one in places if one["buys"]}

    assert await bought() == {}
    me = (await clouds.ask("GET", "/me"))["account"]["id"]
    await clouds.ask("PUT", f"/backends/runs/buyers/{me}", {"in_all": "7"})
    assert await bought() == {"runs/spot": "runs"}


async def test_a_job_that_may_not_buy_is_refused_with_the_way_out_and_its_tries_are_shown(clouds: Clouds) -> None:
    body = {"argv": ["true"], "backend": "aws", "spot": True, "optimize": "cost"}
    refused = await clouds.ask("POST", "/jobs", body, 403)
    assert refused["subject"] == "backend"
    assert "windrow backend allow" in refused["detail"]
    me = (await clouds.ask("GET", "/me"))["account"]["id"]
    await clouds.ask("PUT", f"/backends/aws/buyers/{me}", {"in_all": "7"})
    (job,) = (await clouds.ask("POST", "/jobs", body, 201))["jobs"]
    shown = await clouds.ask("GET", f"/jobs/{job['id']}")
    assert shown["tries"] == []
    assert [shown["request"][name] for name in ("backend", "spot", "optimize")] == ["aws", True, "cost"]
    wrong = await clouds.ask("POST", "/jobs", body | {"region": "eu"}, 422)
    assert wrong["subject"] == "backend"
    alone = await clouds.ask("POST", "/clusters", body, 422)
    assert "wait_seconds" in alone["detail"]
