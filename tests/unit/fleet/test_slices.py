"""Slices of a card are slots of their own: never beside the whole, never more than it, and only as its owner allows."""

from dataclasses import replace

import pytest

from tests.support.personas import card
from tests.unit.fleet.world import GPU_1, GPU_2, HOST, OTHER, OWNER, h100, world
from windrow_master.fleet.repository import CommandRepository
from windrow_master.fleet.slices import BARE, CUT, SHARED, TOO_MUCH, UNSHARED, share_milli, sliced_tier
from windrow_master.fleet.states import AdminEvent, SlotState
from windrow_proto.errors import Conflict
from windrow_proto.ids import ClusterId, GpuUuid, SlotId
from windrow_proto.model import CommandKind, GpuSlice, Isolation, PartitionSpec
from windrow_proto.units import MIB
from windrow_proto.wire_command import decode_command

A = ClusterId("cluster_a")
G1, G2 = SlotId(GPU_1), SlotId(GPU_2)
SIZES = {
    "1g.10gb": (1, 9984),
    "2g.20gb": (2, 20096),
    "3g.40gb": (3, 40448),
    "4g.40gb": (4, 40448),
    "7g.80gb": (7, 81152),
}


def cut(*profiles, uuid=GPU_1, index=0, **facts):
    parts = tuple(
        GpuSlice(GpuUuid(f"MIG-{uuid[4:]}-{at}"), one, Isolation.MIG, SIZES[one][1] * MIB, SIZES[one][0])
        for at, one in enumerate(profiles)
    )
    made = replace(h100(uuid, index), mig_enabled=True, slices=parts, more={"mig_devices_max": 7})
    return replace(made, **facts)


@pytest.fixture
def w(tmp_path):
    with world(tmp_path) as made:
        yield made


def grant(w, slot_id):
    return w.write(lambda uow: w.fleet.grant(uow, [slot_id], A, "account/1", "test"))


def parts_of(w):
    return {slot.profile: slot for slot in w.slots().values() if slot.kind == "slice"}


def test_a_cut_card_is_offered_in_parts_and_not_as_a_whole_and_its_neighbour_is_whole(w):
    w.claim(cut("3g.40gb", "2g.20gb"), h100(GPU_2, 1))
    slots, parts = w.slots(), parts_of(w)
    assert (slots[G1].is_offered, slots[G1].unavailable) == (False, CUT)
    assert (slots[G2].is_offered, slots[G2].isolation) == (True, Isolation.WHOLE)
    assert {(one.isolation, one.card, one.is_offered) for one in parts.values()} == {(Isolation.MIG, GPU_1, True)}
    assert [parts[p].tier for p in ("3g.40gb", "2g.20gb")] == ["h100:3g.40gb/C", "h100:2g.20gb/C"]
    assert [parts[p].share_milli for p in ("3g.40gb", "2g.20gb")] == [462, 266]


def test_a_slice_is_granted_with_its_isolation_and_the_whole_card_is_not(w):
    w.claim(cut("3g.40gb", "2g.20gb"))
    with pytest.raises(Conflict, match="cut into slices"):
        grant(w, G1)
    part = parts_of(w)["2g.20gb"]
    (given,) = grant(w, part.slot_id)
    assert (given.gpu_uuid, given.isolation) == (part.gpu_uuid, Isolation.MIG)
    assert parts_of(w)["3g.40gb"].is_offered


