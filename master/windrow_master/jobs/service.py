"""The jobs' service: submit, read, hold, put back, cancel, run again. controller.py takes their steps, and is their
clock.

Submitting is one unit of work; the folder comes after it and is kept by the Master, so that whoever submitted may go.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final

from windrow_master.clusters import environments, lookup
from windrow_master.clusters.messages import ElsewhereAsked
from windrow_master.clusters.model import ClusterRequest, Workload, names_of
from windrow_master.clusters.service import ClusterService
from windrow_master.clusters.views import Preview
from windrow_master.identity.accounts import check_may_begin
from windrow_master.identity.model import Principal, Role
from windrow_master.jobs import decide, logins, moving
from windrow_master.jobs.checkpoints import JobCheckpoints, Mover
from windrow_master.jobs.controller import JobController, principal_of
from windrow_master.jobs.files import JobFiles
from windrow_master.jobs.followers import Followers
from windrow_master.jobs.handover import Handovers
from windrow_master.jobs.messages import RouteFollowed
from windrow_master.jobs.model import CLASSES, HERE, Attempt, Job, JobId, JobRequest, JobState, Verdict
from windrow_master.jobs.repository import JobRepository
from windrow_master.jobs.request import checked, cluster_request, digest
from windrow_master.jobs.runs import JobRuns
from windrow_master.jobs.states import FINAL, PLACEABLE, WAITING, JobEvent
from windrow_master.jobs.transitions import JobTransitions, known_image, spent
from windrow_master.loops import page_alone
from windrow_master.placement.model import Refusal
from windrow_master.queue.model import PriorityClass
from windrow_master.queue.rules import may_use_class
from windrow_master.queue.service import QueueService
from windrow_master.storage import volume_attachments
from windrow_master.storage.artefacts import taken
from windrow_master.storage.retention_rules import KEPT_DAYS, is_past
from windrow_master.storage.uploads import Uploads
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import (
    Conflict,
    Forbidden,
    IdempotencyMismatch,
    InvalidInput,
    NotFound,
    TooMany,
    WindrowError,
)
from windrow_proto.ids import AccountId
from windrow_proto.ports import Clock
from windrow_proto.sealed import RegistryLogin, SealKey
from windrow_proto.units import Microcents

LIVING_MAX: Final = 1_000
"""Jobs of one account that have not ended: one array of the largest size."""
REQUEUES_MAX: Final = 100
"""How often one job is put back into the queue."""
HELD_BY_MAX: Final = 200
AN_OPERATOR: Final = "an operator of this market"
"""Who holds a job, as its renter reads it; the audit log has the operator's account."""
USUAL_JOBS: Final = 20
"""Jobs of a name that are looked at for how long it usually takes."""
_SEES_ALL: Final = frozenset({Role.OPERATOR, Role.AUDITOR})
_ENDS_ALL: Final = frozenset({Role.OPERATOR})


@dataclass(frozen=True, slots=True)
class JobView:
    """A job, and what all of its attempts were charged so far."""

    job: Job
    cost: Microcents
    spent: tuple[Microcents, ...] = ()
    """Of each attempt."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The values that may be shown to whoever asks."""
    refusal: Refusal | None = None
    """Of one that waits for a place: why there is none now."""


