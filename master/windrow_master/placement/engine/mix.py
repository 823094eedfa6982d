"""The mix of requests, learnt as they arrive, and the tables that the score reads of it. Pure.

Requests weigh by the square root of the cards that they ask for, and half as much after some 14,000 more requests.
All is kept in whole numbers, so that the same requests give the same tables everywhere; only the duals pass through
floats and are rounded to whole numbers at the end.
"""

from bisect import bisect_right
from dataclasses import dataclass
from math import isqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from windrow_master.placement.engine.model import MILLI, Request, Weights
from windrow_master.placement.engine.state import LEVELS, RATIO, STEP
from windrow_master.placement.engine.worth import Cutting

Ints = NDArray[np.int64]
SCALE: Final = 1000
"""Units of a score for each milli of a card."""
CPU_BOUNDS: Final = (0, *sorted({int(500 * 1.25**step) for step in range(28)}))
"""Classes of processors, in milli: 0.5 to 206, a quarter more each."""
CPU_CLASSES: Final = len(CPU_BOUNDS) + 1
ONE: Final = 1 << 32
"""The weight of the first request; later ones weigh more, which is the decay of the earlier ones."""
DECAY: Final = 20_000
FINE: Final = 8
"""Parts of half a processor in the table of what is left without processors."""
RENEW: Final = 256
"""Requests between two tables: at 64 the tables were the slowest 1 % of decisions."""
SOLVE: Final = 1024
"""Requests between two solutions of the cutting problem."""
SHORT_FROM: Final = 500
"""Permille of load over what is free, from which on a model is short."""


_RATIOS: Final = np.arange(FINE, (RATIO + 1) * FINE, FINE)
"""The processors for each card that a class of requests asks for, in FINE parts of half a processor."""
_LACKING: Final = np.maximum(0, _RATIOS[None, :] - np.arange(RATIO * FINE + 1)[:, None])
"""What it lacks where there are so many parts for each card."""


