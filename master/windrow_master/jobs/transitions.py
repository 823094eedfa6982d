"""Takes one step of a job: writes its row, the audit log and an event, and ends its cluster; all in the caller's
transaction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from windrow_master.clusters import end_limits, images, lookup
from windrow_master.clusters.service import ClusterService
from windrow_master.jobs import decide, moving
from windrow_master.jobs.messages import RunLetGo
from windrow_master.jobs.model import HERE, Attempt, Job, JobId
from windrow_master.jobs.repository import JobRepository
from windrow_master.jobs.request import attempt_key
from windrow_master.jobs.states import JobEffect, JobEvent, answer
from windrow_master.market import spending
from windrow_master.market.lookup import charged, open_of
from windrow_master.market.model import NOTHING
from windrow_master.store.unit import UnitOfWork
from windrow_proto.units import Microcents


class JobTransitions:
    """The service that changes jobs."""

    def __init__(self, clusters: ClusterService) -> None:
        self._clusters = clusters
        self._listeners: list[Callable[[JobId], None]] = []

    def on_change(self, listener: Callable[[JobId], None]) -> None:
        """Call `listener` on the loop whenever a job has changed."""
        self._listeners.append(listener)

    def add(
        self,
        uow: UnitOfWork,
        job: Job,
        key: str | None,
        digest: bytes,
        *,
        said: str,
        actor: str,
        parents: Mapping[JobId, Job],
    ) -> Job:
        """Write a new job down, which waits for its turn at once where it waits for nothing else; returns it. said: of
        its submission. parents: the jobs that it comes after."""
        found = decide.decide(job, parents, decide.Seen(), uow.now_wall_ns)
        is_admitted = found is not None and found.event is JobEvent.ADMIT
        after = job
        if found is not None and is_admitted:
            move = answer(job.state, found.event)
            after = replace(moving.moved(job, move, found, uow.now_wall_ns), version=job.version + 1)
        uow[JobRepository].add(after, key, digest)
        uow.after_commit(lambda: self._changed(job.job_id))
        self.tell(uow, job, "job.submitted", said, actor)
        if found is not None and is_admitted:
            self._tell_step(uow, job, after, found, "master")
        return after

    def step(self, uow: UnitOfWork, job: Job, found: decide.Answer, actor: str) -> Job:
        """Take one step of the table; the same job where it changes nothing."""
        move = answer(job.state, found.event)
        if move.state is job.state:
            return job
        run_id = job.attempts[-1].run_id if job.has_cluster else ""
        is_to_end = found.event is JobEvent.COLLECT and found.exit_code is None
        if run_id and (is_to_end or JobEffect.LET_GO in move.effects):
            uow.publish(RunLetGo(job.job_id, run_id))
        elif JobEffect.LET_GO in move.effects:
            why, key = "its job has ended", attempt_key(job)
            self._clusters.lifecycle.end_request(uow, job.account_id, key, why, actor, at_once=True)
        after = moving.moved(job, move, found, uow.now_wall_ns)
        after = self.keep(uow, after)
        self._tell_step(uow, job, after, found, actor)
        return after

    def _tell_step(self, uow: UnitOfWork, job: Job, after: Job, found: decide.Answer, actor: str) -> None:
        said = f"{after.name} is {after.state.value}" + (f": {found.reason}" if found.reason else "")
        fields = {"from": job.state.value, "to": after.state.value}
        uow.audit(actor, f"job.{found.event}", job.job_id, found.reason, fields)
        self.tell(uow, after, f"job.{after.state.value.lower()}", said, actor)

    def begin(self, uow: UnitOfWork, job: Job, attempt: Attempt) -> Job:
        """Begin its next attempt, and tell where that is another place than the last one's."""
        last = job.attempts[-1] if job.attempts else None
        before, why = (HERE, "there was no room here") if last is None else (last.where, last.outcome)
        after = self.step(
            uow, replace(job, attempts=(*job.attempts, attempt)), decide.Answer(JobEvent.PLACED), "master"
        )
        if attempt.where != before:
            said = f"{after.name} is now at {attempt.where}" + (f": {why}" if why else "")
            fields = {"from": before, "to": attempt.where, "why": why}
            self.tell(uow, after, "job.backend_changed", said, "master", fields)
        return after

    def tell(
        self, uow: UnitOfWork, job: Job, kind: str, said: str, actor: str, fields: Mapping[str, str] | None = None
    ) -> None:
        """Write an event of a job."""
        clusters = tuple(attempt.cluster_id for attempt in job.attempts[-1:] if attempt.cluster_id)
        uow.event(kind, (job.job_id, job.account_id, *clusters), said, fields, actor=actor)

    def keep(self, uow: UnitOfWork, job: Job) -> Job:
        """Write a job down as its next version."""
        after = replace(job, version=job.version + 1)
        uow[JobRepository].save(after)
        uow.after_commit(lambda: self._changed(job.job_id))
        return after

    def _changed(self, job_id: JobId) -> None:
        for listener in self._listeners:
            listener(job_id)


def seen(uow: UnitOfWork, job: Job) -> decide.Seen:
    """Return the Master's knowledge of the cluster that a job has."""
    costs = spent(uow, job)
    if not job.has_cluster:
        return decide.Seen(earlier=Microcents(sum(costs)))
    if job.attempts[-1].run_id:
        return _seen_run(uow, job, costs)
    cluster = lookup.find(uow, job.attempts[-1].cluster_id)
    held = () if cluster is None else lookup.workloads_of(uow, cluster.cluster_id)
    limit = ""
    if cluster is not None:
        limit = spending.passed(uow, cluster.rental_id, end_limits.least_budget(cluster.price_per_hour))
    return decide.Seen(cluster, held[0] if held else None, Microcents(sum(costs[:-1])), costs[-1], limit)


def _seen_run(uow: UnitOfWork, job: Job, costs: Sequence[Microcents]) -> decide.Seen:
    rental = open_of(uow, job.attempts[-1].rented_as)
    price = NOTHING if rental is None else rental.price_per_hour
    limit = "" if rental is None else spending.passed_by_run(uow, rental, end_limits.least_budget(price))
    return decide.Seen(earlier=Microcents(sum(costs[:-1])), charged=costs[-1], limit=limit, run_price=price)


def known_image(uow: UnitOfWork, job: Job) -> str | None:
    """The image of its next attempt: what an earlier one ran, by digest, else as it was asked for."""
    asked = job.request.image
    if asked is None:
        return None
    held = (one for attempt in job.attempts for one in lookup.workloads_of(uow, attempt.cluster_id))
    return images.pin_of(asked, held)


def spent(uow: UnitOfWork, job: Job) -> tuple[Microcents, ...]:
    """Return the charges of each of its attempts so far."""
    return tuple(charged(uow, attempt.rented_as) for attempt in job.attempts)
