"""Months and days are of the calendar in UTC; a forecast says how it comes about."""

import pytest

from windrow_master.market.months import (
    FORECAST_METHOD,
    Cell,
    Month,
    by_day,
    day_text,
    forecast,
    months_since,
    rows_of,
    shortened,
)
from windrow_proto.units import DAY, HOUR, Microcents, parse_time

NOW = parse_time("2026-11-29T06:00:00Z")
END = Month(2026, 11).days.stop * DAY


def test_a_month_has_the_days_of_the_calendar_in_utc():
    assert [len(Month.parse(text).days) for text in ("2026-11", "2027-02", "2028-02")] == [30, 28, 29]
    assert (day_text(Month(2026, 12).days.start), str(Month(2026, 12).next)) == ("2026-12-01", "2027-01")
    assert Month.of(END - 1) == Month(2026, 11) and Month.of(END) == Month(2026, 12)
    with pytest.raises(ValueError):
        Month.parse("2026-13")


def test_the_months_that_can_be_chosen_begin_with_the_first_rental():
    assert [str(one) for one in months_since(parse_time("2026-09-30T23:59:59Z"), NOW)] == [
        "2026-11",
        "2026-10",
        "2026-09",
    ]
    assert months_since(None, NOW) == months_since(NOW + DAY, NOW) == [Month(2026, 11)]


def test_a_forecast_is_what_was_spent_and_the_mean_of_the_last_days_with_costs_until_the_end():
    week = [7 * 24 * 100] * 6 + [7 * 6 * 100]
    assert forecast(Microcents(5_000), week, NOW, END) == 5_000 + 7 * 100 * 42
    begun = [0, 0, 0, 0, 0, 2_400, 600]  # yesterday and six hours of today
    assert forecast(Microcents(3_000), begun, NOW, END) == 3_000 + 100 * 42
    assert forecast(Microcents(9), [0] * 7, NOW, END) == 9
    first_minutes = [0] * 6 + [50]
    assert forecast(Microcents(50), first_minutes, NOW - 6 * HOUR + 1, END) <= 50 + 50 * 48
    assert "last 7 days" in FORECAST_METHOD


def test_rows_add_up_to_the_days_also_where_the_least_are_one_row():
    cells = [Cell(f"k{n}", day, 10 * n + day, 60) for n in range(6) for day in range(1, 4)]
    rows = rows_of([*cells, Cell("k1", 9, 5, 5)], range(1, 4), lambda key: key.replace("k5", "k4"))
    assert [row.key for row in rows] == ["k4", "k3", "k2", "k1", "k0"]
    short = shortened(rows, 3, "others")
    assert [row.key for row in short] == ["k4", "k3", "others"]
    assert (
        by_day(short, range(1, 4))
        == by_day(rows, range(1, 4))
        == [sum(10 * n + day for n in range(6)) for day in range(1, 4)]
    )
    assert sum(row.seconds for row in short) == 60 * len(cells)
    assert sum(row.amount for row in short) == sum(cell.amount for cell in cells)
