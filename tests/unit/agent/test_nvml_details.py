"""Further facts of an H100, on the real nvidia-ml-py over the fake library."""

import ctypes

import pytest

from tests.fake_nvml.build import FakeNvml
from tests.unit.agent.test_nvml import SLOW, backend
from windrow_agent.gpu.nvml import NvmlBackend
from windrow_proto.gpu_fields import GPU_FIELDS, Group, Source
from windrow_proto.units import MIB

__all__ = ["backend"]
pytestmark = pytest.mark.proves("NVIDIA readings through the real nvidia-ml-py, on a fake driver")

NOT_OF_AN_IDLE_H100 = {
    *(one.name for one in GPU_FIELDS if one.group is Group.LOCATIONS and "_memory" not in one.name),
    *("pcie_generation_loaded", "pcie_width_loaded", "mig_devices", "mig_profiles"),
    *("banks_remapped", "bank_remap_pending", "retired_corrected", "retired_uncorrected", "retired_pending"),
    *("nvlink_recoveries_succeeded", "nvlink_recoveries_failed"),
    *("kernel_driver", "render_node"),
}
"""Of other makers or other generations, or only there while a card works or is cut into slices."""


def test_slow_metrics_are_in_every_tenth_sweep_only_and_links_are_summed(fake_nvml: FakeNvml, backend: NvmlBackend):
    backend.open()
    backend.inventory()
    uuid, gpu = fake_nvml.state.uuid(0), fake_nvml.state.gpu(0)
    gpu.field[74], gpu.field[75] = 1_299_999_999, 100_000_000
    slow = {metric: value for (owner, metric), value in backend.sample(True).items() if owner == uuid and metric > 15}
    assert slow == {**SLOW, 23: 18 * 4, 24: 18 * 2, 25: 12, 26: 1}
    assert [metric for owner, metric in backend.sample(False) if owner == uuid and metric > 15] == []


def test_every_row_of_the_table_is_a_value_or_absent_and_what_h100s_say_is_all_there(
    fake_nvml: FakeNvml, backend: NvmlBackend
):
    backend.open()
    more = backend.inventory().gpus[0].more
    rows = {one.name for one in GPU_FIELDS if one.source is Source.MORE}
    assert set(more) <= rows
    assert rows - set(more) - NOT_OF_AN_IDLE_H100 == set()
    assert (more["brand"], more["architecture"], more["compute_mode"]) == ("NVIDIA", "Hopper", "default")
    assert (more["persistence_mode"], more["ecc_pending"], more["mig_pending"]) == (1, 1, 0)
    assert (more["bar1_bytes"], more["memory_reserved_bytes"]) == (128 << 30, 551 * MIB)
    assert (more["pdi"], more["cpu_affinity"]) == ("123456789abcdef0", "0-31")
    assert (more["nvlink_count"], more["nvlink_active"], more["nvlink_version"]) == (18, 18, 4)
    assert str(more["nvlink_peers"]).startswith("5 to 00000000:05:00.0, 5 to 00000000:06:00.0, 4 to")
    assert (more["topology"], more["peer_to_peer"]) == ("between NUMA nodes: 1 2 3 4 5 6 7", "1 2 3 4 5 6 7")
    assert (more["fabric_state"], more["recovery_action"], more["nvml_version"]) == (
        "completed",
        "none",
        "13.580.95.05",
    )
    assert [more[f"temperature_{name}"] for name in ("slowdown", "shutdown", "gpu_max", "memory_max")] == [
        87,
        92,
        85,
        95,
    ]


def test_health_counters_follow_the_card_with_the_next_look_at_its_facts(fake_nvml: FakeNvml, backend: NvmlBackend):
    backend.open()
    before, gpu = backend.inventory(), fake_nvml.state.gpu(3)
    gpu.field[142], gpu.field[11], gpu.field[173], gpu.field[230], gpu.remap_pending = 2, 5, 9, 4, 1
    after = backend.inventory()
    changed = {name: value for name, value in after.gpus[3].more.items() if value != before.gpus[3].more[name]}
    assert changed == {
        "remapped_corrected": 2,
        "ecc_corrected_memory": 5,
        "pcie_correctable_errors": 9,
        "remap_pending": 1,
        "recovery_action": "drain and reset",
    }
    assert [one for one in after.gpus if one.index != 3] == [one for one in before.gpus if one.index != 3]


