"""What thieves of codes, lying and broken identity providers try: each is let in where its check is taken out."""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from joserfc.jwk import OKPKey, RSAKey

from tests.unit.identity.oidc_world import CLIENT, NAME, URL, Entrance, entrance, new_key, unpadded, unsigned
from tests.unit.identity.people_world import JSON, PASSWORD, ask
from windrow_master.identity.model import Role
from windrow_master.identity.people_repository import UserRepository
from windrow_master.identity.providers import GROUPS_MAX, Grants, check_url, claims_of, role_after
from windrow_proto.errors import InvalidInput
from windrow_proto.units import HOUR, MINUTE, SECOND

ML = [{"group": "ml", "projects": [{"project": "default", "roles": ["renter"]}]}]
DISCOVERY = "/.well-known/openid-configuration"
HOUR_S = HOUR // SECOND


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Entrance]:
    async with entrance(tmp_path, deadline_s=0.3) as found:
        await found.set(groups=ML)
        found.issuer.claims["groups"] = ["ml"]
        yield found


async def test_it_lets_in_who_does_nothing_wrong(door: Entrance) -> None:
    assert (await door.enter())["account"]["name"] == "default"


# --- the round trip --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "x" * 43},
        {"secret": "x" * 43},
        {"secret": ""},
        {"provider": "other"},
        {"iss": "https://evil.example"},
        {"iss": None},
        {"code": "code-of-nobody"},
    ],
)
async def test_what_comes_back_is_of_this_browser_this_provider_and_this_time(door: Entrance, changes: JSON) -> None:
    await door.set(name="other", groups=ML)
    await door.enter(401, **changes)


async def test_a_state_works_once_and_for_ten_minutes(door: Entrance) -> None:
    body = door.body_of(await door.start())
    assert (await door.send(body)).status_code == 201
    assert (await door.send(body | {"code": door.body_of(await door.start())["code"]})).status_code == 401

    late = door.body_of(await door.start())
    door.market.clock.advance(10 * MINUTE)
    assert (await door.send(late)).status_code == 401


async def test_a_state_and_a_code_of_another_browser_open_nothing_in_this_one(door: Entrance) -> None:
    mine, eves = await door.start(), await door.start()
    lured = door.body_of(eves) | {"secret": mine["secret"]}
    assert (await door.send(lured)).status_code == 401
    mixed = door.body_of(mine) | {"code": door.body_of(eves)["code"]}
    assert (await door.send(mixed)).status_code == 401, "the code is bound to the other's PKCE and nonce"


async def test_a_code_that_was_used_is_not_taken_again(door: Entrance) -> None:
    body = door.body_of(await door.start())
    assert (await door.send(body)).status_code == 201
    again = door.body_of(await door.start()) | {"code": body["code"]}
    assert (await door.send(again)).status_code == 401


async def test_each_sign_in_has_a_session_of_its_own(door: Entrance) -> None:
    first, second = await door.enter(), await door.enter()
    assert first["secret"] != second["secret"] and first["session"]["id"] != second["session"]["id"]


async def test_a_refusal_of_the_provider_is_shown_and_lets_nobody_in(door: Entrance) -> None:
    said = await door.enter(403, code=None, error="access_denied")
    assert "acme did not let you in: access_denied" in said["detail"]


@pytest.mark.parametrize("methods", [["plain"], []])
async def test_a_provider_without_s256_is_not_used(door: Entrance, methods: list[str]) -> None:
    door.issuer.metadata["code_challenge_methods_supported"] = methods
    door.market.clock.advance(MINUTE)
    answer = await (await door.market.client()).post("/sign-in/provider", json={"provider": NAME})
    assert answer.status_code == 503 and "S256" in answer.text


# --- the ID token ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "of somebody else"},
        {"nonce": None},
        {"iss": "https://evil.example"},
        {"iss": None},
        {"aud": "another-client"},
        {"aud": None},
        {"aud": [CLIENT, "another-client"]},
        {"aud": [CLIENT, "another-client"], "azp": "another-client"},
        {"azp": "another-client"},
        {"sub": None},
        {"sub": ""},
        {"sub": "x" * 256},
        {"sub": "a\0b"},
        {"sub": 7},
        {"exp": None},
        {"exp": "never"},
        {"iat": None},
    ],
)
async def test_an_id_token_with_a_wrong_claim_is_refused(door: Entrance, claims: JSON) -> None:
    door.issuer.claims |= claims
    await door.enter(401)


