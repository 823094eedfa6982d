"""Translates a workload to the terms of Docker, and Docker's answers back: names, labels, limits, times. It opens no
connection itself."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from windrow_agent.core import devices, egress, image_requirements
from windrow_agent.core.devices import Devices
from windrow_agent.runtimes import cgroups as limits_of
from windrow_agent.runtimes.port import Run, RunState
from windrow_agent.runtimes.sandbox import INTERFACES, STAY_UP
from windrow_agent.runtimes.shim import OOM_SCORE, boot_id
from windrow_agent.runtimes.tun_device import device_name
from windrow_proto import checkpoints, volumes
from windrow_proto.errors import ImageUnavailable, WorkloadFailed
from windrow_proto.ids import ClusterId, GpuUuid, HostId, SlotId, WorkloadId
from windrow_proto.model import SlotGrant, WorkloadSpec
from windrow_proto.units import SECOND, parse_time

WORKSPACE: Final = volumes.WORKSPACE
WORKLOAD: Final = "windrow.workload"
CLUSTER: Final = "windrow.cluster"
HOST: Final = "windrow.host"
TOKEN: Final = "windrow.token"
SLOTS: Final = "windrow.slots"
LOG_CAP: Final = "windrow.log_cap"
DISK: Final = "windrow.disk"
FILES: Final = "windrow.files"
IMAGE: Final = "windrow.image"
NAME: Final = "docker"
TMP: Final = "/tmp"
"""A volume of the container's own: some images have no such folder."""
BRIDGE: Final = {
    "com.docker.network.bridge.name": egress.BRIDGE,
    "com.docker.network.bridge.enable_icc": "false",
}
"""Of the network of all workloads: a bridge that the fence knows by name, whose containers do not see each other."""
LOG_FILE: Final = {"max-size": "256m", "max-file": "2"}
"""Of the daemon's own file, whose JSON makes short lines several times longer; the cap is applied when reading."""


def container_name(spec: WorkloadSpec) -> str:
    """Named after the workload and its highest token: two grants never share a container."""
    return f"windrow-{spec.workload_id}-t{max((slot.token for slot in spec.slots), default=0)}"


def volume_name(workload_id: WorkloadId, name: str = "") -> str:
    """The daemon's volume that is /workspace, or that holds the renter's of this name."""
    return f"windrow-{workload_id}" + (f"-v-{name}" if name else "")


def tmp_volume_name(workload_id: WorkloadId) -> str:
    """The daemon's volume that is /tmp."""
    return f"{volume_name(workload_id)}-tmp"


def is_volume_of(workload_id: WorkloadId, name: str) -> bool:
    """True if the daemon's volume of this name is one of a workload's."""
    own = volume_name(workload_id)
    return name in (own, tmp_volume_name(workload_id)) or name.startswith(f"{own}-v-")


def volumes_of(container: dict[str, Any], known: Iterable[str]) -> list[str]:
    """Which of the daemon's volumes a container, as listed, can fill: a workload's own, and those of its image, which
    have names of the daemon's."""
    workload_id = WorkloadId(str((container.get("Labels") or {}).get(WORKLOAD, "")))
    mounted = {str(one.get("Name")) for one in container.get("Mounts") or [] if isinstance(one, dict)}
    return sorted(name for name in known if name in mounted or is_volume_of(workload_id, name))


def labels(spec: WorkloadSpec, host_id: HostId, log_cap_bytes: int, disk_bytes: int, files: int) -> dict[str, str]:
    """The labels by which an agent recognises a container that it finds."""
    slots = [[slot.slot_id, slot.token, slot.gpu_uuid] for slot in spec.slots]
    return {
        WORKLOAD: spec.workload_id,
        CLUSTER: spec.cluster_id,
        HOST: host_id,
        TOKEN: str(max((slot.token for slot in spec.slots), default=0)),
        SLOTS: json.dumps(slots),
        LOG_CAP: str(log_cap_bytes),
        DISK: str(disk_bytes),
        FILES: str(files),
        IMAGE: spec.image,
    }


def image_of(config: dict[str, Any]) -> str:
    """The name by which a container's image was asked for; it was created from an id. config: as inspected."""
    return str((config.get("Labels") or {}).get(IMAGE) or config.get("Image", ""))


KILLED: Final = 137
"""The exit code of what SIGKILL ended."""
REASON_S, REASON_LATE_NS = 0.5, 8 * SECOND
"""A pause before asking again why a container was killed, and how long after its end the reason may still be missing:
a busy machine's daemon was seen to need more than half a second."""
CDI: Final = "nvidia.com/gpu="
"""How NVIDIA's toolkit calls the devices that it describes for all container runtimes (nvidia-ctk cdi generate)."""


