"""What is learnt of requests: the worth of parts of a card, and tables that are the same for the same requests."""

import json
from itertools import islice

import numpy as np
import pytest

from tests.unit.placement.engine.fleets import engine_of, host, requests
from windrow_master.placement.engine.mix import share_level
from windrow_master.placement.engine.model import Asked, Request
from windrow_master.placement.engine.worth import Cutting, knapsack


def solved(demand: dict[int, int]) -> Cutting:
    cutting = Cutting(101)
    counts = np.zeros(101, dtype=np.int64)
    for size, count in demand.items():
        counts[size] = count
    cutting.start(counts)
    for _ in range(500):
        if cutting.step():
            return cutting
    raise AssertionError("no solution in 500 steps")


@pytest.mark.parametrize(
    ("demand", "part", "worth"),
    [
        ({51: 10}, 50, 0.0),  # what no request can use is worth nothing
        ({51: 10}, 51, 1.0),  # a card serves one: all of its worth is in it
        ({33: 9}, 33, 1 / 3),
        ({50: 4, 100: 1}, 50, 0.5),
        ({81: 10, 19: 10}, 100, 1.0),
        ({81: 10, 19: 100}, 19, 0.2),  # more small ones than gaps: five of them fill a card
        ({81: 100, 19: 10}, 19, 0.0),  # more gaps than small ones
    ],
)
def test_a_part_of_a_card_is_worth_what_can_still_be_cut_from_it(demand: dict[int, int], part: int, worth: float):
    assert solved(demand).table[part] == pytest.approx(worth)


def test_the_worth_of_a_hundred_sizes_is_bounded_in_steps_and_never_more_than_a_card():
    chance = np.random.default_rng(4)
    table = solved({size: int(chance.integers(1, 1000)) for size in range(1, 101)}).table
    assert table[0] == 0
    assert table[100] <= 1.0
    assert (np.diff(table) >= -1e-9).all()


def test_the_worth_agrees_with_a_bound_by_area():
    """No mix is served by fewer cards than its area, nor by more than a card for each request."""
    chance = np.random.default_rng(5)
    for _ in range(20):
        demand = {int(size): int(chance.integers(1, 50)) for size in chance.integers(1, 101, 8)}
        table = solved(demand).table
        cards = sum(count * table[size] for size, count in demand.items())
        assert sum(size * count for size, count in demand.items()) / 100 <= cards + 1e-6
        assert cards <= sum(demand.values()) + 1e-6


def test_the_knapsack_is_exact():
    chance = np.random.default_rng(6)
    for _ in range(10):
        values = np.full(41, -1e9)
        sizes = chance.integers(1, 41, 5)
        values[sizes] = chance.random(5)
        exact = [0.0] * 41
        for room in range(1, 41):
            exact[room] = max([exact[room - 1], *(values[s] + exact[room - s] for s in sizes if s <= room)])
        assert knapsack(values) == pytest.approx(exact)


def test_sizes_in_levels_give_as_many_pieces_as_in_milli():
    assert all(100 // share_level(milli) >= 1000 // milli for milli in range(10, 1001))
    assert [share_level(milli) for milli in (1, 333, 334, 500, 510, 1000)] == [1, 33, 34, 50, 51, 100]


def test_the_same_requests_give_the_same_tables_in_a_fleet_that_joined_in_another_order():
    def tables(order: range) -> object:
        engine = engine_of(*(host(f"h{at}") for at in order))
        for request in islice(requests(3), 1_500):
            engine.apply(Asked(request))
        found = engine.tables
        return [getattr(found, name).tolist() for name in ("shares", "wholes", "worth", "strand", "shortage")]

    assert tables(range(20)) == tables(range(19, -1, -1))


def test_the_mix_forgets_and_its_numbers_stay_bounded():
    engine = engine_of(host())
    for _ in range(1_000):
        engine.apply(Asked(Request(gpus=8)))
    engine.mix.grown = 60 << 32
    for _ in range(8_000):
        engine.apply(Asked(Request(gpus=1, milli=100)))
    assert engine.mix.grown < 64 << 32
    assert engine.mix.whole_weights.sum() < engine.mix.share_weights.sum() // 20
    assert max(int(engine.tables.shares.max()), int(engine.tables.wholes.max())) < 1 << 40


def test_a_master_that_begins_anew_starts_from_what_was_saved():
    first = engine_of(host("a"), host("b", model="t4"))
    for request in islice(requests(3), 1_024):
        first.apply(Asked(request))
    second = engine_of(host("b", model="t4"), host("c", model="new"), host("a"))
    second.restore_mix(json.loads(json.dumps(first.saved_mix())))
    assert second.tables.worth.tolist() == first.tables.worth.tolist()
    assert second.tables.strand.tolist() == first.tables.strand.tolist()
    groups = {name: at for at, name in enumerate(second.fleet.classes.groups)}
    for at, name in enumerate(first.fleet.classes.groups):
        share = second.tables.shares.reshape(3, -1)[groups[name]]
        assert share.tolist() == first.tables.shares.reshape(2, -1)[at].tolist()
