"""Bytes between a local connection and a tunnel to a host, in TLS and in records, until both directions have ended.

On the sockets themselves, woken by the loop. Neither side is read further than the other takes it. A record is four
bytes of length and so many bytes; length 0 ends a direction, so that one can end before the other.
"""

import asyncio
import socket
from collections.abc import Callable

from windrow import tunnel
from windrow.errors import LocalCut, TunnelBroken
from windrow.tls import TURNS, HostEnd

HEAD_BYTES = 4
RECORD_BYTES_MAX = 256 * 1024
END = bytes(HEAD_BYTES)
CUT = "The tunnel was cut: the cluster has ended, or its host has lost its connection."


class Records:
    """Takes records apart as they come."""

    def __init__(self) -> None:
        self._head = b""
        self._left = 0
        self.is_ended = False

    def feed(self, data: bytes | memoryview) -> list[memoryview]:
        """What these bytes carry; raises TunnelBroken for what is no record."""
        found: list[memoryview] = []
        rest = memoryview(data)
        while rest:
            if self.is_ended:
                raise TunnelBroken("Bytes came after the tunnel's end.")
            if self._left:
                found.append(rest[: self._left])
                self._left -= len(found[-1])
                rest = rest[len(found[-1]) :]
                continue
            wanted = HEAD_BYTES - len(self._head)
            self._head += bytes(rest[:wanted])
            rest = rest[wanted:]
            if len(self._head) == HEAD_BYTES:
                self._left, self._head = int.from_bytes(self._head, "big"), b""
                self.is_ended = not self._left
                if self._left > RECORD_BYTES_MAX:
                    raise TunnelBroken(f"A record of {self._left} bytes came; the limit is {RECORD_BYTES_MAX}.")
        return found


class Pump:
    """One tunnel's. `run` ends it; its caller closes both sockets."""

    def __init__(self, local: socket.socket, host: HostEnd, on_bytes: Callable[[int, int], None]) -> None:
        """local: a connection of this machine; host: to the cluster's host, its handshake done. Neither blocks.

        on_bytes: called with how many more bytes were sent and received.
        """
        self._on_bytes = on_bytes
        self._local, self._host, self._tls = local, host.raw, host
        self._out = memoryview(bytearray(host.plain_bytes))  # of one record, its head included
        self._in = memoryview(bytearray(host.room_bytes))
        self._is_away = True
        self._to_give: list[memoryview] = []
        self._reader = Records()
        self._is_read = self._is_sent = self._is_given = False
        self._failure: TunnelBroken | None = None
        self._over = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._readers: set[socket.socket] = set()
        self._writers: set[socket.socket] = set()

    async def run(self) -> None:
        """Until both directions have ended; raises TunnelBroken when it was cut before."""
        try:
            self._outward()
            self._inward()
            await self._over.wait()
        finally:
            for one in (self._local, self._host):
                self._watch(self._readers, one, False)
                self._watch(self._writers, one, False)
        if self._failure is not None:
            raise self._failure
        await tunnel.end(self._host)

    def _outward(self) -> None:
        """Local bytes, as one record."""
        try:
            self._is_away = self._tls.flush()
            for _ in range(TURNS):
                if not self._is_away or self._is_read or (record := self._record()) is None:
                    break
                self._is_away = self._tls.write(record)
        except OSError:
            self._fail(TunnelBroken(CUT))
            return
        self._is_sent = self._is_read and self._is_away
        self._watch(self._readers, self._local, self._is_away and not self._is_read)
        self._watch(self._writers, self._host, not self._is_away)
        self._end_if_done()

    def _record(self) -> memoryview | None:
        """What was said here now, if anything."""
        try:
            count = self._local.recv_into(self._out[HEAD_BYTES:])
        except BlockingIOError:
            return None
        except OSError:
            self._fail(LocalCut("The local connection was cut."))
            return None
        self._out[:HEAD_BYTES] = count.to_bytes(HEAD_BYTES, "big")
        self._is_read = not count
        self._on_bytes(count, 0)
        return self._out[: HEAD_BYTES + count]

    def _inward(self) -> None:
        """The workload's records, as bytes."""
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
        self._watch(self._readers, self._host, not self._to_give)
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
        """Whether there is something to give, or its end."""
        try:
            count = self._tls.open_into(self._in)
            self._to_give = self._reader.feed(self._in[:count])
        except OSError:  # never without its other end's record before it
            self._fail(TunnelBroken(CUT))
            return False
        except TunnelBroken as error:
            self._fail(error)
            return False
        self._on_bytes(0, sum(map(len, self._to_give)))
        return bool(count)

    def _watch(self, watched: set[socket.socket], one: socket.socket, is_wanted: bool) -> None:
        if (one in watched) is is_wanted:
            return
        is_reader, step = watched is self._readers, self._outward
        if is_reader is (one is self._host):
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

    def _fail(self, error: TunnelBroken) -> None:
        if not self._over.is_set():
            self._failure = error
            self._over.set()
