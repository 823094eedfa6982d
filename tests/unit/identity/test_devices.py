"""Promises of signing a device in by a code: a person approves it, once, in time, and nobody guesses it."""

import hashlib
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.unit.identity.people_world import RENTER, Market, ask, people_market
from windrow_master.identity import device_flow
from windrow_master.identity.model import DeviceCode, DeviceState
from windrow_proto.errors import AccessDenied, AuthorisationPending, Conflict, ExpiredToken, NotFound, SlowDown
from windrow_proto.units import MINUTE, SECOND

CODE = DeviceCode("device_1", b"d", b"u", "laptop", "192.0.2.1", "192.0.2.1", 0, 10 * MINUTE, 5 * SECOND)


@pytest.fixture
async def market(tmp_path: Path) -> AsyncIterator[Market]:
    async with people_market(tmp_path) as found:
        yield found


@pytest.mark.parametrize(
    ("code", "now_ns", "refusal"),
    [
        (None, 0, ExpiredToken),
        (CODE, 10 * MINUTE, ExpiredToken),
        (CODE, 0, AuthorisationPending),
        (replace(CODE, asked_at_ns=0), 4 * SECOND, SlowDown),
        (replace(CODE, asked_at_ns=0), 5 * SECOND, AuthorisationPending),
        (replace(CODE, state=DeviceState.REFUSED), 0, AccessDenied),
        (replace(CODE, state=DeviceState.APPROVED), 10 * MINUTE, ExpiredToken),
        (replace(CODE, state=DeviceState.APPROVED), 0, None),
    ],
)
def test_a_question_of_a_device_is_answered_by_its_state(
    code: DeviceCode | None, now_ns: int, refusal: type[Exception] | None
) -> None:
    after, refused = device_flow.judge_question(code, now_ns)
    assert (type(refused) if refused is not None else None) is refusal
    assert (after is not None) == (refusal in {AuthorisationPending, SlowDown})


def test_each_question_that_comes_too_early_makes_the_pause_longer() -> None:
    after, _ = device_flow.judge_question(replace(CODE, asked_at_ns=0), SECOND)
    assert after is not None and (after.interval_ns, after.asked_at_ns) == (10 * SECOND, SECOND)


def test_user_codes_are_eight_letters_that_are_not_mistaken() -> None:
    seen: Counter[str] = Counter()
    for number in range(2_000):
        shown = device_flow.user_code(hashlib.sha256(str(number).encode()).digest()[: device_flow.CODE_BYTES])
        assert len(shown) == 9 and shown[4] == "-"
        seen.update(shown.replace("-", ""))
    assert set(seen) == set(device_flow.ALPHABET)
    assert max(seen.values()) < 1.3 * min(seen.values())
    assert device_flow.user_sha256("bcdf ghjk") == device_flow.user_sha256("BCDF-GHJK")
    for wrong in ("", "BCDF-GHJ", "BCDF-GHJKL", "ABCD-EFGH", "BCDF_GHJK", "ßßßßßßßß"):
        with pytest.raises(NotFound):
            device_flow.user_sha256(wrong)


def test_a_code_is_decided_once_and_in_time() -> None:
    assert device_flow.check_open(CODE, 0) is CODE
    for code, now_ns in ((None, 0), (CODE, 10 * MINUTE)):
        with pytest.raises(NotFound):
            device_flow.check_open(code, now_ns)
    for state in (DeviceState.APPROVED, DeviceState.REFUSED):
        with pytest.raises(Conflict):
            device_flow.check_open(replace(CODE, state=state), 0)


async def begun(market: Market) -> tuple[httpx2.AsyncClient, dict[str, Any]]:
    """A device that has asked to be signed in."""
    device = await market.client()
    made: dict[str, Any] = await ask(device, "POST", "/device", name="laptop")
    return device, made


async def poll(device: httpx2.AsyncClient, made: dict[str, Any]) -> str:
    """The code of the refusal; of a token, nothing."""
    answer = await device.post("/device/token", json={"device_code": made["device_code"]})
    return str(answer.json().get("code", ""))


async def test_a_device_gets_a_token_of_who_approves_it_once(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=RENTER)
    device, made = await begun(market)
    assert made["verification_uri_complete"].endswith(f"/device?code={made['user_code']}")
    assert (made["expires_in"], made["interval"]) == (600, 5)
    assert await poll(device, made) == "authorization_pending"
    assert await poll(device, made) == "slow_down"

    look = await ask(ada, "POST", "/device/look", user_code=made["user_code"].lower())
    assert (look["name"], look["project"], look["roles"]) == ("laptop", "default", ["renter"])
    await ask(ada, "POST", "/device/approve", 204, user_code=made["user_code"])
    token = await ask(device, "POST", "/device/token", 201, device_code=made["device_code"])

    laptop = await market.client(token["token"])
    me = await ask(laptop, "GET", "/me")
    assert (me["user"]["name"], me["roles"], me["token"]["name"]) == ("ada", ["renter"], "windrow login on laptop")
    assert await poll(device, made) == "expired_token"
    await ask(ada, "DELETE", "/session", 204)
    assert (await ask(laptop, "GET", "/me"))["user"]["name"] == "ada"


