"""Shuts and opens gRPC's listening sockets: while they are shut the kernel drops new connections, which the peer's
system tries again by itself.

gRPC accepts whatever comes and gives Python no say. A filter that passes nothing, on the listening sockets alone, needs
no rights, costs nothing, and leaves every connection that is there untouched.
"""

import ctypes
import os
import socket
import struct
from pathlib import Path
from typing import Final

OWN_SOCKETS: Final = Path("/proc/self/fd")
SO_ATTACH_FILTER: Final = 26
SO_DETACH_FILTER: Final = 27
"""Of include/uapi/asm-generic/socket.h; Python names neither."""
WAITING_MAX: Final = 64
"""Connections on a listening socket: twice as many as may come in a tenth of a second before the listener is shut."""
PASS_NOTHING: Final = struct.pack("HBBI", 0x06, 0, 0, 0)
"""One instruction of the classic filter: return 0, so many bytes of each packet."""


class AcceptFilter:
    """Open until it is turned. times: how often it was shut."""

    def __init__(self) -> None:
        self.is_shut = False
        self.times = 0
        self._listeners: list[int] = []
        self._program = ctypes.create_string_buffer(PASS_NOTHING)
        self._filter = struct.pack("HxxxxxxP", 1, ctypes.addressof(self._program))

    def turn(self, port: int, *, is_shut: bool) -> None:
        """Shut or open it for the sockets of this process that listen on this port. Does nothing where it is so.

        They are looked for among all open files once: with 10,000 agents that takes longer than a turn may.
        """
        if is_shut == self.is_shut:
            return
        self._find(port)
        for number in self._listeners:
            listener = socket_of(number)
            try:
                if is_shut:
                    listener.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, self._filter)
                else:
                    listener.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
            finally:
                listener.detach()  # it is gRPC's
        self.is_shut = is_shut
        self.times += is_shut

    def _find(self, port: int) -> None:
        if not self._listeners or not all(_listens(number, port) for number in self._listeners):
            self._listeners = _listening(port)

    def narrow(self, port: int) -> None:
        """Let the kernel hold no more than WAITING_MAX that gRPC has not accepted; who knocks beyond them knocks again.

        gRPC lets it hold thousands, and accepts all that came between two looks at once.
        """
        self._find(port)
        for number in self._listeners:
            listener = socket_of(number)
            try:
                listener.listen(WAITING_MAX)
            finally:
                listener.detach()


def socket_of(number: int) -> socket.socket:
    """An open file as a socket, not asked what kind it is, which would take three calls. To be detached again."""
    return socket.socket(socket.AF_INET6, socket.SOCK_STREAM, 0, fileno=number)


def _listening(port: int) -> list[int]:
    return [number for name in os.listdir(OWN_SOCKETS) if _listens(number := int(name), port)]


def _listens(number: int, port: int) -> bool:
    try:
        one = socket_of(number)
    except OSError:
        return False
    try:
        is_listening = one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        return bool(is_listening) and isinstance(name := one.getsockname(), tuple) and name[1] == port
    except OSError:
        return False
    finally:
        one.detach()
