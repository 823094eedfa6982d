"""Answers reports: sums by two dimensions, the rows below a figure, and statements."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from windrow_master.billing.gpu_time import Hosts
from windrow_master.billing.service import changes
from windrow_master.fleet.view import FleetView
from windrow_master.identity import people_lookup, spenders
from windrow_master.identity.decide import Permission, is_allowed
from windrow_master.identity.model import INSTALLATION_ROLES, Principal, Role
from windrow_master.market.model import account_of
from windrow_master.reports import facts
from windrow_master.reports.days import Days
from windrow_master.reports.facts import Follows, Traced
from windrow_master.reports.model import (
    LIMITS,
    SOURCES,
    USE,
    Dimension,
    Limits,
    Measure,
    Query,
    Report,
    Scope,
    Source,
    SourceRow,
    Values,
    View,
    summed,
)
from windrow_master.reports.reading import LineReader
from windrow_master.reports.repository import ReportRepository
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Forbidden, InvalidInput
from windrow_proto.ports import Clock
from windrow_proto.units import MILLISECOND, Microcents

SECTIONS: Final[Mapping[View, Sequence[tuple[tuple[Measure, ...], tuple[Dimension, ...]]]]] = {
    View.PROJECT: (
        ((Measure.COST, Measure.HELD), (Dimension.DAY,)),
        ((Measure.COST, Measure.HELD), (Dimension.PROJECT,)),
        ((Measure.COST, Measure.HELD), (Dimension.KIND, Dimension.MODEL)),
    ),
    View.HOSTS: (
        ((Measure.EARNINGS, Measure.HELD, Measure.OCCUPANCY), (Dimension.HOST,)),
        ((Measure.EARNINGS, Measure.HELD, Measure.OCCUPANCY), (Dimension.DAY,)),
        ((Measure.INCIDENTS,), (Dimension.HOST, Dimension.KIND)),
    ),
    View.ALL: (
        ((Measure.COST, Measure.EARNINGS, Measure.FEES, Measure.HELD), (Dimension.DAY,)),
        ((Measure.COST, Measure.HELD), (Dimension.PROJECT,)),
        ((Measure.EARNINGS, Measure.FEES, Measure.HELD, Measure.OCCUPANCY), (Dimension.PROVIDER,)),
        ((Measure.EARNINGS, Measure.HELD, Measure.OCCUPANCY), (Dimension.MODEL, Dimension.REGION)),
        ((Measure.INCIDENTS,), (Dimension.KIND, Dimension.HOST)),
    ),
}
"""What the statement of each view has: measures and dimensions of each of its reports."""


class UseHistory(Protocol):
    """Tells how busy the GPUs of workloads were."""

    async def workload_use(self, from_ms: int, to_ms: int) -> Mapping[str, float]:
        """The mean of each workload's GPUs in this time (wall milliseconds), from 0 to 1, for those that were measured.
        Raises Unavailable."""


@dataclass(frozen=True, slots=True)
class Transfers:
    """What the ledger posted of one kind in a period: given and got by whom the statement is of."""

    kind: str
    given: Microcents
    got: Microcents


@dataclass(frozen=True, slots=True)
class Statement:
    """The reports of a period, and what the ledger posted in it. name: of the project whose it is; empty: of all."""

    view: View
    name: str
    days: Days
    reports: Sequence[Report]
    transfers: Sequence[Transfers]


class ReportService:
    """Reports of everybody who may ask."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        fleet: FleetView,
        history: UseHistory,
        limits: Limits = LIMITS,
    ) -> None:
        self._store, self._clock, self._fleet, self._history = store, clock, fleet, history
        self._limits, self._reader = limits, LineReader(store, clock, limits)

    @property
    def now_ns(self) -> int:
        """The wall time."""
        return self._clock.wall_ns()

    async def scope(self, principal: Principal, view: View | None) -> Scope:
        """What the caller asks for; view: None: the widest that its roles show. Raises Forbidden."""
        return await self._store.read(lambda uow: scope_of(uow, principal, view))

    async def report(self, query: Query) -> Report:
        """The sums of a query. Raises InvalidInput, Forbidden, Unavailable where the history does not answer."""
        query.check()
        sums = await asyncio.to_thread(facts.merged, query, [one.facts for one in await self._traced(query)])
        if len(sums) > self._limits.cells:
            words = f"by: {len(sums):,} cells are more than the {self._limits.cells:,} that one report has. "
            raise InvalidInput(f"{words}Ask for a shorter period, a filter, or fewer dimensions.", subject="by")
        wanted = {one: {key[place] for key in sums} for place, one in enumerate(query.by)}
        names = await self._store.read(
            lambda uow: {one: uow[ReportRepository].names(one, wanted[one]) for one in wanted}
        )
        totals: Values = {one: sum(values[one] for values in sums.values()) for one in summed(query.measures)}
        return Report(query, facts.cells_of(query, sums, names), totals)

    async def rows(self, query: Query, begin: int, limit: int) -> tuple[list[SourceRow], int]:
        """Some of the rows that the sums of a query are made of, from number `begin` on, and how many there are:
        rentals, time, incidents, each with the greatest of the first measure first. Raises as `report`."""
        query.check()
        found, count = list[SourceRow](), 0
        for one in await self._traced(replace(query, by=())):
            ask = max(0, begin - count), max(0, begin + limit - count)
            there, rows = await asyncio.to_thread(one.rows, summed(query.measures), *ask)
            found, count = found + rows, count + there
        return await self._named(found, query.scope.view), count

    async def _named(self, rows: Sequence[SourceRow], view: View) -> list[SourceRow]:
        """The same with the rentals of their workloads, and the names of clusters; for a provider those of hosts."""
        ids = [one.workload_id for one in rows if one.workload_id]
        hosts = {one.keys[Dimension.HOST] for one in rows}

        def read(uow: UnitOfWork) -> tuple[Mapping[str, tuple[str, str]], Mapping[str, str]]:
            return uow[ReportRepository].rentals_of(ids), uow[ReportRepository].names(Dimension.HOST, hosts)

        rentals, names = await self._store.read(read)
        found = []
        for one in rows:
            rental_id, name = rentals.get(one.workload_id, (one.id, ""))
            host = one.keys[Dimension.HOST]
            shown = "" if view is View.HOSTS else name
            found.append(replace(one, id=rental_id, name=shown or names.get(host, host)))
        return found

    async def statement(self, principal: Principal, scope: Scope, days: Days) -> Statement:
        """The month or other period of a project, a provider or everybody. Raises as `report`."""
        asked = [
            Query(scope=scope, measures=measures, by=by, days=days, filters={}) for measures, by in SECTIONS[scope.view]
        ]
        reports = [await self.report(one) for one in asked]
        accounts = None if scope.view is View.ALL else [account_of(one) for one in scope.accounts]
        posted = await self._store.read(lambda uow: uow[ReportRepository].ledger(accounts, days.begin_ns, days.end_ns))
        transfers = [
            Transfers(kind, Microcents(given), Microcents(got)) for kind, (given, got) in sorted(posted.items())
        ]
        name = "" if scope.view is View.ALL else principal.account_name
        return Statement(scope.view, name, days, reports, transfers)

    async def _traced(self, query: Query) -> list[Traced]:
        needed = {source for measure in query.measures for source in SOURCES[measure]}
        follows = await self._store.read(
            lambda uow: Follows(uow[ReportRepository].regions(), uow[ReportRepository].organisations())
        )
        found = []
        if Source.RENTALS in needed:
            lines, names = await self._reader.read(query.days.begin_ns)
            use = await self._use(query) if USE & set(query.measures) else None
            its = await asyncio.to_thread(facts.of_lines, query, lines, names, follows, use)
            found.append(Traced(Source.RENTALS, its, lines, names))
        if needed - {Source.RENTALS}:
            found += await self._plain(query, needed, follows)
        return found

    async def _use(self, query: Query) -> dict[str, int]:
        from_ms, to_ms = query.days.begin_ns // MILLISECOND, min(query.days.end_ns, self.now_ns) // MILLISECOND
        means = await self._history.workload_use(from_ms, max(from_ms + 1, to_ms))
        return {one: round(mean * facts.MILLION) for one, mean in means.items()}

    async def _plain(self, query: Query, needed: set[Source], follows: Follows) -> list[Traced]:
        """Time and incidents."""
        owners = query.scope.accounts if query.scope.view is View.HOSTS else None
        entries = [one for one in self._fleet if owners is None or one.host.owner_account in owners]
        hosts = Hosts("model", entries)
        subjects = None if owners is None else hosts.subjects | {str(one.slot_id) for e in entries for one in e.slots}
        known = await self._store.read(lambda uow: changes(uow, query.days.begin_ns, subjects))
        found = []
        if Source.TIME in needed:
            time = await asyncio.to_thread(facts.time_of, hosts, known, query, self.now_ns)
            found.append(Traced(Source.TIME, facts.of_plain(query, Measure.OFFERED, time, follows), plain=time))
        if Source.INCIDENTS in needed:
            its = facts.incidents_of(entries, known, query)
            found.append(Traced(Source.INCIDENTS, facts.of_plain(query, Measure.INCIDENTS, its, follows), plain=its))
        return found


def scope_of(uow: UnitOfWork, principal: Principal, view: View | None) -> Scope:
    """Whose figures the caller sees; view: None: the widest that its roles show. Raises Forbidden."""
    is_installation = bool(principal.roles & INSTALLATION_ROLES)
    may_rent = is_allowed(principal.roles, Permission.RENT_READ)
    if view is None:
        usual = View.HOSTS if Role.PROVIDER in principal.roles and not may_rent else View.PROJECT
        view = View.ALL if is_installation else usual
    if view is View.ALL and not is_installation:
        raise Forbidden("Only operators and auditors see the figures of everybody.", subject="view")
    if view is View.ALL:
        return Scope(view)
    if view is View.HOSTS:
        return Scope(view, (principal.account_id,))
    sees_money = may_rent or people_lookup.sees_all(principal)
    if not sees_money:
        raise Forbidden("Your roles do not show what this project spends.", subject="view")
    return Scope(view, tuple(spenders.projects_seen(uow, principal)))
