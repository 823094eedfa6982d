"""`windrow price`: what GPU machines cost at other providers, beside this market."""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Annotated, Any

import typer

from windrow.cli.context import client
from windrow.cli.tables import Column, Table, View, lists
from windrow.words import money_text


def _machine(price: dict[str, Any]) -> str:
    if not price["gpu_count"]:
        return f"{price['vcpu'] or '?':g} vCPU" if price["vcpu"] else price["gpu"]
    return f"{price['gpu_count']} x {price['gpu']}"


def _dollars(amount: str) -> str:
    return money_text(amount)


def _place(price: dict[str, Any]) -> str:
    return price["zone"] or price["region"] or "any"


PRICES = Table(
    (
        Column("GPUS", _machine, most=24),
        Column("PROVIDER", lambda p: p["provider"]),
        Column("OFFER", lambda p: p["offer"], most=28),
        Column("KIND", lambda p: p["kind"]),
        Column("PER GPU/H", lambda p: _dollars(p["price_per_gpu_hour"])),
        Column("PER HOUR", lambda p: _dollars(p["price_per_hour"]), 2),
        Column("PLACE", _place, 3, 24),
        Column("COUNTRY", lambda p: p["country"], 5),
        Column("AS OF", lambda p: p["as_of"], 1),
        Column("STATE", lambda p: p["state"], 1),
        Column("VCPU", lambda p: p["vcpu"], 6),
        Column("MEMORY GIB", lambda p: p["memory_gib"], 6),
        Column("SOURCE", lambda p: p["source"], 7, 40),
    ),
    "No price has all of these words. With fewer, such as h100: windrow price h100",
    name=lambda p: p["offer"],
    states=lambda p: (p["state"],),
    state_words=("current", "expired", "quarantined"),
)


@lists(PRICES)
def price(
    context: typer.Context,
    view: View,
    query: Annotated[
        list[str] | None,
        typer.Argument(metavar="[QUERY]...", help="Words such as a100 aws us-east-1 spot; each has to fit."),
    ] = None,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="The cheapest of each provider, beside what this market asks."),
    ] = False,
) -> None:
    """Show what GPU machines cost at other providers, in USD, with the date of each price."""
    api, words = client(context), " ".join(query or [])
    found: Iterable[dict[str, Any]] = api.items("/prices", query=words, compare=compare or None)
    if compare:
        found = sorted([*_own(api.items("/offers"), words), *found], key=_by_gpu)
    view.print(api, iter(found))


def _by_gpu(price: dict[str, Any]) -> tuple[str, Decimal]:
    return price["gpu"], Decimal(price["price_per_gpu_hour"])


def _own(offers: Iterable[dict[str, Any]], words: str) -> Iterator[dict[str, Any]]:
    """What this market offers, as prices."""
    for offer in offers:
        said = f"{offer['tier']} windrow on-demand".casefold()
        if all(word in said for word in words.casefold().split()):
            cost, gpu = offer["price_per_hour"], offer["tier"].partition("/")[0]
            name = "windrow (simulated)" if offer.get("simulated") else "windrow"
            own = {"gpu": gpu, "gpu_count": int(gpu != "cpu"), "provider": name, "offer": offer["tier"]}
            own |= {"kind": "on-demand", "price_per_gpu_hour": cost, "price_per_hour": cost, "state": "current"}
            own |= {"source": "this market", "vcpu": None if own["gpu_count"] else 1.0, "memory_gib": None}
            yield own | {"zone": None, "region": "this market", "country": None, "as_of": None}
