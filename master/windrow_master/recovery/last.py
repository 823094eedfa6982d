"""Finds when the last backup of a market was made, and describes the way back to it in words."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from windrow_proto.units import time_text

LAST: Final = "backup.json"
"""In the data directory: when and where the last backup was made, for whoever needs it."""


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
