"""TLS that ends at a tunnel's other end, in memory: OpenSSL sees no socket.

On a socket of its own OpenSSL calls the kernel for each of its records, once to write one and twice to read one. Here
one call takes or gives what many of them fill, and whoever is next on the way is woken as often.
"""

import asyncio
import socket
import ssl
from contextlib import suppress
from typing import Final, Protocol, cast

TLS_BYTES: Final = 16 * 1024
"""The content of one record of TLS at most (RFC 8446, 5.1)."""
TLS_BESIDE_BYTES: Final = 22
"""The rest of such a record (5.2): its header, the kind of its content and the cipher's tag."""
SEALED_AT_ONCE: Final = 8
"""TLS's records for one call of the kernel. More of them no longer fit into the processor's cache together with all
their copies on the way."""
PLAIN_BYTES: Final = SEALED_AT_ONCE * TLS_BYTES
BUFFER_BYTES: Final = PLAIN_BYTES + 2 * TLS_BYTES
"""Space for all that may be opened at once: the bytes of one call, a record that was begun, and the rest of one."""
TURNS: Final = 8
"""Calls for one connection before the loop looks at the others."""
HANDSHAKE_BYTES: Final = TLS_BYTES


class TunnelEnd(Protocol):
    """One end of a tunnel once both have greeted: TunnelTls, or SealedEnd where both can."""

    raw: socket.socket
    plain_bytes: int
    buffer_bytes: int

    def write(self, data: memoryview) -> bool:
        """Send it, `plain_bytes` at most, once all before it has gone; returns whether it has, too. Raises OSError."""

    def flush(self) -> bool:
        """Send what can be sent now of what is left; returns whether nothing is. Raises OSError."""

    def open_into(self, buffer: memoryview) -> int:
        """Read, and open what is whole; returns how many bytes that is, perhaps none. Raises OSError, at the end too.
        buffer: for `buffer_bytes`."""

    def close(self) -> None:
        """End it now."""


class TunnelTls:
    """One end. `greet` first; then `say` and `hear`, or `write`, `flush` and `open_into` by whoever watches `raw`."""

    plain_bytes = PLAIN_BYTES
    buffer_bytes = BUFFER_BYTES

    def __init__(self, raw: socket.socket, context: ssl.SSLContext, server_name: str | None = None) -> None:
        """raw: does not block, and is closed with this. server_name: whose client it is; without one it is a server."""
        self.raw = raw
        self._came, self._made = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._came, self._made, server_side=server_name is None, server_hostname=server_name
        )
        self._unsent = memoryview(b"")

    async def greet(self) -> None:
        """Shake hands; raises OSError."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._tell()
                await self._more()
            except ssl.SSLError:
                with suppress(OSError):
                    await self._tell()  # why not
                raise
            else:
                await self._tell()
                return

    async def say(self, data: bytes) -> None:
        """Send all of it; raises OSError."""
        self._tls.write(data)
        await self._tell()

    async def hear(self, most: int) -> bytes:
        """Wait for bytes, from one to so many; raises OSError, at the end too."""
        while True:
            try:
                return self._tls.read(most)
            except ssl.SSLWantReadError:
                await self._more()

    def write(self, data: memoryview) -> bool:
        """Send it once all before it has gone; returns whether it has, too. Raises OSError."""
        while data:
            data = data[self._tls.write(data) :]
        return self.flush()

    def flush(self) -> bool:
        """Send what can be sent now of what is left; returns whether nothing is. Raises OSError."""
        if not self._unsent:
            self._unsent = memoryview(self._made.read())
        try:
            while self._unsent:
                self._unsent = self._unsent[self.raw.send(self._unsent) :]
        except BlockingIOError:
            return False
        return True

    def open_into(self, buffer: memoryview) -> int:
        """Read once, and open what is whole of it; returns how many bytes that is, perhaps none. Raises OSError, at the
        end too. buffer: for BUFFER_BYTES, so that nothing that was read is left for later but a part of a record."""
        try:
            if not (data := self.raw.recv(SEALED_AT_ONCE * (TLS_BYTES + TLS_BESIDE_BYTES))):
                raise ConnectionResetError("The other side has ended the connection.")
            self._came.write(data)
        except BlockingIOError:
            pass
        count = 0
        try:
            while more := cast(int, self._tls.read(TLS_BYTES, buffer[count:])):  # into a buffer: how many
                count += more
        except ssl.SSLWantReadError:
            pass
        return count

    def agreed(self, protocol: str) -> bool:
        """Return whether both ends have named this protocol while they greeted (ALPN, RFC 7301)."""
        return self._tls.selected_alpn_protocol() == protocol

    def rest(self) -> bytes:
        """Return the bytes that have come and are not read, as they came: where the other side goes on without TLS,
        they are all that follows."""
        return self._came.read()

    def close(self) -> None:
        """End it now."""
        self.raw.close()

    async def _tell(self) -> None:
        await asyncio.get_running_loop().sock_sendall(self.raw, self._made.read())

    async def _more(self) -> None:
        if not (data := await asyncio.get_running_loop().sock_recv(self.raw, HANDSHAKE_BYTES)):
            raise ConnectionResetError("The other side has ended the connection.")
        self._came.write(data)
