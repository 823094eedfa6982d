"""Finds contradictions in what one host claims of its GPUs, by its own words and the model table. Pure.

A finding is a contradiction between two figures, and names both. What is absent is compared with nothing. None of this
proves a card: whoever makes up every figure well is found out by what the card does, not by what it says.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from windrow_master.fleet.gpus import MODELS, GpuModel, find, sharing, vendor_of
from windrow_proto.conditions import ConditionCode
from windrow_proto.model import GpuFacts, Inventory

FINDINGS_PER_GPU_MAX: Final = 4
"""Kept of one card: one is enough to take it off the market, and a host claims up to 64 cards."""

MEMORY_GRAIN_BYTES: Final = 64 << 10
"""Totals that NVML was read to report are whole multiples of it: H100 85,520,809,984 (81,559 MiB), P100 17,071,734,784
(16,280.875 MiB; Minyus/pipelinex, README), V100 34,058,272,768 (32,480.5 MiB)."""
POWER_LOW_PERCENT: Final = 90
POWER_HIGH_PERCENT: Final = 300
"""Of the nominal power, what the driver's highest limit may be: makers of boards raise it, and few take a little away.
Our own bounds."""
CLOCK_SM_MHZ: Final = (300, 4_500)
CLOCK_MEMORY_MHZ: Final = (300, 25_000)
"""Our own bounds, with a margin on both sides of every card that the table holds: a figure outside is none."""
BUS_BITS_STEP: Final = 32
BUS_BITS_MAX: Final = 16_384
"""A chip of GDDR has 32 data lines, a stack of HBM 1,024; the widest card today has eight stacks of 1,024."""
BANDWIDTH_LOW: Final = 0.85
BANDWIDTH_HIGH: Final = 1.20
"""Of the table's bandwidth, what the claimed clock and width may give. NVML's memory clock moves two bits per line and
cycle: the T4's brief has 5,001 MHz, 256 bits and 320 GB/s. Boards are sold with memory a few percent faster."""
PCIE_GENERATIONS: Final = range(1, 8)
PCIE_WIDTHS: Final = (1, 2, 4, 8, 12, 16, 32)
"""The values of PCI Express: generations 1 to 7, and these numbers of lanes."""
CORES_PER_SM: Final[Mapping[tuple[int, int], int]] = {
    (6, 0): 64,
    (6, 1): 128,
    (7, 0): 64,
    (7, 5): 64,
    (8, 0): 64,
    (8, 6): 128,
    (8, 9): 128,
    (9, 0): 128,
}
"""By compute capability: _ConvertSMVer2Cores of NVIDIA/cuda-samples, Common/helper_cuda.h, read in copies of it."""
MIG_CAPABILITIES: Final = ((8, 0), (9, 0))
MIG_UNJUDGED_FROM: Final = (10, 0)
"""MIG begins with 8.0; before 10.0 only these have it, and no GeForce (NVIDIA, MIG User Guide, Supported GPUs). Later
ones are not judged: the list grows."""
ECC_GEFORCE: Final = ({"3090", "ti"}, {"4090"})
"""GeForce cards read to have it (notebookcheck.net 958141: RTX 3090 Ti and 4090 do, the 5090 does not)."""
ECC_GEFORCE_UNTIL: Final = (8, 6)
"""GeForce cards of later architectures are not judged: of most of them nobody here has read whether they have ECC."""
SHARED_BOARDS: Final = frozenset({"k80", "m10", "m60", "a16"})
"""Boards with several GPUs, which share its serial number."""

_UUID: Final = re.compile(r"GPU-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_BUS_ID: Final = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]", re.IGNORECASE)
_DRIVER: Final = re.compile(r"[1-9][0-9]{2}\.[0-9]{2,3}(?:\.[0-9]{2})?")
"""As NVIDIA numbers its drivers for Linux: 470.256.02, 580.95.05, 610.57."""
_WORD: Final = re.compile(r"[a-z0-9]+")
_AWAY: Final[frozenset[str]] = frozenset(
    {
        *(ConditionCode.GPU_NO_DRIVER, ConditionCode.GPU_NO_PERMISSION),
        *(ConditionCode.GPU_DRIVER_MISMATCH, ConditionCode.GPU_UNAVAILABLE),
    }
)
"""With one of these nobody expects the driver's version, and no GPU is on offer."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One contradiction. `subject` is the UUID of a GPU, or empty: all GPUs of the host."""

    code: ConditionCode
    subject: str
    words: str

    @property
    def condition(self) -> str:
        """As the code of a host's condition."""
        return f"{self.code}:{self.subject}" if self.subject else str(self.code)


