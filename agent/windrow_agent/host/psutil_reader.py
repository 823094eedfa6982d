"""The adapter of psutil: facts and metrics of this host, read without waiting for anything but the disk of its data.

No process list (milliseconds, and none of our business); every figure may be absent.
"""

import os
import platform
import re
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar

import psutil

from windrow_agent.core.inventory import HostFacts
from windrow_agent.core.scaling import hundredths, kibibytes, mebibytes, permille
from windrow_agent.host import kernel_facts

T = TypeVar("T")

UNLIMITED: Final = 1 << 60
"""A cgroup limit above this is none: cgroup v1 writes a number near 2**63."""

PRESSURES: Final = {111: "cpu", 112: "memory", 113: "io"}
"""Metric to the kernel's file of stalls (PSI)."""
PRIVATE_NETWORKS: Final = ("lo", "docker", "windrow", "br-", "veth", "virbr", "cni", "flannel", "wg")
"""Interfaces whose bytes never leave the host, or leave it a second time over another one."""
LINK_LOCAL: Final = "169.254."
"""Made up by a host that was given no address; nobody is asked to come there."""


class PsutilHost:
    """This host. `data_dir` tells which disk counts; `root` is where /etc, /proc and /sys are looked for."""

    simulated = False

    def __init__(self, data_dir: Path, root: Path = Path("/")) -> None:
        self._data_dir = data_dir
        self._root = root
        self._busy: tuple[float, float] | None = None

    # --- facts -----------------------------------------------------------------------------------

    def facts(self) -> HostFacts:
        """Reads the facts of this host. Processors and memory are those this process may use: a container's, not its
        host's."""
        return HostFacts(
            hostname=platform.node(),
            os=self._os_name(),
            kernel=f"{platform.system()} {platform.release()}",
            cpu_model=self._cpu_model(),
            cpu_count=self._cpu_count(),
            cpu_physical=min(psutil.cpu_count(logical=False) or 0, self._cpu_count()),
            memory_bytes=self._memory_bytes(),
            disk_bytes=_try(lambda: int(psutil.disk_usage(str(self._data_dir)).total)) or 0,
            machine_id=self._machine_id(),
            addresses=tuple(found for found, name in addresses().items() if not name.startswith(PRIVATE_NETWORKS)),
            more=kernel_facts.read(self._root, self._data_dir),
        )

    def _text(self, path: str) -> str:
        try:
            return (self._root / path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def _os_name(self) -> str:
        for path in ("etc/os-release", "usr/lib/os-release"):
            for line in self._text(path).splitlines():
                if line.startswith("PRETTY_NAME="):
                    return line.partition("=")[2].strip().strip("\"'")
        return platform.system()

    def _cpu_model(self) -> str:
        for line in self._text("proc/cpuinfo").splitlines():
            key, _, value = line.partition(":")
            if key.strip() in {"model name", "Model", "cpu model"} and value.strip():
                return value.strip()
        return platform.processor() or platform.machine()

    def _cpu_count(self) -> int:
        allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        quota, _, period = self._text("sys/fs/cgroup/cpu.max").strip().partition(" ")
        if quota.isdigit() and period.isdigit() and int(period) > 0:
            allowed = min(allowed, max(1, int(quota) // int(period)))  # whole processors, rounded down
        return allowed

    def _memory_bytes(self) -> int:
        total = _try(lambda: int(psutil.virtual_memory().total)) or 0
        limit = self._text("sys/fs/cgroup/memory.max").strip()
        return min(total, int(limit)) if limit.isdigit() and int(limit) < UNLIMITED else total

    def _machine_id(self) -> str:
        for path in ("etc/machine-id", "var/lib/dbus/machine-id", "sys/class/dmi/id/product_uuid"):
            if text := self._text(path).strip():
                return text
        return ""

    # --- metrics ---------------------------------------------------------------------------------

    def sample(self) -> Mapping[int, int | None]:
        """Every host metric of the table but the number of workloads, as the wire's integers."""
        memory, swap = _try(psutil.virtual_memory), _try(psutil.swap_memory)
        disk = _try(lambda: psutil.disk_usage(str(self._data_dir)))
        blocks = _try(lambda: psutil.disk_io_counters(nowrap=False))
        received, sent = self._network()
        load = _try(os.getloadavg)
        return {
            101: permille(self._cpu_percent()),
            102: mebibytes(memory.total - memory.available) if memory else None,
            103: hundredths(load[0]) if load else None,
            104: kibibytes(received),
            105: kibibytes(sent),
            106: mebibytes(disk.used) if disk else None,
            107: kibibytes(blocks.read_bytes) if blocks else None,
            108: kibibytes(blocks.write_bytes) if blocks else None,
            109: mebibytes(swap.used) if swap else None,
            **{number: self._pressure(what) for number, what in PRESSURES.items()},
        }

    def _pressure(self, what: str) -> int | None:
        """Thousandths of the last ten seconds in which something waited; None where the kernel does not count it."""
        found = re.match(r"some avg10=(\d+\.\d+)", self._text(f"proc/pressure/{what}"))
        return permille(float(found[1])) if found else None

    def _cpu_percent(self) -> float | None:
        """Share of time not idle since the last call; None the first time, since there is no span to speak of."""
        times = _try(psutil.cpu_times)
        if times is None:
            return None
        total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)  # counted in user already
        idle = times.idle + getattr(times, "iowait", 0.0)
        before, self._busy = self._busy, (total - idle, total)
        if before is None or total <= before[1]:
            return None
        return 100.0 * (total - idle - before[0]) / (total - before[1])

    def _network(self) -> tuple[int | None, int | None]:
        """Bytes received and sent since boot over interfaces that lead out of the host."""
        cards = _try(lambda: psutil.net_io_counters(pernic=True, nowrap=False))
        if not cards:
            return None, None
        outer = [card for name, card in cards.items() if not name.startswith(PRIVATE_NETWORKS)]
        return sum(card.bytes_recv for card in outer), sum(card.bytes_sent for card in outer)


def addresses() -> dict[str, str]:
    """The IPv4 addresses of this host, loopback's included, each with the name of its interface."""
    cards = _try(psutil.net_if_addrs) or {}
    found = ((one.address, name) for name, ones in cards.items() for one in ones if one.family == socket.AF_INET)
    return {address: name for address, name in found if not address.startswith(LINK_LOCAL)}


def _try(read: Callable[[], T]) -> T | None:
    """One figure, or None where this system does not give it (no /proc entry, no such disk, no permission)."""
    try:
        return read()
    except (OSError, psutil.Error, RuntimeError, NotImplementedError, ValueError):
        return None
