"""`windrow` alone, `windrow status` and `windrow ps`: what of one's own runs, what is left, what needs somebody."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from textwrap import fill
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from windrow.cli import completing, resolving
from windrow.cli import front_text as text
from windrow.cli.cluster_text import ends, request_facts, usage_rows
from windrow.cli.context import AsJson, client
from windrow.cli.exits import EXIT_AUTH
from windrow.cli.hosts import host_show
from windrow.cli.output import brief, facts, out, plain, print_error, print_json, print_whole
from windrow.cli.tables import Column, Table, View, ago, id_column, lists, money_column, table_lines, time_column
from windrow.client import Client
from windrow.errors import ApiProblem, NoMaster, NotFound
from windrow.words import money_or_none, money_text, state_name

Item = dict[str, Any]

ENDED: Final = frozenset({"Deleted", "Finished", "Failed", "Succeeded", "Cancelled", "Lost"})
READERS: Final = frozenset({"admin", "auditor", "operator", "renter", "viewer"})
"""The roles that may read clusters and jobs."""
SIGN_IN: Final = (
    "windrow: rent GPUs, run code on them, look after hosts. You are not signed in.",
    "",
    "  windrow login https://market.example   sign in to a market, in the browser",
    "  windrow login 'LINK'                   accept an invitation",
    "  windrow up --simulate 50               try a whole market on this machine",
    "  windrow --help                         all commands",
)


def _first_of(hosts: Any) -> str:
    first, *others = str(hosts).split(", ")
    return f"{first} +{len(others)}" if others else first


WORK = Table(
    (
        id_column(rank=4),
        Column("NAME", lambda one: one["name"], most=28),
        Column("KIND", lambda one: one["kind"], 3),
        Column("STATE", lambda one: one["state"], show=state_name),
        Column("HOSTS", lambda one: ", ".join(one["hosts"]), 2, 24, _first_of),
        Column("TIER", lambda one: one["tier"], 6),
        money_column("PRICE/H", lambda one: one["price_per_hour"]),
        money_column("COST", lambda one: one["cost_so_far"], 1),
        time_column("STARTED", lambda one: one["started_at"], 5),
        time_column("ENDS", lambda one: one["ends_at"], 7),
        Column("NOTE", lambda one: one["problem"] or one["reason"], 8, 20),
    ),
    "Nothing runs. What can be rented: windrow gpus",
    name=lambda one: one["name"],
    at=lambda one: one["created_at"],
    has_ended=lambda one: one["state"] in ENDED or one["state"] == "Stopped",
)


@lists(WORK)
def ps(context: typer.Context, view: View) -> None:
    """List your machines, services, clusters and jobs that run or wait."""
    api = client(context)
    view.print(api, _work(api, api.get("/me")))


def _work(api: Client, me: Item) -> list[Item]:
    """One's own; nothing for who may not read it."""
    if not READERS & set(me["roles"]):
        return []
    found = text.work_of(api.items("/clusters"), api.items("/jobs"))
    return [one for one in found if one["account_id"] == me["account"]["id"]]


