"""A hello that comes late, or again: until its key is used it takes nothing away from the connection that lives."""

import pytest

from tests.trunk_world import HOST, MASTER, running
from tests.waiting import poll_async
from windrow_proto.ids import CommandId
from windrow_proto.model import Command, CommandKind, Kind
from windrow_proto.v1 import services_pb2


@pytest.fixture
async def m(tmp_path):
    async with running(tmp_path) as master:
        yield master


async def beaten(m, access=None):
    """The agent is connected and heard; returns its hello."""
    await m.agent.connect(access or m.access, MASTER.public)
    hello = m.agent.last_frame
    await m.agent.finish_connect()
    await m.agent.beat()
    await m.agent.next(Kind.HEARTBEAT_REPLY)
    return hello


async def played_again(m, hello):
    """The hello on a route of its own, and the Master's answer to it; returns the route."""
    number = await m.access.open(m.agent)
    await m.access.say(services_pb2.TrunkItem(route=number, frame=hello))
    await m.access.down[number].get()
    await m.access.down[number].get()  # the welcome, and what follows it
    return number


async def test_a_command_goes_to_the_live_connection_though_its_hello_was_played_again(m):
    hello = await beaten(m)
    await played_again(m, hello)

    command = Command(CommandId(""), CommandKind.BENCHMARK)
    await m.store.write(lambda uow: m.fleet.issue(uow, HOST, command), name="test")

    assert (await m.agent.next(Kind.COMMAND)).kind is Kind.COMMAND


async def test_the_connection_that_lives_outlasts_a_late_hello_and_its_end(m):
    other = await m.attach(m.group, "access_2")
    hello = await beaten(m)
    m.agent.session.on_disconnect()
    await beaten(m, other)
    number = await played_again(m, hello)
    closed = services_pb2.RouteClosed(reason="gone")
    await m.access.say(services_pb2.TrunkItem(route=number, closed=closed))
    await poll_async(
        lambda: all(number not in trunk.routes for trunk in m.hub._trunks if trunk.access_id == "access_1")
    )

    assert m.fleet.is_connected(HOST)
    assert HOST in m.hub._routes
