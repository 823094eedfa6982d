"""The schedule of sweeps, and figures that become integers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_agent.core import sampling, scaling
from windrow_agent.core.sampling import Due, batches, is_batch_due
from windrow_proto.metrics import BY_NUMBER
from windrow_proto.samples import Sample
from windrow_proto.units import SECOND


def test_the_first_instant_reads_processes_but_not_the_inventory_again():
    schedule, due = sampling.advance(sampling.start(0), 0, SECOND)
    assert due == Due(sample=True, processes=True, inventory=False)
    assert sampling.advance(schedule, SECOND - 1, SECOND)[1].sample is False


def test_process_lists_come_at_a_tenth_and_the_inventory_at_a_sixtieth_of_the_rate():
    schedule = sampling.start(0)
    dues = []
    for second in range(121):
        schedule, due = sampling.advance(schedule, second * SECOND, SECOND)
        dues.append(due)
    assert sum(due.sample for due in dues) == 121
    assert [second for second, due in enumerate(dues) if due.processes][:3] == [0, 10, 20]
    assert [second for second, due in enumerate(dues) if due.inventory] == [60, 120]


def test_instants_missed_are_skipped_and_never_caught_up():
    schedule, due = sampling.advance(sampling.start(0), 7 * SECOND + 5, SECOND)
    assert due.sample
    assert schedule.sample_ns == 8 * SECOND


def test_a_shorter_period_takes_hold_at_once_and_a_longer_one_at_the_next_instant():
    schedule, _ = sampling.advance(sampling.start(0), 0, 60 * SECOND)
    assert sampling.with_period(schedule, SECOND, SECOND).sample_ns == 2 * SECOND
    assert sampling.with_period(schedule, SECOND, 300 * SECOND).sample_ns == 60 * SECOND


@pytest.mark.parametrize(("asked", "given"), [(0, SECOND), (-5, SECOND), (1, SECOND // 5), (10**18, 300 * SECOND)])
def test_a_period_is_kept_within_bounds(asked: int, given: int):
    assert sampling.bounded_period(asked) == given


@given(now=st.integers(0, 10**15), period=st.integers(1, 10**12), start=st.integers(0, 10**15))
def test_the_next_instant_is_always_ahead_and_within_one_period(now: int, period: int, start: int):
    schedule, due = sampling.advance(sampling.start(start), now, period)
    assert schedule.sample_ns > now or not due.sample
    assert not due.sample or schedule.sample_ns - now <= period


def test_one_instant_holds_the_host_under_the_empty_device():
    sample = sampling.merge(5, {101: 1, 103: None}, {("GPU-1", 4): 40})
    assert (sample.at_wall_ns, dict(sample.values)) == (5, {("", 101): 1, ("", 103): None, ("GPU-1", 4): 40})
    assert sampling.absent([("GPU-1", 4)]) == {("GPU-1", 4): None}


@pytest.mark.parametrize(
    ("made", "metric", "value"),
    [
        (scaling.mebibytes(3 * 2**20 + 2**19), 3, 3 * 2**20),
        (scaling.deciwatts(70_449), 6, 70.4),
        (scaling.deciwatts(70_450), 6, 70.5),
        (scaling.joules(1_999), 7, 1.0),
        (scaling.permille(12.34), 101, 0.123),
        (scaling.hundredths(1.236), 103, 1.24),
        (scaling.kibibytes(2047), 104, 1024.0),
    ],
)
def test_a_figure_times_its_scale_is_the_value(made: int, metric: int, value: float):
    assert made * BY_NUMBER[metric].scale == pytest.approx(value)


@pytest.mark.parametrize("value", [None, True, "5", 1.5, -1, scaling.WIRE_MAX + 1])
def test_what_is_no_whole_number_in_range_is_absent(value: object):
    assert scaling.whole(value) is None


def test_absent_stays_absent_through_every_conversion():
    conversions = (scaling.mebibytes, scaling.kibibytes, scaling.deciwatts, scaling.joules)
    assert [convert(None) for convert in conversions] == [None] * 4
    assert (scaling.permille(None), scaling.hundredths(None), scaling.permille(250.0)) == (None, None, 1000)


def test_a_backlog_of_samples_is_cut_into_messages_in_order() -> None:
    samples = [Sample(at, {("", metric): 1 for metric in range(3)}) for at in range(5)]

    groups = list(batches(samples, values_max=7))

    assert [[sample.at_wall_ns for sample in group] for group in groups] == [[0, 1], [2, 3], [4]]
    assert list(batches([], values_max=7)) == []
    assert [len(group) for group in batches(samples[:2], values_max=1)] == [1, 1]


def test_a_message_names_no_more_devices_than_it_may() -> None:
    samples = [Sample(at, {(f"workload_{at}_{n}", 201): 1 for n in range(30)} | {("", 101): 1}) for at in range(3)]

    assert [[sample.at_wall_ns for sample in group] for group in batches(samples, values_max=1000)] == [[0, 1], [2]]


@pytest.mark.parametrize(
    ("since_s", "sample_s", "batch_s", "due"),
    [
        (0.99, 1, 1, True),  # watched: each sample goes at once, and a little jitter does not hold it back
        (1.2, 1, 1, True),
        (0.4, 1, 1, False),
        (4.49, 1, 5, False),
        (4.6, 1, 5, True),
        (9.0, 1, 5, True),
        (5.0, 30, 5, True),  # samples are rarer than batches: each is one
    ],
)
def test_a_batch_ends_with_the_sample_that_lies_nearest_to_its_period(
    since_s: float, sample_s: int, batch_s: int, due: bool
) -> None:
    assert is_batch_due(int(since_s * SECOND), sample_s * SECOND, batch_s * SECOND) is due
