"""`windrow limit`: how much a project, a token or a service account may spend."""

from typing import Any, Final

import typer

from windrow.cli.context import AsJson, Yes, agreed, client
from windrow.cli.flags import options
from windrow.cli.output import print_json, say
from windrow.cli.request import parse_span
from windrow.cli.resolving import SERVICE_ACCOUNTS, TOKENS, found
from windrow.cli.tables import Column, Table, View, id_column, lists, money_column
from windrow.client import Client
from windrow.errors import InvalidInput
from windrow.fields import Field
from windrow.words import money_text

limit_app = typer.Typer(help="Spending limits of projects, tokens and service accounts.", no_args_is_help=True)

Item = dict[str, Any]

LIMITS: Final = (
    Field("max_hourly_cost", "text", flag="--max-hourly", help="Price per hour of all that runs at once."),
    Field("max_monthly_cost", "text", flag="--max-monthly", help="Money in a calendar month (UTC)."),
    Field("max_total_cost", "text", flag="--max-total", help="Money in all."),
    Field("max_leases", "text", flag="--max-leases", help="Machines and clusters rented at once."),
    Field("idle_seconds", "text", flag="--idle", help="End new machines when unused this long, unless they say: 30m."),
)
"""The options of all commands that set limits."""
SPENDERS: Final = (
    Field("project", "text", flag="--project", help="Project by name or id; default: the present one."),
    Field("token", "text", flag="--token", help="Token by name or id, in place of a project."),
    Field("service_account", "text", flag="--service-account", help="Service account by name or id."),
)
FIELDS: Final = tuple(field.name for field in LIMITS)
USED: Final = ("hourly_cost", "monthly_cost", "total_cost", "leases")
NONE: Final = "none"
"""In place of an amount: there is no limit, or it is removed."""


def given(asked: Item) -> Item:
    """The limits that a command line gives, as the Master takes them; null ends one. asked: its options."""
    said = {field: None if asked[field] == NONE else asked[field] for field in FIELDS if asked[field]}
    leases, idle = said.get("max_leases"), said.get("idle_seconds")
    if leases is not None and not leases.isdecimal():
        raise InvalidInput(f"--max-leases is a whole number, or {NONE}.")
    said |= {"max_leases": int(leases)} if leases is not None else {}
    return said | ({"idle_seconds": int(parse_span(idle))} if idle is not None else {})


def _cell(field: str, used: str) -> Any:
    return lambda one: f"{one[used]} / {NONE if one[field] is None else one[field]}"


def _rounded(cell: str) -> str:
    """Both amounts of a cell as a screen shows them, short: cut, the limit could not be read."""
    used, limit = cell.split(" / ")
    return f"{money_text(used)} / {NONE if limit == NONE else money_text(limit)}"


SHOWN: Final = Table(
    (
        Column("OF", lambda one: one["kind"].replace("_", " "), 3),
        Column("NAME", lambda one: one["name"], most=20),
        Column("PER HOUR", _cell(FIELDS[0], USED[0]), 2, show=_rounded),
        Column("THIS MONTH", _cell(FIELDS[1], USED[1]), show=_rounded),
        Column("IN ALL", _cell(FIELDS[2], USED[2]), 1, show=_rounded),
        Column("LEASES", _cell(FIELDS[3], USED[3]), 4),
        Column("IDLE", lambda one: "-" if one["idle_seconds"] is None else f"{one['idle_seconds']} s", 7),
        money_column("HELD", lambda one: one["held"], 6),
        id_column(rank=5),
    ),
    "No limits. Set one: windrow limit set --max-monthly 100",
    name=lambda one: one["name"],
)


@limit_app.command("ls")
@lists(SHOWN)
def limit_ls(context: typer.Context, view: View) -> None:
    """List what your project has spent, and the limits that you may see, each as used / limit."""
    api = client(context)
    view.print(api, api.items("/limits"))


@limit_app.command("set")
@options((*SPENDERS, *LIMITS))
def limit_set(context: typer.Context, as_json: AsJson = False, **asked: Any) -> None:
    """Set limits of a project, a token or a service account; `none` ends one, and those not named stay."""
    wanted = given(asked)
    if not wanted:
        raise InvalidInput("Name a limit: --max-hourly, --max-monthly, --max-total, --max-leases or --idle.")
    api = client(context)
    path = _path(api, **{field.name: asked[field.name] for field in SPENDERS})
    before = api.get(path)
    changed = api.request("PUT", path, body={field: before[field] for field in FIELDS} | wanted)
    print_json(changed) if as_json else say(_said(changed))


@limit_app.command("rm")
@options(SPENDERS)
def limit_rm(context: typer.Context, yes: Yes = False, **asked: Any) -> None:
    """Remove all limits of a project, a token or a service account."""
    api = client(context)
    path = _path(api, **asked)
    agreed(yes, f"Remove the spending limits of {next(filter(None, asked.values()), 'this project')}?")
    api.request("DELETE", path)
    say("Its spending is not limited any more.")


def _path(api: Client, project: str | None, token: str | None, service_account: str | None) -> str:
    """The route of the limits of what was named. Raises InvalidInput where several were."""
    if sum(one is not None for one in (project, token, service_account)) > 1:
        raise InvalidInput("Give one of --project, --token and --service-account.")
    if token is not None:
        return f"/tokens/{found(api, TOKENS, token)}/limits"
    if service_account is not None:
        return f"/service-accounts/{found(api, SERVICE_ACCOUNTS, service_account)}/limits"
    return f"/projects/{project or api.get('/me')['account']['id']}/limits"


def _said(one: Item) -> str:
    words = ("{} an hour", "{} a month", "{} in all", "{} leases at once")
    parts = [word.format(one[field]) for field, word in zip(FIELDS, words, strict=False) if one[field] is not None]
    idle = one["idle_seconds"]
    rest = "" if idle is None else f" New machines end when unused for {idle} s, unless they say otherwise."
    whose = f"The {one['kind'].replace('_', ' ')} {one['name']}"
    return f"{whose} may spend: {', '.join(parts) or 'as much as there is'}.{rest}"
