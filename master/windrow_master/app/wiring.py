"""Puts one Master together: makes each service once, with what it needs, and registers the handler of each message.

`build` opens the store and makes a `_Parts`, where every service is made by the property of its name, the first time
that another one needs it. What concerns a package above is a message (store/messages.py); `_register` says who
handles it.
"""

import errno
import os
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Protocol

from windrow_master.acceptance.rental import Ways
from windrow_master.acceptance.service import ProofService
from windrow_master.acceptance.under_way import UnderWay
from windrow_master.accesses.failover_test.model import Supervisor
from windrow_master.accesses.failover_test.service import TrialService
from windrow_master.accesses.news import AccessNewsWriter
from windrow_master.accesses.service import AccessService
from windrow_master.accounts import AccountService
from windrow_master.api.local_user import LocalUser
from windrow_master.api.services import HealthSources, Services
from windrow_master.api.sse import Broadcaster
from windrow_master.api.visibility import account_sees_event
from windrow_master.app import wiring_history, wiring_purchases
from windrow_master.app.clock import SteadyClock
from windrow_master.app.wiring_purchases import Bought
from windrow_master.audit.service import AuditService
from windrow_master.billing.service import BillingService
from windrow_master.clusters import lookup as cluster_lookup
from windrow_master.clusters import messages as cluster_says
from windrow_master.clusters import quota_use
from windrow_master.clusters.queue_feed import QueueFeed
from windrow_master.clusters.service import ClusterService
from windrow_master.clusters.snapshot import Placer
from windrow_master.clusters.templates import TemplateService
from windrow_master.fleet import lookup as fleet_lookup
from windrow_master.fleet import messages as fleet_says
from windrow_master.fleet.bandwidth_schedule import MEASURE_CAP_BYTES
from windrow_master.fleet.service import FleetService
from windrow_master.hybrid.registry import ResourceRegistry
from windrow_master.hybrid.service import Router, follow
from windrow_master.identity import messages as identity_says
from windrow_master.identity.accounts import is_new
from windrow_master.identity.authority import Authority
from windrow_master.identity.model import MemberRole, Standing
from windrow_master.identity.service import IdentityService
from windrow_master.jobs import answers as job_answers
from windrow_master.jobs import messages as job_says
from windrow_master.jobs import retention as job_retention
from windrow_master.jobs.files import JobFiles
from windrow_master.jobs.service import JobService
from windrow_master.lifecycle import LifecycleService
from windrow_master.link.accesses import Accesses
from windrow_master.link.certificates import MarketIdentities
from windrow_master.link.hub import LinkHub
from windrow_master.link.routes import Routes
from windrow_master.loops import GivenUp, again
from windrow_master.mail.service import MailService
from windrow_master.mail.settings import MailSettings
from windrow_master.market import messages as market_says
from windrow_master.market import spending
from windrow_master.market.service import MarketService
from windrow_master.market.spending import SpendingService
from windrow_master.network.overlay import OverlayService, PeerLinkStates
from windrow_master.network.reachability import ReachabilityService
from windrow_master.network.terminals import TerminalService
from windrow_master.network.tunnels import TunnelService
from windrow_master.network.workload_io import WorkAccess
from windrow_master.onboarding.packages import Packages
from windrow_master.onboarding.service import CLI, Wheelhouse
from windrow_master.onboarding.simulated import SimulatedService, Simulator
from windrow_master.outgoing import Outgoing
from windrow_master.prices.book import PriceBook
from windrow_master.prices.shipped import shipped
from windrow_master.queue import messages as queue_asks
from windrow_master.queue import quotas
from windrow_master.queue.rules import ShareService
from windrow_master.queue.service import QueueService
from windrow_master.records.earlier_repository import seal_earlier
from windrow_master.records.rules import RecordRetention
from windrow_master.records.service import RecordService
from windrow_master.recovery.last import BackupAge
from windrow_master.reports import schedules as report_schedules
from windrow_master.reports.schedules import ScheduleService
from windrow_master.reports.service import ReportService
from windrow_master.secrets.messages import SecretUsers
from windrow_master.secrets.service import SecretService
from windrow_master.storage import messages as storage_says
from windrow_master.storage import volume_attachments
from windrow_master.storage.artefacts import ARTEFACTS_KEY, ArtefactService
from windrow_master.storage.results import ResultService
from windrow_master.storage.retention import RetentionService, forget_account
from windrow_master.storage.s3_store import S3Settings
from windrow_master.storage.transfer import CheckpointService
from windrow_master.storage.volume_sync import VolumeController
from windrow_master.storage.volumes import VolumeService
from windrow_master.store.bus import Bus, MemoryBus
from windrow_master.store.disk_space import DiskSpace
from windrow_master.store.engine import Engines, engines_of
from windrow_master.store.executors import Executor, ThreadExecutor
from windrow_master.store.leadership import Claim
from windrow_master.store.prepared import Unreadable
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_master.telemetry.service import TelemetryService
from windrow_master.telemetry.settings import HistorySettings
from windrow_master.verification.scheduler import VerificationService
from windrow_master.watch.maintenance import MaintenanceService, quiet_until
from windrow_master.watch.notify import channels as notify_channels
from windrow_master.watch.notify.channels import ChannelService
from windrow_master.watch.notify.deliveries import DeliveryService
from windrow_master.watch.notify.sender import Sender
from windrow_master.watch.service import AlertService, Watched
from windrow_master.watch.service import forget_account as forget_alerts
from windrow_proto.ballast import ReservedDisk
from windrow_proto.conditions import Stated
from windrow_proto.data_directory import DirectoryLock
from windrow_proto.disk import OsDisk
from windrow_proto.errors import InvalidInput, StorageFailed
from windrow_proto.ids import ClusterId, HostId
from windrow_proto.keys import ExchangeKey, TlsIdentity
from windrow_proto.ports import Clock, Disk, Rng
from windrow_proto.renter_end import RenterTicket
from windrow_proto.sealed import SealKey
from windrow_proto.units import SECOND
from windrow_proto.version import VERSION

