"""`windrow maintenance`: windows in which hosts are worked on, declared ahead of time."""

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
from windrow.words import counted

maintenance_app = typer.Typer(
    help="Maintenance windows: hosts that are worked on, declared ahead of time.", no_args_is_help=True
)

Item = dict[str, Any]
WINDOWS: Final = Kind(
    "maintenance", "maintenance_", lambda api, _: api.items("/maintenance-windows"), names=lambda item: ()
)
Hosts = Annotated[list[str] | None, typer.Argument(metavar="[HOST]...", help="Hosts by name or id.")]
Where = Annotated[
    list[str] | None, typer.Option("--where", metavar="LABEL=VALUE", help="All hosts with region=NAME or tier=NAME.")
]
WindowId = Annotated[str, typer.Argument(metavar="WINDOW", help="Id of the window, or its start.")]
SHOWN: Final = Table(
    (
        id_column(),
        Column("HOSTS", lambda w: ", ".join(w["names"]), most=48),
        time_column("FROM", lambda w: w["starts_at"]),
        time_column("UNTIL", lambda w: w["ends_at"]),
        Column("STATE", lambda w: w["state"]),
        Column("REASON", lambda w: w["reason"], 1, 40),
        Column("OWNER", lambda w: w["owner"], 2),
    ),
    "No maintenance is planned. Plan some: windrow maintenance plan HOST",
    states=lambda w: (w["state"],),
    state_words=("planned", "running"),
)


@maintenance_app.command("ls")
@lists(SHOWN)
def maintenance_ls(context: typer.Context, view: View) -> None:
    """List the maintenance windows that are planned or running."""
    api = client(context)
    view.print(api, api.items("/maintenance-windows"))


@maintenance_app.command("plan")
def maintenance_plan(context: typer.Context, hosts: Hosts = None, where: Where = None, as_json: AsJson = False) -> None:
    """Show when nothing runs any more on these hosts, by the durations of the leases."""
    api = client(context)
    plan = api.request("POST", "/maintenance-windows/plan", body=_hosts(api, hosts, where))
    if as_json:
        print_json(plan)
        return
    said = f"{counted(plan['leases'], 'lease')} on {counted(plan['hosts'], 'host')}."
    if not plan["leases"]:
        say(f"{said} Nothing runs there now.")
    elif plan["earliest_start"] is None:
        say(f"{said} {plan['open_ended']} of them have no duration: their renters are told, and you choose the time.")
    else:
        say(f"{said} By their durations all have ended at {plan['earliest_start']}.")


@maintenance_app.command("add")
def maintenance_add(
    context: typer.Context,
    hosts: Hosts = None,
    where: Where = None,
    start: Annotated[
        str, typer.Option("--from", metavar="TIME", help="RFC 3339, or a span from now such as 2d; default: now.")
    ] = "",
    lasts: Annotated[str, typer.Option("--for", metavar="TIME", help="30m, 8h, 3d and the like.")] = "2h",
    reason: Annotated[str, typer.Option("--reason", help="Why; renters and owners of the hosts read it.")] = "",
    as_json: AsJson = False,
) -> None:
    """Declare a maintenance window: renters and owners are told, and no alert about the hosts is told meanwhile."""
    api = client(context)
    begins = _time(start)
    times = {"starts_at": _text(begins) if start else None, "ends_at": _text(begins + _span(lasts))}
    body = _hosts(api, hosts, where) | times | {"reason": reason}
    made = api.request("POST", "/maintenance-windows", body=body)
    print_json(made) if as_json else say(
        f"Maintenance from {made['starts_at']} until {made['ends_at']}. Take it back: "
        f"windrow maintenance rm {resolving.short(made['id'])}"
    )


@maintenance_app.command("set")
def maintenance_set(
    context: typer.Context,
    window: WindowId,
    until: Annotated[str, typer.Option("--until", metavar="TIME", help="RFC 3339, or a span from now such as 2h.")],
    as_json: AsJson = False,
) -> None:
    """Move the end of a maintenance window, also of one that runs."""
    api = client(context)
    path = f"/maintenance-windows/{found(api, WINDOWS, window)}"
    changed = api.request("PUT", path, body={"ends_at": _text(_time(until))})
    print_json(changed) if as_json else say(f"It is over at {changed['ends_at']}.")


@maintenance_app.command("rm")
def maintenance_rm(context: typer.Context, window: WindowId, yes: Yes = False) -> None:
    """Remove a maintenance window, or end one that runs."""
    api: Client = client(context)
    window_id = found(api, WINDOWS, window)
    agreed(yes, f"Remove the maintenance window {window}?")
    api.request("DELETE", f"/maintenance-windows/{window_id}")
    say(f"The maintenance window {window} is over.")


def _hosts(api: Client, hosts: list[str] | None, where: list[str] | None) -> Item:
    pairs = [one.partition("=") for one in where or ()]
    if any(not equals or not value for _, equals, value in pairs):
        raise InvalidInput("--where is LABEL=VALUE, such as region=north.")
    ids = [found(api, resolving.HOSTS, one) for one in hosts or ()]
    return {"hosts": ids, "scope": {label: value for label, _, value in pairs}}


def _time(text: str) -> datetime:
    if not text:
        return datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return datetime.now(UTC) + _span(text)
    if moment.tzinfo is None:
        raise InvalidInput(f"{text!r} has no time zone. Write for example {text}Z.")
    return moment


def _span(text: str) -> timedelta:
    return timedelta(seconds=parse_span(text))


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
