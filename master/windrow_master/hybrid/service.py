"""Answers where a workload should run: reads its program, gathers the places, has them put in order, and keeps the
answers that are asked for again."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Final

from windrow_master.clusters.service import ClusterService
from windrow_master.hybrid.analysis import Analysis, analyse
from windrow_master.hybrid.kept import KeptRoute, first_kept, parse_record, record_bytes, taken
from windrow_master.hybrid.places import Connected, all_places, waits_of
from windrow_master.hybrid.purchases.service import PurchaseService
from windrow_master.hybrid.registry import ResourceRegistry
from windrow_master.hybrid.repository import RouteRepository
from windrow_master.hybrid.routing import Route, Work, recommend
from windrow_master.identity.model import Principal
from windrow_master.jobs.messages import RouteFollowed
from windrow_master.prices.book import PriceBook
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import NotFound
from windrow_proto.ids import AccountId
from windrow_proto.ports import Clock
from windrow_proto.units import SECOND

KEPT_MAX: Final = 1_000
"""Routes of one account; the oldest go first."""


@dataclass(frozen=True, slots=True)
class Routed:
    """A workload as it was understood, and the answer. analysis None: no program was given. route_id None: not kept."""

    work: Work
    analysis: Analysis | None
    route: Route
    route_id: str | None = None


class Router:
    """Routes workloads."""

    def __init__(
        self,
        store: Store,
        clusters: ClusterService,
        registry: ResourceRegistry,
        purchases: PurchaseService,
        book: PriceBook,
        clock: Clock,
    ) -> None:
        self._store, self._purchases = store, purchases
        self._clusters, self._registry, self._book, self._clock = clusters, registry, book, clock
        self._reading = asyncio.Semaphore(1)
        """One program is read at a time: the largest takes a second of a processor."""

    async def route(self, principal: Principal, code: str | None, work_of: Callable[[Analysis | None], Work]) -> Routed:
        """The places for a workload of this account, the best first. work_of: makes the workload of what was read."""
        analysis = None if code is None else await self._read(code)
        work = work_of(analysis)
        offers, resources = await self._clusters.offers(), await self._registry.list()
        waits = waits_of(await self._clusters.starts())
        bought, account_id = waits_of(await self._purchases.starts()), principal.account_id
        connected = [
            Connected(row.name, row.kind, row.settings.get("region", ""), row.margin_percent)
            for row, _ in await self._purchases.backends.usable(account_id)
        ]
        places = all_places(offers, resources, self._book, self.today(), work, account_id, waits, bought, connected)
        return Routed(work, analysis, recommend(work, places))

    async def keep(self, principal: Principal, routed: Routed) -> Routed:
        """Keep a route for its account; returns it with its id."""
        record = record_bytes(routed.work, routed.route)

        def change(uow: UnitOfWork) -> str:
            self._store.admit()
            route_id = uow.mint("route")
            kept = first_kept(route_id, principal.account_id, uow.now_wall_ns, routed.work, routed.route)
            uow[RouteRepository].add(kept, record, KEPT_MAX)
            return route_id

        return replace(routed, route_id=await self._store.write(change, name="route.keep"))

    async def kept(self, principal: Principal, route_id: str) -> tuple[KeptRoute, Routed]:
        """A route that this account has kept, and its answer, whose analysis is not kept. Raises NotFound."""

        def read(uow: UnitOfWork) -> tuple[KeptRoute, bytes]:
            return _own(uow, principal.account_id, route_id), uow[RouteRepository].record(route_id)

        kept, record = await self._store.read(read)
        work, route = await asyncio.to_thread(parse_record, record)
        return kept, Routed(work, None, route, route_id)

    async def list(self, principal: Principal, before: str | None, limit: int) -> Sequence[KeptRoute]:
        """The routes that this account has kept, the latest first; from the one after `before`."""
        return await self._store.read(lambda uow: uow[RouteRepository].page(principal.account_id, before, limit))

    async def _read(self, code: str) -> Analysis:
        async with self._reading:
            return await asyncio.to_thread(analyse, code)

    def today(self) -> date:
        """The day by the clock of this Master, in UTC: what prices are compared with."""
        return datetime.fromtimestamp(self._clock.wall_ns() // SECOND, UTC).date()


def follow(uow: UnitOfWork, fact: RouteFollowed) -> None:
    """Set the first job that follows a kept route beside it, with the forecast of the place that it names, where it
    names one."""
    kept = _own(uow, fact.account_id, fact.route_id)
    if kept.job_id is None:
        _, route = parse_record(uow[RouteRepository].record(fact.route_id))
        names_none = fact.host_id is None and fact.tier is None
        forecast = kept.taken if names_none else taken(route, fact.host_id, fact.tier)
        uow[RouteRepository].follow(replace(kept, job_id=fact.job_id, taken=forecast))


def _own(uow: UnitOfWork, account_id: AccountId, route_id: str) -> KeptRoute:
    found = uow[RouteRepository].get(route_id)
    if found is None or found.account_id != account_id:
        raise NotFound("There is no such route. List them: windrow route --kept", subject=route_id[:64])
    return found


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
