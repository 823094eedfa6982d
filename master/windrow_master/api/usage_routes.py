"""Routes of the resources that the work of a cluster uses: now, and over time."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

from fastapi import Query
from pydantic import Field

from windrow_master.api.answers import Out, Time
from windrow_master.api.auth import Reach
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.route import Routes
from windrow_master.api.telemetry_routes import Point, window
from windrow_master.clusters.model import HOSTS_MAX, Workload
from windrow_master.identity.decide import Permission
from windrow_master.identity.object_shares import Level
from windrow_master.telemetry.live import Reading
from windrow_master.telemetry.model import SeriesKey, SeriesPoints, SeriesQuery
from windrow_proto.ids import ClusterId
from windrow_proto.metrics import BY_NUMBER, METRICS, Scope
from windrow_proto.units import HOUR, time_text

route = Routes("clusters")

OF_WORKLOADS: Final = tuple(metric for metric in METRICS if metric.scope is Scope.WORKLOAD)
PREFIX: Final = "workload_"
MEMBERS_MAX: Final = 8
"""Members in one answer about time: a chart of more lines cannot be read."""
WORKLOADS_MAX: Final = 64
"""Their workloads, the latest first: a member that was replaced has more than one."""


class MemberUsageOut(Out):
    """The resources that one member uses now. Its host measured them in the last 30 s."""

    rank: int
    workload_id: str
    host_id: str
    host_name: str
    at: Annotated[Time, Field(description="When it was measured")]
    cpu_cores: Annotated[float | None, Field(description="Processors in use")]
    memory_used_bytes: float | None
    disk_used_bytes: float | None
    disk_read_bytes_per_second: float | None
    disk_write_bytes_per_second: float | None
    network_receive_bytes_per_second: float | None
    network_transmit_bytes_per_second: float | None
    gpu_ratio: Annotated[float | None, Field(description="The mean of its GPUs, from 0 to 1")]
    gpu_memory_used_bytes: Annotated[float | None, Field(description="The sum of its GPUs")]


class UsageOut(Out):
    """The resources that a cluster uses now."""

    members: Annotated[
        list[MemberUsageOut],
        Field(description="Those with figures, by rank; the first figures come ten seconds after the start"),
    ]


class MemberSeriesOut(Out):
    """One metric of a member over time."""

    metric: str
    rank: int
    unit: str
    points: list[Point]


class UsageHistoryOut(Out):
    """The resources that a cluster has used."""

    series: list[MemberSeriesOut]
    step_s: int


@route.get(
    "/clusters/{cluster_id}/usage",
    may=Permission.RENT_READ,
    reach=Reach.OWN_OR_OVERSEEN,
    shared=Level.SEE,
    answer=UsageOut,
)
async def usage(services: Serving, principal: Asking, cluster_id: str) -> Any:
    """The processors, memory, disk, network and GPUs that each member of a cluster uses now. A figure that its host
    cannot measure is null; a member that does not run is not there."""
    view = await services.clusters.get(principal, ClusterId(cluster_id))
    found = [(work, services.telemetry.live.get(work.host_id)) for work in _by_rank(view.workloads)]
    return {
        "members": [_now(work, reading) for work, reading in found if reading and work.workload_id in reading.read_ns]
    }


def _now(work: Workload, reading: Reading) -> dict[str, Any]:
    values = {metric.name.removeprefix(PREFIX): reading.get(work.workload_id, metric.number) for metric in OF_WORKLOADS}
    return MemberUsageOut.of(work, **values, at=time_text(reading.read_ns[work.workload_id]))


@route.get(
    "/clusters/{cluster_id}/usage/history",
    may=Permission.RENT_READ,
    reach=Reach.OWN_OR_OVERSEEN,
    shared=Level.SEE,
    answer=UsageHistoryOut,
)
async def usage_history(
    services: Serving,
    principal: Asking,
    cluster_id: str,
    start: Annotated[str | None, Query(alias="from", max_length=40)] = None,
    end: Annotated[str | None, Query(alias="to", max_length=40)] = None,
    step_s: Annotated[int | None, Query(ge=1, le=86_400)] = None,
    rank: Annotated[
        int | None, Query(ge=0, lt=HOSTS_MAX, description="Of this member alone; else of the first eight")
    ] = None,
) -> Any:
    """The same over time, of its present or last run: means of each step, null where nothing was read; without `from`,
    the last hour. Kept for 30 days: each reading for 4 days, then means of minutes and hours."""
    view = await services.clusters.get(principal, ClusterId(cluster_id))
    from_ms, to_ms, step_ms = window(services, start, end, step_s, HOUR)
    wanted = [work for work in view.workloads if (work.rank < MEMBERS_MAX if rank is None else work.rank == rank)]
    latest = sorted(wanted, key=lambda work: work.workload_id)[-WORKLOADS_MAX:]
    ranks: dict[str, int] = {work.workload_id: work.rank for work in latest}
    keys = tuple(SeriesKey(one.host_id, one.workload_id, metric.number) for one in latest for metric in OF_WORKLOADS)
    found = await services.telemetry.series(SeriesQuery(keys, from_ms, to_ms, step_ms)) if keys else ()
    return {"series": _by_member(found, ranks), "step_s": step_ms // 1000}


def _by_member(found: Iterable[SeriesPoints], ranks: Mapping[str, int]) -> list[dict[str, Any]]:
    """One line for each metric and rank: of its workloads, of which at most one runs at a time, the latest that was
    read."""
    lines: dict[tuple[int, int], dict[int, float | None]] = {}
    for one in found:
        line = lines.setdefault((one.key.metric, ranks[one.key.device]), {})
        for at_ms, value in one.points:
            line[at_ms] = value if value is not None else line.get(at_ms)
    return [
        {
            "metric": BY_NUMBER[number].name,
            "rank": rank,
            "unit": BY_NUMBER[number].unit,
            "points": [[at_ms, value] for at_ms, value in line.items()],
        }
        for (number, rank), line in sorted(lines.items())
    ]


def _by_rank(workloads: Iterable[Workload]) -> list[Workload]:
    return sorted(workloads, key=lambda work: work.rank)
