"""Processor slots are carved on demand, and all work of a host together is never larger than the host."""

import random
from dataclasses import replace

import pytest

from tests.unit.fleet.world import GPU_1, HOST, world
from windrow_master.fleet import availability
from windrow_master.fleet.model import LinkState
from windrow_master.fleet.repository import SlotRepository
from windrow_master.fleet.slices import CPU_SLOTS_MAX, next_cpu_slot, room, with_one_cpu_slot
from windrow_master.fleet.view import Entry
from windrow_proto.errors import Conflict
from windrow_proto.ids import ClusterId, SlotId, cpu_slot
from windrow_proto.model import SlotGrant
from windrow_proto.units import GIB

CPUS, MEMORY = 8, 64 * GIB
G1 = SlotId(GPU_1)
FIRST, SECOND, THIRD = (cpu_slot(HOST, number) for number in range(3))


@pytest.fixture
def w(tmp_path):
    with world(tmp_path) as made:
        made.equip(GPU_1)
        yield made


def grant(w, slot, cpus=1, memory=0, cluster="cluster_a"):
    (given,) = w.write(lambda uow: w.fleet.grant(uow, [slot], ClusterId(cluster), "account/1", "test", cpus, memory))
    return given


def release(w, given):
    w.write(lambda uow: w.fleet.slots_released(uow, [given], "host/1", "ended"))


def shares(w):
    return [slot for slot in w.slots().values() if slot.kind == "cpu"]


def free(w):
    return [slot.slot_id for slot in shares(w) if slot.is_offered]


def test_whoever_takes_the_last_free_share_leaves_a_new_one_of_the_same_tier(w):
    tier = w.slots()[FIRST].tier
    grant(w, FIRST)
    assert free(w) == [SECOND]
    assert w.slots()[SECOND].tier == tier != ""


def test_a_share_that_is_free_again_is_used_before_another_is_carved_under_a_higher_token(w):
    first = grant(w, FIRST)
    release(w, first)
    assert free(w) == [FIRST, SECOND]
    assert grant(w, FIRST).token == 2
    assert len(shares(w)) == 2


def test_a_hold_leaves_a_free_share_too(w):
    w.write(lambda uow: w.fleet.hold(uow, [FIRST], ClusterId("cluster_a"), w.clock.wall_ns() + 1, "account/1"))
    assert free(w) == [SECOND]


def test_there_are_no_more_shares_than_processors_and_each_stays_as_long_as_its_host(w):
    for number in range(CPUS):
        grant(w, cpu_slot(HOST, number))
    assert len(shares(w)) == CPUS and free(w) == []
    w.equip(GPU_1)
    assert len(shares(w)) == CPUS
    assert all(slot.unavailable is None for slot in shares(w))


def test_no_host_is_carved_into_more_than_the_limit(w):
    host, slot = w.host(), w.slots()[FIRST]
    assert next_cpu_slot(host, [slot]) is None
    assert CPU_SLOTS_MAX == 256


@pytest.mark.parametrize(
    ("cpus", "memory", "words"),
    [(CPUS, 0, "6 of 8 processors free, and 8 are asked for"), (1, MEMORY, "63488 MiB of memory free")],
)
def test_work_that_is_larger_than_what_is_left_gets_nothing(w, cpus, memory, words):
    grant(w, G1, 2, 2 * GIB)
    with pytest.raises(Conflict, match=words):
        grant(w, FIRST, cpus, memory)
    assert w.slots()[FIRST].token == 0


def test_what_ends_gives_its_processors_and_memory_back(w):
    given = grant(w, FIRST, CPUS, MEMORY)
    assert room(w.host(), w.slots().values()).cpus == 0
    release(w, given)
    left = room(w.host(), w.slots().values())
    assert (left.cpus, left.memory_bytes) == (CPUS, MEMORY)


def test_the_spare_share_of_a_full_host_is_not_to_be_had_and_the_host_says_how_full_it_is(w):
    w.claim()  # its card is gone: a host of processors alone

    def entry(version):
        return Entry(replace(w.host(), link_state=LinkState.ONLINE), tuple(w.slots().values()), version)

    grant(w, FIRST, 3)
    partly = entry(1)
    assert [one.slot_id for one in with_one_cpu_slot(partly.slots) if one.kind == "cpu"] == [SECOND]
    assert availability.NO_PROCESSORS not in availability.slots_shown(partly)
    assert availability.headline(partly).reason == "3 of 8 CPUs are rented"
    grant(w, SECOND, 5)
    full = entry(2)
    shown = {slot.slot_id: one for slot, one in zip(full.slots, availability.slots_shown(full), strict=True)}
    assert shown[THIRD] == availability.NO_PROCESSORS
    assert availability.headline(full).reason == "8 of 8 CPUs are rented"


@pytest.mark.parametrize("seed", range(4))
def test_four_masters_who_all_saw_an_empty_host_never_give_more_of_it_than_it_has(w, seed):
    luck, most = random.Random(seed), 0
    held: list[SlotGrant] = []
    seen = list(w.slots())  # what each of them believes to be free, for as long as it goes on
    for step in range(80):
        if held and luck.random() < 0.25:
            release(w, held.pop(luck.randrange(len(held))))
            continue
        seen = list(w.slots()) if luck.random() < 0.3 else seen
        try:
            asked = luck.randint(1, 3), luck.choice((0, 1, 30)) * GIB
            held.append(grant(w, luck.choice(seen), *asked, f"cluster_{step % 4}"))
        except Conflict:
            continue
        slots = w.slots().values()
        left = room(w.host(), slots)
        assert left.cpus >= 0 and left.memory_bytes >= 0
        most = max(most, sum(one.holder is not None for one in slots if one.kind == "cpu"))
        assert free(w) or len(shares(w)) == CPUS
    assert most > 2
    for given in held:
        release(w, given)
    rows = w.read(lambda uow: [uow[SlotRepository].grants(slot.slot_id) for slot in shares(w)])
    assert all([one.token for one in of] == list(range(1, len(of) + 1)) for of in rows)
    assert room(w.host(), w.slots().values()).cpus == CPUS
