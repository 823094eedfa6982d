"""What members, thieves of tokens and strangers try against users: each of these worked once, or nearly."""

import asyncio
from collections.abc import AsyncIterator
from email.policy import SMTP
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import Request

from tests.unit.identity.people_world import PASSWORD, RENTER, Market, ask, people_market, secret_of
from windrow_master.api import streaming
from windrow_master.api.app import build_app
from windrow_master.api.rate_limits import Limits
from windrow_master.identity.membership import check_address, check_person
from windrow_master.mail.message import Letter, compose
from windrow_proto.errors import InvalidInput
from windrow_proto.units import MINUTE, SECOND

EVIL = "purple otters hum at midnight"
ADMIN = [{"project": "default", "roles": ["admin", "renter"]}]


@pytest.fixture
async def market(tmp_path: Path) -> AsyncIterator[Market]:
    async with people_market(tmp_path) as found:
        yield found


async def _id(client: httpx2.AsyncClient) -> str:
    return str((await ask(client, "GET", "/me"))["user"]["id"])


async def _cut(market: Market, client: httpx2.AsyncClient, *roles: str) -> httpx2.AsyncClient:
    """A client with a token that has a part of this one's roles."""
    return await market.client((await ask(client, "POST", "/tokens", name="cut", roles=list(roles)))["token"])


async def _opened(market: Market, link: str) -> httpx2.AsyncClient:
    made = await ask(await market.client(), "POST", "/sign-in", secret=secret_of(link))
    return await market.client(made["token"]["token"])


async def _accepted(market: Market, link: str) -> int:
    body = {"secret": secret_of(link), "name": "x", "address": "x@evil.org", "password": EVIL}
    return (await (await market.client()).post("/invitation/accept", json=body)).status_code


async def test_a_token_with_a_part_of_the_roles_does_not_become_its_user(market: Market) -> None:
    weak = await _cut(market, market.owner, "renter")
    await ask(weak, "PUT", "/user", 403, address="eve@evil.org")
    await ask(weak, "PUT", "/user/password", 403, password=EVIL)
    await ask(weak, "POST", "/user/second-factor", 403, password=EVIL)
    ada = await market.joined("ada@example.org", projects=ADMIN)
    admin = await _cut(market, ada, "admin")
    await ask(admin, "POST", f"/members/{await _id(ada)}/password-link", 403)
    await ask(await _cut(market, ada, "renter"), "DELETE", f"/members/{await _id(ada)}", 403)


async def test_an_admin_of_a_project_gets_no_more_by_its_members(market: Market) -> None:
    await ask(market.owner, "POST", "/projects", name="lab")
    eve = await market.joined("eve@example.org", projects=[{"project": "lab", "roles": ["admin"]}])
    lab = {"project": "lab", "roles": ["viewer"]}
    bob = await market.joined("bob@example.org", role="org_billing", projects=[lab, *ADMIN])

    await ask(eve, "POST", f"/members/{await _id(bob)}/password-link", 403)
    await ask(eve, "PUT", f"/members/{await _id(bob)}", 403, role="none")
    more = [{"project": "lab", "roles": ["admin", "renter"]}]
    await ask(eve, "PUT", f"/members/{await _id(eve)}", 403, projects=more)
    await ask(eve, "POST", "/invitations", 403, projects=more)


async def test_what_a_removed_member_made_ends_with_the_membership(market: Market) -> None:
    ada = await market.joined(
        "ada@example.org", role="org_admin", projects=[{"project": "default", "roles": ["provider"]}]
    )
    bob = await market.joined("bob@example.org", role="org_admin")
    invitation = (await ask(ada, "POST", "/invitations", role="org_admin"))["link"]
    password = (await ask(ada, "POST", f"/members/{await _id(bob)}/password-link"))["link"]
    ticket = await ask(ada, "POST", "/join-tokens", expires_in_s=86_400)

    await ask(market.owner, "DELETE", f"/members/{await _id(ada)}")

    assert await _accepted(market, invitation) == 409
    stranger = await market.client()
    await ask(stranger, "POST", "/password", 401, secret=secret_of(password), password=EVIL)
    assert ticket["id"] not in [one["id"] for one in (await ask(market.owner, "GET", "/join-tokens"))["items"]]


