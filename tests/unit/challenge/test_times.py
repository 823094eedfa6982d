"""The judgement by time: only of calibrated classes, and of cards that were asked together."""

import pytest

from windrow_master.verification.times import (
    LIMIT_NS,
    SAMPLES_MIN,
    STANDARD,
    TIMES,
    UNMEASURED,
    Pace,
    Timing,
    are_together,
    calibrate,
    pace,
    timing,
)
from windrow_proto.units import SECOND

ROW = calibrate([n * SECOND for n in range(1, 21)], "a test")


def test_a_row_is_calibrated_by_enough_samples_and_says_from_where():
    few = calibrate([SECOND] * (SAMPLES_MIN - 1), "a test")

    assert (ROW.p5_ns, ROW.p50_ns, ROW.p95_ns) == (SECOND, 10 * SECOND, 19 * SECOND)
    assert (ROW.calibrated, ROW.source) == (True, "a test")
    assert (few.p50_ns, few.calibrated) == (SECOND, False)
    assert calibrate([], "nothing") == UNMEASURED


def test_every_row_of_the_table_that_gates_was_measured():
    assert all(row.p95_ns and row.source != UNMEASURED.source for row in TIMES.values() if row.calibrated)
    assert timing("a class that nobody measured", STANDARD) == UNMEASURED


@pytest.mark.parametrize(
    ("row", "span_ns", "expected"),
    [
        (UNMEASURED, LIMIT_NS, Pace.OBSERVED),
        (ROW, 1, Pace.EXPECTED),
        (ROW, 28_500_000_000, Pace.EXPECTED),
        (ROW, 28_500_000_001, Pace.TOO_SLOW),
    ],
)
def test_a_span_is_judged_only_by_a_calibrated_row(row, span_ns, expected):
    assert pace(row, span_ns) is expected


def test_no_row_allows_more_than_the_limit():
    assert Timing(p95_ns=LIMIT_NS, calibrated=True).limit_ns == UNMEASURED.limit_ns == LIMIT_NS


def test_one_card_that_answers_for_eight_is_not_together():
    assert are_together([5 * SECOND] * 7 + [7 * SECOND])
    assert not are_together([n * 5 * SECOND for n in range(1, 9)])
    assert are_together([])
