"""The alert service: follows the events, looks at levels and at the time, and does what people ask of alerts.

events ─committed─▶ turn: one transaction reads the next events behind the cursor, steps the alerts, writes alerts,
levels ─looked at─▶       messages and the cursor together: each event counts once, whoever leads and dies meanwhile
time   ─due───────▶
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

from windrow_master.clusters.messages import RankFailed
from windrow_master.fleet.lookup import find_host
from windrow_master.fleet.states import LinkState
from windrow_master.fleet.view import FleetView
from windrow_master.identity.model import Principal, Role
from windrow_master.identity.people_lookup import people_of
from windrow_master.loops import again, when_due
from windrow_master.store.model import EventRow
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_master.telemetry.live import LiveView
from windrow_master.telemetry.service import TelemetryService
from windrow_master.watch import levels, own_rules
from windrow_master.watch.engine import AlertEngine, Notifier, Windows, event_subjects
from windrow_master.watch.facts import Sees, StoredFacts
from windrow_master.watch.levels import Level, Waits
from windrow_master.watch.model import (
    MASTER,
    NAMES_MAX,
    OPERATORS,
    Alert,
    AlertMessage,
    AlertState,
    Clear,
    Note,
    Raise,
    Signal,
    Silence,
    Subject,
)
from windrow_master.watch.own_rules import Firing, OwnRule
from windrow_master.watch.repository import AlertRepository
from windrow_master.watch.rules import MOMENT_NS, RULES
from windrow_master.watch.signals import DECIDED, READERS, rank_failed, signals_of
from windrow_master.watch.states import AlertEvent
from windrow_master.work_queue import WorkQueue
from windrow_proto.conditions import Stated
from windrow_proto.errors import Conflict, InvalidInput, NotFound, TooMany
from windrow_proto.ids import HostId
from windrow_proto.ports import Clock
from windrow_proto.units import DAY, MINUTE, SECOND, money_text

T = TypeVar("T")

EVENTS_MAX: Final = 500
"""Events in one transaction: others that write wait some milliseconds for it."""
PAST_MAX: Final = 2_000
"""Events of a kind that are read, once in a term, for own rules that count them."""
AGAIN_NS: Final = 10 * MINUTE
"""An own rule tells of an event about the same thing again that comes so long after the one before."""
OWN_MAX: Final = 20
"""Times that one own rule fires by one transaction: it is one alert of many by then."""
PAUSE_NS: Final = SECOND // 10
"""Between two turns, so that a burst of events is read together."""
START_NS: Final = MINUTE
"""After its start a Master may not have looked at all of its own conditions: what was told stands so long."""
RECONCILE_NS: Final = 5 * MINUTE
"""Between two comparisons of what is open with what is: a host that was removed says nothing any more."""
COMMENTS_MAX: Final = 200
"""Of one alert."""
SILENCE_NS_MAX: Final = 30 * DAY
SILENCES_MAX: Final = 1_000
"""Of one owner."""
PREVIEW_NS: Final = 7 * DAY
PREVIEW_EVENTS: Final = 5_000
PREVIEW_SERIES: Final = 400
PREVIEW_STEP_NS: Final = 5 * MINUTE


@dataclass(frozen=True, slots=True)
class Watched:
    """What is looked at. stated: the conditions of the Master; sees: who may be told of an event."""

    view: FleetView
    telemetry: TelemetryService
    stated: Callable[[], Iterable[Stated]]
    sees: Sees

    @property
    def live(self) -> LiveView:
        """The latest readings."""
        return self.telemetry.live


Affected = tuple[Sequence[str], int]
"""The names of the first subjects that have the trouble now, and how many there are, with those held back."""


@dataclass(frozen=True, slots=True)
class AlertView:
    """An alert with all that belongs to it. cause_name: empty: its cause is nothing that has a name."""

    alert: Alert
    cause_name: str
    affected: Affected
    audiences: tuple[str, ...]
    subjects: Sequence[Subject]
    notes: Sequence[Note]
    messages: Sequence[AlertMessage]


class AlertService:
    """Alerts of this market."""

    def __init__(self, store: Store, clock: Clock, watched: Watched, notifier: Notifier, windows: Windows) -> None:
        self._store, self._clock, self._watched = store, clock, watched
        self._engine = AlertEngine(notifier, windows)
        self._queue = WorkQueue[str](clock)
        self._own: tuple[OwnRule, ...] = ()
        self._times_of: dict[str, deque[tuple[int, int]]] = {}
        """By own rule: number and time of the last events that fit."""
        self._kinds = frozenset(READERS)
        self._told: set[levels.Key] | None = None
        self._idle, self._rules = Waits(), Waits()
        self._found: dict[str, tuple[int, Level]] = {}
        self._reconcile_due_ns = self._began_ns = 0
        store.on_event(self._committed)

    async def run(self) -> None:
        """Follow, until cancelled."""
        await self._read_rules()
        self._queue.add("events")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(when_due(self.turn, self._queue, PAUSE_NS, "alerts"))
            tasks.create_task(again(self.look, levels.EVERY_NS, self._clock, "alert levels"))

    async def turn(self) -> None:
        """Read all events that wait, and do all that is due."""
        self._queue.take()
        while True:
            is_more, due_ns = await self._store.write(self._step, name="alerts.turn")
            if not is_more:
                break
        if due_ns is not None:
            wait_ns = due_ns - self._clock.wall_ns()
            wait_ns = wait_ns if wait_ns > 0 else SECOND  # a bug was met with it
            self._queue.add("time", self._clock.monotonic_ns() + wait_ns)

    async def look(self) -> None:
        """Look at what has no events, and now and then compare what is open with what is."""
        now_ns = self._clock.wall_ns()
        if self._told is None:
            codes = levels.rules_looked_at(self._own)
            self._told = await self._store.read(lambda uow: uow[AlertRepository].now_of_rules(codes))
        level = self._look(now_ns)
        self._began_ns = self._began_ns or now_ns
        if now_ns - self._began_ns < START_NS:
            level.stays |= {key for key in self._told if key[1] == MASTER}
        found = levels.changes(self._told, level)
        if found:
            await self._store.write(partial(self._take, found), name="alerts.levels")
            over = {(said.rule, said.cause, said.subject) for said in found if isinstance(said, Clear)}
            self._told = (self._told | {levels.key_of(said) for said in found if isinstance(said, Raise)}) - over
            self._queue.add("events")
        if now_ns >= self._reconcile_due_ns:
            self._reconcile_due_ns = now_ns + RECONCILE_NS
            over_now = await self._store.read(_over)
            if over_now:
                await self._store.write(partial(self._take, over_now), name="alerts.reconcile")
                self._queue.add("events")

    def rank_failed(self, uow: UnitOfWork, fact: RankFailed) -> None:
        """Tell it in the transaction in which it is found: the lines of its log stand in no event."""
        with self._engine.faults.around("cluster.rank_failed"), uow.attempt():
            self._engine.take(uow, rank_failed(fact))
        uow.after_commit(lambda: self._queue.add("events"))

    # --- inside ---

    def _committed(self, row: EventRow) -> None:
        if row.kind in self._kinds:
            self._queue.add("events")

    def _step(self, uow: UnitOfWork) -> tuple[bool, int | None]:
        """One transaction; returns whether more waits, and when the next alert is due."""
        repository = uow[AlertRepository]
        cursor, newest = repository.cursor(), repository.newest_event()
        if cursor is None:  # what happened before there were alerts is not told
            repository.set_cursor(newest)
            return False, repository.next_due_ns()
        rows = uow.events.after(cursor, limit=EVENTS_MAX, kinds=self._kinds)
        facts = StoredFacts(uow)
        for row in rows:
            with self._engine.faults.around(row.kind), uow.attempt():
                for signal in signals_of(row, facts):
                    self._engine.take(uow, facts.apart(signal))
                self._own_events(uow, row, facts)
        is_more = len(rows) == EVENTS_MAX
        is_more |= self._engine.look(uow) >= EVENTS_MAX
        read = rows[-1].number if len(rows) == EVENTS_MAX else newest
        if read != cursor:
            repository.set_cursor(read)
        return is_more, repository.next_due_ns()

    def _own_events(self, uow: UnitOfWork, row: EventRow, facts: StoredFacts) -> None:
        for rule in self._own:
            if rule.event_kind != row.kind or not self._fits(rule, row, facts):
                continue
            if (told := facts.told.get(rule.rule_id, 0)) >= OWN_MAX:
                continue
            if own_rules.is_enough(rule, self._times(uow, rule, row, facts), row.at_ns):
                facts.told[rule.rule_id] = told + 1
                self._engine.take(uow, facts.apart(_own_raise(uow, rule, row, facts)))

    def _fits(self, rule: OwnRule, row: EventRow, facts: StoredFacts) -> bool:
        return own_rules.fits_event(rule, row, facts.concerned(row, self._watched.sees))

    def _times(self, uow: UnitOfWork, rule: OwnRule, row: EventRow, facts: StoredFacts) -> list[int]:
        """When the last events came that fit, with this one. They are kept in memory, and read once in a term, of all
        rules about events of a kind together."""
        if rule.threshold <= 1:
            return [row.at_ns]
        if rule.rule_id not in self._times_of:
            alike = [one for one in self._own if one.event_kind == row.kind and one.threshold > 1]
            first = uow.events.number_at(row.at_ns - max(one.duration_ns for one in alike))
            rows = uow.events.newest(kind=row.kind, first=first, before=row.number, limit=PAST_MAX)
            for one in alike:
                fit = [(past.number, past.at_ns) for past in reversed(rows) if self._fits(one, past, facts)]
                self._times_of.setdefault(one.rule_id, deque(fit, maxlen=own_rules.COUNT_MAX))
        times = self._times_of[rule.rule_id]
        if not times or times[-1][0] < row.number:  # a transaction that failed is tried again
            times.append((row.number, row.at_ns))
        return [at_ns for _, at_ns in times]

    def _take(self, found: Iterable[Signal], uow: UnitOfWork) -> None:
        facts = StoredFacts(uow)
        for signal in found:
            said: Signal | None = signal
            if isinstance(signal, Raise) and not signal.audiences:  # of a cluster's host nothing but its id is known
                cluster = facts.cluster(signal.cause)
                title = "" if cluster is None else signal.title.replace(signal.name, cluster.name)
                text = f"{signal.text}. It has cost {money_text(facts.cost(signal.cause))} so far"
                said = None if cluster is None else replace(
                    signal, audiences=(cluster.account_id,), name=cluster.name, title=title, text=text
                )  # fmt: skip
            if said is not None:
                self._engine.take(uow, facts.apart(said))

    def _look(self, now_ns: int) -> Level:
        """All levels; those that cost more are as they were a moment ago."""
        watched, whole = self._watched, Level()
        levels.of_master(whole, watched.stated())
        slow, idle = self._found.get("slow"), self._found.get("idle")
        metric_rules = [rule for rule in self._own if rule.metric is not None]
        if slow is None or now_ns - slow[0] >= levels.every_ns(metric_rules):
            found = Level()
            levels.of_rules(found, self._rules, metric_rules, watched.view, watched.live, now_ns)
            self._rules.end_look()
            slow = self._found["slow"] = now_ns, found
        if idle is None or now_ns - idle[0] >= levels.IDLE_EVERY_NS:
            found = Level()
            levels.of_idle(found, self._idle, watched.view, watched.live, now_ns)
            self._idle.end_look()
            idle = self._found["idle"] = now_ns, found
        for _, part in (slow, idle):
            whole.raises |= part.raises
            whole.stays |= part.stays
        return whole

    async def _read_rules(self) -> None:
        self._times_of.clear()
        self._own = tuple(await self._store.read(lambda uow: uow[AlertRepository].rules()))
        self._kinds = frozenset(READERS) | {rule.event_kind for rule in self._own if rule.event_kind is not None}

    # --- what people ask: alerts ---

    async def list(
        self,
        principal: Principal,
        wanted: Mapping[str, Any],
        before: str | None,
        limit: int,
        *,
        is_open: bool,
        is_own: bool = False,
    ) -> Sequence[tuple[Alert, Affected]]:
        """The alerts that concern the caller, the latest first, each with what has the trouble. is_own: also of
        operators only those of their project."""

        def read(uow: UnitOfWork) -> Sequence[tuple[Alert, Affected]]:
            repository, audience = uow[AlertRepository], principal.account_id if is_own else _audience(principal)
            found = repository.list(audience, wanted, before, limit, is_open=is_open)
            return [(_discreet(uow, principal, one, one), repository.has_now(one.alert_id, NAMES_MAX)) for one in found]

        return await self._store.read(read)

    async def counts(self) -> Mapping[tuple[str, str, str], int]:
        """The number of open alerts by rule, severity and state: of each built-in rule at least how many fire, of
        people's own rules together, as `own`."""
        found = Counter({(code, str(rule.severity), str(AlertState.FIRING)): 0 for code, rule in RULES.items()})
        for rule, severity, state, count in await self._store.read(lambda uow: uow[AlertRepository].counts()):
            found[rule if rule in RULES else "own", severity, state] += count
        return found

    async def get(self, principal: Principal, alert_id: str) -> AlertView:
        """One alert. Raises NotFound."""
        return await self._store.read(lambda uow: _view(uow, principal, _own_alert(uow, principal, alert_id)))

    async def acknowledge(self, principal: Principal, alert_id: str, reason: str) -> AlertView:
        """Somebody looks after it: it is not told again, to operators who are told of it only when one of them does.
        The same again changes nothing. Raises NotFound, Conflict."""

        def change(uow: UnitOfWork) -> AlertView:
            alert = _open(uow, principal, alert_id)
            is_whole = Role.OPERATOR in principal.roles or OPERATORS not in uow[AlertRepository].audiences(alert_id)
            event = AlertEvent.ACKNOWLEDGE if is_whole else AlertEvent.ACCEPT
            after = self._engine.apply(uow, alert, event, actor=principal.actor)
            if after != alert:
                _noted(uow, principal, after, "acknowledged", reason)
            return _view(uow, principal, after)

        return await self._written(change, "alert.acknowledge")

    async def silence(self, principal: Principal, alert_id: str, duration_ns: int, reason: str) -> AlertView:
        """Tell nothing more of one alert for a while. Raises NotFound, Conflict."""

        def change(uow: UnitOfWork) -> AlertView:
            alert = _open(uow, principal, alert_id)
            _check_alone(uow, principal, alert)
            until_ns = uow.now_wall_ns + min(duration_ns, SILENCE_NS_MAX)
            after = self._engine.apply(uow, alert, AlertEvent.SILENCE, until_ns=until_ns)
            _noted(uow, principal, after, "silenced", reason)
            return _view(uow, principal, after)

        return await self._written(change, "alert.silence")

    async def unsilence(self, principal: Principal, alert_id: str) -> AlertView:
        """End an alert's silence now. Raises NotFound, Conflict."""

        def change(uow: UnitOfWork) -> AlertView:
            alert = _open(uow, principal, alert_id)
            _check_alone(uow, principal, alert)
            if alert.state is AlertState.SILENCED:
                alert = self._engine.apply(uow, alert, AlertEvent.UNSILENCE)
                _noted(uow, principal, alert, "unsilenced")
            return _view(uow, principal, alert)

        return await self._written(change, "alert.unsilence")

    async def assign(self, principal: Principal, alert_id: str, assignee: str) -> AlertView:
        """Name who looks after an alert, by id, name or mail address; empty: nobody. Raises NotFound, InvalidInput."""

        def change(uow: UnitOfWork) -> AlertView:
            alert = _own_alert(uow, principal, alert_id)
            alert = replace(alert, assignee=_assignee(uow, principal, alert_id, assignee))
            uow[AlertRepository].save(alert)
            _noted(uow, principal, alert, "assigned", alert.assignee)
            return _view(uow, principal, alert)

        return await self._written(change, "alert.assign")

    async def comment(self, principal: Principal, alert_id: str, text: str) -> AlertView:
        """Add to an alert's history. Raises NotFound, TooMany."""

        def change(uow: UnitOfWork) -> AlertView:
            alert = _own_alert(uow, principal, alert_id)
            if uow[AlertRepository].comments(alert_id) >= COMMENTS_MAX:
                raise TooMany(f"This alert has {COMMENTS_MAX} comments already.", subject=alert_id)
            _noted(uow, principal, alert, "comment", text)
            return _view(uow, principal, alert)

        return await self._written(change, "alert.comment")

    # --- silences ---

    async def silences(self, principal: Principal) -> Sequence[Silence]:
        """The silences that are not over: the caller's, of operators all."""
        audience = _audience(principal)
        owners = None if audience is None else (audience,)
        return await self._store.read(lambda uow: uow[AlertRepository].silences(uow.now_wall_ns, owners))

    async def add_silence(self, principal: Principal, wanted: Silence) -> Silence:
        """Silence what fits from now on, also what is open; owner and maker are the caller's. Raises TooMany."""
        owner = _owner(principal)

        def change(uow: UnitOfWork) -> Silence:
            repository, now_ns = uow[AlertRepository], uow.now_wall_ns
            if len(repository.silences(now_ns, (owner,))) >= SILENCES_MAX:
                raise TooMany(f"There are {SILENCES_MAX} silences already. Remove some of them.", subject=owner)
            until_ns = min(wanted.until_ns, max(now_ns, wanted.from_ns) + SILENCE_NS_MAX)
            silence = replace(
                wanted, silence_id=uow.mint("silence"), owner=owner, until_ns=until_ns, created_by=principal.actor,
                created_at_ns=now_ns,
            )  # fmt: skip
            repository.add_silence(silence)
            fields = {"rule": silence.rule or "", "cause": silence.cause or ""}
            uow.audit(principal.actor, "alert.silence_add", silence.silence_id, silence.reason, fields)
            for alert in repository.open_alerts():
                audiences = repository.audiences(alert.alert_id)
                if silence.covers(alert.rule, alert.cause, audiences, now_ns) and alert.state is not AlertState.PENDING:
                    self._engine.apply(uow, alert, AlertEvent.SILENCE, until_ns=silence.until_ns)
            return silence

        return await self._written(change, "alert.silence_add")

    async def remove_silence(self, principal: Principal, silence_id: str) -> None:
        """End a silence now. Raises NotFound."""

        def change(uow: UnitOfWork) -> None:
            repository, now_ns = uow[AlertRepository], uow.now_wall_ns
            mine = repository.silences(now_ns, (_owner(principal),))
            known = [one for one in mine if one.silence_id == silence_id]
            if not known:
                raise NotFound("There is no such silence, or it is over. List them: windrow alert silences ls")
            repository.remove_silence(silence_id)
            uow.audit(principal.actor, "alert.silence_remove", silence_id)
            for alert in repository.open_alerts():
                if alert.state is AlertState.SILENCED and alert.silenced_until_ns == known[0].until_ns:
                    repository.save(replace(alert, silenced_until_ns=now_ns))  # another one may cover it

        await self._written(change, "alert.silence_remove")

    # --- own rules ---

    async def rules(self, principal: Principal) -> Sequence[OwnRule]:
        """The caller's own rules, of operators and auditors everybody's."""
        return await self._store.read(lambda uow: uow[AlertRepository].rules(_audience(principal)))

    async def put_rule(self, principal: Principal, wanted: OwnRule) -> OwnRule:
        """Write an own rule; one without an id is new. Raises InvalidInput, NotFound, TooMany."""
        own_rules.check(wanted)
        wanted = levels.named(replace(wanted, owner=_owner(principal)), self._watched.view)

        def change(uow: UnitOfWork) -> OwnRule:
            repository = uow[AlertRepository]
            rule = replace(wanted, created_by=principal.actor, created_at_ns=uow.now_wall_ns)
            if wanted.rule_id:
                before = _own_rule(uow, principal, wanted.rule_id)
                rule = replace(rule, owner=before.owner, created_at_ns=before.created_at_ns)
                self._end_of(uow, wanted.rule_id)
            elif len(repository.rules(rule.owner)) >= own_rules.RULES_MAX:
                raise TooMany(f"There are {own_rules.RULES_MAX} rules already. Remove one of them.", subject=rule.owner)
            else:
                rule = replace(rule, rule_id=uow.mint("alertrule"))
            repository.put_rule(rule)
            uow.audit(principal.actor, "alert_rule.set", rule.rule_id, fields={"name": rule.name})
            return rule

        rule = await self._written(change, "alert_rule.set")
        await self._read_rules()
        return rule

    async def remove_rule(self, principal: Principal, rule_id: str) -> None:
        """Remove an own rule; its alerts are resolved. Raises NotFound."""

        def change(uow: UnitOfWork) -> None:
            _own_rule(uow, principal, rule_id)
            self._end_of(uow, rule_id)
            uow[AlertRepository].remove_rule(rule_id)
            uow.audit(principal.actor, "alert_rule.remove", rule_id)

        await self._written(change, "alert_rule.remove")
        await self._read_rules()

    async def preview(self, principal: Principal, rule: OwnRule) -> tuple[Sequence[Firing], bool]:
        """The spans of the last 7 days in which a rule would have fired, and whether all of them were looked at.
        Raises InvalidInput, and Unavailable while the history cannot be read."""
        own_rules.check(rule)
        now_ns = self._clock.wall_ns()
        rule = levels.named(replace(rule, owner=_owner(principal)), self._watched.view)
        if rule.metric is None:
            rows, is_whole = await self._store.read(partial(self._past_events, rule, now_ns - PREVIEW_NS))
            return own_rules.replay_events(rule, rows, now_ns), is_whole
        return await self._preview_metric(rule, now_ns)

    def _past_events(self, rule: OwnRule, since_ns: int, uow: UnitOfWork) -> tuple[Sequence[EventRow], bool]:
        facts, first = StoredFacts(uow), uow.events.number_at(since_ns)
        rows = uow.events.newest(kind=rule.event_kind, first=first, limit=PREVIEW_EVENTS)
        return [row for row in reversed(rows) if self._fits(rule, row, facts)], len(rows) < PREVIEW_EVENTS

    async def _preview_metric(self, rule: OwnRule, now_ns: int) -> tuple[Sequence[Firing], bool]:
        keys, names, is_whole = levels.series_of(rule, self._watched.view, PREVIEW_SERIES)
        if not keys:
            return [], is_whole
        query = levels.query_of(keys, now_ns - PREVIEW_NS, now_ns, PREVIEW_STEP_NS)
        found: list[Firing] = []
        for one in await self._watched.telemetry.series(query):
            points = [(at_ms * 1_000_000, value) for at_ms, value in one.points]
            found += own_rules.replay_metric(rule, names[one.key], points, PREVIEW_STEP_NS)
        return sorted(found, key=lambda one: one.from_ns), is_whole

    def _end_of(self, uow: UnitOfWork, rule_id: str) -> None:
        for alert in uow[AlertRepository].open_alerts():
            if alert.rule == rule_id:
                self._engine.apply(uow, alert, AlertEvent.END)
        uow.after_commit(lambda: self._forget(rule_id))

    def _forget(self, rule_id: str) -> None:
        if self._told is not None:
            self._told = {key for key in self._told if key[0] != rule_id}

    # --- the inbox ---

    async def inbox(
        self, principal: Principal, before: int | None, limit: int
    ) -> tuple[Sequence[AlertMessage], int, int]:
        """The messages for the caller, the latest first; how many are not read, and the number of the last that is."""

        def read(uow: UnitOfWork) -> tuple[Sequence[AlertMessage], int, int]:
            mine = _inboxes(principal)
            found = [_of(principal, one) for one in uow[AlertRepository].inbox(mine, before, limit)]
            return found, *uow[AlertRepository].unread(mine, principal.actor)

        return await self._store.read(read)

    async def mark_read(self, principal: Principal, number: int) -> int:
        """The caller has read all messages up to this number; returns how many are left."""

        def change(uow: UnitOfWork) -> int:
            mine = _inboxes(principal)
            _, before = uow[AlertRepository].unread(mine, principal.actor)
            if number > before:
                uow[AlertRepository].mark_read(principal.actor, number)
            return uow[AlertRepository].unread(mine, principal.actor)[0]

        return await self._store.write(change, name="inbox.read")

    async def _written(self, change: Callable[[UnitOfWork], T], name: str) -> T:
        found = await self._store.write(change, name=name)
        self._queue.add("time")
        return found


