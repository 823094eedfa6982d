"""The pretend Master's devices that want to sign in, its service accounts, and signing in again."""

from typing import Any

from fastapi import Body, FastAPI, Response
from fastapi.responses import JSONResponse

from tests.browser.pretend_http import listed, problem
from tests.browser.pretend_members import PASSWORD
from tests.browser.pretend_world import Json, World, at, token

WEIGHTY = {("POST", "/tokens"), ("POST", "/device/approve"), ("POST", "/service-accounts")}
"""Routes that ask to sign in again while the world says so."""
DEVICE_CODE = "BCDF-GHJK"
SERVICE_TOKEN = "wt_service-0123456789abcdef0123456789"


def sign_in_routes(app: FastAPI, world: World) -> None:
    """Devices, and the proof of a session."""

    def found(body: Json) -> Any:
        state = world.devices.get(body["user_code"])
        if state is None:
            return problem(404, "not_found", "Not found", "There is no such code, or it has expired.")
        said = "Somebody has decided about this device already. Begin again there."
        return problem(409, "conflict", "Conflict", said) if state != "waiting" else None

    @app.post("/api/v1/device/look")
    async def look(body: Json = Body()) -> Any:
        shown = {"name": "laptop", "address": "192.0.2.7", "created_at": at(20), "expires_at": at(-580)}
        return found(body) or shown | {"project": "first account", "roles": ["admin", "renter"]}

    @app.post("/api/v1/device/{verdict}")
    async def decide(verdict: str, body: Json = Body()) -> Any:
        refusal = found(body)
        if refusal is not None:
            return refusal
        world.devices[body["user_code"]] = verdict
        return Response(status_code=204)

    @app.post("/api/v1/session/proof")
    async def prove(body: Json = Body()) -> Any:
        if body != {"password": PASSWORD}:
            return problem(403, "forbidden", "Not allowed", "The password is wrong.")
        world.is_stale = False
        return Response(status_code=204)


def service_routes(app: FastAPI, world: World) -> None:
    """Service accounts."""

    def made(row: Json) -> JSONResponse:
        new = token(f"token_s{len(row['tokens'])}", row["name"], row["roles"])
        row["tokens"].append(new)
        return JSONResponse({"service_account": row, "token": new | {"token": SERVICE_TOKEN}}, 201)

    @app.get("/api/v1/service-accounts")
    async def services() -> Json:
        return listed(world.services)

    @app.post("/api/v1/service-accounts")
    async def add(body: Json = Body()) -> JSONResponse:
        row = {"id": f"service_{len(world.services) + 1}", "name": body["name"], "roles": sorted(body["roles"])}
        row |= {"created_by": "user/user_1", "created_at": at(), "tokens": []}
        world.services.append(row)
        return made(row)

    @app.post("/api/v1/service-accounts/{service_id}/rotate")
    async def rotate(service_id: str) -> JSONResponse:
        return made(next(one for one in world.services if one["id"] == service_id))

    @app.delete("/api/v1/service-accounts/{service_id}")
    async def remove(service_id: str) -> Response:
        world.services = [one for one in world.services if one["id"] != service_id]
        return Response(status_code=204)
