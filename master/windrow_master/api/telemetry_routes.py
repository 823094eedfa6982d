"""Routes of telemetry: live samples of a host, history of hosts and of the fleet, its export, and the metrics."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Annotated, Any, Final, Literal

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field
from starlette.types import Receive, Send
from starlette.types import Scope as Connection

from windrow_master.api import answers, sse, streaming
from windrow_master.api.answers import Out
from windrow_master.api.auth import Reach
from windrow_master.api.deps import Services, Serving
from windrow_master.api.fleet_shapes import reading_json
from windrow_master.api.paging import LIMIT_MAX, Cursor, Limit, page_of
from windrow_master.api.route import Routes
from windrow_master.api.sharing import ShareKind
from windrow_master.api.streaming import Lasting
from windrow_master.identity.decide import Permission
from windrow_master.telemetry import export
from windrow_master.telemetry.model import GroupQuery, SeriesKey, SeriesQuery
from windrow_master.telemetry.parquet import ParquetFile
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import HostId
from windrow_proto.metrics import BY_NAME, METRICS, Scope
from windrow_proto.units import DAY, HOUR, MILLISECOND, SECOND, parse_time

route = Routes("telemetry")

CHUNK_BYTES: Final = 256 << 10
PARQUET: Final = "application/vnd.apache.parquet"
CSV: Final = "text/csv; charset=utf-8; header=present"
LOOK_NS: Final = SECOND // 4
"""Between two looks for a new sample: adds at most this to what the network takes."""
QUIET_LOOKS: Final = 60
DEFAULT_POINTS: Final = 300
STEPS_S: Final = (1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 86_400)
METRICS_MAX: Final = 32


Point = tuple[int, float | None]
"""The start of the step in milliseconds since the epoch, and the value; null where nothing was read."""


class MetricOut(Out):
    """The meaning of a metric."""

    name: str
    scope: str
    unit: str
    counter: bool
    label: str
    otel: str | None
    dcgm: str | None


class SeriesOut(Out):
    """One metric of a host or of one of its GPUs over time."""

    metric: str
    gpu: Annotated[str | None, Field(description="The GPU's uuid; null for the host itself")]
    unit: str
    points: list[Point]


class HistoryOut(Out):
    """Some metrics of a host over time."""

    series: list[SeriesOut]
    step_s: int


class TierSeriesOut(Out):
    """One metric over time, the mean of all GPUs of a tier."""

    metric: str
    tier: Annotated[str | None, Field(description="Null for GPUs that had none")]
    unit: str
    points: list[Point]


class FleetHistoryOut(Out):
    """One metric of the whole fleet over time, by tier."""

    series: list[TierSeriesOut]
    step_s: int


@route.get("/metrics/catalog", may=Permission.FLEET_READ, answer=answers.Page[MetricOut])
async def catalog(limit: Limit = LIMIT_MAX, cursor: Cursor = None) -> Any:
    """Every metric: its name, unit and meaning."""
    return page_of(METRICS, limit, cursor, MetricOut.of, lambda metric: metric.name)


@route.get(
    "/hosts/{host_id}/stream", may=Permission.FLEET_READ, reach=Reach.ALL, share=ShareKind.STREAMS, **answers.STREAM
)
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


@route.get("/hosts/{host_id}/history", may=Permission.FLEET_READ, reach=Reach.ALL, answer=HistoryOut)
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
    from_ms, to_ms, step_ms = window(services, start, end, step_s, HOUR)
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
        if known.scope is Scope.WORKLOAD:
            raise InvalidInput(f"{name} is a metric of workloads; GET /api/v1/clusters/CLUSTER/usage/history has it.")
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


@route.get("/metrics/history", may=Permission.FLEET_READ, answer=FleetHistoryOut)
async def fleet_history(
    services: Serving,
    metric: Annotated[str, Query(max_length=64)],
    start: Annotated[str | None, Query(alias="from", max_length=40)] = None,
    end: Annotated[str | None, Query(alias="to", max_length=40)] = None,
    step_s: Annotated[int | None, Query(ge=1, le=86_400)] = None,
) -> Any:
    """Means of a gauge of GPUs over the whole fleet, by the tier of each at that time; without `from`, the last day."""
    known = BY_NAME.get(metric)
    if known is None or known.scope is not Scope.GPU or known.counter:
        raise InvalidInput(f"{metric[:64]} is not a gauge of GPUs; GET /api/v1/metrics/catalog lists the metrics.")
    from_ms, to_ms, step_ms = window(services, start, end, step_s, DAY)
    found = await services.telemetry.grouped(GroupQuery(known.number, from_ms, to_ms, step_ms))
    series = [
        {"metric": known.name, "tier": tier or None, "unit": known.unit, "points": [list(point) for point in points]}
        for tier, points in sorted(found.items())
    ]
    return {"series": series, "step_s": step_ms // 1000}


@route.get(
    "/hosts/{host_id}/export",
    may=Permission.FLEET_READ,
    reach=Reach.ALL,
    share=ShareKind.EXPORTS,
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "The file: time, host, host_name, gpu, metric, unit, value.",
            "content": {
                "text/csv": {"schema": {"type": "string"}},
                PARQUET: {"schema": {"type": "string", "format": "binary"}},
            },
        }
    },
)
async def export_series(
    request: Request,
    services: Serving,
    host_id: str,
    metric: Annotated[list[str], Query(max_length=METRICS_MAX)],
    file_format: Annotated[Literal["csv", "parquet"], Query(alias="format")] = "csv",
    gpu: Annotated[str | None, Query(max_length=128)] = None,
    start: Annotated[str | None, Query(alias="from", max_length=40)] = None,
    end: Annotated[str | None, Query(alias="to", max_length=40)] = None,
    step_s: Annotated[int | None, Query(ge=1, le=86_400)] = None,
) -> Response:
    """Any series of a host as a file: a line for each value, as `history` gives them; without `from`, the last
    hour. At most 2,000,000 points (a longer step or a shorter time asks for fewer) and four exports at a time."""
    entry = services.fleet.entry(HostId(host_id))
    uuids = [found.uuid for found in entry.host.inventory.gpus] if entry.host.inventory else []
    from_ms, to_ms, step_ms = window(services, start, end, step_s, HOUR)
    query = SeriesQuery(keys_of(entry.host.host_id, metric, gpu, uuids), from_ms, to_ms, step_ms)
    count = export.points_in(query)
    if count > export.POINTS_MAX:
        raise InvalidInput(
            f"{count} points; an export has at most {export.POINTS_MAX}. Ask for a longer step or a shorter time."
        )
    pieces = _batches(services, query, entry.host.name)
    stream = _csv(pieces) if file_format == "csv" else _parquet(pieces)
    try:
        # The first piece is made before the answer begins: a history that is gone is a 503 and no empty file.
        first = await anext(stream)
    except BaseException:
        await stream.aclose()
        raise
    name = f"{entry.host.host_id}.{file_format}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"}
    kind = CSV if file_format == "csv" else PARQUET
    return ExportResponse(request, first, stream, kind, headers)


def window(
    services: Services, start: str | None, end: str | None, step_s: int | None, default_ns: int
) -> tuple[int, int, int]:
    """From, to and step in milliseconds, both ends moved out to whole steps."""
    to_ns = moment(end, services.clock.wall_ns())
    from_ns = moment(start, to_ns - default_ns)
    if from_ns >= to_ns:
        raise InvalidInput("`from` must lie before `to`.")
    step_ms = (step_s or step_s_of(to_ns - from_ns)) * 1000
    return from_ns // MILLISECOND // step_ms * step_ms, -(-(to_ns // MILLISECOND) // step_ms) * step_ms, step_ms


async def _batches(services: Services, query: SeriesQuery, host_name: str) -> AsyncGenerator[list[export.Row], None]:
    for part in export.parts(query):
        yield list(export.rows(await services.telemetry.series(part), host_name))


async def _csv(batches: AsyncGenerator[list[export.Row], None]) -> AsyncGenerator[bytes, None]:
    head = export.header()
    async with contextlib.aclosing(batches):
        async for rows in batches:
            yield (head + export.csv_text(rows)).encode()
            head = ""


async def _parquet(batches: AsyncGenerator[list[export.Row], None]) -> AsyncGenerator[bytes, None]:
    made = await asyncio.to_thread(ParquetFile)
    try:
        async with contextlib.aclosing(batches):
            async for rows in batches:
                await asyncio.to_thread(made.add, rows)
        file = await asyncio.to_thread(made.finish)
    finally:
        # After `finish` nothing is left to do; where it was cut short, not even a cancelled caller leaves the folder.
        made.close()
    with file:
        while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
            yield chunk


async def _joined(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    yield first
    async for chunk in rest:
        yield chunk


class ExportResponse(Lasting):
    """An answer that ends its stream whatever becomes of the caller, also of one that left before the first byte."""

    def __init__(
        self,
        request: Request,
        first: bytes,
        rest: AsyncGenerator[bytes, None],
        media_type: str,
        headers: dict[str, str],
    ) -> None:
        self._rest = rest
        super().__init__(request, _joined(first, rest), media_type=media_type, headers=headers)

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Answer, then give back what the stream holds."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._rest.aclose()
