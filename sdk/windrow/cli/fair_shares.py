"""`windrow fair-share` and `windrow quota`: the part of the market that a project is due while others want it, too, and
the most that it may have."""

from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Annotated, Any, Final
from urllib.parse import quote

import typer

from windrow.cli.context import AsJson, Yes, agreed, client
from windrow.cli.output import print_json, say
from windrow.cli.request import parse_size
from windrow.cli.tables import Column, Table, View, id_column, lists
from windrow.errors import InvalidInput
from windrow.words import money_text

fair_share_app = typer.Typer(help="Shares of the queue: guarantee, ceiling, weight.", no_args_is_help=True)
quota_app = typer.Typer(help="Quotas: the most that a project or organisation has at once.", no_args_is_help=True)

Row = dict[str, Any]
PERCENT_PPM: Final = 10_000
GIB: Final = 1 << 30
Node = Annotated[str, typer.Argument(metavar="NODE", help="A project by name or id, org:NAME, or installation.")]
Part = Annotated[str | None, typer.Option(metavar="PERCENT", help="Of the installation: 25%.")]


class Item(StrEnum):
    """The things that a quota counts."""

    GPUS = "gpus"
    CPUS = "cpus"
    MEMORY = "memory"
    CLUSTERS = "clusters"
    WAITING_JOBS = "waiting_jobs"
    SPEND_PER_HOUR = "spend_per_hour"


ItemName = Annotated[Item, typer.Argument(metavar="ITEM", help=f"{', '.join(Item)}.")]
Tier = Annotated[str, typer.Option(metavar="MODEL", help="Only GPUs of this model, such as h100; default: all.")]


def _percent(parts: int) -> str:
    return f"{parts / PERCENT_PPM:g}%"


def parts_of(flag: str, text: str) -> int:
    """Parts per million: `25%` is 250,000. Raises InvalidInput."""
    try:
        found = Decimal(text.removesuffix("%")) * PERCENT_PPM
        if not (found.is_finite() and 0 <= found <= 100 * PERCENT_PPM and found == found.to_integral_value()):
            raise InvalidOperation
    except InvalidOperation:
        raise InvalidInput(f"{flag} {text!r} is no part. Write a percentage with up to four decimals: 25%.") from None
    return int(found)


SHARES: Final = Table(
    (
        Column("OF", lambda one: one["level"], 5),
        Column("NAME", lambda one: one["name"], most=24),
        Column("GUARANTEE", lambda one: one["guarantee_ppm"], show=_percent),
        Column("CEILING", lambda one: one["ceiling_ppm"], 2, show=_percent),
        Column("WEIGHT", lambda one: one["weight"], 1),
        Column("BORROWS", lambda one: "yes" if one["is_borrowing"] else "no", 4),
        Column("URGENT", lambda one: "yes" if one["may_use_urgent"] else "no", 6),
        Column("HELD", lambda one: one["held_ppm"], show=_percent),
        Column("USED", lambda one: one["used_ppm"], 3, show=_percent),
        Column("RANK", lambda one: "-" if one["rank"] is None else one["rank"]),
        id_column(rank=7),
    ),
    "No shares. Set one: windrow fair-share set org:NAME --guarantee 25%",
    name=lambda one: one["name"],
)


@fair_share_app.command("ls")
@lists(SHARES)
def share_ls(context: typer.Context, view: View) -> None:
    """List shares, and what is held of the market now and was used of late. Rank 1 is served first."""
    api = client(context)
    view.print(api, api.items("/fair-shares"))