def cdi_names(gpus: Iterable[str], known: frozenset[str]) -> list[str]:
    """These cards as the daemon knows them by CDI; none unless it knows all of them, by their ids."""
    names = [f"{CDI}{gpu}" for gpu in gpus]
    return names if names and known.issuperset(names) else []


def entrypoint(spec: WorkloadSpec) -> list[str] | None:
    """The program that the command is given to; None: the image's own ENTRYPOINT."""
    return None if spec.entrypoint is None else [spec.entrypoint]  # one empty word is Docker's way to say: none


def command(spec: WorkloadSpec, image: dict[str, Any]) -> list[str] | None:
    """The command, or the arguments of the entry point; None: what the image, as inspected, says. A container that has
    neither stays up."""
    config = image.get("Config") or {}
    has_own = bool(spec.entrypoint) if spec.entrypoint is not None else config.get("Cmd") or config.get("Entrypoint")
    return list(spec.argv) or (None if has_own else list(STAY_UP))


def working_folder(spec: WorkloadSpec, image: dict[str, Any]) -> str:
    """The folder in which the program starts: /workspace, or the image's WORKDIR. image: as inspected."""
    own = str((image.get("Config") or {}).get("WorkingDir") or "/")
    return WORKSPACE if spec.starts_in_workspace or own == "/" else own


def environment(spec: WorkloadSpec, image: dict[str, Any], cdi: frozenset[str]) -> dict[str, str]:
    """The environment: the renter's values win, save those of GPUs and of the user. image: as inspected; cdi: the
    devices that the daemon knows."""
    nvidia = devices.by_id(spec).nvidia
    gpus = "" if cdi_names(nvidia, cdi) else ",".join(nvidia)  # given once, and not by NVIDIA's hook as well
    interfaces = dict.fromkeys(INTERFACES, device_name(spec.address)) if spec.peers else {}
    return {
        "PYTHONUNBUFFERED": "1",
        **_of_user(image.get("Config") or {}),
        "CKPT_DIR": f"{WORKSPACE}/{checkpoints.FOLDER}",
        **{volumes.variable(one.name): one.path for one in spec.volumes},
        **interfaces,
        **spec.env,
        "WINDROW_WORKLOAD_ID": spec.workload_id,
        "WINDROW_CLUSTER_ID": spec.cluster_id,
        # `void` keeps NVIDIA's hook from injecting every card into an image that asks for `all`.
        "NVIDIA_VISIBLE_DEVICES": gpus or "void",
    }


def user_of(config: dict[str, Any]) -> str:
    """The user of an image, by its configuration, without the group."""
    return str(config.get("User") or "root").partition(":")[0]


def is_root(user: str) -> bool:
    """True for root, by name or number."""
    return user in ("root", "0")


def _of_user(config: dict[str, Any]) -> dict[str, str]:
    """The user's variables, as a login would set them; those of the image go before. HOME comes from the image's
    /etc/passwd by the daemon, but a user that is a number may have no line there."""
    user = user_of(config)
    name = "user" if user.isdecimal() and not is_root(user) else "root" if is_root(user) else user
    found = {"USER": name, "LOGNAME": name}
    if user.isdecimal() and not is_root(user):
        found["HOME"] = TMP
    said = {str(one).partition("=")[0] for one in config.get("Env") or []}
    return {key: value for key, value in found.items() if key not in said}


DriverOf = Callable[[frozenset[str]], image_requirements.Driver]
"""Returns the facts of the driver of these cards."""


def no_driver(uuids: frozenset[str]) -> image_requirements.Driver:
    """Nothing is known."""
    del uuids
    return image_requirements.Driver()


def cards(spec: WorkloadSpec) -> frozenset[str]:
    """The cards and slices that it rents."""
    return frozenset(slot.gpu_uuid for slot in spec.slots if slot.gpu_uuid)


def check_driver(spec: WorkloadSpec, image: dict[str, Any] | None, driver_of: DriverOf) -> None:
    """Raise WorkloadFailed for an image, as inspected, that asks for another driver than its cards have."""
    if image is None or not (uuids := cards(spec)):
        return
    why = image_requirements.refusal(image.get("Config") or {}, spec.env, driver_of(uuids))
    if why:
        raise WorkloadFailed(f"The image {spec.image!r} does not fit this host: {why}.", subject=spec.workload_id)


def may_go_on(container: dict[str, Any]) -> bool:
    """True if the container has not ended. Podman, asked to follow the log of an ended one, gives a part of it and
    stops."""
    return container["State"]["Status"] in ("created", "running", "paused", "restarting")


def workload_of(container: dict[str, Any]) -> WorkloadId:
    """The workload of this container."""
    return WorkloadId(container["Config"]["Labels"][WORKLOAD])


