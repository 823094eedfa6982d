"""Promises to people: invitations that work once, passwords, second factors, projects, and the end of a membership."""

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from tests.unit.identity.people_world import PASSWORD, RENTER, Market, ask, people_market, secret_of
from windrow_master.identity.model import Role
from windrow_master.identity.tokens import issue_token
from windrow_master.store.unit import UnitOfWork
from windrow_proto.units import DAY, MINUTE, SECOND

OTHER = "nine slow trains to the coast"


@pytest.fixture
async def market(tmp_path: Path) -> AsyncIterator[Market]:
    async with people_market(tmp_path) as found:
        yield found


async def test_an_invitation_makes_a_user_who_acts_with_its_roles_alone(market: Market) -> None:
    ada = await market.joined("Ada+work@Example.org", projects=RENTER)

    me = await ask(ada, "GET", "/me")
    assert (me["user"]["name"], me["account"]["name"], me["roles"]) == ("Ada+work", "default", ["renter"])
    profile = await ask(ada, "GET", "/user")
    assert (profile["address"], profile["has_second_factor"]) == ("Ada+work@Example.org", False)
    assert [one["name"] for one in profile["organisations"]] == ["home"]
    await ask(ada, "GET", "/members", 403)
    await ask(ada, "POST", "/accounts", 403, name="x", roles=["renter"])
    again = await market.signed_in("ada+WORK@example.org")
    assert (await ask(again, "GET", "/me"))["user"] == me["user"]


async def test_an_invitation_works_once_and_for_its_address(market: Market) -> None:
    stranger = await market.client()

    async def accept(secret: str, address: str = "ada@example.org") -> Any:
        body = {"secret": secret, "name": "Ada", "address": address, "password": PASSWORD}
        return (await stranger.post("/invitation/accept", json=body)).json().get("detail", "accepted")

    for_eve = await market.invite(address="eve@example.org", role="org_auditor")
    assert "for another address" in await accept(for_eve)
    secret = await market.invite(projects=RENTER)
    look = await ask(stranger, "POST", "/invitation", secret=secret)
    assert (look["organisation"], look["projects"][0]["roles"]) == ("home", ["renter"])
    assert await accept(secret) == "accepted"
    assert "accepted already" in await accept(secret, "bob@example.org")
    again = await market.invite(projects=RENTER)
    assert "a member of this organisation already" in await accept(again)
    taken = {"secret": again, "name": "Ada", "address": "ada@example.net", "password": PASSWORD}
    refused = await ask(stranger, "POST", "/invitation/accept", 409, **taken)
    assert "Another member has the name Ada" in refused["detail"]
    guessed = taken | {"address": "ada@example.org", "password": "violet kettle upon six hills"}
    assert "not that user's password" in (await ask(stranger, "POST", "/invitation/accept", 409, **guessed))["detail"]


async def test_who_was_removed_comes_back_by_an_invitation_and_the_own_password(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=RENTER)
    mine = (await ask(ada, "GET", "/me"))["user"]["id"]
    await ask(market.owner, "DELETE", f"/members/{mine}")
    stranger = await market.client()
    body: Any = {"address": "ada@example.org", "password": PASSWORD}
    await ask(stranger, "POST", "/sign-in/password", 403, **body)
    secret = await market.invite(address="ada@example.org", projects=RENTER)
    back = await ask(stranger, "POST", "/invitation/accept", 201, **body, secret=secret, name="somebody else")
    me = await ask(await market.client(back["secret"]), "GET", "/me")
    assert (me["user"], me["roles"]) == ({"id": mine, "name": "ada"}, ["renter"])


async def test_an_invitation_is_withdrawn_and_renewed(market: Market) -> None:
    stranger = await market.client()

    async def accept(secret: str, address: str) -> Any:
        body = {"secret": secret, "name": "Cyd", "address": address, "password": PASSWORD}
        return (await stranger.post("/invitation/accept", json=body)).json().get("detail", "accepted")

    withdrawn = await ask(market.owner, "POST", "/invitations", projects=RENTER)
    await ask(market.owner, "DELETE", f"/invitations/{withdrawn['id']}")
    assert "expired or was withdrawn" in await accept(secret_of(withdrawn["link"]), "cyd@example.org")
    renewed = await ask(market.owner, "POST", "/invitations", projects=RENTER)
    newer = await ask(market.owner, "POST", f"/invitations/{renewed['id']}/link")
    assert "expired or was withdrawn" in await accept(secret_of(renewed["link"]), "cyd@example.org")
    market.clock.advance(7 * DAY)
    assert "expired or was withdrawn" in await accept(secret_of(newer["link"]), "cyd@example.org")
    assert (await ask(market.owner, "GET", "/invitations"))["items"] == []
    assert (await stranger.post("/invitation", json={"secret": "wi_nothing"})).status_code == 409
    assert (await stranger.post("/invitation", json={"secret": "wt_nothing"})).status_code == 401


