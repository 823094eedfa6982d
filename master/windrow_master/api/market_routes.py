"""Routes of the market: offers and their prices, receipts, the ledger."""

from collections.abc import Mapping
from operator import itemgetter
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import Field

from windrow_master.api import answers
from windrow_master.api.answers import Amount, Isolated, Money, Out, Read, Time, Written
from windrow_master.api.auth import Reach
from windrow_master.api.bodies import Body, GivenMoney, money_if, money_of
from windrow_master.api.deps import Asking, Services, Serving
from windrow_master.api.paging import Cursor, Limit, page, page_of, read_cursor, read_number
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_master.identity.model import Principal, Role
from windrow_master.market.metering import billable_ns, note, shown_start_ns
from windrow_master.market.model import RentalId, RentalState, receipt_of
from windrow_master.market.service import Statement
from windrow_master.spec import PROFILE_FORM
from windrow_proto.errors import Forbidden
from windrow_proto.ids import AccountId, ClusterId
from windrow_proto.units import CURRENCY_TEST, SECOND, Microcents, money_text

route = Routes("market")

TIER_FORM = rf"^[a-z0-9][a-z0-9-]{{0,47}}(?::{PROFILE_FORM})?/[ABC]$"
Tier = Annotated[
    str,
    Path(
        max_length=64,
        pattern=TIER_FORM,
        description="As `windrow offer ls` shows it: h100/C, of a part of a GPU h100:1g.10gb/C or h100:mps.50/C",
    ),
]


Scope = Literal["own", "all"]


class PriceBody(Body):
    """A price. `own`: for one's own hosts; `all`: the operator's, for all owners who ask nothing themselves."""

    price_per_hour: GivenMoney
    scope: Scope | None = None
    if_asked: Annotated[GivenMoney | None, Field(description="Only while this is asked; else a conflict")] = None


def seconds_text(duration_ns: int) -> str:
    """Seconds with all nine decimals: what was signed is shown to the nanosecond."""
    whole, rest = divmod(duration_ns, SECOND)
    return f"{whole}.{rest:09d}"


SignedSeconds = Annotated[str, Written(seconds_text)]
Currency = Annotated[str, Read(lambda _: CURRENCY_TEST)]


class OfferOut(Out):
    """What can be rented of one tier, or is rented; the price is per GPU, or for `cpu` tiers per processor."""

    tier: str
    unit: str
    simulated: bool
    free: Annotated[int, Field(description="GPUs or slices; in `cpu` tiers hosts, whose processors are free")]
    total: Annotated[int, Field(description="The same, free or not")]
    hosts: int
    price_per_hour: Money
    asked: Annotated[
        Amount,
        Field(description="What the caller has set: a provider for the own hosts, else an operator for all; else null"),
    ]
    suggestion: Money
    suggestion_reason: str
    currency: Currency
    runtimes: list[str]
    min_memory_bytes: int | None
    isolation: Isolated
    notes: list[str]
    container_users: Annotated[
        Literal["own", "host"] | None,
        Field(description="Whose users containers have: their own, on each of its hosts, or the host's; null: unknown"),
    ]


class TransferOut(Out):
    """One row of the ledger."""

    id: Annotated[str, Read("transfer_id")]
    debit: str
    credit: str
    amount: Money
    currency: Currency
    kind: str
    rental_id: str | None
    memo: str
    at: Time


class LineOut(Out):
    """The part of a rental that ran on one host, by its signed receipts."""

    workload_id: str
    host_id: str
    running_seconds: Annotated[SignedSeconds, Read(billable_ns)]
    signed_seconds: Annotated[SignedSeconds, Read("signed_ns")]
    receipts: int
    first_number: int | None
    last_number: int | None
    final: Annotated[bool, Read("is_final")]
    end_reason: str | None
    exit_code: int | None
    amount: Annotated[Money, Read("charged")]
    note: Annotated[str | None, Field(description="Why less is charged than its host has signed"), Read(note)]


def _started_ns(said: Statement) -> int | None:
    return min((start_ns for line in said.lines if (start_ns := shown_start_ns(line)) is not None), default=None)


def _ended_ns(said: Statement) -> int | None:
    return said.rental.ended_at_ns if said.rental.state is RentalState.CLOSED else None


def _balance_after(said: Statement) -> Microcents:
    return said.balance if said.rental.balance_after is None else said.rental.balance_after


class ReceiptOut(Out):
    """A rental from its first to its last signed second, with every transfer it caused."""

    id: Annotated[str, Read(lambda said: receipt_of(said.rental.rental_id))]
    rental_id: Annotated[str, Read("rental.rental_id")]
    state: Annotated[str, Read("rental.state")]
    cluster_id: Annotated[str, Read("rental.cluster_id")]
    cluster_name: Annotated[str, Read("rental.cluster_name")]
    host_ids: Annotated[list[str], Read(lambda said: sorted({line.host_id for line in said.lines}))]
    tier: Annotated[str, Read("rental.tier")]
    price_per_hour: Annotated[Money, Read("rental.price_per_hour")]
    currency: Currency
    test_money: Annotated[bool, Read(lambda _: True)]
    simulated: Annotated[bool, Read("rental.simulated")]
    started_at: Annotated[Time | None, Read(_started_ns)]
    ended_at: Annotated[Time | None, Read(_ended_ns)]
    end_reason: Annotated[str | None, Read("rental.end_reason")]
    running_seconds: Annotated[SignedSeconds, Read(lambda said: sum(map(billable_ns, said.lines)))]
    amount: Annotated[Money, Read("rental.charged")]
    held: Annotated[Money, Read("rental.held_left")]
    lines: list[LineOut]
    transfers: list[TransferOut]
    balance_after: Annotated[Money, Read(_balance_after)]


