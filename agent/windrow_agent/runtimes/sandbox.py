"""Prepares the start of a process workload: its command line, environment, limits, and its sandbox.

Bubblewrap makes the sandbox: own user, process, IPC, host-name and network namespaces, no rights, a filter of system
calls, and a root of its own in which there is what programs need and nothing of this host's users, services or agent.
Without bubblewrap there are no process workloads, unless the host's owner wants them without a sandbox.
"""

import fcntl
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from windrow_agent.core import devices, seccomp_filter
from windrow_agent.host.psutil_reader import addresses
from windrow_agent.runtimes import process_network, sandbox_root, shared_memory, shim
from windrow_agent.runtimes.cgroups import Group, has_memory
from windrow_agent.runtimes.tun_device import device_name
from windrow_proto import checkpoints, volumes
from windrow_proto.errors import InvalidInput, RuntimeUnavailable
from windrow_proto.ids import ClusterId, WorkloadId
from windrow_proto.model import WorkloadSpec

SEARCH_PATH: Final = process_network.SEARCH_PATH
PROBE_S: Final = 20.0
"""For a sandbox to be tried; it takes a fifth of a second."""
WORKLOAD_USER: Final = 65_534
"""The user of workloads on a host whose agent is root: nobody. They see no process and no file of anybody else."""
VARIABLES_MAX: Final = 2_000
"""Of one workload: bubblewrap takes 9,000 words in all."""
OPEN_FILES: Final = 65_536
PROCESSES_MAX: Final = 8_192
"""Of the agent's user, the agent and its other workloads included, and no limit to root: the kernel counts it so."""
NICE: Final = 5
"""So that heartbeats are answered while a workload uses every core."""
PLAIN: Final = "plain"
"""The isolation of processes that have no sandbox, as a host tells it."""
MARK: Final = "WINDROW_WORKLOAD_ID"
"""A variable in the environment of every process of a workload, bubblewrap's own included."""
LEAVE: Final = f'exec {shim.PIDS_FD}<&- {shim.USERS_FD}<&- {shim.INNER_USERS_FD}<&-; exec "$@"'
"""Closes what bubblewrap was given to join a sandbox, and goes on as the command."""
STAY_UP: Final = ("sleep", "2147483647")
"""The command if none is asked for: it stays until it is deleted."""

INTERFACES: Final = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME")
"""The variables in which PyTorch's transports look for the interface that leads to the other ranks; by the host's name
they find another one, or none."""


@dataclass(frozen=True, slots=True)
class SandboxExtras:
    """Additions to a workload. env: wins over all else; seen: folders that stay visible to it; shares_memory: it meets
    processes of this host in /dev/shm."""

    env: Mapping[str, str] = field(default_factory=dict)
    seen: tuple[Path, ...] = ()
    shares_memory: bool = False


