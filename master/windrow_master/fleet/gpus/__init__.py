"""Our own table of GPU models: what a card of each model must look like, so that a claim can be compared. Pure data.

No figure stands in it without the document it was read in: `row.GpuModel` says what the figures mean, `sources.Source`
where they come from. docs/gpu-models.md shows the whole table.
"""

from typing import Final

from windrow_master.fleet.gpus import amd, geforce, intel, nvidia_data_centre, nvidia_workstation
from windrow_master.fleet.gpus.row import (
    MEMORY_HIGH_PERCENT,
    MEMORY_LOW_PERCENT,
    GpuModel,
    Read,
    Segment,
)
from windrow_master.fleet.gpus.sources import SHEETS, Source

__all__ = [
    "AMD",
    "BY_PCI",
    "CPU_CLASS",
    "INTEL",
    "MEMORY_HIGH_PERCENT",
    "MEMORY_LOW_PERCENT",
    "MODELS",
    "NVIDIA",
    "SHEETS",
    "UNLISTED_CLASS",
    "GpuModel",
    "Read",
    "Segment",
    "Source",
    "find",
    "sharing",
    "vendor_of",
]

CPU_CLASS: Final = "cpu"
UNLISTED_CLASS: Final = "unlisted"
"""The class of a card that this table does not hold: it can be offered, but is compared with nothing."""

NVIDIA: Final = 0x10DE
AMD: Final = 0x1002
INTEL: Final = 0x8086
_VENDOR_IDS: Final = {NVIDIA: "nvidia", AMD: "amd", INTEL: "intel"}
_NUMBERS: Final = {vendor: number for number, vendor in _VENDOR_IDS.items()}

MODELS: Final[tuple[GpuModel, ...]] = (
    *nvidia_data_centre.MODELS,
    *nvidia_workstation.MODELS,
    *geforce.MODELS,
    *amd.MODELS,
    *intel.MODELS,
)


def _by_pci() -> dict[int, tuple[GpuModel, ...]]:
    found: dict[int, tuple[GpuModel, ...]] = {}
    for model in MODELS:
        for device in model.pci.value:
            number = device << 16 | _NUMBERS[model.vendor]
            found[number] = (*found.get(number, ()), model)
    return found


_SHARING: Final = _by_pci()
BY_PCI: Final[dict[int, GpuModel]] = {number: models[0] for number, models in _SHARING.items()}
"""The model of a PCI id (device << 16 | vendor); of several that share it, the one that stands first."""


def sharing(pci_device_id: int) -> tuple[GpuModel, ...]:
    """All models of a PCI id (device << 16 | vendor), in the table's order; none if it is not held."""
    return _SHARING.get(pci_device_id, ())


def vendor_of(pci_device_id: int) -> str | None:
    """The maker by the vendor half of the id (device << 16 | vendor); None for one we do not know."""
    return _VENDOR_IDS.get(pci_device_id & 0xFFFF)


def find(pci_device_id: int, memory_bytes: int | None = None) -> GpuModel | None:
    """The model of a PCI id (device << 16 | vendor, as NVML gives it); None if the table does not hold it.

    Of several that share the id, the one in whose window `memory_bytes` lies; the first where it lies in none.
    """
    models = sharing(pci_device_id)
    if memory_bytes is not None:
        for model in models:
            low, high = model.memory_window_bytes
            if low <= memory_bytes <= high:
                return model
    return models[0] if models else None
