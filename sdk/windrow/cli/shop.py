"""`windrow gpus`: which GPUs can be rented, and at what price."""

from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

import typer

from windrow.cli.context import client
from windrow.cli.output import size_text
from windrow.cli.request import parse_size
from windrow.cli.tables import Column, Table, View, lists
from windrow.errors import InvalidInput

Item = dict[str, Any]

GIB: Final = 2**30
APART: Final = {"whole": "whole GPU", "mig": "MIG slice", "mps": "MPS share", "shared": "shared"}


def model(offer: Item) -> str:
    """`H100`, or `H100 1g.10gb` of a slice, from its tier (h100:1g.10gb/C)."""
    name, _, profile = str(offer["tier"]).partition("/")[0].partition(":")
    return f"{name.upper()} {profile}".strip()


def per_gib(offer: Item) -> Decimal | None:
    """The price of a GiB of memory for an hour; None where the memory is not known."""
    size = offer.get("min_memory_bytes")
    return None if not size else Decimal(offer["price_per_hour"]) * GIB / Decimal(size)


def _memory(offer: Item) -> str | None:
    return size_text(offer["min_memory_bytes"]) if offer.get("min_memory_bytes") else None


def _per_gib(offer: Item) -> str | None:
    price = per_gib(offer)
    return None if price is None else f"{price:.4f}"


GPUS_FOR_RENT = Table(
    (
        Column("MODEL", lambda o: model(o) + (" (simulated)" if o["simulated"] else ""), most=28),
        Column("MEMORY", _memory),
        Column("GRADE", lambda o: str(o["tier"]).partition("/")[2], 1),
        Column("FREE", lambda o: f"{o['free']} of {o['total']}"),
        Column("PRICE/H", lambda o: o["price_per_hour"]),
        Column("PER GIB/H", _per_gib, 3),
        Column("CURRENCY", lambda o: o["currency"], 4),
        Column("HOSTS", lambda o: o["hosts"], 2),
        Column("ISOLATION", lambda o: APART.get(str(o.get("isolation"))), 5),
        Column("RUNTIMES", lambda o: ", ".join(o.get("runtimes") or []), 6, 20),
    ),
    "No GPU can be rented now. See each host's state: windrow host ls",
    name=model,
)
ORDERS: Final[dict[str, Callable[[Item], Any]]] = {
    "price": lambda o: Decimal(o["price_per_hour"]),
    "value": lambda o: per_gib(o) if per_gib(o) is not None else Decimal("Infinity"),
    "vram": lambda o: -(o.get("min_memory_bytes") or 0),
    "free": lambda o: -o["free"],
    "model": model,
}


@lists(GPUS_FOR_RENT)
def gpus(
    context: typer.Context,
    view: View,
    wanted: Annotated[str | None, typer.Option("--model", help="Only models with this in their name: h100.")] = None,
    vram: Annotated[str | None, typer.Option("--vram", help="At least this much memory: 24GB.")] = None,
    max_price: Annotated[str | None, typer.Option("--max-price", help="Highest price of one GPU per hour.")] = None,
    sort: Annotated[
        Literal["price", "value", "vram", "free", "model"],
        typer.Option("--sort", help="Order; value: the lowest price per GiB of memory."),
    ] = "price",
    free: Annotated[bool, typer.Option("--free", help="Only what is free now.")] = False,
) -> None:
    """List GPUs that can be rented, those that are free first."""
    least, most = parse_size(vram) if vram else 0, _price(max_price)
    api = client(context)
    found = [
        one
        for one in api.items("/offers")
        if one["unit"] != "processor"
        and (wanted is None or wanted.casefold() in model(one).casefold())
        and (one.get("min_memory_bytes") or 0) >= least
        and (most is None or Decimal(one["price_per_hour"]) <= most)
        and (one["free"] or not free)
    ]
    found.sort(key=lambda one: (not one["free"], one["simulated"], ORDERS[sort](one)))
    view.print(api, found)


def _price(text: str | None) -> Decimal | None:
    try:
        return None if text is None else Decimal(text)
    except ArithmeticError:
        raise InvalidInput(f"--max-price {text}: write an amount of money, as 0.50.") from None
