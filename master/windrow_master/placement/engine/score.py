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
    """Score these hosts, each of which fits. Few numpy calls, since each costs a microsecond whatever its size."""
    columns, count, taken = fleet.columns, len(hosts), request.gpu_milli
    group, whole = columns["group"].take(hosts), columns["whole"].take(hosts)
    cpu, idle = columns["cpu"].take(hosts), columns["idle"].take(hosts).astype(np.int64)
    # before and after in one array each: half as many calls
    both_cpu = np.concatenate((cpu, cpu - request.cpu))
    both_idle = np.concatenate((idle, idle - taken))
    rows = BOUNDS.searchsorted(both_cpu, side="right")
    rows += np.concatenate((group, group)) * CPU_CLASSES
    stranded = _stranded(tables, both_cpu, both_idle)
    strand = stranded[:count] - stranded[count:]
    shortage = tables.shortage.take(group) * -taken
    tight = ((both_cpu[count:] >> 7) + (both_idle[count:] >> 3)) * -weights.tight
    points = _points(fleet, weights, request, hosts) if weights.has_points else {}
    gain, worth, cards = _gain(fleet, tables, request, hosts, rows, whole)
    scores = gain + strand
    scores += shortage
    scores += tight
    for values in points.values():
        scores += values

    def terms() -> dict[str, Ints]:
        own = {"fragmentation": gain - worth, "worth": gain * 0 + worth}
        return own | {"strand": strand, "shortage": shortage, "tight": tight} | points

    first = int(scores.argmax())
    best = (scores == scores[first]).nonzero()[0]
    if len(best) > 1:
        first = int(best[shuffled(columns["hash"].take(hosts[best]), request.seed).argmin()])
    return Compared(hosts, scores, cards, first, terms)


def _gain(
    fleet: Fleet, tables: Tables, request: Request, hosts: Ints, rows: Ints, whole: Ints
) -> tuple[Ints, Ints | int, Ints | None]:
    """For each host what fragmentation and worth change by, the worth alone, and the best card for a share.

    rows: of the tables, before for each host, then after for each.
    """
    count = len(hosts)
    before, after = rows[:count], rows[count:]
    wholes = rows * (fleet.cards_max + 1)
    wholes[:count] += whole
    if not request.gpus and (before == after).all():
        return np.zeros(count, dtype=np.int64), 0, None
    left = fleet.columns["left"].take(hosts, axis=0)
    level = np.maximum(left, 0) // STEP
    keys = (rows * LEVELS)[:, None] + np.concatenate((level, level))
    usable = tables.shares.take(keys).sum(1)
    gain = usable[count:] - usable[:count]
    if not request.is_share:
        if request.gpus:
            gain -= request.gpus * tables.shares.take(after * LEVELS + (LEVELS - 1))
        wholes[count:] += whole - request.gpus
        found = tables.wholes.take(wholes)
        gain += found[count:] - found[:count]
        return gain, 0, None
    room = left - request.milli
    keys = keys[count:]
    then = np.maximum(room, 0) // STEP
    each = tables.parts.take(keys - level + then) - tables.parts.take(keys)
    each += tables.wholes.take((wholes[count:] + whole)[:, None] - (left == MILLI))
    each[room < 0] = WORST
    cards = each.argmax(1)
    at = np.arange(count)
    worth = tables.worth.take(then[at, cards]) - tables.worth.take(level[at, cards])
    gain += each[at, cards] - tables.wholes.take(wholes[:count])
    return gain, worth, cards


def _stranded(tables: Tables, cpu: Ints, idle: Ints) -> Ints:
    """Milli of idle cards without processors, expected over the mix, in units of the score."""
    ratio = 512 * cpu // np.maximum(idle, 1)  # half processors per card, in 1/256
    ratio = np.minimum(ratio, RATIO << 8)
    step, part = ratio >> 8, ratio & 255
    low = tables.strand.take(step)
    found: Ints = (idle * ((low << 8) + (tables.strand.take(step + 1) - low) * part)) >> 8
    return found


def _points(fleet: Fleet, weights: Weights, request: Request, hosts: Ints) -> dict[str, Ints]:
    """The weighted terms beside the five, of 0 to 1,000 points each."""
    columns, classes = fleet.columns, fleet.classes
    found: dict[str, Ints] = {}
    if weights.price:
        price = price_of(request, columns["card_price"].take(hosts), columns["cpu_price"].take(hosts))
        found["price"] = _halved(price, PRICE_MIDDLE) * (SCALE * weights.price)
    if weights.locality and request.near:
        near = request.near
        points = classes.regional(near, lambda region: 1000 * SCALE * (region in near))
        found["locality"] = points[columns["class_number"].take(hosts)] * weights.locality
    if weights.latency and request.latency_ms:
        known = dict(request.latency_ms)
        points = classes.regional(
            request.latency_ms,
            lambda region: SCALE * _halved(known[region], LATENCY_MIDDLE) if region in known else 0,
        )
        found["latency"] = points[columns["class_number"].take(hosts)] * weights.latency
    if weights.reliability:
        found["reliability"] = columns["reliability"].take(hosts) * np.int64(SCALE * weights.reliability)
    if weights.power:
        found["power"] = _halved(columns["watts"].take(hosts).astype(np.int64), WATTS_MIDDLE) * (SCALE * weights.power)
    if weights.spread:
        found["spread"] = 1000 // (1 + columns["works"].take(hosts).astype(np.int64)) * (SCALE * weights.spread)
    if weights.home and request.account in fleet.by_account:
        own = fleet.by_account[request.account]
        found["home"] = np.array([at in own for at in hosts.tolist()]) * (1000 * SCALE * weights.home)
    return found


def _halved(value: Any, middle: int) -> Any:
    return 1000 * middle // (middle + value)
