"""A tunnel goes by the Access that is nearest to renter and host together, by another if it does not answer, and ends
all the same with what it is for."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import pytest

from tests.integration.test_tunnels import KEPT, Served
from tests.support.rental import renting
from tests.support.stack import wait_for
from tests.waiting import PATIENCE_S
from windrow import tunnel
from windrow.errors import WindrowClientError
from windrow.forwarding import LOCALHOST, Forward
from windrow.nearest import Nearest
from windrow_tunnel import sockets

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow, pytest.mark.long]

NEAR_MS, FAR_MS = 5.0, 80.0


class Market:
    """Two Accesses, a host that is connected to one of them and has measured both, and a cluster on it."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.api = served.renter.stack.client()
        self.own = str(served.renter.host()["access_id"])
        (self.other,) = {one["id"] for one in served.renter.all("/accesses")} - {self.own}
        wish = self.nearest().wish()
        wait_for(lambda: self.api.open_tunnel(served.id, served.first, wish)["access_id"] == self.other, pause_s=1)

    def nearest(self) -> Nearest:
        """A renter that is far from the host's Access and near the other one."""
        known = Nearest(self.api.config.url)
        known._measured, known._until_s = {self.own: FAR_MS, self.other: NEAR_MS}, float("inf")
        return known

    def accesses(self) -> list[str]:
        """By which other Access each tunnel went, the newest first; empty: by the host's own."""
        rows = [one for one in self.served.renter.all("/audit") if one["action"] == "tunnel.open"]
        return [one["fields"].get("access", "") for one in sorted(rows, key=lambda one: str(one["at"]), reverse=True)]

    @contextlib.asynccontextmanager
    async def reached(
        self, known: Nearest | None = None
    ) -> AsyncIterator[tuple[asyncio.StreamReader, list[WindrowClientError]]]:
        """A connection to the workload, after it has said `here`; and what went wrong."""
        errors: list[WindrowClientError] = []
        ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        forward = Forward(self.api, self.served.id, self.served.first + KEPT, errors.append, known or self.nearest())
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(forward.listen(0, False, ready.set_result))
            reader, writer = await asyncio.open_connection(LOCALHOST, await ready)
            async with asyncio.timeout(PATIENCE_S):
                assert await reader.readexactly(4) == b"here", errors
            yield reader, errors
            writer.close()
            listening.cancel()


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Market]:
    with pytest.MonkeyPatch.context() as patch, renting() as renter:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        found = Market(Served(renter))
        with found.api:
            yield found


@pytest.fixture
def placed(market: Market) -> Market:
    market.served.revive()
    return market


def closed(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """As seen from the renter alone, nobody listens there."""
    connected = sockets.dial

    async def refused(host: str, port: int) -> socket.socket:
        if f"{host}:{port}" in addresses:
            raise ConnectionRefusedError("Connection refused")
        return await connected(host, port)

    monkeypatch.setattr(sockets, "dial", refused)


def where(market: Market) -> dict[str, str]:
    """The addresses for tunnels, by Access."""
    ticket = market.api.open_tunnel(market.served.id, market.served.first)
    return {one["id"]: one["address"] for one in ticket["accesses"]}


async def test_a_renter_that_is_nearer_to_another_access_than_the_hosts_gets_its_bytes_by_that(placed: Market) -> None:
    async with placed.reached():
        assert placed.accesses()[0] == placed.other


async def test_an_access_that_does_not_answer_is_passed_over(placed: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    found = where(placed)
    closed(monkeypatch, found[placed.other])
    async with placed.reached():
        assert placed.accesses()[:2] == ["", placed.other]
    monkeypatch.undo()
    closed(monkeypatch, found[placed.own])
    async with placed.reached(Nearest("https://unmeasured.example", lambda address: None)):
        assert placed.accesses()[:2] == [placed.other, ""]


async def test_where_none_answers_that_is_said(placed: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    closed(monkeypatch, *where(placed).values())
    with pytest.raises(WindrowClientError, match="None of 2 relays took the tunnel"):
        ask = partial(placed.api.open_tunnel, placed.served.id, placed.served.first)
        await tunnel.meet(ask, placed.nearest())


async def test_an_access_that_answers_and_refuses_is_passed_over(
    placed: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is shown a grant that is good at the other one alone, as if the host had gone from it meanwhile."""
    elsewhere = await asyncio.to_thread(placed.api.open_tunnel, placed.served.id, placed.served.first)
    shown, through = [], tunnel._through

    async def misled(ticket: dict[str, Any], access: Any) -> socket.socket:
        shown.append(ticket["access_id"])
        wrong = elsewhere["grant"] if ticket["access_id"] == placed.other else ticket["grant"]
        return await through({**ticket, "grant": wrong}, access)

    monkeypatch.setattr(tunnel, "_through", misled)
    async with placed.reached():
        assert shown == [placed.other, placed.own]


async def test_a_renter_that_says_nothing_of_accesses_goes_by_the_hosts_own(placed: Market) -> None:
    ticket: dict[str, Any] = placed.served.ask(KEPT)
    with contextlib.closing(await tunnel.dial(ticket)):
        assert placed.accesses()[0] == ""


async def ended(reader: asyncio.StreamReader) -> bool:
    async with asyncio.timeout(PATIENCE_S):
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
    return True


async def test_a_tunnel_by_another_access_ends_with_its_cluster(placed: Market) -> None:
    async with placed.reached() as (reader, _):
        assert placed.accesses()[0] == placed.other
        await asyncio.to_thread(placed.served.renter.ask, "DELETE", f"/clusters/{placed.served.id}")
        assert await ended(reader)
    await asyncio.to_thread(placed.served.renter.phase, placed.served.id, "Deleted")


async def test_a_tunnel_by_another_access_ends_with_a_ban_of_its_host(placed: Market) -> None:
    async with placed.reached() as (reader, _):
        assert placed.accesses()[0] == placed.other
        host = placed.served.renter.host()["id"]
        await asyncio.to_thread(placed.served.renter.ask, "POST", f"/hosts/{host}/quarantine", {"reason": "test"})
        assert await ended(reader)
