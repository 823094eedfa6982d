"""Routes of verification: what challenges of a host's cards came to, with the evidence, and a challenge now."""

from typing import Any, Final

from fastapi import Response

from windrow_master.api import out_verification as out
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.fleet_routes import own_host
from windrow_master.api.idempotency import make_router
from windrow_master.api.paging import accepted
from windrow_master.fleet.model import Verification
from windrow_master.fleet.verification_repository import VerificationRepository
from windrow_master.verification import schedule
from windrow_proto.ids import HostId
from windrow_proto.units import MILLISECOND, time_text

MEMORY: Final = ("memory", "memory_claimed_bytes", "memory_filled_bytes", "memory_probes", "memory_wrong")

router = make_router("verification")


@router.get("/hosts/{host_id}/verification", responses=out.VERIFICATION)
async def verification(services: Serving, host_id: str) -> Any:
    """How a host's verification stands, in words, the newest challenge of each card with its evidence, earlier ones."""
    host = services.fleet.entry(HostId(host_id)).host
    latest, past = await services.store.read(
        lambda uow: (
            uow[VerificationRepository].latest(host.host_id),
            uow[VerificationRepository].of_host(host.host_id),
        )
    )
    return {
        "host_id": host.host_id,
        "state": host.verify_state,
        "words": schedule.summary(host, latest),
        "due_at": None if host.verify_due_ns is None else time_text(host.verify_due_ns),
        "tries": host.verify_tries or 0,
        "gpus": [_card(one) for _, one in sorted(latest.items())],
        "past": [_past(one) for one in past],
    }


@router.post("/hosts/{host_id}/verify", status_code=202, responses=out.VERIFYING)
async def verify(services: Serving, principal: Asking, host_id: str) -> Response:
    """Challenge every free GPU of it now; the operation ends with the verdict."""
    owned = own_host(services, principal, host_id)
    operation = await services.verification.ask(owned, principal.account_id, principal.actor)
    return accepted(operation, {"host_id": owned})


def _ms(ns: object) -> int | None:
    return ns // MILLISECOND if isinstance(ns, int) else None


def _past(one: Verification) -> dict[str, Any]:
    return {
        "gpu_uuid": one.gpu_uuid,
        "verification_id": one.verification_id,
        "at": time_text(one.at_ns),
        "outcome": one.outcome,
        "detail": one.detail,
        "span_ms": _ms(one.span_ns),
        "pace": one.pace,
    }


def _card(one: Verification) -> dict[str, Any]:
    evidence = one.evidence
    return {
        **_past(one),
        "reasons": list(one.reasons),
        "device": one.device or None,
        "driver": one.driver or None,
        "bound_ms": _ms(evidence.get("bound_ns")),
        "calibrated": evidence.get("calibrated"),
        "times": evidence.get("times"),
        "together": evidence.get("together"),
        "cards": evidence.get("cards"),
        **{name: evidence.get(name) for name in MEMORY},
        "memory_span_ms": _ms(evidence.get("memory_span_ns")),
        "agent_version": evidence.get("agent_version"),
        "master_version": evidence.get("master_version"),
        "nonce": evidence.get("nonce"),
        "size": evidence.get("size"),
        "rounds": evidence.get("rounds"),
        "openings": evidence.get("openings"),
        "places": evidence.get("places") or [],
        "roots": evidence.get("roots") or [],
    }
