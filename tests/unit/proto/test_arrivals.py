"""Counts of the receiver of a measurement: not a burst at the beginning, and all where little is left."""

from windrow_proto.bandwidth import Arrivals
from windrow_proto.units import MILLISECOND, SECOND


def came(duration_ns, *chunks):
    """Chunks of so many bytes at these milliseconds."""
    found = Arrivals(duration_ns)
    for at_ms, size in chunks:
        found.came(size, at_ms * MILLISECOND)
    return found


def test_a_burst_at_the_beginning_does_not_count():
    found = came(4 * SECOND, (0, 1_000_000), *((at_ms, 100_000) for at_ms in range(100, 4_001, 100)))
    assert (found.total_bytes, found.elapsed_ns(4 * SECOND)) == (5_000_000, 4 * SECOND)
    assert found.bits_per_s(4 * SECOND) == 8_000_000


def test_what_was_over_before_or_just_after_the_warm_up_counts_whole():
    assert came(4 * SECOND, (0, 500_000), (400, 500_000)).bits_per_s(500 * MILLISECOND) == 16_000_000
    assert came(4 * SECOND, (0, 600_000), (900, 300_000), (1_000, 50_000), (1_900, 50_000)).bits_per_s(2 * SECOND) == (
        4_000_000
    )


def test_nothing_is_no_rate():
    assert Arrivals(SECOND).bits_per_s(5) == 0
    assert came(SECOND, (7, 100)).bits_per_s(7 * MILLISECOND) == 0
