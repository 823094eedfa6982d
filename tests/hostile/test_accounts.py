"""A second account, made as an operator makes it: its own things and money, a way in that works once, and an end."""

import httpx2
import pytest

from tests.unit.master_api.conftest import Api
from tests.unit.master_api.conftest import api as api
from windrow_master.api.auth import Reach
from windrow_master.api.routers import declared

V1 = "/api/v1"


async def _added(api: Api, name: str, *roles: str, credit: str = "50") -> tuple[str, dict[str, str]]:
    api.clock.advance(1_000_000_000)  # after the first account
    answer = await api.client.post(f"{V1}/accounts", json={"name": name, "roles": list(roles), "credit": credit})
    assert answer.status_code == 201, answer.text
    secret = answer.json()["link"].partition("#sign-in=")[2]
    opened = await api.stranger.post(f"{V1}/sign-in", json={"secret": secret})
    assert opened.status_code == 201, opened.text
    again = await api.stranger.post(f"{V1}/sign-in", json={"secret": secret})
    assert again.status_code == 401, "a link works once"
    return answer.json()["account"]["id"], {"Authorization": f"Bearer {opened.json()['token']['token']}"}


@pytest.mark.row("F7")
async def test_two_accounts_share_nothing(api: Api) -> None:
    await api.client.put(f"{V1}/templates/mine", json={})
    await api.client.post(f"{V1}/volumes", json={"name": "mine"})
    job = (await api.client.post(f"{V1}/jobs", json={"argv": ["true"], "simulated": True})).json()["jobs"][0]["id"]
    _, anna = await _added(api, "anna", "renter", "provider")

    me = (await api.stranger.get(f"{V1}/me", headers=anna)).json()
    lists = (
        "jobs",
        "clusters",
        "templates",
        "volumes",
        "artefacts",
        "receipts",
        "operations",
        "join-tokens",
        "commands",
    )
    seen = {path: (await api.stranger.get(f"{V1}/{path}", headers=anna)).json()["items"] for path in lists}
    tokens = (await api.stranger.get(f"{V1}/tokens", headers=anna)).json()["items"]
    money = (await api.stranger.get(f"{V1}/ledger/balances", headers=anna)).json()["items"]

    assert (me["account"]["name"], me["balance"]["amount"]) == ("anna", "50.00")
    assert seen == {path: [] for path in lists}
    assert [one["name"] for one in tokens] == ["sign-in link"]
    assert [one["amount"] for one in money] == ["50.00"]
    for (method, path), rules in declared().items():
        if "{job_id}" in path and rules.reach is not Reach.ALL:
            asked = path.replace("{job_id}", job)
            status = (await api.stranger.request(method, asked, headers=anna, json={})).status_code
            assert status == 404, (method, path, status)
    for path in ("templates/mine", "volumes/mine"):
        assert (await api.stranger.get(f"{V1}/{path}", headers=anna)).status_code == 404


@pytest.mark.row("F8")
async def test_a_link_that_nobody_has_used_ends_with_the_token_that_made_it(api: Api) -> None:
    made = await api.client.post(f"{V1}/tokens", json={"name": "helper", "roles": ["operator"]})
    helper = {"Authorization": f"Bearer {made.json()['token']}"}
    asked = {"name": "anna", "roles": ["renter"]}
    link = (await api.stranger.post(f"{V1}/accounts", headers=helper, json=asked)).json()["link"]
    await api.client.delete(f"{V1}/tokens/{made.json()['id']}")

    answer = await api.stranger.post(f"{V1}/sign-in", json={"secret": link.partition("#sign-in=")[2]})

    assert answer.status_code == 401, answer.text


@pytest.mark.row("F8")
async def test_a_link_that_nobody_has_used_ends_with_the_account_that_made_it(api: Api) -> None:
    _, helper = await _added(api, "helper", "operator")
    asked = {"name": "anna", "roles": ["renter"]}
    link = (await api.stranger.post(f"{V1}/accounts", headers=helper, json=asked)).json()["link"]
    assert (await api.client.post(f"{V1}/accounts/helper/suspend", json={})).status_code == 200

    answer = await api.stranger.post(f"{V1}/sign-in", json={"secret": link.partition("#sign-in=")[2]})

    assert answer.status_code == 401, answer.text


@pytest.mark.row("F7")
async def test_only_an_operator_makes_accounts_and_money(api: Api) -> None:
    account_id, anna = await _added(api, "anna", "renter", "provider", "auditor")

    for path, body in (
        ("accounts", {"name": "eve", "roles": ["operator"], "credit": "9"}),
        (f"accounts/{account_id}/credit", {"amount": "1000"}),
        (f"accounts/{account_id}/link", None),
        (f"accounts/{account_id}/suspend", {}),
        (f"accounts/{account_id}/resume", None),
        ("tokens", {"name": "x", "roles": ["operator"]}),
    ):
        assert (await api.stranger.post(f"{V1}/{path}", headers=anna, json=body)).status_code == 403, path
    for name in ("anna", "Anna", "an na", "", "a\0", "-a", "x" * 65):
        answer = await api.client.post(f"{V1}/accounts", json={"name": name, "roles": ["renter"]})
        assert answer.status_code in (409, 422), name
    for amount in ("0", "-1", "1e3", "NaN", "9" * 25):
        assert (await api.client.post(f"{V1}/accounts/anna/credit", json={"amount": amount})).status_code == 422, amount


