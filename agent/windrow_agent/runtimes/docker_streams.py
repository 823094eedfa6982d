"""Turns Docker's blocking streams into asynchronous ones: logs, archives, executed commands, each in a thread that ends
with its reader."""

import asyncio
import contextlib
import io
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Final, Self

from windrow_agent.runtimes.port import CHUNK_BYTES, ByteStream
from windrow_agent.runtimes.thread_pipe import PipeClosed, ThreadPipe
from windrow_proto.errors import InvalidInput, NotFound, RuntimeUnavailable
from windrow_proto.terminals import TerminalSize

MARKER: Final = b"\n[windrow: the log was cut here, at its limit of %d bytes; later output is not shown]\n"
_FRAME: Final = struct.Struct(">BxxxL")
CALL_S: Final = 30.0
FREEZE_S: Final = 0.5
"""For a process to take notice of SIGSTOP; one in uninterruptible sleep does not."""
PID_LOOKS, PID_LOOK_S = 100, 0.02
RESIZE_TRIES: Final = 25
_AT_REST: Final = frozenset({b"T", b"t", b"Z", b"X"})
"""States in /proc/PID/stat of what forks no more (proc(5))."""


def log_stream(
    api: Any, container: str, offset: int, follow: bool, cap_bytes: int, is_read_again: bool = False
) -> ByteStream:
    """Output from byte `offset` up to the cap, then a marker. is_read_again: what was followed to its end is read once
    more for what came last (Podman)."""
    stream = ByteStream()
    held: list[Any] = []

    def produce(pipe: ThreadPipe[bytes]) -> None:
        given = offset
        for is_followed in (True, False) if follow and is_read_again else (follow,):
            source = api.logs(container, stdout=True, stderr=True, stream=True, follow=is_followed)
            held.append(source)
            given = passed_on(source, given, pipe)
            _let_go(source)
            if stream.truncated:
                return

    def passed_on(source: Iterator[bytes], given: int, pipe: ThreadPipe[bytes]) -> int:
        """Up to which byte it is known to the reader then; given: before."""
        position = 0
        for piece in source:
            wanted = piece[: max(0, cap_bytes - position)]
            skip = max(0, given - position)
            position += len(piece)
            for start in range(skip, len(wanted), CHUNK_BYTES):
                pipe.put(wanted[start : start + CHUNK_BYTES])
            if position > cap_bytes:
                stream.truncated = True
                pipe.put(MARKER % cap_bytes)
                break
        return max(given, min(position, cap_bytes))

    async def read() -> AsyncGenerator[bytes, None]:
        pipe = ThreadPipe(produce, "windrow-docker-log")
        try:
            async for piece in pipe.read():
                yield piece
        finally:
            pipe.close()
            for source in held:
                _let_go(source)  # wakes a thread that waits for more output

    return stream.feed(read())


_CLOSING: Final = threading.Lock()


def _let_go(source: Any) -> None:
    """Close a stream of the SDK and the response below it, which its own close leaves open; one thread at a time."""
    parts: list[Any] = [source, getattr(source, "_response", None)]
    with _CLOSING:
        for part in parts:
            with contextlib.suppress(OSError, ValueError, AttributeError):
                part.close()


def read_archive(api: Any, container: str, path: str) -> io.BufferedReader:
    """A folder of a container as one readable tar file."""
    pieces, _ = api.get_archive(container, path, chunk_size=CHUNK_BYTES)
    return io.BufferedReader(_Pieces(iter(pieces)))


def put_archive(api: Any, container: str, archive: Path, folder: str) -> None:
    """Unpack a tar file into a folder of a container."""
    with open(archive, "rb") as file:
        api.put_archive(container, folder, file)


