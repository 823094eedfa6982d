"""Adds up whole numbers by keys, and divides the charge of a rental line among days. Pure.

    amount of a line until t    floor(total * t / span)    0 <= t <= span, whole seconds

This is the rule of billing/repository.py: the parts of a line's days add up to its charge, and so do all sums.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
"""Of shape (n,) unless told otherwise."""

BEGIN, SPAN, BILLED, CHARGED, FEE, SHARE = range(6)
"""Rows of the figures of lines: when it began and for how long it is divided among days (seconds; with the silence of
its host), billed seconds, microcents, and the GPUs in thousandths."""
FIGURES: Final = 6


class Names:
    """Numbers for texts, from 0 in the order in which they came."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text, a new one where it is new."""
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return found

    def find(self, text: str) -> int:
        """The number of a text; -1: none has it."""
        return self._numbers.get(text, -1)


@dataclass(frozen=True, slots=True)
class Lines:
    """Rental lines as columns. ids: of workloads, bytes; figures: (FIGURES, n); keys: (dimensions, n) of names."""

    ids: NDArray[Any]
    figures: Whole
    keys: Whole

    def where(self, chosen: NDArray[Any]) -> "Lines":
        """Those of a mask or of indexes."""
        return Lines(self.ids[chosen], self.figures[:, chosen], self.keys[:, chosen])

    def __len__(self) -> int:
        return len(self.ids)


def joined(parts: Sequence[Lines]) -> Lines:
    """All of them; there is at least one."""
    if len(parts) == 1:
        return parts[0]
    return Lines(
        np.concatenate([one.ids for one in parts]),
        np.concatenate([one.figures for one in parts], axis=1),
        np.concatenate([one.keys for one in parts], axis=1),
    )


@dataclass(frozen=True, slots=True)
class Cut:
    """Lines divided among days: for each part its line, its day (index), and the seconds of the line's span at which it
    begins and ends."""

    line: Whole
    day: Whole
    begin: Whole
    end: Whole


def cut(lines: Lines, edges: Sequence[int]) -> Cut:
    """Divide lines at these edges (seconds since 1970, growing); what lies outside is left out."""
    begin, span = lines.figures[BEGIN], lines.figures[SPAN]
    marks = np.asarray(edges, dtype=np.int64)
    first = np.maximum(np.searchsorted(marks, begin, side="right") - 1, 0)
    last = np.minimum(np.searchsorted(marks, begin + span - 1, side="right") - 1, len(marks) - 2)
    counts = np.where((begin < marks[-1]) & (begin + span > marks[0]), np.maximum(last - first + 1, 0), 0)
    line = np.repeat(np.arange(len(lines)), counts)
    day = np.arange(len(line)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
    at = begin[line]
    return Cut(
        line, day, np.clip(marks[day] - at, 0, span[line]), np.clip(marks[day + 1] - at, 0, span[line])
    )  # fmt: skip


def part(total: Whole, span: Whole, cut: Cut) -> Whole:
    """The part of a figure of each line (n,) that lies in each part of a cut; no product exceeds 64 bits."""
    whole, rest, length = (total // span)[cut.line], (total % span)[cut.line], span[cut.line]
    until_end = whole * cut.end + rest * cut.end // length
    return until_end - (whole * cut.begin + rest * cut.begin // length)


def grouped(keys: Sequence[Whole], values: Sequence[Whole]) -> tuple[Whole, Whole]:
    """Sums by key. keys: up to some columns (n,) of numbers >= 0; values: columns (n,). Returns the different keys
    (columns, m) and the sums (values, m), in the order of the keys."""
    count = len(values[0]) if values else 0
    code = np.zeros(count, dtype=np.int64)
    for column in keys:
        code = code * (int(column.max(initial=0)) + 1) + column
    _, first, place = np.unique(code, return_index=True, return_inverse=True)
    sums = np.zeros((len(values), len(first)), dtype=np.int64)
    for row, column in zip(sums, values, strict=True):
        np.add.at(row, place, column)
    found = np.array([column[first] for column in keys], dtype=np.int64).reshape(len(keys), len(first))
    return found, sums
