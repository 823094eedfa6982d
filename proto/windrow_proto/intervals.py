"""Sets of sequence numbers as sorted ranges: what came, what is acknowledged, what is missing. Pure and immutable."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from windrow_proto.errors import TooMany
from windrow_proto.ids import BootId
from windrow_proto.messages import LaneMarks
from windrow_proto.model import Lane

RANGES_MAX: Final = 1024
"""A sender that leaves more holes than this is refused new ones until some are filled: 16 KiB bound the memory."""
SEQUENCE_MAX: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Intervals:
    """A set of whole numbers from 1 to 2**64 - 1; `ranges` are inclusive, sorted and never touch each other."""

    ranges: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def of(ranges: Iterable[tuple[int, int]]) -> "Intervals":
        """The set of all numbers in these ranges, in any order and overlapping as they like."""
        merged: list[tuple[int, int]] = []
        for first, last in sorted(ranges):
            if first < 1 or last > SEQUENCE_MAX or first > last:
                raise ValueError(f"not a range of sequences: {first}..{last}")
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], last))
            else:
                merged.append((first, last))
        if len(merged) > RANGES_MAX:
            raise TooMany(f"More than {RANGES_MAX} separate ranges of sequences.")
        return Intervals(tuple(merged))

    @staticmethod
    def from_marks(marks: LaneMarks) -> "Intervals":
        """The set that marks of one lane and boot describe."""
        return Intervals.of(marks.ranges)

    def to_marks(self, lane: Lane, origin_boot: BootId) -> LaneMarks:
        """This set as marks of one lane and boot."""
        return LaneMarks(lane, origin_boot, self.ranges)

    @property
    def count(self) -> int:
        """How many numbers are in the set."""
        return sum(last - first + 1 for first, last in self.ranges)

    @property
    def through(self) -> int:
        """The end of the unbroken run from 1; 0 if 1 is missing."""
        return self.ranges[0][1] if self.ranges and self.ranges[0][0] == 1 else 0

    @property
    def is_whole(self) -> bool:
        """True if nothing is missing below its largest number."""
        return not self.ranges or (len(self.ranges) == 1 and self.ranges[0][0] == 1)

    @property
    def highest(self) -> int:
        """The largest number in the set; 0 if it is empty."""
        return self.ranges[-1][1] if self.ranges else 0

    def contains(self, number: int) -> bool:
        """True if `number` is in the set."""
        if not self.ranges or number > self.ranges[-1][1]:  # nearly always: nothing so high has come
            return False
        at = bisect_right(self.ranges, (number, SEQUENCE_MAX)) - 1
        return at >= 0 and self.ranges[at][1] >= number

    def add(self, number: int) -> "Intervals":
        """With one more number; raises TooMany rather than hold more than RANGES_MAX ranges."""
        if self.ranges and number == self.ranges[-1][1] + 1 <= SEQUENCE_MAX:  # nearly always: the next in order
            return Intervals((*self.ranges[:-1], (self.ranges[-1][0], number)))
        return self if self.contains(number) else Intervals.of((*self.ranges, (number, number)))

    def add_range(self, first: int, last: int) -> "Intervals":
        """With all numbers from `first` to `last`."""
        return Intervals.of((*self.ranges, (first, last)))

    def union(self, other: "Intervals") -> "Intervals":
        """Returns the numbers that are in either."""
        if not (self.ranges and other.ranges):
            return self if self.ranges else other
        (first, last), (next_first, next_last) = self.ranges[-1], other.ranges[0]
        if next_first == last + 1 and len(other.ranges) == 1:  # nearly always: the next in order
            return Intervals((*self.ranges[:-1], (first, next_last)))
        if len(other.ranges) == 1 and next_first <= self.ranges[0][0] and last <= next_last:
            return other  # all of this is in it, as in an ack of what was acked before, and more
        return Intervals.of((*self.ranges, *other.ranges))

    def without(self, other: "Intervals") -> "Intervals":
        """Returns the numbers that are here and not in `other`."""
        if not other.ranges or not self.ranges:
            return self
        if self.ranges == other.ranges:
            return Intervals()
        kept: list[tuple[int, int]] = []
        for first, last in self.ranges:
            at = first
            for gap_first, gap_last in other.ranges:
                if gap_last < at or gap_first > last:
                    continue
                if gap_first > at:
                    kept.append((at, gap_first - 1))
                at = gap_last + 1
            if at <= last:
                kept.append((at, last))
        return Intervals.of(kept)

    def missing_below(self, number: int) -> "Intervals":
        """The numbers from 1 up to and without `number` that are not in the set."""
        return Intervals(((1, number - 1),)).without(self) if number > 1 else Intervals()
