"""Letters that a host sends over a second Access about its connection by the first one, at the Master's trunk."""

import asyncio

import pytest

from tests.trunk_support import FakeAgent
from tests.trunk_world import HOST, MASTER, running
from tests.waiting import PATIENCE_S, poll_async
from windrow_proto.canary import AgentCanary, CanaryReply
from windrow_proto.ids import HostId
from windrow_proto.model import FrameClass, Kind, Lane
from windrow_proto.v1 import services_pb2
from windrow_proto.wire import seal, unseal
from windrow_proto.wire_link import decode_canary_reply, encode_canary


@pytest.fixture
async def m(tmp_path):
    async with running(tmp_path) as master:
        await master.agent.greet(master.access, MASTER.public)
        await master.agent.beat()
        await master.agent.next(Kind.HEARTBEAT_REPLY)
        master.second = await master.attach(master.group, "access_2")
        master.canaries = AgentCanary(master.agent.session.tally)
        try:
            yield master
        finally:
            await master.second.link.close()


def canary(m, kind=Kind.CANARY, lane=Lane.SECOND) -> bytes:
    body = encode_canary(m.canaries.next())
    return seal(m.agent.session.envelope(kind, lane, FrameClass.EVIDENCE, body), m.agent.prover).SerializeToString()


async def write(m, sealed: bytes, host_id=HOST) -> None:
    await m.second.say(services_pb2.TrunkItem(letter=services_pb2.Letter(host_id=host_id, sealed=sealed)))


async def answer(m) -> CanaryReply:
    letter = await asyncio.wait_for(m.second.letters.get(), PATIENCE_S)
    assert letter.host_id == HOST
    frame = type(m.agent.last_frame).FromString(letter.sealed)
    envelope = unseal(frame, m.agent.verifier)
    assert envelope.kind is Kind.CANARY_REPLY
    return decode_canary_reply(envelope.body)


async def ask(m) -> CanaryReply:
    await write(m, canary(m))
    reply = await answer(m)
    m.canaries.on_reply(reply)
    return reply


async def test_a_message_that_never_came_is_an_event_of_the_access_that_should_have_brought_it(m):
    assert await ask(m) == CanaryReply(1)
    assert not (await ask(m)).is_kept_back
    m.agent.session.envelope(Kind.HEARTBEAT, Lane.CONTROL, FrameClass.EVIDENCE, b"")  # sent, and nobody sees it
    await m.agent.beat()
    await m.agent.next(Kind.HEARTBEAT_REPLY)
    assert [(await ask(m)).kept_up for _ in range(2)] == [1, 1]

    async def told():
        events = await m.store.read(lambda uow: uow.events.newest("access_1"))
        return [event.kind for event in events if HOST in event.subjects] == ["access.kept_back"]

    await poll_async(told)
    assert (await ask(m)).kept_up == 1
    assert await told()  # once


async def test_what_no_host_of_ours_can_have_written_is_dropped_and_held_against_nobody(m):
    good = canary(m)
    stranger = FakeAgent(m.clock, HostId("host_2"))
    for sealed, host_id in (
        (b"", HOST),
        (b"\xff" * 90, HOST),
        (good[:-1] + bytes([good[-1] ^ 1]), HOST),
        (good, HostId("host_2")),
        (good + bytes(5000), HOST),
        (stranger.boot * 20, HOST),
        (m.agent.last_frame.SerializeToString(), HOST),  # genuine, but of another lane
    ):
        await write(m, sealed, host_id)
    await write(m, good)
    assert (await answer(m)).number == 1
    await write(m, good)  # replayed
    assert (await ask(m)).number == 2
    assert m.second.letters.empty()
    route = m.hub._routes[HOST]
    assert (route.figures.bad_proofs, route.figures.refused, m.hub.figures.bad_proofs) == (0, {}, 0)


async def test_a_host_without_a_route_is_not_answered(m):
    sealed = canary(m)
    await m.access.say(services_pb2.TrunkItem(route=m.agent.number, closed=services_pb2.RouteClosed(reason="gone")))
    await poll_async(lambda: HOST not in m.hub._routes)
    await write(m, sealed)
    await m.agent.greet(m.access, MASTER.public)
    await m.agent.beat()
    await m.agent.next(Kind.HEARTBEAT_REPLY)
    m.canaries = AgentCanary(m.agent.session.tally)
    assert await ask(m) == CanaryReply(1)  # under the new connection's key; the old letter had no answer