async def test_a_present_user_accepts_while_signed_in(market: Market) -> None:
    guest = await ask(market.owner, "POST", "/accounts", name="guest", roles=["renter"])
    stranger = await market.client()
    token = (await ask(stranger, "POST", "/sign-in", secret=secret_of(guest["link"])))["token"]["token"]
    other = await market.client(token)
    invited = await ask(other, "POST", "/invitations", projects=[{"project": "guest", "roles": ["viewer"]}])

    ada = await market.joined("ada@example.org", projects=RENTER)
    assert (await ask(ada, "POST", "/invitation/join", secret=secret_of(invited["link"])))["name"] == "guest"

    assert (await ask(ada, "POST", "/projects/guest/use"))["roles"] == ["viewer"]
    me = await ask(ada, "GET", "/me")
    assert (me["account"]["name"], me["roles"]) == ("guest", ["viewer"])
    await ask(ada, "POST", "/clusters", 403, argv=["true"])
    assert (await ask(ada, "POST", "/projects/default/use"))["roles"] == ["renter"]
    made = await ask(ada, "POST", "/projects/guest/token", name="cli")
    assert (await ask(await market.client(made["token"]["token"]), "GET", "/me"))["roles"] == ["viewer"]
    await ask(ada, "POST", "/projects/nothing/use", 404)


async def test_each_tab_of_a_session_names_its_own_project(market: Market) -> None:
    lab = await ask(market.owner, "POST", "/projects", name="lab")
    ada = await market.joined("ada@example.org", projects=[*RENTER, {"project": "lab", "roles": ["viewer"]}])
    closed = await ask(market.owner, "POST", "/projects", name="closed")
    tab, other = {"Windrow-Project": lab["id"]}, {"Windrow-Project": closed["id"]}

    me = (await ada.get("/me", headers=tab)).json()
    assert (me["account"]["name"], me["roles"]) == ("lab", ["viewer"])
    assert (await ada.post("/clusters", headers=tab, json={"argv": ["true"]})).status_code == 403
    assert (await ask(ada, "GET", "/me"))["account"]["name"] == "default"
    await ask(ada, "POST", "/projects/lab/use")
    default = (await ask(market.owner, "GET", "/me"))["account"]["id"]
    me = (await ada.get("/me", headers={"Windrow-Project": default})).json()
    assert (me["account"]["name"], me["roles"]) == ("default", ["renter"])
    assert [(await ada.get("/me", headers=one)).status_code for one in (other, {"Windrow-Project": "x"})] == [404, 404]


async def test_a_token_acts_in_its_own_project_alone(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=RENTER)
    laptop = await market.client((await ask(ada, "POST", "/tokens", name="laptop"))["token"])
    part = await ask(market.owner, "POST", "/tokens", name="part", roles=["renter"])
    session = await ask(await market.client(), "POST", "/session", token=part["token"])
    lab = (await ask(market.owner, "POST", "/projects", name="lab"))["id"]
    default = (await ask(ada, "GET", "/me"))["account"]["id"]

    for client in (laptop, await market.client(session["secret"])):
        assert (await client.get("/me", headers={"Windrow-Project": default})).status_code == 200
        assert (await client.get("/me", headers={"Windrow-Project": lab})).status_code == 403


async def test_a_member_who_is_removed_acts_in_no_tab(market: Market) -> None:
    lab = await ask(market.owner, "POST", "/projects", name="lab")
    ada = await market.joined("ada@example.org", projects=[*RENTER, {"project": "lab", "roles": ["renter"]}])
    tab = {"Windrow-Project": lab["id"]}
    me = (await ada.get("/me", headers=tab)).json()

    await ask(market.owner, "PUT", f"/members/{me['user']['id']}", projects=[{"project": "lab", "roles": []}])

    assert (await ada.get("/me", headers=tab)).status_code == 404
    assert (await ada.get("/me")).status_code == 200


