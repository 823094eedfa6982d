"""Finds free ports of this machine for the daemons of `windrow up`."""

import socket
from typing import Final

from windrow_proto.errors import InvalidInput, Unavailable

PORT_TRIES: Final = 50
"""A taken port is followed by the next free one, up to so many."""


def at_hand(listen: str) -> str:
    """An address of this machine at which what listens there answers."""
    return "127.0.0.1" if listen in {"0.0.0.0", "::"} else listen


def checked(listen: str) -> str:
    """The address without the brackets of a URL. Raises InvalidInput where nothing here can listen on it."""
    host = listen[1:-1] if listen[:1] + listen[-1:] == "[]" else listen
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.bind((host, 0))
    except OSError as error:
        raise InvalidInput(f"--listen {listen}: this machine cannot listen there ({error.strerror}).") from None
    return host


def is_free(host: str, port: int) -> bool:
    """Return whether this port could be listened on now."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen()
        except OSError:
            return False
    return True


def free_port(host: str, first: int, taken: set[int]) -> int:
    """The first free port from here that is not spoken for; raises Unavailable."""
    for port in range(first, first + PORT_TRIES):
        if port not in taken and is_free(host, port):
            return port
    raise Unavailable(f"None of the ports {first} to {first + PORT_TRIES} is free on {host}.")
