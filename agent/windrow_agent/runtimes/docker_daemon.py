"""Differences between the daemons that speak Docker's protocol: Docker's own, and Podman's service."""

import json
import os
import resource
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from windrow_agent.core import egress, seccomp_profile
from windrow_agent.runtimes import cgroups as limits_of
from windrow_agent.runtimes import docker_facts as facts_of
from windrow_agent.runtimes import docker_socket
from windrow_agent.runtimes.shim import write_whole
from windrow_proto.errors import RuntimeUnavailable

OPEN_FILES: Final = 65_536
PROCESSES: Final = 32_768
"""Of one user in all of its containers: Podman's service lowers its own limit to the kernel's number of processes,
which this is by default. How many a container may have is limited by its cgroup."""
NO_SUCH_COMMAND: Final = "unable to start container process: exec:"
"""The words of runc for a command that is missing or cannot be run, which Podman takes for a fault of its own (500)."""
PODMAN_PATH: Final = "/v4.0.0/libpod"
"""The path of Podman's own protocol, beside Docker's: from this version on it names a network's bridge."""
CAPS: Final = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "SETUID", "SETGID", "SETFCAP")
"""The capabilities that package managers need; inside a user namespace they reach nothing of the host's."""
ROOTLESS_NETWORK: Final = "the network of a rootless daemon is out of the kernel's rules"
SECCOMP_FILE: Final = "seccomp.json"
OPEN_FOLDER: Final = Path("/run/windrow-profile")
"""The folder in which another user's daemon reads the profile of an agent that is root: nothing in it is secret, only
root writes."""
CALL_S: Final = 30.0
ROOT: Final = "/var/lib/docker"
NVIDIA_HOOKS: Final = ("nvidia-container-runtime-hook", "nvidia-container-toolkit")
"""The toolkit's programs that Docker looks for when it starts; the second is the name of older releases."""
CDI_FOLDERS: Final = (Path("/etc/cdi"), Path("/var/run/cdi"))
INIT_FOLDERS: Final = (
    "/usr/bin",
    "/usr/local/bin",
    "/usr/libexec/docker",
    "/usr/local/libexec/docker",
    "/usr/libexec/podman",
)


@dataclass(frozen=True, slots=True)
class DaemonKind:
    """One daemon's ways. limits: of a container's processes, where it has to be told. podman_url: empty for Docker.
    root: where it keeps volumes; cdi: the devices that it knows by CDI; caps: what a container's root keeps;
    is_rootless: whether it is an ordinary user's; has_init: whether it can give containers an init."""

    limits: list[dict[str, Any]] | None = None
    podman_url: str = ""
    root: str = ROOT
    cdi: frozenset[str] = frozenset()
    caps: tuple[str, ...] = ()
    is_rootless: bool = False
    has_init: bool = False

    def have_network(self, api: Any, base_url: str) -> None:
        """Have the network of all workloads of this machine, whose bridge the fence knows by name. Raises
        RuntimeUnavailable where another has its name."""
        if self._has_network(api):
            return
        wanted = {"Name": egress.NETWORK, "Driver": "bridge", "Options": facts_of.BRIDGE, "CheckDuplicate": True}
        status, told = docker_socket.call(base_url, "POST", "/networks/create", CALL_S, wanted)
        # Several containers start at once: who comes second is told of the name, or of the bridge that is taken.
        if status not in (200, 201) and not self._has_network(api):
            raise RuntimeUnavailable(f"The container daemon made no network: {str(told)[:200]}")

    def _has_network(self, api: Any) -> bool:
        found = [one for one in api.networks(names=[egress.NETWORK]) if one.get("Name") == egress.NETWORK]
        if found and not self._is_own(found[0]):
            words = f"The container daemon's network {egress.NETWORK!r} is not the agent's own"
            raise RuntimeUnavailable(f"{words}: rename or remove it.")
        return bool(found)

    def system_calls(self, folder: Path) -> str:
        """The profile of system calls, as this daemon wants it: Docker in whole, Podman as a file, which is kept in
        this folder or where its user can read it. Empty: its files are elsewhere, and it has its own. Blocking."""
        if not self.podman_url:
            return seccomp_profile.profile()
        if not self.podman_url.startswith("unix:"):
            return ""
        is_others = self.is_rootless and os.geteuid() == 0
        folder = OPEN_FOLDER if is_others else folder
        wanted = json.loads(seccomp_profile.profile())
        if facts_of.read_note(folder / SECCOMP_FILE) != wanted:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(str(folder), SECCOMP_FILE, wanted)
        if is_others:
            folder.chmod(0o755)
            (folder / SECCOMP_FILE).chmod(0o644)
        return str(folder / SECCOMP_FILE)

    def _is_own(self, network: dict[str, Any]) -> bool:
        if not self.podman_url:
            return facts_of.is_own_network(network)
        path = f"{PODMAN_PATH}/networks/{egress.NETWORK}/json"  # in Docker's words Podman does not say the bridge
        found = docker_socket.ask(self.podman_url, path, CALL_S)
        return isinstance(found, dict) and found.get("network_interface") == egress.BRIDGE


