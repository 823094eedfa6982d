"""Moves bytes between a local connection and a tunnel, in records, until both directions have ended.

It works on the sockets themselves, woken by the loop: what one read brings is given on from where it was read to, and
neither side is read further than the other takes it.
"""

import asyncio
import socket
from collections.abc import Callable

from windrow_tunnel.errors import Cut, LocalCut, Malformed, TunnelError
from windrow_tunnel.sockets import end
from windrow_tunnel.tls import TURNS, TunnelEnd
from windrow_tunnel.wire import RECORD_HEAD_BYTES, RecordReader


class Pump:
    """The bytes of one tunnel. `run` ends it; its caller closes both sockets."""

    def __init__(self, local: socket.socket, far: TunnelEnd, on_bytes: Callable[[int, int], None]) -> None:
        """local: to the workload, or to the renter's program; far: to the other end, its handshake done. Neither
        blocks. on_bytes: called with how many more bytes went into the tunnel and came out of it."""
        self._on_bytes = on_bytes
        self._local, self._tunnel, self._far = local, far.raw, far
        self._out = memoryview(bytearray(far.plain_bytes))  # of one record, its head included
        self._in = memoryview(bytearray(far.buffer_bytes))
        self._is_away = True
        self._to_give: list[memoryview] = []
        self._reader = RecordReader()
        self._is_read = self._is_sent = self._is_given = False
        self._failure: TunnelError | None = None
        self._over = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._readers: set[socket.socket] = set()
        self._writers: set[socket.socket] = set()

    async def run(self) -> None:
        """Move bytes until both directions have ended; raises Cut or LocalCut when it was cut before, Malformed."""
        try:
            self._outward()
            self._inward()
            await self._over.wait()
        finally:
            for one in (self._local, self._tunnel):
                self._watch(self._readers, one, False)
                self._watch(self._writers, one, False)
        if self._failure is not None:
            raise self._failure
        await end(self._tunnel)

    def _outward(self) -> None:
        """Send local bytes, as records."""
        try:
            self._is_away = self._far.flush()
            for _ in range(TURNS):
                if not self._is_away or self._is_read or (record := self._record()) is None:
                    break
                self._is_away = self._far.write(record)
        except OSError:
            self._fail(Cut("The other end or the relay has cut the tunnel."))
            return
        self._is_sent = self._is_read and self._is_away
        self._watch(self._readers, self._local, self._is_away and not self._is_read)
        self._watch(self._writers, self._tunnel, not self._is_away)
        self._end_if_done()

    def _record(self) -> memoryview | None:
        """Read local bytes into a record; None where nothing has come."""
        try:
            count = self._local.recv_into(self._out[RECORD_HEAD_BYTES:])
        except BlockingIOError:
            return None
        except OSError:
            self._fail(LocalCut("The local connection was cut."))
            return None
        self._out[:RECORD_HEAD_BYTES] = count.to_bytes(RECORD_HEAD_BYTES, "big")
        self._is_read = not count
        self._on_bytes(count, 0)
        return self._out[: RECORD_HEAD_BYTES + count]

    def _inward(self) -> None:
        """Give the other end's records to the local side, as bytes."""
        try:
            for _ in range(TURNS):
                if not self._to_give and not self._take_in():
                    break
                self._give()
                if self._is_given:
                    break  # what follows the end is an end, too, and perhaps none too early
        except BlockingIOError:
            pass
        except OSError:
            self._fail(LocalCut("The local connection was cut."))
            return
        self._watch(self._readers, self._tunnel, not self._to_give)
        self._watch(self._writers, self._local, bool(self._to_give))
        self._end_if_done()

    def _give(self) -> None:
        while self._to_give:
            piece = self._to_give[0]
            rest = piece[self._local.send(piece) :]
            self._to_give[:1] = [rest] if rest else []
        if self._reader.is_ended and not self._is_given:
            self._is_given = True
            self._local.shutdown(socket.SHUT_WR)

    def _take_in(self) -> bool:
        """Read from the tunnel; returns whether there is something to give, or its end."""
        try:
            count = self._far.open_into(self._in)
            self._to_give = self._reader.feed(self._in[:count])
        except OSError:  # never without its other end's record before it
            self._fail(Cut("The other end or the relay has cut the tunnel."))
            return False
        except Malformed as error:
            self._fail(error)
            return False
        self._on_bytes(0, sum(map(len, self._to_give)))
        return bool(count)

    def _watch(self, watched: set[socket.socket], one: socket.socket, is_wanted: bool) -> None:
        if (one in watched) is is_wanted:
            return
        is_reader, step = watched is self._readers, self._outward
        if is_reader is (one is self._tunnel):
            step = self._inward
        if is_wanted:
            watched.add(one)
            self._loop.add_reader(one, step) if is_reader else self._loop.add_writer(one, step)
        else:
            watched.discard(one)
            self._loop.remove_reader(one) if is_reader else self._loop.remove_writer(one)

    def _end_if_done(self) -> None:
        if self._is_sent and self._is_given:
            self._over.set()

    def _fail(self, error: TunnelError) -> None:
        if not self._over.is_set():
            self._failure = error
            self._over.set()
