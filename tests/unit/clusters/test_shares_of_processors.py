"""Many machines on the processors of one host: as many as fit, and the one that does not is told why."""

from importlib import import_module

import pytest

from tests.unit.clusters.world import HOST, market_world
from windrow_master.clusters.needs import Refused
from windrow_master.market.classes import Wanted
from windrow_master.market.model import PriceUnit
from windrow_proto.model import CommandKind
from windrow_proto.units import GIB, Bytes

CPUS = 4
PROCESSORS = PriceUnit.PROCESSOR


@pytest.fixture
def m(tmp_path):
    with market_world(tmp_path) as made:
        yield made


def offered(m):
    return m.read(m.clusters._placer.offers)


def types(m, **wanted):
    return m.read(lambda uow: m.clusters._placer.classes(uow, Wanted(unit=PROCESSORS, **wanted)))


async def test_a_host_runs_a_machine_for_each_processor_and_the_next_hears_that_none_is_left(m):
    made = [await m.create() for _ in range(CPUS)]
    specs = [command.create for command in m.commands(CommandKind.CREATE)]
    assert sorted(spec.slots[0].slot_id for spec in specs) == [f"{HOST}/cpu/{number}" for number in range(CPUS)]
    assert {spec.cpu_milli for spec in specs} == {1000}
    assert len({one.cluster.cluster_id for one in made}) == CPUS
    with pytest.raises(Refused) as refused:
        await m.create()
    assert "too few CPUs (0 free, you ask for 1)" in str(refused.value.detail)


async def test_what_ends_makes_place_for_the_next_on_its_slot(m):
    first, spec = await m.running()
    for _ in range(CPUS - 1):
        await m.create()
    with pytest.raises(Refused):
        await m.create()
    await m.ended(first, spec, 2, 5)
    again = await m.create()
    (slot,) = again.workloads[0].slots
    assert (slot.slot_id, slot.token) == (spec.slots[0].slot_id, spec.slots[0].token + 1)
    assert set(m.slots()) == {f"{HOST}/cpu/{number}" for number in range(CPUS)}


async def test_memory_that_was_asked_for_is_nobody_elses(m):
    await m.create(memory_bytes=Bytes(12 * GIB))
    with pytest.raises(Refused, match="too little memory"):
        await m.create(memory_bytes=Bytes(5 * GIB))
    await m.create(memory_bytes=Bytes(4 * GIB))
    assert [one.free for one in offered(m)] == [0], "no memory is left, though two processors are"


async def test_offers_and_machine_types_promise_what_is_left_and_count_the_host_once(m):
    (whole,) = types(m)
    assert (whole.on_one_host, whole.free_on_one_host, whole.free, whole.total) == (CPUS, CPUS, 1, 1)
    held = [await m.create(cpus=1, memory_bytes=Bytes(6 * GIB)) for _ in range(2)]
    (part,) = types(m)
    assert (part.on_one_host, part.free_on_one_host, part.free, part.total) == (CPUS, 2, 1, 1)
    assert part.memory_bytes == 4 * GIB
    assert types(m, min_gpus=3, is_free=True) == ()
    (offer,) = offered(m)
    assert (offer.free, offer.total, offer.on_one_host, offer.free_on_one_host) == (1, 1, CPUS, 2)
    held.append(await m.create(cpus=2))
    (full,) = types(m)
    assert (full.free, full.total, full.host_id) == (0, 1, None)
    assert set(full.holders) == {one.cluster.cluster_id for one in held}


async def test_a_gpu_whose_host_has_no_processor_left_is_not_offered(m):
    m.join(HOST, gpus=1)
    assert sorted((one.unit, one.free) for one in offered(m)) == [("gpu", 1), ("processor", 1)]
    await m.create(cpus=CPUS)
    assert {one.free for one in offered(m)} == {0}


async def test_the_migration_finds_what_work_that_runs_has_of_its_host(m):
    m.join(HOST, gpus=2)
    await m.create(gpus=2, cpus=2, memory_bytes=Bytes(3 * GIB))
    await m.create(memory_bytes=Bytes(2 * GIB))
    sizes = "SELECT slot_id, cpus, memory_bytes FROM slots ORDER BY slot_id"
    held = import_module("windrow_master.store.migrations.0050_slot_sizes")._HELD

    def again(uow):
        run = uow.connection.exec_driver_sql
        before = run(sizes).all()
        run("UPDATE slots SET cpus = 0, memory_bytes = 0")
        for column in ("cpus", "memory_bytes"):
            run(held.format(column=column))
        return before, run(sizes).all()

    before, after = m.write(again)
    assert before == after
    assert sorted(cpus for _, cpus, _ in after) == [0, 0, 1, 2]
