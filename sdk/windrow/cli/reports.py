"""`windrow report`: sums of money, hours and incidents by two dimensions, their rows, statements, schedules."""

import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from windrow.cli.context import AsJson, client
from windrow.cli.flags import options
from windrow.cli.output import facts, out, print_json, say
from windrow.cli.tables import Column, Table, View, id_column, lists, time_column
from windrow.cli.top_text import FULL
from windrow.errors import InvalidInput
from windrow.fields import Field
from windrow.words import money_text

report_app = typer.Typer(
    help="Sums of cost, earnings, GPU hours, occupancy and incidents.", invoke_without_command=True
)
schedule_app = typer.Typer(help="Reports that are sent to you by mail.", no_args_is_help=True)
report_app.add_typer(schedule_app, name="schedule")

Item = dict[str, Any]
DIMENSIONS: Final = ("organisation", "project", "provider", "host", "tier", "model", "region", "kind", "day")
API_NAMES: Final = {"first": "from", "last": "to"}
BAR: Final = 24
"""Characters of the longest bar."""

Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page that is ready to print.")]
PERIOD: Final = (
    Field("period", "text", flag="--period", help="A month as 2026-11, last-month, last-week, today, ..."),
    Field("first", "text", flag="--from", help="First day, as 2026-11-01, in place of a period."),
    Field("last", "text", flag="--to", help="Last day; default: today."),
    Field("time_zone", "text", flag="--tz", help="Time zone of the days, as Europe/Berlin; default: UTC."),
    Field("view", "text", flag="--view", help="project (spending), hosts (earnings) or all; default: by your roles."),
)
SUMS: Final = (
    Field("measure", "text", flag="--measure", help="cost, earnings, held, used, occupancy, incidents, ...; commas."),
    Field("by", "text", flag="--by", help=f"At most two of {', '.join(DIMENSIONS)}; a comma between them."),
    Field("where", "text", flag="--where", help="Only this, as host=ID,kind=job; commas between them."),
)
WHOSE: Final = {
    "project": "What your project pays, and where you see the whole organisation, its other projects.",
    "hosts": "What your hosts earn, test rentals by the Master included.",
    "all": "All projects and hosts of this market, test rentals by the Master included.",
}
"""What the sums of each view are of."""
ROWS: Final = Table(
    (
        Column("SOURCE", lambda one: one["source"]),
        Column("NAME", lambda one: one["name"], most=40),
        time_column("AT", lambda one: one["at"]),
        Column("VALUES", lambda one: ", ".join(f"{name} {value}" for name, value in one["values"].items())),
        id_column(rank=1),
    ),
    "There are no rows below this.",
)
SCHEDULES: Final = Table(
    (
        Column("NAME", lambda one: one["name"]),
        Column("CRON", lambda one: f"{one['cron']} {one['time_zone']}"),
        Column("PERIOD", lambda one: one["period"]),
        Column("BY", lambda one: one["by"], 2),
        time_column("NEXT", lambda one: one["next_at"]),
        Column("PROBLEM", lambda one: one["problem"], 1),
        id_column(),
    ),
    "No report is sent to you. Add one: windrow report schedule add",
    name=lambda one: one["name"],
)


