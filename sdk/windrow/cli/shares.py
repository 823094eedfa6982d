"""`windrow share`: what others than the own project may see, use or manage."""

from contextlib import suppress
from typing import Annotated, Any

import typer

from windrow.cli import resolving
from windrow.cli.context import AsJson, client
from windrow.cli.output import print_json, say
from windrow.cli.request import parse_span
from windrow.cli.tables import Column, Table, View, id_column, lists, time_column
from windrow.client import Client
from windrow.errors import InvalidInput, NotFound

share_app = typer.Typer(help="Machines, jobs and templates shared with other people.", no_args_is_help=True)

Item = dict[str, Any]
Shared = Annotated[
    str, typer.Argument(metavar="OBJECT", help="Machine or job, by name or id; of a template: template:NAME.")
]
RECEIVERS = {"project": "project", "org": "organisation"}
"""What stands before the colon of `--with`, and its kind in the API."""


@share_app.command("add")
def share_add(
    context: typer.Context,
    what: Shared,
    receiver: Annotated[
        str,
        typer.Option(
            "--with",
            metavar="USER|project:NAME|org:NAME",
            help="Name, mail address or id of a member, or the id of any user; or a project or organisation.",
        ),
    ],
    level: Annotated[
        str,
        typer.Option(
            help="see: its page. use: also commands, tunnels, log and files. manage: also stop, start, resize, delete."
        ),
    ] = "use",
    lasts: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="8h, 3d and the like; default: until you withdraw it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Share a machine, job or template. Your project goes on owning it and paying for it."""
    api = client(context)
    kind, object_id = _object(api, what)
    prefix, colon, name = receiver.partition(":")
    body = {
        "object_kind": kind,
        "object_id": object_id,
        "receiver_kind": RECEIVERS.get(prefix, "user") if colon else "user",
        "receiver": name if colon and prefix in RECEIVERS else receiver,
        "level": level,
        "expires_in_s": None if lasts is None else max(1, round(parse_span(lasts))),
    }
    made = api.request("POST", "/shares", body=body)
    if as_json:
        print_json(made)
        return
    until = f" until {made['expires_at']}" if made["expires_at"] else ""
    say(f"{made['receiver']} may {made['level']} {_named(made)}{until}. Withdraw it: windrow share rm {made['id']}")


SHARES = Table(
    (
        id_column(),
        Column("OBJECT", lambda s: _named(s), most=40),
        Column("PROJECT", lambda s: s["project"], 1, 28),
        Column("WITH", lambda s: _receiver(s), most=40),
        Column("LEVEL", lambda s: s["level"] if s["is_active"] else f"{s['level']} (not in force)"),
        time_column("EXPIRES", lambda s: s["expires_at"]),
        Column("OBJECT ID", lambda s: s["object_id"], 2, 40),
    ),
    "Nothing is shared. Share a machine: windrow share add CLUSTER --with USER",
    name=lambda s: s["object_name"],
)


@share_app.command("ls")
@lists(SHARES)
def share_ls(
    context: typer.Context,
    view: View,
    of: Annotated[
        str | None,
        typer.Option("--of", metavar="OBJECT", help="Those of one machine or job, by name or id, or of template:NAME."),
    ] = None,
    received: Annotated[bool, typer.Option("--received", help="What others share with you.")] = False,
) -> None:
    """List what your project shares, or with `--received` what is shared with you."""
    api = client(context)
    object_id = None if of is None else _object(api, of)[1]
    view.print(api, api.items("/shares/received" if received else "/shares", object_id=object_id))


@share_app.command("rm")
def share_rm(
    context: typer.Context,
    share: Annotated[str, typer.Argument(metavar="SHARE", help="Id of the share, or its start.")],
) -> None:
    """Withdraw a share: commands, tunnels and streams by it end within 5 seconds."""
    api = client(context)
    api.request("DELETE", f"/shares/{resolving.found(api, resolving.SHARES, share)}")
    say(f"The share {share} is withdrawn.")


def _named(share: Item) -> str:
    return f"{share['object_kind']} {share['object_name']}"


def _receiver(share: Item) -> str:
    return share["receiver"] if share["receiver_kind"] == "user" else f"{share['receiver_kind']} {share['receiver']}"


def _object(api: Client, text: str) -> tuple[str, str]:
    """The kind and id of what this text means. Raises NotFound, InvalidInput where it may mean several, ApiProblem."""
    if text.startswith("template:"):
        return "template", text.removeprefix("template:")
    meant = []
    for kind in (resolving.CLUSTERS, resolving.JOBS):
        if text.startswith(kind.prefix):
            return kind.noun, resolving.found(api, kind, text)
        with suppress(NotFound):
            meant.append((kind.noun, resolving.found(api, kind, text)))
    if len(meant) > 1:
        raise InvalidInput(f"{text!r} is a cluster and a job: {', '.join(one[1] for one in meant)}. Write an id.")
    if not meant:
        raise NotFound(f"There is no machine and no job {text!r}. For a template write template:NAME.")
    return meant[0]