def forget_account(uow: UnitOfWork, account_id: str) -> None:
    """Remove what is a project's own: rules, silences, and its messages."""
    uow[AlertRepository].forget_audience(account_id)


def is_told(uow: UnitOfWork, audience: str | None, alert_id: str) -> bool:
    """Return whether an alert is one of this audience's; None: of anybody's."""
    audiences = uow[AlertRepository].audiences(alert_id)
    return bool(audiences) and audience in (None, *audiences)


def _audience(principal: Principal) -> str | None:
    """Whose alerts the caller sees; None: all."""
    return None if principal.roles & {Role.OPERATOR, Role.AUDITOR} else principal.account_id


def _owner(principal: Principal) -> str:
    """For whom the caller silences and makes rules."""
    return OPERATORS if Role.OPERATOR in principal.roles else principal.account_id


def _inboxes(principal: Principal) -> tuple[str, ...]:
    mine = (principal.account_id,)
    return (OPERATORS, *mine) if principal.roles & {Role.OPERATOR, Role.AUDITOR} else mine


def _own_alert(uow: UnitOfWork, principal: Principal, alert_id: str) -> Alert:
    alert = uow[AlertRepository].get(alert_id) if is_told(uow, _audience(principal), alert_id) else None
    if alert is None:
        raise NotFound("There is no such alert, or it is not yours. List them: windrow alert ls", subject=alert_id[:64])
    return alert


