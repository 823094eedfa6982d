"""A host's claim that cannot be true takes that card off the market, and no other; two hosts cannot have one card."""

from dataclasses import replace

import pytest

from tests.support.personas import LIARS, card, uuid
from tests.unit.fleet.world import GPU_1, GPU_2, HOST, OTHER, h100, world
from windrow_master.fleet import conditions
from windrow_master.fleet.claims.uniqueness import counts, shared
from windrow_master.fleet.model import Claim, Condition, Host, LinkState
from windrow_master.fleet.states import AdminEvent, LinkEvent
from windrow_proto.errors import Conflict
from windrow_proto.ids import AccountId, ClusterId, HostId, SlotId, cpu_slot
from windrow_proto.model import Kind
from windrow_proto.units import MIB, MINUTE, SECOND, time_text
from windrow_proto.wire_host import encode_inventory

G1, G2 = SlotId(GPU_1), SlotId(GPU_2)
LYING = replace(h100(GPU_1, 0), memory_bytes=24564 * MIB)
HONEST = h100(GPU_2, 1)
THEIRS = f"claim.uuid_shared:{GPU_1}"
MINE = f"disputed.uuid:{GPU_1}"
"""Of who was first."""


@pytest.fixture
def w(tmp_path):
    with world(tmp_path) as made:
        made.join(OTHER)
        yield made


def codes(w, host_id=HOST):
    return [condition.code for condition in w.host(host_id).conditions]


def audit(w, subject):
    return [(row.action, row.reason) for row in w.read(lambda uow: uow.audit_log.list(subject))]


def link(w, event, host_id):
    w.write(lambda uow: w.fleet.hosts.link(uow, host_id, event, uow.now_wall_ns))


def grant(w, slot, cluster="cluster_a"):
    return w.write(lambda uow: w.fleet.grant(uow, [slot], ClusterId(cluster), "account/1", "test"))


async def pass_time(w, seconds):
    w.clock.advance(seconds * SECOND)
    await w.fleet._judge_claims()
    await w.fleet.refresh()


# --- one host --------------------------------------------------------------------------------------------------------


def test_a_card_that_cannot_be_is_not_offered_and_its_neighbours_are(w):
    w.claim(LYING, HONEST)
    slots = w.slots()
    assert "24,564 MiB" in slots[G1].unavailable
    assert slots[G2].is_offered
    assert slots[cpu_slot(HOST, 0)].is_offered
    with pytest.raises(Conflict, match="24,564 MiB of memory, H100 80GB HBM3 reports"):
        grant(w, G1)


def test_it_is_a_condition_with_an_event_and_an_audit_row_and_goes_when_the_claim_is_mended(w):
    w.claim(LYING, HONEST)
    (condition,) = w.host().conditions
    assert condition.code == f"claim.memory:{GPU_1}"
    assert ("condition.raised", condition.detail) in audit(w, HOST)
    assert ("slot.offer", condition.detail) in audit(w, G1)
    assert "condition.raised" in w.events()
    w.claim(h100(GPU_1, 0), HONEST)
    assert codes(w) == []
    assert w.slots()[G1].is_offered
    assert ("condition.cleared", condition.detail) in audit(w, HOST)
    assert "condition.cleared" in w.events()


def test_the_same_lie_again_is_told_once(w):
    w.claim(LYING, HONEST)
    first = w.host().conditions
    w.clock.advance(MINUTE)
    w.claim(LYING, HONEST)
    assert w.host().conditions == first
    assert w.events().count("condition.raised") == 1


def test_what_stands_against_the_host_stands_against_each_of_its_cards(w):
    w.claim(*LIARS["H100s without a driver"].inventory.gpus, HONEST)
    assert all(slot.is_offered for slot in w.slots().values()), "its driver is named here"
    w.take(w.record(Kind.INVENTORY, encode_inventory(LIARS["H100s without a driver"].inventory)))
    assert not w.slots()[SlotId(uuid(1))].is_offered
    assert w.slots()[cpu_slot(HOST, 0)].is_offered


def test_two_cards_of_one_id_are_flagged_though_one_of_them_is_left_out(w):
    w.claim(h100(GPU_1, 0), replace(h100(GPU_2, 1), uuid=GPU_1))
    assert codes(w) == [f"claim.uuid_twice:{GPU_1}"]
    assert not w.slots()[G1].is_offered