def status(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|ID", help="A machine, cluster, job or host; without: an overview.",
            autocompletion=completing.things,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Show what runs, what is left and what needs somebody; or how one machine, job or host is."""
    api = client(context)
    if name is None:
        _overview(api, as_json)
        return
    try:
        kind, found = resolving.work(api, name, shows=True)
    except NotFound as lost:
        try:
            resolving.found(api, resolving.HOSTS, name)
        except NotFound:
            raise lost from None
        host_show(context, name, as_json)
        return
    item = api.get(f"{kind.path}/{found}")
    print_json(item) if as_json else _print_one(api, item)


def front(context: typer.Context) -> None:
    """`windrow` alone: the overview; where nobody is signed in, how that is done."""
    try:
        _overview(client(context), False)
    except NoMaster:
        _print_sign_in()
    except ApiProblem as problem:
        if problem.status != 401:
            raise
        print_error(problem)
        _print_sign_in()
        raise typer.Exit(EXIT_AUTH) from None


def _print_sign_in() -> None:
    out.print("\n".join(SIGN_IN), markup=False, soft_wrap=True)


def _overview(api: Client, as_json: bool) -> None:
    me, now = api.get("/me"), datetime.now(UTC)
    everything = _work(api, me)
    work = [one for one in everything if not WORK.has_ended or not WORK.has_ended(one)]
    per_hour = text.burn(work)
    left = text.lasts(me["balance"]["amount"], per_hour)
    matters = [*text.matters_of_money(left), *text.matters_of_work(everything, now), *_of_hosts(api, me)]
    if as_json:
        money = me["balance"] | {"per_hour": f"{per_hour:f}", "lasts_s": left and int(left.total_seconds())}
        shown = [one._asdict() for one in matters]
        print_json({"account": me["account"], "money": money, "work": work, "attention": shown})
        return
    _print_me(api, me, per_hour, left)
    _print_work(work)
    _print_matters(matters)
    out.print()
    commands = text.next_commands(work, me["roles"], text.BIG if work else _wanted(api, me))
    width = max(len(command) for command, _ in commands)
    for command, does in commands:
        print_whole(f"  {command:{width}}  {does}")


def _wanted(api: Client, me: Item) -> str:
    """The first of what a suggestion may ask for that would find a place now; the first of all where none does."""
    for words, asked in text.WANTED.items() if "renter" in me["roles"] else ():
        with suppress(ApiProblem):
            if api.plan({"kind": "box", "argv": ["python"], **asked})["fits"]:
                return words
    return text.BIG


def _of_hosts(api: Client, me: Item) -> list[text.Matter]:
    """An operator looks after everything, a provider after their own hosts."""
    if "operator" in me["roles"]:
        return text.matters_of_master(api.get("/operators/health"))
    if "provider" not in me["roles"]:
        return []
    found = [host for state in text.TROUBLED for host in api.items("/hosts", state=state)]
    return text.matters_of_hosts(one for one in found if one.get("owner_account") == me["account"]["id"])


def _print_me(api: Client, me: Item, per_hour: Decimal, left: timedelta | None) -> None:
    who = (me.get("user") or me.get("service") or me["account"])["name"]
    print_whole(f"{who} in {me['account']['name']} at {api.config.url}")
    spends = [f"{per_hour:f} per hour", f"lasts {text.span_text(left)}"] if left is not None else ["nothing is spent"]
    print_whole(", ".join((f"Balance {money_text(me['balance']['amount'])} {me['balance']['currency']}", *spends)))


def _print_work(work: list[Item]) -> None:
    out.print()
    if not work:
        print_whole("Nothing runs.")
        return
    header, *lines = table_lines([one for one in WORK.columns if one.name != "ID"], work, out.width)
    out.print(Text(header, style="bold"), no_wrap=True, overflow="ignore", crop=False)
    for line in lines:
        out.print(Text(line), no_wrap=True, overflow="ignore", crop=False)


def _print_matters(matters: list[text.Matter]) -> None:
    if not matters:
        return
    out.print()
    out.print(Text("Needs somebody", style="bold"))
    for one in matters[: text.SHOWN_MAX]:
        line = f"  {plain(one.about)}: {plain(brief(one.text))}"
        out.print(Text(fill(line, out.width, subsequent_indent="    ") if out.file.isatty() else line))
        if one.command:
            print_whole(f"    {one.command}")
    if len(matters) > text.SHOWN_MAX:
        print_whole(f"  and {len(matters) - text.SHOWN_MAX} more: windrow doctor")


def _print_one(api: Client, item: Item) -> None:
    """A machine, cluster or job in short."""
    is_job = "attempts" in item
    clusters = [api.cluster(one) for one in resolving.last_cluster(item, goes_on=True)] if is_job else [item]
    one = text.work_of(clusters, [item] if is_job else [])[0]
    goes_on = one["state"] not in ENDED
    used = api.usage(clusters[0]["id"]) if clusters and goes_on and one["state"] != "Stopped" else []
    why = one["problem"] or one["reason"]
    pairs: Iterable[tuple[str, Any]] = [
        (one["kind"].capitalize(), one["name"]),
        ("State", state_name(one["state"]) + (f": {why}" if why else "")),
        ("Hosts", ", ".join(one["hosts"]) or None),
        *request_facts(item["request"], ", ".join(one["hosts"])),
        ("Price per hour", money_or_none(one["price_per_hour"])),
        ("Cost so far", money_or_none(one["cost_so_far"])),
        ("Started", one["started_at"] and ago(one["started_at"])),
        ("Ends", (ends(clusters[0]) if clusters and goes_on else None) or None),
        *usage_rows(used),
    ]
    facts((name, brief(value)) for name, value in pairs if value is not None)
    for command in _next(one, item):
        print_whole(f"  {command}")


def _next(one: Item, item: Item) -> list[str]:
    """Commands for this work."""
    noun, name = ("job" if one["kind"] == "job" else "cluster"), item["name"]
    is_up = one["state"] in ("Running", "Degraded")
    found = [f"windrow logs {'-f ' if is_up else ''}{name}", f"windrow {noun} show {name}"]
    if is_up:
        found = [f"windrow {way} {name}" for way in one["ways_in"]] + found
    if one["state"] == "Stopped":
        found.insert(0, f"windrow cluster start {name}")
    return found
