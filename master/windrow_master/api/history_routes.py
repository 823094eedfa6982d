"""Routes of history beyond one host's charts: means by tier over the fleet, and export of any series."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Annotated, Any, Final, Literal

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Send
from starlette.types import Scope as Connection

from windrow_master.api import out_health
from windrow_master.api.auth import Reach
from windrow_master.api.deps import Services, Serving
from windrow_master.api.route import Routes
from windrow_master.api.sharing import ShareKind
from windrow_master.api.streaming import Lasting
from windrow_master.api.telemetry_routes import METRICS_MAX, keys_of, moment, step_s_of
from windrow_master.identity.decide import Permission
from windrow_master.telemetry import export
from windrow_master.telemetry.model import GroupQuery, SeriesQuery
from windrow_master.telemetry.parquet import ParquetFile
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import HostId
from windrow_proto.metrics import BY_NAME, Scope
from windrow_proto.units import DAY, HOUR, MILLISECOND

route = Routes("telemetry")

CHUNK_BYTES: Final = 256 << 10
PARQUET: Final = "application/vnd.apache.parquet"
CSV: Final = "text/csv; charset=utf-8; header=present"


@route.get("/metrics/history", may=Permission.FLEET_READ, answer=out_health.FleetHistoryOut)
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
        raise InvalidInput(f"{metric[:64]} is no gauge of GPUs; GET /api/v1/metrics/catalog lists the metrics.")
    from_ms, to_ms, step_ms = _window(services, start, end, step_s, DAY)
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
    from_ms, to_ms, step_ms = _window(services, start, end, step_s, HOUR)
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


def _window(
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
