"""A tier follows from what was measured, says why, and does not flicker."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_master.fleet import gpus
from windrow_master.fleet.tiers import (
    BANDWIDTH,
    LINK,
    MATRIX_EXPECTED,
    RATIO,
    RELIABILITY,
    SHEET_REACHED,
    Bandwidth,
    Grade,
    Health,
    Standing,
    cpu_expected,
    cpu_tier,
    gpu_tier,
    grade_of,
    worst_tier,
)
from windrow_proto.ids import GpuUuid
from windrow_proto.metrics import CPU_HASH, GPU_MATRIX, GPU_MEMORY, MATRIX_UNIT, MEMORY_COPY
from windrow_proto.model import Benchmark, GpuFacts, Inventory

FAST = Bandwidth(900_000_000, 940_000_000, "acc_1")
H100 = gpus.BY_PCI[0x2330 << 16 | gpus.NVIDIA]


def card(memory_bytes=81559 << 20, pci=0x2330 << 16 | gpus.NVIDIA):
    return GpuFacts(
        GpuUuid("GPU-1"), 0, "nvidia", "NVIDIA H100 80GB HBM3", pci_device_id=pci, memory_bytes=memory_bytes
    )


def speed(ratio, subject="GPU-1"):
    """The memory's rate as this share of what is expected, and the whole matrix rate."""
    assert H100.bandwidth_gb_s is not None
    memory = H100.bandwidth_gb_s.value * 1e9 * SHEET_REACHED * ratio
    return (
        Benchmark(GPU_MEMORY, memory, "By/s", 1, subject),
        Benchmark(GPU_MATRIX, MATRIX_EXPECTED["h100"], MATRIX_UNIT, 1, subject),
    )


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
    assert tier.reasons[0] == "C: GPU memory speed: not measured yet"
    assert "bandwidth: not measured yet" in tier.reasons
    assert "C: processor speed (SHA-256): not measured yet" in cpu_tier(Inventory(cpu_count=2), None).reasons


def test_a_gpu_with_the_right_name_and_half_the_bandwidth_is_in_another_tier():
    honest, slow = gpu_tier(card(), speed(1), FAST), gpu_tier(card(), speed(0.5), FAST)
    assert (honest.name, slow.name) == ("h100/A", "h100/C")
    assert slow.reasons[0] == "C: GPU memory speed: 50% of the expected 2.68 TB/s"


@pytest.mark.parametrize(("of_sheet", "grade"), [(1.0, "A"), (1.09, "A"), (1.11, "C"), (50.0, "C")])
def test_more_than_a_card_can_do_is_not_believed(of_sheet, grade):
    tier = gpu_tier(card(), speed(of_sheet / SHEET_REACHED), FAST)
    assert tier.grade == grade
    assert ("is not believed: its sheet says 3.35 TB/s" in tier.reasons[0]) is (grade == "C")


@pytest.mark.parametrize(
    ("pcie", "grade", "said"),
    [
        ((5, 16), "A", "PCIe x16 of x16"),
        ((5, 8), "B", "B: PCIe x8 of x16"),
        ((4, 16), "B", "B: PCIe generation 4 of 5"),
        ((4, 8), "C", "C: PCIe x8 of x16, generation 4 of 5"),
        ((5, 4), "C", "C: PCIe x4 of x16"),
        (None, "A", "PCIe: not measured yet"),
    ],
)
def test_a_narrow_or_old_pcie_link_is_a_lesser_tier_and_says_so(pcie, grade, said):
    tier = gpu_tier(card(), speed(1), FAST, standing=Standing(pcie=pcie))
    assert tier.grade == grade
    assert said in tier.reasons


@pytest.mark.parametrize(
    ("width", "measured", "grade", "said"),
    [
        (16, None, "A", "PCIe at most x16 of x16; not measured yet"),
        (8, None, "B", "B: PCIe at most x8 of x16; not measured yet"),
        (16, (5, 8), "B", "B: PCIe x8 of x16"),
        (8, (5, 16), "A", "PCIe x16 of x16"),
    ],
)
def test_a_link_not_measured_is_at_most_what_the_driver_says_is_possible(width, measured, grade, said):
    claimed = replace(card(), pcie_generation_max=5, pcie_width_max=width)
    tier = gpu_tier(claimed, speed(1), FAST, standing=Standing(pcie=measured))
    assert tier.grade == grade
    assert said in tier.reasons


def test_a_link_is_not_held_against_a_maximum_that_nobody_read():
    model = next(each for each in gpus.MODELS if each.pcie is None and each.bandwidth_gb_s is not None)
    assert model.bandwidth_gb_s is not None
    [pci, *_] = [number for number, each in gpus.BY_PCI.items() if each is model]
    mine = card(model.memory_gib.value << 30, pci)
    marks = (Benchmark(GPU_MEMORY, model.bandwidth_gb_s.value * 1e9, "By/s", 1, "GPU-1"),)
    tier = gpu_tier(mine, marks, FAST, standing=Standing(pcie=(3, 1)))
    assert tier.grade == "A"
    assert "PCIe: x1 of generation 3; this model's own not yet read from a sheet" in tier.reasons


