"""The days of a report in a time zone: a day has 23 or 25 hours where clocks change."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from windrow_proto.errors import InvalidInput
from windrow_proto.units import SECOND

DAYS_MAX: Final = 400
"""A year and what one compares it with."""
UTC_NAME: Final = "UTC"
PERIODS: Final = ("today", "yesterday", "last-7-days", "last-week", "this-month", "last-month", "this-year")
"""Words for a period; those of a schedule are meant at the time when it is sent."""


def zone_of(name: str) -> ZoneInfo:
    """A time zone by its name, such as Europe/Berlin. Raises InvalidInput."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):  # a name that is no file, or a folder
        raise InvalidInput(f"time_zone: {name[:64]} is no known time zone such as Europe/Berlin.") from None


@dataclass(frozen=True, slots=True)
class Days:
    """Whole days in a time zone, the last one included."""

    first: date
    last: date
    zone: str = UTC_NAME

    @property
    def dates(self) -> Sequence[date]:
        """Each of them."""
        return [self.first + timedelta(days=n) for n in range((self.last - self.first).days + 1)]

    def edges(self, by_day: bool) -> list[int]:
        """The seconds since 1970 at which they begin and the last one ends; by_day False: begin and end alone."""
        zone = zone_of(self.zone)
        ends = [*self.dates, self.last + timedelta(days=1)] if by_day else [self.first, self.last + timedelta(days=1)]
        return [int(datetime.combine(one, time(), zone).timestamp()) for one in ends]

    @property
    def begin_ns(self) -> int:
        """When the first one begins."""
        return self.edges(by_day=False)[0] * SECOND

    @property
    def end_ns(self) -> int:
        """When the last one ends."""
        return self.edges(by_day=False)[1] * SECOND

    def only(self, text: str) -> "Days":
        """One of them. Raises InvalidInput for a day that is none of them."""
        day = _date("day", text)
        if not self.first <= day <= self.last:
            raise InvalidInput(f"day: {text} is not in the period.", subject="day")
        return Days(day, day, self.zone)


def days_of(zone: str, now_ns: int, period: str | None = None, first: str = "", last: str = "") -> Days:
    """The days of a period (one of PERIODS, or a month as 2026-11), or of two dates; by default this month. Raises
    InvalidInput."""
    today = datetime.fromtimestamp(now_ns // SECOND, UTC).astimezone(zone_of(zone)).date()
    if period and (first or last):
        raise InvalidInput("Give a period, or `from` and `to`.", subject="period")
    if first or last:
        found = Days(_date("from", first or last), _date("to", last) if last else today, zone)
    else:
        found = Days(*_period(period or "this-month", today), zone)
    if found.last < found.first:
        raise InvalidInput(f"from: {found.first} is after {found.last}.", subject="from")
    if (found.last - found.first).days >= DAYS_MAX:
        raise InvalidInput(f"A report has at most {DAYS_MAX} days. Ask for a shorter period.", subject="from")
    return found


def _period(period: str, today: date) -> tuple[date, date]:
    day = timedelta(days=1)
    week, month = today - today.weekday() * day, today.replace(day=1)
    known = {
        "today": (today, today),
        "yesterday": (today - day, today - day),
        "last-7-days": (today - 7 * day, today - day),
        "last-week": (week - 7 * day, week - day),
        "this-month": (month, today),
        "last-month": ((month - day).replace(day=1), month - day),
        "this-year": (today.replace(month=1, day=1), today),
    }
    if period in known:
        return known[period]
    first = _date("period", f"{period}-01")
    return first, min(today, (first + 31 * day).replace(day=1) - day) if first <= today else first


def _date(name: str, text: str) -> date:
    try:
        found = date.fromisoformat(text)
    except ValueError:
        found = date.min
    if not 1971 <= found.year <= 9000 or found.isoformat() != text:
        ways = f", a month such as 2026-11, or one of {', '.join(PERIODS)}" if name == "period" else ""
        raise InvalidInput(f"{name}: {text[:40]} is no date such as 2026-11-29{ways}.", subject=name)
    return found