def kind_of(version: dict[str, Any], info: dict[str, Any], base_url: str) -> DaemonKind:
    """Which daemon has answered so to `/version` and `/info`."""
    is_podman, cdi = _is_podman(version), _cdi(info)
    root = str(info.get("DockerRootDir") or ROOT)
    caps = CAPS if is_apart(info) else ()
    limits = own_limits() if is_podman else []
    if not gives_limits(info):
        at_most = limits_of.PROCESSES_MAX  # of all that its user runs: the one limit that there is without cgroups
        limits = [one for one in limits if one["Name"] != "nproc"]
        limits.append({"Name": "nproc", "Soft": at_most, "Hard": at_most})
    podman_url = base_url if is_podman else ""
    return DaemonKind(limits or None, podman_url, root, cdi, caps, is_rootless(info), _has_init(info, base_url))


def gives_nvidia(version: dict[str, Any], info: dict[str, Any], folders: Iterable[Path] = CDI_FOLDERS) -> bool:
    """True if containers can be given NVIDIA's cards: the daemon knows the toolkit's runtime or finds its hook, or has
    the cards described by CDI, which Podman reads from files in these folders. version, info: its answers. Blocking."""
    if "nvidia" in (info.get("Runtimes") or {}) or any(one.startswith(facts_of.CDI) for one in _cdi(info)):
        return True
    if any(shutil.which(name) for name in NVIDIA_HOOKS):
        return True
    return _is_podman(version) and any(any(folder.glob("*nvidia*")) for folder in folders)


def _is_podman(version: dict[str, Any]) -> bool:
    return any("podman" in str(one.get("Name", "")).lower() for one in version.get("Components") or [])


def _cdi(info: dict[str, Any]) -> frozenset[str]:
    """The devices that the daemon knows by CDI, as Docker says from 28.2 on; before, it is not asked for them."""
    found = info.get("DiscoveredDevices") or []
    return frozenset(str(one.get("ID")) for one in found if one.get("Source") == "cdi")


def _has_init(info: dict[str, Any], base_url: str) -> bool:
    """True if the program that the daemon would run as process 1 is on this machine: it is a package of its own, and
    without it no container would start. Podman does not name its own (catatonit)."""
    name = str(info.get("InitBinary") or "catatonit")
    return base_url.startswith("unix:") and any(os.access(f"{folder}/{name}", os.X_OK) for folder in INIT_FOLDERS)


def is_apart(info: dict[str, Any]) -> bool:
    """True where containers run in a user namespace: their root has no rights on the host."""
    return is_rootless(info) or "name=userns" in _options(info)


def is_rootless(info: dict[str, Any]) -> bool:
    """True where the daemon itself is an ordinary user's. Podman says it beside the options."""
    return bool(info.get("Rootless")) or "name=rootless" in _options(info)


def gives_limits(info: dict[str, Any]) -> bool:
    """True if containers have limits of memory, processors and processes: a rootless daemon gives them by cgroup v2."""
    return not is_rootless(info) or (info.get("CgroupDriver") != "none" and str(info.get("CgroupVersion")) == "2")


def _options(info: dict[str, Any]) -> str:
    return " ".join(str(one) for one in info.get("SecurityOptions") or [])


def users_of(info: dict[str, Any]) -> str:
    """Names the users of a container, in words: a daemon with a user namespace says so of itself."""
    apart, without = "in a user namespace", "without a user namespace (dockerd --userns-remap=default adds one)"
    return apart if is_apart(info) else without


def own_limits() -> list[dict[str, Any]]:
    """The limits of this process. Podman's defaults are above what a service that may not raise limits
    (CAP_SYS_RESOURCE) can give, and then no container starts."""
    caps = {"nofile": (resource.RLIMIT_NOFILE, OPEN_FILES), "nproc": (resource.RLIMIT_NPROC, PROCESSES)}
    hards = {name: (resource.getrlimit(number)[1], cap) for name, (number, cap) in caps.items()}
    found = {name: cap if hard == resource.RLIM_INFINITY else min(cap, hard) for name, (hard, cap) in hards.items()}
    return [{"Name": name, "Soft": value, "Hard": value} for name, value in found.items()]
