"""The pretend Master's volumes: made, saved, deleted, and had by its clusters."""

from typing import Any

from fastapi import Body, FastAPI, Response
from fastapi.responses import JSONResponse

from tests.browser.pretend_http import listed, problem
from tests.browser.pretend_world import Json, World, at
from windrow_master.storage.volume_rules import VOLUME_BYTES_MAX
from windrow_proto.volumes import parse_mount

GROWTH_BYTES = 40 << 20
"""The bytes that each save adds."""


def add_volume(world: World, name: str, max_bytes: int = VOLUME_BYTES_MAX) -> Json:
    """An empty one."""
    world.volumes[name] = {
        "id": f"volume_{len(world.volumes) + 1}",
        "name": name,
        "version": 0,
        "size_bytes": 0,
        "files": 0,
        "max_bytes": max_bytes,
        "saved_at": None,
        "created_at": at(),
        "problem": None,
    }
    return world.volumes[name]


def _users(world: World, name: str) -> list[Json]:
    return [
        {
            "cluster_id": cluster["id"],
            "cluster_name": cluster["name"],
            "phase": cluster["phase"],
            "writes": not mount.read_only,
        }
        for cluster in world.clusters.values()
        if cluster["phase"] != "deleted"
        for mount in map(parse_mount, cluster["request"]["volumes"])
        if mount.name == name
    ]


def volume_routes(app: FastAPI, world: World) -> None:
    """Volumes of the account, and saving those of a cluster."""

    def shown(name: str) -> Json:
        return world.volumes[name] | {"used_by": _users(world, name)}

    @app.get("/api/v1/volumes")
    async def volumes() -> Json:
        return listed([shown(name) for name in sorted(world.volumes)])

    @app.post("/api/v1/volumes")
    async def create(body: Json = Body()) -> Response:
        name = body["name"]
        if name in world.volumes:
            return problem(409, "conflict", "Conflict", f"There already is a volume {name}. Choose another name.", name)
        add_volume(world, name, body.get("max_bytes", VOLUME_BYTES_MAX))
        return JSONResponse(shown(name), 201)

    @app.delete("/api/v1/volumes/{name}")
    async def delete(name: str) -> Response:
        users = ", ".join(f"{one['cluster_name']} ({one['cluster_id']})" for one in _users(world, name))
        if users:
            told = f"The volume {name} is in use by {users}. End that first."
            return problem(409, "conflict", "Conflict", told, world.volumes[name]["id"])
        del world.volumes[name]
        return Response(status_code=204)

    @app.post("/api/v1/clusters/{cluster_id}/volumes/save")
    async def save(cluster_id: str) -> Any:
        mounts = map(parse_mount, world.clusters[cluster_id]["request"]["volumes"])
        written = [world.volumes[one.name] for one in mounts if not one.read_only]
        for one in written:
            size, files = one["size_bytes"] + GROWTH_BYTES, one["files"] + 2
            one.update(version=one["version"] + 1, size_bytes=size, files=files, saved_at=at(), problem=None)
        return {"volumes": written}
