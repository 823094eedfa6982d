"""A host that a resource is bound to takes as many clusters at once as the resource allows, and no stranger's where it
is dedicated."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from tests.support.wired import answers
from tests.unit.clusters.world import HOST, OTHER, STRANGER, Market, market_world, principal
from windrow_master.clusters.messages import HostLimits
from windrow_master.fleet.states import AdminEvent
from windrow_master.hybrid.model import ResourceStatus, declared_of
from windrow_master.hybrid.registry import ResourceRegistry, limits
from windrow_master.hybrid.repository import ResourceRepository
from windrow_master.hybrid.tables import resources
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Forbidden, NoCapacity
from windrow_proto.ids import ClusterId, HostId

RESERVES = 1_000
MOST = 3


@pytest.fixture
def market(tmp_path: Path) -> Iterator[Market]:
    with market_world(tmp_path) as world:
        world.join(OTHER, gpus=8, owner=STRANGER)
        answers(world.store, HostLimits, limits)
        yield world


async def bound(market: Market, host_id: HostId = OTHER, *, dedicated: bool = False) -> ResourceRegistry:
    registry, owner = ResourceRegistry(market.store), principal(STRANGER)
    said = {"resource_type": "on-premise", "capabilities": {"gpu_count": 8}, "max_parallel_jobs": MOST}
    await registry.register(owner, "lab", declared_of(said))
    await registry.bind(owner, "lab", host_id, dedicated=dedicated)
    return registry


async def test_reserves_at_once_never_pass_what_a_resource_runs_at_once_and_its_end_frees_it(market: Market) -> None:
    registry, who = await bound(market), principal(STRANGER)

    async def reserve(number: int) -> ClusterId | None:
        try:
            view = await market.create(who, f"key {number}", gpus=1, host_id=OTHER, runtime="process")
        except NoCapacity as refused:
            assert f"at the limit of its resource (max_parallel_jobs) ({MOST} of {MOST})" in str(refused)
            return None
        return view.cluster.cluster_id

    found = [one for one in await asyncio.gather(*map(reserve, range(RESERVES))) if one is not None]
    assert len(found) == MOST
    assert (await registry.get("lab")).status is ResourceStatus.BUSY
    for end in found:
        await market.clusters.delete(who, end)
    assert await reserve(-1) is None, "what is being deleted still holds its place"


async def test_a_dedicated_host_takes_its_owners_work_only(market: Market) -> None:
    await bound(market, dedicated=True)
    with pytest.raises(NoCapacity, match="dedicated to another account"):
        await market.create(principal(), gpus=1, host_id=OTHER, image="a", runtime="docker")
    assert (await market.create(principal(STRANGER), gpus=1, runtime="process")).workloads[0].host_id == OTHER


async def test_nobody_binds_somebody_elses_host_or_frees_a_dedicated_one(market: Market) -> None:
    with pytest.raises(Forbidden, match="belongs to another account, which alone can bind it"):
        await bound(market, HOST)
    registry, other = ResourceRegistry(market.store), principal()
    await registry.bind(principal(STRANGER), "lab", OTHER, dedicated=True)
    for host in (None, HOST, OTHER):
        with pytest.raises(Forbidden, match="dedicated to another account"):
            await registry.bind(other, "lab", host)
    with pytest.raises(Forbidden, match="alone can free it"):
        await registry.remove(other, "lab")
    assert (await registry.get("lab")).bound_host == OTHER
    for event in (AdminEvent.DRAIN, AdminEvent.RETIRE):
        market.decide(event, OTHER)
    await registry.remove(other, "lab")


async def test_a_host_that_is_shared_is_freed_by_every_operator(market: Market) -> None:
    registry = await bound(market)
    assert (await registry.bind(principal(), "lab", None)).bound_host is None


@pytest.mark.parametrize("status", ["maintenance", "unavailable"])
async def test_a_host_whose_resource_is_out_of_service_takes_no_new_work(market: Market, status: str) -> None:
    registry, who = await bound(market), principal(STRANGER)
    await registry.change(who, "lab", {"status": status})
    with pytest.raises(NoCapacity, match="its resource is out of service"):
        await market.create(who, gpus=1, host_id=OTHER, runtime="process")
    await registry.change(who, "lab", {"status": "available"})
    assert (await market.create(who, gpus=1, host_id=OTHER, runtime="process")).workloads[0].host_id == OTHER


async def test_a_resource_shows_what_its_host_has_and_has_free(market: Market) -> None:
    registry, who = await bound(market), principal(STRANGER)
    await market.create(who, gpus=2, host_id=OTHER, runtime="process")
    seen = (await registry.get("lab")).seen
    assert seen is not None and seen.gpus is not None and seen.cpus
    assert [*seen.gpus.values()] == [(8, 6)]


async def test_a_host_whose_resource_cannot_be_read_takes_no_work_and_keeps_no_other_from_it(market: Market) -> None:
    await bound(market)

    def spoil(uow: UnitOfWork) -> None:
        uow[ResourceRepository]._connection.execute(update(resources).values(declared=[]))

    await market.store.write(spoil, name="spoil")
    who = principal(STRANGER)
    with pytest.raises(NoCapacity, match="its resource is out of service, or cannot be read"):
        await market.create(who, gpus=1, host_id=OTHER, runtime="process")
    await market.create(who, host_id=HOST, runtime="docker", image="a")
