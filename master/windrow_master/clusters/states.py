"""The state table of clusters: the answer of each phase to each event, and the effects that follow. Pure.

    Requested -> Queued -> Placing -> Creating -> Running <-> Degraded -> Deleting -> Deleted
    Creating, Running, Degraded -> Stopping -> Stopped -> Placing, when it is started again
    Creating, Running, Degraded -> Finished, or Failed, when its command has ended by itself
    Requested, Queued, Placing, Stopped -> Deleted, since nothing is held; Creating, Stopping -> Deleting; what holds or
    waits -> Failed

Every (phase, event) pair has an answer: it moves, or it stays, because events come late and more than once. Deleted,
Finished and Failed are final. The page docs/diagrams/clusters.md is generated from this table (drawings.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from windrow_master.clusters.model import STEPS_KEPT, Cluster, ClusterPhase, Step


class ClusterEvent(StrEnum):
    """QUEUE: nothing fits now. PLACE: look for a place. GRANTED: slots are leased and the command is out.

    ASSEMBLED: all of its members are prepared and wait for each other. READY: all of its work runs or has run.
    IMPAIRED: the host of some is not heard of, or a member has ended before the others. BROKEN: it cannot go on.
    DONE: its command has ended with exit code 0. UNDONE: it has ended otherwise.
    STOP: somebody wants its work gone, to start it again later. DELETE: somebody wants it gone. EXPIRE: its time is
    over, or somebody wants it gone and what it has left so far kept.
    GONE: nothing of it is left on any host that answers.
    """

    QUEUE = "queue"
    PLACE = "place"
    GRANTED = "granted"
    ASSEMBLED = "assembled"
    READY = "ready"
    IMPAIRED = "impaired"
    BROKEN = "broken"
    DONE = "done"
    UNDONE = "undone"
    STOP = "stop"
    DELETE = "delete"
    EXPIRE = "expire"
    GONE = "gone"


class Effect(StrEnum):
    """An action in the same transaction; each is safe to do twice.

    START_MEMBERS: let those start that wait for each other. END_WORK: order every workload gone, end the rental.
    CLOSE_WORK: the same, but log and files of work that ran are brought in first.
    FINISH_CREATE, FAIL_CREATE, FINISH_STOP, FAIL_STOP, FINISH_DELETE: answer operations; a start is a creation.
    """

    START_MEMBERS = "start_members"
    END_WORK = "end_work"
    CLOSE_WORK = "close_work"
    FINISH_CREATE = "finish_create"
    FAIL_CREATE = "fail_create"
    FINISH_STOP = "finish_stop"
    FAIL_STOP = "fail_stop"
    FINISH_DELETE = "finish_delete"


_P, _E = ClusterPhase, ClusterEvent
_WAITING: Final = (_P.REQUESTED, _P.QUEUED, _P.PLACING)
_HOLDING: Final = (_P.CREATING, _P.RUNNING, _P.DEGRADED)

MOVES: Final[Mapping[tuple[ClusterPhase, ClusterEvent], ClusterPhase]] = {
    (_P.REQUESTED, _E.QUEUE): _P.QUEUED,
    (_P.PLACING, _E.QUEUE): _P.QUEUED,
    (_P.REQUESTED, _E.PLACE): _P.PLACING,
    (_P.QUEUED, _E.PLACE): _P.PLACING,
    (_P.STOPPED, _E.PLACE): _P.PLACING,
    (_P.PLACING, _E.GRANTED): _P.CREATING,
    (_P.CREATING, _E.READY): _P.RUNNING,
    (_P.DEGRADED, _E.READY): _P.RUNNING,
    (_P.RUNNING, _E.IMPAIRED): _P.DEGRADED,
    **{(phase, _E.BROKEN): _P.FAILED for phase in (*_WAITING, *_HOLDING)},
    **{(phase, _E.DONE): _P.FINISHED for phase in _HOLDING},
    **{(phase, _E.UNDONE): _P.FAILED for phase in _HOLDING},
    **{(phase, _E.STOP): _P.STOPPING for phase in _HOLDING},
    (_P.STOPPING, _E.GONE): _P.STOPPED,
    **{(phase, _E.DELETE): _P.DELETED for phase in (*_WAITING, _P.STOPPED)},
    **{(phase, _E.DELETE): _P.DELETING for phase in (*_HOLDING, _P.STOPPING)},
    **{(phase, _E.EXPIRE): _P.DELETED for phase in (*_WAITING, _P.STOPPED)},
    **{(phase, _E.EXPIRE): _P.DELETING for phase in (*_HOLDING, _P.STOPPING)},
    (_P.DELETING, _E.GONE): _P.DELETED,
}

_NEWS: Final = {(_P.DEGRADED, _E.IMPAIRED): "degraded"}
"""Pairs in which the phase stays and yet something new may be said, and the step that says it: another member is
lost."""
_STARTS: Final = frozenset({_E.READY, _E.DONE, _E.UNDONE})
"""Events that say that a cluster's work runs, or has run."""
FINAL: Final = frozenset({_P.DELETED, _P.FINISHED, _P.FAILED})
_ENDED: Final = FINAL | {_P.STOPPED}
WAITING: Final = frozenset(_WAITING)
"""Phases in which it has no place yet."""
HOLDING: Final = frozenset(_HOLDING)
"""Phases in which its work is meant to be there."""


