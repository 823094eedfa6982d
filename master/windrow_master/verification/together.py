"""Decides whether the cards of a host worked side by side, or one after another, as one card that answers for
several. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from windrow_master.fleet.verdicts import Company
from windrow_master.verification.times import are_together
from windrow_proto.ids import GpuUuid
from windrow_proto.units import SECOND

SPREAD_NS: Final = SECOND
"""Spans that differ by less say nothing, whatever their ratio: a busy processor and a line may cost as much. Chosen by
us, not measured. The same for the moments at which the cards were asked: in the same second, or it was not at once."""


WORDS: Final[Mapping[Company, str]] = {
    Company.ALONE: "no other card of its class was challenged with it",
    Company.UNTOLD: "whether {cards} cards worked at once cannot be told from their times",
    Company.TOGETHER: "{cards} cards of its class worked at once",
    Company.APART: "{cards} cards of its class worked one after another, as one card that answers for several does",
}


@dataclass(frozen=True, slots=True)
class Span:
    """The time at which one card was asked and the time it took to commit, by the Master's monotonic clock."""

    asked_ns: int
    span_ns: int


@dataclass(frozen=True, slots=True)
class Beside:
    """The result of the comparison. cards: of its class that committed in this challenge, this one counted."""

    company: Company
    cards: int

    @property
    def words(self) -> str:
        """For people, the beginning or the end of a sentence."""
        return WORDS[self.company].format(cards=self.cards)


def judge(spans: Sequence[Span]) -> Company:
    """Of all cards of one class that committed."""
    if len(spans) < 2:
        return Company.ALONE
    asked, took = [one.asked_ns for one in spans], [one.span_ns for one in spans]
    if max(asked) - min(asked) > SPREAD_NS:
        return Company.UNTOLD
    if are_together(took):
        return Company.TOGETHER
    return Company.APART if max(took) - min(took) > SPREAD_NS else Company.UNTOLD


def beside(spans: Mapping[GpuUuid, Span], classes: Mapping[GpuUuid, str]) -> dict[GpuUuid, Beside]:
    """Of each card that committed; classes: of the GPU table, by card."""
    found: dict[GpuUuid, Beside] = {}
    for tier_class in sorted({classes[uuid] for uuid in spans}):
        mine = {uuid: span for uuid, span in spans.items() if classes[uuid] == tier_class}
        company = judge(list(mine.values()))
        found |= {uuid: Beside(company, len(mine)) for uuid in mine}
    return found
