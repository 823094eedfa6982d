"""Two worlds in which an agent, an Access and a Master can be linked: real TLS on loopback, and memory."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.support.pki import issue, make_ca
from tests.waiting import PATIENCE_S
from windrow_proto import link_grpc
from windrow_proto.link_memory import MemoryNetwork
from windrow_proto.link_warm import reply_to
from windrow_proto.ports import BandwidthLink, Dialer, FrameLink, PeerFacts, PingFacts, PingLink, TrunkLink
from windrow_proto.units import SECOND
from windrow_proto.v1 import link_pb2

HOST, ACCESS = "host_" + "1" * 32, "acc_" + "2" * 32
Serve = Callable[[PeerFacts, Any], Awaitable[None]]


async def echo(peer: PeerFacts, link: Any) -> None:
    """Send back whatever comes until the stream ends."""
    while True:
        await link.send(await link.receive())


class Acceptor:
    """Both acceptors in one, with behaviour from the test; remembers its peers and the links that ended."""

    def __init__(self, serve: Serve = echo) -> None:
        self.serve = serve
        self.peers: list[PeerFacts] = []
        self.links: list[Any] = []
        self.ended = 0

    async def accepted(self, peer: PeerFacts, link: FrameLink) -> None:
        self.peers.append(peer)
        self.links.append(link)
        try:
            await self.serve(peer, link)
        finally:
            self.ended += 1

    async def measured(self, peer: PeerFacts, link: BandwidthLink) -> None:
        await self.serve(peer, link)

    async def attached(self, peer: PeerFacts, trunk: TrunkLink) -> None:
        self.peers.append(peer)
        await self.serve(peer, trunk)

    async def warmed(self, peer: PeerFacts, link: PingLink) -> None:
        while True:
            await link.send(reply_to(await link.receive(), await self.pinged(peer)))

    async def pinged(self, peer: PeerFacts) -> PingFacts:
        self.peers.append(peer)
        return PingFacts(ACCESS, "eu", 250, True)


class GrpcWorld:
    """Real sockets and certificates."""

    def __init__(self) -> None:
        self.ca = make_ca()
        self.access = issue(self.ca, "access", ACCESS)
        self.master = issue(self.ca, "master", "master")
        self.host = issue(self.ca, "host", HOST, generation=5)
        self.servers: list[link_grpc.GrpcServer] = []
        self.dialers: list[link_grpc.GrpcDialer] = []

    async def agents(self, acceptor: Acceptor) -> str:
        self.servers.append(await link_grpc.serve_agents(acceptor, self.access))
        return self.servers[-1].address

    async def trunks(self, acceptor: Acceptor) -> str:
        self.servers.append(await link_grpc.serve_trunk(acceptor, self.master))
        return self.servers[-1].address

    def dialer(self, role: str = "host") -> Dialer:
        self.dialers.append(link_grpc.GrpcDialer(self.host if role == "host" else self.access))
        return self.dialers[-1]

    async def dial_trunk(self, *addresses: str) -> TrunkLink:
        return await link_grpc.dial_trunk(addresses, self.access, int(PATIENCE_S) * SECOND)

    async def kill(self) -> None:
        for server in self.servers:
            await server.stop(0)

    async def close(self) -> None:
        for dialer in self.dialers:
            await dialer.close()
        await self.kill()


class MemoryWorld:
    """The twin."""

    def __init__(self, network: MemoryNetwork) -> None:
        self.network = network
        self.servers: list[Any] = []

    def _facts(self, role: str) -> PeerFacts:
        subject, generation = (HOST, 5) if role == "host" else (ACCESS, 1)
        return PeerFacts(role, subject, generation, 1 << 62, "memory", bytes(32))

    async def agents(self, acceptor: Acceptor) -> str:
        self.servers.append(await self.network.serve_agents(f"access-{len(self.servers)}", acceptor))
        return self.servers[-1].address

    async def trunks(self, acceptor: Acceptor) -> str:
        self.servers.append(await self.network.serve_trunk(f"master-{len(self.servers)}", acceptor))
        return self.servers[-1].address

    def dialer(self, role: str = "host") -> Dialer:
        return self.network.dialer(self._facts(role))

    async def dial_trunk(self, *addresses: str) -> TrunkLink:
        return await self.network.dial_trunk(addresses, self._facts("access"), int(PATIENCE_S) * SECOND)

    async def kill(self) -> None:
        for server in self.servers:
            await server.stop()


@asynccontextmanager
async def grpc_world() -> AsyncIterator[GrpcWorld]:
    world = GrpcWorld()
    try:
        yield world
    finally:
        await world.close()


def frame(sequence: int, size: int = 10) -> link_pb2.Frame:
    return link_pb2.Frame(frame_class="FRAME_CLASS_LIVE", lane="LANE_TELEMETRY", sequence=sequence, sealed=bytes(size))
