"""Times of schedules: by the clock of their zone, also where it changes; at most once an hour."""

from datetime import UTC, datetime

import pytest

from windrow_master.reports.schedule import check, next_ns
from windrow_proto.errors import InvalidInput
from windrow_proto.units import SECOND


def after(cron, zone, text):
    at_ns = int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND
    return datetime.fromtimestamp(next_ns(cron, zone, at_ns) // SECOND, UTC).isoformat()[:16]


def test_a_time_is_meant_by_the_clock_of_its_zone():
    assert after("0 7 1 * *", "UTC", "2025-11-29T12:00") == "2025-12-01T07:00"
    assert after("0 7 * * *", "Europe/Berlin", "2025-03-29T12:00") == "2025-03-30T05:00"  # from then on by summer time
    assert after("0 7 * * *", "Europe/Berlin", "2025-03-28T12:00") == "2025-03-29T06:00"
    assert after("30 2 * * *", "Europe/Berlin", "2025-03-29T12:00") == "2025-03-30T01:00"  # 2:30 is not there: at 3:00
    assert after("30 2 * * *", "Europe/Berlin", "2025-10-26T00:30") == "2025-10-27T01:30"  # 2:30 is there twice: once


@pytest.mark.parametrize(
    "cron", ["", "often", "* * * *", "61 * * * *", "0 0 31 2 *", "@daily", "0 0 1 1 1 1", "0,30 7 * * *"]
)
def test_what_is_no_time_or_too_often_is_refused(cron):
    with pytest.raises(InvalidInput, match="cron"):
        check(cron, "UTC", 1_764_417_600 * SECOND)
    check("0 * * * *", "UTC", 1_764_417_600 * SECOND)
