"""Routes of jobs: plan, submit, send the folder, read, follow the log, cancel, run again, fetch what it left."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Header, Query, Request, Response
from pydantic import AwareDatetime, Field

from windrow_master.api import out, out_clusters, out_jobs, streaming
from windrow_master.api.cluster_routes import ENTITY_MAX, SECONDS_MAX, RegistryLoginBody, money_if, nanoseconds_of
from windrow_master.api.cluster_shapes import plan_json
from windrow_master.api.deps import Asking, Serving, announced
from windrow_master.api.idempotency import make_router
from windrow_master.api.identity_routes import Body
from windrow_master.api.job_shapes import impact_json, job_json
from windrow_master.api.paging import Cursor, Limit, page, read_cursor, tagged
from windrow_master.fleet.slices import PROFILE_FORM
from windrow_master.jobs import gpu_impact
from windrow_master.jobs.model import JobId, JobRequest
from windrow_proto.errors import InvalidInput
from windrow_proto.units import SECOND, Bytes, moment_ns
from windrow_proto.volumes import MOUNTS_MAX, parse_mount

router = make_router("jobs")

WhichAttempt = Annotated[int | None, Query(ge=1, le=1_000)]
_SAFE = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


class JobBody(Body):
    """What to run, on what, and within which limits. `await_files`: it starts once its folder was sent."""

    name: Annotated[str, Field(max_length=1_024)] = ""
    argv: Annotated[list[str], Field(min_length=1, max_length=256)]
    gpus: Annotated[int, Field(ge=0, le=1_024)] = 0
    gpu_model: Annotated[str | None, Field(min_length=1, max_length=64)] = None
    gpu_memory_bytes: Annotated[int | None, Field(gt=0, le=ENTITY_MAX)] = None
    cpus: Annotated[int, Field(ge=1, le=4_096)] = 1
    memory_bytes: Annotated[int | None, Field(gt=0, le=ENTITY_MAX)] = None
    image: Annotated[str | None, Field(min_length=1, max_length=255)] = None
    env: Annotated[dict[str, str], Field(default_factory=dict, max_length=128)]
    tier: Annotated[str | None, Field(min_length=1, max_length=64)] = None
    runtime: Literal["process", "docker", "simulated"] | None = None
    simulated: bool = False
    slice: Annotated[str | None, Field(pattern=f"^{PROFILE_FORM}$", description="Such as 2g.20gb or mps.50")] = None
    max_price_per_hour: Annotated[str | None, Field(max_length=30)] = None
    retries: Annotated[int, Field(ge=0, le=1_000, description="Further attempts after its host was lost")] = 0
    retries_on_exit: Annotated[bool, Field(description="Also after an exit code other than 0")] = False
    max_duration_seconds: Annotated[float | None, Field(gt=0, le=SECONDS_MAX, description="Of one attempt")] = None
    deadline: Annotated[AwareDatetime | None, Field(description="By which all of it has to have ended")] = None
    budget: Annotated[str | None, Field(max_length=30, description="Of all attempts; it is ended before")] = None
    priority: Annotated[int, Field(ge=-1_000, le=1_000, description="The higher goes first")] = 0
    after: Annotated[list[str], Field(default_factory=list, max_length=1_000, description="Jobs to succeed first")]
    array_size: Annotated[int, Field(ge=0, le=100_000, description="So many of them, each with its index")] = 0
    await_files: bool = False
    packages: Annotated[
        list[str],
        Field(default_factory=list, max_length=1_000, description="Of Python (PEP 508), installed before the command"),
    ]
    volumes: Annotated[
        list[str],
        Field(default_factory=list, max_length=MOUNTS_MAX, description="NAME:/path, or NAME:/path:ro"),
    ]
    checkpoint_every_seconds: Annotated[float, Field(ge=0, le=SECONDS_MAX, description="While it runs; 0: never")] = 60
    registry_login: Annotated[
        RegistryLoginBody | None,
        Field(description="For the pulls of the image; kept sealed until the job has ended, and never shown again"),
    ] = None

    def parsed(self) -> JobRequest:
        """The same as a value of the room."""
        return JobRequest(
            argv=tuple(self.argv),
            name=self.name,
            gpus=self.gpus,
            gpu_model=self.gpu_model,
            gpu_memory_bytes=None if self.gpu_memory_bytes is None else Bytes(self.gpu_memory_bytes),
            cpus=self.cpus,
            memory_bytes=None if self.memory_bytes is None else Bytes(self.memory_bytes),
            image=self.image,
            env=dict(self.env),
            tier=self.tier,
            runtime=self.runtime,
            simulated=self.simulated,
            slice=self.slice,
            max_price_per_hour=money_if("max_price_per_hour", self.max_price_per_hour),
            retries=self.retries,
            retries_on_exit=self.retries_on_exit,
            max_duration_ns=nanoseconds_of(self.max_duration_seconds),
            deadline_ns=None if self.deadline is None else _ns(self.deadline),
            budget=money_if("budget", self.budget),
            priority=self.priority,
            after=tuple(JobId(one) for one in dict.fromkeys(self.after)),
            array_size=self.array_size,
            await_files=self.await_files,
            packages=tuple(self.packages),
            volumes=tuple(parse_mount(one) for one in self.volumes),
            checkpoint_every_ns=int(self.checkpoint_every_seconds * SECOND),
        )


class RerunBody(Body):
    """What went with the end of the job."""

    env: Annotated[
        dict[str, str],
        Field(default_factory=dict, max_length=128, description="A value for each variable that the job had"),
    ]


def _ns(at: datetime) -> int:
    try:
        return moment_ns(at)
    except ValueError as error:
        raise InvalidInput(f"deadline: {error}.") from None


@router.post("/jobs/plan", responses=out_clusters.PLAN)
async def plan_job(services: Serving, principal: Asking, body: JobBody) -> Any:
    """Where its first attempt would run now and what that costs per hour, or why nowhere. Changes nothing."""
    return plan_json(await services.jobs.plan(principal, body.parsed()))


@router.post("/jobs", status_code=201, responses=out_jobs.SUBMITTED)
async def submit_job(
    services: Serving,
    principal: Asking,
    body: JobBody,
    idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
) -> Any:
    """Take a job, or all of an array. It waits for a place, runs, leaves its log and files here, and lets go."""
    login = None if body.registry_login is None else body.registry_login.parsed()
    found = await services.jobs.submit(principal, body.parsed(), idempotency_key, login=login)
    return {"jobs": [job_json(view) for view in found]}


@router.get("/jobs", responses=out_jobs.JOBS)
async def jobs(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """Jobs of the account (operators and auditors: of all), the latest first."""
    found = await services.jobs.list(principal, read_cursor(cursor) or None, limit + 1)
    return page(found, limit, job_json, lambda view: view.job.job_id)


@router.get("/jobs/{job_id}", responses=out_jobs.JOB)
async def job(request: Request, services: Serving, principal: Asking, job_id: str) -> Response:
    """One job; the values of its environment are shown to its renter alone, here alone, and until it has ended."""
    view = await services.jobs.get(principal, JobId(job_id))
    return tagged(request, job_json(view), f"{view.job.version}-{view.cost}")


@router.put("/jobs/{job_id}/files", responses=out_jobs.FOLDER)
async def put_job_files(request: Request, services: Serving, principal: Asking, job_id: str) -> Any:
    """Keep the folder, a tar stream, of a job that waits for it, and of all of its array."""
    body, size_bytes = request.stream(), announced(request)
    return {"bytes": await services.jobs.put_folder(principal, JobId(job_id), body, size_bytes)}


@router.get("/jobs/{job_id}/logs", **out.other("text/plain; charset=utf-8", "The log."))
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
    """What comes after the first `offset` bytes."""
    async for piece in pieces:
        shown, offset = piece[offset:], max(0, offset - len(piece))
        if shown:
            yield shown


@router.get("/jobs/{job_id}/artefacts", **out.other("application/x-tar", "The files.", is_binary=True))
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
    return streaming.Lasting(request, pieces, media_type="application/x-tar", headers=headers)


@router.get("/jobs/{job_id}/impact", responses=out_jobs.IMPACT)
async def job_impact(services: Serving, principal: Asking, job_id: str, attempt: WhichAttempt = None) -> Any:
    """What an attempt, by default the last one, did to each GPU that it had: use, memory, power and throttling in the
    minute before, during and in the minute after it, as history has them."""
    number, tried, workloads = await services.jobs.placed(principal, JobId(job_id), attempt)
    cards = gpu_impact.cards_of(workloads)
    if tried is None or not cards:
        return impact_json(number, tried, None, ())
    spans = gpu_impact.spans_of(tried, services.clock.wall_ns())
    found = await services.telemetry.series(gpu_impact.query_of(cards, spans))
    return impact_json(number, tried, spans, gpu_impact.impact(cards, spans, found))


@router.post("/jobs/{job_id}/cancel", responses=out_jobs.JOB)
async def cancel_job(services: Serving, principal: Asking, job_id: str) -> Any:
    """End it; safe to repeat, and what has ended stays as it is. What it wrote is brought in first."""
    return job_json(await services.jobs.cancel(principal, JobId(job_id)))


@router.post("/jobs/{job_id}/rerun", status_code=201, responses=out_jobs.RERUN)
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
