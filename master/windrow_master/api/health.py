"""Reports the Master's health: /healthz for machines, /operators/health for people, /metrics for Prometheus.

Packages add to it by callables in HealthSources (services.py); it asks them and knows none of them.
"""

import ipaddress
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Final

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field

from windrow_master.api import answers, metrics, overview
from windrow_master.api.answers import Out, Time
from windrow_master.api.condition_shapes import condition_json
from windrow_master.api.condition_shapes import figures as condition_figures
from windrow_master.api.deps import Services, Serving, principal_of
from windrow_master.api.event_names import relay_names
from windrow_master.api.fleet_metrics import fleet_text
from windrow_master.api.fleet_shapes import ConditionOut
from windrow_master.api.market_metrics import market_figures
from windrow_master.api.overview_routes import UseCounts, counts_json
from windrow_master.api.proxied import FORWARDED
from windrow_master.api.route import Routes
from windrow_master.api.services import Figure
from windrow_master.fleet.view import FleetView, once_per_version
from windrow_master.identity.decide import Permission, is_allowed
from windrow_master.store.bus import Bus
from windrow_master.store.unit import DATABASE_FAULTS
from windrow_proto import scrape
from windrow_proto.conditions import ConditionCode, Stated
from windrow_proto.errors import Forbidden

route = Routes("operators")
root = Routes(None)

TROUBLED_MAX: Final = 100
"""Hosts shown with their trouble; more than that is a trouble of the installation."""


class StoreHealthOut(Out):
    """The health of the database of decisions."""

    problem: str | None
    commits: int
    writes: int
    failures: int
    pending: int


class BusHealthOut(Out):
    """The health of the bus that brings wake-ups to the other processes."""

    kind: str
    is_well: bool
    peers: Annotated[list[dict[str, str]], Field(description="Each process by `id` and what it says of itself")]


class LogHealthOut(Out):
    """Counters of the log of samples since the start; sizes in bytes."""

    records: int
    bytes: int
    fsyncs: int
    failed_fsyncs: int
    dropped_segments: int
    forced_segments: int
    unread_segments: int
    kept_bytes: int
    damage: int


class ViewHealthOut(Out):
    """The health of a view of history."""

    is_open: bool
    path: str
    problem: str
    lag_ns: Annotated[int, Field(description="How old the newest record is that it took in; 0 if it took in all")]
    rows: int
    bad_batches: int
    misdated: int


class MasterHealthOut(Out):
    """The health of the Master."""

    version: str
    epoch: int
    uptime_s: int
    store: StoreHealthOut
    streams: Annotated[int, Field(description="Open live streams")]
    problems: list[str]
    conditions: list[ConditionOut]
    bus: BusHealthOut
    log: LogHealthOut
    log_lag: Annotated[int, Field(description="Records that wait for the disk")]
    duckdb_lag_s: float
    duckdb: ViewHealthOut
    history: list[ViewHealthOut]


class AccessHealthOut(Out):
    """The health of a relay, all of its workers together."""

    access_id: str
    name: Annotated[str, Field(description="For people: `relay` and its region, numbered where it has several")]
    region: str
    address: str
    version: str
    workers: int
    agents: int
    load_permille: int
    shed_frames: int
    queued_bytes: int
    connected_since: Time


class TroubledHostOut(Out):
    """A host that a person has to look after: it is degraded, offline or in quarantine."""

    id: str
    name: str
    simulated: bool
    headline: str
    reason: str
    remedy: Annotated[str | None, Field(description="What to do about it")]


class FleetHealthOut(Out):
    """The health of the hosts and GPUs."""

    hosts: UseCounts
    gpus: UseCounts
    troubled: Annotated[list[TroubledHostOut], Field(description=f"By name, {TROUBLED_MAX} at most")]
    troubled_count: int


class HealthOut(Out):
    """The state of the Master, of every relay, and of the fleet."""

    master: MasterHealthOut
    accesses: list[AccessHealthOut]
    fleet: FleetHealthOut


class WellOut(Out):
    """The ability of the Master to store what it acknowledges: `ok` or `failing`."""

    status: str
    epoch: int
    problems: Annotated[list[str], Field(description="In words; only those of the store make it fail")]
    conditions: Annotated[list[str], Field(description="Codes of what /operators/health describes")]


WELL: Final[dict[int | str, dict[str, Any]]] = {200: {"model": WellOut}, 503: {"model": WellOut}}


@route.get("/operators/health", may=Permission.HEALTH_READ, answer=HealthOut)
async def operators_health(services: Serving) -> Any:
    """The state of the Master, of every relay, and of the fleet, for operators."""
    figures = services.store.figures
    age_ns = services.clock.monotonic_ns() - services.started_at_ns
    store = {
        "problem": services.store.problem,
        "commits": figures.commits,
        "writes": figures.writes,
        "failures": figures.failures,
        "pending": figures.pending,
    }
    names = relay_names(services)
    return {
        "master": {
            "version": services.version,
            "epoch": services.store.epoch,
            "uptime_s": age_ns // 1_000_000_000,
            "store": store,
            "streams": services.broadcaster.listeners,
            "problems": _problems(services),
            "conditions": [condition_json(*condition) for condition in conditions_of(services)],
            "bus": await _bus(services),
            **services.health.telemetry(),
        },
        "accesses": [
            {**access, "name": names.get(access["access_id"]) or f"relay {access['access_id'][-4:]}"}
            for access in services.health.accesses()
        ],
        "fleet": _fleet(services.fleet.view),
    }


