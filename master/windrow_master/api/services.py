"""Holds every package's service in one place, for the routes to use."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from windrow_master.acceptance.service import ProofService
from windrow_master.accesses.failover_test.service import TrialService
from windrow_master.accesses.service import AccessService
from windrow_master.accounts import AccountService
from windrow_master.api.local_user import LocalUser
from windrow_master.api.sharing import RequestShares
from windrow_master.api.sse import Broadcaster
from windrow_master.audit.service import AuditService
from windrow_master.billing.service import BillingService
from windrow_master.clusters.service import ClusterService
from windrow_master.clusters.templates import TemplateService
from windrow_master.fleet.service import FleetService
from windrow_master.hybrid.purchases.backends import BackendService
from windrow_master.hybrid.purchases.service import PurchaseService
from windrow_master.hybrid.registry import ResourceRegistry
from windrow_master.hybrid.runs.service import RunService
from windrow_master.hybrid.search.service import SearchService
from windrow_master.hybrid.service import Router
from windrow_master.identity.service import IdentityService
from windrow_master.jobs.service import JobService
from windrow_master.lifecycle import LifecycleService
from windrow_master.market.service import MarketService
from windrow_master.market.spending import SpendingService
from windrow_master.network.overlay import OverlayService
from windrow_master.network.terminals import TerminalService
from windrow_master.network.tunnels import TunnelService
from windrow_master.network.workload_io import WorkAccess
from windrow_master.onboarding.packages import Packages
from windrow_master.onboarding.service import Wheelhouse
from windrow_master.onboarding.simulated import SimulatedService
from windrow_master.prices.book import PriceBook
from windrow_master.queue.rules import ShareService
from windrow_master.queue.service import QueueService
from windrow_master.records.service import RecordService
from windrow_master.reports.schedules import ScheduleService
from windrow_master.reports.service import ReportService
from windrow_master.secrets.service import SecretService
from windrow_master.storage.artefacts import ArtefactService
from windrow_master.storage.results import ResultService
from windrow_master.storage.retention import RetentionService
from windrow_master.storage.transfer import CheckpointService
from windrow_master.storage.volume_sync import VolumeController
from windrow_master.storage.volumes import VolumeService
from windrow_master.store.bus import Bus
from windrow_master.store.disk_space import DiskSpace
from windrow_master.store.store import Store
from windrow_master.telemetry.service import TelemetryService
from windrow_master.verification.scheduler import VerificationService
from windrow_master.watch.maintenance import MaintenanceService
from windrow_master.watch.notify.channels import ChannelService
from windrow_master.watch.notify.deliveries import DeliveryService
from windrow_master.watch.service import AlertService
from windrow_proto.conditions import Stated
from windrow_proto.ports import Clock, Rng

Figure = tuple[str, str, float, dict[str, str]]
"""Name (with unit, without the prefix), help, value, labels."""


@dataclass(slots=True)
class HealthSources:
    """The health figures of each package. telemetry: log_lag and duckdb_lag_s. accesses: one mapping per attached
    Access; departed: one per Access that went."""

    telemetry: Callable[[], Mapping[str, Any]]
    accesses: Callable[[], Iterable[Mapping[str, Any]]]
    departed: Callable[[], Iterable[Mapping[str, Any]]]
    figures: list[Callable[[], Iterable[Figure]]]
    problems: list[Callable[[], str | None]]
    conditions: list[Callable[[], Iterable[Stated]]]
    """Each tells the code, the detail and since when (wall nanoseconds) of what is not as it should be."""


@dataclass(slots=True)
class Services:
    """Every package's service. disk_space: watches the disks, where they are this Master's own."""

    store: Store
    audit: AuditService
    identity: IdentityService
    accounts: AccountService
    lifecycle: LifecycleService
    clock: Clock
    rng: Rng
    broadcaster: Broadcaster
    bus: Bus
    health: HealthSources
    wheelhouse: Wheelhouse
    cli_wheels: Wheelhouse
    """What people's machines install the command `windrow` from."""
    packages: Packages
    simulated: SimulatedService
    fleet: FleetService
    accesses: AccessService
    trials: TrialService
    telemetry: TelemetryService
    verification: VerificationService
    proofs: ProofService
    market: MarketService
    spending: SpendingService
    fair_shares: ShareService
    billing: BillingService
    reports: ReportService
    report_schedules: ScheduleService
    clusters: ClusterService
    results: ResultService
    templates: TemplateService
    secrets: SecretService
    jobs: JobService
    queue: QueueService
    channels: ChannelService
    deliveries: DeliveryService
    artefacts: ArtefactService
    checkpoints: CheckpointService
    volumes: VolumeService
    volume_controller: VolumeController
    retention: RetentionService
    records: RecordService
    inside: WorkAccess
    terminals: TerminalService
    tunnels: TunnelService
    overlay: OverlayService
    disk_space: DiskSpace | None
    version: str
    started_at_ns: int
    https_url: str
    https_pin: Callable[[], str]
    """`sha256//...` of the key that HTTPS shows at that address now, as curl pins it."""
    shows_own_certificate: Callable[[], bool]
    registry: ResourceRegistry
    price_book: PriceBook
    router: Router
    backends: BackendService
    purchases: PurchaseService
    searches: SearchService
    runs: RunService
    alerts: AlertService
    maintenance: MaintenanceService
    local_user: LocalUser | None
    """Recognises the Master's own user; None: nobody is let in without a token."""
    shares: RequestShares = field(default_factory=RequestShares)
