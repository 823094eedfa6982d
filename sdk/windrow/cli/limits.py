"""`windrow limit`: how much a project, a token or a service account may spend."""

from typing import Annotated, Any, Final

import typer

from windrow.cli.context import AsJson, Yes, agreed, client
from windrow.cli.output import print_json, say
from windrow.cli.resolving import SERVICE_ACCOUNTS, TOKENS, found
from windrow.cli.tables import Column, Table, View, id_column, lists
from windrow.client import Client
from windrow.errors import InvalidInput

limit_app = typer.Typer(help="Spending limits of projects, tokens and service accounts.", no_args_is_help=True)

Item = dict[str, Any]
MaxHourly = Annotated[
    str | None, typer.Option("--max-hourly", metavar="AMOUNT", help="Price per hour of all that runs at once.")
]
MaxMonthly = Annotated[
    str | None, typer.Option("--max-monthly", metavar="AMOUNT", help="Money in a calendar month (UTC).")
]
MaxTotal = Annotated[str | None, typer.Option("--max-total", metavar="AMOUNT", help="Money in all.")]
MaxLeases = Annotated[str | None, typer.Option("--max-leases", metavar="N", help="Rented clusters at once.")]
Project = Annotated[str | None, typer.Option("--project", help="Project by name or id; default: the present one.")]
Token = Annotated[str | None, typer.Option("--token", help="Token by name or id, in place of a project.")]
Service = Annotated[str | None, typer.Option("--service-account", help="Service account by name or id.")]

FIELDS: Final = ("max_hourly_cost", "max_monthly_cost", "max_total_cost", "max_leases")
USED: Final = ("hourly_cost", "monthly_cost", "total_cost", "leases")
NONE: Final = "none"
"""In place of an amount: this limit ends."""


def given(*values: str | None) -> Item:
    """Those limits of a command line that were written, in the order of FIELDS, as the Master takes them; null ends
    one."""
    said = {field: None if text == NONE else text for field, text in zip(FIELDS, values, strict=True) if text}
    leases = said.get(FIELDS[-1])
    if leases is None:
        return said
    if not leases.isdecimal():
        raise InvalidInput(f"--max-leases is a whole number, or {NONE}.")
    return said | {FIELDS[-1]: int(leases)}


def _cell(field: str, used: str) -> Any:
    return lambda one: f"{one[used]} / {'no limit' if one[field] is None else one[field]}"


LIMITS: Final = Table(
    (
        Column("OF", lambda one: one["kind"].replace("_", " ")),
        Column("NAME", lambda one: one["name"]),
        Column("PER HOUR", _cell(FIELDS[0], USED[0])),
        Column("THIS MONTH", _cell(FIELDS[1], USED[1])),
        Column("IN ALL", _cell(FIELDS[2], USED[2])),
        Column("LEASES", _cell(FIELDS[3], USED[3])),
        Column("HELD", lambda one: one["held"], 2),
        id_column(rank=1),
    ),
    "No limits. Set one: windrow limit set --max-monthly 100",
    name=lambda one: one["name"],
)


@limit_app.command("ls")
@lists(LIMITS)
def limit_ls(context: typer.Context, view: View) -> None:
    """List what your project has spent, and the limits that you may see, each as used / limit."""
    api = client(context)
    view.print(api, api.items("/limits"))


@limit_app.command("set")
def limit_set(
    context: typer.Context,
    project: Project = None,
    token: Token = None,
    service_account: Service = None,
    max_hourly: MaxHourly = None,
    max_monthly: MaxMonthly = None,
    max_total: MaxTotal = None,
    max_leases: MaxLeases = None,
    as_json: AsJson = False,
) -> None:
    """Set limits of a project, a token or a service account; `none` ends one, and those not named stay."""
    wanted = given(max_hourly, max_monthly, max_total, max_leases)
    if not wanted:
        raise InvalidInput("Name a limit: --max-hourly, --max-monthly, --max-total or --max-leases.")
    api = client(context)
    path = _path(api, project, token, service_account)
    before = api.get(path)
    changed = api.request("PUT", path, body={field: before[field] for field in FIELDS} | wanted)
    print_json(changed) if as_json else say(_said(changed))


@limit_app.command("rm")
def limit_rm(
    context: typer.Context,
    project: Project = None,
    token: Token = None,
    service_account: Service = None,
    yes: Yes = False,
) -> None:
    """Remove all limits of a project, a token or a service account."""
    api = client(context)
    path = _path(api, project, token, service_account)
    agreed(yes, f"Remove the spending limits of {token or service_account or project or 'this project'}?")
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
    parts = [word.format(one[field]) for field, word in zip(FIELDS, words, strict=True) if one[field] is not None]
    return f"The {one['kind'].replace('_', ' ')} {one['name']} may spend: {', '.join(parts) or 'as much as there is'}."
