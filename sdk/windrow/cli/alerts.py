"""`windrow alert`: what is wrong, who looks after it, what is not told, and rules of one's own."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

import typer

from windrow.cli import resolving
from windrow.cli.context import AsJson, Yes, agreed, client
from windrow.cli.output import print_json, say
from windrow.cli.request import parse_span
from windrow.cli.resolving import Kind, found
from windrow.cli.tables import Column, Table, View, id_column, lists, time_column
from windrow.client import Client
from windrow.errors import InvalidInput
from windrow.words import counted, severity_name

alert_app = typer.Typer(help="Alerts: what is wrong, and who looks after it.", no_args_is_help=True)
rule_app = typer.Typer(help="Alert rules of your own.", no_args_is_help=True)
silence_app = typer.Typer(help="Silences: what is not told for a while.", no_args_is_help=True)
alert_app.add_typer(rule_app, name="rule")
alert_app.add_typer(silence_app, name="silences")

Item = dict[str, Any]
ALERTS: Final = Kind("alert", "alert_", lambda api, _: api.items("/alerts", state="all"), names=lambda item: ())
RULES: Final = Kind("alert rule", "alertrule_", lambda api, _: api.items("/alert-rules"))
SILENCES: Final = Kind("silence", "silence_", lambda api, _: api.items("/alert-silences"), names=lambda item: ())
LEVELS: Final = "page (urgent) or ticket (can wait)."
Alert = Annotated[str, typer.Argument(metavar="ALERT", help="Id of the alert, or its start.")]
Why = Annotated[str, typer.Option("--reason", help="Why; it is kept in the alert's history.")]
Lasts = Annotated[str, typer.Option("--for", metavar="TIME", help="30m, 8h, 3d and the like; at most 30 days.")]

SHOWN: Final = Table(
    (
        id_column(),
        Column("SEVERITY", lambda a: a["severity"], show=severity_name),
        Column("STATE", lambda a: a["state"]),
        Column("ALERT", lambda a: a["title"], most=60),
        time_column("SINCE", lambda a: a["opened_at"]),
        Column("AFFECTED", lambda a: a["subject_count"], 1),
        Column("ASSIGNEE", lambda a: a["assignee"], 2),
        Column("RULE", lambda a: a["rule"], 3),
    ),
    "No alerts.",
    states=lambda a: (a["state"],),
    state_words=("pending", "firing", "acknowledged", "silenced", "resolved"),
    at=lambda a: a["opened_at"],
)


@alert_app.command("ls")
@lists(SHOWN)
def alert_ls(
    context: typer.Context,
    view: View,
    every: Annotated[bool, typer.Option("--every", help="Also those that are resolved.")] = False,
    severity: Annotated[str | None, typer.Option(help=LEVELS)] = None,
    rule: Annotated[str | None, typer.Option(help="Only those of this rule, by its code.")] = None,
) -> None:
    """List the alerts that are open, the latest first."""
    api = client(context)
    state = view.state or ("all" if every else "open")
    view.print(api, api.items("/alerts", state=state, severity=severity, rule=rule))


@alert_app.command("show")
def alert_show(context: typer.Context, alert: Alert, as_json: AsJson = False) -> None:
    """Show an alert: what it is about, what to do, and its history."""
    api = client(context)
    one = api.get(f"/alerts/{found(api, ALERTS, alert)}")
    if as_json:
        print_json(one)
        return
    say(f"{one['title']} ({severity_name(one['severity'])}, {one['state']})")
    for line in one["text"].splitlines():
        say(line)
    names = _own_names(api)
    if one["state"] == "silenced":
        say(f"Not told until {one['silenced_until']}. Silenced by {_silence(one, names)}.")
        say(f"End it: windrow alert unsilence {resolving.short(one['id'])}")
    if one["remedy"]:
        say(f"What to do: {one['remedy']}")
    for affected in one["affected"]:
        say(f"  {affected['name']}" + (", over" if affected["cleared_at"] else ""))
    for note in one["notes"]:
        first, _, _ = note["text"].partition("\n")
        say(f"{note['at']}  {_actor(note['actor'], names)}  {note['kind']}" + (f": {first}" if first else ""))


def _silence(alert: Item, names: dict[str, str]) -> str:
    """Who silenced an alert, and why."""
    last = next((one for one in reversed(alert["notes"]) if one["kind"] in ("silenced", "unsilenced")), None)
    if last is None or last["kind"] == "unsilenced":
        return "a silence of its rule or of what it is about: windrow alert silences ls"
    return _actor(last["actor"], names) + (f": {last['text']}" if last["text"] else "")


def _own_names(api: Client) -> dict[str, str]:
    me = api.get("/me")
    return {one["id"]: one["name"] for one in (me.get("user"), me.get("service"), me["account"]) if one}


def _actor(actor: str, names: dict[str, str]) -> str:
    """Who did something: oneself by name, others by kind and short id."""
    return str(resolving.shortened(resolving.actor_name(actor, names)))


@alert_app.command("ack")
def alert_ack(context: typer.Context, alert: Alert, reason: Why = "", as_json: AsJson = False) -> None:
    """Say that you look after an alert: it is not told again."""
    _done(context, alert, "acknowledge", {"reason": reason}, as_json)


@alert_app.command("silence")
def alert_silence(
    context: typer.Context, alert: Alert, lasts: Lasts = "1h", reason: Why = "", as_json: AsJson = False
) -> None:
    """Tell nothing more of one alert for a while."""
    _done(context, alert, "silence", {"duration_s": parse_span(lasts), "reason": reason}, as_json)


@alert_app.command("unsilence")
def alert_unsilence(context: typer.Context, alert: Alert, as_json: AsJson = False) -> None:
    """End the silence of one alert now."""
    _done(context, alert, "unsilence", None, as_json)


@alert_app.command("assign")
def alert_assign(
    context: typer.Context,
    alert: Alert,
    assignee: Annotated[str, typer.Argument(metavar="NAME", help="Who looks after it; '' for nobody.")],
    as_json: AsJson = False,
) -> None:
    """Name who looks after an alert."""
    _done(context, alert, "assign", {"assignee": assignee}, as_json)


@alert_app.command("comment")
def alert_comment(
    context: typer.Context,
    alert: Alert,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A line for the alert's history.")],
    as_json: AsJson = False,
) -> None:
    """Add a line to an alert's history."""
    _done(context, alert, "comment", {"text": text}, as_json)


