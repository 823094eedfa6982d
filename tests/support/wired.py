"""Services of the Master put together without the rest of it, with doubles that a test can change."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from windrow_master.clusters import messages as cluster_says
from windrow_master.clusters import quota_use
from windrow_master.clusters.model import Network, NetworkMode
from windrow_master.clusters.queue_feed import QueueFeed
from windrow_master.clusters.service import ClusterService
from windrow_master.clusters.snapshot import Placer
from windrow_master.clusters.topology import Meeting, Reachability
from windrow_master.fleet import messages as fleet_says
from windrow_master.fleet.service import FleetService
from windrow_master.identity import messages as identity_says
from windrow_master.jobs import answers as job_answers
from windrow_master.jobs import messages as job_says
from windrow_master.market import messages as market_says
from windrow_master.market.service import MarketService
from windrow_master.queue import messages as queue_asks
from windrow_master.queue.service import QueueService
from windrow_master.secrets.messages import SecretUsers
from windrow_master.secrets.service import SecretService
from windrow_master.storage import messages as storage_says
from windrow_master.storage import volume_attachments
from windrow_master.store.messages import Fact, Messages, Question
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import HostId
from windrow_proto.ports import Clock, Rng
from windrow_proto.sealed import SealKey

FACTS: Final[tuple[type[Fact], ...]] = (
    cluster_says.VolumesAsked,
    cluster_says.VolumesTaken,
    cluster_says.RankFailed,
    cluster_says.ElsewhereAsked,
    cluster_says.NoRoom,
    job_says.RunLetGo,
    fleet_says.WorkloadReported,
    fleet_says.CommandChanged,
    fleet_says.ReceiptTaken,
    fleet_says.LinkChanged,
    fleet_says.SlotsLost,
    fleet_says.HostBanned,
    fleet_says.HostLeaving,
    identity_says.AccountMade,
    identity_says.HostJoined,
    identity_says.CloneFound,
    identity_says.ProjectLeft,
    identity_says.StandingChanged,
    market_says.LimitsChanged,
)
NOTHING: Final[Mapping[type[Question[Any]], Any]] = {
    fleet_says.DesiredOn: (),
    fleet_says.HasHad: False,
    fleet_says.InstanceOf: "",
    fleet_says.Holds: False,
    fleet_says.ClusterOf: "",
    cluster_says.IsOfJob: False,
    cluster_says.HostLimits: {},
    cluster_says.EntriesOf: {},
    cluster_says.HostsKept: frozenset(),
    cluster_says.HostKeptFor: None,
    cluster_says.CheapestElsewhere: None,
    job_says.PlaceOf: None,
    storage_says.KeptByJobs: 0,
    SecretUsers: {},
    queue_asks.HeldBelow: {},
    queue_asks.WaitingBelow: 0,
}

EVERY_HOST: Final = Network(NetworkMode.DIRECT, "their hosts are in one network")


def forget_messages(store: Store) -> None:
    """Let every message be heard by somebody: facts are forgotten, and questions are answered with nothing."""
    store.messages = Messages()
    for fact in FACTS:
        store.messages.on(fact, lambda uow, it: None)
    for question, nothing in NOTHING.items():
        answers(store, question, partial(_nothing, nothing=nothing))


def _nothing(uow: UnitOfWork, it: Question[Any], nothing: Any) -> Any:
    return nothing


def answers(store: Store, kind: type[Question[Any]], handler: Callable[[UnitOfWork, Any], Any]) -> None:
    """Answer this kind of question from now on, whoever did before."""
    store.messages._answers[kind] = handler


class Relays:
    """The Accesses that serve, as the fleet asks for them."""

    def __init__(self) -> None:
        self.ids: tuple[str, ...] = ()
        self.by_region: Mapping[str, str] = {}

    def serving(self) -> tuple[str, ...]:
        return self.ids

    def regions(self) -> Mapping[str, str]:
        return self.by_region


class AccessKeys:
    """The keys of Accesses by their ids; as a function it is what the fleet asks."""

    def __init__(self, **known: bytes) -> None:
        self.known: dict[str, bytes] = known

    def __call__(self, uow: UnitOfWork, access_id: str) -> bytes | None:
        return self.known.get(access_id)


def fleet_on(store: Store, clock: Clock, rng: Rng, keys: AccessKeys | None = None) -> FleetService:
    """A fleet alone; its `relays` are a `Relays`."""
    return FleetService(store, clock, rng, Relays(), keys or AccessKeys())


class ScriptedReachability:
    """Which hosts reach each other: what `script` says; without it every host reaches all others."""

    def __init__(self) -> None:
        self.script: Reachability | None = None

    def decide(self, hosts: Sequence[Meeting]) -> Network | None:
        return EVERY_HOST if self.script is None else self.script.decide(hosts)

    async def look(self, hosts: Sequence[Meeting]) -> None:
        if self.script is not None:
            await self.script.look(hosts)


class TestRentals:
    """The Master's own test rentals: those of `proofs`, or none."""

    __test__ = False

    def __init__(self) -> None:
        self.proofs: Any = None

    def end_on(self, hosts: Sequence[HostId]) -> None:
        if self.proofs is not None:
            self.proofs.end_on(hosts)

    async def give_way(self, hosts: Sequence[HostId]) -> bool:
        return self.proofs is not None and await self.proofs.give_way(hosts)


