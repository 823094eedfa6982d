"""Builds the inventory that is sent to the Master from the facts of a host and its cards. Pure.

Names come from hardware and owners and are hostile until cleaned; the Master cleans them again.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from windrow_agent.core.gpu_port import GpuInventory
from windrow_proto.ids import GpuUuid
from windrow_proto.model import Benchmark, GpuFacts, Inventory

TEXT_MAX: Final = 128
"""Characters of any name; the wire's default limit."""

WORDS_MAX: Final = 1024
"""Characters of one further field of a GPU, such as a list of its slices; the wire's limit."""

RUNTIMES_MAX: Final = 16
CONDITIONS_MAX: Final = 256
ADDRESSES_MAX: Final = 16
BENCHMARKS_MAX: Final = 256

MACHINE_DOMAIN: Final = b"windrow-machine-1|"
"""Keeps our hash apart from other programs' hashes of the same machine-id."""

_MARKUP: Final = frozenset("<>`")
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_ID_REFUSED: Final = re.compile(r"[^A-Za-z0-9._:-]+")


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The hardware and system of one host, as read there. Zero or empty: the system does not tell."""

    hostname: str = ""
    os: str = ""
    kernel: str = ""
    cpu_model: str = ""
    cpu_count: int = 0
    cpu_physical: int = 0
    memory_bytes: int = 0
    disk_bytes: int = 0
    machine_id: str = ""
    addresses: tuple[str, ...] = ()
    more: Mapping[str, int | str] = field(default_factory=dict)


class HostReader(Protocol):
    """Reads one host; called from one thread only, and may block as long as a disk does."""

    simulated: bool

    def facts(self) -> HostFacts:
        """Facts that do not change while the agent runs."""

    def sample(self) -> Mapping[int, int | None]:
        """Metric number to the wire's integer; None where the system does not say."""


def clean_text(text: str, limit: int = TEXT_MAX) -> str:
    """One line of visible text: no control, format (bidi, zero width), private or unassigned characters, no markup.

    Markup is `<`, `>` and the backtick. What is taken out leaves a space; spaces are folded; at most `limit`
    characters, in composed form (NFC).
    """
    composed = unicodedata.normalize("NFC", text[: limit * 8])
    kept = (" " if c in _MARKUP or unicodedata.category(c) in _HIDDEN else c for c in composed)
    return " ".join("".join(kept).split())[:limit].strip()


def clean_id(text: str, limit: int = TEXT_MAX) -> str:
    """A key such as a UUID or bus id: letters, digits, `.`, `_`, `:` and `-` only; anything else becomes one `_`."""
    return _ID_REFUSED.sub("_", text[: limit * 8])[:limit]


def machine_id_hash(machine_id: str) -> str:
    """SHA-256 of the machine-id under our own prefix, in hexadecimal; empty if the host has none.

    The machine-id itself never leaves the host: it is confidential (machine-id(5)).
    """
    tidy = machine_id.strip()
    return hashlib.sha256(MACHINE_DOMAIN + tidy.encode("utf-8", "replace")).hexdigest() if tidy else ""


def clean_gpu(facts: GpuFacts) -> GpuFacts:
    """The same facts with every text cleaned."""
    return replace(
        facts,
        uuid=GpuUuid(clean_id(facts.uuid)),
        vendor=clean_id(facts.vendor),
        name=clean_text(facts.name),
        pci_bus_id=clean_id(facts.pci_bus_id),
        serial=None if facts.serial is None else clean_text(facts.serial),
        vbios=None if facts.vbios is None else clean_text(facts.vbios),
        more={clean_id(name): _clean(value) for name, value in facts.more.items()},
        slices=tuple(replace(one, profile=clean_text(one.profile)) for one in facts.slices),
    )


def _clean(value: int | str) -> int | str:
    return clean_text(value, WORDS_MAX) if isinstance(value, str) else value


def build_inventory(
    host: HostFacts,
    gpus: GpuInventory,
    *,
    agent_version: str,
    simulated: bool,
    runtimes: Iterable[str] = (),
    runtime_versions: Mapping[str, str] | None = None,
    conditions: Iterable[str] = (),
    benchmarks: Iterable[Benchmark] = (),
    owner_account: str = "",
) -> Inventory:
    """Everything the Master is told of this host, cleaned, ordered and bounded, so that equal hosts hash equally.

    conditions: Condition.text of each; GPUs are ordered by index, then UUID; a UUID seen before is left out.
    """
    seen: dict[str, GpuFacts] = {}
    for facts in sorted(map(clean_gpu, gpus.gpus), key=lambda gpu: (gpu.index, gpu.uuid)):
        seen.setdefault(facts.uuid, facts)
    versions = sorted((runtime_versions or {}).items())[:RUNTIMES_MAX]
    return Inventory(
        hostname=clean_text(host.hostname),
        os=clean_text(host.os),
        kernel=clean_text(host.kernel),
        cpu_model=clean_text(host.cpu_model),
        cpu_count=max(0, host.cpu_count),
        cpu_physical=max(0, host.cpu_physical),
        memory_bytes=max(0, host.memory_bytes),
        disk_bytes=max(0, host.disk_bytes),
        machine_id_hash=machine_id_hash(host.machine_id),
        agent_version=clean_text(agent_version),
        simulated=simulated,
        driver_version=clean_text(gpus.driver_version),
        cuda_version=clean_text(gpus.cuda_version),
        gpus=tuple(seen.values()),
        runtimes=tuple(sorted({clean_id(name) for name in runtimes}))[:RUNTIMES_MAX],
        conditions=tuple(sorted({clean_id(text) for text in conditions}))[:CONDITIONS_MAX],
        runtime_versions={clean_id(name): clean_text(version) for name, version in versions},
        benchmarks=tuple(sorted(benchmarks, key=lambda one: (one.subject, one.name)))[:BENCHMARKS_MAX],
        owner_account=clean_id(owner_account),
        addresses=tuple(clean_id(address) for address in host.addresses[:ADDRESSES_MAX]),
        more={clean_id(name): _clean(value) for name, value in host.more.items()},
    )
