"""Gives volumes to clusters, in the unit of work that creates or starts them. One of them at a time writes a volume.

A claim ends with its cluster and never by itself: nothing but rows is read to know who has a volume, so that it does
not matter in which way a cluster ended.
"""

from collections.abc import Sequence
from dataclasses import replace

from windrow_master.clusters import lookup
from windrow_master.clusters.messages import VolumesAsked, VolumesTaken
from windrow_master.clusters.model import Cluster, Use, Volume
from windrow_master.storage import volume_rules
from windrow_master.storage.volume_repository import VolumeRepository
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, InvalidInput
from windrow_proto.ids import AccountId
from windrow_proto.volumes import Mount


def on_asked(uow: UnitOfWork, fact: VolumesAsked) -> None:
    """A request names volumes."""
    _check(uow, fact.account_id, fact.mounts)


def _check(uow: UnitOfWork, account_id: AccountId, mounts: Sequence[Mount]) -> list[Volume]:
    """The account's volumes of these names. Raises InvalidInput for one that is not there, Conflict for one that is to
    be written and that another cluster writes."""
    found = known(uow, account_id, mounts)
    for mount, volume in zip(mounts, found, strict=True):
        writer = None if mount.read_only else writer_of(uow, volume.volume_id)
        if writer is not None:
            raise Conflict(volume_rules.held_by(mount.name, mount.path, writer), subject=volume.volume_id)
    return found


def known(uow: UnitOfWork, account_id: AccountId, mounts: Sequence[Mount]) -> list[Volume]:
    """The account's volumes of these names. Raises InvalidInput for one that is not there."""
    found = []
    for mount in mounts:
        volume = uow[VolumeRepository].get(account_id, mount.name)
        if volume is None:
            said = f"There is no volume {mount.name}. Make it first: windrow volume create {mount.name}"
            raise InvalidInput(said, subject="volumes")
        found.append(volume)
    return found


def on_taken(uow: UnitOfWork, fact: VolumesTaken) -> None:
    """Write down that this cluster has them."""
    cluster_id = fact.cluster_id
    for mount, volume in zip(fact.mounts, _check(uow, fact.account_id, fact.mounts), strict=True):
        living = {use.cluster_id for use, _ in users(uow, volume.volume_id)}
        for use in uow[VolumeRepository].uses(volume.volume_id):
            if use.cluster_id not in living:
                uow[VolumeRepository].let_go(use)
                is_held = lookup.holds_slots(uow, use.cluster_id)
                if is_held and use.cluster_id != cluster_id:
                    # Its lost host may come back with it, and waits to be told that nothing of it is saved.
                    uow[VolumeRepository].use(replace(use, writes=False))
        uow[VolumeRepository].use(Use(volume.volume_id, cluster_id, not mount.read_only))


def users(uow: UnitOfWork, volume_id: str) -> list[tuple[Use, Cluster]]:
    """The clusters that have a volume and are not over."""
    found = []
    for use in uow[VolumeRepository].uses(volume_id):
        cluster = lookup.find(uow, use.cluster_id)
        if cluster is not None and not volume_rules.is_over(cluster, lookup.workloads_of(uow, use.cluster_id)):
            found.append((use, cluster))
    return found


def writer_of(uow: UnitOfWork, volume_id: str) -> Cluster | None:
    """The cluster that writes it."""
    return next((cluster for use, cluster in users(uow, volume_id) if use.writes), None)
