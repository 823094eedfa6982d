"""Two agents on one identity, as the Master notices them, and what it takes to serve again."""

import pytest

from tests.trunk_support import FakeAgent
from tests.trunk_world import HOST, MASTER, running
from tests.waiting import poll_async
from windrow_master.fleet.model import AdminState
from windrow_master.fleet.states import AdminEvent
from windrow_proto.model import Kind
from windrow_proto.v1 import services_pb2


@pytest.fixture
async def m(tmp_path):
    async with running(tmp_path) as master:
        yield master


async def greet(m, agent=None):
    return await (agent or m.agent).greet(m.access, MASTER.public)


async def beaten(m, agent=None):
    agent = agent or m.agent
    await greet(m, agent)
    await agent.beat()
    await agent.next(Kind.HEARTBEAT_REPLY)


async def left(m, agent):
    """Its connection ends, and the Master knows."""
    closed = services_pb2.RouteClosed(reason="gone")
    await m.access.say(services_pb2.TrunkItem(route=agent.number, closed=closed))
    await poll_async(lambda: HOST not in m.hub._routes)


def twin_of(agent):
    return FakeAgent(agent.clock, boot=b"b" * 16, signing=agent.signing)


async def test_two_live_agents_on_one_identity_are_noticed_and_quarantined(m):
    await greet(m)
    await m.agent.beat()
    await m.agent.next(Kind.HEARTBEAT_REPLY)
    twin = twin_of(m.agent)
    await greet(m, twin)
    await twin.beat()
    await twin.next(Kind.HEARTBEAT_REPLY)
    await greet(m)
    await m.agent.beat()
    await poll_async(lambda: m.fleet.entry(HOST).host.admin_state is AdminState.QUARANTINED)
    await poll_async(lambda: HOST in m.access.bans)
    await poll_async(lambda: m.access.closed.get(m.agent.number) == "banned")


async def test_an_agent_that_restarts_is_no_clone(m):
    for boot in (b"b", b"c", b"d"):
        await greet(m)
        await m.agent.beat()
        await m.agent.next(Kind.HEARTBEAT_REPLY)
        m.agent.restart(boot * 16)
    assert m.hub.figures.clones == 0


async def test_copies_that_are_never_connected_at_once_are_noticed_too(m):
    twin = twin_of(m.agent)
    for agent in (m.agent, twin):
        await beaten(m, agent)
        await left(m, agent)
    await greet(m)
    await m.agent.beat()
    await poll_async(lambda: m.access.closed.get(m.agent.number) == "banned")
    await poll_async(lambda: m.fleet.entry(HOST).host.admin_state is AdminState.QUARANTINED)


async def test_a_host_whose_copy_is_gone_serves_again_once_people_let_it(m):
    await beaten(m)
    await beaten(m, twin_of(m.agent))
    await greet(m)
    await m.agent.beat()
    await poll_async(lambda: HOST in m.access.bans)
    await m.fleet.decide(HOST, AdminEvent.ACTIVATE, "operator", "the copy was switched off")
    await poll_async(lambda: HOST not in m.access.bans)
    await beaten(m)
    assert m.hub.figures.clones == 1
