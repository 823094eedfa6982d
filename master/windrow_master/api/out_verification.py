"""What the HTTP API answers about the verification of hosts. Models as in out.py."""

from typing import Annotated

from pydantic import Field

from windrow_master.api.out import OperationOut, Out, Time


class CardVerificationOut(Out):
    """What the newest challenge of one card came to, and what was asked and shown."""

    gpu_uuid: str
    verification_id: Annotated[str, Field(description="Shared by the cards that were challenged together")]
    at: Time
    outcome: Annotated[str, Field(description="passed, failed, unprovable or unfinished")]
    detail: str
    reasons: list[str]
    device: Annotated[str | None, Field(description="As its OpenCL driver names it")]
    driver: str | None
    span_ms: Annotated[int | None, Field(description="From the challenge sent to the commitment in, by the Master")]
    pace: Annotated[str | None, Field(description="What that says; observed: its class is not calibrated")]
    bound_ms: Annotated[int | None, Field(description="A commitment later than that is refused; null where not kept")]
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
    memory_span_ms: Annotated[int | None, Field(description="From asking until all was written, by the Master")]
    agent_version: str | None
    master_version: str | None
    nonce: str | None
    size: Annotated[int | None, Field(description="Rows and columns of the matrices")]
    rounds: int | None
    openings: int | None
    places: Annotated[list[list[int]], Field(description="Round, row and column of each entry that was looked at")]
    roots: Annotated[list[str], Field(description="What was committed to, one a round")]


class PastVerificationOut(Out):
    """What one challenge of one card came to."""

    gpu_uuid: str
    verification_id: str
    at: Time
    outcome: str
    detail: str
    span_ms: int | None
    pace: str | None


class VerificationOut(Out):
    """How the verification of a host stands."""

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
