"""Sums by keys, and charges divided among days, for any lines: nothing is lost, nothing is counted twice."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from windrow_master.reports.sums import BEGIN, FIGURES, SPAN, Lines, cut, grouped, part

LINES = st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(1, 4 * 10**5), st.integers(0, 2**53), st.integers(0, 4)),
    min_size=1,
    max_size=30,
)
EDGES = st.lists(st.integers(0, 2 * 10**6), min_size=2, max_size=40).map(sorted)


@given(LINES, EDGES)
def test_the_parts_of_all_days_add_up_to_the_part_of_the_period(found, edges):
    figures = np.zeros((FIGURES, len(found)), np.int64)
    figures[BEGIN], figures[SPAN] = [one[0] for one in found], [one[1] for one in found]
    lines = Lines(np.array([b"w"] * len(found)), figures, np.zeros((5, len(found)), np.int64))
    totals = np.array([one[2] for one in found], np.int64)
    days, whole = cut(lines, edges), cut(lines, [edges[0], edges[-1]])
    sums = Counter[int]()
    for line, amount in zip(days.line.tolist(), part(totals, figures[SPAN], days).tolist(), strict=True):
        sums[line] += amount
    wanted = Counter(dict(zip(whole.line.tolist(), part(totals, figures[SPAN], whole).tolist(), strict=True)))
    assert +sums == +wanted
    for line, day in zip(days.line.tolist(), days.day.tolist(), strict=True):
        begin, span = found[line][:2]
        assert begin < edges[day + 1] or edges[day] == edges[day + 1]
        assert begin + span > edges[day] or edges[day] == edges[day + 1]
    everything = cut(lines, [0, 2 * 10**6])
    assert part(totals, figures[SPAN], everything).sum() == totals.sum()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 300), st.integers(-(2**55), 2**55)), max_size=60))
def test_sums_by_two_keys_are_exact(found):
    keys = [np.array([one[place] for one in found], np.int64) for place in (0, 1)]
    (first, second), (sums,) = grouped(keys, [np.array([one[2] for one in found], np.int64)])
    wanted = Counter[tuple[int, int]]()
    for one, other, value in found:
        wanted[one, other] += value
    assert dict(zip(zip(first.tolist(), second.tolist(), strict=True), sums.tolist(), strict=True)) == dict(wanted)
