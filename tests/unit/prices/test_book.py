"""The price book: which prices are believed, how they are found, and the cheapest of each provider."""

from datetime import date

import pytest

from windrow_master.prices import offers
from windrow_master.prices.book import PriceBook, State, cheapest
from windrow_master.prices.offers import COLUMNS, Kind
from windrow_master.prices.shipped import shipped

TODAY = date(2026, 8, 20)
SELLERS = offers.providers(
    ",".join(COLUMNS["providers"]) + "\nnorth,North Clouds,FI,EUR,,,,,,,\nsouth,South,US,USD,,1,60,,,,\n"
)
READ_IN = offers.sources(",".join(COLUMNS["sources"]) + "\nnew,A list,2026-08-01,30\nold,A list,2025-08-01,30\n")


def book(*rows: str) -> PriceBook:
    """Offers of one T4 each, written as `provider offer place kind usd source`."""
    lines = [",".join(COLUMNS["offers"])]
    for row in rows:
        provider, offer, place, kind, usd, source = row.split()
        lines.append(f"{provider},{offer},t4,1,4,16,,{place},,,{kind},{usd},{source}")
    return PriceBook(*offers.offers("\n".join(lines), SELLERS, READ_IN, ("t4",)))


def names(found: list[offers.Offer]) -> list[str]:
    return [one.name for one in found]


def test_a_price_past_its_time_is_listed_and_says_of_when_it_is() -> None:
    (listed,) = book("north a eu-1 spot 1 old").find(TODAY)
    assert listed.state is State.EXPIRED
    assert listed.reason == "The price is of 2025-08-01; prices of this source are believed for 30 days."


@pytest.mark.parametrize(("usd", "is_off"), [("0.09", True), ("0.1", False), ("10", False), ("10.1", True)])
def test_a_price_ten_times_off_its_neighbours_is_quarantined(usd: str, is_off: bool) -> None:
    rows = [f"north o{n} eu-1 on-demand 1 new" for n in range(4)]
    found = {one.offer.name: one for one in book(*rows, f"south odd us-1 on-demand {usd} new").find(TODAY)}
    assert (found["odd"].state is State.QUARANTINED) is is_off
    assert not is_off or "more than 10 times off the median of 4 others, 1.00" in found["odd"].reason
    assert {found[f"o{n}"].state for n in range(4)} == {State.CURRENT}


def test_few_neighbours_say_nothing_and_another_kind_is_none() -> None:
    few = book("north a eu-1 on-demand 1 new", "south b us-1 on-demand 90 new", "south c us-1 on-demand 1 new")
    assert {one.state for one in few.find(TODAY)} == {State.CURRENT}
    rows = [f"north o{n} eu-1 on-demand 1 new" for n in range(4)]
    assert {one.state for one in book(*rows, "south s us-1 spot 0.01 new").find(TODAY)} == {State.CURRENT}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["b", "a", "c"]),
        ("NORTH", ["b", "a"]),
        ("t4 eu-1", ["a", "c"]),
        ("clouds spot", ["b"]),
        ("nothing", []),
    ],
)
def test_every_word_has_to_fit_somewhere(query: str, expected: list[str]) -> None:
    prices = book("north a eu-1 on-demand 2 new", "north b eu-2 spot 1 new", "south c eu-1 on-demand 3 new")
    assert names([one.offer for one in prices.find(TODAY, query)]) == expected


def test_kind_and_class_narrow_a_search() -> None:
    prices = book("north a eu-1 on-demand 2 new", "north b eu-2 spot 1 new")
    assert names([one.offer for one in prices.find(TODAY, kind=Kind.SPOT)]) == ["b"]
    assert prices.find(TODAY, gpu="h100") == []


def test_the_cheapest_of_a_provider_is_a_current_one_where_there_is_one() -> None:
    prices = book(
        "north dear eu-1 on-demand 2 new",
        "north stale eu-2 on-demand 1 old",
        "south only us-1 on-demand 1.5 old",
        "south taken us-1 spot 0.5 new",
    )
    assert names([one.offer for one in cheapest(prices.find(TODAY))]) == ["taken", "only", "dear"]


def test_the_shipped_book_is_whole() -> None:
    prices = shipped()
    assert prices.refused == ()
    assert len(prices.offers) > 2_000
    assert len({one.key for one in prices.offers}) == len(prices.offers)


def test_shipped_prices_are_current_for_their_days_and_no_longer() -> None:
    read, later = date(2026, 8, 23), date(2030, 1, 1)
    assert {one.state for one in shipped().find(read, "runpod")} == {State.CURRENT}
    assert State.CURRENT not in {one.state for one in shipped().find(later)}
    (p4d,) = shipped().find(read, "aws p4d.24xlarge us-east-1 on-demand")
    assert (p4d.offer.gpu, p4d.offer.gpu_count, p4d.offer.country) == ("a100-40", 8, "US")
