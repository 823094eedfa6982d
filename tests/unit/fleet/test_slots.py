"""One holder per slot, tokens that only grow, and a sick GPU that takes no neighbour with it."""

import pytest
from sqlalchemy import text

from tests.unit.fleet.world import GPU_1, GPU_2, HOST, world
from windrow_master.fleet.messages import SlotsLost
from windrow_master.fleet.repository import SlotRepository
from windrow_master.fleet.states import SlotState
from windrow_proto.errors import Conflict, NotFound
from windrow_proto.ids import ClusterId, SlotId, cpu_slot
from windrow_proto.model import SlotGrant
from windrow_proto.units import SECOND

A, B = ClusterId("cluster_a"), ClusterId("cluster_b")
G1, G2 = SlotId(GPU_1), SlotId(GPU_2)
CPU = cpu_slot(HOST, 0)


@pytest.fixture
def w(tmp_path):
    with world(tmp_path) as made:
        made.equip(GPU_1, GPU_2)
        yield made


def grant(w, slots, cluster=A):
    return w.write(lambda uow: w.fleet.grant(uow, slots, cluster, "account/1", "test"))


def test_an_inventory_makes_one_slot_per_gpu_and_one_for_the_processors(w):
    assert set(w.slots()) == {G1, G2, CPU}
    assert {slot.state for slot in w.slots().values()} == {SlotState.FREE}
    assert w.slots()[G1].tier == "h100/C"


def test_a_grant_gives_all_slots_or_none(w):
    grant(w, [G1])
    with pytest.raises(Conflict, match="not free"):
        grant(w, [G2, G1], B)
    assert w.slots()[G2].state is SlotState.FREE
    assert w.slots()[G2].token == 0


def test_a_token_grows_with_every_grant_and_never_goes_back(w):
    tokens = []
    for cluster in (A, B, A):
        (given,) = grant(w, [G1], cluster)
        tokens.append(given.token)
        w.write(lambda uow, given=given: w.fleet.slots_released(uow, [given], "host/1", "ended"))
    assert tokens == [1, 2, 3]


def test_of_two_who_saw_the_same_free_slot_one_gets_it(w):
    seen = w.slots()[G1]
    mine = w.read(lambda uow: seen)
    first = w.write(lambda uow: w.fleet.slots._reserve(uow, seen, A, None, "account/a", ""))
    with pytest.raises(Conflict, match="Somebody else"):
        w.write(lambda uow: w.fleet.slots._reserve(uow, mine, B, None, "account/b", ""))
    assert w.slots()[G1].holder == first.holder == A


def test_control_without_compare_and_set_the_same_race_grants_twice(w):
    blind = text("UPDATE slots SET state='reserved', holder=:holder, token=:token WHERE slot_id=:slot")
    seen = w.slots()[G1]
    won = [
        w.write(
            lambda uow, holder=holder: (
                uow.connection.execute(blind, {"holder": holder, "token": seen.token + 1, "slot": G1}).rowcount
            )
        )
        for holder in (A, B)
    ]
    assert won == [1, 1], "both believe that they hold it, under the same token"


def test_a_word_with_an_old_token_changes_nothing(w):
    (old,) = grant(w, [G1])
    w.write(lambda uow: w.fleet.slots_released(uow, [old], "host/1", "ended"))
    (new,) = grant(w, [G1], B)
    assert w.write(lambda uow: w.fleet.slots_released(uow, [old], "host/1", "late")) == 0
    assert w.write(lambda uow: w.fleet.slots_running(uow, [SlotGrant(G1, 99)], "host/1", "forged")) == 0
    assert w.slots()[G1].as_grant() == new
    assert w.slots()[G1].state is SlotState.STARTING


def test_a_slot_lives_from_start_to_free(w):
    given = grant(w, [G1])
    states = []
    for change in (w.fleet.slots_running, w.fleet.slots_stopping, w.fleet.slots_released):
        assert w.write(lambda uow, change=change: change(uow, given, "host/1", "")) == 1
        states.append(str(w.slots()[G1].state))
    assert states == ["running", "stopping", "free"]
    assert w.slots()[G1].holder is None


def test_a_hold_is_granted_to_its_cluster_only_and_expires(w):
    until = w.clock.wall_ns() + 60 * SECOND
    w.write(lambda uow: w.fleet.hold(uow, [G1], A, until, "account/a"))
    with pytest.raises(Conflict):
        grant(w, [G1], B)
    (given,) = grant(w, [G1], A)
    assert given.token == 1
    w.write(lambda uow: w.fleet.hold(uow, [G2], A, until, "account/a"))
    w.clock.advance(61 * SECOND)
    w.write(lambda uow: [w.fleet.slots.expire_hold(uow, one) for one in uow[SlotRepository].expired(uow.now_wall_ns)])
    assert w.slots()[G2].is_offered
    assert w.slots()[G1].holder == A


def test_an_unknown_slot_is_not_found(w):
    with pytest.raises(NotFound):
        grant(w, [SlotId("GPU-9")])


def test_one_lost_gpu_faults_its_slot_and_leaves_its_neighbours_on_offer(w):
    lost = []
    w.store.messages.on(SlotsLost, lambda uow, it: lost.append((it.host_id, it.slot_ids)))
    grant(w, [G1])
    w.equip(GPU_1, GPU_2, conditions=(f"gpu.lost:{GPU_1}",))
    slots = w.slots()
    assert slots[G1].state is SlotState.FAULTED
    assert slots[G1].holder == A, "it stays blocked until its holder let go"
    assert slots[G2].is_offered
    assert lost == [(HOST, (G1,))]


def test_a_driver_that_is_away_makes_gpus_unavailable_and_not_faulty(w):
    w.equip(GPU_1, GPU_2, conditions=("gpu.driver_mismatch",))
    assert all("driver" in w.slots()[slot].unavailable for slot in (G1, G2))
    assert w.slots()[CPU].is_offered
    w.equip(GPU_1, GPU_2)
    assert all(slot.is_offered for slot in w.slots().values())


def test_a_gpu_that_is_no_longer_reported_is_not_offered(w):
    w.equip(GPU_1)
    assert not w.slots()[G2].is_offered


def test_every_change_of_a_slot_has_an_audit_row(w):
    grant(w, [G1])
    rows = w.read(lambda uow: uow.audit_log.list(G1))
    assert [(row.actor, row.action) for row in rows][-2:] == [
        ("account/1", "slot.reserve"),
        ("account/1", "slot.start"),
    ]
