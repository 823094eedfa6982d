"""Routes of the price book: what GPU machines cost at other providers, and how old each price is."""

from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field

from windrow_master.api import answers
from windrow_master.api.answers import Money, Out, Read, Written
from windrow_master.api.deps import Serving
from windrow_master.api.paging import Cursor, Limit, page_of
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_master.prices.book import Listed, cheapest
from windrow_master.prices.offers import Kind
from windrow_proto.units import SECOND

route = Routes("prices")

Day = Annotated[str, Written(date.isoformat)]


def _expires(listed: Listed) -> date | None:
    source = listed.offer.source
    return source.read_on and source.read_on + timedelta(days=source.days_to_live)


class PriceOut(Out):
    """A machine at another provider: its price in US dollars, and whether that is still believed."""

    id: Annotated[str, Read("offer.key")]
    provider: Annotated[str, Read("offer.provider.name")]
    company: Annotated[str, Read("offer.provider.company")]
    seat: Annotated[str, Read("offer.provider.seat"), Field(description="Country of the company, ISO 3166-1")]
    offer: Annotated[str, Read("offer.name")]
    gpu: Annotated[str, Read("offer.gpu"), Field(description="Model class as in a tier, or `cpu`")]
    gpu_count: Annotated[int, Read("offer.gpu_count")]
    vcpu: Annotated[float | None, Read("offer.vcpu")]
    memory_gib: Annotated[float | None, Read("offer.memory_gib")]
    disk_gb: Annotated[int | None, Read("offer.disk_gb")]
    region: Annotated[str | None, Read("offer.region")]
    zone: Annotated[str | None, Read("offer.zone")]
    country: Annotated[str | None, Read("offer.country"), Field(description="Of the data centre, ISO 3166-1")]
    kind: Annotated[Literal["on-demand", "spot", "reserved", "block"], Read("offer.kind")]
    price_per_hour: Annotated[Money, Read("offer.per_hour"), Field(description="Of the whole machine")]
    price_per_gpu_hour: Annotated[Money, Read("offer.per_gpu_hour"), Field(description="Of a vCPU where it has no GPU")]
    currency: Annotated[str, Read(lambda _: "USD")]
    billed_in: Annotated[str, Read("offer.provider.billed_in"), Field(description="Currency of the provider's bill")]
    tax: Annotated[
        Literal["included", "excluded"] | None, Read("offer.provider.tax"), Field(description="Null: unknown")
    ]
    granularity_seconds: Annotated[int, Read("offer.provider.granularity_s"), Field(description="Step of the bill")]
    minimum_seconds: Annotated[int, Read("offer.provider.minimum_s"), Field(description="The shortest use billed")]
    billing_source: Annotated[
        str | None,
        Read("offer.provider.billing_source"),
        Field(description="Where step and minimum were read; null: not known, an hour is assumed"),
    ]
    egress_per_gb: Annotated[
        Money | None,
        Read("offer.provider.egress_per_gb"),
        Field(description="Of 10**9 bytes that leave the provider for the internet; null: not known"),
    ]
    egress_source: Annotated[str | None, Read("offer.provider.egress_source")]
    source: Annotated[str, Read("offer.source.title")]
    as_of: Annotated[Day | None, Read("offer.source.read_on"), Field(description="Null: of an unknown date")]
    expires: Annotated[Day | None, Read(_expires), Field(description="The last day on which it is believed")]
    state: Literal["current", "expired", "quarantined"]
    reason: Annotated[str | None, Field(description="Why it is not current")]


@route.get("/prices", may=Permission.MARKET_READ, answer=answers.Page[PriceOut])
async def prices(
    services: Serving,
    query: Annotated[
        str, Query(max_length=200, description="Words that class, provider, offer, place or kind have; empty: all")
    ] = "",
    kind: Annotated[Literal["on-demand", "spot", "reserved", "block"] | None, Query()] = None,
    compare: Annotated[
        bool, Query(description="Only the cheapest of each provider and kind for each GPU, by GPU")
    ] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Any:
    """Published prices of machines at other providers, the cheapest per GPU first. Work is sent by none that is
    expired or quarantined."""
    today = datetime.fromtimestamp(services.clock.wall_ns() // SECOND, UTC).date()
    found = services.price_book.find(today, query, kind=kind and Kind(kind))
    return page_of(cheapest(found) if compare else found, limit, cursor, PriceOut.of, lambda one: one.offer.key)
