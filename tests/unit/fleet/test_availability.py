"""The states that people read: one of five words for each slot and GPU, and one word with its reason for each host."""

from dataclasses import replace

import pytest

from windrow_master.fleet.availability import (
    HOST_WORDS,
    UNVERIFIED,
    VERIFY,
    Availability,
    Shown,
    about,
    gpus_shown,
    headline,
    slot_shown,
)
from windrow_master.fleet.model import AdminState, Condition, Host, LinkState, Slot, SlotState, VerifyState
from windrow_master.fleet.slices import CUT, SHARED
from windrow_master.fleet.view import Entry, FleetView, once_per_entry
from windrow_proto.conditions import ConditionCode
from windrow_proto.ids import AccountId, ClusterId, GpuUuid, HostId, SlotId
from windrow_proto.model import GpuFacts, GpuSlice, Inventory, Isolation

HOST = HostId("host_1")
LOST = ConditionCode.GPU_LOST
HOT = ConditionCode.GPU_HOT


def gpu(number, slices=()):
    return GpuFacts(GpuUuid(f"GPU-{number}"), number, "nvidia", "H100", slices=slices)


def part(number, isolation=Isolation.MPS):
    return GpuSlice(GpuUuid(f"MPS-{number}"), "mps.50", isolation, 1, 50)


def host(*gpus, **changes):
    made = Host(HOST, "box", AccountId("account_1"), False, 0, admin_state=AdminState.ACTIVE)
    inventory = Inventory(gpus=gpus or (gpu(0), gpu(1)))
    return replace(made, **{"link_state": LinkState.ONLINE, "inventory": inventory, **changes})


def slot(name, state=SlotState.FREE, unavailable=None, card=None):
    uuid = GpuUuid(name)
    holder = None if state in (SlotState.FREE, SlotState.FAULTED) else ClusterId("cluster_1")
    profile = "mps.50" if card else ""
    kind = "slice" if card else "gpu"
    made = Slot(SlotId(name), HOST, kind, uuid, state, unavailable, holder=holder, card=card or uuid, profile=profile)
    return made


def shown(of, *slots):
    return gpus_shown(Entry(of, slots, 1))


def word(of, *slots):
    return headline(Entry(of, slots, 1))


@pytest.mark.parametrize(
    ("of", "state", "unavailable", "expected"),
    [
        ({}, SlotState.FREE, None, Shown(Availability.IDLE)),
        ({}, SlotState.RUNNING, None, Shown(Availability.RENTED)),
        ({}, SlotState.SCRUBBING, None, Shown(Availability.RENTED)),
        ({}, SlotState.RUNNING, "it is hot", Shown(Availability.RENTED, "it is hot")),
        ({}, SlotState.FREE, "it is hot", Shown(Availability.PAUSED, "it is hot")),
        ({}, SlotState.FAULTED, "it fell off", Shown(Availability.FAULTY, "it fell off")),
        ({}, SlotState.FAULTED, None, Shown(Availability.FAULTY, UNVERIFIED)),
        (
            {"admin_state": AdminState.DRAINING, "admin_reason": "new fan"},
            SlotState.FREE,
            None,
            Shown(Availability.PAUSED, "new fan"),
        ),
        ({"admin_state": AdminState.DRAINING}, SlotState.RUNNING, None, Shown(Availability.RENTED)),
        (
            {"admin_state": AdminState.QUARANTINED},
            SlotState.FREE,
            None,
            Shown(Availability.FAULTY, "its host is in quarantine"),
        ),
    ],
)
def test_a_slot_has_the_first_state_that_holds_and_its_reason(of, state, unavailable, expected):
    assert slot_shown(host(**of), slot("GPU-0", state, unavailable)) == expected


