"""Puts volumes in place before work starts, saves them while it runs, and once it has ended before its host cleans up.

    waiting_volumes ─▶ each volume's newest whole version to the host ─▶ settled: it starts
    running, exited ─▶ every few minutes, and when asked: what has changed is the next version
    stopping        ─▶ the host has ended the program and keeps its folders ─▶ last version ─▶ settled: it cleans up

What a version may be written over is compared in the database before its manifest makes it exist (`_begin`): a cluster
that was given up, and comes back when another has the volume, writes nothing.
"""

import asyncio
from collections.abc import Collection, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import structlog

from windrow_master.clusters import lookup
from windrow_master.clusters.model import Cluster, Use, Volume, Workload, WorkPhase
from windrow_master.clusters.service import ClusterService
from windrow_master.identity.model import Principal
from windrow_master.loops import GIVEN_UP, Boundary, when_due
from windrow_master.storage import volume_rules
from windrow_master.storage.artefacts import taken
from windrow_master.storage.transfer import CheckpointService, Restoring, Saving
from windrow_master.storage.uploads import QUOTA_BYTES
from windrow_master.storage.volume_repository import VolumeRepository
from windrow_master.storage.volume_rules import Due
from windrow_master.store.store import Store
from windrow_master.store.unit import DATABASE_FAULTS, UnitOfWork
from windrow_master.work_queue import WorkQueue
from windrow_proto.errors import Conflict, NotFound, WindrowError
from windrow_proto.ids import ClusterId, WorkloadId
from windrow_proto.ports import Clock
from windrow_proto.units import MIB, SECOND
from windrow_proto.volumes import INDEX_NAME

log = structlog.get_logger(__name__)

LOOK_NS: Final = SECOND
AGAIN_NS: Final = 2 * SECOND
"""Before what did not work for a moment is tried again."""
TELL_NS: Final = 2 * SECOND
"""Between two steps of progress of one volume: each is a row."""
WAIT_S: Final = 600.0
"""For a save that is under way, before one that was asked for."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A workload and the volumes that go with it."""

    workload: Workload
    cluster: Cluster
    volumes: tuple[tuple[Use, Volume], ...]

    @property
    def keeps(self) -> bool:
        return any(not one.read_only for one in self.cluster.request.volumes)

    @property
    def writes(self) -> list[Volume]:
        return [volume for use, volume in self.volumes if use.writes]


