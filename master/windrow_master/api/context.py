"""What a route may use: the rooms' services, and who is asking."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from windrow_master.accesses.service import AccessService
from windrow_master.accesses.trials.service import TrialService
from windrow_master.api import browsers
from windrow_master.api.browsers import COOKIE as COOKIE
from windrow_master.api.sse import Broadcaster
from windrow_master.audit.service import AuditService
from windrow_master.clusters.access.service import WorkAccess
from windrow_master.clusters.artefacts.moving.service import CheckpointService
from windrow_master.clusters.artefacts.service import ArtefactService
from windrow_master.clusters.cords.service import CordService
from windrow_master.clusters.jobs.service import JobService
from windrow_master.clusters.service import ClusterService
from windrow_master.clusters.tunnels.service import TunnelService
from windrow_master.fleet.service import FleetService
from windrow_master.fleet.verification.checks.service import VerificationService
from windrow_master.identity.model import Principal
from windrow_master.identity.service import IdentityService
from windrow_master.market.service import MarketService
from windrow_master.onboarding.packages.service import Packages
from windrow_master.onboarding.proofs.service import ProofService
from windrow_master.onboarding.service import Wheelhouse
from windrow_master.store.bus import Bus
from windrow_master.store.room import Room
from windrow_master.store.store import Store
from windrow_master.telemetry.service import TelemetryService
from windrow_proto.errors import Unauthenticated
from windrow_proto.ids import AccountId
from windrow_proto.ports import Clock, Rng
from windrow_proto.units import CURRENCY_TEST, Microcents, money_text

if TYPE_CHECKING:
    from windrow_master.api.event_tail import EventTail
    from windrow_master.api.health import HealthSources
    from windrow_master.api.limits import Limits

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


async def _no_market(_account_id: AccountId) -> dict[str, str]:
    return {"amount": money_text(Microcents(0)), "currency": CURRENCY_TEST}


@dataclass(slots=True)
class Services:
    """Every room's service; filled in main."""

    store: Store
    audit: AuditService
    identity: IdentityService
    clock: Clock
    rng: Rng
    broadcaster: Broadcaster
    bus: Bus
    health: "HealthSources"
    wheelhouse: Wheelhouse
    packages: Packages
    fleet: FleetService
    accesses: AccessService
    trials: TrialService
    telemetry: TelemetryService
    market: MarketService
    clusters: ClusterService
    artefacts: ArtefactService
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
    tunnels: TunnelService | None = None
    cords: CordService | None = None
    """The way to their ports, likewise."""
    verification: VerificationService | None = None
    """Challenges hosts, likewise."""
    jobs: JobService | None = None
    """Jobs, likewise."""
    proofs: ProofService | None = None
    """Rents hosts to try them, likewise."""


def services_of(request: Request) -> Services:
    """The services of the application that serves this request."""
    services: Services = request.app.state.services
    return services


async def principal_of(request: Request) -> Principal:
    """Who asks: by bearer token, or by the console's cookie (then changes must come from its own pages)."""
    known: Principal | None = getattr(request.state, "principal", None)
    if known is not None:
        return known
    identity = services_of(request).identity
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token:
        principal = await identity.authenticate(token.strip())
    elif COOKIE in request.cookies:
        principal = await identity.asking.authenticate_session(request.cookies[COOKIE])
        if request.method not in SAFE_METHODS:
            browsers.check_change(request)
    else:
        raise Unauthenticated
    request.state.principal = principal
    return principal


Serving = Annotated[Services, Depends(services_of)]
Asking = Annotated[Principal, Depends(principal_of)]
"""Use as parameter types: `async def route(services: Serving, principal: Asking)`."""