@once_per_version
def _fleet(view: FleetView) -> dict[str, Any]:
    sums, troubled = overview.glance(view, None), overview.troubled(view)
    return {
        "hosts": counts_json(sums.hosts),
        "gpus": counts_json(sums.gpus),
        "troubled": [
            {
                "id": entry.host.host_id,
                "name": entry.host.name,
                "simulated": entry.host.simulated,
                "headline": shown.word,
                "reason": shown.reason,
                "remedy": shown.remedy or None,
            }
            for entry, shown in troubled[:TROUBLED_MAX]
        ],
        "troubled_count": len(troubled),
    }


@root.get("/healthz", may=Permission.NOBODY, is_unlimited=True, responses=WELL, tags=["operators"])
async def healthz(services: Serving) -> Response:
    """200 while the Master can store what it acknowledges, else 503. Either way with what a person should look at."""
    is_failing = services.store.problem is not None
    body = {
        "status": "failing" if is_failing else "ok",
        "epoch": services.store.epoch,
        "problems": _problems(services),
        "conditions": [code for code, _, _ in conditions_of(services)],
    }
    return JSONResponse(body, 503 if is_failing else 200)


# Anybody of this machine may ask; the route itself asks others for a token.
@root.get(
    "/metrics",
    may=Permission.NOBODY,
    hears_token=True,
    tags=["operators"],
    **answers.other(metrics.CONTENT_TYPE, "Figures."),
)
async def metrics_text(request: Request) -> Response:
    """Prometheus text; open to this machine, elsewhere for those who may read health."""
    if not _is_local(request):
        principal = await principal_of(request)
        if not is_allowed(principal.roles, Permission.HEALTH_READ):
            raise Forbidden("Metrics need the role operator or auditor.")
    services: Services = request.app.state.services
    try:
        market = scrape.exposition(await market_figures(services))
    except DATABASE_FAULTS:
        market = ""  # the Master's own figures tell of it
    fleet = await fleet_text(services.fleet.view, services.telemetry.live)
    own = metrics.exposition(request.app.state.registry)
    return Response(own + market.encode() + fleet.encode(), media_type=metrics.CONTENT_TYPE)


def _is_local(request: Request) -> bool:
    if FORWARDED in request.headers:
        return False  # from somebody behind a proxy of this machine
    try:
        return request.client is not None and ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False


def _problems(services: Services) -> list[str]:
    found = [services.store.problem, *(problem() for problem in services.health.problems)]
    return [problem for problem in found if problem is not None]


def conditions_of(services: Services) -> list[Stated]:
    """Conditions of the Master and its Accesses. They fail nothing: /healthz stays well."""
    found = [condition for source in services.health.conditions for condition in source()]
    health = services.bus.health
    if health.problem is None or health.since_ns is None:
        return found
    detail = (
        f"The bus reaches this process only: {health.problem}. Live pages of other processes are up to a second late, "
        "and limits are counted by each process alone. Nothing is lost."
    )
    return [(ConditionCode.BUS_ALONE, detail, health.since_ns), *found]


async def _bus(services: Services) -> dict[str, Any]:
    health = services.bus.health
    peers = [{"id": peer.id, **peer.facts} for peer in await services.bus.peers()]
    return {"kind": health.kind, "is_well": health.problem is None, "peers": peers}


def bus_figures(bus: Bus, refused: Mapping[str, int]) -> Iterable[Figure]:
    """Return the counters of the bus and the limits."""
    health = bus.health
    yield "bus_up", "1 while wake-ups and counts reach every process, 0 while this one only", health.problem is None, {}
    yield "bus_sent_total", "Wake-ups sent", health.sent, {}
    yield "bus_heard_total", "Wake-ups heard from other processes", health.heard, {}
    yield "bus_dropped_total", "Wake-ups that found no space; others were told to look at all", health.dropped, {}
    yield "bus_connections_total", "Times the bus was connected", health.connections, {}
    yield "bus_local_counts_total", "Requests counted by this process alone", health.local_counts, {}
    for limit, count in sorted(refused.items()):
        yield "http_limited_total", "Requests refused because there were too many", count, {"limit": limit}


def gauges(services: Services) -> Callable[[], Iterable[Figure]]:
    """The store's and the streams' figures, and what the packages add."""

    def collect() -> Iterable[Figure]:
        figures = services.store.figures
        yield "store_commits_total", "Transactions committed since the start", figures.commits, {}
        yield "store_writes_total", "Functions committed since the start", figures.writes, {}
        yield "store_failures_total", "Transactions that failed since the start", figures.failures, {}
        yield "store_pending", "Writes that wait", figures.pending, {}
        yield "streams", "Open live streams", services.broadcaster.listeners, {}
        yield "stream_resyncs_total", "Times a slow stream lost its queue", services.broadcaster.resyncs, {}
        yield "epoch", "The Master's term", services.store.epoch, {}
        of_hosts = (one.code for entry in services.fleet.view for one in entry.host.conditions)
        yield from condition_figures((*(code for code, _, _ in conditions_of(services)), *of_hosts))
        for source in services.health.figures:
            yield from source()

    return collect
