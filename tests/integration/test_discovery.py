"""A host without a map that helps finds an Access by DNS; lies of DNS cost it time and nothing else.

Real TLS, real name servers, real sockets, all on loopback. Who is not an Access of our authority never hears from us.
"""

import asyncio
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field, replace

import pytest

from tests.support.agent_world import HOST as WORLD_HOST
from tests.support.agent_world import World
from tests.support.connectors import open_access, running_connector
from tests.support.links import ACCESS, HOST, Acceptor, GrpcWorld, grpc_world
from tests.support.name_server import NameServer, name_server
from tests.support.pki import issue, make_ca
from tests.waiting import PATIENCE_S, poll_async
from windrow_agent.app.service import AgentService
from windrow_agent.core import access_choice
from windrow_agent.core.discovery import Seed
from windrow_agent.link import access_connector, resolver
from windrow_agent.link.access_connector import AccessConnector
from windrow_agent.link.resolver import Resolver
from windrow_proto import link_grpc
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.ids import HostId
from windrow_proto.keys import TlsIdentity
from windrow_proto.link_memory import MemoryNetwork
from windrow_proto.messages import AccessPoint, RegionMap
from windrow_proto.units import MILLISECOND

SEED = Seed("example.org")
NOBODY = "127.0.0.9:9"
"""The address of a port without a listener."""
STALE = RegionMap(1, (AccessPoint("acc_gone", "eu", NOBODY),))


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    """Look again as soon as there is a need: the pauses are for networks with more than one host."""
    monkeypatch.setattr(access_connector, "LOOK_EVERY_NS", 0)
    monkeypatch.setattr(access_choice, "BACKOFF_MAX_NS", 300 * MILLISECOND)
    monkeypatch.setattr(resolver, "TRY_NS", 300 * MILLISECOND)


@dataclass
class Listener:
    """Takes TCP connections and says nothing, or some bytes of its own; keeps what it was sent."""

    says: bytes = b""
    heard: list[bytes] = field(default_factory=list)
    address: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(self.says)
            while data := await reader.read(4096):
                self.heard.append(data)
        except OSError:
            pass
        finally:
            writer.close()


@dataclass
class Net:
    """The network of the tests: certificates, a name server, servers by whom they pretend to be."""

    world: GrpcWorld
    names: NameServer
    stack: AsyncExitStack

    async def access(self, identity: TlsIdentity | None = None) -> tuple[str, Acceptor]:
        return await open_access(self.world, identity)

    async def listener(self, says: bytes = b"") -> Listener:
        made = Listener(says)
        server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
        self.stack.callback(server.close)
        made.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return made

    def connector(self, regions: RegionMap) -> AbstractAsyncContextManager[AccessConnector]:
        return running_connector(self.world, regions, self._look)

    async def _look(self) -> tuple[str, ...]:
        return await Resolver(SystemRng(), [self.names.at]).look(HostId(HOST), [SEED])


@pytest.fixture
async def net():
    async with grpc_world() as world, name_server() as names, AsyncExitStack() as stack:
        yield Net(world, names, stack)


def _pretender(net: Net, who: str) -> TlsIdentity:
    """A server that would take our certificate, and that we must not take for an Access."""
    if who == "another authority's Access":
        stranger = issue(make_ca(), "access", ACCESS)
        return TlsIdentity(stranger.key_pem, stranger.certificate_pem, net.world.ca.certificate_pem)
    return net.world.master if who == "our Master" else issue(net.world.ca, "host", HOST)


@pytest.mark.parametrize("regions", [RegionMap(0, ()), STALE], ids=["no map", "a stale map"])
async def test_an_access_is_found_by_dns_when_no_map_helps(net, regions: RegionMap):
    address, access = await net.access()
    net.names.serves("example.org", address)
    async with net.connector(regions) as connector:
        await poll_async(lambda: access.links and connector.address == address)
        assert connector.answer is not None and connector.answer.access_id == ACCESS


async def test_dns_is_not_asked_while_the_map_leads_somewhere(net):
    address, access = await net.access()
    liar, heard = await net.access()
    net.names.serves("example.org", liar)
    async with net.connector(RegionMap(1, (AccessPoint(ACCESS, "eu", address),))) as connector:
        await poll_async(lambda: access.links)
        await access.links[0].close()
        await poll_async(lambda: len(access.links) == 2)
        connector.move()
        await poll_async(lambda: len(access.links) == 3)
    assert net.names.asked == [] and heard.peers == []


@pytest.mark.parametrize("who", ["another authority's Access", "our Master", "a host of ours"])
async def test_nobody_but_an_access_of_our_authority_hears_from_us(net, who: str):
    lie, acceptor = await net.access(_pretender(net, who))
    net.names.serves("example.org", lie)
    async with net.connector(RegionMap(0, ())) as connector:
        await poll_async(lambda: len(net.names.asked) > 6, what="three lookups and what follows them")
        assert connector.address is None
        address, access = await net.access()
        net.names.serves("example.org", lie, address)
        await poll_async(lambda: access.links and connector.address == address)
    assert acceptor.peers == [] and acceptor.links == []


