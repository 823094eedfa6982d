"""Computes how reliable a host is, from what was seen of it: a figure from 0 to 1 that a new host has to earn. Pure.

Time is cut into slots of five minutes. A slot is good if every heartbeat due in it came, bad if one was missing; slots
in which the host was on leave (draining, maintenance) are not counted by the caller. With good and bad as evidence, the
chance that the next slot is good has the posterior Beta(1 + good, 1 + bad), from a uniform prior; the figure is its
lower quantile at `CONFIDENCE`, so that little evidence counts for little. Evidence halves every fortnight, and a slot
in which the host was leased weighs four: a renter saw it. From that, faults that were the host's own and leases that it
broke off are taken away, each with the same half-life.

The quantile is found by bisection of the regularised incomplete beta function, which is evaluated by its continued
fraction (NIST Digital Library of Mathematical Functions, 8.17.22: dlmf.nist.gov/8.17#v).
"""

from dataclasses import dataclass, replace
from math import exp, lgamma, log, log1p
from typing import Final

SLOT_NS: Final = 300 * 10**9
HALF_LIFE_NS: Final = 14 * 24 * 3600 * 10**9
LEASED_WEIGHT: Final = 4.0
CONFIDENCE: Final = 0.05
"""The chance that the host is worse than its figure says."""
FAULT_COST: Final = 0.02
"""A fault of the host's own takes a host of grade A to B, until half of it is forgotten."""
ABORT_COST: Final = 0.05
"""A lease that the host broke off: it cost a renter work, so more than a fault that nobody rented through."""

ENOUGH: Final = 150.0
"""Slots, weighed, from which on the figure is known: fewer leave even a host that was never missed below the 0.98 of
grade A (0.05 ** (1 / 149) = 0.980), so that the figure would tell how short its history is and not how good it is; two
more for what is forgotten meanwhile. 12.5 hours, a quarter of that while it is leased."""
ENOUGH_BAD: Final = 12.0
"""Slots from which on it is known, too, of a host that is worse than HOPELESS with the same confidence: an hour."""
HOPELESS: Final = 0.9
"""Grade B asks for as much."""
STEP: Final = 0.005
"""The least change of the figure that is shown and graded by: a tier is not written anew every five minutes."""

_TERMS_LEAST: Final = 40
_TERMS_PER_ROOT: Final = 3
"""Of the continued fraction, which needs as many as the root of the larger parameter, times a small number: 500 where
all of the 5,818 slots that evidence can come to were leased."""
_HALVINGS: Final = 60
"""Of the interval from 0 to 1: to the last bit of a float."""


@dataclass(frozen=True, slots=True)
class Record:
    """The evidence about a host: weights as they were at `at_ns`, all >= 0 and decaying since."""

    at_ns: int
    good: float = 0.0
    bad: float = 0.0
    faults: float = 0.0
    aborts: float = 0.0


def decayed(record: Record, now_ns: int) -> Record:
    """The record as it is worth now; a time before the record's changes nothing."""
    left = 0.5 ** (max(0, now_ns - record.at_ns) / HALF_LIFE_NS)
    return Record(
        max(now_ns, record.at_ns),
        record.good * left,
        record.bad * left,
        record.faults * left,
        record.aborts * left,
    )


def with_slot(record: Record, now_ns: int, *, is_good: bool, is_leased: bool) -> Record:
    """The record after one slot more, which ended at `now_ns`."""
    now = decayed(record, now_ns)
    weight = LEASED_WEIGHT if is_leased else 1.0
    return replace(now, good=now.good + weight) if is_good else replace(now, bad=now.bad + weight)


def with_fault(record: Record, now_ns: int) -> Record:
    """The record after a fault that was the host's own."""
    now = decayed(record, now_ns)
    return replace(now, faults=now.faults + 1)


def with_abort(record: Record, now_ns: int) -> Record:
    """The record after a lease that the host broke off."""
    now = decayed(record, now_ns)
    return replace(now, aborts=now.aborts + 1)


def reliability(record: Record, now_ns: int) -> float:
    """The figure now, in [0, 1]: grows with good slots, falls with bad ones, faults and aborts. A new host has 0.05."""
    now = decayed(record, now_ns)
    bound = beta_quantile(CONFIDENCE, 1 + now.good, 1 + now.bad)
    return max(0.0, bound - FAULT_COST * now.faults - ABORT_COST * now.aborts)


def known(record: Record, now_ns: int) -> float | None:
    """The figure where there is enough evidence for one (see ENOUGH), else None."""
    now = decayed(record, now_ns)
    seen = now.good + now.bad
    is_hopeless = seen >= ENOUGH_BAD and beta_quantile(1 - CONFIDENCE, 1 + now.good, 1 + now.bad) < HOPELESS
    return reliability(record, now_ns) if seen >= ENOUGH or is_hopeless else None


def shown(before: float | None, now: float | None) -> float | None:
    """Return the figure to show, given the one shown before: it moves by STEP or more, or not at all."""
    if before is None or now is None:
        return now
    return now if abs(now - before) >= STEP else before


def words(record: Record, now_ns: int) -> str:
    """For people: the figure and what it is made of."""
    now = decayed(record, now_ns)
    figure, seen = known(record, now_ns), now.good + now.bad
    made = f"it was there for {now.good:.0f} of {seen:.0f} points; {now.faults:.1f} faults of its own"
    made += f", {now.aborts:.1f} leases that it broke off"
    counted = f"five minutes are 1 point, or {LEASED_WEIGHT:.0f} while it is rented"
    if figure is None:
        return f"not known yet: {made}; {ENOUGH:.0f} points are wanted ({counted})"
    return f"{figure:.3f}: {made}; {counted}, and half of all is forgotten in 14 days"


def beta_quantile(probability: float, a: float, b: float) -> float:
    """The x at which Beta(a, b) has `probability` below it; `probability` in (0, 1), a and b >= 1."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if beta_below(middle, a, b) < probability:
            low = middle
        else:
            high = middle
    return low


def beta_below(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b): how much of Beta(a, b) lies below x; x in [0, 1]."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side only
        return 1 - beta_below(1 - x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a
    tail = 1.0
    for term in range(_TERMS_LEAST + int(_TERMS_PER_ROOT * max(a, b) ** 0.5), 0, -1):
        tail = 1 + _numerator(term, x, a, b) / tail
    return front / tail


def _numerator(term: int, x: float, a: float, b: float) -> float:
    half, is_odd = divmod(term, 2)
    at = a + 2 * half
    if is_odd:
        return -(a + half) * (a + b + half) * x / (at * (at + 1))
    return half * (b - half) * x / ((at - 1) * at)
