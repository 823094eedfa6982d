"""`windrow template`: requests for clusters that are kept by name, and creating from one."""

from typing import Annotated

import typer

from windrow.cli import completing
from windrow.cli.clusters import cluster_named
from windrow.cli.context import AsJson, Yes, agreed, client
from windrow.cli.kept import changed, template_named
from windrow.cli.output import facts, print_json, say
from windrow.cli.tables import Column, Table, View, lists, time_column

template_app = typer.Typer(help="Templates: saved machine requests.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the template.", autocompletion=completing.templates)]


@template_app.command("save")
def template_save(
    context: typer.Context,
    name: Name,
    of: Annotated[
        str,
        typer.Option(
            "--of",
            metavar="CLUSTER",
            help="Machine whose request is saved, by name or id; or the id of a share, of a template shared with you.",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Save a machine's request as a template; replaces one of the same name."""
    api = client(context)
    if of.startswith("share_"):
        request = changed(template_named(api, of)["request"], {})
        request["env"] = {name: value or "" for name, value in request.get("env", {}).items()}
    else:
        request = cluster_named(api, of, ended=True)["request"]
    kept = api.request("PUT", f"/templates/{name}", body=request)
    if as_json:
        print_json(kept)
    else:
        say(f"{name} is saved. Use it: windrow cluster create --template {name}")


TEMPLATES = Table(
    (
        Column("NAME", lambda t: t["name"]),
        Column("KIND", lambda t: t["request"]["kind"]),
        Column("GPUS", lambda t: t["request"]["gpus"]),
        Column("HOSTS", lambda t: t["request"]["hosts"], 1),
        Column("IMAGE", lambda t: t["request"]["image"], 2, 40),
        time_column("SAVED", lambda t: t["saved_at"], 3),
    ),
    "No templates. Keep what a machine was asked for: windrow template save NAME --of CLUSTER",
    name=lambda t: t["name"],
)


@template_app.command("ls")
@lists(TEMPLATES)
def template_ls(context: typer.Context, view: View) -> None:
    """List templates."""
    api = client(context)
    view.print(api, api.items("/templates"))


@template_app.command("show")
def template_show(context: typer.Context, name: Name, as_json: AsJson = False) -> None:
    """Show the request in a template."""
    one = template_named(client(context), name)
    if as_json:
        print_json(one)
        return
    asked = [(key, value) for key, value in one["request"].items() if value not in (None, [], {}, False, "")]
    facts([("Template", one["name"]), ("Saved", one["saved_at"]), *((key, str(value)) for key, value in asked)])


@template_app.command("delete")
def template_delete(context: typer.Context, name: Name, yes: Yes = False) -> None:
    """Delete a template; machines made from it stay."""
    agreed(yes, f"Delete the template {name}?")
    client(context).request("DELETE", f"/templates/{name}")
    say(f"{name} is deleted.")
