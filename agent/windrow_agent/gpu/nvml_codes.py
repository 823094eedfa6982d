"""Numbers of nvml.h and of PCI that the NVML adapter acts on, with their meaning. Pure tables."""

from pathlib import Path
from typing import Final

from windrow_agent.core.gpu_port import GpuEventKind
from windrow_proto.conditions import ConditionCode
from windrow_proto.units import MIB

PCI_DEVICES: Final = Path("/sys/bus/pci/devices")
NVIDIA: Final = "0x10de"
DISPLAY_CLASSES: Final = ("0x03", "0x12")
"""PCI base classes of display controllers and of processing accelerators."""

U32_MAX: Final = 0xFFFFFFFE
"""NVML says 0xFFFFFFFF for an unsigned int that it does not know."""

NO_INSTANCE: Final = 0xFFFFFFFF
"""In an event: the driver puts it down to no slice (nvmlEventData_t)."""

# Return codes of nvml.h that decide what happens next; all others only make one figure absent.
UNINITIALIZED: Final = 1
INVALID_ARGUMENT: Final = 2
NOT_SUPPORTED: Final = 3
NO_PERMISSION: Final = 4
DRIVER_NOT_LOADED: Final = 9
TIMEOUT: Final = 10
LIBRARY_NOT_FOUND: Final = 12
FUNCTION_NOT_FOUND: Final = 13
GPU_IS_LOST: Final = 15
RESET_REQUIRED: Final = 16
LIB_RM_VERSION_MISMATCH: Final = 18
IN_USE: Final = 19
INSUFFICIENT_RESOURCES: Final = 23
ARGUMENT_VERSION_MISMATCH: Final = 25

NEVER: Final = frozenset({NOT_SUPPORTED, FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH})
"""Asking again is useless until the modes of the card change; the inventory's refresh asks anew."""

OPENING: Final = {
    NO_PERMISSION: ConditionCode.GPU_NO_PERMISSION,
    DRIVER_NOT_LOADED: ConditionCode.GPU_NO_DRIVER,
    FUNCTION_NOT_FOUND: ConditionCode.GPU_DRIVER_MISMATCH,
    LIB_RM_VERSION_MISMATCH: ConditionCode.GPU_DRIVER_MISMATCH,
}

BREAKING: Final = {
    UNINITIALIZED: ConditionCode.GPU_UNAVAILABLE,
    DRIVER_NOT_LOADED: ConditionCode.GPU_NO_DRIVER,
    LIB_RM_VERSION_MISMATCH: ConditionCode.GPU_DRIVER_MISMATCH,
}
"""While running: the library as a whole no longer works and must be closed."""

FIELD_MEMORY_TEMPERATURE: Final = 82
FIELD_ENERGY: Final = 83
FIELD_PCIE_REPLAYS: Final = 94
FIELD_REMAP_PENDING: Final = 144
FIELD_REMAP_FAILED: Final = 145
FIELD_POWER_INSTANT: Final = 186
FIELDS: Final = (
    *(FIELD_MEMORY_TEMPERATURE, FIELD_ENERGY, FIELD_PCIE_REPLAYS, FIELD_POWER_INSTANT),
    *(FIELD_REMAP_PENDING, FIELD_REMAP_FAILED),
)
"""All by one call, so that row remaps are seen with each sweep at no further cost."""
FIELD_PCIE_SENT: Final = 197
FIELD_PCIE_RECEIVED: Final = 198
FIELD_HELD_BY_POWER: Final = 74
FIELD_HELD_BY_HEAT: Final = 75
SLOW_FIELDS: Final = (FIELD_PCIE_SENT, FIELD_PCIE_RECEIVED, FIELD_HELD_BY_POWER, FIELD_HELD_BY_HEAT)
FIELD_NVLINK_SENT: Final = 138
FIELD_NVLINK_RECEIVED: Final = 139
NVLINK: Final = (FIELD_NVLINK_SENT, FIELD_NVLINK_RECEIVED)
"""KiB of data of each link; asked with the link as scope."""
FIELD_MEMBERS: Final = {1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}
"""nvmlValueType_t to the member of the value union; doubles (0) are none of the fields asked for."""

EVENTS: Final = {
    0x8: GpuEventKind.XID,
    0x2: GpuEventKind.ECC_UNCORRECTED,
    0x100: GpuEventKind.MIG_CHANGED,
    0x4000: GpuEventKind.UNAVAILABLE,
    0x8000: GpuEventKind.RECOVERY_ACTION,
}
EVENTS_MAX: Final = 64
"""Taken by one call; the rest wait in the driver for the next."""

MOVED_BYTES: Final = 64 * MIB
"""Memory in use that moved by this much on a card that we do not lease: somebody may have come or gone."""

BUSY_PERCENT: Final = 50
"""Utilisation from which a card's PCIe link is taken to be at work."""

CLOCK_SM: Final = 1
CLOCK_MEMORY: Final = 2
TEMPERATURE_LOW: Final = -60
TEMPERATURE_HIGH: Final = 200
"""Degrees Celsius; beyond them a sensor is broken."""
