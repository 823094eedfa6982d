"""A token reaches what has at most its own rights, its end ends what it made, and wrong tokens shut nobody out."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx2
import pytest

from tests.unit.clusters.test_routes import Site
from tests.unit.clusters.test_routes import site as site
from tests.unit.clusters.test_tunnels import HeldStream, ask, tunnelling
from tests.unit.master_api.conftest import Api
from tests.unit.master_api.conftest import api as api
from windrow_master.api.app import build_app
from windrow_master.api.proxied import Proxied
from windrow_master.api.rate_limits import SIGN_IN, Limits
from windrow_master.identity.repository import AccountRepository
from windrow_master.storage.artefact_repository import ArtefactRepository
from windrow_master.store.bus import Limit
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import AccountId
from windrow_proto.networks import parse_networks
from windrow_proto.units import DAY, SECOND

V1 = "/api/v1"


async def _made(client: httpx2.AsyncClient, token: str, *roles: str) -> tuple[str, str]:
    answer = await client.post(
        f"{V1}/tokens", json={"name": "x", "roles": list(roles)}, headers={"Authorization": f"Bearer {token}"}
    )
    assert answer.status_code == 201, answer.text
    return answer.json()["id"], answer.json()["token"]


@pytest.mark.row("F8")
@pytest.mark.parametrize("roles", [("renter",), ("auditor",), ("renter", "provider"), ("operator",)])
@pytest.mark.case("M-6")
async def test_a_token_neither_sees_nor_ends_what_has_more_rights(api: Api, roles: tuple[str, ...]) -> None:
    _, weak = await _made(api.client, api.token, *roles)
    mine, _ = await _made(api.client, weak, roles[0])
    headers = {"Authorization": f"Bearer {weak}"}
    strong = [one["id"] for one in (await api.client.get(f"{V1}/tokens")).json()["items"] if len(one["roles"]) > 2]
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


@pytest.mark.row("F8")
async def test_what_a_token_makes_ends_with_it_however_long_it_asks_for(api: Api) -> None:
    short = await api.client.post(f"{V1}/tokens", json={"name": "short", "roles": ["renter"], "expires_in_s": 60})
    headers = {"Authorization": f"Bearer {short.json()['token']}"}
    session = (await api.stranger.post(f"{V1}/session", json={"token": short.json()["token"]})).json()["secret"]

    for way in (headers, {"Authorization": f"Bearer {session}"}):
        asked = {"name": "longer", "roles": ["renter"], "expires_in_s": 90 * DAY // SECOND}
        made = await api.stranger.post(f"{V1}/tokens", json=asked, headers=way)
        assert made.status_code == 201
        assert made.json()["expires_at"] == short.json()["expires_at"]


@pytest.fixture
async def limited(api: Api) -> AsyncIterator[tuple[Api, httpx2.AsyncClient]]:
    transport = httpx2.ASGITransport(build_app(api.services, api.static, limits=Limits()), raise_app_exceptions=False)
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
@pytest.mark.case("M-6")
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


GUESSES = SIGN_IN.burst + 5


async def _guess(client: httpx2.AsyncClient, text: str, **headers: str) -> int:
    answer = await client.get(f"{V1}/me", headers={"Authorization": f"Bearer {text}", **headers})
    return answer.status_code


def _served(api: Api, proxies: Sequence[str] = (), limits: Limits | None = None) -> Proxied:
    app = build_app(api.services, api.static, limits=limits or Limits())
    return Proxied(app, parse_networks(proxies, "--trusted-proxy"))


@asynccontextmanager
async def _coming_from(app: Proxied, address: str) -> AsyncIterator[httpx2.AsyncClient]:
    """Everybody who comes by this address, maybe a trusted proxy's."""
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False, client=(address, 4321))
    async with httpx2.AsyncClient(transport=transport, base_url="http://master") as client:
        yield client


