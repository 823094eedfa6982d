"""`windrow artefact`: list, upload, download and delete files that outlive what made them."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from windrow.cli import completing
from windrow.cli.clusters import cluster_id
from windrow.cli.context import AsJson, Yes, agreed, client
from windrow.cli.jobs import job_id
from windrow.cli.output import print_json, say, size_text
from windrow.cli.tables import Column, Table, View, id_column, lists, time_column
from windrow.client import Client
from windrow.errors import WindrowClientError

artefact_app = typer.Typer(
    help="Artefacts: files that stay after their machine or job has ended.", no_args_is_help=True
)

Owner = Annotated[
    str | None, typer.Option("--of", help="Owner: a machine's name or id, or KIND/ID; default: your account.")
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Path of the artefact, as `windrow artefact ls` shows it.")]


def owner_of(api: Client, text: str | None) -> tuple[str, str]:
    """Kind and id of whose artefacts are meant; a cluster may have ended."""
    if text is None:
        return "account", str(api.get("/me")["account"]["id"])
    kind, slash, name = text.rpartition("/")
    if kind == "job" or text.startswith("job_"):
        return "job", job_id(api, name)
    if kind == "cluster" or not slash:
        return "cluster", cluster_id(api, name, ended=True)
    return kind, name


ARTEFACTS = Table(
    (
        id_column(rank=3),
        Column("NAME", lambda a: a["name"]),
        Column("SIZE", lambda a: size_text(a["size_bytes"])),
        Column("OF", lambda a: f"{a['owner_kind']}/{a['owner_id']}", 1),
        time_column("CREATED", lambda a: a["created_at"], 2),
        time_column("KEPT UNTIL", lambda a: a["expires_at"] or "deleted"),
    ),
    "No artefacts. Try: windrow artefact put FILE",
    name=lambda a: a["name"],
    at=lambda a: a["created_at"],
)


@artefact_app.command("ls")
@lists(ARTEFACTS)
def artefact_ls(context: typer.Context, view: View, of: Owner = None) -> None:
    """List artefacts, the latest first: all of the account, or of one owner."""
    api = client(context)
    kind, owner = (None, None) if of is None else owner_of(api, of)
    view.print(api, api.artefacts(kind, owner))


@artefact_app.command("put")
def artefact_put(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="File to upload.", exists=True, dir_okay=False)],
    name: Annotated[str | None, typer.Argument(help="Name of the artefact; default: the file's name.")] = None,
    of: Owner = None,
    keep_days: Annotated[int | None, typer.Option(min=0, help="Days to keep it; 0: until you delete it.")] = None,
    as_json: AsJson = False,
) -> None:
    """Upload a file; replaces an artefact of the same name."""
    api = client(context)
    kind, owner = owner_of(api, of)
    with file.open("rb") as content:
        made = api.put_artefact(kind, owner, name or file.name, content, keep_days=keep_days)
    if as_json:
        print_json(made)
    else:
        say(f"{made['name']}: {size_text(made['size_bytes'])}, kept until {made['expires_at'] or 'it is deleted'}.")


@artefact_app.command("get")
def artefact_get(
    context: typer.Context,
    name: Name,
    into: Annotated[Path | None, typer.Argument(help="File to write; - is standard output.")] = None,
    of: Owner = None,
    as_json: AsJson = False,
) -> None:
    """Download an artefact; an interrupted download leaves no file."""
    api = client(context)
    kind, owner = owner_of(api, of)
    if into is not None and str(into) == "-":
        api.get_artefact(kind, owner, name, sys.stdout.buffer)
        return
    target = into or Path(name.rsplit("/", 1)[-1])
    if target.is_dir():
        target = target / name.rsplit("/", 1)[-1]
    coming = target.with_name(f".{target.name}.part")
    try:
        with coming.open("wb") as file:
            size = api.get_artefact(kind, owner, name, file)
        coming.replace(target)
    except OSError as error:
        raise WindrowClientError(f"{target} cannot be written: {error.strerror}.") from error
    finally:
        coming.unlink(missing_ok=True)
    if as_json:
        print_json({"name": name, "path": str(target), "size_bytes": size})
    else:
        say(f"{size_text(size)} written to {target}.")


@artefact_app.command("rm")
def artefact_rm(
    context: typer.Context, name: Name, of: Owner = None, yes: Yes = False, as_json: AsJson = False
) -> None:
    """Delete an artefact."""
    api = client(context)
    kind, owner = owner_of(api, of)
    agreed(yes, f"Delete {name}?")
    api.delete_artefact(kind, owner, name)
    print_json({"deleted": name}) if as_json else say(f"{name} is deleted.")


# --- checkpoints ------------------------------------------------------------------------------------------------------

checkpoint_app = typer.Typer(help="Checkpoints of running work.", no_args_is_help=True)
Cluster = Annotated[
    str,
    typer.Argument(
        metavar="NAME|ID", help="Name or id of a machine, running or ended.", autocompletion=completing.clusters
    ),
]


CHECKPOINTS = Table(
    (
        Column("STEP", lambda c: c["step"]),
        Column("SIZE", lambda c: size_text(c["size_bytes"])),
        Column("FILES", lambda c: c["files"]),
        time_column("SAVED", lambda c: c["saved_at"]),
    ),
    "No checkpoints. The work renames whole ones to step-NUMBER in CKPT_DIR; then: windrow checkpoint save",
    at=lambda c: c["saved_at"],
)


@checkpoint_app.command("ls")
@lists(CHECKPOINTS)
def checkpoint_ls(context: typer.Context, view: View, cluster: Cluster) -> None:
    """List checkpoints, newest first."""
    api = client(context)
    view.print(api, api.items(f"/clusters/{cluster_id(api, cluster, ended=True, shows=True)}/checkpoints"))


@checkpoint_app.command("save")
def checkpoint_save(context: typer.Context, cluster: Cluster, as_json: AsJson = False) -> None:
    """Save the newest complete checkpoint of a running machine."""
    api = client(context)
    answer = api.save_checkpoint(cluster_id(api, cluster))
    if as_json:
        print_json(answer)
    elif answer["checkpoint"] is None:
        say("There is no newer complete checkpoint.")
    else:
        say(f"Step {answer['checkpoint']['step']} is saved, {size_text(answer['checkpoint']['size_bytes'])}.")


@checkpoint_app.command("restore")
def checkpoint_restore(
    context: typer.Context,
    cluster: Cluster,
    source: Annotated[str, typer.Option("--from", help="Machine that the checkpoint comes from, running or ended.")],
    as_json: AsJson = False,
) -> None:
    """Copy the newest complete checkpoint of another machine into this machine's CKPT_DIR."""
    api = client(context)
    answer = api.restore_checkpoint(cluster_id(api, cluster), cluster_id(api, source, ended=True))
    if as_json:
        print_json(answer)
        return
    for one in answer["passed"]:
        say(f"Step {one['step']} was skipped: {one['reason']}")
    say(
        "There is no complete checkpoint to restore."
        if answer["step"] is None
        else f"Step {answer['step']} is in place."
    )
