"""Answers where a workload should run: reads its program, gathers the places, and has them put in order."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from windrow_master.clusters.service import ClusterService
from windrow_master.hybrid.analysis import Analysis, analyse
from windrow_master.hybrid.places import all_places
from windrow_master.hybrid.registry import ResourceRegistry
from windrow_master.hybrid.routing import Route, Work, recommend
from windrow_master.prices.book import PriceBook
from windrow_proto.ports import Clock
from windrow_proto.units import SECOND


@dataclass(frozen=True, slots=True)
class Routed:
    """A workload as it was understood, and the answer. analysis None: no program was given."""

    work: Work
    analysis: Analysis | None
    route: Route


class Router:
    """Routes workloads."""

    def __init__(self, clusters: ClusterService, registry: ResourceRegistry, book: PriceBook, clock: Clock) -> None:
        self._clusters, self._registry, self._book, self._clock = clusters, registry, book, clock
        self._reading = asyncio.Semaphore(1)
        """One program is read at a time: the largest takes a second of a processor."""

    async def route(self, code: str | None, work_of: Callable[[Analysis | None], Work]) -> Routed:
        """The places for a workload, the best first. work_of: the workload, once its program was read."""
        analysis = None if code is None else await self._read(code)
        work = work_of(analysis)
        offers, resources = await self._clusters.offers(), await self._registry.list()
        places = all_places(offers, resources, self._book, self.today(), work)
        return Routed(work, analysis, recommend(work, places))

    async def _read(self, code: str) -> Analysis:
        async with self._reading:
            return await asyncio.to_thread(analyse, code)

    def today(self) -> date:
        """The day by the clock of this Master, in UTC: what prices are compared with."""
        return datetime.fromtimestamp(self._clock.wall_ns() // SECOND, UTC).date()


def completed(work: Work, analysis: Analysis | None) -> Work:
    """The workload with what its program says, where nobody said it."""
    if analysis is None:
        return work
    changes: dict[str, object] = {}
    if work.framework is None and (framework := analysis.value("framework")):
        changes["framework"] = framework
    if work.gpu_memory_gib is None and work.gpu is None and (memory := analysis.gpu_memory_gib):
        changes["gpu_memory_gib"] = float(-(-memory // 1))
    return replace(work, **changes)  # type: ignore[arg-type]  # each is a field of its type
