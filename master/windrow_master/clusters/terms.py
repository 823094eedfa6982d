"""Reads prices and limits of hosts, of which no commit of a host tells, and finds the hosts that they change."""

from collections.abc import Mapping

from windrow_master.clusters.messages import HostLimit, HostLimits
from windrow_master.market.service import MarketService, PriceBook
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import HostId

Terms = tuple[PriceBook, Mapping[HostId, HostLimit]]


def read_terms(
    uow: UnitOfWork, market: MarketService, known: Terms, wanted: frozenset[HostId] | None
) -> tuple[Terms, frozenset[HostId] | None]:
    """The terms now, and the hosts to read: those wanted, and those whose limit is another. None: all, which new prices
    concern."""
    book, limits = market.book(uow), uow.ask(HostLimits())
    if wanted is None or not book.says_the_same(known[0]):
        return (book, limits), None
    either = limits.keys() | known[1].keys()
    return (book, limits), wanted | {one for one in either if limits.get(one) != known[1].get(one)}
