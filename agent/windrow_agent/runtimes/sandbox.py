"""What a process workload is started with: its command line, environment, limits and, where it works, bubblewrap.

Bubblewrap gives it own process, IPC and host-name spaces, a read-only system and no sight of the agent's folder, so
that keys stay hidden. Where bubblewrap does not start, the workload is an ordinary process tree of this user.
"""

import functools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from windrow_agent.core import devices
from windrow_agent.host import addresses
from windrow_agent.runtimes import shared_memory, shim
from windrow_agent.runtimes.limits import Group, has_memory
from windrow_proto import checkpoints, volumes
from windrow_proto.model import WorkloadSpec

SEARCH_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROBES: Final = 5
PROBE_S: Final = 5.0
"""Bubblewrap starts in milliseconds; one that needs longer is of no use."""
OPEN_FILES: Final = 65_536
PROCESSES_MAX: Final = 8_192
"""Of the agent's user, the agent and its other workloads included, and no limit to root: the kernel counts it so."""
NICE: Final = 5
"""So that heartbeats are answered while a workload uses every core."""
STAY_UP: Final = ("sleep", "2147483647")
"""What runs when nothing is asked for: it stays until it is deleted."""

INTERFACES: Final = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME")
"""Where PyTorch's transports look for the interface that leads to the other ranks; by the host's name they find
another one, or none."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a workload has beyond the rest. env: wins over all else; seen: folders that stay visible to it;
    shares_memory: it meets processes of this host in /dev/shm."""

    env: Mapping[str, str] = field(default_factory=dict)
    seen: tuple[Path, ...] = ()
    shares_memory: bool = False


NOTHING_MORE: Final = Told()


@dataclass(frozen=True, slots=True)
class Sandbox:
    """How workloads are wrapped on this host. bwrap: its path, None where it does not start."""

    bwrap: str | None
    hidden: Path

    def wrap(
        self,
        argv: list[str],
        work: Path,
        home: Path,
        tmp: Path,
        interpreters: Path,
        seen: tuple[Path, ...] = (),
        memory: Path | None = None,
        beside: int | None = None,
        mounts: Sequence[tuple[volumes.Mount, Path]] = (),
    ) -> list[str]:
        """The command line that runs `argv` in `work`, seeing nothing else of the hidden folder but `seen`.

        memory: what it has for /dev/shm; None: the host's.
        mounts: volumes, and where they are here.
        beside: a process in a sandbox that runs already, whose processes this one sees, and they it: engines find
        theirs so (Ray a node to connect to by looking at the processes around it).
        """
        if self.bwrap is None:
            return argv
        binds = [part for path in (work, home, *seen) for part in ("--bind", str(path), str(path))]
        binds += ["--ro-bind", str(interpreters), str(interpreters)]
        binds += [] if memory is None else ["--bind", str(memory), str(shared_memory.FOLDER)]
        binds += _mounted(mounts)
        before, spaces = ([], ["--unshare-pid"]) if beside is None else _joined(beside)
        return [
            *before,
            *(self.bwrap, "--json-status-fd", str(shim.STATUS_FD)),
            *("--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc"),
            *("--bind", str(tmp), "/tmp", "--tmpfs", str(self.hidden), *binds),
            *(*spaces, "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--chdir", str(work)),
            *("--", *argv),
        ]


VOLUMES: Final = "volumes"
"""Beside the working folder of a workload: a folder for each of its volumes."""
OWN_MOUNTS: Final = "/mnt"
"""Where a sandbox can have paths of its own: its other folders are the host's, and cannot be written to."""


def make_volumes(folder: Path, spec: WorkloadSpec) -> None:
    """Folders for its volumes; a path below the working folder of a container leads to one from this working folder."""
    for mount in spec.volumes:
        place = folder / VOLUMES / mount.name
        place.mkdir(parents=True, exist_ok=True)
        inside = mount.path.removeprefix(f"{volumes.WORKSPACE}/")
        if inside != mount.path:
            link = folder / "work" / inside
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(place)


