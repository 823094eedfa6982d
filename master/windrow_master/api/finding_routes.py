"""Routes of findings: what holds the GPUs of a cluster or a job back, with the evidence and what to change."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from windrow_master.api.answers import Money, Out, Read, Time
from windrow_master.api.auth import Reach
from windrow_master.api.deps import Asking, Services, Serving
from windrow_master.api.queue_routes import standing_json
from windrow_master.api.route import Routes
from windrow_master.api.telemetry_routes import Point
from windrow_master.clusters import lookup as cluster_lookup
from windrow_master.clusters.kinds import multi_host
from windrow_master.clusters.model import ClusterKind, Workload
from windrow_master.identity.decide import Permission
from windrow_master.identity.object_shares import Level
from windrow_master.jobs.model import JobId
from windrow_master.watch.findings import looks
from windrow_master.watch.findings.model import TITLES, Cause, Finding
from windrow_proto.errors import NotFound, WindrowError
from windrow_proto.ids import ClusterId, HostId
from windrow_proto.model import Inventory
from windrow_proto.units import MILLISECOND, Microcents, time_text

cluster_route = Routes("clusters")
job_route = Routes("jobs")


class EvidenceOut(Out):
    """One chart that shows a finding."""

    metric: str
    label: str
    unit: str
    points: list[Point]
    limit: Annotated[float | None, Field(description="The line that it is held against, in the unit")]


class FindingOut(Out):
    """What holds one GPU back."""

    cause: Cause
    title: Annotated[str, Field(description="The cause in a few words")]
    rank: int
    host_name: str
    gpu: str
    gpu_index: int | None
    words: Annotated[str, Field(description="What is so, with its figures")]
    remedy: Annotated[str, Field(description="What to change")]
    lost_ratio: Annotated[float, Field(description="The share of the GPU's time that it costs, 0 to 1")]
    lost_per_hour: Annotated[Money, Field(description="The same of the price per hour")]
    evidence: list[EvidenceOut]


class FirstEndedOut(Out):
    """The rank of a gang that failed first."""

    rank: int
    host_name: str
    exit_code: int | None
    detail: Annotated[str | None, Field(description="What its host says of its end")]
    at: Annotated[
        Time | None, Field(description="When the Master heard of it: clocks of hosts differ"), Read("ended_at_ns")
    ]
    last_lines: Annotated[list[str], Field(description="Of its log; empty for who may not read it")]


class FindingsOut(Out):
    """What was found in a window: the last half hour of work that runs, the whole of what has ended."""

    words: Annotated[str, Field(description="The answer in a sentence, also where nothing was found")]
    cluster_id: str | None
    looked_from: str | None
    looked_to: str | None
    step_s: int
    gpus: Annotated[int, Field(description="GPUs that were looked at, at most 16")]
    gpus_read: Annotated[int, Field(description="Of these, with a minute of readings or more")]
    findings: list[FindingOut]
    first_ended: FirstEndedOut | None


@cluster_route.get(
    "/clusters/{cluster_id}/findings",
    may=Permission.RENT_READ,
    reach=Reach.OWN_OR_OVERSEEN,
    shared=Level.SEE,
    answer=FindingsOut,
)
async def cluster_findings(services: Serving, principal: Asking, cluster_id: str) -> Any:
    """What holds the GPUs of a cluster back: idle, waiting for data, for processors or for the PCIe link, held down by
    heat or power, nearly full; or that nothing does. Of a gang also the rank that failed first."""
    cluster = (view := await services.clusters.get(principal, ClusterId(cluster_id))).cluster
    found = await _found(
        services,
        cluster.cluster_id,
        [one for one in view.workloads if not one.is_past],
        cluster.price_per_hour,
        cluster.started_at_ns,
        cluster.ended_at_ns,
        serves=cluster.kind is ClusterKind.SERVICE,
    )
    first = multi_host.first_ended(cluster, view.workloads)
    if first is None:
        return found
    lines: tuple[str, ...] = ()
    with suppress(WindrowError):
        lines = await services.results.last_lines(principal, cluster.cluster_id, first.rank)
    return found | {"first_ended": FirstEndedOut.of(first, last_lines=list(lines))}


@job_route.get(
    "/jobs/{job_id}/findings",
    may=Permission.RENT_READ,
    reach=Reach.OWN_OR_OVERSEEN,
    shared=Level.SEE,
    answer=FindingsOut,
)
async def job_findings(
    services: Serving,
    principal: Asking,
    job_id: str,
    attempt: Annotated[int | None, Query(ge=1, description="By default the last one")] = None,
) -> Any:
    """The same of an attempt of a job."""
    _, tried, workloads = await services.jobs.placed(principal, JobId(job_id), attempt)
    if tried is None:
        queued = await standing_json(services, principal, job_id)
        return _nothing(f"No attempt of this job has begun yet. {'' if queued is None else queued['why']}".rstrip())
    if tried.run_id:
        return _nothing(f"It is a run at {tried.where}. What holds its GPUs back is not measured there: see its log.")
    cluster = await services.store.read(lambda uow: cluster_lookup.find(uow, tried.cluster_id))
    price = Microcents(0) if cluster is None else cluster.price_per_hour
    return await _found(
        services, tried.cluster_id, workloads, price, tried.started_at_ns, tried.ended_at_ns, serves=False
    )


async def _found(
    services: Services,
    cluster_id: ClusterId | None,
    workloads: Sequence[Workload],
    price: Microcents,
    began_ns: int | None,
    ended_ns: int | None,
    *,
    serves: bool,
) -> dict[str, Any]:
    def inventory_of(host_id: HostId) -> Inventory | None:
        try:
            return services.fleet.entry(host_id).host.inventory
        except NotFound:
            return None  # it has left the market

    if began_ns is None:
        return _nothing("This work has not started yet.")
    cards = looks.cards_of(workloads, inventory_of, serves=serves)
    query = looks.query_of(cards, began_ns, ended_ns, services.clock.wall_ns())
    looked = looks.looked(cards, query, await services.telemetry.series(query) if cards else ())
    share = Microcents(price // max(1, sum(len(one.slots) for one in workloads if one.is_member)))
    return {
        "words": looked.words,
        "cluster_id": cluster_id,
        "looked_from": time_text(looked.from_ms * MILLISECOND),
        "looked_to": time_text(looked.to_ms * MILLISECOND),
        "step_s": looked.step_ms // 1000,
        "gpus": looked.of,
        "gpus_read": looked.read,
        "findings": [_shown(one, share) for one in looked.findings],
        "first_ended": None,
    }


def _nothing(words: str) -> dict[str, Any]:
    return {
        "words": words,
        "cluster_id": None,
        "looked_from": None,
        "looked_to": None,
        "step_s": 0,
        "gpus": 0,
        "gpus_read": 0,
        "findings": [],
        "first_ended": None,
    }


def _shown(one: Finding, price: Microcents) -> dict[str, Any]:
    """price: of one GPU for an hour, rounded down."""
    return FindingOut.of(
        one,
        title=TITLES[one.cause],
        rank=one.card.rank,
        host_name=one.card.host_name,
        gpu=one.card.gpu,
        gpu_index=one.card.index,
        lost_ratio=round(one.lost, 4),
        lost_per_hour=Microcents(int(price * one.lost)),
        evidence=[EvidenceOut.of(chart) for chart in one.evidence],
    )
