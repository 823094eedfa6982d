"""Routes of volumes: named folders that outlive clusters and jobs."""

from typing import Annotated, Any, Final

from fastapi import Path, Response
from pydantic import Field

from windrow_master.api import answers
from windrow_master.api.auth import Reach
from windrow_master.api.bodies import Body
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.paging import Cursor, Limit, page_of
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_master.identity.object_shares import Level
from windrow_master.storage.volume_rules import VOLUME_BYTES_MAX, VOLUMES_MAX
from windrow_master.storage.volumes import VolumeView
from windrow_proto.ids import ClusterId

route = Routes("volumes")

NAME_FORM: Final = r"^[a-z0-9][a-z0-9.-]{0,39}$"
NAME_WORDS: Final = "At most 40 small letters, digits, dots and dashes; the first a letter or digit"
Name = Annotated[str, Path(pattern=NAME_FORM, description=NAME_WORDS)]


class VolumeBody(Body):
    """A volume to make."""

    name: Annotated[str, Field(pattern=NAME_FORM, description=NAME_WORDS)]
    max_bytes: Annotated[int, Field(gt=0, le=VOLUME_BYTES_MAX, description="Of one version")] = VOLUME_BYTES_MAX


class VolumeUseOut(answers.Out):
    """A cluster that has it."""

    cluster_id: str
    cluster_name: str
    phase: str
    writes: Annotated[bool, Field(description="Whether it is the one that writes it")]


class KeptVolumeOut(answers.Out):
    """The versions of a volume that are kept."""

    id: Annotated[str, answers.Read("volume_id")]
    name: str
    version: Annotated[int, Field(description="The newest that was begun; 0: none")]
    size_bytes: Annotated[int, Field(description="Of its newest whole version")]
    files: int
    max_bytes: int
    saved_at: answers.Time | None
    created_at: answers.Time
    problem: Annotated[str | None, Field(description="Why the last save came to nothing, or what it left out")]


class VolumeOut(KeptVolumeOut):
    """A volume, and who has it now."""

    used_by: list[VolumeUseOut]


class SavedVolumesOut(answers.Out):
    """The volumes that a cluster writes, as they are kept now."""

    volumes: list[KeptVolumeOut]


def volume_json(view: VolumeView) -> dict[str, Any]:
    """As the API shows it."""
    users = [
        {"cluster_id": cluster.cluster_id, "cluster_name": cluster.name, "phase": cluster.phase, "writes": use.writes}
        for use, cluster in view.users
    ]
    return VolumeOut.of(view.volume, used_by=users)


@route.get("/volumes", may=Permission.RENT, answer=answers.Page[VolumeOut])
async def volumes(services: Serving, principal: Asking, limit: Limit = VOLUMES_MAX, cursor: Cursor = None) -> Any:
    """The volumes of the account, by name."""
    return page_of(await services.volumes.list(principal), limit, cursor, volume_json, lambda one: one.volume.name)


@route.post("/volumes", may=Permission.RENT, status_code=201, answer=VolumeOut)
async def create_volume(services: Serving, principal: Asking, body: VolumeBody) -> Any:
    """Make an empty one. It goes with `volumes` of a cluster's or a job's request."""
    return volume_json(await services.volumes.create(principal, body.name, body.max_bytes))


@route.get("/volumes/{name}", may=Permission.RENT, reach=Reach.OWN, answer=VolumeOut)
async def volume(services: Serving, principal: Asking, name: Name) -> Any:
    """One of them."""
    return volume_json(await services.volumes.get(principal, name))


@route.delete("/volumes/{name}", may=Permission.RENT, reach=Reach.OWN, status_code=204)
async def delete_volume(services: Serving, principal: Asking, name: Name) -> Response:
    """Delete it with all of its versions; refused while a cluster has it."""
    await services.volumes.delete(principal, name)
    return Response(status_code=204)


@route.post(
    "/clusters/{cluster_id}/volumes/save",
    may=Permission.RENT,
    reach=Reach.OWN,
    shared=Level.MANAGE,
    answer=SavedVolumesOut,
)
async def save_volumes(services: Serving, principal: Asking, cluster_id: str) -> Any:
    """Save now what has changed in the volumes that this cluster writes; the answer comes when it is stored."""
    saved = await services.volume_controller.save_now(principal, ClusterId(cluster_id))
    return {"volumes": [KeptVolumeOut.of(one) for one in saved]}