ACCESS_NEWS_EVERY_NS: Final = SECOND


class KeysUnusable(StorageFailed):
    """A market's keys are missing or damaged: only a person helps."""


@dataclass(frozen=True, slots=True)
class Reached:
    """The addresses at which people and Accesses find this Master. tls: its own identity. https_pin: gives
    `sha256//...` of the key that HTTPS shows at https_url, which an operator's certificate may change;
    shows_own_certificate: whether it is the market's own, of which browsers warn."""

    tls: TlsIdentity | None = None
    https_url: str = ""
    https_pin: Callable[[], str] = str
    trunk_addresses: tuple[str, ...] = ()
    shows_own_certificate: Callable[[], bool] = bool


class MarketSupervisor(Supervisor, Simulator, Protocol):
    """`windrow up`, where it started this Master."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a Master. reached_at: given the market's keys. artefacts: where they are kept; None: in a
    folder of the data directory. disk_space: watches the disks; without it nothing is full until a write says so.
    acceptance_tests: True: hosts are tested by themselves, False: when somebody asks, None: never. supervisor: of a
    development market.
    """

    reached_at: Callable[[Authority], Reached] = lambda authority: Reached()
    make_bus: Callable[[Store, Clock, Rng, str], Bus] = lambda store, clock, rng, ca_sha256: MemoryBus("master", clock)
    history: HistorySettings = field(default_factory=HistorySettings)
    artefacts: S3Settings | None = None
    retention: RecordRetention = field(default_factory=RecordRetention)
    disk_space: DiskSpace | None = None
    acceptance_tests: bool | None = None
    measure_cap_bytes: int = MEASURE_CAP_BYTES
    supervisor: MarketSupervisor | None = None
    trusts_local_user: bool = False
    """The registry answers this process' own user on this machine without a token."""
    price_book: Callable[[], PriceBook] = shipped
    mail: MailSettings | None = None
    """None: this market sends no mail."""
    outgoing: Callable[[], Outgoing] = Outgoing
    """The way to servers that people name: identity providers, webhooks."""
    exchange_key: Callable[[], ExchangeKey] = ExchangeKey.generate
    """A fresh one for each welcome of a host."""