def _open(uow: UnitOfWork, principal: Principal, alert_id: str) -> Alert:
    alert = _own_alert(uow, principal, alert_id)
    if alert.state is AlertState.RESOLVED:
        raise Conflict("This alert is resolved already.", subject=alert_id)
    return alert


def _assignee(uow: UnitOfWork, principal: Principal, alert_id: str, wanted: str) -> str:
    """The name of a person who sees this alert and whom the caller may know of."""
    if wanted in ("", principal.user_name or principal.account_name):
        return wanted
    own = _audience(principal)
    audiences = {OPERATORS, *uow[AlertRepository].audiences(alert_id)} if own is None else {own}
    people = [one for it in sorted(audiences) for one in people_of(uow, None if it == OPERATORS else it)]
    for one in people:
        if wanted in (one.id, one.name, one.address):
            return one.name
    said = f"assignee: Nobody who sees this alert is named {own_rules.shown(wanted)}."
    raise InvalidInput(said + own_rules.near(wanted, [one.name for one in people]), subject="assignee")


def _check_alone(uow: UnitOfWork, principal: Principal, alert: Alert) -> None:
    if Role.OPERATOR in principal.roles or set(uow[AlertRepository].audiences(alert.alert_id)) == {
        principal.account_id
    }:
        return
    said = "Others are told of this alert, too, so that you cannot silence it. Acknowledge it: windrow alert ack"
    raise Conflict(said, subject=alert.alert_id)


