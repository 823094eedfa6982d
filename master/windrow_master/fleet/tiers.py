"""Which tier a GPU or a host's processors belong to, and why, in words. Pure.

A tier is `<class>/<grade>`: the class from the model table, the grade from measured over expected: at least 0.9 is A,
at least 0.7 is B, below is C. What was not measured yet, or has no expected figure that somebody read in a document,
is C, and says so. A grade moves only when the figure is
clearly past the limit (hysteresis), so that a tier, and with it a price, does not flicker.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from windrow_master.fleet import gpu_table
from windrow_proto.metrics import BENCHMARK_UNIT, CPU_HASH, GPU_MEMORY, MEMORY_COPY, MEMORY_COPY_THREADS
from windrow_proto.model import Benchmark, GpuFacts, Inventory

RATIO_A: Final = 0.9
RATIO_B: Final = 0.7
HYSTERESIS: Final = 0.02
"""A grade is kept until the ratio is this far past the limit: repeated runs of one machine differ by a percent."""

BANDWIDTH_A_BPS: Final = 100_000_000
"""Below 100 Mbit/s either way no A: a 10 GB image takes longer than a quarter of an hour."""
BANDWIDTH_B_BPS: Final = 10_000_000
"""Below 10 Mbit/s no B: logs and files already compete with heartbeats."""

CPU_EXPECTED_EACH: Final[Mapping[str, float]] = {CPU_HASH: 1e9, MEMORY_COPY: 5e9}
"""Our own reference, bytes per second for each logical processor: what the agent's benchmarks gave on a cloud machine
with two processors that have the SHA instructions and nothing else to do (2.55 GB/s hashed, 14.3 GB/s copied by both
together), less a quarter for neighbours. Not a vendor's figure."""


class Grade(StrEnum):
    """How a machine compares with what its class should do."""

    A = "A"
    B = "B"
    C = "C"


@dataclass(frozen=True, slots=True)
class Tier:
    """A tier with the reasons for it, most important first."""

    tier_class: str
    grade: Grade
    reasons: tuple[str, ...]

    @property
    def name(self) -> str:
        """As it is written everywhere: `h100/A`, `cpu/B`."""
        return f"{self.tier_class}/{self.grade}"


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """A host's measured link, bits per second, the lower of both counts; its age does not matter here."""

    up_bps: int
    down_bps: int
    access_id: str


def grade_of(ratio: float, previous: Grade | None = None) -> Grade:
    """The grade of measured over expected (>= 0), given the grade it had; monotone in `ratio`."""
    limit_a, limit_b = RATIO_A, RATIO_B
    if previous is not None:
        limit_a += -HYSTERESIS if previous is Grade.A else HYSTERESIS
        limit_b += HYSTERESIS if previous is Grade.C else -HYSTERESIS
    if ratio >= limit_a:
        return Grade.A
    return Grade.B if ratio >= limit_b else Grade.C


def previous_grade(tier: str | None, tier_class: str) -> Grade | None:
    """The grade of an earlier tier name, if it was of the same class."""
    name, _, grade = (tier or "").partition("/")
    return Grade(grade) if name == tier_class and grade in tuple(Grade) else None


def gpu_tier(
    gpu: GpuFacts, benchmarks: Iterable[Benchmark], bandwidth: Bandwidth | None, previous: str | None = None
) -> Tier:
    """The tier of one GPU. `previous` is the tier name it has now, for the hysteresis."""
    model = gpu_table.find(gpu.pci_device_id)
    if model is None:
        reason = f"PCI id {gpu.pci_device_id:#010x} ({gpu.name}) is not in the model table: nothing to compare with"
        return Tier(gpu_table.UNLISTED_CLASS, Grade.C, (reason, *_bandwidth_reasons(bandwidth)))
    reasons = [f"PCI id says {model.name} ({model.vendor})"]
    grade = Grade.A
    memory_grade, memory_reason = _memory(gpu.memory_bytes, model)
    grade, reasons = _worst(grade, memory_grade), [*reasons, memory_reason]
    mine = {b.name: b for b in benchmarks if b.subject == gpu.uuid}
    speed_grade, speed_reasons = _gpu_speed(mine, model, previous_grade(previous, model.model_class))
    grade = _worst(grade, speed_grade, _bandwidth_cap(bandwidth))
    return Tier(model.model_class, grade, (*reasons, *speed_reasons, *_bandwidth_reasons(bandwidth)))


