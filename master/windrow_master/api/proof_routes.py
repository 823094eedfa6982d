"""Routes of proofs: what the Master's test rentals of a host came to, how far it has come, and a proof now."""

from typing import Any

from fastapi import Response

from windrow_master.acceptance import progress
from windrow_master.acceptance.model import Proof
from windrow_master.api import out_proof as out
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.fleet_routes import own_host
from windrow_master.api.idempotency import make_router
from windrow_master.api.paging import accepted, time_or_none
from windrow_master.fleet.verification_repository import VerificationRepository
from windrow_proto.ids import HostId
from windrow_proto.units import MILLISECOND, time_text

router = make_router("proofs")


@router.get("/hosts/{host_id}/proof", responses=out.PROOF)
async def proof(services: Serving, host_id: str) -> Any:
    """How far a host has come from the download to the listing, and its newest test rentals step by step."""
    entry = services.fleet.entry(HostId(host_id))
    host, slots = entry.host, entry.slots
    found = await services.proofs.of_host(host.host_id)
    latest = await services.store.read(lambda uow: uow[VerificationRepository].latest(host.host_id))
    now_ns = services.clock.wall_ns()
    return {
        "host_id": host.host_id,
        "words": progress.standing(host, slots, now_ns),
        "stages": [
            {"name": one.name, "state": one.state, "at": time_or_none(one.at_ns), "words": one.words}
            for one in progress.stages(host, slots, found, latest, now_ns)
        ],
        "proofs": [_proof(one) for one in found],
    }


@router.post("/hosts/{host_id}/prove", status_code=202, responses=out.PROVING)
async def prove(services: Serving, principal: Asking, host_id: str) -> Response:
    """Rent it now as a renter would; the operation ends with the result."""
    owned = own_host(services, principal, host_id)
    operation = await services.proofs.ask(owned, principal.account_id, principal.actor)
    return accepted(operation, {"host_id": owned})


def _proof(one: Proof) -> dict[str, Any]:
    return {
        "proof_id": one.proof_id,
        "at": time_text(one.at_ns),
        "ended_at": time_or_none(one.ended_at_ns),
        "was_asked": one.actor != "master",
        "outcome": one.outcome,
        "words": one.words or None,
        "steps": [
            {
                "name": step.name,
                "state": step.state,
                "took_ms": None if step.took_ns is None else step.took_ns // MILLISECOND,
                "words": step.words,
                "fields": dict(step.fields),
            }
            for step in one.steps
        ],
    }
