"""Writes the result of a challenge of one card, in words and as evidence that can be looked at again. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from windrow_master.fleet.model import Host, Verification
from windrow_master.fleet.states import VerifyOutcome
from windrow_master.fleet.verdicts import Company
from windrow_master.verification import memory
from windrow_master.verification.judge import Phase, Reason, Trial
from windrow_master.verification.memory import Memory
from windrow_master.verification.times import Pace
from windrow_master.verification.together import Beside, Span, beside
from windrow_proto.ids import GpuUuid
from windrow_proto.units import SECOND

WORDS: Final[Mapping[Reason, str]] = {
    Reason.LATE_COMMITMENT: "no commitment came in time",
    Reason.LATE_ANSWER: "the openings did not come in time",
    Reason.REPLAYED: "the answer was made for another challenge",
    Reason.WRONG_GPU: "the work was done on another device than was asked",
    Reason.WRONG_COUNT: "there were too many or too few roots or openings",
    Reason.CHANGED: "the commitment was changed after it was given",
    Reason.OUT_OF_TURN: "it answered before it was asked",
    Reason.MALFORMED: "what it sent is no answer",
    Reason.WRONG_DEPTH: "a path to a root has the wrong length",
    Reason.WRONG_ROOT: "an opened entry is not one that was committed to",
    Reason.WRONG_ENTRY: "an opened entry is not the product's",
}
PACES: Final[Mapping[Pace, str]] = {
    Pace.OBSERVED: "its class is not calibrated, so the time counts for nothing",
    Pace.EXPECTED: "within the time of its class",
    Pace.TOO_SLOW: "slower than its class",
}


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one card. device: empty before its prover was ready; trial: None before it was asked; failure:
    why it came no further, empty where the trial was judged; memory_bytes: that its prover can fill, 0 where none;
    memory: None where it was not asked to."""

    gpu_uuid: GpuUuid
    device: str = ""
    trial: Trial | None = None
    failure: str = ""
    memory_bytes: int = 0
    memory: Memory | None = None

    @property
    def outcome(self) -> VerifyOutcome:
        """Judged, or why not: what fails before its prover is ready cannot be proved there."""
        if self.memory is not None and self.memory.verdict in memory.FAILED:
            return VerifyOutcome.FAILED
        if self.trial is not None and self.trial.phase is Phase.PASSED:
            return VerifyOutcome.PASSED
        if self.trial is not None and self.trial.phase is Phase.FAILED:
            return VerifyOutcome.FAILED
        return VerifyOutcome.UNFINISHED if self.device else VerifyOutcome.UNPROVABLE


NOT_FILLED: Final = "its memory was not filled: its prover cannot, or nobody says how much it has"
ALONE: Final = Beside(Company.ALONE, 1)


def side_by_side(results: Iterable[Result], classes: Mapping[GpuUuid, str]) -> dict[GpuUuid, Beside]:
    """Return how the cards that committed worked beside each other. classes: of the GPU table, by card."""
    trials = {one.gpu_uuid: one.trial for one in results if one.trial is not None}
    spans = {uuid: Span(one.asked_ns, one.span_ns) for uuid, one in trials.items() if one.span_ns is not None}
    return beside(spans, classes)


def verification(
    verification_id: str,
    host: Host,
    result: Result,
    now_ns: int,
    master_version: str,
    company: Beside = ALONE,
    *,
    is_broken: bool,
) -> Verification:
    """Return the evidence to keep. is_broken: the conversation ended before its time, which is no word of the
    card's."""
    outcome, trial = result.outcome, result.trial
    if outcome is VerifyOutcome.UNPROVABLE and is_broken:
        outcome = VerifyOutcome.UNFINISHED
    inventory = host.inventory
    return Verification(
        verification_id,
        host.host_id,
        result.gpu_uuid,
        now_ns,
        outcome,
        _reasons(result),
        _words(outcome, result, company),
        result.device,
        inventory.driver_version if inventory is not None else "",
        trial.span_ns if trial is not None else None,
        str(trial.pace) if trial is not None and trial.pace is not None else None,
        {
            "agent_version": inventory.agent_version if inventory is not None else "",
            "master_version": master_version,
            **(_evidence(trial, company) if trial is not None else {}),
            **(memory.evidence(result.memory) if result.memory is not None else {}),
        },
    )


def _reasons(result: Result) -> tuple[str, ...]:
    found = [str(reason) for reason in result.trial.reasons] if result.trial is not None else []
    if result.memory is not None and result.memory.verdict in memory.FAILED:
        found.append(str(result.memory.verdict))
    return tuple(found)


def _words(outcome: VerifyOutcome, result: Result, company: Beside) -> str:
    trial = result.trial
    match outcome:
        case VerifyOutcome.PASSED if trial is not None and trial.span_ns is not None and trial.pace is not None:
            size, rounds = trial.challenge.size, trial.challenge.rounds
            work = f"{rounds} rounds of {size} x {size} in {trial.span_ns / SECOND:.2f} s"
            held = result.memory.words if result.memory is not None else NOT_FILLED
            said = f"{trial.openings} openings true; {PACES[trial.pace]}; {company.words}; {held}"
            return f"{result.device}: {work}, {said}."
        case VerifyOutcome.FAILED if trial is not None:
            filled = [result.memory.words] if result.memory is not None else []
            return _sentence("; ".join([*(WORDS[reason] for reason in trial.reasons), *filled]))
        case VerifyOutcome.UNPROVABLE:
            return f"Not provable here: {result.failure or 'its prover did not become ready.'}"
        case _:
            return f"Broken off: {result.failure or 'it ended before its time.'}"


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + "."


def _evidence(trial: Trial, company: Beside) -> dict[str, object]:
    challenge, places = trial.challenge, trial.selection.places if trial.selection is not None else ()
    return {
        "nonce": challenge.nonce.hex(),
        "size": challenge.size,
        "rounds": challenge.rounds,
        "openings": len(places),
        "places": [[place.round, place.row, place.column] for place in places],
        "roots": [root.hex() for root in trial.commitment.roots] if trial.commitment is not None else [],
        "times": trial.timing.source,
        "bound_ns": trial.timing.limit_ns,
        "calibrated": trial.timing.calibrated,
        **({"together": str(company.company), "cards": company.cards} if trial.span_ns is not None else {}),
    }
