"""The adapter of TUN: a network device whose packets this process reads and writes. The device ends with this process.

Asked of the kernel itself, by ioctl (netns_helper.py), so that no program has to be installed for it.
"""

import contextlib
import errno
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from windrow_agent.core import egress
from windrow_agent.runtimes import netns_helper, process_network
from windrow_proto.errors import RuntimeUnavailable
from windrow_proto.overlay_packets import MTU, PREFIX_BITS

TUN: Final = netns_helper.TUN
NAME: Final = egress.OVERLAY
"""How the devices' names begin; what follows is the number of the network. The host's figures leave them out."""
CAP_NET_ADMIN: Final = 12
ENTERING: Final = {"CAP_SYS_ADMIN": 21, "CAP_SYS_PTRACE": 19}
"""The capabilities that it takes to enter the network of a container (setns(2), ptrace(2))."""
PACKET_BYTES_MAX: Final = 65_535


def device_name(address: str) -> str:
    """Of the device with this private address, on every host and in every container."""
    return f"{NAME}{address.split('.')[2]}"


def cannot_own() -> str:
    """Why this agent can make no such device in the network of a process workload; empty: nothing is known to be in the
    way. Root enters it by its rights, everybody else as the user whose network it is."""
    if os.geteuid() == 0:
        return cannot(in_container=True)
    return _unopened()


def _unopened() -> str:
    if not os.path.exists(TUN):
        return f"there is no {TUN}"
    return "" if os.access(TUN, os.R_OK | os.W_OK) else f"the host's agent may not open {TUN}"


def cannot(*, in_container: bool = False) -> str:
    """Why this agent can make no such device, here or in a container's network; empty: nothing is known to be in the
    way."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return "this host is not Linux"
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    needed = {"CAP_NET_ADMIN": CAP_NET_ADMIN} | (ENTERING if in_container else {})
    if lacks := [name for name, bit in needed.items() if found is None or not int(found[1], 16) >> bit & 1]:
        return f"the host's agent lacks {' and '.join(lacks)}"
    return _unopened()


class Device:
    """One device, up, with its address. Reading and writing never wait."""

    def __init__(self, address: str, network: Path | int | None = None) -> None:
        """network: the file of the network it is made in, as of /proc/PID/ns/net; or a process in the network of a
        process workload; None: this host's own. Raises RuntimeUnavailable with what the kernel said."""
        self.name = device_name(address)
        self.fd = -1
        if isinstance(network, Path):
            _inside(network, lambda: self._make(address))
        else:
            self._make(address, network)

    def _make(self, address: str, pid: int | None = None) -> None:
        try:
            if pid is None:
                self.fd = netns_helper.tun(self.name, address, str(PREFIX_BITS), str(MTU))
            else:
                self.fd = process_network.device(pid, self.name, address, PREFIX_BITS, MTU)
        except OSError as error:
            why = "another device has its name" if error.errno == errno.EBUSY else error.strerror
            raise RuntimeUnavailable(f"This host makes no device for a private network: {why}.") from error

    def packets(self, most: int) -> Iterator[bytes]:
        """Reads the packets that have come, at most so many."""
        with contextlib.suppress(BlockingIOError):
            for _ in range(most):
                yield os.read(self.fd, PACKET_BYTES_MAX)

    def write(self, packet: memoryview) -> bool:
        """Give one to this host's kernel; returns whether it took it."""
        try:
            os.write(self.fd, packet)
        except OSError:  # no memory, or no packet at all: what is lost is sent again
            return False
        return True

    def close(self) -> None:
        """The kernel takes the device away with everything that was set for it. What is written afterwards is lost: the
        number of its file may be another's by then."""
        fd, self.fd = self.fd, -1
        os.close(fd)


def _inside(network: Path, work: Callable[[], None]) -> None:
    """Do it in this network: a network is a thread's, so a thread of its own enters it and ends there."""

    def enter() -> None:
        try:
            with network.open("rb") as found:
                netns_helper.join(found.fileno(), netns_helper.CLONE_NEWNET)
        except OSError as error:
            raise RuntimeUnavailable(f"The network of the container cannot be entered: {error.strerror}.") from error
        work()

    with ThreadPoolExecutor(1, "windrow-network") as thread:
        thread.submit(enter).result()
