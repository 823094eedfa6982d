"""Moves jobs from state to state: takes the step that follows, starts them when it is their turn, and moves their input
and results.

 happened, due ─▶ look ─▶ read: rows, clusters, receipts ─▶ decide.py ─▶ states.py ─▶ one write: rows, audit, events
      ├▶ waits: QueueService ─▶ its turn: ClusterService.create under the attempt's own key ─▶ Starting
      └▶ waiting for files: send the folder │ running: keep the log │ Checkpointing: bring in log and files

A job is looked at when it, its cluster or a job that it comes after has changed, and when a time of it is due. All that
lasts is in SQL: a Master that dies anywhere goes on from the rows, and what it does twice has one effect.
"""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Any, Final

import structlog

from windrow_master.clusters import lookup
from windrow_master.clusters.end_limits import BudgetTooSmall
from windrow_master.clusters.messages import HostKeptFor, NoRoom
from windrow_master.clusters.model import Cluster, WorkPhase
from windrow_master.clusters.service import ClusterService
from windrow_master.clusters.views import ClusterView
from windrow_master.identity.model import Principal, Role
from windrow_master.jobs import decide, logins
from windrow_master.jobs.checkpoints import JobCheckpoints
from windrow_master.jobs.entries import entry_of, took_ns, waits
from windrow_master.jobs.files import JobFiles
from windrow_master.jobs.handover import Handovers
from windrow_master.jobs.messages import PlaceOf
from windrow_master.jobs.model import Attempt, Job, JobId, JobState, Verdict
from windrow_master.jobs.repository import JobRepository
from windrow_master.jobs.request import attempt_key, cluster_request
from windrow_master.jobs.states import PLACEABLE, JobEvent
from windrow_master.jobs.transitions import JobTransitions, known_image, seen, spent
from windrow_master.loops import GIVEN_UP, Boundary, ends_alone, when_due
from windrow_master.placement.model import Placement
from windrow_master.queue.model import End, Entry
from windrow_master.queue.ports import Gone, Refused, Started
from windrow_master.queue.service import QueueService
from windrow_master.shares import Share, ShareLimits, Shares
from windrow_master.storage.artefacts import taken
from windrow_master.storage.uploads import QUOTA_BYTES
from windrow_master.store.store import Store
from windrow_master.store.unit import DATABASE_FAULTS, UnitOfWork
from windrow_master.work_queue import WorkQueue
from windrow_proto.errors import (
    Conflict,
    IdempotencyMismatch,
    InvalidInput,
    NoCapacity,
    TooLarge,
    TooMany,
    WindrowError,
)
from windrow_proto.ids import AccountId, ClusterId, HostId, TokenId
from windrow_proto.ports import Clock
from windrow_proto.sealed import SealKey
from windrow_proto.units import MINUTE, SECOND, Microcents

LOOK_NS: Final = SECOND // 4
"""Between two looks, at least: what happens until then shares the next one."""
LOOK_AGAIN_NS: Final = 10 * MINUTE
"""For a job to which nothing happens, and that has come to none of its limits: a clock may have been set meanwhile."""
READ_AT_ONCE: Final = 500
"""Jobs in one unit of work: after a start all that have not ended are looked at."""
LOG_EVERY_NS: Final = 15 * SECOND
"""Between two pieces of a running job's log: what a lost host takes with it."""
AGAIN_NS: Final = 2 * SECOND
"""Before what could not be brought in is asked for again."""
TRANSFERS: Final = ShareLimits(16, 4, 0)
"""Folders, logs and files of jobs under way at once; what finds no share is begun in a later look."""
_LIFE_NS: Final = 10**18
_BUG: Final = "The Master met a bug with this job; it tries again."

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Look:
    """A job, whether a step follows for it now, and when one of its limits ends it; at_ns, limit_ns: wall time. ended:
    the ends of those that it comes after. kept: the host that was bought for it."""

    job: Job
    has_step: bool
    limit_ns: int | None
    at_ns: int
    ended: Mapping[str, End]
    kept: HostId | None = None


