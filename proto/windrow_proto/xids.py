"""The one table of NVIDIA's XIDs: what each code says, who mostly causes it, and what to do. Pure.

The facts are those of NVIDIA's "Xid Errors" (section "Analyzing Xid Errors with the Xid Catalog", and for cards before
Ampere the one for older GPUs); the words are ours. A code without a row is a fault of the host.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

PAGE: Final = "docs/xids.md"
"""Written from this table."""


class XidCause(StrEnum):
    """Who mostly causes an XID. It decides who pays: the renter for PROGRAM, the host for the others."""

    PROGRAM = "program"
    HARDWARE = "hardware"
    DRIVER = "driver"


@dataclass(frozen=True, slots=True)
class Xid:
    """One code. meaning: in a few words, after `XID 79: `. is_record: it only writes something down, and nothing is
    faulty by it. is_whole_card: of the whole card, whichever slice of it the driver names."""

    code: int
    cause: XidCause
    meaning: str
    remedy: str
    is_record: bool = False
    is_whole_card: bool = False

    @property
    def name(self) -> str:
        """The code with its meaning, for lists and events."""
        return f"XID {self.code}: {self.meaning}"


_PROGRAM, _HARDWARE, _DRIVER = XidCause.PROGRAM, XidCause.HARDWARE, XidCause.DRIVER
_CHECK: Final = "Run the program under `compute-sanitizer` or `cuda-gdb`. The GPU itself is well."
_AGAIN: Final = "Start the work again. If it comes back with other programs, reset the GPU and ask the card's maker."
_RESET: Final = (
    "Drain the host (`windrow host drain HOST`) and reset the GPU (`sudo nvidia-smi -r -i INDEX`). If it comes back, "
    "ask the card's maker."
)
_REBOOT: Final = "Reboot the host. If it happens again, reseat the card and its power cables, or replace the card."
_UPDATE: Final = "Reset the GPU, and install a newer driver. If it comes back, ask the card's maker."
_LINK: Final = (
    "`nvidia-smi nvlink -e` names the link. Reset all GPUs of the host together, or reboot it. If it comes back, look "
    "at bridges, baseboard and the GPU at the other end."
)
_NOTHING: Final = "Nothing. If it comes often, watch the card's memory: `nvidia-smi -q -d ECC,ROW_REMAPPER`."
_POWER: Final = "Nothing at once: the GPU works, and its power changes faster. Ask the card's maker if that matters."
_SUPPORT: Final = "Ask the card's maker: the GPU works on until then, and it may happen again."

_ROWS: Final = (
    Xid(8, _DRIVER, "the GPU did not finish a program's commands in time", _AGAIN),
    Xid(11, _DRIVER, "the stream of commands to the GPU was not valid", _AGAIN),
    Xid(13, _PROGRAM, "a program's kernel failed, mostly by an address outside its arrays", _CHECK),
    Xid(14, _PROGRAM, "a program asked the driver for this error as a test", _CHECK, is_record=True),
    Xid(25, _DRIVER, "the stream of commands to the GPU held one that is not allowed", _AGAIN),
    Xid(31, _PROGRAM, "a program used an address of GPU memory that is not its own", _CHECK),
    Xid(32, _HARDWARE, "commands arrived at the GPU damaged, mostly by its PCIe connection", _REBOOT),
    Xid(37, _DRIVER, "the driver's firmware got a command that it does not know", _UPDATE),
    Xid(38, _DRIVER, "the driver's firmware did not answer in time", _UPDATE),
    Xid(39, _DRIVER, "a copy engine failed", _AGAIN),
    Xid(40, _DRIVER, "a copy engine failed", _AGAIN),
    Xid(41, _DRIVER, "a copy engine failed", _AGAIN),
    Xid(43, _PROGRAM, "a program had a fault and was stopped", _CHECK),
    Xid(44, _DRIVER, "the GPU had a fault while it changed from one program to another", _AGAIN),
    Xid(45, _PROGRAM, "the driver cleaned up after a program that ended or was killed", _CHECK),
    Xid(46, _HARDWARE, "the GPU stopped working on its commands", _RESET),
    Xid(48, _HARDWARE, "memory error that could not be corrected", _RESET),
    Xid(54, _HARDWARE, "a power cable of the card is not connected", "Switch the host off and connect the cable."),
    Xid(56, _DRIVER, "the display engine failed", _UPDATE),
    Xid(57, _HARDWARE, "the connection to the GPU's memory could not be set up", _RESET),
    Xid(58, _HARDWARE, "the GPU's memory was unstable", _RESET),
    Xid(60, _DRIVER, "the security or video processor failed", _AGAIN),
    Xid(61, _DRIVER, "a controller inside the GPU stopped at a check", _RESET),
    Xid(62, _HARDWARE, "a controller inside the GPU has halted", _RESET),
    Xid(63, _HARDWARE, "a bad part of memory is noted down for repair", _NOTHING, is_record=True),
    Xid(64, _HARDWARE, "a bad part of memory could not be noted down for repair", _RESET, is_record=True),
    Xid(65, _DRIVER, "a video encoder failed", _AGAIN),
    Xid(66, _DRIVER, "the driver used a register that it may not use", _UPDATE),
    Xid(67, _DRIVER, "the driver broke a rule of the GPU's firmware", _UPDATE),
    Xid(68, _PROGRAM, "a video decoder failed", _CHECK),
    Xid(69, _DRIVER, "the GPU got a command of the wrong kind", _AGAIN),
    *(Xid(code, _DRIVER, "a copy engine failed", _AGAIN) for code in (70, 71, 72, 75, 76, 77, 85)),
    Xid(74, _HARDWARE, "NVLink connection failed", _LINK),
    Xid(78, _DRIVER, "a virtual GPU could not be started", "Install driver versions that fit on host and guest."),
    Xid(79, _HARDWARE, "the GPU has fallen off the bus", _REBOOT, is_whole_card=True),
    Xid(80, _HARDWARE, "data was damaged on its way to the GPU", _REBOOT),
    Xid(82, _DRIVER, "an image decoder failed", _AGAIN),
    *(Xid(code, _DRIVER, "a video decoder failed", _AGAIN) for code in (83, 84, 88, 89)),
    Xid(86, _DRIVER, "the optical-flow engine failed", _AGAIN),
    Xid(92, _HARDWARE, "many memory errors, all of them corrected", _NOTHING, is_record=True),
    Xid(93, _HARDWARE, "the card's own record may not be written any more", _SUPPORT),
    Xid(94, _HARDWARE, "memory error that could not be corrected, contained in one program", _RESET),
    Xid(95, _HARDWARE, "memory error that could not be contained in one program", _RESET, is_whole_card=True),
    Xid(106, _DRIVER, "test message of the management bus", _NOTHING, is_record=True),
    Xid(107, _DRIVER, "test message of the management bus", _NOTHING, is_record=True),
    Xid(109, _PROGRAM, "a program did not let the GPU change to another one in time", _CHECK),
    Xid(110, _HARDWARE, "the GPU found a breach of its own security", _REBOOT),
    Xid(119, _DRIVER, "the GPU's system processor did not answer in time", _UPDATE),
    Xid(120, _DRIVER, "the GPU's system processor failed", _UPDATE),
    Xid(121, _HARDWARE, "errors on the connection between CPU and GPU were corrected", _SUPPORT),
    Xid(122, _HARDWARE, "the card's own flash memory could not be read", _SUPPORT),
    Xid(123, _HARDWARE, "the card's own flash memory could not be written", _SUPPORT),
    Xid(124, _HARDWARE, "the card's own flash memory could not be erased", _SUPPORT),
    Xid(125, _HARDWARE, "the card's own record is damaged", _SUPPORT),
    Xid(136, _HARDWARE, "NVLink connection could not be set up", _LINK),
    Xid(137, _PROGRAM, "a program used an address of another GPU that is not its own", _CHECK),
    Xid(140, _HARDWARE, "memory errors that could not be corrected nor noted down for repair", _RESET),
    Xid(143, _HARDWARE, "the GPU could not be started", _RESET),
    *(Xid(code, _HARDWARE, "NVLink connection failed", _LINK) for code in range(144, 151)),
    Xid(151, _DRIVER, "the keys of confidential computing could not be renewed", "Restart the virtual machine."),
    Xid(154, _HARDWARE, "the driver asks for another way to recover the GPU", "Do what the driver's message says."),
    Xid(155, _DRIVER, "NVLink connection was taken down by software", _LINK),
    Xid(156, _HARDWARE, "a bad part of the GPU is taken out of use at the next reset", _RESET),
    Xid(157, _HARDWARE, "a bad part of the GPU could not be taken out of use", _SUPPORT),
    Xid(158, _HARDWARE, "a part of the GPU did not answer in time", _RESET),
    Xid(160, _HARDWARE, "a bad channel of the GPU's memory is taken out of use", _SUPPORT),
    Xid(161, _HARDWARE, "a bad channel of the GPU's memory could not be taken out of use", _SUPPORT),
    Xid(162, _HARDWARE, "the power smoothing of the card works again", _POWER, is_record=True),
    Xid(163, _HARDWARE, "the power smoothing of the card is off", _POWER),
    Xid(164, _HARDWARE, "the power smoothing of the card is nearly worn out", _POWER),
    Xid(165, _HARDWARE, "the power smoothing of the card is worn out", _POWER),
    Xid(167, _HARDWARE, "the PCIe connection did not answer in time", _REBOOT),
    Xid(168, _HARDWARE, "errors in the part of memory that the GPU needs itself", "Turn ECC on, then reboot the host."),
    Xid(169, _HARDWARE, "a controller inside the GPU has halted", _RESET),
    Xid(171, _HARDWARE, "memory error that could not be corrected, in the card's memory chips", _RESET),
    Xid(172, _HARDWARE, "memory error that could not be corrected, inside the GPU chip", _RESET),
)

XIDS: Final[Mapping[int, Xid]] = {row.code: row for row in _ROWS}
PROGRAM_XIDS: Final = frozenset(row.code for row in _ROWS if row.cause is _PROGRAM)
RECORD_XIDS: Final = frozenset(row.code for row in _ROWS if row.is_record)
CARD_XIDS: Final = frozenset(row.code for row in _ROWS if row.is_whole_card)


def name_of(code: int) -> str:
    """`XID 79: the GPU has fallen off the bus`; `XID 999` where the code has no row."""
    known = XIDS.get(code)
    return f"XID {code}" if known is None else known.name
