"""A host's record is kept: slots, faults and broken leases, each once; what the Master missed counts for nobody."""

import pytest

from tests.unit.fleet.world import GPU_1, HOST, world
from windrow_master.fleet import mishaps
from windrow_master.fleet.liveness import Breaker
from windrow_master.fleet.model import HostRecord, Mishap
from windrow_master.fleet.reliability import ENOUGH, SLOT_NS, Record
from windrow_master.fleet.reliability_counts import ReliabilityCounts
from windrow_master.fleet.reliability_repository import ReliabilityRepository
from windrow_master.fleet.states import AdminEvent
from windrow_proto.ids import ClusterId, SlotId
from windrow_proto.units import SECOND


@pytest.fixture
def w(tmp_path):
    with world(tmp_path) as made:
        yield made


async def pass_slots(w, count, *, is_there=True):
    """Slots of five minutes, with heartbeats or without."""
    for _ in range(count):
        for _ in range(SLOT_NS // (10 * SECOND)):
            w.clock.advance(10 * SECOND)
            if is_there:
                w.beat()
            await w.fleet.tick()


async def come(w):
    w.fleet.start()
    w.connect()
    w.equip(GPU_1)
    w.beat()
    await w.fleet.tick()


def held(w) -> HostRecord:
    found = w.read(lambda uow: uow[ReliabilityRepository].get(HOST))
    assert found is not None
    return found


def weights(w):
    record = held(w).record
    return [round(one, 1) for one in (record.good, record.bad, record.faults, record.aborts)]


async def test_slots_in_which_a_host_was_there_are_good_from_the_second_after_the_masters_start(w):
    await come(w)
    await pass_slots(w, 2)
    assert weights(w) == [1.0, 0, 0, 0]
    await pass_slots(w, 2)
    assert weights(w) == [3.0, 0, 0, 0]


async def test_a_slot_with_silence_in_it_is_bad_and_a_leased_one_weighs_four(w):
    await come(w)
    await pass_slots(w, 2)
    w.write(lambda uow: w.fleet.grant(uow, [SlotId(GPU_1)], ClusterId("cluster_1"), "test", "rented"))
    await w.fleet.refresh()
    await pass_slots(w, 1)
    assert weights(w) == [5.0, 0, 0, 0]
    await pass_slots(w, 1, is_there=False)
    assert weights(w) == [5.0, 4.0, 0, 1.0], "and the lease was broken off"
    await pass_slots(w, 1)
    assert weights(w)[1] == 8.0, "it came back in the middle of it"


async def test_what_a_new_master_did_not_see_and_what_all_missed_at_once_is_not_counted(w):
    await come(w)
    await pass_slots(w, 3)
    before = weights(w)
    w.fleet.reliability = ReliabilityCounts(w.fleet.hosts)
    w.fleet.presence.breaker = Breaker()
    await pass_slots(w, 2, is_there=False)
    assert weights(w) == before
    w.fleet.presence.breaker = Breaker(frozen_until_ns=w.clock.monotonic_ns() + 10 * SLOT_NS)
    await pass_slots(w, 2, is_there=False)
    assert weights(w) == before


async def test_a_host_on_leave_is_neither_there_nor_missed(w):
    await come(w)
    await pass_slots(w, 3)
    before = weights(w)
    await w.fleet.decide(HOST, AdminEvent.DRAIN, "test", "cleaning")
    await pass_slots(w, 2, is_there=False)
    assert weights(w) == before


async def test_a_fault_is_counted_once_also_by_the_next_master(w):
    await come(w)
    await pass_slots(w, 2)
    w.equip(GPU_1, conditions=(f"gpu.host_fault:{GPU_1}",))
    await pass_slots(w, 1)
    assert weights(w)[2] == 1.0
    w.fleet.reliability = ReliabilityCounts(w.fleet.hosts)
    await pass_slots(w, 3)
    assert weights(w)[2] == 1.0


async def test_the_figure_counts_in_the_tier_once_it_is_known(w):
    await come(w)
    slot = w.slots()[SlotId(GPU_1)]
    assert "reliability: not measured yet" in slot.tier_reasons
    now_ns = w.clock.wall_ns()
    known = HostRecord(HOST, now_ns, Record(now_ns, good=ENOUGH, bad=30.0), None, 10**9)
    w.write(lambda uow: uow[ReliabilityRepository].put(known))
    await pass_slots(w, 2)
    figure = held(w).figure
    assert figure is not None and figure < 0.9
    assert f"C: reliability: {figure:.3f}" in w.slots()[SlotId(GPU_1)].tier_reasons


@pytest.mark.parametrize(
    ("kind", "fields", "faults", "aborts"),
    [
        ("condition.raised", {"code": f"gpu.host_fault:{GPU_1}"}, 1, 0),
        ("condition.raised", {"code": f"gpu.hot:{GPU_1}"}, 0, 0),
        ("command.done", {"kind": "create", "error": "disk_full"}, 1, 0),
        ("command.done", {"kind": "create", "error": "image_unavailable"}, 0, 0),
        ("command.done", {"kind": "measure", "error": "disk_full"}, 0, 0),
        ("workload.lost", {}, 0, 1),
        ("host.lost", {"held": "2"}, 0, 1),
        ("host.lost", {"held": "0"}, 0, 0),
        ("host.lost", {}, 0, 0),
    ],
)
def test_what_is_the_hosts_own_counts_against_it_and_nothing_else(kind, fields, faults, aborts):
    after = mishaps.after_mishaps(Record(0), [Mishap(HOST, kind, "master", fields)], 0)
    assert (after.faults, after.aborts) == (faults, aborts)
    assert kind in mishaps.KINDS
