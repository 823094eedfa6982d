"""The pretend Master's registry of compute resources."""

from typing import Any

from fastapi import Body, FastAPI, Response
from fastapi.responses import JSONResponse

from tests.browser.pretend_http import problem
from tests.browser.pretend_world import Json, World, at

PATH = "/api/model-studio/compute-resources"
BLANK: Json = {
    **dict.fromkeys(("provider", "location", "region", "network_bandwidth_gbps", "auth_method", "latency_ms")),
    "supported_frameworks": [],
    "status": "available",
    "max_parallel_jobs": 1,
    "cost_per_hour_usd": 0.0,
}


def add_resource(world: World, record: Json) -> Json:
    """Register one."""
    made = BLANK | record | {"id": len(world.resources) + 1, "created_at": at(), "updated_at": None}
    world.resources[record["resource_id"]] = made
    return made


def resource_routes(app: FastAPI, world: World) -> None:
    """Resources of everybody."""

    @app.get(PATH)
    async def resources() -> Any:
        return list(world.resources.values())

    @app.post(PATH)
    async def register(body: Json = Body()) -> Response:
        if body["resource_id"] in world.resources:
            return problem(400, "already_registered", "Bad request", f"There already is {body['resource_id']}.")
        return JSONResponse(add_resource(world, body), 201)

    @app.put(f"{PATH}/{{resource_id}}")
    async def change(resource_id: str, body: Json = Body()) -> Any:
        world.resources[resource_id] |= body | {"updated_at": at()}
        return world.resources[resource_id]

    @app.delete(f"{PATH}/{{resource_id}}")
    async def remove(resource_id: str) -> Response:
        del world.resources[resource_id]
        return Response(status_code=204)
