"""Routes of jobs: plan, submit, send the folder, read, follow the log, hold, put back, cancel, run again, fetch the
results."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Any
from zlib import crc32

from fastapi import Depends, Header, Query, Request, Response
from pydantic import Field

from windrow_master.api import answers, streaming
from windrow_master.api.answers import Money, Out, Read, Time
from windrow_master.api.auth import Reach, Repeat
from windrow_master.api.bodies import (
    Body,
    RegistryLoginBody,
)
from windrow_master.api.cluster_routes import PlanOut
from windrow_master.api.deps import Asking, Serving, announced
from windrow_master.api.names import with_host, with_region
from windrow_master.api.paging import (
    Cursor,
    Limit,
    page,
    read_cursor,
    tagged,
    time_or_none,
)
from windrow_master.api.queue_routes import QueuedOut, queued_tag, standing_json
from windrow_master.api.refusals import RefusalOut
from windrow_master.api.request_shapes import answer_of, body_of, filters_of, parsed
from windrow_master.api.route import Routes
from windrow_master.api.services import Services
from windrow_master.api.sharing import FOLDER_MAX, ShareKind
from windrow_master.api.telemetry_routes import Point
from windrow_master.api.try_shapes import AttemptPlaceOut, TryOut, tries_of, tries_tag
from windrow_master.clusters.request import check_new_name
from windrow_master.identity.decide import Permission
from windrow_master.identity.model import Principal
from windrow_master.identity.object_shares import Level
from windrow_master.jobs import gpu_impact
from windrow_master.jobs.gpu_impact import CardImpact, Spans
from windrow_master.jobs.model import Attempt, JobId, JobRequest
from windrow_master.jobs.service import JobView
from windrow_proto.metrics import BY_NAME
from windrow_proto.units import money_text

route = Routes("jobs")

Wanted = Annotated[Mapping[str, str], Depends(filters_of(JobRequest))]
"""The values of fields that each item of a list was asked for with."""

WhichAttempt = Annotated[int | None, Query(ge=1, le=1_000)]
_SAFE = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


@body_of(JobRequest)
class JobBody(Body):
    """A job to submit: its command, its hardware and its limits. `await_files`: it starts once its folder was sent."""

    registry_login: Annotated[
        RegistryLoginBody | None,
        Field(description="For the pulls of the image; kept sealed until the job has ended, and never shown again"),
    ] = None

    def parsed(self) -> JobRequest:
        """The same as a value of the package."""
        return parsed(self, JobRequest)


class RerunBody(Body):
    """The secrets that were deleted when the job ended."""

    env: Annotated[
        dict[str, str],
        Field(default_factory=dict, max_length=128, description="A value for each variable that the job had"),
    ]


class AttemptOut(Out):
    """One cluster that a job had, or one run at a service."""

    number: int
    cluster_id: Annotated[str, Field(description="Empty: it is a run at a service")]
    began_at: Time
    started_at: Annotated[Time | None, Field(description="When its command was first seen to run")]
    ended_at: Time | None
    exit_code: int | None
    outcome: Annotated[str | None, Field(description="How it ended, in words; null while it goes on")]
    log_bytes: Annotated[int | None, Field(description="Kept of its log; null where it could not be had")]
    log_truncated: bool
    files_bytes: Annotated[int | None, Field(description="Kept of the files that it changed, as a tar")]
    files_truncated: bool
    place: Annotated[AttemptPlaceOut | None, Field(description="Where it was bought; null: a host of this market")]
    cost: Money


@answer_of(JobRequest)
class JobRequestOut(Out):
    """The request for a job; a field that was not given is null."""


class JobOut(Out):
    """A job."""

    id: Annotated[str, Read("job_id")]
    name: str
    account_id: str
    group_id: Annotated[str, Field(description="The first job of its submission; an array shares it"), Read("group")]
    array_index: int
    state: str
    reason: str | None
    refusal: Annotated[
        RefusalOut | None,
        Field(description="Why it finds no place now; null in lists, and in an array but for the first"),
    ]
    queue: Annotated[
        QueuedOut | None, Field(description="Its place in the queue; null in lists, and once it does not wait")
    ]
    tries: Annotated[list[TryOut] | None, Field(description="Places elsewhere that were tried; null in lists")]
    request: JobRequestOut
    attempts: list[AttemptOut]
    exit_code: Annotated[
        int | None,
        Field(description="Of its last attempt"),
        Read(lambda job: job.attempts[-1].exit_code if job.attempts else None),
    ]
    folder_bytes: Annotated[int | None, Field(description="Of the folder kept for it; null where none was sent")]
    held_by: Annotated[str | None, Field(description="Who keeps it from starting; null: nobody")]
    is_top: Annotated[bool, Field(description="It comes before all others of its project and class")]
    cost_so_far: Money
    created_at: Time
    ended_at: Time | None
    version: int


class JobsOut(Out):
    """The jobs of one submission."""

    jobs: list[JobOut]


class FolderKeptOut(Out):
    """The part of a folder that is kept."""

    bytes: int


class FiguresOut(Out):
    """Of one metric in one stretch of time; null where nothing was read."""

    mean: float | None
    max: Annotated[float | None, Read("most")]


class StretchOut(Out):
    """One GPU in one stretch of time."""

    utilization_ratio: Annotated[FiguresOut, Read("use")]
    memory_used_bytes: Annotated[FiguresOut, Read("memory_bytes")]
    power_watts: FiguresOut
    throttled_ratio: Annotated[
        float | None, Field(description="Of the steps, in how many its clocks were held back"), Read("throttled")
    ]


class CardSeriesOut(Out):
    """A line of a chart."""

    metric: Annotated[str, Read(lambda line: line[0])]
    unit: Annotated[str, Read(lambda line: BY_NAME[line[0]].unit)]
    points: Annotated[list[Point], Read(lambda line: line[1])]


class CardImpactOut(Out):
    """One GPU that an attempt had: a minute before, during and a minute after it."""

    host_id: Annotated[str, Read("card.host_id")]
    host_name: Annotated[str, Read("card.host_name")]
    gpu: Annotated[str, Read("card.uuid")]
    before: StretchOut
    during: StretchOut
    after: StretchOut
    series: Annotated[list[CardSeriesOut], Read(lambda one: one.lines.items())]


class ImpactOut(Out):
    """The effect of an attempt on its GPUs; null where it had none."""

    attempt: Annotated[int | None, Field(description="Its number; null where there is none yet")]
    started_at: Annotated[str | None, Field(description="When its command was first seen to run")]
    ended_at: Time | None
    step_s: int
    gpus: list[CardImpactOut]


async def _asked(services: Services, principal: Principal, body: JobBody) -> JobRequest:
    """The request of a new job, with the id of the host, and the region of the volume, that it names."""
    asked = body.parsed()
    check_new_name(asked.name)
    return await with_region(services, principal, with_host(services, asked))


@route.post("/jobs/plan", may=Permission.RENT, answer=PlanOut)
async def plan_job(services: Serving, principal: Asking, body: JobBody) -> Any:
    """The place where the job's first attempt would run now and its price per hour, or the reasons against it.
    Changes nothing."""
    return PlanOut.of(await services.jobs.plan(principal, await _asked(services, principal, body)))


@route.post("/jobs", may=Permission.RENT, repeat=Repeat.REPEATABLE, status_code=201, answer=JobsOut)
async def submit_job(
    services: Serving,
    principal: Asking,
    body: JobBody,
    idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
) -> Any:
    """Take a job, or all of an array. It waits for a place, runs, leaves its log and files here, and lets go."""
    login = None if body.registry_login is None else body.registry_login.parsed()
    asked = await _asked(services, principal, body)
    found = await services.jobs.submit(principal, asked, idempotency_key, login=login)
    return {"jobs": [job_json(view) for view in found]}


@route.get("/jobs", may=Permission.RENT_READ, answer=answers.Page[JobOut])
async def jobs(services: Serving, principal: Asking, wanted: Wanted, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """Jobs of the account (operators and auditors: of all), the latest first."""
    found = await services.jobs.list(principal, read_cursor(cursor) or None, limit + 1, wanted)
    return page(found, limit, job_json, lambda view: view.job.job_id)


@route.get("/jobs/{job_id}", may=Permission.RENT_READ, reach=Reach.OWN_OR_OVERSEEN, shared=Level.SEE, answer=JobOut)
async def job(request: Request, services: Serving, principal: Asking, job_id: str) -> Response:
    """One job; the values of its environment are shown to its renter alone, here alone, and until it has ended."""
    view = await services.jobs.get(principal, JobId(job_id))
    said = "" if view.refusal is None else crc32(repr((view.refusal.reasons, view.refusal.ways)).encode())
    queued, tries = await standing_json(services, principal, job_id), await tries_of(services, job_id)
    tag = f"{view.job.version}-{view.cost}-{said}-{queued_tag(queued)}-{tries_tag(tries)}"
    return tagged(request, job_json(view, queued, tries), tag)


@route.put(
    "/jobs/{job_id}/files",
    may=Permission.RENT,
    reach=Reach.OWN,
    shared=Level.MANAGE,
    share=ShareKind.UPLOADS,
    body_max=FOLDER_MAX,
    answer=FolderKeptOut,
)
async def put_job_files(request: Request, services: Serving, principal: Asking, job_id: str) -> Any:
    """Keep the folder, a tar stream, of a job that waits for it, and of all of its array."""
    body, size_bytes = request.stream(), announced(request)
    return {"bytes": await services.jobs.put_folder(principal, JobId(job_id), body, size_bytes)}


@route.get(
    "/jobs/{job_id}/logs",
    may=Permission.RENT,
    reach=Reach.OWN,
    shared=Level.USE,
    share=ShareKind.DOWNLOADS,
    **answers.other("text/plain; charset=utf-8", "The log."),
)
async def job_logs(
    request: Request,
    services: Serving,
    principal: Asking,
    job_id: str,
    follow: bool = False,
    attempt: WhichAttempt = None,
    offset: Annotated[int, Query(ge=0, lt=2**63)] = 0,
) -> Response:
    """The log of an attempt, by default the last one; with `follow` of all, as it is written, until the job ends.
    offset: bytes of that answer to leave out, for who goes on reading."""
    service, text = services.jobs, "text/plain; charset=utf-8"
    pieces: AsyncIterator[bytes]
    if follow:
        pieces = await service.follow(principal, JobId(job_id))
        return streaming.Lasting(request, _behind(pieces, offset), media_type=text, headers=_SAFE)
    pieces = await service.log(principal, JobId(job_id), attempt)
    return streaming.Lasting(request, _behind(pieces, offset), media_type=text, headers=_SAFE)


async def _behind(pieces: AsyncIterator[bytes], offset: int) -> AsyncIterator[bytes]:
    """Yield the bytes after the first `offset`."""
    async for piece in pieces:
        shown, offset = piece[offset:], max(0, offset - len(piece))
        if shown:
            yield shown


@route.get(
    "/jobs/{job_id}/artefacts",
    may=Permission.RENT,
    reach=Reach.OWN,
    shared=Level.USE,
    share=ShareKind.DOWNLOADS,
    **answers.other("application/octet-stream", "The files, as a tar stream.", is_binary=True),
)
async def job_artefacts(
    request: Request,
    services: Serving,
    principal: Asking,
    job_id: str,
    attempt: WhichAttempt = None,
    offset: Annotated[int, Query(ge=0, lt=2**63)] = 0,
) -> Response:
    """The files that an attempt changed, by default the last one, as a tar stream. offset: bytes of it to leave out,
    for who was cut off."""
    pieces: AsyncIterator[bytes]
    pieces, found = await services.jobs.artefacts(principal, JobId(job_id), attempt, offset)
    headers = {
        "Content-Length": str(max(0, (found.files_bytes or 0) - offset)),
        "X-Files-Truncated": "true" if found.files_truncated else "false",
        "X-Files-Version": found.cluster_id,
        "Content-Disposition": f'attachment; filename="{job_id}.tar"',
        **_SAFE,
    }
    return streaming.Lasting(request, pieces, media_type="application/octet-stream", headers=headers)


@route.get(
    "/jobs/{job_id}/impact", may=Permission.RENT_READ, reach=Reach.OWN_OR_OVERSEEN, shared=Level.SEE, answer=ImpactOut
)
async def job_impact(services: Serving, principal: Asking, job_id: str, attempt: WhichAttempt = None) -> Any:
    """The effect of an attempt, by default the last one, on each of its GPUs: use, memory, power and throttling in
    the minute before, during and in the minute after it, as history has them."""
    number, tried, workloads = await services.jobs.placed(principal, JobId(job_id), attempt)
    cards = gpu_impact.cards_of(workloads)
    if tried is None or not cards:
        return impact_json(number, tried, None, ())
    spans = gpu_impact.spans_of(tried, services.clock.wall_ns())
    found = await services.telemetry.series(gpu_impact.query_of(cards, spans))
    return impact_json(number, tried, spans, gpu_impact.impact(cards, spans, found))


@route.post(
    "/jobs/{job_id}/cancel", may=Permission.RENT, reach=Reach.OWN_OR_OPERATED, shared=Level.MANAGE, answer=JobOut
)
async def cancel_job(services: Serving, principal: Asking, job_id: str) -> Any:
    """End it; safe to repeat, and what has ended stays as it is. What it wrote is brought in first."""
    return job_json(await services.jobs.cancel(principal, JobId(job_id)))


@route.post("/jobs/{job_id}/hold", may=Permission.RENT, reach=Reach.OWN_OR_OPERATED, shared=Level.MANAGE, answer=JobOut)
async def hold_job(services: Serving, principal: Asking, job_id: str) -> Any:
    """Keep it from starting until it is released; safe to repeat. Held by an operator, an operator releases it."""
    return job_json(await services.jobs.hold(principal, JobId(job_id)))


@route.post(
    "/jobs/{job_id}/release", may=Permission.RENT, reach=Reach.OWN_OR_OPERATED, shared=Level.MANAGE, answer=JobOut
)
async def release_job(services: Serving, principal: Asking, job_id: str) -> Any:
    """Let it start in its turn, if it was held; safe to repeat."""
    return job_json(await services.jobs.release(principal, JobId(job_id)))


@route.post("/jobs/{job_id}/top", may=Permission.RENT, reach=Reach.OWN, shared=Level.MANAGE, answer=JobOut)
async def top_job(services: Serving, principal: Asking, job_id: str) -> Any:
    """Let it come before all others of its project and class; safe to repeat."""
    return job_json(await services.jobs.top(principal, JobId(job_id)))


@route.post(
    "/jobs/{job_id}/requeue", may=Permission.RENT, reach=Reach.OWN_OR_OPERATED, shared=Level.MANAGE, answer=JobOut
)
async def requeue_job(services: Serving, principal: Asking, job_id: str) -> Any:
    """End its attempt and put it back into the queue, without using up a retry; safe to repeat."""
    return job_json(await services.jobs.requeue(principal, JobId(job_id)))


@route.post(
    "/jobs/{job_id}/rerun",
    may=Permission.RENT,
    reach=Reach.OWN,
    repeat=Repeat.REPEATABLE,
    status_code=201,
    answer=JobOut,
)
async def rerun_job(
    services: Serving,
    principal: Asking,
    job_id: str,
    body: RerunBody | None = None,
    idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
) -> Any:
    """The same once more, with the folder that was sent then."""
    env = body.env if body is not None else {}
    return job_json(await services.jobs.rerun(principal, JobId(job_id), idempotency_key, env))


def job_json(
    view: JobView, queued: dict[str, Any] | None = None, tries: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """A job with its attempts. queued: its entry of the queue. tries: the places elsewhere that were tried."""
    job, spent = view.job, zip(view.job.attempts, view.spent, strict=True)
    return JobOut.of(
        job,
        request=JobRequestOut.of(job.request, env={name: view.env.get(name) for name in job.request.env}),
        attempts=[
            AttemptOut.of(attempt, number=number, cost=money_text(cost))
            for number, (attempt, cost) in enumerate(spent, 1)
        ],
        cost_so_far=money_text(view.cost),
        queue=queued,
        tries=tries,
        refusal=None if view.refusal is None else RefusalOut.of(view.refusal),
    )


def impact_json(
    number: int, attempt: Attempt | None, spans: Spans | None, cards: Sequence[CardImpact]
) -> dict[str, Any]:
    """Return the effect of an attempt on its cards; without one, or without cards, nothing."""
    return {
        "attempt": number or None,
        "started_at": time_or_none(attempt.started_at_ns) if attempt is not None else None,
        "ended_at": time_or_none(attempt.ended_at_ns) if attempt is not None else None,
        "step_s": 0 if spans is None else spans.step_ms // 1000,
        "gpus": [CardImpactOut.of(one) for one in cards],
    }
