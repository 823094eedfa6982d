"""Peers that mean harm to an Access, over real sockets: each is bounded, and an honest agent notices nothing.

Its times of waiting are shortened in one of the two Accesses here; `make torture` runs them at their shipped length and
with ten times as many connections.
"""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.integration.test_hostile_messages import ended, raw_stream
from tests.support.hostile_peer import (
    CANCEL,
    DATA,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    Peer,
    call,
    connected,
    frame,
    message,
    peer,
)
from tests.support.links import Acceptor, GrpcWorld
from tests.support.one_access import SHIPPED, echo
from tests.support.pki import issue, make_ca
from tests.torture.siege import BEAT_S, EVIDENCE, HASTY, LONG, TELEMETRY, World, crowd, world
from tests.waiting import PATIENCE_S, poll_async
from windrow_access.core.admission import Callers, Limits
from windrow_access.core.strangers import StrangerLimits
from windrow_access.guard import Guard
from windrow_access.relay import QUEUE_ROUTE_ALL_BYTES_MAX
from windrow_proto import link_grpc, link_streams
from windrow_proto.clock import SystemClock
from windrow_proto.errors import LinkClosed, TooMany, WindrowError
from windrow_proto.keys import TlsIdentity
from windrow_proto.ports import FrameLink, PeerFacts
from windrow_proto.units import MIB, SECOND
from windrow_proto.v1 import link_pb2
from windrow_proto.wire import TOGETHER_MAX, put_together

pytestmark = [pytest.mark.timeout(600 if LONG else 120)]

STALL_S = 0.5
"""Without a message taken, a flood counts as stalled."""


