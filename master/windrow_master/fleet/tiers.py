"""Assigns a tier to a GPU or a host's processors, and explains it in words. Pure.

A tier is `<class>/<grade>`: the class from the model table, the grade the worst that any figure allows: measured
performance over expected, memory, the PCIe link over the card's own, the internet link, health, reliability. Ratios of
at least 0.9 are A, of at least 0.7 B, below is C. A GPU's performance is what test rentals measured from inside
(benchmarks.py), never what its host says in its inventory. Performance that was not measured yet, or has no expected
figure that somebody read in a document, is C, and says so; a link, health or reliability that nobody knows takes
nothing away, and says so too. A grade moves only when a figure is clearly past its limit: each has its slack, so that a
tier, and with it a price, does not flicker.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from windrow_master.fleet import gpus
from windrow_proto.metrics import (
    BENCHMARK_NAMES,
    BENCHMARK_UNIT,
    CPU_HASH,
    GPU_MATRIX,
    GPU_MEMORY,
    MATRIX_UNIT,
    MEMORY_COPY,
    MEMORY_COPY_THREADS,
)
from windrow_proto.model import Benchmark, GpuFacts, Inventory


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of grades A and B for a figure, and how far past them it must be for a grade to move; all in the
    figure's unit."""

    a: float
    b: float
    slack: float


RATIO: Final = Limits(0.9, 0.7, 0.02)
"""Of measured over expected performance: repeated runs of one machine differ by a percent."""
LINK: Final = Limits(0.9, 0.4, 0.0)
"""Of a PCIe link's rate over that of the card's fastest: half the lanes or one generation less is B, a quarter is C.
What a link negotiates is a count: it needs no slack."""
BANDWIDTH: Final = Limits(100e6, 10e6, 5e6)
"""Bits per second, the slower way. Below 100 Mbit/s no A: a 10 GB image takes longer than a quarter of an hour. Below
10 no B: logs and files already compete with heartbeats. The slack: two runs over one busy line differ by so much."""
RELIABILITY: Final = Limits(0.98, 0.9, 0.005)
"""Of `reliability.reliability`: a new host that is never missed comes to B in 2.3 hours and to A in 12.2."""

SHEET_REACHED: Final = 0.8
"""Of a sheet's memory bandwidth: what a copy by a sound card should reach. A GH200 copied 2.98 of the 4 TB/s of its
sheet (BabelStream, issue 194), which is 0.93 of this; cards that come closer are past it. To be replaced, class by
class, by what we measure ourselves."""
SHEET_PASSED: Final = 1.1
"""Times the sheet's: nobody's memory moves more, overclocked or not. What says so measured a cache, or is untrue."""

MATRIX_EXPECTED: Final[Mapping[str, float]] = {"h100": 15.38e12, "h200": 15.38e12}
"""Integer operations per second that a card of a class should reach, for the classes that were calibrated by our own
measurement: a test rental's product on an H100 80GB HBM3 (12 runs within 0.1 %) and on an H200, which has the same
processors. The rate of a card of another class is shown and grades nothing."""

CPU_EXPECTED_EACH: Final[Mapping[str, float]] = {CPU_HASH: 1e9, MEMORY_COPY: 5e9}
"""Our own reference, bytes per second for each logical processor: what the agent's benchmarks gave on a cloud machine
with two processors that have the SHA instructions and nothing else to do (2.55 GB/s hashed, 14.3 GB/s copied by both
together), less a quarter for neighbours. Not a vendor's figure."""


class Grade(StrEnum):
    """The grade of a machine against the figures of its class."""

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


class Health(StrEnum):
    """The health of a GPU as the Master judges it; the words are those of OpenTelemetry's hw.status."""

    OK = "ok"
    DEGRADED = "degraded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Standing:
    """The observations of a GPU and its host over time; None is not known yet.

    reliability: in [0, 1].
    pcie: generation and lanes of the link while data moved. A driver's own maximum is the card's, whatever the slot (an
    L4 that ran on 8 lanes still said 16), and an idle card falls back to an old generation.
    """

    health: Health | None = None
    reliability: float | None = None
    pcie: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class _Finding:
    """The best grade that one figure allows, and what is said of it."""

    grade: Grade
    text: str


def grade_of(value: float, previous: Grade | None = None, limits: Limits = RATIO) -> Grade:
    """The grade of a figure (>= 0), given the grade its tier had; monotone in `value`."""
    limit_a, limit_b = limits.a, limits.b
    if previous is not None:
        limit_a += -limits.slack if previous is Grade.A else limits.slack
        limit_b += limits.slack if previous is Grade.C else -limits.slack
    if value >= limit_a:
        return Grade.A
    return Grade.B if value >= limit_b else Grade.C