def mounts_of(record: Mapping[str, Any]) -> tuple[volumes.Mount, ...]:
    """The volumes of a workload whose specification was kept as this record."""
    return tuple(volumes.Mount(**one) for one in record.get("volumes", ()))


def _mounted(mounts: Sequence[tuple[volumes.Mount, Path]]) -> list[str]:
    """Flags that show volumes where they are, and below /mnt, if it was asked for, by their own path."""
    found: list[str] = []
    own = [(one, place) for one, place in mounts if one.path.startswith(f"{OWN_MOUNTS}/")]
    found += ["--tmpfs", OWN_MOUNTS] if own else []
    at = [(one, place, str(place)) for one, place in mounts] + [(one, place, one.path) for one, place in own]
    for one, place, path in at:
        found += ["--ro-bind" if one.read_only else "--bind", str(place), path]
    return found


def _joined(pid: int) -> tuple[list[str], list[str]]:
    """What opens the process space of this process before bubblewrap runs, and bubblewrap's flags to join it. Its user
    space comes along where it has one of its own: root's sandboxes have none."""
    opened = {"--pidns": f"8</proc/{pid}/ns/pid"}
    if _space(pid, "user") != _space(os.getpid(), "user"):
        opened["--userns"] = f"9</proc/{pid}/ns/user"
    flags = [part for flag, where in opened.items() for part in (flag, where[0])]
    return ["/bin/sh", "-c", f'exec {" ".join(opened.values())}; exec "$@"', "windrow"], flags


def inner(outer: int) -> int | None:
    """A process inside the sandbox whose bubblewrap is `outer`; None: there is none."""
    own = _space(os.getpid(), "pid")
    return next((pid for pid in shim.below(outer) if _space(pid, "pid") not in (own, "")), None)


def _space(pid: int, kind: str) -> str:
    """Which name space a process is in, empty where it has ended or may not be looked at."""
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}")
    except OSError:
        return ""


def find_sandbox(hidden: Path, is_wanted: bool = True) -> Sandbox:
    """Look for bubblewrap and start it to see whether it works here."""
    found = shutil.which("bwrap", path=SEARCH_PATH) if is_wanted else None
    return Sandbox(found if found and _starts(found) else None, hidden)


