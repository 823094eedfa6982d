"""The growth of an agent's memory is that of its level, whatever it gives back and takes again meanwhile."""

import pytest

from bench._cards import COUNT
from bench.agent import growth_mib

SECONDS = 600


def looked(mib_a_second: float, seconds: int = SECONDS) -> list[float]:
    """Memory that falls by 3 MiB each half minute and comes back, on a level that rises so."""
    return [50 + 3 * (at % 30) / 30 + mib_a_second * at for at in range(seconds)]


@pytest.mark.parametrize("growth", [0.0, 0.5, 1.0, -1.0])
def test_the_level_is_what_grows(growth: float) -> None:
    found = growth_mib(looked(growth * COUNT / 10_000), SECONDS)
    assert found == pytest.approx(growth, abs=0.02)


def test_looks_that_come_late_are_of_more_samples() -> None:
    found = growth_mib(looked(COUNT / 10_000), 2 * SECONDS)
    assert found == pytest.approx(0.5, abs=0.02)


def test_a_short_run_says_nothing_of_it() -> None:
    assert growth_mib(looked(1.0, 60), 60) is None