def previous_grade(tier: str | None, tier_class: str) -> Grade | None:
    """The grade of an earlier tier name, if it was of the same class."""
    name, _, grade = (tier or "").partition("/")
    return Grade(grade) if name == tier_class and grade in tuple(Grade) else None


def gpu_tier(
    gpu: GpuFacts,
    benchmarks: Iterable[Benchmark],
    bandwidth: Bandwidth | None,
    previous: str | None = None,
    standing: Standing = Standing(),
    *,
    is_drawn: bool = False,
) -> Tier:
    """The tier of one GPU. benchmarks: those that count (benchmarks.py); previous: the tier name that it has now, for
    the hysteresis; is_drawn: its host is simulated, and so are its figures."""
    model = gpus.find(gpu.pci_device_id, gpu.memory_bytes)
    if model is None:
        text = f"PCI id {gpu.pci_device_id:#010x} ({gpu.name}) is not in the model table: nothing to compare with"
        was = previous_grade(previous, gpus.UNLISTED_CLASS)
        return _tier(gpus.UNLISTED_CLASS, [_Finding(Grade.C, text), _internet(bandwidth, was)])
    was = previous_grade(previous, model.model_class)
    mine = {b.name: b for b in benchmarks if b.subject == gpu.uuid}
    found = [
        _memory(gpu.memory_bytes, model),
        _gpu_memory_rate(mine, model, was),
        _matrix_rate(mine, model, was),
        _pcie(gpu, model, standing.pcie, was),
        _health(standing.health),
        _reliability(standing.reliability, was),
        _internet(bandwidth, was),
        _Finding(Grade.A, f"PCI id says {model.name} ({model.vendor})"),
    ]
    if is_drawn and mine:
        found.append(_Finding(Grade.A, "simulated: its figures are drawn, not measured"))
    return _tier(model.model_class, found)


def cpu_expected(cpu_count: int) -> dict[str, tuple[float, str]]:
    """Return the figure that so many logical processors should reach; copying stops growing where the benchmark's
    threads do."""
    counts = {CPU_HASH: max(1, cpu_count), MEMORY_COPY: min(max(1, cpu_count), MEMORY_COPY_THREADS)}
    return {name: (each * counts[name], BENCHMARK_UNIT) for name, each in CPU_EXPECTED_EACH.items()}


def cpu_tier(
    inventory: Inventory, bandwidth: Bandwidth | None, previous: str | None = None, standing: Standing = Standing()
) -> Tier:
    """The tier of a host's processors; of its standing, only the reliability is theirs."""
    was = previous_grade(previous, gpus.CPU_CLASS)
    mine = {b.name: b for b in inventory.benchmarks if not b.subject}
    expected = cpu_expected(inventory.cpu_count)
    found = [_measured(mine.get(name), name, want, unit, was) for name, (want, unit) in expected.items()]
    found += [_reliability(standing.reliability, was), _internet(bandwidth, was)]
    found.append(_Finding(Grade.A, f"{inventory.cpu_count} x {inventory.cpu_model or 'unnamed processor'}"))
    return _tier(gpus.CPU_CLASS, found)


def _tier(tier_class: str, found: Sequence[_Finding]) -> Tier:
    """The worst of the findings; what keeps the grade down stands first, the rest as it came."""
    ordered = sorted(found, key=lambda each: each.grade, reverse=True)
    reasons = (each.text if each.grade is Grade.A else f"{each.grade}: {each.text}" for each in ordered)
    return Tier(tier_class, max(each.grade for each in found), tuple(reasons))


def _gpu_memory_rate(mine: Mapping[str, Benchmark], model: gpus.GpuModel, was: Grade | None) -> _Finding:
    """By memory bandwidth; no figure of the table, no grade above C, however fast the card is."""
    if model.bandwidth_gb_s is None:
        return _Finding(Grade.C, f"{BENCHMARK_NAMES[GPU_MEMORY]}: expected figure not yet read from a sheet")
    sheet, found = model.bandwidth_gb_s.value * 1e9, mine.get(GPU_MEMORY)
    if found is not None and found.unit == BENCHMARK_UNIT and found.value > sheet * SHEET_PASSED:
        said, most = quantity(found.value, found.unit), quantity(sheet, BENCHMARK_UNIT)
        return _Finding(Grade.C, f"{BENCHMARK_NAMES[GPU_MEMORY]}: {said} is not believed: its sheet says {most}")
    return _measured(found, GPU_MEMORY, sheet * SHEET_REACHED, BENCHMARK_UNIT, was)


