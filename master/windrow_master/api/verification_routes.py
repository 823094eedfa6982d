"""Routes of verification: the results of challenges of a host's cards, with the evidence, and a challenge now."""

from typing import Annotated, Any, Final

from fastapi import Response
from pydantic import Field

from windrow_master.api.answers import OperationOut, Out, Read, Time
from windrow_master.api.auth import Reach
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.paging import accepted
from windrow_master.api.route import Routes
from windrow_master.api.visibility import own_host
from windrow_master.fleet.model import Verification
from windrow_master.identity.decide import Permission
from windrow_master.verification import schedule
from windrow_proto.ids import HostId
from windrow_proto.units import MILLISECOND, time_text

route = Routes("verification")


def _ms(ns: object) -> int | None:
    return ns // MILLISECOND if isinstance(ns, int) else None


class CardVerificationOut(Out):
    """The result of the newest challenge of one card, with the question and the answer."""

    gpu_uuid: str
    verification_id: Annotated[str, Field(description="Shared by the cards that were challenged together")]
    at: Time
    outcome: Annotated[str, Field(description="passed, failed, unprovable or unfinished")]
    detail: str
    reasons: list[str]
    device: Annotated[str | None, Field(description="As its OpenCL driver names it")]
    driver: str | None
    span_ms: Annotated[
        int | None,
        Field(description="From the challenge sent to the commitment in, by the Master"),
        Read(lambda one: _ms(one.span_ns)),
    ]
    pace: Annotated[str | None, Field(description="What that says; observed: its class is not calibrated")]
    bound_ms: Annotated[
        int | None,
        Field(description="A commitment later than that is refused; null where not kept"),
        Read(lambda one: _ms(one.evidence.get("bound_ns"))),
    ]
    calibrated: Annotated[bool | None, Field(description="Whether the bound is measured of its class")]
    times: Annotated[str | None, Field(description="What the times of its class were measured with")]
    together: Annotated[str | None, Field(description="Beside the others of its class: alone, untold, together, apart")]
    cards: Annotated[int | None, Field(description="Of its class that were challenged in the same second, it counted")]
    memory: Annotated[
        str | None,
        Field(
            description="proved, wrong_memory, short_memory, late_memory or untold; null: it was not asked to fill it"
        ),
    ]
    memory_claimed_bytes: Annotated[int | None, Field(description="That its host says it has")]
    memory_filled_bytes: Annotated[int | None, Field(description="That were written before any place was looked at")]
    memory_probes: Annotated[int | None, Field(description="Places looked at, 32 bytes each")]
    memory_wrong: Annotated[int | None, Field(description="Of these, how many did not hold what was written")]
    memory_span_ms: Annotated[
        int | None,
        Field(description="From asking until all was written, by the Master"),
        Read(lambda one: _ms(one.evidence.get("memory_span_ns"))),
    ]
    agent_version: str | None
    master_version: str | None
    nonce: str | None
    size: Annotated[int | None, Field(description="Rows and columns of the matrices")]
    rounds: int | None
    openings: int | None
    places: Annotated[
        list[list[int]],
        Field(description="Round, row and column of each entry that was looked at"),
        Read(lambda one: one.evidence.get("places") or []),
    ]
    roots: Annotated[
        list[str],
        Field(description="What was committed to, one a round"),
        Read(lambda one: one.evidence.get("roots") or []),
    ]


class PastVerificationOut(Out):
    """The result of one challenge of one card."""

    gpu_uuid: str
    verification_id: str
    at: Time
    outcome: str
    detail: str
    span_ms: Annotated[int | None, Read(lambda one: _ms(one.span_ns))]
    pace: str | None


class VerificationOut(Out):
    """The state of a host's verification."""

    host_id: str
    state: str
    words: str
    due_at: Annotated[Time | None, Field(description="When it is challenged next; null: as soon as it can be")]
    tries: Annotated[int, Field(description="Challenges since one had a good end")]
    gpus: list[CardVerificationOut]
    past: Annotated[list[PastVerificationOut], Field(description="Of all cards, the newest first, at most 100")]


class VerifyingOut(Out):
    """A challenge of a host's free cards that has begun."""

    operation: OperationOut
    host_id: str


@route.get("/hosts/{host_id}/verification", may=Permission.FLEET_READ, reach=Reach.ALL, answer=VerificationOut)
async def verification(services: Serving, host_id: str) -> Any:
    """The state of a host's verification, in words, the newest challenge of each card with its evidence, earlier
    ones."""
    host = services.fleet.entry(HostId(host_id)).host
    latest, past = await services.store.read(
        lambda uow: (
            services.fleet.challenges.latest(uow, host.host_id),
            services.fleet.challenges.past(uow, host.host_id),
        )
    )
    return {
        "host_id": host.host_id,
        "state": host.verify_state,
        "words": schedule.summary(host, latest),
        "due_at": None if host.verify_due_ns is None else time_text(host.verify_due_ns),
        "tries": host.verify_tries or 0,
        "gpus": [CardVerificationOut.of(one, **_evidence(one)) for _, one in sorted(latest.items())],
        "past": [PastVerificationOut.of(one) for one in past],
    }


@route.post(
    "/hosts/{host_id}/verify",
    may=Permission.FLEET_OPERATE,
    reach=Reach.OWN_OR_OPERATED,
    status_code=202,
    answer=VerifyingOut,
)
async def verify(services: Serving, principal: Asking, host_id: str) -> Response:
    """Challenge every free GPU of it now; the operation ends with the verdict."""
    owned = own_host(services, principal, host_id)
    operation = await services.verification.ask(owned, principal.account_id, principal.actor)
    return accepted(operation, {"host_id": owned})


EVIDENCE: Final = (
    *("calibrated", "times", "together", "cards", "agent_version", "master_version"),
    *("memory", "memory_claimed_bytes", "memory_filled_bytes", "memory_probes", "memory_wrong"),
    *("nonce", "size", "rounds", "openings"),
)
"""Fields that are in the evidence by their own names."""


def _evidence(one: Verification) -> dict[str, object]:
    return {name: one.evidence.get(name) for name in EVIDENCE}
