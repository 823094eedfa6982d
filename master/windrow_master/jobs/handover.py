"""Moves jobs off a host that will be gone, in the time that it has left.

 the host says so ─▶ Checkpointing ─▶ checkpoint saved ─▶ SIGTERM, with the time left ─▶ saved again ─▶ Migrating

A planned move uses up no retry. What is in memory here is only the time that is left: a Master that dies meanwhile
saves the checkpoint once and moves the job.
"""

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Final

from windrow_master.clusters import lookup
from windrow_master.clusters.model import Workload, WorkPhase
from windrow_master.clusters.service import ClusterService
from windrow_master.fleet.messages import HostLeaving
from windrow_master.jobs import decide
from windrow_master.jobs.checkpoints import JobCheckpoints
from windrow_master.jobs.model import Job, JobId, JobState, Verdict
from windrow_master.jobs.repository import JobRepository
from windrow_master.jobs.states import JobEvent
from windrow_master.jobs.transitions import JobTransitions
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ports import Clock
from windrow_proto.units import MINUTE, SECOND, seconds

LAST_NS: Final = 15 * SECOND
"""Of the time that is left: for the last checkpoint, the log and the files."""
UNKNOWN_NS: Final = 30 * SECOND
"""Time left on a host that does not say when it will be gone."""
MOST_NS: Final = 10 * MINUTE
"""The most that a host's word is believed: its jobs cost money until then."""
MOVES_MAX: Final = 100
"""Attempts of one job that use up no retry; a further move does."""
MAY_STAY: Final = "rebalance"
"""A host that leaves for this reason may stay for long: nothing new starts there, and its jobs go on."""
_OVER: Final = (WorkPhase.EXITED, WorkPhase.FAILED, WorkPhase.GONE)


class Handovers:
    """Jobs that leave their host. Used on the loop only."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        clusters: ClusterService,
        transitions: JobTransitions,
        checkpoints: JobCheckpoints,
    ) -> None:
        self._store, self._clock, self._clusters = store, clock, clusters
        self._transitions, self._checkpoints = transitions, checkpoints
        self._until_ns: dict[JobId, int] = {}
        self._asked: set[JobId] = set()

    def host_leaving(self, uow: UnitOfWork, fact: HostLeaving) -> None:
        """Have the jobs on this host move; said once more, nothing changes."""
        if fact.why == MAY_STAY:
            return
        left_ns = UNKNOWN_NS if fact.at_ns is None else fact.at_ns - uow.now_wall_ns - LAST_NS
        until_ns = self._clock.monotonic_ns() + min(max(0, left_ns), MOST_NS)
        for cluster in lookup.holding(uow, fact.host_id):
            job = uow[JobRepository].living_of_cluster(cluster.cluster_id)
            is_here = job is not None and job.has_cluster and job.attempts[-1].cluster_id == cluster.cluster_id
            if job is not None and is_here and job.state in (JobState.STARTING, JobState.RUNNING):
                self._move(uow, job, until_ns)

    def _move(self, uow: UnitOfWork, job: Job, until_ns: int) -> None:
        is_free = sum(one.is_requeued for one in job.attempts) < MOVES_MAX
        if not is_free and not decide.attempts_left(job):
            return  # it ends with its host
        job = replace(job, attempts=(*job.attempts[:-1], replace(job.attempts[-1], is_requeued=is_free)))
        event = JobEvent.COLLECT if job.state is JobState.RUNNING else JobEvent.AGAIN
        self._transitions.step(uow, job, decide.Answer(event, "its host will be gone", Verdict.AGAIN), "master")
        if event is JobEvent.COLLECT:
            uow.after_commit(lambda: self._until_ns.update({job.job_id: until_ns}))

    async def left_until_ns(self, job: Job) -> int | None:
        """Return until when its work may still end by itself, on the monotonic clock; None: no longer, or it has."""
        until_ns = self._until_ns.get(job.job_id)
        if until_ns is None or self._clock.monotonic_ns() >= until_ns:
            return None
        workload = await self._store.read(lambda uow: _work(uow, job))
        return None if workload is None or workload.phase in _OVER or workload.lost_since_ns is not None else until_ns

    def is_asked(self, job_id: JobId) -> bool:
        """True once its work was asked to end."""
        return job_id in self._asked

    async def ask(self, job: Job, until_ns: int) -> None:
        """Save what it has, then ask its work to end: SIGTERM, and SIGKILL when its time is over."""
        await self.save(job, until_ns - self._clock.monotonic_ns())
        grace_ns = max(SECOND, until_ns - self._clock.monotonic_ns())

        def end(uow: UnitOfWork) -> None:
            workload = _work(uow, job)
            if workload is not None:
                self._clusters.lifecycle.halt(uow, workload, grace_ns, "master")

        await self._store.write(end, name="job.halt")
        self._asked.add(job.job_id)

    async def save(self, job: Job, limit_ns: int) -> None:
        """Save its checkpoint, if that takes no longer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds(limit_ns)):
                await self._checkpoints.save(job)

    def forget(self, job_id: JobId) -> None:
        """Keep nothing in memory of an attempt that has ended."""
        self._until_ns.pop(job_id, None)
        self._asked.discard(job_id)


def _work(uow: UnitOfWork, job: Job) -> Workload | None:
    held = lookup.workloads_of(uow, job.attempts[-1].cluster_id)
    return held[0] if held else None