NOTHING_MORE: Final = SandboxExtras()


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The confinement of workloads on this host. bwrap: its path, None where there is no sandbox; why: the reason.

    is_plain: the owner wants processes without one. user: who workloads are; None: the agent's own user. shown: folders
    that the owner lets them read. outward: what leads out of their networks; closed: why those lead nowhere, empty
    where they do.
    """

    bwrap: str | None
    why: str = ""
    is_plain: bool = False
    user: int | None = None
    shown: tuple[Path, ...] = ()
    outward: process_network.Tools = field(default_factory=process_network.Tools)
    closed: str = ""


@dataclass(slots=True)
class _Stage:
    """Names folders of a workload for bubblewrap: by path, or by number where its user cannot come to them."""

    is_wanted: bool
    folders: list[str] = field(default_factory=list)

    def at(self, folder: Path) -> str:
        """The path at which bubblewrap finds this folder."""
        if not self.is_wanted:
            return str(folder)
        self.folders.append(str(folder))
        return f"{shim.STAGE}/{len(self.folders) - 1}"


@dataclass(frozen=True, slots=True)
class SandboxContents:
    """The contents of one workload's sandbox. folder: its own; interpreters: as of interpreter_folder; network: a pid
    in its network; nodes: files in /dev; beside: a process in its sandbox, whose processes a command joins."""

    spec: WorkloadSpec
    folder: Path
    interpreters: Path
    network: int
    told: SandboxExtras = NOTHING_MORE
    nodes: tuple[str, ...] = ()
    beside: int | None = None

    @property
    def own(self) -> tuple[Path, ...]:
        """The folders that it may write to, at the paths that they have on the host."""
        volumes_ = (self.folder / VOLUMES / one.name for one in self.spec.volumes if not one.read_only)
        return (self.folder / "work", self.folder / "home", *volumes_, *self.told.seen)


def confined(sandbox: Sandbox, contents: SandboxContents, env: Mapping[str, str]) -> dict[str, Any]:
    """The record by which the shim starts bubblewrap. env: of the workload, which bubblewrap itself never has. Raises
    InvalidInput for an invalid variable."""
    stage = _Stage(sandbox.user is not None)
    flags = [*_spaces(contents.beside), *_files(sandbox, contents, stage), *_environment(env)]
    return {
        "options": [*flags, "--chdir", str(contents.folder / "work")],
        "filter": (seccomp_filter.program(platform.machine()) or b"").hex(),
        "making": (seccomp_filter.program(platform.machine(), is_making=True) or b"").hex(),
        "user": sandbox.user,
        "groups": sandbox_root.groups_of(contents.nodes),
        "stage": stage.folders,
        "network": contents.network,
        "beside": contents.beside,
    }


def _spaces(beside: int | None) -> list[str]:
    """Flags for namespaces and rights. A joined sandbox has its user twice: as root of what bubblewrap made, and as
    itself within, where it ends."""
    common = ["--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent", "--cap-drop", "ALL"]
    common += ["--seccomp", str(shim.FILTER_FD), "--json-status-fd", str(shim.STATUS_FD)]
    if beside is None:
        user = str(sandbox_root.USER)
        return [*common, "--unshare-user", "--disable-userns", "--unshare-pid", "--uid", user, "--gid", user]
    joined = {"--pidns": shim.PIDS_FD, "--userns": shim.USERS_FD, "--userns2": shim.INNER_USERS_FD}
    return [*common, *(part for flag, at in joined.items() for part in (flag, str(at))), "--uid", "0", "--gid", "0"]


def _files(sandbox: Sandbox, contents: SandboxContents, stage: _Stage) -> list[str]:
    """Flags for the private root."""
    folder, spec, told = contents.folder, contents.spec, contents.told
    host_name = spec.workload_id.replace("_", "-")[:24].rstrip("-")
    names = sandbox_root.write_settings(folder / "etc", host_name, spec.address, folder / "home")
    settings, memory = stage.at(folder / "etc"), shared_memory.of(spec.workload_id)
    shown = [(stage.at(one), one) for one in (*sandbox.shown, *_base_prefix())]
    flags = ["--hostname", host_name, "--proc", "/proc", "--dev", "/dev", *sandbox_root.programs(shown)]
    flags += [part for name in names for part in ("--ro-bind", f"{settings}/{name}", f"/etc/{name}")]
    flags += [part for node in contents.nodes for part in ("--dev-bind-try", node, node)]
    if told.shares_memory:
        flags += ["--bind", str(shared_memory.FOLDER), str(shared_memory.FOLDER)]
    elif memory is not None:
        flags += ["--bind", stage.at(memory), str(shared_memory.FOLDER)]
    flags += ["--bind", stage.at(folder / "tmp"), "/tmp"]
    flags += [part for one in contents.own for part in ("--bind", stage.at(one), str(one))]
    flags += ["--ro-bind", stage.at(contents.interpreters), str(contents.interpreters)]
    ways = (*sandbox_root.PROGRAMS, "/var", volumes.WORKSPACE)
    taken = {
        _top(one) for one in (*map(Path, ways), *contents.own, contents.interpreters, *(place for _, place in shown))
    }
    for mount in spec.volumes:
        place = folder / VOLUMES / mount.name
        if mount.read_only:
            flags += ["--ro-bind", stage.at(place), str(place)]
        if _top(Path(mount.path)) not in taken:
            flags += ["--ro-bind" if mount.read_only else "--bind", stage.at(place), mount.path]
    return [*flags, "--remount-ro", "/dev", "--remount-ro", "/"]


def _top(path: Path) -> str:
    """The folder of the root that it lies in. A volume whose path begins with one that is the host's, or the
    workload's own, has no place there."""
    return path.parts[1]


