"""Routes of the shop: the machine classes that can be rented, narrowed as a renter asks, and what was paid for them."""

from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field

from windrow_master.api import answers
from windrow_master.api.answers import Isolated, Money, Out, Read, Time
from windrow_master.api.bodies import money_of
from windrow_master.api.deps import Serving
from windrow_master.api.market_routes import TIER_FORM, Currency
from windrow_master.api.paging import Cursor, Limit, page_of
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_master.market.classes import MachineClass, Wanted
from windrow_master.market.model import PriceUnit
from windrow_proto.units import DAY, Bytes, time_text

route = Routes("shop")

Least = Annotated[int, Query(ge=0, lt=2**63)]
Ratio = Annotated[float, Query(ge=0, le=1)]
GivenPrice = Annotated[str | None, Query(max_length=30, description="Of one GPU, or processor, per hour")]


class PriceLevelOut(Out):
    """How many GPUs of a machine class have one price."""

    price_per_hour: Money
    free: int
    total: int


class MachineClassOut(Out):
    """What hosts that are alike offer: of one tier, so many GPUs on each, in one region. Only what fits the request is
    counted."""

    tier: str
    unit: Annotated[str, Field(description="Of the price: gpu or processor")]
    simulated: bool
    name: Annotated[str | None, Field(description="Of the GPU, as its driver says it")]
    region: str | None
    on_one_host: Annotated[int, Field(description="GPUs, or processors, of each host")]
    free_on_one_host: Annotated[int, Field(description="The most that a single host has free")]
    free: Annotated[int, Field(description="GPUs or slices; of processors hosts that have some free")]
    total: Annotated[int, Field(description="The same, free or not")]
    hosts: int
    verified_hosts: Annotated[int, Field(description="Hosts whose hardware was checked by the Master")]
    price_per_hour: Annotated[Money, Field(description="The lowest of what is free, or of all where nothing is")]
    prices: Annotated[list[PriceLevelOut], Field(description="The lowest first")]
    currency: Currency
    memory_bytes: Annotated[int | None, Field(description="Of one GPU, or of a host; the least")]
    isolation: Isolated
    runtimes: list[str]
    container_users: Literal["own", "host"] | None
    drivers: Annotated[list[str], Field(description="Versions of the driver, the oldest first")]
    reliability: Annotated[float | None, Field(description="The least of its hosts, 0 to 1; null: too little was seen")]
    up_bps: Annotated[int | None, Field(description="Bits a second that each host was measured to send, the least")]
    down_bps: int | None
    memory_bytes_per_s: Annotated[float | None, Field(description="Measured by test rentals: the median GPU")]
    matrix_operations_per_s: Annotated[float | None, Field(description="Of 32-bit integers; measured likewise")]
    host_id: Annotated[str | None, Field(description="The cheapest host that has enough free now; null: none has")]
    ends_at: Annotated[
        Time | None,
        Field(description="Where nothing is free: when the first lease with a set end ends; its renter can move it"),
    ]


class PaidDayOut(Out):
    """The prices at which rentals of a tier began on one UTC day, of one GPU per hour."""

    day: Annotated[str, Read(lambda one: time_text(one.day_at_ns)[:10])]
    lowest: Money
    median: Annotated[Money, Field(description="The lower one")]
    highest: Money
    rentals: int


def _key(row: MachineClass) -> str:
    return f"{row.simulated:d} {row.tier} {row.on_one_host:06} {row.region}"


@route.get("/machine-classes", may=Permission.MARKET_READ, answer=answers.Page[MachineClassOut])
async def machine_classes(
    services: Serving,
    unit: PriceUnit | None = None,
    simulated: bool | None = None,
    model: Annotated[str, Query(max_length=64, description="Words of the tier or of the GPU's name: `h100`")] = "",
    min_memory_bytes: Least = 0,
    min_gpus: Annotated[int, Query(ge=1, le=1024, description="On one host; of processors so many of these")] = 1,
    min_price: GivenPrice = None,
    max_price: GivenPrice = None,
    region: Annotated[str | None, Query(max_length=128)] = None,
    min_reliability: Ratio = 0.0,
    min_up_bps: Least = 0,
    min_down_bps: Least = 0,
    driver: Annotated[str, Query(max_length=32, pattern=r"^[0-9.]*$", description="This version or a newer one")] = "",
    verified: Annotated[bool, Query(description="Only hosts whose hardware was checked")] = False,
    free: Annotated[bool, Query(description="Only where one host has `min_gpus` free now")] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Any:
    """What can be rented now, or is rented, by machine class. Where a fact is not known, a bound on it is not kept."""
    wanted = Wanted(
        unit=unit,
        is_simulated=simulated,
        model=model,
        min_memory_bytes=Bytes(min_memory_bytes),
        min_gpus=min_gpus,
        min_price=money_of("min_price", min_price or "0"),
        max_price=None if max_price is None else money_of("max_price", max_price),
        region=region,
        min_reliability=min_reliability,
        min_up_bps=min_up_bps,
        min_down_bps=min_down_bps,
        driver=driver,
        is_verified=verified,
        is_free=free,
    )
    found = await services.clusters.machine_classes(wanted)
    return page_of(sorted(found, key=_key), limit, cursor, MachineClassOut.of, _key)


@route.get("/machine-classes/paid", may=Permission.MARKET_READ, answer=answers.Page[PaidDayOut])
async def paid(
    services: Serving,
    tier: Annotated[str, Query(max_length=64, pattern=TIER_FORM)],
    simulated: bool = False,
    days: Annotated[int, Query(ge=1, le=92)] = 30,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Any:
    """The prices at which rentals of a tier of GPUs began, by day, the oldest first; days without any are left out."""
    since_ns = (services.clock.wall_ns() // DAY - days + 1) * DAY
    found = await services.market.paid(tier, simulated, since_ns)
    return page_of(found, limit, cursor, PaidDayOut.of, lambda one: str(one.day_at_ns))
