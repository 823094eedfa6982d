"""Reads the notices by which a provider says that it takes a machine back. Pure.

What a metadata service answers comes from outside: what is no notice is none.
"""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from windrow_proto.units import SECOND

SPOT: Final = "spot"
"""The machine is taken back at the time of the notice."""
REBALANCE: Final = "rebalance"
"""The machine is more likely than before to be taken back; nobody says when."""
SHUTDOWN: Final = "shutdown"
"""The machine shuts down."""
_INSTANCE: Final = re.compile(r"i-[0-9a-f]{8,32}")


@dataclass(frozen=True, slots=True)
class Notice:
    """The machine will be gone. at_ns: wall time; None: not known."""

    why: str
    at_ns: int | None = None


def instance_id(text: bytes) -> str:
    """Return the id of an EC2 instance; empty: this is none."""
    found = _INSTANCE.fullmatch(text.decode("ascii", "replace").strip())
    return found.group() if found is not None else ""


def spot_notice(text: bytes) -> Notice | None:
    """Read EC2's `spot/instance-action`, whose action is to terminate, stop or hibernate."""
    try:
        said = json.loads(text)
        return Notice(SPOT, _wall_ns(said["time"])) if said["action"] else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def rebalance_notice(text: bytes) -> Notice | None:
    """Read EC2's `events/recommendations/rebalance`."""
    try:
        return Notice(REBALANCE) if _wall_ns(json.loads(text)["noticeTime"]) else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _wall_ns(text: str) -> int:
    return int(datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()) * SECOND