def _environment(env: Mapping[str, str]) -> list[str]:
    """Flags for the workload's environment: its words are ended by NUL, so that none may have one."""
    if len(env) > VARIABLES_MAX:
        raise InvalidInput(f"A process workload has at most {VARIABLES_MAX:,} variables of environment.", subject="env")
    for name, value in env.items():
        if not name or "=" in name or "\0" in name + value:
            raise InvalidInput(f"{name[:64]!r} cannot be a variable of environment.", subject="env")
    return ["--clearenv", *(part for name, value in env.items() for part in ("--setenv", name, value))]


VOLUMES: Final = "volumes"
"""Beside the working folder of a workload: a folder for each of its volumes."""


def make_volumes(folder: Path, spec: WorkloadSpec) -> None:
    """Folders for its volumes; a path below the working folder of a container leads to one from this working folder."""
    for mount in spec.volumes:
        place = folder / VOLUMES / mount.name
        place.mkdir(parents=True, exist_ok=True)
        contents = mount.path.removeprefix(f"{volumes.WORKSPACE}/")
        if contents != mount.path:
            link = folder / "work" / contents
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(place)


def mounts_of(record: Mapping[str, Any]) -> tuple[volumes.Mount, ...]:
    """The volumes of a workload whose specification was kept as this record."""
    return tuple(volumes.Mount(**one) for one in record.get("volumes", ()))


def inner(outer: int) -> int | None:
    """A process inside the sandbox whose bubblewrap is `outer`, once that is whole; None: there is none."""
    own = os.readlink("/proc/self/ns/pid")
    return next((pid for pid in shim.below(outer) if _is_within(pid, own)), None)


def _is_within(pid: int, own: str) -> bool:
    """True if a process is in another pid namespace than this one, and no longer in the user namespace that made it,
    which is bubblewrap's last step."""
    try:
        if os.readlink(f"/proc/{pid}/ns/pid") == own:
            return False
        with open(f"/proc/{pid}/ns/pid") as space:
            maker = fcntl.ioctl(space, shim.NS_GET_USERNS)
        try:
            return os.fstat(maker).st_ino != os.stat(f"/proc/{pid}/ns/user").st_ino
        finally:
            os.close(maker)
    except OSError:
        return False


def find_sandbox(hidden: Path, is_wanted: bool = True, shown: tuple[Path, ...] = ()) -> Sandbox:
    """Look for bubblewrap, and start it as for a workload to see whether it works here. Blocking.

    hidden: a folder that no workload may see; shown: those that the owner lets them read.
    """
    if not is_wanted:
        return Sandbox(None, is_plain=True)
    bwrap = shutil.which("bwrap", path=SEARCH_PATH)
    why = sandbox_root.refusal((hidden,), shown)
    if bwrap is None:
        why = "bubblewrap is missing (on Debian: apt-get install bubblewrap)"
    if seccomp_filter.program(platform.machine()) is None:
        why = f"there is no filter of system calls for processors of the kind {platform.machine()}"
    if why:
        return Sandbox(None, why)
    user = WORKLOAD_USER if os.geteuid() == 0 else None
    return _tried(Sandbox(bwrap, user=user, shown=shown, outward=process_network.tools()))


def _tried(sandbox: Sandbox) -> Sandbox:
    """The same as what has become of a workload that does nothing says."""
    spec = WorkloadSpec(WorkloadId("trial"), ClusterId("trial"), (), "process")
    with tempfile.TemporaryDirectory(prefix="windrow-trial-") as scratch:
        folder = Path(scratch)
        try:
            make_folders(folder, spec, sandbox.user)
            network = process_network.ensure(folder, b"WINDROW_TRIAL=1", sandbox.user, sandbox.outward)
            contents = SandboxContents(spec, folder, interpreter_folder(folder / "bin"), network.pid)
            record = launch_record(sandbox, contents, ("/bin/sh", "-c", "exit 0"), ())
            shim.write_whole(scratch, "launch.json", record)
            command = [sys.executable, "-I", "-S", str(shim.__file__), "exec", str(folder / "launch.json")]
            env = {"PATH": SEARCH_PATH}
            done = subprocess.run(command, capture_output=True, cwd="/", env=env, timeout=PROBE_S, check=False)
        except (OSError, subprocess.TimeoutExpired, RuntimeUnavailable) as error:
            return Sandbox(None, getattr(error, "detail", str(error)))
        finally:
            process_network.end(folder)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["bubblewrap does not start here"]
        return Sandbox(None, said[-1][:200])
    return replace(sandbox, closed=network.why)


