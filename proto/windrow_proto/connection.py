"""One end of a TCP or TLS connection as tunnels use it: written to, paused and resumed, closed in order or at once."""

import asyncio
from contextlib import suppress
from typing import Final, cast

from windrow_proto.units import KIB

BUFFER_BYTES: Final = 256 * KIB
"""Of each connection, beside what the kernel and TLS keep, before whoever fills it is not read any more."""
FLUSH_S: Final = 10.0
"""For an end to take what is under way when it is closed."""


class Connection(asyncio.Protocol):
    """Subclasses say what becomes of bytes and ends, and in `pause_writing` and `resume_writing` whom not to read."""

    def __init__(self, buffer_bytes: int = BUFFER_BYTES) -> None:
        self.ended = asyncio.Event()
        self._buffer_bytes = buffer_bytes
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is there, its handshake done."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(self._buffer_bytes)

    def connection_lost(self, error: Exception | None) -> None:
        """It has gone."""
        self.ended.set()

    def write(self, data: bytes | memoryview) -> None:
        """Send; nothing if it has gone."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def pause(self) -> None:
        """Read no more for now."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self, flush_s: float = FLUSH_S) -> None:
        """End it once it took what was written, and at the latest after so many seconds."""
        if self._transport is not None and not self.ended.is_set():
            if not self._transport.is_closing():  # closed a second time, it could not be aborted: see `abort`
                self._transport.close()
            asyncio.get_running_loop().call_later(flush_s, self.abort)

    def abort(self) -> None:
        """End it now."""
        if self._transport is not None and not self.ended.is_set():
            # Up to Python 3.11.4 TLS that asyncio itself closed twice, as it does where the peer went in the moment of
            # the handshake and the task is cancelled, has nothing left to abort: it ends by its own shutdown's timeout.
            with suppress(AttributeError):
                self._transport.abort()

    async def gone(self) -> None:
        """Wait until it has ended, as it does some time after `close`."""
        if self._transport is not None:
            await self.ended.wait()