def cpu_expected(cpu_count: int) -> dict[str, tuple[float, str]]:
    """What so many logical processors should reach; copying stops growing where the benchmark's threads do."""
    counts = {CPU_HASH: max(1, cpu_count), MEMORY_COPY: min(max(1, cpu_count), MEMORY_COPY_THREADS)}
    return {name: (each * counts[name], BENCHMARK_UNIT) for name, each in CPU_EXPECTED_EACH.items()}


def cpu_tier(inventory: Inventory, bandwidth: Bandwidth | None, previous: str | None = None) -> Tier:
    """The tier of a host's processors."""
    mine = {b.name: b for b in inventory.benchmarks if not b.subject}
    grade, speed_reasons = _measured(
        mine, cpu_expected(inventory.cpu_count), previous_grade(previous, gpu_table.CPU_CLASS)
    )
    what = f"{inventory.cpu_count} x {inventory.cpu_model or 'unnamed processor'}"
    grade = _worst(grade, _bandwidth_cap(bandwidth))
    return Tier(gpu_table.CPU_CLASS, grade, (what, *speed_reasons, *_bandwidth_reasons(bandwidth)))


def _gpu_speed(
    mine: Mapping[str, Benchmark], model: gpu_table.GpuModel, previous: Grade | None
) -> tuple[Grade, tuple[str, ...]]:
    """The grade by memory bandwidth; no figure of the table, no grade above C, however fast the card is."""
    if model.bandwidth_gb_s is None:
        return Grade.C, (f"{GPU_MEMORY}: expected figure not yet read from a sheet",)
    return _measured(mine, {GPU_MEMORY: (model.bandwidth_gb_s.value * 1e9, BENCHMARK_UNIT)}, previous)


def _measured(
    mine: Mapping[str, Benchmark], expected: Mapping[str, tuple[float, str]], previous: Grade | None
) -> tuple[Grade, tuple[str, ...]]:
    """The grade by the worst of the expected figures; all must be there in the expected unit."""
    grades: list[Grade] = []
    reasons: list[str] = []
    for name, (want, unit) in expected.items():
        found = mine.get(name)
        if found is None:
            grades.append(Grade.C)
            reasons.append(f"{name}: not measured yet")
        elif found.unit != unit or not 0 < found.value < float("inf"):
            grades.append(Grade.C)
            reasons.append(f"{name}: measured in {found.unit or 'no unit'}, expected {unit}")
        else:
            ratio = found.value / want
            grades.append(grade_of(ratio, previous))
            reasons.append(f"{name}: {ratio:.0%} of the expected {_quantity(want, unit)}")
    return _worst(*grades), tuple(reasons)


def _memory(memory_bytes: int | None, model: gpu_table.GpuModel) -> tuple[Grade, str]:
    if memory_bytes is None:
        return Grade.C, "memory: the driver does not say how much"
    low, high = model.memory_window_bytes
    text = f"memory: {memory_bytes / 2**30:.1f} GiB of {model.memory_gib.value} nominal"
    if low <= memory_bytes <= high:
        return Grade.A, text
    return Grade.C, f"{text}, outside {low / 2**30:.1f} to {high / 2**30:.1f} GiB that this model reports"


def _bandwidth_cap(bandwidth: Bandwidth | None) -> Grade:
    """The best grade a link allows; a link not measured yet takes nothing away, the reasons say that it is not."""
    if bandwidth is None:
        return Grade.A
    slower = min(bandwidth.up_bps, bandwidth.down_bps)
    if slower >= BANDWIDTH_A_BPS:
        return Grade.A
    return Grade.B if slower >= BANDWIDTH_B_BPS else Grade.C


def _bandwidth_reasons(bandwidth: Bandwidth | None) -> tuple[str, ...]:
    if bandwidth is None:
        return ("bandwidth: not measured yet",)
    text = f"bandwidth: {bandwidth.up_bps / 1e6:.0f} Mbit/s up, {bandwidth.down_bps / 1e6:.0f} down"
    cap = _bandwidth_cap(bandwidth)
    return (text if cap is Grade.A else f"{text}: at best {cap}",)


def _worst(*grades: Grade) -> Grade:
    return max(grades)


def worst_tier(tiers: Sequence[Tier]) -> Tier | None:
    """The tier a host shows for all its GPUs: the one with the lowest grade, the first of these."""
    return max(tiers, key=lambda tier: tier.grade, default=None)


def _quantity(value: float, unit: str) -> str:
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= factor:
            return f"{value / factor:g} {prefix}{unit}"
    return f"{value:g} {unit}"
