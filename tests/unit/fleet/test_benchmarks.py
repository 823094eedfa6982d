"""The choice of the figures of test rentals that count."""

import pytest

from windrow_master.fleet.benchmarks import counted
from windrow_proto.metrics import BENCHMARK_UNIT, GPU_MATRIX, GPU_MEMORY, MATRIX_UNIT
from windrow_proto.model import Benchmark


def runs(*values, name=GPU_MEMORY, unit=BENCHMARK_UNIT, subject="GPU-1"):
    """Figures, the newest first."""
    return [Benchmark(name, value, unit, 100 - at, subject) for at, value in enumerate(values)]


@pytest.mark.parametrize(
    ("newest_first", "counts"),
    [
        ([9.0], 9.0),
        ([5.0, 9.0], 5.0),
        ([9.0, 5.0], 5.0),
        ([5.0, 9.0, 9.0], 9.0),
        ([5.0, 5.0, 9.0], 5.0),
        ([9.0, 5.0, 5.0], 5.0),
        ([9.0, 9.0, 5.0, 5.0, 5.0], 9.0),
    ],
)
def test_one_run_moves_nothing_and_the_second_that_says_the_same_does(newest_first, counts):
    (one,) = counted(runs(*newest_first))
    assert one.value == counts


def test_each_card_and_each_figure_is_for_itself():
    both = [*runs(5.0), *runs(7.0, subject="GPU-2"), *runs(8.0, name=GPU_MATRIX, unit=MATRIX_UNIT)]
    assert {(one.subject, one.name): one.value for one in counted(both)} == {
        ("GPU-1", GPU_MEMORY): 5.0,
        ("GPU-2", GPU_MEMORY): 7.0,
        ("GPU-1", GPU_MATRIX): 8.0,
    }
    assert counted([]) == ()
