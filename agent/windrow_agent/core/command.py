"""The state machine of one command, from its arrival to its one result; a command that comes twice has its effect once.
Pure.

    NEW ──Arrived──▶ RECEIVED ──Journaled──▶ ACCEPTED ──Begun──▶ RUNNING ──Finished──▶ SUCCEEDED
     │                                                              ├──Broke─────▶ FAILED
     └──Arrived(refusal)──▶ REFUSED                                 └──Progressed: same phase, new step

A final state never changes: its result is what every later question is answered with. After a crash `Resumed` says
what may be done: what was only accepted runs, what had begun is looked for first (`Investigate`), and only what was
never there (`Missed`) is performed again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Final, assert_never

from windrow_proto.ids import CommandId
from windrow_proto.model import CommandPhase


class Phase(Enum):
    """The progress of a command on this host."""

    NEW = auto()
    RECEIVED = auto()
    ACCEPTED = auto()
    RUNNING = auto()
    SUCCEEDED = auto()
    FAILED = auto()
    REFUSED = auto()


FINAL: Final[frozenset[Phase]] = frozenset({Phase.SUCCEEDED, Phase.FAILED, Phase.REFUSED})
"""Nothing leaves these."""

REPORTED_AS: Final[Mapping[Phase, CommandPhase]] = {
    Phase.NEW: CommandPhase.NEVER_SEEN,
    Phase.RECEIVED: CommandPhase.ACCEPTED,
    Phase.ACCEPTED: CommandPhase.ACCEPTED,
    Phase.RUNNING: CommandPhase.RUNNING,
    Phase.SUCCEEDED: CommandPhase.SUCCEEDED,
    Phase.FAILED: CommandPhase.FAILED,
    Phase.REFUSED: CommandPhase.REFUSED,
}
"""The phase as the Master is told it."""


@dataclass(frozen=True, slots=True)
class CommandState:
    """One command as this host knows it. progress_permille: 0 to 1000 within the step, never falling within one."""

    command_id: CommandId
    phase: Phase = Phase.NEW
    step: str = ""
    progress_permille: int = 0
    error_code: str = ""
    error_detail: str = ""
    result: Mapping[str, str] = field(default_factory=dict)


# --- events -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Arrived:
    """The command came over the link, for the first time or again. refusal_code empty: it may run."""

    refusal_code: str = ""
    refusal_detail: str = ""


@dataclass(frozen=True, slots=True)
class Journaled:
    """The arrival is on disk."""


@dataclass(frozen=True, slots=True)
class Begun:
    """Its turn has come; the next thing done may be seen from outside."""

    step: str


@dataclass(frozen=True, slots=True)
class Progressed:
    """The command got this far. found: the part of its result that is known already."""

    step: str
    progress_permille: int
    found: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finished:
    """The command did its work."""

    result: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Broke:
    """The command failed."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """The agent process started again and read this command from its journal."""


@dataclass(frozen=True, slots=True)
class Missed:
    """The command had begun, and its runtime knows nothing of it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The Master wants to know what became of it."""


Event = Arrived | Journaled | Begun | Progressed | Finished | Broke | Resumed | Missed | Asked


# --- effects ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WriteReceived:
    """Journal the arrival and fsync; answer with Journaled."""


@dataclass(frozen=True, slots=True)
class WriteStarted:
    """Journal that it begins and fsync, before anything is done."""


@dataclass(frozen=True, slots=True)
class WriteDone:
    """Journal the result and fsync, before anyone is told."""


@dataclass(frozen=True, slots=True)
class Report:
    """Send the present status as evidence."""


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Let it wait for its turn; answer with Begun."""


@dataclass(frozen=True, slots=True)
class Perform:
    """Do it; answer with Progressed, Finished or Broke."""


@dataclass(frozen=True, slots=True)
class Investigate:
    """Look whether it was done before the crash; answer with Finished, Broke or Missed."""


Effect = WriteReceived | WriteStarted | WriteDone | Report | Enqueue | Perform | Investigate
Step = tuple[CommandState, tuple[Effect, ...]]


def step(state: CommandState, event: Event) -> Step:
    """Advance one command by one event. Total: every (phase, event) pair has an answer; effects come in order."""
    match event:
        case Arrived():
            return _arrive(state, event)
        case Journaled():
            if state.phase is not Phase.RECEIVED:
                return state, ()  # a late answer of the disk
            return replace(state, phase=Phase.ACCEPTED), (Enqueue(), Report())
        case Begun():
            if state.phase is not Phase.ACCEPTED:
                return state, ()  # its turn came twice
            return replace(state, phase=Phase.RUNNING, step=event.step), (WriteStarted(), Report(), Perform())
        case Progressed():
            return _progress(state, event)
        case Finished():
            if state.phase is not Phase.RUNNING:
                return state, ()  # the first result stands
            done = replace(
                state, phase=Phase.SUCCEEDED, progress_permille=1000, result={**state.result, **event.result}
            )
            return done, (WriteDone(), Report())
        case Broke():
            if state.phase in FINAL or state.phase is Phase.NEW:
                return state, ()
            failed = replace(state, phase=Phase.FAILED, error_code=event.code, error_detail=event.detail)
            return failed, (WriteDone(), Report())
        case Resumed():
            return _resume(state)
        case Missed():
            return (state, (Perform(),)) if state.phase is Phase.RUNNING else (state, ())
        case Asked():
            return state, (Report(),)
        case _:
            assert_never(event)


def _arrive(state: CommandState, event: Arrived) -> Step:
    if state.phase is not Phase.NEW:
        return state, (Report(),)  # the Master may repeat itself; the answer is what is known
    if event.refusal_code:
        refused = replace(state, phase=Phase.REFUSED, error_code=event.refusal_code, error_detail=event.refusal_detail)
        return refused, (WriteDone(), Report())
    return replace(state, phase=Phase.RECEIVED), (WriteReceived(),)


def _progress(state: CommandState, event: Progressed) -> Step:
    if state.phase is not Phase.RUNNING:
        return state, ()  # a straggler of work that has ended
    progress = min(1000, max(0, event.progress_permille))
    result = {**state.result, **event.found}
    if event.step == state.step and progress <= state.progress_permille and result == state.result:
        return state, ()  # nothing new to say
    if event.step == state.step:
        progress = max(progress, state.progress_permille)
    return replace(state, step=event.step, progress_permille=progress, result=result), (Report(),)


def _resume(state: CommandState) -> Step:
    if state.phase is Phase.RECEIVED or state.phase is Phase.ACCEPTED:
        return replace(state, phase=Phase.ACCEPTED), (Enqueue(), Report())
    if state.phase is Phase.RUNNING:
        return state, (Investigate(),)
    return state, ()