def _done(context: typer.Context, alert: str, what: str, body: Item | None, as_json: bool) -> None:
    api = client(context)
    one = api.request("POST", f"/alerts/{found(api, ALERTS, alert)}/{what}", body=body)
    if as_json:
        print_json(one)
        return
    until = f" until {one['silenced_until']}" if one["silenced_until"] else ""
    say(f"{one['title']} is {one['state']}{until}.")


# --- rules ---

SHOWN_RULES: Final = Table(
    (
        id_column(),
        Column("NAME", lambda r: r["name"]),
        Column("WHEN", lambda r: _words(r), most=60),
        Column("SEVERITY", lambda r: r["severity"], 1, show=severity_name),
        Column("TOLD TO", lambda r: r["owner"], 2),
    ),
    "No rules of your own. Add one: windrow alert rule add NAME --metric METRIC --above NUMBER",
    name=lambda r: r["name"],
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the rule.")]
Metric = Annotated[str | None, typer.Option("--metric", help="Metric, as docs/metrics.md names it.")]
Event = Annotated[str | None, typer.Option("--event", help="Kind of event, such as job.failed, in place of a metric.")]
Above = Annotated[float | None, typer.Option("--above", help="Fire while the metric is above this.")]
Below = Annotated[float | None, typer.Option("--below", help="Fire while the metric is below this.")]
Count = Annotated[int, typer.Option("--count", min=1, max=100, help="Fire after so many events within the time.")]
Scope = Annotated[
    list[str] | None, typer.Option("--where", metavar="LABEL=VALUE", help="host=ID, tier=h100/A, ... Repeatable.")
]
Within = Annotated[str, typer.Option("--for", metavar="TIME", help="For how long, or within which time: 60s, 10m.")]
Severity = Annotated[str, typer.Option("--severity", help=LEVELS)]


@rule_app.command("ls")
@lists(SHOWN_RULES)
def rule_ls(context: typer.Context, view: View) -> None:
    """List alert rules of your own."""
    api = client(context)
    view.print(api, api.items("/alert-rules"))


@rule_app.command("add")
def rule_add(
    context: typer.Context,
    name: Name,
    metric: Metric = None,
    event: Event = None,
    above: Above = None,
    below: Below = None,
    count: Count = 1,
    where: Scope = None,
    within: Within = "60s",
    severity: Severity = "ticket",
    as_json: AsJson = False,
) -> None:
    """Add an alert rule of your own; your project is told, of an operator's all operators."""
    body = _body(name, metric, event, above, below, count, where, within, severity)
    made = client(context).request("POST", "/alert-rules", body=body)
    print_json(made) if as_json else say(f"The rule {made['name']} is added ({made['id']}): {_words(made)}.")


@rule_app.command("preview")
def rule_preview(
    context: typer.Context,
    metric: Metric = None,
    event: Event = None,
    above: Above = None,
    below: Below = None,
    count: Count = 1,
    where: Scope = None,
    within: Within = "60s",
    as_json: AsJson = False,
) -> None:
    """Show when a rule would have fired in the last 7 days; nothing is saved."""
    body = _body("preview", metric, event, above, below, count, where, within, "ticket")
    seen = client(context).request("POST", "/alert-rules/preview", body=body)
    if as_json:
        print_json(seen)
        return
    more = "" if seen["complete"] else " Only a part of it was looked at: narrow it with --where."
    say(f"It would have fired {seen['count']} times in the last 7 days.{more}")
    for one in seen["firings"]:
        say(f"  {one['at']} to {one['until'] or 'now'}  {one['name']}")


@rule_app.command("rm")
def rule_rm(context: typer.Context, rule: Name, yes: Yes = False) -> None:
    """Remove an alert rule of your own; its alerts are resolved."""
    api = client(context)
    rule_id = found(api, RULES, rule)
    agreed(yes, f"Remove the alert rule {rule}?")
    api.request("DELETE", f"/alert-rules/{rule_id}")
    say(f"The rule {rule} is removed.")


def _body(
    name: str,
    metric: str | None,
    event: str | None,
    above: float | None,
    below: float | None,
    count: int,
    where: list[str] | None,
    within: str,
    severity: str,
) -> Item:
    """The rule as the Master takes it. Raises InvalidInput."""
    pairs = [one.partition("=") for one in where or ()]
    if any(not equals or not value for _, equals, value in pairs):
        raise InvalidInput("--where is LABEL=VALUE, such as host=gpu-7.")
    if metric is not None and (above is None) == (below is None):
        raise InvalidInput("With --metric write --above NUMBER or --below NUMBER.")
    compared = {"comparison": ">=", "threshold": count}
    if metric is not None:
        compared = {"comparison": ">" if below is None else "<", "threshold": above if below is None else below}
    scope = {label: value for label, _, value in pairs}
    of = {"name": name, "metric": metric, "event": event, "scope": scope, "severity": severity}
    return {**of, **compared, "duration_s": parse_span(within)}


def _words(rule: Item) -> str:
    where = ", ".join(f"{label}={value}" for label, value in rule["scope"].items())
    what = f"{rule['threshold']:g} {rule['event'] or 'events'} within {rule['duration_s']:g} s"
    if rule["metric"]:
        what = f"{rule['metric']} {rule['comparison']} {rule['threshold']:g} for {rule['duration_s']:g} s"
    return f"{what} ({where})" if where else what


# --- silences ---

_NAMED: Final = (resolving.HOSTS, resolving.CLUSTERS, resolving.JOBS)
SHOWN_SILENCES: Final = Table(
    (
        id_column(),
        Column("RULE", lambda s: s["rule"] or "any"),
        Column("CAUSE", lambda s: resolving.named(s["cause"] or "any", s.get("names")), most=40),
        time_column("FROM", lambda s: s["starts_at"]),
        time_column("UNTIL", lambda s: s["ends_at"]),
        Column("REASON", lambda s: s["reason"], 1, 40),
        Column("BY", lambda s: resolving.actor_name(s["created_by"], s.get("names")), 2, show=resolving.shortened),
    ),
    "Nothing is silenced. Silence a host: windrow alert silences add --host HOST --for 2h",
)


@silence_app.command("ls")
@lists(SHOWN_SILENCES)
def silences_ls(context: typer.Context, view: View) -> None:
    """List the silences that are not over."""
    api = client(context)
    if view.is_json:
        view.print(api, api.items("/alert-silences"))
        return
    names = _own_names(api)
    view.print(api, (one | {"names": names | _cause_names(api, one)} for one in api.items("/alert-silences")))
    if silenced := sum(1 for _ in api.items("/alerts", state="silenced")):
        said = counted(silenced, "alert")
        say(f"{said} silenced now, by a silence or alone: windrow alert ls --state silenced")


def _cause_names(api: Client, silence: Item) -> dict[str, str]:
    """The name of what a silence is about, by its id, where it has one."""
    cause = silence["cause"] or ""
    path = next((one.path or "/hosts" for one in _NAMED if cause.startswith(one.prefix)), None)
    return {} if path is None else {cause: resolving.called(api, path, cause)}


@silence_app.command("add")
def silences_add(
    context: typer.Context,
    rule: Annotated[str | None, typer.Option("--rule", help="Code of the rule; default: any.")] = None,
    host: Annotated[str | None, typer.Option("--host", help="Host by name or id; default: any cause.")] = None,
    cause: Annotated[str | None, typer.Option("--cause", help="Id of another cause: a job, a relay.")] = None,
    lasts: Lasts = "1h",
    reason: Why = "",
    as_json: AsJson = False,
) -> None:
    """Silence a rule, a cause or both, also what is open."""
    api = client(context)
    about = found(api, resolving.HOSTS, host) if host is not None else cause
    if rule is None and about is None:
        raise InvalidInput("Name what to silence: --rule, --host or --cause.")
    body = {"rule": rule, "cause": about, "ends_at": _in(parse_span(lasts)), "reason": reason}
    made = api.request("POST", "/alert-silences", body=body)
    print_json(made) if as_json else say(f"It is silenced until {made['ends_at']}. End that: "
                                         f"windrow alert silences rm {made['id']}")  # fmt: skip


@silence_app.command("rm")
def silences_rm(
    context: typer.Context,
    silence: Annotated[str, typer.Argument(metavar="SILENCE", help="Id of the silence, or its start.")],
) -> None:
    """End a silence now."""
    api: Client = client(context)
    api.request("DELETE", f"/alert-silences/{found(api, SILENCES, silence)}")
    say(f"The silence {silence} is over.")


def _in(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="seconds").replace("+00:00", "Z")
