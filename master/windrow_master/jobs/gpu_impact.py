"""Compares the readings of a job's cards before, during and after an attempt. Pure.

Asked of history when somebody looks, so nothing more is kept of a job than its times and its slots.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from windrow_master.clusters.model import Workload
from windrow_master.jobs.model import Attempt
from windrow_master.telemetry.model import SeriesKey, SeriesPoints, SeriesQuery
from windrow_proto.ids import HostId
from windrow_proto.metrics import BY_NAME
from windrow_proto.units import MILLISECOND, MINUTE

ASIDE_NS: Final = MINUTE
"""Before it and after it: what a card at rest reads."""
POINTS: Final = 300
"""Of each line of a chart, at most."""
STEPS_S: Final = (1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 86_400)
CARDS_MAX: Final = 16
"""Of one attempt; a larger gang shows its first."""

USE: Final = "gpu_utilization_ratio"
MEMORY: Final = "gpu_memory_used_bytes"
POWER: Final = "gpu_power_watts"
THROTTLE: Final = "gpu_throttle_reasons"
METRICS: Final = (USE, MEMORY, POWER, THROTTLE)

FREE_MOST: Final = 3
"""The highest of NVML's masks that holds no clock back: 1, the card is idle; 2, its owner set the clocks. The mean of a
step is above it only if work was held back in it: by power, heat, a brake, its neighbours' clocks or a display."""


@dataclass(frozen=True, slots=True)
class Card:
    """One card that an attempt had."""

    host_id: HostId
    host_name: str
    uuid: str


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of wall time in milliseconds, half open."""

    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True)
class Spans:
    """before and after may be empty: where the attempt began with the history, or has not ended."""

    before: Span
    during: Span
    after: Span
    step_ms: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one metric in one stretch, in its unit; None: nothing was read."""

    mean: float | None
    most: float | None


@dataclass(frozen=True, slots=True)
class Stretch:
    """Of one card in one stretch. throttled: the share of steps in which its clocks were held back, 0 to 1."""

    use: Figures
    memory_bytes: Figures
    power_watts: Figures
    throttled: float | None


@dataclass(frozen=True, slots=True)
class CardImpact:
    """One card before, during and after, and the lines that a chart draws of it by the metric's name."""

    card: Card
    before: Stretch
    during: Stretch
    after: Stretch
    lines: Mapping[str, Sequence[tuple[int, float | None]]]


def cards_of(workloads: Iterable[Workload]) -> tuple[Card, ...]:
    """The cards of an attempt's cluster, in the order of its members."""
    members = sorted(workloads, key=lambda one: one.rank)
    found = [Card(one.host_id, one.host_name, slot.gpu_uuid) for one in members for slot in one.slots if slot.gpu_uuid]
    return tuple(dict.fromkeys(found))[:CARDS_MAX]


def spans_of(attempt: Attempt, now_ns: int) -> Spans:
    """Return when to look: from a minute before its command began to a minute after it ended, or now."""
    began_ns = attempt.started_at_ns if attempt.started_at_ns is not None else attempt.began_at_ns
    ended_ns = min(attempt.ended_at_ns if attempt.ended_at_ns is not None else now_ns, now_ns)
    ended_ns = max(ended_ns, began_ns)
    wanted_s = (ended_ns - began_ns + 2 * ASIDE_NS) // (POINTS * 1_000 * MILLISECOND)
    step_ms = next((step for step in STEPS_S if step >= wanted_s), STEPS_S[-1]) * 1000
    began, ended = began_ns // MILLISECOND, ended_ns // MILLISECOND
    aside = max(ASIDE_NS // MILLISECOND, step_ms)
    until = min(ended + aside, now_ns // MILLISECOND) if attempt.ended_at_ns is not None else ended
    return Spans(Span(began - aside, began), Span(began, ended), Span(ended, max(ended, until)), step_ms)


def query_of(cards: Sequence[Card], spans: Spans) -> SeriesQuery:
    """Return the span to ask history for, both ends moved out to whole steps."""
    keys = tuple(SeriesKey(card.host_id, card.uuid, BY_NAME[name].number) for card in cards for name in METRICS)
    step = spans.step_ms
    return SeriesQuery(keys, spans.before.from_ms // step * step, -(-max(spans.after.to_ms, 1) // step) * step, step)


def impact(cards: Sequence[Card], spans: Spans, found: Iterable[SeriesPoints]) -> tuple[CardImpact, ...]:
    """Return the readings of each card by the points of history."""
    by_key = {points.key: points.points for points in found}
    answer = []
    for card in cards:
        numbers = {name: SeriesKey(card.host_id, card.uuid, BY_NAME[name].number) for name in METRICS}
        lines = {name: by_key.get(key, ()) for name, key in numbers.items()}
        before, during, after = (
            _stretch(lines, span, spans.step_ms) for span in (spans.before, spans.during, spans.after)
        )
        shown = {name: line for name, line in lines.items() if name != THROTTLE}
        answer.append(CardImpact(card, before, during, after, shown))
    return tuple(answer)


def _stretch(lines: Mapping[str, Sequence[tuple[int, float | None]]], span: Span, step_ms: int) -> Stretch:
    values = {name: _within(line, span, step_ms) for name, line in lines.items()}
    held = values[THROTTLE]
    share = sum(value > FREE_MOST for value in held) / len(held) if held else None
    return Stretch(_figures(values[USE]), _figures(values[MEMORY]), _figures(values[POWER]), share)


def _within(line: Sequence[tuple[int, float | None]], span: Span, step_ms: int) -> list[float]:
    """Readings of the steps that lie wholly in a stretch; of one shorter than that, of those that touch it."""
    whole = [v for at, v in line if v is not None and at >= span.from_ms and at + step_ms <= span.to_ms]
    if whole or span.to_ms <= span.from_ms:
        return whole
    return [value for at, value in line if value is not None and at < span.to_ms and at + step_ms > span.from_ms]


def _figures(values: Sequence[float]) -> Figures:
    return Figures(sum(values) / len(values), max(values)) if values else Figures(None, None)
