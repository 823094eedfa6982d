"""The Master joins the members of a private network: keys handed over, grants for one link, again when it breaks."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from tests.unit.clusters.test_networks import TUNNELS, Said
from tests.unit.clusters.test_over_hosts import by_rank, gang, m, prepared
from tests.unit.clusters.world import principal
from tests.waiting import poll_async
from windrow_master.clusters.repository import TrafficRepository
from windrow_master.network import overlay
from windrow_master.network.overlay import OverlayService, PeerLinkStates
from windrow_master.network.tunnels import TunnelAddresses
from windrow_proto.errors import HostUnreachable, LinkClosed
from windrow_proto.keys import SigningKey
from windrow_proto.messages import ChannelClose, ChannelData
from windrow_proto.model import ChannelPurpose
from windrow_proto.tunnels import TunnelSide
from windrow_proto.wire_tunnel import read_grant

__all__ = ["m"]


class End:
    """A host's end of one link of the overlay network: it shows a key, and is up once it was shown the other's."""

    def __init__(self, opening):
        self.opening, self.shown, self.closed = opening, [], False
        self.said: asyncio.Queue[ChannelData | ChannelClose | Exception] = asyncio.Queue()
        self.said.put_nowait(ChannelData(b"key of " + opening.cord_own.encode()))

    async def send(self, data, stream=0):
        self.shown.append(data)
        self.said.put_nowait(ChannelData(b"up"))

    async def receive(self):
        step = await self.said.get()
        if isinstance(step, Exception):
            raise step
        return step

    async def close(self, closing):
        if not self.closed:
            self.closed = True
            self.said.put_nowait(ChannelClose(bytes_in=70, bytes_out=9))


class Broker:
    """Hosts that answer, but for those that are away."""

    def __init__(self):
        self.ends, self.away = [], set()

    async def open(self, host_id, opening):
        if host_id in self.away:
            raise HostUnreachable("It is away.", subject=host_id)
        self.ends.append(End(opening))
        return self.ends[-1]


PLACES = TunnelAddresses("out:1", "in:2")


@asynccontextmanager
async def joining(m, places=None):
    """The service, running on such hosts."""
    broker, signing = Broker(), SigningKey.generate()
    of = (lambda host_id: PLACES) if places is None else places.get
    service = OverlayService(m.store, m.clusters, broker, of, signing, m.clock, states := PeerLinkStates())
    m.rented.peer_links = states.of
    async with asyncio.TaskGroup() as group:
        running = group.create_task(service.run())
        try:
            yield service, broker, signing
        finally:
            running.cancel()


@pytest.fixture
async def view(m):
    m.reachability.script = Said(TUNNELS)
    return await gang(m)


async def test_a_bug_in_writing_down_what_peer_links_carried_ends_no_master(m, monkeypatch):
    is_written, bugs = asyncio.Event(), [ZeroDivisionError("of one row")]

    async def write_down(tally, store, name):
        if bugs:
            raise bugs.pop()
        is_written.set()

    monkeypatch.setattr(overlay, "write_down", write_down)
    async with joining(m):
        await is_written.wait()


async def test_both_ends_are_shown_the_others_key_and_a_grant_of_their_own(m, view):
    async with joining(m) as (service, broker, signing):
        await poll_async(lambda: service.count == 1)
        low, high = broker.ends
        shown = await m.clusters.get(principal(), view.cluster.cluster_id)
    grants = [read_grant(end.opening.tunnel_grant, signing.public, m.clock.wall_ns()) for end in (low, high)]
    assert {end.opening.purpose for end in broker.ends} == {ChannelPurpose.CORD}
    assert (low.shown, high.shown) == (
        [b"key of " + high.opening.cord_own.encode()],
        [b"key of " + low.opening.cord_own.encode()],
    )
    assert [one.side for one in grants] == [TunnelSide.HOST, TunnelSide.RENTER]
    assert len({(one.tunnel_id, one.host_id, one.workload_id, one.cluster_id) for one in grants}) == 1
    assert low.opening.cord_peer == high.opening.cord_own and low.opening.cord_own < high.opening.cord_own
    assert low.opening.tunnel_address == high.opening.tunnel_address == "in:2", "of the same Access"
    assert (shown.peer_links, shown.peer_link_problem) == ((True,), "")


async def test_the_end_of_another_access_comes_from_outside(m, view):
    one, other = (by_rank(view)[rank].host_id for rank in (0, 1))
    places = {one: PLACES, other: TunnelAddresses("out:3", "in:4")}
    async with joining(m, places) as (service, broker, _):
        await poll_async(lambda: service.count == 1)
    assert [end.opening.tunnel_address for end in broker.ends] == ["in:2", "out:1"]


async def test_a_peer_link_that_breaks_is_made_again_and_what_it_carried_is_counted(m, view):
    async with joining(m) as (service, broker, _):
        await poll_async(lambda: service.count == 1)
        broker.ends[0].said.put_nowait(ChannelData(b"50 5"))
        broker.ends[1].said.put_nowait(LinkClosed("The host has gone."))
        await poll_async(lambda: len(broker.ends) == 4 and service.count == 1)
        assert [end.closed for end in broker.ends] == [True, True, False, False]

        def carried():
            return m.read(lambda uow: uow[TrafficRepository].get(view.cluster.cluster_id))

        await poll_async(lambda: carried().connections == 2)
        assert (carried().bytes_in, carried().bytes_out) == (70, 9)


async def test_a_host_that_is_away_is_the_problem_that_is_shown(m, view):
    async with joining(m) as (_, broker, _):
        broker.away.add(by_rank(view)[1].host_id)
        await poll_async(
            lambda: [one.problem for one in m.rented.peer_links(view.cluster.cluster_id)] == ["It is away."]
        )
        assert all(end.closed for end in broker.ends), "nobody waits at its other end"


async def test_deleting_the_cluster_ends_its_peer_links(m, view):
    async with joining(m) as (service, broker, _):
        await poll_async(lambda: service.count == 1)
        prepared(m, view)
        await m.clusters.delete(principal(), view.cluster.cluster_id)
        await poll_async(lambda: all(end.closed for end in broker.ends))
        assert (service.count, m.rented.peer_links(view.cluster.cluster_id)) == (0, ())
