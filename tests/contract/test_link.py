"""The links between processes: what gRPC with mutual TLS and the twin in memory both promise."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.support.links import ACCESS, HOST, Acceptor, MemoryWorld, echo, frame, grpc_world
from tests.waiting import PATIENCE_S, poll_async
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.errors import Banned, LinkClosed, TooMany, Unavailable
from windrow_proto.link_memory import MemoryNetwork
from windrow_proto.ports import PeerFacts
from windrow_proto.units import MILLISECOND, SECOND
from windrow_proto.v1 import services_pb2

DIAL_NS = 30 * SECOND
"""For a connection with its handshake: far beyond what it takes, and spent only where one is never made."""


@pytest.fixture(params=["grpc", "memory"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    if request.param == "grpc":
        async with grpc_world() as found:
            yield found
    else:
        async with MemoryNetwork(SystemClock(), SystemRng()) as network:
            yield MemoryWorld(network)


def standing(count: Callable[[], int], still_s: float = 0.4) -> Callable[[], bool]:
    """A condition: something was counted, and nothing more for a while."""
    seen = (0, 0.0)

    def condition() -> bool:
        nonlocal seen
        now = asyncio.get_running_loop().time()
        if count() != seen[0]:
            seen = (count(), now)
        return seen[0] > 0 and now - seen[1] >= still_s

    return condition


async def test_frames_come_in_order_both_ways_and_the_certificate_names_the_peer(world):
    acceptor = Acceptor()
    link = await world.dialer().connect(await world.agents(acceptor), DIAL_NS)

    for n in range(1, 50):
        await link.send(frame(n, n * 100))
    got = [await link.receive() for _ in range(1, 50)]

    assert got == [frame(n, n * 100) for n in range(1, 50)]
    assert (acceptor.peers[0].role, acceptor.peers[0].host_id, acceptor.peers[0].generation) == ("host", HOST, 5)
    await link.close()


async def test_the_largest_frame_passes(world):
    link = await world.dialer().connect(await world.agents(Acceptor()), DIAL_NS)

    await link.send(frame(1, 1_052_000))

    assert len((await link.receive()).sealed) == 1_052_000
    await link.close()


async def test_closing_by_the_dialer_is_seen_by_both_sides(world):
    acceptor = Acceptor()
    link = await world.dialer().connect(await world.agents(acceptor), DIAL_NS)
    await link.send(frame(1))
    await link.receive()
    await link.close()
    await link.close()

    for call in (link.receive, lambda: link.send(frame(1))):
        with pytest.raises(LinkClosed):
            await call()
    await poll_async(lambda: acceptor.ended == 1)


async def test_closing_by_the_server_is_seen_by_both_sides(world):
    acceptor = Acceptor()
    link = await world.dialer().connect(await world.agents(acceptor), DIAL_NS)
    await link.send(frame(1))
    await link.receive()

    await acceptor.links[0].close()

    with pytest.raises(LinkClosed):
        async with asyncio.timeout(PATIENCE_S):
            await link.receive()
    await poll_async(lambda: acceptor.ended == 1)
    with pytest.raises(LinkClosed):
        await acceptor.links[0].send(frame(1))


async def test_a_server_can_end_a_stream_whose_peer_has_stopped_reading(world):
    async def flood(peer: PeerFacts, link: Any) -> None:
        while True:
            await link.send(frame(1, 65_536))

    acceptor = Acceptor(flood)
    link = await world.dialer().connect(await world.agents(acceptor), DIAL_NS)
    await poll_async(lambda: acceptor.links)
    await link.receive()

    await acceptor.links[0].close()

    await poll_async(lambda: acceptor.ended == 1)
    with pytest.raises(LinkClosed):
        async with asyncio.timeout(PATIENCE_S):
            while True:
                await link.receive()


async def test_what_was_sent_before_the_server_ended_the_stream_still_arrives(world):
    async def say_and_go(peer: PeerFacts, link: Any) -> None:
        for n in (1, 2, 3):
            await link.send(frame(n))

    link = await world.dialer().connect(await world.agents(Acceptor(say_and_go)), DIAL_NS)

    assert [(await link.receive()).sequence for _ in range(3)] == [1, 2, 3]
    with pytest.raises(LinkClosed):
        await link.receive()


async def test_the_error_that_ended_a_stream_is_named_to_the_other_side(world):
    async def refuse(peer: PeerFacts, link: Any) -> None:
        await link.receive()
        raise Banned("You are quarantined.", subject=peer.subject_id)

    link = await world.dialer().connect(await world.agents(Acceptor(refuse)), DIAL_NS)
    await link.send(frame(1))

    with pytest.raises(LinkClosed) as caught:
        await link.receive()
    assert isinstance(caught.value.__cause__, Banned)


@pytest.mark.parametrize("named", [TooMany, Unavailable])
async def test_who_is_sent_away_at_once_hears_why_and_until_when_from_dialling(world, named):
    async def refuse(peer: PeerFacts, link: Any) -> None:
        raise named("Come back in 200 ms.", retry_after_ns=200 * MILLISECOND)

    address = await world.agents(Acceptor(refuse))

    for _ in range(20):
        with pytest.raises(LinkClosed, match="Come back in 200 ms") as caught:
            await world.dialer().connect(address, DIAL_NS)
        assert isinstance(caught.value.__cause__, named)
        assert caught.value.__cause__.retry_after_ns == 200 * MILLISECOND


async def test_a_server_that_dies_ends_its_streams(world):
    link = await world.dialer().connect(await world.agents(Acceptor()), DIAL_NS)

    await world.kill()

    with pytest.raises(LinkClosed):
        async with asyncio.timeout(PATIENCE_S):
            await link.receive()


async def test_nobody_there_is_said_before_the_deadline(world):
    address = await world.agents(Acceptor())
    await world.kill()

    for call in (world.dialer().connect, world.dialer().ping, world.dialer().bandwidth):
        with pytest.raises(LinkClosed):
            async with asyncio.timeout(PATIENCE_S):
                await call(address, 3 * SECOND)


async def test_a_slow_receiver_holds_its_sender_up_and_loses_nothing(world):
    stop = asyncio.Event()

    async def stall(peer: PeerFacts, link: Any) -> None:
        await stop.wait()
        await echo(peer, link)

    link = await world.dialer().connect(await world.agents(Acceptor(stall)), DIAL_NS)
    sent = 0

    async def flood() -> None:
        nonlocal sent
        while sent < 256:
            await link.send(frame(sent + 1, 65_536))
            sent += 1

    async with asyncio.TaskGroup() as group:
        group.create_task(flood())
        await poll_async(standing(lambda: sent), what="the flood stands still")
        assert sent <= 32
        stop.set()
        got = [(await link.receive()).sequence for _ in range(256)]
    assert got == list(range(1, 257))
    await link.close()


async def test_a_cancelled_receive_loses_nothing_and_a_cancelled_send_ends_the_link(world):
    never = asyncio.Event()

    async def answer_once(peer: PeerFacts, link: Any) -> None:
        await link.send(await link.receive())
        await never.wait()

    link = await world.dialer().connect(await world.agents(Acceptor(answer_once)), DIAL_NS)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await link.receive()
    await link.send(frame(7))
    assert (await link.receive()).sequence == 7

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            while True:
                await link.send(frame(8, 65_536))
    with pytest.raises(LinkClosed):
        await link.receive()
    never.set()


async def test_a_ping_says_what_the_access_is(world):
    acceptor = Acceptor()

    answer = await world.dialer().ping(await world.agents(acceptor), DIAL_NS)

    assert (answer.access_id, answer.region, answer.load_permille, answer.draining) == (ACCESS, "eu", 250, True)
    assert 0 < answer.rtt_ns < DIAL_NS
    assert acceptor.peers[0].host_id == HOST


async def test_a_warm_connection_answers_pings_and_then_carries_frames(world):
    acceptor = Acceptor()
    warm = await world.dialer().warm(await world.agents(acceptor), DIAL_NS)
    answers = [await warm.ping(DIAL_NS) for _ in range(2)]
    assert {(one.access_id, one.region, one.load_permille, one.draining) for one in answers} == {
        (ACCESS, "eu", 250, True)
    }
    assert all(one.rtt_ns > 0 for one in answers)

    link = await warm.connect(DIAL_NS)
    await warm.close()  # nothing of it is left to close: the connection is the link's
    await link.send(frame(1))
    assert await link.receive() == frame(1)
    await link.close()
    with pytest.raises(LinkClosed):
        await warm.ping(DIAL_NS)


async def test_a_warm_connection_that_has_ended_says_so_and_carries_nothing(world):
    warm = await world.dialer().warm(await world.agents(Acceptor()), DIAL_NS)
    await warm.ping(DIAL_NS)
    await world.kill()
    with pytest.raises(LinkClosed):
        await warm.ping(DIAL_NS)
    with pytest.raises(LinkClosed):
        await warm.connect(SECOND)


async def test_a_warm_connection_hears_why_it_may_not_carry_frames(world):
    async def refuse(peer: PeerFacts, link: Any) -> None:
        raise TooMany("Come back later.", retry_after_ns=3 * SECOND)

    warm = await world.dialer().warm(await world.agents(Acceptor(refuse)), DIAL_NS)
    with pytest.raises(LinkClosed, match="Come back later") as refused:
        await warm.connect(DIAL_NS)
    assert isinstance(refused.value.__cause__, TooMany) and refused.value.__cause__.retry_after_ns == 3 * SECOND


async def test_who_may_not_keep_a_connection_hears_why(world):
    class Full(Acceptor):
        async def warmed(self, peer: PeerFacts, link: Any) -> None:
            raise TooMany("There are enough.", retry_after_ns=SECOND)

    with pytest.raises(LinkClosed) as refused:
        await world.dialer().warm(await world.agents(Full()), DIAL_NS)
    assert isinstance(refused.value.__cause__, TooMany)


async def test_a_measurement_stream_carries_chunks_both_ways(world):
    link = await world.dialer().bandwidth(await world.agents(Acceptor()), DIAL_NS)
    chunk = services_pb2.BandwidthChunk(payload=bytes(65_536))

    for _ in range(20):
        await link.send(chunk)
        assert await link.receive() == chunk
    await link.close()


async def test_a_trunk_carries_batches_and_leaves_sealed_bytes_alone(world):
    acceptor = Acceptor()
    trunk = await world.dial_trunk(await world.trunks(acceptor))
    items = [services_pb2.TrunkItem(route=n, frame=frame(n, 500)) for n in range(1, 65)]
    items.append(services_pb2.TrunkItem(route=9, opened=services_pb2.RouteOpened(host_id=HOST)))

    for _ in range(30):
        await trunk.send(services_pb2.TrunkBatch(items=items))
        assert list((await trunk.receive()).items) == items
    assert (acceptor.peers[0].role, acceptor.peers[0].subject_id) == ("access", ACCESS)
    await trunk.close()


async def test_a_trunk_goes_to_the_first_master_that_answers(world):
    gone = await world.trunks(Acceptor())
    await world.kill()
    there = await world.trunks(Acceptor())

    trunk = await world.dial_trunk(gone, there)
    await trunk.send(services_pb2.TrunkBatch())
    assert await trunk.receive() == services_pb2.TrunkBatch()
    await trunk.close()
    with pytest.raises(LinkClosed, match="No Master"):
        await world.dial_trunk(gone)


async def test_a_certificate_of_another_role_is_refused(world):
    address = await world.agents(Acceptor())

    with pytest.raises(LinkClosed) as caught:
        await world.dialer("access").connect(address, DIAL_NS)
    assert "Only a host" in str(caught.value.__cause__)
