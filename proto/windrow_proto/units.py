"""Quantities as integers with their unit in the name, and conversions that say how they round. Pure.

Money never becomes a float; absent is None and never zero.
"""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Final, NewType

Nanoseconds = NewType("Nanoseconds", int)
Microcents = NewType("Microcents", int)
"""10**-6 of a cent, 10**-8 of the currency unit."""
Bytes = NewType("Bytes", int)

MICROSECOND: Final = 1_000
MILLISECOND: Final = 1_000_000
SECOND: Final = 1_000_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB

MICROCENTS_PER_UNIT: Final = 100_000_000
"""Microcents in one unit of the currency, for example one euro."""
CURRENCY_TEST: Final = "TEST"
"""Money of an embedded Master: it buys nothing outside it."""


WALL_NS_MAX: Final = 2**63 - 1
"""The range of 64 bits: until April 2262, and as far back before 1970."""


def seconds(duration_ns: int) -> float:
    """A duration as float seconds, for timers and display only."""
    return duration_ns / SECOND


def money_text(amount: Microcents) -> str:
    """An amount as a plain decimal string without loss, for example `0.00012345` or `-3.50`; at least two decimals."""
    sign, rest = ("-", -amount) if amount < 0 else ("", int(amount))
    whole, fraction = divmod(rest, MICROCENTS_PER_UNIT)
    digits = f"{fraction:08d}".rstrip("0").ljust(2, "0")
    return f"{sign}{whole}.{digits}"


def parse_money(text: str) -> Microcents:
    """The inverse of money_text; raises ValueError on more than eight decimals, exponents or anything else."""
    if not text or len(text) > 30 or not all(c in "-0123456789." for c in text):
        raise ValueError(f"not an amount of money: {text[:40]!r}")
    try:
        scaled = Decimal(text) * MICROCENTS_PER_UNIT
    except ArithmeticError:
        raise ValueError(f"not an amount of money: {text!r}") from None
    if scaled != scaled.to_integral_value():
        raise ValueError(f"money has at most eight decimals: {text!r}")
    return Microcents(int(scaled))


def charge(price_per_hour: Microcents, running_ns: int) -> Microcents:
    """Returns the whole charge for a running time so far: floor(price x time / 1 h), rounded down in the renter's
    favour.

    Post differences of this cumulative figure, never price-per-second x seconds (design.md section 12).
    """
    if running_ns < 0 or price_per_hour < 0:
        raise ValueError("a charge needs a price and a running time of at least zero")
    return Microcents(price_per_hour * running_ns // HOUR)


def funded_ns(balance: Microcents, price_per_hour: Microcents) -> int | None:
    """How long a balance pays for, rounded down; None when the price is zero (for ever)."""
    return None if price_per_hour == 0 else max(0, balance) * HOUR // price_per_hour


def time_text(wall_ns: int) -> str:
    """A wall time as RFC 3339 in UTC with milliseconds, rounded down; one beyond WALL_NS_MAX is written as that."""
    whole, rest = divmod(max(-WALL_NS_MAX, min(wall_ns, WALL_NS_MAX)), SECOND)
    return datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{rest // MILLISECOND:03d}Z"


def parse_time(text: str) -> int:
    """RFC 3339 with an offset or `Z` as wall nanoseconds; raises ValueError for naive, malformed or far times."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"a time needs its offset from UTC: {text!r}")
    return moment_ns(moment)


def moment_ns(moment: datetime) -> int:
    """A moment as wall nanoseconds; raises ValueError where they do not fit 64 bits."""
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    wall_ns = (delta.days * 86_400 + delta.seconds) * SECOND + delta.microseconds * MICROSECOND
    if abs(wall_ns) > WALL_NS_MAX:
        raise ValueError("a time is between the years 1678 and 2262")
    return wall_ns