def shared(*percents, **facts):
    whole = h100(GPU_1, 0)
    parts = tuple(
        GpuSlice(GpuUuid(f"MPS-x-{at}"), f"mps.{one}", Isolation.MPS, whole.memory_bytes * one // 100, one)
        for at, one in enumerate(percents)
    )
    return replace(whole, **{"slices": parts, **facts})


def test_a_card_shared_by_mps_is_offered_in_parts_that_say_so_and_not_as_a_whole(w):
    w.claim(shared(50, 25, 25), h100(GPU_2, 1))
    slots, parts = w.slots(), [slot for slot in w.slots().values() if slot.kind == "slice"]
    assert (slots[G1].is_offered, slots[G1].unavailable) == (False, SHARED)
    assert slots[G2].is_offered
    assert {(one.isolation, one.card, one.is_offered) for one in parts} == {(Isolation.MPS, GPU_1, True)}
    assert sorted((one.share_milli for one in parts), reverse=True) == [500, 250, 250]
    assert {one.tier for one in parts} == {"h100:mps.50/C", "h100:mps.25/C"}
    (given,) = grant(w, parts[0].slot_id)
    assert given.isolation is Isolation.MPS


@pytest.mark.parametrize("gpu", [shared(60, 50), shared(50, mig_enabled=True)], ids=["more than the card", "cut"])
def test_parts_by_mps_that_cannot_be_are_not_offered(w, gpu):
    w.claim(gpu)
    assert not [slot for slot in w.slots().values() if slot.kind == "slice" and slot.is_offered]


def test_a_part_by_mps_cannot_call_itself_something_better(w):
    (part, *_) = shared(50).slices
    better = [replace(part, isolation=one) for one in (Isolation.MIG, Isolation.WHOLE, Isolation.UNSPECIFIED)]
    w.claim(shared(50, slices=tuple(better)))
    assert not [slot for slot in w.slots().values() if slot.kind == "slice"]


def test_a_card_that_is_whole_again_takes_its_slices_off_the_market(w):
    w.claim(cut("3g.40gb", "2g.20gb"))
    w.claim(h100(GPU_1, 0))
    assert w.slots()[G1].is_offered
    assert {one.unavailable for one in parts_of(w).values()} == {"the host no longer reports this GPU"}
    w.claim(cut("3g.40gb", "2g.20gb"))
    assert all(one.is_offered for one in parts_of(w).values())


@pytest.mark.parametrize(
    ("gpu", "why"),
    [
        (cut("7g.80gb", "1g.10gb"), TOO_MUCH),
        (cut("1g.10gb", more={}), UNSHARED),
        (cut("1g.10gb", memory_bytes=None), UNSHARED),
        (cut("1g.10gb", mig_enabled=False), UNSHARED),
    ],
)
def test_slices_that_claim_more_than_their_card_or_not_enough_are_not_offered(w, gpu, why):
    w.claim(gpu)
    assert {one.unavailable for one in parts_of(w).values()} == {why}


def test_a_fault_of_a_slice_is_its_own_until_it_is_found_sound_and_that_of_a_card_is_all_its_slices(w):
    gpu = cut("3g.40gb", "2g.20gb")
    sick, sound = (SlotId(part.uuid) for part in gpu.slices)
    w.claim(gpu, h100(GPU_2, 1), conditions=(f"gpu.host_fault:{sick}",))
    slots = w.slots()
    assert (slots[sick].state, slots[sound].is_offered, slots[G2].is_offered) == (SlotState.FAULTED, True, True)
    w.write(lambda uow: w.fleet.hosts.decide(uow, HOST, AdminEvent.ACTIVATE, "account/1", "too early?"))
    assert w.slots()[sick].state is SlotState.FAULTED
    w.claim(gpu, h100(GPU_2, 1))
    w.write(lambda uow: w.fleet.hosts.decide(uow, HOST, AdminEvent.ACTIVATE, "account/1", "it was reset"))
    assert w.slots()[sick].is_offered
    w.claim(gpu, h100(GPU_2, 1), conditions=(f"gpu.host_fault:{GPU_1}",))
    assert {w.slots()[one].state for one in (sick, sound)} == {SlotState.FAULTED}


def test_a_card_in_mig_mode_without_slices_offers_nothing(w):
    w.claim(cut())
    assert (w.slots()[G1].unavailable, parts_of(w)) == (BARE, {})


def test_all_that_a_card_can_be_cut_into_is_at_most_the_whole():
    for layout in (["1g.10gb"] * 7, ["3g.40gb", "4g.40gb"], ["2g.20gb"] * 3 + ["1g.10gb"], ["7g.80gb"]):
        gpu = cut(*layout)
        assert 900 < sum(share_milli(gpu, one) for one in gpu.slices) <= 1000, layout


def test_another_host_that_names_the_same_slice_does_not_get_it(w):
    w.join(OTHER)
    w.claim(cut("3g.40gb"))
    (part,) = parts_of(w).values()
    w.claim(replace(cut("3g.40gb"), uuid=GPU_2, serial="other"), host_id=OTHER)
    assert w.slots()[part.slot_id].host_id == HOST
    assert part.slot_id not in w.slots(OTHER)


def test_a_name_that_is_none_of_a_slice_takes_nobodys_slot(w):
    w.claim(h100(GPU_2, 1), replace(cut("1g.10gb"), slices=(replace(cut("1g.10gb").slices[0], uuid=GPU_2),)))
    assert (w.slots()[G2].kind, w.slots()[G2].card, parts_of(w)) == ("gpu", GPU_2, {})


def test_a_sick_card_faults_its_slices_and_not_its_neighbour(w):
    sick = cut("3g.40gb", "2g.20gb")
    w.claim(sick, h100(GPU_2, 1))
    w.claim(sick, h100(GPU_2, 1), conditions=(f"gpu.lost:{GPU_1}",))
    assert {one.state for one in parts_of(w).values()} == {SlotState.FAULTED}
    assert w.slots()[G2].is_offered


def test_the_tier_of_a_slice_names_its_profile():
    assert sliced_tier("h100/A", "1g.10gb") == "h100:1g.10gb/A"
    assert sliced_tier("h100/A", "") == "h100/A"


# --- after a lease ----------------------------------------------------------------------------------------------------


def test_a_slot_that_was_not_left_clean_is_faulted_with_the_words_and_stays_so_until_it_is_found_sound(w):
    w.equip(GPU_1, GPU_2)
    given = grant(w, G1)
    faults = {G1: "2048 MiB of its memory are still in use"}
    assert w.write(lambda uow: w.fleet.slots.faulted(uow, given, faults, "host/host_1")) == 1
    w.write(lambda uow: w.fleet.slots_released(uow, given, "host/host_1", "gone"))
    w.equip(GPU_1, GPU_2)  # an inventory that knows nothing of it changes nothing
    slot = w.slots()[G1]
    assert (slot.state, slot.holder) == (SlotState.FAULTED, None)
    assert slot.unavailable == "after a lease: 2048 MiB of its memory are still in use"
    assert w.slots()[G2].is_offered
    assert "slot.not_clean" in w.events()
    w.write(lambda uow: w.fleet.hosts.decide(uow, HOST, AdminEvent.ACTIVATE, "account/1", "I looked"))
    assert w.slots()[G1].is_offered


def test_a_fault_of_an_older_token_or_of_another_slot_is_nobodys(w):
    w.equip(GPU_1, GPU_2)
    given = grant(w, G1)
    stale = [replace(one, token=one.token - 1) for one in given]
    assert w.write(lambda uow: w.fleet.slots.faulted(uow, stale, {G1: "x"}, "host/host_1")) == 0
    assert w.write(lambda uow: w.fleet.slots.faulted(uow, given, {G2: "x"}, "host/host_1")) == 0
    assert {slot.state for slot in w.slots().values()} == {SlotState.STARTING, SlotState.FREE}


# --- cutting ----------------------------------------------------------------------------------------------------------

LAYOUT = ("3g.40gb", "2g.20gb", "2g.20gb")


def ask(w, uuid=GPU_1, whole=False):
    return w.write(lambda uow: w.fleet.cuts.ask(uow, HOST, uuid, whole, OWNER, "account/account_1"))


def drain(w):
    w.write(lambda uow: w.fleet.hosts.decide(uow, HOST, AdminEvent.DRAIN, "account/1", "to be cut"))


def asked(w):
    rows = w.read(lambda uow: uow[CommandRepository].open_of_host(HOST))
    return [decode_command(row.body).partition for row in rows if row.kind is CommandKind.PARTITION]


def test_a_drained_idle_card_is_cut_into_its_owners_layout_or_made_whole(w):
    w.claim(replace(h100(GPU_1, 0), layout=LAYOUT))
    drain(w)
    assert ask(w).kind == "gpu.partition"
    ask(w, whole=True)
    assert set(asked(w)) == {PartitionSpec(GPU_1, LAYOUT), PartitionSpec(GPU_1, ())}


def test_a_card_is_not_cut_while_new_work_may_come(w):
    w.claim(replace(h100(GPU_1, 0), layout=LAYOUT))
    with pytest.raises(Conflict, match="Drain the host first"):
        ask(w)
    assert asked(w) == []


def test_a_card_is_not_cut_against_its_owners_will_nor_one_that_is_not_there(w):
    w.claim(card())
    drain(w)
    with pytest.raises(Conflict, match="has allowed no layout"):
        ask(w, card().uuid)
    with pytest.raises(Conflict, match="no such GPU"):
        ask(w, "GPU-x")


def test_a_card_of_which_a_slice_is_held_is_not_cut(w):
    w.claim(cut("3g.40gb", "2g.20gb", layout=LAYOUT), replace(h100(GPU_2, 1), layout=LAYOUT))
    grant(w, parts_of(w)["2g.20gb"].slot_id)
    drain(w)
    with pytest.raises(Conflict, match="still in use"):
        ask(w)
    ask(w, GPU_2)
    assert asked(w) == [PartitionSpec(GPU_2, LAYOUT)]