async def test_a_refused_and_an_expired_device_gets_nothing(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=RENTER)
    device, made = await begun(market)
    await ask(ada, "POST", "/device/refuse", 204, user_code=made["user_code"])
    await ask(ada, "POST", "/device/approve", 409, user_code=made["user_code"])
    assert await poll(device, made) == "access_denied"
    assert await poll(device, made) == "expired_token"

    device, made = await begun(market)
    market.clock.advance(10 * MINUTE)
    await ask(ada, "POST", "/device/look", 404, user_code=made["user_code"])
    await ask(ada, "POST", "/device/approve", 404, user_code=made["user_code"])
    assert await poll(device, made) == "expired_token"


async def test_of_two_who_decide_at_once_one_does(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=RENTER)
    bob = await market.joined("bob@example.org", projects=RENTER)
    device, made = await begun(market)
    await ask(ada, "POST", "/device/approve", 204, user_code=made["user_code"])
    refused = await ask(bob, "POST", "/device/approve", 409, user_code=made["user_code"])
    assert "decided about this device already" in refused["detail"]
    token = await ask(device, "POST", "/device/token", 201, device_code=made["device_code"])
    assert (await ask(await market.client(token["token"]), "GET", "/me"))["user"]["name"] == "ada"


async def test_who_has_no_role_and_who_lost_it_signs_no_device_in(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=RENTER)
    ids = {one["name"]: one["id"] for one in (await ask(market.owner, "GET", "/members"))["items"]}
    narrow = await ask(ada, "POST", "/tokens", name="narrow", roles=["renter"])
    device, made = await begun(market)
    await ask(ada, "POST", "/device/approve", 204, user_code=made["user_code"])
    await ask(market.owner, "DELETE", f"/members/{ids['ada']}")
    assert await poll(device, made) == "access_denied"

    bob = await market.joined("bob@example.org", projects=RENTER)
    narrow = await ask(bob, "POST", "/tokens", name="narrow", roles=["renter"])
    client = await market.client(narrow["token"])
    ids = {one["name"]: one["id"] for one in (await ask(market.owner, "GET", "/members"))["items"]}
    grants = [{"project": "default", "roles": ["viewer"]}]
    await ask(market.owner, "PUT", f"/members/{ids['bob']}", projects=grants)
    _, made = await begun(market)
    for path in ("/device/look", "/device/approve"):
        await ask(client, "POST", path, 403, user_code=made["user_code"])
    stranger = await market.client()
    await ask(stranger, "POST", "/device/approve", 401, user_code=made["user_code"])


async def test_a_token_with_a_part_of_the_roles_gives_a_device_no_more(market: Market) -> None:
    made_token = await ask(market.owner, "POST", "/tokens", name="narrow", roles=["renter"])
    narrow = await market.client(made_token["token"])
    device, made = await begun(market)
    await ask(narrow, "POST", "/device/approve", 204, user_code=made["user_code"])
    token = await ask(device, "POST", "/device/token", 201, device_code=made["device_code"])
    assert token["roles"] == ["renter"]
    await ask(await market.client(token["token"]), "PUT", "/user", 403, name="Eve")
    await ask(market.owner, "DELETE", f"/tokens/{made_token['id']}")
    await ask(await market.client(token["token"]), "GET", "/me", 401)


async def test_wrong_codes_are_slowed_down(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=RENTER)
    statuses = [
        (await ada.post("/device/look", json={"user_code": f"BCDF-GHJ{letter}"})).status_code
        for letter in device_flow.ALPHABET[:8]
    ]
    assert statuses[:5] == [404] * 5 and set(statuses[5:]) <= {404, 429} and 429 in statuses
    _, made = await begun(market)
    await ask(ada, "POST", "/device/approve", 429, user_code=made["user_code"])


async def test_one_network_lets_few_devices_wait_and_bad_input_is_refused(market: Market) -> None:
    device = await market.client()
    for _ in range(device_flow.OPEN_MAX):
        await ask(device, "POST", "/device", 201, name="x")
    refused = await ask(device, "POST", "/device", 429, name="x")
    assert "Too many devices wait" in refused["detail"]
    market.clock.advance(10 * MINUTE)
    await ask(device, "POST", "/device", 201, name="<b>é")
    await ask(device, "POST", "/device", 422, name="a\u202eb")
    await ask(device, "POST", "/device", 422, name="")
    await ask(device, "POST", "/device", 422, name="x" * 61)
    await ask(device, "POST", "/device/token", 401, device_code="wt_nothing")
    answer = await device.post("/device/token", json={"device_code": "wd_nothing"})
    assert (answer.status_code, answer.json()["code"]) == (400, "expired_token")
    for wrong in ("", "short", "x" * 21, "BCDF\x00GHJ"):
        await ask(market.owner, "POST", "/device/look", 422, user_code=wrong)
