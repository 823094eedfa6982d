"""Cards of AMD, Intel and others are read from the kernel's files; what these do not say is absent."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import gpu_trees
from tests.support.gpu_trees import Machine
from windrow_agent.core.gpu_port import CutRefusedError, GpuEventKind
from windrow_agent.gpu import sysfs_files as files
from windrow_agent.gpu.amd import AmdCard
from windrow_agent.gpu.amd_smi import AmdSmi
from windrow_agent.gpu.intel import IntelCard
from windrow_agent.gpu.sysfs import SysfsGpus
from windrow_agent.gpu.sysfs_card import Place
from windrow_proto.model import GpuFacts

AT = "0000:43:00.0"
SWITCH = (
    {
        "vendor": "0x1002",
        "max_link_speed": "16.0 GT/s PCIe",
        "max_link_width": "8",
        "current_link_speed": "8.0 GT/s PCIe",
        "current_link_width": "8",
    },
    {"vendor": "0x1002", "max_link_speed": "16.0 GT/s PCIe", "max_link_width": "16"},
)
"""A card's own switch in a slot of eight lanes: its upper bridge, then its lower one."""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return gpu_trees.machine(tmp_path)


def opened(machine: Machine) -> SysfsGpus:
    gpus = SysfsGpus(machine.root)
    assert gpus.open() is None
    return gpus


def only(machine: Machine) -> GpuFacts:
    (found,) = opened(machine).inventory().gpus
    return found


def swept(gpus: SysfsGpus, with_processes: bool = False) -> dict[int, int | None]:
    """The values that one sweep reads of the only card."""
    return {metric: value for (_, metric), value in gpus.sample(with_processes).items()}


def test_an_accelerator_of_amd_tells_what_it_is(machine: Machine) -> None:
    machine.card(AT, gpu_trees.MI300X, "amdgpu")
    found = only(machine)
    assert (found.vendor, found.name, found.uuid) == ("amd", "AMD Instinct MI300X OAM", "GPU-3b6f2c1d90a4e857")
    assert (found.pci_device_id, found.pci_subsystem_id, found.pci_bus_id) == (0x74A11002, 0x74A11002, AT)
    assert (found.serial, found.vbios, found.numa_node) == ("692251001234", "113-M3000100-102", 1)
    assert (found.memory_bytes, found.power_limit_mw, found.power_limit_max_mw) == (206141652992, 750_000, 750_000)
    assert (found.clock_sm_max_mhz, found.clock_memory_max_mhz) == (2100, 1300)
    assert (found.pcie_generation_max, found.pcie_width_max) == (5, 16)
    assert found.more == {
        "kernel_driver": "amdgpu",
        "render_node": "/dev/dri/renderD128",
        "cpu_affinity": "48-95,144-191",
        "board_part_number": "102-G30211-00",
        "power_limit_default_mw": 750_000,
        "bar1_bytes": 206141652992,
        "ecc_corrected": 9,
        "retired_uncorrected": 2,
        "retired_pending": 0,
        "temperature_slowdown": 100,
        "temperature_memory_max": 105,
    }
    assert (found.compute_capability_major, found.mig_enabled, found.ecc_enabled, found.core_count) == (None,) * 4


def test_a_sweep_of_an_accelerator_of_amd_reads_its_sensors_and_leaves_the_rest_absent(machine: Machine) -> None:
    machine.card(AT, gpu_trees.MI300X, "amdgpu")
    gpus = opened(machine)
    gpus.inventory()
    read = swept(gpus, with_processes=True)
    wanted = {1: 87, 2: 41, 3: 284, 4: 61, 5: 49, 6: 6123, 8: 1987, 9: 1300, 13: 1, 14: 3, 19: 5, 20: 16}
    assert {metric: value for metric, value in read.items() if value is not None} == wanted
    assert set(range(1, 16)) <= set(read)  # absent, and named all the same
    (health,) = gpus.health()
    assert (health.temperature_celsius, health.slowdown_celsius, health.ecc_uncorrected) == (61, 100, 1)
    assert (health.remap_pending, health.remap_failed, health.compute_processes) == (False, False, None)
    assert gpus.inventory().gpus[0].more["pcie_width_loaded"] == 16  # it was at work


