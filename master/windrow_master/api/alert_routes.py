"""Routes of alerts: see them and look after them, silence them, own rules, and the inbox of their messages."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from fastapi import Query, Response
from pydantic import Field

from windrow_master.api import answers
from windrow_master.api.answers import Out, Read, Span, Time
from windrow_master.api.auth import Reach
from windrow_master.api.bodies import Body
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.paging import Cursor, Limit, Moment, moment, page, page_of, read_cursor, read_number
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_master.watch import rules as table
from windrow_master.watch.model import Alert, AlertState, MessageKind, Silence
from windrow_master.watch.own_rules import OwnRule
from windrow_master.watch.service import SILENCE_NS_MAX, Affected, AlertView
from windrow_proto.conditions import Severity
from windrow_proto.errors import InvalidInput
from windrow_proto.units import SECOND

route = Routes("alerts")

NUMBER_MAX: Final = 2**53
Reason = Annotated[str, Field(max_length=300)]
Told = Annotated[list[str], Field(description="`operators`, and the ids of accounts")]
Pages = Literal["ticket", "page"]
Narrow = Annotated[str | None, Query(min_length=1, max_length=200)]
Seconds = Annotated[float, Field(gt=0, le=SILENCE_NS_MAX / SECOND)]


def rule_title(alert: Alert) -> str:
    """The rule of an alert in words; the title of one by somebody's own rule begins with its name."""
    return table.words(alert.rule) if alert.rule in table.RULES else alert.title.partition(": ")[0]


class AlertOut(Out):
    """An alert: one rule and one cause."""

    id: Annotated[str, Read("alert_id")]
    rule: str
    rule_title: Annotated[str, Field(description="The rule in words"), Read(lambda alert: rule_title(alert))]
    cause: Annotated[str, Field(description="The id of what groups it: a host, relay, job, cluster, or `master`")]
    state: AlertState
    severity: Severity
    title: str
    text: str
    remedy: Annotated[str | None, Field(description="What to do about it")]
    opened_at: Time
    fired_at: Annotated[Time | None, Field(description="When people were told; null: they were not")]
    acknowledged_at: Annotated[Time | None, Read("acked_at_ns")]
    acknowledged_by: Annotated[str | None, Read("acked_by")]
    silenced_until: Time | None
    resolved_at: Time | None
    flaps: Annotated[int, Field(description="How often it came back before it was resolved")]
    assignee: str | None
    subject_count: Annotated[
        int, Field(description="GPUs, hosts or jobs that have the trouble now, with those held back")
    ]
    subjects: Annotated[list[str], Field(description="The names of the first of them")]
    simulated: bool


class SubjectOut(Out):
    """A GPU, host, job or other thing that has, or had, the trouble."""

    id: Annotated[str, Read("subject")]
    name: str
    since: Time
    cleared_at: Time | None
    held: Annotated[bool, Field(description="It is another alert's, by `rule`, which is not told while this one lasts")]
    rule: str
    rule_title: Annotated[str, Field(description="The rule in words"), Read(lambda one: table.words(one.rule))]


class NoteOut(Out):
    """A line of an alert's history."""

    at: Time
    actor: str
    kind: Annotated[str, Field(description="`comment`, or what was done")]
    text: str | None


class MessageOut(Out):
    """A message about an alert."""

    id: Annotated[str, Read("message_id")]
    number: Annotated[int, Field(description="Grows with each message")]
    alert_id: str
    kind: MessageKind
    at: Time
    rule: str
    severity: Severity
    title: str
    text: str
    remedy: str | None
    link: Annotated[str, Field(description="The path of its page in the console")]
    audiences: Told
    subjects: Annotated[list[str], Field(description="The names of the first subjects")]
    subject_count: int
    simulated: bool


class WholeAlertOut(AlertOut):
    """An alert with its subjects, its history and its messages."""

    cause_name: Annotated[str | None, Field(description="Of a host, cluster or job that is still known")]
    audiences: Told
    affected: list[SubjectOut]
    notes: list[NoteOut]
    messages: list[MessageOut]


class ReasonBody(Body):
    """Why; it is kept in the alert's history."""

    reason: Reason = ""


class SilenceBody(Body):
    """For how long nothing is told, and why."""

    duration_s: Seconds
    reason: Reason = ""