@pytest.mark.parametrize("link", [one for one in LinkState if one is not LinkState.ONLINE])
def test_what_is_on_a_host_that_does_not_answer_is_offline_and_what_is_broken_there_faulty(link):
    for state in (SlotState.FREE, SlotState.RUNNING):
        found = slot_shown(host(link_state=link), slot("GPU-0", state))
        assert found.state is Availability.OFFLINE
        assert found.reason
    assert slot_shown(host(link_state=link), slot("GPU-0", SlotState.FAULTED)).state is Availability.FAULTY


@pytest.mark.parametrize("closed", [SHARED, CUT])
@pytest.mark.parametrize(
    ("states", "text"),
    [
        ((SlotState.RUNNING, SlotState.RUNNING), "rented, 2 of 2 parts"),
        ((SlotState.RUNNING, SlotState.FREE), "rented, 1 of 2 parts"),
        ((SlotState.FREE, SlotState.FREE), "idle, 0 of 2 parts"),
        ((SlotState.FAULTED, SlotState.FREE), "idle, 0 of 2 parts"),
        ((SlotState.FAULTED, SlotState.FAULTED), "faulty"),
    ],
)
@pytest.mark.case("M-12")
def test_a_gpu_in_parts_says_how_many_of_them_are_rented(closed, states, text):
    card = gpu(0, (part(0), part(1)))
    parts = [slot(f"MPS-{at}", state, card=card.uuid) for at, state in enumerate(states)]
    assert shown(host(card), slot("GPU-0", unavailable=closed), *parts)[card.uuid].text == text


def test_a_gpu_in_parts_that_is_broken_is_faulty_whatever_its_parts_say():
    card = gpu(0, (part(0),))
    whole = slot("GPU-0", SlotState.FAULTED, "it fell off")
    assert shown(host(card), whole, slot("MPS-0", card=card.uuid))[card.uuid] == Shown(
        Availability.FAULTY, "it fell off"
    )


def test_a_gpu_that_was_cut_before_counts_no_part_that_is_gone_but_one_that_is_still_rented():
    whole = slot("GPU-0")
    gone = slot("MPS-0", unavailable="the host no longer reports this GPU", card=GpuUuid("GPU-0"))
    held = replace(gone, state=SlotState.RUNNING, holder=ClusterId("cluster_1"))
    assert shown(host(gpu(0)), whole, gone)[GpuUuid("GPU-0")].text == "idle"
    assert shown(host(gpu(0)), whole, held)[GpuUuid("GPU-0")].text == "rented, 1 of 1 parts"


def test_a_gpu_that_another_host_offers_is_paused_here():
    (found,) = shown(host(gpu(0))).values()
    assert (found.state, found.reason) == (Availability.PAUSED, "another host offers this GPU")


def test_the_word_of_a_host_follows_the_precedence():
    rank = {one: n for n, one in enumerate(HOST_WORDS)}
    of_link = dict.fromkeys((LinkState.LOST, LinkState.SUSPECT, LinkState.UNKNOWN), "offline")
    for admin in AdminState:
        for verify in VerifyState:
            for link in LinkState:
                found = word(
                    host(admin_state=admin, verify_state=verify, link_state=link), slot("GPU-0", SlotState.RUNNING)
                )
                possible = {str(admin), str(verify), of_link.get(link, ""), "rented"} & set(rank)
                possible |= {"enrolled"} if link is LinkState.UNSEEN else set()
                assert found.word == min(possible, key=rank.__getitem__)
                assert found.reason


def test_a_host_at_work_says_what_of_it_is_rented_and_why_nothing_can_be():
    assert word(host(), slot("GPU-0"), slot("GPU-1")).reason == "ready for work"
    one = word(host(), slot("GPU-0", SlotState.RUNNING), slot("GPU-1"))
    assert (one.word, one.reason, one.state) == ("rented", "1 of 2 GPUs rented", Availability.RENTED)
    cpu = replace(slot("GPU-9", SlotState.RUNNING), kind="cpu", gpu_uuid=None, card=None)
    assert word(host(inventory=Inventory()), cpu).reason == "its CPUs are rented"
    none = word(host(), slot("GPU-0", unavailable="busy"), slot("GPU-1", unavailable="busy"))
    assert (none.word, none.reason) == ("paused", "nothing of it can be rented now: busy")