def _matrix_rate(mine: Mapping[str, Benchmark], model: gpus.GpuModel, was: Grade | None) -> _Finding:
    """By the rate of the matrix product, where the class is calibrated."""
    want, found = MATRIX_EXPECTED.get(model.model_class), mine.get(GPU_MATRIX)
    if want is not None:
        return _measured(found, GPU_MATRIX, want, MATRIX_UNIT, was)
    said = "not measured yet" if found is None else quantity(found.value, found.unit)
    return _Finding(Grade.A, f"{BENCHMARK_NAMES[GPU_MATRIX]}: {said}; this class is not calibrated")


def _measured(found: Benchmark | None, name: str, want: float, unit: str, was: Grade | None) -> _Finding:
    """By one measured figure, which must be there in the expected unit."""
    shown = BENCHMARK_NAMES[name]
    if found is None:
        return _Finding(Grade.C, f"{shown}: not measured yet")
    if found.unit != unit or not 0 < found.value < float("inf"):
        return _Finding(Grade.C, f"{shown}: measured in {found.unit or 'no unit'}, expected {unit}")
    ratio = found.value / want
    return _Finding(grade_of(ratio, was), f"{shown}: {ratio:.0%} of the expected {quantity(want, unit)}")


def _memory(memory_bytes: int | None, model: gpus.GpuModel) -> _Finding:
    if memory_bytes is None:
        return _Finding(Grade.C, "memory: the driver does not say how much")
    low, high = model.memory_window_bytes
    text = f"memory: {memory_bytes / 2**30:.1f} GiB of {model.memory_gib.value} nominal"
    if low <= memory_bytes <= high:
        return _Finding(Grade.A, text)
    return _Finding(Grade.C, f"{text}, outside {low / 2**30:.1f} to {high / 2**30:.1f} GiB that this model reports")


def _pcie(gpu: GpuFacts, model: gpus.GpuModel, measured: tuple[int, int] | None, was: Grade | None) -> _Finding:
    """By the link over the card's own; one not measured is at most what the driver says is possible."""
    link = measured or (gpu.pcie_generation_max or 0, gpu.pcie_width_max or 0)
    if not all(link):
        return _Finding(Grade.A, "PCIe: not measured yet")
    (generation, width), said = link, "" if measured else "at most "
    if model.pcie is None:
        text = f"PCIe: {said}x{width} of generation {generation}; this model's own not yet read from a sheet"
        return _Finding(Grade.A, text)
    best, lanes = model.pcie.value
    parts = [f"x{width} of x{lanes}"] if width != lanes or generation == best else []
    parts += [f"generation {generation} of {best}"] if generation != best else []
    ratio = width * 2.0**generation / (lanes * 2.0**best)  # a generation doubles the rate of a lane
    end = "" if measured else "; not measured yet"
    return _Finding(grade_of(ratio, was, LINK), f"PCIe {said}{', '.join(parts)}{end}")


def _health(health: Health | None) -> _Finding:
    if health is None:
        return _Finding(Grade.A, "health: not known yet")
    grades = {Health.OK: Grade.A, Health.DEGRADED: Grade.B, Health.FAILED: Grade.C}
    return _Finding(grades[health], f"health: {health}")


def _reliability(figure: float | None, was: Grade | None) -> _Finding:
    if figure is None:
        return _Finding(Grade.A, "reliability: not measured yet")
    return _Finding(grade_of(figure, was, RELIABILITY), f"reliability: {figure:.3f}")


def _internet(bandwidth: Bandwidth | None, was: Grade | None) -> _Finding:
    if bandwidth is None:
        return _Finding(Grade.A, "bandwidth: not measured yet")
    grade = grade_of(min(bandwidth.up_bps, bandwidth.down_bps), was, BANDWIDTH)
    return _Finding(grade, f"bandwidth: {bandwidth.up_bps / 1e6:.0f} Mbit/s up, {bandwidth.down_bps / 1e6:.0f} down")


def tier_words(tier: str) -> str:
    """A tier for people: `h100:1g.10gb/C` is `H100:1g.10gb · grade C`."""
    name, _, grade = tier.partition("/")
    model, mark, profile = name.partition(":")
    return f"{model.upper()}{mark}{profile} · grade {grade}" if grade else tier


def worst_tier(tiers: Sequence[Tier]) -> Tier | None:
    """The tier a host shows for all its GPUs: the one with the lowest grade, the first of these."""
    return max(tiers, key=lambda tier: tier.grade, default=None)


def quantity(value: float, unit: str) -> str:
    """A figure in four digits at most, with its prefix. unit: as UCUM writes it."""
    unit = {BENCHMARK_UNIT: "B/s", MATRIX_UNIT: "op/s"}.get(unit, unit)
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= factor:
            return f"{value / factor:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}"
