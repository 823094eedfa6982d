"""Promises of a browser's session: its cookie, what another site can do with it, and every way in which it ends."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import text

from tests.master_support import ManualClock, SeededRng
from windrow_master import rooms
from windrow_master.api.app import build_app
from windrow_master.rooms import Rooms
from windrow_master.store.executors import InlineExecutor
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.units import DAY, HOUR, MINUTE, SECOND

CSRF = "X-Windrow-CSRF"


@dataclass
class World:
    """A Master, a program that has a token, and a way to open browsers."""

    opened: Rooms
    transport: httpx2.ASGITransport
    program: httpx2.AsyncClient
    clock: ManualClock
    token: str

    def browser(self, base: str = "http://master", agent: str = "Firefox/140 (X11)") -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=self.transport, base_url=base, headers={"User-Agent": agent})

    async def signed_in(self, base: str = "http://master") -> tuple[httpx2.AsyncClient, str, httpx2.Response]:
        browser = self.browser(base)
        answer = await browser.post("/api/v1/session", json={"token": self.token})
        assert answer.status_code == 200, answer.text
        return browser, answer.headers[CSRF], answer


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    clock = ManualClock()
    opened = rooms.build(tmp_path / "d", clock, SeededRng(9), disk=MemoryDisk(), make_executor=InlineExecutor)
    with closing(opened):
        token = opened.identity.local_token(opened.identity.first_account(), None)
        transport = httpx2.ASGITransport(build_app(opened.services, tmp_path), raise_app_exceptions=False)
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(transport=transport, base_url="http://master", headers=headers) as program:
            yield World(opened, transport, program, clock, token)


async def _make(browser: httpx2.AsyncClient, **headers: str) -> int:
    answer = await browser.post("/api/v1/tokens", json={"name": "x"}, headers=headers)
    return answer.status_code


async def test_the_cookie_holds_a_secret_of_its_own_that_scripts_and_other_sites_do_not_get(world: World) -> None:
    browser, _, answer = await world.signed_in()
    cookie = answer.headers["set-cookie"]

    assert all(word in cookie for word in ("HttpOnly", "SameSite=strict", "Path=/api/v1", "windrow_session=ws_"))
    assert "Secure" not in cookie, "plain HTTP is for loopback"
    assert world.token not in cookie
    assert (await browser.get("/api/v1/me")).json()["session"]["id"] == answer.json()["session"]["id"]


async def test_over_tls_the_cookie_is_secure(world: World) -> None:
    _, _, answer = await world.signed_in("https://master")

    assert "Secure" in answer.headers["set-cookie"]


async def test_the_store_keeps_only_the_hash_of_the_secret(world: World) -> None:
    _, _, answer = await world.signed_in()
    secret = answer.headers["set-cookie"].split("=", 1)[1].split(";")[0]

    rows = await world.opened.store.read(
        lambda uow: [tuple(row) for row in uow.connection.execute(text("SELECT * FROM sessions"))]
    )

    assert hashlib.sha256(secret.encode()).digest() in rows[0]
    assert secret not in str(rows) and world.token not in str(rows)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({CSRF: "1"}, 403),
        ({CSRF: "right"}, 201),
        ({CSRF: "right", "Origin": "http://master"}, 201),
        ({CSRF: "right", "Sec-Fetch-Site": "same-origin"}, 201),
        ({CSRF: "right", "Origin": "http://evil.example"}, 403),
        ({CSRF: "right", "Origin": "http://master:9999"}, 403),
        ({CSRF: "right", "Origin": "null"}, 403),
        ({CSRF: "right", "Sec-Fetch-Site": "cross-site"}, 403),
        ({CSRF: "right", "Sec-Fetch-Site": "same-site"}, 403),
        ({CSRF: "right", "Sec-Fetch-Site": "none"}, 403),
    ],
)
async def test_a_change_with_the_cookie_comes_from_our_own_pages_or_not_at_all(
    world: World, headers: dict[str, str], status: int
) -> None:
    browser, csrf, _ = await world.signed_in()
    sent = {name: csrf if value == "right" else value for name, value in headers.items()}

    assert (await browser.get("/api/v1/me", headers=sent)).status_code == 200, "reading changes nothing"
    assert await _make(browser, **sent) == status


async def test_another_sessions_csrf_token_does_not_do(world: World) -> None:
    _, foreign, _ = await world.signed_in()
    browser, own, _ = await world.signed_in()

    assert foreign != own
    assert await _make(browser, **{CSRF: foreign}) == 403


async def test_a_page_that_is_loaded_anew_gets_its_csrf_token_from_me(world: World) -> None:
    browser, csrf, _ = await world.signed_in()

    assert (await browser.get("/api/v1/me")).headers[CSRF] == csrf
    assert CSRF not in (await world.program.get("/api/v1/me")).headers


async def test_bearer_tokens_need_none_of_this(world: World) -> None:
    answer = await world.program.post(
        "/api/v1/tokens", json={"name": "x"}, headers={"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
    )

    assert answer.status_code == 201


async def test_another_site_cannot_sign_a_browser_in(world: World) -> None:
    answer = await world.browser().post(
        "/api/v1/session", json={"token": world.token}, headers={"Origin": "http://evil.example"}
    )

    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)


async def test_an_api_token_in_the_cookie_is_not_a_session_nor_a_session_a_bearer_token(world: World) -> None:
    _, _, answer = await world.signed_in()
    secret = answer.headers["set-cookie"].split("=", 1)[1].split(";")[0]
    stranger = world.browser()

    as_cookie = await stranger.get("/api/v1/me", headers={"Cookie": f"windrow_session={world.token}"})
    as_bearer = await stranger.get("/api/v1/me", headers={"Authorization": f"Bearer {secret}"})

    assert (as_cookie.status_code, as_bearer.status_code) == (401, 401)


async def test_signing_out_ends_the_session_also_for_who_copied_the_cookie(world: World) -> None:
    browser, csrf, answer = await world.signed_in()
    copied = {"Cookie": answer.headers["set-cookie"].split(";")[0]}
    thief = world.browser()
    assert (await thief.get("/api/v1/me", headers=copied)).status_code == 200

    assert (await browser.delete("/api/v1/session")).status_code == 403, "another site must not sign us out"
    assert (await browser.delete("/api/v1/session", headers={CSRF: csrf})).status_code == 204

    assert (await thief.get("/api/v1/me", headers=copied)).status_code == 401
    assert (await world.program.get("/api/v1/me")).status_code == 200, "the token stays good"
    assert (await browser.delete("/api/v1/session")).status_code == 204, "signing out twice is no error"


async def test_removing_a_token_ends_its_sessions(world: World) -> None:
    made = (await world.program.post("/api/v1/tokens", json={"name": "mine", "roles": ["renter"]})).json()
    browser = world.browser()
    await browser.post("/api/v1/session", json={"token": made["token"]})
    assert (await browser.get("/api/v1/me")).json()["roles"] == ["renter"], "a session has the roles of its token"

    await world.program.delete(f"/api/v1/tokens/{made['id']}")

    assert (await browser.get("/api/v1/me")).status_code == 401
    assert (await world.program.get("/api/v1/sessions")).json()["items"] == []


@pytest.mark.parametrize(
    ("life_s", "step_ns", "steps"),
    [(90 * 86_400, 3 * DAY + MINUTE, 1), (90 * 86_400, DAY, 14), (3_600, HOUR + SECOND, 1)],
    ids=["idle", "old", "token"],
)
async def test_a_session_ends_unused_or_old_or_with_its_token(
    world: World, life_s: int, step_ns: int, steps: int
) -> None:
    made = (await world.program.post("/api/v1/tokens", json={"name": "t", "expires_in_s": life_s})).json()
    browser = world.browser()
    await browser.post("/api/v1/session", json={"token": made["token"]})
    statuses = []

    for _ in range(steps):
        await world.opened.identity.asking.note_use()
        world.clock.advance(step_ns)
        statuses.append((await browser.get("/api/v1/me")).status_code)

    assert statuses == [200] * (steps - 1) + [401]


async def test_sessions_are_listed_with_browser_and_last_use_and_can_be_ended_one_by_one(world: World) -> None:
    first, csrf, _ = await world.signed_in()
    world.clock.advance(MINUTE)
    second, _, _ = await world.signed_in()
    world.clock.advance(MINUTE)
    await second.get("/api/v1/me")

    listed = (await second.get("/api/v1/sessions")).json()["items"]
    assert [(item["browser"], item["token_name"], item["current"]) for item in listed] == [
        ("Firefox/140 (X11)", "cli.json", False),
        ("Firefox/140 (X11)", "cli.json", True),
    ]
    assert listed[1]["last_used_at"] > listed[1]["created_at"]
    ended = await first.delete(f"/api/v1/sessions/{listed[1]['id']}", headers={CSRF: csrf})

    assert ended.status_code == 204
    assert (await second.get("/api/v1/me")).status_code == 401
    assert (await first.get("/api/v1/me")).status_code == 200


async def test_a_browsers_name_is_plain_text(world: World) -> None:
    browser = world.browser(agent="<b>\x1b[31mevil</b>")
    await browser.post("/api/v1/session", json={"token": world.token})

    (item,) = (await browser.get("/api/v1/sessions")).json()["items"]
    assert item["browser"] == "_b___31mevil_/b_"


async def test_when_a_token_was_last_used_is_shown_at_once_and_survives_a_restart(world: World) -> None:
    async def used() -> Any:
        items = (await world.program.get("/api/v1/tokens")).json()["items"]
        return {item["name"]: item["last_used_at"] for item in items}

    await world.program.post("/api/v1/tokens", json={"name": "never"})
    first = await used()
    world.clock.advance(HOUR)
    second = await used()
    await world.opened.identity.asking.note_use()

    assert first["never"] is None and first["cli.json"] is not None
    assert second["cli.json"] > first["cli.json"]
    kept = await world.opened.store.read(
        lambda uow: uow.connection.execute(
            text("SELECT last_used_at_ns FROM api_tokens WHERE name = 'cli.json'")
        ).scalar()
    )
    assert kept == world.clock.wall_ns()


async def test_no_secret_of_identity_is_stored_as_text(world: World) -> None:
    made = (await world.program.post("/api/v1/tokens", json={"name": "x"})).json()["token"]
    join = (await world.program.post("/api/v1/join-tokens", json={})).json()["join_token"]
    _, csrf, answer = await world.signed_in()
    secret = answer.headers["set-cookie"].split("=", 1)[1].split(";")[0]

    dump = await world.opened.store.read(
        lambda uow: [
            [tuple(row) for row in uow.connection.execute(text(f"SELECT * FROM {name}"))]
            for (name,) in uow.connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'table'"))
        ]
    )

    assert len(dump) > 15
    for text_ in (made, join, secret, csrf, world.token):
        assert text_ not in str(dump)