@pytest.fixture(scope="module")
async def shipped(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """An Access as it is."""
    async with world(tmp_path_factory.mktemp("shipped"), SHIPPED) as made:
        yield made


@pytest.fixture(scope="module")
async def hasty(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """An Access with little patience."""
    async with world(tmp_path_factory.mktemp("hasty"), SHIPPED if LONG else ("-c", HASTY)) as made:
        yield made


# --- before anybody is known -----------------------------------------------------------------------------------------


@pytest.mark.proves(
    "an Access holds a flood of connections of one address to their number, and lets agents in meanwhile"
)
async def test_of_one_address_only_so_many_connections_wait_without_a_handshake_and_agents_still_come_in(
    shipped: World,
) -> None:
    most = StrangerLimits().per_network_max
    async with shipped.besieged("no handshake, many"), crowd() as strangers:
        for _ in range((10 if LONG else 1) * most + 200):
            strangers.add(await connected(shipped.address, None, "127.0.0.2"))
        await poll_async(lambda: strangers.here <= most, what="the oldest strangers to be cut")
        assert strangers.here == most or LONG
        assert (await echo(shipped.address, shipped.host()[1])).sealed == b"unopened"


async def test_who_begins_no_handshake_or_no_call_is_cut_after_a_while(hasty: World) -> None:
    async with hasty.besieged("no handshake, no call"), crowd() as strangers:
        context = hasty.context(hasty.host()[1])
        for _ in range(20):
            strangers.add(await connected(hasty.address, None, "127.0.0.2"))
            strangers.add(await connected(hasty.address, context))
            strangers.add(await connected(hasty.address, context))
            await strangers.peers[-1].send(PREFACE, frame(SETTINGS, 0))
        await poll_async(lambda: strangers.here == 0, what="the strangers to be cut")


async def test_certificates_of_others_or_none_open_nothing_however_often(shipped: World) -> None:
    foreign = shipped.context(issue(make_ca(), "host", "host_" + "f" * 32))
    none = shipped.context(None)
    opened = len(shipped.master.opened)

    async def knock(context: Any) -> None:
        with contextlib.suppress(OSError):
            async with peer(shipped.address, context, "127.0.0.2") as one:
                await one.send(call(1))
                async with asyncio.timeout(PATIENCE_S):
                    await one.until_gone()

    async with shipped.besieged("foreign certificates"):
        for _ in range(100 if LONG else 10):
            async with asyncio.TaskGroup() as tasks:
                for context in (foreign, none) * 10:
                    tasks.create_task(knock(context))
    assert len(shipped.master.opened) == opened + 1  # the honest one


async def test_grpc_alone_ends_what_shakes_no_hands_and_holds_no_more_than_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Below the guard, and where a system shows no sockets."""
    shipped = dict(link_streams.SERVER_OPTIONS)
    assert shipped["grpc.server_handshake_timeout_ms"] == link_streams.HANDSHAKE_TIMEOUT_MS
    own = GrpcWorld()
    server = await link_grpc.serve_agents(Acceptor(), own.access, max_connections=5)
    monkeypatch.setattr(
        link_streams, "SERVER_OPTIONS", tuple((shipped | {"grpc.server_handshake_timeout_ms": 500}).items())
    )
    quick = await link_grpc.serve_agents(Acceptor(), own.access)
    try:
        async with crowd() as strangers, crowd() as others:
            for _ in range(20):
                strangers.add(await connected(server.address, None))
                others.add(await connected(quick.address, None))
            await poll_async(lambda: strangers.here <= 5, what="what is too much to be closed")
            assert strangers.here == 5
            await poll_async(lambda: others.here == 0, what="the handshakes to be given up")
    finally:
        await server.stop(0)
        await quick.stop(0)


# --- a known host ----------------------------------------------------------------------------------------------------


async def stay(world: World, name: str, one: Peer) -> None:
    """Open a stream that may stay, so that the connection is no stranger's."""
    hello = message(link_pb2.Frame(lane=EVIDENCE, sealed=b"a host like any").SerializeToString())
    await one.send(call(1), frame(DATA, 1, hello))
    await poll_async(lambda: name in world.master.opened, what="a stream that stays")


@pytest.mark.parametrize("path", [link_grpc.CONNECT, "/windrow.v1.AgentLink/Nothing"])
async def test_a_host_that_opens_and_resets_streams_without_end_is_cut(shipped: World, path: str) -> None:
    name, identity = shipped.host()
    loop = asyncio.get_running_loop()
    async with (
        shipped.besieged(f"rapid reset of {path}"),
        peer(shipped.address, shipped.context(identity)) as one,
        asyncio.TaskGroup() as tasks,
    ):
        began = loop.time()
        listening = tasks.create_task(one.until_gone())
        await stay(shipped, name, one)
        resets = (call(number, path) + frame(RST_STREAM, number, CANCEL) for number in itertools.count(3, 2))
        await one.send(*itertools.islice(resets, 50_000 if LONG else 5_000))  # of which gRPC lets few through
        async with asyncio.timeout(PATIENCE_S):
            while not listening.done():
                with contextlib.suppress(OSError):
                    await one.send(*itertools.islice(resets, 10))
                await asyncio.sleep(0.001)
        calls_max = Limits().calls_burst + (loop.time() - began) * Limits().calls_per_s + 1
        assert shipped.master.opened.count(name) <= calls_max
        await poll_async(lambda: name in shipped.master.closed, what="the stream that stayed to end")


async def test_who_pings_without_end_is_cut(shipped: World) -> None:
    name, identity = shipped.host()
    async with (
        shipped.besieged("pings"),
        peer(shipped.address, shipped.context(identity)) as one,
        asyncio.TaskGroup() as tasks,
    ):
        listening = tasks.create_task(one.until_gone())
        await stay(shipped, name, one)
        with contextlib.suppress(OSError):
            for _ in range(2_000):
                await one.send(frame(PING, 0, bytes(8)))
        async with asyncio.timeout(PATIENCE_S):
            await listening


def samples(sealed: bytes) -> link_pb2.Frame:
    return link_pb2.Frame(frame_class=link_pb2.FRAME_CLASS_LIVE, lane=TELEMETRY, sealed=sealed)


async def test_hosts_that_flood_wait_while_the_trunk_is_slow(shipped: World) -> None:
    largest = samples(bytes(256 << 10)), 3 * QUEUE_ROUTE_ALL_BYTES_MAX // (256 << 10)
    smallest = put_together([samples(b"x") for _ in range(TOGETHER_MAX)]), 1_500  # what counts is what they take here
    async with shipped.besieged("floods", is_held_up=True) as honest, asyncio.TaskGroup() as tasks:
        shipped.master.reading.clear()
        dialers = []
        for message, count in (largest, smallest):
            dialer = link_grpc.GrpcDialer(shipped.host()[1])
            dialers.append(dialer)
            flood = Flood(await dialer.connect(shipped.address, int(PATIENCE_S) * SECOND))
            pouring = tasks.create_task(flood.pour(message, count))
            await flood.stalled()
            assert 0 < flood.sent < count
            assert not pouring.done()
        shipped.master.reading.set()
        await honest.beat()
        for dialer in dialers:
            await dialer.close()


class Flood:
    """One message again and again, as fast as it is taken."""

    def __init__(self, link: FrameLink) -> None:
        self.link, self.sent = link, 0

    async def pour(self, message: link_pb2.Frame, count: int) -> None:
        with contextlib.suppress(WindrowError):
            for _ in range(count):
                await self.link.send(message)
                self.sent += 1

    async def stalled(self) -> None:
        """Wait until nothing more is taken."""
        before = -1
        while before < self.sent:
            before = self.sent
            await asyncio.sleep(STALL_S)


def bombs() -> Iterator[tuple[str, bytes]]:
    """Messages that are nothing much until they are parsed, or too large."""
    more = link_pb2.Frame(more=[link_pb2.Frame()]).SerializeToString()
    assert len(more) == 2
    many = more * 500_000
    yield "empty frames", many
    yield "empty frames in a frame", more[:1] + b"\xc0\x84\x3d" + many
    yield "oversize", bytes(8 * MIB)


async def test_messages_that_burst_when_parsed_end_their_stream_unparsed(shipped: World) -> None:
    async with shipped.besieged("bombs"):
        for title, body in bombs():
            for _ in range(100 if LONG else 5):
                async with raw_stream(shipped.host()[1], shipped.address) as stream:
                    status, _ = await ended(stream, body)
                assert status in ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"), title


async def test_who_never_finishes_a_message_or_says_no_hello_loses_stream_and_connection(hasty: World) -> None:
    dribbler, silent = hasty.host(), hasty.host()
    hello = message(link_pb2.Frame(lane=EVIDENCE, sealed=bytes(1_000_000)).SerializeToString())
    async with (
        hasty.besieged("one byte at a time"),
        peer(hasty.address, hasty.context(dribbler[1])) as one,
        peer(hasty.address, hasty.context(silent[1])) as other,
        asyncio.TaskGroup() as tasks,
    ):
        listening = [tasks.create_task(both.until_gone()) for both in (one, other)]
        await one.send(call(1))
        await other.send(call(1))
        with contextlib.suppress(OSError):
            for byte in hello:
                if listening[0].done():
                    break
                await one.send(frame(DATA, 1, bytes([byte])))
                await asyncio.sleep(BEAT_S)
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.wait(listening)
        assert {dribbler[0], silent[0]} <= set(hasty.master.opened)
        await poll_async(lambda: {dribbler[0], silent[0]} <= hasty.master.closed.keys())
        assert {hasty.master.closed[name] for name in (dribbler[0], silent[0])} == {"deadline_exceeded"}


async def test_who_does_not_read_what_is_sent_to_him_loses_his_stream(hasty: World) -> None:
    name, identity = hasty.host()
    push = message(link_pb2.Frame(lane=EVIDENCE, sealed=b"push").SerializeToString())
    async with (
        hasty.besieged("never reads"),
        peer(hasty.address, hasty.context(identity)) as one,
        asyncio.TaskGroup() as tasks,
    ):
        listening = tasks.create_task(one.until_gone())  # answers pings, but never opens the window of HTTP/2
        await one.send(call(1), frame(DATA, 1, push))
        await poll_async(lambda: name in hasty.master.closed, what="the end of who does not read")
        assert hasty.master.closed[name] == "link_closed"
        async with asyncio.timeout(PATIENCE_S):
            await listening


async def test_one_host_has_only_so_many_calls_at_once_whatever_connections_they_come_on() -> None:
    own = GrpcWorld()

    async def stay_open(_: PeerFacts, link: FrameLink) -> None:
        await link.receive()

    guard = Guard(Acceptor(stay_open), SystemClock(), Callers(Limits()), StrangerLimits(), {})
    server = await link_grpc.serve_agents(guard, own.access)
    try:
        links = [await connected_as(own.host, server.address) for _ in range(Limits().calls_at_once)]
        with pytest.raises(LinkClosed) as sent_away:
            await connected_as(own.host, server.address)
        assert isinstance(sent_away.value.__cause__, TooMany)
        other = issue(own.ca, "host", "host_" + "2" * 32)
        links.append(await connected_as(other, server.address))
        await links.pop(0).close()

        async def is_let_in() -> bool:
            try:
                links.append(await connected_as(own.host, server.address))
            except LinkClosed:
                return False
            return True

        await poll_async(is_let_in, what="the place of the call that ended")
        for link in links:
            await link.close()
    finally:
        await server.stop(0)


async def connected_as(identity: TlsIdentity, address: str) -> FrameLink:
    return await link_grpc.GrpcDialer(identity).connect(address, int(PATIENCE_S) * SECOND)


async def test_one_host_opens_only_so_many_connections(hasty: World) -> None:
    name, identity = hasty.host()
    context = hasty.context(identity)
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with hasty.besieged("hundreds of connections of one host"), crowd() as many:
        for _ in range(2_000 if LONG else 150):
            with contextlib.suppress(OSError):
                many.add(await connected(hasty.address, context))
                await many.peers[-1].send(PREFACE, frame(SETTINGS, 0), call(1))
        calls_max = Limits().calls_burst + (loop.time() - began) * Limits().calls_per_s + 1
        await poll_async(lambda: many.here == 0, what="the last of them to be cut")
        assert 0 < hasty.master.opened.count(name) <= calls_max
