"""The pretend Master's shop: its hosts by machine type, narrowed by the Master's own rules, and what was paid."""

import time
from typing import Annotated, Any

from fastapi import FastAPI, Query

from tests.browser.pretend_http import listed
from tests.browser.pretend_world import Json, World
from windrow_master.api.shop_routes import MachineClassOut, PaidDayOut
from windrow_master.market.classes import Known, PaidDay, Wanted, classes, with_end
from windrow_master.market.model import Ask, Listing
from windrow_master.market.offers import PriceBook
from windrow_proto.ids import AccountId, ClusterId, GpuUuid, HostId
from windrow_proto.metrics import GPU_MEMORY
from windrow_proto.model import Isolation
from windrow_proto.units import DAY, HOUR, Bytes, Microcents, parse_money


def shop_routes(app: FastAPI, world: World) -> None:
    """The list of machine types, and the prices paid of each tier."""

    @app.get("/api/v1/machine-classes")
    async def machine_classes(
        model: str = "",
        min_memory_bytes: int = 0,
        min_gpus: int = 1,
        min_price: str = "0",
        max_price: str | None = None,
        region: str | None = None,
        free: Annotated[bool, Query()] = False,
    ) -> Json:
        wanted = Wanted(
            model=model,
            min_memory_bytes=min_memory_bytes,
            min_gpus=min_gpus,
            min_price=parse_money(min_price),
            max_price=None if max_price is None else parse_money(max_price),
            region=region,
            is_free=free,
        )
        found = classes(_listings(world), _book(world), _known(world), wanted)
        ends = {ClusterId("cluster_of_somebody"): time.time_ns() + 3 * HOUR}
        return listed([MachineClassOut.of(with_end(row, ends)) for row in found])

    @app.get("/api/v1/machine-classes/paid")
    async def paid(tier: str) -> Json:
        if tier not in world.prices:
            return listed([])
        price, today = parse_money(world.prices[tier]), time.time_ns() // DAY
        days = [
            PaidDay((today - ago) * DAY, price, Microcents(price + 2_000_000 * ago), Microcents(price * 2), 3 + ago)
            for ago in (20, 9, 3, 0)
        ]
        return listed([PaidDayOut.of(day) for day in days])


def _book(world: World) -> PriceBook:
    return PriceBook([Ask(None, tier, parse_money(price), 0, "") for tier, price in world.prices.items()])


def _known(world: World) -> Known:
    gpus = [gpu["uuid"] for host in world.hosts.values() for gpu in host["gpus"]]
    return Known({HostId(one): 0.998 for one in world.hosts}, {GpuUuid(one): {GPU_MEMORY: 2.9e12} for one in gpus})


def _listings(world: World) -> list[Listing]:
    found = []
    for host in world.hosts.values():
        if host["link_state"] != "online":
            continue
        found += [_listing(host, world.gpu_rows[gpu["uuid"]]) for gpu in host["gpus"]] or [_listing(host, None)]
    return found


def _listing(host: Json, gpu: Json | None) -> Listing:
    is_free = gpu is None or gpu["slot_state"] == "free"
    about: dict[str, Any] = {"up_bps": 941_000_000, "down_bps": 938_000_000, "driver": host["driver_version"] or ""}
    if gpu is not None:
        about |= {"name": gpu["name"], "card": GpuUuid(gpu["uuid"]), "isolation": Isolation.WHOLE}
    return Listing(
        host_id=HostId(host["id"]),
        owner=AccountId("account_1"),
        tier=host["tier"],
        is_gpu=gpu is not None,
        is_free=is_free,
        simulated=host["simulated"],
        runtimes=tuple(host["runtimes"]),
        memory_bytes=Bytes(host["memory_bytes"] if gpu is None else gpu["memory_bytes"]),
        container_users=host["container_users"],
        cpus=host["cpu_count"] if gpu is None else 0,
        region=host["region"],
        is_verified=host["verify_state"] == "verified",
        cpus_free=host["cpu_count"] if gpu is None else 0,
        holders=() if is_free else (ClusterId("cluster_of_somebody"),),
        **about,
    )
