"""Routes of telemetry: the live samples of one host, its history, and what the metrics mean."""

from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response

from windrow_master.api import out, out_health, sse, streaming
from windrow_master.api.auth import Reach
from windrow_master.api.deps import Services, Serving
from windrow_master.api.fleet_shapes import reading_json
from windrow_master.api.route import Routes
from windrow_master.api.sharing import ShareKind
from windrow_master.identity.decide import Permission
from windrow_master.telemetry.model import SeriesKey, SeriesQuery
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import HostId
from windrow_proto.metrics import BY_NAME, METRICS, Scope
from windrow_proto.units import HOUR, MILLISECOND, SECOND, parse_time

route = Routes("telemetry")

LOOK_NS: Final = SECOND // 4
"""Between two looks for a new sample: adds at most this to what the network takes."""
QUIET_LOOKS: Final = 60
DEFAULT_POINTS: Final = 300
STEPS_S: Final = (1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 86_400)
METRICS_MAX: Final = 32


@route.get("/metrics/catalog", may=Permission.FLEET_READ, answer=out.Page[out_health.MetricOut])
async def catalog() -> Any:
    """Every metric: its name, unit and meaning."""
    items = [
        {
            "name": metric.name,
            "scope": metric.scope,
            "unit": metric.unit,
            "counter": metric.counter,
            "label": metric.label,
            "otel": metric.otel,
            "dcgm": metric.dcgm,
        }
        for metric in METRICS
    ]
    return {"items": items, "next_cursor": None}


@route.get("/hosts/{host_id}/stream", may=Permission.FLEET_READ, reach=Reach.ALL, share=ShareKind.STREAMS, **out.STREAM)
async def host_stream(request: Request, services: Serving, host_id: str) -> Response:
    """The samples of one host as they come; while this is open the host sends them each second."""
    entry = services.fleet.entry(HostId(host_id))
    return streaming.stream(request, _live(services, entry.host.host_id))


async def _live(services: Services, host_id: HostId) -> AsyncIterator[sse.Message]:
    live = services.telemetry.live
    version = quiet = 0
    async with services.telemetry.watch(host_id):
        while True:
            now = live.version_of(host_id)
            reading = live.get(host_id) if now > version else None
            quiet = 0 if reading is not None else quiet + 1
            version = now
            if reading is not None:
                yield sse.Message("live", reading_json(reading))
            elif quiet >= QUIET_LOOKS:
                quiet = 0
                yield sse.ALIVE
            await services.clock.sleep_ns(LOOK_NS)


@route.get("/hosts/{host_id}/history", may=Permission.FLEET_READ, reach=Reach.ALL, answer=out_health.HistoryOut)
async def history(
    services: Serving,
    host_id: str,
    metric: Annotated[list[str], Query(max_length=METRICS_MAX)],
    gpu: Annotated[str | None, Query(max_length=128)] = None,
    start: Annotated[str | None, Query(alias="from", max_length=40)] = None,
    end: Annotated[str | None, Query(alias="to", max_length=40)] = None,
    step_s: Annotated[int | None, Query(ge=1, le=86_400)] = None,
) -> Any:
    """Points of some metrics: means of gauges, last values of counters, null where nothing was read. Without `gpu`,
    metrics of GPUs are given for each; without `from`, the last hour."""
    entry = services.fleet.entry(HostId(host_id))
    uuids = [found.uuid for found in entry.host.inventory.gpus] if entry.host.inventory else []
    keys = keys_of(entry.host.host_id, metric, gpu, uuids)
    to_ns = moment(end, services.clock.wall_ns())
    from_ns = moment(start, to_ns - HOUR)
    if from_ns >= to_ns:
        raise InvalidInput("`from` must lie before `to`.")
    step_ms = (step_s or step_s_of(to_ns - from_ns)) * 1000
    from_ms = from_ns // MILLISECOND // step_ms * step_ms
    to_ms = -(-(to_ns // MILLISECOND) // step_ms) * step_ms
    found = await services.telemetry.series(SeriesQuery(keys, from_ms, to_ms, step_ms))
    series = [
        {
            "metric": BY_NUMBER_NAME[points.key.metric],
            "gpu": points.key.device or None,
            "unit": BY_NAME[BY_NUMBER_NAME[points.key.metric]].unit,
            "points": [[at_ms, value] for at_ms, value in points.points],
        }
        for points in found
    ]
    return {"series": series, "step_s": step_ms // 1000}


BY_NUMBER_NAME: Final = {metric.number: metric.name for metric in METRICS}


def keys_of(host_id: HostId, names: Sequence[str], gpu: str | None, uuids: Sequence[str]) -> tuple[SeriesKey, ...]:
    """The series that are meant; raises InvalidInput for a metric that there is not."""
    keys: dict[SeriesKey, None] = {}
    for name in names:
        known = BY_NAME.get(name)
        if known is None:
            raise InvalidInput(f"There is no metric {name[:64]}; GET /api/v1/metrics/catalog lists them.")
        devices = [""] if known.scope is Scope.HOST else ([gpu] if gpu is not None else uuids)
        keys |= {SeriesKey(host_id, device, known.number): None for device in devices}
    return tuple(keys)


def moment(text: str | None, default_ns: int) -> int:
    """A time of a query in wall nanoseconds."""
    if text is None:
        return default_ns
    try:
        return parse_time(text)
    except ValueError as error:
        raise InvalidInput(f"Not a time: {text[:40]!r}. Write it like 2027-01-15T08:00:00Z.") from error


def step_s_of(span_ns: int) -> int:
    """The step of a chart of that span, in seconds."""
    wanted_s = span_ns // SECOND // DEFAULT_POINTS
    return next((step for step in STEPS_S if step >= wanted_s), STEPS_S[-1])
