"""A stream over a partition ends by its keepalive, also where the other end had ended it with words under way."""

import asyncio

import pytest

from tests.simulation.loop import SeededRng, VirtualClock, VirtualLoop, run
from tests.support.links import frame
from windrow_proto.errors import LinkClosed
from windrow_proto.link_memory import KEEPALIVE_NS, MemoryNetwork, Weather
from windrow_proto.ports import PeerFacts
from windrow_proto.units import SECOND

PEER = PeerFacts("host", "host_1", 1, 1 << 62, "10.0.0.1:1", b"")


class SaysOneThing:
    """Sends one frame and ends the stream."""

    async def accepted(self, peer, link):
        await link.send(frame(1))


async def _history(loop: VirtualLoop) -> int:
    clock = VirtualClock(loop)
    async with MemoryNetwork(clock, SeededRng("1"), Weather(SECOND, SECOND)) as network:
        await network.serve_agents("access:1", SaysOneThing())  # type: ignore[arg-type]  # it is never pinged
        link = await network.dialer(PEER).connect("access:1", 10 * SECOND)
        await asyncio.sleep(0.1)
        network.partition("host_1", "access:1")
        with pytest.raises(LinkClosed):
            await link.receive()
        return clock.monotonic_ns()


def test_what_was_under_way_when_a_partition_came_is_lost_when_the_keepalive_ends_it() -> None:
    assert run(1, _history) <= 3 * SECOND + KEEPALIVE_NS
