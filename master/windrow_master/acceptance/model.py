"""The values of acceptance tests: one test rental of a host by the Master, and its steps. Frozen; nothing here
decides. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from windrow_master.fleet.model import ProofOutcome
from windrow_proto.ids import ClusterId, HostId


class StepName(StrEnum):
    """The steps of a proof, in their order."""

    START = "start"
    REACH = "reach"
    COUNT = "count"
    MEMORY = "memory"
    BENCHMARK = "benchmark"
    BANDWIDTH = "bandwidth"
    END = "end"
    RECEIPT = "receipt"


class StepState(StrEnum):
    """The end of a step. ABSENT: there was nothing to try, or it could not be tried; that is not held against a
    host."""

    PASSED = "passed"
    FAILED = "failed"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class ProofStep:
    """The result of one step. took_ns: by the Master's clock, None where nothing was timed; words: for people, with
    a way out where it failed; fields: the figures, by name."""

    name: StepName
    state: StepState
    took_ns: int | None
    words: str
    fields: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Proof:
    """One test rental. actor: who asked for it; outcome, ended_at_ns: None while it runs; words: one sentence."""

    proof_id: str
    host_id: HostId
    at_ns: int
    actor: str
    cluster_id: ClusterId | None = None
    ended_at_ns: int | None = None
    outcome: ProofOutcome | None = None
    words: str = ""
    steps: tuple[ProofStep, ...] = ()

    def step(self, name: StepName) -> ProofStep | None:
        """Return the result of this step, if the proof came so far."""
        return next((step for step in self.steps if step.name is name), None)
