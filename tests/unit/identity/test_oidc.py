"""Signing in by an identity provider: who becomes a user, what groups give, how users are linked with identities."""

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest

from tests.unit.identity.oidc_world import CLIENT, INSIDE_ADDRESS, NAME, SECRET, URL, Entrance, entrance, new_key
from tests.unit.identity.people_world import PASSWORD, ask, secret_of
from tests.unit.master_api.described import assert_described
from windrow_master.api.answers import Page
from windrow_master.api.provider_routes import (
    GrantsOut,
    IdentityOut,
    ProviderOut,
    ProviderStartedOut,
    ProviderTestedOut,
    SignInProviderOut,
)
from windrow_master.identity.provider_service import SESSION_LIFE_NS
from windrow_proto.conditions import ConditionCode
from windrow_proto.units import HOUR, SECOND

ML = [{"group": "ml", "projects": [{"project": "default", "roles": ["renter", "viewer"]}]}]
OWNERS = [{"group": "owners", "role": "org_owner"}]


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Entrance]:
    async with entrance(tmp_path) as found:
        yield found


async def test_the_first_sign_in_makes_a_user_with_the_roles_of_its_groups(door: Entrance) -> None:
    await door.set(groups=ML)
    door.issuer.claims |= {"groups": ["ml", "other"], "name": "Ada Lovelace"}
    door.issuer.said |= {"email": "Ada@Example.org", "email_verified": True}

    ada = await door.entered()

    me = await ask(ada, "GET", "/me")
    assert (me["user"]["name"], me["account"]["name"], me["roles"]) == ("Ada Lovelace", "default", ["renter", "viewer"])
    assert (await ask(ada, "GET", "/user"))["address"] == "Ada@Example.org"
    assert (await ask(await door.entered(), "GET", "/me"))["user"] == me["user"], "the same user the next time"


async def test_without_a_group_that_gives_one_a_new_user_has_no_role_until_an_admin_gives_one(door: Entrance) -> None:
    await door.set(groups=ML)
    door.issuer.claims |= {"groups": ["else"], "name": "Ada"}

    assert "have no role in any project" in (await door.enter(403))["detail"]
    members = (await ask(door.market.owner, "GET", "/members"))["items"]
    (ada,) = [one for one in members if one["name"] == "Ada"]
    assert (ada["role"], ada["projects"]) == (None, [])
    await ask(door.market.owner, "PUT", f"/members/{ada['id']}", projects=[{"project": "default", "roles": ["viewer"]}])

    assert (await ask(await door.entered(), "GET", "/me"))["roles"] == ["viewer"], "what is given by hand stays"


async def test_roles_of_groups_come_and_go_with_each_sign_in(door: Entrance) -> None:
    await door.set(groups=[*ML, {"group": "admins", "role": "org_admin"}])
    door.issuer.claims["groups"] = ["ml"]
    ada = await door.entered()

    door.issuer.claims["groups"] = ["admins"]
    again = await door.entered()

    assert (await ask(again, "GET", "/me"))["roles"] == ["org_admin"]
    assert (await ask(ada, "GET", "/me"))["roles"] == ["org_admin"], "also in sessions that there were"
    door.issuer.claims["groups"] = []
    await door.enter(403)
    await ask(ada, "GET", "/me", 401)


async def test_the_last_owner_stays_one_until_there_is_another(door: Entrance) -> None:
    owner = door.market.owner
    made = await ask(owner, "POST", "/accounts", name="lab", roles=["renter"])
    opened = await ask(await door.market.client(), "POST", "/sign-in", secret=secret_of(made["link"]))
    first = await door.market.client(opened["token"]["token"])
    await door.set(organisation="lab", groups=OWNERS)
    door.issuer.claims["groups"] = ["owners"]
    ada = await door.entered()
    await ask(ada, "DELETE", f"/members/{(await ask(first, 'GET', '/me'))['user']['id']}")

    door.issuer.claims["groups"] = []
    assert (await ask(await door.entered(), "GET", "/me"))["roles"] == ["org_owner"]

    door.issuer.claims |= {"sub": "bob-8", "groups": ["owners"]}
    door.issuer.said |= {"sub": "bob-8"}
    await door.enter()
    door.issuer.claims |= {"sub": "ada-7", "groups": []}
    door.issuer.said |= {"sub": "ada-7"}
    assert "no role" in (await door.enter(403))["detail"]


async def test_nobody_new_enters_where_the_provider_makes_no_users(door: Entrance) -> None:
    await door.set(creates_users=False)
    assert "No user of this market is linked" in (await door.enter(403))["detail"]


