"""Limits of process workloads by control groups, and the figures that those share with containers.

A workload has one group (version 2), or one for each controller (version 1), below the agent's own or beside it. What
is to be made is on the disk before it is: whoever removes the workload finds it there. Where no group can be made, the
limits of single processes are all there is, and the runtime says so.

      find ──▶ groups ──▶ (launch.json) ──▶ make ──▶ the shim's child enters ──▶ oom_limit ──▶ end, drop
"""

import contextlib
import os
import signal
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from windrow_proto.errors import RuntimeUnavailable
from windrow_proto.model import WorkloadSpec
from windrow_proto.units import MIB

PROCESSES_MAX: Final = 4096
MEMORY_KEPT_BYTES: Final = 1024 * MIB
"""Of the host's, for itself: its system, its container daemon and its agent."""
CONTROLLERS: Final = {"memory": "memory", "pids": "processes", "cpu": "processors"}
"""That are used, and what each limits, in words."""
PERIOD_US: Final = 100_000
"""The kernel's own, in which a quota of processor time is used up."""
MAY_LACK: Final = ("memory.memsw.limit_in_bytes", "memory.swap.max", "cpu.cfs_quota_us", "cpu.max")
"""Files that a kernel lacks which counts no swap, or limits no processor time."""
NEAR_LIMIT: Final = 1 * MIB
"""Memory is counted ahead in batches: a group that was so near its limit was at it."""
END_S: Final = 10.0
"""For what was killed to be gone; what is in uninterruptible sleep stays."""
LOOK_S: Final = 0.01
OWN: Final = Path("/proc/self")

Group = dict[str, Any]
"""folder: where it is; settings: the files in it and what they are to say."""


@dataclass(frozen=True, slots=True)
class Parents:
    """The folders in which groups can be made on this host: one for each controller; version 2 has one for all of
    them."""

    version: int = 0
    folders: Mapping[str, Path] = field(default_factory=dict)


