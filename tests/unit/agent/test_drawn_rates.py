"""The rates of simulated cards: the same each time, within the card's sheet, and of every grade in a small fleet."""

from collections import Counter

import pytest

from windrow_agent.gpu.drawn_rates import draw
from windrow_agent.gpu.personas import H100, RTX_4090
from windrow_agent.host.simulated import SimulatedHost
from windrow_master.fleet import gpus, tiers
from windrow_proto.clock import SystemClock
from windrow_proto.metrics import BENCHMARK_UNIT, GPU_MATRIX, GPU_MEMORY, MATRIX_UNIT
from windrow_proto.model import Benchmark

DEMO = 50
"""Hosts of `make up SIMULATE=50`, whose seed is 1."""


def graded(seed: int, hosts: int) -> Counter[str]:
    """How many cards of such a fleet the Master grades A, B and C by their drawn rates."""
    found = Counter[str]()
    for number in range(hosts):
        host = SimulatedHost(seed, number, SystemClock())
        rates = host.card_rates()
        for gpu in host.gpus.inventory().gpus:
            drawn = rates[gpu.uuid]
            marks = (
                Benchmark(GPU_MEMORY, float(drawn.memory), BENCHMARK_UNIT, 1, gpu.uuid),
                Benchmark(GPU_MATRIX, float(drawn.matrix), MATRIX_UNIT, 1, gpu.uuid),
            )
            model = gpus.find(gpu.pci_device_id, gpu.memory_bytes)
            assert model is not None and model.bandwidth_gb_s is not None
            assert 0.25e9 * model.bandwidth_gb_s.value < drawn.memory < 0.95e9 * model.bandwidth_gb_s.value
            found[tiers.gpu_tier(gpu, marks, None, is_drawn=True).grade] += 1
    return found


def test_a_demo_shows_every_grade_and_most_cards_are_sound() -> None:
    found = graded(1, DEMO)
    assert set(found) == {"A", "B", "C"}
    assert found["A"] > found["B"] > found["C"] > 0
    assert found["A"] < 0.9 * sum(found.values())


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_another_seed_draws_another_fleet_of_the_same_kind(seed: int) -> None:
    found = graded(seed, DEMO)
    assert set(found) == {"A", "B", "C"} and found["A"] > found["B"]
    assert found != graded(1, DEMO)


def test_rates_are_the_same_each_time_and_alike_on_one_host() -> None:
    assert draw(H100, "1|0", "GPU-1") == draw(H100, "1|0", "GPU-1")
    host = [draw(RTX_4090, "1|2", f"GPU-{number}").memory for number in range(8)]
    assert len(set(host)) == 8
    assert sorted(host)[-1] < 1.03 * sorted(host)[4]


def test_hosts_under_desks_are_slower_more_often() -> None:
    slow = {
        persona.name: sum(draw(persona, f"1|{number}", "GPU-1").memory < 0.72 * sheet for number in range(400))
        for persona, sheet in ((H100, 3352.3e9), (RTX_4090, 1008.1e9))
    }
    assert slow[RTX_4090.name] > 1.5 * slow[H100.name] > 0