@pytest.mark.parametrize("said", [{}, {"email": "ada@example.org"}, {"email": "ada@other.org", "email_verified": True}])
async def test_only_verified_addresses_of_its_domains_become_users(door: Entrance, said: dict[str, object]) -> None:
    await door.set(domains=["Example.org"], groups=ML)
    door.issuer.claims["groups"] = ["ml"]
    door.issuer.said |= said
    assert "verified addresses of example.org" in (await door.enter(403))["detail"]

    door.issuer.said |= {"email": "ada@EXAMPLE.org", "email_verified": True}
    await door.enter()


async def test_a_user_is_linked_after_password_and_round_trip_and_then_signs_in_by_either(door: Entrance) -> None:
    market = door.market
    await door.set(creates_users=False)
    ada = await market.joined("ada@example.org", projects=ML[0]["projects"])
    await ask(ada, "POST", "/user/identities", 403, provider=NAME)
    await ask(ada, "POST", "/user/identities", 403, provider=NAME, password="not hers, at all, ever")
    started = await ask(ada, "POST", "/user/identities", provider=NAME, password=PASSWORD)
    body = door.body_of(started)
    answer = await ada.put("/user/identities", json=body)
    assert_described(answer, IdentityOut)
    assert_described(await ada.get("/user/identities"), Page[IdentityOut])

    by_provider = await door.entered()
    mine = (await ask(ada, "GET", "/me"))["user"]
    assert (await ask(by_provider, "GET", "/me"))["user"] == mine
    bob = await market.joined("bob@example.org", projects=ML[0]["projects"])
    started = await ask(bob, "POST", "/user/identities", provider=NAME, password=PASSWORD)
    assert "linked with a user already" in (await bob.put("/user/identities", json=door.body_of(started))).text

    await ask(bob, "DELETE", f"/user/identities/{NAME}", 404)
    await ask(ada, "DELETE", f"/user/identities/{NAME}")
    await door.enter(403)


async def test_a_link_begun_by_one_user_is_not_finished_by_another_nor_as_a_sign_in(door: Entrance) -> None:
    await door.set()
    ada = await door.market.joined("ada@example.org", projects=ML[0]["projects"])
    bob = await door.market.joined("bob@example.org", projects=ML[0]["projects"])
    for finish in (bob.put, None):
        body = door.body_of(await ask(ada, "POST", "/user/identities", provider=NAME, password=PASSWORD))
        answer = await (finish("/user/identities", json=body) if finish else door.send(body))
        assert answer.status_code == 401
    answer = await ada.put("/user/identities", json=door.body_of(await door.start()))
    assert answer.status_code == 401, "a sign-in is not finished as a link"


async def test_the_last_way_in_is_not_unlinked_and_unlinking_takes_the_roles_of_groups(door: Entrance) -> None:
    await door.set(groups=ML)
    door.issuer.claims["groups"] = ["ml"]
    door.issuer.said |= {"email": "ada@example.org", "email_verified": True}
    ada = await door.entered()
    await ask(ada, "DELETE", f"/user/identities/{NAME}", 409)
    await ask(ada, "PUT", "/user/password", password=PASSWORD)

    await ask(ada, "DELETE", f"/user/identities/{NAME}")

    await ask(ada, "GET", "/me", 401)
    stranger = await door.market.client()
    await ask(stranger, "POST", "/sign-in/password", 403, address="ada@example.org", password=PASSWORD)


async def test_keys_may_be_rotated_between_two_sign_ins(door: Entrance) -> None:
    await door.set(groups=ML)
    door.issuer.claims["groups"] = ["ml"]
    await door.enter()
    door.issuer.keys = [new_key("two")]
    door.market.clock.advance(10 * SECOND)
    await door.enter()

    door.issuer.keys = [new_key("two")]  # another key by the same name
    door.market.clock.advance(10 * SECOND)
    await door.enter()


async def test_a_session_by_a_provider_ends_within_a_working_day(door: Entrance) -> None:
    await door.set(groups=ML)
    door.issuer.claims["groups"] = ["ml"]
    ada = await door.entered()
    door.market.clock.advance(SESSION_LIFE_NS - HOUR)
    await ask(ada, "GET", "/me")
    door.market.clock.advance(HOUR)
    await ask(ada, "GET", "/me", 401)


async def test_a_provider_that_is_away_lets_nobody_new_in_and_health_says_so(door: Entrance) -> None:
    await door.set(groups=ML)
    door.issuer.claims["groups"] = ["ml"]
    ada = await door.entered()
    path = "/.well-known/openid-configuration"
    door.issuer.replies[path] = lambda _: httpx2.Response(502)
    door.market.clock.advance(11 * SECOND)

    refused = await (await door.market.client()).post("/sign-in/provider", json={"provider": NAME})

    assert refused.status_code == 503 and f"The identity provider {NAME} cannot be used now" in refused.text
    assert (await ask(ada, "GET", "/me"))["roles"] == ["renter", "viewer"]
    health = await ask(door.market.owner, "GET", "/operators/health")
    assert ConditionCode.MASTER_PROVIDER_AWAY.value in str(health)
    door.issuer.replies.clear()
    await door.enter()
    health = await ask(door.market.owner, "GET", "/operators/health")
    assert ConditionCode.MASTER_PROVIDER_AWAY.value not in str(health)


