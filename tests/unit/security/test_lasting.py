"""Promises of answers that last: they end when the token or session they were asked with is worth nothing any more."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.master_support import ManualClock, SeededRng
from tests.unit.master_api.conftest import Api
from windrow_master.api.app import build_app
from windrow_master.app import wiring
from windrow_master.identity.model import SessionId
from windrow_master.store.executors import InlineExecutor
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.errors import Unavailable
from windrow_proto.ids import TokenId
from windrow_proto.messages import ChannelData

ENDS_S = 60.0
"""The looks follow each other without waiting here; a stream that is not ended would go on for ever."""


class Endless:
    """A way into workloads whose logs and commands say one thing and never end."""

    def __init__(self) -> None:
        self.open = 0

    async def follow(self, *_: object) -> AsyncGenerator[bytes]:
        return self._pieces(b"a line\n")

    async def execute(self, *_: object) -> AsyncGenerator[ChannelData]:
        return self._pieces(ChannelData(b"out"))

    async def _pieces(self, piece):
        self.open += 1
        try:
            yield piece
            await asyncio.Event().wait()
        finally:
            self.open -= 1


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    clock, rng = ManualClock(), SeededRng(3)
    opened = wiring.build(tmp_path / "data", clock, rng, disk=MemoryDisk(), make_executor=InlineExecutor)
    with closing(opened):
        services = opened.services
        services.inside = Endless()  # type: ignore[assignment]  # the two methods that are asked for
        services.results = services.inside  # type: ignore[assignment]  # for logs
        token = services.identity.local_token(services.identity.first_account(), None)
        transport = httpx2.ASGITransport(build_app(services, tmp_path), raise_app_exceptions=False)
        bearer = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(transport=transport, base_url="http://master", headers=bearer) as client,
            httpx2.AsyncClient(transport=transport, base_url="http://master") as stranger,
        ):
            yield Api(client, stranger, services, clock, token, tmp_path)


async def _until(holds) -> None:
    async with asyncio.timeout(ENDS_S):
        while not holds():
            await asyncio.sleep(0)


def _is_open(api: Api) -> bool:
    inside: Any = api.services.inside
    return bool(api.services.broadcaster.listeners + inside.open == 1)


ASKED = [
    ("GET", "/api/v1/events/stream", None),
    ("GET", "/api/v1/clusters/cluster_1/logs?follow=true", None),
    ("POST", "/api/v1/clusters/cluster_1/exec", {"argv": ["sleep", "1"]}),
]


@pytest.mark.parametrize(("method", "path", "body"), ASKED)
async def test_a_stream_ends_when_its_token_is_revoked_and_no_other_does(api: Api, method, path, body) -> None:
    made = (await api.client.post("/api/v1/tokens", json={"name": "x"})).json()
    api.stranger.headers["Authorization"] = f"Bearer {made['token']}"
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(api.stranger.request(method, path, json=body))
        await _until(lambda: _is_open(api))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not asked.done()

        principal = await api.services.identity.authenticate(api.token)
        await api.services.identity.revoke_token(principal, TokenId(made["id"]))
        answer = await asyncio.wait_for(asked, ENDS_S)

    assert answer.status_code == 200
    assert (await api.stranger.get("/api/v1/me")).status_code == 401


async def test_a_stream_ends_with_its_browsers_session(api: Api) -> None:
    signed = await api.stranger.post("/api/v1/session", json={"token": api.token})
    async with asyncio.TaskGroup() as group:
        bearer = {"Authorization": f"Bearer {signed.json()['secret']}"}
        asked = group.create_task(api.stranger.get("/api/v1/events/stream", headers=bearer))
        await _until(lambda: _is_open(api))

        principal = await api.services.identity.authenticate(api.token)
        await api.services.identity.asking.end_session(principal, SessionId(signed.json()["session"]["id"]))
        await asyncio.wait_for(asked, ENDS_S)

    assert (await api.client.get("/api/v1/me")).status_code == 200


async def test_a_stream_outlives_a_store_that_does_not_answer(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    async def fails(*_: str) -> None:
        looks.append(1)
        raise Unavailable("The store is away.")

    async with asyncio.TaskGroup() as group:
        asked = group.create_task(api.client.get("/api/v1/events/stream"))
        await _until(lambda: _is_open(api))
        monkeypatch.setattr(api.services.identity, "authenticate", fails)
        await _until(lambda: len(looks) > 3)
        still_open = not asked.done()
        api.services.broadcaster.close()
        await asyncio.wait_for(asked, ENDS_S)

    assert still_open


async def test_making_and_revoking_tokens_are_events_that_their_account_sees_and_no_secret(api: Api) -> None:
    made = (await api.client.post("/api/v1/tokens", json={"name": "ci", "roles": ["provider"]})).json()
    join = (await api.client.post("/api/v1/join-tokens", json={})).json()
    await api.client.delete(f"/api/v1/tokens/{made['id']}")
    await api.client.delete(f"/api/v1/join-tokens/{join['id']}")

    found = (await api.client.get("/api/v1/events")).text
    items = (await api.client.get("/api/v1/events")).json()["items"]
    assert [item["kind"] for item in items[:4]] == [
        "join_token.revoked",
        "token.revoked",
        "join_token.made",
        "token.made",
    ]
    assert made["token"] not in found
    assert join["join_token"] not in found
    assert made["id"] in items[1]["subjects"]
    assert items[1]["actor"]
