"""What people try who had rights, or want those of others: each way was open once."""

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from tests.unit.identity.oidc_world import NAME, Entrance, entrance
from tests.unit.identity.people_world import PASSWORD, RENTER, Market, ask, people_market, secret_of
from windrow_master.api.app import build_app
from windrow_master.api.rate_limits import Limits
from windrow_master.identity.members import note_restored
from windrow_master.identity.oidc import Asked, Metadata
from windrow_master.identity.provider_service import Flow, Flows
from windrow_master.identity.sign_in import Delays
from windrow_proto.errors import TooMany
from windrow_proto.units import HOUR, SECOND

ADMIN = [{"project": "default", "roles": ["admin", "renter"]}]
OTHER = "purple otters hum at midnight"


@pytest.fixture
async def market(tmp_path: Path) -> AsyncIterator[Market]:
    async with people_market(tmp_path) as found:
        found.clock.advance(SECOND)  # the ids of one moment have no order
        yield found


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Entrance]:
    async with entrance(tmp_path) as found:
        yield found


async def _id(client: httpx2.AsyncClient) -> str:
    return str((await ask(client, "GET", "/me"))["user"]["id"])


async def _stranger(market: Market, name: str = "guest") -> httpx2.AsyncClient:
    """Somebody with an account of their own."""
    made = await ask(market.owner, "POST", "/accounts", name=name, roles=["renter"])
    opened = await ask(await market.client(), "POST", "/sign-in", secret=secret_of(made["link"]))
    return await market.client(opened["token"]["token"])


async def _job(client: httpx2.AsyncClient) -> str:
    return str((await ask(client, "POST", "/jobs", argv=["true"], await_files=True, name="train"))["jobs"][0]["id"])


async def _share(client: httpx2.AsyncClient, job: str, receiver: str, status: int = 201) -> None:
    body = {"object_kind": "job", "object_id": job, "receiver_kind": "user", "receiver": receiver, "level": "manage"}
    await ask(client, "POST", "/shares", status, **body)


async def _accept(market: Market, link: str, status: int) -> None:
    body = {"secret": secret_of(link), "name": "x", "address": "x@evil.example", "password": PASSWORD}
    await ask(await market.client(), "POST", "/invitation/accept", status, **body)


async def _stale(market: Market) -> httpx2.AsyncClient:
    """A browser in which the owner signed in an hour ago."""
    token = market.owner.headers["Authorization"].removeprefix("Bearer ")
    browser = await market.client((await ask(await market.client(), "POST", "/session", token=token))["secret"])
    market.clock.advance(HOUR)
    return browser


@pytest.mark.parametrize("how", ["rotate", "remove"])
async def test_what_a_service_account_shared_ends_with_its_token(market: Market, how: str) -> None:
    guest, job = await _stranger(market), await _job(market.owner)
    made = await ask(market.owner, "POST", "/service-accounts", 201, name="ci", roles=["renter"])
    await _share(await market.client(made["token"]["token"]), job, await _id(guest))
    await ask(guest, "GET", f"/jobs/{job}")
    if how == "rotate":
        await ask(market.owner, "POST", "/service-accounts/ci/rotate", 201, overlap_s=0)
    else:
        await ask(market.owner, "DELETE", "/service-accounts/ci", 204)
    await ask(guest, "GET", f"/jobs/{job}", 404)
    assert (await ask(market.owner, "GET", "/shares"))["items"] == []


async def test_a_member_who_is_removed_loses_what_was_shared_with_the_user(market: Market) -> None:
    bob = await _stranger(market, "bob")
    viewer = [{"project": "default", "roles": ["viewer"]}]
    await ask(bob, "POST", "/invitation/join", secret=await market.invite(projects=viewer))
    job = await _job(market.owner)
    await _share(market.owner, job, "bob")
    await ask(bob, "GET", f"/jobs/{job}")
    await ask(market.owner, "DELETE", f"/members/{await _id(bob)}", 204)
    await ask(bob, "GET", f"/jobs/{job}", 404)


async def test_a_name_that_is_an_address_gets_no_share(market: Market) -> None:
    eve = await market.joined("eve@evil.example", projects=[{"project": "default", "roles": ["viewer"]}])
    await ask(eve, "PUT", "/user", 200, name="boss@corp.example")
    await _share(market.owner, await _job(market.owner), "boss@corp.example", 404)


