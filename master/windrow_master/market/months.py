"""Sums money by calendar month and day, both in UTC, and forecasts what a month will cost. Pure.

Days are counted from the epoch. A run counts for the days in which its billed time lies, and a month is the sum of its
days.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Final

from windrow_master.market.model import NOTHING
from windrow_proto.units import DAY, HOUR, SECOND, Microcents

RECENT_DAYS: Final = 7
"""Days whose mean a forecast rests on: a week has every kind of day once."""
FORECAST_METHOD: Final = (
    f"Spent so far, plus the mean of the last {RECENT_DAYS} days (from the first one with costs) until the month ends"
)
EPOCH_YEAR: Final = 1970
_EPOCH: Final = date(EPOCH_YEAR, 1, 1).toordinal()


@dataclass(frozen=True, slots=True, order=True)
class Month:
    """A calendar month."""

    year: int
    month: int

    @classmethod
    def of(cls, wall_ns: int) -> "Month":
        """The month in which a wall time lies."""
        at = datetime.fromtimestamp(wall_ns // SECOND, UTC)
        return cls(at.year, at.month)

    @classmethod
    def parse(cls, text: str) -> "Month":
        """The month of a text such as 2026-11; raises ValueError, and before the epoch: nothing was sold then."""
        at = date.fromisoformat(f"{text}-01")
        if at.year < EPOCH_YEAR:
            raise ValueError(f"a month is in {EPOCH_YEAR} or later")
        return cls(at.year, at.month)

    @property
    def next(self) -> "Month":
        """The month after it."""
        return Month(self.year + self.month // 12, self.month % 12 + 1)

    @property
    def days(self) -> range:
        """Its days."""
        first, end = (date(one.year, one.month, 1).toordinal() - _EPOCH for one in (self, self.next))
        return range(first, end)

    def __str__(self) -> str:
        return f"{self.year:04d}-{self.month:02d}"


def months_since(first_ns: int | None, now_ns: int) -> list[Month]:
    """All months from that of the first wall time to the present one, the latest first; None: the present one."""
    now = Month.of(now_ns)
    one = now if first_ns is None else min(now, Month.of(first_ns))
    found = [one]
    while one < now:
        one = one.next
        found.append(one)
    return found[::-1]


def day_text(day: int) -> str:
    """A day as 2026-11-29."""
    return date.fromordinal(day + _EPOCH).isoformat()


def forecast(spent: Microcents, recent: Sequence[int], now_ns: int, end_ns: int) -> Microcents:
    """The cost of a month that goes on (FORECAST_METHOD), rounded down. recent: by day, the last one is today."""
    first = next((index for index, amount in enumerate(recent) if amount), None)
    if first is None:
        return spent
    span_ns = max(HOUR, (len(recent) - first - 1) * DAY + now_ns % DAY)
    return Microcents(spent + sum(recent[first:]) * max(0, end_ns - now_ns) // span_ns)


@dataclass(frozen=True, slots=True)
class Cell:
    """The sums of one day and one key. seconds: of billed time; fee: the platform's share, in `amount` or beside it."""

    key: str
    day: int
    amount: int
    seconds: int
    fee: int = 0


@dataclass(slots=True)
class Row:
    """The sums of one key. days: its amounts by day."""

    key: str
    amount: Microcents = NOTHING
    seconds: int = 0
    fee: Microcents = NOTHING
    days: dict[int, int] = field(default_factory=dict)

    def add(self, day: int, amount: int, seconds: int, fee: int = 0) -> None:
        """More of one day."""
        self.amount = Microcents(self.amount + amount)
        self.fee = Microcents(self.fee + fee)
        self.seconds += seconds
        self.days[day] = self.days.get(day, 0) + amount


def rows_of(cells: Iterable[Cell], days: range, key_of: Callable[[str], str] = lambda key: key) -> list[Row]:
    """One row for each key, the greatest amount first, of the cells of these days. key_of: what a cell's key is for."""
    found: dict[str, Row] = {}
    for cell in cells:
        if cell.day in days:
            key = key_of(cell.key)
            found.setdefault(key, Row(key)).add(cell.day, cell.amount, cell.seconds, cell.fee)
    return sorted(found.values(), key=lambda row: (-row.amount, -row.seconds, row.key))


def shortened(rows: Sequence[Row], most: int, others: str) -> list[Row]:
    """The first of these rows, at most so many; the rest as one row of the key `others`, so that sums stay whole."""
    if len(rows) <= most:
        return list(rows)
    rest = Row(others)
    for row in rows[most - 1 :]:
        rest.seconds += row.seconds
        for day, amount in row.days.items():
            rest.add(day, amount, 0)
    return [*rows[: most - 1], rest]


def by_day(rows: Iterable[Row], days: range) -> list[int]:
    """The sum of all rows for each day."""
    found = dict.fromkeys(days, 0)
    for row in rows:
        for day, amount in row.days.items():
            found[day] += amount
    return list(found.values())
