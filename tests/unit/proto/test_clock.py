"""The system's clocks and randomness do what their ports say."""

import os
from concurrent.futures import ThreadPoolExecutor

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


def test_short_randomness_never_comes_twice_in_other_threads_or_after_a_fork():
    rng = SystemRng()
    rng.random_bytes(8)

    def draw(_: object = None) -> list[bytes]:
        return [rng.random_bytes(10) for _ in range(200)]

    with ThreadPoolExecutor(4) as threads:
        found = [one for many in threads.map(draw, range(4)) for one in many]
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, b"".join(draw()))
        os._exit(0)
    os.waitpid(child, 0)
    said = os.read(read, 2_000)
    found += [*draw(), *(said[at : at + 10] for at in range(0, 2_000, 10))]

    assert {len(one) for one in found} == {10}
    assert len(set(found)) == len(found) == 1_200
