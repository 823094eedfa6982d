"""Gives the readings of this host's GPUs to Prometheus, under Windrow's names and under those of NVIDIA's DCGM.

Pure. Dashboards that were made for DCGM draw these series as they are. Names and units of DCGM: dcgm_fields.h and
dcgm-exporter's default-counters.csv (percent, MiB, MHz, mJ, W, °C). Left out is what DCGM counts otherwise: bytes as a
rate, and time of violations in a unit that differs between its versions.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from windrow_agent.core.gpu_port import GpuInventory
from windrow_proto.gpu_fields import GPU_FIELDS, Source
from windrow_proto.metrics import BY_NAME, METRICS, Metric, Scope
from windrow_proto.model import GpuFacts
from windrow_proto.samples import Sample
from windrow_proto.scrape import Figure

DCGM: Final = "DCGM_FI_DEV_"
DCGM_PROFILING: Final = "DCGM_FI_"
"""Before names that begin with PROF_."""
MIB: Final = 1 << 20
DCGM_PER_UNIT: Final = {"By": 1 / MIB, "Hz": 1e-6, "J": 1e3}
"""DCGM's value for one of our unit."""
NUMBERS: Final = frozenset({"1", "bool"})
"""Units of the facts that are told: counts of errors, remapped rows, retired pages, and flags."""
MEMORY_USED: Final = BY_NAME["gpu_memory_used_bytes"].number


def gpu_figures(inventory: GpuInventory, sample: Sample | None, host: str) -> Iterable[Figure]:
    """All cards that answered in this sample; slices of a card are not apart. host: this machine's name."""
    for gpu in inventory.gpus:
        values = sample.values if sample is not None else {}
        read = {number: value for (uuid, number), value in values.items() if uuid == gpu.uuid and value is not None}
        own = {"gpu": gpu.uuid, "index": str(gpu.index), "model": gpu.name, "host": host}
        yield Figure("gpu_answers", "1 if the card answered when it was read last", float(bool(read)), own)
        for metric in METRICS:
            if metric.scope is Scope.GPU and metric.number in read:
                yield Figure(metric.name, metric.label, read[metric.number] * metric.scale, own)
        if read:
            yield from _as_dcgm(gpu, read, _dcgm_labels(gpu, inventory, host))


def _as_dcgm(gpu: GpuFacts, read: Mapping[int, int], labels: Mapping[str, str]) -> Iterable[Figure]:
    for metric in METRICS:
        if metric.scope is Scope.GPU and metric.number in read and metric.dcgm and not _counted_otherwise(metric):
            value = read[metric.number] * metric.scale * _dcgm_scale(metric)
            yield _dcgm(metric.dcgm, metric.label, value, labels, is_counter=metric.counter)
    if gpu.memory_bytes is not None and MEMORY_USED in read:
        kept = gpu.more.get("memory_reserved_bytes")
        reserved = kept if isinstance(kept, int) else 0
        free = gpu.memory_bytes - reserved - read[MEMORY_USED] * BY_NAME["gpu_memory_used_bytes"].scale
        yield _dcgm("FB_FREE", "Memory free", max(0.0, free) / MIB, labels)
        yield _dcgm("FB_RESERVED", "Memory kept by the driver", reserved / MIB, labels)
    for one in GPU_FIELDS:
        said = gpu.more.get(one.name)
        if one.source is Source.MORE and one.dcgm and one.unit in NUMBERS and isinstance(said, int):
            yield _dcgm(one.dcgm, one.label, said, labels)


def _dcgm(name: str, text: str, value: float, labels: Mapping[str, str], *, is_counter: bool = False) -> Figure:
    prefix = DCGM_PROFILING if name.startswith("PROF_") else DCGM
    return Figure(name, text, round(value, 6), labels, prefix=prefix, is_counter=is_counter)


def _counted_otherwise(metric: Metric) -> bool:
    return metric.unit == "s" or metric.name.endswith("_bytes_total")


def _dcgm_scale(metric: Metric) -> float:
    if metric.name.endswith("_ratio"):
        return 1 if metric.dcgm and metric.dcgm.startswith("PROF_") else 100
    return DCGM_PER_UNIT.get(metric.unit, 1)


def _dcgm_labels(gpu: GpuFacts, inventory: GpuInventory, host: str) -> Mapping[str, str]:
    """The labels of dcgm-exporter."""
    minor = gpu.index if gpu.device_minor is None else gpu.device_minor
    return {
        "gpu": str(gpu.index),
        "UUID": gpu.uuid,
        "device": f"nvidia{minor}",
        "modelName": gpu.name,
        "Hostname": host,
        "pci_bus_id": gpu.pci_bus_id,
        "DCGM_FI_DRIVER_VERSION": inventory.driver_version,
    }