async def test_several_audiences_with_this_client_as_the_authorised_party_are_taken(door: Entrance) -> None:
    door.issuer.claims |= {"aud": [CLIENT, "another-client"], "azp": CLIENT}
    await door.enter()


@pytest.mark.parametrize(
    ("iat_s", "exp_s"), [(-HOUR_S, -HOUR_S + 300), (HOUR_S, HOUR_S + 300), (-HOUR_S, HOUR_S), (-300, -61), (61, 300)]
)
async def test_a_clock_an_hour_off_is_refused(door: Entrance, iat_s: int, exp_s: int) -> None:
    now_s = door.issuer.now_s()
    door.issuer.claims |= {"iat": now_s + iat_s, "exp": now_s + exp_s}
    await door.enter(401)


@pytest.mark.parametrize(("iat_s", "exp_s"), [(59, 300), (-100, -59)])
async def test_a_clock_a_minute_off_is_taken(door: Entrance, iat_s: int, exp_s: int) -> None:
    now_s = door.issuer.now_s()
    door.issuer.claims |= {"iat": now_s + iat_s, "exp": now_s + exp_s}
    await door.enter()


def _none(claims: JSON) -> str:
    return unsigned(claims, "none")


def _cut(claims: JSON) -> str:
    return unsigned(claims, "ES256")


async def test_an_id_token_without_a_signature_is_refused(door: Entrance) -> None:
    for sign in (_none, _cut):
        door.issuer.sign = sign
        await door.enter(401)


async def test_a_public_key_is_not_taken_for_a_shared_secret(door: Entrance) -> None:
    key = RSAKey.generate_key(2048, {"kid": "one"})
    door.issuer.keys = [key]  # type: ignore[list-item]  # a kind of its own

    def forged(claims: JSON) -> str:
        said = unsigned(claims, "HS256").rpartition(".")[0]
        return f"{said}.{unpadded(hmac.digest(key.as_pem(private=False), said.encode(), hashlib.sha256))}"

    door.issuer.sign = forged
    await door.enter(401)
    for algorithm in ("RS256", "PS256"):
        door.issuer.sign = lambda claims: door.issuer.signed(claims, algorithm, key)  # noqa: B023
        await door.enter()


@pytest.mark.filterwarnings("ignore:EdDSA")
async def test_edwards_curves_are_taken(door: Entrance) -> None:
    key = OKPKey.generate_key("Ed25519", {"kid": "one"})
    door.issuer.keys = [key]  # type: ignore[list-item]  # a kind of its own
    door.issuer.sign = lambda claims: door.issuer.signed(claims, "EdDSA", key)
    await door.enter()


async def test_a_key_that_the_provider_does_not_name_is_refused_and_its_keys_are_not_asked_for_each_time(
    door: Entrance,
) -> None:
    await door.enter()
    for key in (new_key("one"), new_key("two")):
        door.issuer.signs_by = key
        for _ in range(5):
            await door.enter(401)
    assert door.issuer.asked.count("GET login.example.org/keys") == 1, "within five seconds"
    door.market.clock.advance(6 * SECOND)
    await door.enter(401)
    assert door.issuer.asked.count("GET login.example.org/keys") == 2


async def test_keys_that_were_taken_back_count_no_more(door: Entrance) -> None:
    await door.enter()
    door.issuer.signs_by, door.issuer.keys = door.issuer.keys[0], [new_key("two")]
    door.market.clock.advance(10 * MINUTE)
    await door.enter(401)


async def test_userinfo_about_somebody_else_is_refused(door: Entrance) -> None:
    door.issuer.said["sub"] = "eve-9"
    await door.enter(401)


# --- the provider's answers ------------------------------------------------------------------------------------------