def make_folders(folder: Path, spec: WorkloadSpec, user: int | None) -> None:
    """The folders that a workload may write to. user: whose they are."""
    for name in ("work", "home", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    make_volumes(folder, spec)
    if user is not None:
        for place in (folder / "work", folder / "home", folder / "tmp", *(folder / VOLUMES).glob("*")):
            os.chown(place, user, user)


def interpreter_folder(folder: Path) -> Path:
    """A folder with `python` and `python3` for the end of the search path, where the system has none of that name.

    They lead to the interpreter that runs the agent, without the agent's own packages.
    """
    base = str(getattr(sys, "_base_executable", "") or sys.executable)
    target = os.path.realpath(base)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    for name in ("python", "python3"):
        link = folder / name
        if not link.is_symlink() or os.readlink(link) != target:
            # Put in place at once: workloads that are prepared together all do this.
            made = folder / f".{name}-{threading.get_ident()}"
            made.unlink(missing_ok=True)
            made.symlink_to(target)
            made.replace(link)
    return folder


def _base_prefix() -> tuple[Path, ...]:
    """The folder of the interpreter, if that is not among the host's programs."""
    base = Path(os.path.realpath(sys.base_prefix))
    return () if sandbox_root.is_seen(f"{base}/", ()) else (base,)


def environment(spec: WorkloadSpec, home: Path, tmp: Path, interpreters: Path, interface: str) -> dict[str, str]:
    """The whole environment of a workload: nothing is inherited; what the renter set wins, save the GPUs. interface: by
    which it meets the other members, empty where it has none."""
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
        **(dict.fromkeys(INTERFACES, interface) if spec.address else {}),
    }
    fixed = {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(given.nvidia),  # empty hides every GPU
        "ROCR_VISIBLE_DEVICES": ",".join(given.amd),
        MARK: spec.workload_id,
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


def search(spec: WorkloadSpec, contents: SandboxContents) -> dict[str, str]:
    """The search path for commands of this workload."""
    return {"PATH": spec.env.get("PATH", f"{SEARCH_PATH}:{contents.interpreters}")}


def resolve(program: str, env: Mapping[str, str], sandbox: Sandbox, contents: SandboxContents) -> bool:
    """True if a command of this name would be found when it is started there."""
    work = contents.folder / "work"
    if "/" in program:
        path = os.path.normpath(work / program)
        return os.access(path, os.X_OK) and _is_seen(path, sandbox, contents)
    found = (shutil.which(program, path=folder) for folder in env.get("PATH", SEARCH_PATH).split(os.pathsep) if folder)
    return any(path is not None and _is_seen(path, sandbox, contents) for path in found)


def _is_seen(path: str, sandbox: Sandbox, contents: SandboxContents) -> bool:
    shown = (*contents.own, contents.interpreters, *sandbox.shown, *_base_prefix())
    return sandbox.bwrap is None or sandbox_root.is_seen(path, shown)


def launch_record(
    sandbox: Sandbox, contents: SandboxContents, argv: tuple[str, ...], groups: Sequence[Group]
) -> dict[str, Any]:
    """The launch record that the shim reads."""
    spec, folder = contents.spec, contents.folder
    home, tmp = folder / "home", Path("/tmp") if sandbox.bwrap else folder / "tmp"
    interface = device_name(spec.address) if sandbox.bwrap and spec.peers else addresses().get(spec.address, "")
    env = {**environment(spec, home, tmp, contents.interpreters, interface), **contents.told.env}
    if any("\0" in word for word in argv):
        raise InvalidInput("A command has no NUL in it.", subject="argv")
    joining = ("/bin/sh", "-c", LEAVE, "windrow") if contents.beside is not None else ()
    return {
        "argv": [sandbox.bwrap, "--args", str(shim.ARGUMENTS_FD), "--", *joining, *argv] if sandbox.bwrap else [*argv],
        "program": argv[0],
        "env": {MARK: spec.workload_id} if sandbox.bwrap else env,
        "sandbox": confined(sandbox, contents, env) if sandbox.bwrap else None,
        "cwd": "/" if sandbox.bwrap else str(folder / "work"),
        "limits": limits(spec, has_memory(groups)),
        "groups": list(groups),
        "holders": process_network.pids(folder) if contents.beside is None else [],
        "nice": NICE,
        "log_cap_bytes": spec.log_cap_bytes,
    }
