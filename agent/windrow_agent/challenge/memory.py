"""Fills a device's memory with a pattern, as far as space and time allow, and reads blocks of it back. Blocking; for a
child process."""

import ctypes
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from windrow_agent.challenge.opencl import Buffer, ComputeFailed, Session
from windrow_proto.fill import BLOCK_BYTES, FILL, LINE_BLOCKS, LINE_BYTES, Fill, Filled, Probe, Values

CHUNK_LINES: Final = 256
"""256 MiB by one buffer and one launch: a driver gives a quarter of its memory in one piece at least (OpenCL 1.2,
CL_DEVICE_MAX_MEM_ALLOC_SIZE)."""
FILL_S: Final = 20.0
"""The time to fill: a card of 80 GB takes a few seconds at a tenth of its bandwidth, and a block that is not filled by
then stays empty."""


class Memory:
    """The memory of one device. now_s: a monotonic clock."""

    def __init__(self, session: Session, now_s: Callable[[], float] = time.monotonic) -> None:
        self._session, self._now_s = session, now_s
        self._chunks: list[Buffer] = []
        self._lines = 0

    def fill(self, fill: Fill, challenge_id: bytes) -> Filled:
        """Write chunk by chunk until all lines are written, or memory or FILL_S are at an end."""
        end_s = self._now_s() + FILL_S
        first, second = fill.key(challenge_id)
        key = (ctypes.c_uint64(first), ctypes.c_uint64(second), ctypes.c_uint64(FILL))
        generate, numbers = self._session.kernel("generate"), self._session.buffer(4 * CHUNK_LINES)
        with suppress(ComputeFailed):  # there is no more space: what is written so far is the answer
            while self._lines < fill.lines and self._now_s() < end_s:
                count = min(CHUNK_LINES, fill.lines - self._lines)
                chunk = self._session.buffer(count * LINE_BYTES)
                lines = range(self._lines, self._lines + count)
                self._session.write(numbers, struct.pack(f"<{count}I", *lines))
                self._session.run(generate, (LINE_BLOCKS, count), (*key, numbers, chunk), None)
                self._session.finish()
                self._chunks.append(chunk)
                self._lines += count
        return Filled(self._lines)

    def values(self, probe: Probe) -> Values:
        """Returns the contents of these blocks; raises ComputeFailed for one that was not written."""
        if not all(0 <= number < self._lines * LINE_BLOCKS for number in probe.blocks):
            raise ComputeFailed("A block is asked for that was not written.")
        return Values(b"".join(self._read(number) for number in probe.blocks))

    def _read(self, number: int) -> bytes:
        chunk, at = divmod(number, CHUNK_LINES * LINE_BLOCKS)
        return self._session.read(self._chunks[chunk], BLOCK_BYTES, at * BLOCK_BYTES)
