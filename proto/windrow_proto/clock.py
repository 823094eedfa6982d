"""The system's clocks and randomness behind the Clock and Rng ports; simulation brings its own."""

import asyncio
import os
import random
import threading
import time
from typing import Final

from windrow_proto.units import SECOND


class SystemClock:
    """The clocks of this machine and the running event loop."""

    def monotonic_ns(self) -> int:
        """CLOCK_MONOTONIC; does not count time asleep."""
        return time.monotonic_ns()

    def wall_ns(self) -> int:
        """CLOCK_REALTIME."""
        return time.time_ns()

    async def sleep_ns(self, duration_ns: int) -> None:
        """Wait on the event loop; negative or zero yields once."""
        await asyncio.sleep(max(0, duration_ns) / SECOND)


class BootClock(SystemClock):
    """The clocks of a host that may be put to sleep: a lease must not stand still while the host does."""

    def monotonic_ns(self) -> int:
        """CLOCK_BOOTTIME: counts from the kernel's boot, time asleep included; CLOCK_MONOTONIC where there is none."""
        boot_time = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
        return time.clock_gettime_ns(boot_time)


FEW_BYTES: Final = 10
"""As many as an id has: secrets have more, and are not in memory before they are needed."""
DRAWN_BYTES: Final = 640
_drawn: Final = threading.local()
"""The bytes left of the last draw, by thread. A forked child clears them: else it would draw what its parent draws."""
os.register_at_fork(after_in_child=lambda: _drawn.__dict__.clear())


class SystemRng:
    """The kernel's randomness, fit for keys."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def random_bytes(self, count: int) -> bytes:
        """`count` bytes from the kernel. Few, as of an id, are of many that were asked for at once: at each call other
        threads take over the interpreter, which costs a busy thread more than the bytes."""
        if count > FEW_BYTES:
            return os.urandom(count)
        drawn: bytes = getattr(_drawn, "bytes", b"")
        if len(drawn) < count:
            drawn = os.urandom(DRAWN_BYTES)
        _drawn.bytes = drawn[count:]
        return drawn[:count]

    def uniform(self) -> float:
        """A float in [0, 1) with 53 random bits."""
        return self._random.random()