def memory_limit(asked_bytes: int, host_bytes: int) -> int:
    """The memory that a workload may use, in bytes: what was asked for, never what the host itself needs to live."""
    most = max(host_bytes - MEMORY_KEPT_BYTES, host_bytes // 2)
    return min(asked_bytes, most) if asked_bytes else most


def out_of_memory(limit_bytes: int) -> str:
    """Why it ended, in words. limit_bytes: at which; 0: at none of its own."""
    limit = limit_bytes // MIB
    return f"the workload ran out of memory at its limit of {limit} MiB" if limit else "the host ran out of memory"


def find(own: Path = OWN) -> Parents:
    """Try out where groups can be made. own: what the kernel says of this process. Blocking."""
    mounts = list(_mounts(own))
    for controllers, path in _groups_of(own):
        for kind, _, root, folder in mounts:
            if kind == "cgroup2" and not controllers and (found := _second(folder, _inside(folder, root, path))):
                return Parents(2, found)
    first = {
        name: at
        for controllers, path in _groups_of(own)
        for kind, names, root, folder in mounts
        if kind == "cgroup" and controllers
        for name in CONTROLLERS
        if name in controllers and name in names and _can_have(at := _inside(folder, root, path))
    }
    return Parents(1, first) if first else Parents()


def words(parents: Parents) -> str:
    """Names the resources of a workload that are limited as a whole."""
    named = [word for name, word in CONTROLLERS.items() if name in parents.folders]
    if not named:
        return "no control groups of its own, so that limits are each process's"
    return f"{', '.join(named)} limited by control groups (version {parents.version})"


def of(parents: Parents, spec: WorkloadSpec) -> list[Group]:
    """The groups of one workload on this host."""
    return groups(parents, spec, os.cpu_count() or 1, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def groups(parents: Parents, spec: WorkloadSpec, processors: int, memory_bytes: int) -> list[Group]:
    """Those of one workload. processors, memory_bytes: of this host."""
    memory = memory_limit(spec.memory_bytes, memory_bytes)
    quota_us = min(spec.cpu_milli, 1000 * processors) * PERIOD_US // 1000
    by_controller: dict[str, dict[str, int | str]]
    if parents.version == 2:
        by_controller = {
            "memory": {"memory.max": memory, "memory.swap.max": 0},
            "pids": {"pids.max": PROCESSES_MAX},
            "cpu": {"cpu.max": f"{quota_us} {PERIOD_US}"} if quota_us else {},
        }
    else:
        by_controller = {
            "memory": {"memory.limit_in_bytes": memory, "memory.memsw.limit_in_bytes": memory},
            "pids": {"pids.max": PROCESSES_MAX},
            "cpu": {"cpu.cfs_quota_us": quota_us} if quota_us else {},
        }
    made: dict[str, dict[str, int | str]] = {}
    for name, parent in parents.folders.items():
        made.setdefault(str(parent / f"windrow-{spec.workload_id}"), {}).update(by_controller[name])
    return [{"folder": folder, "settings": settings} for folder, settings in made.items() if settings]


def left(parents: Parents, workload_id: str) -> list[Group]:
    """Those that may be there of a workload whose own record of them is gone."""
    folders = {str(parent / f"windrow-{workload_id}") for parent in parents.folders.values()}
    return [{"folder": folder, "settings": {"pids.max": 0}} for folder in sorted(folders)]


def has_memory(made: Sequence[Group]) -> bool:
    """True if these limit memory."""
    return any(name.startswith("memory.") for group in made for name in group["settings"])


def make(made: Sequence[Group]) -> None:
    """Each with its limits; one that is there is taken as it is. Raises RuntimeUnavailable. Blocking."""
    for group in made:
        folder = Path(group["folder"])
        try:
            folder.mkdir(exist_ok=True)
            for name, value in group["settings"].items():
                if name not in MAY_LACK or (folder / name).exists():
                    _set(folder / name, value)
        except OSError as error:
            raise RuntimeUnavailable(f"The control group {folder} could not be made: {error.strerror}.") from error


def end(made: Sequence[Group]) -> None:
    """Kill all that is in them, and let nothing begin meanwhile. Blocking."""
    for group in made:
        if "pids.max" in group["settings"]:
            with contextlib.suppress(OSError):
                _set(Path(group["folder"], "pids.max"), 0)
    until = time.monotonic() + END_S
    while time.monotonic() < until and (found := {pid for group in made for pid in _members(group)}):
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(LOOK_S)


def drop(made: Sequence[Group]) -> None:
    """Take them away: the kernel needs a moment after the last process. Raises RuntimeUnavailable. Blocking."""
    until = time.monotonic() + END_S
    for folder in (Path(group["folder"]) for group in made):
        while folder.is_dir():
            try:
                folder.rmdir()
            except OSError as error:
                if time.monotonic() > until:
                    raise RuntimeUnavailable(f"The control group {folder} stays: {error.strerror}.") from error
                time.sleep(LOOK_S)


def oom_limit(made: Sequence[Group]) -> int | None:
    """The limit in bytes at which the kernel killed something in them; 0: not at theirs. None: it killed nothing."""
    for group in made:
        folder, settings = Path(group["folder"]), group["settings"]
        limit = settings.get("memory.max") or settings.get("memory.limit_in_bytes")
        first, second = _counts(folder / "memory.oom_control"), _counts(folder / "memory.events")
        if limit and (first | second).get("oom_kill"):
            peak = int(_said(folder / "memory.max_usage_in_bytes") or 0)
            return int(limit) if second.get("oom") or peak + NEAR_LIMIT >= limit else 0
    return None


def members(made: Sequence[Group]) -> frozenset[int]:
    """The processes in them."""
    return frozenset(pid for group in made for pid in _members(group))


def cpu_ns(made: Sequence[Group]) -> int | None:
    """Processor time of all that ever ran in them; None: the kernel does not count it there."""
    for folder in (Path(group["folder"]) for group in made):
        if (usec := _counts(folder / "cpu.stat").get("usage_usec")) is not None:
            return usec * 1000
        if (said := _said(folder / "cpuacct.usage").strip()).isdigit():
            return int(said)
    return None


def memory_bytes(made: Sequence[Group]) -> int | None:
    """Memory in use in them, without file cache that could be freed; None: it is not counted there."""
    for folder in (Path(group["folder"]) for group in made):
        for name, freeable in (("memory.current", "inactive_file"), ("memory.usage_in_bytes", "total_inactive_file")):
            if (said := _said(folder / name).strip()).isdigit():
                return max(0, int(said) - _counts(folder / "memory.stat").get(freeable, 0))
    return None


# --- the kernel's files -----------------------------------------------------------------------------------------------


def _groups_of(own: Path) -> Iterator[tuple[list[str], str]]:
    """Controllers (none: version 2) and path of each group that this process is in."""
    for line in _said(own / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        yield [name for name in controllers.split(",") if name], path


def _mounts(own: Path) -> Iterator[tuple[str, list[str], str, Path]]:
    """Kind, controllers, the path inside that is mounted, and where, of each hierarchy that is mounted."""
    for line in _said(own / "mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            yield kind, options.split(","), before.split()[3], Path(before.split()[4])


def _inside(folder: Path, root: str, path: str) -> Path:
    """The folder of a group whose hierarchy is mounted in this folder, from `root` on; outside of that: that root."""
    relative = os.path.relpath(path, root)
    return folder if relative.startswith("..") else folder / relative


def _second(top: Path, own: Path) -> dict[str, Path] | None:
    """Finds the parent for groups of version 2: the nearest at or above our own that gives controllers on. A group that
    gives none is told to if it is our own or right above, as systemd delegates; the rest belongs to the system.
    """
    above = [own, *(at for at in own.parents if at == top or top in at.parents)]
    for distance, at in enumerate(above):
        wanted = [name for name in CONTROLLERS if name in _said(at / "cgroup.controllers").split()]
        if wanted and distance < 2 and not _said(at / "cgroup.subtree_control").split():
            with contextlib.suppress(OSError):  # processes are in it, or it is not ours
                _set(at / "cgroup.subtree_control", " ".join(f"+{name}" for name in wanted))
        given = _said(at / "cgroup.subtree_control").split()
        found = [name for name in CONTROLLERS if name in given]
        if "memory" in found and _can_have(at):
            return dict.fromkeys(found, at)
    return None


def _can_have(folder: Path) -> bool:
    """True if a group can be made there."""
    probe = folder / f"windrow-probe-{uuid.uuid4().hex[:12]}"
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError:
        return False
    return True


def _members(group: Group) -> list[int]:
    return [int(pid) for pid in _said(Path(group["folder"], "cgroup.procs")).split()]


def _counts(path: Path) -> dict[str, int]:
    return {key: int(value) for key, value in (line.split() for line in _said(path).splitlines())}


def _said(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _set(path: Path, value: int | str) -> None:
    with open(path, "r+") as file:  # the kernel made it: one that lacks is not made here
        file.write(str(value))