async def test_what_a_demoted_member_or_a_revoked_token_offered_is_refused(market: Market) -> None:
    ada = await market.joined("ada@example.org", role="org_admin", projects=RENTER)
    link = (await ask(ada, "POST", "/invitations", role="org_admin"))["link"]
    await ask(market.owner, "PUT", f"/members/{await _id(ada)}", role="none")
    assert await _accepted(market, link) == 409

    made = await ask(market.owner, "POST", "/tokens", name="ci", roles=["org_owner"])
    link = (await ask(await market.client(made["token"]), "POST", "/invitations", role="org_owner"))["link"]
    await ask(market.owner, "DELETE", f"/tokens/{made['id']}")
    assert await _accepted(market, link) == 409


async def test_a_revoked_token_ends_what_came_from_it_through_an_ended_session(market: Market) -> None:
    await ask(market.owner, "POST", "/projects", name="lab")
    ada = await market.joined("ada@example.org", projects=[{"project": "lab", "roles": ["renter"]}, *RENTER])
    stolen = await ask(ada, "POST", "/tokens", name="laptop")
    thief = await market.client((await ask(await market.client(), "POST", "/session", token=stolen["token"]))["secret"])
    here = (await ask(thief, "GET", "/me"))["account"]["name"]
    await ask(thief, "POST", f"/projects/{'lab' if here == 'default' else 'default'}/use")
    kept = await market.client((await ask(thief, "POST", "/tokens", name="mine"))["token"])
    await ask(thief, "DELETE", "/session")

    await ask(ada, "DELETE", f"/tokens/{stolen['id']}")

    await ask(kept, "GET", "/me", 401)


