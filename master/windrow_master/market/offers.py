"""Decides which price counts for a slot, and adds up the offers of all slots by tier. Pure.

The owner's own ask comes first, then the operator's price for that tier, then the suggestion with its source.
Simulated slots are never part of the real market: they make offers of their own, marked so, at the same rules of price.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from windrow_master.fleet.model import HOSTS_USERS
from windrow_master.market.model import Ask, Listing, Offer, PriceUnit
from windrow_master.market.prices import CPU, suggest
from windrow_proto.ids import AccountId, HostId
from windrow_proto.units import Microcents

WHOLE_MILLI: Final = 1000
_NONE: Final[Mapping[str, Microcents]] = {}


class PriceBook:
    """All asks of one moment."""

    def __init__(self, asks: Iterable[Ask]) -> None:
        self._asks: dict[AccountId | None, dict[str, Microcents]] = {}
        for ask in asks:
            self._asks.setdefault(ask.account_id, {})[ask.tier] = ask.price_per_hour

    def says_the_same(self, other: "PriceBook") -> bool:
        """Return whether every price in it is the other's, too."""
        return self._asks == other._asks

    def counting_for(self, owner: AccountId) -> tuple[Mapping[str, Microcents], Mapping[str, Microcents]]:
        """Return the asks by tier that decide what this owner's hosts cost: its own, and those of the operator."""
        return self._asks.get(owner, _NONE), self._asks.get(None, _NONE)

    def price(self, owner: AccountId, tier: str, share_milli: int = WHOLE_MILLI) -> Microcents:
        """Return the price of an hour of one GPU, slice or processor of this tier at this owner's.

        share_milli: how much of its card a slice is; who asks no price for the slice asks that share of the card's,
        rounded down.
        """
        card = card_tier(tier)
        for asks in self.counting_for(owner):
            own = asks.get(tier)
            if own is not None:
                return own
            whole = asks.get(card)
            if whole is not None:
                return share_of(whole, share_milli)
        return share_of(suggest(card).price_per_hour, share_milli)


def card_tier(tier: str) -> str:
    """The tier of the card whose slice has this one: `h100:1g.10gb/A` is of `h100/A`; another is its own."""
    tier_class, mark, grade = tier.partition("/")
    return tier_class.partition(":")[0] + mark + grade


def share_of(price: Microcents, share_milli: int) -> Microcents:
    """So many thousandths of a card's price, rounded down for who rents."""
    return Microcents(price * share_milli // WHOLE_MILLI)


def unit_of(tier: str) -> PriceUnit:
    """Return the unit of a price in this tier."""
    return PriceUnit.PROCESSOR if tier.partition("/")[0] == CPU else PriceUnit.GPU


def offers(listings: Iterable[Listing], book: PriceBook) -> tuple[Offer, ...]:
    """One offer for each tier, real ones first; its price is the lowest of what is free, or of all where nothing is."""
    groups: dict[tuple[bool, str], list[Listing]] = {}
    for listing in listings:
        if listing.tier:
            groups.setdefault((listing.simulated, listing.tier), []).append(listing)
    return tuple(_offer(tier, simulated, found, book) for (simulated, tier), found in sorted(groups.items()))


def least_users(said: Iterable[str]) -> str:
    """Of all that say whose users their containers have: their own only where no host shares its own."""
    known = set(said) - {""}
    return HOSTS_USERS if HOSTS_USERS in known else next(iter(known), "")


def _offer(tier: str, simulated: bool, found: Sequence[Listing], book: PriceBook) -> Offer:
    free = [listing for listing in found if listing.is_free]
    suggestion, share_milli = suggest(card_tier(tier)), min(listing.share_milli for listing in found)
    part = "" if share_milli == WHOLE_MILLI else f"{share_milli / 10:g} % of its card; "
    memories = [listing.memory_bytes for listing in found if listing.memory_bytes is not None]
    return Offer(
        tier=tier,
        unit=unit_of(tier),
        simulated=simulated,
        free=len(free),
        total=len(found),
        hosts=len({listing.host_id for listing in found}),
        price_per_hour=min(book.price(listing.owner, tier, listing.share_milli) for listing in free or found),
        suggestion=share_of(suggestion.price_per_hour, share_milli),
        suggestion_reason=part + suggestion.reason,
        runtimes=tuple(sorted({runtime for listing in found for runtime in listing.runtimes})),
        min_memory_bytes=min(memories, default=None),
        isolation=found[0].isolation,
        notes=tuple(sorted({listing.note for listing in found if listing.note})),
        container_users=least_users(listing.container_users for listing in found),
        on_one_host=_on_one_host((one.host_id, 1 if one.is_gpu else one.cpus) for one in found),
        free_on_one_host=_on_one_host((one.host_id, 1 if one.is_gpu else one.cpus_free) for one in free),
    )


def _on_one_host(found: Iterable[tuple[HostId, int]]) -> int:
    counts: Counter[HostId] = Counter()
    for host_id, count in found:
        counts[host_id] += count
    return max(counts.values(), default=0)
