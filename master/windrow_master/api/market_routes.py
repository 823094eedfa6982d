"""Routes of the market: offers and their prices, receipts, the ledger."""

from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BaseModel, Field

from windrow_master.api import answers
from windrow_master.api.auth import Reach
from windrow_master.api.bodies import Body, GivenMoney, money_of
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.fleet_shapes import isolation_text
from windrow_master.api.paging import Cursor, Limit, page, read_cursor, read_number, time_or_none
from windrow_master.api.route import Routes
from windrow_master.fleet.slices import PROFILE_FORM
from windrow_master.identity.decide import Permission
from windrow_master.identity.model import Principal, Role
from windrow_master.market.metering import billable_ns, note, shown_start_ns
from windrow_master.market.model import Offer, RentalId, RentalLine, RentalState, Transfer, receipt_of
from windrow_master.market.service import Statement
from windrow_proto.errors import Forbidden
from windrow_proto.ids import AccountId, ClusterId
from windrow_proto.units import CURRENCY_TEST, SECOND, money_text, time_text

route = Routes("market")

Tier = Annotated[str, Path(max_length=64, pattern=rf"^[a-z0-9][a-z0-9-]{{0,47}}(?::{PROFILE_FORM})?/[ABC]$")]


class PriceBody(Body):
    """A price. `own`: for one's own hosts; `all`: the operator's, for all owners who ask nothing themselves."""

    price_per_hour: GivenMoney
    scope: Literal["own", "all"] | None = None


class OfferOut(BaseModel):
    """What can be had in one tier; the price is per GPU, or for `cpu` tiers per processor."""

    tier: str
    unit: str
    simulated: bool
    gpus_free: int
    free: int
    total: int
    hosts: int
    price_per_hour: str
    suggestion: str
    suggestion_reason: str
    currency: str
    runtimes: list[str]
    min_memory_bytes: int | None
    isolation: str | None
    notes: list[str]
    container_users: Annotated[
        Literal["own", "host"] | None,
        Field(description="Whose users containers have: their own, on each of its hosts, or the host's; null: unknown"),
    ]


class OffersOut(BaseModel):
    """All offers."""

    items: list[OfferOut]
    next_cursor: str | None


class TransferOut(BaseModel):
    """One row of the ledger."""

    id: str
    debit: str
    credit: str
    amount: str
    currency: str
    kind: str
    rental_id: str | None
    memo: str
    at: str


class LineOut(BaseModel):
    """What one host ran of a rental, by its signed receipts."""

    workload_id: str
    host_id: str
    running_seconds: str
    signed_seconds: str
    receipts: int
    first_number: int | None
    last_number: int | None
    final: bool
    end_reason: str | None
    exit_code: int | None
    amount: str
    note: Annotated[str | None, Field(description="Why less is charged than its host has signed")]


class ReceiptOut(BaseModel):
    """A rental from its first to its last signed second, with every transfer it caused."""

    id: str
    rental_id: str
    state: str
    cluster_id: str
    cluster_name: str
    host_ids: list[str]
    tier: str
    price_per_hour: str
    currency: str
    test_money: bool
    simulated: bool
    started_at: str | None
    ended_at: str | None
    end_reason: str | None
    running_seconds: str
    amount: str
    held: str
    lines: list[LineOut]
    transfers: list[TransferOut]
    balance_after: str


class BalanceOut(BaseModel):
    """A ledger account and what is in it."""

    account: str
    amount: str
    currency: str


class BalancesOut(BaseModel):
    """The caller's ledger accounts; for operators and auditors all."""

    items: list[BalanceOut]
    next_cursor: str | None


def _whose(principal: Principal) -> AccountId | None:
    """Whose records the caller sees; None for everybody's."""
    return None if principal.roles & {Role.OPERATOR, Role.AUDITOR} else principal.account_id


@route.get("/offers", may=Permission.MARKET_READ, answer=OffersOut)
async def offers(services: Serving) -> Any:
    """What can be rented now, by tier, with a suggested price and its source. Simulated tiers are marked so."""
    found = await services.clusters.offers()
    return {"items": [_offer_json(offer) for offer in found], "next_cursor": None}


@route.put("/offers/{tier:path}", may=Permission.PRICE_SET, reach=Reach.ALL, answer=OffersOut)
async def set_price(services: Serving, principal: Asking, tier: Tier, body: PriceBody) -> Any:
    """Ask another price for a tier; what is rented keeps the price it began with."""
    scope = body.scope or ("own" if Role.PROVIDER in principal.roles else "all")
    if scope == "all" and Role.OPERATOR not in principal.roles:
        raise Forbidden("The price for all owners is an operator's to set; set scope to own.")
    if scope == "own" and Role.PROVIDER not in principal.roles:
        raise Forbidden("Only a provider has hosts of its own to price; set scope to all.")
    account = principal.account_id if scope == "own" else None
    await services.market.set_ask(account, tier, money_of("price_per_hour", body.price_per_hour), principal.actor)
    found = await services.clusters.offers()
    return {"items": [_offer_json(offer) for offer in found if offer.tier == tier], "next_cursor": None}


