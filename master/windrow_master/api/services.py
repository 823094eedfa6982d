"""Every room's service in one place, for the routes to use; nothing here needs the web framework, so that a Master's
rooms can be put together without it."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windrow_master.acceptance.service import ProofService
from windrow_master.accesses.failover_test.service import TrialService
from windrow_master.accesses.service import AccessService
from windrow_master.accounts import AccountService
from windrow_master.api.sharing import RequestShares
from windrow_master.api.sse import Broadcaster
from windrow_master.audit.service import AuditService
from windrow_master.clusters.results import ResultService
from windrow_master.clusters.service import ClusterService
from windrow_master.clusters.templates import TemplateService
from windrow_master.fleet.service import FleetService
from windrow_master.identity.service import IdentityService
from windrow_master.jobs.service import JobService
from windrow_master.market.service import MarketService
from windrow_master.network.overlay import CordService
from windrow_master.network.tunnels import TunnelService
from windrow_master.network.workload_io import WorkAccess
from windrow_master.onboarding.packages import Packages
from windrow_master.onboarding.service import Wheelhouse
from windrow_master.records.service import RecordService
from windrow_master.storage.artefacts import ArtefactService
from windrow_master.storage.retention import RetentionService
from windrow_master.storage.transfer import CheckpointService
from windrow_master.storage.volume_sync import VolumeCourse
from windrow_master.storage.volumes import VolumeService
from windrow_master.store.bus import Bus
from windrow_master.store.disk_space import Room
from windrow_master.store.store import Store
from windrow_master.telemetry.service import TelemetryService
from windrow_master.verification.scheduler import VerificationService
from windrow_proto.conditions import Stated
from windrow_proto.ids import AccountId
from windrow_proto.ports import Clock, Rng
from windrow_proto.units import CURRENCY_TEST, Microcents, money_text

if TYPE_CHECKING:
    from windrow_master.api.event_tail import EventTail
    from windrow_master.api.rate_limits import Limits

Figure = tuple[str, str, float, dict[str, str]]
"""Name (with unit, without the prefix), help, value, labels."""


@dataclass(slots=True)
class HealthSources:
    """How each package reports on itself. telemetry: log_lag and duckdb_lag_s. accesses: one mapping per attached
    Access; departed: one per Access that went."""

    telemetry: Callable[[], Mapping[str, Any]] = lambda: {"log_lag": None, "duckdb_lag_s": None}
    accesses: Callable[[], Iterable[Mapping[str, Any]]] = tuple
    departed: Callable[[], Iterable[Mapping[str, Any]]] = tuple
    figures: list[Callable[[], Iterable[Figure]]] = field(default_factory=list)
    problems: list[Callable[[], str | None]] = field(default_factory=list)
    conditions: list[Callable[[], Iterable[Stated]]] = field(default_factory=list)


async def _no_market(_account_id: AccountId) -> dict[str, str]:
    return {"amount": money_text(Microcents(0)), "currency": CURRENCY_TEST}


@dataclass(slots=True)
class Services:
    """Every package's service; filled in main."""

    store: Store
    audit: AuditService
    identity: IdentityService
    clock: Clock
    rng: Rng
    broadcaster: Broadcaster
    bus: Bus
    health: HealthSources
    wheelhouse: Wheelhouse
    packages: Packages
    fleet: FleetService
    accesses: AccessService
    trials: TrialService
    telemetry: TelemetryService
    market: MarketService
    clusters: ClusterService
    templates: TemplateService
    artefacts: ArtefactService
    retention: RetentionService
    records: RecordService
    volumes: VolumeService
    shares: RequestShares = field(default_factory=RequestShares)
    version: str = "0"
    https_url: str = ""
    https_pin: str = ""
    """`sha256//...` of the key that HTTPS shows, as curl pins it."""
    started_at_ns: int = 0
    balance: Callable[[AccountId], Awaitable[dict[str, str]]] = _no_market
    limits: "Limits | None" = None
    """How often anybody may ask; None: as often as they like."""
    tail: "EventTail | None" = None
    """What tells the streams; made with the application, and it runs while the Master serves."""
    room: Room | None = None
    """Watches the disks, where they are this Master's own."""
    inside: WorkAccess | None = None
    """The way into workloads, once there is a link to hosts: `WorkAccess(clusters, broker)`."""
    checkpoints: CheckpointService | None = None
    """Moves checkpoints of workloads, likewise."""
    volume_course: VolumeCourse | None = None
    results: ResultService | None = None
    """Keeps what work leaves that has ended by itself, likewise."""
    """Moves volumes, likewise."""
    tunnels: TunnelService | None = None
    cords: CordService | None = None
    """The way to their ports, likewise."""
    verification: VerificationService | None = None
    """Challenges hosts, likewise."""
    jobs: JobService | None = None
    """Jobs, likewise."""
    accounts: AccountService | None = None
    """Other people's accounts, likewise."""
    proofs: ProofService | None = None
    """Rents hosts to try them, likewise."""