@pytest.mark.row("F7")
async def test_credit_by_one_key_is_granted_once(api: Api) -> None:
    await _added(api, "anna", "renter")
    headers = {"Idempotency-Key": "once"}

    for _ in range(3):
        await api.client.post(f"{V1}/accounts/anna/credit", json={"amount": "12.5"}, headers=headers)

    assert (await api.client.get(f"{V1}/accounts/anna")).json()["balance"]["amount"] == "62.50"
    assert api.services.store.read_now(api.services.market.verify) == ()


@pytest.mark.row("F7")
async def test_a_suspended_account_does_nothing_until_it_is_resumed(api: Api) -> None:
    _, anna = await _added(api, "anna", "renter", "provider")
    job = await api.stranger.post(f"{V1}/jobs", json={"argv": ["true"], "simulated": True}, headers=anna)
    link = (await api.client.post(f"{V1}/accounts/anna/link")).json()["link"].partition("#sign-in=")[2]

    assert (await api.client.post(f"{V1}/accounts/anna/suspend", json={"reason": "unpaid"})).status_code == 200

    assert (await api.stranger.get(f"{V1}/me", headers=anna)).status_code == 403
    assert (await api.stranger.post(f"{V1}/sign-in", json={"secret": link})).status_code == 401
    assert (await api.client.post(f"{V1}/accounts/anna/link")).status_code == 409
    ended = (await api.client.get(f"{V1}/jobs/{job.json()['jobs'][0]['id']}")).json()
    assert (ended["state"], ended["reason"]) == ("Cancelled", "its account was suspended")
    owner = (await api.client.get(f"{V1}/me")).json()["account"]["id"]
    assert (await api.client.post(f"{V1}/accounts/{owner}/suspend", json={})).status_code == 409
    await api.client.post(f"{V1}/accounts/anna/resume")
    assert (await api.stranger.get(f"{V1}/me", headers=anna)).status_code == 200


@pytest.mark.row("F7")
async def test_a_link_ends_by_time_and_by_the_next_one(api: Api) -> None:
    await _added(api, "anna", "renter")
    first, second = [
        (await api.client.post(f"{V1}/accounts/anna/link")).json()["link"].partition("#sign-in=")[2] for _ in range(2)
    ]
    assert (await api.stranger.post(f"{V1}/sign-in", json={"secret": first})).status_code == 401
    api.clock.advance(4 * 86_400 * 10**9)
    assert (await api.stranger.post(f"{V1}/sign-in", json={"secret": second})).status_code == 401


@pytest.mark.row("F8")
async def test_no_sign_in_link_opens_more_than_its_maker_has(api: Api) -> None:
    """A link outlives the token that asked for it, so it is no way to more rights, nor to keep what is revoked."""
    owner = (await api.client.get(f"{V1}/me")).json()["account"]["id"]
    weak = (await api.client.post(f"{V1}/tokens", json={"name": "x", "roles": ["operator"]})).json()["token"]
    _, helper = await _added(api, "helper", "operator")
    await _added(api, "chief", "operator", "auditor")
    await _added(api, "anna", "renter")

    async def asked(name: str, headers: dict[str, str]) -> int:
        return (await api.stranger.post(f"{V1}/accounts/{name}/link", headers=headers)).status_code

    own = {"Authorization": f"Bearer {weak}"}
    assert await asked(owner, own) == 403, "its own account, with all roles"
    assert [await asked(name, helper) for name in (owner, "helper", "chief", "anna")] == [403, 403, 403, 201]
    assert (await api.client.post(f"{V1}/accounts/chief/link")).status_code == 201
    assert (await api.client.post(f"{V1}/accounts/{owner}/link")).status_code == 403


@pytest.mark.row("F7")
async def test_keys_of_credits_are_their_operators_own(api: Api) -> None:
    await _added(api, "anna", "renter")
    _, helper = await _added(api, "helper", "operator")

    for key in ("opening", "first", "mine"):
        for client, headers in ((api.client, {}), (api.stranger, helper)):
            sent = {"Idempotency-Key": key} | headers
            await client.post(f"{V1}/accounts/anna/credit", json={"amount": "1"}, headers=sent)

    assert (await api.client.get(f"{V1}/accounts/anna")).json()["balance"]["amount"] == "56.00"


@pytest.mark.case("M-2")
async def test_parts_of_cards_are_asked_for_and_priced_as_the_documents_say(api: Api) -> None:
    headers = {"Content-Type": "application/json"}
    for profile in ("mps.50", "2g.20gb", "1g.10gb+me"):
        for path in ("clusters/plan", "jobs/plan"):
            body = {"argv": ["true"], "gpus": 1, "slice": profile}
            answer: httpx2.Response = await api.client.post(f"{V1}/{path}", json=body, headers=headers)
            assert answer.status_code == 200, answer.text
    for tier in ("h100:2g.20gb/C", "h100:mps.50/C", "h100/A"):
        answer = await api.client.put(f"{V1}/offers/{tier}", json={"price_per_hour": "0.5"})
        assert answer.status_code == 200, answer.text
