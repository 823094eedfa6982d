"""A stream over a partition ends by its keepalive, also where the other end had ended it with words under way; and what
its ends know of each other while it is cut, in one direction or in both."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.simulation.loop import SeededRng, VirtualClock, VirtualLoop, run
from tests.support.links import frame
from windrow_proto.errors import LinkClosed
from windrow_proto.link_memory import KEEPALIVE_NS, MemoryNetwork, Way, Weather
from windrow_proto.ports import FrameLink, PeerFacts
from windrow_proto.units import MILLISECOND, SECOND

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


class Sink:
    """Takes frames, says one each second, and notes what came and how it ended."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.came: list[int] = []
        self.over_ns: int | None = None

    async def accepted(self, peer: PeerFacts, link: FrameLink) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                talk = tasks.create_task(self._talk(link))
                try:
                    while True:
                        self.came.append((await link.receive()).sequence)
                finally:
                    talk.cancel()
        except* LinkClosed:
            self.over_ns = self.clock.monotonic_ns()

    async def _talk(self, link: FrameLink) -> None:
        for number in range(1, 100):
            await self.clock.sleep_ns(SECOND)
            await link.send(frame(number))


Step = Callable[[MemoryNetwork, Sink, FrameLink], Coroutine[Any, Any, None]]


def with_a_sink(step: Step) -> None:
    """Connect to a sink and do this, in virtual time."""

    async def history(loop: VirtualLoop) -> None:
        clock = VirtualClock(loop)
        sink = Sink(clock)
        weather = Weather(MILLISECOND, MILLISECOND)
        async with MemoryNetwork(clock, SeededRng("1"), weather, loop.wake_at) as network:
            await network.serve_agents("access:1", sink)  # type: ignore[arg-type]  # it is never pinged
            await step(network, sink, await network.dialer(PEER).connect("access:1", 10 * SECOND))

    run(1, history)


def test_a_stream_cut_one_way_carries_the_other_and_brings_the_rest_when_it_heals() -> None:
    async def step(network: MemoryNetwork, sink: Sink, link: FrameLink) -> None:
        network.partition("host_1", "access:1", frozenset({Way.UP}))
        for number in (1, 2):
            await link.send(frame(number))
        heard = [(await link.receive()).sequence for _ in range(3)]
        came_meanwhile = list(sink.came)
        network.heal("host_1", "access:1")
        await asyncio.sleep(1)

        assert heard == [1, 2, 3]
        assert came_meanwhile == []
        assert sink.came == [1, 2]

    with_a_sink(step)


def test_a_stream_cut_the_other_way_carries_what_the_dialer_says() -> None:
    async def step(network: MemoryNetwork, sink: Sink, link: FrameLink) -> None:
        network.partition("host_1", "access:1", frozenset({Way.DOWN}))
        await link.send(frame(1))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await link.receive()

        assert sink.came == [1]

    with_a_sink(step)


def test_who_is_cut_off_does_not_hear_that_the_other_end_is_gone_and_notices_later_by_itself() -> None:
    async def step(network: MemoryNetwork, sink: Sink, link: FrameLink) -> None:
        network.partition("host_1", "access:1")
        await link.close()
        await asyncio.sleep(KEEPALIVE_NS / SECOND - 1)
        is_over_soon = sink.over_ns is not None
        await asyncio.sleep(2 * KEEPALIVE_NS / SECOND)

        assert not is_over_soon
        assert sink.over_ns is not None
        assert KEEPALIVE_NS <= sink.over_ns <= 2 * KEEPALIVE_NS + SECOND

    with_a_sink(step)


def test_what_was_said_before_the_end_comes_before_the_end_when_a_cut_heals() -> None:
    async def step(network: MemoryNetwork, sink: Sink, link: FrameLink) -> None:
        network.partition("host_1", "access:1")
        await link.send(frame(1))
        await link.close()
        await asyncio.sleep(3)
        network.heal()
        await asyncio.sleep(1)

        assert sink.came == [1]
        assert sink.over_ns is not None

    with_a_sink(step)


def test_a_cut_that_comes_while_somebody_dials_is_a_cut() -> None:
    async def step(network: MemoryNetwork, sink: Sink, link: FrameLink) -> None:
        network.weather = Weather(SECOND, SECOND)
        asyncio.get_running_loop().call_later(1, network.partition, "host_1", "access:1")

        with pytest.raises(LinkClosed, match="No answer"):
            await network.dialer(PEER).connect("access:1", 10 * SECOND)

    with_a_sink(step)
