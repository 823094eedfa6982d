"""The pretend Master's secrets: set, listed with who names them, deleted."""

from fastapi import Body, FastAPI

from tests.browser.pretend_http import listed
from tests.browser.pretend_world import Json, World, at


def add_secret(world: World, name: str, kind: str = "text") -> Json:
    """One that was never used."""
    world.secrets[name] = {
        "name": name,
        "kind": kind,
        "created_at": at(),
        "created_by": "user/user_1",
        "updated_at": at(),
        "updated_by": "user/user_1",
        "last_used_at": None,
        "last_used_by": None,
    }
    return world.secrets[name]


def _users(world: World, name: str) -> list[Json]:
    return [
        {"kind": "cluster", "id": cluster["id"], "name": cluster["name"], "is_waiting": cluster["phase"] == "Stopped"}
        for cluster in world.clusters.values()
        if cluster["phase"] != "deleted"
        and name in [given.partition("=")[0] for given in cluster["request"].get("secrets", [])]
    ]


def secret_routes(app: FastAPI, world: World) -> None:
    """Secrets of the project."""

    def shown(name: str) -> Json:
        return world.secrets[name] | {"used_by": _users(world, name)}

    @app.get("/api/v1/secrets")
    async def secrets() -> Json:
        return listed([shown(name) for name in sorted(world.secrets)])

    @app.put("/api/v1/secrets/{name}")
    async def set_secret(name: str, body: Json = Body()) -> Json:
        add_secret(world, name, body.get("kind", "text"))
        return shown(name)

    @app.delete("/api/v1/secrets/{name}")
    async def delete_secret(name: str) -> Json:
        del world.secrets[name]
        return {"name": name, "used_by": _users(world, name), "warning": None}
