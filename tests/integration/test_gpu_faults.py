"""Ten faults of GPUs, made in the driver while everything runs: each changes its own slot and no other."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from tests.fake_nvml.build import FakeNvml
from tests.fake_nvml.build import fake_library as fake_library
from tests.fake_nvml.build import fake_nvml as fake_nvml
from tests.support.gpu_faults import FAULTS, SICK, heal
from tests.support.health_world import HealthWorld, watched_host
from tests.unit.watch.test_engine import NoChannels
from tests.waiting import poll_async
from windrow_agent.core import availability, inventory_pace
from windrow_agent.gpu import watch
from windrow_master.fleet.messages import SlotsLost
from windrow_master.watch.engine import silenced_until
from windrow_master.watch.model import OPERATORS, AlertMessage
from windrow_master.watch.repository import AlertRepository
from windrow_master.watch.rules import SAME_CARD_NS
from windrow_master.watch.service import AlertService
from windrow_proto.clock import SystemClock
from windrow_proto.conditions import Severity
from windrow_proto.units import MILLISECOND, SECOND

pytestmark = pytest.mark.proves("ten GPU faults from the driver to the right slot, on a fake driver")

DRIVER_GONE = 9
QUICK_NS = 300 * MILLISECOND
"""Between a fault's end and its reason's, and between two tries to open the driver, in tests of what comes back."""


def some(*short: str, slot: str | None = None) -> list[ParameterSet]:
    """The faults that leave a slot so (None: all): these in `make test`, the others in `make long`."""
    names = [name for name, fault in FAULTS.items() if slot in (None, fault.slot)]
    return [pytest.param(name, marks=() if name in short else pytest.mark.long) for name in names]


@pytest.fixture
async def world(fake_nvml: FakeNvml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HealthWorld]:
    monkeypatch.setattr(availability, "CLEAR_AFTER_NS", QUICK_NS)
    monkeypatch.setattr(watch, "REOPEN_AFTER_NS", QUICK_NS)
    async with watched_host(fake_nvml, tmp_path) as made:
        yield made


@pytest.mark.parametrize("name", some("gpu_lost", "xid_79", "hanging_driver", "driver_upgrade", "row_remap_pending"))
@pytest.mark.case("B-E14")
async def test_a_fault_changes_its_own_slot_at_once_and_nothing_else(world: HealthWorld, name: str):
    fault = FAULTS[name]
    before = await world.look()
    sick = {world.uuid(index) for index in (range(8) if fault.all_cards else (SICK,))}
    fault.inject(world.fake.state)
    after = await world.until(lambda seen: seen.slots != before.slots, f"a slot to change by {name}")
    code = fault.code if fault.all_cards else f"{fault.code}:{world.uuid(SICK)}"
    assert after.conditions == {code}
    assert {slot for slot, was in after.slots.items() if was != before.slots[slot]} == sick
    assert {after.slots[slot][0] for slot in sick} == {fault.slot}
    assert all(after.slots[slot][1] for slot in sick)
    assert (after.headline, after.link) == ("degraded", before.link)


async def told(world: HealthWorld, kind: str) -> tuple[str, Mapping[str, str]]:
    """The first event of this kind."""

    async def look() -> list[tuple[str, Mapping[str, str]]]:
        return await world.events(kind)

    return (await poll_async(look, what=kind))[0]


async def test_an_xid_that_programs_cause_is_the_tenants_and_its_slot_runs_on(world: HealthWorld):
    workload_id = await world.rent(SICK)
    before = await world.look()
    world.fake.state.xid(SICK, 13)
    text, fields = await told(world, "gpu.xid")
    assert fields == {"leased": "true", "workload": workload_id, "xid": "13", "blame": "tenant"}
    assert text.startswith("XID 13: a program's kernel failed")
    assert await world.look() == before
    assert before.slots[world.uuid(SICK)] == ("running", None)


async def test_the_same_xid_without_a_lease_is_recorded_and_put_down_to_nobody(world: HealthWorld):
    before = await world.look()
    world.fake.state.xid(SICK, 13)
    _, fields = await told(world, "gpu.xid")
    assert fields == {"leased": "false", "xid": "13", "blame": "nobody"}
    assert await world.look() == before


async def test_a_fault_of_the_host_under_a_lease_faults_the_slot_and_leaves_the_holder_to_be_told(world: HealthWorld):
    workload_id = await world.rent(SICK)
    lost: list[tuple[str, ...]] = []
    world.master.store.messages.on(SlotsLost, lambda uow, it: lost.append(it.slot_ids))
    world.fake.state.xid(SICK, 79)
    _, fields = await told(world, "gpu.xid")
    assert (fields["blame"], fields["workload"]) == ("host", workload_id)
    await world.until(lambda seen: seen.slots[world.uuid(SICK)][0] == "faulted", "the slot to be faulted")
    assert set(lost) == {(world.uuid(SICK),)}
    assert (await world.slot(SICK)).holder is not None


async def test_a_card_that_falls_off_its_bus_under_a_lease_is_one_page(world: HealthWorld):
    await world.rent(SICK)
    store, telemetry = world.master.store, SimpleNamespace(live=None, health=lambda: SimpleNamespace(lag_ns=0))
    watched: Any = SimpleNamespace(view=(), telemetry=telemetry, stated=list, backup_at_ns=lambda: None)
    alerts = AlertService(store, SystemClock(), watched, NoChannels(), silenced_until)
    await alerts.turn()  # what happened before is not told
    began_s = time.monotonic()
    world.fake.state.gpu(SICK).lost = 1
    world.fake.state.xid(SICK, 79)

    async def look() -> Sequence[AlertMessage]:
        await alerts.turn()
        return await store.read(lambda uow: uow[AlertRepository].inbox([OPERATORS], None, 10))

    (message,) = await poll_async(look, what="a message")
    print(f"XID 79 to the message: {time.monotonic() - began_s:.2f} s")
    await world.until(lambda seen: len(seen.conditions) == 2, "both of its faults")
    await asyncio.sleep(SAME_CARD_NS / SECOND)  # a second alert would be told by then
    assert await look() == [message]
    # The graver one, but on a machine that is too busy for the agent's next look at the card.
    assert message.rule in ("gpu.lost", "gpu.host_fault")
    assert (message.severity, message.subjects) == (Severity.PAGE, (f"box, GPU {SICK}",))
    assert f"H100 80GB HBM3, {world.uuid(SICK)[:12]}" in message.text


@pytest.mark.parametrize("name", some("row_remap_pending", slot="free"))
async def test_what_needs_no_second_look_comes_back_by_itself(world: HealthWorld, name: str):
    before = await world.look()
    FAULTS[name].inject(world.fake.state)
    await world.until(lambda seen: seen.slots != before.slots, f"a slot to change by {name}")
    heal(world.fake.state)
    # A card's facts come with the inventory, which may be a moment later than the word that its condition is over.
    await world.until(lambda seen: seen == before, "all to be as it was")


@pytest.mark.parametrize("name", some("gpu_lost", slot="faulted"))
async def test_what_was_faulted_waits_until_somebody_says_it_is_sound(world: HealthWorld, name: str):
    before, uuid = await world.look(), world.uuid(SICK)
    FAULTS[name].inject(world.fake.state)
    await world.until(lambda seen: seen.slots[uuid][0] == "faulted", f"the slot to be faulted by {name}")
    heal(world.fake.state)
    await world.verify("too early?")
    if FAULTS[name].code == "gpu.host_fault":  # it stands until the driver is opened anew, as after a reset
        assert (await world.look()).slots[uuid][0] == "faulted"
        world.fake.state.gpu(0).fault = world.fake.state.state.init_code = DRIVER_GONE
        await world.until(lambda seen: "gpu.no_driver" in seen.conditions, "the driver to be gone")
        heal(world.fake.state)
    after = await world.until(lambda seen: not seen.conditions, "the conditions to go")
    assert after.slots == {**before.slots, uuid: ("faulted", None)}
    await world.verify("it was looked at")
    assert await world.look() == before


async def test_a_flapping_card_is_told_at_once_then_seldom_and_in_the_end_as_it_is(
    world: HealthWorld, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(inventory_pace, "TELLING_EVERY_NS", 5 * SECOND)
    monkeypatch.setattr(inventory_pace, "TELLINGS_MAX", 2)
    before = await world.look()
    report = world.agent.report
    usual = report.conditions
    world.agent.parts.sampler.set_period(200 * MILLISECOND)
    had = await world.inventories()
    for _ in range(5):
        world.fake.state.gpu(SICK).remap_pending = 1
        await poll_async(lambda: report.conditions != usual, what="the condition to come")
        world.fake.state.gpu(SICK).remap_pending = 0
        await poll_async(lambda: report.conditions == usual, what="the condition to go")
    assert await world.inventories() - had < 5
    after = await world.until(lambda seen: not seen.conditions, "the condition to be over")
    assert after.slots == before.slots
    await poll_async(lambda: report.hash == report.told_hash, what="the last word to be told")
