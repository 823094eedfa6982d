"""Whose price counts for a slot, and what all slots together offer by tier. Pure.

The owner's own ask comes first, then the operator's price for that tier, then the suggestion with its source.
Simulated slots are never part of the real market: they make offers of their own, marked so, at the same rules of price.
"""

from collections.abc import Iterable, Sequence

from windrow_master.market.model import Ask, Listing, Offer, PriceUnit
from windrow_master.market.prices import CPU, suggest
from windrow_proto.ids import AccountId
from windrow_proto.units import Microcents


class PriceBook:
    """All asks of one moment."""

    def __init__(self, asks: Iterable[Ask]) -> None:
        self._asks = {(ask.account_id, ask.tier): ask.price_per_hour for ask in asks}

    def price(self, owner: AccountId, tier: str) -> Microcents:
        """What an hour of one GPU, or of one processor, of this tier costs at this owner's."""
        own = self._asks.get((owner, tier))
        if own is not None:
            return own
        common = self._asks.get((None, tier))
        return common if common is not None else suggest(tier).price_per_hour


def unit_of(tier: str) -> PriceUnit:
    """What a price in this tier buys."""
    return PriceUnit.PROCESSOR if tier.partition("/")[0] == CPU else PriceUnit.GPU


def offers(listings: Iterable[Listing], book: PriceBook) -> tuple[Offer, ...]:
    """One offer for each tier, real ones first; its price is the lowest of what is free, or of all where nothing is."""
    groups: dict[tuple[bool, str], list[Listing]] = {}
    for listing in listings:
        if listing.tier:
            groups.setdefault((listing.simulated, listing.tier), []).append(listing)
    return tuple(_offer(tier, simulated, found, book) for (simulated, tier), found in sorted(groups.items()))


def _offer(tier: str, simulated: bool, found: Sequence[Listing], book: PriceBook) -> Offer:
    free = [listing for listing in found if listing.is_free]
    suggestion = suggest(tier)
    memories = [listing.memory_bytes for listing in found if listing.memory_bytes is not None]
    return Offer(
        tier=tier,
        unit=unit_of(tier),
        simulated=simulated,
        free=len(free),
        total=len(found),
        hosts=len({listing.host_id for listing in found}),
        price_per_hour=min(book.price(listing.owner, tier) for listing in free or found),
        suggestion=suggestion.price_per_hour,
        suggestion_reason=suggestion.reason,
        runtimes=tuple(sorted({runtime for listing in found for runtime in listing.runtimes})),
        min_memory_bytes=min(memories, default=None),
    )
