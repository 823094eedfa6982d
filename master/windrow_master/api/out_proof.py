"""What the HTTP API answers about proofs of hosts. Models as in out.py."""

from typing import Annotated

from pydantic import Field

from windrow_master.api.out import OperationOut, Out, Time


class StageOut(Out):
    """How far a host has come."""

    name: Annotated[str, Field(description="downloaded, certified, tested, verified or listed")]
    state: Annotated[str, Field(description="done, running, waiting, failed or skipped")]
    at: Annotated[Time | None, Field(description="Null where it was not reached, or where nobody knows when")]
    words: str


class ProofStepOut(Out):
    """One step of a test rental."""

    name: Annotated[str, Field(description="start, reach, count, memory, benchmark, bandwidth, end or receipt")]
    state: Annotated[str, Field(description="passed, failed, or absent where there was nothing to try")]
    took_ms: int | None
    words: str
    fields: Annotated[dict[str, int | str], Field(description="The figures, by name")]


class HostProofOut(Out):
    """One test rental of a host by the Master."""

    proof_id: str
    at: Time
    ended_at: Time | None
    was_asked: Annotated[bool, Field(description="Somebody asked for it; else it was due")]
    outcome: Annotated[str | None, Field(description="passed, failed or unfinished; null while it runs")]
    words: str | None
    steps: list[ProofStepOut]


class ProofOut(Out):
    """How a host's first proof, and its repetitions, stand."""

    host_id: str
    words: str
    stages: list[StageOut]
    proofs: Annotated[list[HostProofOut], Field(description="The newest first, ten at most")]


class ProvingOut(Out):
    """A test rental that has begun."""

    operation: OperationOut
    host_id: str
