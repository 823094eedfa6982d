"""Forwards local connections, or standard input and output, to a port of a cluster, each through its own tunnel."""

import asyncio
import contextlib
import os
import queue
import threading
from collections.abc import Callable

from windrow.client import Client
from windrow.errors import LocalCut, WindrowClientError
from windrow.tunnel import BUFFER_BYTES, RECORD_BYTES_MAX, Local, Tunnel

CONNECTIONS_MAX = 128
"""At a time: what a host serves of one port; the next is closed at once."""
LOCALHOST = "127.0.0.1"
STDIN, STDOUT = 0, 1


class Forward:
    """A listening port of this machine whose connections end in a cluster. Figures are of all of them."""

    def __init__(self, api: Client, cluster_id: str, port: int, on_error: Callable[[WindrowClientError], None]) -> None:
        self._api, self._cluster_id, self._port, self._on_error = api, cluster_id, port, on_error
        self.connections = self.open = self.sent_bytes = self.received_bytes = 0

    async def listen(self, local: int, is_fixed: bool, on_ready: Callable[[int], None]) -> None:
        """Listen on this local port, or any where it is taken and not fixed, and serve until cancelled.

        on_ready: is told the port. Raises WindrowClientError if the port cannot be had.
        """
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:

            def accept() -> Local:
                local = Local()
                group.create_task(self._serve(local))
                return local

            try:
                server = await loop.create_server(accept, LOCALHOST, local)
            except OSError as error:
                if is_fixed:
                    raise WindrowClientError(
                        f"Port {local} of this machine cannot be listened on ({error.strerror}). Name another --local."
                    ) from error
                server = await loop.create_server(accept, LOCALHOST, 0)
            async with server:
                on_ready(server.sockets[0].getsockname()[1])
                await server.serve_forever()

    async def pipe(self) -> None:
        """One tunnel for standard input and output, to its end. Raises WindrowClientError."""
        stdio = Stdio(asyncio.get_running_loop())
        await self._carry(stdio)
        await stdio.flushed()

    async def _serve(self, local: Local) -> None:
        if self.open >= CONNECTIONS_MAX:
            self._on_error(WindrowClientError(f"{CONNECTIONS_MAX} connections are open; one more was closed."))
            local.abort()
            return
        try:
            await self._carry(local)
        except LocalCut:
            pass  # a browser that goes elsewhere, say
        except WindrowClientError as error:
            self._on_error(error)
        finally:
            if not local.gone.is_set():
                local.abort() if local.tunnel is None else local.close()

    async def _carry(self, local: Local) -> None:
        self.open += 1
        self.connections += 1
        tunnel = Tunnel(local, self._count)
        try:
            ticket = await asyncio.to_thread(self._api.open_tunnel, self._cluster_id, self._port)
            await tunnel.dial(ticket)
            await tunnel.carry()
        except BaseException:
            tunnel.abort()
            raise
        finally:
            self.open -= 1

    def _count(self, sent: int, received: int) -> None:
        self.sent_bytes += sent
        self.received_bytes += received


class Stdio(Local):
    """Standard input and output as the local side, whatever kinds of files they are: a thread each."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        self._may_read = threading.Event()
        self._is_paused = self._is_closed = False
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._waiting_bytes = 0
        self._flushed = asyncio.Event()

    def start(self, tunnel: Tunnel) -> None:
        """Begin with both."""
        self.tunnel = tunnel
        self._may_read.set()
        for work in (self._read, self._write):
            threading.Thread(target=work, daemon=True).start()

    async def flushed(self) -> None:
        """Until all that came has been written."""
        await self._flushed.wait()

    # --- on their threads --------------------------------------------------------------------------------------------

    def _read(self) -> None:
        """One piece at a time: the next is read when the loop has passed on the last."""
        while self._may_read.wait():
            self._may_read.clear()
            try:
                data = os.read(STDIN, RECORD_BYTES_MAX)
            except OSError:
                data = b""
            self._tell(self._came, data)
            if not data:
                return

    def _write(self) -> None:
        try:
            while (data := self._waiting.get()) is not None:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(STDOUT, rest) :]
                self._tell(self._wrote, len(data))
            with contextlib.suppress(OSError):
                os.close(STDOUT)  # who reads it sees the end while this process may still send
            self._tell(self._flushed.set)
        except OSError:
            self._tell(self._cut)

    def _tell(self, what: Callable[..., object], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            self._loop.call_soon_threadsafe(what, *arguments)

    # --- on the loop -------------------------------------------------------------------------------------------------

    def _came(self, data: bytes) -> None:
        if not data:
            self.eof_received()
            return
        self.data_received(data)
        if not self._is_paused:
            self._may_read.set()

    def _wrote(self, count: int) -> None:
        before, self._waiting_bytes = self._waiting_bytes, self._waiting_bytes - count
        if before > BUFFER_BYTES >= self._waiting_bytes:
            self.resume_writing()

    def _cut(self) -> None:
        self._flushed.set()
        self.connection_lost(None)

    def write(self, data: memoryview) -> None:
        """Bytes of the workload's."""
        self._waiting_bytes += len(data)
        self._waiting.put(bytes(data))
        if self._waiting_bytes > BUFFER_BYTES:
            self.pause_writing()

    def finish(self) -> None:
        """There are no more of those."""
        if not self._is_closed:
            self._is_closed = True
            self._waiting.put(None)

    def pause(self) -> None:
        """Read no more for now."""
        self._is_paused = True

    def resume(self) -> None:
        """Read on."""
        self._is_paused = False
        self._may_read.set()

    def close(self) -> None:
        """End it once it wrote what came."""
        self.finish()

    def abort(self) -> None:
        """The same: what has come may as well be seen."""
        self.finish()
