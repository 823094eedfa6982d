"""Rows of the price book: what is taken, what is refused and why, and what a use costs."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_master.prices import offers
from windrow_master.prices.offers import COLUMNS, HOUR_S, BadRow, Offer
from windrow_proto.units import MICROCENTS_PER_UNIT

SELLERS = offers.providers(
    ",".join(COLUMNS["providers"])
    + "\nby-second,A company,US,USD,excluded,1,60,its page,,,\nby-hour,Another,FR,EUR,,,,,,,\n"
)
READ_IN = offers.sources(",".join(COLUMNS["sources"]) + "\nlist,A list,2026-08-01,30\nold,An older list,,\n")
GOOD = dict(
    zip(
        COLUMNS["offers"],
        ("by-second", "g1.large", "t4", "1", "4", "16", "125", "us-1", "", "US", "on-demand", "0.526", "list"),
        strict=True,
    )
)


def read(**changes: str) -> tuple[list[Offer], list[str]]:
    text = ",".join(COLUMNS["offers"]) + "\n" + ",".join({**GOOD, **changes}.values()) + "\n"
    return offers.offers(text, SELLERS, READ_IN, ("t4", "cpu"))


def one(**changes: str) -> Offer:
    found, refused = read(**changes)
    assert refused == []
    return found[0]


def test_a_row_is_an_offer() -> None:
    offer = one()
    assert (offer.provider.company, offer.gpu_count, offer.memory_gib, offer.kind) == ("A company", 1, 16, "on-demand")
    assert offer.per_hour == 52_600_000
    assert offer.key == "by-second/g1.large/us-1/on-demand/list"
    assert one(gpu_count="4").per_gpu_hour == 13_150_000


def test_an_empty_cell_is_not_known() -> None:
    offer = one(vcpu="", memory_gib="", disk_gb="", region="", country="")
    assert (offer.vcpu, offer.memory_gib, offer.disk_gb, offer.country) == (None, None, None, "")
    assert offer.key == "by-second/g1.large/any/on-demand/list"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"usd_per_hour": "-1"}, "usd_per_hour is not a number"),
        ({"usd_per_hour": "NaN"}, "usd_per_hour is not a number"),
        ({"usd_per_hour": "1e9"}, "usd_per_hour is not a number"),
        ({"usd_per_hour": "Infinity"}, "usd_per_hour is not a number"),
        ({"usd_per_hour": "0"}, "usd_per_hour is missing, or 0"),
        ({"usd_per_hour": ""}, "usd_per_hour is missing, or 0"),
        ({"gpu_count": "1000000000"}, "gpu_count is not a number from 0 to 1,024"),
        ({"gpu_count": "0.5"}, "gpu_count is not a whole number"),
        ({"gpu_count": ""}, "gpu_count does not fit t4"),
        ({"gpu": "cpu"}, "gpu_count does not fit cpu"),
        ({"gpu": "h9000"}, "gpu is no class that this market knows"),
        ({"offer": "<b>g1</b>"}, "offer is missing or has characters"),
        ({"offer": "x" * 65}, "offer is missing or has characters"),
        ({"offer": "a\x00b"}, "offer is missing or has characters"),
        ({"region": "us\u202e1"}, "region is missing or has characters"),
        ({"country": "USA"}, "country is missing or has characters"),
        ({"provider": "nobody"}, "provider is not known"),
        ({"source": "rumour"}, "source is not known"),
        ({"kind": "gift"}, "kind is not one of on-demand, spot, reserved, block"),
        ({"memory_gib": "-16"}, "memory_gib is not a number"),
        ({"disk_gb": "9" * 30}, "disk_gb is not a number"),
        ({"usd_per_hour": "1_0"}, "usd_per_hour is not a number"),
        ({"usd_per_hour": "1e3"}, "usd_per_hour is not a number"),
        ({"usd_per_hour": "\u0661"}, "usd_per_hour is not a number"),
        ({"usd_per_hour": " 1"}, "usd_per_hour is not a number"),
    ],
)
def test_a_wrong_row_is_refused_by_its_column(change: dict[str, str], said: str) -> None:
    found, (sentence,) = read(**change)
    assert found == [] and sentence.startswith("row 2: ") and said in sentence


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the first line of offers is not provider,offer,"),
        ("a,b\n", "the first line of offers is not"),
        (",".join(COLUMNS["offers"]) + "\na,b\n", "row 2 of offers has 2 cells and not 13"),
        (",".join(COLUMNS["offers"]) + '\n"a', "offers is no CSV"),
    ],
)
def test_a_text_that_is_no_such_table_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadRow, match=said):
        offers.offers(text, SELLERS, READ_IN, ("t4",))


@pytest.mark.parametrize("currency", ["EURO", "eur", "<b>"])
def test_a_currency_is_a_code_of_three_letters(currency: str) -> None:
    with pytest.raises(BadRow, match="billed_in is missing or has characters"):
        offers.providers(",".join(COLUMNS["providers"]) + f"\np,A company,US,{currency},,,,,,,\n")


@pytest.mark.parametrize(
    ("provider", "seconds", "billed_s"),
    [
        ("by-second", 0, 60),
        ("by-second", 59.2, 60),
        ("by-second", 60.1, 61),
        ("by-hour", 1, HOUR_S),
        ("by-hour", HOUR_S, HOUR_S),
        ("by-hour", HOUR_S + 0.5, 2 * HOUR_S),
    ],
)
def test_a_use_is_billed_in_the_steps_of_its_provider(provider: str, seconds: float, billed_s: int) -> None:
    offer = one(provider=provider, usd_per_hour="36")
    assert offer.cost(seconds) == billed_s * MICROCENTS_PER_UNIT // 100


@given(st.floats(0, 1e7), st.floats(0, 1e7))
def test_a_longer_use_never_costs_less(shorter: float, longer: float) -> None:
    offer = one()
    assert offer.cost(min(shorter, longer)) <= offer.cost(max(shorter, longer))


def test_a_source_is_believed_for_its_days_and_one_without_a_date_never() -> None:
    assert READ_IN["list"].is_fresh(date(2026, 8, 31)) and not READ_IN["list"].is_fresh(date(2026, 9, 1))
    assert not READ_IN["old"].is_fresh(date(2026, 8, 1))
