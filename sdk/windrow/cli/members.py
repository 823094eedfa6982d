"""`windrow invite`, `member`, `invitation`, `project`: the people of an organisation, and where they work."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer

from windrow.cli.context import AsJson, Yes, client, confirm, say_link_note
from windrow.cli.output import print_json, say
from windrow.cli.resolving import INVITATIONS, MEMBERS, found
from windrow.cli.tables import Column, Table, View, id_column, lists, roles_text, time_column
from windrow.client import Client
from windrow.config import kept, save
from windrow.errors import InvalidInput

member_app = typer.Typer(help="Members of your organisation and their roles.", no_args_is_help=True)
invitation_app = typer.Typer(help="Invitations that nobody has accepted yet.", no_args_is_help=True)
project_app = typer.Typer(help="Projects: what owns, rents and pays.", no_args_is_help=True)

Item = dict[str, Any]
Grants = Annotated[
    list[str] | None,
    typer.Option(
        "--project", metavar="NAME:ROLE,ROLE", help="Roles in a project: admin, renter, viewer, provider; repeatable."
    ),
]
OrganisationRole = Annotated[
    str | None,
    typer.Option("--role", help="Role in the organisation: org_owner, org_admin, org_billing or org_auditor."),
]
Member = Annotated[str, typer.Argument(metavar="MEMBER", help="Name, mail address or id of a member.")]


def invite(
    context: typer.Context,
    address: Annotated[str | None, typer.Option(help="Who may accept it; default: whoever has the link.")] = None,
    role: OrganisationRole = None,
    project: Grants = None,
    as_json: AsJson = False,
) -> None:
    """Invite somebody into your organisation and print the link, shown only now, valid once and for a week."""
    body = {"address": address, "role": role, "projects": _grants(project)}
    api = client(context)
    made = api.request("POST", "/invitations", body=body)
    _print_link(api, made, "They open the link in a browser, or run: windrow login 'LINK'", as_json)


def _grants(given: Sequence[str] | None) -> list[Item]:
    read = []
    for text in given or ():
        name, colon, roles = text.rpartition(":")
        if not colon or not name:
            raise InvalidInput(f"--project {text!r} names no roles. It looks like lab:renter,viewer")
        read.append({"project": name, "roles": [one for one in roles.split(",") if one]})
    return read


def _roles(item: Item) -> str:
    return "; ".join(f"{one['name']}: {', '.join(one['roles'])}" for one in item["projects"])


MEMBERS_TABLE = Table(
    (
        id_column(rank=2),
        Column("NAME", lambda m: m["name"], most=28),
        Column("ADDRESS", lambda m: m["address"], 1, 40),
        Column("ORGANISATION", lambda m: m["role"] or "member", show=roles_text),
        Column("PROJECTS", _roles, most=60, show=roles_text),
        Column("SECOND FACTOR", lambda m: "yes" if m["has_second_factor"] else "no", 3),
    ),
    "No members. Invite somebody: windrow invite --project default:renter",
    name=lambda m: m["name"],
)


@member_app.command("ls")
@lists(MEMBERS_TABLE)
def member_ls(context: typer.Context, view: View) -> None:
    """List the members of your organisation."""
    api = client(context)
    view.print(api, api.items("/members"))


@member_app.command("set")
def member_set(
    context: typer.Context,
    member: Member,
    role: Annotated[
        str | None, typer.Option("--role", help="org_owner, org_admin, org_billing, org_auditor, or none.")
    ] = None,
    project: Grants = None,
    as_json: AsJson = False,
) -> None:
    """Change a member's roles; they hold at once. `--project NAME:` without roles takes the member out of it."""
    api = client(context)
    body = {"role": role, "projects": _grants(project)}
    changed = api.request("PUT", f"/members/{found(api, MEMBERS, member)}", body=body)
    if as_json:
        print_json(changed)
        return
    say(f"{changed['name']} is {changed['role'] or 'member'}. {_roles(changed)}".rstrip())


