"""One card read from the kernel's files: the facts that PCI has of any card; a class per maker adds the rest.

A card that no driver we read serves is shown by its PCI ids alone, and is not offered.
"""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Final

from windrow_agent.core.gpu_port import GpuHealth, GpuLook
from windrow_agent.core.inventory import clean_text
from windrow_agent.gpu import sysfs_files as files
from windrow_proto.ids import GpuUuid
from windrow_proto.model import GpuFacts

CARD_DOMAIN: Final = b"windrow-card-1|"
"""Keeps this hash apart from other programs' hashes of the same machine-id."""
SLOW_LINK: Final = {19: 0, 20: 1}
"""The metrics of a link's generation and lanes, to their place in `sysfs_files.link`."""
BUSY_PERCENT: Final = 50

More = dict[str, int | str]


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a card. root: of the file system; device: its folder; address: on the bus."""

    root: Path
    device: Path
    address: str


class SysfsCard:
    """Reads the facts that any card has. A maker's class adds its own in `_more_facts`, `_read` and `_read_slowly`."""

    vendor: ClassVar[str] = ""
    is_served: ClassVar[bool] = False
    """True if this class knows the driver's files, so that the card may be offered."""

    def __init__(self, place: Place, index: int, maker: str = "") -> None:
        self.place, self.device = place, place.device
        self.uuid = GpuUuid(self._unique() or made_up_uuid(place))
        self.lost = False
        self.facts = GpuFacts(uuid=self.uuid, index=index, vendor=self.vendor or maker, name="")
        self._listed: str | None = None
        self._values: dict[int, int | None] = {}
        self._health = GpuHealth(self.uuid)
        self._at_work: More = {}
        self._processes: int | None = None

    # --- what the maker's class says ----------------------------------------------------------------

    def _unique(self) -> str:
        """The card's own id, where its driver tells one."""
        return ""

    def _more_facts(self, facts: GpuFacts) -> GpuFacts:
        return facts

    def _read(self) -> tuple[dict[int, int | None], GpuHealth]:
        return {}, GpuHealth(self.uuid)

    def _count_processes(self) -> int | None:
        return None

    # --- what every card has ------------------------------------------------------------------------

    def refresh(self) -> None:
        """Read the facts anew."""
        device, place = self.device, self.place
        generation, lanes = files.link(files.slot_link(device), "max")
        if self._listed is None:  # the list is long and stays as it is
            self._listed = files.marketing_name(place.root, files.ids(device, "device", "vendor"))
        self.facts = self._more_facts(
            replace(
                self.facts,
                name=self._listed,
                pci_bus_id=place.address,
                pci_device_id=files.ids(device, "device", "vendor"),
                pci_subsystem_id=files.ids(device, "subsystem_device", "subsystem_vendor"),
                numa_node=files.number(device / "numa_node"),
                more=self._plain_more(),
                pcie_generation_max=generation,
                pcie_width_max=lanes,
            )
        )
        if not self.facts.name:
            device_id = self.facts.pci_device_id >> 16
            self.facts = replace(self.facts, name=f"{(self.facts.vendor or 'unknown').upper()} card {device_id:04x}")

    def _plain_more(self) -> More:
        node = next(iter(files.entries(self.device / "drm", "renderD*")), None)
        found: dict[str, int | str | None] = {
            "kernel_driver": files.driver_of(self.device) or None,
            "render_node": f"/dev/dri/{node.name}" if node else None,
            "cpu_affinity": files.words(self.device / "local_cpulist"),
        }
        return {name: value for name, value in found.items() if value is not None} | self._at_work

    def read(self, with_processes: bool) -> dict[int, int | None]:
        """One sweep. with_processes: also what is read a tenth as often."""
        if with_processes:
            self._processes = self._count_processes()
        values, health = self._read()
        self._health = replace(health, memory_bytes=self.facts.memory_bytes, compute_processes=self._processes)
        found = {**values, 15: self._processes}
        if with_processes:
            now = files.link(files.slot_link(self.device), "current")
            found |= {metric: now[at] for metric, at in SLOW_LINK.items() if now[at] is not None}
            if (values.get(1) or 0) >= BUSY_PERCENT and all(now):  # an idle link falls back to an old generation
                self._at_work = {"pcie_generation_loaded": now[0] or 0, "pcie_width_loaded": now[1] or 0}
        return found

    def health(self) -> GpuHealth:
        """The health of the card as of the last sweep."""
        return replace(self._health, is_lost=self.lost)

    def look(self) -> GpuLook:
        """The card as it is now."""
        self._processes = self._count_processes()
        _, health = self._read()
        return GpuLook(self.facts, health.memory_used_bytes, self._processes)


def made_up_uuid(place: Place) -> str:
    """An id for a card without one: of this machine and its place on the bus, so that it is the same tomorrow."""
    machine = files.text(place.root / "etc/machine-id").encode()
    what = f"{place.address}|{files.ids(place.device, 'device', 'vendor'):08x}".encode()
    return f"PCI-{hashlib.sha256(CARD_DOMAIN + machine + b'|' + what).hexdigest()[:32]}"


def plain(value: str) -> str | None:
    """A text that says something: neither empty nor a driver's word for nothing."""
    kept = clean_text(value)
    return None if kept.lower() in {"", "n/a", "unknown", "none", "0"} else kept
