"""The list of routers under /api/v1; a room that has routes adds one line."""

from typing import Final

from fastapi import APIRouter

from windrow_master.api import (
    access_routes,
    account_routes,
    artefact_routes,
    audit_routes,
    bandwidth_routes,
    checkpoint_routes,
    cluster_routes,
    facts_routes,
    fleet_routes,
    health,
    history_routes,
    identity_routes,
    job_routes,
    market_routes,
    overview_routes,
    proof_routes,
    record_routes,
    standing_routes,
    telemetry_routes,
    template_routes,
    verification_routes,
    volume_routes,
)

ROUTERS: Final[tuple[APIRouter, ...]] = (
    identity_routes.router,
    account_routes.router,
    record_routes.router,
    audit_routes.router,
    cluster_routes.router,
    template_routes.router,
    volume_routes.router,
    artefact_routes.router,
    checkpoint_routes.router,
    job_routes.router,
    market_routes.router,
    overview_routes.router,
    fleet_routes.router,
    facts_routes.router,
    standing_routes.router,
    bandwidth_routes.router,
    verification_routes.router,
    proof_routes.router,
    access_routes.router,
    telemetry_routes.router,
    history_routes.router,
    health.router,
)
