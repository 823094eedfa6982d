"""Applies signals to alerts in one transaction: the alerts, who is told, what is held back, and what is one cause.

raise ─▶ its alert is open? a subject more
      ─▶ an alert that holds it back is open? kept there, and raised again when that is over
      ─▶ several alike of one wider cause? one alert of that cause, in place of them
      ─▶ a new alert ─▶ states.step ─▶ message for the inbox and for the channels, event for the pages
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

from windrow_master.loops import Boundary
from windrow_master.store.unit import DATABASE_FAULTS, UnitOfWork
from windrow_master.watch.model import (
    NAMES_MAX,
    OPERATORS,
    WIDER_NS,
    Alert,
    AlertMessage,
    AlertState,
    Clear,
    MessageKind,
    Raise,
    Signal,
)
from windrow_master.watch.repository import AlertRepository
from windrow_master.watch.states import AlertEffect, AlertEvent, due, step, waits
from windrow_proto.conditions import Severity
from windrow_proto.units import MINUTE, time_text

RELEASE_NS: Final = 2 * MINUTE
"""What was held back is told so long after the end of what held it back, unless it is over by then."""
AGAIN_NS: Final = 10 * MINUTE
"""An alert that comes again so soon after its end is the same flapping: it settles for longer."""
CAUSE_MAX: Final = 200

Windows = Callable[[UnitOfWork, str, str, tuple[str, ...]], int | None]
"""Until when an alert of this rule, cause and audiences is not to be told: a silence, or a declared maintenance window;
None: it may be."""


class Notifier(Protocol):
    """The channels by which people are told beside the inbox."""

    def queue(self, uow: UnitOfWork, message: AlertMessage) -> None:
        """Have a message delivered once this transaction is committed."""


def silenced_until(uow: UnitOfWork, rule: str, cause: str, audiences: tuple[str, ...]) -> int | None:
    """Until when silences cover an alert."""
    found = uow[AlertRepository].silences(uow.now_wall_ns, audiences)
    return max((one.until_ns for one in found if one.covers(rule, cause, audiences, uow.now_wall_ns)), default=None)


class AlertEngine:
    """The alerts in one transaction after another."""

    def __init__(self, notifier: Notifier, windows: Windows) -> None:
        self._notifier, self._windows = notifier, windows
        self.faults = Boundary("alerts of", DATABASE_FAULTS)
        """A bug that is met with one event or alert ends only that."""

    def take(self, uow: UnitOfWork, signal: Signal) -> None:
        """Apply one signal."""
        if isinstance(signal, Clear):
            self._clear(uow, signal)
        else:
            self._raise(uow, replace(signal, cause=signal.cause[:CAUSE_MAX], subject=signal.subject[:CAUSE_MAX]))

    def look(self, uow: UnitOfWork) -> int:
        """Do what is due by time, of at most 500 alerts; returns of how many."""
        found = uow[AlertRepository].due(uow.now_wall_ns)
        for alert in found:
            # What was looked at before may have changed it.
            now = uow[AlertRepository].get(alert.alert_id)
            next_ = None if now is None else due(now)
            if now is not None and next_ is not None and next_[0] <= uow.now_wall_ns:
                with self.faults.around(now.rule), uow.attempt():
                    self._time(uow, now, next_[1])
        return len(found)

    def apply(
        self, uow: UnitOfWork, alert: Alert, event: AlertEvent, *, actor: str = "", until_ns: int | None = None
    ) -> Alert:
        """Take one step of an alert: its row, what it tells, what it lets go."""
        after, effects = step(alert, event, uow.now_wall_ns, until_ns=until_ns, actor=actor)
        if after == alert and not effects:
            return alert
        repository = uow[AlertRepository]
        repository.save(after)
        for effect in effects:
            match effect:
                case AlertEffect.TELL_FIRING:
                    self._tell(uow, after, MessageKind.FIRING, after.text)
                case AlertEffect.TELL_ESCALATED:
                    who = "Nobody" if after.state is AlertState.FIRING else "No operator"
                    self._tell(uow, after, MessageKind.ESCALATED, f"{who} has acknowledged it. {after.text}")
                case AlertEffect.TELL_RESOLVED:
                    self._tell(uow, after, MessageKind.RESOLVED, _ended(after))
                case AlertEffect.RELEASE:
                    for held in repository.release(after.alert_id, uow.now_wall_ns):
                        self._raise(uow, replace(held, after_ns=uow.now_wall_ns + RELEASE_NS))
                case AlertEffect.FORGET:
                    repository.forget(after.alert_id)
        return after

    # --- inside ---

    def _raise(self, uow: UnitOfWork, signal: Raise) -> None:
        repository, now_ns = uow[AlertRepository], uow.now_wall_ns
        said = self._told_once(uow, signal)
        if said is None:
            return
        alert = repository.open_of(said.rule, said.cause)
        if alert is None:
            for rule, cause in said.held_by:
                holder = repository.open_of(rule, cause)
                if holder is not None:
                    repository.put_subject(holder.alert_id, said, now_ns, held=True)
                    return
            alert = self._wider(uow, said)
        alert = alert or self._made(uow, said)
        is_new = repository.put_subject(alert.alert_id, said, now_ns, held=False)
        until_ns = said.until_ns if said.lasts_ns is None else now_ns + said.lasts_ns
        if not is_new and until_ns is None:
            return
        alert = replace(alert, subject_count=alert.subject_count + is_new)
        is_graver = said.severity is Severity.PAGE is not alert.severity
        if is_graver:
            again_ns = now_ns + (said.escalate_ns or 0) if waits(alert) else None
            alert = replace(alert, severity=said.severity, escalate_ns=said.escalate_ns, escalates_at_ns=again_ns)
        repository.save(alert)
        repository.tell_too(alert.alert_id, said.audiences)
        if (said.is_news or is_graver) and alert.fired_at_ns is not None:
            count = alert.escalations + 1
            alert = replace(alert, title=said.title, text=said.text, escalations=count, settles_at_ns=None)
            repository.save(alert)
            if alert.state is not AlertState.SILENCED:
                self._tell(uow, alert, MessageKind.FIRING, alert.text)
        alert = self.apply(uow, alert, AlertEvent.RAISE, until_ns=until_ns)
        next_ = due(alert)
        if next_ is not None and next_[0] <= now_ns:
            self._time(uow, alert, next_[1])

    def _told_once(self, uow: UnitOfWork, said: Raise) -> Raise | None:
        """The signal, of which lesser faults of the same subject are a part that nobody was told of yet; None: an alert
        tells of it already."""
        for alert in uow[AlertRepository].of_same(said) if said.same else ():
            is_lesser = said.same.index(alert.rule) > said.same.index(said.rule)
            if alert.state is not AlertState.PENDING or not is_lesser:
                uow[AlertRepository].put_subject(alert.alert_id, said, uow.now_wall_ns, held=True)
                return None
            self._clear(uow, Clear(said.cause, alert.rule, said.subject))
            if alert.severity is Severity.PAGE is not said.severity:
                text = f"{said.text} Before: {alert.text}"
                said = replace(said, severity=alert.severity, escalate_ns=alert.escalate_ns, text=text)
        return said

    def _wider(self, uow: UnitOfWork, said: Raise) -> Alert | None:
        """The open alert of the wider cause; a new one where enough causes have come together; None: there is none."""
        if not said.wider:
            return None
        repository = uow[AlertRepository]
        known = repository.open_of(said.rule, said.wider)
        if known is not None:
            return known
        alike = repository.alike(said.rule, said.wider, uow.now_wall_ns - WIDER_NS)
        if len(alike) + 1 < said.wider_least:
            return None
        title = said.title.removesuffix(said.name) + said.wider_name
        whole = self._made(uow, replace(said, cause=said.wider, title=title, wider=""))
        for one in alike:
            count = repository.move_subjects(one.alert_id, whole.alert_id)
            whole = replace(whole, subject_count=whole.subject_count + count)
            repository.tell_too(whole.alert_id, repository.audiences(one.alert_id))
            repository.note(one.alert_id, uow.now_wall_ns, "master", "merged", f"It is told as {whole.title}")
            self.apply(uow, replace(one, fields={**one.fields, "merged": whole.title}), AlertEvent.END)
        return whole

    def _made(self, uow: UnitOfWork, said: Raise) -> Alert:
        now_ns = uow.now_wall_ns
        before = uow[AlertRepository].last_resolved(said.rule, said.cause, now_ns - AGAIN_NS)
        alert = Alert(
            alert_id=uow.mint("alert"), rule=said.rule, cause=said.cause, state=AlertState.PENDING,
            severity=said.severity, title=said.title, text=said.text, remedy=said.remedy, opened_at_ns=now_ns,
            settle_ns=said.settle_ns, fires_at_ns=said.after_ns or now_ns + said.duration_ns,
            escalate_ns=said.escalate_ns, flaps=0 if before is None else before.flaps + 1, simulated=said.simulated,
            wider=said.wider,
        )  # fmt: skip
        uow[AlertRepository].add(alert, said.audiences)
        return alert

    def _clear(self, uow: UnitOfWork, said: Clear) -> None:
        repository = uow[AlertRepository]
        for alert_id, lost in repository.clear(said, uow.now_wall_ns).items():
            alert = repository.get(alert_id)
            if alert is None or not lost:
                continue
            fields = {**alert.fields, "ended": said.text} if said.text else alert.fields
            alert = replace(alert, subject_count=max(0, alert.subject_count - lost), fields=fields)
            repository.save(alert)
            if not alert.subject_count:
                self.apply(uow, alert, AlertEvent.CLEAR)

    def _time(self, uow: UnitOfWork, alert: Alert, event: AlertEvent) -> Alert:
        """What time brings; what would be told within a silence or a window waits for its end."""
        if event in (AlertEvent.FIRE, AlertEvent.UNSILENCE):
            audiences = uow[AlertRepository].audiences(alert.alert_id)
            until_ns = self._windows(uow, alert.rule, alert.cause, audiences)
            if until_ns is not None and until_ns > uow.now_wall_ns:
                return self.apply(uow, alert, AlertEvent.SILENCE, until_ns=until_ns)
        return self.apply(uow, alert, event)

    def _tell(self, uow: UnitOfWork, alert: Alert, kind: MessageKind, text: str) -> None:
        repository = uow[AlertRepository]
        names, count = repository.has_now(alert.alert_id, NAMES_MAX)
        again = f".{alert.escalations}" if alert.escalations and kind is not MessageKind.RESOLVED else ""
        audiences = repository.audiences(alert.alert_id)
        if kind is MessageKind.ESCALATED and alert.state is AlertState.ACKNOWLEDGED:
            audiences = (OPERATORS,)
        message = AlertMessage(
            message_id=f"{alert.alert_id}.{kind}{again}", number=0, alert_id=alert.alert_id, kind=kind,
            at_ns=uow.now_wall_ns, rule=alert.rule, severity=alert.severity, title=alert.title, text=text,
            remedy=alert.remedy, object_key=alert.object_key, link=f"/alerts/{alert.alert_id}",
            audiences=audiences, subjects=tuple(names), subject_count=count,
            simulated=alert.simulated,
        )  # fmt: skip
        self._notifier.queue(uow, repository.add_message(message))
        repository.note(alert.alert_id, uow.now_wall_ns, "master", kind.value, text)
        fields = {"rule": alert.rule, "severity": alert.severity.value, "cause": alert.cause}
        said = alert.title if kind is MessageKind.FIRING else f"{alert.title}: {text}"
        uow.event(f"alert.{kind}", event_subjects(uow, alert.alert_id), said, fields, "master")


def event_subjects(uow: UnitOfWork, alert_id: str) -> tuple[str, ...]:
    """The subjects of an event about an alert: with the project that is told, whose pages follow it."""
    accounts = [one for one in uow[AlertRepository].audiences(alert_id) if one != OPERATORS]
    return (alert_id, *accounts) if len(accounts) == 1 else (alert_id,)


def _ended(alert: Alert) -> str:
    """The end of an alert in words."""
    if "merged" in alert.fields:
        return f"It is told as {alert.fields['merged']} from now on."
    if "ended" in alert.fields:
        return alert.fields["ended"]
    assert alert.fired_at_ns is not None and alert.resolved_at_ns is not None, "only what was told is told to be over"
    began, minutes = time_text(alert.fired_at_ns), (alert.resolved_at_ns - alert.fired_at_ns) // MINUTE
    more = f" It came back {alert.flaps} time{'s' * (alert.flaps > 1)}." if alert.flaps else ""
    return f"It is over. It was told at {began}, and lasted {minutes} min.{more}"
