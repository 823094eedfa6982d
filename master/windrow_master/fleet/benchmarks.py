"""Chooses the benchmark figure of a card that counts for its tier, among those that test rentals measured. Pure.

Of each figure the newest three are held beside each other, and the middle one counts: one run beside a busy neighbour
moves no tier, and the second that says the same does. Of two the lower counts, in favour of who rents.
"""

from collections.abc import Iterable
from statistics import median_low
from typing import Final

from windrow_proto.model import Benchmark

RUNS: Final = 3
"""Held beside each other: at one a day, a card that became slow is in another tier on the second."""


def counted(figures: Iterable[Benchmark]) -> tuple[Benchmark, ...]:
    """One for each card and name. figures: of one host, the newest first."""
    runs: dict[tuple[str, str, str], list[Benchmark]] = {}
    for figure in figures:
        runs.setdefault((figure.subject, figure.name, figure.unit), []).append(figure)
    return tuple(_middle(found[:RUNS]) for found in runs.values())


def _middle(found: list[Benchmark]) -> Benchmark:
    value = median_low([figure.value for figure in found])
    return next(figure for figure in found if figure.value == value)