def test_the_link_at_work_is_the_one_that_was_seen_while_the_card_was_busy(fake_nvml: FakeNvml, backend: NvmlBackend):
    backend.open()
    gpu = fake_nvml.state.gpu(0)
    gpu.pcie_generation_now, gpu.pcie_width_now, gpu.utilization = 4, 8, 49
    backend.sample(with_processes=True)
    assert "pcie_width_loaded" not in backend.inventory().gpus[0].more
    gpu.utilization = 50
    backend.sample(with_processes=True)
    gpu.pcie_generation_now, gpu.utilization = 1, 0
    backend.sample(with_processes=True)
    more = backend.inventory().gpus[0].more
    assert (more["pcie_generation_loaded"], more["pcie_width_loaded"]) == (4, 8)


def test_slices_are_named_with_their_kind_and_id(fake_nvml: FakeNvml, backend: NvmlBackend):
    backend.open()
    assert "mig_devices" not in backend.inventory().gpus[0].more
    fake_nvml.state.cut(0, "1g.10gb", "2g.20gb")
    one, two = "MIG-00000100-0000-4000-8000-000000000000", "MIG-00000201-0000-4000-8000-000000000000"
    card = "NVIDIA H100 80GB HBM3"
    facts = backend.inventory().gpus[0]
    assert facts.more["mig_devices"] == f"{card} MIG 1g.10gb {one}, {card} MIG 2g.20gb {two}"
    assert [(part.uuid, part.profile, part.compute_slices) for part in facts.slices] == [
        (one, "1g.10gb", 1),
        (two, "2g.20gb", 2),
    ]


def test_what_hardly_ever_changes_is_read_anew_once_an_hour_and_link_ends_with_the_links(
    fake_nvml: FakeNvml, backend: NvmlBackend
):
    backend.open()
    gpu, other = fake_nvml.state.gpu(0), fake_nvml.state.gpu(1)
    first = backend.inventory().gpus[0].more
    gpu.inforom, gpu.persistence, other.links_up = b"G520.0200.00.06", 0, 17
    looks = [backend.inventory().gpus for _ in range(60)]
    more = [cards[0].more for cards in looks]
    assert {one["persistence_mode"] for one in more} == {0}
    assert {one["inforom"] for one in more[:-1]} == {first["inforom"]}
    assert more[-1]["inforom"] == "G520.0200.00.06"
    assert looks[0][1].more["nvlink_active"] == 17
    assert looks[0][1].more["nvlink_peers"] != first["nvlink_peers"]


def test_what_the_parts_of_a_card_did_is_the_difference_of_two_samples(
    fake_nvml: FakeNvml, backend: NvmlBackend
) -> None:
    backend.open()
    first, neighbour = fake_nvml.state.uuid(0), fake_nvml.state.uuid(1)
    card = fake_nvml.state.gpu(0)
    assert not {metric for _, metric in backend.sample(with_processes=True)} & set(range(27, 35))  # nothing before it
    card.gpm_elapsed += 1_000
    card.gpm_busy[2], card.gpm_busy[5], card.gpm_busy[10] = 875, 423, 1_000
    read = backend.sample(with_processes=True)
    told = {metric: value for (uuid, metric), value in read.items() if uuid == first and metric >= 27}
    assert told == {27: 0, 28: 875, 29: 0, 30: 423, 31: 1_000, 32: 0, 33: 0, 34: 0}
    assert (neighbour, 28) not in read  # no time has passed there: absent, not zero
    assert not {metric for _, metric in backend.sample(with_processes=False)} & set(range(27, 35))
    card.gpm_elapsed += 100
    assert backend.sample(with_processes=True)[first, 28] == 0  # of the time since the one before, and not of all


def test_samples_of_counters_are_let_go_of_and_a_card_without_them_tells_none(
    fake_nvml: FakeNvml, backend: NvmlBackend
) -> None:
    backend.open()
    library = ctypes.CDLL(str(fake_nvml.library))
    fake_nvml.state.gpu(1).gpm_elapsed = 0
    before = library.fake_samples()
    backend.sample(with_processes=True)
    assert library.fake_samples() - before == 2 * 7  # eight cards, one of which has no counters
    backend.close()
    assert library.fake_samples() == before
