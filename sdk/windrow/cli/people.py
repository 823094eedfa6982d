"""`windrow account` and `windrow credit`: other people's accounts, for operators."""

import sys
from typing import Annotated, Any

import typer

from windrow.cli.context import AsJson, Yes, client, confirm, say_link_note
from windrow.cli.output import facts, print_json, say
from windrow.cli.tables import Column, Table, View, id_column, lists, roles_text, time_column
from windrow.client import Client
from windrow.words import money_text

people_app = typer.Typer(help="Accounts of other people (operators).", no_args_is_help=True)
credit_app = typer.Typer(help="Test credits of accounts (operators).", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The account's name or id.")]


@people_app.command("add")
def account_add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Lower-case letters, digits and .@_-")],
    role: Annotated[list[str], typer.Option(help="renter, provider, auditor or operator; may be repeated.")],
    credit: Annotated[str, typer.Option(help="Test credits at the start.")] = "0",
    as_json: AsJson = False,
) -> None:
    """Add an account and print its sign-in link, shown only now and valid once."""
    api = client(context)
    made = api.request("POST", "/accounts", body={"name": name, "roles": role, "credit": credit})
    _print_link(api, made, as_json)


@people_app.command("link")
def account_link(context: typer.Context, name: Name, as_json: AsJson = False) -> None:
    """Create a new sign-in link for an account; older links stop working."""
    api = client(context)
    _print_link(api, api.request("POST", f"/accounts/{name}/link"), as_json)


ACCOUNTS = Table(
    (
        id_column(rank=2),
        Column("NAME", lambda a: a["name"]),
        Column("STATE", lambda a: a["state"]),
        Column("BALANCE", lambda a: _balance(a)),
        Column("ROLES", lambda a: ", ".join(a["roles"]), 1, show=roles_text),
        time_column("SINCE", lambda a: a["created_at"], 3),
    ),
    "No accounts. Add one: windrow account add NAME --role renter",
    name=lambda a: a["name"],
    states=lambda a: (a["state"],),
    state_words=("active", "suspended", "deleted"),
)


@people_app.command("ls")
@lists(ACCOUNTS)
def account_ls(context: typer.Context, view: View) -> None:
    """List all accounts."""
    api = client(context)
    view.print(api, api.items("/accounts"))


@people_app.command("show")
def account_show(context: typer.Context, name: Name, as_json: AsJson = False) -> None:
    """Show one account."""
    _print(client(context).get(f"/accounts/{name}"), as_json)


@people_app.command("suspend")
def account_suspend(
    context: typer.Context,
    name: Name,
    reason: Annotated[str, typer.Option(help="Reason; kept in the audit log.")] = "",
    yes: Yes = False,
) -> None:
    """Suspend an account: its tokens stop working, its machines and jobs end, its hosts take no new work."""
    if not yes:
        confirm(f"End all that {name} runs, and let nobody sign in to it?")
    client(context).request("POST", f"/accounts/{name}/suspend", body={"reason": reason})
    say(f"{name} is suspended. To undo this: windrow account resume {name}")


@people_app.command("resume")
def account_resume(context: typer.Context, name: Name) -> None:
    """Let a suspended account sign in again; its hosts stay drained until they are activated."""
    client(context).request("POST", f"/accounts/{name}/resume")
    say(f"{name} may sign in again. If its tokens have expired: windrow account link {name}")


@people_app.command("transfer")
def account_transfer(
    context: typer.Context,
    name: Name,
    organisation: Annotated[str, typer.Option("--to", help="Name or id of the organisation that gets it.")],
    reason: Annotated[str, typer.Option(help="Reason; kept in the audit log.")],
    yes: Yes = False,
) -> None:
    """Give a project with its money and hosts to another organisation; its members and tokens until now end."""
    if not yes:
        confirm(f"Take {name} from its members, and give it to {organisation}?")
    body = {"organisation": organisation, "reason": reason}
    client(context).request("POST", f"/accounts/{name}/transfer", body=body)
    say(f"{name} belongs to {organisation} now.")


@credit_app.command("add")
def credit_add(
    context: typer.Context,
    name: Name,
    amount: Annotated[str, typer.Argument(help="For example 50 or 12.50.")],
    as_json: AsJson = False,
) -> None:
    """Grant an account test credits."""
    item = client(context).request("POST", f"/accounts/{name}/credit", body={"amount": amount})
    if as_json:
        print_json(item)
    else:
        say(f"{item['name']} now has {_balance(item)}.")


@credit_app.command("settle")
def credit_settle(
    context: typer.Context,
    name: Name,
    reason: Annotated[str, typer.Option(help="Reason; kept in the audit log.")],
    to: Annotated[
        str | None, typer.Option(help="Project that gets it, of the same organisation; else written off.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Move what is left of an account, in which nothing goes on, to another project, or write it off."""
    item = client(context).request("POST", f"/accounts/{name}/settle", body={"to": to, "reason": reason})
    if as_json:
        print_json(item)
    else:
        say(f"{item['name']} now has {_balance(item)}.")


def _balance(item: dict[str, Any]) -> str:
    return f"{money_text(item['balance']['amount'])} {item['balance']['currency']}"


def _print(item: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(item)
        return
    facts(
        [
            ("Account", item["id"]),
            ("Name", item["name"]),
            ("Roles", ", ".join(item["roles"])),
            ("State", item["state"]),
            ("Balance", _balance(item)),
            ("Since", item["created_at"]),
        ]
    )


def _print_link(api: Client, made: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(made)
        return
    sys.stdout.write(made["link"] + "\n")
    account, until = made["account"], made["link_expires_at"]
    say(f"Give this link to {account['name']}: it works once, until {until}, and is not shown again.")
    say("Open the link in a browser, or run: windrow login 'LINK'")
    say_link_note(api)
