"""`windrow volume`: named folders that outlive clusters and jobs, and go wherever the next one runs."""

from typing import Annotated, Any

import typer

from windrow.cli import completing
from windrow.cli.clusters import cluster_id
from windrow.cli.context import AsJson, Yes, agreed, client
from windrow.cli.output import facts, print_json, say, size_text
from windrow.cli.request import parse_size
from windrow.cli.tables import Column, Table, View, lists, time_column
from windrow.words import counted

volume_app = typer.Typer(help="Volumes: folders that follow your work from host to host.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the volume.", autocompletion=completing.volumes)]


def _users(volume: dict[str, Any]) -> str:
    return ", ".join(f"{one['cluster_name']}{'' if one['writes'] else ' (ro)'}" for one in volume["used_by"])


@volume_app.command("create")
def volume_create(
    context: typer.Context,
    name: Name,
    max_size: Annotated[str | None, typer.Option("--max-size", help="Size limit, for example 20GB.")] = None,
    as_json: AsJson = False,
) -> None:
    """Create an empty volume."""
    made = client(context).create_volume(name, parse_size(max_size) if max_size else None)
    if as_json:
        print_json(made)
    else:
        say(f"{name} is created. Use it: windrow cluster create --volume {name}:/data")


VOLUMES = Table(
    (
        Column("NAME", lambda v: v["name"]),
        Column("SIZE", lambda v: size_text(v["size_bytes"])),
        Column("USED BY", _users, 1),
        time_column("SAVED", lambda v: v["saved_at"], 2),
        Column("FILES", lambda v: v["files"], 3),
        Column("PROBLEM", lambda v: v["problem"], most=24),
    ),
    "No volumes. Make one: windrow volume create NAME",
    name=lambda v: v["name"],
)


@volume_app.command("ls")
@lists(VOLUMES)
def volume_ls(context: typer.Context, view: View) -> None:
    """List volumes."""
    api = client(context)
    view.print(api, api.items("/volumes"))


@volume_app.command("show")
def volume_show(context: typer.Context, name: Name, as_json: AsJson = False) -> None:
    """Show a volume: its size, its last save and who uses it."""
    one = client(context).volume(name)
    if as_json:
        print_json(one)
        return
    facts(
        [
            ("Volume", one["name"]),
            ("Version", str(one["version"] or "none yet")),
            ("Holds", f"{size_text(one['size_bytes'])} in {counted(one['files'], 'file')}"),
            ("May hold", size_text(one["max_bytes"])),
            ("Saved", one["saved_at"] or "never"),
            ("Used by", _users(one) or "nobody"),
            *([("Problem", one["problem"])] if one["problem"] else []),
        ]
    )


@volume_app.command("save")
def volume_save(
    context: typer.Context,
    cluster: Annotated[str, typer.Argument(metavar="CLUSTER", help="Machine that writes the volumes, by name or id.")],
    as_json: AsJson = False,
) -> None:
    """Save the changes in a machine's volumes now."""
    api = client(context)
    answer = api.save_volumes(cluster_id(api, cluster))
    if as_json:
        print_json(answer)
        return
    for one in answer["volumes"]:
        say(f"{one['name']}: version {one['version']}, {size_text(one['size_bytes'])}, saved at {one['saved_at']}.")


@volume_app.command("rm")
def volume_rm(context: typer.Context, name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a volume and all that is in it."""
    agreed(yes, f"Delete the volume {name} and all that is in it?")
    client(context).delete_volume(name)
    print_json({"deleted": name}) if as_json else say(f"{name} is deleted.")