async def test_a_heartbeat_neither_takes_a_finding_away_nor_brings_one(w):
    w.claim(LYING, HONEST)
    w.fleet.start()
    w.connect()
    w.beat(conditions=(f"gpu.hot:{GPU_2}", f"claim.name:{GPU_2}", f"gpu.listed_elsewhere:{GPU_2}", THEIRS))
    await w.fleet.tick()
    assert codes(w) == [f"claim.memory:{GPU_1}", f"gpu.hot:{GPU_2}"]
    w.beat()
    await w.fleet.tick()
    assert codes(w) == [f"claim.memory:{GPU_1}"]


def test_a_card_that_the_kernel_names_otherwise_is_not_offered(w):
    w.equip(GPU_1, GPU_2, conditions=(f"gpu.kernel_differs:{GPU_1}",))
    assert "kernel" in w.slots()[G1].unavailable
    assert w.slots()[G2].is_offered


def test_no_number_of_a_hosts_own_conditions_crowds_out_a_finding():
    many = [f"host.made_up_{n}" for n in range(500)]
    found = conditions.merged(many, (), 1, {"claim.memory:x": "words"})
    assert found[0] == Condition("claim.memory:x", "words", 1)
    assert len(found) == 1 + conditions.CONDITIONS_MAX


def test_a_card_in_use_stays_with_its_holder_and_is_not_offered_afterwards(w):
    w.claim(h100(GPU_1, 0), HONEST)
    given = grant(w, G1)
    w.claim(LYING, HONEST)
    assert w.slots()[G1].holder == "cluster_a"
    w.write(lambda uow: w.fleet.slots_released(uow, given, "host/1", "ended"))
    assert not w.slots()[G1].is_offered


# --- two hosts -------------------------------------------------------------------------------------------------------


def test_a_card_that_two_live_hosts_claim_is_offered_by_who_was_first_and_both_are_told(w):
    first_ns = w.clock.wall_ns()
    w.claim(h100(GPU_1, 0), HONEST)
    w.clock.advance(MINUTE)
    w.claim(h100(GPU_1, 0))
    w.clock.advance(MINUTE)
    w.claim(h100(GPU_1, 0), host_id=OTHER)
    w.clock.advance(MINUTE)
    w.claim(h100(GPU_1, 0), HONEST)
    assert (codes(w), codes(w, OTHER)) == ([MINE], [THEIRS])
    (mine,), (theirs,) = w.host().conditions, w.host(OTHER).conditions
    assert mine.detail == theirs.detail
    assert (
        f"2 hosts claim the UUID {GPU_1} at once: first {HOST} since {time_text(first_ns)}, then {OTHER}" in mine.detail
    )
    assert w.slots()[G1].is_offered
    assert w.slots()[G2].is_offered
    assert G1 not in w.slots(OTHER)


def test_one_serial_number_on_two_hosts_flags_both_cards_and_takes_the_later_one_off_the_market(w):
    w.claim(card(0, uuid=GPU_1, serial="1650000000001"))
    w.claim(card(0, uuid=GPU_2, serial="1650000000001"), host_id=OTHER)
    assert codes(w) == [f"disputed.serial:{GPU_1}"]
    assert codes(w, OTHER) == [f"claim.serial_shared:{GPU_2}"]
    assert w.slots()[G1].is_offered
    assert not w.slots(OTHER)[G2].is_offered


def test_a_card_without_a_serial_number_shares_none(w):
    w.claim(card(0, uuid=GPU_1, serial=None))
    w.claim(card(0, uuid=GPU_2, serial=None), host_id=OTHER)
    assert codes(w) == codes(w, OTHER) == []


def test_a_card_that_its_first_host_no_longer_claims_has_moved(w):
    w.equip(GPU_1, GPU_2)
    w.equip(GPU_1)
    w.equip(GPU_2, host_id=OTHER)
    assert codes(w) == codes(w, OTHER) == []
    assert w.slots(OTHER)[G2].is_offered
    assert G2 not in w.slots()


def test_the_first_host_gets_its_card_back_when_the_second_takes_its_claim_away(w):
    w.equip(GPU_1)
    w.equip(GPU_1, host_id=OTHER)
    w.equip(host_id=OTHER)
    assert codes(w) == codes(w, OTHER) == []
    assert w.slots()[G1].is_offered


def test_a_card_of_a_host_that_is_long_gone_has_moved(w):
    w.equip(GPU_1)
    link(w, LinkEvent.HEARD, HOST)
    link(w, LinkEvent.SILENT, HOST)
    link(w, LinkEvent.SILENT_LONG, HOST)
    w.equip(GPU_1, host_id=OTHER)
    assert codes(w) == codes(w, OTHER) == []
    assert w.slots(OTHER)[G1].is_offered


