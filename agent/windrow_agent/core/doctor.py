"""The findings of `windrow-agent doctor`: judges facts of a host, and names a repair where one is due. Pure.

A fact that is None was not to be had, and no verdict is made of it. Nothing here looks at the machine.
"""

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from windrow_proto.units import GIB, MILLISECOND, SECOND

FREE_BYTES_WANTED: Final = 2 * GIB
SKEW_NS_MAX: Final = 5 * SECOND
"""Beyond this the Master flags the host; leases and bills do not depend on it."""
MTU_ETHERNET: Final = 1500
SHARED_ADDRESSES: Final = ipaddress.ip_network("100.64.0.0/10")
"""Addresses between a carrier and its customers (RFC 6598)."""

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Advisory:
    """A published flaw: releases before `fixed` have it. source: the document in which that was read."""

    cve: str
    fixed: Version
    source: str


RECORDS: Final = "https://raw.githubusercontent.com/CVEProject/cvelistV5/main/cves"
TOOLKIT_ADVISORIES: Final = (
    Advisory("CVE-2024-0132", (1, 16, 2), f"{RECORDS}/2024/0xxx/CVE-2024-0132.json"),
    Advisory("CVE-2025-23359", (1, 17, 4), "https://github.com/containers/toolbox/pull/1627"),
    Advisory("CVE-2025-23266", (1, 17, 8), f"{RECORDS}/2025/23xxx/CVE-2025-23266.json"),
    Advisory("CVE-2025-23267", (1, 17, 8), "https://github.com/NixOS/nixpkgs/pull/425862"),
)
"""Ways out of a container with GPUs. CVE-2026-24260 is not here: in which release it is fixed
was not read."""
TOOLKIT_FLOOR: Final = max(advisory.fixed for advisory in TOOLKIT_ADVISORIES)

RUNC_CVES: Final = "CVE-2025-31133, CVE-2025-52565 and CVE-2025-52881"
"""Writes to /proc that end outside the container; fixed in 1.3.3 (https://github.com/moby/moby/pull/51393)."""
RUNC_FIXED: Final = {(1, 2): (1, 2, 8), (1, 3): (1, 3, 3)}
"""Release line -> its first release with the fixes (1.2.8: https://github.com/getsolus/packages/pull/6857). Older lines
have none of their own."""

KERNEL_FLOOR: Final = (4, 15)
KERNEL_WANTED: Final = (5, 2)
"""The requirements of runc's docs/cgroup-v2.md on cgroup v2: before 4.15 devices are not confined, before 5.2 nothing
can be frozen (https://github.com/opencontainers/runc/blob/main/docs/cgroup-v2.md)."""


