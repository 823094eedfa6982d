"""How much of the host's disk a container may fill, watched while it runs: on most file systems daemons have no quota.

Root is read-only, /tmp is memory, and logs have a limit of the daemon's; what grows is its volumes. One that is over
its limit is ended, and says so. Between two looks it may write more: the limit leaves half of the free disk for that.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from windrow_agent.runtimes import docker_facts as facts_of
from windrow_agent.runtimes.shim import write_whole
from windrow_proto.ids import HostId, WorkloadId
from windrow_proto.ports import Clock
from windrow_proto.units import GIB, MIB, SECOND

LOOK_EVERY_NS: Final = 20 * SECOND
"""The daemon reads through all volumes for an answer."""
DISK_MIN: Final = 1 * GIB
"""A container may have this much however full the disk is; the host takes none on when it has little (room.py)."""
NOTE: Final = "disk.json"


def share(root: str) -> int:
    """What a new container may fill, in bytes: half of what is free where its daemon keeps volumes."""
    try:
        room = os.statvfs(root)
    except OSError:
        return DISK_MIN  # a daemon on another machine, or one that hides its folder
    return max(DISK_MIN, room.f_bavail * room.f_frsize // 2)


class DiskWatch:
    """Of all containers of one host. Its looks are made one at a time, by whichever watch comes first."""

    def __init__(self, folder: Path, host_id: HostId) -> None:
        self._folder, self._host_id = folder, host_id
        self._due_ns: int | None = None
        self._is_looking = False

    def is_due(self, clock: Clock) -> bool:
        """Whether to look now; whoever is told so does."""
        now_ns = clock.monotonic_ns()
        is_due = self._due_ns is not None and now_ns >= self._due_ns and not self._is_looking
        if is_due or self._due_ns is None:
            self._due_ns = now_ns + LOOK_EVERY_NS
        return is_due

    def look(self, api: Any, kill: Callable[[Any, str], None]) -> None:
        """End those that are over their limit; the reason is on the disk first. Blocking."""
        self._is_looking = True
        try:
            self._look(api, kill)
        finally:
            self._is_looking = False

    def _look(self, api: Any, kill: Callable[[Any, str], None]) -> None:
        sizes = {one["Name"]: (one.get("UsageData") or {}).get("Size") or 0 for one in api.df().get("Volumes") or []}
        for container in api.containers(filters={"label": [f"{facts_of.HOST}={self._host_id}"]}):
            labels = container.get("Labels") or {}
            workload_id, limit = WorkloadId(str(labels.get(facts_of.WORKLOAD, ""))), int(labels.get(facts_of.DISK, 0))
            own = [int(sizes[name]) for name in sizes if facts_of.is_volume_of(workload_id, name)]
            if workload_id and limit and (size := sum(own)) > limit:
                where = facts_of.WORKSPACE + (" and its volumes" if len(own) > 1 else "")
                words = f"it filled its disk: {size // MIB} MiB in {where} where {limit // MIB} MiB may be"
                write_whole(str(self._folder / workload_id), NOTE, {"words": words})
                kill(api, container["Id"])


def note_of(folder: Path) -> str:
    """Why this container was ended, where that was its disk."""
    return str(facts_of.read_note(folder / NOTE).get("words", ""))
