"""Serves the description of the HTTP API (OpenAPI)."""

from typing import Any

from fastapi import Request

from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission

route = Routes("openapi")


@route.get("/openapi.json", may=Permission.NOBODY, include_in_schema=False)
async def openapi(request: Request) -> Any:
    """The same as docs/openapi.json."""
    return request.app.openapi()