OfGpu = Callable[[GpuFacts, GpuModel | None], str | None]
OfHost = Callable[[Inventory], Iterable[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One question. `of_gpu` gives words, `of_host` subjects and words."""

    code: ConditionCode
    of_gpu: OfGpu | None = None
    of_host: OfHost | None = None


def check(inventory: Inventory, rules: Iterable[Rule] | None = None) -> tuple[Finding, ...]:
    """Return the contradictions in an inventory as its host sent it; in the order of the rules."""
    found: list[Finding] = []
    for rule in RULES if rules is None else rules:
        if rule.of_gpu is not None:
            for gpu in inventory.gpus:
                words = rule.of_gpu(gpu, find(gpu.pci_device_id, gpu.memory_bytes)) if gpu.uuid else None
                if words is not None:
                    found.append(Finding(rule.code, gpu.uuid, words))
        if rule.of_host is not None:
            found += [Finding(rule.code, subject, words) for subject, words in rule.of_host(inventory)]
    return _few(found)


def comparable_serial(gpu: GpuFacts) -> str | None:
    """The serial number where no other card may have it: not of unlisted models, nor where a board holds several."""
    serial = gpu.serial or ""
    is_alone = find(gpu.pci_device_id, gpu.memory_bytes) is not None and not words_of(gpu.name) & SHARED_BOARDS
    return serial if is_alone and serial.strip("0 ") and serial.isalnum() else None


def words_of(name: str) -> frozenset[str]:
    """The words of a model's name, without case and punctuation."""
    return frozenset(_WORD.findall(name.lower()))


_NAMES: Final = [(model, words_of(name)) for model in MODELS for name in model.name.split(" / ")]
"""A row that stands for several cards names them all."""


def _few(found: Iterable[Finding]) -> tuple[Finding, ...]:
    kept: list[Finding] = []
    seen: Counter[str] = Counter()
    for finding in dict.fromkeys(found):
        seen[finding.subject] += 1
        if seen[finding.subject] <= FINDINGS_PER_GPU_MAX:
            kept.append(finding)
    return tuple(kept)


# --- one card ----------------------------------------------------------------------------------------------------


def _capability(gpu: GpuFacts) -> tuple[int, int] | None:
    major, minor = gpu.compute_capability_major, gpu.compute_capability_minor
    return None if major is None or minor is None else (major, minor)


def _power_w(model: GpuModel) -> int | None:
    """The nominal power of a model in watts; None where nobody has read it."""
    return None if model.power_w is None else model.power_w.value


def _named(gpu: GpuFacts) -> list[GpuModel]:
    """The models one of whose names the card's holds, without those whose name is part of another found."""
    mine = words_of(gpu.name)
    found = [(model, words) for model, words in _NAMES if words <= mine]
    return [model for model, words in found if not any(words < other for _, other in found)]


def _uuid(gpu: GpuFacts, _: GpuModel | None) -> str | None:
    if gpu.vendor != "nvidia" or _UUID.fullmatch(gpu.uuid):
        return None
    return f"the UUID {gpu.uuid} is not of NVML's form (GPU- and 8-4-4-4-12 hexadecimal digits)"


def _vendor(gpu: GpuFacts, _: GpuModel | None) -> str | None:
    maker = vendor_of(gpu.pci_device_id)
    is_known = gpu.vendor in {model.vendor for model in MODELS}
    if not gpu.pci_device_id or not gpu.vendor or maker == gpu.vendor or not (maker or is_known):
        return None
    return f"the card is said to be {gpu.vendor}'s, its PCI id {gpu.pci_device_id:#010x} is {maker or 'nobody'}'s"


def _name(gpu: GpuFacts, model: GpuModel | None) -> str | None:
    named = _named(gpu)
    if not gpu.name or model is None or (not named and model.vendor != "nvidia"):
        return None
    if any(one in named for one in sharing(gpu.pci_device_id)):
        return None
    return f"its name is {gpu.name}, its PCI id {gpu.pci_device_id:#010x} is that of {model.name}"


def _memory(gpu: GpuFacts, model: GpuModel | None) -> str | None:
    if gpu.memory_bytes is None or model is None:
        return None
    low, high = model.memory_window_bytes
    if low <= gpu.memory_bytes <= high:
        return None
    return f"{_mib(gpu.memory_bytes)} of memory, {model.name} reports {_mib(low)} to {_mib(high)}"


def _memory_grain(gpu: GpuFacts, model: GpuModel | None) -> str | None:
    is_reported = model is not None and model.vendor == "nvidia" and bool(model.reported_mib)
    if not is_reported or gpu.memory_bytes is None or gpu.memory_bytes % MEMORY_GRAIN_BYTES == 0:
        return None
    return f"{gpu.memory_bytes} bytes of memory, no multiple of the {MEMORY_GRAIN_BYTES} that drivers count in"


def _compute(gpu: GpuFacts, model: GpuModel | None) -> str | None:
    said = _capability(gpu)
    models = [model] if model is not None else [one for one in _named(gpu) if one.vendor == gpu.vendor]
    wanted = {one.capability.value: one.name for one in models if one.capability is not None}
    if said is None or not wanted or said in wanted:
        return None
    (capability, name), *_ = wanted.items()
    return f"compute capability {said[0]}.{said[1]}, {name} has {capability[0]}.{capability[1]}"


def _power(gpu: GpuFacts, _: GpuModel | None) -> str | None:
    limit, most = gpu.power_limit_mw, gpu.power_limit_max_mw
    if limit is None or most is None or limit <= most:
        return None
    return f"a power limit of {limit / 1000:g} W, above the {most / 1000:g} W that the driver allows at most"


def _power_range(gpu: GpuFacts, model: GpuModel | None) -> str | None:
    nominal = None if model is None else _power_w(model)
    most = gpu.power_limit_max_mw
    if nominal is None or most is None or model is None:
        return None
    if nominal * POWER_LOW_PERCENT * 10 <= most <= nominal * POWER_HIGH_PERCENT * 10:
        return None
    return f"at most {most / 1000:g} W, {model.name} is built for {nominal} W"


def _link(gpu: GpuFacts, _: GpuModel | None) -> str | None:
    generation, width = gpu.pcie_generation_max, gpu.pcie_width_max
    if generation is not None and generation not in PCIE_GENERATIONS:
        return f"PCIe generation {generation}, there are {PCIE_GENERATIONS[0]} to {PCIE_GENERATIONS[-1]}"
    if width is not None and width not in PCIE_WIDTHS:
        return f"{width} PCIe lanes, links have {', '.join(map(str, PCIE_WIDTHS))}"
    return None


def _clocks(gpu: GpuFacts, _: GpuModel | None) -> str | None:
    for what, said, (low, high) in (
        ("SM", gpu.clock_sm_max_mhz, CLOCK_SM_MHZ),
        ("memory", gpu.clock_memory_max_mhz, CLOCK_MEMORY_MHZ),
    ):
        if said is not None and not low <= said <= high:
            return f"a highest {what} clock of {said} MHz, plausible are {low} to {high}"
    return None


def _bus(gpu: GpuFacts, _: GpuModel | None) -> str | None:
    bits = gpu.memory_bus_bits
    if bits is None or (0 < bits <= BUS_BITS_MAX and bits % BUS_BITS_STEP == 0):
        return None
    return f"a memory bus of {bits} bits, buses are multiples of {BUS_BITS_STEP} up to {BUS_BITS_MAX}"


def _bandwidth(gpu: GpuFacts, model: GpuModel | None) -> str | None:
    clock, bits = gpu.clock_memory_max_mhz, gpu.memory_bus_bits
    if model is None or model.vendor != "nvidia" or model.bandwidth_gb_s is None or clock is None or bits is None:
        return None
    if _clocks(gpu, model) is not None or _bus(gpu, model) is not None:
        return None  # told already
    gives, wanted = 2 * clock * bits / 8 / 1000, model.bandwidth_gb_s.value
    if BANDWIDTH_LOW * wanted <= gives <= BANDWIDTH_HIGH * wanted:
        return None
    return f"{clock} MHz on {bits} bits give {gives:.0f} GB/s of memory, {model.name} has {wanted:g}"


def _cores(gpu: GpuFacts, model: GpuModel | None) -> str | None:
    capability = model.capability.value if model is not None and model.capability is not None else _capability(gpu)
    each = CORES_PER_SM.get(capability) if capability is not None and gpu.vendor == "nvidia" else None
    if each is None or gpu.core_count is None or (gpu.core_count > 0 and gpu.core_count % each == 0):
        return None
    return f"{gpu.core_count} cores, this architecture has {each} in each multiprocessor"


def _mig(gpu: GpuFacts, model: GpuModel | None) -> str | None:
    capability = model.capability.value if model is not None and model.capability is not None else _capability(gpu)
    if not gpu.mig_enabled or capability is None:
        return None
    may = capability in MIG_CAPABILITIES or capability >= MIG_UNJUDGED_FROM
    if may and "geforce" not in words_of(gpu.name):
        return None
    return f"MIG is on, {gpu.name or 'a card'} of compute capability {capability[0]}.{capability[1]} has none"


def _ecc(gpu: GpuFacts, model: GpuModel | None) -> str | None:
    name = words_of(model.name if model is not None else gpu.name)
    capability = _capability(gpu)
    if not gpu.ecc_enabled or "geforce" not in name or any(words <= name for words in ECC_GEFORCE):
        return None
    if capability is None or capability > ECC_GEFORCE_UNTIL:
        return None
    return f"ECC is on, {gpu.name or 'a GeForce'} of compute capability {capability[0]}.{capability[1]} has none"


def _bus_id(gpu: GpuFacts, _: GpuModel | None) -> str | None:
    if not gpu.pci_bus_id or _BUS_ID.fullmatch(gpu.pci_bus_id):
        return None
    return f"{gpu.pci_bus_id} is no PCI address (domain:bus:device.function)"


# --- the cards of one host -----------------------------------------------------------------------------------------


def _unique(what: str, key: Callable[[GpuFacts], object | None]) -> OfHost:
    """Cards that share what each must have for itself; all of them are named."""

    def shared(inventory: Inventory) -> Iterator[tuple[str, str]]:
        groups: defaultdict[object, list[GpuFacts]] = defaultdict(list)
        for gpu in inventory.gpus:
            value = key(gpu)
            if value is not None and gpu.uuid:
                groups[value].append(gpu)
        for value, gpus in groups.items():
            shown = value[-1] if isinstance(value, tuple) else value
            for gpu in gpus if len(gpus) > 1 else ():
                yield gpu.uuid, f"{len(gpus)} cards of this host have the {what} {shown}: {_listed(gpus)}"

    return shared


def _driver(inventory: Inventory) -> Iterator[tuple[str, str]]:
    count = sum(gpu.vendor == "nvidia" for gpu in inventory.gpus)
    if not count or _AWAY & set(inventory.conditions) or _DRIVER.fullmatch(inventory.driver_version):
        return
    said = f"the driver's version is {inventory.driver_version}" if inventory.driver_version else "no driver is named"
    yield "", f"{said}, and {count} cards are said to be read through NVIDIA's, whose versions are as 580.95.05"


def _unlike(what: str, value: str, unit: int, impossible: OfGpu) -> OfHost:
    """Boards that must be alike and differ in one figure: those not as most are, or all of them.

    A card whose figure is impossible by itself is left out: it must not speak against its neighbours.
    """

    def differing(inventory: Inventory) -> Iterator[tuple[str, str]]:
        groups: defaultdict[tuple[object, ...], list[tuple[GpuFacts, int]]] = defaultdict(list)
        for gpu in inventory.gpus:
            board, figure = _board(gpu), getattr(gpu, value)
            is_told = impossible(gpu, find(gpu.pci_device_id, gpu.memory_bytes)) is not None
            if board is not None and figure is not None and gpu.uuid and not is_told:
                groups[board].append((gpu, figure))
        for group in groups.values():
            (most, count), *others = Counter(figure for _, figure in group).most_common()
            is_tie = bool(others) and others[0][1] == count
            for gpu, figure in group if others else ():
                other = next(o for _, o in group if o != figure) if figure == most else most
                if is_tie or figure != most:
                    yield gpu.uuid, f"{figure / unit:g} {what}, the same board beside it {other / unit:g}"

    return differing


def _board(gpu: GpuFacts) -> tuple[object, ...] | None:
    """Return the identity that two cards share if they are the same board with the same firmware in the same mode;
    None if it is not said."""
    if not gpu.pci_device_id or not gpu.pci_subsystem_id or gpu.vbios is None:
        return None
    return gpu.pci_device_id, gpu.pci_subsystem_id, gpu.vbios, gpu.ecc_enabled


def _listed(gpus: Sequence[GpuFacts]) -> str:
    return ", ".join(dict.fromkeys(gpu.uuid for gpu in gpus[:4]))


def _mib(value: int) -> str:
    return f"{value / (1 << 20):,.0f} MiB"


RULES: Final[tuple[Rule, ...]] = (
    Rule(ConditionCode.CLAIM_VENDOR, _vendor),
    Rule(ConditionCode.CLAIM_NAME, _name),
    Rule(ConditionCode.CLAIM_MEMORY, _memory),
    Rule(ConditionCode.CLAIM_MEMORY_GRAIN, _memory_grain),
    Rule(ConditionCode.CLAIM_CAPABILITY, _compute),
    Rule(ConditionCode.CLAIM_POWER, _power),
    Rule(ConditionCode.CLAIM_POWER_RANGE, _power_range),
    Rule(ConditionCode.CLAIM_LINK, _link),
    Rule(ConditionCode.CLAIM_CLOCKS, _clocks),
    Rule(ConditionCode.CLAIM_BUS, _bus),
    Rule(ConditionCode.CLAIM_BANDWIDTH, _bandwidth),
    Rule(ConditionCode.CLAIM_CORES, _cores),
    Rule(ConditionCode.CLAIM_MIG, _mig),
    Rule(ConditionCode.CLAIM_ECC, _ecc),
    Rule(ConditionCode.CLAIM_UUID, _uuid),
    Rule(ConditionCode.CLAIM_UUID_TWICE, of_host=_unique("UUID", lambda gpu: gpu.uuid)),
    Rule(
        ConditionCode.CLAIM_SERIAL_TWICE,
        of_host=_unique("serial number", comparable_serial),
    ),
    Rule(ConditionCode.CLAIM_PCI_ADDRESS, _bus_id),
    Rule(
        ConditionCode.CLAIM_PCI_ADDRESS_TWICE,
        of_host=_unique("PCI address", lambda gpu: gpu.pci_bus_id.lower().zfill(16) if gpu.pci_bus_id else None),
    ),
    Rule(
        ConditionCode.CLAIM_INDEX_TWICE,
        of_host=_unique("index", lambda gpu: (gpu.vendor, gpu.index)),
    ),
    Rule(
        ConditionCode.CLAIM_MINOR_TWICE,
        of_host=_unique(
            "device minor number", lambda gpu: None if gpu.device_minor is None else (gpu.vendor, gpu.device_minor)
        ),
    ),
    Rule(ConditionCode.CLAIM_DRIVER, of_host=_driver),
    Rule(
        ConditionCode.CLAIM_MEMORY_UNLIKE,
        of_host=_unlike("MiB of memory", "memory_bytes", 1 << 20, _memory),
    ),
    Rule(
        ConditionCode.CLAIM_POWER_UNLIKE,
        of_host=_unlike("W at most", "power_limit_max_mw", 1000, _power_range),
    ),
)
"""Every rule, in the order in which findings are told. A host with one finding has it as a condition."""
