"""The pretend Master's spending limits of projects, tokens and service accounts, with what is used of them."""

from typing import Any

from fastapi import Body, FastAPI, Response

from tests.browser.pretend_http import listed, problem
from tests.browser.pretend_world import Json, World, at
from windrow_master.api.limit_routes import LimitsBody
from windrow_master.identity.model import SpenderKind
from windrow_proto.errors import InvalidInput

OWN = "account_1"
FIELDS = tuple(LimitsBody.model_fields)
USED = {"hourly_cost": "0.80", "monthly_cost": "12.50", "total_cost": "48.00", "leases": 2, "held": "2.00"}


def limit(spender_id: str, name: str, **more: Any) -> Json:
    """The limits of one, not set, and what is used. more: other values of fields."""
    row: Json = {"id": spender_id, "kind": SpenderKind.of(spender_id), "name": name, "project_id": OWN}
    row |= dict.fromkeys(FIELDS) | USED | {"month": at()[:7], "set_at": None, "set_by": None}
    return row | more


def limit_routes(app: FastAPI, world: World, own_token: str) -> None:
    """All of them. own_token: the id of the one that is signed in, which does not limit itself."""

    def found(spender_id: str) -> Json:
        if spender_id in world.limits:
            return world.limits[spender_id]
        everything = (*world.projects, *world.tokens, *world.services)
        return limit(spender_id, next(one["name"] for one in everything if one["id"] == spender_id))

    @app.get("/api/v1/limits")
    async def limits() -> Json:
        return listed([found(one) for one in sorted({OWN, *world.limits})])

    @app.get("/api/v1/{kind}/{spender_id}/limits")
    async def get(kind: str, spender_id: str) -> Json:
        return found(spender_id)

    @app.put("/api/v1/{kind}/{spender_id}/limits")
    async def put(kind: str, spender_id: str, body: Json = Body()) -> Any:
        if spender_id == own_token:
            said = "A token sets no limits of its own, nor of the token that made it. Sign in to set them."
            return problem(403, "forbidden", "Not allowed", said)
        try:
            LimitsBody(**body).parsed()
        except InvalidInput as refused:
            return problem(422, refused.code, "Not valid", refused.detail)
        row = found(spender_id) | {field: body.get(field) for field in FIELDS}
        world.limits[spender_id] = row | {"set_at": at(), "set_by": "user/user_1"}
        return world.limits[spender_id]

    @app.delete("/api/v1/{kind}/{spender_id}/limits")
    async def drop(kind: str, spender_id: str) -> Response:
        world.limits.pop(spender_id, None)
        return Response(status_code=204)
