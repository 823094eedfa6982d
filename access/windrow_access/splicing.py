"""Joins two connections in the kernel: the bytes of one go to the other through a pipe, and never through this process.

Either is read no further than the other takes it. An end that has gone takes the other with it once that has taken what
was under way.
"""

import asyncio
import fcntl
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from windrow_tunnel.sockets import BYE_S

TURNS: Final = 8
"""Pipes full of one direction before the loop looks at the others."""
FLAGS: Final = os.SPLICE_F_NONBLOCK | os.SPLICE_F_MOVE


class Way:
    """One direction: waits for its source while its pipe is empty, and else for its sink."""

    def __init__(
        self, source: socket.socket, sink: socket.socket, pipe_bytes: int, on_change: Callable[[], None]
    ) -> None:
        """on_change: called when it has ended or its sink is gone. Raises OSError where no file can be opened."""
        self.moved_bytes = self.held_bytes = 0
        self.is_ended = self.is_cut = False
        self._source, self._sink, self._on_change = source, sink, on_change
        self._fds = source.fileno(), sink.fileno()
        self._pipe_bytes = pipe_bytes
        self._out, self._in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        with suppress(OSError):  # a user has so many pages of pipes; without them it is a smaller one
            fcntl.fcntl(self._in, fcntl.F_SETPIPE_SZ, pipe_bytes)
        self._loop = asyncio.get_running_loop()
        self._is_reading = self._is_writing = False

    def step(self) -> None:
        """Move what can be moved now, and wait for what is next."""
        try:
            for _ in range(TURNS):
                if not self.held_bytes and not self._fill():
                    break
                self.held_bytes -= os.splice(self._out, self._fds[1], self.held_bytes, flags=FLAGS)
        except BlockingIOError:
            pass
        except OSError:
            self.is_cut = True
        if self.is_cut or (self.is_ended and not self.held_bytes):
            self.stop()
            with suppress(OSError):
                self._sink.shutdown(socket.SHUT_WR)
            self._on_change()
            return
        self._watch(is_reading=not self.held_bytes, is_writing=bool(self.held_bytes))

    def _fill(self) -> bool:
        """Take what has come into the empty pipe; returns whether there is any."""
        if self.is_ended:
            return False
        try:
            self.held_bytes = os.splice(self._fds[0], self._in, self._pipe_bytes, flags=FLAGS)
        except BlockingIOError:
            return False
        except OSError:  # it was cut, which is an end like another: only its other end can tell
            pass
        self.is_ended = not self.held_bytes
        self.moved_bytes += self.held_bytes
        return bool(self.held_bytes)

    def stop(self) -> None:
        """Wait for nothing any more."""
        self._watch(is_reading=False, is_writing=False)

    def close(self) -> None:
        """Let go of the pipe."""
        self.stop()
        os.close(self._in)
        os.close(self._out)

    def _watch(self, *, is_reading: bool, is_writing: bool) -> None:
        source, sink = self._fds
        if is_reading is not self._is_reading:
            self._is_reading = is_reading
            self._loop.add_reader(source, self.step) if is_reading else self._loop.remove_reader(source)
        if is_writing is not self._is_writing:
            self._is_writing = is_writing
            self._loop.add_writer(sink, self.step) if is_writing else self._loop.remove_writer(sink)


class Splice:
    """Both directions of one tunnel. `run`, then `close`."""

    def __init__(self, one: socket.socket, other: socket.socket, pipe_bytes: int) -> None:
        """Raises OSError where no file can be opened."""
        self._first, self._over = asyncio.Event(), asyncio.Event()
        there = Way(one, other, pipe_bytes, self._changed)
        try:
            self._ways = there, Way(other, one, pipe_bytes, self._changed)
        except OSError:
            there.close()
            raise

    @property
    def moved_bytes(self) -> int:
        """Both ways."""
        return sum(way.moved_bytes for way in self._ways)

    @property
    def held_bytes(self) -> int:
        """The bytes that were taken and not passed on yet, both ways."""
        return sum(way.held_bytes for way in self._ways)

    async def run(self) -> None:
        """Until both ends have gone, or BYE_S after the first and what it had said, or `cut`."""
        for way in self._ways:
            way.step()
        await self._first.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(BYE_S):
                await self._over.wait()

    def cut(self) -> None:
        """End it now."""
        self._first.set()
        self._over.set()

    def close(self) -> None:
        """Let go of the pipes."""
        for way in self._ways:
            way.close()

    def _changed(self) -> None:
        self._first.set()
        if any(way.is_cut for way in self._ways) or all(way.is_ended and not way.held_bytes for way in self._ways):
            self._over.set()