@dataclass(frozen=True, slots=True)
class Move:
    """The phase afterwards and what must be done; the same phase and nothing where the event changes nothing."""

    phase: ClusterPhase
    effects: tuple[Effect, ...]


def answer(phase: ClusterPhase, event: ClusterEvent) -> Move:
    """Answer one event. Total over every pair."""
    target = MOVES.get((phase, event))
    if target is None:
        if event is _E.ASSEMBLED and phase in HOLDING:
            return Move(phase, (Effect.START_MEMBERS,))
        # Asking twice is answered twice: nothing is left to do for what is on its way or gone.
        told = (Effect.FINISH_DELETE,) if event in (_E.DELETE, _E.EXPIRE) and phase in FINAL else ()
        return Move(phase, (Effect.FINISH_STOP,) if event is _E.STOP and phase is _P.STOPPED else told)
    match event:
        case _E.READY:
            return Move(target, (Effect.FINISH_CREATE,))
        case _E.BROKEN:
            end = (Effect.CLOSE_WORK,) if phase in HOLDING else ()
            return Move(target, (*end, Effect.FAIL_CREATE))
        case _E.DONE | _E.UNDONE:
            return Move(target, (Effect.CLOSE_WORK, Effect.FINISH_CREATE))
        case _E.STOP:
            return Move(target, (Effect.END_WORK, Effect.FAIL_CREATE))
        case _E.DELETE | _E.EXPIRE:
            ends = Effect.CLOSE_WORK if event is _E.EXPIRE else Effect.END_WORK
            end = (ends,) if phase in HOLDING else ()
            given_up = Effect.FAIL_STOP if phase is _P.STOPPING else Effect.FAIL_CREATE
            done = (Effect.FINISH_DELETE,) if target is _P.DELETED else ()
            return Move(target, (*end, given_up, *done))
        case _E.GONE:
            return Move(target, (Effect.FINISH_STOP if target is _P.STOPPED else Effect.FINISH_DELETE,))
        case _:
            return Move(target, ())


def step(cluster: Cluster, event: ClusterEvent, reason: str, now_ns: int) -> tuple[Cluster, tuple[Effect, ...]]:
    """Advance one cluster by one event, with the reason to show for it. Total; the same cluster where it is no news."""
    move = answer(cluster.phase, event)
    if move.phase is cluster.phase:
        name = _NEWS.get((cluster.phase, event))
        if name is not None and reason != cluster.reason:
            return noted(cluster, Step(now_ns, name, None, reason), reason=reason), move.effects
        return cluster, move.effects
    reason = reason or (cluster.reason if event is _E.GONE else "")  # why it ends is why it has ended
    after = noted(
        cluster,
        Step(now_ns, move.phase.value.lower(), None, reason),
        phase=move.phase,
        reason=reason,
        started_at_ns=now_ns if event in _STARTS and cluster.started_at_ns is None else cluster.started_at_ns,
        ended_at_ns=now_ns if move.phase in _ENDED and cluster.ended_at_ns is None else cluster.ended_at_ns,
        sealed=b"" if move.phase in FINAL else cluster.sealed,
    )
    return after, move.effects


def noted(cluster: Cluster, progress: Step, **changes: Any) -> Cluster:
    """The cluster with one more step; a step of the same name goes on in its line, and so does each member's own, also
    when others have gone on meanwhile. Equal progress is no news. changes: of its other fields, at once: each copy of a
    cluster costs as much as a statement."""
    steps, at = cluster.steps, _line(cluster.steps, progress)
    if at is None:
        steps = (*steps, progress)
    elif (steps[at].progress_permille, steps[at].detail) == (progress.progress_permille, progress.detail):
        return replace(cluster, **changes) if changes else cluster
    else:
        steps = (*steps[:at], replace(progress, at_ns=steps[at].at_ns), *steps[at + 1 :])
    return replace(cluster, steps=steps[-STEPS_KEPT:], version=cluster.version + 1, **changes)


def _line(steps: Sequence[Step], progress: Step) -> int | None:
    """Return the step that goes on; None: it is a new one."""
    among = range(len(steps) - 1, -1, -1) if progress.member else range(len(steps) - 1, len(steps) - 2, -1)
    key = progress.name, progress.member
    return next((at for at in among if at >= 0 and (steps[at].name, steps[at].member) == key), None)
