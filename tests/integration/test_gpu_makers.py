"""Cards of AMD and Intel beside NVIDIA's, from the kernel's files to their slots: a fault changes its own alone."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.fake_nvml.build import FakeNvml
from tests.fake_nvml.build import fake_library as fake_library
from tests.fake_nvml.build import fake_nvml as fake_nvml
from tests.support import gpu_trees
from tests.support.gpu_trees import Machine
from tests.support.health_world import HealthWorld, watched_host
from windrow_agent.gpu.sysfs import SysfsGpus

pytestmark = pytest.mark.proves("faults of AMD's cards from the kernel's files to their own slots, on trees of files")

SICK, WELL, INTELS = "0000:43:00.0", "0000:44:00.0", "0000:45:00.0"
SICK_ID = "GPU-3b6f2c1d90a4e857"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = gpu_trees.machine(tmp_path / "root")
    made.card(SICK, gpu_trees.MI300X, "amdgpu")
    made.card(WELL, {**gpu_trees.MI300X, "unique_id": "00000000000000f1", "serial_number": "692251001235"}, "amdgpu")
    made.card(INTELS, gpu_trees.ARC_A770, "xe")
    made.compute_node(1, SICK, {})
    made.compute_node(2, WELL, {})
    return made


@pytest.fixture
async def world(fake_nvml: FakeNvml, tmp_path: Path, machine: Machine) -> AsyncIterator[HealthWorld]:
    async with watched_host(fake_nvml, tmp_path, others=(SysfsGpus(machine.root), 3)) as made:
        yield made


def leave(machine: Machine) -> None:
    (machine.folders[SICK] / "config").write_bytes(b"\xff" * 64)


def spoil(machine: Machine) -> None:
    (machine.folders[SICK] / "ras/gfx_err_count").write_text("ue: 2\nce: 2\n")


def mark(machine: Machine) -> None:
    (machine.folders[SICK] / "ras/gpu_vram_bad_pages").write_text("0x00000003 : 0x00001000 : P\n")


def heat(machine: Machine) -> None:
    (machine.folders[SICK] / "hwmon/hwmon4/temp2_input").write_text("97000\n")


def use(machine: Machine) -> None:
    (machine.folders[SICK] / "mem_info_vram_used").write_text(f"{40 << 30}\n")


FAULTS: dict[str, tuple[Callable[[Machine], None], str, str]] = {
    "left the bus": (leave, "gpu.lost", "faulted"),
    "uncorrected errors": (spoil, "gpu.host_fault", "faulted"),
    "a page that waits": (mark, "gpu.remap_pending", "free"),
    "heat": (heat, "gpu.hot", "free"),
    "somebody else's program": (use, "gpu.foreign_use", "free"),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_a_fault_of_an_amd_card_changes_its_own_slot_and_no_other(
    world: HealthWorld, machine: Machine, name: str
) -> None:
    inject, code, state = FAULTS[name]
    before = await world.look()
    inject(machine)
    after = await world.until(lambda seen: seen.slots != before.slots, f"a slot to change by {name}")
    assert after.conditions == {f"{code}:{SICK_ID}"}
    assert {slot for slot, was in after.slots.items() if was != before.slots[slot]} == {SICK_ID}
    assert after.slots[SICK_ID][0] == state
    assert after.slots[SICK_ID][1]