async def test_a_removed_member_is_out_with_the_next_request(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=RENTER)
    made = await ask(ada, "POST", "/tokens", name="laptop")
    laptop = await market.client(made["token"])
    user_id = (await ask(ada, "GET", "/me"))["user"]["id"]
    assert (await ask(laptop, "GET", "/me"))["roles"] == ["renter"]

    await ask(market.owner, "DELETE", f"/members/{user_id}")

    for client in (ada, laptop):
        await ask(client, "GET", "/me", 401)
    stranger = await market.client()
    refused = await ask(stranger, "POST", "/sign-in/password", 403, address="ada@example.org", password=PASSWORD)
    assert "You are a member of no such project" in refused["detail"]


async def test_roles_change_at_once_and_the_last_owner_stays(market: Market) -> None:
    ada = await market.joined("ada@example.org", role="org_admin", projects=RENTER)
    members = (await ask(ada, "GET", "/members"))["items"]
    ids = {one["name"]: one["id"] for one in members}
    assert {one["name"]: one["role"] for one in members} == {"owner": "org_owner", "ada": "org_admin"}

    for path, body in (
        (f"/members/{ids['owner']}", {"role": "none"}),
        (f"/members/{ids['ada']}", {"role": "org_owner"}),
    ):
        await ask(ada, "PUT", path, 403, **body)
    await ask(market.owner, "PUT", f"/members/{ids['owner']}", 409, role="org_admin")
    await ask(market.owner, "DELETE", f"/members/{ids['owner']}", 409)
    grants = [{"project": "default", "roles": ["viewer"]}]
    changed = await ask(market.owner, "PUT", f"/members/{ids['ada']}", role="none", projects=grants)
    assert (changed["role"], changed["projects"][0]["roles"]) == (None, ["viewer"])
    assert (await ask(ada, "GET", "/me"))["roles"] == ["viewer"]
    await ask(ada, "GET", "/members", 403)


async def test_an_admin_of_a_project_reaches_its_members_alone(market: Market) -> None:
    await ask(market.owner, "POST", "/projects", name="lab")
    ada = await market.joined("ada@example.org", projects=[{"project": "lab", "roles": ["admin", "renter"]}])
    await market.joined("bob@example.org", projects=RENTER)
    assert (await ask(ada, "GET", "/me"))["account"]["name"] == "lab"

    names = {one["name"] for one in (await ask(ada, "GET", "/members"))["items"]}
    assert names == {"owner", "ada"}
    everybody = {one["name"]: one["id"] for one in (await ask(market.owner, "GET", "/members"))["items"]}
    await ask(ada, "PUT", f"/members/{everybody['bob']}", 404, projects=[])
    await ask(ada, "POST", "/invitations", 422, projects=RENTER)
    await ask(ada, "POST", "/invitations", 403, role="org_auditor")
    await ask(ada, "POST", "/invitations", 201, projects=[{"project": "lab", "roles": ["viewer"]}])
    assert [one["name"] for one in (await ask(ada, "GET", "/projects"))["items"]] == ["lab"]
    assert (await ask(ada, "GET", "/me"))["balance"]["amount"] == "0.00"
    await ask(ada, "POST", "/projects", 403, name="more")


async def test_wrong_passwords_are_slowed_down_alike_for_users_and_for_nobody(market: Market) -> None:
    await market.joined("ada@example.org", projects=RENTER)
    said = {}
    for address in ("ada@example.org", "nobody@example.org"):
        stranger = await market.client()
        body = {"address": address, "password": "not this one at all"}
        answers = [(await stranger.post("/sign-in/password", json=body)).json() for _ in range(7)]
        said[address] = [(one["status"], one["detail"]) for one in answers]

    assert said["ada@example.org"] == said["nobody@example.org"]
    assert [status for status, _ in said["ada@example.org"]] == [401] * 5 + [429] * 2
    market.clock.advance(MINUTE)
    assert (await ask(await market.signed_in("ada@example.org"), "GET", "/me"))["user"]["name"] == "ada"


async def test_another_password_ends_the_other_sessions_and_leaves_tokens(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=RENTER)
    made = await ask(ada, "POST", "/tokens", name="laptop")
    elsewhere = await market.signed_in("ada@example.org")

    await ask(ada, "PUT", "/user/password", 403, present="wrong one, surely", password=OTHER)
    await ask(ada, "PUT", "/user/password", 422, present=PASSWORD, password="password1234")
    await ask(ada, "PUT", "/user/password", present=PASSWORD, password=OTHER)

    await ask(ada, "GET", "/me")
    await ask(elsewhere, "GET", "/me", 401)
    await ask(await market.client(made["token"]), "GET", "/me")
    await ask(await market.client(), "POST", "/sign-in/password", 401, address="ada@example.org", password=PASSWORD)
    await market.signed_in("ada@example.org", OTHER)


