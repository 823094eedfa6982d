"""Forwards local connections, or standard input and output, to a port of a cluster, each through its own tunnel."""

import asyncio
import contextlib
import errno
import os
import socket
import threading
from collections.abc import Callable
from functools import partial

from windrow import tunnel
from windrow.client import Client
from windrow.errors import LocalCut, WindrowClientError
from windrow.nearest import Nearest

CONNECTIONS_MAX = 128
"""At a time: what a host serves of one port; the next is closed at once."""
LOCALHOST, LOCALHOST_6 = "127.0.0.1", "::1"
NO_IPV6 = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT})
"""This machine has no IPv6 loopback, so nobody answers there."""
PORT_TRIES = 20
"""For a port that is free on both."""
STDIN, STDOUT = 0, 1
PIECE_BYTES = 64 * 1024
PAUSE_S = 0.1
"""After a connection that could not be accepted: open files run out."""


class Forward:
    """A listening port of this machine whose connections end in a cluster. Figures are of all of them."""

    def __init__(
        self,
        api: Client,
        cluster_id: str,
        port: int,
        on_error: Callable[[WindrowClientError], None],
        nearest: Nearest | None = None,
        rank: int = 0,
    ) -> None:
        """nearest: what is known of the market's Accesses, if not what programs before this one have measured. rank: of
        the member, where the cluster has several."""
        self._nearest = nearest or Nearest(api.config.url)
        self._ask = partial(api.open_tunnel, cluster_id, port, rank=rank)
        self._on_error = on_error
        self.connections = self.open = self.sent_bytes = self.received_bytes = 0

    async def listen(self, local: int, is_fixed: bool, on_ready: Callable[[int], None]) -> None:
        """Listen on this local port, or any where it is taken and not fixed, and serve until cancelled.

        on_ready: is told the port. Raises WindrowClientError if the port cannot be had.
        """
        try:
            servers = listening(local)
        except OSError as error:
            if is_fixed:
                raise WindrowClientError(
                    f"Port {local} of this machine cannot be listened on ({error.strerror}). Name another --local."
                ) from error
            servers = listening(0)
        with contextlib.ExitStack() as opened:
            for server in servers:
                opened.enter_context(server).setblocking(False)
            async with asyncio.TaskGroup() as group:
                on_ready(servers[0].getsockname()[1])
                for server in servers:
                    group.create_task(self._accept(server, group))

    async def _accept(self, server: socket.socket, group: asyncio.TaskGroup) -> None:
        while True:
            try:
                connection, _ = await asyncio.get_running_loop().sock_accept(server)
            except OSError:
                await asyncio.sleep(PAUSE_S)
                continue
            group.create_task(self._serve(connection))

    async def pipe(self) -> None:
        """One tunnel for standard input and output, to its end. Raises WindrowClientError."""
        stdio = Stdio()
        with stdio.connection:
            await self._carry(stdio.connection, stdio.start)
        await stdio.flushed()

    async def _serve(self, connection: socket.socket) -> None:
        with connection:
            if self.open >= CONNECTIONS_MAX:
                self._on_error(WindrowClientError(f"{CONNECTIONS_MAX} connections are open; one more was closed."))
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                await self._carry(connection)
            except LocalCut:
                pass  # a browser that goes elsewhere, say
            except WindrowClientError as error:
                self._on_error(error)

    async def _carry(self, local: socket.socket, start: Callable[[], None] = lambda: None) -> None:
        """start: called when the host is there."""
        local.setblocking(False)
        self.open += 1
        self.connections += 1
        try:
            with contextlib.closing(await tunnel.meet(self._ask, self._nearest)) as host:
                start()
                await tunnel.carry(local, host, self._count)
        finally:
            self.open -= 1

    def _count(self, sent: int, received: int) -> None:
        self.sent_bytes += sent
        self.received_bytes += received


def listening(port: int) -> list[socket.socket]:
    """Sockets on this port (0: any that is free) of both loopback addresses. Raises OSError where either is taken.

    A browser may try either address for a name under `localhost`: on the other one somebody else could answer.
    """
    for _ in range(1 if port else PORT_TRIES):
        first = socket.create_server((LOCALHOST, port))
        try:
            return [first, socket.create_server((LOCALHOST_6, first.getsockname()[1]), family=socket.AF_INET6)]
        except OSError as error:
            if error.errno in NO_IPV6:
                return [first]
            first.close()
            taken = error
    raise taken


class Stdio:
    """Standard input and output as a connection, whatever kinds of files they are: a thread each."""

    def __init__(self) -> None:
        """connection: what they are from `start` on."""
        self.connection, self._far = socket.socketpair()
        self._flushed = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """Begin with both."""
        for work in (self._read, self._write):
            threading.Thread(target=work, daemon=True).start()

    async def flushed(self) -> None:
        """Until all that came has been written."""
        await self._flushed.wait()

    # --- on their threads --------------------------------------------------------------------------------------------

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(STDIN, PIECE_BYTES):
                self._far.sendall(data)
        with contextlib.suppress(OSError):
            self._far.shutdown(socket.SHUT_WR)

    def _write(self) -> None:
        try:
            while data := self._far.recv(PIECE_BYTES):
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(STDOUT, rest) :]
            os.close(STDOUT)  # who reads it sees the end while this process may still send
        except OSError:
            with contextlib.suppress(OSError):
                self._far.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            self._loop.call_soon_threadsafe(self._flushed.set)