class JobService:
    """Jobs of all accounts. Used on the loop only."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        clusters: ClusterService,
        files: JobFiles,
        seal_key: SealKey,
        uploads: Uploads,
        mover: Mover,
        queue: QueueService,
    ) -> None:
        """seal_key: the Master's own, for the logins of jobs that wait. mover: saves and restores checkpoints.
        queue: has them started."""
        self._uploads = uploads
        self._store, self._clock, self._clusters, self._files = store, clock, clusters, files
        self._transitions, self._seal_key = JobTransitions(clusters), seal_key
        checkpoints = JobCheckpoints(store, self._transitions, mover, clock)
        self.handovers = Handovers(store, clock, clusters, self._transitions, checkpoints)
        self.controller = JobController(
            store,
            clock,
            clusters,
            files,
            self._transitions,
            seal_key,
            checkpoints,
            queue,
            self.handovers,
        )
        self.runs = JobRuns(store, self._transitions, self.controller.placing)
        self.on_change = self._transitions.on_change
        """Call a listener on the loop whenever a job has changed."""
        self._followers = Followers(clock)
        self.on_change(self._followers.changed)

    # --- what people ask -------------------------------------------------------------------------------------------

    async def plan(self, principal: Principal, request: JobRequest) -> Preview:
        """Return the place and the price of its first attempt now; changes nothing."""
        asked = checked(request, JobId("job_preview"), self._clock.wall_ns())
        return await self._clusters.plan(principal, _first_cluster(asked, principal), asked.budget)

    async def submit(
        self, principal: Principal, request: JobRequest, key: str | None = None, *, login: RegistryLogin | None = None
    ) -> tuple[JobView, ...]:
        """Take a job, or all of an array; raises InvalidInput, NotFound for a job it should come after, TooMany, and
        QuotaExceeded where there would be no room for it in its quotas though nothing else ran.

        The first one says why there is no place for it now, where there is none. key: the request's Idempotency-Key;
        the same one again answers with the jobs that it made. login: for the pulls
        of its image; it is no part of the request, and is kept sealed until the job has ended.
        """

        def change(uow: UnitOfWork) -> tuple[JobView, ...]:
            known = uow[JobRepository].by_key(principal.account_id, key) if key is not None else None
            if known is not None:
                if known[1] != self._digest(request):
                    raise IdempotencyMismatch(subject=known[0][0].job_id)
                return tuple(_view(uow, job) for job in known[0])
            check_may_begin(uow, principal.account_id)
            _check_may_use(uow, principal, request.priority_class)
            self._store.admit()
            count = max(1, request.array_size)
            _check_living(uow, principal.account_id, count)
            return self._add(uow, principal, request, key, count, login)

        first, *others = await self._store.write(change, name="job.submit")
        return replace(first, refusal=await self._refusal(first.job)), *others

    def _add(
        self,
        uow: UnitOfWork,
        principal: Principal,
        request: JobRequest,
        key: str | None,
        count: int,
        login: RegistryLogin | None,
    ) -> tuple[JobView, ...]:
        ids = sorted(JobId(uow.mint("job")) for _ in range(count))  # so that lists have an array in its order
        asked = checked(request, ids[0], uow.now_wall_ns)
        self._clusters.check_waits(uow, principal.account_id, _first_cluster(asked, principal), count)
        if asked.backend is None:
            self._clusters.check_budget(uow, principal.account_id, _first_cluster(asked, principal), asked.budget)
        self._clusters.check_secrets(uow, principal.account_id, asked, login)
        if asked.volumes:
            volume_attachments.known(uow, principal.account_id, asked.volumes)
        sealed = logins.sealed(self._seal_key, login, ids[0])
        sealed_env = environments.sealed(self._seal_key, asked.env, ids[0])
        row = replace(asked, env=names_of(asked.env))
        for parent_id in asked.comes_after:
            self._load(uow, principal, parent_id, frozenset())
        found, asked_for = [], self._digest(request)
        parents = uow[JobRepository].all_of(list(asked.comes_after))
        uow.audit(principal.actor, "job.submit", ids[0], "asked for", {"jobs": str(count)})
        for index, job_id in enumerate(ids):
            job = Job(
                *(job_id, principal.account_id, ids[0], row, JobState.SUBMITTED, uow.now_wall_ns, index),
                login=sealed,
                sealed_env=sealed_env,
                spenders=principal.spenders,
            )
            job = replace(job, reason=decide.blocked_by(job, parents) or decide.waits_for(job, parents))
            told = f"{job.name} is submitted"
            job = self._transitions.add(uow, job, key, asked_for, said=told, actor=principal.actor, parents=parents)
            found.append(_view(uow, job))
        self._ask_elsewhere(uow, principal.account_id, asked, ids)
        if asked.route_id is not None:
            place = (asked.host_id, asked.tier)
            uow.publish(RouteFollowed(principal.account_id, ids[0], asked.route_id, *place))
        return tuple(found)

    def _ask_elsewhere(
        self, uow: UnitOfWork, account_id: AccountId, asked: JobRequest, job_ids: Sequence[JobId]
    ) -> None:
        """Raises Forbidden where the project may not buy there."""
        if asked.backend is not None:
            uow.publish(ElsewhereAsked(account_id, tuple(job_ids), asked.backend))

    def _digest(self, request: JobRequest) -> bytes:
        return self._seal_key.digest(digest(request))

    async def put_folder(
        self, principal: Principal, job_id: JobId, body: AsyncIterator[bytes], size_bytes: int | None = None
    ) -> int:
        """Keep the folder for a job that waits for it, and for all of its array; returns its bytes.

        size_bytes: how much is announced. Raises TooLarge where the account's quota has no space for it, DiskFull."""
        job = (await self.get_own(principal, job_id)).job
        self._check_waits(job)
        _, used_bytes = await self._store.read(lambda uow: taken(uow, job.account_id))
        with self._uploads.begin(job.account_id, used_bytes, size_bytes) as upload:
            size = await self._files.put_folder(job.group, upload.pieces(body))

        def change(uow: UnitOfWork) -> None:
            self._check_waits(self._load(uow, principal, job_id, frozenset()))
            for one in uow[JobRepository].of_group(job.group):
                if one.state is JobState.SUBMITTED and one.request.await_files:
                    self._transitions.keep(uow, replace(one, folder_bytes=size))

        await self._store.write(change, name="job.folder")
        return size

    def _check_waits(self, job: Job) -> None:
        if job.state is not JobState.SUBMITTED or not job.request.await_files or job.folder_bytes is not None:
            raise Conflict(f"This job does not wait for its files: it is {job.state.value}.", subject=job.job_id)

    async def get(self, principal: Principal, job_id: JobId) -> JobView:
        """One job, with the reasons why it finds no place, and the values of its environment for its renter; NotFound
        where there is none or it is somebody else's."""
        view = await self._store.read(lambda uow: _view(uow, self._load(uow, principal, job_id, _SEES_ALL)))
        view = replace(view, refusal=await self._refusal(view.job))
        if view.job.account_id != principal.account_id or Role.RENTER not in principal.roles:
            return view
        with suppress(InvalidInput):  # sealed to another key: its names are all that can be shown
            return replace(view, env=environments.opened(self._seal_key, view.job.sealed_env, view.job.group))
        return view

    async def _refusal(self, job: Job) -> Refusal | None:
        """Return why a job that waits for a place finds none; None where there is one, or it waits for other things."""
        if job.state not in PLACEABLE and (job.state is not JobState.SUBMITTED or job.request.comes_after):
            return None
        owner = principal_of(job, self._clock)
        with suppress(WindrowError):  # such as a volume that is gone: its next try says so
            return (await self._clusters.plan(owner, cluster_request(job))).refusal
        return None

    async def get_own(self, principal: Principal, job_id: JobId) -> JobView:
        """One job of one's own: what it printed and left is nobody else's business."""
        return await self._store.read(lambda uow: _view(uow, self._load(uow, principal, job_id, frozenset())))

    async def of_ids(self, principal: Principal, job_ids: Sequence[str]) -> Mapping[str, JobView]:
        """Those of these that are there and this account's, by id."""

        def read(uow: UnitOfWork) -> dict[str, JobView]:
            found = uow[JobRepository].all_of([JobId(one) for one in job_ids]).values()
            return {job.job_id: _view(uow, job) for job in found if job.account_id == principal.account_id}

        return await self._store.read(read)

    async def list(
        self, principal: Principal, before: str | None, limit: int, wanted: Mapping[str, str] | None = None
    ) -> Sequence[JobView]:
        """The latest first; of all accounts for operators and auditors. wanted: the values of fields of its request."""
        account_id = None if principal.roles & _SEES_ALL else principal.account_id

        def read(uow: UnitOfWork) -> Sequence[JobView]:
            def rows(last: Job | None, size: int) -> Sequence[Job]:
                return uow[JobRepository].page(account_id, before if last is None else last.job_id, size, wanted)

            return page_alone("job_view", rows, lambda job: _view(uow, job), limit)

        return await self._store.read(read)

    async def usual_ns(self, account_id: AccountId, name: str) -> int | None:
        """The running time of an account's jobs of this name: the middle of the last ones that succeeded; None where
        there is none. Attempts that failed before do not count."""

        def read(uow: UnitOfWork) -> list[int]:
            rows = uow[JobRepository].page(account_id, None, USUAL_JOBS, {"name": name})
            last = [one.attempts[-1] for one in rows if one.state is JobState.SUCCEEDED and one.attempts]
            return [one.ended_at_ns - one.started_at_ns for one in last if one.started_at_ns and one.ended_at_ns]

        found = await self._store.read(read)
        return int(median(found)) if found else None

    async def counts(self) -> Mapping[JobState, tuple[int, int]]:
        """Count the unfinished jobs of all accounts: for each state their number and the oldest one's creation time."""
        return await self._store.read(lambda uow: uow[JobRepository].counts())

    async def cancel(self, principal: Principal, job_id: JobId) -> JobView:
        """End it, whatever it is doing; what has ended stays as it is. What it wrote so far is brought in first."""

        def change(uow: UnitOfWork) -> JobView:
            job = self._load(uow, principal, job_id, _ENDS_ALL)
            by = "" if job.account_id == principal.account_id else f" by {AN_OPERATOR}"
            return _view(uow, self._end(uow, job, f"it was cancelled{by}", principal.actor))

        async with self.controller.placing:
            return await self._store.write(change, name="job.cancel")

    async def hold(self, principal: Principal, job_id: JobId) -> JobView:
        """Keep a job that waits from starting until it is released; by an operator, until an operator releases it.
        Raises Conflict where it does not wait."""

        def change(uow: UnitOfWork) -> JobView:
            job = self._load_waiting(uow, principal, job_id, _ENDS_ALL)
            is_own = job.account_id == principal.account_id
            by = (principal.user_name or principal.account_name)[:HELD_BY_MAX] if is_own else AN_OPERATOR
            if job.held_by in (by, AN_OPERATOR) or (job.held_by and is_own):
                return _view(uow, job)
            after = replace(job, held_by=by, reason=f"it is held by {by}")
            return self._kept(uow, after, principal.actor, "hold", "held", f"is held by {by}")

        async with self.controller.placing:
            return await self._store.write(change, name="job.hold")

    async def release(self, principal: Principal, job_id: JobId) -> JobView:
        """Let a job that was held start in its turn; it waits from now on. Raises Forbidden where an operator holds it,
        Conflict where it does not wait."""

        def change(uow: UnitOfWork) -> JobView:
            job = self._load_waiting(uow, principal, job_id, _ENDS_ALL)
            if not job.held_by:
                return _view(uow, job)
            if job.held_by == AN_OPERATOR and Role.OPERATOR not in principal.roles:
                raise Forbidden(f"This job is held by {AN_OPERATOR}. Only an operator can release it.", subject=job_id)
            after = replace(job, held_by="", reason="", released_ns=uow.now_wall_ns)
            return self._kept(uow, after, principal.actor, "release", "released", "is released")

        return await self._store.write(change, name="job.release")

    async def top(self, principal: Principal, job_id: JobId) -> JobView:
        """Let a job that waits come before all others of its project and class. Raises Conflict where it does not
        wait."""

        def change(uow: UnitOfWork) -> JobView:
            job = self._load_waiting(uow, principal, job_id, frozenset())
            if job.is_top:
                return _view(uow, job)
            said = "comes before all others of its project and class"
            return self._kept(uow, replace(job, is_top=True), principal.actor, "top", "topped", said)

        return await self._store.write(change, name="job.top")

    async def requeue(self, principal: Principal, job_id: JobId) -> JobView:
        """End the attempt of a job that runs and put it back into the queue, where it waits from now on; that uses
        up no retry. What waits stays as it is. Raises Conflict where its command has ended."""

        def change(uow: UnitOfWork) -> JobView:
            job = self._load(uow, principal, job_id, _ENDS_ALL)
            if _is_waiting(job):
                return _view(uow, job)
            if job.state not in (JobState.STARTING, JobState.RUNNING):
                said = f"This job is {job.state.value}: its command has ended."
                raise Conflict(f"{said} Run it once more: windrow job rerun {job_id}", subject=job_id)
            if sum(one.is_requeued for one in job.attempts) >= REQUEUES_MAX:
                raise Conflict(f"This job was put back into the queue {REQUEUES_MAX} times already.", subject=job_id)
            by = "" if job.account_id == principal.account_id else f" by {AN_OPERATOR}"
            attempts = (*job.attempts[:-1], replace(job.attempts[-1], is_requeued=True))
            job = replace(job, attempts=attempts, released_ns=uow.now_wall_ns)
            event = JobEvent.COLLECT if job.state is JobState.RUNNING else JobEvent.AGAIN
            found = decide.Answer(event, f"it was put back into the queue{by}", Verdict.AGAIN)
            uow.audit(principal.actor, "job.requeue", job_id, found.reason)
            return _view(uow, self._transitions.step(uow, job, found, principal.actor))

        return await self._store.write(change, name="job.requeue")

    def _kept(self, uow: UnitOfWork, job: Job, actor: str, verb: str, kind: str, said: str) -> JobView:
        """Write down what was changed of how a job waits."""
        job = self._transitions.keep(uow, job)
        uow.audit(actor, f"job.{verb}", job.job_id, "asked for")
        self._transitions.tell(uow, job, f"job.{kind}", f"{job.name} {said}", actor)
        return _view(uow, job)

    def end_all(self, uow: UnitOfWork, account_id: AccountId, reason: str, actor: str) -> None:
        """Cancel all jobs of an account that have not ended. Hold `controller.placing` meanwhile."""
        for job in uow[JobRepository].living():
            if job.account_id == account_id:
                self._end(uow, job, reason, actor)

    def _end(self, uow: UnitOfWork, job: Job, said: str, actor: str) -> Job:
        if job.state is JobState.RUNNING:
            return self._transitions.step(uow, job, decide.Answer(JobEvent.COLLECT, said, Verdict.CANCELLED), actor)
        if job.state is not JobState.CHECKPOINTING:
            return self._transitions.step(uow, job, decide.Answer(JobEvent.CANCEL, said), actor)
        if job.verdict is Verdict.AGAIN:
            return self._transitions.keep(uow, replace(job, verdict=Verdict.CANCELLED, reason=said))
        return job

    async def rerun(
        self, principal: Principal, job_id: JobId, key: str | None = None, env: Mapping[str, str] | None = None
    ) -> JobView:
        """The same once more, with the folder that was sent then. Raises Conflict while it has not ended, and where it
        was given a registry's login.

        env: the values of its environment, which went with its end; raises InvalidInput where one is missing."""
        env = env or {}

        def change(uow: UnitOfWork) -> JobView:
            known = uow[JobRepository].by_key(principal.account_id, key) if key is not None else None
            if known is not None:
                return _view(uow, known[0][0])
            job = self._load(uow, principal, job_id, frozenset())
            if job.state not in FINAL:
                raise Conflict(
                    f"The job has not ended: it is {job.state.value}. Wait until it has, or cancel it.", subject=job_id
                )
            if job.request.await_files and job.folder_bytes is None:
                raise Conflict("The folder of this job was never sent; submit the job again.", subject=job_id)
            if job.request.await_files and self._is_past(job):
                raise Conflict(
                    f"The folder of this job was kept for {KEPT_DAYS} days; submit the job again.", subject=job_id
                )
            if job.login is not None:
                raise Conflict(
                    "The registry login was deleted when the job ended; submit the job again with the login.",
                    subject=job_id,
                )
            _check_env(job, env)
            _check_may_use(uow, principal, job.request.priority_class)
            request = replace(job.request, after=(), after_any=(), after_failure=(), begin_ns=None, deadline_ns=None)
            checked(replace(request, env=dict(env)), job.job_id, uow.now_wall_ns)
            self._clusters.check_secrets(uow, job.account_id, job.request)
            check_may_begin(uow, job.account_id)
            self._store.admit()
            _check_living(uow, job.account_id, 1)
            request = replace(request, image=known_image(uow, job))
            first = _first_cluster(request, principal)
            self._clusters.check_waits(uow, job.account_id, first, 1)
            if request.backend is None:
                self._clusters.check_budget(uow, job.account_id, first, request.budget)
            fresh = Job(
                *(JobId(uow.mint("job")), job.account_id, job.group, request),
                *(JobState.SUBMITTED, uow.now_wall_ns, job.array_index),
                folder_bytes=job.folder_bytes,
                sealed_env=environments.sealed(self._seal_key, env, job.group),
                spenders=principal.spenders,
            )
            uow.audit(principal.actor, "job.submit", fresh.job_id, f"once more {job_id}")
            asked, told = self._digest(replace(job.request, env=env)), f"{fresh.name} is submitted once more"
            fresh = self._transitions.add(uow, fresh, key, asked, said=told, actor=principal.actor, parents={})
            self._ask_elsewhere(uow, fresh.account_id, request, (fresh.job_id,))
            return _view(uow, fresh)

        return await self._store.write(change, name="job.rerun")

    async def owner(self, principal: Principal, job_id: str) -> AccountId:
        """Return the owner of a job. Raises NotFound where it is not one's own."""
        return (await self.get_own(principal, JobId(job_id))).job.account_id

    def _is_past(self, job: Job) -> bool:
        return is_past(job.ended_at_ns, self._clock.wall_ns())

    async def _still_kept(self, principal: Principal, job_id: JobId) -> Job:
        """One's own, whose log and files are still kept. Raises NotFound."""
        job = (await self.get_own(principal, job_id)).job
        if self._is_past(job):
            said = f"The log and files of a job are kept for {KEPT_DAYS} days; it ended before that."
            raise NotFound(said, subject=job_id)
        return job

    # --- what it printed and left ----------------------------------------------------------------------------------

    async def log(self, principal: Principal, job_id: JobId, attempt: int | None = None) -> AsyncIterator[bytes]:
        """The log of an attempt, by default the last one, as far as it is known now."""
        job = await self._still_kept(principal, job_id)
        number = _attempt_of(job, attempt)
        return self._from(principal, job, number, 0)

    async def _from(self, principal: Principal, job: Job, number: int, offset: int) -> AsyncGenerator[bytes]:
        if not number:
            return
        async for piece in self._files.log(job.job_id, number, offset):
            offset += len(piece)
            yield piece
        tried = job.attempts[number - 1]
        if tried.ended_at_ns is None and job.state in (JobState.STARTING, JobState.RUNNING):
            try:
                data, _ = await self._files.inside.log(principal, tried.cluster_id, offset)
            except WindrowError:
                return  # what is kept is what can be had now
            yield data

    async def follow(self, principal: Principal, job_id: JobId) -> AsyncGenerator[bytes]:
        """Its log as it is written, attempt after attempt, until it has ended."""
        await self._still_kept(principal, job_id)
        return self._follow(principal, job_id)

    async def _follow(self, principal: Principal, job_id: JobId) -> AsyncGenerator[bytes]:
        number, offset, told = 1, 0, 0
        with self._followers.following(job_id) as follower:
            while True:
                job, before = (await self.get_own(principal, job_id)).job, offset
                is_over = len(job.attempts) > number or job.state in FINAL
                if len(job.attempts) >= number:
                    if told < number and (said := _moved_text(job, number)):
                        yield said
                    told = number
                    async for piece in self._from(principal, job, number, offset):
                        offset += len(piece)
                        yield piece
                if len(job.attempts) > number:
                    number, offset = number + 1, 0
                elif is_over:
                    return
                else:
                    await follower.wait(has_news=offset > before)

    async def artefacts(
        self, principal: Principal, job_id: JobId, attempt: int | None = None, offset: int = 0
    ) -> tuple[AsyncIterator[bytes], Attempt]:
        """The files that an attempt changed, by default the last one, as a tar from byte `offset` on. Raises Conflict
        before it has ended."""
        job = await self._still_kept(principal, job_id)
        number = _attempt_of(job, attempt)
        if not number or job.attempts[number - 1].files_bytes is None:
            raise Conflict(
                "No files of this job are kept: it has not ended, or its host did not hand them over.", subject=job_id
            )
        return await self._files.files(job_id, number, offset), job.attempts[number - 1]

    async def placed(
        self, principal: Principal, job_id: JobId, attempt: int | None = None
    ) -> tuple[int, Attempt | None, Sequence[Workload]]:
        """Return the place where an attempt ran, by default the last one: its number (0: there is none yet), the
        work of its cluster."""

        def look(uow: UnitOfWork) -> tuple[int, Attempt | None, Sequence[Workload]]:
            job = self._load(uow, principal, job_id, _SEES_ALL)
            number = _attempt_of(job, attempt)
            if not number:
                return 0, None, ()
            tried = job.attempts[number - 1]
            return number, tried, lookup.workloads_of(uow, tried.cluster_id)

        return await self._store.read(look)

    # --- inside ----------------------------------------------------------------------------------------------------

    def _load_waiting(self, uow: UnitOfWork, principal: Principal, job_id: JobId, others: frozenset[Role]) -> Job:
        job = self._load(uow, principal, job_id, others)
        if not _is_waiting(job):
            more = f" Put it back first: windrow job requeue {job_id}" if job.state is JobState.RUNNING else ""
            raise Conflict(f"This job does not wait: it is {job.state.value}.{more}", subject=job_id)
        return job

    def _load(self, uow: UnitOfWork, principal: Principal, job_id: JobId, others: frozenset[Role]) -> Job:
        """A job of one's own, or of anybody with one of these roles."""
        job = uow[JobRepository].get(job_id)
        if job is None or not (job.account_id == principal.account_id or principal.roles & others):
            raise NotFound("There is no such job, or it is not yours. List yours: windrow job ls", subject=job_id)
        return job


