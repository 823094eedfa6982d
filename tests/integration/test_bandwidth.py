"""A bandwidth measurement between the agent's and the relay's halves, over real streams with mutual TLS."""

import pytest

from tests.support.links import ACCESS, Acceptor, GrpcWorld
from windrow_access.probes import AT_ONCE_MAX, Bandwidth
from windrow_agent.link.bandwidth_probe import measure
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.errors import Unavailable
from windrow_proto.ids import AccessId
from windrow_proto.keys import SigningKey
from windrow_proto.model import BandwidthSpec
from windrow_proto.ports import BandwidthLink, PeerFacts, PingAnswer
from windrow_proto.units import MIB, SECOND

SPEC = BandwidthSpec(SECOND // 10, 4 * MIB, "a" * 32)
ANSWER = PingAnswer(1_000_000, ACCESS, "eu", 0, False)


class Hurried(SystemClock):
    """Time that goes on at once when somebody sleeps; remembers for how long they would have slept."""

    def __init__(self) -> None:
        self.slept_ns: list[int] = []

    async def sleep_ns(self, duration_ns: int) -> None:
        self.slept_ns.append(duration_ns)


class Busy(Acceptor):
    """An Access that measures as many others as it may until it was asked `times` times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times
        self.asked = 0
        self.bandwidth = Bandwidth(AccessId(ACCESS), SigningKey.generate(), SystemClock(), SystemRng())

    async def measured(self, peer: PeerFacts, link: BandwidthLink) -> None:
        self.asked += 1
        self.bandwidth._running = AT_ONCE_MAX if self.asked <= self.times else 0
        await self.bandwidth.serve(peer.host_id, link)


@pytest.fixture
async def grpc_world():
    world = GrpcWorld()
    yield world
    await world.close()


async def test_a_host_that_finds_the_access_busy_comes_back_and_is_measured(grpc_world):
    acceptor, clock = Busy(AT_ONCE_MAX + 1), Hurried()
    address = await grpc_world.agents(acceptor)

    result = await measure(grpc_world.dialer(), address, SPEC, ANSWER, clock, SystemRng())

    assert result.up_bytes > 0 and result.down_bytes > 0
    assert acceptor.asked == AT_ONCE_MAX + 2
    assert len(clock.slept_ns) == AT_ONCE_MAX + 1 and all(2 * SECOND <= ns <= 6 * SECOND for ns in clock.slept_ns)


async def test_an_access_that_stays_busy_is_said_after_a_bounded_number_of_tries(grpc_world):
    acceptor, clock = Busy(100), Hurried()
    address = await grpc_world.agents(acceptor)

    with pytest.raises(Unavailable, match="measures two hosts already"):
        await measure(grpc_world.dialer(), address, SPEC, ANSWER, clock, SystemRng())

    assert acceptor.asked == 8


async def test_under_a_ceiling_neither_direction_is_faster(grpc_world):
    address = await grpc_world.agents(Busy(0))
    spec = BandwidthSpec(SECOND, 40 * 1000 * 1000 // 8, "a" * 32)

    result = await measure(grpc_world.dialer(), address, spec, ANSWER, SystemClock(), SystemRng(), 40_000_000)

    assert 0 < result.up_bits_per_s <= 40_000_000 and 0 < result.down_bits_per_s <= 40_000_000
