"""Limits the disk space of a container, by watching it while it runs: on most file systems daemons have no quota.

The files of a container lie in its root layer and in its volumes, some of which its image declares; the daemon itself
limits its log. Each container has a limit of bytes and one of files. A container that exceeds one is ended, and its
reason says so. It is found at the next check, which comes sooner where the disk fills fast. Until then it goes on
writing: that is why the limits leave half of the free space unused.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from windrow_agent.runtimes import docker_facts as facts_of
from windrow_agent.runtimes import docker_socket
from windrow_agent.runtimes.shim import write_whole
from windrow_proto.errors import RuntimeUnavailable
from windrow_proto.ids import HostId, WorkloadId
from windrow_proto.ports import Clock
from windrow_proto.units import GIB, MIB, SECOND

LOOK_EVERY_NS: Final = 20 * SECOND
"""The daemon reads through all volumes for an answer."""
LOOK_AGAIN_NS: Final = 2 * SECOND
"""Between two looks at a disk that fills fast."""
FAST_SHARE: Final = 8
"""It fills fast where a part of this size of what was free is gone since the last look."""
DISK_MIN: Final = 1 * GIB
"""A container may have this much however full the disk is; a host whose disk is nearly full takes none on
(storage/disk_space.py)."""
FILES_MIN: Final = 100_000
"""Likewise so many files."""
NOT_MEASURED: Final = -1
"""The daemon's size of a volume through which it cannot read: a path in it is longer than the kernel takes."""
DEPTH_MAX: Final = 256
"""How deep folders are read through. Each level is open meanwhile; no program's own are so deep."""
BLOCK_BYTES: Final = 512
"""The size of one block in st_blocks, by stat(2)."""
TMP_AND_WORKSPACE: Final = 2
"""The volumes that every container has."""
NOTE: Final = "disk.json"
CALL_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class FreeSpace:
    """The free space of the disk that holds a daemon's volumes.

    files: None where the file system has no fixed number of them.
    """

    bytes: int
    files: int | None
    files_used: int = 0

    def is_much_less_than(self, before: "FreeSpace") -> bool:
        """True if much of the space that was free before is used now."""
        is_less = before.bytes - self.bytes > before.bytes // FAST_SHARE
        return is_less or (before.files or 0) - (self.files or 0) > (before.files or 0) // FAST_SHARE


def free_space(root: str) -> FreeSpace | None:
    """As it is now; None: the daemon is on another machine, or hides its folder."""
    try:
        found = os.statvfs(root)
    except OSError:
        return None
    files = found.f_favail if found.f_files else None
    return FreeSpace(found.f_bavail * found.f_frsize, files, found.f_files - found.f_ffree)