@report_app.callback()
@options((*SUMS, *PERIOD))
def report(
    context: typer.Context,
    rows: Annotated[bool, typer.Option("--rows", help="The rows that the sums are made of.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="CSV on standard output.")] = False,
    html: Html = None,
    as_json: AsJson = False,
    **asked: Any,
) -> None:
    """Sums of this month, by day unless told otherwise."""
    if context.invoked_subcommand is not None:
        return
    api, words = client(context), _words(asked)
    if rows:
        found = api.items("/reports/rows", **words)
        View(ROWS, "json" if as_json else "table" if out.is_terminal else "tsv").print(api, found)
        return
    words.setdefault("by", "day")
    if csv or html is not None:
        _keep(api.text("/reports", **words, format="csv" if csv else "html"), html)
        return
    said = api.get("/reports", **words)
    if as_json:
        print_json(said)
        return
    say(_whose(said))
    _show(said)


@report_app.command("statement")
@options(PERIOD)
def statement(
    context: typer.Context,
    html: Html = None,
    as_json: AsJson = False,
    **asked: Any,
) -> None:
    """The statement of a period: what your project spent, what your hosts earned, or everything."""
    api, words = client(context), _words(asked)
    if html is not None:
        _keep(api.text("/reports/statement", **words, format="html"), html)
        return
    said = api.get("/reports/statement", **words)
    if as_json:
        print_json(said)
        return
    say(_whose(said))
    for one in said["reports"]:
        _show(one)
    out.print(Text("The ledger in this period:"))
    facts((one["kind_title"], _moved(one)) for one in said["transfers"])


@schedule_app.command("ls")
@lists(SCHEDULES)
def schedule_ls(context: typer.Context, view: View) -> None:
    """List the reports that are sent to you."""
    api = client(context)
    view.print(api, api.items("/report-schedules"))


@schedule_app.command("add")
@options((*SUMS, *(one for one in PERIOD if one.name not in ("first", "last"))))
def schedule_add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The subject of the mail.")],
    cron: Annotated[str, typer.Option("--cron", help="Minute, hour, day, month, weekday.")] = "0 7 1 * *",
    as_json: AsJson = False,
    **asked: Any,
) -> None:
    """Have a report sent to your mail address; by default on the first of each month, of the month before."""
    words = _words(asked)
    filters = {one: words.pop(one) for one in DIMENSIONS if one in words}
    body = {"name": name, "cron": cron, "filters": filters, **words}
    made = client(context).request("POST", "/report-schedules", body=body)
    print_json(made) if as_json else say(f"{made['name']} is sent at {made['next_at']} next. Id: {made['id']}")


@schedule_app.command("rm")
def schedule_rm(context: typer.Context, schedule: Annotated[str, typer.Argument(help="Its id or name.")]) -> None:
    """Send a report no more."""
    api = client(context)
    found = [one["id"] for one in api.items("/report-schedules") if schedule in (one["id"], one["name"])]
    if len(found) != 1:
        raise InvalidInput(f"{len(found)} of your schedules are {schedule}. List them: windrow report schedule ls")
    api.request("DELETE", f"/report-schedules/{found[0]}")
    say("It is sent no more.")


def _words(asked: Item) -> Item:
    """The parameters of the API."""
    words = {API_NAMES.get(name, name): value for name, value in asked.items() if value}
    for one in filter(None, words.pop("where", "").split(",")):
        name, mark, value = one.partition("=")
        if name not in DIMENSIONS or not mark:
            raise InvalidInput(f"--where {one}: write DIMENSION=VALUE. Dimensions: {', '.join(DIMENSIONS)}.")
        words[name] = value
    return words


def _keep(text: str, path: Path | None) -> None:
    if path is None:
        sys.stdout.write(text)
        return
    path.write_text(text, encoding="utf-8")
    say(f"Written: {path}")


def _show(said: Item) -> None:
    """A report as a table, with bars of its first measure on a terminal, and the totals."""
    first = said["measures"][0]
    top = max((float(one["values"][first] or 0) for one in said["cells"]), default=0)

    def bar(one: Item) -> str:
        return FULL * round(BAR * float(one["values"][first] or 0) / top) if top else ""

    def key(place: int) -> Any:
        return lambda one: one["keys"][place]["name"] or "none"

    def value(measure: str) -> Any:
        return lambda one: one["values"][measure]

    columns = [Column(by.upper(), key(place), most=40) for place, by in enumerate(said["by"])]
    columns += [Column(measure.upper(), value(measure)) for measure in said["measures"]]
    if out.is_terminal:
        columns.append(Column("", bar, 1))
    table = Table(columns, f"Nothing from {said['first_day']} to {said['last_day']}.")
    View(table, "table" if out.is_terminal else "tsv").print(None, said["cells"])
    if out.is_terminal and said["cells"]:
        totals = ", ".join(f"{name} {said['totals'][name]} {_unit(said, name)}" for name in said["measures"])
        out.print(Text(f"{said['first_day']} to {said['last_day']} ({said['time_zone']}): {totals}\n", style="bold"))


def _unit(said: Item, measure: str) -> str:
    unit = str(said["units"][measure])
    return str(said["currency"]) if unit == "money" else "" if unit == measure else unit


def _whose(said: Item) -> str:
    """What the sums are of; `windrow usage` has other ones."""
    other = " Your present project alone: windrow usage" if said["view"] != "hosts" else ""
    return f"{WHOSE.get(said['view'], said['view'])}{other}"


def _moved(one: Item) -> str:
    return f"{money_text(one['given'])} out, {money_text(one['got'])} in"
