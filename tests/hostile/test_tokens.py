"""A token reaches what has at most its own rights, its end ends what it made, and wrong tokens shut nobody out."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from tests.unit.master_api.conftest import Api
from tests.unit.master_api.conftest import api as api
from windrow_master.api.app import build_app
from windrow_master.api.limits import SIGN_IN, Limits

V1 = "/api/v1"


async def _made(client: httpx2.AsyncClient, token: str, *roles: str) -> tuple[str, str]:
    answer = await client.post(
        f"{V1}/tokens", json={"name": "x", "roles": list(roles)}, headers={"Authorization": f"Bearer {token}"}
    )
    assert answer.status_code == 201, answer.text
    return answer.json()["id"], answer.json()["token"]


@pytest.mark.row("F8")
@pytest.mark.parametrize("roles", [("renter",), ("auditor",), ("renter", "provider"), ("operator",)])
async def test_a_token_neither_sees_nor_ends_what_has_more_rights(api: Api, roles: tuple[str, ...]) -> None:
    _, weak = await _made(api.client, api.token, *roles)
    mine, _ = await _made(api.client, weak, roles[0])
    headers = {"Authorization": f"Bearer {weak}"}
    strong = [one["id"] for one in (await api.client.get(f"{V1}/tokens")).json()["items"] if len(one["roles"]) == 4]
    session = (await api.stranger.post(f"{V1}/session", json={"token": api.token})).json()["session"]["id"]

    for token_id in strong:
        assert (await api.stranger.delete(f"{V1}/tokens/{token_id}", headers=headers)).status_code == 404
    assert (await api.stranger.delete(f"{V1}/sessions/{session}", headers=headers)).status_code == 404
    seen = (await api.stranger.get(f"{V1}/tokens", headers=headers)).json()["items"]
    sessions = (await api.stranger.get(f"{V1}/sessions", headers=headers)).json()["items"]
    more = await api.stranger.post(f"{V1}/tokens", json={"name": "y", "roles": ["renter", "operator"]}, headers=headers)

    assert strong
    assert all(set(one["roles"]) <= set(roles) for one in seen)
    assert sessions == []
    assert more.status_code == 403
    assert (await api.stranger.delete(f"{V1}/tokens/{mine}", headers=headers)).status_code == 204
    assert (await api.client.get(f"{V1}/me")).status_code == 200


@pytest.mark.row("F8")
async def test_the_end_of_a_token_is_the_end_of_what_it_made(api: Api) -> None:
    parent, text = await _made(api.client, api.token, "provider", "renter")
    _, child = await _made(api.client, text, "renter")
    _, grandchild = await _made(api.client, child, "renter")
    headers = {"Authorization": f"Bearer {text}"}
    ticket = (await api.client.post(f"{V1}/join-tokens", json={}, headers=headers)).json()["id"]
    secret = (await api.stranger.post(f"{V1}/session", json={"token": grandchild})).json()["secret"]

    assert (await api.client.delete(f"{V1}/tokens/{parent}")).status_code == 204

    for dead in (text, child, grandchild, secret):
        answer = await api.stranger.get(f"{V1}/me", headers={"Authorization": f"Bearer {dead}"})
        assert answer.status_code == 401
    assert ticket not in [one["id"] for one in (await api.client.get(f"{V1}/join-tokens")).json()["items"]]


@pytest.fixture
async def limited(api: Api) -> AsyncIterator[tuple[Api, httpx2.AsyncClient]]:
    api.services.limits = Limits()
    transport = httpx2.ASGITransport(build_app(api.services, api.static), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://master") as client:
        yield api, client


@pytest.mark.row("F24")
async def test_wrong_tokens_of_an_address_lock_out_only_wrong_tokens(limited: tuple[Api, httpx2.AsyncClient]) -> None:
    api, client = limited
    statuses = [
        (await client.get(f"{V1}/me", headers={"Authorization": f"Bearer wt_{number:040d}"})).status_code
        for number in range(SIGN_IN.burst + 5)
    ]

    fresh = await client.get(f"{V1}/me", headers={"Authorization": f"Bearer {api.token}"})

    assert statuses[-1] == 429
    assert fresh.status_code == 200, "the process has never seen this token before, as after a restart"


@pytest.mark.row("F8")
async def test_the_audit_says_which_token_and_session_did_it_and_from_where(api: Api) -> None:
    secret = (await api.stranger.post(f"{V1}/session", json={"token": api.token})).json()["secret"]
    browser = {"Authorization": f"Bearer {secret}"}
    me = (await api.stranger.get(f"{V1}/me", headers=browser)).json()
    made = (await api.stranger.post(f"{V1}/tokens", json={"name": "spare"}, headers=browser)).json()

    await api.stranger.delete(f"{V1}/tokens/{made['id']}", headers=browser)

    (entry,) = (await api.client.get(f"{V1}/audit", params={"action": "token.revoke"})).json()["items"]
    asked = {name: entry["fields"][name] for name in ("token", "session", "address")}
    assert asked == {"token": me["token"]["id"], "session": me["session"]["id"], "address": "127.0.0.1"}
    assert made["token"] not in str(entry)
    assert secret not in str((await api.client.get(f"{V1}/audit")).json())