@member_app.command("password-link")
def member_password_link(context: typer.Context, member: Member, as_json: AsJson = False) -> None:
    """Print a link by which a member who cannot sign in sets a new password: valid once, for half an hour."""
    api = client(context)
    made = api.request("POST", f"/members/{found(api, MEMBERS, member)}/password-link")
    _print_link(api, made, f"It is valid until {made['link_expires_at']} and not shown again.", as_json)


@member_app.command("rm")
def member_rm(context: typer.Context, member: Member, yes: Yes = False) -> None:
    """Remove a member: tokens and sessions in the organisation's projects stop at once. What runs goes on."""
    if not yes:
        confirm(f"Remove {member} from the organisation?")
    api = client(context)
    api.request("DELETE", f"/members/{found(api, MEMBERS, member)}")
    say(f"{member} is removed.")


@member_app.command("leave")
def member_leave(
    context: typer.Context,
    organisation: Annotated[
        str | None, typer.Argument(metavar="ORG", help="Name or id; default: that of your present project.")
    ] = None,
    yes: Yes = False,
) -> None:
    """Leave an organisation: your tokens and sessions in its projects stop at once. What runs goes on."""
    api = client(context)
    wanted = organisation or api.get("/organisation")["id"]
    if not yes:
        confirm(f"Leave the organisation {organisation or api.get('/organisation')['name']}?")
    api.request("DELETE", f"/user/organisations/{wanted}")
    say("You have left the organisation.")


INVITATIONS_TABLE = Table(
    (
        id_column(),
        Column("FOR", lambda i: i["address"] or "whoever has the link", most=40),
        Column("ORGANISATION", lambda i: i["role"] or "member", 1, show=roles_text),
        Column("PROJECTS", _roles, most=60, show=roles_text),
        time_column("EXPIRES", lambda i: i["expires_at"]),
    ),
    "No open invitations. Invite somebody: windrow invite --project default:renter",
    name=lambda i: i["address"],
)


@invitation_app.command("ls")
@lists(INVITATIONS_TABLE)
def invitation_ls(context: typer.Context, view: View) -> None:
    """List invitations that can still be accepted."""
    api = client(context)
    view.print(api, api.items("/invitations"))


@invitation_app.command("link")
def invitation_link(
    context: typer.Context,
    invitation: Annotated[str, typer.Argument(metavar="INVITATION", help="Its mail address or id.")],
    as_json: AsJson = False,
) -> None:
    """Print a new link for an invitation, valid for another week; the one before stops working."""
    api = client(context)
    made = api.request("POST", f"/invitations/{found(api, INVITATIONS, invitation)}/link")
    _print_link(api, made, f"It is valid until {made['expires_at']} and not shown again.", as_json)


@invitation_app.command("rm")
def invitation_rm(
    context: typer.Context,
    invitation: Annotated[str, typer.Argument(metavar="INVITATION", help="Its mail address or id.")],
) -> None:
    """Withdraw an invitation."""
    api = client(context)
    api.request("DELETE", f"/invitations/{found(api, INVITATIONS, invitation)}")
    say(f"The invitation {invitation} is withdrawn.")


PROJECTS_TABLE = Table(
    (
        id_column(rank=1),
        Column("NAME", lambda p: p["name"]),
        Column("YOUR ROLES", lambda p: ", ".join(p.get("roles") or ()), show=roles_text),
        time_column("KEPT UNTIL", lambda p: p.get("expires_at"), 2),
    ),
    "No projects.",
    name=lambda p: p["name"],
)


@project_app.command("ls")
@lists(PROJECTS_TABLE)
def project_ls(
    context: typer.Context,
    view: View,
    deleted: Annotated[bool, typer.Option("--deleted", help="Deleted ones that can be restored.")] = False,
) -> None:
    """List the projects of your organisation."""
    api = client(context)
    view.print(api, api.items("/projects/deleted" if deleted else "/projects"))


