"""Suggested prices and where they come from."""

import pytest

from windrow_master.fleet import gpus
from windrow_master.market.prices import FLOOR, LIKE, QUOTED, suggest
from windrow_proto.units import MICROCENTS_PER_UNIT


@pytest.mark.parametrize(
    ("tier", "price_e4", "words"),
    [
        ("h100/A", 32_500, "datacrunch 1H100.80S.30V (gpu-price-feed, 2026-08-23), the lower median of 5"),
        ("h100/B", 27_625, "85 % of it for grade B"),
        ("cpu/C", 175, "70 % of it for grade C"),
        ("rtx4080/A", 2_057, "66.6 % of rtx4090 by memory size and bandwidth"),
    ],
)
def test_a_suggestion_names_its_figure_and_its_source(tier: str, price_e4: int, words: str) -> None:
    suggestion = suggest(tier)
    assert suggestion.price_per_hour == price_e4 * MICROCENTS_PER_UNIT // 10_000
    assert words in suggestion.reason


def test_a_class_that_no_source_prices_gets_the_floor_and_says_so() -> None:
    assert suggest("unlisted/A").price_per_hour == FLOOR
    assert "no source prices this class: 0.10" in suggest("unlisted/A").reason


def test_a_better_grade_never_costs_less() -> None:
    for tier_class in (*QUOTED, *LIKE):
        prices = [suggest(f"{tier_class}/{grade}").price_per_hour for grade in "CBA"]
        assert prices == sorted(prices) and prices[0] > 0


def test_every_class_without_quotes_leans_on_one_that_has_them_and_never_above_it() -> None:
    assert all(like in QUOTED and 0 < permille <= 1000 for like, permille in LIKE.values())
    assert not set(LIKE) & set(QUOTED)


def test_every_class_of_the_model_table_has_a_price_by_the_lower_of_the_two_ratios() -> None:
    sizes = {model.model_class: model.memory_gib.value for model in gpus.MODELS}
    rates = {model.model_class: model.bandwidth_gb_s.value for model in gpus.MODELS if model.bandwidth_gb_s is not None}
    assert set(sizes) == (set(QUOTED) | set(LIKE)) - {gpus.CPU_CLASS}
    for tier_class, (like, permille) in LIKE.items():
        ratios = [1000, sizes[tier_class] * 1000 // sizes[like]]
        if tier_class in rates and like in rates:
            ratios.append(int(rates[tier_class] * 1000 // rates[like]))
        assert permille == min(ratios), tier_class
