"""The worst case of a purchase is reserved under every cap, and the book says what it cost."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.hybrid.purchases.examples import NOW, offer, purchase, row
from windrow_master.hybrid.backends.port import Billing
from windrow_master.hybrid.purchases import costs
from windrow_master.hybrid.purchases.model import LIVING_MAX, OVERRUN_S, Buyer, Caps
from windrow_master.hybrid.purchases.states import State
from windrow_proto.errors import InvalidInput, QuotaExceeded
from windrow_proto.units import DAY, HOUR, MINUTE, Microcents, parse_money

USD = parse_money
ONE = purchase(State.WANTED)  # 1.10 an hour at the dearest, 2.75 in all
CAPS = Caps(per_hour=USD("2.20"), per_day=USD("5.50"), in_all=USD("5.50"), machines=2, vcpus=8)


def test_the_worst_case_counts_the_dearest_price_and_the_time_past_its_end() -> None:
    assert OVERRUN_S == 30 * 60
    assert costs.worst_case(offer("1.00"), costs.dearest(USD("1.00")), 2 * HOUR) == USD("2.75")
    assert costs.worst_case(offer(billing=Billing(3600, 3600)), USD("1.00"), 2 * HOUR) == USD("3.00")


def test_a_second_one_that_just_fits_all_caps_is_allowed() -> None:
    costs.check_caps(row(CAPS), ONE, [ONE], costs.Spent())


@pytest.mark.parametrize(
    "cap",
    [{"per_hour": USD("2.19")}, {"per_day": USD("5.49")}, {"in_all": USD("5.49")}, {"machines": 1}, {"vcpus": 7}],
)
def test_each_cap_refuses_the_one_that_would_pass_it(cap: dict[str, Any]) -> None:
    name = next(iter(cap))
    with pytest.raises(QuotaExceeded, match=rf"\({name}\)"):
        costs.check_caps(row(replace(CAPS, **cap)), ONE, [ONE], costs.Spent())


def test_what_is_in_the_book_counts_under_the_caps_of_its_day_and_in_all() -> None:
    with pytest.raises(QuotaExceeded, match="per_day"):
        costs.check_caps(row(CAPS), ONE, [], costs.Spent(today=USD("2.76"), in_all=USD("2.76")))
    with pytest.raises(QuotaExceeded, match="in_all"):
        costs.check_caps(row(CAPS), ONE, [], costs.Spent(today=USD("0"), in_all=USD("2.76")))


def test_one_that_nobody_could_end_counts_with_all_that_it_has_cost() -> None:
    late = purchase(State.ENDING, launched_at_ns=NOW)
    caps, now_ns = row(Caps(per_day=USD("100"), in_all=USD("10"))), NOW + 7 * HOUR
    costs.check_caps(caps, replace(ONE, created_at_ns=now_ns), [late], costs.Spent())
    with pytest.raises(QuotaExceeded, match="in_all"):
        costs.check_caps(caps, replace(ONE, created_at_ns=now_ns + HOUR), [late], costs.Spent())
    with pytest.raises(QuotaExceeded, match="per_day"):
        caps = row(Caps(per_day=USD("10"), in_all=USD("100")))
        costs.check_caps(caps, replace(ONE, created_at_ns=now_ns + HOUR), [late], costs.Spent())
    with pytest.raises(QuotaExceeded, match="in_all"):
        buyer = Buyer(backend="aws", account_id=ONE.account_id, in_all=USD("10"))
        costs.check_buyer(buyer, replace(ONE, created_at_ns=now_ns + HOUR), [late], costs.Spent())


def test_a_machine_for_days_counts_a_day_of_it_under_the_cap_per_day() -> None:
    long = replace(ONE, reserved=USD("110"))
    caps = Caps(per_day=USD("26.40"), in_all=USD("110"))
    costs.check_caps(row(caps), long, [], costs.Spent())


def test_another_currency_than_that_of_the_caps_is_refused() -> None:
    with pytest.raises(InvalidInput, match="XTS"):
        costs.check_caps(row(CAPS), replace(ONE, offer=offer(currency="XTS")), [], costs.Spent())


def test_the_number_of_living_purchases_has_a_limit_without_any_cap() -> None:
    with pytest.raises(QuotaExceeded, match="1,000"):
        costs.check_caps(row(Caps()), ONE, [ONE] * LIVING_MAX, costs.Spent())


@pytest.mark.parametrize(
    "caps", [Caps(), Caps(machines=3), Caps(per_hour=Microcents(-1)), Caps(per_day=USD("1"), currency="usd")]
)
def test_caps_that_limit_no_money_or_make_no_sense_are_refused(caps: Caps) -> None:
    with pytest.raises(InvalidInput):
        costs.check_is_capped(caps)


def test_the_book_has_the_bill_of_the_provider_by_its_rule() -> None:
    gone = purchase(State.GONE, launched_at_ns=NOW, ended_at_ns=NOW + 61 * MINUTE, idle_ns=5 * MINUTE)
    by_second = costs.entry(gone, [], USD("1.50"), NOW + DAY)
    assert (by_second.billed_s, by_second.idle_s, by_second.cost) == (3660, 300, Microcents(USD("1.00") * 61 // 60))
    assert by_second.paid == USD("1.50")
    by_hour = costs.entry(replace(gone, offer=offer(billing=Billing(3600, 3600))), [], USD("0"), NOW + DAY)
    assert (by_hour.billed_s, by_hour.cost) == (7200, USD("2.00"))


def test_a_purchase_that_was_not_over_after_all_has_the_rest_in_a_further_entry() -> None:
    gone = purchase(State.GONE, launched_at_ns=NOW, ended_at_ns=NOW + HOUR)
    first = costs.entry(gone, [], USD("0.40"), NOW + HOUR)
    second = costs.entry(replace(gone, ended_at_ns=NOW + 2 * HOUR), [first], USD("0.40"), NOW + DAY)
    assert (second.cost, second.billed_s, second.paid) == (USD("1.00"), 3600, 0)


@pytest.mark.parametrize("lie", [{"ended_at_ns": NOW + 10**6 * DAY}, {"launched_at_ns": NOW + 10**6 * DAY}])
def test_a_machine_that_lies_about_its_times_costs_nothing_beyond_now(lie: dict[str, Any]) -> None:
    found = replace(purchase(State.ENDING, launched_at_ns=NOW), **lie)
    assert 0 <= costs.entry(found, [], Microcents(0), NOW + HOUR).cost <= USD("1")


def test_what_is_owed_now_counts_machines_and_not_doubts() -> None:
    living = [purchase(State.SERVING, launched_at_ns=NOW), purchase(State.DOUBTFUL)]
    owed = costs.owed(row(CAPS), living, costs.Spent(USD("3"), USD("9")), NOW + HOUR)
    assert (owed.per_hour, owed.today, owed.in_all) == (USD("1"), USD("4"), USD("10"))
    assert (owed.living, owed.reserved, owed.vcpus) == (2, USD("5.50"), 8)
