"""A host's search for an Access, run over the real network of links.py, and the Accesses that it may find."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.support.links import HOST, Acceptor, GrpcWorld
from windrow_agent.link.access_connector import AccessConnector, Ask, Look, ask_nobody, look_nowhere
from windrow_proto import link_grpc
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.ids import HostId
from windrow_proto.keys import TlsIdentity
from windrow_proto.messages import RegionMap
from windrow_proto.ports import FrameLink


async def open_access(world: GrpcWorld, identity: TlsIdentity | None = None) -> tuple[str, Acceptor]:
    """Its address, and who came; identity: of a pretender."""
    acceptor = Acceptor()
    world.servers.append(await link_grpc.serve_agents(acceptor, identity or world.access))
    return world.servers[-1].address, acceptor


@asynccontextmanager
async def running_connector(
    world: GrpcWorld, regions: RegionMap, look: Look = look_nowhere, ask: Ask = ask_nobody
) -> AsyncIterator[AccessConnector]:
    """A host's AccessConnector that runs; it serves a connection by reading until it ends."""

    async def serve(link: FrameLink) -> None:
        while True:
            await link.receive()

    connector = AccessConnector(HostId(HOST), world.dialer(), SystemClock(), SystemRng(), regions, serve, look, ask)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(connector.run())
        try:
            yield connector
        finally:
            task.cancel()
