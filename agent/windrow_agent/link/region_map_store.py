"""Writes the newest map of Accesses to disk for the next start: off the loop, and a moment after the map came.

A newer map comes whenever an Access has died. A host has better to do then than to wait for its disk, and until it is
kept the older one leads to an Access as well.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from windrow_agent.threads import Runner
from windrow_proto.ports import Clock, Rng
from windrow_proto.units import SECOND

log = structlog.get_logger()

SAVE_WITHIN_NS: Final = 10 * SECOND


class RegionMapStore:
    """`newer` hands over a map, `run` keeps the last of those that came; one that cannot be kept is told."""

    def __init__(self, save: Callable[[bytes], None], runner: Runner, clock: Clock, rng: Rng) -> None:
        """save: may block, and raise OSError."""
        self._save, self._runner, self._clock, self._rng = save, runner, clock, rng
        self._newest = b""
        self._came = asyncio.Event()

    def newer(self, body: bytes) -> None:
        """Have this one kept, soon."""
        self._newest = body
        self._came.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._came.wait()
            await self._clock.sleep_ns(int(self._rng.uniform() * SAVE_WITHIN_NS))
            self._came.clear()
            try:
                await self._runner.call(lambda: self._save(self._newest))
            except OSError as error:
                log.warning("regions_not_saved", detail=str(error))
