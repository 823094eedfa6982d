"""The pace at which the agents of a drained Access are sent elsewhere: a few over some seconds, many at a pace that the
others take in. Pure."""

from windrow_proto.units import SECOND

SPREAD_NS = 5 * SECOND
LEAVES_PER_S = 100
"""Of one worker: a third of the new streams that another worker lets in per second (admission.py)."""
GAP_NS_MAX = SECOND


def leave_gap_ns(agents: int) -> int:
    """How long to wait between two of `agents` that are to leave: from 10 ms to 1 s, rounded down."""
    return min(GAP_NS_MAX, max(SPREAD_NS // max(1, agents), SECOND // LEAVES_PER_S))
