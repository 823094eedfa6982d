"""Builds the HTTP application from the services: routes, problems, rate limits, the edge."""

from functools import cache
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from windrow_master.api import cluster_routes, console, health, metrics, problems
from windrow_master.api.deps import Services
from windrow_master.api.description import LICENCE, SERVERS, TEXT, TITLE, VERSION, described
from windrow_master.api.health import bus_figures
from windrow_master.api.middleware import Edge
from windrow_master.api.own_names import OwnNames
from windrow_master.api.paging import LEFT_OUT, Json
from windrow_master.api.rate_limits import Limited, Limits
from windrow_master.api.route import DeferredRoute, operation_id
from windrow_master.api.route_index import RouteIndex
from windrow_master.api.routers import ROUTES, SOCKETS, declared


class Api(FastAPI):
    """An application that describes itself with all that its routes declare."""

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI description, made once."""
        if self.openapi_schema is None:
            self.openapi_schema = described(super().openapi(), declared())
        return self.openapi_schema

    @property
    def routes(self) -> list[BaseRoute]:
        """The routes as FastAPI describes them."""
        return [one.made if isinstance(one, DeferredRoute) else one for one in self.router.routes]


def build_api() -> FastAPI:
    """The application without services: enough to describe itself (docs/openapi.json)."""
    app = _bare()
    problems.install(app)
    app.router.routes.extend(_included())
    return app


def _bare() -> Api:
    return Api(
        title=TITLE,
        version=VERSION,
        description=TEXT,
        license_info=LICENCE,
        servers=SERVERS,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=operation_id,
        redirect_slashes=False,
        default_response_class=Json,
    )


@cache
def _included() -> tuple[BaseRoute, ...]:
    """The routes as an application has them, which have no state."""
    routes = (*(one.route for one in SOCKETS), *(route for one in ROUTES for route in one.routes))
    return (RouteIndex(routes), *routes)


def build_app(
    services: Services,
    static: Path = console.STATIC,
    *,
    names: OwnNames | None = None,
    limits: Limits | None = None,
) -> ASGIApp:
    """The application, ready to serve; events are told to its streams while an EventTail of the services runs.

    limits: how often anybody may ask; None: as often as they like.
    names: under which it answers; a server always gives them. None: any, for an application without a server.
    """
    app = build_api()
    registry = metrics.new_registry()
    registry.register(metrics.Gauges(health.gauges(services)))
    app.state.services = services
    app.state.registry = registry
    app.state.static = static
    app.state.declared = declared()

    cluster_routes.attach(services)
    limited = Limited(app, services.bus, limits, app.state.declared)
    services.health.figures.append(lambda: bus_figures(services.bus, limited.refused))
    said = "Items that a list could not show"
    services.health.figures.append(lambda: [("list_items_left_out_total", said, float(LEFT_OUT.count), {})])
    return Edge(limited, services.rng, metrics.HttpFigures(registry), names)


def description() -> dict[str, Any]:
    """The OpenAPI description that docs/openapi.json holds."""
    return build_api().openapi()
