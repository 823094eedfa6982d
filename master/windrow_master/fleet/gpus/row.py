"""One row of the table of GPU models, and how a table is read that is written as text. Pure.

A table has one line per model and the columns of `COLUMNS`, with `|` between them. A cell is a figure and the tag of
the document it was read in (`sources.Source`); an empty cell says that nobody has read that figure yet, and nothing is
compared with it. `20b1 20f1 PCI` are two PCI ids; `80 AKA` the nominal memory, GiB; `15352 LIUM, 16376 LIUM` two totals
that drivers were seen to report, MiB; `8.6 CUDA` the compute capability; `310 [200-400] THAM` the default power and the
range that may be set, W; `936 CYB` the memory's bandwidth; `4x16 THAM` PCIe generation and lanes.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, TypeVar

from windrow_master.fleet.gpus.sources import SHEETS, Source

COLUMNS: Final = ("PCI ids", "class", "GiB", "MiB", "CUDA", "W", "GB/s", "PCIe", "name")

MEMORY_LOW_PERCENT: Final = 90
"""Of the nominal size. The least reading of the table is 93.7 (RTX A4000 with ECC on: 15,352 of 16,384 MiB); the rest
is left for the driver's own share. LIUM draws its windows from 90 to 105."""
MEMORY_HIGH_PERCENT: Final = 105
"""No reading of the table exceeds 100; makers' sizes are further apart than this (11 and 12 GB: 9 percent)."""

_T = TypeVar("_T")


class Segment(StrEnum):
    """The market segment of a card."""

    DATA_CENTRE = "data centre"
    WORKSTATION = "workstation"
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True)
class Read(Generic[_T]):
    """A figure and the document it was read in."""

    value: _T
    source: Source


@dataclass(frozen=True, slots=True)
class GpuModel:
    """One model; a figure that is None has been read nowhere.

    name: as the driver says it, less the maker's; the same name with two memory sizes is two rows.
    model_class: our own name for the market: cards that a renter would take for one another share it.
    pci: device ids; two rows share an id where the maker sells two sizes or two cards under it.
    memory_gib: nominal size of one device. Makers write GB and mean 2**30 bytes, but for the H200, whose 141 GB are
    140.4 GiB. Of an MI250 one device is half the card.
    reported_mib: totals that drivers were seen to report.
    capability: CUDA compute capability, (major, minor); other makers have none.
    power_w: the default limit of the board, W; power_range_w: what a driver lets set, least and most.
    bandwidth_gb_s: peak of the memory in 10**9 bytes/s; what is measured stays below it.
    pcie: the fastest link of the card: generation and lanes.
    """

    name: str
    vendor: str
    segment: Segment
    model_class: str
    pci: Read[tuple[int, ...]]
    memory_gib: Read[int]
    reported_mib: tuple[Read[int], ...] = ()
    capability: Read[tuple[int, int]] | None = None
    power_w: Read[int] | None = None
    power_range_w: Read[tuple[int, int]] | None = None
    bandwidth_gb_s: Read[float] | None = None
    pcie: Read[tuple[int, int]] | None = None

    @property
    def memory_window_bytes(self) -> tuple[int, int]:
        """The least and the most memory that a true card of this model reports; both rounded down."""
        nominal = self.memory_gib.value << 30
        return nominal * MEMORY_LOW_PERCENT // 100, nominal * MEMORY_HIGH_PERCENT // 100

    @property
    def unread(self) -> tuple[str, ...]:
        """The figures of this row for which no document was found: nothing is compared with them."""
        found: dict[str, object] = {
            "reported_mib": self.reported_mib,
            "capability": self.capability or self.vendor != "nvidia",
            "power_w": self.power_w,
            "power_range_w": self.power_range_w,
            "bandwidth_gb_s": self.bandwidth_gb_s,
            "pcie": self.pcie,
        }
        return tuple(name for name, is_read in found.items() if not is_read)

    @property
    def sources(self) -> frozenset[Source]:
        """The documents behind this row."""
        single = (self.capability, self.power_w, self.power_range_w, self.bandwidth_gb_s, self.pcie)
        found = [self.pci.source, self.memory_gib.source, *(each.source for each in self.reported_mib)]
        return frozenset(found + [each.source for each in single if each is not None])

    @property
    def sheet_read(self) -> bool:
        """True if a figure of this row comes from its maker's own sheet; where not, others were believed."""
        return bool(self.sources & SHEETS)


def parse(vendor: str, segment: Segment, table: str) -> tuple[GpuModel, ...]:
    """The rows of a table as described above; raises ValueError that names the line it cannot read."""
    header, *lines = table.strip().splitlines()
    if _cells(header) != COLUMNS:
        raise ValueError(f"columns are {COLUMNS}, not {header!r}")
    return tuple(_row(vendor, segment, line) for line in lines)


def _row(vendor: str, segment: Segment, line: str) -> GpuModel:
    try:
        pci, model_class, memory, reported, capability, power, bandwidth, pcie, name = _cells(line)
        power_w, power_range_w = _power(power)
        ids, size = _read(pci, _ids), _read(memory, int)
        if ids is None or size is None:
            raise ValueError("no PCI id or no memory")
        totals = tuple(one for cell in reported.split(",") if (one := _read(cell.strip(), int)) is not None)
        return GpuModel(
            name,
            vendor,
            segment,
            model_class,
            ids,
            size,
            totals,
            _read(capability, _pair("[.]")),
            power_w,
            power_range_w,
            _read(bandwidth, float),
            _read(pcie, _pair("x")),
        )
    except (ValueError, KeyError) as error:
        raise ValueError(f"this row cannot be read ({error!r}): {line.strip()}") from error


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.split("|"))


def _read(cell: str, convert: Callable[[str], _T]) -> Read[_T] | None:
    if not cell:
        return None
    value, _, tag = cell.rpartition(" ")
    return Read(convert(value), Source[tag])


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(each, 16) for each in text.split())


def _pair(between: str) -> Callable[[str], tuple[int, int]]:
    def convert(text: str) -> tuple[int, int]:
        first, second = re.split(between, text)
        return int(first), int(second)

    return convert


def _power(cell: str) -> tuple[Read[int] | None, Read[tuple[int, int]] | None]:
    value, _, tag = cell.rpartition(" ")
    limit, _, span = value.partition(" ")
    power = _read(f"{limit} {tag}" if cell else "", int)
    return power, None if not span else Read(_pair("-")(span.strip("[]")), Source[tag])
