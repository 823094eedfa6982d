"""`windrow service-account`: programs that act in your project, with tokens of their own."""

import sys
from datetime import timedelta
from typing import Annotated, Any

import typer

from windrow.cli.context import AsJson, Yes, client, confirm
from windrow.cli.flags import options
from windrow.cli.limits import LIMITS, given
from windrow.cli.output import print_json, say
from windrow.cli.resolving import SERVICE_ACCOUNTS, found
from windrow.cli.tables import Column, Table, View, id_column, lists, roles_text, time_column

service_app = typer.Typer(help="Service accounts: programs that act in your project.", no_args_is_help=True)

Item = dict[str, Any]
Service = Annotated[str, typer.Argument(metavar="NAME", help="Name or id of a service account.")]
Days = Annotated[int, typer.Option(min=1, max=90, help="Lifetime of the token, in days.")]


SERVICES = Table(
    (
        id_column(rank=2),
        Column("NAME", lambda s: s["name"]),
        Column("ROLES", lambda s: ", ".join(s["roles"]) or "none", show=roles_text),
        Column("TOKENS", lambda s: len(s["tokens"])),
        time_column("EXPIRES", lambda s: _newest(s).get("expires_at")),
        time_column("LAST USED", lambda s: _last(s).get("last_used_at"), 1),
        Column("FROM", lambda s: _last(s).get("last_used_address"), 1),
        Column("CREATED BY", lambda s: s["created_by"], 3),
    ),
    "No service accounts. Make one: windrow service-account add NAME --role renter",
    name=lambda s: s["name"],
)


def _newest(service: Item) -> Item:
    tokens: list[Item] = service["tokens"]
    return tokens[-1] if tokens else {}


def _last(service: Item) -> Item:
    """Its token that was used last."""
    return max(service["tokens"], key=lambda one: one["last_used_at"] or "", default={})


@service_app.command("ls")
@lists(SERVICES)
def service_ls(context: typer.Context, view: View) -> None:
    """List the service accounts of your project."""
    api = client(context)
    view.print(api, api.items("/service-accounts"))


@service_app.command("add")
@options(LIMITS)
def service_add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Lower-case letters, digits and .@_-")],
    role: Annotated[list[str], typer.Option(help="renter, viewer or provider; may be repeated.")],
    days: Days = 90,
    as_json: AsJson = False,
    **asked: Any,
) -> None:
    """Make a service account and print its token, shown only now. Limits hold for all tokens that it ever has."""
    body: Item = {"name": name, "roles": role, "expires_in_s": int(timedelta(days=days).total_seconds())}
    limits = given(asked)
    body |= {"limits": limits} if limits else {}
    _print(client(context).request("POST", "/service-accounts", body=body), as_json)


@service_app.command("rotate")
def service_rotate(
    context: typer.Context,
    name: Service,
    overlap_hours: Annotated[
        int, typer.Option(min=0, max=168, help="Hours for which the token before stays valid.")
    ] = 24,
    days: Days = 90,
    as_json: AsJson = False,
) -> None:
    """Make a new token and print it, shown only now; the token before ends after the overlap."""
    api = client(context)
    body = {
        "expires_in_s": int(timedelta(days=days).total_seconds()),
        "overlap_s": int(timedelta(hours=overlap_hours).total_seconds()),
    }
    made = api.request("POST", f"/service-accounts/{found(api, SERVICE_ACCOUNTS, name)}/rotate", body=body)
    _print(made, as_json)
    if not as_json:
        say(f"The token before stays valid for {overlap_hours} h." if overlap_hours else "The token before has ended.")


@service_app.command("rm")
def service_rm(context: typer.Context, name: Service, yes: Yes = False) -> None:
    """Remove a service account: its tokens stop at once. What runs goes on."""
    if not yes:
        confirm(f"Remove the service account {name}?")
    api = client(context)
    api.request("DELETE", f"/service-accounts/{found(api, SERVICE_ACCOUNTS, name)}")
    say(f"The service account {name} is removed.")


def _print(made: Item, as_json: bool) -> None:
    if as_json:
        print_json(made)
        return
    sys.stdout.write(made["token"]["token"] + "\n")
    service = made["service_account"]
    until = made["token"]["expires_at"]
    say(f"{service['name']} ({', '.join(service['roles'])}): the token expires at {until} and is not shown again.")
