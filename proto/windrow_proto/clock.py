"""The system's clocks and randomness behind the Clock and Rng ports; simulation brings its own."""

import asyncio
import os
import random
import time

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


class SystemRng:
    """The kernel's randomness, fit for keys."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def random_bytes(self, count: int) -> bytes:
        """`count` bytes from the kernel."""
        return os.urandom(count)

    def uniform(self) -> float:
        """A float in [0, 1) with 53 random bits."""
        return self._random.random()
