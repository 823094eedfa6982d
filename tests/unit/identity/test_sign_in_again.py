"""Promises of signing in again: a session that was proved long ago does nothing of weight until its user is there."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from tests.unit.identity.people_world import PASSWORD, RENTER, Market, ask, people_market
from windrow_master.api.routers import declared
from windrow_proto.units import MINUTE, SECOND

LIMITED = ("/projects/{project}", "/service-accounts/{service_account}", "/tokens/{token_id}")
WEIGHTY = {
    ("POST", "/accounts"),
    ("POST", "/accounts/{account_id}/link"),
    ("POST", "/accounts/{account_id}/settle"),
    ("POST", "/accounts/{account_id}/suspend"),
    ("POST", "/accounts/{account_id}/transfer"),
    ("POST", "/backends"),
    ("DELETE", "/backends/{name}"),
    ("DELETE", "/backends/{name}/buyers/{account}"),
    ("PUT", "/backends/{name}/buyers/{account}"),
    ("PUT", "/backends/{name}/caps"),
    ("PUT", "/backends/{name}/secrets"),
    ("POST", "/device/approve"),
    ("DELETE", "/fair-shares/{node}"),
    ("PUT", "/fair-shares/{node}"),
    ("DELETE", "/identity-providers/{provider}"),
    ("PUT", "/identity-providers/{provider}"),
    ("POST", "/shares"),
    ("POST", "/invitations"),
    ("POST", "/invitations/{invitation_id}/link"),
    ("DELETE", "/members/{user_id}"),
    ("PUT", "/members/{user_id}"),
    ("POST", "/members/{user_id}/password-link"),
    ("DELETE", "/projects/{project}"),
    ("POST", "/projects/{project}/restore"),
    ("POST", "/projects/{project}/token"),
    ("POST", "/projects/{project}/transfer"),
    ("POST", "/projects/{project}/transfer/accept"),
    ("POST", "/purchases"),
    ("DELETE", "/quotas"),
    ("PUT", "/quotas"),
    ("POST", "/service-accounts"),
    ("DELETE", "/service-accounts/{service_account}"),
    ("POST", "/service-accounts/{service_account}/rotate"),
    ("POST", "/tokens"),
    *((method, f"{path}/limits") for method in ("DELETE", "PUT") for path in LIMITED),
    ("DELETE", "/user/organisations/{organisation}"),
    ("POST", "/users/{user_id}/delete"),
    ("POST", "/users/{user_id}/make-owner"),
}


@pytest.fixture
async def market(tmp_path: Path) -> AsyncIterator[Market]:
    async with people_market(tmp_path) as found:
        yield found


def test_these_routes_ask_for_it() -> None:
    found = {(method, path.removeprefix("/api/v1")) for (method, path), one in declared().items() if one.changes_rights}
    assert found == WEIGHTY


async def test_after_ten_minutes_the_password_is_asked_for_once(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=RENTER)
    market.clock.advance(10 * MINUTE)
    await ask(ada, "POST", "/tokens", 201, name="in time")
    market.clock.advance(SECOND)
    refused = await ask(ada, "POST", "/tokens", 403, name="late")
    assert refused["code"] == "sign_in_again" and "ten minutes" in refused["detail"]
    assert [one["name"] for one in (await ask(ada, "GET", "/tokens"))["items"]] == ["in time"]
    await ask(ada, "GET", "/me")

    await ask(ada, "POST", "/session/proof", 403, password="not this one at all")
    await ask(ada, "POST", "/tokens", 403, name="late")
    await ask(ada, "POST", "/session/proof", 204, password=PASSWORD)
    await ask(ada, "POST", "/tokens", 201, name="again")
    market.clock.advance(10 * MINUTE + SECOND)
    await ask(ada, "POST", "/tokens", 403, name="late")


async def test_it_stays_with_the_session_when_the_project_changes(market: Market) -> None:
    await ask(market.owner, "POST", "/projects", name="lab")
    ada = await market.joined("ada@example.org", projects=[*RENTER, {"project": "lab", "roles": ["renter"]}])
    market.clock.advance(11 * MINUTE)
    await ask(ada, "POST", "/projects/lab/use")
    await ask(ada, "POST", "/tokens", 403, name="late")
    await ask(ada, "POST", "/session/proof", 204, password=PASSWORD)
    await ask(ada, "POST", "/tokens", 201, name="now")


async def test_wrong_answers_count_as_guesses(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=RENTER)
    statuses = [
        (await ada.post("/session/proof", json={"password": f"guess number {number}"})).status_code
        for number in range(7)
    ]
    assert statuses[:5] == [403] * 5 and 429 in statuses
    await ask(ada, "POST", "/session/proof", 429, password=PASSWORD)
    market.clock.advance(MINUTE)
    await ask(ada, "POST", "/session/proof", 204, password=PASSWORD)


async def test_a_code_of_the_second_factor_proves_it_once(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=RENTER)
    await ask(ada, "POST", "/session/proof", 403, code="123456")
    begun = await ask(ada, "POST", "/user/second-factor", password=PASSWORD)
    secret = begun["secret"]
    codes = await ask(ada, "PUT", "/user/second-factor", code=_code(market, secret))
    market.clock.advance(11 * MINUTE)
    await ask(ada, "POST", "/tokens", 403, name="late")
    code = _code(market, secret)
    await ask(ada, "POST", "/session/proof", 204, code=code)
    await ask(ada, "POST", "/tokens", 201, name="now")
    await ask(ada, "POST", "/session/proof", 403, code=code)
    recovery = codes["recovery_codes"][0]
    await ask(ada, "POST", "/session/proof", 204, code=recovery)
    await ask(ada, "POST", "/session/proof", 403, code=recovery)


def _code(market: Market, secret: str) -> str:
    import base64

    key = base64.b32decode(secret + "=" * (-len(secret) % 8))
    now_s = market.clock.wall_ns() // SECOND
    return TOTP(key, 6, hashes.SHA1(), 30).generate(now_s).decode()


async def test_a_token_of_the_same_user_proves_it_and_no_other(market: Market) -> None:
    ada = await market.joined("ada@example.org", projects=RENTER)
    own = (await ask(ada, "POST", "/tokens", name="own"))["token"]
    part = (await ask(market.owner, "POST", "/tokens", name="part", roles=["renter"]))["token"]
    service = (await ask(market.owner, "POST", "/service-accounts", name="ci", roles=["renter"]))["token"]["token"]
    market.clock.advance(11 * MINUTE)
    for wrong in ("wt_nothing", "", part, service, own[:-1]):
        await ask(ada, "POST", "/session/proof", 403, token=wrong)
    await ask(ada, "POST", "/tokens", 403, name="late")
    await ask(ada, "POST", "/session/proof", 204, token=own)
    await ask(ada, "POST", "/tokens", 201, name="now")


async def test_a_session_of_a_token_is_proved_by_it(market: Market) -> None:
    text = market.owner.headers["Authorization"].removeprefix("Bearer ")
    stranger = await market.client()
    browser = await market.client((await ask(stranger, "POST", "/session", token=text))["secret"])
    narrow = (await ask(market.owner, "POST", "/tokens", name="part", roles=["renter"]))["token"]
    market.clock.advance(11 * MINUTE)
    await ask(browser, "POST", "/tokens", 403, name="late")
    await ask(browser, "POST", "/session/proof", 403, password="there is none at all")
    await ask(browser, "POST", "/session/proof", 403, token=narrow)
    await ask(browser, "POST", "/session/proof", 204, token=text)
    await ask(browser, "POST", "/tokens", 201, name="now")


async def test_who_has_no_password_signs_in_again_before_setting_one_or_an_address(market: Market) -> None:
    text = market.owner.headers["Authorization"].removeprefix("Bearer ")
    browser = await market.client((await ask(await market.client(), "POST", "/session", token=text))["secret"])
    market.clock.advance(11 * MINUTE)
    for path, body in (("/user", {"address": "eve@example.org"}), ("/user/password", {"password": PASSWORD})):
        if path == "/user/password":
            await ask(market.owner, "PUT", "/user", address="owner@example.org")
        assert (await ask(browser, "PUT", path, 403, **body))["code"] == "sign_in_again"
    await ask(browser, "POST", "/session/proof", 204, token=text)
    await ask(browser, "PUT", "/user/password", 204, password=PASSWORD)


async def test_api_tokens_are_not_asked_and_bad_input_is_refused(market: Market) -> None:
    market.clock.advance(11 * MINUTE)
    await ask(market.owner, "POST", "/tokens", 201, name="as ever")
    await ask(market.owner, "POST", "/session/proof", 409, password=PASSWORD)
    ada = await market.joined("ada@example.org", projects=RENTER)
    await ask(ada, "POST", "/session/proof", 422)
    await ask(ada, "POST", "/session/proof", 422, password=PASSWORD, token="wt_x")
    await ask(ada, "POST", "/session/proof", 422, password="x" * 2_000)
    await ask(await market.client(), "POST", "/session/proof", 401, password=PASSWORD)
