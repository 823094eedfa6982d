"""The one table of metrics: their numbers on the wire, names, units and scales. Pure.

A number is never reused. `scale` turns the wire's integer into the unit: value = wire * scale.
OTel names follow the hardware conventions of OpenTelemetry (status: development); DCGM names those of dcgm_fields.h.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final


class Scope(StrEnum):
    """The kind of thing that a metric is a property of."""

    GPU = "gpu"
    HOST = "host"
    WORKLOAD = "workload"


@dataclass(frozen=True, slots=True)
class Metric:
    """One series' meaning.

    number: on the wire; name: Prometheus name without the `windrow_` prefix, unit in it;
    counter: only grows within a boot; slow: read every 10 s, and in a sample only when it was read.
    A series of a workload has its id as the device; rates are means since the reading before.
    """

    number: int
    scope: Scope
    name: str
    unit: str
    scale: float
    counter: bool
    otel: str | None
    dcgm: str | None
    label: str
    slow: bool = False


def _gpu(
    number: int,
    name: str,
    unit: str,
    scale: float,
    otel: str | None,
    dcgm: str | None,
    label: str,
    counter: bool = False,
    slow: bool = False,
) -> Metric:
    return Metric(number, Scope.GPU, name, unit, scale, counter, otel, dcgm, label, slow)


_slow = partial(_gpu, slow=True)


def _host(
    number: int, name: str, unit: str, scale: float, otel: str | None, label: str, counter: bool = False
) -> Metric:
    return Metric(number, Scope.HOST, name, unit, scale, counter, otel, None, label)


def _workload(number: int, name: str, unit: str, scale: float, otel: str | None, label: str) -> Metric:
    return Metric(number, Scope.WORKLOAD, name, unit, scale, False, otel, None, label, slow=True)


METRICS: Final[tuple[Metric, ...]] = (
    _gpu(1, "gpu_utilization_ratio", "1", 0.01, "hw.gpu.utilization", "GPU_UTIL", "GPU utilisation"),
    _gpu(2, "gpu_memory_controller_ratio", "1", 0.01, None, "MEM_COPY_UTIL", "Memory controller"),
    _gpu(3, "gpu_memory_used_bytes", "By", 1048576.0, "hw.gpu.memory.usage", "FB_USED", "Memory used"),
    _gpu(4, "gpu_temperature_celsius", "Cel", 1.0, "hw.temperature", "GPU_TEMP", "Temperature"),
    _gpu(5, "gpu_memory_temperature_celsius", "Cel", 1.0, "hw.temperature", "MEMORY_TEMP", "Memory temperature"),
    _gpu(6, "gpu_power_watts", "W", 0.1, "hw.power", "POWER_USAGE", "Power"),
    _gpu(7, "gpu_energy_joules_total", "J", 1.0, "hw.energy", "TOTAL_ENERGY_CONSUMPTION", "Energy", counter=True),
    _gpu(8, "gpu_clock_sm_hertz", "Hz", 1e6, None, "SM_CLOCK", "SM clock"),
    _gpu(9, "gpu_clock_memory_hertz", "Hz", 1e6, None, "MEM_CLOCK", "Memory clock"),
    _gpu(10, "gpu_throttle_reasons", "1", 1.0, None, "CLOCK_THROTTLE_REASONS", "Throttle reasons (bitmask)"),
    _gpu(11, "gpu_performance_state", "1", 1.0, None, "PSTATE", "P-state"),
    _gpu(12, "gpu_fan_ratio", "1", 0.01, None, "FAN_SPEED", "Fan"),
    _gpu(
        13,
        "gpu_ecc_uncorrected_total",
        "1",
        1.0,
        "hw.errors",
        "ECC_DBE_VOL_TOTAL",
        "Uncorrected ECC errors",
        counter=True,
    ),
    _gpu(14, "gpu_pcie_replays_total", "1", 1.0, "hw.errors", "PCIE_REPLAY_COUNTER", "PCIe replays", counter=True),
    _gpu(15, "gpu_processes", "1", 1.0, None, None, "Processes"),
    _slow(16, "gpu_encoder_ratio", "1", 0.01, "hw.gpu.utilization", "ENC_UTIL", "Encoder"),
    _slow(17, "gpu_decoder_ratio", "1", 0.01, "hw.gpu.utilization", "DEC_UTIL", "Decoder"),
    _slow(18, "gpu_clock_video_hertz", "Hz", 1e6, None, "VIDEO_CLOCK", "Video clock"),
    _slow(19, "gpu_pcie_generation", "1", 1.0, None, "PCIE_LINK_GEN", "PCIe generation"),
    _slow(20, "gpu_pcie_lanes", "1", 1.0, None, "PCIE_LINK_WIDTH", "PCIe lanes"),
    _slow(
        21, "gpu_pcie_transmit_bytes_total", "By", 1024.0, "hw.gpu.io", "PROF_PCIE_TX_BYTES", "PCIe sent", counter=True
    ),
    _slow(
        22,
        "gpu_pcie_receive_bytes_total",
        "By",
        1024.0,
        "hw.gpu.io",
        "PROF_PCIE_RX_BYTES",
        "PCIe received",
        counter=True,
    ),
    _slow(
        23,
        "gpu_nvlink_transmit_bytes_total",
        "By",
        1024.0,
        "hw.gpu.io",
        "PROF_NVLINK_TX_BYTES",
        "NVLink sent",
        counter=True,
    ),
    _slow(
        24,
        "gpu_nvlink_receive_bytes_total",
        "By",
        1024.0,
        "hw.gpu.io",
        "PROF_NVLINK_RX_BYTES",
        "NVLink received",
        counter=True,
    ),
    _slow(
        25, "gpu_throttled_power_seconds_total", "s", 0.1, None, "POWER_VIOLATION", "Held down by power", counter=True
    ),
    _slow(
        26, "gpu_throttled_heat_seconds_total", "s", 0.1, None, "THERMAL_VIOLATION", "Held down by heat", counter=True
    ),
    *(
        _slow(number, f"gpu_{name}_ratio", "1", 0.001, None, f"PROF_{dcgm}", label)
        for number, name, dcgm, label in (
            (27, "engine_active", "GR_ENGINE_ACTIVE", "Compute or graphics active"),
            (28, "sm_active", "SM_ACTIVE", "SMs active"),
            (29, "sm_occupancy", "SM_OCCUPANCY", "Warps of the SMs"),
            (30, "tensor_active", "PIPE_TENSOR_ACTIVE", "Tensor cores active"),
            (31, "memory_active", "DRAM_ACTIVE", "Memory bandwidth used"),
            (32, "fp64_active", "PIPE_FP64_ACTIVE", "FP64 active"),
            (33, "fp32_active", "PIPE_FP32_ACTIVE", "FP32 active"),
            (34, "fp16_active", "PIPE_FP16_ACTIVE", "FP16 active"),
        )
    ),
    _host(101, "host_cpu_ratio", "1", 0.001, "system.cpu.utilization", "CPU"),
    _host(102, "host_memory_used_bytes", "By", 1048576.0, "system.memory.usage", "Memory used"),
    _host(103, "host_load1", "1", 0.01, "system.cpu.load_average.1m", "Load (1 min)"),
    _host(104, "host_network_receive_bytes_total", "By", 1024.0, "system.network.io", "Network received", counter=True),
    _host(105, "host_network_transmit_bytes_total", "By", 1024.0, "system.network.io", "Network sent", counter=True),
    _host(106, "host_disk_used_bytes", "By", 1048576.0, "system.filesystem.usage", "Disk used"),
    _host(107, "host_disk_read_bytes_total", "By", 1024.0, "system.disk.io", "Disk read", counter=True),
    _host(108, "host_disk_write_bytes_total", "By", 1024.0, "system.disk.io", "Disk written", counter=True),
    _host(109, "host_swap_used_bytes", "By", 1048576.0, None, "Swap used"),
    _host(110, "host_workloads", "1", 1.0, None, "Workloads"),
    _host(111, "host_cpu_pressure_ratio", "1", 0.001, None, "Some waited for a processor"),
    _host(112, "host_memory_pressure_ratio", "1", 0.001, None, "Some waited for memory"),
    _host(113, "host_io_pressure_ratio", "1", 0.001, None, "Some waited for a disk"),
    _workload(201, "workload_cpu_cores", "1", 0.001, "container.cpu.usage", "Processors in use"),
    _workload(202, "workload_memory_used_bytes", "By", 1024.0, "container.memory.usage", "Memory used"),
    _workload(203, "workload_disk_used_bytes", "By", 1024.0, "container.filesystem.usage", "Disk used"),
    _workload(204, "workload_disk_read_bytes_per_second", "By/s", 1.0, None, "Disk read"),
    _workload(205, "workload_disk_write_bytes_per_second", "By/s", 1.0, None, "Disk written"),
    _workload(206, "workload_network_receive_bytes_per_second", "By/s", 1.0, None, "Network received"),
    _workload(207, "workload_network_transmit_bytes_per_second", "By/s", 1.0, None, "Network sent"),
    _workload(208, "workload_gpu_ratio", "1", 0.001, "hw.gpu.utilization", "GPU use"),
    _workload(209, "workload_gpu_memory_used_bytes", "By", 1048576.0, "hw.gpu.memory.usage", "GPU memory used"),
)

CPU_HASH: Final = "cpu.sha256_bytes_per_s"
"""Benchmark: SHA-256 on all processors at once, bytes hashed per second."""
MEMORY_COPY: Final = "memory.copy_bytes_per_s"
"""Benchmark: bytes copied per second between buffers larger than caches, on up to MEMORY_COPY_THREADS threads."""
DISK_WRITE: Final = "disk.write_bytes_per_s"
"""Benchmark: bytes written to the data directory and fsynced, per second."""
GPU_MEMORY: Final = "gpu.memory_bytes_per_s"
"""Benchmark: bytes a GPU's memory moves per second; its subject is the GPU's UUID."""
GPU_MATRIX: Final = "gpu.matrix_operations_per_s"
"""Benchmark: multiplications and additions of 32-bit integers per second in a product of large matrices; its subject is
the GPU's UUID."""
BENCHMARK_NAMES: Final[Mapping[str, str]] = {
    CPU_HASH: "processor speed (SHA-256)",
    MEMORY_COPY: "memory speed",
    DISK_WRITE: "disk writing speed",
    GPU_MEMORY: "GPU memory speed",
    GPU_MATRIX: "matrix speed",
}
"""What people call the benchmarks."""
BENCHMARK_UNIT: Final = "By/s"
MATRIX_UNIT: Final = "{operation}/s"
MEMORY_COPY_THREADS: Final = 8

BY_NUMBER: Final[dict[int, Metric]] = {metric.number: metric for metric in METRICS}
BY_NAME: Final[dict[str, Metric]] = {metric.name: metric for metric in METRICS}
SLOW: Final = frozenset(metric.number for metric in METRICS if metric.slow)
