"""Connects purchases of machines with the packages below: backends, joining, the limits of hosts."""

from typing import Any, Final, Protocol

from windrow_master.clusters import messages as cluster_says
from windrow_master.clusters.service import ClusterService
from windrow_master.fleet import messages as fleet_says
from windrow_master.fleet.service import FleetService
from windrow_master.hybrid.backends.bootstrap import reachability
from windrow_master.hybrid.backends.kinds import KINDS
from windrow_master.hybrid.purchases.backends import BackendService, forget_buyer
from windrow_master.hybrid.purchases.hosts import BoughtHosts
from windrow_master.hybrid.purchases.service import PurchaseService
from windrow_master.hybrid.registry import limits
from windrow_master.hybrid.search.ports import NoRuns
from windrow_master.hybrid.search.service import SearchService, forget_searches
from windrow_master.identity import messages as identity_says
from windrow_master.identity.service import IdentityService
from windrow_master.jobs import messages as job_says
from windrow_master.jobs.service import JobService
from windrow_master.market.service import MarketService
from windrow_master.onboarding.join_line import join_line
from windrow_master.prices.book import PriceBook
from windrow_master.queue.service import QueueService
from windrow_master.store.messages import Messages
from windrow_master.store.store import Store
from windrow_master.watch.maintenance import closings
from windrow_proto.ports import Clock

MARKET_ID_HEX: Final = 32
"""Digits of the hash of the market's certificate in the tags of what it buys: they outlive any database."""


class Address(Protocol):
    """How a machine outside finds this Master."""

    @property
    def https_url(self) -> str:
        """Empty: it does not."""

    def https_pin(self) -> str:
        """The hash of the key that it shows there."""


def purchases_of(
    store: Store,
    clock: Clock,
    identity: IdentityService,
    fleet: FleetService,
    market: MarketService,
    book: PriceBook,
    reached: Address,
) -> PurchaseService:
    """Purchases at backends of the kinds that there are."""
    backends = BackendService(
        store,
        clock,
        identity.seal_key,
        KINDS,
        lambda kind, settings, secrets: KINDS[kind].open(settings, secrets, clock, book),
        lambda: reachability(reached.https_url),
    )
    hosts = BoughtHosts(identity, fleet, market, lambda token: join_line(reached.https_url, reached.https_pin(), token))
    return PurchaseService(store, clock, backends, hosts, identity.ca_sha256[:MARKET_ID_HEX])


def searches_of(
    store: Store,
    clock: Clock,
    jobs: JobService,
    clusters: ClusterService,
    purchases: PurchaseService,
    queue: QueueService,
) -> SearchService:
    """Searches of work that finds no room here."""
    return SearchService(store, clock, jobs, clusters, purchases, queue, NoRuns())


def by_name(purchases: PurchaseService, searches: SearchService) -> dict[str, Any]:
    """The services of what is bought, by their names in Services."""
    return {"backends": purchases.backends, "purchases": purchases, "searches": searches}


def register(messages: Messages, purchases: PurchaseService, searches: SearchService) -> None:
    """Let purchases hear of their hosts, after the fleet has, and searches of work that finds no room."""
    messages.on(identity_says.HostJoined, purchases.joined)
    messages.on(fleet_says.HostLeaving, purchases.leaving)
    messages.answer(fleet_says.InstanceOf, purchases.instance_of)
    messages.answer(
        cluster_says.HostLimits, lambda uow, it: closings(uow, {**limits(uow, it), **purchases.limits(uow, it)})
    )
    messages.answer(cluster_says.HostsKept, purchases.hosts_kept)
    messages.answer(cluster_says.HostKeptFor, purchases.host_kept_for)
    messages.answer(cluster_says.CheapestElsewhere, searches.cheapest)
    messages.on(cluster_says.ElsewhereAsked, searches.asked)
    messages.on(cluster_says.NoRoom, searches.no_room)
    messages.answer(job_says.PlaceOf, purchases.place_of)
    messages.on(job_says.RunLetGo, lambda uow, it: None)
    messages.on(identity_says.ProjectPurged, lambda uow, it: forget_buyer(uow, it.account_id))
    messages.on(identity_says.ProjectPurged, lambda uow, it: forget_searches(uow, it.account_id))
