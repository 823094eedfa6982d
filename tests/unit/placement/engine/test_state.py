"""The engine's fleet: capacities are kept, deltas are undone by their opposites, one rebuilt from rows is equal."""

import random
from itertools import islice

import pytest

from tests.unit.placement.engine.fleets import (
    check_index,
    disturbance,
    engine_of,
    fitting,
    host,
    placed,
    random_host,
    rebuilt,
    requests,
    rows,
    seen,
)
from windrow_master.placement.engine.model import (
    Drain,
    GiveBack,
    Health,
    Host,
    Join,
    Leave,
    NotFree,
    Placement,
    Price,
    Request,
    Take,
)
from windrow_master.placement.engine.plan import Engine


def operated(operations: int, seed: int, hosts: int, checks: int) -> Engine:
    """An engine after random deltas; looked at so many times on the way."""
    chance = random.Random(seed)
    names = [f"host-{at}" for at in range(hosts)]
    engine = engine_of(*(random_host(chance, name) for name in names))
    held: list[Take] = []
    for at, request in enumerate(islice(requests(seed), operations)):
        act = chance.random()
        if act < 0.55:
            answer = placed(engine, request, f"lease-{at}") if at % 8 == 0 else None
            if at % 8 and isinstance(found := engine.plan(request), Placement):
                answer = found
                engine.apply(found.take(f"lease-{at}"))
            if answer is not None:
                held.append(answer.take(f"lease-{at}"))
        elif act < 0.97 and held:
            place = chance.randrange(len(held))
            held[place], held[-1] = held[-1], held[place]
            take = held[-1] if chance.random() < 0.05 else held.pop()  # some are given back twice
            engine.apply(GiveBack(take.host_id, take.lease))
        else:
            engine.apply(disturbance(chance, names))
        if at % (operations // checks) == 0:
            check_index(engine)
            assert seen(engine) == seen(rebuilt(engine, at))
    return engine


def test_an_engine_after_20_000_random_operations_equals_one_rebuilt_from_rows():
    engine = operated(20_000, seed=1, hosts=160, checks=4)
    check_index(engine)
    assert seen(engine) == seen(rebuilt(engine))


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_an_engine_after_a_million_random_operations_equals_one_rebuilt_from_rows():
    engine = operated(1_000_000, seed=2, hosts=400, checks=40)
    assert seen(engine) == seen(rebuilt(engine))
    assert len(engine.fleet.freed) <= 1 << 16


def test_a_take_beyond_what_is_free_is_refused_and_changes_nothing():
    engine = engine_of(host(cards=1, cpu=4_000, memory=100, works_max=1))
    before = seen(engine)
    for wrong in (
        Take(host_id="h", lease="a", cpu=4_001),
        Take(host_id="h", lease="a", memory=101),
        Take(host_id="h", lease="a", cards=(0,), milli=1_001),
        Take(host_id="h", lease="a", cards=(0, 0), milli=1),
        Take(host_id="h", lease="a", cards=(1,), milli=1),
        Take(host_id="h", lease="a", cards=(-1,), milli=1),
    ):
        with pytest.raises(NotFree):
            engine.apply(wrong)
    assert seen(engine) == before
    assert engine.apply(Take(host_id="h", lease="a", cards=(0,), milli=1))
    with pytest.raises(NotFree):
        engine.apply(Take(host_id="h", lease="b", cpu=1))  # it takes one workload at once


def test_giving_back_undoes_taking():
    engine = engine_of(*(random_host(random.Random(seed), f"h{seed}") for seed in range(40)))
    before, held = seen(engine), []
    for at, request in enumerate(islice(requests(3), 60)):
        answer = placed(engine, request, f"lease-{at}")
        held += [answer.take(f"lease-{at}")] if answer else []
    assert len(held) > 10
    assert seen(engine) != before
    for take in held:
        assert engine.apply(GiveBack(take.host_id, take.lease))
    assert seen(engine) == before
    check_index(engine)


def test_what_is_said_late_or_twice_changes_nothing():
    engine = engine_of(host("a"), host("b"))
    take = Take(host_id="a", lease="l", cpu=1_000, cards=(0,), milli=1_000)
    assert engine.apply(take)
    version, before = engine.version, seen(engine)
    late = (take, GiveBack("a", "other"), GiveBack("gone", "l"), Leave("gone"), Price("gone", 1), Drain("a", False))
    for delta in (*late, Join(host("a")), Health("a"), Health("gone"), Take(host_id="gone", lease="l")):
        assert not engine.apply(delta)
    assert (engine.version, seen(engine)) == (version, before)


def test_a_host_that_loses_a_card_under_allocation_takes_no_more_there_and_gets_it_back_whole():
    engine = engine_of(host(cards=2))
    engine.apply(Take(host_id="h", lease="l", cards=(1,), milli=400))
    engine.apply(Health("h", cards_out=frozenset({1})))
    assert fitting(engine, Request(gpus=2)) == []
    engine.apply(GiveBack("h", "l"))
    assert engine.fleet.left[0] == [1000, -1]
    engine.apply(Health("h"))
    assert engine.fleet.left[0] == [1000, 1000]
    check_index(engine)


def test_a_host_that_shrinks_under_allocation_keeps_its_leases_and_never_counts_twice():
    engine = engine_of(host(cards=4, cpu=32_000))
    engine.apply(Take(host_id="h", lease="l", cpu=20_000, cards=(2, 3), milli=1_000))
    engine.apply(Join(host(cards=2, cpu=16_000)))
    assert (engine.fleet.cpu[0], engine.fleet.left[0]) == (-4_000, [1000, 1000])
    check_index(engine)
    assert fitting(engine, Request(cpu=1)) == []
    engine.apply(GiveBack("h", "l"))
    assert seen(engine) == seen(engine_of(host(cards=2, cpu=16_000)))


def test_a_flapping_host_leaves_no_trace():
    engine = engine_of(host("a"), host("b"))
    taken = Take(host_id="a", lease="l", cpu=1_000, cards=(0,), milli=500)
    engine.apply(taken)
    before, lists = seen(engine), len(engine.fleet.shares.lists)
    for _ in range(600):
        for delta in (Health("a", is_usable=False), Health("a"), Drain("b"), Drain("b", False), Leave("b")):
            engine.apply(delta)
        engine.apply(Join(host("b")))
    assert (seen(engine), len(engine.fleet.shares.lists)) == (before, lists)
    assert (engine.fleet.size, len(engine.fleet.classes.all)) == (2, 1)
    check_index(engine)


def test_a_host_that_comes_back_under_its_name_has_no_leases_of_before():
    engine = engine_of(host("a"))
    engine.apply(Take(host_id="a", lease="l", cards=(0,), milli=1_000))
    engine.apply(Leave("a"))
    engine.apply(Join(host("a", cards=1)))
    assert not engine.apply(GiveBack("a", "l"))
    assert seen(engine) == seen(engine_of(host("a", cards=1)))


def test_rows_in_which_a_card_is_bound_twice_are_taken_as_they_are_and_the_card_is_not_given_again():
    engine = engine_of(host(cards=1))
    for lease in ("a", "b"):
        engine.apply(Take(host_id="h", lease=lease, cards=(0,), milli=600, is_bound=True))
    assert fitting(engine, Request(gpus=1, milli=1)) == []
    check_index(engine)
    engine.apply(GiveBack("h", "a"))
    assert engine.fleet.left[0] == [400]
    check_index(engine)


def test_a_host_with_more_cards_than_the_fleet_takes_is_refused():
    with pytest.raises(ValueError, match="h has 9 cards"):
        engine_of(host(cards=9))
    assert rows(engine_of(host(cards=9), cards_max=16))
    with pytest.raises(ValueError, match="-1 cards"):
        engine_of(Host(host_id="h", cards=-1))