class _Pieces(io.RawIOBase):
    """An iterator of bytes as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._left = pieces, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            self._left = next(self._pieces, b"")
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count


class DockerExec:
    """The ExecSession of a container: a thread reads the daemon's stream of framed output."""

    def __init__(self, api: Any, exec_id: str, connection: socket.socket, call: "Call") -> None:
        self.exit_code: int | None = None
        self._api, self._id, self._socket, self._call = api, exec_id, connection, call
        self._pipe: ThreadPipe[tuple[int, bytes]] = ThreadPipe(self._produce, "windrow-docker-exec")
        self._pieces = self._pipe.read()

    @classmethod
    async def start(cls, api: Any, container: str, argv: tuple[str, ...], call: "Call") -> Self:
        """Start it in the container's working folder."""

        def begin(client: Any) -> tuple[str, Any]:
            made = client.exec_create(
                container, list(argv), stdin=True, stdout=True, stderr=True, tty=cls._has_terminal
            )
            held = client.exec_start(made["Id"], socket=True, tty=cls._has_terminal)
            return str(made["Id"]), held

        exec_id, held = await call(begin, CALL_S)
        connection: socket.socket = getattr(held, "_sock", held)
        connection.settimeout(None)
        session = cls(api, exec_id, connection, call)
        session._held = held
        return session

    _held: Any = None
    _has_terminal = False

    async def read(self) -> tuple[int, bytes] | None:
        """The next output; None when the command has ended."""
        async for piece in self._pieces:
            return piece
        if self.exit_code is None:
            facts = await self._call(lambda api: api.exec_inspect(self._id), CALL_S)
            self.exit_code = int(facts.get("ExitCode") or 0)
        return None

    async def write(self, data: bytes) -> None:
        """Feed its input; empty data closes it."""
        with contextlib.suppress(OSError):
            if data:
                await asyncio.to_thread(self._socket.sendall, data)
            else:
                self._socket.shutdown(socket.SHUT_WR)

    async def close(self) -> None:
        """Kill the command if it still runs, and let go of the connection."""
        try:
            if pid := await self._pid():
                await asyncio.to_thread(_kill_tree, pid)
        finally:
            self._pipe.close()
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            await self._pieces.aclose()
            for held in (self._socket, self._held):
                with contextlib.suppress(OSError, AttributeError):
                    held.close()

    async def _pid(self) -> int:
        """Its process on this host; 0 when it has ended. The daemon passes output on before it knows the process."""
        for _ in range(PID_LOOKS):
            facts = await self._call(lambda api: api.exec_inspect(self._id), CALL_S)
            if facts.get("Pid") or not facts.get("Running"):
                return int(facts.get("Pid") or 0) if facts.get("Running") else 0
            await asyncio.sleep(PID_LOOK_S)
        return 0

    def _produce(self, pipe: ThreadPipe[tuple[int, bytes]]) -> None:
        while True:
            header = self._exactly(_FRAME.size)
            if len(header) < _FRAME.size:
                return
            stream, size = _FRAME.unpack(header)
            while size:
                piece = self._exactly(min(size, CHUNK_BYTES))
                if not piece:
                    return
                size -= len(piece)
                pipe.put((stream, piece))

    def _exactly(self, count: int) -> bytes:
        parts = b""
        while len(parts) < count:
            piece = self._piece(count - len(parts))
            if not piece:
                break
            parts += piece
        return parts

    def _piece(self, most: int) -> bytes:
        try:
            return self._socket.recv(most)
        except OSError:
            raise PipeClosed from None


class DockerTerminal(DockerExec):
    """The TerminalSession of a container: with a terminal the daemon does not frame the output."""

    _has_terminal = True

    async def write(self, data: bytes) -> None:
        """Type this; closing its connection would end the shell."""
        if data:
            await super().write(data)

    async def resize(self, size: TerminalSize) -> None:
        """Ask the daemon, which refuses until the shell has begun and after its end."""
        for _ in range(RESIZE_TRIES):
            with contextlib.suppress(RuntimeUnavailable, InvalidInput, NotFound):
                await self._call(lambda api: api.exec_resize(self._id, height=size.rows, width=size.columns), CALL_S)
                return
            await asyncio.sleep(PID_LOOK_S)

    def _produce(self, pipe: ThreadPipe[tuple[int, bytes]]) -> None:
        while piece := self._piece(CHUNK_BYTES):
            pipe.put((1, piece))


Call = Callable[[Callable[[Any], Any], float], Coroutine[Any, Any, Any]]


def _kill_tree(pid: int) -> None:
    """Kill an executed command on the host's side; only root can, which is who talks to the daemon's socket.

    Frozen first, parents before children: what runs on may start one more, which would outlive its parent unseen.
    """
    from windrow_agent.runtimes.shim import below

    frozen: list[int] = []
    while fresh := [one for one in (pid, *below(pid)) if one not in frozen]:
        for one in fresh:
            _freeze(one)
        frozen += fresh
    for victim in reversed(frozen):
        with contextlib.suppress(OSError):
            os.kill(victim, signal.SIGKILL)


def _freeze(pid: int) -> None:
    """Stop a process, and wait until it has: the signal alone returns before."""
    ends = time.monotonic() + FREEZE_S
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGSTOP)
        while time.monotonic() < ends:
            with open(f"/proc/{pid}/stat", "rb") as file:
                if file.read().rpartition(b")")[2].split()[0] in _AT_REST:
                    return
            time.sleep(0.001)
