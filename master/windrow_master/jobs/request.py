"""The limits of a job's request, its digest, and the cluster that one attempt asks for. Pure."""

import json
from dataclasses import asdict, replace
from hashlib import sha256
from typing import Final

from windrow_master.clusters import request as clusters
from windrow_master.clusters.environments import ATTEMPT, INDEX, JOB, SET_BY_MASTER, SIZE
from windrow_master.clusters.model import ClusterRequest
from windrow_master.jobs import packages
from windrow_master.jobs.model import Job, JobId, JobRequest
from windrow_master.spec import Resources, Work, check, check_elsewhere, fields_of, require
from windrow_proto.ids import ClusterId
from windrow_proto.units import SECOND

ARRAY_CHARS_MAX: Final = 4 << 20
"""Of the requests of all jobs of an array together: they are made, and answered, at once."""
CHECKPOINT_MIN_NS: Final = 10 * SECOND


def checked(request: JobRequest, job_id: JobId, now_ns: int) -> JobRequest:
    """The request within its limits, named; raises InvalidInput naming the field."""
    after, after_any, after_failure = map(_once, (request.after, request.after_any, request.after_failure))
    request = replace(request, after=after, after_any=after_any, after_failure=after_failure)
    check(request)
    is_once = len(request.comes_after) == len(after) + len(after_any) + len(after_failure)
    require("after", is_once, "of jobs that are not in after_any or after_failure too, nor in both of these")
    is_array = request.array_size > 0
    require("array_at_once", is_array or request.array_at_once is None, "left out without array_size")
    packages.check(request.packages)
    check_elsewhere(request)
    require("deadline", request.deadline_ns is None or request.deadline_ns > now_ns, "in the future")
    begin_ns, deadline_ns = request.begin_ns, request.deadline_ns
    is_before = begin_ns is None or deadline_ns is None or begin_ns < deadline_ns
    require("begin_at", is_before, "before the deadline")
    is_often = 0 < request.checkpoint_every_ns < CHECKPOINT_MIN_NS
    require("checkpoint_every_seconds", not is_often, "0, or from 10 s to a day")
    given = dict.fromkeys(sorted(SET_BY_MASTER), str(job_id))
    is_ours = given.keys() & set(request.env)
    require("env", not is_ours, f"without {', '.join(sorted(is_ours))}, which the Master sets")
    named = replace(request, name=clusters.checked_name(request.name) or f"job-{job_id[-6:]}")
    size = clusters.size(clusters.checked(_cluster(named, given), ClusterId(job_id)))
    in_all = max(1, request.array_size) * size
    require("array_size", in_all <= ARRAY_CHARS_MAX, f"smaller: its jobs have {ARRAY_CHARS_MAX} characters in all")
    return named


def _once(job_ids: tuple[JobId, ...]) -> tuple[JobId, ...]:
    return tuple(dict.fromkeys(job_ids))


def digest(request: JobRequest) -> bytes:
    """Return the digest that an Idempotency-Key is bound to."""
    return sha256(json.dumps(asdict(request), sort_keys=True).encode()).digest()


def attempt_key(job: Job) -> str:
    """The Idempotency-Key of the cluster of the attempt that goes on, or is next: the same after every restart."""
    number = len(job.attempts) if job.has_cluster else len(job.attempts) + 1
    return f"{job.job_id}/{number}"


def cluster_request(job: Job) -> ClusterRequest:
    """Return the request of its next attempt."""
    given = {JOB: job.job_id, ATTEMPT: str(len(job.attempts) + 1)}
    if job.request.array_size:
        given |= {INDEX: str(job.array_index), SIZE: str(job.request.array_size)}
    return _cluster(job.request, given)


def _cluster(request: JobRequest, given: dict[str, str]) -> ClusterRequest:
    """The limits are the job's own: they count all of its attempts."""
    common = {one.attribute: getattr(request, one.attribute) for one in (*fields_of(Resources), *fields_of(Work))}
    own = {"argv": packages.command(request.packages, request.argv), "env": dict(request.env) | given}
    return ClusterRequest(**common | own)
