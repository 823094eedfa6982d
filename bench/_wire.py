"""Bytes that another process sends and receives on its TCP connections, read from the kernel's own counters.

The sockets are borrowed by pidfd_getfd(2), which Linux allows for processes of our own; nothing is intercepted.
"""

import ctypes
import os
import socket
import struct
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

PIDFD_GETFD = 438
"""The system call's number, the same on every architecture since Linux 5.6."""
HEADERS_BYTES = 52
"""Of IPv4 (20) and TCP with its timestamps (32), in every segment."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes of payload (TLS and HTTP/2 in it) sent and acknowledged, and received; segments sent, with empty ones."""

    up: int = 0
    down: int = 0
    segments_up: int = 0

    def __add__(self, other: "Traffic") -> "Traffic":
        return Traffic(self.up + other.up, self.down + other.down, self.segments_up + other.segments_up)

    def __sub__(self, other: "Traffic") -> "Traffic":
        return Traffic(self.up - other.up, self.down - other.down, self.segments_up - other.segments_up)

    @property
    def up_with_headers(self) -> int:
        """The bytes that leave the network card for it, without the link's own frame."""
        return self.up + HEADERS_BYTES * self.segments_up


@dataclass(slots=True)
class Wire:
    """The connections of one process to some ports. A connection that ended counts as it was when last looked at."""

    pid: int
    ports: frozenset[int]
    _seen: dict[int, Traffic] = field(default_factory=dict)

    def look(self) -> Traffic:
        """All of them so far; raises OSError where the kernel does not let us look."""
        with _pidfd(self.pid) as pidfd:
            for number in _socket_numbers(self.pid):
                found = _traffic(pidfd, number, self.ports)
                if found is not None:
                    self._seen[found[0]] = found[1]
        return sum(self._seen.values(), Traffic())


def _socket_numbers(pid: int) -> Iterator[int]:
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            if os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:"):
                yield int(name)
        except OSError:  # closed meanwhile
            continue


@contextmanager
def _pidfd(pid: int) -> Iterator[int]:
    pidfd = os.pidfd_open(pid)
    try:
        yield pidfd
    finally:
        os.close(pidfd)


def _traffic(pidfd: int, number: int, ports: Iterable[int]) -> tuple[int, Traffic] | None:
    """Inode and counters of one socket if it is a TCP connection to one of the ports (TCP_INFO's tcpi_bytes_acked,
    tcpi_bytes_received and tcpi_segs_out, at 120, 128 and 136 in Linux' struct)."""
    libc = ctypes.CDLL(None, use_errno=True)
    borrowed = libc.syscall(PIDFD_GETFD, pidfd, number, 0)
    if borrowed < 0:
        code = ctypes.get_errno()
        if code == 9:  # EBADF: closed meanwhile
            return None
        raise OSError(code, f"pidfd_getfd: {os.strerror(code)}")
    with closing(socket.socket(fileno=borrowed)) as held:
        try:
            peer = held.getpeername()
            if not isinstance(peer, tuple) or peer[1] not in ports:
                return None
            info = held.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            up, down, segments = struct.unpack_from("<QQI", info, 120)
        except (OSError, struct.error):  # no connection (any more), or no TCP
            return None
        return os.fstat(held.fileno()).st_ino, Traffic(up, down, segments)
