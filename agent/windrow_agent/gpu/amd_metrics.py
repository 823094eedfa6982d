"""Reads the reasons for low clocks of an AMD card from `gpu_metrics`, a binary table of its driver. Pure.

Layouts: the kernel's kgd_pp_interface.h (gpu_metrics_v1_3, v1_6, v1_7), bits: its amdgpu_smu.h. Desktop cards and the
MI200 have 1.3, a mask of what holds them down now; the MI300 has 1.6 or 1.7, counters of how long each reason did, so
what grew since the sweep before is what held it down. Other tables tell nothing here.

Limits of power and of current are a power cap, as on other makers' cards: a sound card under load runs into them.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from windrow_agent.core.gpu_port import HEAT_BY_HARDWARE, HEAT_BY_SOFTWARE, POWER_CAP

TABLE_BYTES_MAX: Final = 4096
_HEAD: Final = struct.Struct("<HBB")
"""Size of the table, format, and the content's revision."""
_MASK_AT: Final = 112
"""Of 64 bits, in 1.3; its bits mean the same on every card."""
_COUNTERS_AT: Final = {6: 36, 7: 44}
"""Of five counters of 32 bits, by the revision."""
_COUNTERS: Final = (HEAT_BY_HARDWARE, POWER_CAP, HEAT_BY_SOFTWARE, HEAT_BY_SOFTWARE, HEAT_BY_SOFTWARE)
"""The meaning of each counter: a processor hot, package power, heat of the socket, of the regulators, of the memory."""
_REASONS: Final[Mapping[range, int]] = {
    range(8): POWER_CAP,
    range(16, 24): POWER_CAP,
    range(32, 44): HEAT_BY_SOFTWARE,
    range(44, 48): HEAT_BY_HARDWARE,
    range(56, 57): POWER_CAP,
}
_UNSAID: Final = (1 << 64) - 1, (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class ClockReading:
    """The reading of one table. reasons: NVML's bits, None if nothing can be said yet or at all; counters: for the
    comparison with the next table."""

    reasons: int | None = None
    counters: tuple[int, ...] | None = None


def held_by(table: bytes, before: ClockReading = ClockReading()) -> ClockReading:
    """Reads the reasons for low clocks from this table. before: the reading of the table before it."""
    if len(table) < _HEAD.size:
        return ClockReading()
    size, table_format, revision = _HEAD.unpack_from(table)
    if table_format != 1 or size > len(table):
        return ClockReading()
    if revision == 3 and size >= _MASK_AT + 8:
        return ClockReading(_masked(struct.unpack_from("<Q", table, _MASK_AT)[0]))
    if revision in _COUNTERS_AT and size >= _COUNTERS_AT[revision] + 20:
        return _counted(struct.unpack_from("<5I", table, _COUNTERS_AT[revision]), before)
    return ClockReading()


def _masked(mask: int) -> int | None:
    if mask in _UNSAID:
        return None
    found = 0
    for bits, reason in _REASONS.items():
        found |= reason if any(mask >> bit & 1 for bit in bits) else 0
    return found


def _counted(now: tuple[int, ...], before: ClockReading) -> ClockReading:
    if before.counters is None:
        return ClockReading(None, now)
    found = 0
    for reason, count, earlier in zip(_COUNTERS, now, before.counters, strict=True):
        found |= reason if count != earlier and count not in _UNSAID else 0
    return ClockReading(found, now)
