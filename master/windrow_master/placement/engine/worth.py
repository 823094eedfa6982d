"""How much each part of a card is worth: the duals of the cutting-stock problem of the learnt sizes. Pure.

    cover all demand with as few cards as possible:  min sum x_p,  sum_p a_ip x_p >= d_i,  x >= 0

where a pattern p says how many pieces of each size one card gives. The dual of size i is what a piece of it is worth as
a share of a card, and the worth of a part of a card is the best that can be cut from it. Solved by column generation: a
dense revised simplex over the patterns known so far; the knapsack of the duals finds the next pattern or proves that
there is none. `step` makes one pivot, so that a solution costs a bounded time at each request, however many sizes
there are.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
STEPS_MAX: Final = 400
"""Pivots after which the duals so far are taken, scaled so that no pattern is worth more than a card: 28 sizes need
fewer than 100, 100 random sizes some 560, of which the last ones hardly change a dual."""
EPSILON: Final = 1e-9
NEVER: Final = -1e9


def knapsack(values: Array) -> Array:
    """The best value that can be cut from a part of each size, from the value of a piece of each size (-1e9: no such
    piece); shape (levels,) both. Pieces double with each round, so that 7 rounds do for 100 levels."""
    levels = len(values)
    index = np.arange(levels)[:, None] - np.arange(levels)[None, :]
    index[index < 0] = levels
    best = np.maximum.accumulate(np.maximum(values, 0))
    while True:
        padded = np.append(best, NEVER)
        better = (best[None, :] + padded[index]).max(1)
        if (better <= best + EPSILON).all():
            return best
        best = better


class Cutting:
    """The problem between two solutions, and the last solution: `table`, the worth of a part of each size as a share of
    a whole card."""

    def __init__(self, levels: int) -> None:
        """levels: a whole card has levels - 1 steps. Without demand a part is worth its size."""
        self.levels = levels
        self.table: Array = np.arange(levels) / (levels - 1)
        self.is_solved = True
        self._sizes: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._patterns: list[Array] = []
        self._inverse: Array = np.zeros((0, 0))
        self._amounts: Array = np.zeros(0)
        self._costs: Array = np.zeros(0)
        self._steps = 0

    def start(self, demand: NDArray[np.int64]) -> None:
        """Begin with a new demand, shape (levels,): pieces of each size. The last basis is used again if it fits."""
        sizes = np.flatnonzero(demand)
        if not len(sizes):
            return
        wanted = demand[sizes].astype(np.float64)
        wanted /= wanted.sum()
        if np.array_equal(sizes, self._sizes) and ((self._inverse @ wanted) >= 0).all():
            self._amounts = self._inverse @ wanted
        else:
            fit = (self.levels - 1) // sizes
            if not np.array_equal(sizes, self._sizes):
                self._patterns = []
            self._sizes = sizes
            self._inverse = np.diag(1.0 / fit)
            self._amounts = wanted / fit
            self._costs = np.ones(len(sizes))
        self._steps = 0
        self.is_solved = False

    def step(self) -> bool:
        """One pivot; True when the table is new."""
        if self.is_solved:
            return False
        self._steps += 1
        duals = self._costs @ self._inverse
        entering = self._entering(duals) if self._steps <= STEPS_MAX else None
        if entering is None:
            best = self._cut(np.maximum(duals, 0))
            self.table = best / max(1.0, float(best[-1]))
            self.is_solved = True
            return True
        column, cost = entering
        self._pivot(column, cost)
        return False

    def _entering(self, duals: Array) -> tuple[Array, float] | None:
        """A column that makes it cheaper and its cost: a piece too many, a known pattern, or the best new one."""
        worst = int(duals.argmin())
        if duals[worst] < -EPSILON:
            column = np.zeros(len(duals))
            column[worst] = -1.0
            return column, 0.0
        if self._patterns:
            gains = np.array(self._patterns) @ duals
            best = int(gains.argmax())
            if gains[best] > 1 + 1e-7:
                return self._patterns[best], 1.0
        table = self._cut(duals)
        if table[-1] <= 1 + 1e-7:
            return None
        pattern = self._pattern(duals, table)
        self._patterns.append(pattern)
        del self._patterns[: -4 * len(duals)]
        return pattern, 1.0

    def _cut(self, duals: Array) -> Array:
        values = np.full(self.levels, NEVER)
        values[self._sizes] = duals
        return knapsack(values)

    def _pattern(self, duals: Array, table: Array) -> Array:
        """The pieces that the best cut of a whole card has."""
        pattern, room = np.zeros(len(duals)), self.levels - 1
        while room >= self._sizes[0] and table[room] > EPSILON:
            if table[room - 1] >= table[room] - EPSILON:
                room -= 1
                continue
            fits = self._sizes <= room
            rest = table[np.where(fits, room - self._sizes, 0)] + np.where(fits, duals, NEVER)
            piece = int(rest.argmax())
            pattern[piece] += 1
            room -= int(self._sizes[piece])
        return pattern

    def _pivot(self, column: Array, cost: float) -> None:
        """Bring a column into the basis instead of the first one that it drives to nothing."""
        moved = self._inverse @ column
        grows = moved > EPSILON
        if not grows.any():
            self._steps = STEPS_MAX  # cannot be: the costs are positive
            return
        ratios = np.where(grows, self._amounts / np.where(grows, moved, 1.0), np.inf)
        row = int(ratios.argmin())
        lever = self._inverse[row] / moved[row]
        amount = self._amounts[row] / moved[row]
        self._inverse -= np.outer(moved, lever)
        self._inverse[row] = lever
        self._amounts = np.maximum(self._amounts - moved * amount, 0)
        self._amounts[row] = amount
        self._costs[row] = cost
