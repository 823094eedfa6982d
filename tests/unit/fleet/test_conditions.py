"""Conditions that a host reports: which slot each closes, whom the Master tells, and what ends it."""

from dataclasses import replace

import pytest

from tests.unit.fleet.world import GPU_1, GPU_2, HOST, world
from windrow_master.fleet.conditions import unavailable_reason
from windrow_master.fleet.model import Condition, SlotState
from windrow_master.fleet.repository import HostRepository
from windrow_proto.errors import Conflict
from windrow_proto.ids import ClusterId, SlotId, cpu_slot
from windrow_proto.messages import Heartbeat
from windrow_proto.model import Kind
from windrow_proto.units import SECOND
from windrow_proto.wire_host import encode_inventory


@pytest.fixture
def w(tmp_path):
    with world(tmp_path) as made:
        yield made


async def test_conditions_of_an_inventory_are_events_of_the_host_and_of_the_gpu_at_once(w):
    w.fleet.start()
    w.equip(GPU_1, GPU_2)
    await w.fleet.refresh()
    inventory = w.host().inventory
    assert inventory is not None
    sick = replace(inventory, conditions=(f"gpu.throttled:{GPU_1}",))
    await w.fleet.take([w.record(Kind.INVENTORY, encode_inventory(sick))])
    offered = {slot.slot_id: slot.is_offered for slot in w.fleet.entry(HOST).slots}
    assert (offered[GPU_1], offered[GPU_2]) == (False, True)
    await w.fleet.take([w.record(Kind.INVENTORY, encode_inventory(inventory))])
    assert all(slot.is_offered for slot in w.fleet.entry(HOST).slots)
    raised = ["condition.raised", "condition.cleared"]
    assert [kind for kind in reversed(w.events(GPU_1)) if kind in raised] == raised
    assert not set(w.events(GPU_2)) & set(raised)


async def test_an_inventory_does_not_end_what_the_master_itself_found(w):
    w.connect()
    w.fleet.presence.heard(HOST, Heartbeat(w.clock.wall_ns() - 60 * SECOND, 1, "", b"", ()))
    await w.fleet.tick()
    w.equip(GPU_1)
    assert [condition.code for condition in w.host().conditions] == ["clock.skew"]


@pytest.mark.parametrize("code", ["gpu.throttled", "gpu.mig_changed", "gpu.remap_pending", "gpu.foreign_use"])
def test_a_reason_of_one_gpu_leaves_what_runs_there_and_is_not_offered_again(w, code):
    w.equip(GPU_1, GPU_2)
    grants = w.write(lambda uow: w.fleet.grant(uow, [SlotId(GPU_1)], ClusterId("cluster_1"), "test", "rented"))
    w.write(lambda uow: w.fleet.slots_running(uow, grants, "test", "runs"))
    w.equip(GPU_1, GPU_2, conditions=(f"{code}:{GPU_1}",))
    slots = w.slots()
    assert (slots[SlotId(GPU_1)].state, slots[SlotId(GPU_2)].is_offered) == (SlotState.RUNNING, True)
    w.write(lambda uow: w.fleet.slots_released(uow, grants, "test", "gone"))
    assert (w.slots()[SlotId(GPU_1)].state, w.slots()[SlotId(GPU_1)].is_offered) == (SlotState.FREE, False)
    with pytest.raises(Conflict):
        w.write(lambda uow: w.fleet.grant(uow, [SlotId(GPU_1)], ClusterId("cluster_2"), "test", "rented"))


@pytest.mark.parametrize("code", ["challenge.running", "challenge.failed"])
def test_a_card_that_is_challenged_or_failed_is_not_offered_and_its_neighbour_is(w, code):
    w.equip(GPU_1, GPU_2)
    found = {f"{code}:{GPU_1}": "It failed its challenge."}
    w.write(lambda uow: w.fleet.hosts.challenged(uow, uow[HostRepository].get(HOST), found))
    slots = w.slots()
    assert slots[SlotId(GPU_1)].unavailable == "It failed its challenge."
    assert (slots[SlotId(GPU_1)].is_offered, slots[SlotId(GPU_2)].is_offered) == (False, True)
    with pytest.raises(Conflict):
        w.write(lambda uow: w.fleet.grant(uow, [SlotId(GPU_1)], ClusterId("cluster_1"), "test", "rented"))


async def test_an_agent_that_has_just_started_does_not_end_what_was_the_matter(w):
    def beat(inventory_hash: str, *codes: str) -> None:
        w.fleet.presence.heard(HOST, Heartbeat(w.clock.wall_ns(), 1, inventory_hash, b"", codes))

    async def written() -> tuple[set[str], bool]:
        await w.fleet.tick()
        return {one.code for one in w.host().conditions}, w.host().is_fenced

    w.connect()
    beat("")  # and before it is written down, the inventory comes
    w.equip(GPU_1, conditions=("docker.unfenced", "gpu.none"))
    assert await written() == ({"docker.unfenced", "gpu.none"}, False), "no stranger's container goes there meanwhile"
    beat("", "agent.disk_full")
    assert await written() == ({"docker.unfenced", "gpu.none", "agent.disk_full"}, False)
    beat("hash", "agent.disk_full")
    assert await written() == ({"agent.disk_full"}, True), "it has looked"


@pytest.mark.parametrize(
    ("code", "gpu", "neighbour", "processors"),
    [
        ("agent.disk_full", False, False, False),
        ("gpu.no_driver", False, False, True),
        (f"gpu.unavailable:index-{3}", False, False, True),
        (f"gpu.hot:{GPU_1}", False, True, True),
        ("gpu.hot", True, True, True),
        (f"gpu.duplicate_uuid:{GPU_1}", True, True, True),
        ("clock.skew", True, True, True),
        ("docker.unfenced", True, True, True),
        ("docker.no_gpus", True, True, True),
        ("docker.lost", True, True, True),
        (f"gpu.of_a_newer_agent:{GPU_1}", True, True, True),
        ("of_a_newer_agent", True, True, True),
    ],
)
def test_a_condition_withholds_what_its_row_says_and_an_unknown_one_is_shown_and_withholds_nothing(
    w, code, gpu, neighbour, processors
):
    w.equip(GPU_1, GPU_2, conditions=(code,))
    offered = {slot_id: slot.is_offered for slot_id, slot in w.slots().items()}
    assert [one.code for one in w.host().conditions] == [code]
    assert (offered[SlotId(GPU_1)], offered[SlotId(GPU_2)], offered[cpu_slot(HOST, 0)]) == (gpu, neighbour, processors)


@pytest.mark.parametrize(
    ("code", "subject", "withheld"),
    [
        ("claim.of_another_master", GPU_1, True),
        ("claim.of_another_master", "", True),
        ("claim.of_another_master", GPU_2, False),
        ("challenge.of_another_master", GPU_1, True),
        ("challenge.of_another_master", "", False),
        ("disputed.of_another_master", GPU_1, False),
        ("challenge.apart", "", False),
        ("claim.driver", "", True),
    ],
)
def test_what_a_master_of_another_version_found_stands_until_the_next_inventory(code, subject, withheld):
    found = [Condition(f"{code}:{subject}" if subject else code, "words", 1)]
    assert (unavailable_reason(GPU_1, found) is not None) is withheld
    assert unavailable_reason(None, found) is None, "a share of the processors is no GPU"
