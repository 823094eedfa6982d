"""Turns what a runtime counts of a workload into the metrics of that workload. Pure.

A rate is the mean since the count before; where a count is missing or fell, there is no rate.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from windrow_proto.metrics import BY_NAME
from windrow_proto.samples import Sample, scale_value
from windrow_proto.units import SECOND

CPU: Final = BY_NAME["workload_cpu_cores"].number
GPU: Final = BY_NAME["workload_gpu_ratio"].number
GPU_MEMORY: Final = BY_NAME["workload_gpu_memory_used_bytes"].number
CARD_USE: Final = BY_NAME["gpu_utilization_ratio"]
CARD_MEMORY: Final = BY_NAME["gpu_memory_used_bytes"]
SIZES: Final = {
    "memory_bytes": BY_NAME["workload_memory_used_bytes"].number,
    "disk_bytes": BY_NAME["workload_disk_used_bytes"].number,
}
"""The metric of each figure that a runtime measures."""
RATES: Final = {
    "disk_read_bytes": BY_NAME["workload_disk_read_bytes_per_second"].number,
    "disk_write_bytes": BY_NAME["workload_disk_write_bytes_per_second"].number,
    "network_receive_bytes": BY_NAME["workload_network_receive_bytes_per_second"].number,
    "network_transmit_bytes": BY_NAME["workload_network_transmit_bytes_per_second"].number,
}
"""The metric of each counter of a runtime: it tells how fast the counter grows."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The resources of one workload as its runtime counts them; None: it cannot tell.

    cpu_ns: processor time since its start; memory_bytes, disk_bytes: in use now; the others: since its start.
    """

    cpu_ns: int | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    disk_read_bytes: int | None = None
    disk_write_bytes: int | None = None
    network_receive_bytes: int | None = None
    network_transmit_bytes: int | None = None


def readings(usage: Usage, before: Usage | None, span_ns: int) -> dict[int, int]:
    """The metrics that are known of a workload, as the wire's integers. before: its count `span_ns` ago."""
    found = {number: getattr(usage, name) for name, number in SIZES.items()}
    if before is not None and span_ns > 0:
        grown = _grown(usage.cpu_ns, before.cpu_ns)
        found[CPU] = None if grown is None else grown / span_ns
        for name, number in RATES.items():
            grown = _grown(getattr(usage, name), getattr(before, name))
            found[number] = None if grown is None else grown * SECOND / span_ns
    return {number: scale_value(number, value) for number, value in found.items() if value is not None}


def gpu_readings(sample: Sample | None, cards: Iterable[str]) -> dict[int, int]:
    """The metrics of a workload's cards as they were read last: the mean of their use, the sum of their memory."""
    values = sample.values if sample is not None else {}
    held = tuple(cards)
    use = [value for card in held if (value := values.get((card, CARD_USE.number))) is not None]
    memory = [value for card in held if (value := values.get((card, CARD_MEMORY.number))) is not None]
    found = {}
    if use:
        found[GPU] = scale_value(GPU, sum(use) * CARD_USE.scale / len(use))
    if memory:
        found[GPU_MEMORY] = scale_value(GPU_MEMORY, sum(memory) * CARD_MEMORY.scale)
    return found


def keyed(workload_id: str, found: Mapping[int, int]) -> dict[tuple[str, int], int | None]:
    """The same as series of a sample."""
    return {(workload_id, number): value for number, value in found.items()}


def _grown(now: int | None, before: int | None) -> int | None:
    return None if now is None or before is None or now < before else now - before
