"""Compares the kernel's facts of an NVIDIA card with those of the driver's library, to catch a false library.

Whoever puts a library of his own in the place of the driver's changes what NVML says, and none of these files: sysfs
has the ids from the card's own configuration space, /proc/driver/nvidia the name and UUID from the kernel module. A
file that is not there (a container, WSL) says nothing. It catches a false library, not a false kernel or agent.
"""

from pathlib import Path
from typing import Final

from windrow_agent.core.inventory import clean_id, clean_text
from windrow_agent.gpu.nvml_codes import PCI_DEVICES
from windrow_proto.model import GpuFacts

DRIVER_GPUS: Final = Path("/proc/driver/nvidia/gpus")
INFORMATION_BYTES_MAX: Final = 4096
UNKNOWN: Final = "?"
"""The driver writes question marks for the UUID of a card that nobody has opened yet."""


def differences(facts: GpuFacts, pci_devices: Path = PCI_DEVICES, driver_gpus: Path = DRIVER_GPUS) -> tuple[str, ...]:
    """Names the facts in which the kernel contradicts the library, with both values; empty if it agrees or says
    nothing."""
    domain, _, rest = facts.pci_bus_id.lower().partition(":")
    if not rest or "/" in rest or not _is_hex(domain):
        return ()
    address = f"{int(domain, 16):04x}:{rest}"  # NVML writes an eight-digit domain, the kernel at least four digits
    device, said = pci_devices / address, _information(driver_gpus / address / "information")
    pairs = (
        ("PCI id", _ids(device, "device", "vendor"), facts.pci_device_id or None),
        ("PCI subsystem id", _ids(device, "subsystem_device", "subsystem_vendor"), facts.pci_subsystem_id or None),
        ("UUID", said.get("GPU UUID"), facts.uuid or None),
        ("name", _plain(said.get("Model")), _plain(facts.name)),
    )
    return tuple(
        f"{what}: the kernel says {_shown(kernel)}, the driver's library {_shown(library)}"
        for what, kernel, library in pairs
        if kernel is not None and library is not None and kernel != library
    )


def _ids(device: Path, high: str, low: str) -> int | None:
    texts = [_read(device / name).removeprefix("0x") for name in (high, low)]
    return int(texts[0], 16) << 16 | int(texts[1], 16) if all(map(_is_hex, texts)) else None


def _information(path: Path) -> dict[str, str]:
    pairs = (line.partition(":") for line in _read(path).splitlines())
    cleaned = {key.strip(): clean_text(value) for key, _, value in pairs}
    return {
        key: clean_id(value) if key == "GPU UUID" else value
        for key, value in cleaned.items()
        if value and UNKNOWN not in value and value != "Unknown"
    }


def _plain(name: str | None) -> str | None:
    """The name without its maker, which drivers began to write at different times in the two places."""
    return (name or "").removeprefix("NVIDIA ") or None


def _is_hex(text: str) -> bool:
    return 0 < len(text) <= 8 and all(character in "0123456789abcdef" for character in text.lower())


def _shown(value: int | str) -> str:
    return f"{value:#010x}" if isinstance(value, int) else value


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(INFORMATION_BYTES_MAX).strip()
    except (OSError, ValueError):
        return ""
