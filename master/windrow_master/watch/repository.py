"""Reads and writes alerts with their subjects, audiences, notes and messages, own rules and silences."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from sqlalchemy import Select, bindparam, delete, exists, func, insert, null, or_, select, update

from windrow_master.store.prepared import Found, Made, Upsert, flat, page, settable
from windrow_master.store.repository import Repository
from windrow_master.store.tables import events
from windrow_master.watch.model import (
    OPERATORS,
    Alert,
    AlertMessage,
    AlertState,
    Clear,
    MessageKind,
    Note,
    Raise,
    Silence,
    Subject,
    Window,
)
from windrow_master.watch.own_rules import OwnRule
from windrow_master.watch.states import due
from windrow_master.watch.tables import (
    alert_audiences,
    alert_messages,
    alert_notes,
    alert_rules,
    alert_silences,
    alert_subjects,
    alerts,
    inbox,
    inbox_marks,
    maintenance_windows,
    watch_cursor,
)
from windrow_proto.conditions import Severity

READER: Final = "alerts"
SUBJECT_CHARS_MAX: Final = 200
SHOWN_MAX: Final = 1_000
"""Subjects, notes and messages of one alert that are read at once."""
_COLUMNS: Final = tuple(Alert.__dataclass_fields__)
_IS_OPEN: Final = alerts.c.resolved_at_ns.is_(None)
_IS_NOW: Final = alert_subjects.c.cleared_at_ns.is_(None)
_ADD: Final = Made(insert(alerts), alerts.c.keys())
_SAVE: Final = Made(update(alerts).where(alerts.c.alert_id == bindparam("was_id")), settable(alerts))
_GET: Final = Found(select(alerts).where(alerts.c.alert_id == bindparam("wanted")), lambda row: _alert(row))
_OPEN: Final = Found(
    select(alerts).where(_IS_OPEN, alerts.c.rule == bindparam("of_rule"), alerts.c.cause == bindparam("of_cause")),
    lambda row: _alert(row),
)
_DUE: Final = Found(
    select(alerts).where(alerts.c.due_at_ns <= bindparam("now_ns")).order_by(alerts.c.due_at_ns).limit(500),
    lambda row: _alert(row),
)
_PUT_SUBJECT: Final = Upsert(
    alert_subjects, ["alert_id", "rule", "cause", "subject"], ["name", "since_ns", "cleared_at_ns", "held"]
)
_PUT_CURSOR: Final = Upsert(watch_cursor, ["reader"], ["number"])
_PUT_MARK: Final = Upsert(inbox_marks, ["reader"], ["read_number"])
_ADD_AUDIENCE: Final = Made(insert(alert_audiences), alert_audiences.c.keys())
_ADD_MESSAGE: Final = Made(insert(alert_messages), ("message_id", "alert_id", "at_ns", "body"))
_ADD_INBOX: Final = Made(insert(inbox), inbox.c.keys())
_ADD_NOTE: Final = Made(insert(alert_notes), ("alert_id", "at_ns", "actor", "kind", "text"))
_ADD_WINDOW: Final = Made(insert(maintenance_windows), maintenance_windows.c.keys())
_SAVE_WINDOW: Final = Made(
    update(maintenance_windows).where(maintenance_windows.c.window_id == bindparam("was_id")),
    settable(maintenance_windows),
)
_OPEN_WINDOWS: Final = Found(
    select(maintenance_windows).where(maintenance_windows.c.ended_at_ns.is_(None)),
    lambda row: _window(row),
    lambda window: window.window_id,
)


class AlertRepository(Repository):
    """Alerts."""

    # --- the engine's ---

    def cursor(self) -> int | None:
        """The number of the last event that was read; None: none was."""
        return self._connection.scalar(select(watch_cursor.c.number).where(watch_cursor.c.reader == READER))

    def set_cursor(self, number: int) -> None:
        """These events are read."""
        _PUT_CURSOR.run(self._connection, {"reader": READER, "number": number})

    def newest_event(self) -> int:
        """The number of the newest event; 0: there is none."""
        return int(self._connection.scalar(select(func.max(events.c.number))) or 0)

    def add(self, alert: Alert, audiences: Iterable[str]) -> None:
        """Add one that is new."""
        _ADD.run(self._connection, _values(alert))
        self.tell_too(alert.alert_id, audiences)

    def tell_too(self, alert_id: str, audiences: Iterable[str]) -> None:
        """Add audiences to an alert; those that it has stay."""
        known = set(self.audiences(alert_id))
        rows = [{"audience": one, "alert_id": alert_id} for one in dict.fromkeys(audiences) if one not in known]
        _ADD_AUDIENCE.run_all(self._connection, rows)

    def save(self, alert: Alert) -> None:
        """Write one as it is now."""
        _SAVE.run(self._connection, _values(alert) | {"was_id": alert.alert_id})

    def forget(self, alert_id: str) -> None:
        """Remove one that nobody was told of."""
        self._connection.execute(delete(alerts).where(alerts.c.alert_id == alert_id))

    def get(self, alert_id: str) -> Alert | None:
        """One alert."""
        return _GET.one(self._connection, {"wanted": alert_id})

    def open_of(self, rule: str, cause: str) -> Alert | None:
        """The open alert of a rule and a cause."""
        return _OPEN.one(self._connection, {"of_rule": rule, "of_cause": cause})

    def due(self, now_ns: int) -> Sequence[Alert]:
        """Alerts whose time has come, at most 500."""
        return _DUE.all(self._connection, {"now_ns": now_ns})

    def next_due_ns(self) -> int | None:
        """When the next one's time comes."""
        found = self._connection.scalar(select(func.min(alerts.c.due_at_ns)))
        return None if found is None else int(found)

    def alike(self, rule: str, wider: str, since_ns: int) -> Sequence[Alert]:
        """The open alerts of a rule that have a wider cause, and began since then."""
        query = select(alerts).where(_IS_OPEN, alerts.c.rule == rule, alerts.c.wider == wider)
        return self._alerts(query.where(alerts.c.opened_at_ns >= since_ns))

    def last_resolved(self, rule: str, cause: str, since_ns: int) -> Alert | None:
        """The alert of a rule and a cause that was resolved last, since then."""
        query = select(alerts).where(alerts.c.resolved_at_ns >= since_ns, alerts.c.rule == rule)
        found = self._alerts(query.where(alerts.c.cause == cause).order_by(alerts.c.resolved_at_ns.desc()).limit(1))
        return found[0] if found else None

    def counts(self) -> Iterable[tuple[str, str, str, int]]:
        """The number of open alerts by rule, severity and state."""
        columns = alerts.c.rule, alerts.c.severity, alerts.c.state
        query = select(*columns, func.count()).where(_IS_OPEN).group_by(*columns)
        return [(row[0], row[1], row[2], row[3]) for row in self._connection.execute(query)]

    def open_alerts(self) -> Sequence[Alert]:
        """Every open alert."""
        return self._alerts(select(alerts).where(_IS_OPEN))

    def put_subject(self, alert_id: str, said: Raise, now_ns: int, *, held: bool) -> bool:
        """Let an alert have a subject; returns False where it has it already."""
        key = {"alert_id": alert_id, "rule": said.rule, "cause": said.cause, "subject": said.subject}
        is_it = [alert_subjects.c[name] == value for name, value in key.items()]
        if self._connection.scalar(select(alert_subjects.c.since_ns).where(_IS_NOW, *is_it)) is not None:
            return False
        kept = asdict(said) if held else None
        values = {"name": said.name[:SUBJECT_CHARS_MAX], "since_ns": now_ns, "cleared_at_ns": None, "held": kept}
        _PUT_SUBJECT.run(self._connection, key | values)
        return True

    def of_same(self, said: Raise) -> Sequence[Alert]:
        """The open alerts of other rules that tell of the same subject, the gravest first."""
        s = alert_subjects.c
        is_it = (_IS_NOW, s.cause == said.cause, s.subject == said.subject, s.rule != said.rule, s.held.is_(null()))
        found = self._alerts(select(alerts).join(alert_subjects, s.alert_id == alerts.c.alert_id).where(*is_it))
        return sorted((one for one in found if one.rule in said.same), key=lambda one: said.same.index(one.rule))

    def clear(self, said: Clear, now_ns: int) -> Mapping[str, int]:
        """Nothing of this has the trouble any more; returns for each alert how many of its own subjects it lost, none
        where it only held them back."""
        query = select(alert_subjects).where(_IS_NOW, alert_subjects.c.cause == said.cause)
        if said.rule is not None:
            query = query.where(alert_subjects.c.rule == said.rule)
        if said.subject is not None:
            query = query.where(alert_subjects.c.subject == said.subject)
        lost: dict[str, int] = {}
        for row in self._connection.execute(query).all():
            is_it = [alert_subjects.c[name] == getattr(row, name) for name in ("alert_id", "rule", "cause", "subject")]
            self._connection.execute(update(alert_subjects).where(*is_it).values(cleared_at_ns=now_ns))
            lost[row.alert_id] = lost.get(row.alert_id, 0) + (row.held is None)
        return lost

    def release(self, alert_id: str, now_ns: int) -> Sequence[Raise]:
        """Take from an alert what it held back, and all that it has."""
        of_it = (_IS_NOW, alert_subjects.c.alert_id == alert_id)
        rows = self._connection.execute(select(alert_subjects.c.held).where(*of_it)).scalars().all()
        self._connection.execute(update(alert_subjects).where(*of_it).values(cleared_at_ns=now_ns))
        return [_raise(held) for held in rows if held is not None]

    def move_subjects(self, alert_id: str, to: str) -> int:
        """Give what an alert has to a wider one; returns how many of its own."""
        of_it = (_IS_NOW, alert_subjects.c.alert_id == alert_id)
        count = self._connection.execute(select(func.count()).select_from(alert_subjects).where(*of_it)).scalar_one()
        self._connection.execute(update(alert_subjects).where(*of_it).values(alert_id=to))
        return int(count)

    def has_now(self, alert_id: str, limit: int) -> tuple[Sequence[str], int]:
        """The names of the first subjects that have the trouble now, and how many there are, each once."""
        of_it = (_IS_NOW, alert_subjects.c.alert_id == alert_id)
        subject, name, since_ns = alert_subjects.c.subject, alert_subjects.c.name, func.min(alert_subjects.c.since_ns)
        names = select(name).where(*of_it).group_by(subject, name).order_by(since_ns, name)
        count = self._connection.scalar(select(func.count(subject.distinct())).where(*of_it))
        return self._connection.execute(names.limit(limit)).scalars().all(), int(count or 0)

    def now_of_rules(self, rules: Sequence[str]) -> set[tuple[str, str, str]]:
        """Rule, cause and subject of what has the trouble now by these rules."""
        query = select(alert_subjects.c.rule, alert_subjects.c.cause, alert_subjects.c.subject).where(_IS_NOW)
        return {(row.rule, row.cause, row.subject) for row in self._connection.execute(query) if row.rule in rules}

    def audiences(self, alert_id: str) -> tuple[str, ...]:
        """Who is told of an alert: operators first."""
        query = select(alert_audiences.c.audience).where(alert_audiences.c.alert_id == alert_id)
        return tuple(sorted(self._connection.execute(query).scalars(), key=lambda one: (one != OPERATORS, one)))

    def note(self, alert_id: str, at_ns: int, actor: str, kind: str, text: str = "") -> None:
        """Add a line to an alert's history."""
        row = {"alert_id": alert_id, "at_ns": at_ns, "actor": actor, "kind": kind, "text": text}
        _ADD_NOTE.run(self._connection, row)

    def add_message(self, message: AlertMessage) -> AlertMessage:
        """Add a message for its audiences; returns it with its number."""
        body = asdict(message) | {"kind": message.kind.value, "severity": message.severity.value}
        row = {"message_id": message.message_id, "alert_id": message.alert_id, "at_ns": message.at_ns, "body": body}
        number = _ADD_MESSAGE.insert(self._connection, row)
        _ADD_INBOX.run_all(self._connection, [{"audience": one, "number": number} for one in message.audiences])
        return replace(message, number=number)

    # --- people's ---

    def list(
        self, audience: str | None, wanted: Mapping[str, Any], before: str | None, limit: int, *, is_open: bool
    ) -> Sequence[Alert]:
        """The latest first, of one audience or of all (None). wanted: values of columns; `since_ns`: those that were
        open then or later."""
        query = select(alerts).order_by(alerts.c.alert_id.desc())
        if audience is not None:
            own = exists().where(
                alert_audiences.c.alert_id == alerts.c.alert_id, alert_audiences.c.audience == audience
            )
            query = query.where(own)
        for name, value in wanted.items():
            if name == "since_ns":
                query = query.where(_IS_OPEN | (alerts.c.resolved_at_ns >= value))
            else:
                query = query.where(alerts.c[name] == value)
        if is_open:
            query = query.where(_IS_OPEN, alerts.c.state != AlertState.PENDING.value)
        if before:
            query = query.where(alerts.c.alert_id < before)
        return page(self._connection, query, _alert, limit)

    def subjects(self, alert_id: str) -> Sequence[Subject]:
        """What has or had the trouble, the present ones first."""
        query = select(alert_subjects).where(alert_subjects.c.alert_id == alert_id)
        query = query.order_by(_IS_NOW.desc(), alert_subjects.c.since_ns, alert_subjects.c.name).limit(SHOWN_MAX)
        return [_subject(row._mapping) for row in self._connection.execute(query)]

    def notes(self, alert_id: str) -> Sequence[Note]:
        """An alert's latest lines of history, the first one first."""
        query = select(alert_notes).where(alert_notes.c.alert_id == alert_id).order_by(alert_notes.c.number.desc())
        rows = self._connection.execute(query.limit(SHOWN_MAX)).all()
        return [Note(row.number, row.at_ns, row.actor, row.kind, row.text) for row in reversed(rows)]

    def comments(self, alert_id: str) -> int:
        """How many comments an alert has."""
        query = select(func.count()).where(alert_notes.c.alert_id == alert_id, alert_notes.c.kind == "comment")
        return int(self._connection.scalar(query) or 0)

    def messages(self, alert_id: str) -> Sequence[AlertMessage]:
        """The latest messages about an alert, the first one first."""
        query = select(alert_messages).where(alert_messages.c.alert_id == alert_id)
        query = query.order_by(alert_messages.c.number.desc()).limit(SHOWN_MAX)
        return [_message(row._mapping) for row in reversed(self._connection.execute(query).all())]

    def inbox(self, audiences: Sequence[str], before: int | None, limit: int) -> Sequence[AlertMessage]:
        """The messages of these audiences, the latest first."""
        own = select(inbox.c.number).where(or_(*(inbox.c.audience == one for one in audiences)))
        query = select(alert_messages).where(alert_messages.c.number.in_(own)).order_by(alert_messages.c.number.desc())
        if before is not None:
            query = query.where(alert_messages.c.number < before)
        return page(self._connection, query, _message, limit)

    def unread(self, audiences: Sequence[str], reader: str) -> tuple[int, int]:
        """How many messages a reader has not read, and the number of the last that was."""
        mark = self._connection.scalar(select(inbox_marks.c.read_number).where(inbox_marks.c.reader == reader)) or 0
        query = select(func.count(inbox.c.number.distinct())).where(inbox.c.audience.in_(audiences))
        return int(self._connection.scalar(query.where(inbox.c.number > mark)) or 0), int(mark)

    def mark_read(self, reader: str, number: int) -> None:
        """A reader has read all up to this number."""
        _PUT_MARK.run(self._connection, {"reader": reader, "read_number": number})

    def rules(self, owner: str | None = None) -> Sequence[OwnRule]:
        """People's own rules, of one owner or of all."""
        query = select(alert_rules).order_by(alert_rules.c.rule_id)
        query = query if owner is None else query.where(alert_rules.c.owner == owner)
        return [_rule(row._mapping) for row in self._connection.execute(query)]

    def put_rule(self, rule: OwnRule) -> None:
        """Write an own rule, in place of the same one's."""
        self.remove_rule(rule.rule_id)
        self._connection.execute(insert(alert_rules).values(flat(rule) | {"severity": rule.severity.value}))

    def remove_rule(self, rule_id: str) -> None:
        """Remove an own rule."""
        self._connection.execute(delete(alert_rules).where(alert_rules.c.rule_id == rule_id))

    def silences(self, now_ns: int, owners: Collection[str] | None = None) -> Sequence[Silence]:
        """Silences that are not over, of these owners or of all."""
        query = select(alert_silences).where(alert_silences.c.until_ns > now_ns).order_by(alert_silences.c.silence_id)
        query = query if owners is None else query.where(alert_silences.c.owner.in_(owners))
        return [Silence(**row._mapping) for row in self._connection.execute(query)]

    def add_silence(self, silence: Silence) -> None:
        """Add a silence."""
        self._connection.execute(insert(alert_silences).values(flat(silence)))

    def remove_silence(self, silence_id: str) -> None:
        """Remove a silence."""
        self._connection.execute(delete(alert_silences).where(alert_silences.c.silence_id == silence_id))

    def forget_audience(self, audience: str) -> None:
        """Remove the rules, silences, maintenance windows and messages of an audience."""
        for table in (alert_rules, alert_silences, maintenance_windows):
            self._connection.execute(delete(table).where(table.c.owner == audience))
        for table in (alert_audiences, inbox):
            self._connection.execute(delete(table).where(table.c.audience == audience))

    def _alerts(self, query: Select[Any]) -> Sequence[Alert]:
        return [_alert(row._mapping) for row in self._connection.execute(query)]