@dataclass(slots=True)
class Master:
    """One Master, put together. `close` in the end, after the loop."""

    store: Store
    authority: Authority
    reached: Reached
    hub: LinkHub
    services: Services
    access_news: AccessNewsWriter
    executors: tuple[Executor, ...]

    @property
    def identity(self) -> IdentityService:
        """Accounts, tokens and members."""
        return self.services.identity

    @property
    def fleet(self) -> FleetService:
        """Hosts, slots and commands."""
        return self.services.fleet

    @property
    def market(self) -> MarketService:
        """Rentals, prices and the ledger."""
        return self.services.market

    @property
    def clusters(self) -> ClusterService:
        """Clusters of all accounts."""
        return self.services.clusters

    @property
    def telemetry(self) -> TelemetryService:
        """Samples of hosts, and their history."""
        return self.services.telemetry

    @property
    def audit(self) -> AuditService:
        """The audit log."""
        return self.services.audit

    def watching(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Loops of the services, to run until they are cancelled."""
        services = self.services
        if services.disk_space is not None:
            yield services.disk_space.keep(wiring_history.event_writer(self.store, "master/storage"))
        yield services.tunnels.run()
        yield services.overlay.run()
        yield services.artefacts.run()
        yield services.retention.run()
        yield services.records.run()
        yield services.report_schedules.run()
        yield services.verification.run()
        if services.proofs.is_automatic is not None:
            yield services.proofs.run()
        yield services.queue.run()
        yield services.jobs.controller.run()
        yield services.volume_controller.run()
        yield services.results.run()
        yield services.alerts.run()
        yield services.maintenance.run()
        yield again(self.access_news.turn, ACCESS_NEWS_EVERY_NS, services.clock, "access news")
        yield services.deliveries.run()
        yield from (services.purchases.controller.run(), services.searches.run(), services.runs.run())
        if isinstance(services.clock, SteadyClock):
            yield services.clock.keep(wiring_history.event_writer(self.store, "master/clock"))

    def close(self) -> None:
        """Let go of the log, record the end, release the lock."""
        self.telemetry.close()
        for executor in self.executors:
            executor.close()
        self.store.close()


def build(
    data_dir: Path,
    clock: Clock,
    rng: Rng,
    settings: Settings | None = None,
    *,
    database: str | None = None,
    disk: Disk | None = None,
    make_executor: Callable[[], Executor] = ThreadExecutor,
    open_engines: Callable[[str], Engines] = engines_of,
    claim: Claim | None = None,
    lock: DirectoryLock | None = None,
) -> Master:
    """Open the store and make every service on it. Before the loop. disk holds the telemetry log; the real one by
    default. lock: of the data directory, where the caller holds it already; let go with the Master."""
    settings = settings or Settings()
    store = Store.open(
        data_dir,
        clock,
        rng,
        executor=make_executor(),
        version=VERSION,
        database=database,
        open_engines=open_engines,
        claim=claim,
        disk_space=settings.disk_space,
        lock=lock,
        resume=clock.resume if isinstance(clock, SteadyClock) else lambda last_ns: None,
    )
    try:
        parts = _Parts(settings, store, data_dir, clock, rng, disk or OsDisk(), make_executor, claim)
        seal_earlier(store, parts.identity.seal_key)
        services = parts.services()
        _register(parts)
        if missing := ", ".join(store.messages.missing()):
            raise LookupError(f"Nobody handles these messages: {missing}. Register them in app/wiring.py.")
        parts.audit.start()
        return Master(store, parts.authority, parts.reached, parts.hub, services, parts.access_news, (parts.executor,))
    except BaseException:
        store.close()
        raise


@dataclass
class _Parts:
    """Every service by its name, made when it is first asked for."""

    settings: Settings
    store: Store
    data_dir: Path
    clock: Clock
    rng: Rng
    disk: Disk
    make_executor: Callable[[], Executor]
    claim: Claim | None

    @cached_property
    def executor(self) -> Executor:
        return self.make_executor()

    @cached_property
    def authority(self) -> Authority:
        return _authority(self.store, self.data_dir, self.clock.wall_ns())

    @cached_property
    def reached(self) -> Reached:
        return self.settings.reached_at(self.authority)

    @cached_property
    def reserved(self) -> Disk:
        """The disk, where the last of it is kept for what has to be written."""
        return self.disk if self.settings.disk_space is None else ReservedDisk(self.disk, self.settings.disk_space)

    @cached_property
    def audit(self) -> AuditService:
        signing = self.authority.signing
        return AuditService(self.store, self.data_dir, self.reserved, signing, self.clock, self.executor)

    @cached_property
    def identity(self) -> IdentityService:
        points, addresses = self.trunk_accesses.points, self.reached.trunk_addresses
        outgoing = self.outgoing
        return IdentityService(self.store, self.authority, self.clock, self.rng, points, addresses, self.mail, outgoing)

    @cached_property
    def outgoing(self) -> Outgoing:
        return self.settings.outgoing()

    @cached_property
    def mail(self) -> MailService:
        return MailService(self.store, self.clock, SealKey.of(self.authority.signing), self.settings.mail)

    @cached_property
    def sender(self) -> Sender:
        seal_key, base_url = SealKey.of(self.authority.signing), self.reached.https_url
        return Sender(self.clock, seal_key, self.mail, self.outgoing, base_url)

    @cached_property
    def deliveries(self) -> DeliveryService:
        return DeliveryService(self.store, self.clock, self.rng, self.sender)

    @cached_property
    def retention(self) -> RetentionService:
        kept = {"job": job_retention.stays}
        return RetentionService(self.store, self.artefacts, self.clock, kept, [job_retention.FOLDER])

    @cached_property
    def reports(self) -> ReportService:
        return ReportService(self.store, self.clock, self.fleet.view, self.telemetry)

    @cached_property
    def report_schedules(self) -> ScheduleService:
        return ScheduleService(self.store, self.clock, self.reports, self.mail, self.reached.https_url)

    @cached_property
    def accesses(self) -> AccessService:
        return AccessService(self.store)

    @cached_property
    def trunk_accesses(self) -> Accesses:
        return Accesses({}, self.clock, self.accesses.is_drained)

    @cached_property
    def access_news(self) -> AccessNewsWriter:
        return AccessNewsWriter(self.store, self.clock)

    @cached_property
    def alerts(self) -> AlertService:
        watched = Watched(self.fleet.view, self.telemetry, self._stated, account_sees_event)
        return AlertService(self.store, self.clock, watched, self.deliveries, quiet_until)

    @cached_property
    def maintenance(self) -> MaintenanceService:
        return MaintenanceService(self.store, self.clock, self.fleet)

    def _stated(self) -> Iterator[Stated]:
        for tell in self.health.conditions:
            yield from tell()

    @cached_property
    def fleet(self) -> FleetService:
        cap_bytes, access_key = self.settings.measure_cap_bytes, self.identity.access_key
        return FleetService(self.store, self.clock, self.rng, self.trunk_accesses, access_key, cap_bytes)

    @cached_property
    def telemetry(self) -> TelemetryService:
        return wiring_history.telemetry_of(
            self.settings.history,
            self.disk,
            self.data_dir,
            self.store.epoch,
            self.clock,
            self.rng,
            self.fleet,
            self.make_executor,
            self.settings.disk_space,
            self.claim,
        )

    @cached_property
    def trials(self) -> TrialService:
        return TrialService(self.store, self.clock, self.fleet, self.telemetry, self.settings.supervisor)

    @cached_property
    def routes(self) -> Routes:
        return Routes(self.fleet.presence)

    @cached_property
    def identities(self) -> MarketIdentities:
        return MarketIdentities(self.store, self.identity, self.clock)

    @cached_property
    def verification(self) -> VerificationService:
        facts = self.identities.host_facts
        return VerificationService(self.store, self.clock, self.rng, self.fleet, self.routes, facts, VERSION)

    @cached_property
    def market(self) -> MarketService:
        return MarketService(self.store)

    @cached_property
    def tests_under_way(self) -> UnderWay:
        return UnderWay(self.store, self.clock)

    @cached_property
    def peer_link_states(self) -> PeerLinkStates:
        return PeerLinkStates()

    @cached_property
    def registry(self) -> ResourceRegistry:
        return ResourceRegistry(self.store)

    @cached_property
    def price_book(self) -> PriceBook:
        return self.settings.price_book()

    @cached_property
    def bought(self) -> Bought:
        market = self.identity, self.fleet, self.market, self.clusters, self.queue
        kept = self.jobs, self.artefacts, self.inside
        return wiring_purchases.bought_of(self.store, self.clock, *market, *kept, self.price_book, self.reached)

    @cached_property
    def fair_shares(self) -> ShareService:
        return ShareService(self.store, self.clock, self.queue)

    @cached_property
    def secrets(self) -> SecretService:
        return SecretService(self.store, self.identity.seal_key)

    @cached_property
    def placer(self) -> Placer:
        return Placer(self.fleet, self.market)

    @cached_property
    def queue(self) -> QueueService:
        return QueueService(self.clock, QueueFeed(self.store, self.clock, self.fleet, self.market, self.placer))

    @cached_property
    def clusters(self) -> ClusterService:
        accesses, routes = self.trunk_accesses, self.routes
        return ClusterService(
            self.store,
            self.clock,
            self.fleet,
            self.market,
            self.identity.seal_key,
            secrets=self.secrets,
            proofs=self.tests_under_way,
            reachability=ReachabilityService(routes, self.clock),
            peer_links=self.peer_link_states.of,
            service_place=lambda host_id: accesses.service_place(routes.access_of(host_id)),
            placer=self.placer,
            queue=self.queue,
        )

    @cached_property
    def inside(self) -> WorkAccess:
        return WorkAccess(self.clusters, self.routes)

    @cached_property
    def terminals(self) -> TerminalService:
        return TerminalService(self.store, self.clusters, self.inside, self.clock)

    @cached_property
    def tunnels(self) -> TunnelService:
        accesses, routes, authority = self.trunk_accesses, self.routes, self.authority
        return TunnelService(
            self.store,
            self.clusters,
            routes,
            routes.tunnel_addresses,
            authority.signing,
            authority.root_pem,
            self.clock,
            lambda host_id: routes.nearby(host_id, accesses.tunnel_places()),
        )

    @cached_property
    def overlay(self) -> OverlayService:
        routes, signing = self.routes, self.authority.signing
        return OverlayService(
            self.store, self.clusters, routes, routes.tunnel_addresses, signing, self.clock, self.peer_link_states
        )

    @cached_property
    def artefacts(self) -> ArtefactService:
        where = self.settings.artefacts
        return ArtefactService.open(
            self.store, self.data_dir, self.clusters, self.clock, self.rng, where, self.settings.disk_space
        )

    @cached_property
    def results(self) -> ResultService:
        return ResultService(self.store, self.clock, self.clusters, self.artefacts, self.inside)

    @cached_property
    def checkpoints(self) -> CheckpointService:
        return CheckpointService(self.artefacts, self.clusters, self.routes, self.clock, self.rng)

    @cached_property
    def jobs(self) -> JobService:
        files = JobFiles(self.artefacts.objects, self.inside)
        jobs = JobService(
            self.store,
            self.clock,
            self.clusters,
            files,
            self.identity.seal_key,
            self.artefacts.uploads,
            self.checkpoints,
            self.queue,
        )
        self.artefacts.add_owner("job", jobs.owner)
        return jobs

    @cached_property
    def proofs(self) -> ProofService:
        return ProofService(
            self.store,
            self.clock,
            self.rng,
            self.fleet,
            self.market,
            self.clusters,
            Ways(self.inside, self.tunnels),
            self.tests_under_way,
            is_automatic=self.settings.acceptance_tests,
        )

    @cached_property
    def wheelhouse(self) -> Wheelhouse:
        return Wheelhouse(self.data_dir / "wheels", self.authority.signing)

    @cached_property
    def cli_wheels(self) -> Wheelhouse:
        return Wheelhouse(self.data_dir / "cli-wheels", self.authority.signing, CLI)

    @cached_property
    def hub(self) -> LinkHub:
        return LinkHub(
            self.fleet,
            self.telemetry,
            self.clock,
            epoch=self.store.epoch,
            signing=self.authority.signing,
            accesses=self.trunk_accesses,
            routes=self.routes,
            identities=self.identities,
            renewals=self.clusters.running.renewals,
            open_service=self.open_service,
            on_welcome=self.trials.on_hello,
            exchange_key=self.settings.exchange_key,
        )

    async def open_service(self, cluster_id: ClusterId, port: int) -> RenterTicket:
        """A tunnel to a port of a service, for a visitor of its address."""
        ticket = await self.tunnels.open_public(cluster_id, port)
        trusted = ticket.ca_pem.encode(), ticket.host_pem.encode()
        return RenterTicket(ticket.address, ticket.grant, *trusted, ticket.secret)

    @cached_property
    def health(self) -> HealthSources:
        disk_space = self.settings.disk_space
        began_ns = self.store.read_now(lambda uow: uow.terms.first_at_ns())
        found = HealthSources(
            telemetry=lambda: wiring_history.health(self.telemetry),
            accesses=self.trunk_accesses.summaries,
            departed=self.trunk_accesses.departed,
            problems=[self.wheelhouse.problem, self.cli_wheels.problem],
            conditions=[
                self.audit.conditions,
                GivenUp(self.clock).conditions,
                Unreadable(self.clock).conditions,
                lambda: wiring_history.conditions(self.telemetry, self.clock.wall_ns()),
                BackupAge(self.data_dir, self.clock, began_ns).conditions,
                self.hub.conditions,
                self.identity.providers.conditions,
                self.mail.conditions,
                self.deliveries.conditions,
            ],
            figures=[
                lambda: wiring_history.figures(self.telemetry, self.fleet),
                lambda: wiring_history.hub_figures(self.hub),
                lambda: [("tunnels", "Tunnels that are open", self.tunnels.count, {})],
            ],
        )
        if isinstance(self.clock, SteadyClock):
            found.conditions.append(self.clock.conditions)
        if self.claim is not None:
            found.conditions.append(self.claim.leadership.conditions)
        if disk_space is not None:
            found.conditions.append(disk_space.conditions)
            found.figures.append(lambda: wiring_history.disk_figures(disk_space))
        return found

    def places(self) -> dict[str, Any]:
        """Those of places beside this market's own hosts, by their names in Services."""
        bought = self.bought
        router = Router(self.store, self.clusters, self.registry, bought.purchases, self.price_book, self.clock)
        return {"registry": self.registry, "price_book": self.price_book, "router": router, **bought.by_name()}

    def services(self) -> Services:
        """All of them, for routes."""
        return Services(
            store=self.store,
            audit=self.audit,
            identity=self.identity,
            accounts=AccountService(self.store, self.identity, self.market, self.clusters, self.fleet, self.jobs),
            lifecycle=LifecycleService(self.store, self.identity, self.market),
            clock=self.clock,
            rng=self.rng,
            broadcaster=Broadcaster(),
            bus=self.settings.make_bus(self.store, self.clock, self.rng, self.identity.ca_sha256),
            health=self.health,
            wheelhouse=self.wheelhouse,
            cli_wheels=self.cli_wheels,
            simulated=SimulatedService(self.store, self.settings.supervisor),
            packages=Packages(self.data_dir / "packages", self.wheelhouse, self.authority.signing),
            fleet=self.fleet,
            accesses=self.accesses,
            trials=self.trials,
            telemetry=self.telemetry,
            verification=self.verification,
            proofs=self.proofs,
            market=self.market,
            spending=SpendingService(self.store),
            fair_shares=self.fair_shares,
            billing=BillingService(self.store, self.market, self.fleet.view),
            reports=self.reports,
            report_schedules=self.report_schedules,
            clusters=self.clusters,
            results=self.results,
            templates=TemplateService(self.store, self.identity.seal_key),
            secrets=self.secrets,
            jobs=self.jobs,
            queue=self.queue,
            channels=ChannelService(self.store, self.rng, self.sender),
            deliveries=self.deliveries,
            artefacts=self.artefacts,
            checkpoints=self.checkpoints,
            volumes=VolumeService(self.store, self.artefacts),
            volume_controller=VolumeController(self.store, self.clock, self.clusters, self.checkpoints),
            retention=self.retention,
            records=RecordService(self.store, self.audit, self.clock, self.settings.retention),
            inside=self.inside,
            terminals=self.terminals,
            tunnels=self.tunnels,
            overlay=self.overlay,
            disk_space=self.settings.disk_space,
            version=VERSION,
            started_at_ns=self.clock.monotonic_ns(),
            https_url=self.reached.https_url,
            https_pin=self.reached.https_pin,
            shows_own_certificate=self.reached.shows_own_certificate,
            **self.places(),
            alerts=self.alerts,
            maintenance=self.maintenance,
            local_user=LocalUser(os.getuid()) if self.settings.trusts_local_user else None,
        )


def _register(parts: _Parts) -> None:
    """Register the handlers of all messages, and all listeners."""
    messages, lifecycle, hub = parts.store.messages, parts.clusters.lifecycle, parts.hub
    identity, fleet, clusters = parts.identity, parts.fleet, parts.clusters

    def host_joined(uow: UnitOfWork, fact: identity_says.HostJoined) -> None:
        member = fact.member
        actor = f"account/{member.account_id}"
        fleet.enrol(uow, HostId(member.id), member.name, member.account_id, member.simulated, actor)

    def clone_found(uow: UnitOfWork, fact: identity_says.CloneFound) -> None:
        if fact.member.role is MemberRole.HOST:
            fleet.quarantine(uow, HostId(fact.member.id), fact.reason, "master")

    def standing_changed(uow: UnitOfWork, fact: identity_says.StandingChanged) -> None:
        uow.after_commit(lambda: hub.ban(HostId(fact.member_id)))

    def host_banned(uow: UnitOfWork, fact: fleet_says.HostBanned) -> None:
        host = fleet_lookup.find_host(uow, fact.host_id)
        retired = host is not None and host.admin_state.value == Standing.RETIRED.value
        worse = Standing.RETIRED if retired else Standing.QUARANTINED
        standing = worse if fact.is_banned else Standing.GOOD
        identity.set_standing(uow, fact.host_id, standing, "master", "as the host's state says")

    messages.on(identity_says.AccountMade, lambda uow, it: parts.market.open_account(uow, it.account_id))
    messages.on(identity_says.HostJoined, host_joined)
    wiring_purchases.register(messages, parts.bought)
    _register_ends(parts)
    messages.on(identity_says.CloneFound, clone_found)
    messages.on(identity_says.StandingChanged, standing_changed)
    messages.on(fleet_says.HostBanned, host_banned)
    messages.on(fleet_says.WorkloadReported, lambda uow, it: lifecycle.on_workload(uow, it.host_id, it.workload))
    messages.on(fleet_says.CommandChanged, lambda uow, it: lifecycle.on_command(uow, it.row))
    messages.on(fleet_says.ReceiptTaken, lambda uow, it: lifecycle.on_receipt(uow, it.host_id, it.receipt, it.sealed))
    messages.on(fleet_says.LinkChanged, lambda uow, it: lifecycle.on_host_link(uow, it.host_id, it.state))
    messages.on(fleet_says.SlotsLost, lambda uow, it: lifecycle.on_slots_lost(uow, it.host_id, it.slot_ids, it.reason))
    messages.on(fleet_says.HostLeaving, lambda uow, it: parts.jobs.handovers.host_leaving(uow, it))
    messages.answer(fleet_says.DesiredOn, lambda uow, it: clusters.running.desired(uow, it.host_id))
    messages.answer(fleet_says.HasHad, lambda uow, it: lifecycle.had(uow, it.host_id, it.workload_id))
    messages.answer(fleet_says.Holds, lambda uow, it: lifecycle.holds(uow, it.host_id, it.workload_id))
    messages.answer(fleet_says.ClusterOf, lambda uow, it: lifecycle.cluster_of(uow, it.host_id, it.workload_id))
    messages.on(cluster_says.VolumesAsked, volume_attachments.on_asked)
    messages.on(cluster_says.VolumesTaken, volume_attachments.on_taken)
    messages.on(cluster_says.RankFailed, parts.alerts.rank_failed)
    messages.answer(cluster_says.IsOfJob, job_answers.is_of_job)
    messages.answer(
        cluster_says.EntriesOf, lambda uow, it: job_answers.entries_of_clusters(uow, it, parts.queue.tier_costs())
    )
    messages.answer(queue_asks.HeldBelow, quota_use.held)
    messages.answer(queue_asks.WaitingBelow, job_answers.waiting_below)
    messages.answer(SecretUsers, job_answers.secret_users)
    messages.on(market_says.LimitsChanged, lambda uow, it: clusters.look_again(uow, it.cluster_ids))
    messages.on(job_says.RouteFollowed, follow)
    messages.answer(storage_says.KeptByJobs, job_answers.kept_bytes)
    parts.accesses.on_change(hub.drain_changed)
    parts.trunk_accesses.on_news(parts.access_news.note)
    fleet.on_touch(lambda host_id: parts.queue.touched())
    wiring_history.introduce(parts.telemetry, parts.store)


def _register_ends(parts: _Parts) -> None:
    """Register who hears of the end of users and projects."""
    messages = parts.store.messages
    messages.on(identity_says.ProjectPurged, lambda uow, it: parts.secrets.forget_account(uow, it.account_id))
    messages.on(identity_says.ProjectPurged, lambda uow, it: cluster_lookup.forget_templates(uow, it.account_id))
    messages.on(identity_says.ProjectPurged, lambda uow, it: forget_account(uow, it.account_id))
    messages.on(identity_says.ProjectPurged, lambda uow, it: spending.forget_account(uow, it.account_id))
    messages.on(identity_says.ProjectPurged, lambda uow, it: quotas.forget_account(uow, it.account_id))
    messages.on(identity_says.ProjectLeft, lambda uow, it: parts.fair_shares.left(uow, it.account_id))
    messages.on(identity_says.ProjectPurged, lambda uow, it: forget_alerts(uow, it.account_id))
    messages.on(identity_says.ProjectPurged, lambda uow, it: notify_channels.forget(uow, it.account_id))
    messages.on(identity_says.UserErased, lambda uow, it: notify_channels.forget(uow, it.user_id))
    messages.on(identity_says.ProjectPurged, lambda uow, it: report_schedules.forget_account(uow, it.account_id))
    messages.on(identity_says.UserErased, lambda uow, it: spending.forget_names(uow, it.token_ids))


def _authority(store: Store, data_dir: Path, now_ns: int) -> Authority:
    """The market's keys, made at its first start and never again: members trust these and no others."""
    folder = data_dir / "identity"
    if store.read_now(is_new):
        return Authority.make(folder, now_ns)
    try:
        if not (folder / ARTEFACTS_KEY).exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder / ARTEFACTS_KEY))
        return Authority.load(folder)
    except (OSError, InvalidInput) as error:
        what = f"{error.filename} is missing" if isinstance(error, FileNotFoundError) else str(error).rstrip(".")
        raise KeysUnusable(
            f"The keys of this market cannot be used: {what}. New keys would not help, since no host knows them: "
            "restore these from a backup.",
            subject=str(folder),
        ) from error
