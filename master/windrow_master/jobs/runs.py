"""Attempts that are runs at a service which runs code by itself: their beginning and end, as whoever has the run says.

A run has no cluster: its log and files come from whoever has it, and its job takes the same steps as with one.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from windrow_master.jobs import decide
from windrow_master.jobs.model import NO_CLUSTER, Attempt, AttemptPlace, Job, JobId, JobState, Verdict
from windrow_master.jobs.repository import JobRepository
from windrow_master.jobs.states import PLACEABLE, JobEvent
from windrow_master.jobs.transitions import JobTransitions, seen
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork


class JobRuns:
    """Used on the loop only. placing: held while an attempt begins."""

    def __init__(self, store: Store, transitions: JobTransitions, placing: asyncio.Lock) -> None:
        self._store, self._transitions, self._placing = store, transitions, placing

    async def begin(self, job_id: JobId, place: AttemptPlace, rent: Callable[[UnitOfWork, Job], None]) -> bool:
        """A service has taken a run for this job, which waits: it starts there. False: it does not wait any more.
        rent: opens its rental; what it raises is raised, and nothing has begun."""

        def change(uow: UnitOfWork) -> bool:
            job = uow[JobRepository].get(job_id)
            if job is None or job.state not in PLACEABLE or job.held_by:
                return _of(uow, job_id, place.run_id) is not None  # said once more
            rent(uow, job)
            attempt = Attempt(cluster_id=NO_CLUSTER, began_at_ns=uow.now_wall_ns, place=place)
            self._transitions.begin(uow, job, attempt)
            return True

        async with self._placing:
            return await self._store.write(change, name="job.run")

    def running(self, uow: UnitOfWork, job_id: JobId, run_id: str) -> None:
        """The command of a run was seen to run."""
        job = _of(uow, job_id, run_id)
        if job is not None and job.state is JobState.STARTING:
            self._transitions.step(uow, job, decide.Answer(JobEvent.RUNS), "master")

    def looked(self, uow: UnitOfWork, job_id: JobId, run_id: str) -> None:
        """Look whether a run has come to one of its job's limits, and end it there."""
        job = _of(uow, job_id, run_id)
        found = None if job is None else decide.decide(job, {}, seen(uow, job), uow.now_wall_ns)
        if job is not None and found is not None:
            self._transitions.step(uow, job, found, "master")

    def saved(self, uow: UnitOfWork, job_id: JobId, run_id: str, step: int) -> None:
        """A checkpoint of a run is kept."""
        job = _of(uow, job_id, run_id)
        if job is not None:
            said = f"{job.name}: its checkpoint of step {step} is saved"
            self._transitions.tell(uow, job, "job.checkpoint_saved", said, "master")

    def ended(
        self,
        uow: UnitOfWork,
        job_id: JobId,
        run_id: str,
        exit_code: int | None,
        said: str,
        *,
        is_planned: bool = False,
        log_bytes: int | None = None,
        log_truncated: bool = False,
        files_bytes: int | None = None,
        files_truncated: bool = False,
    ) -> None:
        """A run is over, and what it left is kept. exit_code: None: it went without its command having ended.
        is_planned: its service would have ended it soon, which uses up no retry."""
        job = _of(uow, job_id, run_id)
        if job is None:
            return
        if job.state is JobState.STARTING:  # it was too short to be seen
            job = self._transitions.step(uow, job, decide.Answer(JobEvent.RUNS), "master")
        attempt = replace(job.attempts[-1], log_bytes=log_bytes, log_truncated=log_truncated)
        attempt = replace(attempt, files_bytes=files_bytes, files_truncated=files_truncated)
        attempt = replace(attempt, is_requeued=attempt.is_requeued or is_planned)
        job = replace(job, attempts=(*job.attempts[:-1], attempt))
        found = decide.run_ended(job, exit_code, said)
        if found.event is JobEvent.SUCCEED and job.state is JobState.RUNNING:
            ends = decide.Answer(JobEvent.COLLECT, "", Verdict.SUCCEEDED, exit_code)
            job = self._transitions.step(uow, job, ends, "master")
        self._transitions.step(uow, job, found, "master")


def is_there(uow: UnitOfWork, job_id: str, run_id: str) -> bool:
    """Return whether a job's attempt goes on in this run."""
    return _of(uow, JobId(job_id), run_id) is not None


def _of(uow: UnitOfWork, job_id: JobId, run_id: str) -> Job | None:
    """The job whose attempt goes on in this run."""
    job = uow[JobRepository].get(job_id)
    return job if job is not None and job.has_cluster and job.attempts[-1].run_id == run_id else None