class JobController:
    """Used on the loop only; a source of the queue. `placing` is held while a cluster is made for a job: whoever moves
    one that waits, or holds it, waits for that."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        clusters: ClusterService,
        files: JobFiles,
        transitions: JobTransitions,
        seal_key: SealKey,
        checkpoints: JobCheckpoints,
        queue: QueueService,
        handovers: Handovers,
    ) -> None:
        self._store, self._clock, self._clusters = store, clock, clusters
        self._files, self._transitions, self._seal_key = files, transitions, seal_key
        self.placing = asyncio.Lock()
        self._checkpoints, self._queue, self._handovers = checkpoints, queue, handovers
        self._placed: dict[JobId, int] = {}
        self._save_due_ns: dict[ClusterId, int] = {}
        self._moving: set[ClusterId] = set()
        self._restored: set[ClusterId] = set()
        self._sent: set[ClusterId] = set()
        self._send_until_ns: dict[ClusterId, int] = {}
        self._busy: set[JobId] = set()
        self._log_due_ns: dict[JobId, int] = {}
        self._until_ns: dict[JobId, int] = {}
        self._transfers = Shares("transfers of jobs", "They go on in a moment.", TRANSFERS)
        self._faults = Boundary("job", DATABASE_FAULTS)
        self._group: asyncio.TaskGroup | None = None
        self._due = WorkQueue[JobId](clock)
        self._is_listed = False
        self._unsure: set[JobId] = set()
        self._clusters_of: dict[JobId, ClusterId] = {}
        self._jobs_of: dict[ClusterId, JobId] = {}
        self._children: dict[JobId, set[JobId]] = {}
        clusters.on_step(self._cluster_changed)
        transitions.on_change(self._job_changed)

    async def run(self) -> None:
        """Carry jobs on, until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                await when_due(self.tick, self._due, LOOK_NS, "jobs")
            finally:
                self._group = None

    async def tick(self) -> None:
        """Look at the jobs to which something has happened or is due."""
        if not self._is_listed:
            for job_id in await self._store.read(lambda uow: uow[JobRepository].living_ids()):
                self._due.add(job_id)
                self._unsure.add(job_id)
            self._is_listed = True
        due, looked = self._due.take(), set[JobId]()
        try:
            for first in range(0, len(due), READ_AT_ONCE):
                looked |= await self._look_at(due[first : first + READ_AT_ONCE])
        except BaseException:
            for job_id in (one for one in due if one not in looked):
                self._due.add(job_id)
            raise

    async def _look_at(self, job_ids: Sequence[JobId]) -> set[JobId]:
        """Let each of these take the step that follows from what is known, and begin what it needs; returns them."""
        found = {one.job.job_id: one for one in await self._store.read(partial(self._read, job_ids=job_ids))}
        steps = [job_id for job_id, one in found.items() if one.has_step]
        if steps:
            async with self.placing:
                after = await self._store.write(partial(self._steps, job_ids=steps), name="job.tick")
            found |= {one.job.job_id: one for one in after}
        for job_id in job_ids:
            if job_id not in found or found[job_id].job.ended_at_ns is not None:
                self._forget(job_id, found.pop(job_id, None))
        await self._take_up([one.job for one in found.values() if one.job.job_id in self._unsure])
        for one in found.values():
            self._note(one)
        # What is to be brought in or sent goes before pieces of logs, which only may be lost.
        for one in sorted(found.values(), key=lambda one: one.job.state is JobState.RUNNING):
            self._due.add(one.job.job_id, self._clock.monotonic_ns() + LOOK_AGAIN_NS)
            with self._retried(one.job.job_id, "look"):
                await self._look_inside(one.job)
        return set(job_ids)

    def _read(self, uow: UnitOfWork, job_ids: Sequence[JobId]) -> Sequence[_Look]:
        """Those of these that are there, and whether a step follows for each."""
        return self._looks(uow, uow[JobRepository].readable(job_ids))

    def _looks(self, uow: UnitOfWork, jobs: Sequence[Job]) -> Sequence[_Look]:
        found = []
        for job in jobs:
            has_step, limit_ns = True, None  # also of one that crashes: the write counts it
            ended: Mapping[str, End] = {}
            with suppress(Exception):
                answer, limit_ns, ended = _answer(uow, job)
                has_step = self._faults.is_spent(job.job_id) or answer is not None
            has_step = has_step and job.ended_at_ns is None
            kept = uow.ask(HostKeptFor(job.job_id)) if job.request.backend is not None and waits(job) else None
            found.append(_Look(job, has_step, limit_ns, uow.now_wall_ns, ended, kept))
        return found

    def _steps(self, uow: UnitOfWork, job_ids: Sequence[JobId]) -> Sequence[_Look]:
        """Let each of these take the step that follows from what is known; returns them as they are then."""
        jobs = uow[JobRepository].readable(job_ids)
        try:
            with uow.attempt():
                after = [self._step(uow, job) for job in jobs]
        except Exception:  # one of them: each for itself, so that the others go on
            for job in jobs:
                with self._faults.around(job.job_id), uow.attempt():
                    self._step(uow, job)
            after = list(uow[JobRepository].readable(job_ids))
        for job in jobs:  # told last: of what these steps have changed the look that is returned knows
            uow.after_commit(partial(self._due.drop, job.job_id))
        return self._looks(uow, after)

    def _step(self, uow: UnitOfWork, job: Job) -> Job:
        is_spent = self._faults.is_spent(job.job_id)
        found = decide.Answer(JobEvent.FAIL, GIVEN_UP) if is_spent else _answer(uow, job)[0]
        return job if found is None else self._transitions.step(uow, job, found, "master")

    def _note(self, look: _Look) -> None:
        """Keep in mind what may concern it next: its cluster, the jobs it comes after, its limits; queue it."""
        job = look.job
        if job.version < self._placed.get(job.job_id, 0):
            return  # it was read before it had its place, and is due again since
        cluster_id = (job.attempts[-1].cluster_id or None) if job.has_cluster else None
        is_new = self._clusters_of.get(job.job_id) != cluster_id
        if is_new:
            self._forget_cluster(job.job_id)
        if cluster_id is not None:
            self._clusters_of[job.job_id], self._jobs_of[cluster_id] = cluster_id, job.job_id
        for parent_id in job.request.comes_after:
            if job.state is JobState.SUBMITTED:
                children = self._children.setdefault(parent_id, set())
                is_new |= job.job_id not in children
                children.add(job.job_id)
            else:
                self._no_child(parent_id, job.job_id)
        if is_new:  # what happened to these between the reading of the job and now was told to nobody
            self._due.add(job.job_id)
        if waits(job):
            with self._retried(job.job_id, "entry"):
                self._queue.put(entry_of(job, self._queue.tier_costs(), kept=look.kept), self, look.ended)
        if look.has_step:  # it was not taken: the next look tries again
            self._due.add(job.job_id)
        if look.limit_ns is not None:
            self._due.add(job.job_id, self._clock.monotonic_ns() + max(0, look.limit_ns - look.at_ns))

    def _has_place(self, job: Job) -> None:
        """Its first attempt has begun with a new cluster: a look would find nothing new until that changes, or a time
        of the job comes."""
        job_id, cluster_id, now_ns = job.job_id, job.attempts[-1].cluster_id, self._clock.monotonic_ns()
        self._placed[job_id] = job.version
        self._clusters_of[job_id], self._jobs_of[cluster_id] = cluster_id, job_id
        limit_ns = decide.next_limit_ns(job, decide.Seen(), self._clock.wall_ns())
        left_ns = LOOK_AGAIN_NS if limit_ns is None else max(0, limit_ns - self._clock.wall_ns())
        self._due.drop(job_id)
        self._due.add(job_id, now_ns + min(left_ns, LOOK_AGAIN_NS))

    @contextmanager
    def _retried(self, job_id: JobId, step: str) -> Iterator[None]:
        """A step of one job that the next look tries again where it comes to nothing."""
        is_done = False
        with self._faults.around(job_id, step):
            yield
            is_done = True
        if not is_done:
            self._due.add(job_id)

    # --- what happens to jobs ---

    def look_again(self, job_id: JobId) -> None:
        """Something beside its row has changed that concerns a job."""
        self._due.add(job_id)

    def _job_changed(self, job_id: JobId) -> None:
        self._due.add(job_id)
        for child_id in self._children.get(job_id, ()):
            self._due.add(child_id)

    def _cluster_changed(self, cluster_id: ClusterId) -> None:
        job_id = self._jobs_of.get(cluster_id)
        if job_id is not None:
            self._due.add(job_id)

    # --- places ---

    async def place(self, entry: Entry, closed: frozenset[str]) -> Started | Refused | Gone:
        """Make the cluster of a job's next attempt, on none of the closed hosts, once for all tries, and write down
        that it has it."""
        return await self._placed_once(JobId(entry.entry_id), closed)

    async def place_copies(self, entries: Sequence[Entry], closed: frozenset[str]) -> Sequence[Started]:
        """As queue.ports.Source: the first attempts of jobs of one submission. With each of them it is written down
        that it has its cluster."""
        job_ids = [JobId(one.entry_id) for one in entries]
        async with self.placing:
            known = await self._store.read(lambda uow: uow[JobRepository].some(job_ids))
            found = (known.get(job_id) for job_id in job_ids)
            jobs = list(takewhile(lambda job: job is not None and _is_copy(job, known[job_ids[0]]), found))
            if len(jobs) < 2 or closed:
                return ()
            self._unsure.update(job_ids[: len(jobs)])
            made = await self._create_copies([job for job in jobs if job is not None])
            self._unsure.difference_update(job_ids[: len(jobs)])
        return [
            Started(entry_of(job, self._queue.tier_costs(), cluster.tier), _hosts_of(place))
            for job, (cluster, place) in zip(map(known.__getitem__, job_ids), made, strict=False)
        ]

    async def _create_copies(self, jobs: Sequence[Job]) -> Sequence[tuple[Cluster, Placement]]:
        whole = logins.whole(self._seal_key, jobs[0]).request
        copies = [(attempt_key(job), cluster_request(replace(job, request=whole))) for job in jobs]
        now = dict[JobId, Job]()

        def made(uow: UnitOfWork, number: int, cluster: Cluster, found: Placement) -> None:
            if not number:
                now.update(uow[JobRepository].some([job.job_id for job in jobs]))
            job = now.get(jobs[number].job_id)
            if job is None or job.state not in PLACEABLE or job.held_by:
                raise Conflict("It does not wait any more.", subject=jobs[number].job_id)
            place = uow.ask(PlaceOf(found.members[0].host_id))
            attempt = Attempt(cluster.cluster_id, uow.now_wall_ns, place=place)
            uow.after_commit(partial(self._has_place, self._transitions.begin(uow, job, attempt)))

        who, budget = principal_of(jobs[0], self._clock), jobs[0].request.budget
        return await self._clusters.copies.create(who, copies, made, budget)

    async def _placed_once(self, job_id: JobId, closed: frozenset[str]) -> Started | Refused | Gone:
        found: Started | Refused | Gone = Refused(_BUG, is_full=False)
        self._unsure.add(job_id)
        with self._retried(job_id, "place"):
            async with self.placing:
                found = await self._place(job_id, closed)
                self._unsure.discard(job_id)
        return found

    async def _take_up(self, jobs: Sequence[Job]) -> None:
        """Write down the clusters that were made for these and are in no attempt, since the Master or its database was
        gone right after that: in the queue, where they hold what they hold, these might wait for themselves."""

        def made(uow: UnitOfWork) -> list[JobId]:
            waiting = [job for job in jobs if job.state in PLACEABLE]
            return [one.job_id for one in waiting if lookup.is_made(uow, one.account_id, attempt_key(one))]

        for job_id in await self._store.read(made) if jobs else ():
            await self._placed_once(job_id, frozenset())
        self._unsure.difference_update(job.job_id for job in jobs)

    async def _place(self, job_id: JobId, closed: frozenset[str]) -> Started | Refused | Gone:
        job = await self._store.read(partial(_placeable, job_id=job_id))
        if job is None:
            return Gone()
        try:
            view = await self._create(job, frozenset(map(HostId, closed)))
        except WindrowError as error:
            if job.request.backend is not None and isinstance(error, NoCapacity | BudgetTooSmall):
                await self._store.write(lambda uow: uow.publish(NoRoom(job_id)), name="job.no_room")
            elif isinstance(error, InvalidInput | IdempotencyMismatch):
                await self._store.write(partial(self._impossible, job_id=job_id, refused=error), name="job.impossible")
                return Gone()
            return Refused.by(error, closed)
        cluster, hosts = view.cluster, tuple(dict.fromkeys(one.host_id for one in view.workloads if not one.is_past))

        def place(uow: UnitOfWork) -> None:
            now = uow[JobRepository].get(job_id)
            assert now is not None and now.state in PLACEABLE, "nobody else moves it meanwhile: `placing` is held"
            place = uow.ask(PlaceOf(hosts[0])) if hosts else None
            attempt = Attempt(cluster.cluster_id, uow.now_wall_ns, place=place)
            self._placed[job_id] = self._transitions.begin(uow, now, attempt).version

        await self._store.write(place, name="job.placed")
        return Started(entry_of(job, self._queue.tier_costs(), cluster.tier), hosts)

    async def _create(self, job: Job, but: frozenset[HostId]) -> ClusterView:
        image, costs = await self._store.read(lambda uow: (known_image(uow, job), spent(uow, job)))
        budget = job.request.budget
        left = None if budget is None else Microcents(max(0, budget - sum(costs)))
        asked = replace(cluster_request(logins.whole(self._seal_key, job)), image=image)
        who, login = principal_of(job, self._clock), logins.opened(self._seal_key, job)
        if job.request.optimize == "cost":
            await self._clusters.check_price(who, asked, job.job_id)
        try:
            _, made = await self._clusters.create(who, asked, attempt_key(job), login=login, budget=left, but=but)
        except BudgetTooSmall as error:
            raise BudgetTooSmall(error.budget, error.price_per_hour, is_rest=bool(job.attempts)) from None
        return made

    def _impossible(self, uow: UnitOfWork, job_id: JobId, refused: WindrowError) -> None:
        now = uow[JobRepository].get(job_id)
        if now is not None and now.state in PLACEABLE:
            self._transitions.step(uow, now, decide.Answer(JobEvent.FAIL, refused.detail or refused.code), "master")

    async def tell(self, entry_ids: Sequence[str], said: str) -> None:
        """Say why jobs wait."""

        def change(uow: UnitOfWork) -> None:
            for job_id in map(JobId, entry_ids):
                now = uow[JobRepository].get(job_id)
                if now is not None and now.state in PLACEABLE and not now.held_by and now.reason != said:
                    self._transitions.keep(uow, replace(now, reason=said))

        await self._store.write(change, name="job.refused")

    async def _look_inside(self, job: Job) -> None:
        """Begin what takes longer than a look: send its folder, keep its log, bring in what it left."""
        if job.has_cluster and job.attempts[-1].run_id:
            await self._await_run(job)
            return
        if job.state is JobState.RUNNING:
            self._save(job)
        if job.job_id in self._busy or not job.has_cluster:
            return
        if job.state is JobState.CHECKPOINTING:
            until_ns = await self._handovers.left_until_ns(job)
            if until_ns is None:
                self._begin(job, self._collect(job))
                return
            self._due.add(job.job_id, until_ns)
            if not self._handovers.is_asked(job.job_id):
                self._begin(job, self._handovers.ask(job, until_ns))
        elif job.state is JobState.STARTING and job.request.await_files:
            cluster_id = job.attempts[-1].cluster_id
            if cluster_id in self._sent:
                return  # its host has the folder, and the word that it runs is on its way
            held = await self._store.read(lambda uow: lookup.workloads_of(uow, cluster_id))
            if any(one.phase is WorkPhase.WAITING_FILES for one in held):
                if len(job.attempts) > 1 and cluster_id not in self._restored:
                    self._move(job, self._restore(job))
                    return
                self._begin(job, self._send(job, cluster_id))
        elif job.state is JobState.RUNNING:
            now_ns = self._clock.monotonic_ns()
            due_ns = self._log_due_ns.setdefault(job.job_id, now_ns + LOG_EVERY_NS)
            if now_ns >= due_ns and self._begin(job, self._take_log(job)):
                due_ns = self._log_due_ns[job.job_id] = now_ns + LOG_EVERY_NS
            self._due.add(job.job_id, due_ns)

    async def _await_run(self, job: Job) -> None:
        """Whoever has a run sends its folder and keeps its log; one that was asked to end does so in its time."""
        if job.state is not JobState.CHECKPOINTING:
            self._until_ns.pop(job.job_id, None)
            return
        until_ns = self._until_ns.setdefault(job.job_id, self._clock.monotonic_ns() + decide.RUN_ENDS_NS)
        if self._clock.monotonic_ns() < until_ns:
            self._due.add(job.job_id, until_ns)
            return
        attempt, why = job.attempts[-1], "its service did not say what it left"
        await self._store.write(lambda uow: self._collected(uow, job.job_id, attempt, why), name="job.collected")

    def _begin(self, job: Job, work: Coroutine[Any, Any, Any]) -> bool:
        """Start it, where its account has a share of the transfers left; else a later look does."""
        assert self._group is not None, "it runs"
        try:
            share = self._transfers.take(job.account_id)
        except TooMany:
            work.close()
            self._due.add(job.job_id)
            return False
        self._busy.add(job.job_id)
        self._group.create_task(self._guarded(job.job_id, work, share), name=f"job {job.job_id}")
        return True

    async def _guarded(self, job_id: JobId, work: Coroutine[Any, Any, Any], share: Share) -> None:
        try:
            with share:
                await work
        except WindrowError as error:
            log.info("job_waits", job_id=job_id, error=str(error))
            await self._clock.sleep_ns(AGAIN_NS)
        except Exception:  # the task's top level: the others go on
            self._faults.crashed(job_id, "work")
            await self._clock.sleep_ns(AGAIN_NS)
        finally:
            work.close()
            self._busy.discard(job_id)
            self._due.add(job_id)

    # --- checkpoints: beside all else, since one may take long, and nothing waits for a save ---

    def _save(self, job: Job) -> None:
        if not job.request.checkpoint_every_ns:
            return
        cluster_id, now_ns = job.attempts[-1].cluster_id, self._clock.monotonic_ns()
        next_ns = now_ns + job.request.checkpoint_every_ns
        if cluster_id not in self._moving and now_ns >= self._save_due_ns.setdefault(cluster_id, next_ns):
            self._save_due_ns[cluster_id] = next_ns
            self._move(job, self._checkpoints.save(job))
        if cluster_id not in self._moving:
            self._due.add(job.job_id, self._save_due_ns[cluster_id])

    async def _restore(self, job: Job) -> None:
        if await self._checkpoints.restore(job):
            self._restored.add(job.attempts[-1].cluster_id)

    def _move(self, job: Job, work: Coroutine[Any, Any, None]) -> None:
        assert self._group is not None, "it runs"
        cluster_id = job.attempts[-1].cluster_id
        if cluster_id in self._moving:
            work.close()
            return
        self._moving.add(cluster_id)
        self._group.create_task(self._moved(job.job_id, cluster_id, work), name=f"checkpoint {job.job_id}")

    async def _moved(self, job_id: JobId, cluster_id: ClusterId, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception:  # the task's top level: a checkpoint never fails its job
            log.exception("job_checkpoint_crashed", cluster_id=cluster_id)
            self._restored.add(cluster_id)
        finally:
            work.close()
            self._moving.discard(cluster_id)
            self._due.add(job_id)

    def _forget(self, job_id: JobId, last: _Look | None) -> None:
        """Keep nothing in memory of a job that has ended, and tell the queue of its end."""
        job, is_run = None if last is None else last.job, job_id in self._clusters_of
        if job is None:
            self._queue.drop(job_id)
        else:
            with ends_alone("job_ended", job_id=job_id):
                entry, is_ok = entry_of(job, self._queue.tier_costs()), job.state is JobState.SUCCEEDED
                self._queue.ended(entry, took_ns(job) if is_run else None, is_ok=is_ok)
        self._forget_cluster(job_id)
        self._placed.pop(job_id, None)
        self._unsure.discard(job_id)
        self._faults.forget(job_id)
        self._log_due_ns.pop(job_id, None)
        self._until_ns.pop(job_id, None)
        self._children.pop(job_id, None)
        for parent_id in () if job is None else job.request.comes_after:
            self._no_child(parent_id, job_id)
        self._checkpoints.forget(job_id)

    def _no_child(self, parent_id: JobId, job_id: JobId) -> None:
        children = self._children.get(parent_id, set())
        children.discard(job_id)
        if not children:
            self._children.pop(parent_id, None)

    def _forget_cluster(self, job_id: JobId) -> None:
        """Keep nothing in memory of an attempt that has ended."""
        cluster_id = self._clusters_of.pop(job_id, None)
        self._handovers.forget(job_id)
        if cluster_id is not None:
            self._jobs_of.pop(cluster_id, None)
            self._restored.discard(cluster_id)
            self._sent.discard(cluster_id)
            self._send_until_ns.pop(cluster_id, None)
            self._save_due_ns.pop(cluster_id, None)

    async def _send(self, job: Job, cluster_id: ClusterId) -> None:
        """Send its folder; where its host refuses it, or did not get it for too long, this attempt is over."""
        try:
            await self._files.send_folder(principal_of(job, self._clock), cluster_id, job.group)
        except WindrowError as error:
            is_refused = isinstance(error, InvalidInput | TooLarge)
            now_ns = self._clock.monotonic_ns()
            if not is_refused and now_ns < self._send_until_ns.setdefault(cluster_id, now_ns + decide.SEND_NS):
                raise
            found = decide.unsent(job, error.detail or error.code, is_refused=is_refused)

            def over(uow: UnitOfWork) -> None:
                now = uow[JobRepository].get(job.job_id)
                if now is not None and now.state is JobState.STARTING and now.attempts[-1].cluster_id == cluster_id:
                    self._transitions.step(uow, now, found, "master")

            await self._store.write(over, name="job.unsent")
        else:
            self._sent.add(cluster_id)

    async def _take_log(self, job: Job) -> tuple[int, bool]:
        cluster_id = job.attempts[-1].cluster_id
        return await self._files.take_log(principal_of(job, self._clock), cluster_id, job.job_id, len(job.attempts))

    async def _collect(self, job: Job) -> None:
        """Bring in the log and the files of its attempt within their time, then let it end."""
        attempt, why = job.attempts[-1], ""
        is_ended = job.verdict is Verdict.SUCCEEDED or attempt.exit_code is not None
        limit_ns = decide.COLLECT_ENDED_NS if is_ended else decide.COLLECT_NS
        if job.job_id not in self._until_ns and job.request.checkpoint_every_ns and job.verdict is Verdict.AGAIN:
            await self._handovers.save(job, limit_ns)
        until_ns = self._until_ns.setdefault(job.job_id, self._clock.monotonic_ns() + limit_ns)
        try:
            async with asyncio.timeout(limit_ns / SECOND):
                size, is_cut = await self._take_log(job)
                attempt = replace(attempt, log_bytes=size, log_truncated=is_cut)
                attempted = principal_of(job, self._clock), attempt.cluster_id, job.job_id, len(job.attempts)
                room_bytes = await self._store.read(lambda uow: _room_bytes(uow, job))
                size, is_cut = await self._files.take_files(*attempted, room_bytes)
                attempt = replace(attempt, files_bytes=size, files_truncated=is_cut)
        except TimeoutError:
            why = f"its files could not be had within {limit_ns // SECOND} s"
        except WindrowError as error:
            if error.retryable and self._clock.monotonic_ns() < until_ns:
                raise
            why = f"its files could not be had: {error.detail or error.code}"
        self._until_ns.pop(job.job_id, None)
        await self._store.write(lambda uow: self._collected(uow, job.job_id, attempt, why), name="job.collected")

    def _collected(self, uow: UnitOfWork, job_id: JobId, attempt: Attempt, why: str) -> None:
        job = uow[JobRepository].get(job_id)
        if job is None or job.state is not JobState.CHECKPOINTING or job.verdict is None:
            return
        event = decide.ENDS[job.verdict]
        job = replace(job, attempts=(*job.attempts[:-1], attempt))
        reason = "; ".join(part for part in (job.reason, why) if part)
        self._transitions.step(uow, job, decide.Answer(event, reason), "master")


def _answer(uow: UnitOfWork, job: Job) -> tuple[decide.Answer | None, int | None, Mapping[str, End]]:
    """Return the next step of a job, when one of its limits ends it, and the ends of those that it comes after."""
    known, parents = seen(uow, job), uow[JobRepository].all_of(list(job.request.comes_after))
    ends = {str(job_id): decide.end_of(one) for job_id, one in parents.items()}
    ended = {job_id: end for job_id, end in ends.items() if end is not None}
    now_ns = uow.now_wall_ns
    return decide.decide(job, parents, known, now_ns), decide.next_limit_ns(job, known, now_ns), ended


def _hosts_of(place: Placement) -> tuple[HostId, ...]:
    return tuple(dict.fromkeys(one.host_id for one in place.members))


def _is_copy(job: Job, first: Job) -> bool:
    """Return whether this one differs from a first attempt by nothing but its number in its array. For one that may
    run elsewhere a host may be kept."""
    is_first = not job.attempts and job.login is None and job.state in PLACEABLE and not job.held_by
    is_first = is_first and job.request.backend is None
    same = (job.request, job.group, job.account_id, job.spenders, job.sealed_env)
    return is_first and same == (first.request, first.group, first.account_id, first.spenders, first.sealed_env)


def _placeable(uow: UnitOfWork, job_id: JobId) -> Job | None:
    job = uow[JobRepository].get(job_id)
    return job if job is not None and job.state in PLACEABLE and not job.held_by else None


def _room_bytes(uow: UnitOfWork, job: Job) -> int:
    """For the files of one attempt: half of what is left, so that no single host fills an account's quota."""
    return max(0, QUOTA_BYTES - taken(uow, job.account_id)[1]) // 2


def principal_of(job: Job, clock: Clock) -> Principal:
    """The account of a job, as who rents for it and reaches into its own."""
    account_id: AccountId = job.account_id
    lives_until_ns = clock.wall_ns() + _LIFE_NS
    return Principal(
        *(account_id, job.name, frozenset({Role.RENTER}), TokenId(""), "job", lives_until_ns), spenders=job.spenders
    )