@pytest.mark.row("F24")
async def test_neighbours_who_guess_lock_no_way_of_signing_in(api: Api) -> None:
    link = (await api.client.post(f"{V1}/accounts", json={"name": "anna", "roles": ["renter"]})).json()["link"]
    async with _coming_from(_served(api), "192.0.2.1") as client:
        for number in range(GUESSES):
            await client.post(f"{V1}/session", json={"token": f"wt_{number:040d}"})
            last = await client.post(f"{V1}/sign-in", json={"secret": f"wl_{number:040d}"})

        by_token = await client.post(f"{V1}/session", json={"token": api.token})
        by_link = await client.post(f"{V1}/sign-in", json={"secret": link.partition("#sign-in=")[2]})

        assert last.status_code == 429
        assert (by_token.status_code, by_link.status_code) == (200, 201)
        assert await _guess(client, by_token.json()["secret"]) == 200
        assert await _guess(client, "wt_" + "0" * 40) == 429


@pytest.mark.row("F24")
async def test_neighbours_who_ask_without_a_token_lock_out_nobody_who_has_one(api: Api) -> None:
    limits = Limits(address=Limit("address", 5, 3600 * SECOND))
    async with _coming_from(_served(api, limits=limits), "192.0.2.1") as client:
        statuses = [(await client.get(f"{V1}/ca")).status_code for _ in range(8)]

        assert statuses[-1] == 429
        assert await _guess(client, api.token) == 200


@pytest.mark.row("F24")
@pytest.mark.parametrize("way", ["prefixes", "spoofed", "subscriber", "addresses"])
async def test_guesses_are_bounded_whatever_changes_with_each(api: Api, way: str) -> None:
    app, statuses = _served(api), []
    for number in range(GUESSES):
        address = "192.0.2.1"
        text, headers = "wt_abcdefgh" + f"{number:032d}", {}
        if way == "prefixes":
            text = f"wt_{number:08d}" + "x" * 32
        elif way == "spoofed":
            headers = {"X-Forwarded-For": f"198.51.100.{number}", "X-Real-IP": f"198.51.100.{number}"}
        elif way == "subscriber":
            address, text = f"2001:db8::{number + 1:x}", f"wt_{number:08d}" + "x" * 32
        else:
            address = f"203.0.113.{number}"
        async with _coming_from(app, address) as client:
            statuses.append(await _guess(client, text, **headers))
            right = await _guess(client, api.token, **headers)
        assert right == 200

    assert statuses[: SIGN_IN.burst] == [401] * SIGN_IN.burst
    assert set(statuses[SIGN_IN.burst :]) == {429}


@pytest.mark.row("F24")
@pytest.mark.parametrize("proxy", ["10.0.0.7", "::ffff:10.0.0.7", "fd00::7"])
async def test_behind_a_trusted_proxy_each_is_counted_alone_and_nobody_as_somebody_else(api: Api, proxy: str) -> None:
    async with _coming_from(_served(api, ["10.0.0.0/24", "fd00::/8"]), proxy) as client:
        guesses = [
            await _guess(client, f"wt_{n:08d}", **{"X-Forwarded-For": f"198.51.100.{n}, 192.0.2.1"})
            for n in range(GUESSES)
        ]

        assert guesses[-1] == 429, "what the guesser writes himself does not count"
        assert await _guess(client, "wt_another", **{"X-Forwarded-For": "192.0.2.1, 192.0.2.9"}) == 401
        made = await client.post(
            f"{V1}/tokens",
            json={"name": "spare"},
            headers={"Authorization": f"Bearer {api.token}", "X-Forwarded-For": "203.0.113.5, 192.0.2.9, 10.0.0.8"},
        )

    (entry,) = [
        one
        for one in (await api.client.get(f"{V1}/audit", params={"action": "token.make"})).json()["items"]
        if one["subject"] == made.json()["id"]
    ]
    assert entry["fields"]["address"] == "192.0.2.9"


@pytest.mark.row("F24")
async def test_figures_are_open_to_this_machine_and_to_nobody_behind_its_proxy(api: Api) -> None:
    for proxies in ((), ("127.0.0.1",)):
        async with _coming_from(_served(api, proxies), "127.0.0.1") as client:
            assert (await client.get("/metrics")).status_code == 200
            assert (await client.get("/metrics", headers={"X-Forwarded-For": "198.51.100.1"})).status_code == 401


