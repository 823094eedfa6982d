"""A tier follows from what was measured, says why, and does not flicker."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_master.fleet import gpu_table
from windrow_master.fleet.tiers import (
    Bandwidth,
    Grade,
    cpu_expected,
    cpu_tier,
    gpu_tier,
    grade_of,
    worst_tier,
)
from windrow_proto.ids import GpuUuid
from windrow_proto.metrics import CPU_HASH, GPU_MEMORY, MEMORY_COPY
from windrow_proto.model import Benchmark, GpuFacts, Inventory

FAST = Bandwidth(900_000_000, 940_000_000, "acc_1")
H100 = gpu_table.BY_PCI[0x2330 << 16 | gpu_table.NVIDIA]


def card(memory_bytes=81559 << 20, pci=0x2330 << 16 | gpu_table.NVIDIA):
    return GpuFacts(
        GpuUuid("GPU-1"), 0, "nvidia", "NVIDIA H100 80GB HBM3", pci_device_id=pci, memory_bytes=memory_bytes
    )


def speed(ratio, subject="GPU-1"):
    assert H100.bandwidth_gb_s is not None
    return (Benchmark(GPU_MEMORY, H100.bandwidth_gb_s.value * 1e9 * ratio, "By/s", 1, subject),)


def machine(ratio):
    marks = tuple(Benchmark(name, want * ratio, unit, 1) for name, (want, unit) in cpu_expected(4).items())
    return Inventory(cpu_model="Some CPU", cpu_count=4, benchmarks=marks)


@pytest.mark.parametrize(("ratio", "grade"), [(1.2, "A"), (0.9, "A"), (0.89, "B"), (0.7, "B"), (0.69, "C"), (0, "C")])
def test_the_grade_is_measured_over_expected(ratio, grade):
    assert grade_of(ratio) == grade
    assert gpu_tier(card(), speed(max(ratio, 0.01)), FAST).name == f"h100/{grade}"
    assert cpu_tier(machine(max(ratio, 0.01)), FAST).name == f"cpu/{grade}"


@pytest.mark.parametrize(
    ("previous", "ratio", "grade"),
    [
        ("A", 0.885, "A"),
        ("A", 0.87, "B"),
        ("B", 0.91, "B"),
        ("B", 0.925, "A"),
        ("B", 0.69, "B"),
        ("B", 0.67, "C"),
        ("C", 0.71, "C"),
        ("C", 0.725, "B"),
        ("A", 0.5, "C"),
        ("C", 1.0, "A"),
    ],
)
def test_a_grade_moves_only_clearly_past_the_limit(previous, ratio, grade):
    assert grade_of(ratio, Grade(previous)) == grade
    assert cpu_tier(machine(ratio), FAST, f"cpu/{previous}").grade == grade


@given(st.floats(0, 3), st.floats(0, 3), st.sampled_from([None, *Grade]))
def test_more_speed_never_lowers_the_grade(a, b, previous):
    low, high = sorted((a, b))
    assert grade_of(high, previous) <= grade_of(low, previous)


@given(st.floats(0, 3), st.sampled_from(list(Grade)))
def test_the_same_figure_twice_gives_the_same_grade(ratio, previous):
    first = grade_of(ratio, previous)
    assert grade_of(ratio, first) == first


def test_what_was_not_measured_is_c_and_says_so():
    tier = gpu_tier(card(), (), None)
    assert tier.name == "h100/C"
    assert "gpu.memory_bytes_per_s: not measured yet" in tier.reasons
    assert "bandwidth: not measured yet" in tier.reasons
    assert "cpu.sha256_bytes_per_s: not measured yet" in cpu_tier(Inventory(cpu_count=2), None).reasons


def test_the_same_model_with_half_the_bandwidth_is_in_another_tier():
    assert gpu_tier(card(), speed(0.5), FAST).name != gpu_tier(card(), speed(1), FAST).name


def test_another_cards_figures_do_not_count():
    assert gpu_tier(card(), speed(1, "GPU-2"), FAST).grade == "C"


def test_memory_outside_the_models_window_is_c_with_the_window_in_words():
    tier = gpu_tier(card(memory_bytes=40 << 30), speed(1), FAST)
    assert tier.grade == "C"
    assert any("outside 72.0 to 84.0 GiB" in reason for reason in tier.reasons)


def test_a_bandwidth_that_nobody_read_in_a_sheet_grades_nothing():
    model = next(each for each in gpu_table.MODELS if each.bandwidth_gb_s is None)
    pci = next(number for number, each in gpu_table.BY_PCI.items() if each is model)
    claimed = card(memory_bytes=model.memory_gib.value << 30, pci=pci)
    tier = gpu_tier(claimed, (Benchmark(GPU_MEMORY, 1e15, "By/s", 1, "GPU-1"),), FAST, f"{model.model_class}/A")
    assert tier.name == f"{model.model_class}/C"
    assert "gpu.memory_bytes_per_s: expected figure not yet read from a sheet" in tier.reasons


def test_a_card_the_table_does_not_hold_is_unlisted():
    tier = gpu_tier(card(pci=0xFFFF10DE), speed(1), FAST)
    assert tier.name == "unlisted/C"
    assert "0xffff10de" in tier.reasons[0]


@pytest.mark.parametrize(("bps", "grade"), [(200_000_000, "A"), (99_000_000, "B"), (9_000_000, "C")])
def test_a_slow_link_caps_the_grade(bps, grade):
    assert cpu_tier(machine(1), Bandwidth(bps, 10**9, "acc_1")).grade == grade


def test_a_figure_in_another_unit_is_not_compared():
    marks = (Benchmark(CPU_HASH, 1e12, "flops", 1), Benchmark(MEMORY_COPY, 1e12, "By/s", 1))
    tier = cpu_tier(Inventory(benchmarks=marks), FAST)
    assert tier.grade == "C"
    assert any("measured in flops" in reason for reason in tier.reasons)


def test_a_host_shows_the_worst_of_its_gpus():
    tiers = [gpu_tier(card(), speed(r), FAST) for r in (1, 0.5, 0.8)]
    assert worst_tier(tiers) is tiers[1]
    assert worst_tier([]) is None
