"""A card cut, rented in parts and given back: Master, Access and agent over the real nvidia-ml-py and a fake driver."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from tests.fake_nvml.build import FakeNvml
from tests.fake_nvml.build import fake_library as fake_library
from tests.fake_nvml.build import fake_nvml as fake_nvml
from tests.support.agent_world import HOST
from tests.support.health_world import OWNER, HealthWorld, watched_host
from tests.waiting import poll_async
from windrow_agent.core.layout import parse_layouts
from windrow_agent.workloads import lease_exit_check
from windrow_master.fleet.model import CommandRow
from windrow_master.fleet.repository import CommandRepository, SlotRepository
from windrow_master.fleet.slices import CUT
from windrow_master.fleet.states import AdminEvent, CommandState
from windrow_proto.errors import Conflict
from windrow_proto.ids import CommandId, SlotId, WorkloadId
from windrow_proto.model import Command, CommandKind, DeleteSpec, Isolation
from windrow_proto.units import SECOND

pytestmark = pytest.mark.proves("a card cut into MIG slices on the Master's word and rented in parts, on a fake driver")

CARD = 2
LAYOUT = ("3g.40gb", "2g.20gb")


@pytest.fixture
async def world(fake_nvml: FakeNvml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HealthWorld]:
    monkeypatch.setattr(lease_exit_check, "FREE_WITHIN_NS", SECOND)
    async with watched_host(fake_nvml, tmp_path, parse_layouts([f"{CARD}={','.join(LAYOUT)}"])) as made:
        yield made


async def decide(world: HealthWorld, event: AdminEvent) -> None:
    await world.master.fleet.decide(HOST, event, "account/account_1", "test")


async def cut(world: HealthWorld, whole: bool = False) -> tuple[CommandState, str]:
    """Ask for it; what became of the command, and why."""
    cuts, uuid = world.master.fleet.cuts, world.uuid(CARD)
    operation = await world.master.store.write(
        lambda uow: cuts.ask(uow, HOST, uuid, whole, OWNER, "account/account_1"), name="cut"
    )

    found: list[CommandRow] = []

    async def done() -> bool:
        row = await world.master.store.read(lambda uow: uow[CommandRepository].get(CommandId(operation.subject)))
        assert row is not None
        found[:] = [row]
        return row.is_done

    await poll_async(done, what="the command to end")
    return found[0].state, found[0].error_detail


async def slices(world: HealthWorld) -> dict[str, SlotId]:
    """The slots of the card's slices by profile, once they are on offer."""
    await world.until(
        lambda seen: [s for slot, s in seen.slots.items() if slot.startswith("MIG-")] == [("free", None)] * 2,
        "two slices on offer",
    )
    slots = await world.master.store.read(lambda uow: uow[SlotRepository].of_host(HOST))
    assert {slot.isolation for slot in slots if slot.profile} == {Isolation.MIG}
    return {slot.profile: slot.slot_id for slot in slots if slot.profile}


async def test_a_drained_card_is_cut_offered_in_parts_and_made_whole_again(world: HealthWorld):
    with pytest.raises(Conflict, match="Drain the host first"):
        await cut(world)
    await decide(world, AdminEvent.DRAIN)
    assert await cut(world) == (CommandState.SUCCEEDED, "")
    assert world.fake.state.profiles(CARD) == list(LAYOUT)
    assert set(await slices(world)) == set(LAYOUT)
    seen = await world.look()
    assert seen.slots[SlotId(world.uuid(CARD))] == ("free", CUT)
    assert not seen.conditions, "a change that was asked for is no fault"
    assert [seen.slots[SlotId(world.uuid(n))] for n in range(8) if n != CARD] == [("free", None)] * 7
    assert await cut(world, whole=True) == (CommandState.SUCCEEDED, "")
    seen = await world.until(lambda seen: seen.slots[SlotId(world.uuid(CARD))] == ("free", None), "a whole card")
    assert {words for slot, (_, words) in seen.slots.items() if slot.startswith("MIG-")} == {
        "the host no longer reports this GPU"
    }


