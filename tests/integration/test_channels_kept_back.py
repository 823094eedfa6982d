"""A frame of a channel that an Access kept back ends the connection at either end: no part is taken for the whole."""

import asyncio

import pytest

from tests.master_support import SeededRng
from tests.trunk_world import HOST, MASTER, running
from tests.unit.agent_runtime.test_access_connector import FAR, NEAR, Network, SleepingClock, unused
from tests.unit.agent_runtime.test_resume import GREETING, Host, settled
from tests.waiting import PATIENCE_S, poll_async
from windrow_agent.core.access_distrust import DISTRUST_NS
from windrow_agent.link.access_connector import AccessConnector
from windrow_agent.link.connection import Connection
from windrow_proto.errors import KeptBack, LinkClosed
from windrow_proto.ids import HostId, WorkloadId
from windrow_proto.messages import AccessPoint, Channel, ChannelData, ChannelOpen, RegionMap
from windrow_proto.model import ChannelPurpose, FrameClass, Kind, Lane
from windrow_proto.units import HOUR, SECOND
from windrow_proto.wire_link import decode_channel, encode_channel

LOGS = ChannelOpen(WorkloadId("work_1"), ChannelPurpose.LOGS)


@pytest.fixture
async def m(tmp_path):
    async with running(tmp_path) as master:
        await master.agent.greet(master.access, MASTER.public)
        await master.agent.beat()
        await master.agent.next(Kind.HEARTBEAT_REPLY)
        yield master


async def test_the_master_ends_the_route_and_its_channels_and_tells_it_of_the_access(m):
    stream = await m.routes.open(HOST, LOGS)
    number = decode_channel((await m.agent.next(Kind.CHANNEL)).body).channel_id
    pieces = [encode_channel(Channel(number, ChannelData(piece))) for piece in (b"one", b"two", b"three")]

    await m.agent.send(Kind.CHANNEL, Lane.CHANNEL, pieces[0], 2)
    m.agent.session.envelope(Kind.CHANNEL, Lane.CHANNEL, FrameClass.CHANNEL, pieces[1])  # sent, and nobody sees it
    await m.agent.send(Kind.CHANNEL, Lane.CHANNEL, pieces[2], 2)

    assert await asyncio.wait_for(stream.receive(), PATIENCE_S) == ChannelData(b"one")
    with pytest.raises(LinkClosed):
        await asyncio.wait_for(stream.receive(), PATIENCE_S)
    await poll_async(lambda: m.access.closed.get(m.agent.number) == "kept_back")
    assert HOST not in m.hub._routes

    async def told():
        events = await m.store.read(lambda uow: uow.events.newest("access_1"))
        return [event.kind for event in events if HOST in event.subjects] == ["access.kept_back"]

    await poll_async(told)


async def test_an_access_is_named_once_in_a_while_however_often_a_host_accuses_it(m):
    for _ in range(3):
        await m.fleet.messages_kept_back(HOST, "access_1")
    await m.fleet.messages_kept_back(HOST, "access_2")

    events = await m.store.read(lambda uow: uow.events.newest(HOST))
    accused = [event.subjects[0] for event in events if event.kind == "access.kept_back"]
    assert sorted(accused) == ["access_1", "access_2"]


async def test_the_agent_ends_the_connection():
    host = Host()
    await settled(host)
    await host.prepare()
    host.route.resume(())

    async def nothing(_: Connection) -> None:
        """Nothing beside it."""

    host.route.send(Kind.CHANNEL, Lane.CHANNEL, encode_channel(Channel(1, LOGS)))
    host.route.session.envelope(Kind.CHANNEL, Lane.CHANNEL, FrameClass.CHANNEL, b"")  # sent, and nobody sees it
    host.route.send(Kind.CHANNEL, Lane.CHANNEL, encode_channel(Channel(1, ChannelData(b"three"))))

    with pytest.raises(KeptBack):
        await asyncio.wait_for(host.connection.run(GREETING, nothing), PATIENCE_S)


async def test_the_access_is_left_alone_by_whom_it_lost_a_frame_and_by_whom_the_master_told():
    clock = SleepingClock(HOUR)
    connector = AccessConnector(HostId("host_1"), Network(clock, {}), clock, SeededRng(3), RegionMap(1, ()), unused)
    told = LinkClosed("The stream has ended.")
    told.__cause__ = KeptBack("A part of what the host sent never came.")

    connector._note(NEAR, KeptBack("A part of what the Master sent never came."))
    connector._note(FAR, told)

    assert [connector._distrust_ns(address) for address in (NEAR, FAR)] == [DISTRUST_NS] * 2


@pytest.mark.parametrize(
    ("distrusted", "order"), [([NEAR], [FAR, NEAR]), ([NEAR, FAR], [NEAR, FAR]), ([FAR, NEAR], [FAR, NEAR])]
)
async def test_whom_it_distrusts_a_host_dials_last_and_the_one_of_longest_ago_before_the_other(distrusted, order):
    """Left alone, two such Accesses would keep it away for ten minutes that both still serve."""
    clock = SleepingClock(5 * SECOND)
    network = Network(clock, {NEAR: None, FAR: None})
    regions = RegionMap(1, (AccessPoint("a", "eu", NEAR), AccessPoint("b", "eu", FAR)))
    connector = AccessConnector(HostId("host_1"), network, clock, SeededRng(3), regions, unused)
    for address in distrusted:
        connector._note_kept_back(address)
        clock.advance(SECOND)
    async with asyncio.TaskGroup() as group:
        running_it = group.create_task(connector.run())
        while len(network.dialled) < 2:
            await asyncio.sleep(0)
        running_it.cancel()
    assert [address for address, _ in network.dialled[:2]] == order
    assert network.dialled[0][1] - len(distrusted) * SECOND < SECOND
