"""Sets of sequences behave like sets of numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_proto.errors import TooMany
from windrow_proto.ids import BootId
from windrow_proto.intervals import RANGES_MAX, Intervals
from windrow_proto.model import Lane

numbers = st.sets(st.integers(1, 60), max_size=40)


def _of(members: set[int]) -> Intervals:
    return Intervals.of((n, n) for n in members)


def _members(found: Intervals) -> set[int]:
    return {n for first, last in found.ranges for n in range(first, last + 1)}


@given(numbers, numbers, st.integers(1, 61))
def test_it_is_a_set_of_numbers(a, b, n):
    left, right = _of(a), _of(b)

    assert _members(left) == a
    assert left.count == len(a)
    assert left.highest == max(a, default=0)
    assert left.contains(n) == (n in a)
    assert _members(left.add(n)) == a | {n}
    assert _members(left.union(right)) == a | b
    assert _members(left.without(right)) == a - b
    assert _members(left.missing_below(n)) == set(range(1, n)) - a
    assert left.through == next(k for k in range(62) if k + 1 not in a)
    assert left.add(n) == Intervals.of([*left.ranges, (n, n)])


@given(numbers)
def test_its_ranges_never_touch_and_survive_as_marks(a):
    found = _of(a)

    assert all(before[1] + 1 < after[0] for before, after in zip(found.ranges, found.ranges[1:], strict=False))
    assert Intervals.from_marks(found.to_marks(Lane.EVIDENCE, BootId(bytes(16)))) == found


def test_it_is_bounded_and_says_so():
    full = Intervals.of((n, n) for n in range(1, 2 * RANGES_MAX, 2))

    with pytest.raises(TooMany):
        full.add(10_000_000)
    assert full.add(2).contains(2)


@pytest.mark.parametrize("bad", [(0, 1), (2, 1), (1, 1 << 64)])
def test_what_is_no_range_is_refused(bad):
    with pytest.raises(ValueError, match="not a range"):
        Intervals().add_range(*bad)