def share_level(milli: int) -> int:
    """The size of a share in levels: rounded up, but a card gives as many pieces as in milli (333: 33)."""
    return max(1, min(-(-milli // STEP), (LEVELS - 1) // (MILLI // milli)))


@dataclass(frozen=True, slots=True)
class Tables:
    """What the score looks up. version: counts up with each change.

    Shapes: shares, what the mix can use of one card: (groups x processor classes x levels,), and wholes, of a host's
    whole free cards: (groups x processor classes x (cards + 1),), both flat, which numpy looks up in half the time;
    parts: shares and worth together; worth: (levels,); strand: milli of a card left without processors, (ratio levels x
    FINE + 1,); shortage: for each milli taken of a group, (groups,).
    """

    version: int
    shares: Ints
    wholes: Ints
    parts: Ints
    worth: Ints
    strand: Ints
    shortage: Ints


class Mix:
    """What was asked for so far."""

    def __init__(self, cards_max: int, weights: Weights) -> None:
        self._cards, self._weights = cards_max, weights
        self.share_weights: Ints = np.zeros((0, CPU_CLASSES, LEVELS), dtype=np.int64)
        self.whole_weights: Ints = np.zeros((0, CPU_CLASSES, cards_max + 1), dtype=np.int64)
        self.insisting: Ints = np.zeros(0, dtype=np.int64)
        self.sizes = [0] * LEVELS
        self.ratios = [0] * (RATIO + 1)
        self._fresh: dict[tuple[bytes, int, int, int], int] = {}
        self.total, self.demand = 0, 0
        self.grown, self.seen = ONE, 0
        self.cutting = Cutting(LEVELS)
        self.tables = Tables(0, *(np.zeros(0, dtype=np.int64),) * 6)

    def learn(self, request: Request, groups: Ints, cards: list[int], idle: list[int]) -> bool:
        """Count a request that these groups may serve, of fleets with these cards and idle milli; True if the tables
        are new."""
        self.seen += 1
        if request.gpus and len(groups):
            self._count(request, groups, cards)
            self.grown += self.grown // DECAY
        young = self.seen & (self.seen - 1) == 0  # 1, 2, 4, ...: often at first
        if young or self.seen % SOLVE == 0:
            self.cutting.start(np.array(self.sizes, dtype=np.int64))
            if young:
                while not self.cutting.is_solved and self.seen < SOLVE:
                    self.cutting.step()
        elif not self.cutting.is_solved:
            self.cutting.step()
        if young or self.seen % RENEW == 0:
            self.renew(cards, idle)
            return True
        return False

    def _count(self, request: Request, groups: Ints, cards: list[int]) -> None:
        milli, num = request.gpu_milli, request.gpus
        unit = self.grown * 1024 // ONE
        weight = unit * isqrt(milli * MILLI)
        row = bisect_right(CPU_BOUNDS, request.cpu - 1)
        level = share_level(request.milli)
        key = (groups.tobytes(), row, num, level)
        self._fresh[key] = self._fresh.get(key, 0) + weight
        self.total += weight
        self.sizes[level] += unit * num
        ratio = (4 * request.cpu + milli) // (2 * milli)
        self.ratios[min(RATIO, max(1, ratio))] += unit * milli
        self.demand += unit * milli
        if len(groups) < len(cards):
            self._widen(len(cards))
            held = sum(cards[group] for group in groups.tolist())
            if held:
                self.insisting[groups] += unit * milli * sum(cards) // held
        if self.grown > 64 * ONE:
            self._flush(len(cards))
            for counts in (self.share_weights, self.whole_weights, self.insisting):
                counts //= 64
            self.sizes, self.ratios = [size // 64 for size in self.sizes], [ratio // 64 for ratio in self.ratios]
            self.total, self.demand, self.grown = self.total // 64, self.demand // 64, self.grown // 64

    def _flush(self, groups: int) -> None:
        """Add what came since the last tables to the arrays."""
        self._widen(groups)
        for (of, row, num, level), weight in self._fresh.items():
            at = np.frombuffer(of, dtype=np.int64)
            if num == 1:
                self.share_weights[at, row, level] += weight
            elif num <= self._cards:
                self.whole_weights[at, row, num] += weight
        self._fresh.clear()

    def saved(self, groups: list[tuple[str, str]]) -> dict[str, Any]:
        """All that was learnt as values for JSON, by the names of the groups: what a Master that begins anew reads."""
        self._flush(len(groups))
        arrays = {"shares": self.share_weights, "wholes": self.whole_weights, "insisting": self.insisting}
        found = {
            name: [[*groups[at[0]], *at[1:], int(array[tuple(at)])] for at in np.argwhere(array).tolist()]
            for name, array in arrays.items()
        }
        counts = {"sizes": self.sizes, "ratios": self.ratios, "worth": self.cutting.table.tolist()}
        totals = {"total": self.total, "demand": self.demand, "grown": self.grown, "seen": self.seen}
        return found | counts | totals

    def restore(self, saved: dict[str, Any], groups: list[tuple[str, str]]) -> None:
        """Begin with what was saved; groups that are not there any more are left out. Tables are made by `renew`."""
        self._widen(len(groups))
        arrays = {"shares": self.share_weights, "wholes": self.whole_weights, "insisting": self.insisting}
        for name, array in arrays.items():
            for tier, model, *at, weight in saved[name]:
                if (tier, model) in groups:
                    array[(groups.index((tier, model)), *at)] = weight
        self.sizes, self.ratios = list(saved["sizes"]), list(saved["ratios"])
        self.cutting.table = np.array(saved["worth"])
        self.total, self.demand = saved["total"], saved["demand"]
        self.grown, self.seen = saved["grown"], saved["seen"]

    def _widen(self, groups: int) -> None:
        more = groups - len(self.insisting)
        if more > 0:
            self.share_weights = np.pad(self.share_weights, ((0, more), (0, 0), (0, 0)))
            self.whole_weights = np.pad(self.whole_weights, ((0, more), (0, 0), (0, 0)))
            self.insisting = np.pad(self.insisting, (0, more))

    def renew(self, cards: list[int], idle: list[int]) -> None:
        """Make the tables anew from what was counted, for groups with these cards and idle milli."""
        self._flush(len(cards))
        weights, total = self._weights, max(self.total, 1)
        usable = self.share_weights.cumsum(1).cumsum(2)
        shift = max(0, int(usable.max(initial=0)).bit_length() - 36)  # products stay in 64 bits
        per = max(total >> shift, 1)
        one = MILLI * SCALE * weights.fragmentation
        shares = (usable >> shift) * (np.arange(LEVELS) * (one // (LEVELS - 1))) // per
        wholes = (self.whole_weights.cumsum(1).cumsum(2) >> shift) * (np.arange(self._cards + 1) * one) // per
        worth = np.rint(self.cutting.table * (MILLI * SCALE * weights.worth)).astype(np.int64)
        shortage = self._shortage(np.array(cards, dtype=np.int64), np.array(idle, dtype=np.int64))
        strand = self._strand()
        parts = (shares + worth).reshape(-1)
        version = self.tables.version + 1
        self.tables = Tables(version, shares.reshape(-1), wholes.reshape(-1), parts, worth, strand, shortage)

    def _strand(self) -> Ints:
        """For processors per idle card, in parts of half processors: milli of a card that are left without."""
        counts = np.array(self.ratios[1:], dtype=np.int64) >> max(0, max(self.ratios).bit_length() - 30)
        each = counts * (SCALE * self._weights.strand << 16) // _RATIOS // max(int(counts.sum()), 1)
        found: Ints = (_LACKING * each).sum(1) >> 16
        return found

    def _shortage(self, cards: Ints, idle: Ints) -> Ints:
        """What is insisted on, as a share of the model; short where the rest will be full before they have come."""
        load = self.insisting * 1000 // max(self.demand, 1)
        free = idle // np.maximum(cards, 1)
        all_free = int(idle.sum()) // max(int(cards.sum()), 1)
        short = np.clip(load * all_free // np.maximum(free, 1) - SHORT_FROM, 0, 3000)
        found: Ints = load * self._weights.insist_percent * SCALE // 100_000 + short * self._weights.shortage
        return found
