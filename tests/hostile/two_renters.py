"""A Master in process with an operator and two renters who know nothing of each other."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.master_support import ManualClock, SeededRng
from windrow_master.api.app import build_app
from windrow_master.api.services import Services
from windrow_master.app import wiring
from windrow_master.app.wiring import Master
from windrow_master.identity.model import ALL_ROLES, Principal, Role
from windrow_master.store.disk_space import DiskSpace
from windrow_master.store.executors import InlineExecutor
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.ids import AccountId, TokenId
from windrow_proto.units import DAY, Microcents


@dataclass
class Renter:
    """One account that rents, and its client."""

    account_id: AccountId
    token: str
    client: httpx2.AsyncClient


@dataclass
class TwoRenters:
    """The two renters, and the application itself, for requests that go on."""

    opened: Master
    app: Any
    clock: ManualClock
    operator: httpx2.AsyncClient
    noisy: Renter
    quiet: Renter
    account: Callable[[str, Role], Awaitable[Renter]]
    """One more account, of this role."""

    @property
    def services(self) -> Services:
        """The Master's services."""
        return self.opened.services


@asynccontextmanager
async def two_renters(folder: Path, room: DiskSpace | None = None) -> AsyncIterator[TwoRenters]:
    """The accounts are made as an operator makes them."""
    clock = ManualClock()
    opened = wiring.build(
        folder / "data",
        clock,
        SeededRng(3),
        wiring.Settings(disk_space=room),
        disk=MemoryDisk(),
        make_executor=InlineExecutor,
    )
    with closing(opened):
        services = opened.services
        owner = services.identity.first_account()
        token = services.identity.local_token(owner, None)
        who = Principal(owner.id, owner.name, ALL_ROLES, TokenId("token_1"), "cli.json", clock.wall_ns() + DAY)
        app = build_app(services, folder)
        transport = httpx2.ASGITransport(app, raise_app_exceptions=False)

        def client(secret: str) -> httpx2.AsyncClient:
            headers = {"Authorization": f"Bearer {secret}"}
            return httpx2.AsyncClient(transport=transport, base_url="http://master/api/v1", headers=headers)

        async def added(name: str, role: Role) -> Renter:
            assert services.accounts is not None
            view, _ = await services.accounts.add(who, name, frozenset({role}), Microcents(50 * 10**8))
            account = view.account
            asking = Principal(account.id, name, account.roles, TokenId("token_2"), "first", clock.wall_ns() + DAY)
            _, secret = await services.identity.make_token(asking, "test", account.roles, DAY)
            return Renter(account.id, secret, client(secret))

        noisy, quiet = await added("noisy", Role.RENTER), await added("quiet", Role.RENTER)
        found = TwoRenters(opened, app, clock, client(token), noisy, quiet, added)
        yield found
        for one in (found.operator, found.noisy.client, found.quiet.client):
            await one.aclose()
