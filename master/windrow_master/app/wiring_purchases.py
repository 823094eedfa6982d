"""Connects purchases of machines with the packages below: backends, joining, the limits of hosts."""

from dataclasses import dataclass
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
from windrow_master.hybrid.runs.charges import RunCharges
from windrow_master.hybrid.runs.orders import Orders
from windrow_master.hybrid.runs.service import RunService
from windrow_master.hybrid.search.service import SearchService, forget_searches
from windrow_master.identity import messages as identity_says
from windrow_master.identity.service import IdentityService
from windrow_master.jobs import messages as job_says
from windrow_master.jobs.files import JobFiles
from windrow_master.jobs.service import JobService
from windrow_master.market.service import MarketService
from windrow_master.network.workload_io import WorkAccess
from windrow_master.onboarding.join_line import join_line
from windrow_master.prices.book import PriceBook
from windrow_master.queue.service import QueueService
from windrow_master.storage.artefacts import ArtefactService
from windrow_master.storage.plain_checkpoints import PlainCheckpoints
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


@dataclass(frozen=True, slots=True)
class Bought:
    """The services of what is bought."""

    purchases: PurchaseService
    searches: SearchService
    runs: RunService

    def by_name(self) -> dict[str, Any]:
        """By their names in Services."""
        named = {"purchases": self.purchases, "searches": self.searches, "runs": self.runs}
        return {"backends": self.purchases.backends, **named}


def bought_of(
    store: Store,
    clock: Clock,
    identity: IdentityService,
    fleet: FleetService,
    market: MarketService,
    clusters: ClusterService,
    queue: QueueService,
    jobs: JobService,
    artefacts: ArtefactService,
    inside: WorkAccess,
    book: PriceBook,
    reached: Address,
) -> Bought:
    """Machines and runs at backends of the kinds that there are, and who searches for them."""
    orders = Orders(artefacts.objects)
    backends = BackendService(
        store,
        clock,
        identity.seal_key,
        KINDS,
        lambda kind, settings, secrets: KINDS[kind].open(settings, secrets, clock, book),
        lambda: reachability(reached.https_url),
    )
    hosts = BoughtHosts(
        identity,
        fleet,
        market,
        lambda token: join_line(reached.https_url, reached.https_pin(), token),
        orders.start,
    )
    purchases = PurchaseService(store, clock, backends, hosts, identity.ca_sha256[:MARKET_ID_HEX])
    kept = JobFiles(artefacts.objects, inside), PlainCheckpoints(artefacts, clock), orders
    runs = RunService(store, clock, purchases, jobs.runs, *kept, identity.seal_key, RunCharges(market))
    searches = SearchService(store, clock, jobs, clusters, purchases, queue, runs, market.check_funds)
    return Bought(purchases, searches, runs)


def register(messages: Messages, bought: Bought) -> None:
    """Let purchases hear of their hosts, after the fleet has, and searches of work that finds no room."""
    purchases, searches, runs = bought.purchases, bought.searches, bought.runs
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
    messages.on(job_says.RunLetGo, runs.let_go)
    messages.on(identity_says.ProjectPurged, lambda uow, it: forget_buyer(uow, it.account_id))
    messages.on(identity_says.ProjectPurged, lambda uow, it: forget_searches(uow, it.account_id))
