"""Bare TCP proxies on asyncio, no TLS and no framing: the peers of `tunnel`. `python -m bench._proxy KIND HOST PORT`.

`streams` is the one that asyncio's own documentation leads to: read 64 KiB, write, drain. `protocols` reads four times
as much at once and hands it from one transport to the other: the fastest that we know to write on asyncio.
"""

import asyncio
import sys
from contextlib import suppress
from typing import cast


class _Side(asyncio.Protocol):
    """One connection; bytes go to the other, which is read no faster than this one takes them."""

    def __init__(self, waits: bool) -> None:
        """waits: it is not read until its other is there; what the loop reads all the same is kept until then."""
        self.other: _Side | None = None
        self._waits = waits
        self.early = b""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(256 * 1024)
        if self._waits:
            self.transport.pause_reading()
        elif self.other is not None:
            self.transport.write(self.other.early)

    def data_received(self, data: bytes) -> None:
        if self.other is None or self.other.transport is None:
            self.early += data
        else:
            self.other.transport.write(data)

    def eof_received(self) -> bool:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write_eof()
        return True

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()


async def _streams(host: str, port: int) -> None:
    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(64 * 1024):
            writer.write(data)
            await writer.drain()
        writer.write_eof()

    async def serve(near_in: asyncio.StreamReader, near_out: asyncio.StreamWriter) -> None:
        far_in, far_out = await asyncio.open_connection(host, port)
        try:
            await asyncio.gather(pass_on(near_in, far_out), pass_on(far_in, near_out))
        finally:
            near_out.close()
            far_out.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


async def _protocols(host: str, port: int) -> None:
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:

        async def joined(near: _Side) -> None:
            far = _Side(waits=False)
            near.other, far.other = far, near
            await loop.create_connection(lambda: far, host, port)
            assert near.transport is not None
            near.transport.resume_reading()

        def accept() -> _Side:
            near = _Side(waits=True)
            group.create_task(joined(near))
            return near

        server = await loop.create_server(accept, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        async with server:
            await server.serve_forever()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run({"streams": _streams, "protocols": _protocols}[sys.argv[1]](sys.argv[2], int(sys.argv[3])))
