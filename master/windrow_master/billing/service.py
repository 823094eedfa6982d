"""Tells what a project, or all of them, spent and earned in a month: by day, and by what it was for."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from windrow_master.billing.gpu_time import EARNED_BY_ALL, GpuTime, Hosts, Share, model_of
from windrow_master.billing.repository import BillingRepository, Rented
from windrow_master.fleet.view import FleetView
from windrow_master.market import months, spending
from windrow_master.market.months import Cell, Month, Row
from windrow_master.market.occupancy import Change, Times
from windrow_master.market.prices import CPU
from windrow_master.market.service import MarketService
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import AccountId
from windrow_proto.units import DAY, Microcents, funded_ns

SPENT_BY: Final = ("machine", "job", "gpu", "person")
EARNED_BY: Final = ("host", "gpu")
SPENT_BY_ALL: Final = ("project", "gpu")
"""What the spending of all projects is divided by."""
ROWS_MAX: Final = 200
"""In one answer; what is less goes into one row."""
OTHERS: Final = "others"
PROCESSORS: Final = "CPUs"
UNNAMED: Final = {"job": "Machines without a job", "person": "Tokens that are gone"}
"""The names of what has no key."""
Names = Callable[[Sequence[str]], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Usage:
    """A month's spending. days: those that have begun, by number; amounts: of each. balance, limit: of one project.
    forecast: of the present month. empty_at_ns: when balance and hold are spent if nothing changes."""

    month: Month
    months: Sequence[Month]
    days: range
    amounts: Sequence[int]
    shares: Sequence[Share]
    today: Microcents
    forecast: Microcents | None
    now: Rented
    balance: Microcents | None = None
    empty_at_ns: int | None = None
    limit: Microcents | None = None

    @property
    def spent(self) -> Microcents:
        """All of the month."""
        return Microcents(sum(self.amounts))


@dataclass(frozen=True, slots=True)
class Earnings:
    """A month's earnings, fees taken off. fees: the platform's. occupancy: by day, None where there was no time."""

    month: Month
    months: Sequence[Month]
    days: range
    amounts: Sequence[int]
    occupancy: Sequence[float | None]
    shares: Sequence[Share]
    today: Microcents
    per_hour: Microcents
    times: Times
    fees: Microcents

    @property
    def earned(self) -> Microcents:
        """All of the month."""
        return Microcents(sum(self.amounts))


class BillingService:
    """Months of spending and earnings. account_id: None: the sums of all projects."""

    def __init__(self, store: Store, market: MarketService, fleet: FleetView) -> None:
        self._store, self._market, self._fleet = store, market, fleet

    async def usage(self, account_id: AccountId | None, by: str, wanted: str | None) -> Usage:
        """What was spent in a month such as 2026-11, by one of SPENT_BY, or of SPENT_BY_ALL. Raises InvalidInput."""
        _check(by, SPENT_BY if account_id is not None else SPENT_BY_ALL)

        def read(uow: UnitOfWork) -> Usage:
            now_ns, sums = uow.now_wall_ns, uow[BillingRepository]
            month, all_months = _months(wanted, sums.first_ns(renter=account_id), now_ns)
            today = now_ns // DAY
            days = _begun(month, now_ns)
            is_now = month == all_months[0]
            recent = range(today + 1 - months.RECENT_DAYS, today + 1)
            asked = range(min(days.start, recent.start), days.stop) if is_now else days
            cells = sums.spent(by, account_id, asked)
            key_of, names = _named(sums, by, cells)
            rows = months.rows_of(cells, days, key_of)
            rented, amounts = sums.rented_now(account_id), months.by_day(rows, days)
            lately = months.by_day(months.rows_of(cells, recent), recent)
            spent, end_ns = Microcents(sum(amounts)), month.days.stop * DAY
            balance = None if account_id is None else self._market.balance(uow, account_id)
            lasts_ns = None if balance is None else funded_ns(Microcents(balance + rented.held), rented.per_hour)
            return Usage(
                month=month,
                months=all_months,
                days=days,
                amounts=amounts,
                shares=_shares(by, rows, names),
                today=Microcents(lately[-1] if is_now else 0),
                forecast=months.forecast(spent, lately, now_ns, end_ns) if is_now else None,
                now=rented,
                balance=balance,
                empty_at_ns=None if lasts_ns is None else now_ns + lasts_ns,
                limit=None if account_id is None else spending.monthly_limit(uow, account_id),
            )

        return await self._store.read(read)

    async def earnings(self, account_id: AccountId | None, by: str, wanted: str | None) -> Earnings:
        """What was earned in a month such as 2026-11, by one of EARNED_BY, or of EARNED_BY_ALL. Raises InvalidInput."""
        _check(by, EARNED_BY if account_id is not None else EARNED_BY_ALL)
        hosts = Hosts(by, [one for one in self._fleet if account_id in (None, one.host.owner_account)])

        def read(uow: UnitOfWork) -> Earnings:
            now_ns, sums = uow.now_wall_ns, uow[BillingRepository]
            month, all_months = _months(wanted, sums.first_ns(provider=account_id), now_ns)
            days = _begun(month, now_ns)
            cells = sums.earned(by, days) if account_id is None else sums.earned_by_slot(account_id, days)
            rows = months.rows_of(cells, days, hosts.key_of)
            from_ns = days.start * DAY
            known = None if account_id is None else hosts.subjects
            time = GpuTime(hosts, days, now_ns)
            time.count(sums.changes(from_ns, known), self._market.book(uow), cells)
            names = sums.account_names([row.key for row in rows]) if by == "project" else {}
            amounts = months.by_day(rows, days)
            return Earnings(
                month=month,
                months=all_months,
                days=days,
                amounts=amounts,
                occupancy=time.occupancy,
                shares=[hosts.share(row, names, time.times.get(row.key)) for row in time.with_idle(rows)],
                today=Microcents(amounts[-1] if month == all_months[0] else 0),
                per_hour=sums.earning_now(account_id),
                times=time.whole,
                fees=Microcents(sum(row.fee for row in rows)),
            )

        return await self._store.read(read)


def changes(uow: UnitOfWork, since_ns: int, subjects: Collection[str] | None) -> Mapping[str, Sequence[Change]]:
    """The changes of hosts and slots since then, by their ids; subjects: of these alone."""
    return uow[BillingRepository].changes(since_ns, subjects)


def _check(by: str, known: Sequence[str]) -> None:
    if by not in known:
        raise InvalidInput(f"by: {by} is none of {', '.join(known)}.", subject="by")


def _months(wanted: str | None, first_ns: int | None, now_ns: int) -> tuple[Month, list[Month]]:
    """The month that is asked for, by default the present one, and all that there are, the latest first."""
    found = months.months_since(first_ns, now_ns)
    if wanted is None:
        return found[0], found
    try:
        month = Month.parse(wanted)
    except ValueError:
        raise InvalidInput("month: write it as 2026-11.", subject="month") from None
    if month > found[0]:
        raise InvalidInput(f"month: {month} has not begun.", subject="month")
    return month, found


def _begun(month: Month, now_ns: int) -> range:
    """The days of a month that have begun."""
    return range(month.days.start, min(month.days.stop, now_ns // DAY + 1))


def _named(sums: BillingRepository, by: str, cells: Sequence[Cell]) -> tuple[Callable[[str], str], Names]:
    """The row that a cell's key belongs to, and where to find the names of rows."""
    if by == "gpu":
        return model_of, lambda keys: {one: PROCESSORS if one == CPU else one for one in keys}
    if by != "person":
        return str, {"machine": sums.cluster_names, "job": sums.job_names, "project": sums.account_names}[by]
    first = {one.key: next(iter(json.loads(one.key or "null") or ()), "") for one in cells}
    people = sums.people(set(first.values()))
    names = dict(people.values())
    return lambda key: people.get(first[key], ("", ""))[0], lambda keys: names


def _shares(by: str, rows: Sequence[Row], names: Names) -> list[Share]:
    """These rows with the names of what they are for."""
    shown = months.shortened(rows, ROWS_MAX, OTHERS)
    known = {OTHERS: f"{len(rows) - len(shown) + 1} others", "": UNNAMED.get(by, "")}
    known |= names([row.key for row in shown])
    return [Share(row, known.get(row.key) or row.key) for row in shown]
