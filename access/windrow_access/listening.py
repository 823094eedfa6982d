"""Sockets that this Access listens on beside gRPC's."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any, Final

import structlog

from windrow_access.core.strangers import network_of, plain_address
from windrow_proto.crashes import CRASHED
from windrow_proto.errors import Unavailable

log = structlog.get_logger()

BACKLOG: Final = 128
PORT_TRIES: Final = 50
PAUSE_S: Final = 0.1
"""After a connection that could not be accepted: open files run out."""


def listen(host: str, port: int, what: str, flag: str, *, is_shared: bool = False) -> socket.socket:
    """Listen on this port or the next free one, 0 for any; with is_shared on this one alone, with other workers.

    What it accepts sends at once. what, flag: for the sentence of the Unavailable that is raised when there is none.
    """
    tries = 1 if is_shared else PORT_TRIES
    for candidate in range(port, min(port + tries, 65_536)) if port else (0,):
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
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


async def serve_connections(
    listener: socket.socket | None,
    what: str,
    admits: Callable[[str], bool],
    serve: Callable[[socket.socket, str], Coroutine[Any, Any, None]],
    *beside: Coroutine[Any, Any, None],
) -> None:
    """Accept and serve, with the tasks `beside`, until cancelled; then close all connections and the socket."""
    assert listener is not None, "run follows open"
    try:
        async with asyncio.TaskGroup() as group:
            for task in beside:
                group.create_task(task)
            await accept(listener, what, admits, serve, group)
    finally:
        listener.close()


async def accept(
    listener: socket.socket,
    what: str,
    admits: Callable[[str], bool],
    serve: Callable[[socket.socket, str], Coroutine[Any, Any, None]],
    group: asyncio.TaskGroup,
) -> None:
    """Serve each connection in a task of the group, with the network it comes from; close at once what is not admitted.
    What a stranger finds to crash ends his own connection. Until cancelled."""

    async def guarded(connection: socket.socket, network: str) -> None:
        try:
            await serve(connection, network)
        except Exception:  # the task's top level: the others go on
            log.exception(f"{what}{CRASHED}", network=network)

    while True:
        try:
            connection, address = await asyncio.get_running_loop().sock_accept(listener)
        except OSError as error:
            log.warning(f"{what}_not_accepted", error=str(error)[:100])
            await asyncio.sleep(PAUSE_S)
            continue
        network = network_of(plain_address(str(address[0])))
        if admits(network):
            group.create_task(guarded(connection, network))
        else:
            connection.close()
