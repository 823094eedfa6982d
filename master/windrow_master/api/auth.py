"""Which permission each route asks for, in one table; a route without a row is refused, and a test says so."""

from typing import Final

from fastapi import Request

from windrow_master.api.deps import principal_of
from windrow_master.identity.decide import GRANTS, Permission, is_allowed
from windrow_proto.errors import Forbidden

V1: Final = "/api/v1"

RULES: Final[dict[tuple[str, str], Permission]] = {
    ("GET", "/healthz"): Permission.NOBODY,
    ("GET", "/metrics"): Permission.NOBODY,  # loopback only, else a token: see health.py
    ("GET", "/install.sh"): Permission.NOBODY,
    ("GET", "/cloud-init.yaml"): Permission.NOBODY,
    ("GET", "/dl/{name}"): Permission.NOBODY,
    ("GET", "/{path:path}"): Permission.NOBODY,  # the console's files
    ("GET", f"{V1}/openapi.json"): Permission.NOBODY,
    ("GET", f"{V1}/ca"): Permission.NOBODY,
    ("GET", f"{V1}/regions"): Permission.NOBODY,  # signed, and what any agent is told
    ("POST", f"{V1}/join"): Permission.NOBODY,  # by join token and proof
    ("POST", f"{V1}/renew"): Permission.NOBODY,  # by proof
    ("POST", f"{V1}/session"): Permission.NOBODY,  # by the token in its body
    ("DELETE", f"{V1}/session"): Permission.NOBODY,  # ends the session whose secret it carries
    ("GET", f"{V1}/sessions"): Permission.TOKENS,
    ("DELETE", f"{V1}/sessions/{{session_id}}"): Permission.TOKENS,
    ("GET", f"{V1}/me"): Permission.SIGNED_IN,
    ("GET", f"{V1}/tokens"): Permission.TOKENS,
    ("POST", f"{V1}/tokens"): Permission.TOKENS,
    ("DELETE", f"{V1}/tokens/{{token_id}}"): Permission.TOKENS,
    ("POST", f"{V1}/sign-in"): Permission.NOBODY,  # by the link's secret in its body
    ("GET", f"{V1}/accounts"): Permission.ACCOUNTS_READ,
    ("POST", f"{V1}/accounts"): Permission.ACCOUNTS,
    ("GET", f"{V1}/accounts/{{account_id}}"): Permission.ACCOUNTS_READ,
    ("POST", f"{V1}/accounts/{{account_id}}/credit"): Permission.ACCOUNTS,
    ("POST", f"{V1}/accounts/{{account_id}}/link"): Permission.ACCOUNTS,
    ("POST", f"{V1}/accounts/{{account_id}}/suspend"): Permission.ACCOUNTS,
    ("POST", f"{V1}/accounts/{{account_id}}/resume"): Permission.ACCOUNTS,
    ("GET", f"{V1}/join-tokens"): Permission.JOIN_TOKENS,
    ("POST", f"{V1}/join-tokens"): Permission.JOIN_TOKENS,
    ("DELETE", f"{V1}/join-tokens/{{token_id}}"): Permission.JOIN_TOKENS,
    ("GET", f"{V1}/operations"): Permission.SIGNED_IN,
    ("GET", f"{V1}/operations/{{operation_id}}"): Permission.SIGNED_IN,
    ("GET", f"{V1}/events"): Permission.FLEET_READ,
    ("GET", f"{V1}/events/stream"): Permission.FLEET_READ,
    ("GET", f"{V1}/audit"): Permission.AUDIT_READ,
    ("GET", f"{V1}/audit/verify"): Permission.AUDIT_READ,
    ("POST", f"{V1}/audit/reanchor"): Permission.AUDIT_ANCHOR,
    ("GET", f"{V1}/operators/health"): Permission.HEALTH_READ,
    ("GET", f"{V1}/overview"): Permission.FLEET_READ,
    ("GET", f"{V1}/hosts"): Permission.FLEET_READ,
    ("GET", f"{V1}/hosts/{{host_id}}"): Permission.FLEET_READ,
    ("GET", f"{V1}/hosts/{{host_id}}/stream"): Permission.FLEET_READ,
    ("GET", f"{V1}/hosts/{{host_id}}/history"): Permission.FLEET_READ,
    ("GET", f"{V1}/hosts/{{host_id}}/export"): Permission.FLEET_READ,
    ("GET", f"{V1}/metrics/history"): Permission.FLEET_READ,
    ("POST", f"{V1}/hosts/{{host_id}}/measure"): Permission.FLEET_OPERATE,
    ("POST", f"{V1}/hosts/{{host_id}}/gpus/{{gpu_id}}/partition"): Permission.FLEET_OPERATE,
    ("POST", f"{V1}/hosts/{{host_id}}/verify"): Permission.FLEET_OPERATE,
    ("GET", f"{V1}/hosts/{{host_id}}/verification"): Permission.FLEET_READ,
    ("GET", f"{V1}/hosts/{{host_id}}/standing"): Permission.FLEET_READ,
    ("GET", f"{V1}/hosts/{{host_id}}/bandwidth"): Permission.FLEET_READ,
    ("GET", f"{V1}/hosts/{{host_id}}/facts"): Permission.FLEET_READ,
    ("POST", f"{V1}/hosts/{{host_id}}/prove"): Permission.FLEET_OPERATE,
    ("GET", f"{V1}/hosts/{{host_id}}/proof"): Permission.FLEET_READ,
    ("POST", f"{V1}/hosts/{{host_id}}/drain"): Permission.FLEET_OPERATE,
    ("PUT", f"{V1}/hosts/{{host_id}}/default-image"): Permission.FLEET_OPERATE,
    ("POST", f"{V1}/hosts/{{host_id}}/activate"): Permission.FLEET_OPERATE,
    ("POST", f"{V1}/hosts/{{host_id}}/maintenance"): Permission.FLEET_OPERATE,
    ("POST", f"{V1}/hosts/{{host_id}}/quarantine"): Permission.FLEET_OPERATE,
    ("POST", f"{V1}/hosts/{{host_id}}/retire"): Permission.FLEET_OPERATE,
    ("GET", f"{V1}/accesses"): Permission.HEALTH_READ,
    ("GET", f"{V1}/accesses/agents"): Permission.FLEET_READ,
    ("GET", f"{V1}/accesses/{{access_id}}"): Permission.HEALTH_READ,
    ("POST", f"{V1}/accesses/{{access_id}}/drain"): Permission.FLEET_OPERATE,
    ("POST", f"{V1}/accesses/{{access_id}}/resume"): Permission.FLEET_OPERATE,
    ("POST", f"{V1}/accesses/{{access_id}}/stop"): Permission.FLEET_OPERATE,
    ("GET", f"{V1}/accesses/{{access_id}}/stop"): Permission.HEALTH_READ,
    ("GET", f"{V1}/gpus"): Permission.FLEET_READ,
    ("GET", f"{V1}/gpus/{{gpu_id}}"): Permission.FLEET_READ,
    ("GET", f"{V1}/fleet/stream"): Permission.FLEET_READ,
    ("GET", f"{V1}/metrics/catalog"): Permission.FLEET_READ,
    ("GET", f"{V1}/commands"): Permission.FLEET_READ,
    ("GET", f"{V1}/commands/{{command_id}}"): Permission.FLEET_READ,
    ("GET", f"{V1}/offers"): Permission.MARKET_READ,
    ("PUT", f"{V1}/offers/{{tier:path}}"): Permission.PRICE_SET,
    ("POST", f"{V1}/clusters/plan"): Permission.RENT,
    ("POST", f"{V1}/clusters"): Permission.RENT,
    ("GET", f"{V1}/clusters"): Permission.RENT_READ,
    ("GET", f"{V1}/clusters/{{cluster_id}}"): Permission.RENT_READ,
    ("GET", f"{V1}/clusters/{{cluster_id}}/box"): Permission.RENT,
    ("DELETE", f"{V1}/clusters/{{cluster_id}}"): Permission.RENT,
    ("POST", f"{V1}/clusters/{{cluster_id}}/renew"): Permission.RENT,
    ("POST", f"{V1}/clusters/{{cluster_id}}/stop"): Permission.RENT,
    ("POST", f"{V1}/clusters/{{cluster_id}}/start"): Permission.RENT,
    ("POST", f"{V1}/clusters/{{cluster_id}}/resize"): Permission.RENT,
    ("GET", f"{V1}/clusters/{{cluster_id}}/explain"): Permission.RENT_READ,
    ("GET", f"{V1}/clusters/{{cluster_id}}/stream"): Permission.RENT_READ,
    ("GET", f"{V1}/clusters/{{cluster_id}}/logs"): Permission.RENT,
    ("POST", f"{V1}/clusters/{{cluster_id}}/exec"): Permission.RENT,
    ("POST", f"{V1}/clusters/{{cluster_id}}/tunnels"): Permission.RENT,
    ("PUT", f"{V1}/clusters/{{cluster_id}}/files"): Permission.RENT,
    ("GET", f"{V1}/clusters/{{cluster_id}}/files"): Permission.RENT,
    ("GET", f"{V1}/templates"): Permission.RENT,
    ("PUT", f"{V1}/templates/{{name}}"): Permission.RENT,
    ("GET", f"{V1}/templates/{{name}}"): Permission.RENT,
    ("DELETE", f"{V1}/templates/{{name}}"): Permission.RENT,
    ("GET", f"{V1}/volumes"): Permission.RENT,
    ("POST", f"{V1}/volumes"): Permission.RENT,
    ("GET", f"{V1}/volumes/{{name}}"): Permission.RENT,
    ("DELETE", f"{V1}/volumes/{{name}}"): Permission.RENT,
    ("POST", f"{V1}/clusters/{{cluster_id}}/volumes/save"): Permission.RENT,
    ("GET", f"{V1}/artefacts"): Permission.RENT,
    ("GET", f"{V1}/artefacts/{{owner_kind}}/{{owner_id}}/{{name:path}}"): Permission.RENT,
    ("PUT", f"{V1}/artefacts/{{owner_kind}}/{{owner_id}}/{{name:path}}"): Permission.RENT,
    ("DELETE", f"{V1}/artefacts/{{owner_kind}}/{{owner_id}}/{{name:path}}"): Permission.RENT,
    ("GET", f"{V1}/clusters/{{cluster_id}}/checkpoints"): Permission.RENT,
    ("POST", f"{V1}/clusters/{{cluster_id}}/checkpoints"): Permission.RENT,
    ("POST", f"{V1}/clusters/{{cluster_id}}/checkpoints/restore"): Permission.RENT,
    ("POST", f"{V1}/jobs/plan"): Permission.RENT,
    ("POST", f"{V1}/jobs"): Permission.RENT,
    ("GET", f"{V1}/jobs"): Permission.RENT_READ,
    ("GET", f"{V1}/jobs/{{job_id}}"): Permission.RENT_READ,
    ("GET", f"{V1}/jobs/{{job_id}}/impact"): Permission.RENT_READ,
    ("PUT", f"{V1}/jobs/{{job_id}}/files"): Permission.RENT,
    ("GET", f"{V1}/jobs/{{job_id}}/logs"): Permission.RENT,
    ("GET", f"{V1}/jobs/{{job_id}}/artefacts"): Permission.RENT,
    ("POST", f"{V1}/jobs/{{job_id}}/cancel"): Permission.RENT,
    ("POST", f"{V1}/jobs/{{job_id}}/rerun"): Permission.RENT,
    ("GET", f"{V1}/receipts"): Permission.RENT_READ,
    ("GET", f"{V1}/receipts/{{receipt_id}}"): Permission.RENT_READ,
    ("GET", f"{V1}/ledger/balances"): Permission.LEDGER_READ,
    ("GET", f"{V1}/ledger/transfers"): Permission.LEDGER_READ,
}


async def authorise(request: Request) -> None:
    """Let a request through only if the table lets it: runs before every route."""
    template = getattr(request.scope.get("route"), "path", "")
    method = "GET" if request.method == "HEAD" else request.method
    permission = RULES.get((method, template))
    if permission is None:
        raise Forbidden(f"No rule allows {method} {template}.")
    if permission is Permission.NOBODY:
        return
    principal = await principal_of(request)
    if not is_allowed(principal.roles, permission):
        wanted = " or ".join(sorted(GRANTS[permission]))
        raise Forbidden(f"This needs the role {wanted}; this token has {', '.join(sorted(principal.roles)) or 'none'}.")
