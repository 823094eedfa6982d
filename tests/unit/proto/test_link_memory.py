"""The network in memory: seeded, delayed, broken and partitioned as told, and the same again for the same seed."""

import asyncio
import random

import pytest

from windrow_proto.errors import LinkClosed
from windrow_proto.link_memory import KEEPALIVE_NS, MemoryNetwork, Weather
from windrow_proto.ports import BandwidthLink, FrameLink, PeerFacts, PingFacts, PingLink
from windrow_proto.units import MILLISECOND, SECOND
from windrow_proto.v1 import link_pb2

PEER = PeerFacts("host", "host_1", 1, 1 << 62, "memory", bytes(32))


class LeapingClock:
    """Time that passes only by sleeping; fit for one sleeper at a time."""

    def __init__(self) -> None:
        self.now_ns = 0

    def monotonic_ns(self) -> int:
        return self.now_ns

    def wall_ns(self) -> int:
        return self.now_ns

    async def sleep_ns(self, duration_ns: int) -> None:
        self.now_ns += max(0, duration_ns)
        await asyncio.sleep(0)


class SeededRng:
    """The same numbers for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def random_bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def uniform(self) -> float:
        return self._random.random()


class Sink:
    """Takes frames and remembers when they came."""

    def __init__(self, clock: LeapingClock) -> None:
        self.clock = clock
        self.arrivals: list[tuple[int, int]] = []

    async def accepted(self, peer: PeerFacts, link: FrameLink) -> None:
        while True:
            frame = await link.receive()
            self.arrivals.append((frame.sequence, self.clock.now_ns))

    async def measured(self, peer: PeerFacts, link: BandwidthLink) -> None:
        await link.close()

    async def warmed(self, peer: PeerFacts, link: PingLink) -> None:
        await link.close()

    async def pinged(self, peer: PeerFacts) -> PingFacts:
        return PingFacts("acc_1", "eu", 0, False)


async def _history(seed: int, weather: Weather, count: int = 30) -> list[tuple[int, int]]:
    clock = LeapingClock()
    sink = Sink(clock)
    async with MemoryNetwork(clock, SeededRng(seed), weather) as network:
        await network.serve_agents("a", sink)
        link = await network.dialer(PEER).connect("a", 5 * SECOND)
        try:
            for n in range(1, count + 1):
                await link.send(link_pb2.Frame(sequence=n))
                await clock.sleep_ns(MILLISECOND)
        except LinkClosed:
            sink.arrivals.append((-1, clock.now_ns))
    return sink.arrivals


async def test_the_same_seed_gives_the_same_history_and_another_seed_another():
    weather = Weather(MILLISECOND, 50 * MILLISECOND, 0.02)

    assert await _history(1, weather) == await _history(1, weather)
    assert await _history(1, weather) != await _history(2, weather)


async def test_delayed_frames_stay_in_order():
    arrivals = await _history(3, Weather(MILLISECOND, 90 * MILLISECOND))

    assert [n for n, _ in arrivals] == sorted(n for n, _ in arrivals)


async def test_a_partition_is_silent_until_the_keepalive_ends_the_stream_and_the_next_dial_waits_in_vain():
    clock = LeapingClock()
    async with MemoryNetwork(clock, SeededRng(1)) as network:
        await network.serve_agents("a", Sink(clock))
        link = await network.dialer(PEER).connect("a", 5 * SECOND)
        begin = clock.now_ns
        network.partition("host_1", "a")

        with pytest.raises(LinkClosed, match="keepalive"):
            await link.receive()
        assert clock.now_ns - begin >= KEEPALIVE_NS
        with pytest.raises(LinkClosed, match="No answer"):
            await network.dialer(PEER).ping("a", 2 * SECOND)

        network.heal()
        assert (await network.dialer(PEER).ping("a", 2 * SECOND)).access_id == "acc_1"


async def test_a_reset_ends_the_streams_it_names_and_no_other():
    clock = LeapingClock()
    async with MemoryNetwork(clock, SeededRng(1)) as network:
        for address in ("a", "b"):
            await network.serve_agents(address, Sink(clock))
        links = [await network.dialer(PEER).connect(address, SECOND) for address in ("a", "b")]

        assert network.reset(address="a") == 1

        with pytest.raises(LinkClosed):
            await links[0].receive()
        await links[1].send(link_pb2.Frame(sequence=1))
