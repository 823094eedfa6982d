"""Lists the routes of the HTTP API by file; a file that has routes adds one line."""

from typing import Final

from fastapi.routing import APIRoute

from windrow_master.api import (
    access_routes,
    account_routes,
    alert_routes,
    artefact_routes,
    audit_routes,
    backend_routes,
    bandwidth_routes,
    billing_routes,
    channel_routes,
    checkpoint_routes,
    cluster_routes,
    console,
    explain_routes,
    facts_routes,
    fair_share_routes,
    finding_routes,
    fleet_routes,
    handbook_routes,
    health,
    home_routes,
    hybrid_routes,
    identity_routes,
    job_routes,
    lifecycle_routes,
    limit_routes,
    maintenance_routes,
    market_routes,
    model_studio_routes,
    object_share_routes,
    onboarding_routes,
    openapi_routes,
    overview_routes,
    people_routes,
    permission_routes,
    price_routes,
    proof_routes,
    provider_routes,
    purchase_routes,
    queue_routes,
    quota_routes,
    record_routes,
    report_routes,
    secret_routes,
    service_account_routes,
    shop_routes,
    sign_in_routes,
    simulated_routes,
    standing_routes,
    telemetry_routes,
    template_routes,
    terminal_routes,
    usage_routes,
    verification_routes,
    volume_routes,
    workload_routes,
)
from windrow_master.api.auth import Declaration, Declarations, declaration_of
from windrow_master.api.route import Routes

ROUTES: Final[tuple[Routes, ...]] = (
    identity_routes.route,
    people_routes.route,
    lifecycle_routes.route,
    provider_routes.route,
    object_share_routes.route,
    sign_in_routes.route,
    service_account_routes.route,
    limit_routes.route,
    fair_share_routes.route,
    quota_routes.route,
    permission_routes.route,
    account_routes.route,
    record_routes.route,
    audit_routes.route,
    alert_routes.route,
    maintenance_routes.route,
    cluster_routes.route,
    workload_routes.route,
    terminal_routes.route,
    usage_routes.route,
    template_routes.route,
    secret_routes.route,
    volume_routes.route,
    artefact_routes.route,
    checkpoint_routes.route,
    job_routes.route,
    queue_routes.route,
    explain_routes.route,
    finding_routes.cluster_route,
    finding_routes.job_route,
    market_routes.route,
    shop_routes.route,
    billing_routes.route,
    report_routes.route,
    price_routes.route,
    overview_routes.route,
    home_routes.route,
    fleet_routes.route,
    facts_routes.route,
    standing_routes.route,
    bandwidth_routes.route,
    verification_routes.route,
    proof_routes.route,
    access_routes.route,
    model_studio_routes.route,
    channel_routes.route,
    hybrid_routes.route,
    backend_routes.route,
    purchase_routes.route,
    telemetry_routes.route,
    onboarding_routes.route,
    simulated_routes.route,
    openapi_routes.route,
    health.route,
    health.root,
    onboarding_routes.root,
    handbook_routes.root,
    console.root,
)
"""The console comes last: it answers every path that is left."""

SOCKETS: Final = (terminal_routes.SOCKET,)
"""The WebSockets, listed with the method WS."""


def declared() -> Declarations:
    """Every route with its rules; raises LookupError where one has none."""
    found: dict[tuple[str, str], Declaration] = {}
    for one in ROUTES:
        for route in one.router.routes:
            declaration = declaration_of(route)
            assert isinstance(route, APIRoute), "only these have one"
            found |= {(method, route.path): declaration for method in route.methods or ()}
    return found | {("WS", one.route.path): one.rules for one in SOCKETS}
