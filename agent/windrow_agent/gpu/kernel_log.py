"""Reads new XID lines from the kernel's log, without blocking for longer than a moment.

Read without blocking on the thread of the GPUs, and so without a thread of its own. Where this user may not read it, as
in most containers, there are no lines and nothing else changes.
"""

import os
import select
from pathlib import Path
from typing import Final

from windrow_agent.core.xid_line import XidLine, parse

KMSG: Final = Path("/dev/kmsg")
RECORD_BYTES: Final = 8192
"""The kernel gives one record a read and refuses a shorter buffer than the record; none is longer than this."""
RECORDS_MAX: Final = 4096
"""Records of one look; a flood beyond it is read at the next."""
WAIT_MS: Final = 50
"""The driver writes its line about when it tells of the event."""


class KernelLog:
    """The log from `open` on; every method answers with nothing where it cannot be read."""

    def __init__(self, path: Path = KMSG) -> None:
        self._path = path
        self._file: int | None = None

    def open(self) -> None:
        """Begin at the end: what was written before is not ours to tell."""
        self.close()
        try:
            self._file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError:
            self.close()

    def close(self) -> None:
        """Let go; safe to call twice."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def read(self, wait: bool = False) -> list[XidLine]:
        """The XIDs written since the last call. wait: for a moment, until there is anything."""
        if self._file is None:
            return []
        if wait:
            poll = select.poll()
            poll.register(self._file, select.POLLIN)
            poll.poll(WAIT_MS)
        found = []
        for _ in range(RECORDS_MAX):
            record = self._record()
            if record is None:
                break
            lines = record.decode("utf-8", "replace").splitlines()
            found += [line for line in map(parse, lines) if line is not None]
        return found

    def _record(self) -> bytes | None:
        """The next one, None when there is none."""
        try:
            return os.read(self._file, RECORD_BYTES) or None if self._file is not None else None
        except BlockingIOError:
            return None
        except BrokenPipeError:
            return b""  # records were overwritten before we read them: go on with the oldest there is
        except OSError:
            self.close()
            return None
