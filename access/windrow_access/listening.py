"""Sockets that this Access listens on beside gRPC's."""

import socket
from typing import Final

from windrow_proto.errors import Unavailable

BACKLOG: Final = 128
PORT_TRIES: Final = 50


def listen(host: str, port: int, what: str, flag: str, *, is_shared: bool = False) -> socket.socket:
    """Listen on this port or the next free one, 0 for any; with is_shared on this one alone, with other workers.

    what, flag: for the sentence of the Unavailable that is raised when there is none.
    """
    tries = 1 if is_shared else PORT_TRIES
    for candidate in range(port, min(port + tries, 65_536)) if port else (0,):
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            listener.bind((host, candidate))
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            continue
        listener.setblocking(False)
        return listener
    raise Unavailable(f"No free port for {what} from {port} on {host}. Give another {flag}.")


def port_of(listener: socket.socket) -> int:
    """The port that it listens on."""
    found: int = listener.getsockname()[1]
    return found