class VolumeController:
    """Used on the loop only. What is remembered between two looks is worth a save too many after a restart."""

    def __init__(self, store: Store, clock: Clock, clusters: ClusterService, mover: CheckpointService) -> None:
        self._store, self._clock, self._clusters, self._mover = store, clock, clusters, mover
        self._seen: dict[tuple[WorkloadId, str], str] = {}
        self._torn: dict[tuple[WorkloadId, str], int] = {}
        self._save_due_ns: dict[WorkloadId, int] = {}
        self._settled: set[tuple[WorkloadId, Due]] = set()
        """What is done of whom, where the host has yet to say so: put in place again, a volume would lose what the work
        has written since, and saved again it is gone from its host."""
        self._exited: set[WorkloadId] = set()
        self._locks: dict[WorkloadId, asyncio.Lock] = {}
        self._faults = Boundary("volumes", DATABASE_FAULTS)
        self._told_ns = 0
        self._group: asyncio.TaskGroup | None = None
        self._workloads: dict[ClusterId, set[WorkloadId]] = {}
        self._queue = WorkQueue[ClusterId](clock)
        self._is_listed = False
        clusters.on_step(self._queue.add)

    async def run(self) -> None:
        """Look after volumes, until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                await when_due(self.tick, self._queue, LOOK_NS, "volumes")
            finally:
                self._group = None

    async def tick(self) -> None:
        """Look at the clusters with volumes to which something has happened or is due."""
        if not self._is_listed:
            for use in await self._store.read(lambda uow: uow[VolumeRepository].uses()):
                self._queue.add(use.cluster_id)
            self._is_listed = True
        clusters = self._queue.take()
        if not clusters:
            return
        try:
            found, over = await self._store.read(partial(_look, cluster_ids=clusters))
            if over:
                await self._store.write(partial(self._let_go, over=over), name="volume.let_go")
        except BaseException:
            for cluster_id in clusters:
                self._queue.add(cluster_id)
            raise
        self._forget(set(clusters), found, over)
        for held in found:
            self._queue.add(held.cluster.cluster_id, self._clock.monotonic_ns() + volume_rules.SAVE_AGAIN_NS)
            is_done = False
            with self._faults.around(held.workload.workload_id, "look"):
                await self._look_at(held)
                is_done = True
            if not is_done:
                self._queue.add(held.cluster.cluster_id)

    async def _look_at(self, held: _Held) -> None:
        """Begin what is due of one workload."""
        workload_id, now_ns = held.workload.workload_id, self._clock.monotonic_ns()
        due_ns = self._save_due_ns.setdefault(workload_id, now_ns + volume_rules.SAVE_EVERY_NS)
        if held.workload.phase is WorkPhase.EXITED and workload_id not in self._exited:
            self._exited.add(workload_id)
            due_ns = self._save_due_ns[workload_id] = now_ns
        lock = self._locks.setdefault(workload_id, asyncio.Lock())
        what = volume_rules.due(held.workload, bool(held.writes), held.keeps, due_ns, now_ns)
        if what is None or (workload_id, what) in self._settled:
            if held.writes and due_ns > now_ns:
                self._queue.add(held.cluster.cluster_id, due_ns)
            return
        self._queue.add(held.cluster.cluster_id)  # until it is done it is in every look
        if lock.locked():
            return
        is_spent = self._faults.is_spent(workload_id)
        if is_spent and self._faults.skips(workload_id):
            return  # what is given up was said; tried again now and then
        await lock.acquire()  # free, and held from here on: the next look finds it so
        self._begin_task(held, lock, self._given_up(what, held) if is_spent else self._done(what, held))

    async def save_now(self, principal: Principal, cluster_id: ClusterId) -> list[Volume]:
        """Save what has changed in the volumes that a cluster of one's own writes; returns all of these."""
        await self._clusters.get_own(principal, cluster_id)
        all_held, _ = await self._store.read(partial(_look, cluster_ids=(cluster_id,)))
        found = [one for one in all_held if one.writes]
        if not found:
            raise Conflict("This machine writes no volume now.", subject=cluster_id)
        held = found[0]
        if why_not := volume_rules.why_not_saved(held.cluster, held.workload.phase):
            raise Conflict(why_not, subject=cluster_id)
        lock = self._locks.setdefault(held.workload.workload_id, asyncio.Lock())
        async with asyncio.timeout(WAIT_S):
            await lock.acquire()
        try:
            for volume in held.writes:
                await self._save(held, volume)
        finally:
            lock.release()
        return [one for volume in held.writes if (one := await self._row(volume)) is not None]

    # --- what is due ---

    def _begin_task(self, held: _Held, lock: asyncio.Lock, work: Coroutine[Any, Any, None]) -> None:
        assert self._group is not None, "it runs"
        self._group.create_task(self._guarded(held, lock, work), name=f"volumes {held.workload.workload_id}")

    async def _guarded(self, held: _Held, lock: asyncio.Lock, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
            self._faults.went_well(held.workload.workload_id, "work")
        except WindrowError as error:
            log.info("volumes_wait", workload_id=held.workload.workload_id, error=str(error))
            await self._clock.sleep_ns(AGAIN_NS)
        except Exception:  # the task's top level: the others go on
            self._faults.crashed(held.workload.workload_id, "work")
            await self._clock.sleep_ns(AGAIN_NS)
        finally:
            work.close()
            lock.release()
            self._queue.add(held.cluster.cluster_id)

    async def _done(self, what: Due, held: _Held) -> None:
        match what:
            case Due.PLACE:
                await self._place(held)
            case Due.SAVE:
                await self._save_all(held)
            case Due.LAST:
                await self._last(held)

    async def _given_up(self, what: Due, held: _Held) -> None:
        """Give up what crashed too often: the work fails, or its volumes say that they are not saved. Nothing is let
        go of."""
        if what is Due.PLACE:
            await self._broke(held, f"its volumes cannot be put in place: {GIVEN_UP}")
            return
        for volume in held.writes:
            failed = partial(self._failed, held=held, row=volume, why=GIVEN_UP)
            await self._store.write(failed, name="volume.problem")
        await self._done(what, held)  # once in a while: it may be over

    async def _place(self, held: _Held) -> None:
        workload = held.workload
        for use, volume in held.volumes:
            into = Restoring(volume.name, partial(self._tell, held, volume))
            try:
                got = await self._mover.restore(held.cluster.account_id, volume.volume_id, workload, into)
                if got.step is None and got.passed:
                    raise Conflict("; ".join(f"version {one.step}: {one.reason}" for one in got.passed))
            except WindrowError as error:
                if error.retryable or isinstance(error, NotFound):
                    raise
                await self._broke(held, f"volume {volume.name}: {error.detail or error.code}")
                return
            if use.writes:
                self._seen[workload.workload_id, volume.volume_id] = got.seen
            if got.passed:
                said = f"version {got.step} of {volume.name} is in place; a newer one is not whole any more"
                await self._store.write(partial(_tell_event, held=held, kind="passed", text=said), name="volume.passed")
        await self._mover.settle(held.cluster.account_id, workload)
        self._settled.add((workload.workload_id, Due.PLACE))
        self._save_due_ns[workload.workload_id] = self._clock.monotonic_ns() + volume_rules.SAVE_EVERY_NS

    async def _save_all(self, held: _Held) -> None:
        """Nothing here fails the work: what goes wrong is said of the volume, and tried again."""
        every_ns = volume_rules.SAVE_EVERY_NS
        for volume in held.writes:
            key = held.workload.workload_id, volume.volume_id
            try:
                await self._save(held, volume, takes_torn=self._torn.get(key, 0) >= volume_rules.TORN_TRIES)
                self._torn.pop(key, None)
            except WindrowError as error:
                self._torn[key] = self._torn.get(key, 0) + 1 if isinstance(error, Conflict) else 0
                every_ns = volume_rules.SAVE_AGAIN_NS
                log.info("volume_not_saved", volume_id=volume.volume_id, error=str(error))
        self._save_due_ns[held.workload.workload_id] = self._clock.monotonic_ns() + every_ns

    async def _last(self, held: _Held) -> None:
        is_begun = held.workload.running_ns > 0 or held.cluster.started_at_ns is not None
        for volume in held.writes if is_begun else ():
            try:
                await self._save(
                    held, volume, takes_torn=True
                )  # nothing writes to it any more, and nothing comes after
            except WindrowError as error:
                is_over = not error.retryable and not isinstance(error, NotFound)
                lost = partial(self._unsaved, held=held, row=volume, why=error.detail or error.code, is_over=is_over)
                await self._store.write(lost, name="volume.unsaved")
                if not is_over:
                    raise  # its host keeps the folders for a while
                log.warning("volume_not_saved", volume_id=volume.volume_id, error=str(error))
        await self._mover.settle(held.cluster.account_id, held.workload)
        self._settled.add((held.workload.workload_id, Due.LAST))

    # --- one volume ---

    async def _save(self, held: _Held, volume: Volume, *, takes_torn: bool = False) -> None:
        """Its folder as the next version, if it has changed. Raises what kept it from being stored, and says so."""
        row = await self._row(volume)
        if row is None:
            raise NotFound("The volume is gone.", subject=volume.name)
        key = held.workload.workload_id, volume.volume_id
        try:
            room = min(volume.max_bytes, await self._store.read(partial(_room, volume=row)))
            begin = partial(self._begin, held, row)
            saving = Saving(row.version, row.name, self._seen.get(key, ""), room, volume_rules.KEEP, begin, takes_torn)
            saved = await self._mover.save_volume(volume.account_id, volume.volume_id, held.workload, saving)
        except WindrowError as error:
            why = error.detail or error.code
            if row.problem != f"not saved: {why}" and not error.retryable:
                await self._store.write(partial(self._failed, held=held, row=row, why=why), name="volume.problem")
            raise
        if saved is None:
            return
        manifest, self._seen[key] = saved.manifest, saved.seen
        problem = volume_rules.part_words(saved.left, saved.left_count, saved.torn)
        files = {part.name for part in manifest.parts} - {INDEX_NAME}
        size = sum(part.size_bytes for part in manifest.parts if part.name != INDEX_NAME)

        def keep(uow: UnitOfWork) -> None:
            now = uow[VolumeRepository].by_id(volume.volume_id)
            if now is not None:
                told = {"size_bytes": size, "files": len(files), "saved_at_ns": manifest.made_ns, "problem": problem}
                uow[VolumeRepository].save(replace(now, **told))  # type: ignore[arg-type]
                if problem and problem != now.problem:
                    _tell_event(uow, held, "saved_in_part", f"Version {manifest.step} of {now.name}: {problem}")

        await self._store.write(keep, name="volume.saved")

    async def _begin(self, held: _Held, row: Volume, step: int) -> None:
        """Claim the version for this cluster. Raises Conflict where it is not the writer, or another was begun."""

        def change(uow: UnitOfWork) -> None:
            is_writer = any(one.writes and one.cluster_id == held.cluster.cluster_id for one in _uses(uow, row))
            if (
                step != row.version + 1
                or not is_writer
                or not uow[VolumeRepository].advance(row.volume_id, row.version)
            ):
                raise Conflict(f"The volume {row.name} has another writer, or a newer version, by now.")

        await self._store.write(change, name="volume.begin")

    def _failed(self, uow: UnitOfWork, held: _Held, row: Volume, why: str) -> None:
        now = uow[VolumeRepository].by_id(row.volume_id)
        if now is not None:
            uow[VolumeRepository].save(replace(now, problem=f"not saved: {why}"[: volume_rules.PROBLEM_CHARS_MAX]))
            _tell_event(uow, held, "not_saved", f"The volume {row.name} was not saved: {why}")

    def _unsaved(self, uow: UnitOfWork, held: _Held, row: Volume, why: str, *, is_over: bool) -> None:
        """The last save came to nothing; is_over: its host removes the folder now, else while it tries again."""
        now = uow[VolumeRepository].by_id(row.volume_id)
        if now is None:
            return
        kept = f"version {now.version} is what is kept" if now.saved_at_ns is not None else "nothing of it is kept"
        ends = "was not saved" if is_over else "is not saved yet"
        said = f"the end of {held.cluster.name} {ends}: {why}; {kept}"[: volume_rules.PROBLEM_CHARS_MAX]
        if said != now.problem:
            uow[VolumeRepository].save(replace(now, problem=said))
            _tell_event(uow, held, "lost" if is_over else "not_saved", f"Volume {now.name}: {said}")

    async def _broke(self, held: _Held, why: str) -> None:
        workload_id = held.workload.workload_id
        await self._store.write(lambda uow: self._clusters.lifecycle.broke(uow, workload_id, why), name="volume.broke")

    async def _tell(self, held: _Held, volume: Volume, done: int, total: int) -> None:
        """How much has come, as a step of the cluster's creation."""
        now_ns = self._clock.monotonic_ns()
        if done < total and now_ns - self._told_ns < TELL_NS:
            return
        self._told_ns = now_ns
        said = f"volume {volume.name}: fetching, {done // MIB} of {total // MIB} MiB"
        share = 1000 * done // total if total else 1000
        await self._store.write(
            lambda uow: self._clusters.lifecycle.progress(uow, held.workload, "volumes", share, said),
            name="volume.progress",
        )

    async def _row(self, volume: Volume) -> Volume | None:
        return await self._store.read(lambda uow: uow[VolumeRepository].by_id(volume.volume_id))

    def _let_go(self, uow: UnitOfWork, over: list[Use]) -> None:
        """Forget uses that are over still: each look reads all that there are."""
        for use in over:
            with self._faults.around(use.cluster_id, "let_go"), uow.attempt():
                cluster = lookup.find(uow, use.cluster_id)
                is_held = lookup.holds_slots(uow, use.cluster_id)
                if cluster is None or (volume_rules.is_over(cluster, ()) and not is_held):
                    uow[VolumeRepository].let_go(use)

    def _forget(self, clusters: Collection[ClusterId], found: Sequence[_Held], over: Sequence[Use]) -> None:
        """Keep nothing in memory of what is over of these clusters."""
        known = {held.workload.workload_id for held in found}
        for cluster_id in clusters:
            for workload_id in self._workloads.pop(cluster_id, set()) - known:
                lock = self._locks.get(workload_id)
                if lock is not None and lock.locked():
                    self._workloads.setdefault(cluster_id, set()).add(workload_id)  # until what is under way has ended
                    continue
                self._locks.pop(workload_id, None)
                self._faults.forget(workload_id)
                self._save_due_ns.pop(workload_id, None)
                self._exited.discard(workload_id)
                self._settled -= {(workload_id, Due.PLACE), (workload_id, Due.LAST)}
                self._seen = {key: seen for key, seen in self._seen.items() if key[0] != workload_id}
                self._torn = {key: count for key, count in self._torn.items() if key[0] != workload_id}
        for held in found:
            self._workloads.setdefault(held.cluster.cluster_id, set()).add(held.workload.workload_id)
        for use in over:
            self._queue.add(use.cluster_id)  # until it is let go of


def _look(uow: UnitOfWork, cluster_ids: Sequence[ClusterId]) -> tuple[list[_Held], list[Use]]:
    """The workloads of these clusters that may still need something of their volumes, and the uses that nobody needs
    any more."""
    found, over = list[_Held](), list[Use]()
    for cluster_id in cluster_ids:
        uses = uow[VolumeRepository].uses_of_cluster(cluster_id)
        if not uses:
            continue
        cluster, held = lookup.held_of(uow, cluster_id)
        if cluster is None or not held:
            over += uses if cluster is None or volume_rules.is_over(cluster, ()) else ()
            continue
        kept = [(use, uow[VolumeRepository].by_id(use.volume_id)) for use in uses]
        volumes = tuple((use, volume) for use, volume in kept if volume is not None)
        found += [_Held(workload, cluster, volumes) for workload in held]
    return found, over


def _uses(uow: UnitOfWork, volume: Volume) -> list[Use]:
    return list(uow[VolumeRepository].uses(volume.volume_id))


def _room(uow: UnitOfWork, volume: Volume) -> int:
    """Return the bytes of the account's quota that its next version may take: that of the version before it is free
    again."""
    return max(0, QUOTA_BYTES - taken(uow, volume.account_id)[1] + volume.size_bytes)


def _tell_event(uow: UnitOfWork, held: _Held, kind: str, text: str) -> None:
    subjects = (held.cluster.cluster_id, held.cluster.account_id, held.workload.host_id)
    uow.event(f"volume.{kind}", subjects, text, actor="master")
