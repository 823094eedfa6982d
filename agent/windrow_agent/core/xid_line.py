"""Parses the lines that the NVIDIA driver writes into the kernel's log for an XID. Pure.

Forms seen in reports of drivers from 304 to 595: with and without `PCI:`, with pid and name, with both unknown, without
them, with a MIG slice behind the address (ids in decimal, as the driver's open source prints them), as in

    NVRM: Xid (PCI:0000:3b:00): 31, pid=1234, name=python3, Ch 00000008, ...
    NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:00): 94, pid=7194, Contained: ...
"""

import re
from dataclasses import dataclass
from typing import Final

from windrow_agent.core.inventory import clean_text

XID: Final = re.compile(
    r"NVRM: Xid \((?:PCI:)?(?P<domain>[0-9a-fA-F]{4,8}):(?P<bus>[0-9a-fA-F]{2}):(?P<device>[0-9a-fA-F]{2})(?:\.\d)?"
    r"(?: GPU-I:(?P<instance>\d{1,3}))?(?: GPU-CI:(?P<compute>\d{1,3}))?(?: [^)]{1,32})?\): "
    r"(?P<xid>\d{1,6})\b(?P<rest>.*)"
)
CAUSE: Final = re.compile(r", pid='?(?P<pid>\d{1,10}|<unknown>)'?(?:, name='?(?P<name>[^,']{0,64})'?)?")
TEXT_MAX: Final = 200
"""Characters kept of the driver's words; what follows are registers."""


@dataclass(frozen=True, slots=True)
class XidLine:
    """One line. bus: domain, bus and device; pid: as the host counts, None where it says none; text: the rest.

    gpu_instance, compute_instance: of the MIG slice that the driver puts it down to; None: it names none.
    """

    bus: tuple[int, int, int]
    xid: int
    pid: int | None
    process: str
    text: str
    gpu_instance: int | None = None
    compute_instance: int | None = None


def parse(line: str) -> XidLine | None:
    """The XID that a line of the kernel's log tells of; None for all other lines."""
    found = XID.search(line)
    if found is None:
        return None
    cause = CAUSE.match(found["rest"])
    pid = int(cause["pid"]) if cause and cause["pid"].isdecimal() and int(cause["pid"]) > 0 else None
    name = clean_text(cause["name"] or "") if cause and pid is not None else ""
    rest = found["rest"][cause.end() :] if cause else found["rest"]
    bus = (int(found["domain"], 16), int(found["bus"], 16), int(found["device"], 16))
    instance, compute = (None if found[name] is None else int(found[name]) for name in ("instance", "compute"))
    return XidLine(bus, int(found["xid"]), pid, name, clean_text(rest.lstrip(", "), TEXT_MAX), instance, compute)


def same_card(line: XidLine, bus_id: str) -> bool:
    """True if a line is about the card at this bus id, as NVML writes it (`00000000:3B:00.0`)."""
    parts = bus_id.partition(".")[0].split(":")
    try:
        return tuple(int(part, 16) for part in parts) == line.bus
    except ValueError:
        return False
