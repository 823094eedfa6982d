"""Bytes between a workload's connection and the renter's, in TLS and in records, until both directions have ended.

On the sockets themselves, woken by the loop: what one read brings is given on from where it was read to.
"""

import asyncio
import socket

from windrow_proto import tunnel_socket
from windrow_proto.errors import InvalidInput, LinkClosed, WindrowError
from windrow_proto.tunnels import RECORD_HEAD_BYTES, RecordReader
from windrow_tunnel.seal import SealedEnd
from windrow_tunnel.tls import TURNS, TunnelTls

TunnelEnd = TunnelTls | SealedEnd
"""Of whichever of them, what is written by `write` and read by `open_into`."""


class Pump:
    """One tunnel's. `run` ends it; its caller closes both sockets."""

    def __init__(self, inside: socket.socket, outside: TunnelEnd) -> None:
        """inside: to the workload; outside: to the renter, its handshake done. Neither blocks."""
        self.sent_bytes = self.received_bytes = 0
        self._inside, self._outside, self._tls = inside, outside.raw, outside
        self._out = memoryview(bytearray(outside.plain_bytes))  # of one record, its head included
        self._in = memoryview(bytearray(outside.room_bytes))
        self._is_away = True
        self._to_give: list[memoryview] = []
        self._reader = RecordReader()
        self._is_read = self._is_sent = self._is_given = False
        self._failure: WindrowError | None = None
        self._over = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._readers: set[socket.socket] = set()
        self._writers: set[socket.socket] = set()

    async def run(self) -> None:
        """Until both directions have ended; raises LinkClosed when it was cut before, InvalidInput for no records."""
        try:
            self._outward()
            self._inward()
            await self._over.wait()
        finally:
            for one in (self._inside, self._outside):
                self._watch(self._readers, one, False)
                self._watch(self._writers, one, False)
        if self._failure is not None:
            raise self._failure
        await tunnel_socket.end(self._outside)

    def _outward(self) -> None:
        """The workload's bytes, as one record."""
        try:
            self._is_away = self._tls.flush()
            for _ in range(TURNS):
                if not self._is_away or self._is_read or (record := self._record()) is None:
                    break
                self._is_away = self._tls.write(record)
        except OSError:
            self._fail(LinkClosed("The renter or the Access has cut the tunnel."))
            return
        self._is_sent = self._is_read and self._is_away
        self._watch(self._readers, self._inside, self._is_away and not self._is_read)
        self._watch(self._writers, self._outside, not self._is_away)
        self._end_if_done()

    def _record(self) -> memoryview | None:
        """What the workload has said now, if anything."""
        try:
            count = self._inside.recv_into(self._out[RECORD_HEAD_BYTES:])
        except BlockingIOError:
            return None
        except OSError:
            self._fail(LinkClosed("The workload has cut the connection."))
            return None
        self._out[:RECORD_HEAD_BYTES] = count.to_bytes(RECORD_HEAD_BYTES, "big")
        self._is_read = not count
        self.sent_bytes += count
        return self._out[: RECORD_HEAD_BYTES + count]

    def _inward(self) -> None:
        """The renter's records, as bytes."""
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
            self._fail(LinkClosed("The workload has cut the connection."))
            return
        self._watch(self._readers, self._outside, not self._to_give)
        self._watch(self._writers, self._inside, bool(self._to_give))
        self._end_if_done()

    def _give(self) -> None:
        while self._to_give:
            piece = self._to_give[0]
            rest = piece[self._inside.send(piece) :]
            self._to_give[:1] = [rest] if rest else []
        if self._reader.is_ended and not self._is_given:
            self._is_given = True
            self._inside.shutdown(socket.SHUT_WR)

    def _take_in(self) -> bool:
        """Whether there is something to give, or its end."""
        try:
            count = self._tls.open_into(self._in)
            self._to_give = self._reader.feed(self._in[:count])
        except OSError:  # never without its other end's record before it
            self._fail(LinkClosed("The renter or the Access has cut the tunnel."))
            return False
        except InvalidInput as error:
            self._fail(error)
            return False
        self.received_bytes += sum(map(len, self._to_give))
        return bool(count)

    def _watch(self, watched: set[socket.socket], one: socket.socket, is_wanted: bool) -> None:
        if (one in watched) is is_wanted:
            return
        is_reader, step = watched is self._readers, self._outward
        if is_reader is (one is self._outside):
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

    def _fail(self, error: WindrowError) -> None:
        if not self._over.is_set():
            self._failure = error
            self._over.set()
