"""Limits how often a host sends its inventory: a change goes at once, many changes go together. Pure.

A sensor that flaps changes what is the matter again and again. The first changes go as they come, then they are
gathered; nothing is lost by that, since each telling holds all that is so, and heartbeats hold it as well.
"""

from typing import Final

from windrow_proto.units import SECOND

TELLINGS_MAX: Final = 16
"""At once: an agent that starts needs some five, and each card of a host may fail in the same minute."""
TELLING_EVERY_NS: Final = 30 * SECOND
"""After those. Each telling is signed, stored and kept by the Master for a month."""


def next_ns(owed_until_ns: int, now_ns: int) -> int:
    """When the next may go: now, or when the pace allows it. owed_until_ns: as `told` said of the last; 0 at first."""
    return max(now_ns, owed_until_ns - (TELLINGS_MAX - 1) * TELLING_EVERY_NS)


def told(owed_until_ns: int, now_ns: int) -> int:
    """Until when this and all earlier tellings would last at the pace that is kept for ever."""
    return max(owed_until_ns, now_ns) + TELLING_EVERY_NS
