"""NVIDIA's cards and those of others are one list, and a driver that fails costs its own cards only."""

from pathlib import Path

import pytest

from tests.fake_nvml.build import FakeNvml
from tests.fake_nvml.build import fake_library as fake_library
from tests.fake_nvml.build import fake_nvml as fake_nvml
from tests.support import gpu_trees
from tests.support.gpu_trees import Machine
from tests.unit.agent.test_sysfs_gpus import AT
from windrow_agent.core.gpu_port import Condition, CutRefusedError, GpuBackend, GpuEventKind
from windrow_agent.gpu.combined import CombinedGpus
from windrow_agent.gpu.no_gpus import NoGpus
from windrow_agent.gpu.nvml import NvmlBackend
from windrow_agent.gpu.sysfs import SysfsGpus
from windrow_master.fleet.claims import consistency
from windrow_proto.conditions import ConditionCode
from windrow_proto.model import Inventory

AMDS = "GPU-3b6f2c1d90a4e857"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """One accelerator of AMD's beside the eight of the fake NVIDIA driver."""
    made = gpu_trees.machine(tmp_path)
    made.card(AT, gpu_trees.MI300X, "amdgpu")
    return made


def both(machine: Machine) -> GpuBackend:
    return CombinedGpus((NvmlBackend(machine.root / "no-bus"), SysfsGpus(machine.root)))


def test_cards_of_two_makers_are_one_list(fake_nvml: FakeNvml, machine: Machine) -> None:
    gpus = both(machine)
    assert gpus.open() is None
    found = gpus.inventory()
    assert [gpu.index for gpu in found.gpus] == list(range(9))
    assert [gpu.vendor for gpu in found.gpus] == ["nvidia"] * 8 + ["amd"]
    assert found.driver_version and not found.driver_version.startswith("amdgpu")
    values = gpus.sample(with_processes=True)
    assert (values[AMDS, 4], len({uuid for uuid, _ in values})) == (61, 9)
    assert [health.uuid for health in gpus.health()] == [gpu.uuid for gpu in found.gpus]
    assert gpus.conditions() == ()
    assert gpus.waits  # NVIDIA's driver tells events
    assert set(gpus.look(frozenset({AMDS, found.gpus[0].uuid}))) == {AMDS, found.gpus[0].uuid}
    gpus.close()


def test_a_lost_card_of_one_maker_is_told_among_the_others(fake_nvml: FakeNvml, machine: Machine) -> None:
    gpus = both(machine)
    gpus.open()
    gpus.inventory()
    (machine.folders[AT] / "config").write_bytes(b"\xff" * 64)
    fake_nvml.state.xid(2, 79)
    gpus.sample(False)
    told = {(event.kind, event.uuid) for event in [*gpus.events(1.0), *gpus.events(1.0)]}
    assert told == {(GpuEventKind.LOST, AMDS), (GpuEventKind.XID, gpus.inventory().gpus[2].uuid)}
    assert [one.text for one in gpus.conditions()] == [f"gpu.lost:{AMDS}"]
    gpus.close()


def test_a_driver_that_is_not_loaded_costs_its_own_cards_and_is_asked_again(
    fake_nvml: FakeNvml, machine: Machine
) -> None:
    fake_nvml.state.state.init_code = 9
    gpus = both(machine)
    assert gpus.open() is None
    assert [gpu.vendor for gpu in gpus.inventory().gpus] == ["amd"]
    (told,) = gpus.conditions()
    assert (told.text, told.detail[:14]) == ("gpu.not_served:nvmlbackend", "gpu.no_driver:")
    assert not gpus.waits
    fake_nvml.state.state.init_code = 0
    assert len(gpus.inventory().gpus) == 9
    assert gpus.conditions() == ()
    gpus.close()


def test_where_there_is_no_card_at_all_the_first_that_says_why_is_heard(tmp_path: Path) -> None:
    class NoDriver(NoGpus):
        def open(self) -> Condition:
            return Condition(ConditionCode.GPU_NO_DRIVER)

    empty = gpu_trees.machine(tmp_path).root
    refused = CombinedGpus((NoGpus(), NoDriver(), SysfsGpus(empty))).open()
    assert refused is not None and refused.code is ConditionCode.GPU_NO_DRIVER
    refused = CombinedGpus((NoGpus(), SysfsGpus(empty))).open()
    assert refused is not None and refused.code is ConditionCode.GPU_NONE


def test_a_card_is_cut_by_its_own_driver(fake_nvml: FakeNvml, machine: Machine) -> None:
    gpus = both(machine)
    gpus.open()
    first = gpus.inventory().gpus[0].uuid
    gpus.cut(first, ("1g.10gb",))
    assert [part.profile for part in gpus.inventory().gpus[0].slices] == ["1g.10gb"]
    with pytest.raises(CutRefusedError, match="not cut into slices"):
        gpus.cut(AMDS, ("1g.10gb",))
    with pytest.raises(CutRefusedError, match="no such GPU"):
        gpus.cut("GPU-of-another-host", ("1g.10gb",))
    gpus.close()


def test_what_honest_cards_of_other_makers_say_contradicts_nothing(machine: Machine) -> None:
    machine.card("0000:44:00.0", gpu_trees.RX_7900_XTX, "amdgpu")
    machine.card("0000:45:00.0", gpu_trees.ARC_A770, "xe")
    machine.card("0000:46:00.0", gpu_trees.FLEX_170, "i915")
    machine.card("0000:47:00.0", gpu_trees.GAUDI, "habanalabs")
    gpus = SysfsGpus(machine.root)
    assert gpus.open() is None
    found = gpus.inventory()
    assert len(found.gpus) == 5
    said = Inventory(hostname="mixed", gpus=found.gpus, driver_version=found.driver_version)
    assert consistency.check(said) == ()
