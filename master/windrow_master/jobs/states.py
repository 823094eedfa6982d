"""The state table of jobs: the answer of each state to each event, and the effects that follow. Pure.

    Submitted -> Queued -> Starting -> Running -> Checkpointing -> Succeeded | Failed | Cancelled
    Starting, Running, Checkpointing -> Migrating -> Starting, while attempts are left; else Lost

Every (state, event) pair has an answer: it moves, or it stays, because events come late and more than once. The page
docs/diagrams/jobs.md is generated from this table (drawings.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from windrow_master.jobs.model import JobState


class JobEvent(StrEnum):
    """ADMIT: its folder is here, and what it comes after has succeeded. PLACED: a cluster was made for it.

    RUNS: its work runs. COLLECT: its work has ended, or is to be ended; bring in what it left. SUCCEED, FAIL, CANCEL:
    its end. AGAIN: this attempt is over, another one follows. LOSE: its host is lost, and no attempt is left.
    """

    ADMIT = "admit"
    PLACED = "placed"
    RUNS = "runs"
    COLLECT = "collect"
    SUCCEED = "succeed"
    FAIL = "fail"
    CANCEL = "cancel"
    AGAIN = "again"
    LOSE = "lose"


class JobEffect(StrEnum):
    """An action in the same transaction; safe to do twice. LET_GO: end the cluster of its last attempt, if any."""

    LET_GO = "let_go"


_S, _E = JobState, JobEvent
FINAL: Final = frozenset({_S.SUCCEEDED, _S.FAILED, _S.CANCELLED, _S.LOST})
LIVING: Final = tuple(state for state in JobState if state not in FINAL)
PLACEABLE: Final = frozenset({_S.QUEUED, _S.MIGRATING})
"""States in which it waits for a cluster."""
WAITING: Final = PLACEABLE | {_S.SUBMITTED}
HOLDING: Final = frozenset({_S.STARTING, _S.RUNNING, _S.CHECKPOINTING})
"""States in which it has one."""

MOVES: Final[Mapping[tuple[JobState, JobEvent], JobState]] = {
    (_S.SUBMITTED, _E.ADMIT): _S.QUEUED,
    (_S.QUEUED, _E.PLACED): _S.STARTING,
    (_S.MIGRATING, _E.PLACED): _S.STARTING,
    (_S.STARTING, _E.RUNS): _S.RUNNING,
    (_S.STARTING, _E.COLLECT): _S.CHECKPOINTING,
    (_S.RUNNING, _E.COLLECT): _S.CHECKPOINTING,
    (_S.CHECKPOINTING, _E.SUCCEED): _S.SUCCEEDED,
    **{(state, _E.AGAIN): _S.MIGRATING for state in (_S.STARTING, _S.RUNNING, _S.CHECKPOINTING)},
    **{(state, _E.LOSE): _S.LOST for state in (_S.STARTING, _S.RUNNING, _S.CHECKPOINTING)},
    **{(state, _E.FAIL): _S.FAILED for state in LIVING},
    **{(state, _E.CANCEL): _S.CANCELLED for state in LIVING},
}


@dataclass(frozen=True, slots=True)
class JobMove:
    """The state afterwards and what must be done; the same state and nothing where the event changes nothing."""

    state: JobState
    effects: tuple[JobEffect, ...] = ()


def answer(state: JobState, event: JobEvent) -> JobMove:
    """Answer one event. Total over every pair."""
    target = MOVES.get((state, event))
    if target is None:
        return JobMove(state)
    # Also what has only been queued may have a cluster: the Master died between making it and writing it down.
    lets_go = target is _S.MIGRATING or target in FINAL
    return JobMove(target, (JobEffect.LET_GO,) if lets_go else ())
