"""The one table of what a GPU can tell: where each field is read, what it is called elsewhere, how often it is read.

Pure. Sources: the calls and field ids of NVML as nvidia-ml-py names them; DCGM's names from its dcgm_fields.h, without
`DCGM_FI_DEV_`; OpenTelemetry's from its hardware conventions (status: development). A name that was not found in these
is None. What is a metric takes its names, unit and scale from metrics.py.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final

from windrow_proto.metrics import BY_NAME
from windrow_proto.model import GpuFacts, Inventory


class Group(StrEnum):
    """The subject of a field; the headings of a GPU's page, in their order."""

    IDENTITY = "Identity"
    FIRMWARE = "Firmware and driver"
    MODES = "Modes"
    MEMORY = "Memory"
    POWER = "Power"
    CLOCKS = "Clocks"
    TEMPERATURE = "Temperature"
    BUS = "PCIe and place"
    LINKS = "Links to other GPUs"
    SLICES = "Slices"
    USE = "Use"
    HEALTH = "Health"
    LOCATIONS = "Memory errors by place"


class Rate(StrEnum):
    """How often a field is read. START: at the start and then each minute, and sent when it has changed."""

    START = "on change"
    SECOND = "1 s"
    TEN = "10 s"
    EVENT = "event"
    NEVER = "never"


class Source(StrEnum):
    """The place of a field on the wire."""

    FACT = "GpuFacts"
    MORE = "GpuFacts.more"
    HOST = "Inventory"
    METRIC = "telemetry"
    EVENT = "event"
    UNREAD = "not read"


@dataclass(frozen=True, slots=True)
class GpuField:
    """One row. name: on the wire and in the API; unit: UCUM, empty for words, `bool` for yes or no.

    scale: value = wire * scale; read: the NVML call without `nvmlDevice`, or field ids of GetFieldValues; note: why it
    is not read, or what to know of it.
    """

    name: str
    group: Group
    label: str
    unit: str
    rate: Rate
    source: Source
    read: str
    otel: str | None = None
    dcgm: str | None = None
    scale: float = 1
    note: str = ""


def _row(
    source: Source,
    name: str,
    group: Group,
    label: str,
    read: str,
    dcgm: str | None = None,
    *,
    unit: str = "",
    scale: float = 1,
    otel: str | None = None,
    note: str = "",
) -> GpuField:
    return GpuField(name, group, label, unit, Rate.START, source, read, otel, dcgm, scale, note)


_fact, _more = partial(_row, Source.FACT), partial(_row, Source.MORE)


def _metric(name: str, group: Group, read: str, note: str = "") -> GpuField:
    known = BY_NAME[name]
    rate = Rate.TEN if known.slow else Rate.SECOND
    return GpuField(name, group, known.label, known.unit, rate, Source.METRIC, read, known.otel, known.dcgm, note=note)


def _unread(name: str, group: Group, label: str, read: str, note: str, dcgm: str | None = None) -> GpuField:
    return GpuField(name, group, label, "", Rate.NEVER, Source.UNREAD, read, dcgm=dcgm, note=note)


PLACES: Final = {"l1": "L1", "l2": "L2", "memory": "DEV", "register": "REG", "texture": "TEX", "cbu": "CBU"}
"""The places whose memory errors NVML counts apart, and their names in its field ids and in DCGM."""


def _by_place() -> Iterator[GpuField]:
    """Errors corrected and not, since the driver was loaded and since ever, of each place: field ids 7 to 28."""
    field_id = 7
    for when, short in (("", "VOL"), ("_lifetime", "AGG")):
        for place, theirs in PLACES.items():
            for kind, code in (("corrected", "SBE"), ("uncorrected", "DBE")):
                if (place, kind) == ("cbu", "corrected"):
                    continue
                label = f"{kind.capitalize()}, {place}{', since ever' if when else ''}"
                dcgm = None if place == "cbu" else f"ECC_{code}_{short}_{theirs}"
                name = f"ecc_{kind}_{place}{when}"
                yield _more(name, Group.LOCATIONS, label, f"field {field_id}", dcgm, unit="1", otel="hw.errors")
                field_id += 1


_I, _F, _M, _MEM, _P, _C = Group.IDENTITY, Group.FIRMWARE, Group.MODES, Group.MEMORY, Group.POWER, Group.CLOCKS
_T, _B, _L, _S, _U, _H = Group.TEMPERATURE, Group.BUS, Group.LINKS, Group.SLICES, Group.USE, Group.HEALTH

