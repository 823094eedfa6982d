"""The system's clocks and randomness do what their ports say."""

from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.units import MILLISECOND


async def test_a_sleep_lasts_at_least_as_long_as_asked_and_time_only_grows():
    clock = SystemClock()
    begin = clock.monotonic_ns()

    await clock.sleep_ns(-1)
    await clock.sleep_ns(5 * MILLISECOND)

    assert clock.monotonic_ns() - begin >= 5 * MILLISECOND
    assert clock.wall_ns() > 1_700_000_000_000_000_000


def test_randomness_has_the_length_and_range_it_promises():
    rng = SystemRng()

    assert len(rng.random_bytes(16)) == 16
    assert rng.random_bytes(16) != rng.random_bytes(16)
    assert all(0 <= rng.uniform() < 1 for _ in range(50))
