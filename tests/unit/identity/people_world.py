"""A Master with its first user, and ways to be somebody else."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from tests.master_support import ManualClock, SeededRng
from windrow_master.api.app import build_app
from windrow_master.app import wiring
from windrow_master.app.wiring import Master, Settings
from windrow_master.store.executors import InlineExecutor
from windrow_proto.disk_memory import MemoryDisk

PASSWORD = "violet kettle upon seven hills"
JSON = dict[str, Any]
RENTER = [{"project": "default", "roles": ["renter"]}]


@dataclass
class Market:
    """A Master, a client that asks as the first user, and ways to be somebody else."""

    opened: Master
    clock: ManualClock
    transport: httpx2.ASGITransport
    exits: AsyncExitStack
    owner: httpx2.AsyncClient = field(init=False)

    async def client(self, secret: str = "") -> httpx2.AsyncClient:
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        made = httpx2.AsyncClient(transport=self.transport, base_url="http://master/api/v1", headers=headers)
        return await self.exits.enter_async_context(made)

    async def invite(self, **body: Any) -> str:
        """The secret of an invitation by the first user."""
        made = await ask(self.owner, "POST", "/invitations", **body)
        return secret_of(made["link"])

    async def joined(self, address: str, **body: Any) -> httpx2.AsyncClient:
        """A new user who has accepted an invitation, signed in."""
        secret = await self.invite(**body)
        stranger = await self.client()
        accepted: JSON = {"secret": secret, "name": address.partition("@")[0], "address": address, "password": PASSWORD}
        return await self.client((await ask(stranger, "POST", "/invitation/accept", **accepted))["secret"])

    async def signed_in(self, address: str, password: str = PASSWORD, **more: Any) -> httpx2.AsyncClient:
        stranger = await self.client()
        body = {"address": address, "password": password, **more}
        return await self.client((await ask(stranger, "POST", "/sign-in/password", **body))["secret"])


async def ask(client: httpx2.AsyncClient, method: str, path: str, status: int = 0, **body: Any) -> Any:
    """The JSON of an answer. status: the one it has to have; 0: any that is no error."""
    answer = await client.request(method, path, json=body if method in {"POST", "PUT"} else None)
    assert answer.status_code == status if status else answer.status_code < 300, answer.text
    return answer.json() if answer.content else None


def secret_of(link: str) -> str:
    return link.partition("=")[2]


@asynccontextmanager
async def people_market(folder: Path, settings: Settings | None = None) -> AsyncIterator[Market]:
    """A market in this folder."""
    clock = ManualClock()
    opened = wiring.build(folder / "d", clock, SeededRng(5), settings, disk=MemoryDisk(), make_executor=InlineExecutor)
    with closing(opened):
        token = opened.identity.local_token(opened.identity.first_account(), None)
        transport = httpx2.ASGITransport(build_app(opened.services, folder), raise_app_exceptions=False)
        async with AsyncExitStack() as exits:
            found = Market(opened, clock, transport, exits)
            found.owner = await found.client(token)
            yield found