def _own_rule(uow: UnitOfWork, principal: Principal, rule_id: str) -> OwnRule:
    found = next((one for one in uow[AlertRepository].rules(_owner(principal)) if one.rule_id == rule_id), None)
    if found is None:
        raise NotFound(
            "There is no such rule, or it is not yours. List yours: windrow alert rule ls", subject=rule_id[:64]
        )
    return found


Told = TypeVar("Told", Alert, Note, AlertMessage)


def _discreet(uow: UnitOfWork, principal: Principal, alert: Alert, told: Told) -> Told:
    """As the caller may read it: below the first line of a text are lines of a renter's log."""
    if "\n" not in told.text or principal.account_id in uow[AlertRepository].audiences(alert.alert_id):
        return told
    return replace(told, text=told.text.partition("\n")[0])


def _view(uow: UnitOfWork, principal: Principal, alert: Alert) -> AlertView:
    repository, alert_id = uow[AlertRepository], alert.alert_id
    return AlertView(
        _discreet(uow, principal, alert, alert),
        StoredFacts(uow).name_of(alert.cause),
        repository.has_now(alert_id, NAMES_MAX),
        _seen(principal, repository.audiences(alert_id)),
        repository.subjects(alert_id),
        [_discreet(uow, principal, alert, one) for one in repository.notes(alert_id)],
        [_of(principal, _discreet(uow, principal, alert, one)) for one in repository.messages(alert_id)],
    )


