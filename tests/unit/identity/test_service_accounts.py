"""Promises of service accounts: they belong to a project, have at most their makers' roles, and end at a removal."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.unit.identity.people_world import RENTER, Market, ask, people_market
from windrow_proto.units import DAY, HOUR

ADMIN = [{"project": "default", "roles": ["admin", "renter"]}]


@pytest.fixture
async def market(tmp_path: Path) -> AsyncIterator[Market]:
    async with people_market(tmp_path) as found:
        yield found


async def added(client: httpx2.AsyncClient, name: str = "ci", *roles: str) -> dict[str, Any]:
    """A new service account and its token."""
    made: dict[str, Any] = await ask(client, "POST", "/service-accounts", 201, name=name, roles=roles or ("renter",))
    return made


async def test_a_service_account_acts_in_its_project_under_its_own_name(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=ADMIN)
    made = await added(ada, "ci", "renter", "viewer")
    ci = await market.client(made["token"]["token"])

    me = await ask(ci, "GET", "/me")
    service = made["service_account"]
    assert (me["user"], me["service"], me["roles"]) == (None, {"id": service["id"], "name": "ci"}, ["renter", "viewer"])
    await market.opened.identity.asking.note_use()
    (listed,) = (await ask(ada, "GET", "/service-accounts"))["items"]
    assert listed["tokens"][0]["last_used_at"] and listed["tokens"][0]["last_used_address"] == "127.0.0.1"
    assert "token" not in listed["tokens"][0]
    await ask(ci, "PUT", "/templates/kept", argv=["true"])
    entries = (await ask(market.owner, "GET", "/audit"))["items"]
    actors = {entry["action"]: entry["actor"] for entry in entries}
    assert actors["service_account.make"].startswith("user/")


async def test_it_never_signs_in_to_the_console_and_makes_no_rights(market: Market) -> None:
    made = await added(market.owner)
    text = made["token"]["token"]
    ci, browser = await market.client(text), await market.client()
    refused = await ask(browser, "POST", "/session", 403, token=text)
    assert "does not sign in to the console" in refused["detail"]
    await ask(ci, "POST", "/tokens", 403, name="more")
    await ask(ci, "POST", "/projects/default/token", 403, name="more")
    await ask(ci, "GET", "/user", 403)
    for method, path in (("GET", "/members"), ("GET", "/service-accounts"), ("POST", "/service-accounts")):
        await ask(ci, method, path, 403, name="x", roles=["viewer"])
    begun = await ask(browser, "POST", "/device", name="laptop")
    await ask(ci, "POST", "/device/approve", 403, user_code=begun["user_code"])
    assert (await ask(ci, "GET", "/tokens"))["items"][0]["name"] == "ci"


async def test_its_name_and_roles_are_checked(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=ADMIN)
    await added(ada, "ci")
    await ask(ada, "POST", "/service-accounts", 409, name="ci", roles=["viewer"])
    refused = await ask(ada, "POST", "/service-accounts", 403, name="host", roles=["provider"])
    assert "You are no provider in the project default" in refused["detail"]
    assert (await added(ada, "look", "viewer"))["service_account"]["roles"] == ["viewer"]
    for body in (
        {"name": "CI", "roles": ["viewer"]},
        {"name": "", "roles": ["viewer"]},
        {"name": "token_1", "roles": ["viewer"]},
        {"name": "<b>", "roles": ["viewer"]},
        {"name": "a", "roles": []},
        {"name": "a", "roles": ["admin"]},
        {"name": "a", "roles": ["operator"]},
        {"name": "a", "roles": ["viewer"], "expires_in_s": 91 * 86_400},
    ):
        assert (await ada.post("/service-accounts", json=body)).status_code == 422, body
    bob = await market.joined("bob@example.org", projects=RENTER)
    await ask(bob, "POST", "/service-accounts", 403, name="b", roles=["renter"])
    part = await ask(ada, "POST", "/tokens", name="part", roles=["admin"])
    await ask(await market.client(part["token"]), "POST", "/service-accounts", 403, name="p", roles=["viewer"])
    assert len((await ask(ada, "GET", "/service-accounts"))["items"]) == 2


async def test_a_rotated_token_ends_after_the_overlap_and_two_are_valid_at_most(market: Market) -> None:
    first = await added(market.owner)
    path = f"/service-accounts/{first['service_account']['id']}/rotate"
    second = await ask(market.owner, "POST", path, 201)
    clients = [await market.client(one["token"]["token"]) for one in (first, second)]
    for client in clients:
        await ask(client, "GET", "/me")
    market.clock.advance(DAY - HOUR)
    await ask(clients[0], "GET", "/me")
    market.clock.advance(HOUR)
    await ask(clients[0], "GET", "/me", 401)
    await ask(clients[1], "GET", "/me")

    third = await ask(market.owner, "POST", "/service-accounts/ci/rotate", 201, overlap_s=3_600)
    fourth = await ask(market.owner, "POST", "/service-accounts/ci/rotate", 201, overlap_s=0)
    assert len(fourth["service_account"]["tokens"]) == 1
    await ask(clients[1], "GET", "/me", 401)
    await ask(await market.client(third["token"]["token"]), "GET", "/me", 401)
    await ask(await market.client(fourth["token"]["token"]), "GET", "/me")
    await ask(market.owner, "POST", "/service-accounts/ci/rotate", 422, overlap_s=-1)
    await ask(market.owner, "POST", "/service-accounts/nothing/rotate", 404)


async def test_who_has_less_roles_gets_no_token_of_it(market: Market) -> None:
    await added(market.owner, "host", "provider")
    ada = await market.joined("ada@example.org", projects=ADMIN)
    await ask(ada, "POST", "/service-accounts/host/rotate", 403)
    await ask(ada, "DELETE", "/service-accounts/host", 204)


async def test_a_removed_one_is_out_with_the_next_request_and_its_project_reaches_it_alone(market: Market) -> None:
    made = await added(market.owner)
    ci = await market.client(made["token"]["token"])
    await ask(market.owner, "POST", "/projects", name="lab")
    lab = (await ask(market.owner, "POST", "/projects/lab/token", name="lab"))["token"]["token"]
    elsewhere = await market.client(lab)
    for method, path in (("DELETE", "/service-accounts/ci"), ("POST", "/service-accounts/ci/rotate")):
        await ask(elsewhere, method, path, 404)
    by_id = f"/service-accounts/{made['service_account']['id']}"
    await ask(elsewhere, "DELETE", by_id, 404)
    assert (await ask(elsewhere, "GET", "/service-accounts"))["items"] == []
    await ask(ci, "GET", "/me")
    await ask(market.owner, "DELETE", by_id, 204)
    await ask(ci, "GET", "/me", 401)
    await ask(market.owner, "DELETE", by_id, 404)


async def test_it_stays_when_its_maker_goes_and_is_cut_with_its_project(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=ADMIN)
    made = await added(ada)
    ci = await market.client(made["token"]["token"])
    ids = {one["name"]: one["id"] for one in (await ask(market.owner, "GET", "/members"))["items"]}
    await ask(market.owner, "DELETE", f"/members/{ids['ada']}")
    await ask(ci, "GET", "/me")

    guest = await ask(market.owner, "POST", "/accounts", name="guest", roles=["renter"])
    stranger = await market.client()
    link = guest["link"].partition("=")[2]
    token = (await ask(stranger, "POST", "/sign-in", secret=link))["token"]["token"]
    theirs = await market.client((await added(await market.client(token)))["token"]["token"])
    await ask(theirs, "GET", "/me")
    await ask(market.owner, "POST", "/accounts/guest/suspend", reason="test")
    await ask(theirs, "GET", "/me", 403)
