"""Tells from the time of a challenge whether a GPU keeps the pace of its class, as we measured it. Pure.

Only a calibrated row gates. A class without one is observed: its times are kept and shown, and refuse nobody. Faster
than the row is fine, since it only shows that the card is no worse than claimed; a slower one is not the card, or was
not free, or asked another over a network.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from windrow_proto.units import MINUTE

SAMPLES_MIN: Final = 20
"""Fewer have no 95th percentile."""
SLOW_PERMILLE: Final = 1_500
"""Of the 95th percentile: past that it is too slow. The same 1.5 is what cards of one host may differ by."""
LIMIT_NS: Final = 2 * MINUTE
"""For the commitment where nothing is calibrated, and the most for anyone: what never comes is refused as well."""
ANSWER_NS: Final = MINUTE
"""From the selection to the answer: rows are multiplied again and read, which takes seconds, and the line is used."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work for which times are comparable."""

    size: int
    rounds: int


STANDARD: Final = Work(16_384, 16)
"""Sixteen rounds of 4.4e12 multiplications: seconds on a large GPU, so that a line's delay is small beside it."""


@dataclass(frozen=True, slots=True)
class Timing:
    """From the challenge sent to the commitment in, at the Master; None where nothing was measured.

    source: which card, driver and program it was measured with.
    """

    p5_ns: int | None = None
    p50_ns: int | None = None
    p95_ns: int | None = None
    calibrated: bool = False
    source: str = "not measured"

    @property
    def limit_ns(self) -> int:
        """Until when a commitment counts; gates only where calibrated, and never allows more than LIMIT_NS."""
        if not self.calibrated or self.p95_ns is None:
            return LIMIT_NS
        return min(LIMIT_NS, self.p95_ns * SLOW_PERMILLE // 1000)


UNMEASURED: Final = Timing()

TIMES: Final[Mapping[tuple[str, Work], Timing]] = {
    ("h100", STANDARD): Timing(
        *(9_765_551_151, 9_830_407_809, 9_914_902_268, True),
        source="NVIDIA H100 80GB HBM3, driver 580.159.04, 22 runs, 2026-11-27",
    ),
    ("h200", STANDARD): Timing(
        *(9_894_707_299, 9_954_291_235, 10_059_817_809, True),
        source="NVIDIA H200, driver 580.159.04, 20 runs, 2026-11-27",
    ),
}
"""By class of the GPU table and work, by `python -m tests.hardware.calibrate` on a card of that class with nothing else
to do. A figure from a data sheet would refuse honest hosts or let others in, so other classes have none."""


def timing(tier_class: str, work: Work, table: Mapping[tuple[str, Work], Timing] = TIMES) -> Timing:
    """The row of this class, UNMEASURED where there is none."""
    return table.get((tier_class, work), UNMEASURED)


def calibrate(spans_ns: Sequence[int], source: str) -> Timing:
    """A row from spans measured on one known card, by nearest rank; calibrated from SAMPLES_MIN on."""
    if not spans_ns:
        return UNMEASURED
    ordered = sorted(spans_ns)

    def rank(percent: int) -> int:
        return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]

    return Timing(rank(5), rank(50), rank(95), len(ordered) >= SAMPLES_MIN, source)


class Pace(StrEnum):
    """The pace of the card by a span."""

    OBSERVED = "observed"
    """Its class is not calibrated: nothing."""
    EXPECTED = "expected"
    TOO_SLOW = "too_slow"


def pace(row: Timing, span_ns: int) -> Pace:
    """Compare one span with its class."""
    if not row.calibrated:
        return Pace.OBSERVED
    return Pace.EXPECTED if span_ns <= row.limit_ns else Pace.TOO_SLOW


def are_together(spans_ns: Sequence[int]) -> bool:
    """Return whether cards of one class that were asked in the same second worked at the same time.

    One card that answers for several does so one after another; then the last takes several times as long as the
    first. A host that holds its first answers back looks alike, but late: only a calibrated row shows that.
    """
    return not spans_ns or max(spans_ns) * 1000 <= min(spans_ns) * SLOW_PERMILLE