async def test_operators_configure_test_and_try_providers(door: Entrance) -> None:
    owner = door.market.owner
    made = await door.set(groups=[*ML, *OWNERS], domains=["example.org"])
    assert (made["has_client_secret"], made["redirect_uri"]) == (True, f"http://master/oidc/{NAME}")
    assert SECRET not in str(made)
    assert_described(await owner.get("/identity-providers"), Page[ProviderOut])
    assert_described(await owner.post(f"/identity-providers/{NAME}/test", json={}), ProviderTestedOut)
    stranger = await door.market.client()
    assert_described(await stranger.get("/sign-in/providers"), Page[SignInProviderOut])
    assert_described(await stranger.post("/sign-in/provider", json={"provider": NAME}), ProviderStartedOut, 201)

    tried = await owner.post(f"/identity-providers/{NAME}/preview", json={"groups": ["ml", "owners", "x"]})
    assert_described(tried, GrantsOut)
    assert (tried.json()["role"], tried.json()["projects"][0]["roles"]) == ("org_owner", ["renter", "viewer"])
    nothing = await ask(owner, "POST", f"/identity-providers/{NAME}/preview", groups=["x"])
    assert nothing == {"role": None, "projects": []}

    await door.set(client_secret=None)
    await door.enter(403)  # by the secret that it had
    await ask(owner, "DELETE", f"/identity-providers/{NAME}")
    await ask(stranger, "POST", "/sign-in/provider", 404, provider=NAME)
    assert (await ask(owner, "GET", "/identity-providers"))["items"] == []


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"issuer": "http://login.example.org"}, 422),
        ({"issuer": "http://127.0.0.1:9"}, 422),
        ({"issuer": "ftp://login.example.org"}, 422),
        ({"issuer": "https://a@login.example.org"}, 422),
        ({"issuer": "https://login.example.org/#x"}, 422),
        ({"organisation": None}, 422),
        ({"organisation": "nowhere"}, 422),
        ({"domains": ["no domain"]}, 422),
        ({"groups": [{"group": "ml", "projects": [{"project": "of-others", "roles": ["renter"]}]}]}, 422),
        ({"groups": [{"group": "ml", "role": "operator"}]}, 422),
        ({"name": "Acme Corp"}, 422),
        ({"name": "<b>"}, 422),
    ],
)
async def test_settings_that_cannot_be_are_refused(door: Entrance, changes: dict[str, object], status: int) -> None:
    await door.set(status, **changes)  # type: ignore[arg-type]  # names of fields
    assert (await ask(door.market.owner, "GET", "/identity-providers"))["items"] == []


async def test_a_provider_keeps_its_issuer_and_its_organisation(door: Entrance) -> None:
    await door.set()
    await door.set(409, issuer="https://other.example.org")
    await door.set(409, organisation=None, creates_users=False)


async def test_a_provider_in_a_private_network_is_asked_only_where_its_settings_say_so(door: Entrance) -> None:
    door.issuer.address = INSIDE_ADDRESS
    await door.set(groups=ML)
    door.issuer.claims["groups"] = ["ml"]
    refused = await door.market.owner.post(f"/identity-providers/{NAME}/test", json={})
    assert refused.status_code == 503 and "private network" in refused.text
    assert door.issuer.asked == []

    await door.set(groups=ML, private=True)
    await door.enter()


async def test_the_browser_is_sent_with_pkce_and_comes_back_to_the_origin_that_it_has(door: Entrance) -> None:
    await door.set(scopes=["email"])
    words = dict(parse_qsl(urlsplit((await door.start())["url"]).query))
    assert words["code_challenge_method"] == "S256" and len(words["code_challenge"]) == 43
    assert (words["client_id"], words["scope"], words["response_type"]) == (CLIENT, "openid email", "code")
    assert words["redirect_uri"] == f"http://master/oidc/{NAME}"

    own = await door.start(origin="https://master")
    assert dict(parse_qsl(urlsplit(own["url"]).query))["redirect_uri"] == f"https://master/oidc/{NAME}"
    foreign = await door.start(origin="https://evil.example")
    assert dict(parse_qsl(urlsplit(foreign["url"]).query))["redirect_uri"] == f"http://master/oidc/{NAME}"
    assert URL in foreign["url"]