async def test_a_long_answer_of_a_project_ends_when_its_session_moves_on(
    market: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ask(market.owner, "POST", "/projects", name="lab")
    ada = await market.joined("ada@example.org", projects=[{"project": "lab", "roles": ["renter"]}, *RENTER])
    secret = ada.headers["authorization"].removeprefix("Bearer ")
    request = Request({"type": "http", "state": {}})

    async def authorised(asked: Any) -> None:
        asked.state.principal = await market.opened.identity.authenticate(secret)

    monkeypatch.setattr(streaming, "authorise", authorised)
    await authorised(request)
    assert await streaming.is_allowed(request) and await streaming.is_allowed(request)
    here = (await ask(ada, "GET", "/me"))["account"]["name"]
    await ask(ada, "POST", f"/projects/{'lab' if here == 'default' else 'default'}/use")
    assert not await streaming.is_allowed(request)


async def test_a_suspended_operator_is_nobody_anywhere(market: Market) -> None:
    ops = await ask(market.owner, "POST", "/accounts", name="ops", roles=["operator"])
    client = await _opened(market, ops["link"])
    await ask(client, "POST", "/projects", name="ops2")
    kept = await market.client((await ask(client, "POST", "/projects/ops2/token"))["token"]["token"])

    await ask(market.owner, "POST", "/accounts/ops/suspend", reason="x")

    await ask(kept, "GET", "/me", 401)
    await ask(market.owner, "POST", "/accounts/ops/resume")
    await ask(kept, "GET", "/me")


async def test_an_operators_link_opens_neither_other_organisations_nor_projects_of_members(market: Market) -> None:
    market.clock.advance(SECOND)  # ids of one moment have no order, and the first account is another case
    guest = await ask(market.owner, "POST", "/accounts", name="guest", roles=["renter"])
    await ask(
        await _opened(market, guest["link"]), "POST", "/invitation/join", secret=await market.invite(role="org_owner")
    )
    await ask(market.owner, "POST", "/projects", name="lab")
    ops = await _opened(market, (await ask(market.owner, "POST", "/accounts", name="ops", roles=["operator"]))["link"])

    await ask(ops, "POST", "/accounts/guest/link", 403)
    await ask(ops, "POST", "/accounts/lab/link", 409)


async def test_an_owner_who_is_no_operator_removes_none(market: Market) -> None:
    bob = await market.joined("bob@example.org", role="org_owner")
    await ask(bob, "DELETE", f"/members/{await _id(market.owner)}", 403)
    await ask(bob, "PUT", f"/members/{await _id(market.owner)}", 403, role="org_admin")


async def test_an_admin_sees_and_revokes_tokens_of_members_with_no_more_roles(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=RENTER)
    token = await ask(ada, "POST", "/tokens", name="laptop")
    bob = await market.joined("bob@example.org", projects=ADMIN)
    seen = {one["id"] for one in (await ask(bob, "GET", "/tokens"))["items"]}
    assert token["id"] in seen
    own = {one["id"]: one["name"] for one in (await ask(market.owner, "GET", "/tokens"))["items"]}
    cli = next(one for one, name in own.items() if name == "cli.json")
    assert cli not in seen
    await ask(bob, "DELETE", f"/tokens/{cli}", 404)
    await ask(bob, "DELETE", f"/tokens/{token['id']}")


async def test_the_sessions_of_one_member_take_no_room_from_another(market: Market) -> None:
    bob = await market.joined("bob@example.org", projects=[{"project": "default", "roles": ["viewer"]}])
    ada = await market.joined("ada@example.org", projects=RENTER)
    stranger = await market.client()
    taken = (await ask(bob, "POST", "/tokens", name="t"))["token"]
    statuses = [(await stranger.post("/session", json={"token": taken})).status_code for _ in range(101)]
    assert statuses[-1] == 429
    await ask(stranger, "POST", "/session", 200, token=(await ask(ada, "POST", "/tokens", name="t"))["token"])


async def test_many_guesses_at_once_are_as_many_guesses(market: Market) -> None:
    await market.joined("ada@example.org", projects=RENTER)
    stranger = await market.client()

    async def guess(number: int) -> int:
        body = {"address": "ada@example.org", "password": f"wrong, and wrong again {number}"}
        return (await stranger.post("/sign-in/password", json=body)).status_code

    statuses = await asyncio.gather(*map(guess, range(25)))
    assert statuses.count(401) == 5
    market.clock.advance(MINUTE)
    assert (await asyncio.gather(*map(guess, range(4)))).count(401) == 1


async def test_nobody_makes_a_user_elsewhere_wait_by_a_few_wrong_answers(market: Market) -> None:
    await market.joined("ada@example.org", projects=RENTER)
    sign_in = market.opened.identity.sign_in
    for _ in range(20):
        try:
            sign_in.delays.begin("ada@example.org", "198.51.100.7")
        except Exception:
            market.clock.advance(61 * SECOND)
    await market.signed_in("ada@example.org")


async def test_one_address_guesses_thirty_passwords_and_is_refused_before_it_costs(
    tmp_path: Path, market: Market
) -> None:
    await market.joined("ada@example.org", projects=RENTER)
    app = build_app(market.opened.services, tmp_path, limits=Limits())
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://master/api/v1") as client:
        for number in range(30):
            body = {"address": f"u{number}@example.org", "password": "wrong, and wrong again"}
            assert (await client.post("/sign-in/password", json=body)).status_code in (401, 429)
        right = {"address": "ada@example.org", "password": PASSWORD}
        assert (await client.post("/sign-in/password", json=right)).status_code == 429


@pytest.mark.parametrize("text", ["=?utf-8?q?a=0D=0ABcc:_x@y.z?=", "=?utf-8?q?a=0D=0A=0D=0ABody?=", "a\r\nBcc: x@y.z"])
def test_no_text_of_a_mail_makes_a_header(text: str) -> None:
    letter = Letter(subject=f"{text} invites you", paragraphs=(text,), link="https://m/#x", link_text="Open")
    head = (
        compose(letter, "ada@example.org", "m@example.org", "<1@m>", "now")
        .as_bytes(policy=SMTP)
        .partition(b"\r\n\r\n")[0]
    )
    assert b"\nbcc" not in head.lower() and head.lower().count(b"\nto:") <= 1


@pytest.mark.parametrize(
    "address", ["=?utf-8?q??=@b.org", "=?utf-8?q?x=40evil.org=2C?=@b.org", "a\u202e@b.org", "a b@b.org"]
)
def test_an_address_that_a_header_would_read_otherwise_is_none(address: str) -> None:
    with pytest.raises(InvalidInput):
        check_address(address)


@pytest.mark.parametrize(
    "name", ["\u3164", "\u2800", "\u115f", "Windrow https://evil.example/x", "=?utf-8?q?a?=", "<b>"]
)
def test_a_name_that_misleads_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        check_person(name)
