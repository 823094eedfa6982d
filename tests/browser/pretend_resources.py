"""The pretend Master's registry of compute resources."""

from dataclasses import replace
from datetime import date
from typing import Any

from fastapi import Body, FastAPI, Response
from fastapi.responses import JSONResponse

from tests.browser.pretend_http import problem
from tests.browser.pretend_world import Json, World, at
from windrow_master.api.hybrid_routes import RouteBody, answer_of, work_of
from windrow_master.hybrid.analysis import analyse
from windrow_master.hybrid.places import Connected, book_places
from windrow_master.hybrid.routing import Where, recommend
from windrow_master.hybrid.service import Routed, completed
from windrow_master.prices.shipped import shipped
from windrow_proto.errors import InvalidInput
from windrow_proto.units import Microcents

PATH = "/api/model-studio/compute-resources"
DAY = date(2026, 8, 25)
OWN: Json = {
    **dict.fromkeys(("buys", "not_usable", "not_priced", "note", "as_of"), ""),
    "resource_type": "on-premise",
    "provider": "own",
    "offer": "lab",
    "per_hour": Microcents(0),
    "step_s": 1,
    "minimum_s": 0,
    "start_s": (5, 60),
    "interruptions_per_hour": 0.0,
    "source": "its registration",
}
"""A machine of one's own that a host stands behind."""
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


def binding_of(world: World, resource_id: str) -> Json:
    """The host of a resource, with status and price."""
    bound = world.bindings.get(resource_id, {})
    return {
        "resource_id": resource_id,
        "declared_status": "available",
        "status": "available",
        "host": bound.get("host"),
        "host_name": bound.get("host"),
        "dedicated": bound.get("dedicated", False),
        "running": 0,
        "reason": None,
        "price_per_hour": "0.00",
        "price_source": "its registration",
    }


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

    @app.get("/api/v1/resources")
    async def bindings() -> Json:
        return {"items": [binding_of(world, one) for one in world.resources], "next_cursor": None}

    @app.put("/api/v1/resources/{resource_id}/binding")
    async def bind(resource_id: str, body: Json = Body()) -> Any:
        world.bindings[resource_id] = body
        return binding_of(world, resource_id)

    @app.delete("/api/v1/resources/{resource_id}/binding")
    async def unbind(resource_id: str) -> Any:
        world.bindings.pop(resource_id, None)
        return binding_of(world, resource_id)

    @app.post("/api/v1/route")
    async def route(body: RouteBody) -> Any:
        analysis = None if body.code is None else analyse(body.code)
        try:
            work = completed(work_of(body), analysis)
        except InvalidInput as wrong:
            return problem(422, "invalid_input", "Not valid", str(wrong))
        connected = [Connected(one["backend"], "ec2", "eu-central-1") for one in world.buyers]
        places = list(book_places(shipped(), DAY, work, connected=connected))
        places.append(
            replace(places[0], backend="resource/lab", where=Where.RESOURCE, host="host_0", gpu_count=64, **OWN)
        )
        return answer_of(Routed(work, analysis, recommend(work, places), "route_1" if body.keep else None))

    @app.delete(f"{PATH}/{{resource_id}}")
    async def remove(resource_id: str) -> Response:
        del world.resources[resource_id]
        return Response(status_code=204)
