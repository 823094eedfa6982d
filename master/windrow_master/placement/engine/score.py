"""The score of a few hosts that fit, in whole numbers; higher is better. Pure.

    fragmentation  the fall of what the mix cannot use of the host; negative: more becomes useless
    worth          minus what the part of a card is worth that is taken, plus nothing for whole cards
    strand         minus the cards that are left without processors, expected over the mix
    shortage       minus the price of a model that others insist on, for each milli taken of it
    tight          more where little is left: it orders hosts that are equal otherwise
    price, locality, latency, reliability, power, spread, home    0 to 1,000 points, weighted, without weight by default

Hosts with the same score are in the order of a hash of host and request, so that neither names nor the order of joining
decide.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from windrow_master.placement.engine.mix import CPU_BOUNDS, CPU_CLASSES, SCALE, Tables
from windrow_master.placement.engine.model import MILLI, Request, Scored, Weights
from windrow_master.placement.engine.state import LEVELS, RATIO, STEP, Fleet

Ints = NDArray[np.int64]
BOUNDS: Final = np.array(CPU_BOUNDS)
WORST: Final = -(1 << 60)
PRICE_MIDDLE: Final = 100_000_000
"""Microcents an hour at which the points of the price are half: 1.00."""
LATENCY_MIDDLE: Final = 50
"""Milliseconds at which those of latency are."""
WATTS_MIDDLE: Final = 300
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Compared:
    """Hosts that were compared: their numbers, scores, and the card that a share would go on."""

    hosts: Ints
    scores: Ints
    cards: Ints | None
    best: int
    terms: Callable[[], dict[str, Ints]]

    def scored(self, names: list[str], seed: int, count: int, hashes: Ints) -> tuple[Scored, ...]:
        """The best with their terms."""
        terms = self.terms()
        order = np.lexsort((shuffled(hashes, seed), -self.scores))[:count].tolist()
        return tuple(
            (names[at], int(self.scores[at]), {name: int(values[at]) for name, values in terms.items()}) for at in order
        )


def shuffled(hashes: Ints, seed: int) -> NDArray[np.uint64]:
    """An order over hosts that differs from request to request."""
    mixed = (hashes.astype(np.uint64) ^ np.uint64(seed & 0xFFFFFFFFFFFFFFFF)) * _MIX
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIX
    return mixed ^ (mixed >> np.uint64(32))


def price_of(request: Request, card_price: Any, cpu_price: Any) -> Any:
    """Microcents an hour, rounded up in favour of the host."""
    return -((-request.gpu_milli * card_price - request.cpu * cpu_price) // MILLI)


def compare(fleet: Fleet, tables: Tables, weights: Weights, request: Request, hosts: Ints) -> Compared:
    """Score these hosts, each of which fits."""
    columns, count, taken = fleet.columns, len(hosts), request.gpu_milli
    group, whole = columns["group"][hosts], columns["whole"][hosts].astype(np.int64)
    left = columns["left"][hosts].astype(np.int64)
    cpu, idle = columns["cpu"][hosts], columns["idle"][hosts].astype(np.int64)
    # before and after in one array each: half as many calls
    both_cpu = np.concatenate((cpu, cpu - request.cpu))
    both_idle = np.concatenate((idle, idle - taken))
    rows = np.searchsorted(BOUNDS, both_cpu, side="right")
    rows[:count] += group * CPU_CLASSES
    rows[count:] += group * CPU_CLASSES
    before, after = rows[:count], rows[count:]
    stranded = _stranded(tables, both_cpu, both_idle)
    strand = stranded[:count] - stranded[count:]
    shortage = tables.shortage[group] * -taken
    tight = (both_cpu[count:] // 128 + both_idle[count:] // 8) * -weights.tight
    rest = strand + shortage + tight
    points = _points(fleet, weights, request, hosts) if weights.has_points else {}
    for values in points.values():
        rest = rest + values
    level = np.maximum(left, 0) // STEP
    cards = None
    worth: Ints | int = 0
    if request.is_share:
        cards, worth, gain = _share(tables, request, left, level, whole, before, after)
    else:
        gain = _whole(tables, request, level, whole, before, after)
    scores = gain + rest
    fragmentation = gain - worth

    def terms() -> dict[str, Ints]:
        own = {"fragmentation": fragmentation, "worth": worth + fragmentation * 0}
        return own | {"strand": strand, "shortage": shortage, "tight": tight} | points

    best = np.flatnonzero(scores == scores.max())
    first = int(best[0])
    if len(best) > 1:
        first = int(best[shuffled(columns["hash"][hosts[best]], request.seed).argmin()])
    return Compared(hosts, scores, cards, first, terms)


def _share(
    tables: Tables, request: Request, left: Ints, level: Ints, whole: Ints, before: Ints, after: Ints
) -> tuple[Ints, Ints, Ints]:
    """For each host the best card for a share, the worth that is taken, and the sum of both terms."""
    room = left - request.milli
    fits = room >= 0
    then = np.maximum(room, 0) // STEP
    row = after[:, None]
    gain = tables.parts[row, then] - tables.parts[row, level]
    gain += tables.wholes[row, whole[:, None] - (left == MILLI)]
    gain[~fits] = WORST
    cards = gain.argmax(1)
    each = np.arange(len(left))
    kept = tables.shares[row, level].sum(1) - tables.shares[before[:, None], level].sum(1)
    worth = tables.worth[then[each, cards]] - tables.worth[level[each, cards]]
    return cards, worth, gain[each, cards] + kept - tables.wholes[before, whole]


def _whole(tables: Tables, request: Request, level: Ints, whole: Ints, before: Ints, after: Ints) -> Ints:
    """The fall of fragmentation for whole cards, or for processors alone."""
    if not request.gpus and (before == after).all():
        return np.zeros(len(level), dtype=np.int64)
    gain = tables.shares[after[:, None], level].sum(1) - tables.shares[before[:, None], level].sum(1)
    if request.gpus:
        gain -= request.gpus * tables.shares[after, LEVELS - 1]
    gain += tables.wholes[after, whole - request.gpus] - tables.wholes[before, whole]
    return gain


def _stranded(tables: Tables, cpu: Ints, idle: Ints) -> Ints:
    """Milli of idle cards without processors, expected over the mix, in units of the score."""
    ratio = 512 * cpu // np.maximum(idle, 1)  # half processors per card, in 1/256
    step = np.minimum(ratio >> 8, RATIO)
    part = np.where(ratio >> 8 >= RATIO, 0, ratio & 255)
    found: Ints = (idle * (tables.strand[step] * (256 - part) + tables.strand[step + 1] * part)) >> 8
    return found


def _points(fleet: Fleet, weights: Weights, request: Request, hosts: Ints) -> dict[str, Ints]:
    """The weighted terms beside the five, of 0 to 1,000 points each."""
    columns = fleet.columns
    kinds = [fleet.of_class[at].kind for at in hosts.tolist()]
    latency = dict(request.latency_ms)
    own = fleet.by_account.get(request.account, {}) if request.account else {}
    found = {
        "price": lambda: _halved(
            price_of(request, columns["card_price"][hosts], columns["cpu_price"][hosts]), PRICE_MIDDLE
        ),
        "locality": lambda: np.array([1000 * (kind.region in request.near) for kind in kinds]),
        "latency": lambda: np.array(
            [_halved(latency[kind.region], LATENCY_MIDDLE) if kind.region in latency else 0 for kind in kinds]
        ),
        "reliability": lambda: columns["reliability"][hosts].astype(np.int64),
        "power": lambda: _halved(columns["watts"][hosts].astype(np.int64), WATTS_MIDDLE),
        "spread": lambda: 1000 // (1 + columns["works"][hosts].astype(np.int64)),
        "home": lambda: np.array([1000 * (at in own) for at in hosts.tolist()]),
    }
    return {name: make() * (SCALE * weight) for name, make in found.items() if (weight := getattr(weights, name))}


def _halved(value: Any, middle: int) -> Any:
    return 1000 * middle // (middle + value)
