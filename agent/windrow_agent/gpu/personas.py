"""The machines that simulated hosts pretend to be, with figures of their makers' data sheets. Pure."""

from dataclasses import dataclass
from typing import Final

from windrow_proto.units import GIB, MIB


@dataclass(frozen=True, slots=True)
class GpuPersona:
    """One model of card. Idle and full power in milliwatts, temperatures in degrees Celsius."""

    name: str
    pci_device_id: int
    memory_bytes: int
    capability: tuple[int, int]
    cores: int
    bus_bits: int
    power_idle_mw: int
    power_limit_mw: int
    clock_idle_mhz: int
    clock_sm_mhz: int
    clock_memory_mhz: int
    pcie_generation: int
    is_datacentre: bool
    """Has ECC, MIG and a memory sensor, and no fan of its own."""


@dataclass(frozen=True, slots=True)
class HostPersona:
    """One kind of machine."""

    key: str
    gpu: GpuPersona | None
    gpu_count: int
    cpu_model: str
    cpu_count: int
    memory_bytes: int
    disk_bytes: int


H100: Final = GpuPersona(
    "NVIDIA H100 80GB HBM3", 0x233010DE, 81559 * MIB, (9, 0), 16896, 5120, 70_000, 700_000, 345, 1980, 2619, 5, True
)
A100: Final = GpuPersona(
    "NVIDIA A100-SXM4-80GB", 0x20B210DE, 81920 * MIB, (8, 0), 6912, 5120, 60_000, 400_000, 210, 1410, 1593, 4, True
)
L40S: Final = GpuPersona(
    "NVIDIA L40S", 0x26B910DE, 46068 * MIB, (8, 9), 18176, 384, 35_000, 350_000, 210, 2520, 9001, 4, True
)
RTX_4090: Final = GpuPersona(
    "NVIDIA GeForce RTX 4090", 0x268410DE, 24564 * MIB, (8, 9), 16384, 384, 22_000, 450_000, 210, 2520, 10501, 4, False
)
RTX_3090: Final = GpuPersona(
    "NVIDIA GeForce RTX 3090", 0x220410DE, 24576 * MIB, (8, 6), 10496, 384, 25_000, 350_000, 210, 1695, 9751, 4, False
)

HOSTS: Final[dict[str, HostPersona]] = {
    host.key: host
    for host in (
        HostPersona("8xH100", H100, 8, "Intel(R) Xeon(R) Platinum 8480+", 224, 2048 * GIB, 30_000 * GIB),
        HostPersona("8xA100", A100, 8, "AMD EPYC 7763 64-Core Processor", 256, 1024 * GIB, 15_000 * GIB),
        HostPersona("8xL40S", L40S, 8, "AMD EPYC 9354 32-Core Processor", 128, 768 * GIB, 7_600 * GIB),
        HostPersona("8xRTX4090", RTX_4090, 8, "AMD EPYC 7443 24-Core Processor", 96, 512 * GIB, 7_600 * GIB),
        HostPersona("4xRTX4090", RTX_4090, 4, "AMD Ryzen Threadripper PRO 5975WX", 64, 256 * GIB, 3_800 * GIB),
        HostPersona("2xRTX3090", RTX_3090, 2, "AMD Ryzen 9 5950X 16-Core Processor", 32, 64 * GIB, 1_900 * GIB),
        HostPersona("cpu", None, 0, "AMD EPYC 9554 64-Core Processor", 128, 512 * GIB, 3_800 * GIB),
    )
}

FLEET: Final = ("8xH100", "8xA100", "8xRTX4090", "8xL40S")
"""The order in which a simulated fleet takes its personas, when it is not told one: eight cards in each host."""
