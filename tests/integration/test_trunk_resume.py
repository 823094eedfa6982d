"""A second connection that the Master has greeted: it keeps still, and takes the first one's place with one message."""

import pytest

from tests.trunk_world import HOST, MASTER, running
from tests.waiting import poll_async
from windrow_proto.ids import CommandId
from windrow_proto.messages import LaneMarks
from windrow_proto.model import Command, CommandKind, Event, Kind, Lane
from windrow_proto.v1 import services_pb2
from windrow_proto.wire_host import encode_event
from windrow_proto.wire_link import decode_ack, encode_resume


@pytest.fixture
async def m(tmp_path):
    async with running(tmp_path) as master:
        yield master


def event(number):
    return encode_event(Event(f"test.{number}", number, "", ""))


async def both(m):
    """The agent on one Access, with its second connection on another; returns the latter's end of the agent."""
    other = await m.attach(m.group, "access_2")
    await m.agent.greet(m.access, MASTER.public)
    await m.agent.beat()
    await m.agent.next(Kind.HEARTBEAT_REPLY)
    second = m.agent.beside()
    await second.greet(other, MASTER.public, second=True)
    return second


async def lose_the_first(m):
    await m.access.say(services_pb2.TrunkItem(route=m.agent.number, closed=services_pb2.RouteClosed(reason="gone")))
    await poll_async(lambda: not m.fleet.is_connected(HOST))


async def test_a_second_connection_keeps_still_and_serves_when_it_is_resumed(m):
    second = await both(m)
    assert m.hub._routes[HOST].access_id == "access_1"
    assert [one["agents"] for one in m.hub.accesses.summaries()] == [1, 0]

    await lose_the_first(m)
    await second.send(Kind.RESUME, Lane.CONTROL, encode_resume(()))
    await second.beat()
    await second.next(Kind.HEARTBEAT_REPLY)

    assert m.hub._routes[HOST].access_id == "access_2"
    assert m.fleet.is_connected(HOST)
    command = Command(CommandId(""), CommandKind.BENCHMARK)
    await m.store.write(lambda uow: m.fleet.issue(uow, HOST, command), name="test")
    assert (await second.next(Kind.COMMAND)).kind is Kind.COMMAND


async def test_it_may_be_resumed_while_the_first_one_seems_to_live(m):
    second = await both(m)

    await second.send(Kind.RESUME, Lane.CONTROL, encode_resume(()))
    await second.beat()
    await second.next(Kind.HEARTBEAT_REPLY)

    assert m.hub._routes[HOST].access_id == "access_2"
    assert m.access.closed[m.agent.number] == "conflict"
    assert m.fleet.is_connected(HOST)


@pytest.mark.parametrize("is_lost", [True, False])
async def test_what_the_first_one_committed_since_is_had_and_not_asked_for(m, is_lost):
    second = await both(m)
    for number in range(1, 6):
        await m.agent.record(Kind.EVENT, event(number))
    await m.agent.acked(Lane.EVIDENCE, 5)
    if is_lost:
        await lose_the_first(m)

    await second.send(Kind.RESUME, Lane.CONTROL, encode_resume([LaneMarks(Lane.EVIDENCE, second.boot, ((4, 6),))]))
    ack = decode_ack((await second.next(Kind.ACK)).body)
    assert [marks.ranges for marks in ack.have] == [((1, 5),)]

    await second.record(Kind.EVENT, event(5), sequence=5)  # of which the ack did not arrive
    await second.record(Kind.EVENT, event(6))
    await second.acked(Lane.EVIDENCE, 6)
    assert not m.hub._routes[HOST].lane(Lane.EVIDENCE, second.boot).missing(10**18).ranges


async def test_before_it_is_resumed_nothing_else_is_taken_from_it_and_nothing_twice(m):
    second = await both(m)
    dropped = m.hub.figures.bad_proofs

    await second.beat()
    await poll_async(lambda: m.hub.figures.bad_proofs == dropped + 1)
    assert m.hub._routes[HOST].access_id == "access_1"

    await second.send(Kind.RESUME, Lane.CONTROL, encode_resume(()))
    await second.resend(second.last_frame)
    await second.beat()
    await second.next(Kind.HEARTBEAT_REPLY)
    await second.send(Kind.RESUME, Lane.CONTROL, encode_resume(()))
    await poll_async(lambda: m.hub.figures.bad_proofs == dropped + 2)
    assert m.hub._routes[HOST].access_id == "access_2"


async def test_with_an_older_certificate_it_is_refused(m):
    second = await both(m)
    m.hub._certificates._generations[HOST] = 2

    await second.send(Kind.RESUME, Lane.CONTROL, encode_resume(()))

    await poll_async(lambda: second.access.closed.get(second.number) == "certificate_refused")
    assert m.hub._routes[HOST].access_id == "access_1"


async def test_when_it_ends_the_first_one_serves_on(m):
    second = await both(m)

    closed = services_pb2.RouteClosed(reason="gone")
    await second.access.say(services_pb2.TrunkItem(route=second.number, closed=closed))
    await poll_async(lambda: HOST not in m.hub._seconds)
    await m.agent.beat()
    await m.agent.next(Kind.HEARTBEAT_REPLY)

    assert m.hub._routes[HOST].access_id == "access_1"
