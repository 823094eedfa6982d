"""Routes of checkpoints: what there is, save now, restore from another cluster."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from windrow_master.api import out
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.idempotency import make_router
from windrow_master.api.identity_routes import Body
from windrow_master.api.out import Out, Page, Time
from windrow_master.storage.model import Manifest
from windrow_proto.ids import ClusterId
from windrow_proto.units import time_text

router = make_router("checkpoints")


class CheckpointOut(Out):
    """A checkpoint that exists."""

    step: int
    files: int
    size_bytes: int
    saved_at: Time


class SavedOut(Out):
    """What was saved; null: nothing new was whole."""

    checkpoint: CheckpointOut | None


class PassedOut(Out):
    """A checkpoint that was not whole any more."""

    step: int
    reason: str


class RestoredOut(Out):
    """Which step is in place; null: none was whole."""

    step: int | None
    passed: list[PassedOut]


class RestoreBody(Body):
    """Whose checkpoint."""

    source: Annotated[str, Field(min_length=1, max_length=64)]


def checkpoint_json(manifest: Manifest) -> dict[str, Any]:
    """As the API shows it."""
    return {
        "step": manifest.step,
        "files": len({part.name for part in manifest.parts}),
        "size_bytes": sum(part.size_bytes for part in manifest.parts),
        "saved_at": time_text(manifest.made_ns),
    }


@router.get("/clusters/{cluster_id}/checkpoints", responses=out.described(Page[CheckpointOut]))
async def checkpoints(
    services: Serving,
    principal: Asking,
    cluster_id: str,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[str | None, Query(max_length=400)] = None,
) -> Any:
    """The checkpoints that exist, the newest first: there are never more than a page."""
    found = await services.checkpoints.list_cluster(principal, ClusterId(cluster_id))
    return {"items": [checkpoint_json(one) for one in found[:limit]], "next_cursor": None}


@router.post("/clusters/{cluster_id}/checkpoints", responses=out.described(SavedOut))
async def save_checkpoint(services: Serving, principal: Asking, cluster_id: str) -> Any:
    """Save the newest whole checkpoint of running work; the answer comes when it exists."""
    saved = await services.checkpoints.save_cluster(principal, ClusterId(cluster_id))
    return {"checkpoint": None if saved is None else checkpoint_json(saved)}


@router.post("/clusters/{cluster_id}/checkpoints/restore", responses=out.described(RestoredOut))
async def restore_checkpoint(services: Serving, principal: Asking, cluster_id: str, body: RestoreBody) -> Any:
    """Put the newest whole checkpoint of the cluster `source` into CKPT_DIR of this one's work."""
    outcome = await services.checkpoints.restore_cluster(principal, ClusterId(cluster_id), ClusterId(body.source))
    passed = [{"step": one.step, "reason": one.reason} for one in outcome.passed]
    return {"step": outcome.step, "passed": passed}
