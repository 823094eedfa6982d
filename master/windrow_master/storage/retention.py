"""Deletes stored files each hour that nobody needs any more: checkpoints, versions of volumes, and files of packages
above.

over, or without a row ─▶ all of its objects, once none is younger than a time
else                   ─▶ what is outdated, and parts that no manifest names

An owner's row is there before its first object. So one that has objects and, asked for after them, no row is deleted,
and nothing can be saved of it any more.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog

from windrow_master.clusters import lookup, states
from windrow_master.identity.projects import purge_past
from windrow_master.loops import again, ends_alone
from windrow_master.storage import checkpoints, volume_rules
from windrow_master.storage.artefact_repository import ArtefactRepository
from windrow_master.storage.artefacts import SWEEP_NS, ArtefactService
from windrow_master.storage.retention_rules import KEPT_NS, Stay, of_ended
from windrow_master.storage.volume_repository import VolumeRepository
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import AccountId, ClusterId
from windrow_proto.ports import Clock

log = structlog.get_logger(__name__)


def _of_volume(owner: str, uow: UnitOfWork) -> Stay | None:
    """Nothing of one that is deleted but what may be of a save under way, or of a database restored from yesterday."""
    return Stay(0 if uow[VolumeRepository].by_id(owner) is None else volume_rules.KEEP)


def _of_cluster(owner: str, uow: UnitOfWork) -> Stay | None:
    cluster = lookup.find(uow, ClusterId(owner))
    if cluster is None:
        return Stay(0, KEPT_NS)
    return of_ended(cluster.ended_at_ns if cluster.phase in states.FINAL else None, uow.now_wall_ns)


def forget_account(uow: UnitOfWork, account_id: AccountId) -> None:
    """Let go of the volumes and artefacts of an account; the sweeps delete their objects."""
    for volume in uow[VolumeRepository].of_account(account_id):
        uow[VolumeRepository].remove(volume.volume_id)
    uow[ArtefactRepository].expire_all(account_id, uow.now_wall_ns)


Stays = Callable[[str, UnitOfWork], Stay | None]
"""Decides which checkpoints or versions stay of the owner of this id; None: they are as they should be."""
OWNERS: Final[Mapping[str, Stays]] = {"volume": _of_volume, "cluster": _of_cluster}
"""By how their ids begin."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that a package keeps beside checkpoints. kind: how its owners' ids begin; root: what its keys begin
    with; is_past: whether nobody wants any more what is kept of the owner of this id."""

    kind: str
    root: str
    is_past: Callable[[str, UnitOfWork], bool]


class RetentionService:
    """Looks after the store by itself."""

    def __init__(
        self,
        store: Store,
        artefacts: ArtefactService,
        clock: Clock,
        owners: Mapping[str, Stays],
        folders: Sequence[Folder],
    ) -> None:
        """owners, folders: of the packages above."""
        self._store, self._artefacts, self._clock = store, artefacts, clock
        self._owners, self._folders = {**OWNERS, **owners}, folders

    async def run(self) -> None:
        """Sweep, now and every hour, until cancelled."""
        await again(self.sweep, SWEEP_NS, self._clock, "retention")

    async def sweep(self) -> int:
        """Remove what nobody will ask for again; returns how many objects, but for those of outdated checkpoints. What
        projects kept that were deleted a while ago is first."""
        with ends_alone("project_purge"):
            await self._store.write(purge_past, name="project.purge")
        objects, count = self._artefacts.objects, 0
        for kind, stays in self._owners.items():
            async for owner in checkpoints.owners(objects, kind):
                with ends_alone("owner_sweep", owner=owner):
                    stay, now_ns = await self._store.read(partial(stays, owner)), self._clock.wall_ns()
                    if stay is not None and stay.keep:
                        count += len(await checkpoints.tidy(objects, owner, now_ns, stay.keep))
                    elif stay is not None:
                        count += await checkpoints.drop(objects, owner, now_ns - stay.young_ns)
        for folder in self._folders:
            async for owner in checkpoints.owners(objects, folder.kind, folder.root):
                with ends_alone("owner_sweep", owner=owner):
                    if await self._store.read(partial(folder.is_past, owner)):
                        count += await checkpoints.drop(objects, owner, self._clock.wall_ns() - KEPT_NS, folder.root)
        return count
