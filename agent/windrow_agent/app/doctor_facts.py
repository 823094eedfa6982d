"""Gathers the facts that core/doctor.py judges: files of the kernel, one answer of a daemon, one ping of each Access.

Each step has a deadline and none changes anything; what cannot be read is absent. Blocking.
"""

import asyncio
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from windrow_agent.core.doctor import Card, Daemon, MachineFacts, Node, PathFacts, Speed
from windrow_agent.gpu.nvml_codes import DISPLAY_CLASSES
from windrow_agent.host.kernel_facts import cgroup
from windrow_agent.link.bandwidth_probe import measure
from windrow_agent.runtimes import docker_daemon, docker_socket, sandbox
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.enrol import Identity
from windrow_proto.errors import LinkClosed, RuntimeUnavailable, WindrowError
from windrow_proto.link_grpc import GrpcDialer
from windrow_proto.model import BandwidthSpec
from windrow_proto.units import MIB, SECOND

DIAL_S: Final = 5.0
ANSWER_NS: Final = 5 * SECOND
"""For a handshake and three round trips: a second on the slowest line that is of any use."""
PROGRAM_S: Final = 10.0
"""For a program that prints its version, on a machine with a sick driver."""
SPEED_NS: Final = 3 * SECOND
SPEED_BYTES_MAX: Final = 256 * MIB
VENDORS: Final = {"0x10de": "nvidia", "0x1002": "amd", "0x8086": "intel"}
LIBRARIES: Final = ("usr/lib/*/libnvidia-ml.so.1", "usr/lib64/libnvidia-ml.so.1", "usr/lib/libnvidia-ml.so.1")
NODES: Final = ("nvidia[0-9]*", "nvidiactl", "nvidia-uvm", "kfd", "dri/renderD*")
TEXT_BYTES_MAX: Final = 4096
IP_MTU: Final = 14
"""Of Linux's in.h; the socket module of Python does not have it."""


def machine(data_dir: Path, docker_url: str, root: Path = Path("/")) -> MachineFacts:
    """Reads the facts of this machine. root: the folder to look for its files in."""
    daemon, reason = _daemon(docker_url)
    confined = sandbox.find_sandbox(data_dir)
    users = _text(root / "proc/sys/kernel/unprivileged_userns_clone"), _text(root / "proc/sys/user/max_user_namespaces")
    return MachineFacts(
        kernel=_text(root / "proc/sys/kernel/osrelease") or "",
        cards=_cards(root / "sys/bus/pci/devices"),
        driver_module=_driver_module(root / "proc/driver/nvidia/version"),
        driver_library=_driver_library(root),
        nodes=tuple(_node(path) for name in NODES for path in sorted((root / "dev").glob(name))),
        toolkit=_printed("nvidia-ctk", "--version"),
        daemon=daemon,
        daemon_reason=reason,
        cgroup=cgroup(root / "sys/fs/cgroup"),
        has_user_namespaces=None if users == (None, None) else "0" not in users,
        has_bubblewrap=confined.bwrap is not None,
        why_no_sandbox=confined.why,
        why_no_way_out=confined.closed,
        can_read_kernel_log=_can_read(root / "dev/kmsg"),
        free_bytes=_free_bytes(data_dir),
    )


def paths(identity: Identity, accesses: Sequence[tuple[str, str]]) -> list[PathFacts]:
    """The way to each Access. accesses: name and `host:port`."""
    return [_path(identity, name, address) for name, address in accesses]


def speed(identity: Identity, address: str) -> Speed:
    """Ask the Access at `address` for a measurement of three seconds each way: at most 512 MiB in all."""
    rng = SystemRng()
    spec = BandwidthSpec(duration_ns=SPEED_NS, cap_bytes=SPEED_BYTES_MAX, nonce=rng.random_bytes(16).hex())

    async def ask() -> Speed:
        dialer = GrpcDialer(identity.tls)
        try:
            answer = await dialer.ping(address, ANSWER_NS)
            found = await measure(dialer, address, spec, answer, SystemClock(), rng)
        finally:
            await dialer.close()
        return Speed(found.up_bits_per_s, found.down_bits_per_s)

    try:
        return asyncio.run(ask())
    except WindrowError as error:
        return Speed(reason=error.detail)


