"""Routes of purchases: machines bought at providers, what each costs, and their end."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from windrow_master.api import answers
from windrow_master.api.answers import Amount, Money, Out, Read, Time
from windrow_master.api.auth import Reach, Repeat
from windrow_master.api.backend_routes import NAME
from windrow_master.api.bodies import Body, Given
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.paging import Cursor, Limit, page, read_cursor
from windrow_master.api.route import Routes
from windrow_master.api.services import Services
from windrow_master.fleet.lookup import find_host
from windrow_master.hybrid.purchases.model import Purchase
from windrow_master.hybrid.purchases.service import Totals
from windrow_master.hybrid.purchases.states import FINAL, State
from windrow_master.hybrid.search import subjects
from windrow_master.identity.decide import Permission
from windrow_master.identity.people_lookup import name_of
from windrow_master.prices.offers import Kind
from windrow_master.store.unit import UnitOfWork
from windrow_proto.units import SECOND, money_text

route = Routes("clouds")


class PurchaseBody(Body):
    """A machine to buy. It is ended after so many hours, whatever runs on it."""

    backend: Annotated[str, Field(pattern=NAME)]
    offer: Annotated[str, Field(min_length=1, max_length=200, description="Of GET /backends/{name}/offers")]
    account: Annotated[
        str | None,
        Field(min_length=1, max_length=128, description="Project that it is for: id or name; default: the caller's"),
    ] = None
    hours: Annotated[float, Field(gt=0, le=24 * 31, description="It is ended after so long at the latest")]


class PurchaseOut(Out):
    """A machine that is bought: its state, its host and what it costs, in the currency of its backend."""

    id: Annotated[str, Read("purchase_id")]
    backend: str
    state: State
    reason: Annotated[str | None, Field(description="Why it is in this state")]
    account_id: Annotated[str, Field(description="The project that it is for: nobody else's work runs on it")]
    account: Annotated[str | None, Field(description="The name of that project")]
    offer: Annotated[str, Read("offer.offer_id")]
    kind: Annotated[Kind, Read("offer.kind")]
    gpu: Annotated[str | None, Read("offer.gpu")]
    gpu_count: Annotated[int, Read("offer.gpu_count")]
    cpus: Annotated[int, Read("offer.cpus")]
    memory_bytes: Annotated[int, Read("offer.memory_bytes")]
    region: Annotated[str, Read("offer.region")]
    zone: Annotated[str | None, Read("offer.zone")]
    currency: Annotated[str, Read("offer.currency")]
    price_per_hour: Annotated[Money, Read("offer.price_per_hour")]
    reserved: Annotated[Money, Field(description="The most that it may cost until it is ended")]
    forecast: Annotated[
        Amount, Field(description="Its cost as it was expected when it was decided; null: nothing said how long")
    ]
    spent: Annotated[Money, Field(description="Owed to the provider so far")]
    paid: Annotated[Amount, Field(description="Paid by the work that ran on it; null: it is not over")]
    billed_seconds: Annotated[int | None, Field(description="Null: it is not over")]
    idle_seconds: Annotated[int, Read(lambda one: one.idle_ns // SECOND), Field(description="Without work")]
    machine_id: Annotated[str | None, Field(description="By which the provider knows it")]
    host_id: str | None
    host: Annotated[str | None, Field(description="The name of that host")]
    for_id: Annotated[str | None, Field(description="The job or machine that caused it; null: an operator")]
    for_name: Annotated[str | None, Field(description="The name of that job or machine")]
    created_at: Time
    ends_at: Time
    ended_at: Time | None


class WholePurchaseOut(PurchaseOut):
    """The same, with what its machine wrote."""

    console: Annotated[str | None, Field(description="End of its console where it never joined, without secrets")]


@route.get("/purchases", may=Permission.CLOUDS_READ, answer=answers.Page[PurchaseOut])
async def purchases(
    services: Serving,
    backend: Annotated[str, Query(max_length=32, description="Of this backend alone")] = "",
    state: Annotated[State | None, Query(description="In this state alone")] = None,
    living: Annotated[bool | None, Query(description="True: may still cost money; false: over")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Any:
    """The purchases, the latest first."""
    states = [one for one in State if state in (None, one) and living in (None, one not in FINAL)]
    before, of = read_cursor(cursor) or None, backend or None
    found = await services.purchases.list(None, before, limit + 1, states, of) if states else []
    shown = await _shown(services, found)
    return page(shown, limit, lambda one: one, lambda one: str(one["id"]))


@route.post("/purchases", may=Permission.CLOUDS, changes_rights=True, status_code=201, answer=PurchaseOut)
async def buy(services: Serving, principal: Asking, body: PurchaseBody) -> Any:
    """Buy a machine for a project. It joins as a host that takes no other project's work. 409: a cap is reached, or
    the provider has none now."""
    account_id = principal.account_id
    if body.account is not None:
        account_id = (await services.accounts.get(body.account)).account.id
    made = await services.purchases.buy(principal, body.backend, body.offer, account_id=account_id, hours=body.hours)
    return (await _shown(services, [made]))[0]


@route.get("/purchases/{purchase_id}", may=Permission.CLOUDS_READ, reach=Reach.ALL, answer=WholePurchaseOut)
async def purchase(services: Serving, purchase_id: str) -> Any:
    """One purchase, with the end of its machine's console where it never joined."""
    found = await services.purchases.get(purchase_id)
    return WholePurchaseOut.of(found, **(await _more(services, [found]))[0])


@route.post(
    "/purchases/{purchase_id}/end",
    may=Permission.CLOUDS,
    reach=Reach.ALL,
    repeat=Repeat.ALWAYS,
    answer=PurchaseOut,
)
async def end_purchase(services: Serving, principal: Asking, purchase_id: str, body: Given) -> Any:
    """End a purchase. What runs on its machine is ended with it; it is gone when the provider says so."""
    found = await services.purchases.end(principal, purchase_id, body.reason)
    return (await _shown(services, [found]))[0]


async def _shown(services: Services, found: Sequence[Purchase]) -> list[dict[str, Any]]:
    """These purchases with the names of their projects and what each has cost."""
    return [PurchaseOut.of(one, **more) for one, more in zip(found, await _more(services, found), strict=True)]


async def _more(services: Services, found: Sequence[Purchase]) -> list[dict[str, Any]]:
    """The fields of each purchase that stand in other places than its row."""
    if not found:
        return []

    def read(uow: UnitOfWork) -> list[dict[str, str | None]]:
        hosts = [None if one.host_id is None else find_host(uow, one.host_id) for one in found]
        works = {one: subjects.name_of(uow, one) for one in {each.for_id for each in found} if one}
        return [
            {
                "account": name_of(uow, one.account_id),
                "host": None if host is None else host.name,
                "for_name": works.get(one.for_id),
            }
            for one, host in zip(found, hosts, strict=True)
        ]

    names = await services.store.read(read)
    books = await services.purchases.totals([one.purchase_id for one in found])
    return [
        {**named, **_cost(services, one, books.get(one.purchase_id))} for one, named in zip(found, names, strict=True)
    ]


def _cost(services: Services, found: Purchase, book: Totals | None) -> dict[str, Any]:
    """The money of a purchase: by the book once it is over, until then what it has cost by now."""
    if found.is_living or book is None:
        return {"spent": money_text(services.purchases.cost_now(found)), "paid": None, "billed_seconds": None}
    return {"spent": money_text(book.spent), "paid": money_text(book.paid), "billed_seconds": book.billed_s}
