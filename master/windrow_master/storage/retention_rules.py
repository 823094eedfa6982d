"""Decides which stored files of a workload stay, and for how long. Pure."""

from dataclasses import dataclass
from typing import Final

from windrow_master.storage import checkpoints
from windrow_proto.units import DAY

KEPT_DAYS: Final = 30
"""After the end of a job or cluster: as long as artefacts by themselves."""
KEPT_NS: Final = KEPT_DAYS * DAY
SETTLED_NS: Final = 2 * checkpoints.GARBAGE_AGE_NS
"""After its end an owner has no garbage any more: it need not be looked for every hour."""


@dataclass(frozen=True, slots=True)
class Stay:
    """keep: so many of the newest stay; 0: none does. young_ns: one object younger than that, and all of them stay."""

    keep: int
    young_ns: int = checkpoints.GARBAGE_AGE_NS


def is_past(ended_ns: int | None, now_ns: int) -> bool:
    """Return whether what belongs to something that ended then (None: it goes on) is kept no more."""
    return ended_ns is not None and now_ns - ended_ns >= KEPT_NS


def of_ended(ended_ns: int | None, now_ns: int) -> Stay | None:
    """Return the checkpoints that stay; None: they are as they should be."""
    if ended_ns is None or now_ns - ended_ns < SETTLED_NS:
        return Stay(checkpoints.KEEP)
    return Stay(0, KEPT_NS) if is_past(ended_ns, now_ns) else None