def _path(identity: Identity, name: str, address: str) -> PathFacts:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=DIAL_S) as connection:
            own = str(connection.getsockname()[0])
            mtu = _mtu(connection)
    except (OSError, ValueError) as error:
        return PathFacts(name, address, is_connected=False, reason=str(error))

    async def ask() -> PathFacts:
        dialer = GrpcDialer(identity.tls)
        try:
            answer = await dialer.ping(address, ANSWER_NS)
        finally:
            await dialer.close()
        return PathFacts(name, address, True, True, answer.rtt_ns, mtu, own, answer.seen or None)

    try:
        return asyncio.run(ask())
    except LinkClosed as error:
        return PathFacts(name, address, True, False, None, mtu, own, reason=error.detail)


def _mtu(connection: socket.socket) -> int | None:
    if connection.family != socket.AF_INET:
        return None
    try:
        return connection.getsockopt(socket.IPPROTO_IP, IP_MTU)
    except OSError:
        return None


# --- the machine --------------------------------------------------------------------------------------------------


def _text(path: Path) -> str | None:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(TEXT_BYTES_MAX).strip()
    except OSError:
        return None


def _cards(devices: Path) -> tuple[Card, ...] | None:
    if not devices.is_dir():
        return None
    found = []
    for path in sorted(devices.iterdir()):
        vendor = VENDORS.get(_text(path / "vendor") or "")
        if vendor is not None and (_text(path / "class") or "").startswith(DISPLAY_CLASSES):
            driver = path / "driver"
            found.append(Card(path.name, vendor, os.path.basename(os.readlink(driver)) if driver.is_symlink() else ""))
    return tuple(found)


def _driver_module(path: Path) -> str | None:
    found = re.search(r"(?m)^NVRM version:.*?\s(\d+\.[\d.]+)\s", f"{_text(path) or ''}\n")
    return found[1] if found else None


def _driver_library(root: Path) -> str | None:
    """From the name of the file that the loader's name leads to: the library itself may hang."""
    for pattern in LIBRARIES:
        for path in sorted(root.glob(pattern)):
            found = re.fullmatch(r"libnvidia-ml\.so\.(\d+\.[\d.]+)", os.path.basename(os.path.realpath(path)))
            if found:
                return found[1]
    return None


def _node(path: Path) -> Node:
    return Node(f"/dev/{'dri/' if path.parent.name == 'dri' else ''}{path.name}", os.access(path, os.R_OK | os.W_OK))


def _can_read(path: Path) -> bool | None:
    """True if the file can be opened, which is where the kernel decides; None if there is no such file."""
    if not path.exists():
        return None
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
        return True
    except OSError:
        return False


def _free_bytes(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def _printed(*command: str) -> str | None:
    program = shutil.which(command[0], path=sandbox.SEARCH_PATH)
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROGRAM_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout[:TEXT_BYTES_MAX]


def _daemon(docker_url: str) -> tuple[Daemon | None, str]:
    try:
        version: dict[str, Any] = docker_socket.ask(docker_url, "/version", DIAL_S)
        told: dict[str, Any] = docker_socket.ask(docker_url, "/info", DIAL_S)
    except RuntimeUnavailable as error:
        return None, error.detail
    parts = {str(part.get("Name", "")): part for part in version.get("Components") or ()}
    runtimes = told.get("Runtimes") or {}
    devices = told.get("DiscoveredDevices")
    name = next((title for title in ("Podman Engine",) if title in parts), "Docker")
    daemon = Daemon(
        version=f"{name} {version.get('Version', '?')}",
        runc=str(parts.get("runc", {}).get("Version", "")),
        runtimes=tuple(sorted(runtimes)),
        cgroup_driver=str(told.get("CgroupDriver") or ""),
        cgroup_version=str(told.get("CgroupVersion") or ""),
        is_rootless=docker_daemon.is_rootless(told),
        gives_limits=docker_daemon.gives_limits(told),
        cdi_devices=None
        if devices is None
        else tuple(str(one.get("ID")) for one in devices if str(one.get("ID", "")).startswith("nvidia.com/gpu=")),
    )
    return daemon, ""