class AssignBody(Body):
    """Who looks after an alert."""

    assignee: Annotated[str, Field(max_length=200, description="A name or an id; empty: nobody")]


class CommentBody(Body):
    """A line for the alert's history."""

    text: Annotated[str, Field(min_length=1, max_length=2_000)]


def _short(found: tuple[Alert, Affected]) -> dict[str, Any]:
    alert, (names, count) = found
    return AlertOut.of(alert, subjects=list(names), subject_count=count)


def _whole(view: AlertView) -> dict[str, Any]:
    return WholeAlertOut.of(
        view.alert,
        cause_name=view.cause_name or None,
        subjects=list(view.affected[0]),
        subject_count=view.affected[1],
        audiences=list(view.audiences),
        affected=[SubjectOut.of(one) for one in view.subjects],
        notes=[NoteOut.of(one) for one in view.notes],
        messages=[MessageOut.of(one) for one in view.messages],
    )


@route.get("/alerts", may=Permission.ALERTS_READ, answer=answers.Page[AlertOut])
async def alerts(
    services: Serving,
    principal: Asking,
    state: Annotated[
        Literal["open", "all"] | AlertState, Query(description="`open`: all that people were told of and goes on")
    ] = "open",
    severity: Pages | None = None,
    rule: Narrow = None,
    cause: Narrow = None,
    since: Moment = None,
    mine: Annotated[bool, Query(description="Only those that are assigned to the caller")] = False,
    own: Annotated[bool, Query(description="Only those of the caller's project, also for operators")] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Any:
    """The alerts that concern the caller, the latest first. Operators see those of everybody."""
    wanted: dict[str, Any] = {"severity": severity, "rule": rule, "cause": cause, "since_ns": moment("since", since)}
    wanted |= {"state": state.value if isinstance(state, AlertState) else None}
    wanted |= {"assignee": principal.user_name or principal.account_name} if mine else {}
    given = {name: value for name, value in wanted.items() if value is not None}
    before, is_open = read_cursor(cursor) or None, state == "open"
    found = await services.alerts.list(principal, given, before, limit + 1, is_open=is_open, is_own=own)
    return page(found, limit, _short, lambda one: str(one[0].alert_id))


@route.get("/alerts/{alert_id}", may=Permission.ALERTS_READ, reach=Reach.OWN_OR_OVERSEEN, answer=WholeAlertOut)
async def alert(services: Serving, principal: Asking, alert_id: str) -> Any:
    """One alert, with its subjects, its history and its messages."""
    return _whole(await services.alerts.get(principal, alert_id))


@route.post("/alerts/{alert_id}/acknowledge", may=Permission.ALERTS, reach=Reach.OWN_OR_OPERATED, answer=WholeAlertOut)
async def acknowledge_alert(services: Serving, principal: Asking, alert_id: str, body: ReasonBody) -> Any:
    """Say that somebody looks after an alert: it is not told again before it is resolved."""
    return _whole(await services.alerts.acknowledge(principal, alert_id, body.reason))


@route.post("/alerts/{alert_id}/silence", may=Permission.ALERTS, reach=Reach.OWN_OR_OPERATED, answer=WholeAlertOut)
async def silence_alert(services: Serving, principal: Asking, alert_id: str, body: SilenceBody) -> Any:
    """Tell nothing of one alert for a while. It is told again if it still holds then."""
    duration_ns = round(body.duration_s * SECOND)
    return _whole(await services.alerts.silence(principal, alert_id, duration_ns, body.reason))


@route.post("/alerts/{alert_id}/unsilence", may=Permission.ALERTS, reach=Reach.OWN_OR_OPERATED, answer=WholeAlertOut)
async def unsilence_alert(services: Serving, principal: Asking, alert_id: str) -> Any:
    """End the silence of one alert now."""
    return _whole(await services.alerts.unsilence(principal, alert_id))


@route.post("/alerts/{alert_id}/assign", may=Permission.ALERTS, reach=Reach.OWN_OR_OPERATED, answer=WholeAlertOut)
async def assign_alert(services: Serving, principal: Asking, alert_id: str, body: AssignBody) -> Any:
    """Name who looks after an alert."""
    return _whole(await services.alerts.assign(principal, alert_id, body.assignee))


@route.post("/alerts/{alert_id}/comment", may=Permission.ALERTS, reach=Reach.OWN_OR_OPERATED, answer=WholeAlertOut)
async def comment_alert(services: Serving, principal: Asking, alert_id: str, body: CommentBody) -> Any:
    """Add a line to an alert's history."""
    return _whole(await services.alerts.comment(principal, alert_id, body.text))


# --- rules ---


class OwnRuleBody(Body):
    """A rule of one's own: an event that comes so often within the duration, or a metric that compares so for all of
    it."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    event: Annotated[str | None, Field(pattern="^[a-z_]+([.][a-z_]+)+$", max_length=100, description="Its kind")] = None
    metric: Annotated[str | None, Field(max_length=100, description="As docs/metrics.md names it")] = None
    scope: Annotated[
        Mapping[str, Annotated[str, Field(min_length=1, max_length=200)]] | None,
        Field(max_length=8, description="host, gpu, tier, region; of an event host, cluster, job, access, account"),
    ] = None
    comparison: Annotated[Literal[">", ">=", "<", "<="], Field(description="Of an event >=")] = ">="
    threshold: Annotated[float, Field(description="In the metric's unit; of an event the number")] = 1.0
    duration_s: Seconds = 60.0
    severity: Pages = "ticket"

    def parsed(self, rule_id: str = "") -> OwnRule:
        """The same as a value, whose owner and maker are not known yet."""
        return OwnRule(
            rule_id=rule_id,
            owner="",
            name=self.name,
            event_kind=self.event,
            metric=self.metric,
            scope=dict(self.scope or {}),
            comparison=self.comparison,
            threshold=self.threshold,
            duration_ns=round(self.duration_s * SECOND),
            severity=Severity(self.severity),
            created_at_ns=0,
            created_by="",
        )


class OwnRuleOut(Out):
    """A rule of one's own."""

    id: Annotated[str, Read("rule_id")]
    owner: Annotated[str, Field(description="`operators`, or the id of an account: it is told")]
    name: str
    event: Annotated[str | None, Read("event_kind")]
    metric: str | None
    scope: dict[str, str]
    comparison: str
    threshold: float
    duration_s: Annotated[Span, Read("duration_ns")]
    severity: Severity
    created_at: Time
    created_by: str


class BuiltInRuleOut(Out):
    """A rule that is built in."""

    code: str
    severity: Severity
    title: str
    remedy: str
    audience: Annotated[str, Field(description="Who is told")]
    signal: Annotated[str, Field(description="What raises it")]


class AlertRulesOut(answers.Page[OwnRuleOut]):
    """The caller's own alert rules, and the built-in rules."""

    built_in: list[BuiltInRuleOut]


class FiringOut(Out):
    """A span in which a rule would have fired."""

    name: str
    at: Annotated[Time, Read("from_ns")]
    until: Annotated[Time | None, Field(description="Null: it still would")]


class PreviewOut(Out):
    """How a rule would have fired in the last 7 days."""

    count: int
    firings: Annotated[list[FiringOut], Field(description="The latest 100")]
    complete: Annotated[bool, Field(description="False: there was too much to look at all of it")]


@route.get("/alert-rules", may=Permission.ALERTS_READ, answer=AlertRulesOut)
async def alert_rules(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """Own rules, and those that are built in."""
    own = page_of(await services.alerts.rules(principal), limit, cursor, OwnRuleOut.of, lambda one: one.rule_id)
    return {**own, "built_in": [BuiltInRuleOut.of(one) for one in table.RULES.values()]}


@route.post("/alert-rules", may=Permission.ALERTS, status_code=201, answer=OwnRuleOut)
async def add_alert_rule(services: Serving, principal: Asking, body: OwnRuleBody) -> Any:
    """Add a rule. Its owner is the project, for operators all operators; the owner is told."""
    return OwnRuleOut.of(await services.alerts.put_rule(principal, body.parsed()))


@route.post("/alert-rules/preview", may=Permission.ALERTS, answer=PreviewOut)
async def preview_alert_rule(services: Serving, principal: Asking, body: OwnRuleBody) -> Any:
    """Say when a rule would have fired in the last 7 days; nothing is saved."""
    found, is_whole = await services.alerts.preview(principal, body.parsed())
    return {"count": len(found), "firings": [FiringOut.of(one) for one in found[-100:]], "complete": is_whole}


@route.put("/alert-rules/{rule_id}", may=Permission.ALERTS, reach=Reach.OWN, answer=OwnRuleOut)
async def change_alert_rule(services: Serving, principal: Asking, rule_id: str, body: OwnRuleBody) -> Any:
    """Replace a rule. Its open alerts are resolved, and what holds by the new one is told."""
    return OwnRuleOut.of(await services.alerts.put_rule(principal, body.parsed(rule_id)))


@route.delete("/alert-rules/{rule_id}", may=Permission.ALERTS, reach=Reach.OWN, status_code=204)
async def remove_alert_rule(services: Serving, principal: Asking, rule_id: str) -> Response:
    """Remove a rule; its open alerts are resolved."""
    await services.alerts.remove_rule(principal, rule_id)
    return Response(status_code=204)


# --- silences ---


class NewSilenceBody(Body):
    """What is not told, from when and until when."""

    rule: Annotated[str | None, Field(max_length=100, description="Its code; null: any")] = None
    cause: Annotated[str | None, Field(max_length=200, description="The id of a host, job, relay...; null: any")] = None
    starts_at: Annotated[str | None, Field(max_length=40, description="RFC 3339; null: now")] = None
    ends_at: Annotated[str, Field(max_length=40, description="RFC 3339, at most 30 days later")]
    reason: Reason = ""


class SilenceOut(Out):
    """A silence: what fits is not told while it lasts."""

    id: Annotated[str, Read("silence_id")]
    owner: Annotated[str, Field(description="`operators`, or the id of an account")]
    rule: str | None
    cause: str | None
    starts_at: Annotated[Time, Read("from_ns")]
    ends_at: Annotated[Time, Read("until_ns")]
    reason: str
    created_at: Time
    created_by: str


@route.get("/alert-silences", may=Permission.ALERTS_READ, answer=answers.Page[SilenceOut])
async def alert_silences(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The silences that are not over."""
    return page_of(await services.alerts.silences(principal), limit, cursor, SilenceOut.of, lambda one: one.silence_id)


@route.post("/alert-silences", may=Permission.ALERTS, status_code=201, answer=SilenceOut)
async def add_alert_silence(services: Serving, principal: Asking, body: NewSilenceBody) -> Any:
    """Silence a rule, a cause, or both. A project silences what nobody else is told of."""
    now_ns = services.clock.wall_ns()
    from_ns, until_ns = moment("starts_at", body.starts_at) or now_ns, moment("ends_at", body.ends_at) or 0
    if until_ns <= max(now_ns, from_ns):
        raise InvalidInput("ends_at: A silence ends after it starts, and not in the past.", subject="ends_at")
    wanted = Silence(
        silence_id="",
        owner="",
        rule=body.rule,
        cause=body.cause,
        from_ns=from_ns,
        until_ns=until_ns,
        reason=body.reason,
        created_by="",
        created_at_ns=now_ns,
    )
    return SilenceOut.of(await services.alerts.add_silence(principal, wanted))


@route.delete("/alert-silences/{silence_id}", may=Permission.ALERTS, reach=Reach.OWN, status_code=204)
async def remove_alert_silence(services: Serving, principal: Asking, silence_id: str) -> Response:
    """End a silence now."""
    await services.alerts.remove_silence(principal, silence_id)
    return Response(status_code=204)


# --- the inbox ---


class InboxOut(answers.Page[MessageOut]):
    """The messages for the caller, the latest first."""

    unread: int
    read_number: Annotated[int, Field(description="The number of the last message that the caller has read")]


class ReadBody(Body):
    """How far the inbox was read."""

    number: Annotated[int, Field(ge=0, le=NUMBER_MAX, description="Of the last message that was read")]


class UnreadOut(Out):
    """The messages that are left."""

    unread: int


@route.get("/inbox", may=Permission.ALERTS_READ, answer=InboxOut)
async def inbox(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The messages of alerts that the caller is told, the latest first, and how many are unread."""
    found, unread, read = await services.alerts.inbox(principal, read_number(cursor), limit + 1)
    return {**page(found, limit, MessageOut.of, lambda one: str(one.number)), "unread": unread, "read_number": read}


@route.post("/inbox/read", may=Permission.ALERTS_READ, answer=UnreadOut)
async def read_inbox(services: Serving, principal: Asking, body: ReadBody) -> Any:
    """Say that the caller has read all messages up to this one."""
    return {"unread": await services.alerts.mark_read(principal, body.number)}