async def _start(door: Entrance) -> httpx2.Response:
    door.market.clock.advance(MINUTE)
    return await (await door.market.client()).post("/sign-in/provider", json={"provider": NAME})


async def test_a_provider_that_hangs_costs_no_more_than_the_deadline(door: Entrance) -> None:
    async def hanging(request: httpx2.Request) -> httpx2.Response:
        await asyncio.Event().wait()
        raise AssertionError

    for path in (DISCOVERY, "/token", "/keys", "/userinfo"):
        door.issuer.replies = {path: hanging}
        if path == DISCOVERY:
            answer = await _start(door)
        else:
            door.market.clock.advance(11 * MINUTE)  # nothing is remembered
            answer = await door.finish(await door.start())
        assert answer.status_code == 503 and "did not answer within" in answer.text, path
    assert (await door.market.owner.get("/me")).status_code == 200


async def test_ten_mebibytes_are_not_read(door: Entrance) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(10 * 16):
            sent += 64 * 1024
            yield b" " * 64 * 1024

    door.issuer.replies[DISCOVERY] = lambda _: httpx2.Response(200, content=endless())
    answer = await _start(door)
    assert answer.status_code == 503 and "more than 256 KiB" in answer.text
    assert sent <= 512 * 1024


@pytest.mark.parametrize("path", [DISCOVERY, "/token", "/keys", "/userinfo"])
async def test_a_redirect_is_not_followed(door: Entrance, path: str) -> None:
    elsewhere = {"Location": "http://169.254.169.254/latest/meta-data/"}
    door.issuer.replies[path] = lambda _: httpx2.Response(302, headers=elsewhere)
    if path == DISCOVERY:
        answer = await _start(door)
    else:
        answer = await door.finish(await door.start())
    assert answer.status_code == 503 and "is not followed" in answer.text
    assert not [one for one in door.issuer.asked if "169.254" in one]


@pytest.mark.parametrize(
    "metadata",
    [
        {"token_endpoint": "http://169.254.169.254/token"},
        {"token_endpoint": "http://login.example.org/token"},
        {"jwks_uri": "file:///etc/passwd"},
        {"userinfo_endpoint": "http://localhost/userinfo"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": None},
        {"issuer": "https://evil.example"},
        {"issuer": URL + "/"},
    ],
)
async def test_a_discovery_document_that_leads_elsewhere_is_refused(door: Entrance, metadata: JSON) -> None:
    door.issuer.metadata |= metadata
    assert (await _start(door)).status_code == 503


async def test_an_endpoint_whose_name_lies_in_a_private_network_is_not_asked(door: Entrance) -> None:
    await door.set(groups=ML, private=True)  # the issuer's own host may
    door.issuer.metadata["token_endpoint"] = "https://metadata.example.org/token"
    answer = await door.finish((await _start(door)).json())
    assert answer.status_code == 503 and "private network" in answer.text
    assert not [one for one in door.issuer.asked if "metadata.example.org" in one]


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"<html>", b"[" * 100_000])
async def test_nonsense_is_a_clear_refusal(door: Entrance, content: bytes) -> None:
    for path in (DISCOVERY, "/keys"):
        door.issuer.replies = {path: lambda _: httpx2.Response(200, content=content)}
        answer = await (_start(door) if path == DISCOVERY else door.finish((await _started(door)).json()))
        assert answer.status_code == 503, path


async def _started(door: Entrance) -> httpx2.Response:
    door.market.clock.advance(11 * MINUTE)
    return await _start(door)


async def test_ten_thousand_groups_are_looked_at_and_more_are_refused(door: Entrance) -> None:
    many = [f"g{number}" for number in range(GROUPS_MAX)]
    door.issuer.claims["groups"] = None
    door.issuer.said["groups"] = [*many[1:], "ml"]
    ada = await door.entered()
    assert (await ask(ada, "GET", "/me"))["roles"] == ["renter"]

    door.issuer.said["groups"] = [*many, "ml"]
    assert "more than 10,000 groups" in (await door.enter(403))["detail"]


