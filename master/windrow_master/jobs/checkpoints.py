"""Saves the checkpoints of a job while it runs, and restores the newest whole one before its next attempt.

Nothing here fails a job: what goes wrong is said in its events, a reason that lasts only once.
"""

from typing import Final, Protocol

from windrow_master.clusters import lookup
from windrow_master.clusters.model import Workload
from windrow_master.jobs.model import Job, JobId
from windrow_master.jobs.repository import JobRepository
from windrow_master.jobs.transitions import JobTransitions
from windrow_master.storage.model import Manifest
from windrow_master.storage.transfer import Outcome
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import DeadlineExceeded, TooMany, WindrowError
from windrow_proto.ids import AccountId, ClusterId
from windrow_proto.ports import Clock
from windrow_proto.units import MINUTE

PATIENCE_NS: Final = 10 * MINUTE
"""For a restore that fails for reasons that pass: hours of paid work are worth more than these minutes."""


class Mover(Protocol):
    """Interface: moves checkpoints to and from hosts."""

    async def save(self, account_id: AccountId, owner: str, workload: Workload) -> Manifest | None: ...

    async def restore(self, account_id: AccountId, owner: str, workload: Workload) -> Outcome: ...


class JobCheckpoints:
    """Checkpoints are their job's, over all of its attempts. Used on the loop only."""

    def __init__(self, store: Store, transitions: JobTransitions, mover: Mover, clock: Clock) -> None:
        self._store, self._transitions, self._mover, self._clock = store, transitions, mover, clock
        self._said: dict[JobId, str] = {}
        self._failing: dict[JobId, tuple[ClusterId, int]] = {}
        """Jobs whose checkpoint could not be restored yet: for which attempt, and since when."""

    async def save(self, job: Job) -> None:
        """Save what its running work has made whole since the last time, if anything. A simulated host has no files."""
        workload = None if job.request.simulated else await self._work(job)
        if workload is None:
            return
        try:
            saved = await self._mover.save(job.account_id, job.job_id, workload)
        except TooMany:
            return  # others are being moved: the next time
        except WindrowError as error:
            await self._failed(job, f"its checkpoint could not be saved: {error.detail or error.code}")
            return
        self._said.pop(job.job_id, None)
        if saved is not None:
            await self._tell(job, "job.checkpoint_saved", f"its checkpoint of step {saved.step} is saved")

    async def restore(self, job: Job) -> bool:
        """Put its newest whole checkpoint into the folder of its next attempt; False: ask again in a moment."""
        workload = await self._work(job)
        if workload is None:
            return True
        try:
            found = await self._mover.restore(job.account_id, job.job_id, workload)
        except TooMany:
            return False
        except WindrowError as error:
            why = error.detail or error.code
            if (error.retryable or isinstance(error, DeadlineExceeded)) and self._has_patience(job):
                await self._failed(job, f"its checkpoint could not be restored yet, it is tried again: {why}")
                return False
            await self._failed(job, f"its checkpoint could not be restored, it starts from scratch: {why}")
            return True
        self._failing.pop(job.job_id, None)
        for one in found.passed:
            await self._tell(
                job, "job.checkpoint_passed", f"its checkpoint of step {one.step} is not whole: {one.reason}"
            )
        if found.step is not None:
            await self._tell(job, "job.checkpoint_restored", f"it goes on from its checkpoint of step {found.step}")
        return True

    def forget(self, job_id: JobId) -> None:
        """Keep nothing in memory of a job that has ended."""
        self._said.pop(job_id, None)
        self._failing.pop(job_id, None)

    def _has_patience(self, job: Job) -> bool:
        """Return whether the same may still be tried: a host that is gone ends the attempt, and waiting costs
        nothing."""
        cluster_id, now_ns = job.attempts[-1].cluster_id, self._clock.monotonic_ns()
        if self._failing.get(job.job_id, ("", 0))[0] != cluster_id:
            self._failing[job.job_id] = cluster_id, now_ns
        return now_ns - self._failing[job.job_id][1] < PATIENCE_NS

    async def _work(self, job: Job) -> Workload | None:
        held = await self._store.read(lambda uow: lookup.workloads_of(uow, job.attempts[-1].cluster_id))
        return held[0] if held else None

    async def _failed(self, job: Job, said: str) -> None:
        if self._said.get(job.job_id) != said:
            self._said[job.job_id] = said
            await self._tell(job, "job.checkpoint_failed", said)

    async def _tell(self, job: Job, kind: str, said: str) -> None:
        def write(uow: UnitOfWork) -> None:
            now = uow[JobRepository].get(job.job_id)
            is_going = now is not None and now.has_cluster and len(now.attempts) == len(job.attempts)
            if is_going:  # the end of a lease ends a move, too: that is no news
                self._transitions.tell(uow, job, kind, f"{job.name}: {said}", "master")

        await self._store.write(write, name="job.checkpoint")
