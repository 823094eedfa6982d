"""`windrow purchase`: machines bought at clouds, what each costs, and their end."""

from collections.abc import Iterable
from statistics import fmean
from typing import Annotated, Any

import typer

from windrow.cli import completing, resolving
from windrow.cli.context import AsJson, Yes, agreed, client
from windrow.cli.output import facts, print_json, print_whole, say, size_text
from windrow.cli.request import parse_span
from windrow.cli.tables import Column, Table, View, id_column, lists, spoken, time_column
from windrow.words import counted, money_or_none, money_text, seconds_text

purchase_app = typer.Typer(help="Machines that this market buys at clouds (operators).", no_args_is_help=True)

Item = dict[str, Any]
HOUR_S = 3600
NEAR = 0.15
ENDED = ("gone", "refused", "never_made")
STATES = (
    "wanted", "asking", "doubtful", "booting", "joined", "serving", "idle", "draining", "ending",
    *ENDED,
)  # fmt: skip
Id = Annotated[str, typer.Argument(metavar="ID", help="Id of the purchase, or the start of it.")]


@purchase_app.command("new")
def purchase_new(
    context: typer.Context,
    backend: Annotated[str, typer.Argument(metavar="BACKEND", autocompletion=completing.backends)],
    offer: Annotated[str, typer.Argument(metavar="OFFER", help="Of `windrow backend offers`.")],
    hours: Annotated[str, typer.Option(metavar="TIME", help="It is ended after so long at the latest: 8h, 90m.")],
    project: Annotated[str | None, typer.Option(help="Project that it is for; default: yours.")] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Buy a machine. It joins as a host that runs this project's work and nobody else's."""
    api, long_s = client(context), parse_span(hours)
    if not yes:
        agreed(yes, _question(backend, offer, long_s, _price(api, backend, offer)))
    made = api.buy(backend, offer, long_s / HOUR_S, project)
    if as_json:
        print_json(made)
        return
    most = f"{money_text(made['reserved'])} {made['currency']}"
    say(f"{made['id']} is asked for; it costs at most {most}. Follow it: windrow purchase show {made['id']}")


def _price(api: Any, backend: str, offer: str) -> Item | None:
    return next(iter(api.backend_offers(backend, offer=offer)), None)


def _question(backend: str, offer: str, long_s: float, found: Item | None) -> str:
    cost = f" for {money_text(found['price_per_hour'])} {found['currency']} per hour" if found else ""
    return f"Buy {offer} at {backend}{cost}, for at most {long_s / HOUR_S:g} h?"


def _machine(purchase: Item) -> str:
    return f"{_gpus(purchase) or '{} vCPUs'.format(purchase['cpus'])}, {purchase['kind']}"


def _gpus(purchase: Item) -> str:
    return f"{purchase['gpu_count']} x {purchase['gpu'] or 'GPU'}" if purchase["gpu_count"] else ""


def _spent(purchase: Item) -> str:
    return f"{money_text(purchase['spent'], 2)} {purchase['currency']}"


def _bought_for(purchase: Item) -> str | None:
    name, of = purchase["for_name"], purchase["for_id"]
    return f"{name} ({of})" if name and of else of


def cost_against_forecast(purchases: Iterable[Item]) -> str:
    """How often what ended purchases cost was what was expected of them, in words."""
    over = [one for one in purchases if one["state"] == "gone" and one["paid"] is not None]
    ratios = [float(one["spent"]) / float(one["forecast"]) for one in over if float(one["forecast"] or 0) > 0]
    if not ratios:
        return "no purchase that had a forecast has ended yet"
    near = sum(abs(ratio - 1) <= NEAR for ratio in ratios)
    mean = f"{fmean(ratios):.2f} times the forecast in the mean of {counted(len(ratios), 'ended purchase')}"
    return f"{mean}, {near} of them within {NEAR:.0%}"


PURCHASES = Table(
    (
        id_column(),
        Column("STATE", lambda p: p["state"], show=spoken),
        Column("BACKEND", lambda p: p["backend"]),
        Column("MACHINE", _machine, 1, 28),
        Column("PROJECT", lambda p: p["account"] or p["account_id"], 3, 20),
        Column("FOR", lambda p: p["for_name"] or p["for_id"], 3, 20),
        Column("SPENT", _spent),
        Column("FORECAST", lambda p: money_or_none(p["forecast"]), 5),
        time_column("ENDS", lambda p: p["ended_at"] or p["ends_at"]),
        time_column("BOUGHT", lambda p: p["created_at"], 4),
        Column("WHY", lambda p: p["reason"], 2, 40),
        Column("OFFER", lambda p: p["offer"], 5, 48),
    ),
    "No purchases. See what could be bought: windrow backend offers BACKEND",
    states=lambda p: (p["state"],),
    state_words=STATES,
    at=lambda p: p["created_at"],
    has_ended=lambda p: p["state"] in ENDED,
)


@purchase_app.command("ls")
@lists(PURCHASES)
def purchase_ls(
    context: typer.Context,
    view: View,
    backend: Annotated[
        str | None, typer.Option(help="Of this backend alone.", autocompletion=completing.backends)
    ] = None,
) -> None:
    """List purchases, the latest first."""
    api = client(context)
    view.print(api, api.purchases(backend=backend, state=view.state))


@purchase_app.command("show")
def purchase_show(context: typer.Context, purchase: Id, as_json: AsJson = False) -> None:
    """Show one purchase: its machine, its host, what it cost and what its work paid."""
    api = client(context)
    one = api.purchase(resolving.found(api, resolving.PURCHASES, purchase))
    if as_json:
        print_json(one)
        return
    currency = one["currency"]
    place = ", ".join(part for part in (one["backend"], one["region"], one["zone"]) if part)
    rows = (
        ("Purchase", one["id"]),
        ("State", spoken(one["state"])),
        ("Why", one["reason"]),
        ("Offer", one["offer"]),
        ("Machine", ", ".join(filter(None, (_gpus(one), f"{one['cpus']} vCPUs", size_text(one["memory_bytes"]))))),
        ("Place", place),
        ("Project", one["account"] or one["account_id"]),
        ("Host", one["host_id"]),
        ("Bought for", _bought_for(one)),
        ("Provider's id", one["machine_id"]),
        ("Price", f"{money_text(one['price_per_hour'])} {currency} per hour"),
        ("Forecast", None if one["forecast"] is None else f"{money_text(one['forecast'])} {currency}"),
        ("Owed so far", f"{money_text(one['spent'])} {currency}{_billed(one)}"),
        ("Idle", seconds_text(one["idle_seconds"]) if one["idle_seconds"] else None),
        ("At most", f"{money_text(one['reserved'])} {currency}"),
        ("Paid by work", None if one["paid"] is None else money_text(one["paid"])),
        ("Bought", one["created_at"]),
        ("Ends", one["ends_at"]),
        ("Ended", one["ended_at"]),
    )
    facts([row for row in rows if row[1] is not None])
    if one["console"]:
        say("The end of its console:")
        for line in one["console"].splitlines():
            print_whole(line)


def _billed(purchase: Item) -> str:
    seconds = purchase["billed_seconds"]
    return "" if seconds is None else f" for {seconds_text(seconds)}"


@purchase_app.command("end")
def purchase_end(
    context: typer.Context,
    purchase: Id,
    reason: Annotated[str, typer.Option(help="Reason; kept in the audit log.")] = "",
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """End a purchase and what runs on its machine. It is gone when the provider says so."""
    api = client(context)
    whole = resolving.found(api, resolving.PURCHASES, purchase)
    agreed(yes, f"End {whole}, and what runs on its machine?")
    one = api.end_purchase(whole, reason)
    print_json(one) if as_json else say(f"{whole} is {spoken(one['state'])}. Follow it: windrow purchase show {whole}")