def test_a_host_with_dead_gpus_is_degraded_and_says_which_and_what_to_do():
    dead = tuple(Condition(f"{LOST}:GPU-{n}", LOST.words, 1) for n in (1, 0))
    of = host(gpu(0), gpu(1), gpu(2), conditions=dead)
    slots = [slot(f"GPU-{n}", SlotState.FAULTED, LOST.words) for n in (0, 1)] + [slot("GPU-2", SlotState.RUNNING)]
    found = word(of, *slots)
    assert (found.word, found.state) == ("degraded", Availability.FAULTY)
    assert found.reason == "2 of 3 GPUs faulty. GPU 0, 1: This GPU fell off its bus; the others go on"
    assert found.remedy == LOST.remedy


def test_several_troubles_of_one_gpu_have_one_remedy():
    fault = ConditionCode.GPU_HOST_FAULT
    both = (Condition(f"{fault}:GPU-0", fault.words, 1), Condition(f"{LOST}:GPU-0", LOST.words, 1))
    assert word(host(gpu(0), conditions=both), slot("GPU-0", SlotState.FAULTED, LOST.words)).remedy == LOST.remedy
    apart = (both[0], Condition(f"{LOST}:GPU-1", LOST.words, 1))
    faulty = [slot(f"GPU-{n}", SlotState.FAULTED, LOST.words) for n in (0, 1)]
    assert word(host(gpu(0), gpu(1), conditions=apart), *faulty).remedy == f"{fault.remedy} {LOST.remedy}"


def test_a_gpu_that_waits_for_its_verification_degrades_its_host_too():
    found = word(host(), slot("GPU-0", SlotState.FAULTED), slot("GPU-1"))
    assert (found.word, found.reason, found.remedy) == ("degraded", f"1 of 2 GPUs faulty. GPU 0: {UNVERIFIED}", VERIFY)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (f"{HOT}:GPU-1", "degraded"),
        ("gpu.no_driver", "degraded"),
        ("agent.disk_full", "degraded"),
        ("challenge.running:GPU-1", "idle"),
        ("gpu.none", "idle"),
        ("docker.lost", "degraded"),
        ("clock.skew", "idle"),
        ("of.another_version:GPU-1", "idle"),
    ],
)
def test_a_host_is_degraded_by_what_keeps_something_from_being_rented_and_needs_a_person(code, expected):
    assert word(host(conditions=(Condition(code, "", 1),)), slot("GPU-0"), slot("GPU-1")).word == expected


def test_a_condition_names_its_gpu_by_number_also_where_it_is_about_a_part_of_it():
    of = host(gpu(0), gpu(1, (part(7),)))
    assert [about(of, f"{LOST}:{name}") for name in ("GPU-0", "MPS-7", "GPU-9")] == ["GPU 0", "GPU 1", None]
    assert about(of, "clock.skew") is None


def test_what_is_shown_of_a_host_is_worked_out_once_and_anew_after_a_change():
    asked = []

    @once_per_entry
    def names(entry):
        asked.append(entry.version)
        return [one.slot_id for one in entry.slots]

    view = FleetView()
    view.put(host(), [slot("GPU-0")])
    (first,) = view
    assert names(first) is names(first)
    assert asked == [1]
    view.put(host(), [slot("GPU-0"), slot("GPU-1")])
    (second,) = view
    assert names(second) == ["GPU-0", "GPU-1"]
    assert (names(first), asked) == (["GPU-0"], [1, 2])


def test_what_was_worked_out_of_a_host_is_not_taken_over_by_its_changed_copy():
    entry = Entry(host(gpu(0)), (slot("GPU-0"),), 1)
    assert headline(entry).word == "idle"
    assert headline(replace(entry, slots=(slot("GPU-0", SlotState.RUNNING),))).word == "rented"
