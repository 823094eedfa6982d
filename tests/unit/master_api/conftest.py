"""A whole HTTP application in process, over the real store, with a token of the first account."""

from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from tests.master_support import ManualClock, SeededRng
from windrow_master.api.app import build_app
from windrow_master.api.deps import Services
from windrow_master.api.event_tail import EventTail
from windrow_master.app import wiring
from windrow_master.store.executors import InlineExecutor
from windrow_proto.disk_memory import MemoryDisk


@dataclass
class Api:
    """The application, a client that is signed in, one that is not, and what is behind them."""

    client: httpx2.AsyncClient
    stranger: httpx2.AsyncClient
    services: Services
    clock: ManualClock
    token: str
    static: Path


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    clock, rng = ManualClock(), SeededRng(3)
    static = tmp_path / "static"
    static.mkdir()
    opened = wiring.build(tmp_path / "data", clock, rng, disk=MemoryDisk(), make_executor=InlineExecutor)
    with closing(opened):
        services = opened.services
        services.version = "test"
        EventTail(services.store, services.bus, services.broadcaster)
        token = services.identity.local_token(services.identity.first_account(), None)
        transport = httpx2.ASGITransport(build_app(services, static), raise_app_exceptions=False)
        bearer = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(transport=transport, base_url="http://master", headers=bearer) as client,
            httpx2.AsyncClient(transport=transport, base_url="http://master") as stranger,
        ):
            yield Api(client, stranger, services, clock, token, static)