@pytest.mark.parametrize(("mark", "pending", "failed"), [("P", True, False), ("F", False, True), ("R", False, False)])
def test_a_bad_page_that_waits_is_a_repair_that_waits(machine: Machine, mark: str, pending: bool, failed: bool) -> None:
    folder = machine.card(AT, gpu_trees.MI300X, "amdgpu")
    gpus = opened(machine)
    (folder / "ras/gpu_vram_bad_pages").write_text(f"0x00000001 : 0x00001000 : {mark}\n")
    gpus.sample(False)
    (health,) = gpus.health()
    assert (health.remap_pending, health.remap_failed) == (pending, failed)


def test_programs_on_a_card_of_amd_are_those_that_hold_its_memory(machine: Machine) -> None:
    machine.card(AT, gpu_trees.MI300X, "amdgpu")
    machine.card("0000:44:00.0", {**gpu_trees.MI300X, "unique_id": "ffff"}, "amdgpu")
    machine.compute_node(1, AT, {4711: 1 << 30, 4712: 4096, 4713: 0})
    machine.compute_node(2, "0000:44:00.0", {})
    gpus = opened(machine)
    gpus.sample(with_processes=True)
    assert [health.compute_processes for health in gpus.health()] == [2, 0]
    assert gpus.look(frozenset({"GPU-3b6f2c1d90a4e857"}))["GPU-3b6f2c1d90a4e857"].processes == 2


def test_a_desktop_card_behind_its_own_switch_tells_the_link_of_its_slot(machine: Machine) -> None:
    machine.card(AT, gpu_trees.RX_7900_XTX, "amdgpu", bridges=SWITCH)
    found, gpus = only(machine), opened(machine)
    assert (found.pcie_generation_max, found.pcie_width_max) == (4, 8)
    read = swept(gpus, with_processes=True)
    assert (read[19], read[20]) == (3, 8)
    assert (read[4], read[12], read[13]) == (38, 20, None)
    (health,) = gpus.health()
    assert (health.temperature_celsius, health.slowdown_celsius) == (41, 110)
    assert (health.remap_pending, found.numa_node, found.more.get("ecc_corrected")) == (None, None, None)


def test_a_name_comes_from_the_list_of_pci_ids_where_the_card_has_none(machine: Machine) -> None:
    machine.card(AT, gpu_trees.RX_7900_XTX, "amdgpu")
    assert only(machine).name == "AMD card 744c"
    other, own = "\t744c  Wrong\n", "\t744c  Navi 31 [Radeon RX 7900 XT/7900 XTX]\n"
    rows = f"# ids\n1001  Other\n{other}1002  AMD/ATI\n{own}1003  Last\n{other}"
    gpu_trees.write(machine.root, {"usr/share/misc/pci.ids": rows})
    assert only(machine).name == "Radeon RX 7900 XT/7900 XTX"


def test_amds_library_adds_energy_name_and_the_width_of_the_memory(machine: Machine) -> None:
    machine.card(AT, gpu_trees.RX_7900_XTX, "amdgpu")
    smi = AmdSmi(lambda: library(AT.upper()))
    assert smi.open()
    card = AmdCard(Place(machine.root, machine.folders[AT], AT), 0, smi)
    card.refresh()
    assert (card.facts.name, card.facts.memory_bus_bits) == ("Radeon RX 7900 XTX", 384)
    assert card.read(False)[7] == 15  # 1,000,000 of 15.3 microjoules


def library(address: str) -> Any:
    """amdsmi as its release 7.0 answers, of one card."""
    return SimpleNamespace(
        amdsmi_init=lambda: None,
        amdsmi_shut_down=lambda: None,
        amdsmi_get_processor_handles=lambda: ["handle"],
        amdsmi_get_gpu_device_bdf={"handle": address}.__getitem__,
        amdsmi_get_gpu_asic_info={"handle": {"market_name": "Radeon RX 7900 XTX"}}.__getitem__,
        amdsmi_get_gpu_vram_info={"handle": {"vram_bit_width": 384}}.__getitem__,
        amdsmi_get_energy_count={
            "handle": {"energy_accumulator": 1_000_000, "counter_resolution": 15.3, "timestamp": 1}
        }.__getitem__,
    )


