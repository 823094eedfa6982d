"""Finds when the last backup of a market was made, and describes the way back to it in words."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from windrow_proto.conditions import ConditionCode, Stated
from windrow_proto.ports import Clock
from windrow_proto.units import DAY, SECOND, time_text

LAST: Final = "backup.json"
"""In the data directory: when and where the last backup was made, for whoever needs it."""

OLD_NS: Final = 2 * DAY
LOOK_EVERY_NS: Final = 15 * SECOND


@dataclass(frozen=True, slots=True)
class Last:
    """The last backup that was made of a data directory."""

    made_at_ns: int
    path: str


def last(data_dir: Path) -> Last | None:
    """The last backup that was made; None: none is known."""
    try:
        record = json.loads((data_dir / LAST).read_text(encoding="utf-8"))
        return Last(int(record["made_at_ns"]), str(record["path"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


class BackupAge:
    """Looks how old the last backup is. began_ns: when the market began."""

    def __init__(self, data_dir: Path, clock: Clock, began_ns: int) -> None:
        self._data_dir, self._clock, self._began_ns = data_dir, clock, began_ns
        self._looked_ns: int | None = None
        self._last: Last | None = None

    def conditions(self) -> Iterator[Stated]:
        """For health: a backup that is old, or none in a market that is."""
        now_ns = self._clock.wall_ns()
        if self._looked_ns is None or not 0 <= now_ns - self._looked_ns < LOOK_EVERY_NS:
            self._looked_ns, self._last = now_ns, last(self._data_dir)
        from_ns = self._began_ns if self._last is None else self._last.made_at_ns
        if now_ns - from_ns >= OLD_NS:
            days = (now_ns - from_ns) // DAY
            said = "No backup is known here" if self._last is None else f"The last backup was made {days} days ago"
            yield ConditionCode.MASTER_BACKUP_OLD, f"{said}.", from_ns + OLD_NS


def way_out(data_dir: Path) -> str:
    """Return how to get back a market whose database or keys are damaged, in words."""
    found = last(data_dir)
    if found is None:
        return (
            f"No backup of it is known here. `windrow-master check --data-dir {data_dir}` says what is damaged; "
            f"`windrow-master restore FILE --data-dir {data_dir}` brings a backup back."
        )
    return (
        f"`windrow-master check --data-dir {data_dir}` says what is damaged. The last backup was made at "
        f"{time_text(found.made_at_ns)}: `windrow-master restore {found.path} --data-dir {data_dir}` brings it back."
    )
