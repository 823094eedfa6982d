"""`windrow queue`: the work that waits for a place, in the order in which it is to start; and why work runs where it
runs, or still waits."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from windrow.cli import completing, resolving
from windrow.cli.context import AsJson, client
from windrow.cli.output import facts, print_json, print_whole, say
from windrow.cli.tables import Column, Table, View, id_column, lists, time_column
from windrow.client import Client
from windrow.errors import NotFound
from windrow.words import counted, state_name

queue_app = typer.Typer(help="The queue of jobs and machines that wait for a place.", no_args_is_help=True)

Which = Annotated[
    str, typer.Argument(metavar="NAME|ID", help="Name or id of the job or machine.", autocompletion=completing.work)
]
NotThere = Annotated[
    str | None, typer.Option("--host", help="Say why it does not run on this host.", autocompletion=completing.hosts)
]
Weights = Annotated[
    str | None,
    typer.Option("--weights", metavar="TERM=NUMBER,..", help="Say what other weights would have chosen: cost=8."),
]

LEVELS = ("organisation", "project")

QUEUE = Table(
    (
        Column("PLACE", lambda one: one["place"]),
        id_column(),
        Column("NAME", lambda one: one["name"], most=24),
        Column("PROJECT", lambda one: one["project"], 5, 16),
        Column("ASKS FOR", lambda one: one["asks"], 3, 24),
        time_column("SINCE", lambda one: one["submitted_at"], 4),
        Column("STARTS", lambda one: (one["estimate"] or {}).get("words"), most=24),
        Column("WHY", lambda one: one["why"], 2, 40),
    ),
    "Nothing waits in the queue.",
    name=lambda one: one["name"].partition("[")[0],
    states=lambda one: (one["state"],),
    state_words=("held", "no_share", "dependency_never_satisfied", "dependency", "begin", "throttled", "ready"),
    owner=lambda one: one["account_id"],
)


@queue_app.command("ls")
@lists(QUEUE)
def queue_ls(context: typer.Context, view: View) -> None:
    """List what waits, the next to start first; operators see all projects."""
    api = client(context)
    view.print(api, api.items("/queue"))
    if view.form in ("table", "wide"):
        say(_totals(api.get("/queue", limit=1)))


def _totals(queue: dict[str, Any]) -> str:
    said = f"{queue['waiting']} wait, {queue['running']} run."
    scored = queue["estimates_scored"]
    return f"{said} {queue['estimates_held']} of {counted(scored, 'start')} came when expected." if scored else said


@queue_app.command("show")
def queue_show(context: typer.Context, work: Which, as_json: AsJson = False) -> None:
    """Show the place of a job or machine in the queue, and the numbers that decide on it."""
    api = client(context)
    kind, whole = resolving.work(api, work, shows=True)
    item = api.get(f"{kind.path}/{whole}")
    queued = item["queue"]
    if queued is None:
        state = state_name(item.get("state") or item["phase"])
        label = resolving.job_label(item) if kind is resolving.JOBS else item["name"]
        raise NotFound(f"{label} does not wait in the queue: it is {state}. Why and where: windrow explain {label}")
    if as_json:
        print_json(queued)
        return
    factors = queued["factors"]
    usage = list(zip(factors["usage"], factors["is_above"], strict=True))
    facts(
        [
            (kind.noun.title(), f"{queued['name']} ({resolving.short(whole)})"),
            *queue_rows(queued),
            ("Project", queued["project"]),
            ("Asks for", queued["asks"]),
            ("Class", queued["priority_class"]),
            ("Submitted", queued["submitted_at"]),
            *([("Held by", queued["held_by"])] if queued["held_by"] else []),
            *[
                (f"Use of {level}", f"{used:.4f}{'' if is_above else ', below its guarantee, which comes first'}")
                for level, (used, is_above) in zip(LEVELS[-len(usage) :], usage, strict=True)
            ],
            ("Points", f"{factors['points']:.2f} = priority {factors['priority']} + age {factors['age']:.2f}"),
            *([("Top", "first of its project")] if factors["is_top"] else []),
        ]
    )


def queue_rows(queued: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Returns the place of what waits, when it starts, and why it waits."""
    if queued is not None:
        yield "Queue", queued["summary"]
        if queued["why"] != queued["summary"]:
            yield "", queued["why"]


def explain_work(api: Client, whole: str, as_json: bool, host: str | None = None, weights: str | None = None) -> None:
    """Print why a job or machine runs where it runs, why not elsewhere, why it still waits, and what would help."""
    told = api.get(f"/explain/{whole}", host=resolving.host(api, host), weights=weights)
    if as_json:
        print_json(told)
        return
    print_whole(f"{told['name']} ({told['kind']} {resolving.short(told['id'])}): {state_name(told['state'])}")
    for heading, lines in (
        ("Why here", told["here"]),
        (f"Why not on {host}", [told["not_there"]] if told["not_there"] else []),
        (f"With {weights}", [told["otherwise"]] if told["otherwise"] else []),
        ("Why not yet", told["not_yet"]),
        ("What would change it", told["changes"]),
    ):
        if lines:
            print_whole(f"{heading}:")
        for line in lines:
            print_whole(f"  {line}")
    if not (told["here"] or told["queue"]):
        print_whole("No reasons are kept: it has no place, or had its last one long ago.")