def test_of_two_cards_under_one_pci_id_the_memory_says_which_is_meant():
    pci = 0x2803 << 16 | gpus.NVIDIA
    assert [gpu_tier(card(gib << 30, pci), (), FAST).tier_class for gib in (8, 16)] == ["rtx4060ti-8", "rtx4060ti-16"]


@pytest.mark.parametrize(
    ("standing", "grade", "said"),
    [
        (Standing(), "A", "health: not known yet"),
        (Standing(health=Health.OK), "A", "health: ok"),
        (Standing(health=Health.DEGRADED), "B", "B: health: degraded"),
        (Standing(health=Health.FAILED), "C", "C: health: failed"),
        (Standing(), "A", "reliability: not measured yet"),
        (Standing(reliability=0.99), "A", "reliability: 0.990"),
        (Standing(reliability=0.95), "B", "B: reliability: 0.950"),
        (Standing(reliability=0.05), "C", "C: reliability: 0.050"),
    ],
)
def test_what_was_seen_over_time_caps_the_grade(standing, grade, said):
    tier = gpu_tier(card(), speed(1), FAST, standing=standing)
    assert tier.grade == grade
    assert said in tier.reasons


def test_a_hosts_reliability_counts_for_its_processors_too():
    assert cpu_tier(machine(1), FAST, standing=Standing(Health.FAILED, 0.95)).name == "cpu/B"


def test_what_keeps_the_grade_down_stands_first():
    tier = gpu_tier(card(), speed(0.5), Bandwidth(99_000_000, 10**9, "acc_1"), standing=Standing(pcie=(5, 8)))
    assert [reason[:3] for reason in tier.reasons[:3]] == ["C: ", "B: ", "B: "]
    assert tier.reasons[1] == "B: PCIe x8 of x16"
    assert not any(reason.startswith(("A: ", "B: ", "C: ")) for reason in tier.reasons[3:])


def test_the_matrix_rate_grades_a_calibrated_class_and_is_shown_for_any(monkeypatch):
    def marked(share):
        rate = MATRIX_EXPECTED["h100"] * share
        return (speed(1)[0], Benchmark(GPU_MATRIX, rate, MATRIX_UNIT, 1, "GPU-1"))

    assert [gpu_tier(card(), marked(share), FAST).grade for share in (1, 0.8, 0.5)] == ["A", "B", "C"]
    assert gpu_tier(card(), speed(1)[:1], FAST).reasons[0] == "C: matrix speed: not measured yet"
    monkeypatch.setattr("windrow_master.fleet.tiers.MATRIX_EXPECTED", {})
    shown = gpu_tier(card(), marked(1), FAST)
    assert shown.grade == "A"
    assert "matrix speed: 15.38 Top/s; this class is not calibrated" in shown.reasons


@pytest.mark.parametrize(
    ("tier", "bps", "reliability", "grade"),
    [
        ("h100/A", 97_000_000, 0.99, "A"),
        ("h100/A", 94_000_000, 0.99, "B"),
        ("h100/B", 103_000_000, 0.99, "B"),
        ("h100/B", 106_000_000, 0.99, "A"),
        ("h100/A", 10**9, 0.977, "A"),
        ("h100/A", 10**9, 0.974, "B"),
        ("h100/B", 10**9, 0.983, "B"),
        ("h100/B", 10**9, 0.986, "A"),
    ],
)
def test_the_internet_link_and_reliability_do_not_flicker_either(tier, bps, reliability, grade):
    standing = Standing(reliability=reliability)
    assert gpu_tier(card(), speed(1), Bandwidth(bps, 10**9, "acc_1"), tier, standing).grade == grade


@pytest.mark.parametrize("limits", [RATIO, LINK, BANDWIDTH, RELIABILITY])
def test_each_figure_has_its_slack(limits):
    for limit, upper, lower in ((limits.a, Grade.A, Grade.B), (limits.b, Grade.B, Grade.C)):
        inside = limits.slack * 0.9
        assert grade_of(limit - inside, upper, limits) is upper
        assert grade_of(limit + inside, lower, limits) is (lower if limits.slack else upper)
        assert grade_of(limit - limits.slack * 1.1 - 1e-9, upper, limits) is lower
        assert grade_of(limit + limits.slack * 1.1, lower, limits) is upper


def test_another_cards_figures_do_not_count():
    assert gpu_tier(card(), speed(1, "GPU-2"), FAST).grade == "C"


def test_memory_outside_the_models_window_is_c_with_the_window_in_words():
    tier = gpu_tier(card(memory_bytes=40 << 30), speed(1), FAST)
    assert tier.grade == "C"
    assert any("outside 72.0 to 84.0 GiB" in reason for reason in tier.reasons)


def test_a_bandwidth_that_nobody_read_in_a_sheet_grades_nothing():
    model = next(each for each in gpus.MODELS if each.bandwidth_gb_s is None)
    pci = next(number for number in gpus.BY_PCI if gpus.find(number, model.memory_gib.value << 30) is model)
    claimed = card(memory_bytes=model.memory_gib.value << 30, pci=pci)
    tier = gpu_tier(claimed, (Benchmark(GPU_MEMORY, 1e15, "By/s", 1, "GPU-1"),), FAST, f"{model.model_class}/A")
    assert tier.name == f"{model.model_class}/C"
    assert "C: GPU memory speed: expected figure not yet read from a sheet" in tier.reasons


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
