"""Reads the work of a search: a job, or a machine that waits, as its row says in the caller's transaction."""

from dataclasses import dataclass

from windrow_master.clusters import lookup
from windrow_master.clusters.model import ClusterPhase, ClusterRequest
from windrow_master.clusters.states import HOLDING
from windrow_master.hybrid.search.model import Doing, Subject
from windrow_master.hybrid.search.route import Wish
from windrow_master.jobs import answers
from windrow_master.jobs.model import Job, JobId, JobRequest
from windrow_master.jobs.states import FINAL, PLACEABLE
from windrow_master.market.lookup import charged
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import ClusterId, HostId
from windrow_proto.units import Microcents


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a search: how it is, what it asks for, and its wishes as far as its row has them. spenders: whose
    limits it counts for, beside its project's."""

    subject: Subject
    request: JobRequest | ClusterRequest
    wish: Wish
    spenders: tuple[str, ...] = ()


def is_job(entry_id: str) -> bool:
    """True for the id of a job; others are of machines."""
    return entry_id.startswith("job_")


def name_of(uow: UnitOfWork, entry_id: str) -> str | None:
    """The name of the job or machine of this id; None: it is not known any more."""
    found = answers.find(uow, JobId(entry_id)) if is_job(entry_id) else lookup.find(uow, ClusterId(entry_id))
    return None if found is None else found.name


def work_of(uow: UnitOfWork, entry_id: str) -> Work | None:
    """The work of this id; None: there is none."""
    if is_job(entry_id):
        job = answers.find(uow, JobId(entry_id))
        return None if job is None else _of_job(uow, job)
    return _of_cluster(uow, ClusterId(entry_id))


def _of_job(uow: UnitOfWork, job: Job) -> Work:
    asked, last = job.request, job.attempts[-1] if job.attempts else None
    doing = Doing.LATER
    if job.state in FINAL:
        doing = Doing.OVER
    elif job.has_cluster:
        doing = Doing.RUNNING
    elif job.state in PLACEABLE and not job.held_by and (asked.begin_ns or 0) <= uow.now_wall_ns:
        doing = Doing.WAITING
    spent = sum(charged(uow, one.rented_as) for one in job.attempts)
    wish = Wish(
        resources=asked,
        optimize=asked.optimize,
        spot=asked.spot,
        limit_ns=asked.max_duration_ns,
        left=None if asked.budget is None else Microcents(max(0, asked.budget - spent)),
        until_ns=asked.deadline_ns,
        was_interrupted=any(one.place is not None and one.place.is_spot for one in job.attempts),
    )
    here, run_id = frozenset[HostId](), ""
    if last is not None and job.has_cluster:
        here, run_id = _hosts(uow, last.cluster_id), last.run_id
    return Work(
        Subject(doing=doing, name=job.name, reason=job.reason, host_ids=here, run_id=run_id), asked, wish, job.spenders
    )


def _of_cluster(uow: UnitOfWork, cluster_id: ClusterId) -> Work | None:
    cluster = lookup.find(uow, cluster_id)
    if cluster is None:
        return None
    asked, doing = cluster.request, Doing.OVER
    if cluster.phase is ClusterPhase.QUEUED:
        doing = Doing.WAITING
    elif cluster.phase in HOLDING:
        doing = Doing.RUNNING
    wish = Wish(
        resources=asked,
        optimize=asked.optimize,
        spot=asked.spot,
        limit_ns=asked.max_duration_ns,
        left=asked.budget,
    )
    hosts = _hosts(uow, cluster_id)
    return Work(
        Subject(doing=doing, name=cluster.name, reason=cluster.reason, host_ids=hosts), asked, wish, cluster.spenders
    )


def _hosts(uow: UnitOfWork, cluster_id: ClusterId) -> frozenset[HostId]:
    held = lookup.workloads_of(uow, cluster_id) if cluster_id else ()
    return frozenset(one.host_id for one in held if not one.is_past)
