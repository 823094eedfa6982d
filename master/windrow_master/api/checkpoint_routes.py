"""Routes of checkpoints: list them, save one now, restore one from another cluster."""

from typing import Annotated, Any

from pydantic import Field

from windrow_master.api.answers import Out, Page, Read, Time
from windrow_master.api.auth import Reach
from windrow_master.api.bodies import Body
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.paging import Cursor, Limit, page_of
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_master.identity.object_shares import Level
from windrow_proto.ids import ClusterId

route = Routes("checkpoints")


class CheckpointOut(Out):
    """A checkpoint that exists."""

    step: int
    files: Annotated[int, Read(lambda found: len({part.name for part in found.parts}))]
    size_bytes: Annotated[int, Read(lambda found: sum(part.size_bytes for part in found.parts))]
    saved_at: Annotated[Time, Read("made_ns")]


class SavedOut(Out):
    """The checkpoint that was saved; null: nothing new was whole."""

    checkpoint: CheckpointOut | None


class PassedOut(Out):
    """A checkpoint that was not whole any more."""

    step: int
    reason: str


class RestoredOut(Out):
    """The step that is in place; null: none was whole."""

    step: int | None
    passed: list[PassedOut]


class RestoreBody(Body):
    """The cluster whose checkpoint is restored."""

    source: Annotated[str, Field(min_length=1, max_length=64)]


@route.get(
    "/clusters/{cluster_id}/checkpoints",
    may=Permission.RENT,
    reach=Reach.OWN,
    shared=Level.USE,
    answer=Page[CheckpointOut],
)
async def checkpoints(
    services: Serving,
    principal: Asking,
    cluster_id: str,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Any:
    """The checkpoints that exist, the newest first."""
    found = await services.checkpoints.list_cluster(principal, ClusterId(cluster_id))
    return page_of(found, limit, cursor, CheckpointOut.of, lambda one: str(one.step))


@route.post(
    "/clusters/{cluster_id}/checkpoints", may=Permission.RENT, reach=Reach.OWN, shared=Level.MANAGE, answer=SavedOut
)
async def save_checkpoint(services: Serving, principal: Asking, cluster_id: str) -> Any:
    """Save the newest whole checkpoint of running work; the answer comes when it exists."""
    saved = await services.checkpoints.save_cluster(principal, ClusterId(cluster_id))
    return {"checkpoint": None if saved is None else CheckpointOut.of(saved)}


@route.post(
    "/clusters/{cluster_id}/checkpoints/restore",
    may=Permission.RENT,
    reach=Reach.OWN,
    answer=RestoredOut,
)
async def restore_checkpoint(services: Serving, principal: Asking, cluster_id: str, body: RestoreBody) -> Any:
    """Put the newest whole checkpoint of the cluster `source` into CKPT_DIR of this one's work."""
    outcome = await services.checkpoints.restore_cluster(principal, ClusterId(cluster_id), ClusterId(body.source))
    return RestoredOut.of(outcome)
