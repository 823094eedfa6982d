"""Promises of a browser's session: its secret, that nothing a browser sends by itself counts, and how it ends."""

import base64
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
from windrow_master.api.app import build_app
from windrow_master.app import wiring
from windrow_master.app.wiring import Master
from windrow_master.store.executors import InlineExecutor
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.units import DAY, HOUR, MINUTE, SECOND


@dataclass
class World:
    """A Master, a program that has a token, and a way to open browsers."""

    opened: Master
    transport: httpx2.ASGITransport
    program: httpx2.AsyncClient
    clock: ManualClock
    token: str

    def browser(self, base: str = "http://master", agent: str = "Firefox/140 (X11)") -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=self.transport, base_url=base, headers={"User-Agent": agent})

    async def signed_in(self, token: str | None = None, agent: str = "Firefox/140 (X11)") -> httpx2.AsyncClient:
        """A browser that sends its session's secret as the console does."""
        browser = self.browser(agent=agent)
        answer = await browser.post("/api/v1/session", json={"token": token or self.token})
        assert answer.status_code == 200, answer.text
        browser.headers["Authorization"] = f"Bearer {answer.json()['secret']}"
        return browser


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    clock = ManualClock()
    opened = wiring.build(tmp_path / "d", clock, SeededRng(9), disk=MemoryDisk(), make_executor=InlineExecutor)
    with closing(opened):
        token = opened.identity.local_token(opened.identity.first_account(), None)
        transport = httpx2.ASGITransport(build_app(opened.services, tmp_path), raise_app_exceptions=False)
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(transport=transport, base_url="http://master", headers=headers) as program:
            yield World(opened, transport, program, clock, token)


def _secret(browser: httpx2.AsyncClient) -> str:
    return browser.headers["Authorization"].removeprefix("Bearer ")


async def test_signing_in_answers_with_a_secret_of_its_own_and_sets_no_cookie(world: World) -> None:
    answer = await world.browser().post("/api/v1/session", json={"token": world.token})
    browser = await world.signed_in()

    assert "set-cookie" not in answer.headers
    assert answer.json()["secret"].startswith("ws_") and world.token not in answer.text
    assert (await browser.get("/api/v1/me")).json()["session"]["id"] != answer.json()["session"]["id"]
    assert _secret(browser) != answer.json()["secret"], "each sign-in has its own"


async def test_the_store_keeps_only_the_hash_of_the_secret(world: World) -> None:
    secret = _secret(await world.signed_in())

    rows = await world.opened.store.read(
        lambda uow: [tuple(row) for row in uow.connection.execute(text("SELECT * FROM sessions"))]
    )

    assert hashlib.sha256(secret.encode()).digest() in rows[0]
    assert secret not in str(rows) and world.token not in str(rows)


@pytest.mark.parametrize("path", ["/api/v1/me", "/api/v1/events/stream", "/api/v1/fleet/stream", "/api/v1/tokens"])
async def test_nothing_that_a_browser_sends_by_itself_signs_in(world: World, path: str) -> None:
    secret = _secret(await world.signed_in())
    basic = base64.b64encode(f"user:{secret}".encode()).decode()
    ambient = [
        {"Cookie": f"windrow_session={secret}"},
        {"Cookie": f"__Host-windrow_session={secret}"},
        {"Cookie": f"Authorization=Bearer {secret}"},
        {"Authorization": f"Basic {basic}"},
        {"X-Windrow-CSRF": secret},
    ]

    statuses = [(await world.browser().get(path, headers=headers)).status_code for headers in ambient]
    in_address = await world.browser().get(f"{path}?token={secret}&access_token={secret}&authorization=Bearer {secret}")

    assert statuses == [401] * len(ambient)
    assert in_address.status_code == 401


async def test_no_answer_of_a_session_sets_a_cookie_or_lets_another_origin_read(world: World) -> None:
    browser = await world.signed_in()
    answers = [
        await browser.get("/api/v1/me", headers={"Origin": "http://lab.localhost:8888"}),
        await browser.get("/"),
        await browser.request("OPTIONS", "/api/v1/me", headers={"Origin": "http://lab.localhost:8888"}),
        await browser.delete("/api/v1/session"),
    ]

    for answer in answers:
        assert "set-cookie" not in answer.headers
        assert not [name for name in answer.headers if name.startswith("access-control-")]


async def test_a_session_cannot_begin_another(world: World) -> None:
    secret = _secret(await world.signed_in())

    assert (await world.browser().post("/api/v1/session", json={"token": secret})).status_code == 401


async def test_signing_out_ends_the_session_also_for_who_copied_its_secret(world: World) -> None:
    browser = await world.signed_in()
    thief = world.browser()
    thief.headers["Authorization"] = browser.headers["Authorization"]
    assert (await thief.get("/api/v1/me")).status_code == 200

    assert (await world.browser().delete("/api/v1/session")).status_code == 204, "without a secret it ends nothing"
    assert (await browser.get("/api/v1/me")).status_code == 200
    assert (await browser.delete("/api/v1/session")).status_code == 204

    assert (await thief.get("/api/v1/me")).status_code == 401
    assert (await world.program.get("/api/v1/me")).status_code == 200, "the token stays good"
    assert (await browser.delete("/api/v1/session")).status_code == 204, "signing out twice is no error"


async def test_signing_out_with_an_api_token_leaves_the_token_and_its_sessions(world: World) -> None:
    browser = await world.signed_in()

    assert (await world.program.delete("/api/v1/session")).status_code == 204
    assert (await browser.get("/api/v1/me")).status_code == 200
    assert (await world.program.get("/api/v1/me")).status_code == 200


async def test_removing_a_token_ends_its_sessions(world: World) -> None:
    made = (await world.program.post("/api/v1/tokens", json={"name": "mine", "roles": ["renter"]})).json()
    browser = await world.signed_in(made["token"])
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
    browser = await world.signed_in(made["token"])
    statuses = []

    for _ in range(steps):
        await world.opened.identity.asking.note_use()
        world.clock.advance(step_ns)
        statuses.append((await browser.get("/api/v1/me")).status_code)

    assert statuses == [200] * (steps - 1) + [401]


async def test_sessions_are_listed_with_browser_and_last_use_and_can_be_ended_one_by_one(world: World) -> None:
    first = await world.signed_in()
    world.clock.advance(MINUTE)
    second = await world.signed_in()
    world.clock.advance(MINUTE)
    await second.get("/api/v1/me")

    listed = (await second.get("/api/v1/sessions")).json()["items"]
    assert [(item["browser"], item["token_name"], item["current"]) for item in listed] == [
        ("Firefox/140 (X11)", "cli.json", False),
        ("Firefox/140 (X11)", "cli.json", True),
    ]
    assert listed[1]["last_used_at"] > listed[1]["created_at"]
    ended = await first.delete(f"/api/v1/sessions/{listed[1]['id']}")

    assert ended.status_code == 204
    assert (await second.get("/api/v1/me")).status_code == 401
    assert (await first.get("/api/v1/me")).status_code == 200


async def test_a_browsers_name_is_plain_text(world: World) -> None:
    browser = await world.signed_in(agent="<b>\x1b[31mevil</b>")

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
    secret = _secret(await world.signed_in())

    dump = await world.opened.store.read(
        lambda uow: [
            [tuple(row) for row in uow.connection.execute(text(f"SELECT * FROM {name}"))]
            for (name,) in uow.connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'table'"))
        ]
    )

    assert len(dump) > 15
    for text_ in (made, join, secret, world.token):
        assert text_ not in str(dump)