@pytest.mark.row("F8")
async def test_lists_show_what_may_be_seen_however_much_else_there_is(api: Api) -> None:
    _, weak = await _made(api.client, api.token, "renter")
    for _ in range(12):
        await api.stranger.post(f"{V1}/session", json={"token": api.token})
        await _made(api.client, api.token, "operator")
    mine, _ = await _made(api.client, weak, "renter")
    secret = (await api.stranger.post(f"{V1}/session", json={"token": weak})).json()["secret"]
    headers = {"Authorization": f"Bearer {secret}"}

    async def listed(path: str) -> list[str]:
        found: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            asked = {"limit": "2", **({"cursor": cursor} if cursor else {})}
            answer = (await api.stranger.get(f"{V1}/{path}", params=asked, headers=headers)).json()
            found += [one["id"] for one in answer["items"]]
            cursor = answer["next_cursor"]
        return found

    first = (await api.stranger.get(f"{V1}/sessions", params={"limit": "1"}, headers=headers)).json()
    assert [one["current"] for one in first["items"]] == [True]
    assert mine in await listed("tokens")
    assert len(await listed("sessions")) == 1


@pytest.mark.row("F8")
@pytest.mark.parametrize("way", ["token", "parent", "account"])
async def test_an_upload_ends_with_the_right_to_it_and_nothing_of_it_is_kept(api: Api, way: str) -> None:
    api.clock.advance(SECOND)  # after the first account
    link = (await api.client.post(f"{V1}/accounts", json={"name": "anna", "roles": ["renter"]})).json()["link"]
    opened = (await api.stranger.post(f"{V1}/sign-in", json={"secret": link.partition("#sign-in=")[2]})).json()
    parent, text = opened["token"]["id"], opened["token"]["token"]
    child, secret = await _made(api.client, text, "renter")
    headers = {"Authorization": f"Bearer {secret}"}
    account = (await api.stranger.get(f"{V1}/me", headers=headers)).json()["account"]["id"]
    begun = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b"the first part"
        begun.set()
        await asyncio.Event().wait()

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        url = f"{V1}/artefacts/account/{account}/weights"
        sending = group.create_task(api.stranger.put(url, content=body(), headers=headers))
        await begun.wait()
        if way == "account":
            await api.client.post(f"{V1}/accounts/anna/suspend", json={})
        else:
            ended = {"token": child, "parent": parent}[way]
            own = {"Authorization": f"Bearer {text}"}
            assert (await api.stranger.delete(f"{V1}/tokens/{ended}", headers=own)).status_code == 204
        answer = await sending

    assert answer.status_code == 401, answer.text
    assert await api.services.store.read(lambda uow: uow[ArtefactRepository].used(AccountId(account))) == (0, 0)


@pytest.mark.row("F8")
@pytest.mark.parametrize("way", ["session", "parent", "account"])
async def test_a_tunnel_ends_with_the_right_to_it(site: Site, way: str) -> None:
    cluster_id, _ = await site.running()
    stream = HeldStream()
    site.broker.streams = [stream]
    identity = site.rooms.identity
    principal = await identity.authenticate(site.client.headers["Authorization"].removeprefix("Bearer "))
    parent, text = await identity.make_token(principal, "parent", principal.roles, DAY)
    _, child = await identity.make_token(await identity.authenticate(text), "child", principal.roles, DAY)
    session, secret, _ = await identity.asking.sign_in(child, "browser")

    def suspend(uow: UnitOfWork) -> None:
        uow[AccountRepository].suspend(principal.account_id, uow.now_wall_ns)
        uow.after_commit(identity.asking.forget)

    async with asyncio.timeout(30), tunnelling(site) as tunnels:
        made = await ask(site, cluster_id, headers={"Authorization": f"Bearer {secret}"})
        assert (made.status_code, tunnels.count) == (201, 1)
        if way == "session":
            await identity.asking.end_session(principal, session.id)
        elif way == "parent":
            await identity.revoke_token(principal, parent.id)
        else:
            await site.rooms.store.write(suspend, name="test")
        while tunnels.count:
            site.clock.advance(SECOND)
            await asyncio.sleep(0)

    assert stream.closings, "its host was told"
