"""Reads small files of the kernel as values: a text, a number, the speed of a link; None for a file that is missing or
holds nonsense.

Every reader takes the root of the file system, so that a tree of files stands for a machine in the tests.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from windrow_agent.core.inventory import clean_id, clean_text
from windrow_agent.core.scaling import whole

FILE_BYTES_MAX: Final = 64 << 10
"""More than any file read here has: a list of bad pages is the longest."""
NAMES_BYTES_MAX: Final = 8 << 20
"""Of pci.ids, which has 1.5 MB."""
PCI_NAMES: Final = ("usr/share/misc/pci.ids", "usr/share/hwdata/pci.ids")
ADDRESS: Final = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]")
GENERATIONS: Final = {"2.5": 1, "5": 2, "8": 3, "16": 4, "32": 5, "64": 6, "128": 7}
"""GT/s of a PCIe lane to its generation; the kernel writes `16.0 GT/s PCIe`, older ones `8 GT/s`."""


def text(path: Path) -> str:
    """A small file, stripped; empty if it cannot be read. The driver may refuse any of them at any time."""
    try:
        with path.open("rb") as file:
            return file.read(FILE_BYTES_MAX).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def raw(path: Path, size: int) -> bytes:
    """The start of a file that is no text; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError:
        return b""


def number(path: Path) -> int | None:
    """A file with one number, decimal or after 0x; never negative: what does not know says -1."""
    said = text(path)
    try:
        return whole(int(said, 0))
    except ValueError:
        return None


def words(path: Path) -> str | None:
    """A name as people read it; None if there is none."""
    return clean_text(text(path)) or None


def entries(folder: Path, pattern: str) -> list[Path]:
    """Lists a folder's entries of these names, in their order; none if the folder cannot be read."""
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        return []


def driver_of(device: Path) -> str:
    """The kernel driver that serves a PCI device; empty: none does."""
    try:
        return clean_id(os.path.basename(os.readlink(device / "driver")))
    except OSError:
        return ""


def ids(device: Path, high: str, low: str) -> int:
    """Two 16-bit ids of PCI as `high << 16 | low`; 0 where the device does not say."""
    found = [number(device / name) for name in (high, low)]
    return 0 if None in found or max(one or 0 for one in found) > 0xFFFF else (found[0] or 0) << 16 | (found[1] or 0)


def is_gone(device: Path) -> bool:
    """True if a device has left its bus: its folder is gone, or its configuration space reads as ones."""
    try:
        with (device / "config").open("rb") as file:
            return file.read(4) == b"\xff\xff\xff\xff"
    except FileNotFoundError:
        return not (device / "vendor").exists()
    except OSError:
        return True


def slot_link(device: Path) -> Path:
    """The device whose link is the one to the host: cards with a switch of their own tell an inner link as theirs.

    That is the uppermost bridge of the card's own maker above it which has itself a bridge above.
    """
    maker, found = text(device / "vendor"), device
    above = Path(os.path.realpath(device)).parent
    while ADDRESS.fullmatch(above.name) and ADDRESS.fullmatch(above.parent.name) and text(above / "vendor") == maker:
        found, above = above, above.parent
    return found


def link(device: Path, which: str) -> tuple[int | None, int | None]:
    """Generation and lanes of a PCIe link. which: `current` or `max`."""
    speed = text(device / f"{which}_link_speed").partition(" ")[0].removesuffix(".0")
    width = number(device / f"{which}_link_width")
    return GENERATIONS.get(speed), width if width and width <= 64 else None


def hwmon_of(device: Path) -> Path | None:
    """The folder of a device's sensors."""
    return next(iter(entries(device / "hwmon", "hwmon*")), None)


def sensors(hwmon: Path | None, kind: str) -> dict[str, Path]:
    """A kind of sensor, `temp` or `power`, by its label, else by its number: the stem of its files, `temp1`."""
    found: dict[str, Path] = {}
    for file in entries(hwmon, f"{kind}[0-9]*_input") if hwmon else []:
        stem = file.with_name(file.name.removesuffix("_input"))
        found[clean_id(text(beside(stem, "label"))) or stem.name] = stem
    return found


def beside(stem: Path, what: str) -> Path:
    """Another file of a sensor: `temp1` and `crit` make `temp1_crit`."""
    return stem.with_name(f"{stem.name}_{what}")


def degrees(path: Path) -> int | None:
    """Thousandths of a degree Celsius as degrees, to the nearest."""
    said = number(path)
    return None if said is None else whole((said + 500) // 1000, 0, 200)


def milli(micro: int | None) -> int | None:
    """Millionths as thousandths, rounded down; what is set to 0 is not limited, and so not told."""
    return micro // 1000 if micro else None


def marketing_name(root: Path, pci_device_id: int) -> str:
    """The name of a device in the list of PCI ids that Linux ships, the part in brackets if it has one; empty
    without."""
    for name in PCI_NAMES:
        try:
            with (root / name).open(encoding="utf-8", errors="replace") as file:
                return _listed(file.read(NAMES_BYTES_MAX), pci_device_id & 0xFFFF, pci_device_id >> 16)
        except OSError:
            continue
    return ""


def _listed(names: str, vendor: int, device: int) -> str:
    maker = re.search(rf"(?ms)^{vendor:04x}  [^\n]*\n(.*?)(?=^[0-9a-f]{{4}}  |\Z)", names)
    row = re.search(rf"(?m)^\t{device:04x}  ([^\n]*)", maker[1]) if maker else None
    if row is None:
        return ""
    bracketed = re.search(r"\[([^\]]+)\]", row[1])
    return clean_text(bracketed[1] if bracketed else row[1])


def lines(path: Path) -> Iterator[str]:
    """A file's lines, stripped."""
    return (line.strip() for line in text(path).splitlines())
