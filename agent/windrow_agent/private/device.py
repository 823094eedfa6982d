"""The one door to TUN: a network device whose packets this process reads and writes. It ends with this process.

Asked of the kernel itself, by ioctl, so that no program has to be installed for it.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import re
import socket
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from windrow_proto.cords import MTU, PREFIX_BITS
from windrow_proto.errors import RuntimeUnavailable

TUN: Final = "/dev/net/tun"
NAME: Final = "windrown"
"""How the devices' names begin; what follows is the number of the network. The host's figures leave them out."""
CAP_NET_ADMIN: Final = 12
ENTERING: Final = {"CAP_SYS_ADMIN": 21, "CAP_SYS_PTRACE": 19}
"""What it takes to enter the network of a container (setns(2), ptrace(2))."""
PACKET_BYTES_MAX: Final = 65_535
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _SIOCSIFADDR, _SIOCSIFNETMASK, _SIOCSIFMTU = 0x8913, 0x8914, 0x8916, 0x891C, 0x8922
_IFF_UP: Final = 0x1
_CLONE_NEWNET: Final = 0x40000000
"""Numbers of Linux's if_tun.h, sockios.h, if.h and sched.h."""


def device_name(address: str) -> str:
    """Of the device with this private address, on every host and in every container."""
    return f"{NAME}{address.split('.')[2]}"


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
        return f"its agent lacks {' and '.join(lacks)}"
    if not os.path.exists(TUN):
        return f"there is no {TUN}"
    return "" if os.access(TUN, os.R_OK | os.W_OK) else f"its agent may not open {TUN}"


class Device:
    """One device, up, with its address. Reading and writing never wait."""

    def __init__(self, address: str, network: Path | None = None) -> None:
        """network: the file of the network it is made in, as of /proc/PID/ns/net; None: this host's own. Raises
        RuntimeUnavailable with what the kernel said."""
        self.name = device_name(address)
        self.fd = -1
        if network is None:
            self._make(address)
        else:
            _inside(network, lambda: self._make(address))

    def _make(self, address: str) -> None:
        try:
            self.fd = os.open(TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                fcntl.ioctl(self.fd, _TUNSETIFF, struct.pack("16sH22x", self.name.encode(), _IFF_TUN | _IFF_NO_PI))
                self._configure(address)
            except BaseException:
                os.close(self.fd)
                raise
        except OSError as error:
            why = "another one has its name" if error.errno == errno.EBUSY else error.strerror
            raise RuntimeUnavailable(f"This host makes no device for a private network: {why}.") from error

    def packets(self, most: int) -> Iterator[bytes]:
        """What has come, at most so many."""
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

    def _configure(self, address: str) -> None:
        # It has no use for IPv6, whose neighbours the kernel would look for.
        with contextlib.suppress(OSError):
            Path(f"/proc/sys/net/ipv6/conf/{self.name}/disable_ipv6").write_text("1")
        mask = socket.inet_ntoa(struct.pack("!I", 0xFFFFFFFF << (32 - PREFIX_BITS) & 0xFFFFFFFF))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:

            def ask(request: int, told: bytes) -> bytes:
                return fcntl.ioctl(asking, request, struct.pack("16s24s", self.name.encode(), told))

            ask(_SIOCSIFMTU, struct.pack("i", MTU))
            ask(_SIOCSIFADDR, _sockaddr(address))
            ask(_SIOCSIFNETMASK, _sockaddr(mask))
            flags = struct.unpack("16sH22x", ask(_SIOCGIFFLAGS, b""))[1]
            ask(_SIOCSIFFLAGS, struct.pack("H", flags | _IFF_UP))


def _inside(network: Path, work: Callable[[], None]) -> None:
    """Do it in this network: a network is a thread's, so a thread of its own enters it and ends there."""

    def enter() -> None:
        try:
            with network.open("rb") as found:
                if ctypes.CDLL(None, use_errno=True).setns(found.fileno(), _CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        except OSError as error:
            raise RuntimeUnavailable(f"The network of the container cannot be entered: {error.strerror}.") from error
        work()

    with ThreadPoolExecutor(1, "windrow-network") as thread:
        thread.submit(enter).result()


def _sockaddr(address: str) -> bytes:
    return struct.pack("HH4s", socket.AF_INET, 0, socket.inet_aton(address))