@dataclass(frozen=True, slots=True)
class StartNote:
    """The monotonic time just before a start, and the boot of the kernel it counts in."""

    boot_id: str
    monotonic_ns: int


def write_start(path: Path, monotonic_ns: int) -> None:
    """Keep the first start of this boot that was noted."""
    noted = read_start(path)
    if noted is None or noted.boot_id != boot_id():
        _note(path, StartNote(boot_id(), monotonic_ns))


def correct_start(path: Path, container: dict[str, Any], now_ns: int, wall_ns: int) -> None:
    """Move the noted start to when the container began, which is after it was asked to. now_ns, wall_ns: one moment,
    at which it was running; a wall clock that jumped in between changes nothing beyond that stretch."""
    start, began_wall_ns = read_start(path), _time(container["State"].get("StartedAt"))
    if start is None or start.boot_id != boot_id() or began_wall_ns is None:
        return
    began_ns = max(start.monotonic_ns, now_ns - max(0, wall_ns - began_wall_ns))
    _note(path, StartNote(start.boot_id, began_ns))


def _note(path: Path, start: StartNote) -> None:
    """Whole or not at all, and not synced: a power cut ends the boot in which alone it means anything."""
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps({"boot_id": start.boot_id, "monotonic_ns": start.monotonic_ns}))
    beside.replace(path)


def read_start(path: Path) -> StartNote | None:
    """The note of a start, if it is whole."""
    try:
        record = json.loads(path.read_bytes())
        return StartNote(str(record["boot_id"]), int(record["monotonic_ns"]))
    except (OSError, ValueError, OverflowError, KeyError, TypeError):
        return None


def read_note(path: Path) -> dict[str, Any]:
    """A note of ours; empty where there is none."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def run_of(container: dict[str, Any], start: StartNote | None, now_ns: int, wall_ns: int) -> Run:
    """A container as its inspection and our note of its start show it.

    While it runs, time is monotonic. Docker knows its end by the wall clock only: that difference counts, but never
    more than the monotonic time since the start; after a reboot it is all there is, and then it counts as it is.
    """
    state, found = container["State"], container["Config"]["Labels"]
    slots = tuple(SlotGrant(SlotId(s), int(t), GpuUuid(g)) for s, t, g in json.loads(found.get(SLOTS, "[]")))
    run = Run(workload_of(container), ClusterId(found.get(CLUSTER, "")), slots, NAME, RunState.CREATED)
    began_wall_ns, ended_wall_ns = _time(state.get("StartedAt")), _time(state.get("FinishedAt"))
    if began_wall_ns is None:
        return run
    is_same_boot = start is not None and start.boot_id == boot_id()
    since_ns = max(0, now_ns - start.monotonic_ns) if start is not None and is_same_boot else None
    is_running = state["Status"] in ("running", "paused", "restarting")
    by_wall_ns = max(0, (wall_ns if is_running or ended_wall_ns is None else ended_wall_ns) - began_wall_ns)
    if since_ns is None:
        running_ns = min(by_wall_ns, now_ns) if is_running else by_wall_ns
    else:
        running_ns = since_ns if is_running else min(by_wall_ns, since_ns)
    return Run(
        *(run.workload_id, run.cluster_id, slots, NAME),
        state=RunState.RUNNING if is_running else RunState.EXITED,
        started_wall_ns=began_wall_ns,
        running_ns=running_ns,
        exit_code=None if is_running else int(state.get("ExitCode", 0)),
        ports=_ports(container) if is_running else {},
        detail="" if is_running else _why(container),
    )


def may_lack_reason(container: dict[str, Any], wall_ns: int) -> bool:
    """True if Docker may still report that the container ran out of memory: it does so some time after the end."""
    state = container["State"]
    if state.get("Status") != "exited" or state.get("ExitCode") != KILLED or state.get("OOMKilled"):
        return False
    ended_ns = _time(state.get("FinishedAt"))
    has_limit = bool((container.get("HostConfig") or {}).get("Memory"))
    return has_limit and ended_ns is not None and wall_ns - ended_ns < REASON_LATE_NS


def _why(container: dict[str, Any]) -> str:
    """Facts that the daemon has of an end beyond its exit code."""
    if container["State"].get("OOMKilled"):
        return limits_of.out_of_memory(int((container.get("HostConfig") or {}).get("Memory") or 0))
    return str(container["State"].get("Error") or "")[:300]


def _time(text: str | None) -> int | None:
    if not text or text.startswith("0001-"):
        return None
    whole, _, rest = text.rstrip("Z").partition(".")
    digits = rest.split("+")[0].split("-")[0]
    offset = rest[len(digits) :] or "+00:00"
    fraction_ns = int(digits[:9].ljust(9, "0")) if digits else 0
    moment = datetime.fromisoformat(whole + offset)
    return parse_time(moment.isoformat()) // SECOND * SECOND + fraction_ns


def _ports(container: dict[str, Any]) -> dict[str, int]:
    found = container.get("NetworkSettings", {}).get("Ports") or {}
    return {name.split("/")[0]: int(bound[0]["HostPort"]) for name, bound in found.items() if bound}


def networks(container: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The container's own addresses, each with its bridge's."""
    found = (container.get("NetworkSettings", {}).get("Networks") or {}).values()
    return tuple((one["IPAddress"], one.get("Gateway", "")) for one in found if one and one.get("IPAddress"))


