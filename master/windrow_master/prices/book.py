"""The price book: which offers are believed today, which fit a question, and what the same GPU costs where. Pure."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Final

from windrow_master.prices.offers import Kind, Offer
from windrow_proto.units import Microcents, money_text

TIMES_OFF: Final = 10
"""A price this many times above or below the median of its neighbours is not believed."""
NEIGHBOURS_MIN: Final = 4
"""Fewer offers of the same GPU and kind than this say nothing about one of them."""


class State(StrEnum):
    """Whether work may be sent by an offer's price."""

    CURRENT = "current"
    EXPIRED = "expired"
    QUARANTINED = "quarantined"


@dataclass(frozen=True, slots=True)
class Listed:
    """An offer as it stands today. reason: why it is not current, in words; empty where it is."""

    offer: Offer
    state: State
    reason: str = ""


class PriceBook:
    """Offers, cheapest per GPU first."""

    def __init__(self, offers: Iterable[Offer], refused: Iterable[str] = ()) -> None:
        self.offers: Final[Sequence[Offer]] = sorted(offers, key=lambda one: (one.per_gpu_hour, one.key))
        self.refused: Final[Sequence[str]] = tuple(refused)
        """A sentence about each row that is no offer."""
        self._quarantined: Final[Mapping[str, str]] = _quarantined(self.offers)
        self._words: Final = [_searchable(one) for one in self.offers]
        self._egress: Final = {one.provider.name: one.provider.egress_per_gb for one in self.offers}

    def egress_of(self, provider: str) -> Microcents | None:
        """What 10**9 bytes cost that leave this provider, in any case of its name; None: not known."""
        return self._egress.get(provider.casefold())

    def find(self, today: date, query: str = "", *, kind: Kind | None = None, gpu: str | None = None) -> list[Listed]:
        """The offers whose class, provider, name, place or kind have every word of the query, cheapest per GPU first.

        kind, gpu: only these; None: any. The query is in any case; a word may be a part of a name.
        """
        words = query.casefold().split()
        expired = _expired(self.offers, today)
        found = []
        for offer, said in zip(self.offers, self._words, strict=True):
            if kind not in (None, offer.kind) or gpu not in (None, offer.gpu):
                continue
            if words and not all(word in said for word in words):
                continue
            if self._quarantined and (reason := self._quarantined.get(offer.key)):
                found.append(Listed(offer, State.QUARANTINED, reason))
            elif reason := expired.get(offer.source.key):
                found.append(Listed(offer, State.EXPIRED, reason))
            else:
                found.append(Listed(offer, State.CURRENT))
        return found


def cheapest(found: Iterable[Listed]) -> list[Listed]:
    """The cheapest of each provider and kind for each GPU; one that is not current only where no other is."""
    best: dict[tuple[str, str, Kind], Listed] = {}
    for one in found:
        offer = one.offer
        place = (offer.gpu, offer.provider.name, offer.kind)
        known = best.get(place)
        if known is None or (known.state is not State.CURRENT and one.state is State.CURRENT):
            best[place] = one
    order = {one.offer.gpu: rank for rank, one in reversed(list(enumerate(best.values())))}
    return sorted(best.values(), key=lambda one: (order[one.offer.gpu], one.offer.per_gpu_hour, one.offer.key))


def _expired(offers: Iterable[Offer], today: date) -> Mapping[str, str]:
    """By the key of a source that is no longer believed, the sentence that says so."""
    found = {}
    for source in {id(one.source): one.source for one in offers}.values():
        if source.read_on is None:
            found[source.key] = "The price is of an unknown date."
        elif not source.is_fresh(today):
            found[source.key] = (
                f"The price is of {source.read_on:%Y-%m-%d}; prices of this source are believed for "
                f"{source.days_to_live} days."
            )
    return found


def _searchable(offer: Offer) -> str:
    parts = (offer.gpu, offer.provider.name, offer.provider.company, offer.name, offer.region, offer.zone)
    return "\n".join((*parts, offer.country, offer.kind)).casefold()


def _quarantined(offers: Sequence[Offer]) -> Mapping[str, str]:
    """By the key of an offer, why its price is not believed."""
    groups: dict[tuple[str, Kind], list[Offer]] = defaultdict(list)
    for offer in offers:
        groups[offer.gpu, offer.kind].append(offer)
    found = {}
    for group in groups.values():
        prices = [one.per_gpu_hour for one in group]  # in order, as the offers are
        others = "1 other" if len(group) == 2 else f"{len(group) - 1} others"
        for offer in group:
            middle = _median_of_others(prices, offer.per_gpu_hour)
            if middle is not None and not middle <= offer.per_gpu_hour * TIMES_OFF <= middle * TIMES_OFF**2:
                found[offer.key] = (
                    f"{money_text(offer.per_gpu_hour)} per GPU and hour is more than {TIMES_OFF} times off the median "
                    f"of {others}, {money_text(middle)}."
                )
    return found


def _median_of_others(prices: Sequence[Microcents], own: Microcents) -> Microcents | None:
    """The lower median of sorted prices without one of them; None where there are too few."""
    others = len(prices) - 1
    if others < NEIGHBOURS_MIN - 1:
        return None
    middle = (others - 1) // 2
    return prices[middle if middle < bisect_left(prices, own) else middle + 1]
