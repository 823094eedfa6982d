"""One more command beside a process workload, attached to the agent and ended with it."""

import asyncio
import contextlib
import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from windrow_agent.runtimes import sandbox, shim
from windrow_agent.runtimes.port import CHUNK_BYTES
from windrow_proto.terminals import TerminalSize
from windrow_proto.units import KIB

E = TypeVar("E", bound="AttachedExec")

END_S: Final = 15.0
"""For a killed tree to be gone."""
LAST_S: Final = 0.2
"""For a terminal's last output to come through the kernel."""
WAITING_BYTES_MAX: Final = 256 * KIB
"""Output that waits for the reader; beyond it the command's own writes wait."""


class AttachedExec(asyncio.SubprocessProtocol):
    """The ExecSession of the process runtime."""

    def __init__(self) -> None:
        self.exit_code: int | None = None
        self._transport: asyncio.SubprocessTransport | None = None
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._waiting_bytes = 0
        self._open = {1, 2}
        self._changed = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()

    @classmethod
    async def start(cls, folder: Path, record: dict[str, Any], shim_path: str) -> Self:
        """Start it through the shim, which kills all of it when it or the agent ends."""
        return await cls._start(cls, folder, record, shim_path)

    @staticmethod
    async def _start(
        make: Callable[[], E], folder: Path, record: dict[str, Any], shim_path: str, stream: int = subprocess.PIPE
    ) -> E:
        """stream: what the command has as input, output and errors."""
        name = f"exec-{os.urandom(8).hex()}.json"
        await asyncio.to_thread(shim.write_whole, str(folder), name, record)
        transport, session = await asyncio.get_running_loop().subprocess_exec(
            make,
            *(sys.executable, "-I", "-S", shim_path, "exec", str(folder / name)),
            stdin=stream,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
            cwd="/",
            env={"PATH": sandbox.SEARCH_PATH},
        )
        session._transport = transport
        return session

    async def read(self) -> tuple[int, bytes] | None:
        """The next output of either stream; None when both have ended and the exit code is known."""
        while not self._waiting:
            if not self._open and self.exit_code is not None:
                return None
            self._changed.clear()
            await self._changed.wait()
        stream, data = self._waiting.popleft()
        self._waiting_bytes -= len(data)
        if self._waiting_bytes <= WAITING_BYTES_MAX // 2:
            self._set_reading(True)
        return stream, data

    async def write(self, data: bytes) -> None:
        """Feed its input; empty data closes it."""
        await self._writable.wait()
        stdin = self._transport.get_pipe_transport(0) if self._transport is not None else None
        if not isinstance(stdin, asyncio.WriteTransport) or stdin.is_closing():
            return
        if data:
            stdin.write(data)
        else:
            stdin.close()

    async def close(self) -> None:
        """Kill what still runs and take in the rest, also when this is cancelled: in a cancelled task Python before
        3.11.4 tells of a deadline as of a cancellation (gh-102780)."""
        if self._transport is None:
            return
        if self.exit_code is None:
            with contextlib.suppress(ProcessLookupError):
                self._transport.send_signal(signal.SIGTERM)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(END_S):
                    while self.exit_code is None:
                        self._changed.clear()
                        await self._changed.wait()
        finally:
            self._transport.close()

    # --- called by the loop -----------------------------------------------------------------------------------------

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Output came."""
        self._waiting.append((fd, data))
        self._waiting_bytes += len(data)
        if self._waiting_bytes > WAITING_BYTES_MAX:
            self._set_reading(False)
        self._changed.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """One stream has ended."""
        self._open.discard(fd)
        self._writable.set()
        self._changed.set()

    def process_exited(self) -> None:
        """The command has ended."""
        code = self._transport.get_returncode() if self._transport is not None else None
        self.exit_code = code if code is not None and code >= 0 else 128 - (code or 0)
        self._changed.set()

    def pause_writing(self) -> None:
        """Its input is full."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The command's input takes bytes again."""
        self._writable.set()

    def _set_reading(self, wanted: bool) -> None:
        for stream in self._open:
            pipe = self._transport.get_pipe_transport(stream) if self._transport is not None else None
            if isinstance(pipe, asyncio.ReadTransport):  # of a pipe, Python 3.11.2 has no is_reading()
                pipe.resume_reading() if wanted else pipe.pause_reading()


class AttachedTerminal(AttachedExec):
    """The TerminalSession of the process runtime: the agent's end of a pseudoterminal, which is non-blocking."""

    def __init__(self, master: int) -> None:
        super().__init__()
        self._open = {1}
        self._master = master
        self._loop = asyncio.get_running_loop()
        self._set_reading(True)

    @classmethod
    async def start(cls, folder: Path, record: dict[str, Any], shim_path: str) -> Self:
        """Start it through the shim, at the other end of a new pseudoterminal."""
        master, slave = os.openpty()
        os.set_blocking(master, False)
        session = cls(master)
        try:
            return await cls._start(lambda: session, folder, record, shim_path, slave)
        except BaseException:
            session._let_go()
            raise
        finally:
            os.close(slave)

    async def write(self, data: bytes) -> None:
        """Type this. Waits while the programs there do not read, as until `close`."""
        while data and self._master >= 0:
            try:
                data = data[os.write(self._master, data) :]
            except BlockingIOError:
                self._writable.clear()
                self._loop.add_writer(self._master, self.resume_writing)
                await self._writable.wait()
            except OSError:
                return  # nobody has its other end any more

    async def resize(self, size: TerminalSize) -> None:
        """The kernel signals SIGWINCH to what runs in the foreground."""
        if self._master >= 0:
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.columns, 0, 0))

    async def close(self) -> None:
        """Likewise, and let go of the terminal."""
        try:
            await super().close()
        finally:
            self._let_go()

    def process_exited(self) -> None:
        """The shell has ended; what it left in the background may hold the other end, and is not waited for."""
        super().process_exited()
        self._loop.call_later(LAST_S, self.pipe_connection_lost, 1, None)

    def resume_writing(self) -> None:
        """It takes more, or is gone."""
        if self._master >= 0:
            self._loop.remove_writer(self._master)
        super().resume_writing()

    def _came(self) -> None:
        try:
            data = os.read(self._master, CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""  # EIO: the last program that had its other end is gone
        if data:
            self.pipe_data_received(1, data)
        else:
            self._set_reading(False)
            self.pipe_connection_lost(1, None)

    def _set_reading(self, wanted: bool) -> None:
        if self._master >= 0 and 1 in self._open:
            if wanted:
                self._loop.add_reader(self._master, self._came)
            else:
                self._loop.remove_reader(self._master)

    def _let_go(self) -> None:
        if self._master >= 0:
            self._set_reading(False)
            master, self._master = self._master, -1
            self._loop.remove_writer(master)
            os.close(master)
            self._writable.set()
