"""This host's end of a link between two members: packets both ways, in TLS, through an Access that both hosts dial.

What the line does not take waits, up to a limit; then packets are lost, as on every network, and TCP inside slows down.
An end of which nothing is heard for a minute is gone.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from windrow_proto.errors import LinkClosed
from windrow_proto.overlay_packets import HERE, FrameReader, frame
from windrow_proto.ports import Clock
from windrow_proto.units import MIB, SECOND
from windrow_tunnel.tls import BUFFER_BYTES, PLAIN_BYTES, TURNS, TunnelTls

QUEUE_BYTES_MAX: Final = 4 * MIB
"""Packets that wait for the line: as much as one connection of Linux sends ahead (net.ipv4.tcp_wmem)."""
HERE_NS: Final = 15 * SECOND
SILENCE_NS: Final = 60 * SECOND


class PeerLink:
    """One end. `run` until it is over; `send` and `flush` meanwhile."""

    def __init__(self, tls: TunnelTls, take: Callable[[memoryview], None], clock: Clock) -> None:
        """tls: greeted. take: called with each packet that comes."""
        self.sent_bytes = self.received_bytes = self.lost = 0
        self._tls, self._take, self._clock = tls, take, clock
        self._reader = FrameReader()
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._heard_ns = clock.monotonic_ns()
        self._over = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._is_writing = False
        self._why = ""

    def send(self, packet: bytes) -> None:
        """Have it sent with the next `flush`, or lose it."""
        if self._waiting_bytes + len(packet) > QUEUE_BYTES_MAX:
            self.lost += 1
            return
        self.sent_bytes += len(packet)
        self._put(frame(packet))

    def flush(self) -> None:
        """Send what the line takes now."""
        if self._over.is_set():
            return
        try:
            is_away = self._tls.flush()
            for _ in range(TURNS):
                if not is_away or not self._waiting:
                    break
                is_away = self._tls.write(memoryview(self._batch()))
        except OSError:
            self.end("the line to it was cut")
            return
        self._watch_writing(bool(self._waiting) or not is_away)

    def end(self, why: str) -> None:
        """Ends the link; `run` says why."""
        self._why = self._why or why
        self._over.set()

    async def run(self) -> None:
        """Until it is over: raises LinkClosed with the reason."""
        self._loop.add_reader(self._tls.raw, self._came)
        try:
            while not self._over.is_set():
                self._put(HERE)
                self.flush()
                await self._until_over(HERE_NS)
                if self._clock.monotonic_ns() - self._heard_ns >= SILENCE_NS:
                    self.end("nothing was heard of the peer for a minute")
        finally:
            self._over.set()
            self._loop.remove_reader(self._tls.raw)
            self._watch_writing(False)
            self._waiting.clear()
        raise LinkClosed(f"{self._why[:1].upper()}{self._why[1:]}.")

    async def _until_over(self, wait_ns: int) -> None:
        try:
            async with asyncio.timeout(wait_ns / SECOND):
                await self._over.wait()
        except TimeoutError:
            return

    def _put(self, data: bytes) -> None:
        self._waiting.append(data)
        self._waiting_bytes += len(data)

    def _batch(self) -> bytes:
        """As many frames as one call of the kernel takes, at least one."""
        found: list[bytes] = []
        size = 0
        while self._waiting and (not found or size + len(self._waiting[0]) <= PLAIN_BYTES):
            found.append(self._waiting.popleft())
            size += len(found[-1])
        self._waiting_bytes -= size
        return b"".join(found)

    def _came(self) -> None:
        try:
            for _ in range(TURNS):
                if not (count := self._tls.open_into(self._buffer)):
                    break
                self._heard_ns = self._clock.monotonic_ns()
                for packet in self._reader.feed(self._buffer[:count]):
                    self.received_bytes += len(packet)
                    self._take(packet)
        except OSError:  # ssl.SSLError is one
            self.end("the line to it was cut")
            self._loop.remove_reader(self._tls.raw)

    def _watch_writing(self, is_wanted: bool) -> None:
        if is_wanted is self._is_writing:
            return
        self._is_writing = is_wanted
        if is_wanted:
            self._loop.add_writer(self._tls.raw, self.flush)
        else:
            self._loop.remove_writer(self._tls.raw)
