"""The price that counts, and the offer of all slots together."""

from dataclasses import replace

import pytest

from windrow_master.market.model import Ask, Listing, PriceUnit
from windrow_master.market.offers import PriceBook, offers
from windrow_proto.ids import AccountId, HostId
from windrow_proto.model import Isolation
from windrow_proto.units import GIB, Bytes, Microcents

A, B = AccountId("account_a"), AccountId("account_b")


def ask(account: AccountId | None, price: int, tier: str = "h100/A") -> Ask:
    return Ask(account, tier, Microcents(price), 0, "test")


def listing(
    owner: AccountId = A, host: str = "a", free: bool = True, simulated: bool = False, tier: str = "h100/A"
) -> Listing:
    return Listing(HostId(host), owner, tier, True, free, simulated, ("docker",), Bytes(80 * GIB))


def test_the_owners_ask_comes_before_the_operators_and_that_before_the_suggestion() -> None:
    book = PriceBook([ask(A, 1), ask(None, 2)])
    assert (book.price(A, "h100/A"), book.price(B, "h100/A")) == (1, 2)
    assert book.price(A, "h200/A") > 100


def test_an_offer_shows_the_lowest_price_that_can_be_had() -> None:
    book = PriceBook([ask(A, 1), ask(B, 2)])
    (offer,) = offers([listing(A, free=False), listing(B, "b")], book)
    assert (offer.price_per_hour, offer.free, offer.total, offer.hosts) == (2, 1, 2, 2)
    (offer,) = offers([listing(A, free=False), listing(B, "b", free=False)], book)
    assert (offer.price_per_hour, offer.free) == (1, 0)


def test_a_tier_says_how_many_gpus_or_processors_one_host_has() -> None:
    (offer,) = offers([listing(), listing(free=False), listing(host="b", free=False)], PriceBook([]))
    assert (offer.on_one_host, offer.free_on_one_host) == (2, 1)
    cores = replace(listing(tier="cpu/A"), is_gpu=False, cpus=4, cpus_free=3)
    (offer,) = offers([cores, replace(cores, host_id=HostId("b"), cpus=16, is_free=False)], PriceBook([]))
    assert (offer.on_one_host, offer.free_on_one_host) == (16, 3), "a part of the first is in use"


def test_simulated_slots_never_mix_with_real_ones() -> None:
    found = offers([listing(), listing(host="s", simulated=True)], PriceBook([]))
    assert [(offer.simulated, offer.total) for offer in found] == [(False, 1), (True, 1)]


def test_processors_are_priced_by_the_piece_and_what_has_no_tier_is_not_offered() -> None:
    found = offers([listing(tier="cpu/B"), listing(tier="")], PriceBook([]))
    assert [(offer.tier, offer.unit) for offer in found] == [("cpu/B", PriceUnit.PROCESSOR)]


def test_a_slice_costs_its_share_of_the_card_rounded_down_unless_its_owner_asks_otherwise() -> None:
    book = PriceBook([ask(A, 1001), ask(B, 7, "h100:1g.10gb/A"), ask(B, 1000), ask(None, 500)])
    assert book.price(A, "h100:1g.10gb/A", 132) == 1001 * 132 // 1000 == 132
    assert book.price(B, "h100:1g.10gb/A", 132) == 7
    assert book.price(AccountId("account_c"), "h100:1g.10gb/A", 132) == 66
    assert PriceBook([]).price(A, "h100:1g.10gb/A", 132) == PriceBook([]).price(A, "h100/A") * 132 // 1000


def test_slices_are_offered_by_themselves_with_what_keeps_them_apart() -> None:
    part = replace(listing(tier="h100:1g.10gb/A"), isolation=Isolation.MIG, share_milli=132)
    found = {offer.tier: offer for offer in offers([listing(), part, part], PriceBook([]))}
    whole, sliced = found["h100/A"], found["h100:1g.10gb/A"]
    assert (sliced.total, sliced.isolation) == (2, Isolation.MIG)
    assert sliced.suggestion == whole.suggestion * 132 // 1000
    assert sliced.suggestion_reason.startswith("13.2 % of its card; ")


@pytest.mark.parametrize(
    ("hosts", "said"), [(("own", "own"), "own"), (("own", "host"), "host"), (("own", ""), "own"), (("", ""), "")]
)
def test_an_offer_says_of_its_containers_what_holds_on_each_of_its_hosts(hosts: tuple[str, ...], said: str) -> None:
    (offer,) = offers([replace(listing(), container_users=one) for one in hosts], PriceBook([]))
    assert offer.container_users == said
