"""The hourly sweep of what work has left in the store: checkpoints, versions of volumes, and what is kept of jobs.

over, or without a row ─▶ all of its objects, once none is younger than a time
else                   ─▶ what is outdated, and parts that no manifest names

An owner's row is there before its first object. So one that has objects and, asked for after them, no row is deleted,
and nothing can be saved of it any more.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import structlog

from windrow_master.clusters import states
from windrow_master.clusters.repository import ClusterRepository
from windrow_master.jobs.files import ROOT as JOBS
from windrow_master.jobs.model import JobId
from windrow_master.jobs.repository import JobRepository
from windrow_master.loops import again, ends_alone
from windrow_master.storage import checkpoints, volume_rules
from windrow_master.storage.artefacts import SWEEP_NS, ArtefactService
from windrow_master.storage.retention_rules import KEPT_NS, Stay, is_past, of_ended
from windrow_master.storage.volume_repository import VolumeRepository
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import ClusterId
from windrow_proto.ports import Clock

log = structlog.get_logger(__name__)


def _of_volume(owner: str, uow: UnitOfWork) -> Stay | None:
    """Nothing of one that is deleted but what may be of a save under way, or of a database restored from yesterday."""
    return Stay(0 if uow[VolumeRepository].by_id(owner) is None else volume_rules.KEEP)


def _of_job(owner: str, uow: UnitOfWork) -> Stay | None:
    job = uow[JobRepository].get(JobId(owner))
    return Stay(0, KEPT_NS) if job is None else of_ended(job.ended_at_ns, uow.now_wall_ns)


def _of_cluster(owner: str, uow: UnitOfWork) -> Stay | None:
    cluster = uow[ClusterRepository].get(ClusterId(owner))
    if cluster is None:
        return Stay(0, KEPT_NS)
    return of_ended(cluster.ended_at_ns if cluster.phase in states.FINAL else None, uow.now_wall_ns)


def _is_job_past(owner: str, uow: UnitOfWork) -> bool:
    """Neither it nor, of its folder, any job that was submitted with it or run again from it is wanted any more."""
    jobs = [uow[JobRepository].get(JobId(owner)), *uow[JobRepository].of_group(owner)]
    return all(job is None or is_past(job.ended_at_ns, uow.now_wall_ns) for job in jobs)


OWNERS: Final[Mapping[str, Callable[[str, UnitOfWork], Stay | None]]] = {
    "volume": _of_volume,
    "job": _of_job,
    "cluster": _of_cluster,
}
"""Of checkpoints and versions, by how their ids begin."""


class RetentionService:
    """Looks after the store by itself."""

    def __init__(self, store: Store, artefacts: ArtefactService, clock: Clock) -> None:
        self._store, self._artefacts, self._clock = store, artefacts, clock

    async def run(self) -> None:
        """Sweep, now and every hour, until cancelled."""
        await again(self.sweep, SWEEP_NS, self._clock, "retention")

    async def sweep(self) -> int:
        """Remove what nobody will ask for again; returns how many objects, but for those of outdated checkpoints."""
        objects, count = self._artefacts.objects, 0
        for kind, stays in OWNERS.items():
            async for owner in checkpoints.owners(objects, kind):
                with ends_alone("owner_sweep", owner=owner):
                    stay, now_ns = await self._store.read(partial(stays, owner)), self._clock.wall_ns()
                    if stay is not None and stay.keep:
                        count += len(await checkpoints.tidy(objects, owner, now_ns, stay.keep))
                    elif stay is not None:
                        count += await checkpoints.drop(objects, owner, now_ns - stay.young_ns)
        async for owner in checkpoints.owners(objects, "job", JOBS):
            with ends_alone("owner_sweep", owner=owner):
                if await self._store.read(partial(_is_job_past, owner)):
                    count += await checkpoints.drop(objects, owner, self._clock.wall_ns() - KEPT_NS, JOBS)
        return count