async def test_what_ends_without_a_new_inventory_ends_the_finding_too(w):
    w.fleet.start()
    w.equip(GPU_1)
    w.equip(GPU_1, host_id=OTHER)
    assert codes(w, OTHER) == [THEIRS]
    w.write(lambda uow: w.fleet.quarantine(uow, HOST, "it lies", "account/1"))
    await w.fleet.refresh()
    await pass_time(w, 30)
    assert codes(w, OTHER) == []
    assert w.slots(OTHER)[G1].is_offered


async def test_a_first_host_that_comes_back_without_the_card_flags_nobody_and_with_it_both(w):
    w.fleet.start()
    w.equip(GPU_1)
    for event in (LinkEvent.HEARD, LinkEvent.SILENT, LinkEvent.SILENT_LONG):
        link(w, event, HOST)
    w.equip(GPU_1, host_id=OTHER)
    link(w, LinkEvent.HEARD, HOST)
    await pass_time(w, 30)
    assert codes(w, OTHER) == [], "it has a minute to say what it has now"
    await pass_time(w, 31)
    assert (codes(w), codes(w, OTHER)) == ([THEIRS], [MINE]), "the card has moved, and its new host keeps it"
    assert w.slots(OTHER)[G1].is_offered
    w.equip(host_id=HOST)
    assert codes(w) == codes(w, OTHER) == []
    assert w.slots(OTHER)[G1].is_offered


async def test_a_card_that_somebody_rents_on_a_lost_host_moves_when_it_is_let_go(w):
    w.fleet.start()
    w.equip(GPU_1)
    given = grant(w, G1)
    for event in (LinkEvent.HEARD, LinkEvent.SILENT, LinkEvent.SILENT_LONG):
        link(w, event, HOST)
    w.equip(GPU_1, host_id=OTHER)
    assert codes(w, OTHER) == [f"gpu.listed_elsewhere:{GPU_1}"]
    w.write(lambda uow: w.fleet.slots_released(uow, given, "master", "its host is lost"))
    await w.fleet.refresh()
    await pass_time(w, 30)
    assert codes(w, OTHER) == []
    assert w.slots(OTHER)[G1].is_offered


def test_a_card_that_is_only_out_of_order_cannot_be_taken_over_by_another_host(w):
    w.equip(GPU_1, conditions=(f"gpu.hot:{GPU_1}",))
    w.equip(GPU_1, host_id=OTHER)
    assert w.slots()[G1].host_id == HOST
    assert w.slots(OTHER).keys() == {cpu_slot(OTHER, 0)}


async def test_where_nobody_shares_a_card_looking_for_it_writes_nothing(w):
    w.fleet.start()
    w.equip(GPU_1)
    w.equip(GPU_2, host_id=OTHER)
    before = w.store.figures.commits
    await w.fleet._judge_claims()
    assert w.store.figures.commits == before


async def test_the_fleet_looks_by_itself(w):
    w.fleet.start()
    w.equip(GPU_1)
    w.equip(GPU_1, host_id=OTHER)
    w.write(lambda uow: w.fleet.hosts.decide(uow, OTHER, AdminEvent.QUARANTINE, "account/1", "it lies"))
    w.clock.advance(30 * SECOND)
    await w.fleet.tick()
    assert codes(w) == []
    assert w.slots()[G1].is_offered


# --- the decision ----------------------------------------------------------------------------------------------------

NOW = 1_000 * SECOND


def member(host_id, **facts):
    return Host(host_id, str(host_id), AccountId("account_1"), False, 0, **facts)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, True),
        ({"link_state": LinkState.ONLINE, "settled_at_ns": NOW}, True),
        ({"link_state": LinkState.ONLINE, "settled_at_ns": NOW + 1}, False),
        ({"link_state": LinkState.ONLINE, "settled_at_ns": NOW + 1, "conditions": (Condition(THEIRS, "", 1),)}, True),
        ({"link_state": LinkState.SUSPECT}, True),
        ({"link_state": LinkState.LOST}, False),
        ({"link_state": LinkState.LOST, "conditions": (Condition(THEIRS, "", 1),)}, False),
        ({"admin_state": "retired"}, False),
        ({"admin_state": "quarantined"}, False),
        ({"admin_state": "draining"}, True),
    ],
)
def test_whose_claim_counts(facts, expected):
    assert counts(member(HOST, **facts), NOW) is expected


def test_of_many_hosts_the_first_few_are_named():
    claims = [(member(f"host_{n}"), Claim(HostId(f"host_{n}"), GPU_1, None, n)) for n in range(9)]
    finding = shared(*claims[8], claims, NOW)
    assert finding is not None
    assert finding.words.startswith(f"9 hosts claim the UUID {GPU_1} at once: first host_0 since ")
    assert "host_4" in finding.words
    assert "host_5" not in finding.words
