"""Promises of spending limits as values: each at its edge, two at once, the change of a month, lowered or withdrawn."""

from dataclasses import replace

import pytest

from tests.unit.market.rentals import PRICE, rental
from windrow_master.market import limits
from windrow_master.market.limits import Asked, Limits, SpendingLimit, Use
from windrow_proto.errors import SpendingLimitReached
from windrow_proto.ids import AccountId
from windrow_proto.units import HOUR, MICROCENTS_PER_UNIT, Microcents, parse_time

NOW = parse_time("2026-05-31T23:59:59Z")
JUNE = parse_time("2026-06-01T00:00:00Z")
UNIT = MICROCENTS_PER_UNIT
ACCOUNT = AccountId("account_1")


def row(spent: int = 0, month_spent: int = 0, spender: str = "token_1", **given: int) -> SpendingLimit:
    one = Limits(**given)  # type: ignore[arg-type]  # of money and of leases alike
    amounts = Microcents(spent), "2026-05", Microcents(month_spent)
    return SpendingLimit(spender, ACCOUNT, "ci", one, *amounts, 0, "user/1")


def use(held: int = 0, hourly_cost: int = 0, leases: int = 0) -> Use:
    return Use(Microcents(held), Microcents(hourly_cost), leases)


def refused(one: SpendingLimit, taken: Use, price: int, hold: int = 0, leases: int = 1, now_ns: int = NOW) -> str:
    """Why it is refused; empty: it is not."""
    try:
        limits.check(one, taken, Asked(Microcents(price), Microcents(hold), leases), now_ns)
    except SpendingLimitReached as error:
        assert error.subject == one.spender_id
        return error.detail
    return ""


@pytest.mark.parametrize(("running", "more", "is_refused"), [(0, 200, False), (150, 50, False), (150, 51, True)])
def test_an_hourly_limit_is_of_all_that_runs_at_once(running: int, more: int, is_refused: bool) -> None:
    assert bool(refused(row(max_hourly_cost=200), use(hourly_cost=running), more)) is is_refused


@pytest.mark.parametrize(("leases", "is_refused"), [(0, False), (2, False), (3, True), (4, True)])
def test_so_many_leases_and_no_more(leases: int, is_refused: bool) -> None:
    assert bool(refused(row(max_leases=3), use(leases=leases), 0)) is is_refused


def test_a_lease_that_grows_is_not_another_one() -> None:
    assert not refused(row(max_leases=1), use(leases=1), 5, leases=0)


@pytest.mark.parametrize("kind", ["max_monthly_cost", "max_total_cost"])
@pytest.mark.parametrize(
    ("spent", "held", "hold", "is_refused"), [(0, 0, 100, False), (60, 30, 10, False), (60, 30, 11, True)]
)
def test_money_that_is_set_aside_is_taken_already(
    kind: str, spent: int, held: int, hold: int, is_refused: bool
) -> None:
    one = row(spent, spent, "token_1", **{kind: 100})
    assert bool(refused(one, use(held), 1, hold)) is is_refused
    assert limits.holdable([(one, use(held))], NOW) == 100 - spent - held


def test_two_at_once_get_what_one_leaves() -> None:
    one, hold = row(max_total_cost=100), 60
    assert not refused(one, use(), 1, hold)
    assert refused(one, use(held=hold), 1, hold)


def test_a_free_lease_passes_where_no_money_is_left() -> None:
    assert not refused(row(100, 100, max_total_cost=100, max_hourly_cost=0), use(), 0)


def test_a_month_ends_at_midnight_in_utc_and_takes_what_is_held_with_it() -> None:
    one = row(100, 100, max_monthly_cost=100)
    assert limits.month_of(NOW) == "2026-05" and limits.month_began_ns(NOW) == parse_time("2026-05-01T00:00:00Z")
    assert refused(one, use(), 1, 1) and not refused(one, use(), 1, 1, now_ns=JUNE)
    assert limits.holdable([(one, use(held=30))], JUNE) == 70
    first = limits.charged(one, Microcents(40), JUNE)
    assert (first.spent, first.month, first.month_spent) == (140, "2026-06", 40)
    assert limits.chargeable([first], JUNE) == 60
    assert limits.charged(row(5, 5, max_total_cost=9), Microcents(2), NOW).month_spent == 7


def test_a_limit_in_all_does_not_begin_anew_with_a_month() -> None:
    assert refused(row(100, 0, max_total_cost=100), use(), 1, 1, now_ns=JUNE)


def test_the_least_of_all_limits_counts() -> None:
    project, token = row(90, 90, "account_1", max_monthly_cost=100), row(0, 0, max_total_cost=30)
    assert limits.chargeable([project, token], NOW) == 10
    assert limits.holdable([(project, use(held=4)), (token, use(held=29))], NOW) == 1
    assert limits.chargeable([row(max_leases=1)], NOW) is None and limits.holdable([], NOW) is None


def test_what_runs_may_cost_what_it_holds_and_what_is_left() -> None:
    one = replace(rental(PRICE), held=Microcents(50), charged=Microcents(20))
    found = limits.cap(one, [(row(60, 60, max_monthly_cost=100), use(held=35))], NOW)
    assert found == limits.Cap(Microcents(20 + 30 + 5), "the limit of the token ci, 0.000001 a month (UTC)")
    assert limits.cap(one, [(row(max_leases=1), use())], NOW) is None


def test_a_limit_that_was_lowered_below_what_is_held_caps_the_charge() -> None:
    one = replace(rental(PRICE), held=Microcents(50), charged=Microcents(20))
    lowered = row(90, 90, max_total_cost=95)
    found = limits.cap(one, [(lowered, use(held=30))], NOW)
    assert found is not None and found.amount == 25
    assert limits.chargeable([lowered], NOW) == 5
    passed = row(90, 90, max_total_cost=40)
    assert limits.chargeable([passed], NOW) == 0 and limits.holdable([(passed, use(30))], NOW) == 0


@pytest.mark.parametrize(
    ("spender", "named", "way"),
    [
        ("account_1", "the project ci", "windrow limit set --project account_1"),
        ("token_1", "the token ci", "windrow limit set --token token_1"),
        ("service_1", "the service account ci", "windrow limit set --service-account service_1"),
    ],
)
def test_a_refusal_names_the_limit_whose_it_is_what_is_left_and_who_can_raise_it(
    spender: str, named: str, way: str
) -> None:
    said = refused(row(0, 0, spender, max_hourly_cost=2 * UNIT), use(hourly_cost=UNIT // 2), 2 * UNIT)
    assert said.startswith(f"The limit of {named}, 2.00 an hour for all that runs at once, leaves 1.50; ")
    assert "this costs 2.00 an hour." in said
    assert said.endswith(f"can raise it: {way} --max-hourly AMOUNT")
    leases = refused(row(0, 0, spender, max_leases=1), use(leases=1), UNIT)
    assert "1 lease at once, leaves 0; " in leases and leases.endswith("--max-leases N")
    total = refused(row(UNIT, 0, spender, max_total_cost=UNIT), use(), UNIT, UNIT // 4, now_ns=NOW + HOUR)
    assert "1.00 in all, leaves 0.00; 15 minutes of this need 0.25." in total