@route.get("/receipts", may=Permission.RENT_READ, answer=answers.Page[ReceiptOut])
async def receipts(
    services: Serving,
    principal: Asking,
    cluster: Annotated[str | None, Query(max_length=64)] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Any:
    """Receipts of the account (operators and auditors: of all), the latest first; running rentals have no end yet."""
    wanted = None if cluster is None else ClusterId(cluster)
    before = read_cursor(cursor) or None
    found = await services.market.statements(_whose(principal), wanted, before, limit + 1)
    return page(found, limit, _receipt_json, lambda statement: statement.rental.rental_id)


@route.get("/receipts/{receipt_id}", may=Permission.RENT_READ, reach=Reach.OWN_OR_OVERSEEN, answer=ReceiptOut)
async def receipt(services: Serving, principal: Asking, receipt_id: str) -> Any:
    """One receipt, by its id or its rental's."""
    rental_id = RentalId("rental_" + receipt_id.removeprefix("receipt_").removeprefix("rental_"))
    return _receipt_json(await services.market.statement(_whose(principal), rental_id))


@route.get("/ledger/balances", may=Permission.LEDGER_READ, answer=BalancesOut)
async def balances(services: Serving, principal: Asking) -> Any:
    """What is on the caller's account and set aside for its rentals; operators and auditors see every account."""
    found = await services.market.balances(_whose(principal))
    items = [{"account": a, "amount": money_text(m), "currency": CURRENCY_TEST} for a, m in sorted(found.items())]
    return {"items": items, "next_cursor": None}


@route.get("/ledger/transfers", may=Permission.LEDGER_READ, answer=answers.Page[TransferOut])
async def transfers(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """Transfers that touch the caller's account (operators and auditors: all), the latest first."""
    found = await services.market.transfers(_whose(principal), read_number(cursor), limit + 1)
    return page(found, limit, lambda row: _transfer_json(row[1]), lambda row: str(row[0]))


def _offer_json(offer: Offer) -> dict[str, Any]:
    return {
        "tier": offer.tier,
        "unit": offer.unit.value,
        "simulated": offer.simulated,
        "gpus_free": offer.free if offer.unit.value == "gpu" else 0,
        "free": offer.free,
        "total": offer.total,
        "hosts": offer.hosts,
        "price_per_hour": money_text(offer.price_per_hour),
        "suggestion": money_text(offer.suggestion),
        "suggestion_reason": offer.suggestion_reason,
        "currency": CURRENCY_TEST,
        "runtimes": list(offer.runtimes),
        "min_memory_bytes": offer.min_memory_bytes,
        "isolation": isolation_text(offer.isolation),
        "notes": list(offer.notes),
        "container_users": offer.container_users or None,
    }


def _receipt_json(statement: Statement) -> dict[str, Any]:
    rental, lines = statement.rental, statement.lines
    started = [start_ns for line in lines if (start_ns := shown_start_ns(line)) is not None]
    after = statement.balance if rental.balance_after is None else rental.balance_after
    return {
        "id": receipt_of(rental.rental_id),
        "rental_id": rental.rental_id,
        "state": rental.state.value,
        "cluster_id": rental.cluster_id,
        "cluster_name": rental.cluster_name,
        "host_ids": sorted({line.host_id for line in lines}),
        "tier": rental.tier,
        "price_per_hour": money_text(rental.price_per_hour),
        "currency": CURRENCY_TEST,
        "test_money": True,
        "simulated": rental.simulated,
        "started_at": time_or_none(min(started, default=None)),
        "ended_at": time_or_none(rental.ended_at_ns if rental.state is RentalState.CLOSED else None),
        "end_reason": rental.end_reason or None,
        "running_seconds": seconds_text(sum(billable_ns(line) for line in lines)),
        "amount": money_text(rental.charged),
        "held": money_text(rental.held_left),
        "lines": [_line_json(line) for line in lines],
        "transfers": [_transfer_json(transfer) for transfer in statement.transfers],
        "balance_after": money_text(after),
    }


def _line_json(line: RentalLine) -> dict[str, Any]:
    return {
        "workload_id": line.workload_id,
        "host_id": line.host_id,
        "running_seconds": seconds_text(billable_ns(line)),
        "signed_seconds": seconds_text(line.signed_ns),
        "receipts": line.receipts,
        "first_number": line.first_number,
        "last_number": line.last_number,
        "final": line.is_final,
        "end_reason": line.end_reason or None,
        "exit_code": line.exit_code,
        "amount": money_text(line.charged),
        "note": note(line) or None,
    }


def _transfer_json(transfer: Transfer) -> dict[str, Any]:
    return {
        "id": transfer.transfer_id,
        "debit": transfer.debit,
        "credit": transfer.credit,
        "amount": money_text(transfer.amount),
        "currency": CURRENCY_TEST,
        "kind": transfer.kind.value,
        "rental_id": transfer.rental_id,
        "memo": transfer.memo,
        "at": time_text(transfer.at_ns),
    }


def seconds_text(duration_ns: int) -> str:
    """Seconds with all nine decimals: what was signed is shown to the nanosecond."""
    whole, rest = divmod(duration_ns, SECOND)
    return f"{whole}.{rest:09d}"