def _moved_text(job: Job, number: int) -> bytes:
    """The line of a log that is followed where an attempt is at another place than the last; empty: it is not."""
    before = HERE if number == 1 else job.attempts[number - 2].where
    where = job.attempts[number - 1].where
    return b"" if where == before else f"[windrow: now at {where}]\n".encode()


def _is_waiting(job: Job) -> bool:
    """True also while it is on its way back into the queue."""
    return job.state in WAITING or job.verdict is Verdict.AGAIN


def _check_may_use(uow: UnitOfWork, principal: Principal, priority_class: str) -> None:
    """Raises Forbidden where the project may not use this class."""
    if priority_class != CLASSES[PriorityClass.URGENT] or Role.OPERATOR in principal.roles:
        return
    if not may_use_class(uow, principal.account_id, PriorityClass.URGENT):
        raise Forbidden("This project may not use the class urgent. Ask an operator of this market.", subject="class")


def _check_env(job: Job, env: Mapping[str, str]) -> None:
    missing, more = job.request.env.keys() - env.keys(), env.keys() - job.request.env.keys()
    if missing:
        again = f"windrow job rerun {job.job_id} " + " ".join(f"--env {name}" for name in sorted(missing))
        raise InvalidInput(
            f"The values of its variables were deleted when it ended. Give them again: {again}", subject="env"
        )
    if more:
        raise InvalidInput(f"env must be what the job had; it had no {', '.join(sorted(more))}.", subject="env")