def hear(store: Store, clusters: ClusterService) -> None:
    """Let clusters hear the fleet, and volumes and jobs the clusters, as app/wiring.py has it."""
    life, on = clusters.lifecycle, store.messages.on
    on(fleet_says.WorkloadReported, lambda uow, it: life.on_workload(uow, it.host_id, it.workload))
    on(fleet_says.CommandChanged, lambda uow, it: life.on_command(uow, it.row))
    on(fleet_says.ReceiptTaken, lambda uow, it: life.on_receipt(uow, it.host_id, it.receipt, it.sealed))
    on(fleet_says.LinkChanged, lambda uow, it: life.on_host_link(uow, it.host_id, it.state))
    on(fleet_says.SlotsLost, lambda uow, it: life.on_slots_lost(uow, it.host_id, it.slot_ids, it.reason))
    answers(store, fleet_says.DesiredOn, lambda uow, it: clusters.running.desired(uow, it.host_id))
    on(market_says.LimitsChanged, lambda uow, it: clusters.look_again(uow, it.cluster_ids))
    on(cluster_says.VolumesAsked, volume_attachments.on_asked)
    on(cluster_says.VolumesTaken, volume_attachments.on_taken)
    answers(store, cluster_says.IsOfJob, job_answers.is_of_job)
    answers(store, cluster_says.EntriesOf, partial(job_answers.entries_of_clusters, tier_costs={}))
    answers(store, SecretUsers, job_answers.secret_users)
    answers(store, storage_says.KeptByJobs, job_answers.kept_bytes)
    answers(store, queue_asks.HeldBelow, quota_use.held)
    answers(store, queue_asks.WaitingBelow, job_answers.waiting_below)


class Rented:
    """Clusters on a fleet, without the link to hosts."""

    def __init__(self, store: Store, clock: Clock, fleet: FleetService, market: MarketService, key: SealKey) -> None:
        self.reachability, self.tests = ScriptedReachability(), TestRentals()
        placer = Placer(fleet, market)
        self.queue = QueueService(clock, QueueFeed(store, clock, fleet, market, placer))
        fleet.on_touch(lambda host_id: self.queue.touched())
        self.peer_links: Callable[..., Sequence[Any]] = lambda cluster_id: ()
        self.clusters = ClusterService(
            store,
            clock,
            fleet,
            market,
            key,
            secrets=SecretService(store, key),
            proofs=self.tests,
            reachability=self.reachability,
            peer_links=lambda cluster_id: self.peer_links(cluster_id),
            service_place=lambda host_id: "",
            placer=placer,
            queue=self.queue,
        )
        forget_messages(store)
        hear(store, self.clusters)
