"""Judges one challenge of a card, from the question to the verdict. Pure.

 ASKED ──Committed, in time, of this challenge──▶ COMMITTED ──Answered, all openings true──▶ PASSED
   │                                                  │
   └──── late, replayed, of another GPU, malformed ───┴── late, changed, wrong root or entry ──▶ FAILED

The roots are for good before a place is drawn, and the places are drawn from randomness that comes with the commitment.
PASSED and FAILED are final. What time says of a class that is not calibrated is noted and refuses nobody.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, assert_never

from windrow_master.verification.draw import draw
from windrow_master.verification.product import entries
from windrow_master.verification.times import ANSWER_NS, UNMEASURED, Pace, Timing, pace
from windrow_proto.challenge import OPENINGS, Answer, Challenge, Commitment, Selection


class Phase(StrEnum):
    """The phase of a trial."""

    ASKED = "asked"
    COMMITTED = "committed"
    PASSED = "passed"
    FAILED = "failed"


class Reason(StrEnum):
    """The reason why a trial failed."""

    LATE_COMMITMENT = "late_commitment"
    LATE_ANSWER = "late_answer"
    REPLAYED = "replayed"
    """Made for another challenge: another nonce, host, GPU, size or number of rounds."""
    WRONG_GPU = "wrong_gpu"
    """Done on another device than was asked, by the prover's own word."""
    WRONG_COUNT = "wrong_count"
    """Not one root a round, or not one opening a place."""
    CHANGED = "changed"
    """A second commitment that is not the first."""
    OUT_OF_TURN = "out_of_turn"
    """An answer before there was anything to open."""
    MALFORMED = "malformed"
    """The bytes were none of these messages."""
    WRONG_DEPTH = "wrong_depth"
    WRONG_ROOT = "wrong_root"
    """A leaf that is not under the root."""
    WRONG_ENTRY = "wrong_entry"
    """A leaf under the root with an entry that is not the product's."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One challenge to one GPU. Times are of the Master's monotonic clock.

    openings: how many places are drawn; span_ns: from asking to the commitment, None before it; selection: what was
    asked to open, None before the commitment.
    """

    challenge: Challenge
    asked_ns: int
    timing: Timing = UNMEASURED
    openings: int = OPENINGS
    phase: Phase = Phase.ASKED
    reasons: tuple[Reason, ...] = ()
    commitment: Commitment | None = None
    selection: Selection | None = None
    committed_ns: int | None = None

    @property
    def span_ns(self) -> int | None:
        """From asking to the commitment."""
        return None if self.committed_ns is None else self.committed_ns - self.asked_ns

    @property
    def pace(self) -> Pace | None:
        """The pace of the card by the span; None before there is one."""
        return None if self.span_ns is None else pace(self.timing, self.span_ns)

    @property
    def due_ns(self) -> int | None:
        """When it lapses if nothing comes; None once it is judged."""
        if self.phase is Phase.ASKED:
            return self.asked_ns + self.timing.limit_ns
        if self.phase is Phase.COMMITTED and self.committed_ns is not None:
            return self.committed_ns + ANSWER_NS
        return None


@dataclass(frozen=True, slots=True)
class Committed:
    """The roots came. chance: CHANCE_BYTES of the Master's, drawn now."""

    commitment: Commitment
    now_ns: int
    chance: bytes


@dataclass(frozen=True, slots=True)
class Answered:
    """The openings came."""

    answer: Answer
    now_ns: int


@dataclass(frozen=True, slots=True)
class Garbled:
    """Bytes came that are no message of a challenge."""

    now_ns: int


@dataclass(frozen=True, slots=True)
class Ticked:
    """Time went by."""

    now_ns: int


Event = Committed | Answered | Garbled | Ticked


@dataclass(frozen=True, slots=True)
class Ask:
    """Send this selection to the host; the same again is harmless."""

    selection: Selection


FINAL: Final = frozenset({Phase.PASSED, Phase.FAILED})


def step(trial: Trial, event: Event) -> tuple[Trial, tuple[Ask, ...]]:
    """Advance one trial by one event. Total; a judged one stays as it is."""
    if trial.phase in FINAL:
        return trial, ()
    if trial.due_ns is not None and event.now_ns > trial.due_ns:
        late = Reason.LATE_COMMITMENT if trial.phase is Phase.ASKED else Reason.LATE_ANSWER
        return _fail(trial, late), ()
    match event:
        case Committed():
            return _commit(trial, event)
        case Answered(answer):
            return _answer(trial, answer), ()
        case Garbled():
            return _fail(trial, Reason.MALFORMED), ()
        case Ticked():
            return trial, ()
        case _:
            assert_never(event)


def _commit(trial: Trial, event: Committed) -> tuple[Trial, tuple[Ask, ...]]:
    commitment = event.commitment
    if trial.commitment is not None and trial.selection is not None:
        if commitment == trial.commitment:
            return trial, (Ask(trial.selection),)  # repeated: perhaps the selection was lost
        return _fail(trial, Reason.CHANGED), ()
    if commitment.challenge_id != trial.challenge.id:
        return _fail(trial, Reason.REPLAYED), ()
    if commitment.gpu_uuid != trial.challenge.gpu_uuid:
        return _fail(trial, Reason.WRONG_GPU), ()
    if len(commitment.roots) != trial.challenge.rounds:
        return _fail(trial, Reason.WRONG_COUNT), ()
    selection = draw(trial.challenge, event.chance, trial.openings)
    committed = replace(
        trial, phase=Phase.COMMITTED, commitment=commitment, selection=selection, committed_ns=event.now_ns
    )
    return committed, (Ask(selection),)


def _answer(trial: Trial, answer: Answer) -> Trial:
    if trial.commitment is None or trial.selection is None:
        return _fail(trial, Reason.OUT_OF_TURN)
    if answer.challenge_id != trial.challenge.id:
        return _fail(trial, Reason.REPLAYED)
    wrong = check(trial.challenge, trial.commitment, trial.selection, answer)
    return _fail(trial, *wrong) if wrong else replace(trial, phase=Phase.PASSED)


def check(challenge: Challenge, commitment: Commitment, selection: Selection, answer: Answer) -> tuple[Reason, ...]:
    """Return the faults of the openings, each reason once, sorted; empty when all are true."""
    if len(answer.openings) != len(selection.places) or len(commitment.roots) != challenge.rounds:
        return (Reason.WRONG_COUNT,)
    if any(len(opening.path) != challenge.depth for opening in answer.openings):
        return (Reason.WRONG_DEPTH,)
    found: set[Reason] = set()
    for place, opening in zip(selection.places, answer.openings, strict=True):
        if opening.root(place.leaf(challenge)) != commitment.roots[place.round]:
            found.add(Reason.WRONG_ROOT)
    true = entries(challenge, commitment.roots, selection.places)
    for place, opening, entry in zip(selection.places, answer.openings, true, strict=True):
        if opening.entry(place.column) != entry:
            found.add(Reason.WRONG_ENTRY)
    return _sorted(found)


def _fail(trial: Trial, *reasons: Reason) -> Trial:
    return replace(trial, phase=Phase.FAILED, reasons=_sorted(reasons))


def _sorted(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    return tuple(sorted(reasons))