async def test_an_address_that_a_member_has_typed_is_named_with_its_member(market: Market) -> None:
    eve = await market.joined("eve@evil.example", projects=[{"project": "default", "roles": ["viewer"]}])
    await ask(eve, "PUT", "/user", 200, address="boss@corp.example", password=PASSWORD)
    refused = await ask(market.owner, "POST", "/invitations", 409, address="boss@corp.example", role="org_owner")
    assert "without a proof" in refused["detail"] and await _id(eve) in refused["detail"]


async def test_invitations_of_whoever_is_suspended_let_nobody_in(market: Market) -> None:
    eve = await _stranger(market, "eve")
    await ask(eve, "POST", "/invitation/join", secret=await market.invite(role="org_admin"))
    here = await market.client((await ask(eve, "POST", "/projects/default/token"))["token"]["token"])
    link = (await ask(here, "POST", "/invitations", role="org_admin", projects=ADMIN))["link"]
    await ask(market.owner, "POST", "/accounts/eve/suspend", reason="x")
    await _accept(market, link, 409)


async def test_an_admin_who_lost_a_role_does_not_get_it_back_by_an_invitation_of_before(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=ADMIN)
    link = (await ask(ada, "POST", "/invitations", projects=RENTER))["link"]
    only_admin = [{"project": "default", "roles": ["admin"]}]
    await ask(market.owner, "PUT", f"/members/{await _id(ada)}", projects=only_admin)
    await _accept(market, link, 409)


async def test_password_links_of_an_admin_who_is_none_any_more_are_worthless(market: Market) -> None:
    viewer = [{"project": "default", "roles": ["viewer"]}]
    ada = await market.joined("ada@example.org", role="org_admin", projects=viewer)
    bob = await market.joined("bob@example.org", projects=ADMIN)
    link = (await ask(ada, "POST", f"/members/{await _id(bob)}/password-link"))["link"]
    await ask(market.owner, "PUT", f"/members/{await _id(ada)}", role="none")
    await ask(await market.client(), "POST", "/password", 401, secret=secret_of(link), password=OTHER)


async def test_an_admins_token_does_not_become_the_password(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=ADMIN)
    stolen = await market.client((await ask(ada, "POST", "/tokens", name="laptop"))["token"])
    refused = await ask(stolen, "POST", f"/members/{await _id(ada)}/password-link", 403)
    assert "under Settings" in refused["detail"]


async def test_a_token_with_a_part_of_the_roles_stays_where_it_is(market: Market) -> None:
    await ask(market.owner, "POST", "/projects", name="production")
    both = [*RENTER, {"project": "production", "roles": ["renter"]}]
    ada, eve = await market.joined("ada@example.org", projects=both), await _stranger(market, "eve")
    part = await market.client((await ask(ada, "POST", "/tokens", name="ci", roles=["renter"]))["token"])
    for project in ("default", "production"):
        await ask(part, "POST", f"/projects/{project}/token", 403)
    link = (await ask(eve, "POST", "/invitations", projects=[{"project": "eve", "roles": ["viewer"]}]))["link"]
    await ask(part, "POST", "/invitation/join", 403, secret=secret_of(link))


async def test_an_admin_of_a_project_does_not_read_the_names_of_others(market: Market) -> None:
    await ask(market.owner, "POST", "/projects", name="merger")
    both = [{"project": "default", "roles": ["viewer"]}, {"project": "merger", "roles": ["admin"]}]
    await market.joined("bob@example.org", projects=both)
    ada = await market.joined("ada@example.org", projects=ADMIN)
    seen = {project["name"] for one in (await ask(ada, "GET", "/members"))["items"] for project in one["projects"]}
    assert seen == {"default"}
    seen = {p["name"] for one in (await ask(market.owner, "GET", "/members"))["items"] for p in one["projects"]}
    assert seen == {"default", "merger"}


