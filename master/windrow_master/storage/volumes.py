"""Makes, lists and deletes the volumes of accounts; one is deleted with all of its versions while no cluster has it.

delete row ──▶ manifests ──▶ parts     What a crash, or a save that was broken off, leaves in the store the hourly sweep
                                       takes away (retention.py).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from windrow_master.clusters.model import Cluster, Use, Volume
from windrow_master.identity.model import Principal
from windrow_master.storage import checkpoints, volume_attachments, volume_rules
from windrow_master.storage.artefacts import ArtefactService
from windrow_master.storage.volume_repository import VolumeRepository
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, InvalidInput, NotFound, TooMany, WindrowError
from windrow_proto.ids import NO_ID, resembles_id
from windrow_proto.volumes import volume_name

log = structlog.get_logger(__name__)

KIND: Final = "volume"
"""How their ids begin."""
DROP_S: Final = 10.0
"""For objects of a deleted one, before whoever deleted it has his answer: the sweep takes the others."""


@dataclass(frozen=True, slots=True)
class VolumeView:
    """A volume and the clusters that have it now."""

    volume: Volume
    users: tuple[tuple[Use, Cluster], ...] = ()


class VolumeService:
    """Volumes of all accounts."""

    def __init__(self, store: Store, artefacts: ArtefactService) -> None:
        self._store, self._artefacts = store, artefacts

    async def create(
        self, principal: Principal, name: str, max_bytes: int = volume_rules.VOLUME_BYTES_MAX
    ) -> VolumeView:
        """Make an empty one. Raises InvalidInput, Conflict where there is one of this name, TooMany."""
        if resembles_id(volume_name(name)):
            raise InvalidInput(f"A volume's name is {NO_ID}.", subject="name")
        volume_rules.check_size(max_bytes)

        def change(uow: UnitOfWork) -> VolumeView:
            self._store.admit()
            known = uow[VolumeRepository].of_account(principal.account_id)
            if any(one.name == name for one in known):
                raise Conflict(f"There already is a volume {name}. Choose another name.", subject=name)
            if len(known) >= volume_rules.VOLUMES_MAX:
                raise TooMany(f"This account has {volume_rules.VOLUMES_MAX} volumes. Delete some: windrow volume rm")
            made = Volume(uow.mint(KIND), principal.account_id, name, max_bytes, uow.now_wall_ns)
            uow[VolumeRepository].add(made)
            uow.audit(principal.actor, "volume.create", made.volume_id, "asked for", {"name": name})
            return VolumeView(made)

        return await self._store.write(change, name="volume.create")

    async def list(self, principal: Principal) -> Sequence[VolumeView]:
        """All of the account, by name."""

        def read(uow: UnitOfWork) -> Sequence[VolumeView]:
            return [_view(uow, one) for one in uow[VolumeRepository].of_account(principal.account_id)]

        return await self._store.read(read)

    async def get(self, principal: Principal, name: str) -> VolumeView:
        """One of one's own. Raises NotFound."""
        return await self._store.read(lambda uow: _view(uow, _load(uow, principal, name)))

    async def delete(self, principal: Principal, name: str) -> None:
        """Forget it and all of its versions. Raises NotFound, and Conflict while a cluster has it."""

        def change(uow: UnitOfWork) -> Volume:
            volume = _load(uow, principal, name)
            users = volume_attachments.users(uow, volume.volume_id)
            if users:
                said = ", ".join(f"{cluster.name} ({cluster.cluster_id})" for _, cluster in users)
                raise Conflict(f"The volume {name} is in use by {said}. End that first.", subject=volume.volume_id)
            uow[VolumeRepository].remove(volume.volume_id)
            uow.audit(principal.actor, "volume.delete", volume.volume_id, "asked for", {"name": name})
            return volume

        volume = await self._store.write(change, name="volume.delete")
        try:
            async with asyncio.timeout(DROP_S):
                await checkpoints.drop(self._artefacts.objects, volume.volume_id)
        except TimeoutError:
            log.info("volume_left_to_the_sweep", volume_id=volume.volume_id)
        except WindrowError as error:
            log.warning("volume_not_swept", volume_id=volume.volume_id, detail=error.detail)


def _load(uow: UnitOfWork, principal: Principal, name: str) -> Volume:
    found = uow[VolumeRepository].get(principal.account_id, name)
    if found is None:
        raise NotFound("There is no such volume, or it is not yours. List yours: windrow volume ls", subject=name[:64])
    return found


def _view(uow: UnitOfWork, volume: Volume) -> VolumeView:
    return VolumeView(volume, tuple(volume_attachments.users(uow, volume.volume_id)))
