"""`windrow user`: the end of your own user, and the users of the market, for operators."""

from pathlib import Path
from typing import Annotated, Any

import typer

from windrow.cli.account import asked_password
from windrow.cli.context import Yes, client, confirm
from windrow.cli.output import say
from windrow.cli.resolving import USERS, found
from windrow.cli.tables import Column, Table, View, id_column, lists, roles_text, time_column
from windrow.config import forget, kept
from windrow.errors import InvalidInput

user_app = typer.Typer(help="Users: delete your own; list and delete others (operators).", no_args_is_help=True)


def _organisations(user: dict[str, Any]) -> str:
    return "; ".join(f"{one['name']}: {one['role'] or 'member'}" for one in user["organisations"])


USERS_TABLE = Table(
    (
        id_column(rank=1),
        Column("NAME", lambda u: u["name"], most=28),
        Column("ADDRESS", lambda u: u["address"], 1, 40),
        Column("ORGANISATIONS", _organisations, most=60, show=roles_text),
        Column("DISABLED", lambda u: "yes" if u["is_disabled"] else "no", 2),
        time_column("SINCE", lambda u: u["created_at"], 3),
    ),
    "No users.",
    name=lambda u: u["name"],
)


@user_app.command("ls")
@lists(USERS_TABLE)
def user_ls(context: typer.Context, view: View) -> None:
    """List the users of the market (operators)."""
    api = client(context)
    view.print(api, api.items("/users"))


@user_app.command("delete")
def user_delete(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Your own name; for operators any name, address or id.")],
    reason: Annotated[str, typer.Option(help="Reason to delete somebody else; kept in the audit log.")] = "",
    password_file: Annotated[Path | None, typer.Option(help="File with your password; else you are asked.")] = None,
    yes: Yes = False,
) -> None:
    """Delete a user for good: name, address, password and sessions are erased, tokens stop. What projects own stays."""
    api = client(context)
    me = api.get("/me").get("user")
    is_own = me is not None and name in (me["name"], me["id"])
    if not is_own and not reason:
        raise InvalidInput(f"You are not {name}. To delete somebody else give a reason: --reason WHY")
    if not yes:
        confirm(f"Delete the user {name} for good?")
    if not is_own:
        api.request("POST", f"/users/{found(api, USERS, name)}/delete", body={"reason": reason})
        say(f"The user {name} is deleted.")
        return
    password = asked_password(password_file) if api.get("/user")["has_password"] else None
    api.request("POST", "/user/delete", body={"name": name, "password": password})
    login = kept()
    if login is not None and login.token == api.config.token:
        forget()
    say("Your user is deleted.")


@user_app.command("make-owner")
def user_make_owner(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name, mail address or id of a member.")],
    organisation: Annotated[str, typer.Option(help="Name or id of the organisation.")],
    reason: Annotated[str, typer.Option(help="Reason; all members read it, and it is kept in the audit log.")],
) -> None:
    """Make a member an owner of an organisation whose owners are gone (operators)."""
    api = client(context)
    body = {"organisation": organisation, "reason": reason}
    api.request("POST", f"/users/{found(api, USERS, name)}/make-owner", body=body)
    say(f"{name} is an owner of {organisation}. Its members are told by mail, where this market sends some.")
