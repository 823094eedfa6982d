"""When a message is sent: quiet hours over changes of the clock, digests, pauses between tries."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_master.watch.notify.model import Channel, ChannelKind, Quiet
from windrow_master.watch.notify.schedule import LIFE_NS, held_until, pause_ns, quiet_end
from windrow_proto.conditions import Severity
from windrow_proto.units import DAY, HOUR, MINUTE, SECOND

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = Quiet(22 * 60, 7 * 60, "Europe/Berlin")


def at(text: str) -> int:
    """A time in UTC, in nanoseconds."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND


def channel(**more: Any) -> Channel:
    usual: dict[str, Any] = {
        "channel_id": "channel_1",
        "owner": "operators",
        "kind": ChannelKind.MAIL,
        "name": "mail",
        "sealed": b"",
        "shown": "a@example.org",
        "min_severity": Severity.INFO,
        "created_by": "test",
        "created_at_ns": 0,
    }
    return Channel(**usual | more)


@pytest.mark.parametrize(
    ("now", "end"),
    [
        ("2026-11-10 20:59", None),
        ("2026-11-10 21:00", "2026-11-11 06:00"),
        ("2026-11-11 05:59", "2026-11-11 06:00"),
        ("2026-11-11 06:00", None),
        ("2026-03-28 21:00", "2026-03-29 05:00"),  # the night of 9 hours has 8
        ("2026-10-24 20:00", "2026-10-25 06:00"),  # and this one 10
    ],
)
def test_quiet_hours_go_by_the_clock_on_the_wall(now: str, end: str | None) -> None:
    assert quiet_end(NIGHT, BERLIN, at(now)) == (None if end is None else at(end))


def test_an_end_that_a_day_does_not_have_is_the_first_minute_behind_it() -> None:
    quiet = Quiet(0, 2 * 60 + 30, "Europe/Berlin")  # 02:00 to 03:00 is left out on this day
    assert quiet_end(quiet, BERLIN, at("2026-03-29 00:30")) == at("2026-03-29 01:00")


def test_an_hour_that_comes_twice_is_quiet_twice() -> None:
    quiet = Quiet(2 * 60, 2 * 60 + 30, "Europe/Berlin")
    assert quiet_end(quiet, BERLIN, at("2026-10-25 00:10")) == at("2026-10-25 00:30")
    assert quiet_end(quiet, BERLIN, at("2026-10-25 00:40")) is None
    assert quiet_end(quiet, BERLIN, at("2026-10-25 01:10")) == at("2026-10-25 01:30")


@given(
    st.integers(at("2026-01-01") // SECOND, at("2027-01-01") // SECOND),
    st.integers(0, 1439),
    st.integers(0, 1439),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]),
)
def test_the_end_of_quiet_hours_is_later_within_a_day_and_not_quiet(
    now_s: int, begin: int, end: int, name: str
) -> None:
    quiet, zone = Quiet(begin, end, name), ZoneInfo(name)
    found = quiet_end(quiet, zone, now_s * SECOND)
    if begin != end and found is not None:
        assert now_s * SECOND < found <= now_s * SECOND + DAY + HOUR
        assert quiet_end(quiet, zone, found) is None


def test_what_can_wait_waits_for_the_digest_and_for_the_end_of_the_night() -> None:
    hourly = channel(digest_minutes=60)
    assert held_until(hourly, Severity.TICKET, BERLIN, at("2026-11-10 12:10")) == at("2026-11-10 13:00")
    assert held_until(hourly, Severity.TICKET, BERLIN, at("2026-11-10 12:00")) == at("2026-11-10 13:00")
    both = channel(digest_minutes=60, quiet=NIGHT)
    assert held_until(both, Severity.TICKET, BERLIN, at("2026-11-10 20:30")) == at("2026-11-11 06:00")
    assert held_until(both, Severity.PAGE, BERLIN, at("2026-11-10 23:30")) is None
    assert held_until(channel(), Severity.INFO, BERLIN, at("2026-11-10 23:30")) is None


def test_pauses_grow_to_an_hour_and_differ_by_a_fifth() -> None:
    assert [pause_ns(tries, 0.5) // SECOND for tries in range(1, 8)] == [5, 20, 80, 320, 1280, 3600, 3600]
    assert (pause_ns(1, 0.0), pause_ns(10_000, 0.999_999) < 72 * MINUTE) == (4 * SECOND, True)
    at_ns = [0]
    while at_ns[-1] < LIFE_NS:
        at_ns.append(at_ns[-1] + pause_ns(len(at_ns), 0.5))
    assert 70 < len(at_ns) < 85
    assert all(later > earlier for earlier, later in pairwise(at_ns))
