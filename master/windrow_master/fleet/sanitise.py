"""Makes an inventory safe to keep and show: bounded, deduplicated, plausible. Pure.

The wire already refuses garbage and cleans texts; this is the second look, at what the values mean together.
"""

from dataclasses import replace
from typing import Final

from windrow_master.fleet.conditions import CONDITIONS_MAX, NAME_MAX
from windrow_proto.model import GpuFacts, Inventory
from windrow_proto.wire_fields import clean_text

CPU_COUNT_MAX: Final = 4_096
MEMORY_BYTES_MAX: Final = 1 << 50
DISK_BYTES_MAX: Final = 1 << 60
RUNTIMES_MAX: Final = 16
ADDRESSES_MAX: Final = 64
BENCHMARKS_MAX: Final = 1_024
"""Each is kept and read with its host; the largest host has some 400."""
VERSION_CHARS_MAX: Final = 200


def host_name(text: str, fallback: str) -> str:
    """A name fit for a list: one line, trimmed, not empty."""
    name = " ".join(clean_text(text, NAME_MAX).replace("\ufffd", " ").split())
    return name or fallback


def inventory(claimed: Inventory) -> tuple[Inventory, tuple[str, ...]]:
    """The inventory as it may be kept, and what was cut off it, in words."""
    notes: list[str] = []
    gpus = _distinct(claimed.gpus, notes)
    kept = replace(
        claimed,
        hostname=host_name(claimed.hostname, "unnamed"),
        cpu_count=_within(claimed.cpu_count, CPU_COUNT_MAX, "processors", notes),
        memory_bytes=_within(claimed.memory_bytes, MEMORY_BYTES_MAX, "bytes of memory", notes),
        disk_bytes=_within(claimed.disk_bytes, DISK_BYTES_MAX, "bytes of disk", notes),
        gpus=gpus,
        runtimes=tuple(dict.fromkeys(claimed.runtimes))[:RUNTIMES_MAX],
        runtime_versions={
            name: version[:VERSION_CHARS_MAX] for name, version in list(claimed.runtime_versions.items())[:RUNTIMES_MAX]
        },
        benchmarks=claimed.benchmarks[:BENCHMARKS_MAX],
        addresses=claimed.addresses[:ADDRESSES_MAX],
        conditions=tuple(dict.fromkeys(claimed.conditions))[:CONDITIONS_MAX],
    )
    return kept, tuple(notes)


def _distinct(gpus: tuple[GpuFacts, ...], notes: list[str]) -> tuple[GpuFacts, ...]:
    found: dict[str, GpuFacts] = {}
    for gpu in gpus:
        if not gpu.uuid or "/" in gpu.uuid:
            notes.append(f"a GPU without a usable id ({gpu.name}) was left out")
        elif gpu.uuid in found:
            notes.append(f"GPU {gpu.uuid} was listed twice")
        else:
            found[gpu.uuid] = gpu
    return tuple(found.values())


def _within(value: int, most: int, what: str, notes: list[str]) -> int:
    if value <= most:
        return value
    notes.append(f"{value} {what} are not believed; {most} is the most")
    return most
