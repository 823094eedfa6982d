"""Decides when one Access is nearer than another, and when the difference says nothing, for hosts and tunnels alike.
Pure."""

from typing import Final

from windrow_proto.units import MILLISECOND

NEARER_NS: Final = 10 * MILLISECOND
"""Below this nobody notices, and moving costs a handshake."""
TIE_NS: Final = 2 * MILLISECOND
"""Round trips this close to the nearest count as equal; then load and the host's own order decide."""
TIE_SHARE: Final = 8
"""And those that are longer by no more than such a part of the nearest: on a line of 50 ms nobody notices 6, and a busy
machine at either end adds as much."""
RTTS_MAX: Final = 16
"""Round trips in one telling: those to the nearest Accesses."""


def is_clearly_nearer(other_ns: int, here_ns: int) -> bool:
    """True if a move is worth it: at least 10 ms and at least one third nearer."""
    return here_ns - other_ns >= NEARER_NS and 3 * other_ns <= 2 * here_ns


def is_about_as_near(other_ns: int, nearest_ns: int) -> bool:
    """True if the difference says nothing: it is within what measuring the same line twice differs by."""
    return other_ns - nearest_ns <= max(TIE_NS, nearest_ns // TIE_SHARE)
