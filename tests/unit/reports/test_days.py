"""The days of reports: periods in words, time zones, and days of 23 and 25 hours."""

from datetime import date
from itertools import pairwise

import pytest

from windrow_master.reports.days import DAYS_MAX, Days, days_of
from windrow_proto.errors import InvalidInput
from windrow_proto.units import SECOND

NOON = 1_764_417_600 * SECOND
"""2025-11-29, 12:00 in UTC, a Saturday."""


@pytest.mark.parametrize(
    ("period", "first", "last"),
    [
        (None, "2025-11-01", "2025-11-29"),
        ("today", "2025-11-29", "2025-11-29"),
        ("yesterday", "2025-11-28", "2025-11-28"),
        ("last-7-days", "2025-11-22", "2025-11-28"),
        ("last-week", "2025-11-17", "2025-11-23"),
        ("last-month", "2025-10-01", "2025-10-31"),
        ("this-year", "2025-01-01", "2025-11-29"),
        ("2024-02", "2024-02-01", "2024-02-29"),
        ("2025-11", "2025-11-01", "2025-11-29"),
    ],
)
def test_a_period_is_said_in_words(period, first, last):
    assert days_of("UTC", NOON, period) == Days(date.fromisoformat(first), date.fromisoformat(last))


def test_days_begin_at_midnight_of_their_zone():
    assert days_of("Pacific/Auckland", NOON, "today").first == date(2025, 11, 30)
    hours = {
        zone: [(end - begin) // 3600 for begin, end in pairwise(edges)]
        for zone, first, last in (
            ("UTC", "2025-03-29", "2025-03-31"),
            ("Europe/Berlin", "2025-03-29", "2025-03-31"),
            ("America/New_York", "2025-11-01", "2025-11-03"),
            ("Africa/Cairo", "2025-04-24", "2025-04-26"),  # clocks go forward at midnight: 0:00 is not there
        )
        for edges in [Days(date.fromisoformat(first), date.fromisoformat(last), zone).edges(by_day=True)]
    }
    assert hours == {
        "UTC": [24, 24, 24],
        "Europe/Berlin": [24, 23, 24],
        "America/New_York": [24, 25, 24],
        "Africa/Cairo": [24, 23, 24],
    }


@pytest.mark.parametrize(
    "asked",
    [
        {"period": "soon"},
        {"period": "2025-13"},
        {"period": "today", "first": "2025-11-01"},
        {"first": "2025-11-31"},
        {"first": "2025-11-20", "last": "2025-11-19"},
        {"first": "0001-01-01"},
        {"first": "2023-01-01"},
        {"first": "2025-W01-1"},
    ],
)
def test_what_is_no_period_is_refused(asked):
    with pytest.raises(InvalidInput):
        days_of("UTC", NOON, **asked)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../../etc/passwd", "/etc/passwd", "Europe", "x" * 64, "a\0b"])
def test_an_unknown_time_zone_is_refused(zone):
    with pytest.raises(InvalidInput, match="time_zone"):
        days_of(zone, NOON)
    assert DAYS_MAX > 366
