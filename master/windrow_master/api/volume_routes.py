"""Routes of volumes: named folders that outlive clusters and jobs."""

from typing import Annotated, Any

from fastapi import Path, Response
from pydantic import Field

from windrow_master.api import out
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.idempotency import make_router
from windrow_master.api.identity_routes import Body
from windrow_master.api.paging import time_or_none
from windrow_master.clusters.model import Volume
from windrow_master.storage.volume_rules import VOLUME_BYTES_MAX, VOLUMES_MAX
from windrow_master.storage.volumes import VolumeView
from windrow_proto.ids import ClusterId
from windrow_proto.units import time_text

router = make_router("volumes")

Name = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9.-]{0,39}$")]


class VolumeBody(Body):
    """What to make."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,39}$")]
    max_bytes: Annotated[int, Field(gt=0, le=VOLUME_BYTES_MAX, description="Of one version")] = VOLUME_BYTES_MAX


class VolumeUseOut(out.Out):
    """A cluster that has it."""

    cluster_id: str
    cluster_name: str
    phase: str
    writes: Annotated[bool, Field(description="Whether it is the one that writes it")]


class KeptVolumeOut(out.Out):
    """What is kept of a volume."""

    id: str
    name: str
    version: Annotated[int, Field(description="The newest that was begun; 0: none")]
    size_bytes: Annotated[int, Field(description="Of its newest whole version")]
    files: int
    max_bytes: int
    saved_at: out.Time | None
    created_at: out.Time
    problem: Annotated[str | None, Field(description="Why the last save came to nothing, or what it left out")]


class VolumeOut(KeptVolumeOut):
    """A volume, and who has it now."""

    used_by: list[VolumeUseOut]


class VolumesOut(out.Out):
    """All of the account, by name."""

    items: Annotated[list[VolumeOut], Field(max_length=VOLUMES_MAX)]
    next_cursor: None


class SavedVolumesOut(out.Out):
    """The volumes that a cluster writes, as they are kept now."""

    volumes: list[KeptVolumeOut]


def _kept_json(volume: Volume) -> dict[str, Any]:
    return {
        "id": volume.volume_id,
        "name": volume.name,
        "version": volume.version,
        "size_bytes": volume.size_bytes,
        "files": volume.files,
        "max_bytes": volume.max_bytes,
        "saved_at": time_or_none(volume.saved_at_ns),
        "created_at": time_text(volume.created_at_ns),
        "problem": volume.problem or None,
    }


def volume_json(view: VolumeView) -> dict[str, Any]:
    """As the API shows it."""
    users = [
        {
            "cluster_id": cluster.cluster_id,
            "cluster_name": cluster.name,
            "phase": cluster.phase.value,
            "writes": use.writes,
        }
        for use, cluster in view.users
    ]
    return _kept_json(view.volume) | {"used_by": users}


@router.get("/volumes", responses=out.described(VolumesOut))
async def volumes(services: Serving, principal: Asking) -> Any:
    """All volumes of the account."""
    return {"items": [volume_json(one) for one in await services.volumes.list(principal)], "next_cursor": None}


@router.post("/volumes", status_code=201, responses=out.described(VolumeOut, 201))
async def create_volume(services: Serving, principal: Asking, body: VolumeBody) -> Any:
    """Make an empty one. It goes with `volumes` of a cluster's or a job's request."""
    return volume_json(await services.volumes.create(principal, body.name, body.max_bytes))


@router.get("/volumes/{name}", responses=out.described(VolumeOut))
async def volume(services: Serving, principal: Asking, name: Name) -> Any:
    """One of them."""
    return volume_json(await services.volumes.get(principal, name))


@router.delete("/volumes/{name}", status_code=204)
async def delete_volume(services: Serving, principal: Asking, name: Name) -> Response:
    """Delete it with all of its versions; refused while a cluster has it."""
    await services.volumes.delete(principal, name)
    return Response(status_code=204)


@router.post("/clusters/{cluster_id}/volumes/save", responses=out.described(SavedVolumesOut))
async def save_volumes(services: Serving, principal: Asking, cluster_id: str) -> Any:
    """Save now what has changed in the volumes that this cluster writes; the answer comes when it is stored."""
    saved = await services.volume_course.save_now(principal, ClusterId(cluster_id))
    return {"volumes": [_kept_json(one) for one in saved]}
