"""Makes networks ahead: a container that only waits holds one, and the next workload joins it.

Of what a container's start takes, its network takes most: Docker 20.10 starts its own binary again to make one and to
answer names in it. A workload that joins a network is its first and only tenant, and the holder goes with it; the pods
of Kubernetes have such a holder, too, the pause container. Blocking; used in the runtime's threads.

      spare ──take──▶ taken by a workload ──release──▶ removed
        ▲ tend: one spare, once a container has started here; what an agent that died left is taken over or removed
"""

import io
import platform
import struct
import tarfile
import threading
import uuid
from pathlib import Path
from typing import Any, Final

import structlog

from windrow_agent.core import egress
from windrow_agent.runtimes import docker_socket
from windrow_proto.errors import RuntimeUnavailable, WindrowError
from windrow_proto.ids import HostId, WorkloadId

log = structlog.get_logger(__name__)

IMAGE: Final = "windrow-pause:1"
LABEL: Final = "windrow.pause"
"""On a holder: of which host."""
OF_CONTAINER: Final = "container:"
"""In Docker's words before the id of the container whose network is joined."""
NOT_RUNNING: Final = "cannot join network of a non running container"
CALL_S: Final = 30.0
CLOSE_S: Final = 5.0
"""For each question while an agent ends."""

_X86_64: Final = (62, bytes.fromhex("b822000000 0f05 ebf7"))
"""Its number in ELF; and: mov eax, 34 (pause); syscall; jmp to the start."""
_AARCH64: Final = (183, struct.pack("<7I", *(0xD2800000 + n for n in range(4)), 0xD2800928, 0xD4000001, 0x17FFFFFA))
"""mov x0..x3, 0; mov x8, 73 (ppoll); svc 0; b to the start."""
PROGRAMS: Final = {"x86_64": _X86_64, "aarch64": _AARCH64}