def fails(*_: object) -> Any:
    raise KeyError("libamd_smi.so")  # what its import raises where the driver's library is missing


@pytest.mark.parametrize(
    "load",
    [fails, lambda: SimpleNamespace(), lambda: SimpleNamespace(amdsmi_init=fails)],
    ids=["import", "old", "init"],
)
def test_without_amds_library_its_figures_are_absent(machine: Machine, load: Any) -> None:
    machine.card(AT, gpu_trees.RX_7900_XTX, "amdgpu")
    smi = AmdSmi(load)
    assert not smi.open()
    card = AmdCard(Place(machine.root, machine.folders[AT], AT), 0, smi)
    card.refresh()
    assert (card.read(False)[7], card.facts.memory_bus_bits) == (None, None)


def test_a_card_of_intel_tells_what_xe_says(machine: Machine) -> None:
    folder = machine.card(AT, gpu_trees.ARC_A770, "xe", bridges=({**SWITCH[0], "vendor": "0x8086"},))
    clock = iter(range(0, 10_000_000_000, 2_000_000_000))
    card = IntelCard(Place(machine.root, folder, AT), 0, lambda: next(clock))
    card.refresh()
    assert (card.facts.vendor, card.facts.memory_bytes, card.facts.clock_sm_max_mhz) == ("intel", 17079205888, 2400)
    assert (card.facts.power_limit_mw, card.facts.more["power_limit_default_mw"]) == (190_000, 225_000)
    assert (card.facts.pcie_generation_max, card.facts.pcie_width_max) == (4, 8)
    first = card.read(False)
    assert (first[1], first[6], first[4], first[5], first[7], first[8]) == (None, None, 57, 62, 5, 2100)
    (folder / "hwmon/hwmon3/energy1_input").write_text("305000000\n")  # 300 J more after two seconds
    (folder / "tile0/gt0/gtidle/idle_residency_ms").write_text("1500\n")  # half a second of them idle
    second = card.read(False)
    assert (second[6], second[1], second[7]) == (1500, 75, 305)
    assert (second[10], second.get(3)) == (0x4, None)  # held down by its power limit; memory in use is told by nobody


def test_a_card_of_intel_tells_what_i915_says(machine: Machine) -> None:
    machine.card(AT, gpu_trees.FLEX_170, "i915")
    found, gpus = only(machine), opened(machine)
    assert (found.memory_bytes, found.clock_sm_max_mhz) == (16225243136, 2050)
    gpus.inventory()
    read = swept(gpus)
    assert (read[8], read[4], read[3], read[10]) == (1950, 44, 1907, 0x20 | 0x40)
    (health,) = gpus.health()
    assert (health.slowed_by, health.memory_used_bytes) == (0x60, 2_000_000_000)


def test_a_card_without_an_id_of_its_own_has_one_of_its_machine_and_place(machine: Machine, tmp_path: Path) -> None:
    machine.card(AT, gpu_trees.ARC_A770, "xe")
    machine.card("0000:44:00.0", gpu_trees.ARC_A770, "xe")
    first, second = (gpu.uuid for gpu in opened(machine).inventory().gpus)
    assert [gpu.uuid for gpu in opened(machine).inventory().gpus] == [first, second]
    assert first != second and first.startswith("PCI-")
    gpu_trees.write(machine.root, {"etc/machine-id": "another"})
    assert opened(machine).inventory().gpus[0].uuid not in {first, second}


@pytest.mark.parametrize(
    ("files", "driver"),
    [
        (gpu_trees.GAUDI, "habanalabs"),
        (gpu_trees.GAUDI, ""),
        (gpu_trees.MI300X, "vfio-pci"),
        (gpu_trees.MI300X, ""),
        (gpu_trees.ARC_A770, "vfio-pci"),
    ],
)
def test_a_card_that_no_driver_serves_is_shown_and_not_offered(
    machine: Machine, files: dict[str, str], driver: str
) -> None:
    machine.card(AT, files, driver)
    gpus = opened(machine)
    (found,) = gpus.inventory().gpus
    assert found.pci_device_id == int(files["device"], 16) << 16 | int(files["vendor"], 16)
    assert (found.memory_bytes, found.vendor) == (None, {"0x1002": "amd", "0x8086": "intel"}.get(files["vendor"], ""))
    assert [condition.text for condition in gpus.conditions()] == [f"gpu.not_served:{found.uuid}"]
    assert set(swept(gpus).values()) == {None}


