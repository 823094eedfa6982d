"""The state machine of an alert: the answer of each state to each event, and the effects that follow. Pure.

    Pending -duration-> Firing -acknowledge-> Acknowledged
    Pending, Firing, Acknowledged -silence-> Silenced -its end-> Firing, or Acknowledged if it was
    any open one -no subject has the trouble for its settle time-> Resolved
    Pending, no subject left -> forgotten: nobody was told

Raised again while it settles an open alert stays as it is, and settles for twice as long the next time: ten flaps in a
row are two messages. Every (state, event) pair has an answer. The page docs/diagrams/alerts.md is generated from this
table (drawings.py).
"""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

from windrow_master.watch.model import Alert, AlertState


class AlertEvent(StrEnum):
    """RAISE, CLEAR: a subject has the trouble; none has it any more. FIRE, ESCALATE, SETTLE, UNSILENCE: its time has
    come. ACCEPT: somebody looks after it, for whom operators do not wait: they are told again as before. END: the rule
    or the cause is gone, or another alert tells of it."""

    RAISE = "raise"
    CLEAR = "clear"
    FIRE = "fire"
    ESCALATE = "escalate"
    SETTLE = "settle"
    ACKNOWLEDGE = "acknowledge"
    ACCEPT = "accept"
    SILENCE = "silence"
    UNSILENCE = "unsilence"
    END = "end"


class AlertEffect(StrEnum):
    """Committed with the state. FORGET: the row goes, since nobody was told of it. RELEASE: what it held back may be
    told now."""

    TELL_FIRING = "tell_firing"
    TELL_ESCALATED = "tell_escalated"
    TELL_RESOLVED = "tell_resolved"
    RELEASE = "release"
    FORGET = "forget"


_S, _E, _F = AlertState, AlertEvent, AlertEffect
OPEN: Final = tuple(state for state in AlertState if state is not _S.RESOLVED)
_TOLD: Final = (_S.FIRING, _S.ACKNOWLEDGED, _S.SILENCED)
DOUBLINGS_MAX: Final = 5
"""Of the settle time: half a minute becomes 16 minutes."""
ESCALATIONS_MAX: Final = 3

MOVES: Final[Mapping[tuple[AlertState, AlertEvent], AlertState]] = {
    (_S.PENDING, _E.FIRE): _S.FIRING,
    (_S.PENDING, _E.CLEAR): _S.RESOLVED,
    (_S.FIRING, _E.ACKNOWLEDGE): _S.ACKNOWLEDGED,
    (_S.FIRING, _E.ACCEPT): _S.ACKNOWLEDGED,
    (_S.SILENCED, _E.UNSILENCE): _S.FIRING,
    **{(state, _E.SILENCE): _S.SILENCED for state in OPEN},
    **{(state, _E.SETTLE): _S.RESOLVED for state in _TOLD},
    **{(state, _E.END): _S.RESOLVED for state in OPEN},
}
"""The pairs that move; every other pair stays."""


def step(
    alert: Alert, event: AlertEvent, now_ns: int, *, until_ns: int | None = None, actor: str = ""
) -> tuple[Alert, tuple[AlertEffect, ...]]:
    """Answer one event. until_ns: of a silence, or of a moment that is raised, its end. actor: who acknowledges."""
    target = MOVES.get((alert.state, event), alert.state)
    if alert.state is _S.RESOLVED:
        return alert, ()
    if event is _E.UNSILENCE and alert.acked_at_ns is not None:
        target = _S.ACKNOWLEDGED
    after = replace(alert, state=target, **_changes(alert, event, target, now_ns, until_ns, actor))
    return after, _effects(alert, event, target)


def _changes(
    alert: Alert, event: AlertEvent, target: AlertState, now_ns: int, until_ns: int | None, actor: str
) -> dict[str, Any]:
    match event:
        case _E.RAISE:
            flaps = alert.flaps + (alert.settles_at_ns is not None)
            return {"settles_at_ns": until_ns, "flaps": flaps}
        case _E.CLEAR if target is not _S.RESOLVED:
            return {"settles_at_ns": now_ns + (alert.settle_ns << min(alert.flaps, DOUBLINGS_MAX))}
        case _E.FIRE | _E.UNSILENCE if target is _S.FIRING:
            escalates = None if alert.escalate_ns is None else now_ns + alert.escalate_ns
            fired = now_ns if alert.fired_at_ns is None else alert.fired_at_ns
            return {
                "fires_at_ns": None,
                "fired_at_ns": fired,
                "silenced_until_ns": None,
                "escalates_at_ns": escalates,
            }
        case _E.UNSILENCE if target is _S.ACKNOWLEDGED:
            return {"silenced_until_ns": None}
        case _E.ESCALATE if waits(alert) and alert.escalate_ns is not None:
            count = alert.escalations + 1
            again = None if count >= ESCALATIONS_MAX else now_ns + (alert.escalate_ns << count)
            return {"escalations": count, "escalates_at_ns": again}
        case _E.ACKNOWLEDGE if alert.state is not _S.PENDING and alert.acked_at_ns is None:
            return {"acked_at_ns": now_ns, "acked_by": actor, "escalates_at_ns": None}
        case _E.ACCEPT if alert.state is _S.FIRING:
            return {"acked_by": actor}
        case _E.SILENCE:
            ends_ns = max(until_ns or now_ns, alert.fires_at_ns or 0)
            return {"silenced_until_ns": ends_ns, "fires_at_ns": None, "escalates_at_ns": None}
    ended = {"resolved_at_ns": now_ns, "fires_at_ns": None, "settles_at_ns": None, "escalates_at_ns": None}
    return ended if target is _S.RESOLVED else {}


def _effects(alert: Alert, event: AlertEvent, target: AlertState) -> tuple[AlertEffect, ...]:
    if target is _S.RESOLVED:
        if alert.state is _S.PENDING:
            return _F.RELEASE, _F.FORGET
        return (_F.RELEASE,) if alert.fired_at_ns is None else (_F.TELL_RESOLVED, _F.RELEASE)
    if target is _S.FIRING and alert.state is not target and alert.fired_at_ns is None:
        return (_F.TELL_FIRING,)
    return (_F.TELL_ESCALATED,) if event is _E.ESCALATE and waits(alert) else ()


def waits(alert: Alert) -> bool:
    """Return whether it is told again: nobody has acknowledged it, or nobody for whom the operators do not wait."""
    return alert.state is _S.FIRING or (alert.state is _S.ACKNOWLEDGED and alert.acked_at_ns is None)


def due(alert: Alert) -> tuple[int, AlertEvent] | None:
    """What time brings next to an alert if nothing happens, and when; None: nothing. Without a subject left its silence
    does not end, and nobody is told again."""
    found: list[tuple[int, AlertEvent]] = []
    if alert.state is _S.RESOLVED:
        return None
    if alert.settles_at_ns is not None and alert.state is not _S.PENDING:
        found.append((alert.settles_at_ns, _E.SETTLE))
    if alert.state is _S.SILENCED and alert.silenced_until_ns is not None and alert.subject_count:
        found.append((alert.silenced_until_ns, _E.UNSILENCE))
    if alert.state is _S.PENDING:
        found.append((alert.fires_at_ns or alert.opened_at_ns, _E.FIRE))
    if waits(alert) and alert.escalates_at_ns is not None and alert.subject_count:
        found.append((alert.escalates_at_ns, _E.ESCALATE))
    return min(found, default=None)