async def test_codes_are_not_guessed_at_the_removal_of_the_second_factor(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=RENTER)
    made = await ask(ada, "POST", "/user/second-factor", password=PASSWORD)
    secret = base64.b32decode(made["secret"] + "=" * (-len(made["secret"]) % 8))
    app = TOTP(secret, 6, hashes.SHA1(), 30)
    await ask(ada, "PUT", "/user/second-factor", code=app.generate(market.clock.wall_ns() // SECOND).decode())
    said = []
    for number in range(8):
        body = {"password": PASSWORD, "code": f"{number:06d}"}
        said.append((await ada.request("POST", "/user/second-factor/remove", json=body)).status_code)
    assert said == [403] * 5 + [429] * 3


async def test_a_newline_behind_the_path_passes_no_limit(market: Market, tmp_path: Path) -> None:
    transport = httpx2.ASGITransport(build_app(market.opened.services, tmp_path, limits=Limits()))
    async with httpx2.AsyncClient(transport=transport, base_url="http://master/api/v1") as client:
        for path in ("/sign-in/password%0A", "/sign-in/password%0D", "/me%7F"):
            answer = await client.post(path, json={"address": "a@b.example", "password": "wrong, and wrong again"})
            assert (answer.status_code, answer.json()["detail"]) == (422, "The path has a control character.")
        seen = {"Accept": "text/html"}
        pages = [await client.get(f"http://master{path}", headers=seen) for path in ("/", "/hosts/%00")]
        assert (pages[0].status_code, pages[0].text) == (pages[1].status_code, pages[1].text)
        assert (await client.get("/hosts/%00", headers=seen)).status_code == 422


def test_nobody_else_keeps_a_user_out_of_a_network_that_is_known(market: Market) -> None:
    delays = Delays(market.clock)
    delays.begin("ada@example.org", "192.0.2.1")
    delays.right("ada@example.org", "192.0.2.1")
    for number in range(12):
        for _ in range(5):
            try:
                delays.begin("ada@example.org", f"198.51.100.{number}")
            except TooMany:
                break
    with pytest.raises(TooMany):
        delays.begin("ada@example.org", "203.0.113.5")
    delays.begin("ada@example.org", "192.0.2.1")


async def test_a_browser_that_was_left_is_linked_with_nobody_elses_identity(door: Entrance) -> None:
    await door.set(creates_users=False)
    browser = await _stale(door.market)
    refused = await ask(browser, "POST", "/user/identities", 403, provider=NAME)
    assert refused["code"] == "sign_in_again"


def test_many_sign_ins_from_one_network_displace_none_of_another() -> None:
    flows, asked = Flows(most=4), Asked(NAME, Metadata("", "", "", "", None, False, False), "", "", "")
    for number, network in enumerate(["192.0.2.1", *["198.51.100.1"] * 9, "203.0.113.1"]):
        flows.add(str(number), Flow(asked, "", None, network, 0))
    assert flows.take("0") and flows.take("9") and flows.take("10") and not flows.take("1") and not flows.take("0")


async def test_that_one_address_is_verified_is_not_believed_of_another(door: Entrance) -> None:
    await door.set(domains=["acme.example"])
    door.issuer.claims["email"] = "anybody@acme.example"
    door.issuer.said |= {"email": "ada@elsewhere.example", "email_verified": True}
    assert (await door.finish(await door.start())).status_code == 403


async def test_a_token_with_a_limit_does_not_become_its_user(door: Entrance) -> None:
    await door.set(creates_users=False)
    owner = door.market.owner  # who has no password yet, so that none is asked for
    made = await ask(owner, "POST", "/tokens", 201, name="ci", limits={"max_leases": 1})
    limited = await door.market.client(made["token"])
    await ask(limited, "PUT", "/user", 403, address="eve@evil.example")
    await ask(owner, "PUT", "/user", 200, address="owner@example.org")
    await ask(limited, "PUT", "/user/password", 403, password=OTHER)
    await ask(limited, "POST", "/user/identities", 403, provider=NAME)
    await ask(limited, "POST", "/user/delete", 403, name="owner")
    await ask(limited, "PUT", "/user", 200, name="Owner")
    await ask(owner, "PUT", "/user/password", 204, password=OTHER)


async def _suspended_owner(market: Market) -> tuple[httpx2.AsyncClient, str]:
    """Another owner of the first organisation, in its project, and the user's id; suspend the account eve."""
    eve = await _stranger(market, "eve")
    await ask(eve, "POST", "/invitation/join", secret=await market.invite(role="org_owner"))
    return await market.client((await ask(eve, "POST", "/projects/default/token"))["token"]["token"]), await _id(eve)


async def test_an_owner_who_is_suspended_is_no_hindrance_to_the_other_one(market: Market) -> None:
    _, eve_id = await _suspended_owner(market)
    await ask(market.owner, "POST", "/accounts/eve/suspend", reason="x")
    await ask(market.owner, "PUT", f"/members/{eve_id}", 200, role="org_admin")
    await ask(market.owner, "PUT", f"/members/{eve_id}", 200, role="org_owner")
    await ask(market.owner, "DELETE", f"/members/{eve_id}", 204)
    own = await _id(market.owner)
    await ask(market.owner, "PUT", f"/members/{own}", 409, role="org_admin")
    await ask(market.owner, "DELETE", f"/members/{own}", 409)


async def test_what_a_suspended_owner_offered_is_not_taken(market: Market) -> None:
    eve, _ = await _suspended_owner(market)
    guest = await _stranger(market)
    await ask(eve, "POST", "/projects", name="lab")
    await ask(eve, "POST", "/projects/lab/transfer", 201, organisation="guest")
    await ask(market.owner, "POST", "/accounts/eve/suspend", reason="x")
    await ask(guest, "POST", "/projects/lab/transfer/accept", 409)


async def test_a_request_whose_body_comes_after_the_right_has_gone_does_nothing(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=ADMIN)
    ada_id = await _id(ada)

    async def late() -> AsyncIterator[bytes]:
        await ask(market.owner, "DELETE", f"/members/{ada_id}", 204)
        yield b'{"name": "ci", "roles": ["renter"]}'

    answer = await ada.post("/service-accounts", content=late(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 401
    assert (await ask(market.owner, "GET", "/service-accounts"))["items"] == []


async def test_a_suspended_project_stays_with_its_organisation(market: Market) -> None:
    guest = await _stranger(market)
    await ask(market.owner, "POST", "/projects", name="lab")
    await ask(market.owner, "POST", "/projects/lab/transfer", 201, organisation="guest")
    await ask(market.owner, "POST", "/accounts/lab/suspend", reason="x")
    await ask(guest, "POST", "/projects/lab/transfer/accept", 409)
    await ask(market.owner, "POST", "/projects/lab/transfer", 409, organisation="guest")
    await ask(market.owner, "POST", "/accounts/lab/transfer", 409, organisation="guest", reason="x")
    await ask(market.owner, "POST", "/accounts/lab/resume")
    await ask(guest, "POST", "/projects/lab/transfer/accept", 200)


async def test_a_project_that_is_restored_has_no_roles_of_groups_that_were_left_meanwhile(door: Entrance) -> None:
    owner = door.market.owner
    await ask(owner, "POST", "/projects", name="lab")
    lab = [{"project": "lab", "roles": ["admin", "renter"]}]
    await door.set(groups=[{"group": "ml", "projects": RENTER}, {"group": "lab", "projects": lab}])
    door.issuer.claims["groups"] = ["ml", "lab"]
    await door.entered()
    await ask(owner, "DELETE", "/projects/lab", 204)
    door.issuer.claims["groups"] = ["ml"]
    ada = await door.entered()
    await ask(owner, "POST", "/projects/lab/restore")
    assert [one["name"] for one in (await ask(ada, "GET", "/projects"))["items"]] == ["default"]
    await ask(ada, "POST", "/projects/lab/use", 404)


async def test_a_restore_opens_no_door_that_was_closed_since(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=RENTER)
    token = (await ask(ada, "POST", "/tokens", name="laptop"))["token"]
    invitation = await market.invite(role="org_admin")
    await market.opened.store.write(lambda uow: note_restored(uow, uow.now_wall_ns), name="test")
    market.opened.identity.asking.forget()
    await ask(ada, "GET", "/me", 401)
    await ask(await market.client(), "POST", "/invitation", 409, secret=invitation)
    await ask(await market.client(token), "GET", "/me")