GPU_FIELDS: Final[tuple[GpuField, ...]] = (
    _fact("name", _I, "Model", "GetName", "NAME", otel="hw.model"),
    _fact("vendor", _I, "Vendor", "by which library answers", otel="hw.vendor"),
    _more("brand", _I, "Brand", "GetBrand", "BRAND"),
    _more("architecture", _I, "Architecture", "GetArchitecture"),
    _fact("compute_capability", _I, "CUDA capability", "GetCudaComputeCapability", "CUDA_COMPUTE_CAPABILITY"),
    _fact("core_count", _I, "CUDA cores", "GetNumGpuCores", unit="1"),
    _fact("uuid", _I, "UUID", "GetUUID", "UUID", otel="hw.id"),
    _fact("serial", _I, "Serial number", "GetSerial", "SERIAL", otel="hw.serial_number"),
    _more("pdi", _I, "Per-device id", "GetPdi"),
    _more("board_part_number", _I, "Board part number", "GetBoardPartNumber"),
    _fact("pci_device_id", _I, "PCI device and vendor", "GetPciInfo_v3", "PCI_COMBINED_ID"),
    _fact("pci_subsystem_id", _I, "PCI subsystem", "GetPciInfo_v3", "PCI_SUBSYS_ID"),
    _fact("index", _I, "Index", "GetHandleByIndex_v2", "NVML_INDEX", unit="1", note="reorders; never a key"),
    _fact("device_minor", _I, "Device minor", "GetMinorNumber", "MINOR_NUMBER", unit="1"),
    _row(
        Source.HOST,
        "driver_version",
        _F,
        "Driver",
        "nvmlSystemGetDriverVersion",
        "DRIVER_VERSION",
        otel="hw.driver_version",
    ),
    _row(
        Source.HOST,
        "cuda_version",
        _F,
        "CUDA of the driver",
        "nvmlSystemGetCudaDriverVersion_v2",
        "CUDA_DRIVER_VERSION",
    ),
    _more("nvml_version", _F, "NVML", "nvmlSystemGetNVMLVersion", "NVML_VERSION"),
    _fact("vbios", _F, "VBIOS", "GetVbiosVersion", "VBIOS_VERSION", otel="hw.firmware_version"),
    _more("inforom", _F, "InfoROM", "GetInforomImageVersion", "INFOROM_IMAGE_VER"),
    _more("gsp_firmware", _F, "GSP firmware", "GetGspFirmwareVersion"),
    _more("kernel_driver", _F, "Kernel driver", "sysfs, not NVIDIA", otel="hw.driver_version"),
    _more("persistence_mode", _M, "Persistence", "GetPersistenceMode", "PERSISTENCE_MODE", unit="bool"),
    _more("compute_mode", _M, "Compute mode", "GetComputeMode", "COMPUTE_MODE"),
    _fact("ecc_enabled", _M, "ECC", "GetEccMode", "ECC_CURRENT", unit="bool"),
    _more("ecc_pending", _M, "ECC after the next reset", "GetEccMode", "ECC_PENDING", unit="bool"),
    _fact("mig_enabled", _M, "MIG", "GetMigMode", "MIG_MODE", unit="bool"),
    _more("mig_pending", _M, "MIG after the next reset", "GetMigMode", unit="bool"),
    _more("virtualization_mode", _M, "Virtualisation", "GetVirtualizationMode", "VIRTUAL_MODE"),
    _more("confidential_compute", _M, "Confidential computing", "nvmlSystemGetConfComputeState", unit="bool"),
    _fact("memory_bytes", _MEM, "Total", "GetMemoryInfo v2", "FB_TOTAL", unit="By", otel="hw.gpu.memory.limit"),
    _more("memory_reserved_bytes", _MEM, "Kept by the driver", "GetMemoryInfo v2", "FB_RESERVED", unit="By"),
    _metric("gpu_memory_used_bytes", _MEM, "GetMemoryInfo v2", "what is free is the rest of the total"),
    _fact("memory_bus_bits", _MEM, "Bus width", "GetMemoryBusWidth", unit="bit"),
    _more("bar1_bytes", _MEM, "BAR1 window", "GetBAR1MemoryInfo", "BAR1_TOTAL", unit="By"),
    _metric("gpu_power_watts", _P, "field 186"),
    _metric("gpu_energy_joules_total", _P, "field 83"),
    _fact(
        "power_limit_mw", _P, "Limit in force", "GetEnforcedPowerLimit", "ENFORCED_POWER_LIMIT", unit="W", scale=1e-3
    ),
    _more("power_limit_default_mw", _P, "Limit by default", "field 189", "POWER_MGMT_LIMIT_DEF", unit="W", scale=1e-3),
    _more("power_limit_min_mw", _P, "Lowest limit", "field 187", "POWER_MGMT_LIMIT_MIN", unit="W", scale=1e-3),
    _fact(
        *("power_limit_max_mw", _P, "Highest limit", "GetPowerManagementLimitConstraints", "POWER_MGMT_LIMIT_MAX"),
        unit="W",
        scale=1e-3,
    ),
    _metric("gpu_clock_sm_hertz", _C, "GetClockInfo"),
    _metric("gpu_clock_memory_hertz", _C, "GetClockInfo"),
    _metric("gpu_clock_video_hertz", _C, "GetClockInfo"),
    _fact("clock_sm_max_mhz", _C, "Highest SM clock", "GetMaxClockInfo", "MAX_SM_CLOCK", unit="Hz", scale=1e6),
    _fact("clock_memory_max_mhz", _C, "Highest memory clock", "GetMaxClockInfo", "MAX_MEM_CLOCK", unit="Hz", scale=1e6),
    _more("clock_video_max_mhz", _C, "Highest video clock", "GetMaxClockInfo", "MAX_VIDEO_CLOCK", unit="Hz", scale=1e6),
    _metric("gpu_performance_state", _C, "GetPerformanceState"),
    _metric("gpu_throttle_reasons", _C, "GetCurrentClocksEventReasons"),
    _metric("gpu_throttled_power_seconds_total", _C, "field 74"),
    _metric("gpu_throttled_heat_seconds_total", _C, "field 75"),
    _metric("gpu_temperature_celsius", _T, "GetTemperature"),
    _metric("gpu_memory_temperature_celsius", _T, "field 82"),
    _more("temperature_slowdown", _T, "Slows down at", "GetTemperatureThreshold 1", "SLOWDOWN_TEMP", unit="Cel"),
    _more("temperature_shutdown", _T, "Shuts down at", "GetTemperatureThreshold 0", "SHUTDOWN_TEMP", unit="Cel"),
    _more("temperature_gpu_max", _T, "Highest in use", "GetTemperatureThreshold 3", "GPU_MAX_OP_TEMP", unit="Cel"),
    _more(
        "temperature_memory_max",
        _T,
        "Highest of its memory",
        "GetTemperatureThreshold 2",
        "MEM_MAX_OP_TEMP",
        unit="Cel",
    ),
    _metric("gpu_fan_ratio", _T, "GetFanSpeed", "cards without a fan of their own do not say"),
    _fact("pci_bus_id", _B, "Bus id", "GetPciInfo_v3", "PCI_BUSID"),
    _fact(
        "pcie_generation_max", _B, "Fastest PCIe generation", "GetMaxPcieLinkGeneration", "PCIE_MAX_LINK_GEN", unit="1"
    ),
    _fact("pcie_width_max", _B, "Most PCIe lanes", "GetMaxPcieLinkWidth", "PCIE_MAX_LINK_WIDTH", unit="1"),
    _metric("gpu_pcie_generation", _B, "GetCurrPcieLinkGeneration", "falls while a card is idle"),
    _metric("gpu_pcie_lanes", _B, "GetCurrPcieLinkWidth"),
    _more(
        "pcie_generation_loaded",
        _B,
        "Generation at work",
        "GetCurrPcieLinkGeneration",
        unit="1",
        note="while half busy",
    ),
    _more("pcie_width_loaded", _B, "Lanes at work", "GetCurrPcieLinkWidth", unit="1", note="while half busy"),
    _metric("gpu_pcie_transmit_bytes_total", _B, "field 197"),
    _metric("gpu_pcie_receive_bytes_total", _B, "field 198"),
    _fact("numa_node", _B, "NUMA node", "GetNumaNodeId, else sysfs", unit="1"),
    _more("cpu_affinity", _B, "Nearest processors", "GetCpuAffinity", "CPU_AFFINITY_0"),
    _more("render_node", _B, "Render node", "sysfs, not NVIDIA"),
    _more("nvlink_count", _L, "NVLinks", "field 91", unit="1"),
    _more("nvlink_active", _L, "of these up", "GetNvLinkState", unit="1"),
    _more("nvlink_version", _L, "NVLink version", "GetNvLinkVersion", unit="1"),
    _more("nvlink_speed_mbps", _L, "Speed of one link", "field 90", unit="By/s", scale=1e6),
    _more("nvlink_peers", _L, "Other ends", "GetNvLinkRemotePciInfo"),
    _metric("gpu_nvlink_transmit_bytes_total", _L, "field 138 of each link"),
    _metric("gpu_nvlink_receive_bytes_total", _L, "field 139 of each link"),
    _more("topology", _L, "Way to the others", "GetTopologyCommonAncestor", "GPU_TOPOLOGY_PCI"),
    _more("peer_to_peer", _L, "Reads the memory of", "GetP2PStatus"),
    _more("fabric_state", _L, "NVSwitch fabric", "GetGpuFabricInfoV"),
    _more("mig_devices_max", _S, "Slices at most", "GetMaxMigDeviceCount", "MIG_MAX_SLICES", unit="1"),
    _more("mig_devices", _S, "Slices there are", "GetMigDeviceHandleByIndex"),
    _more("mig_profiles", _S, "Slices that can be", "GetGpuInstanceProfileInfo"),
    _metric("gpu_utilization_ratio", _U, "GetUtilizationRates"),
    _metric("gpu_memory_controller_ratio", _U, "GetUtilizationRates"),
    _metric("gpu_encoder_ratio", _U, "GetEncoderUtilization"),
    _metric("gpu_decoder_ratio", _U, "GetDecoderUtilization"),
    _metric("gpu_processes", _U, "Get{Compute,Graphics}RunningProcesses"),
    _unread("media_ratio", _U, "JPEG and optical flow", "GetJpgUtilization, GetOfaUtilization", "no job uses them yet"),
    *(
        _metric(f"gpu_{name}_ratio", _U, f"nvmlGpmMetricsGet {number}", "Hopper and later; of the ten seconds before")
        for name, number in (
            *(("engine_active", 1), ("sm_active", 2), ("sm_occupancy", 3), ("tensor_active", 5), ("memory_active", 10)),
            *(("fp64_active", 11), ("fp32_active", 12), ("fp16_active", 13)),
        )
    ),
    _unread("process_ratio", _U, "Use by process", "GetProcessUtilization", "programs are counted, not followed"),
    _unread(
        "accounting",
        _U,
        "Accounting of ended processes",
        "GetAccountingStats",
        "needs root to be switched on",
        "ACCOUNTING_DATA",
    ),
    GpuField(
        "gpu.xid", _H, "XID", "", Rate.EVENT, Source.EVENT, "EventSetWait_v2, /dev/kmsg", "hw.errors", "XID_ERRORS"
    ),
    GpuField("gpu.lost", _H, "Lost", "", Rate.EVENT, Source.EVENT, "GPU_IS_LOST from any call", "hw.status"),
    _more("recovery_action", _H, "What the driver asks for", "field 230"),
    _metric("gpu_ecc_uncorrected_total", _H, "GetTotalEccErrors"),
    _more("ecc_corrected", _H, "Corrected ECC errors", "field 3", "ECC_SBE_VOL_TOTAL", unit="1", otel="hw.errors"),
    _more(
        "ecc_corrected_lifetime",
        _H,
        "Corrected, since ever",
        "field 5",
        "ECC_SBE_AGG_TOTAL",
        unit="1",
        otel="hw.errors",
    ),
    _more(
        "ecc_uncorrected_lifetime",
        _H,
        "Uncorrected, since ever",
        "field 6",
        "ECC_DBE_AGG_TOTAL",
        unit="1",
        otel="hw.errors",
    ),
    _more("remapped_corrected", _H, "Rows remapped, corrected", "field 142", "CORRECTABLE_REMAPPED_ROWS", unit="1"),
    _more(
        "remapped_uncorrected", _H, "Rows remapped, uncorrected", "field 143", "UNCORRECTABLE_REMAPPED_ROWS", unit="1"
    ),
    _more("remap_pending", _H, "Row remap waits for a reset", "field 144", "ROW_REMAP_PENDING", unit="bool"),
    _more("remap_failed", _H, "Row remap failed", "field 145", "ROW_REMAP_FAILURE", unit="bool"),
    _more("banks_remapped", _H, "Banks remapped", "field 303", unit="1"),
    _more("bank_remap_pending", _H, "Bank remap waits for a reset", "field 307", unit="bool"),
    _more("retired_corrected", _H, "Pages retired, corrected", "field 29", "RETIRED_SBE", unit="1"),
    _more("retired_uncorrected", _H, "Pages retired, uncorrected", "field 30", "RETIRED_DBE", unit="1"),
    _more("retired_pending", _H, "Page retirement waits for a reset", "field 31", "RETIRED_PENDING", unit="bool"),
    _more("sram_threshold_exceeded", _H, "Too many SRAM errors", "GetSramEccErrorStatus", unit="bool"),
    _more("memory_unrepairable", _H, "Memory beyond repair", "GetUnrepairableMemoryFlag_v1", unit="bool"),
    _metric("gpu_pcie_replays_total", _H, "field 94"),
    *(
        _more(f"pcie_{name}", _H, f"PCIe: {name.replace('_', ' ')}", f"field {173 + at}", unit="1", otel="hw.errors")
        for at, name in enumerate(
            (
                *("correctable_errors", "naks_received", "receiver_errors", "bad_tlp", "naks_sent", "bad_dllp"),
                *("non_fatal_errors", "fatal_errors", "unsupported_requests", "lcrc_errors", "lane_errors"),
            )
        )
    ),
    _more(
        "nvlink_crc_flit_errors",
        _H,
        "NVLink: CRC errors, flow",
        "field 38",
        "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
        unit="1",
    ),
    _more(
        "nvlink_crc_data_errors",
        _H,
        "NVLink: CRC errors, data",
        "field 45",
        "NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
        unit="1",
    ),
    _more("nvlink_replays", _H, "NVLink: replays", "field 52", "NVLINK_REPLAY_ERROR_COUNT_TOTAL", unit="1"),
    _more("nvlink_recoveries", _H, "NVLink: recoveries", "field 59", "NVLINK_RECOVERY_ERROR_COUNT_TOTAL", unit="1"),
    _more("nvlink_recoveries_succeeded", _H, "NVLink: links recovered", "field 213", unit="1"),
    _more("nvlink_recoveries_failed", _H, "NVLink: links not recovered", "field 214", unit="1"),
    *_by_place(),
)

