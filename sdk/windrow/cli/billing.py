"""`windrow usage` and `windrow earnings`: what a month cost, and what it brought."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal

import typer

from windrow.cli.context import AsJson, client
from windrow.cli.output import facts, out, print_json, ratio_text, say
from windrow.cli.tables import Column, Table, View, ago, money_column
from windrow.words import money_text

Item = dict[str, Any]
Month = Annotated[str | None, typer.Option("--month", metavar="YYYY-MM", help="Month (UTC); default: this one.")]
All = Annotated[
    bool, typer.Option("--all-projects", help="Sums of all projects, by project or GPU model; for operators.")
]
STATES = ("idle", "paused", "faulty", "offline")

NO_COSTS = "Nothing was charged in this month. Rent something: windrow run --gpus 1 -- nvidia-smi"
NO_EARNINGS = "Nothing was earned in this month. Add a host: windrow token add --join"


def _hours(hours: Any) -> str:
    return f"{hours:.1f}"


def _lost(state: str) -> Callable[[Item], Any]:
    return lambda one: one["times"] and money_text(one["times"]["lost"][state])


SPENT = Table(
    (
        Column("NAME", lambda one: one["name"], most=40),
        money_column("AMOUNT", lambda one: one["amount"]),
        Column("HOURS", lambda one: one["running_hours"], 1, show=_hours),
        Column("ID", lambda one: one["id"], 2, 44),
    ),
    NO_COSTS,
)
EARNED = Table(
    (
        Column("NAME", lambda one: one["name"], most=40),
        money_column("AMOUNT", lambda one: one["amount"]),
        Column("RENTED", lambda one: one["times"] and ratio_text(one["times"]["occupancy_ratio"]), 1),
        *(Column(f"LOST {state.upper()}", _lost(state), 2 + rank) for rank, state in enumerate(STATES)),
        Column("ID", lambda one: one["id"], 6, 44),
    ),
    NO_EARNINGS,
)
DAYS = Table(
    (
        Column("DAY", lambda one: one["day"]),
        money_column("AMOUNT", lambda one: one["amount"]),
        Column("RENTED", lambda one: ratio_text(one["occupancy_ratio"]), 1),
    ),
    NO_EARNINGS,
)


def usage(
    context: typer.Context,
    by: Annotated[
        Literal["machine", "job", "gpu", "person", "project"] | None,
        typer.Option("--by", help="What the sums are of; default: machine."),
    ] = None,
    month: Month = None,
    all_projects: All = False,
    as_json: AsJson = False,
) -> None:
    """Show what your project spent in a month, what it will cost by its end, and when the balance is empty."""
    api = client(context)
    said = api.get("/usage", by=by, month=month, scope="all" if all_projects else None)
    if as_json:
        print_json(said)
        return
    tests = ", test rentals by the Master included"
    of = f"All projects of this market{tests}." if all_projects else "What your present project pays, and no other."
    say(f"{of} Other sums: windrow report")
    if out.is_terminal:
        facts(_spending(said))
        out.print()
    _view(SPENT).print(api, said["rows"])


def earnings(
    context: typer.Context,
    by: Annotated[
        Literal["host", "gpu", "day", "project", "model"] | None,
        typer.Option("--by", help="What the sums are of; default: host."),
    ] = None,
    month: Month = None,
    all_projects: All = False,
    as_json: AsJson = False,
) -> None:
    """Show what your hosts earned in a month, how much of their time was rented, and what the rest would have
    brought."""
    api = client(context)
    asked = None if by == "day" else by
    said = api.get("/earnings", by=asked, month=month, scope="all" if all_projects else None)
    if as_json:
        print_json(said)
        return
    if out.is_terminal:
        facts(_income(said))
        out.print()
    rows: Sequence[Item] = said["days"] if by == "day" else said["rows"]
    _view(DAYS if by == "day" else EARNED).print(api, rows)


def _view(table: Table) -> View:
    return View(table, "table" if out.is_terminal else "tsv")


def _spending(said: Item) -> list[tuple[str, Any]]:
    """The facts above the list."""
    money = said["currency"]
    rows = [("Month", said["month"]), ("Spent", f"{money_text(said['spent'])} {money}")]
    if said["forecast"] is not None:
        rows[-1] = ("Spent so far", f"{money_text(said['spent'])} {money}, today {money_text(said['today'])}")
        rows.append(("Forecast", f"{money_text(said['forecast'])} {money}. {said['forecast_method']}."))
    if said["limit"] is not None:
        rows.append(("Limit a month", f"{money_text(said['limit'])} {money}"))
    rows.append(("Running now", f"{said['running']}, {money_text(said['per_hour'])} {money} an hour"))
    rows.append(("Held", f"{money_text(said['held'])} {money}"))
    if said["balance"] is not None:
        until = f", empty {ago(said['empty_at'])}" if said["empty_at"] else ""
        rows.append(("Balance", f"{money_text(said['balance'])} {money}{until}"))
    return rows


def _income(said: Item) -> list[tuple[str, Any]]:
    """The facts above the list."""
    money, times = said["currency"], said["times"]
    rows = [
        ("Month", said["month"]),
        ("Earned", f"{money_text(said['earned'])} {money}, today {money_text(said['today'])}"),
    ]
    if Decimal(said["fees"]):
        rows.append(("Fees", f"{money_text(said['fees'])} {money}"))
    rows.append(("Earning now", f"{money_text(said['per_hour'])} {money} an hour"))
    if times["occupancy_ratio"] is not None:
        rows.append(("Rented", f"{ratio_text(times['occupancy_ratio'])} of the time"))
        lost = ", ".join(f"{state} {money_text(times['lost'][state])}" for state in STATES)
        rows.append(("Lost, estimated", f"{lost} {money}, at the present prices"))
    simulated = ", and simulated hosts" if any(one.get("simulated") for one in said["rows"]) else ""
    rows.append(("Counted too", f"the Master's own tests of hosts{simulated}"))
    return rows
