"""One more command beside a process workload, attached to the agent and ended with it."""

import asyncio
import contextlib
import os
import signal
import sys
from collections import deque
from pathlib import Path
from typing import Any, Final

from windrow_agent.runtimes import sandbox, shim
from windrow_proto.units import KIB

END_S: Final = 15.0
"""For a killed tree to be gone."""
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
    async def start(cls, folder: Path, record: dict[str, Any], shim_path: str) -> "AttachedExec":
        """Start it through the shim, which kills all of it when it or the agent ends."""
        name = f"exec-{os.urandom(8).hex()}.json"
        await asyncio.to_thread(shim.write_whole, str(folder), name, record)
        transport, session = await asyncio.get_running_loop().subprocess_exec(
            cls,
            *(sys.executable, "-I", "-S", shim_path, "exec", str(folder / name)),
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