def _seen(principal: Principal, audiences: tuple[str, ...]) -> tuple[str, ...]:
    """Those that the caller may know: who else is told says who rents."""
    own = _audience(principal)
    return audiences if own is None else tuple(one for one in audiences if one in (OPERATORS, own))


def _of(principal: Principal, message: AlertMessage) -> AlertMessage:
    return replace(message, audiences=_seen(principal, message.audiences))


def _noted(uow: UnitOfWork, principal: Principal, alert: Alert, kind: str, text: str = "") -> None:
    others = set(uow[AlertRepository].audiences(alert.alert_id)) - {OPERATORS, principal.account_id}
    if others and Role.OPERATOR not in principal.roles:
        said = "Other projects are told of this alert, too, and would read it. It ends by itself."
        raise Conflict(said, subject=alert.alert_id)
    uow[AlertRepository].note(alert.alert_id, uow.now_wall_ns, principal.actor, kind, text)
    said = f"{alert.title}: {kind}" + (f": {text}" if text else "")
    fields = {"rule": alert.rule, "cause": alert.cause}
    uow.event(f"alert.{kind}", event_subjects(uow, alert.alert_id), said, fields, principal.actor)


def _over(uow: UnitOfWork) -> Sequence[Clear]:
    """What is open about hosts and does not hold any more, whose event was not kept or names nothing of today."""
    wanted = [code for code, rule in RULES.items() if rule.signal.startswith(("condition.", "host.lost"))]
    found: list[Clear] = []
    for rule, cause, subject in sorted(uow[AlertRepository].now_of_rules(wanted)):
        host = find_host(uow, HostId(cause))
        code = rule if subject == cause else f"{rule}:{subject}"
        if host is None or host.admin_state in DECIDED:
            found.append(Clear(cause, rule, subject))
        elif rule == "host.lost":
            if host.link_state is LinkState.ONLINE:
                found.append(Clear(cause, rule, subject))
        elif code not in {one.code for one in host.conditions}:
            found.append(Clear(cause, rule, subject))
    return found


def _own_raise(uow: UnitOfWork, rule: OwnRule, row: EventRow, facts: StoredFacts) -> Raise:
    """The signal of an own rule by an event, in the words of the event and the name of what it is about."""
    cause = own_rules.cause_of(rule, row)
    if rule.threshold > 1:
        name = f"{rule.threshold:g} times {row.kind} within {rule.duration_ns // SECOND} s"
        return rule.raised(cause, cause, name, f"The last one: {row.text}")
    before = uow[AlertRepository].open_of(rule.rule_id, cause)
    last_ns = None if before is None or before.settles_at_ns is None else before.settles_at_ns - MOMENT_NS
    said = rule.raised(cause, cause, facts.name_of(cause) or row.kind, row.text)
    return replace(said, is_news=last_ns is not None and row.at_ns - last_ns >= AGAIN_NS)
