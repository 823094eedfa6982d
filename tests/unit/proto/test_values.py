"""Ids, quantities, metrics and errors: small promises that much else stands on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_proto import errors, ids, metrics, units
from windrow_proto.ids import HostId
from windrow_proto.units import HOUR, MILLISECOND, SECOND, Microcents

amounts = st.integers(-(10**18), 10**18).map(Microcents)
NOW = 1_790_000_000_123_456_789


@given(st.integers(0, 1 << 60), st.binary(min_size=10, max_size=10))
def test_an_id_has_the_form_of_its_kind_and_version_seven(now_ns, entropy):
    minted = ids.mint("host", now_ns, entropy)

    assert ids.is_id(minted, "host")
    assert not ids.is_id(minted, "ho")
    assert minted[5 + 12] == "7"
    assert minted[5 + 16] in "89ab"


def test_later_ids_sort_later_and_need_enough_randomness():
    assert ids.mint("cl", NOW, b"\xff" * 10) < ids.mint("cl", NOW + MILLISECOND, bytes(10))
    assert ids.mint("cl", NOW, bytes(10)) != ids.mint("cl", NOW, bytes(9) + b"\x01")
    with pytest.raises(ValueError, match="random"):
        ids.mint("cl", NOW, bytes(9))
    assert ids.cpu_slot(HostId("host_1"), 2) == "host_1/cpu/2"


@given(amounts)
def test_money_is_written_without_loss(amount):
    text = units.money_text(amount)

    assert units.parse_money(text) == amount
    assert len(text.partition(".")[2]) >= 2


@pytest.mark.parametrize("bad", ["", "1e5", "0.000000001", "nan", "--1", "1" * 31, "1,5", "."])
def test_what_is_no_amount_is_refused(bad):
    with pytest.raises(ValueError, match="money"):
        units.parse_money(bad)


@given(st.integers(0, 10**12), st.lists(st.integers(0, 10 * HOUR), min_size=1, max_size=8))
def test_charges_of_parts_add_up_to_the_charge_of_the_whole(price, steps):
    total, posted = 0, 0
    for step in steps:
        before = units.charge(Microcents(price), total)
        total += step
        posted += units.charge(Microcents(price), total) - before

    assert posted == units.charge(Microcents(price), total) <= price * total / HOUR + 1


@given(st.integers(0, 10**15).map(Microcents), st.integers(1, 10**12).map(Microcents))
def test_what_a_balance_funds_never_costs_more_than_the_balance(balance, price):
    funded = units.funded_ns(balance, price)

    assert funded is not None
    assert units.charge(price, funded) <= balance
    assert units.funded_ns(balance, Microcents(0)) is None


def test_negative_time_or_price_cannot_be_charged():
    for price, time in ((-1, 1), (1, -1)):
        with pytest.raises(ValueError, match="at least zero"):
            units.charge(Microcents(price), time)


@given(st.integers(0, 4_000_000_000_000))
def test_a_time_is_written_to_the_millisecond_and_read_back(ms):
    assert units.parse_time(units.time_text(ms * MILLISECOND)) == ms * MILLISECOND


def test_a_time_needs_its_offset():
    assert units.parse_time("2026-01-01T01:00:00+01:00") == units.parse_time("2026-01-01T00:00:00Z")
    assert units.seconds(3 * SECOND) == 3.0
    with pytest.raises(ValueError, match="offset"):
        units.parse_time("2026-01-01T00:00:00")


def test_metrics_have_numbers_and_names_of_their_own():
    assert len(metrics.BY_NUMBER) == len(metrics.BY_NAME) == len(metrics.METRICS)
    assert all(metric.name.startswith(metric.scope.value + "_") for metric in metrics.METRICS)
    assert all(metric.name.endswith("_total") == metric.counter for metric in metrics.METRICS)


def test_every_error_has_a_code_of_its_own_and_a_sentence():
    table = errors.table()

    own = {one for one in errors._all(errors.WindrowError) if one.__module__ == errors.__name__}
    assert set(table.values()) >= own
    for code, error in table.items():
        assert error().detail.endswith(".") or "`" in error().detail
        assert f"[{code}]" in str(error())


def test_an_error_comes_back_by_its_code_and_a_strange_code_is_kept():
    again = errors.from_code("banned", "You are out.", "host_1")

    assert isinstance(again, errors.Banned)
    assert str(again) == "You are out. [banned host_1]"
    assert "code newer" in str(errors.from_code("newer"))
