"""Runs: each call with its output and its end, on disk, so that whoever comes later gets all of it."""

import asyncio
import shutil
import struct
import time
from pathlib import Path
from typing import Any, Final

OUTPUT_BYTES_MAX: Final = 64 << 20
"""Of one run. What comes after is dropped, and a last line says so."""
LINE_BYTES_MAX: Final = 64 * 1024
"""A line longer than this goes in pieces."""
RUNS_KEPT: Final = 1000
RUNS_BYTES_MAX: Final = 2 << 30
"""Of the results and outputs of runs that have ended; the oldest go first."""
OUT, ERR = 1, 2
RECORD: Final = struct.Struct(">BI")
"""Before each piece of the output: which stream, how long."""
_CUT: Final = f"[the output is longer than {OUTPUT_BYTES_MAX >> 20} MiB; the rest was dropped]\n".encode()


class Run:
    """One call. `outcome` is None until it has ended."""

    def __init__(self, run_id: str, folder: Path) -> None:
        self.id, self.folder = run_id, folder
        folder.mkdir(parents=True)
        self.outcome: dict[str, Any] | None = None
        self.task: asyncio.Task[None] | None = None
        self.ended_at = 0.0
        self.size = self.kept_bytes = 0
        self._is_cut = False
        self._output = (folder / "output").open("ab", buffering=0)
        self._changed = asyncio.Event()

    @property
    def arguments(self) -> Path:
        return self.folder / "arguments"

    @property
    def result(self) -> Path:
        return self.folder / "result"

    def add(self, stream: int, data: bytes) -> None:
        """More of its output."""
        if self._is_cut or self._output.closed:
            return
        if self.size + len(data) > OUTPUT_BYTES_MAX:
            self._is_cut, stream, data = True, ERR, _CUT
        try:
            self._output.write(RECORD.pack(stream, len(data)) + data)
        except OSError:  # the disk is full: the run goes on, its output does not
            self._is_cut = True
            return
        self.size += RECORD.size + len(data)
        self._tell()

    def read(self, offset: int, size: int) -> bytes:
        """Returns the bytes that were written from `offset` on, at most `size` bytes."""
        with (self.folder / "output").open("rb") as file:
            file.seek(offset)
            return file.read(min(size, max(0, self.size - offset)))

    def end(self, outcome: dict[str, Any]) -> None:
        """It has ended so; safe to repeat, the first counts."""
        if self.outcome is None:
            self.outcome, self.ended_at = outcome, time.monotonic()
            self._output.close()
            self.kept_bytes = self.size + (self.result.stat().st_size if self.result.exists() else 0)
            self.arguments.unlink(missing_ok=True)
            self._tell()

    async def changed(self) -> None:
        """Until there is more of it than when this was called."""
        await self._changed.wait()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Runs:
    """All of them by id."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runs: dict[str, Run] = {}

    def find(self, run_id: str) -> Run | None:
        """The run of this id, if it is known and not forgotten."""
        return self._runs.get(run_id)

    def make(self, run_id: str) -> Run:
        """A new one."""
        self._forget_old()
        found = self._runs[run_id] = Run(run_id, self._folder / run_id)
        return found

    def unfinished(self) -> int:
        return sum(run.outcome is None for run in self._runs.values())

    def _forget_old(self) -> None:
        ended = [run for run in self._runs.values() if run.outcome is not None]
        size = sum(run.kept_bytes for run in ended)
        for count, run in enumerate(sorted(ended, key=lambda one: one.ended_at)):
            if len(ended) - count < RUNS_KEPT and size < RUNS_BYTES_MAX:
                return
            size -= run.kept_bytes
            del self._runs[run.id]
            shutil.rmtree(run.folder, ignore_errors=True)


class Lines:
    """Cuts a stream of bytes into whole lines; a carriage return ends one, too, so that bars of progress move."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """The whole lines there are now."""
        self._rest += data
        cut = max(self._rest.rfind(b"\n"), self._rest.rfind(b"\r")) + 1
        if not cut and len(self._rest) >= LINE_BYTES_MAX:
            cut = len(self._rest)
        found, self._rest = self._rest[:cut], self._rest[cut:]
        return found

    def end(self) -> bytes:
        """Returns the rest, without an end of line."""
        found, self._rest = self._rest, b""
        return found