@fair_share_app.command("set")
def share_set(
    context: typer.Context,
    node: Node,
    guarantee: Part = None,
    ceiling: Part = None,
    weight: Annotated[
        int | None, typer.Option(min=1, help="Among those beside it: 4 is due four times as much as 1.")
    ] = None,
    borrowing: Annotated[
        bool | None, typer.Option(help="May have more than the guarantee while others leave it free.")
    ] = None,
    urgent: Annotated[bool | None, typer.Option(help="Jobs may have the class urgent; operators grant it.")] = None,
    as_json: AsJson = False,
) -> None:
    """Set the rules of a share; those not named stay."""
    given = {
        "guarantee_ppm": None if guarantee is None else parts_of("--guarantee", guarantee),
        "ceiling_ppm": None if ceiling is None else parts_of("--ceiling", ceiling),
        "weight": weight,
        "is_borrowing": borrowing,
        "may_use_urgent": urgent,
    }
    wanted = {name: value for name, value in given.items() if value is not None}
    if not wanted:
        raise InvalidInput("Name a rule: --guarantee, --ceiling, --weight, --borrowing or --urgent.")
    api, path = client(context), f"/fair-shares/{quote(node, safe=':@')}"
    before = api.get(path)
    one = api.request("PUT", path, body={name: before[name] for name in given} | wanted)
    said = f"guarantee {_percent(one['guarantee_ppm'])}, ceiling {_percent(one['ceiling_ppm'])}, weight {one['weight']}"
    borrows = "borrows" if one["is_borrowing"] else "does not borrow"
    may = ", may use the class urgent" if one["may_use_urgent"] else ""
    print_json(one) if as_json else say(f"The {one['level']} {one['name']} has: {said}, {borrows}{may}.")


@fair_share_app.command("rm")
def share_rm(context: typer.Context, node: Node, yes: Yes = False) -> None:
    """Let a share have the default rules again: no guarantee, weight 1."""
    api = client(context)
    agreed(yes, f"Remove the rules of the share of {node}?")
    api.request("DELETE", f"/fair-shares/{quote(node, safe=':@')}")
    say(f"The share of {node} has the default rules.")


def _amount(item: str, text: str) -> str:
    if item == Item.MEMORY:
        return f"{int(text) / GIB:.4g} GiB"
    return money_text(text) if item == Item.SPEND_PER_HOUR else text


def _quota_text(one: dict[str, Any]) -> str:
    """A quota in words: `spend per hour`, `gpus of h100`."""
    return str(one["item"]).replace("_", " ") + (f" of {one['tier']}" if one["tier"] else "")


QUOTAS: Final = Table(
    (
        Column("OF", lambda one: one["level"], 2),
        Column("NAME", lambda one: one["name"], most=24),
        Column("QUOTA", lambda one: _quota_text(one)),
        Column("USED", lambda one: _amount(one["item"], one["used"])),
        Column("LIMIT", lambda one: _amount(one["item"], one["limit"])),
        id_column(lambda one: one["node_id"], rank=3),
    ),
    "No quotas. Set one: windrow quota set lab gpus --limit 8",
    name=lambda one: one["name"],
)


@quota_app.command("ls")
@lists(QUOTAS)
def quota_ls(context: typer.Context, view: View) -> None:
    """List the quotas that you may see, and how much of each is used."""
    api = client(context)
    view.print(api, api.items("/quotas"))


@quota_app.command("set")
def quota_set(
    context: typer.Context,
    node: Node,
    item: ItemName,
    limit: Annotated[str, typer.Option(metavar="AMOUNT", help="8, 0.5; of memory 64GiB; of spend 12.50 an hour.")],
    tier: Tier = "",
    as_json: AsJson = False,
) -> None:
    """Set a quota. What is above it goes on, and nothing more starts until there is room."""
    amount = str(parse_size(limit)) if item is Item.MEMORY and not limit.isdecimal() else limit
    body = {"node": node, "item": item.value, "tier": tier, "limit": amount}
    one = client(context).request("PUT", "/quotas", body=body)
    what = _quota_text(one)
    used, most = (_amount(one["item"], one[name]) for name in ("used", "limit"))
    of = one["level"] if one["level"] == one["name"] else f"{one['level']} {one['name']}"
    print_json(one) if as_json else say(f"Quota {what} of the {of}: limit {most}, used {used}.")


@quota_app.command("rm")
def quota_rm(context: typer.Context, node: Node, item: ItemName, tier: Tier = "", yes: Yes = False) -> None:
    """Remove a quota."""
    api = client(context)
    agreed(yes, f"Remove the quota {item} of {node}?")
    api.request("DELETE", "/quotas", params={"node": node, "item": item.value, "tier": tier})
    say(f"The quota {item} of {node} is removed.")