# --- who it is -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verified", [False, None, "false", 1, "yes"])
async def test_an_address_that_is_not_verified_counts_as_none(door: Entrance, verified: Any) -> None:
    await door.market.joined("ada@example.org", projects=ML[0]["projects"])
    door.issuer.said |= {"email": "ada@example.org", "email_verified": verified}
    eve = await door.entered()
    profile = await ask(eve, "GET", "/user")
    assert (profile["address"], profile["has_password"]) == (None, False)


async def test_a_verified_address_of_a_user_opens_nothing_without_proof_of_both(door: Entrance) -> None:
    ada = await door.market.joined("ada@example.org", projects=ML[0]["projects"])
    door.issuer.said |= {"email": "ADA@example.org", "email_verified": True}

    refused = await door.enter(409)

    assert "Sign in as that user, then link acme" in refused["detail"]
    started = await ask(ada, "POST", "/user/identities", provider=NAME, password=PASSWORD)
    assert (await ada.put("/user/identities", json=door.body_of(started))).status_code == 200
    assert (await ask(await door.entered(), "GET", "/me"))["user"] == (await ask(ada, "GET", "/me"))["user"]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("<img src=x onerror=alert(1)>", "img srcx onerroralert(1)"),
        ("Ada\u202egro.live", "Adagro.live"),
        ("A\u030ada", "\u00c5da"),
        ("\u2800\u200b", "user"),
        (["Ada"], "user"),
        ("x" * 500, "x" * 100),
    ],
)
async def test_a_name_is_shown_without_what_a_name_may_not_have(door: Entrance, said: Any, shown: str) -> None:
    door.issuer.claims["name"] = said
    assert (await ask(await door.entered(), "GET", "/me"))["user"]["name"] == shown


async def test_a_name_that_looks_like_anothers_is_another_user(door: Entrance) -> None:
    door.issuer.claims["name"] = "Ada"
    ada = await ask(await door.entered(), "GET", "/me")
    door.issuer.claims |= {"name": "\u0410da", "sub": "eve-9"}
    door.issuer.said["sub"] = "eve-9"
    assert (await ask(await door.entered(), "GET", "/me"))["user"]["id"] != ada["user"]["id"]


async def test_a_disabled_user_does_not_come_in_by_a_provider(door: Entrance) -> None:
    user_id = (await ask(await door.entered(), "GET", "/me"))["user"]["id"]
    store = door.market.opened.store

    def disable(uow: Any) -> None:
        user = uow[UserRepository].get(user_id)
        uow[UserRepository].save(replace(user, disabled_at_ns=uow.now_wall_ns))

    await store.write(disable, name="test")
    assert "disabled" in (await door.enter(401))["detail"]


async def test_the_clients_secret_lies_sealed(door: Entrance, tmp_path: Path) -> None:
    assert not [
        one for one in tmp_path.rglob("*") if one.is_file() and b"a secret of the client" in one.read_bytes()
    ], "in the database, or a log"


def test_a_role_given_by_hand_is_not_changed_by_groups() -> None:
    owner, admin = Grants(Role.ORG_OWNER), Grants(Role.ORG_ADMIN)
    assert role_after(Role.ORG_BILLING, Grants(), admin) is Role.ORG_BILLING
    assert role_after(None, Grants(), admin) is Role.ORG_ADMIN
    assert role_after(Role.ORG_ADMIN, admin, owner) is Role.ORG_OWNER
    assert role_after(Role.ORG_ADMIN, admin, Grants()) is None


def test_groups_of_any_shape_are_read() -> None:
    for said, wanted in (("ml", {"ml"}), ([1, "ml", None, "x" * 300], {"ml"}), ({"ml": 1}, set()), (None, set())):
        assert claims_of({"sub": "a", "groups": said}, "groups").groups == wanted


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/a", "http://localhost/a", "http://[::1]:9/a"])
def test_only_the_providers_own_host_on_this_machine_is_asked_without_tls(url: str) -> None:
    host = httpx2.URL(url).host
    assert check_url(url, host) == url
    for other in ("", "login.example.org"):
        with pytest.raises(InvalidInput):
            check_url(url, other)
