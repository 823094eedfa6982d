"""Reasons why nobody rents a slot are said from what is known, the most telling first."""

from dataclasses import replace

import pytest

from windrow_master.market.unrented import Slot, median, reasons
from windrow_proto.units import MICROCENTS_PER_UNIT, Microcents


def money(*units: float) -> list[Microcents]:
    return [Microcents(int(one * MICROCENTS_PER_UNIT)) for one in units]


DEAR = Slot("h100/A", "", money(2.5)[0], money(1.5, 2, 3), free=2, rentals=4)


def test_the_median_is_the_lower_one_and_of_nothing_none() -> None:
    assert (median(money(3, 1, 2)), median(money(1, 2)), median([])) == (*money(2), *money(1), None)


def test_a_price_above_the_median_of_its_tier_is_said_with_both() -> None:
    assert reasons(DEAR) == (
        "Its price of 2.50 an hour is 25 % above the median of 3 others of H100 · grade A, 2.00.",
        "4 rentals of H100 · grade A began in the last 7 days; 2 of the 3 others there are free, too.",
    )


@pytest.mark.parametrize("price", [2, 1])
def test_a_price_that_is_not_above_is_said_not_to_be_the_reason(price: int) -> None:
    assert "not the reason" in reasons(replace(DEAR, price=money(price)[0]))[0]


def test_the_only_one_of_its_tier_has_nothing_beside_it() -> None:
    said = reasons(replace(DEAR, prices=(), rentals=0, free=0))
    assert said[0].startswith("It is the only one of H100 · grade A")
    assert said[1] == "Nobody rented H100 · grade A in the last 7 days."


def test_what_hinders_comes_first_and_verification_and_grade_after_the_market() -> None:
    kept = ("C: gpu_memory: not measured yet", "B: health: degraded", "PCI id says H100")
    slot = replace(DEAR, tier="h100/C", hindrance="this GPU is hot", verification="None was challenged.")
    said = reasons(replace(slot, tier_reasons=kept))
    assert said[0] == "It cannot be had now: this GPU is hot."
    assert said[3:] == (
        "Its host is not verified: None was challenged.",
        "Grade C: gpu_memory: not measured yet.",
        "Grade B: health: degraded.",
    )


def test_a_simulated_slot_and_one_without_a_tier_say_so() -> None:
    assert "simulated" in reasons(replace(DEAR, simulated=True))[0]
    assert reasons(replace(DEAR, tier=""))[0].startswith("It has no grade yet")


def test_all_others_may_be_taken() -> None:
    assert reasons(replace(DEAR, free=0))[1].endswith("all others are taken.")
