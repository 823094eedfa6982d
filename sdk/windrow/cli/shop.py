"""`windrow gpus`: which GPUs can be rented, and at what price."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

import typer

from windrow.cli.context import client
from windrow.cli.output import size_text
from windrow.cli.request import parse_size, parse_span
from windrow.cli.tables import Column, Table, View, lists, money_column, time_column
from windrow.errors import InvalidInput

Item = dict[str, Any]

GIB: Final = 2**30
MEGABIT: Final = 1_000_000
APART: Final = {"whole": "whole GPU", "mig": "MIG slice", "mps": "MPS share", "shared": "shared"}


def model(row: Item) -> str:
    """`H100`, or `H100 1g.10gb` of a slice, from its tier (h100:1g.10gb/C)."""
    name, _, profile = str(row["tier"]).partition("/")[0].partition(":")
    return f"{name.upper()} {profile}".strip()


def per_gib(row: Item) -> Decimal | None:
    """The price of a GiB of memory for an hour; None where the memory is not known."""
    size = row.get("memory_bytes")
    return None if not size else Decimal(row["price_per_hour"]) * GIB / Decimal(size)


def _memory(row: Item) -> str | None:
    return size_text(row["memory_bytes"]) if row.get("memory_bytes") else None


def _per_gib(row: Item) -> str | None:
    price = per_gib(row)
    return None if price is None else f"{price:.4f}"


def _speed(row: Item) -> str | None:
    speed = row.get("memory_bytes_per_s")
    return None if speed is None else f"{speed / 1e9:.0f} GB/s"


def _line(row: Item) -> str | None:
    if row.get("up_bps") is None or row.get("down_bps") is None:
        return None
    return f"{row['up_bps'] / MEGABIT:.0f}/{row['down_bps'] / MEGABIT:.0f}"


def _reliability(row: Item) -> str | None:
    return None if row.get("reliability") is None else f"{row['reliability'] * 100:.1f} %"


GPUS_FOR_RENT = Table(
    (
        Column("MODEL", lambda o: model(o) + (" (simulated)" if o["simulated"] else ""), most=28),
        Column("GPUS", lambda o: o["on_one_host"]),
        Column("MEMORY", _memory),
        Column("GRADE", lambda o: str(o["tier"]).partition("/")[2], 1),
        Column("FREE", lambda o: f"{o['free']} of {o['total']}"),
        money_column("PRICE/H", lambda o: o["price_per_hour"]),
        Column("TOTAL", lambda o: o.get("total_price")),
        Column("PER GIB/H", _per_gib, 3),
        Column("CURRENCY", lambda o: o["currency"], 4),
        Column("REGION", lambda o: o["region"], 2, 16),
        time_column("NEXT END", lambda o: o["ends_at"], 2),
        Column("RELIABILITY", _reliability, 3),
        Column("UP/DOWN MBIT/S", _line, 5),
        Column("MEMORY SPEED", _speed, 5),
        Column("VERIFIED", lambda o: f"{o['verified_hosts']} of {o['hosts']} hosts", 6),
        Column("DRIVER", lambda o: ", ".join(o.get("drivers") or []) or None, 6, 20),
        Column("ISOLATION", lambda o: APART.get(str(o.get("isolation"))), 7),
        Column("RUNTIMES", lambda o: ", ".join(o.get("runtimes") or []), 8, 20),
    ),
    "No GPU can be rented now. See each host's state: windrow host ls",
    name=model,
)
ORDERS: Final[dict[str, Callable[[Item], Any]]] = {
    "price": lambda o: Decimal(o["price_per_hour"]),
    "value": lambda o: per_gib(o) if per_gib(o) is not None else Decimal("Infinity"),
    "vram": lambda o: -(o.get("memory_bytes") or 0),
    "free": lambda o: -o["free"],
    "model": model,
}


@lists(GPUS_FOR_RENT)
def gpus(
    context: typer.Context,
    view: View,
    wanted: Annotated[str | None, typer.Option("--model", help="Words of the model: h100, 'rtx 4090'.")] = None,
    vram: Annotated[str | None, typer.Option("--vram", help="At least this much memory: 24GB.")] = None,
    count: Annotated[int | None, typer.Option("--gpus", min=1, help="So many GPUs of one host.")] = None,
    max_price: Annotated[str | None, typer.Option("--max-price", help="Highest price of one GPU per hour.")] = None,
    min_price: Annotated[str | None, typer.Option("--min-price", help="Lowest price of one GPU per hour.")] = None,
    hours: Annotated[str | None, typer.Option("--hours", help="Show the total price for this time: 8h.")] = None,
    region: Annotated[str | None, typer.Option("--region", help="Only this region.")] = None,
    reliability: Annotated[float | None, typer.Option(min=0, max=100, help="Per cent, at least.")] = None,
    up: Annotated[float | None, typer.Option(min=0, help="Upload of a host in Mbit/s, at least.")] = None,
    down: Annotated[float | None, typer.Option(min=0, help="Download of a host in Mbit/s, at least.")] = None,
    driver: Annotated[str | None, typer.Option(help="This version of the driver or a newer one.")] = None,
    verified: Annotated[bool, typer.Option("--verified", help="Only hosts whose hardware was checked.")] = False,
    simulated: Annotated[bool | None, typer.Option("--simulated/--real", help="Only such hosts.")] = None,
    free: Annotated[bool, typer.Option("--free", help="Only what is free now.")] = False,
    sort: Annotated[
        Literal["price", "value", "vram", "free", "model"],
        typer.Option("--sort", help="Order; value: the lowest price per GiB of memory."),
    ] = "price",
) -> None:
    """List GPUs that can be rented by host size and region, those that are free first."""
    asked = {
        "model": wanted,
        "min_memory_bytes": parse_size(vram) if vram else None,
        "min_gpus": count,
        "min_price": _price("--min-price", min_price),
        "max_price": _price("--max-price", max_price),
        "region": region,
        "min_reliability": None if reliability is None else reliability / 100,
        "min_up_bps": None if up is None else round(up * MEGABIT),
        "min_down_bps": None if down is None else round(down * MEGABIT),
        "driver": driver,
        "simulated": simulated,
        "verified": verified or None,
        "free": free or None,
    }
    span = None if hours is None else parse_span(f"{hours}h" if hours.strip().isdigit() else hours)
    api = client(context)
    given = {name: value for name, value in asked.items() if value is not None}
    found = list(api.items("/machine-classes", unit="gpu", **given))
    for one in found if span else ():
        total = Decimal(one["price_per_hour"]) * (count or 1) * Decimal(str(span)) / 3600
        one["total_price"] = f"{total:.4f}"
    found.sort(key=lambda one: (not one["free"], one["simulated"], ORDERS[sort](one)))
    if given:
        view = replace(view, table=view.table._replace(empty="No GPU fits. Without filters: windrow gpus"))
    if view.form == "table":  # a screen has no column of dashes
        columns = [one for one in view.table.columns if any(one.read(row) is not None for row in found)]
        view = replace(view, table=view.table._replace(columns=columns))
    view.print(api, found)


def _price(option: str, text: str | None) -> str | None:
    try:
        return None if text is None else str(Decimal(text))
    except ArithmeticError:
        raise InvalidInput(f"{option} {text}: write an amount of money, as 0.50.") from None
