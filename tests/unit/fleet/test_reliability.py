"""A host earns its figure slot by slot, loses it by its own faults, and is forgotten with time."""

from math import exp, lgamma, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_master.fleet.reliability import (
    ABORT_COST,
    ENOUGH,
    ENOUGH_BAD,
    FAULT_COST,
    HALF_LIFE_NS,
    LEASED_WEIGHT,
    SLOT_NS,
    STEP,
    Record,
    beta_below,
    beta_quantile,
    decayed,
    known,
    reliability,
    shown,
    with_abort,
    with_fault,
    with_slot,
    words,
)
from windrow_master.fleet.tiers import RELIABILITY

weights = st.floats(0, 20_000)
few = st.floats(0, 20)
records = st.builds(Record, st.just(0), weights, weights, few, few)
instants = st.integers(0, 100 * HALF_LIFE_NS)


def by_summing(x, a, b, steps=20_000):
    """The same integral for a > 1, by Simpson's rule on the density: nothing in common with the continued fraction."""
    scale = lgamma(a + b) - lgamma(a) - lgamma(b)

    def density(t):
        return exp(scale + (a - 1) * log(t) + (b - 1) * log(1 - t)) if t > 0 else 0.0

    mean, deviation = a / (a + b), (a * b / (a + b + 1)) ** 0.5 / (a + b)
    start = max(0.0, mean - 40 * deviation)
    width = (x - start) / steps
    inner = sum((4 if step % 2 else 2) * density(start + step * width) for step in range(1, steps))
    return (density(start) + inner + density(x)) * width / 3


@pytest.mark.parametrize(
    ("x", "a", "b"),
    [
        (0.5, 3.5, 2.5),
        (0.1, 2, 3),
        (0.9, 2, 3),
        (0.97, 101, 2.5),
        (0.99, 1000.25, 4),
        (0.999, 5000, 3),
        (0.4, 40, 60),
        (0.3, 40, 60),
    ],
)
def test_the_integral_is_that_of_the_density(x, a, b):
    assert beta_below(x, a, b) == pytest.approx(by_summing(x, a, b), abs=1e-9)


@given(st.floats(0.001, 0.999), st.floats(1, 20_000))
def test_where_there_is_a_closed_form_it_agrees(x, a):
    assert beta_below(x, a, 1) == pytest.approx(x**a, rel=1e-8, abs=1e-12)
    assert beta_below(x, 1, a) == pytest.approx(1 - (1 - x) ** a, rel=1e-8, abs=1e-12)


@given(st.floats(0.01, 0.99), st.floats(1, 20_000), st.floats(1, 20_000))
def test_the_quantile_turns_the_integral_round(probability, a, b):
    assert beta_below(beta_quantile(probability, a, b), a, b) == pytest.approx(probability, abs=1e-6)


@given(records, instants)
def test_the_figure_is_a_share(record, now_ns):
    assert 0 <= reliability(record, now_ns) <= 1


@given(records, st.booleans())
def test_a_good_slot_never_lowers_it_and_a_bad_one_never_raises_it(record, is_leased):
    before = reliability(record, 0)
    assert reliability(with_slot(record, 0, is_good=True, is_leased=is_leased), 0) >= before - 1e-12
    assert reliability(with_slot(record, 0, is_good=False, is_leased=is_leased), 0) <= before + 1e-12


@pytest.mark.parametrize("record", [Record(0), Record(0, 5000, 3), Record(0, 288, 0, 2, 1), Record(0, 10, 10, 9, 9)])
def test_a_fault_and_an_abort_take_their_cost(record):
    before = reliability(record, 0)
    assert reliability(with_fault(record, 0), 0) == pytest.approx(max(0, before - FAULT_COST), abs=1e-12)
    assert reliability(with_abort(record, 0), 0) == pytest.approx(max(0, before - ABORT_COST), abs=1e-12)


@given(records, instants)
def test_what_is_not_renewed_decays(record, now_ns):
    later = decayed(record, now_ns)
    for name in ("good", "bad", "faults", "aborts"):
        assert 0 <= getattr(later, name) <= getattr(record, name)
    half = decayed(record, HALF_LIFE_NS)
    assert half.good == pytest.approx(record.good / 2)
    assert half.faults == pytest.approx(record.faults / 2)


@given(records, instants, instants)
def test_decaying_twice_is_decaying_once(record, first, second):
    a, b = sorted((first, second))
    twice, once = decayed(decayed(record, a), b), decayed(record, b)
    assert twice.good == pytest.approx(once.good)
    assert twice.at_ns == once.at_ns


def test_a_time_before_the_record_changes_nothing():
    assert decayed(Record(10, 5.0), 3) == Record(10, 5.0)


def steady(slots, *, is_leased=False, record=None):
    record = record or Record(0)
    for _ in range(slots):
        record = with_slot(record, record.at_ns + SLOT_NS, is_good=True, is_leased=is_leased)
    return record


def figure(record):
    return reliability(record, record.at_ns)


def test_a_new_host_starts_low_and_rises_by_what_is_seen_of_it():
    assert figure(Record(0)) == pytest.approx(0.05)
    assert figure(steady(12)) == pytest.approx(0.79, abs=0.01)
    assert figure(steady(288)) == pytest.approx(0.99, abs=0.001)
    assert figure(steady(12, is_leased=True)) > figure(steady(12))


def test_a_leased_slot_weighs_four():
    assert with_slot(Record(0), 0, is_good=True, is_leased=True).good == LEASED_WEIGHT
    assert with_slot(Record(0), 0, is_good=False, is_leased=True).bad == LEASED_WEIGHT


def test_a_host_that_nobody_sees_for_a_year_starts_anew():
    record = steady(288)
    assert reliability(record, record.at_ns + 26 * HALF_LIFE_NS) == pytest.approx(0.05, abs=0.001)


def test_a_bad_day_is_forgiven_by_good_weeks():
    record = steady(288)
    for _ in range(72):
        record = with_slot(record, record.at_ns + SLOT_NS, is_good=False, is_leased=False)
    after = figure(record)
    assert after < 0.8
    assert figure(steady(288 * 28, record=record)) > 0.98


def test_the_figure_is_known_once_a_host_that_was_never_missed_could_be_of_grade_a():
    assert known(Record(0, good=ENOUGH - 0.1), 0) is None
    assert known(Record(0, good=ENOUGH), 0) == reliability(Record(0, good=ENOUGH), 0)
    assert reliability(Record(0, good=ENOUGH), 0) >= RELIABILITY.a > reliability(Record(0, good=ENOUGH - 4), 0)


def test_it_is_known_sooner_of_a_host_that_is_bad_with_the_same_confidence():
    half = ENOUGH_BAD / 2
    assert known(Record(0, good=half, bad=half - 0.1), 0) is None
    assert known(Record(0, good=half, bad=half), 0) is not None
    assert known(Record(0, good=ENOUGH_BAD, bad=1), 0) is None


def test_what_is_shown_moves_by_a_step_or_not_at_all():
    assert [shown(0.9, now) for now in (0.9 + 0.9 * STEP, 0.9 + 1.1 * STEP, None)] == [0.9, 0.9 + 1.1 * STEP, None]
    assert shown(None, 0.9) == 0.9


@pytest.mark.case("M-17")
def test_the_words_say_what_the_figure_is_made_of():
    assert words(Record(0, good=3, bad=1), 0).startswith("not known yet: it was there for 3 of 4 points")
    said = words(Record(0, good=300, bad=0, faults=1, aborts=2), 0)
    assert said.startswith("0.870: it was there for 300 of 300 points; 1.0 faults of its own, 2.0 leases")