async def test_what_the_driver_refuses_comes_back_in_words_and_the_card_stays_on_offer(world: HealthWorld):
    world.fake.state.gpu(CARD).mig_denied = 1
    await decide(world, AdminEvent.DRAIN)
    state, why = await cut(world)
    assert state is CommandState.FAILED
    assert "only root" in why
    assert (await world.look()).slots[SlotId(world.uuid(CARD))] == ("free", None)


async def test_a_slice_is_rented_alone_and_a_stain_on_it_faults_it_and_no_other(world: HealthWorld):
    await decide(world, AdminEvent.DRAIN)
    await cut(world)
    parts = await slices(world)
    await decide(world, AdminEvent.ACTIVATE)
    big, small = parts["3g.40gb"], parts["2g.20gb"]
    work = await world.rent(CARD, small)
    assert world.agent.workloads.leased_gpus() == {small: work}
    with pytest.raises(Conflict, match="cut into slices"):
        await world.rent(CARD)
    world.fake.state.gpu(CARD).slices[1].memory_used = 2 << 30
    await decide(world, AdminEvent.DRAIN)
    with pytest.raises(Conflict, match="still in use"):
        await cut(world)
    await end(world, work, small)
    found = world.agent.workloads.observed()[-1]
    assert found.faults == {small: "2048 MiB of its memory are still in use"}
    assert (await world.look()).slots[big] == ("free", None)


async def is_cut(world: HealthWorld) -> tuple[SlotId, SlotId]:
    """The card cut and on offer: the slots of its first slice and of its second."""
    await decide(world, AdminEvent.DRAIN)
    await cut(world)
    parts = await slices(world)
    await decide(world, AdminEvent.ACTIVATE)
    return parts[LAYOUT[0]], parts[LAYOUT[1]]


async def test_a_fault_in_a_slice_faults_it_and_no_neighbour(world: HealthWorld):
    first, second = await is_cut(world)
    before = await world.look()
    world.fake.state.xid(CARD, 94, 1)
    after = await world.until(lambda seen: seen.slots != before.slots, "a slot to change")
    assert after.conditions == {f"gpu.host_fault:{second}"}
    assert {slot for slot, was in after.slots.items() if was != before.slots[slot]} == {second}
    assert (after.slots[second][0], after.slots[first]) == ("faulted", ("free", None))
    ((text, fields),) = await world.events("gpu.xid")
    assert (fields["slice"], fields["blame"]) == (second, "host")
    assert text.startswith("XID 94: ")
    await decide(world, AdminEvent.ACTIVATE)
    assert (await world.look()).slots[second][0] == "faulted", "it stands until the driver is opened anew"


async def test_a_fault_that_left_its_slice_faults_the_whole_card(world: HealthWorld):
    parts = await is_cut(world)
    world.fake.state.xid(CARD, 95, 1)
    after = await world.until(lambda seen: bool(seen.conditions), "a condition")
    assert after.conditions == {f"gpu.host_fault:{world.uuid(CARD)}"}
    assert {after.slots[part][0] for part in parts} == {"faulted"}


async def test_what_a_program_does_in_its_slice_is_put_down_to_its_tenant_and_not_to_the_neighbour(world: HealthWorld):
    first, second = await is_cut(world)
    mine, _ = await world.rent(CARD, second), await world.rent(CARD, first)
    before = await world.look()
    world.fake.state.xid(CARD, 13, 1)

    async def told() -> list[tuple[str, Mapping[str, str]]]:
        return await world.events("gpu.xid")

    ((_, fields),) = await poll_async(told, what="the event")
    assert fields == {"leased": "true", "workload": mine, "xid": "13", "blame": "tenant", "slice": second}
    assert await world.look() == before


async def end(world: HealthWorld, work: WorkloadId, slot_id: SlotId) -> None:
    fleet = world.master.fleet

    def delete(uow) -> CommandId:
        grants = (uow[SlotRepository].get(slot_id).as_grant(),)
        spec = DeleteSpec(work, grants, 0)
        return fleet.issue(uow, HOST, Command(CommandId(""), CommandKind.DELETE, delete=spec))

    command_id = await world.master.store.write(delete, name="end")

    async def done() -> bool:
        row = await world.master.store.read(lambda uow: uow[CommandRepository].get(command_id))
        return row is not None and row.is_done

    await poll_async(done, what="the workload to be gone")