def share(root: str) -> int:
    """The limit of a new container, in bytes: half of the free space of its daemon's disk."""
    found = free_space(root)
    return DISK_MIN if found is None else max(DISK_MIN, found.bytes // 2)


def share_of_files(root: str) -> int:
    """The number of files and folders that a container may make, likewise; 0: they are not limited."""
    found = free_space(root)
    return 0 if found is None or found.files is None else max(FILES_MIN, found.files // 2)


class DiskWatch:
    """The disk use of all containers of one host. Measured once at a time, by the watch that comes first.

    root: where the daemon keeps volumes."""

    def __init__(self, folder: Path, host_id: HostId, base_url: str, root: Callable[[], str]) -> None:
        self._folder, self._host_id, self._base_url, self._root = folder, host_id, base_url, root
        self._looked_ns: int | None = None
        self._free: FreeSpace | None = None
        self._is_looking = False
        self._hidden: set[str] = set()
        self._unmeasured: set[str] = set()
        self.used: dict[WorkloadId, int] = {}
        """Bytes of each container, as of the last look."""

    def is_due(self, clock: Clock) -> bool:
        """True if a look is due now; the caller that is told so does it."""
        now_ns, before = clock.monotonic_ns(), self._free
        if self._looked_ns is None:
            self._looked_ns, self._free = now_ns, free_space(self._root())
            return False
        since_ns = now_ns - self._looked_ns
        if self._is_looking or since_ns < min(LOOK_AGAIN_NS, LOOK_EVERY_NS):
            return False
        now = free_space(self._root())
        is_fast = now is not None and before is not None and now.is_much_less_than(before)
        if since_ns < LOOK_EVERY_NS and not is_fast:
            return False
        self._looked_ns, self._free = now_ns, now
        return True

    def look(self, api: Any, kill: Callable[[Any, str], None]) -> None:
        """End those that are over their limit; the reason is on the disk first. Blocking."""
        self._is_looking = True
        try:
            self._look(api, kill)
        finally:
            self._is_looking = False

    def _look(self, api: Any, kill: Callable[[Any, str], None]) -> None:
        volumes = {str(one["Name"]): one for one in (api.volumes() or {}).get("Volumes") or []}
        sizes, now = _sizes(self._base_url), free_space(self._root())
        hidden = {name for name, size in sizes.items() if size == NOT_MEASURED}
        twice, self._hidden = hidden & self._hidden, hidden  # once may be a moment's fault
        files_used = 0 if now is None else now.files_used
        before, self._unmeasured = self._unmeasured, set()
        used: dict[WorkloadId, int] = {}
        for container in api.containers(filters={"label": [f"{facts_of.HOST}={self._host_id}"]}):
            labels = container.get("Labels") or {}
            workload_id = WorkloadId(str(labels.get(facts_of.WORKLOAD, "")))
            limits = Limits(*(int(labels.get(name, 0)) for name in (facts_of.DISK, facts_of.FILES)))
            own = {name: volumes[name] for name in facts_of.volumes_of(container, volumes)}
            found = _used(own, sizes, limits, are_files_counted=limits.files < files_used)
            if not _add_root(self._base_url, str(container["Id"]), found, limits):
                self._unmeasured.add(container["Id"])
                found.is_whole = found.is_whole and container["Id"] not in before
            used[workload_id] = found.bytes
            if workload_id and (why := _why(limits, found, len(own), is_hidden=not twice.isdisjoint(own))):
                write_whole(str(self._folder / workload_id), NOTE, {"words": why})
                kill(api, container["Id"])
        self.used = used


@dataclass(slots=True)
class Used:
    """The disk use of volumes. is_whole: all of it was seen; linked: the files of several names that were counted."""

    bytes: int = 0
    files: int = 0
    is_whole: bool = True
    linked: set[tuple[int, int]] = field(default_factory=set)

    def add(self, entry: os.stat_result) -> None:
        """One more name; a file of several names, as package managers make them, counts once."""
        if entry.st_nlink > 1 and not stat.S_ISDIR(entry.st_mode):
            if (entry.st_dev, entry.st_ino) in self.linked:
                return
            self.linked.add((entry.st_dev, entry.st_ino))
        self.files += 1
        self.bytes += entry.st_blocks * BLOCK_BYTES


@dataclass(frozen=True, slots=True)
class Limits:
    """The bytes of one container; 0: none."""

    bytes: int
    files: int


def _sizes(base_url: str) -> dict[str, int]:
    """The volumes' sizes, as the daemon finds them; none where it cannot: Podman fails at the first path that is longer
    than the kernel takes, whosever it is, and a volume of many files takes longer than we wait."""
    try:
        status, told = docker_socket.call(base_url, "GET", "/system/df?type=volume", CALL_S)
    except RuntimeUnavailable:
        return {}
    found = (told.get("Volumes") or []) if status == 200 and isinstance(told, dict) else []
    return {str(one["Name"]): int((one.get("UsageData") or {}).get("Size") or 0) for one in found}


def _used(
    own: Mapping[str, Mapping[str, Any]], sizes: Mapping[str, int], limits: Limits, *, are_files_counted: bool
) -> Used:
    """By the daemon's word where that is all there is to know, else by reading through them where we can."""
    found = Used()
    for name, volume in own.items():
        size = sizes.get(name, NOT_MEASURED)
        if size != NOT_MEASURED and not (are_files_counted and limits.files):
            found.bytes += size
            continue
        place = str(volume.get("Mountpoint") or "")
        with contextlib.suppress(OSError):
            at = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
            try:
                read_through(at, 0, found, limits)
            finally:
                os.close(at)
    return found


def _add_root(base_url: str, container_id: str, found: Used, limits: Limits) -> bool:
    """Add what a container wrote to its root layer: read through where the layer is a folder of its own and in our
    reach, and no further than its limits; else by the daemon's word. False if neither is to be had."""
    path = f"/containers/{container_id}/json"
    with contextlib.suppress(RuntimeUnavailable):
        status, told = docker_socket.call(base_url, "GET", path, CALL_S)
        if status == 404:
            return True  # gone meanwhile
        place = str((((told or {}).get("GraphDriver") or {}).get("Data") or {}).get("UpperDir") or "")
        with contextlib.suppress(OSError):
            at = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                read_through(at, 0, found, limits)
            finally:
                os.close(at)
            return True
        status, told = docker_socket.call(base_url, "GET", f"{path}?size=1", CALL_S)
        if status == 200:
            found.bytes += int(told.get("SizeRw") or 0)
            return True
    return False


def read_through(at: int, depth: int, found: Used, limits: Limits) -> None:
    """Add all that is below an open folder, name by name, so that no path is too long; until it is over a limit."""
    if depth > DEPTH_MAX:
        found.is_whole = False
        return
    with os.scandir(at) as entries:
        for one in entries:
            with contextlib.suppress(OSError):  # gone meanwhile
                found.add(one.stat(follow_symlinks=False))
                if found.bytes > limits.bytes > 0 or found.files > limits.files > 0:
                    return
                if one.is_dir(follow_symlinks=False):
                    inner = os.open(one.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
                    try:
                        read_through(inner, depth + 1, found, limits)
                    finally:
                        os.close(inner)


def _why(limits: Limits, found: Used, volumes: int, *, is_hidden: bool) -> str:
    """Why a container with so many volumes is to be ended; empty: it is not. is_hidden: its daemon cannot measure
    it."""
    where = "its root, /tmp and " + facts_of.WORKSPACE + (" and its volumes" if volumes > TMP_AND_WORKSPACE else "")
    if found.bytes > limits.bytes > 0:
        return (
            f"the workload filled its disk: {found.bytes // MIB} MiB in {where} where {limits.bytes // MIB} MiB may be"
        )
    if found.files > limits.files > 0:
        return f"the workload made too many files: more than {limits.files} in {where}"
    if not found.is_whole or (is_hidden and not found.files):
        return f"the disk of the workload cannot be measured: folders in {where} are nested too deep"
    return ""


def note_of(folder: Path) -> str:
    """Why this container was ended, where that was its disk."""
    return str(facts_of.read_note(folder / NOTE).get("words", ""))