@project_app.command("add")
def project_add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Lower-case letters, digits and .@_-")],
    as_json: AsJson = False,
) -> None:
    """Add a project to your organisation; it begins without money."""
    made = client(context).request("POST", "/projects", body={"name": name})
    if as_json:
        print_json(made)
        return
    say(f"The project {name} is added. Work in it: windrow project use {name}")


@project_app.command("use")
def project_use(
    context: typer.Context, name: Annotated[str, typer.Argument(metavar="PROJECT", help="Name or id.")]
) -> None:
    """Let this user's commands act in another project from now on."""
    api, config = client(context), kept()
    if config is None or config.token != api.config.token:
        raise InvalidInput(
            f"This command is signed in by {api.config.source}; only a login that is kept can change its project. "
            "Sign in, in a folder without a market of its own: windrow login URL --address ADDRESS"
        )
    made = api.request("POST", f"/projects/{name}/token", body={"name": f"windrow project use {name}"[:128]})
    token = made["token"]
    save(replace(config, token=token["token"], token_id=token["id"], expires_at=token["expires_at"]))
    say(f"Commands act in the project {made['project']['name']} ({', '.join(made['project']['roles'])}) now.")


Project = Annotated[str, typer.Argument(metavar="PROJECT", help="Name or id.")]


@project_app.command("delete")
def project_delete(context: typer.Context, name: Project, yes: Yes = False) -> None:
    """Delete a project in which nothing goes on: its tokens stop, and nobody acts in it. It is kept for 30 days."""
    if not yes:
        confirm(f"Delete the project {name}?")
    client(context).request("DELETE", f"/projects/{name}")
    say(f"The project {name} is deleted. Within 30 days this restores it: windrow project restore {name}")


@project_app.command("restore")
def project_restore(context: typer.Context, name: Project) -> None:
    """Restore a deleted project. Its members act in it again; its tokens and shares stay ended."""
    client(context).request("POST", f"/projects/{name}/restore")
    say(f"The project {name} is restored.")


TRANSFERS_TABLE = Table(
    (
        Column("PROJECT", lambda t: t["name"]),
        Column("OF", lambda t: t["source"], most=28),
        Column("OFFERED TO", lambda t: t["target"], most=28),
        time_column("EXPIRES", lambda t: t["expires_at"], 1),
    ),
    "No project is offered. Offer one: windrow project offer PROJECT --to ORG",
    name=lambda t: t["name"],
)


@project_app.command("offer")
def project_offer(
    context: typer.Context,
    name: Project,
    organisation: Annotated[str, typer.Option("--to", metavar="ORG", help="Name or id of the organisation.")],
) -> None:
    """Offer a project with its money, hosts and all else to another organisation, for a week."""
    client(context).request("POST", f"/projects/{name}/transfer", body={"organisation": organisation})
    say(f"{name} is offered to {organisation}. An owner there accepts it: windrow project accept {name}")


@project_app.command("offers")
@lists(TRANSFERS_TABLE)
def project_offers(context: typer.Context, view: View) -> None:
    """List projects that your organisation offers to others, or that others offer to it."""
    api = client(context)
    view.print(api, api.items("/project-transfers"))


@project_app.command("accept")
def project_accept(context: typer.Context, name: Project) -> None:
    """Take a project that is offered to your organisation; its members and tokens until now end."""
    made = client(context).request("POST", f"/projects/{name}/transfer/accept")
    say(f"{made['name']} belongs to your organisation now. Work in it: windrow project use {made['name']}")


@project_app.command("withdraw")
def project_withdraw(context: typer.Context, name: Project) -> None:
    """Withdraw the offer of a project, or refuse one."""
    client(context).request("DELETE", f"/projects/{name}/transfer")
    say(f"The offer of {name} is withdrawn.")


def _print_link(api: Client, made: Item, hint: str, as_json: bool) -> None:
    if as_json:
        print_json(made)
        return
    if made["link"] is None:
        say(f"A mail with the link is on its way to {made.get('address') or 'its address'}.")
        return
    sys.stdout.write(made["link"] + "\n")
    say("Give this link to whom it is for: it works once and is not shown again.")
    say(hint)
    say_link_note(api)