def test_graphics_of_processors_and_consoles_are_no_cards_and_nvidias_are_left_to_its_library(machine: Machine) -> None:
    machine.card("0000:00:02.0", gpu_trees.UHD, "i915")
    machine.card("0000:05:00.0", gpu_trees.APU, "amdgpu")
    machine.card("0000:06:00.0", gpu_trees.ASPEED, "ast")
    limited = {"hwmon/hwmon0/power1_cap": "28000000"}  # newer kernels show a limit for a processor's graphics, too
    machine.card("0000:09:00.0", {**gpu_trees.APU, **limited}, "amdgpu")
    machine.card("0000:0a:00.0", {**gpu_trees.APU, "mem_info_vram_total": str(16 << 30)}, "amdgpu")
    machine.card("0000:07:00.0", gpu_trees.H100, "nvidia")
    machine.card("0000:08:00.0", {"vendor": "0x1022", "device": "0x1", "class": "0x060400"})
    refused = SysfsGpus(machine.root).open()
    assert refused is not None and refused.text == "gpu.none"


def test_a_machine_without_a_bus_has_no_cards(tmp_path: Path) -> None:
    refused = SysfsGpus(tmp_path).open()
    assert refused is not None and refused.text == "gpu.none"


def test_a_card_that_leaves_the_bus_is_lost_and_its_neighbour_is_not(machine: Machine) -> None:
    folder = machine.card(AT, gpu_trees.MI300X, "amdgpu")
    machine.card("0000:44:00.0", {**gpu_trees.MI300X, "unique_id": "abcdef0123456789"}, "amdgpu")
    gpus = opened(machine)
    lost, kept = (gpu.uuid for gpu in gpus.inventory().gpus)
    facts = gpus.inventory()
    (folder / "config").write_bytes(b"\xff" * 64)
    read = gpus.sample(False)
    assert {value for (uuid, _), value in read.items() if uuid == lost} == {None}
    assert read[kept, 4] == 61
    assert [condition.text for condition in gpus.conditions()] == [f"gpu.lost:{lost}"]
    assert [(event.kind, event.uuid) for event in gpus.events(0)] == [(GpuEventKind.LOST, lost)]
    assert gpus.inventory() == facts
    assert set(gpus.look(frozenset({lost, kept}))) == {kept}
    (folder / "config").write_bytes(bytes(64))
    assert gpus.sample(False)[lost, 4] == 61
    assert [(event.kind, event.uuid) for event in gpus.events(0)] == [(GpuEventKind.RECOVERED, lost)]
    assert gpus.conditions() == ()


def test_a_card_that_is_pulled_is_lost(machine: Machine) -> None:
    machine.card(AT, gpu_trees.MI300X, "amdgpu")
    gpus = opened(machine)
    (machine.root / gpu_trees.DEVICES / AT).unlink()
    gpus.sample(False)
    assert [health.is_lost for health in gpus.health()] == [True]


def test_a_card_that_comes_is_found_with_the_next_facts(machine: Machine) -> None:
    machine.card(AT, gpu_trees.MI300X, "amdgpu")
    gpus = opened(machine)
    machine.card("0000:44:00.0", gpu_trees.ARC_A770, "xe")
    assert [gpu.vendor for gpu in gpus.inventory().gpus] == ["amd", "intel"]


def test_nothing_here_is_cut(machine: Machine) -> None:
    machine.card(AT, gpu_trees.MI300X, "amdgpu")
    with pytest.raises(CutRefusedError):
        opened(machine).cut("GPU-3b6f2c1d90a4e857", ("1g.24gb",))


@pytest.mark.parametrize("said", ["", "-1", "what", "0x", "9" * 400])
def test_a_file_with_nonsense_is_no_number(tmp_path: Path, said: str) -> None:
    gpu_trees.write(tmp_path, {"file": said})
    assert files.number(tmp_path / "file") is None