async def test_a_password_link_works_once_within_half_an_hour(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=RENTER)
    user_id = (await ask(ada, "GET", "/me"))["user"]["id"]
    stranger = await market.client()

    first, second = [
        secret_of((await ask(market.owner, "POST", f"/members/{user_id}/password-link"))["link"]) for _ in range(2)
    ]
    await ask(stranger, "POST", "/password", 401, secret=first, password=OTHER)
    await ask(stranger, "POST", "/password", secret=second, password=OTHER)
    await ask(stranger, "POST", "/password", 401, secret=second, password=PASSWORD)
    await ask(ada, "GET", "/me", 401)
    late = secret_of((await ask(market.owner, "POST", f"/members/{user_id}/password-link"))["link"])
    market.clock.advance(30 * MINUTE)
    await ask(stranger, "POST", "/password", 401, secret=late, password=PASSWORD)
    await market.signed_in("ada@example.org", OTHER)


async def test_a_second_factor_is_asked_for_once_it_was_shown_to_work(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=RENTER)
    await ask(ada, "POST", "/user/second-factor", 403, password="not this one at all")
    made = await ask(ada, "POST", "/user/second-factor", password=PASSWORD)
    await market.signed_in("ada@example.org")  # not confirmed yet

    padded = made["secret"] + "=" * (-len(made["secret"]) % 8)
    app = TOTP(base64.b32decode(padded), 6, hashes.SHA1(), 30)

    def code() -> str:
        return app.generate(market.clock.wall_ns() // SECOND).decode()

    await ask(ada, "PUT", "/user/second-factor", 422, code="000000")
    codes = (await ask(ada, "PUT", "/user/second-factor", code=code()))["recovery_codes"]

    stranger = await market.client()
    body = {"address": "ada@example.org", "password": PASSWORD}
    assert (await ask(stranger, "POST", "/sign-in/password", 401, **body))["code"] == "second_factor_required"
    replayed = await ask(stranger, "POST", "/sign-in/password", 401, **body, code=code())
    assert "was used already" in replayed["detail"]
    market.clock.advance(30 * SECOND)
    await market.signed_in("ada@example.org", code=code())
    await market.signed_in("ada@example.org", code=codes[0])
    await ask(stranger, "POST", "/sign-in/password", 401, **body, code=codes[0])
    assert (await ask(ada, "GET", "/user"))["recovery_codes_left"] == 9
    await ask(ada, "POST", "/user/second-factor/remove", 403, password=PASSWORD, code="000000")
    await ask(ada, "POST", "/user/second-factor/remove", password=PASSWORD, code=codes[1])
    await market.signed_in("ada@example.org")


async def test_the_first_user_sets_a_password_after_an_address(market: Market) -> None:
    await ask(market.owner, "PUT", "/user/password", 422, password=PASSWORD)
    for address in ("", "ada", "ada@", "a b@example.org", "ada@exa mple.org", "<b>@example.org"):
        assert (await market.owner.put("/user", json={"address": address})).status_code == 422, address
    await ask(market.owner, "PUT", "/user", name="Grace Hopper", address="grace@example.org")
    await ask(market.owner, "PUT", "/user/password", password=PASSWORD)
    grace = await market.signed_in("GRACE@example.org")
    me = await ask(grace, "GET", "/me")
    assert me["user"]["name"] == "Grace Hopper"
    assert me["roles"] == ["admin", "auditor", "operator", "org_owner", "provider", "renter"]
    assert (await market.owner.put("/user", json={"name": "\u202egnp.exe"})).status_code == 422


async def test_a_projects_own_token_has_no_user_and_changes_none(market: Market) -> None:
    token = market.opened.store.write_now(lambda uow: _own_token(uow, market), name="test")
    own = await market.client(token)
    assert (await ask(own, "GET", "/me"))["user"] is None
    await ask(own, "GET", "/user", 403)
    await ask(own, "POST", "/projects/default/use", 403)


def _own_token(uow: UnitOfWork, market: Market) -> str:
    found = market.opened.identity.accounts.find(uow, "default")
    assert found is not None
    return issue_token(uow, found.id, "own", frozenset({Role.RENTER}), DAY, "test")[1]
