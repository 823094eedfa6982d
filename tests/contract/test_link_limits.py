"""Limits of the links that only gRPC can show: a peer that has frozen is noticed, and what a peer may not open is
refused."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.contract.test_link import standing
from tests.support.hostile_peer import END_STREAM, GOAWAY, HEADERS, RST_STREAM, Peer, call, client_context, peer
from tests.support.links import Acceptor, GrpcWorld, frame, grpc_world
from tests.waiting import PATIENCE_S, poll_async
from windrow_proto.errors import LinkClosed
from windrow_proto.link_streams import STREAMS_MAX
from windrow_proto.ports import PeerFacts
from windrow_proto.units import KIB, SECOND
from windrow_proto.v1 import services_pb2

# --- a peer that has frozen -------------------------------------------------------------------------------------------


class Line:
    """A line between two ends: bytes pass until it is frozen, then none do, and nobody is told."""

    def __init__(self, to: str, tasks: asyncio.TaskGroup) -> None:
        self._to, self._tasks = to, tasks
        self.passed = 0
        self._passing: list[asyncio.Task[None]] = []
        self._writers: list[asyncio.StreamWriter] = []

    async def came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = self._to.rsplit(":", 1)
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        self._writers += [writer, far_writer]
        for source, target in ((reader, far_writer), (far_reader, writer)):
            self._passing.append(self._tasks.create_task(self._pass_on(source, target)))

    async def _pass_on(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while some := await source.read(65_536):
                self.passed += len(some)
                target.write(some)
                await target.drain()

    def freeze(self) -> None:
        """Both connections stay open, and what comes is never read."""
        for task in self._passing:
            task.cancel()

    def close(self) -> None:
        self.freeze()
        for writer in self._writers:
            writer.transport.abort()


@contextlib.asynccontextmanager
async def line(to: str) -> AsyncIterator[tuple[Line, str]]:
    """A line to this address, and the address at which it begins."""
    async with asyncio.TaskGroup() as tasks:
        made = Line(to, tasks)
        server = await asyncio.start_server(made.came, "127.0.0.1", 0)
        try:
            yield made, f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            made.close()
            await server.wait_closed()


class Listening(Acceptor):
    """Answers once, and notes how the stream ends on its side."""

    def __init__(self) -> None:
        super().__init__(self.listen)
        self.noticed: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

    async def listen(self, _: PeerFacts, link: Any) -> None:
        try:
            await link.send(await link.receive())
            await link.receive()
        except LinkClosed as error:
            self.noticed.set_result(error)
            raise


@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", ["agent and Access", "Access and Master"])
async def test_each_end_notices_by_itself_that_the_other_has_frozen(kind: str) -> None:
    acceptor = Listening()
    async with grpc_world() as world:
        is_trunk = kind == "Access and Master"
        address = await (world.trunks(acceptor) if is_trunk else world.agents(acceptor))
        async with line(address) as (between, here):
            dialling = world.dial_trunk(here) if is_trunk else world.dialer().connect(here, int(PATIENCE_S) * SECOND)
            link: Any = await dialling
            hello: Any = services_pb2.TrunkBatch() if is_trunk else frame(1)
            await link.send(hello)
            assert await link.receive() == hello
            await poll_async(standing(lambda: between.passed), what="a line on which nothing is under way")
            between.freeze()

            async with asyncio.timeout(PATIENCE_S):
                with pytest.raises(LinkClosed):
                    await link.receive()
                assert isinstance(await acceptor.noticed, LinkClosed)


# --- what a peer may not open -----------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def by_hand(world: GrpcWorld, acceptor: Acceptor) -> AsyncIterator[Peer]:
    """A host's connection that keeps no rule."""
    address = await world.agents(acceptor)
    async with peer(address, client_context(world.host, world.ca.certificate_pem)) as one:
        yield one


async def is_let_in(one: Peer, stream: int) -> bool:
    """True if this call was answered with a beginning, and not with its end or the connection's."""
    async with asyncio.timeout(PATIENCE_S):
        async for kind, flags, number in one.frames():
            if kind == GOAWAY or (kind == RST_STREAM and number == stream):
                return False
            if kind == HEADERS and number == stream:
                return not flags & END_STREAM
    return False


async def stays(_: PeerFacts, link: Any) -> None:
    await link.receive()


async def test_one_connection_has_only_so_many_streams() -> None:
    acceptor = Acceptor(stays)
    async with grpc_world() as world, by_hand(world, acceptor) as one:
        for stream in range(1, 2 * STREAMS_MAX, 2):
            await one.send(call(stream))
            assert await is_let_in(one, stream)

        await one.send(call(2 * STREAMS_MAX + 1))

        assert not await is_let_in(one, 2 * STREAMS_MAX + 1)
        assert len(acceptor.peers) == STREAMS_MAX


async def test_a_call_with_more_than_eight_kibibytes_of_metadata_opens_no_stream() -> None:
    acceptor = Acceptor(stays)
    async with grpc_world() as world, by_hand(world, acceptor) as one:
        await one.send(call(1, ballast=7 * KIB + KIB // 2))
        assert await is_let_in(one, 1)  # by now it has said that it knows our limits, which holds it to them

        for stream in range(3, 19, 2):  # where gRPC knows a softer limit, it draws lots above that
            await one.send(call(stream, ballast=9 * KIB))
            assert not await is_let_in(one, stream)

        await one.send(call(19))
        assert await is_let_in(one, 19)
        await poll_async(lambda: len(acceptor.peers) - acceptor.ended == 2, what="the end of whatever was begun")
