"""Placement's view of a fleet is made anew only where something has changed, and then always."""

from pathlib import Path

from tests.unit.clusters.world import HOST, OTHER, OWNER, market_world
from windrow_master.clusters.snapshot import Placer
from windrow_master.fleet.repository import SlotRepository
from windrow_master.fleet.states import AdminEvent, LinkEvent
from windrow_master.placement.model import Snapshot
from windrow_proto.units import MINUTE, Microcents


async def test_a_snapshot_after_any_change_is_as_one_that_was_never_made_before(tmp_path: Path):
    with market_world(tmp_path) as world:
        world.join(OTHER, gpus=2, runtimes=("docker",))
        kept, seen = Placer(world.fleet, world.market), [Snapshot((), False)]

        def look(what: str) -> None:
            for cpus in (1, 2):
                fresh = world.read(lambda uow, cpus=cpus: Placer(world.fleet, world.market).snapshot(uow, cpus))
                assert world.read(lambda uow, cpus=cpus: kept.snapshot(uow, cpus)) == fresh, what
            assert fresh != seen[-1], f"{what} shows"
            seen.append(fresh)

        look("the beginning")
        cluster_id, spec = await world.running(cpus=2, runtime="process")
        look("a cluster")
        await world.ended(cluster_id, spec, 2, 5)
        look("its end")
        tier = next(
            slot.tier
            for slot in world.read(lambda uow: uow[SlotRepository].of_host(OTHER))
            if slot.gpu_uuid is not None
        )
        await world.market.set_ask(OWNER, tier, Microcents(7_000_000), "test")
        look("another price")
        world.link(LinkEvent.SILENT, OTHER)
        look("a host that is silent")
        world.link(LinkEvent.HEARD, OTHER)
        look("and back")
        world.clock.advance(2 * MINUTE)
        look("and settled")
        world.decide(AdminEvent.DRAIN, HOST)
        look("a host that is drained")


def test_what_did_not_change_is_not_made_again(tmp_path: Path):
    with market_world(tmp_path) as world:
        world.join(OTHER)
        placer = Placer(world.fleet, world.market)
        first, second = (world.read(lambda uow: placer.snapshot(uow, 1)).candidates for _ in range(2))
        assert all(one is other for one, other in zip(first, second, strict=True))
        world.decide(AdminEvent.DRAIN, HOST)
        third = world.read(lambda uow: placer.snapshot(uow, 1)).candidates
        same = {one.host_id for one, other in zip(first, third, strict=True) if one is other}
        assert same == {OTHER}