class BalanceOut(Out):
    """A ledger account and what is in it."""

    account: str
    amount: Money
    currency: str


def _whose(principal: Principal) -> AccountId | None:
    """Return the account whose records the caller sees; None for everybody's."""
    return None if principal.roles & {Role.OPERATOR, Role.AUDITOR} else principal.account_id


@route.get("/offers", may=Permission.MARKET_READ, answer=answers.Page[OfferOut])
async def offers(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The supply that can be rented now, by tier, with a suggested price and its source. Simulated tiers are marked
    so."""
    found = await _priced(services, principal, None)
    return page_of(found, limit, cursor, dict, lambda one: f"{one['tier']} {one['simulated']}")


@route.put("/offers/{tier:path}", may=Permission.PRICE_SET, reach=Reach.ALL, answer=answers.Page[OfferOut])
async def set_price(services: Serving, principal: Asking, tier: Tier, body: PriceBody) -> Any:
    """Ask another price for a tier; what is rented keeps the price it began with."""
    account = _priced_for(principal, body.scope)
    price = money_of("price_per_hour", body.price_per_hour)
    await services.market.set_ask(account, tier, price, principal.actor, money_if("if_asked", body.if_asked))
    return {"items": await _priced(services, principal, tier), "next_cursor": None}


@route.delete("/offers/{tier:path}", may=Permission.PRICE_SET, reach=Reach.ALL, answer=answers.Page[OfferOut])
async def remove_price(
    services: Serving,
    principal: Asking,
    tier: Tier,
    scope: Scope | None = None,
    if_asked: Annotated[
        str | None, Query(max_length=30, description="Only while this is asked; else a conflict")
    ] = None,
) -> Any:
    """Ask no price of one's own for a tier any more: the operator's holds, or the suggestion."""
    expected = money_if("if_asked", if_asked)
    await services.market.remove_ask(_priced_for(principal, scope), tier, principal.actor, expected)
    return {"items": await _priced(services, principal, tier), "next_cursor": None}


def _priced_for(principal: Principal, scope: Scope | None) -> AccountId | None:
    """Return whose price the caller sets; None: everybody's who asks nothing."""
    scope = scope or ("own" if Role.PROVIDER in principal.roles else "all")
    if scope == "all" and Role.OPERATOR not in principal.roles:
        raise Forbidden("Only an operator can set the price for all owners; set scope to own.")
    if scope == "own" and Role.PROVIDER not in principal.roles:
        raise Forbidden("Only a provider has hosts of its own to price; set scope to all.")
    return principal.account_id if scope == "own" else None


async def _priced(services: Services, principal: Principal, tier: str | None) -> list[dict[str, Any]]:
    """Return the offers, or those of one tier, with what the caller asks."""
    asked: Mapping[str, Microcents] = {}
    if principal.roles & {Role.PROVIDER, Role.OPERATOR}:
        asked = await services.market.asked(_priced_for(principal, None))
    return [
        OfferOut.of(one, asked=None if (price := asked.get(one.tier)) is None else money_text(price))
        for one in await services.clusters.offers()
        if tier in (None, one.tier)
    ]


@route.get("/receipts", may=Permission.RENT_READ, answer=answers.Page[ReceiptOut])
async def receipts(
    services: Serving,
    principal: Asking,
    cluster: Annotated[str | None, Query(max_length=64)] = None,
    tests: answers.Tests = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Any:
    """Receipts of the account (operators and auditors: of all), the latest first; running rentals have no end yet."""
    wanted = None if cluster is None else ClusterId(cluster)
    before = read_cursor(cursor) or None
    found = await services.market.statements(_whose(principal), wanted, before, limit + 1, with_tests=tests)
    return page(found, limit, ReceiptOut.of, lambda statement: statement.rental.rental_id)


@route.get("/receipts/{receipt_id}", may=Permission.RENT_READ, reach=Reach.OWN_OR_OVERSEEN, answer=ReceiptOut)
async def receipt(services: Serving, principal: Asking, receipt_id: str) -> Any:
    """One receipt, by its id or its rental's."""
    rental_id = RentalId("rental_" + receipt_id.removeprefix("receipt_").removeprefix("rental_"))
    return ReceiptOut.of(await services.market.statement(_whose(principal), rental_id))


@route.get("/ledger/balances", may=Permission.LEDGER_READ, answer=answers.Page[BalanceOut])
async def balances(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The balance and the held amount of the caller's account; operators and auditors see every account."""
    found = await services.market.balances(_whose(principal))
    items = [{"account": a, "amount": money_text(m), "currency": CURRENCY_TEST} for a, m in sorted(found.items())]
    return page_of(items, limit, cursor, dict, itemgetter("account"))


@route.get("/ledger/transfers", may=Permission.LEDGER_READ, answer=answers.Page[TransferOut])
async def transfers(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """Transfers that touch the caller's account (operators and auditors: all), the latest first."""
    found = await services.market.transfers(_whose(principal), read_number(cursor), limit + 1)
    return page(found, limit, lambda row: TransferOut.of(row[1]), lambda row: str(row[0]))