FIELD_IDS: Final[Mapping[int, str]] = {
    int(one.read.removeprefix("field ")): one.name
    for one in GPU_FIELDS
    if one.source is Source.MORE and one.read.removeprefix("field ").isdigit()
}
"""The fields that one batched call reads with the inventory: field id to the name in `GpuFacts.more`."""


def fact(one: GpuField, gpu: GpuFacts, inventory: Inventory) -> int | float | bool | str | None:
    """Returns an inventory's value of a field, in its unit; None where it does not say, or where a field lies
    elsewhere."""
    match one.source:
        case Source.FACT:
            said = _attribute(one.name, gpu)
        case Source.MORE:
            said = gpu.more.get(one.name)
        case Source.HOST:
            said = getattr(inventory, one.name)
        case _:
            return None
    if said is None or said == "" or isinstance(said, str):
        return said or None
    if one.unit == "bool":
        return bool(said)
    return said if one.scale == 1 else round(said * one.scale, 6)


def _attribute(name: str, gpu: GpuFacts) -> int | str | None:
    if name == "compute_capability":
        major, minor = gpu.compute_capability_major, gpu.compute_capability_minor
        return None if major is None or minor is None else f"{major}.{minor}"
    found: int | str | None = getattr(gpu, name)
    if name in {"pci_device_id", "pci_subsystem_id"}:
        return f"{found:#010x}" if found else None
    return found


THROTTLE: Final[Mapping[int, str]] = {
    0x1: "idle",
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "heat, by software",
    0x40: "heat, by hardware",
    0x80: "power brake",
    0x100: "display clocks",
}
"""The reasons for which the bits of NVML's gpu_throttle_reasons stand."""


def throttle_words(mask: int) -> str:
    """The reasons for which clocks are held down, in words; `none` for none, a bit without a word as it is."""
    words = [THROTTLE.get(1 << bit, f"{1 << bit:#x}") for bit in range(mask.bit_length()) if mask >> bit & 1]
    return ", ".join(words) or "none"
