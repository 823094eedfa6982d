"""A card is challenged on the device that is it: by its UUID, or by its place on the bus."""

import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import gpu_trees
from windrow_agent.challenge.opencl import ComputeFailed, Device, OpenCl
from windrow_agent.challenge.prover import choose

NVIDIAS, AMDS = "GPU-00000001-0000-4000-8000-000000000000", "GPU-3b6f2c1d90a4e857"
PCI, TOPOLOGY = 0x410F, 0x4037


def having(*devices: Device) -> Any:
    return SimpleNamespace(devices=lambda: list(devices))


def device(name: str, uuid: str = "", address: str = "") -> Device:
    return Device(1, name, uuid, 1 << 30, is_processor=False, address=address)


def test_a_card_of_amd_is_the_device_at_its_place_whatever_the_driver_calls_it(tmp_path: Path) -> None:
    gpu_trees.machine(tmp_path).card("0000:43:00.0", gpu_trees.MI300X, "amdgpu")
    other, own = device("gfx90a", "GPU-1", "0000:42:00.0"), device("gfx942", "GPU-2", "0000:43:00.0")
    found = choose(having(other, own), AMDS, tmp_path)
    assert (found.name, found.uuid) == ("gfx942", AMDS)  # it answers under the name that it was asked by


def test_a_card_that_no_device_is_the_place_of_is_not_challenged(tmp_path: Path) -> None:
    gpu_trees.machine(tmp_path).card("0000:43:00.0", gpu_trees.MI300X, "amdgpu")
    devices = having(device("gfx90a", "", "0000:42:00.0"), device("without a place"))
    with pytest.raises(ComputeFailed, match=AMDS):
        choose(devices, AMDS, tmp_path)
    with pytest.raises(ComputeFailed, match="GPU-absent"):
        choose(devices, "GPU-absent", tmp_path)


def test_a_card_of_nvidia_is_the_device_of_its_uuid(tmp_path: Path) -> None:
    found = choose(having(device("a", "GPU-1"), device("b", NVIDIAS)), NVIDIAS, tmp_path)
    assert found.name == "b"


@pytest.mark.parametrize(
    ("extensions", "answers", "address"),
    [
        ([b"cl_khr_pci_bus_info"], {PCI: struct.pack("<4I", 1, 0x43, 2, 3)}, "0001:43:02.3"),
        (
            [b"cl_amd_device_attribute_query"],
            {TOPOLOGY: struct.pack("<I17x3B", 1, 0x43, 0, 1)},
            "0000:43:00.1",
        ),
        ([b"cl_amd_device_attribute_query"], {TOPOLOGY: bytes(24)}, ""),
        ([b"cl_khr_fp64"], {}, ""),
    ],
)
def test_a_driver_tells_the_place_of_a_device_in_one_of_two_ways(
    extensions: list[bytes], answers: dict[int, bytes], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenCl, "_info", lambda self, handle, what: answers[what])
    assert OpenCl.__new__(OpenCl)._address(1, extensions) == address


def test_a_host_without_a_driver_of_opencl_names_the_package() -> None:
    with pytest.raises(ComputeFailed, match=r"GPU-1: none of its drivers is installed \(Debian: nvidia-opencl-icd"):
        choose(having(), "GPU-1")
