"""`windrow identity-provider`: OpenID Connect providers that people sign in by, for operators."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from windrow.cli.context import AsJson, Yes, client, confirm
from windrow.cli.output import facts, print_json, say
from windrow.cli.tables import Column, Table, View, lists, roles_text
from windrow.errors import InvalidInput

provider_app = typer.Typer(help="Identity providers that people sign in by (operators).", no_args_is_help=True)

Item = dict[str, Any]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Lower-case letters, digits and -")]
Texts = list[str] | None


@provider_app.command("add")
def provider_add(
    context: typer.Context,
    name: Name,
    issuer: Annotated[str | None, typer.Option(help="Its URL, as its discovery document names it.")] = None,
    client_id: Annotated[str | None, typer.Option(help="As the provider knows this market.")] = None,
    client_secret_file: Annotated[
        Path | None, typer.Option(help="File with the client's secret; - reads standard input.")
    ] = None,
    organisation: Annotated[str | None, typer.Option(help="The organisation that its users join.")] = None,
    creates_users: Annotated[
        bool | None, typer.Option("--creates-users/--no-creates-users", help="Make a user at the first sign-in.")
    ] = None,
    domain: Annotated[
        Texts, typer.Option(help="Only verified mail addresses there become users; repeatable; '' for any.")
    ] = None,
    group: Annotated[
        Texts,
        typer.Option(metavar="GROUP=ROLES", help="ml=lab:renter,viewer or admins=org_admin; repeatable; '' for none."),
    ] = None,
    group_claim: Annotated[str | None, typer.Option(help="The claim with the groups; default: groups.")] = None,
    scope: Annotated[Texts, typer.Option(help="Scopes to ask for; default: openid, profile, email.")] = None,
    private: Annotated[
        bool | None, typer.Option("--private/--not-private", help="It may lie on this machine or in its network.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Add an identity provider, or change the one of this name: what you leave out stays as it is."""
    given: Item = {
        "issuer": issuer,
        "client_id": client_id,
        "client_secret": None if client_secret_file is None else _read(client_secret_file),
        "organisation": organisation,
        "creates_users": creates_users,
        "domains": None if domain is None else [one for one in domain if one],
        "groups": None if group is None else _groups([one for one in group if one]),
        "group_claim": group_claim,
        "private": private,
        "scopes": scope or None,
    }
    api = client(context)
    before = next((one for one in api.items("/identity-providers") if one["name"] == name), None)
    if before is None and (issuer is None or client_id is None):
        raise InvalidInput(f"There is no provider {name} yet. Give a new one --issuer URL and --client-id ID")
    body = (_body(before) if before else {}) | {key: value for key, value in given.items() if value is not None}
    made = api.request("PUT", _path(name), body=body)
    if as_json:
        print_json(made)
        return
    say(f"{name} is {'changed' if before else 'added'}. Register this address at the provider: {made['redirect_uri']}")
    say(f"Then see whether it answers: windrow identity-provider test {name}")


PROVIDERS = Table(
    (
        Column("NAME", lambda p: p["name"]),
        Column("ISSUER", lambda p: p["issuer"], most=60),
        Column("ORGANISATION", lambda p: p["organisation"], 1),
        Column("CREATES USERS", lambda p: "yes" if p["creates_users"] else "no", 2),
        Column("DOMAINS", lambda p: ", ".join(p["domains"]), 3, 40),
        Column("GROUPS", lambda p: "; ".join(map(_group, p["groups"])), 2, 60, roles_text),
        Column("REDIRECT URI", lambda p: p["redirect_uri"], 4, 60),
    ),
    "No identity providers. Add one: windrow identity-provider add NAME --issuer URL --client-id ID",
    name=lambda p: p["name"],
)


@provider_app.command("ls")
@lists(PROVIDERS)
def provider_ls(context: typer.Context, view: View) -> None:
    """List the identity providers."""
    api = client(context)
    view.print(api, api.items("/identity-providers"))


@provider_app.command("test")
def provider_test(context: typer.Context, name: Name, as_json: AsJson = False) -> None:
    """Ask a provider for what it says of itself, and for its keys; say what is wrong."""
    found = client(context).request("POST", f"{_path(name)}/test")
    if as_json:
        print_json(found)
        return
    facts([(key.replace("_", " ").capitalize(), value) for key, value in found.items()])


@provider_app.command("preview")
def provider_preview(
    context: typer.Context,
    name: Name,
    groups: Annotated[list[str], typer.Argument(metavar="GROUP...", help="Groups that somebody is in.")],
    as_json: AsJson = False,
) -> None:
    """Show the roles that somebody in these groups would get."""
    found = client(context).request("POST", f"{_path(name)}/preview", body={"groups": groups})
    if as_json:
        print_json(found)
        return
    sys.stdout.write((_roles(found) or "none") + "\n")


@provider_app.command("rm")
def provider_rm(context: typer.Context, name: Name, yes: Yes = False) -> None:
    """Remove a provider. Its users stay with their roles, and sign in another way."""
    if not yes:
        confirm(f"Let nobody sign in by {name} any more?")
    client(context).request("DELETE", _path(name))
    say(f"{name} is removed.")


def _path(name: str) -> str:
    return f"/identity-providers/{quote(name, safe='')}"


def _read(file: Path) -> str:
    if str(file) == "-":
        return sys.stdin.readline().strip()
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}") from None


def _body(item: Item) -> Item:
    """A provider as the body that keeps it as it is."""
    same = ("issuer", "client_id", "organisation", "domains", "creates_users", "private", "scopes", "group_claim")
    groups = [
        {
            "group": one["group"],
            "role": one["role"],
            "projects": [{"project": project["id"], "roles": project["roles"]} for project in one["projects"]],
        }
        for one in item["groups"]
    ]
    return {**{key: item[key] for key in same}, "groups": groups}


def _groups(given: Sequence[str]) -> list[Item]:
    """Each group with its roles, in the order in which they were first named."""
    found: dict[str, Item] = {}
    for text in given:
        group, equals, roles = text.rpartition("=")
        if not equals or not group or not roles:
            raise InvalidInput(
                f"--group {text!r} names no roles. It looks like ml=lab:renter,viewer or admins=org_admin"
            )
        item = found.setdefault(group, {"group": group, "role": None, "projects": []})
        project, colon, names = roles.rpartition(":")
        if colon:
            item["projects"].append({"project": project, "roles": [one for one in names.split(",") if one]})
        else:
            item["role"] = roles
    return list(found.values())


def _group(item: Item) -> str:
    return f"{item['group']}={_roles(item)}"


def _roles(item: Item) -> str:
    projects = [f"{one['name']}:{','.join(one['roles'])}" for one in item["projects"]]
    return " ".join([*([item["role"]] if item["role"] else []), *projects])
