"""Decides how long a host that fell silent takes no new work once it is back: longer each time, forgotten by halves.
Pure."""

from dataclasses import dataclass
from typing import Final

from windrow_proto.units import HOUR, MINUTE, SECOND

SETTLED_NS: Final = 60 * SECOND
"""After a Suspect a host is given nothing new until it was Online this long: a flapping link must not collect work."""
HALF_LIFE_NS: Final = 10 * MINUTE
"""Of the count: a line that fails once an hour is nearly as good as new each time."""
MANY: Final = 3
"""Silences, to the nearest whole, from which on it is no accident: the count of three within five minutes."""
MANY_NS: Final = 10 * MINUTE
SETTLED_NS_MAX: Final = 6 * HOUR
_DOUBLINGS_MAX: Final = 6
"""Ten minutes doubled so often are more than the longest."""


@dataclass(frozen=True, slots=True)
class Flaps:
    """The number of times a host fell silent, >= 0, as it was worth at `at_ns`; it halves with each HALF_LIFE_NS
    since."""

    count: float = 0.0
    at_ns: int = 0


NEVER: Final = Flaps()
"""Of a host that was always heard."""


def worth(flaps: Flaps, now_ns: int) -> float:
    """The count now; a time before its own changes nothing."""
    return float(flaps.count * 0.5 ** (max(0, now_ns - flaps.at_ns) / HALF_LIFE_NS))


def flapped(flaps: Flaps, now_ns: int) -> Flaps:
    """The count after one silence more, which was noticed at `now_ns`."""
    return Flaps(worth(flaps, now_ns) + 1, max(now_ns, flaps.at_ns))


def settling_ns(flaps: Flaps, now_ns: int) -> int:
    """For how long a host that is back at `now_ns` has to stay Online before it is given new work."""
    times = round(worth(flaps, now_ns))
    if times < MANY:
        return SETTLED_NS
    return min(SETTLED_NS_MAX, MANY_NS << min(times - MANY, _DOUBLINGS_MAX))