def _check_living(uow: UnitOfWork, account_id: AccountId, more: int) -> None:
    """Raises TooMany where an account would have too many jobs that have not ended."""
    living = uow[JobRepository].count_living(account_id)
    if living + more > LIVING_MAX:
        raise TooMany(
            f"This account has {living:,} jobs that have not ended; {more:,} more would be above {LIVING_MAX:,}. "
            "Wait until some have ended, or cancel some: windrow job cancel ID"
        )


def _first_cluster(asked: JobRequest, principal: Principal) -> ClusterRequest:
    """The cluster of the first attempt of a job that is only thought of."""
    return cluster_request(moving.preview(asked, principal.account_id))


def _view(uow: UnitOfWork, job: Job) -> JobView:
    costs = spent(uow, job)
    return JobView(job, Microcents(sum(costs)), costs)


def _attempt_of(job: Job, attempt: int | None) -> int:
    """Its number from 1, or 0 where there is none yet; raises NotFound."""
    if attempt is not None and not 1 <= attempt <= len(job.attempts):
        raise NotFound(f"This job has {len(job.attempts)} attempts.", subject=job.job_id)
    return len(job.attempts) if attempt is None else attempt


def owner_of(uow: UnitOfWork, job_id: JobId) -> AccountId | None:
    """Return the account that a job is of; None: there is no such job."""
    job = uow[JobRepository].get(job_id)
    return job.account_id if job is not None else None


def name_of(uow: UnitOfWork, job_id: JobId) -> str | None:
    """Return the name of a job; None: there is no such job."""
    job = uow[JobRepository].get(job_id)
    return job.name if job is not None else None