@functools.cache
def _starts(bwrap: str) -> bool:
    probe = [
        bwrap,
        "--json-status-fd",
        "1",
        "--ro-bind",
        "/",
        "/",
        "--dev-bind",
        "/dev",
        "/dev",
        "--proc",
        "/proc",
        "--tmpfs",
        "/tmp",
    ]
    probe += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--", "/bin/sh", "-c", "exit 0"]
    for _ in range(PROBES):  # shim.is_unmade
        try:
            done = subprocess.run(probe, capture_output=True, timeout=PROBE_S, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return False
        if done.returncode == 0 and shim.BEGAN in done.stdout:
            return True
    return False


def interpreter_folder(folder: Path) -> Path:
    """A folder with `python` and `python3` for the end of the search path, where the system has none of that name.

    They lead to the interpreter that runs the agent, without the agent's own packages.
    """
    base = str(getattr(sys, "_base_executable", "") or sys.executable)
    target = os.path.realpath(base)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("python", "python3"):
        link = folder / name
        if not link.is_symlink() or os.readlink(link) != target:
            # Put in place at once: workloads that are prepared together all do this.
            made = folder / f".{name}-{threading.get_ident()}"
            made.unlink(missing_ok=True)
            made.symlink_to(target)
            made.replace(link)
    return folder


def environment(spec: WorkloadSpec, home: Path, tmp: Path, interpreters: Path) -> dict[str, str]:
    """The whole environment of a workload: nothing is inherited; what the renter set wins, save the GPUs."""
    given = devices.by_id(spec)
    threads = str(max(1, spec.cpu_milli // 1000)) if spec.cpu_milli else ""
    own: Mapping[str, str] = {
        "PATH": f"{SEARCH_PATH}:{interpreters}",
        "HOME": str(home),
        "TMPDIR": str(tmp),
        "CKPT_DIR": str(home.parent / "work" / checkpoints.FOLDER),
        **{volumes.variable(one.name): str(home.parent / VOLUMES / one.name) for one in spec.volumes},
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",  # a log line is seen when it is written, not when a buffer is full
        # Compiled files are no result to bring back; those of what is installed are read, or Ray would need longer to
        # be compiled by each of its processes than these wait for each other.
        "PYTHONDONTWRITEBYTECODE": "1",
        **({"OMP_NUM_THREADS": threads} if threads else {}),
        **({"PORT": str(spec.ports[0])} if spec.ports else {}),
        **(dict.fromkeys(INTERFACES, addresses().get(spec.address, "")) if spec.address else {}),
    }
    fixed = {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(given.nvidia),  # empty hides every GPU
        "ROCR_VISIBLE_DEVICES": ",".join(given.amd),
        "WINDROW_WORKLOAD_ID": spec.workload_id,
        "WINDROW_CLUSTER_ID": spec.cluster_id,
    }
    return {**own, **spec.env, **fixed}


def limits(spec: WorkloadSpec, has_memory_group: bool) -> dict[str, tuple[int, int]]:
    """Resource limits by the names of the `resource` module.

    Where no control group limits memory, each process is by its data segment, and only without GPUs: CUDA reserves far
    more than it uses.
    """
    import resource

    _, files_hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = OPEN_FILES if files_hard == resource.RLIM_INFINITY else min(OPEN_FILES, files_hard)
    found = {"RLIMIT_CORE": (0, 0), "RLIMIT_NOFILE": (files, files)}
    _, processes_hard = resource.getrlimit(resource.RLIMIT_NPROC)
    if processes_hard == resource.RLIM_INFINITY or processes_hard > PROCESSES_MAX:
        found["RLIMIT_NPROC"] = (PROCESSES_MAX, PROCESSES_MAX)
    if spec.memory_bytes and not has_memory_group and not any(slot.gpu_uuid for slot in spec.slots):
        found["RLIMIT_DATA"] = (spec.memory_bytes, spec.memory_bytes)
    return found


def resolve(program: str, env: Mapping[str, str], work: Path) -> bool:
    """Whether a command of this name would be found when started in `work`."""
    if "/" in program:
        return os.access(work / program, os.X_OK)
    return shutil.which(program, path=env.get("PATH", SEARCH_PATH)) is not None


def launch_record(
    sandbox: Sandbox,
    spec: WorkloadSpec,
    argv: tuple[str, ...],
    folder: Path,
    interpreters: Path,
    told: Told = NOTHING_MORE,
    beside: int | None = None,
    groups: Sequence[Group] = (),
) -> dict[str, Any]:
    """What the shim needs to know; `folder` is the workload's own, `beside` a process of it that this one joins."""
    work, home, tmp = folder / "work", folder / "home", folder / "tmp"
    inner_tmp = Path("/tmp") if sandbox.bwrap else tmp
    memory = shared_memory.of(spec.workload_id)
    mounts = [(one, folder / VOLUMES / one.name) for one in spec.volumes]
    return {
        "argv": sandbox.wrap(list(argv), work, home, tmp, interpreters, told.seen, memory, beside, mounts),
        "program": argv[0],
        "env": {**environment(spec, home, inner_tmp, interpreters), **told.env},
        "is_sandboxed": sandbox.bwrap is not None,
        "cwd": str(work),
        "limits": limits(spec, has_memory(groups)),
        "groups": list(groups),
        "nice": NICE,
        "log_cap_bytes": spec.log_cap_bytes,
    }
