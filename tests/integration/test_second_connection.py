"""The connection that a host keeps to a second Access: real TLS on loopback, Accesses that die, drain and refuse."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.connectors import running_connector
from tests.support.links import Acceptor, GrpcWorld, echo, grpc_world
from tests.waiting import poll_async
from windrow_agent.link import access_connector
from windrow_proto import link_grpc, nearness
from windrow_proto.errors import TooMany
from windrow_proto.messages import AccessPoint, RegionMap
from windrow_proto.ports import PeerFacts, PingFacts
from windrow_proto.units import MILLISECOND, SECOND


class Access(Acceptor):
    """One that says who it is, and may drain or have no space for warm connections."""

    def __init__(self, name: str) -> None:
        super().__init__(echo)
        self.name = name
        self.is_draining = self.is_full = False
        self.warm = self.refused = 0
        self.warm_peers: list[str] = []

    async def pinged(self, peer: PeerFacts) -> PingFacts:
        return PingFacts(self.name, self.name, 0, self.is_draining)

    async def warmed(self, peer: PeerFacts, link: Any) -> None:
        if self.is_full:
            self.refused += 1
            raise TooMany("This Access keeps as many as it may.", retry_after_ns=MILLISECOND)
        self.warm_peers.append(peer.address)
        self.warm += 1
        try:
            await super().warmed(peer, link)
        finally:
            self.warm -= 1


@dataclass
class Regions:
    """Three Accesses, in the order in which our host takes them."""

    world: GrpcWorld
    accesses: list[Access]
    map: RegionMap

    async def die(self, access: Access) -> None:
        """Connections are reset."""
        await self.world.servers[self.accesses.index(access)].stop(0)


@pytest.fixture
async def regions(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Regions]:
    monkeypatch.setattr(access_connector, "WARM_AFTER_NS", 50 * MILLISECOND)
    monkeypatch.setattr(access_connector, "WARM_PING_NS", 50 * MILLISECOND)
    monkeypatch.setattr(nearness, "TIE_NS", 60 * SECOND)  # nobody is nearer, however busy this machine is
    async with grpc_world() as world:
        accesses = [Access(f"region-{number}") for number in range(3)]
        points = []
        for access in accesses:
            world.servers.append(await link_grpc.serve_agents(access, world.access))
            points.append(AccessPoint(access.name, access.name, world.servers[-1].address))
        yield Regions(world, accesses, RegionMap(1, tuple(points)))


async def connected(regions: Regions) -> tuple[Access, Access]:
    """The Access that serves the host, and the one that it keeps a connection to."""
    await poll_async(lambda: any(one.peers for one in regions.accesses))
    (serving,) = [one for one in regions.accesses if one.peers]
    await poll_async(lambda: any(one.warm for one in regions.accesses))
    (second,) = [one for one in regions.accesses if one.warm]
    assert second is not serving
    return serving, second


async def test_when_its_access_dies_the_host_goes_on_over_the_connection_that_it_kept(regions):
    async with running_connector(regions.world, regions.map) as connector:
        serving, second = await connected(regions)
        await poll_async(lambda: connector._warm is not None)  # the host has it, too, which learns of it last
        await regions.die(serving)
        await poll_async(lambda: second.peers)
        assert second.peers[0].address in second.warm_peers  # the same connection, not only the same Access
        await poll_async(lambda: connector.address == regions.map.points[regions.accesses.index(second)].address)
        (third,) = set(regions.accesses) - {serving, second}
        await poll_async(lambda: third.warm)  # the next one is kept
        await poll_async(lambda: not second.warm)


async def test_a_second_access_that_dies_or_drains_is_replaced_and_the_first_goes_on(regions):
    async with running_connector(regions.world, regions.map):
        serving, second = await connected(regions)
        (third,) = set(regions.accesses) - {serving, second}
        second.is_draining = True
        await poll_async(lambda: third.warm and not second.warm)
        second.is_draining = False
        await regions.die(third)
        assert (len(serving.peers), second.peers, third.peers) == (1, [], [])


async def test_an_access_without_room_for_it_costs_the_host_nothing(regions):
    for access in regions.accesses:
        access.is_full = True
    async with running_connector(regions.world, regions.map):
        await poll_async(lambda: sum(one.refused for one in regions.accesses) >= 3)
        assert sum(len(one.peers) for one in regions.accesses) == 1
        for access in regions.accesses:
            access.is_full = False
        await connected(regions)


async def test_a_renewed_certificate_is_not_left_out_of_the_second_connection(regions):
    async with running_connector(regions.world, regions.map) as connector:
        serving, second = await connected(regions)
        kept = list(second.warm_peers)
        connector.move()
        await poll_async(lambda: len(serving.peers) == 2)
        await poll_async(lambda: sum(len(one.warm_peers) for one in regions.accesses) > len(kept))
        await poll_async(lambda: sum(one.warm for one in regions.accesses) == 1)
        (now,) = [one.warm_peers[-1] for one in regions.accesses if one.warm]
        assert now != kept[0]