class PauseContainers:
    """The networks that are held on one host. is_wanted: whether one is made ahead at all."""

    def __init__(self, base_url: str, host_id: HostId, *, is_wanted: bool = False) -> None:
        self.is_wanted = is_wanted
        self._base_url, self._host_id = base_url, host_id
        self._state, self._tending = threading.Lock(), threading.Lock()
        self._taken: dict[WorkloadId, str] = {}
        self._spare = ""
        self._is_closed = False

    @property
    def is_ready(self) -> bool:
        """True if the next workload has a network to join."""
        return bool(self._spare)

    def take(self, workload_id: WorkloadId) -> str:
        """Give this workload the network that is held ahead, as the network mode to create it with; empty: none is."""
        with self._state:
            holder = self._taken.get(workload_id, "")
            if not holder and self._spare:
                holder, self._spare = self._spare, ""
                self._taken[workload_id] = holder
        if not holder:
            return ""
        status, told = docker_socket.call(self._base_url, "GET", f"/containers/{holder}/json", CALL_S)
        if status != 200 or not told["State"]["Running"]:  # somebody took it away, or the daemon was restarted
            self.release(workload_id, None)
            return ""
        return f"{OF_CONTAINER}{holder}"

    def release(self, workload_id: WorkloadId, container: dict[str, Any] | None) -> None:
        """Remove the holder of a workload that is gone. container: as it was inspected before, if it was there."""
        with self._state:
            noted = self._taken.pop(workload_id, "")
        holder = holder_of(container or {}) or noted
        if holder:
            self._remove(holder, CALL_S)

    def network(self, workload_id: WorkloadId, container: dict[str, Any] | None) -> Path:
        """The path of this workload's network namespace, which is made now if it has none. container: as inspected, if
        there is one. Raises RuntimeUnavailable."""
        if container is not None and not holder_of(container):
            raise RuntimeUnavailable(
                f"The container of workload {workload_id} has a network of its own that nothing can be added to."
            )
        holder = holder_of(container or {}) or self.take(workload_id).removeprefix(OF_CONTAINER)
        if not holder and (holder := self._made()):
            with self._state:
                self._taken[workload_id] = holder
        if not holder:
            raise RuntimeUnavailable(f"No container's network can be held on a machine of kind {platform.machine()}.")
        found = docker_socket.ask(self._base_url, f"/containers/{holder}/json", CALL_S)
        if not found["State"]["Running"]:
            self._ask("POST", f"/containers/{holder}/start")
            found = docker_socket.ask(self._base_url, f"/containers/{holder}/json", CALL_S)
        return Path(f"/proc/{found['State']['Pid']}/ns/net")

    def start_again(self, container: dict[str, Any]) -> None:
        """Have the holder of this container run, which a daemon that was restarted has ended."""
        self._ask("POST", f"/containers/{holder_of(container)}/start")

    def networks(self, container: dict[str, Any]) -> dict[str, Any]:
        """The container whose networks this one, as inspected, has: itself, or its holder as inspected."""
        holder = holder_of(container)
        found = docker_socket.ask(self._base_url, f"/containers/{holder}/json", CALL_S) if holder else container
        return found if isinstance(found, dict) else container

    def tend(self) -> None:
        """Have one spare, unless none is wanted. Logs what fails: the next workload then makes its own network."""
        if not self.is_wanted or not self._tending.acquire(blocking=False):
            return
        try:
            if not self._spare and not self._is_closed:
                self._keep(self._left_by_others() or self._made())
        except WindrowError as error:
            log.warning("no network is held ahead", why=error.detail)
        finally:
            self._tending.release()

    def close(self) -> None:
        """Remove the spare and whatever else nobody needs; a daemon that does not answer keeps them."""
        with self._state:
            self._is_closed, self._spare = True, ""
        if not self.is_wanted:
            return
        try:
            for holder in self._unused(CLOSE_S):
                self._remove(holder, CLOSE_S)
            self._ask("DELETE", f"/images/{IMAGE}", within_s=CLOSE_S)  # refused while another holder runs from it
        except WindrowError as error:
            log.debug("holders of networks may be left", why=error.detail)

    # --- inside ---------------------------------------------------------------------------------------------------

    def _keep(self, holder: str) -> None:
        with self._state:
            is_late = self._is_closed
            self._spare = "" if is_late else holder
        if is_late:
            self._remove(holder, CLOSE_S)

    def _left_by_others(self) -> str:
        """One that runs and nobody uses, as an agent that was killed leaves it; the rest of them is removed."""
        unused = self._unused(CALL_S)
        running = [holder for holder, state in unused.items() if state == "running"]
        for holder in unused.keys() - set(running[:1]):
            self._remove(holder, CALL_S)
        return running[0] if running else ""

    def _unused(self, within_s: float) -> dict[str, str]:
        """The holders of this host that no container joins and no workload is about to; each with its state."""
        holders = docker_socket.ask(self._base_url, docker_socket.containers_path(f"{LABEL}={self._host_id}"), within_s)
        if not holders:
            return {}
        others = docker_socket.ask(self._base_url, "/containers/json?all=1", within_s)
        joined = {str((one.get("HostConfig") or {}).get("NetworkMode", "")) for one in others}
        with self._state:
            kept = set(self._taken.values())
        found = {str(one["Id"]): str(one.get("State", "")) for one in holders}
        return {one: state for one, state in found.items() if one not in kept and f"{OF_CONTAINER}{one}" not in joined}

    def _made(self) -> str:
        """Make a holder; its id, or empty where this machine's kind has no program for it."""
        if platform.machine() not in PROGRAMS:
            self.is_wanted = False
            return ""
        status, told = self._create()
        if status == 404 and "image" in str(told).lower():
            archive = image_archive(platform.machine())
            path = "/images/create?fromSrc=-&repo={}&tag={}".format(*IMAGE.split(":"))
            self._ask("POST", path, archive)
            status, told = self._create()
        if status != 201:
            raise RuntimeUnavailable(f"The container daemon answered {status}: {str(told)[:200]}")
        holder = str(told["Id"])
        try:
            self._ask("POST", f"/containers/{holder}/start")
        except WindrowError:
            self._remove(holder, CALL_S)
            raise
        return holder

    def _create(self) -> tuple[int, Any]:
        wanted = {
            "Image": IMAGE,
            "Cmd": ["/pause"],
            "Labels": {LABEL: self._host_id},
            "StopSignal": "SIGKILL",  # the first process of a container has no default for others
            "HostConfig": {
                "NetworkMode": egress.NETWORK,
                "CapDrop": ["ALL"],
                "SecurityOpt": ["no-new-privileges"],
                "ReadonlyRootfs": True,
                "LogConfig": {"Type": "none"},
            },
        }
        path = f"/containers/create?name=windrow-pause-{uuid.uuid4().hex[:12]}"
        return docker_socket.call(self._base_url, "POST", path, CALL_S, wanted)

    def _remove(self, holder: str, within_s: float) -> None:
        status, told = docker_socket.call(self._base_url, "DELETE", f"/containers/{holder}?force=1&v=1", within_s)
        if status not in (204, 404, 409):  # 409: somebody is removing it
            log.warning("the holder of a network was not removed", holder=holder[:12], why=str(told)[:200])

    def _ask(self, method: str, path: str, body: bytes | None = None, within_s: float = CALL_S) -> None:
        status, told = docker_socket.call(self._base_url, method, path, within_s, body)
        if status not in (200, 204, 304):
            raise RuntimeUnavailable(f"The container daemon answered {status}: {str(told)[:200]}")


def holder_of(container: dict[str, Any]) -> str:
    """The id of the container whose network this one, as inspected, has joined; empty: it has its own."""
    mode = str((container.get("HostConfig") or {}).get("NetworkMode", ""))
    return mode.removeprefix(OF_CONTAINER) if mode.startswith(OF_CONTAINER) else ""


def image_archive(machine: str) -> bytes:
    """The holder's image, a tar file of one program; machine: as `uname -m` says it, one of PROGRAMS."""
    program = elf(*PROGRAMS[machine])
    member = tarfile.TarInfo("pause")
    member.mode, member.size = 0o755, len(program)
    with io.BytesIO() as whole:
        with tarfile.open(fileobj=whole, mode="w") as tar:
            tar.addfile(member, io.BytesIO(program))
        return whole.getvalue()


def elf(number: int, code: bytes) -> bytes:
    """A static program of this code alone, 64 bits, little-endian (elf(5)): one segment. number: e_machine."""
    base, header, segment = 0x400000, 64, 56
    entry, size = base + header + segment, header + segment + len(code)
    ident = b"\x7fELF" + bytes((2, 1, 1)) + bytes(9)
    head = struct.pack("<16sHHIQQQIHHHHHH", ident, 2, number, 1, entry, header, 0, 0, header, segment, 1, 0, 0, 0)
    return head + struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 0x10000) + code
