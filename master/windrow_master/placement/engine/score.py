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

from windrow_master.placement.engine.mix import CPU_BOUNDS, CPU_CLASSES, FINE, SCALE, Tables
from windrow_master.placement.engine.model import MILLI, Request, Scored, Weights
from windrow_master.placement.engine.state import (
    CARD_PRICE,
    CLASS,
    CPU,
    CPU_PRICE,
    GROUP,
    HASH,
    IDLE,
    LEFT,
    LEVELS,
    RATIO,
    RELIABILITY,
    STEP,
    WATTS,
    WHOLE,
    WORKS,
    Fleet,
)

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
    """Score these hosts, each of which fits. Few numpy calls, since each costs a microsecond whatever its size."""
    count, taken = len(hosts), request.gpu_milli
    found = fleet.rows.take(hosts, axis=0)
    group, cpu, idle = found[:, GROUP], found[:, CPU], found[:, IDLE]
    # before and after in one array each: half as many calls
    both_cpu = np.concatenate((cpu, cpu - request.cpu))
    both_idle = np.concatenate((idle, idle - taken))
    rows = BOUNDS.searchsorted(both_cpu, side="right")
    rows += np.concatenate((group, group)) * CPU_CLASSES
    stranded = _stranded(tables, both_cpu, both_idle)
    strand = stranded[:count] - stranded[count:]
    shortage = tables.shortage.take(group) * -taken
    tight = ((both_cpu[count:] >> 7) + (both_idle[count:] >> 3)) * -weights.tight
    points = _points(fleet, weights, request, hosts, found) if weights.has_points else {}
    gain, worth, cards = _gain(tables, request, found, rows)
    scores = gain + strand
    scores += shortage
    scores += tight
    for values in points.values():
        scores += values

    def terms() -> dict[str, Ints]:
        taken_worth = worth()
        own = {"fragmentation": gain - taken_worth, "worth": taken_worth}
        return own | {"strand": strand, "shortage": shortage, "tight": tight} | points

    first = int(scores.argmax())
    best = (scores == scores[first]).nonzero()[0]
    if len(best) > 1:
        first = int(best[shuffled(found[best, HASH], request.seed).argmin()])
    return Compared(hosts, scores, cards, first, terms)


def _gain(tables: Tables, request: Request, found: Ints, rows: Ints) -> tuple[Ints, Callable[[], Ints], Ints | None]:
    """For each host what fragmentation and worth change by, how to tell the worth alone, and the best card for a share.

    found: the rows of the hosts. rows: of the tables, before for each host, then after for each.
    """

    def none() -> Ints:
        return np.zeros(len(found), dtype=np.int64)

    count, whole, left = len(found), found[:, WHOLE], found[:, LEFT:]
    before, after = rows[:count], rows[count:]
    wholes = rows * (left.shape[1] + 1)
    wholes[:count] += whole
    if not request.gpus and (before == after).all():
        return np.zeros(count, dtype=np.int64), none, None
    level = np.maximum(left, 0) // STEP
    keys = (rows * LEVELS)[:, None] + np.concatenate((level, level))
    usable = tables.shares.take(keys).sum(1)
    gain = usable[count:] - usable[:count]
    if not request.is_share:
        if request.gpus:
            gain -= request.gpus * tables.shares.take(after * LEVELS + (LEVELS - 1))
        wholes[count:] += whole - request.gpus
        kept = tables.wholes.take(wholes)
        gain += kept[count:] - kept[:count]
        return gain, none, None
    room = left - request.milli
    keys = keys[count:]
    then = np.maximum(room, 0) // STEP
    each = tables.parts.take(keys - level + then) - tables.parts.take(keys)
    each += tables.wholes.take((wholes[count:] + whole)[:, None] - (left == MILLI))
    np.copyto(each, WORST, where=room < 0)
    cards = each.argmax(1)
    gain += each.max(1)
    gain -= tables.wholes.take(wholes[:count])

    def worth() -> Ints:
        at = np.arange(count)
        taken: Ints = tables.worth.take(then[at, cards]) - tables.worth.take(level[at, cards])
        return taken

    return gain, worth, cards


def _stranded(tables: Tables, cpu: Ints, idle: Ints) -> Ints:
    """Milli of idle cards without processors, expected over the mix, in units of the score."""
    ratio = np.minimum(cpu * (2 * FINE) // np.maximum(idle, 1), RATIO * FINE)
    found: Ints = tables.strand.take(np.maximum(ratio, 0)) * idle
    return found


def _points(fleet: Fleet, weights: Weights, request: Request, hosts: Ints, rows: Ints) -> dict[str, Ints]:
    """The weighted terms beside the five, of 0 to 1,000 points each. rows: of the hosts."""
    regional, of = fleet.classes.regional, rows[:, CLASS]
    found: dict[str, Ints] = {}
    if weights.price:
        price = price_of(request, rows[:, CARD_PRICE], rows[:, CPU_PRICE])
        found["price"] = 1000 * SCALE * PRICE_MIDDLE * weights.price // (price + PRICE_MIDDLE)
    if weights.locality and request.near:
        found["locality"] = regional(request.near, _locality).take(of) * weights.locality
    if weights.latency and request.latency_ms:
        found["latency"] = regional(request.latency_ms, _latency).take(of) * weights.latency
    if weights.reliability:
        found["reliability"] = rows[:, RELIABILITY] * (SCALE * weights.reliability)
    if weights.power:
        found["power"] = 1000 * SCALE * WATTS_MIDDLE * weights.power // (rows[:, WATTS] + WATTS_MIDDLE)
    if weights.spread:
        found["spread"] = 1000 * SCALE * weights.spread // (rows[:, WORKS] + 1)
    if weights.home and request.account in fleet.by_account:
        own = fleet.by_account[request.account]
        found["home"] = np.array([at in own for at in hosts.tolist()]) * (1000 * SCALE * weights.home)
    return found


def _locality(near: frozenset[str], region: str) -> int:
    return 1000 * SCALE * (region in near)


def _latency(known: tuple[tuple[str, int], ...], region: str) -> int:
    return next((1000 * SCALE * LATENCY_MIDDLE // (LATENCY_MIDDLE + ms) for name, ms in known if name == region), 0)
