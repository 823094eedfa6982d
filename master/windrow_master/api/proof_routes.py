"""Routes of acceptance tests: the results of a host's test rentals, its progress to the listing, and a test now."""

from typing import Annotated, Any

from fastapi import Response
from pydantic import Field

from windrow_master.acceptance import progress
from windrow_master.api.answers import OperationOut, Out, Read, Time
from windrow_master.api.auth import Reach
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.paging import accepted
from windrow_master.api.route import Routes
from windrow_master.api.visibility import own_host
from windrow_master.identity.decide import Permission
from windrow_proto.ids import HostId
from windrow_proto.units import MILLISECOND

route = Routes("proofs")


class StageOut(Out):
    """The stage that a host has reached."""

    name: Annotated[str, Field(description="downloaded, certified, tested, verified or listed")]
    state: Annotated[str, Field(description="done, running, waiting, failed or skipped")]
    at: Annotated[Time | None, Field(description="Null where it was not reached, or where nobody knows when")]
    words: str


class ProofStepOut(Out):
    """One step of a test rental."""

    name: Annotated[str, Field(description="start, reach, count, memory, benchmark, bandwidth, end or receipt")]
    state: Annotated[str, Field(description="passed, failed, or absent where there was nothing to try")]
    took_ms: Annotated[int | None, Read(lambda step: None if step.took_ns is None else step.took_ns // MILLISECOND)]
    words: str
    fields: Annotated[dict[str, int | str], Field(description="The figures, by name")]


class HostProofOut(Out):
    """One test rental of a host by the Master."""

    proof_id: str
    at: Time
    ended_at: Time | None
    was_asked: Annotated[
        bool, Field(description="Somebody asked for it; else it was due"), Read(lambda one: one.actor != "master")
    ]
    outcome: Annotated[str | None, Field(description="passed, failed or unfinished; null while it runs")]
    words: str | None
    steps: list[ProofStepOut]


class ProofOut(Out):
    """The state of a host's acceptance tests."""

    host_id: str
    words: str
    stages: list[StageOut]
    proofs: Annotated[list[HostProofOut], Field(description="The newest first, ten at most")]


class ProvingOut(Out):
    """A test rental that has begun."""

    operation: OperationOut
    host_id: str


@route.get("/hosts/{host_id}/proof", may=Permission.FLEET_READ, reach=Reach.ALL, answer=ProofOut)
async def proof(services: Serving, host_id: str) -> Any:
    """The progress of a host from the download to the listing, and its newest test rentals step by step."""
    entry = services.fleet.entry(HostId(host_id))
    host, slots = entry.host, entry.slots
    found = await services.proofs.of_host(host.host_id)
    latest = await services.store.read(lambda uow: services.fleet.challenges.latest(uow, host.host_id))
    now_ns = services.clock.wall_ns()
    return {
        "host_id": host.host_id,
        "words": progress.standing(host, slots, now_ns),
        "stages": [StageOut.of(one) for one in progress.stages(host, slots, found, latest, now_ns)],
        "proofs": [HostProofOut.of(one) for one in found],
    }


@route.post(
    "/hosts/{host_id}/prove",
    may=Permission.FLEET_OPERATE,
    reach=Reach.OWN_OR_OPERATED,
    status_code=202,
    answer=ProvingOut,
)
async def prove(services: Serving, principal: Asking, host_id: str) -> Response:
    """Rent it now as a renter would; the operation ends with the result."""
    owned = own_host(services, principal, host_id)
    operation = await services.proofs.ask(owned, principal.account_id, principal.actor)
    return accepted(operation, {"host_id": owned})
