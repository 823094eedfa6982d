"""A false driver library under an honest agent is found: the kernel's own files name the card that is there."""

from pathlib import Path

import pytest

from tests.fake_nvml.build import FakeNvml
from tests.support.personas import card
from windrow_agent.gpu.kernel_check import differences
from windrow_agent.gpu.nvml import NvmlBackend

H100 = card()
FILES = {"vendor": "0x10de", "device": "0x2330", "subsystem_vendor": "0x10de", "subsystem_device": "0x16c1"}


def write(root: Path, files: dict[str, str], address: str = "0000:18:00.0", **information: str) -> tuple[Path, Path]:
    """The kernel's files of one card."""
    device, driver = root / "pci" / address, root / "gpus" / address
    device.mkdir(parents=True)
    driver.mkdir(parents=True)
    for name, text in files.items():
        (device / name).write_text(f"{text}\n")
    known = {
        "Model": H100.name,
        "GPU UUID": str(H100.uuid),
        **{key.replace("_", " "): v for key, v in information.items()},
    }
    (driver / "information").write_text("".join(f"{key}: \t\t {value}\n" for key, value in known.items()))
    return root / "pci", root / "gpus"


def test_where_both_say_the_same_there_is_no_difference(tmp_path: Path) -> None:
    assert differences(H100, *write(tmp_path, FILES)) == ()


def test_a_name_is_the_same_with_and_without_its_maker(tmp_path: Path) -> None:
    assert differences(H100, *write(tmp_path, FILES, Model=H100.name.removeprefix("NVIDIA "))) == ()


@pytest.mark.parametrize(
    ("files", "information", "words"),
    [
        ({"device": "0x2684"}, {}, "PCI id: the kernel says 0x268410de, the driver's library 0x233010de"),
        ({"vendor": "0x1af4"}, {}, "PCI id: the kernel says 0x23301af4, the driver's library 0x233010de"),
        ({"subsystem_device": "0x0001"}, {}, "PCI subsystem id: the kernel says 0x000110de, "),
        ({}, {"Model": "NVIDIA GeForce RTX 4090"}, "name: the kernel says GeForce RTX 4090, "),
        ({}, {"GPU_UUID": "GPU-eaf23aa1-4d3d-596c-da66-b86b0e5db584"}, "UUID: the kernel says GPU-eaf23aa1-"),
    ],
)
def test_what_the_kernel_says_otherwise_is_told_with_both_values(
    tmp_path: Path, files: dict[str, str], information: dict[str, str], words: str
) -> None:
    (found,) = differences(H100, *write(tmp_path, {**FILES, **files}, **information))
    assert found.startswith(words)


@pytest.mark.parametrize(
    ("files", "information"),
    [({}, {}), ({**FILES, "device": "what?"}, {}), (FILES, {"GPU_UUID": "GPU-????????-????-????-????-????????????"})],
)
def test_what_the_kernel_does_not_say_is_compared_with_nothing(
    tmp_path: Path, files: dict[str, str], information: dict[str, str]
) -> None:
    assert differences(H100, *write(tmp_path, files, **information)) == ()
    assert differences(H100, tmp_path / "none", tmp_path / "none") == ()


@pytest.mark.parametrize("bus_id", ["", "words", "zz:18:00.0", "00000000:../../etc", "0" * 90 + ":18:00.0"])
def test_an_address_that_is_none_leads_nowhere(tmp_path: Path, bus_id: str) -> None:
    assert differences(card(pci_bus_id=bus_id), *write(tmp_path, {**FILES, "device": "0x2684"})) == ()


def test_a_library_that_lies_is_a_condition_of_that_card_alone(fake_nvml: FakeNvml, tmp_path: Path) -> None:
    pci, gpus = write(tmp_path, {**FILES, "device": "0x2684"}, address="0000:20:00.0", GPU_UUID=fake_nvml.state.uuid(1))
    backend = NvmlBackend(pci_devices=pci, driver_gpus=gpus)
    assert backend.open() is None
    backend.inventory()
    (condition,) = backend.conditions()
    assert condition.text == f"gpu.kernel_differs:{fake_nvml.state.uuid(1)}"
    assert "0x268410de" in condition.detail
    (pci / "0000:20:00.0" / "device").write_text("0x2330\n")
    backend.inventory()
    assert backend.conditions() == ()
    backend.close()