class WindowRepository(Repository):
    """Maintenance windows."""

    def add(self, window: Window) -> None:
        """Add one."""
        _ADD_WINDOW.run(self._connection, flat(window))

    def save(self, window: Window) -> None:
        """Write one as it is now."""
        _SAVE_WINDOW.run(self._connection, flat(window) | {"was_id": window.window_id})

    def get(self, window_id: str) -> Window | None:
        """One window, also one that is over."""
        query = select(maintenance_windows).where(maintenance_windows.c.window_id == window_id)
        row = self._connection.execute(query).one_or_none()
        return None if row is None else _window(row._mapping)

    def declared_since(self, owner: str, since_ns: int) -> int:
        """How many an owner declared since then, with those that are over."""
        w = maintenance_windows.c
        query = select(func.count()).where(w.owner == owner, w.created_at_ns > since_ns)
        return int(self._connection.scalar(query) or 0)

    def open(self) -> Sequence[Window]:
        """Those that are not over and can be read, in the order in which they were declared."""
        return _OPEN_WINDOWS.readable(self._connection)


def _values(alert: Alert) -> dict[str, Any]:
    found = due(alert)
    changed = {"state": alert.state.value, "severity": alert.severity.value, "fields": dict(alert.fields)}
    return flat(alert) | changed | {"due_at_ns": None if found is None else found[0]}