async def test_servers_that_are_not_ours_hear_no_more_than_a_greeting(net):
    silent, rude = await net.listener(), await net.listener(b"HTTP/1.1 200 OK\r\n\r\n")
    address, access = await net.access()
    net.names.serves("example.org", silent.address, rude.address, NOBODY)
    async with net.connector(STALE) as connector:
        await poll_async(lambda: silent.heard and rude.heard)
        assert connector.address is None
        net.names.serves("example.org", silent.address, rude.address, NOBODY, address)
        await poll_async(lambda: access.links and connector.address == address)
    for heard in (*silent.heard, *rude.heard):
        assert heard[0] in (0x15, 0x16), "a TLS alert or the greeting, and nothing that we would say to an Access"
    assert not any(HOST.encode() in heard for heard in (*silent.heard, *rude.heard))


LIES = {
    "garbage": lambda question: question[:2] + b"\xff" * 400,
    "it does not exist": lambda question: question[:2] + b"\x81\x83" + question[4:10] + b"\0\0" + question[12:-11],
    "silence": lambda question: None,
    "65,000 bytes": lambda question: question[:2] + b"\x81\x80" + question[4:6] + b"\xff\xff" + b"\xc0" * 65_000,
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_host_comes_back_after_dns_lied(net, lie: str):
    address, access = await net.access()
    net.names.reply = LIES[lie]
    async with net.connector(STALE) as connector:
        await poll_async(lambda: len(net.names.asked) > 3)
        assert connector.address is None
        net.names.reply = None
        net.names.serves("example.org", address)
        await poll_async(lambda: access.links and connector.address == address)


@pytest.mark.parametrize("lie", LIES)
async def test_what_was_found_once_is_not_lost_to_a_lie(net, lie: str):
    found = dict([await net.access(), await net.access()])
    servers = dict(zip(found, net.world.servers[-2:], strict=True))
    net.names.serves("example.org", *found)
    async with net.connector(RegionMap(0, ())) as connector:
        await poll_async(lambda: connector.address is not None and found[connector.address].links)
        first = connector.address
        (other,) = set(found) - {first}
        await servers[other].stop(0)
        net.names.reply = LIES[lie]
        told = len(net.names.asked)
        await servers[first].stop(0)
        await poll_async(lambda: len(net.names.asked) > told, what="a lookup that is answered by a lie")
        again = Acceptor()
        net.world.servers.append(await link_grpc.serve_agents(again, net.world.access, other))
        await poll_async(lambda: connector.address == other and again.links, what="the other Access that was found")


async def test_a_lie_does_not_keep_a_host_from_its_map(net):
    """The Access of the map is away for a while and DNS points to strangers meanwhile."""
    lie, stranger = await net.access(_pretender(net, "another authority's Access"))
    address, first = await net.access()
    net.names.serves("example.org", lie)
    async with net.connector(RegionMap(1, (AccessPoint(ACCESS, "eu", address),))):
        await poll_async(lambda: first.links)
        await net.world.servers[-1].stop(0)
        await poll_async(lambda: len(net.names.asked) > 3)
        again = Acceptor()
        net.world.servers.append(await link_grpc.serve_agents(again, net.world.access, address))
        await poll_async(lambda: again.links, what="the Access of the map again")
    assert stranger.peers == []


async def test_a_whole_agent_without_a_map_is_served_through_an_access_that_dns_named(net, tmp_path):
    async with MemoryNetwork(SystemClock(), SystemRng()) as network:
        world = World(tmp_path, network)
        server = await link_grpc.serve_agents(world.master, net.world.access)
        net.world.servers.append(server)
        net.names.serves("example.org", server.address)
        made = world.agent()

        async def look() -> tuple[str, ...]:
            return await Resolver(SystemRng(), [net.names.at]).look(WORLD_HOST, [SEED])

        identity = issue(net.world.ca, "host", WORLD_HOST)
        parts = replace(made.parts, regions=RegionMap(0, ()), dialer=link_grpc.GrpcDialer(identity), look=look)
        service = AgentService(parts)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(service.run())
            try:
                await asyncio.wait_for(service.connected.wait(), PATIENCE_S)
                await poll_async(lambda: [beat for beat in world.master.heartbeats if beat.access_id])
                assert world.master.heartbeats[-1].access_rtt_ns >= 0
            finally:
                service.stop()
                await asyncio.wait({task}, timeout=PATIENCE_S)


async def test_the_map_that_a_renewal_brought_is_used_at_once_and_an_older_one_is_not(tmp_path):
    """A host that was away for so long that its certificate ended and every Access of its map is gone."""
    async with MemoryNetwork(SystemClock(), SystemRng()) as network:
        world = World(tmp_path, network)
        await world.open()
        good = RegionMap(5, (AccessPoint("acc_1", "eu", world.addresses[0]),))
        looked: list[bool] = []

        async def look() -> tuple[str, ...]:
            looked.append(True)
            return ()

        service = AgentService(replace(world.agent().parts, regions=STALE, look=look))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(service.run())
            try:
                await poll_async(lambda: looked, what="a round in which no Access of the map answered")
                service.renewed(good)
                await asyncio.wait_for(service.connected.wait(), PATIENCE_S)
                service.renewed(STALE)
                assert service.connector.regions == good
            finally:
                service.stop()
                await asyncio.wait({task}, timeout=PATIENCE_S)