class Level(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    NOTE = "note"
    """It works, and less well, or less safely, than it could."""
    FIX = "fix"
    """It needs a person."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. check: its stable name; repair: what to do, empty where nothing is."""

    check: str
    level: Level
    what: str
    repair: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """A graphics card as sysfs lists it. driver: the kernel module that has it, empty where none has."""

    address: str
    vendor: str
    driver: str


@dataclass(frozen=True, slots=True)
class Node:
    """A device file of a GPU. is_open: this user may read and write it."""

    path: str
    is_open: bool


@dataclass(frozen=True, slots=True)
class Daemon:
    """The facts that a container daemon tells of itself."""

    version: str
    runc: str
    runtimes: tuple[str, ...]
    cgroup_driver: str
    cgroup_version: str
    is_rootless: bool
    gives_limits: bool = True
    cdi_devices: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """The facts of this machine. Versions as their programs print them; cgroup: v1, hybrid or v2."""

    kernel: str = ""
    cards: tuple[Card, ...] | None = None
    driver_module: str | None = None
    driver_library: str | None = None
    nodes: tuple[Node, ...] = ()
    toolkit: str | None = None
    daemon: Daemon | None = None
    daemon_reason: str = ""
    cgroup: str | None = None
    has_user_namespaces: bool | None = None
    has_bubblewrap: bool | None = None
    why_no_sandbox: str = ""
    why_no_way_out: str = ""
    can_read_kernel_log: bool | None = None
    free_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class PathFacts:
    """One way to an Access. own, seen: this host's address on its side and as the Access saw it; mtu: of the path, as
    far as the kernel knows. reason: why there was no answer, empty where there was one."""

    name: str
    address: str
    is_connected: bool
    is_answered: bool | None = None
    rtt_ns: int | None = None
    mtu: int | None = None
    own: str | None = None
    seen: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Speed:
    """A measured line in bit/s, this host's and the relay's lower counts. reason: why it was not measured."""

    up_bits_per_s: int | None = None
    down_bits_per_s: int | None = None
    reason: str = ""


def version_of(text: str) -> Version | None:
    """The first dotted number in a text: `CLI version 1.17.8` is (1, 17, 8). None where there is none."""
    found = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(int(part) for part in found[0].split(".")) if found else None


def shown(version: Version) -> str:
    """As people write it."""
    return ".".join(map(str, version))


def judge(facts: MachineFacts) -> Iterator[Finding]:
    """Every check of the machine itself, in the order in which a person would mend things."""
    yield from _disk(facts.free_bytes)
    yield from _kernel(facts)
    yield from _drivers(facts)
    yield from _nodes(facts)
    yield from _daemon(facts)
    yield from _toolkit(facts)
    yield from _wrapping(facts)


def _disk(free_bytes: int | None) -> Iterator[Finding]:
    if free_bytes is None:
        return
    text = f"{free_bytes / GIB:.1f} GiB of disk are free"
    is_enough = free_bytes >= FREE_BYTES_WANTED
    repair = "" if is_enough else "Free some space: spool, workloads and images need it."
    yield Finding("disk", Level.OK if is_enough else Level.FIX, text, repair)


def _kernel(facts: MachineFacts) -> Iterator[Finding]:
    version = version_of(facts.kernel)
    if version is not None and version < KERNEL_FLOOR:
        repair = (
            f"Boot Linux {shown(KERNEL_WANTED)} or newer: before {shown(KERNEL_FLOOR)} containers confine no device."
        )
        yield Finding("kernel", Level.FIX, f"Linux {facts.kernel}", repair)
    elif version is not None and version < KERNEL_WANTED:
        repair = f"Boot Linux {shown(KERNEL_WANTED)} or newer: this one cannot freeze a container on cgroup v2."
        yield Finding("kernel", Level.NOTE, f"Linux {facts.kernel}", repair)
    elif version is not None:
        yield Finding("kernel", Level.OK, f"Linux {facts.kernel}")
    if facts.cgroup == "v2":
        yield Finding("cgroup", Level.OK, "cgroup v2")
    elif facts.cgroup is not None:
        repair = (
            "Boot with systemd.unified_cgroup_hierarchy=1: what runs here is then limited and counted in one place."
        )
        yield Finding("cgroup", Level.NOTE, f"cgroup {facts.cgroup}", repair)


def _drivers(facts: MachineFacts) -> Iterator[Finding]:
    cards = facts.cards or ()
    nvidia = [card for card in cards if card.vendor == "nvidia"]
    module, library = facts.driver_module, facts.driver_library
    if facts.cards is not None and not cards and module is None:
        yield Finding("gpu", Level.OK, "no GPU is on the PCI bus: this host offers processors")
    idle = [card.address for card in cards if not card.driver]
    if idle:
        repair = (
            "Install the maker's driver for them (on Debian: nvidia-driver, or firmware-amd-graphics), then reboot."
        )
        yield Finding("gpu", Level.FIX, f"no driver serves {', '.join(idle[:8])}", repair)
    foreign = [f"{card.address} ({card.driver})" for card in nvidia if card.driver not in ("", "nvidia")]
    if foreign:
        repair = "Let the driver `nvidia` have them: nouveau does not compute, and vfio-pci keeps them for a machine."
        yield Finding("gpu", Level.FIX, f"another driver has {', '.join(foreign[:8])}", repair)
    if module is None and library is not None:
        repair = "Load it: modprobe nvidia. If that fails, install the headers of this kernel and the driver again."
        yield Finding("driver", Level.FIX, f"the library is {library}, but no kernel module is loaded", repair)
    elif module is not None and library is None:
        repair = "Install the library of the same version (on Debian: libnvidia-ml1, or nvidia-smi)."
        yield Finding("driver", Level.FIX, f"the kernel module is {module}, but libnvidia-ml.so.1 is missing", repair)
    elif module is not None and module != library:
        repair = (
            "Reboot, or unload and load the module: a driver was upgraded under a running one, and nothing computes."
        )
        yield Finding("driver", Level.FIX, f"the kernel module is {module} and the library {library}", repair)
    elif module is not None:
        yield Finding("driver", Level.OK, f"NVIDIA driver {module}, module and library agree")
    others = sorted({card.driver for card in cards if card.vendor != "nvidia" and card.driver})
    if others:
        yield Finding("driver", Level.OK, f"driver of the other cards: {', '.join(others)}")


def _nodes(facts: MachineFacts) -> Iterator[Finding]:
    vendors = {card.vendor for card in facts.cards or () if card.driver}
    paths = {node.path for node in facts.nodes}
    missing = []
    if facts.driver_module is not None:
        missing += [path for path in ("/dev/nvidiactl", "/dev/nvidia-uvm") if path not in paths]
    if "amd" in vendors and "/dev/kfd" not in paths:
        missing.append("/dev/kfd")
    if missing:
        repair = "Make them: nvidia-modprobe -u -c 0 for NVIDIA, modprobe amdgpu for AMD; in a container, pass them in."
        yield Finding("nodes", Level.FIX, f"{', '.join(missing)} missing", repair)
    shut = [node.path for node in facts.nodes if not node.is_open]
    if shut:
        repair = "Put the agent's user into the groups that own them (video, render), and see DeviceAllow in its unit."
        yield Finding("nodes", Level.FIX, f"this user may not use {', '.join(shut[:8])}", repair)
    elif facts.nodes and not missing:
        yield Finding("nodes", Level.OK, f"{len(facts.nodes)} device files of GPUs can be used")
    if facts.driver_module is not None and facts.can_read_kernel_log is False:
        repair = "Let the unit have CAP_SYSLOG and /dev/kmsg, or set kernel.dmesg_restrict=0."
        yield Finding("kernel_log", Level.NOTE, "the kernel's log is closed: XIDs are told without their pid", repair)


def _daemon(facts: MachineFacts) -> Iterator[Finding]:
    daemon = facts.daemon
    if daemon is None:
        if facts.daemon_reason:
            repair = "Start Docker, or add the agent's user to its group; without it only your own processes run here."
            yield Finding("containers", Level.FIX, facts.daemon_reason, repair)
        return
    mode = "rootless" if daemon.is_rootless else "root"
    driver = f"{daemon.cgroup_driver or 'unknown'} cgroups v{daemon.cgroup_version or '?'}"
    yield Finding("containers", Level.OK, f"containers by {daemon.version} ({mode}, {driver})")
    if not daemon.gives_limits:
        repair = "Delegate cgroup controllers to this user (cgroup v2 and systemd): limits of memory and processors."
        yield Finding("containers", Level.FIX, "a rootless daemon without cgroups limits nothing", repair)
    runc = version_of(daemon.runc)
    fixed = RUNC_FIXED.get((runc[0], runc[1]), RUNC_FIXED[1, 3]) if runc else None
    if runc is not None and fixed is not None and runc[:2] <= (1, 3) and runc < fixed:
        repair = f"Upgrade runc to {shown(fixed)}; if your distribution has put the fixes into its own, none."
        yield Finding("runc", Level.NOTE, f"runc {shown(runc)} is older than the fixes of {RUNC_CVES}", repair)


def _toolkit(facts: MachineFacts) -> Iterator[Finding]:
    if facts.driver_module is None:
        return
    floor = shown(TOOLKIT_FLOOR)
    version = version_of(facts.toolkit or "")
    if version is None:
        repair = f"Install nvidia-container-toolkit {floor} or newer from NVIDIA: renters' containers get GPUs by it."
        yield Finding("toolkit", Level.FIX, "the NVIDIA Container Toolkit is missing", repair)
        return
    if version < TOOLKIT_FLOOR:
        open_to = ", ".join(advisory.cve for advisory in TOOLKIT_ADVISORIES if version < advisory.fixed)
        repair = f"Upgrade nvidia-container-toolkit to {floor} or newer: a renter could leave the container."
        yield Finding(
            "toolkit", Level.FIX, f"the NVIDIA Container Toolkit {shown(version)} is open to {open_to}", repair
        )
    else:
        yield Finding("toolkit", Level.OK, f"NVIDIA Container Toolkit {shown(version)}")
    daemon = facts.daemon
    if daemon is not None and "nvidia" not in daemon.runtimes and not daemon.cdi_devices:
        repair = "Run: nvidia-ctk runtime configure --runtime=docker, then: systemctl restart docker."
        yield Finding("toolkit", Level.FIX, "the container daemon does not know the toolkit", repair)
    elif daemon is not None and daemon.cgroup_driver == "systemd" and not daemon.cdi_devices:
        repair = (
            "Make CDI specifications: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml, or run nvidia-ctk system "
            "create-dev-char-symlinks --create-all at each boot."
        )
        text = "with systemd cgroups, systemctl daemon-reload can take the GPUs from running containers"
        yield Finding("toolkit", Level.NOTE, text, repair)


def _wrapping(facts: MachineFacts) -> Iterator[Finding]:
    if facts.has_bubblewrap:
        yield Finding("bubblewrap", Level.OK, "process workloads run in a sandbox of bubblewrap's")
        if facts.why_no_way_out:
            text = f"process workloads reach no network: {facts.why_no_way_out}"
            yield Finding("bubblewrap", Level.NOTE, text, "Install passt and nftables, and let /dev/net/tun be opened.")
    elif facts.has_bubblewrap is False:
        repair = "Install bubblewrap (apt-get install bubblewrap passt nftables); until then none are run."
        if facts.has_user_namespaces is False:
            repair = "Allow user namespaces (sysctl user.max_user_namespaces and kernel.unprivileged_userns_clone=1)."
        why = facts.why_no_sandbox or "bubblewrap does not start here"
        yield Finding("bubblewrap", Level.FIX, f"process workloads have no sandbox: {why}", repair)


def judge_clock(skew_ns: int) -> Finding:
    """This clock against the Master's. skew_ns: ours less theirs; an HTTP date has whole seconds only."""
    if abs(skew_ns) <= SKEW_NS_MAX:
        return Finding("clock", Level.OK, "the clock agrees with the Master's")
    side = "ahead of" if skew_ns > 0 else "behind"
    text = f"this clock is {abs(skew_ns) // SECOND} s {side} the Master's"
    return Finding("clock", Level.FIX, text, "Switch on time synchronisation (timedatectl set-ntp true, or chrony).")


def judge_path(path: PathFacts) -> Iterator[Finding]:
    """Judges whether one Access can be used, and names peculiarities of the way to it."""
    where = f"{path.name} at {path.address}"
    if not path.is_connected:
        repair = f"Let this host dial out to {path.address} (TCP); nothing has to be let in."
        yield Finding("access", Level.FIX, f"{where} cannot be reached: {path.reason}", repair)
        return
    if path.is_answered is False:
        repair = (
            "Look for a firewall that opens TLS, or for packets that are too long for the way: lower the MTU of this "
            "host's interface to 1400, or clamp the MSS on the router."
        )
        yield Finding("mtu", Level.FIX, f"{where} takes the connection, but does not answer: {path.reason}", repair)
        return
    spent = f" in {path.rtt_ns / MILLISECOND:.1f} ms" if path.rtt_ns is not None else ""
    yield Finding("access", Level.OK, f"{where} answers{spent}")
    if path.mtu is not None and path.mtu < MTU_ETHERNET:
        repair = "None is needed while it answers; a tunnel or PPPoE on the way takes the rest."
        yield Finding("mtu", Level.NOTE, f"packets of at most {path.mtu} bytes reach {path.name}", repair)
    yield from _address(path)


def _address(path: PathFacts) -> Iterator[Finding]:
    seen = path.seen
    if path.own is None or seen is None or _is_loopback(seen):
        return
    if _is_shared(path.own) or _is_shared(seen):
        text = f"this host is behind a carrier's NAT (it is {path.own}, {path.name} sees {seen})"
        yield Finding("nat", Level.OK, f"{text}: that is fine, it only dials out")
    elif path.own != seen:
        yield Finding("nat", Level.OK, f"this host is behind a NAT (it is {path.own}, {path.name} sees {seen})")
    else:
        yield Finding("nat", Level.OK, f"this host has its own address, {seen}")


def _is_shared(address: str) -> bool:
    try:
        return ipaddress.ip_address(address) in SHARED_ADDRESSES
    except ValueError:
        return False


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return True


def judge_speed(speed: Speed) -> Finding:
    """Reports the bandwidth of the line; a finding only, since the tier is made of the Master's measurements."""
    if speed.up_bits_per_s is None or speed.down_bits_per_s is None:
        return Finding("bandwidth", Level.NOTE, f"not measured: {speed.reason}", "Try again in a minute.")
    up, down = speed.up_bits_per_s / 1e6, speed.down_bits_per_s / 1e6
    return Finding("bandwidth", Level.OK, f"{up:.0f} Mbit/s up, {down:.0f} Mbit/s down")