def is_own_network(network: dict[str, Any]) -> bool:
    """True if this network, as inspected, is the one that the firewall is around."""
    return (network.get("Options") or {}).get("com.docker.network.bridge.name") == egress.BRIDGE


def published(container: dict[str, Any], port: int) -> tuple[tuple[str, int], ...]:
    """The addresses of this host's loopback at which this port is published."""
    bound = _ports(container).get(str(port))
    return () if bound is None else (("127.0.0.1", bound),)


def host_config(
    spec: WorkloadSpec,
    processors: int,
    memory_bytes: int,
    given: Devices,
    limits: list[dict[str, Any]] | None = None,
    cdi: frozenset[str] = frozenset(),
    caps: tuple[str, ...] = (),
    seccomp: str = "",
    *,
    has_init: bool = False,
) -> dict[str, Any]:
    """The floor of isolation and the limits, as the arguments of the SDK's create_host_config.

    processors, memory_bytes: of this host; more than it has cannot be given. limits: as docker_kind.own_limits; None:
    the daemon's. cdi: the devices it knows by that name. seccomp: the profile of system calls; empty: the daemon's.
    has_init: the daemon has an init to be process 1, which passes signals on and reaps what its children leave.
    """
    memory = limits_of.memory_limit(spec.memory_bytes, memory_bytes)
    gpus = list(given.nvidia)
    named = cdi_names(gpus, cdi)
    by_id = {"Driver": "", "Count": 0, "DeviceIDs": gpus, "Capabilities": [["gpu"]], "Options": {}}
    request = {"Driver": "cdi", "Count": 0, "DeviceIDs": named, "Capabilities": [], "Options": {}} if named else by_id
    return {
        "binds": {
            volume_name(spec.workload_id): {"bind": WORKSPACE, "mode": "rw"},
            tmp_volume_name(spec.workload_id): {"bind": TMP, "mode": "rw"},
            **{
                volume_name(spec.workload_id, one.name): {"bind": one.path, "mode": "ro" if one.read_only else "rw"}
                for one in spec.volumes
            },
        },
        "network_mode": egress.NETWORK,
        "cap_drop": ["ALL"],
        "cap_add": list(caps) or None,
        "security_opt": ["no-new-privileges", *([f"seccomp={seccomp}"] if seccomp else [])],
        "init": has_init or None,
        "shm_size": memory,  # its pages count as the container's own memory
        "tmpfs": {"/run": "rw,nosuid,nodev,size=16m"},
        "pids_limit": limits_of.PROCESSES_MAX,
        "mem_limit": memory,
        "memswap_limit": memory,
        "oom_score_adj": OOM_SCORE,
        "nano_cpus": min(spec.cpu_milli, 1000 * processors) * 1_000_000 or None,
        "port_bindings": dict.fromkeys(spec.ports, ("127.0.0.1", None)),
        "device_requests": [request] if gpus else None,
        "devices": [f"{node}:{node}:rw" for node in given.nodes] or None,
        "log_config": {"type": "json-file", "config": LOG_FILE},
        "restart_policy": {"Name": "no"},
        "ulimits": limits,
    }


def explained(error: Exception) -> str:
    """The daemon's words in an error of the SDK's, cut short."""
    return str(getattr(error, "explanation", None) or error)[:300]


def without_body(text: str) -> str:
    """The daemon's words without what a server said that is no registry: a renter named the server, and reads this."""
    words, mark, _ = text.partition("response body")
    return words + mark


def progress_of(line: dict[str, Any], layers: dict[str, tuple[int, int]]) -> int:
    """The progress after one line of a pull: the share of the bytes known so far that has come, 0 to 1000. Raises
    ImageUnavailable."""
    if "error" in line:
        raise ImageUnavailable(without_body(str(line["error"])[:300]))
    detail = line.get("progressDetail") or {}
    if line.get("id") and detail.get("total"):
        layers[line["id"]] = (int(detail.get("current", 0)), int(detail["total"]))
    total = sum(size for _, size in layers.values())
    return 1000 * sum(done for done, _ in layers.values()) // total if total else 0