def _alert(row: Mapping[Any, Any]) -> Alert:
    values = {name: row[name] for name in _COLUMNS}
    return Alert(**values | {"state": AlertState(row["state"]), "severity": Severity(row["severity"])})


def _subject(row: Mapping[Any, Any]) -> Subject:
    values = {name: row[name] for name in Subject.__dataclass_fields__}
    return Subject(**values | {"held": row["held"] is not None})


def _message(row: Mapping[Any, Any]) -> AlertMessage:
    body = row["body"]
    named = {"kind": MessageKind(body["kind"]), "severity": Severity(body["severity"]), "number": row["number"]}
    return AlertMessage(**body | named | {name: tuple(body[name]) for name in ("audiences", "subjects")})


def _raise(held: Mapping[str, Any]) -> Raise:
    pairs = tuple((rule, cause) for rule, cause in held["held_by"])
    lists = {"audiences": tuple(held["audiences"]), "held_by": pairs, "same": tuple(held.get("same", ()))}
    return Raise(**{**held, "severity": Severity(held["severity"]), **lists})


def _window(row: Mapping[Any, Any]) -> Window:
    values = {name: row[name] for name in Window.__dataclass_fields__}
    return Window(**values | {"hosts": tuple(row["hosts"]), "drained": tuple(row["drained"])})


def _rule(row: Mapping[Any, Any]) -> OwnRule:
    return OwnRule(**dict(row) | {"severity": Severity(row["severity"])})
