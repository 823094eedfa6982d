"""Scales a driver's raw figures to the integers of the wire, by windrow_proto.metrics; None stays None. Pure.

Every conversion here says how it rounds.
"""

from typing import Final

from windrow_proto.units import KIB, MIB

WIRE_MAX: Final = (1 << 62) - 1
"""Differences of two such values still fit the wire's signed 64 bits."""


def whole(value: object, low: int = 0, high: int = WIRE_MAX) -> int | None:
    """An integer within [low, high], or None: drivers answer sentinels and nonsense for what they do not know."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if low <= value <= high else None


def mebibytes(size_bytes: int | None) -> int | None:
    """Bytes as MiB, rounded down."""
    return None if size_bytes is None else size_bytes // MIB


def kibibytes(size_bytes: int | None) -> int | None:
    """Bytes as KiB, rounded down; for counters, so that a difference is never too large by more than one."""
    return None if size_bytes is None else size_bytes // KIB


def deciwatts(milliwatts: int | None) -> int | None:
    """Milliwatts as tenths of a watt, half up."""
    return None if milliwatts is None else (milliwatts + 50) // 100


def joules(millijoules: int | None) -> int | None:
    """A counter of millijoules as joules, rounded down."""
    return None if millijoules is None else millijoules // 1000


def permille(percent: float | None) -> int | None:
    """Percent as thousandths, to the nearest, kept within 0 and 1000."""
    return None if percent is None else max(0, min(1000, round(percent * 10)))


def hundredths(value: float | None) -> int | None:
    """A small figure such as a load average in hundredths, to the nearest."""
    return None if value is None else max(0, round(value * 100))
