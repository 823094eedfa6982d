"""Reports of a month on either database: sums by every dimension equal each other and the ledger to the microcent."""

from dataclasses import replace
from datetime import date, timedelta
from itertools import combinations

import pytest

from tests.master_support import ManualClock, opened_store
from tests.support.rented_history import history, people
from tests.unit.market.rentals import line as line_of
from tests.unit.market.rentals import rental as rental_of
from windrow_master.fleet.view import FleetView
from windrow_master.market.model import RentalId, RentalState
from windrow_master.market.repository import RentalRepository
from windrow_master.reports.days import Days
from windrow_master.reports.model import Dimension, Limits, Measure, Query, Scope, View
from windrow_master.reports.repository import ReportRepository
from windrow_master.reports.service import ReportService
from windrow_proto.errors import Forbidden, InvalidInput
from windrow_proto.ids import AccountId, WorkloadId
from windrow_proto.units import DAY, HOUR, Microcents

SERVED = pytest.mark.proves("reports on a real PostgreSQL")
FIRST = date(2025, 3, 10)
FIRST_DAY = FIRST.toordinal() - date(1970, 1, 1).toordinal()
NOW = (FIRST_DAY + 40) * DAY
MONTH = Days(FIRST, FIRST + timedelta(days=29))
MONEY = (Measure.COST, Measure.EARNINGS, Measure.FEES, Measure.HELD)
USE = (Measure.USED, Measure.WASTED, Measure.UNMEASURED)


class Use:
    """A history that measured every third workload."""

    async def workload_use(self, from_ms, to_ms):
        return {f"workload_{n:028x}0000": (n % 11) / 10 for n in range(0, 3000, 3)}


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=SERVED)])
def store(request, tmp_path):
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    with opened_store(tmp_path, ManualClock(NOW), database=url) as opened:
        opened.write_now(people, name="test")
        yield opened


def query(by=(), measures=MONEY, days=MONTH, scope=Scope(View.ALL), **filters):  # noqa: B008  # frozen
    wanted = {Dimension(name): value for name, value in filters.items()}
    return Query(scope=scope, measures=measures, by=tuple(by), days=days, filters=wanted)


def reports(store, **limits):
    return ReportService(store, ManualClock(NOW), FleetView(), Use(), Limits(**limits))


def posted(store):
    """What the ledger posted of each kind."""
    return {
        kind: got for kind, (_, got) in store.read_now(lambda uow: uow[ReportRepository].ledger(None, 0, 2**62)).items()
    }


async def adds_up(store, hosts):
    made = history(hosts=hosts, first_day=FIRST_DAY, days=30)
    store.write_now(made.write, name="test")
    service, ledger = reports(store, cells=10**6), posted(store)
    whole = (await service.report(query())).totals
    assert whole[Measure.COST] == made.charged == ledger["charge"] + ledger["fee"]
    assert (whole[Measure.EARNINGS], whole[Measure.FEES]) == (ledger["charge"], ledger["fee"])
    for number in (1, 2):
        for by in combinations(Dimension, number):
            assert (await service.report(query(by))).totals == whole, by
    shifted = replace(MONTH, first=FIRST - timedelta(days=1), last=MONTH.last + timedelta(days=1), zone="Asia/Tokyo")
    assert (await service.report(query((Dimension.DAY, Dimension.KIND), days=shifted))).totals == whole
    used = (await service.report(query((Dimension.MODEL,), (Measure.HELD, *USE)))).totals
    assert sum(used[one] for one in USE) == used[Measure.HELD] == whole[Measure.HELD]
    return service, whole


async def test_sums_by_every_dimension_equal_each_other_and_the_ledger(store):
    service, whole = await adds_up(store, 12)
    by_day = await service.report(query((Dimension.DAY, Dimension.HOST)))
    assert by_day.totals == whole and [cell.keys[0] for cell in by_day.cells] == sorted(
        cell.keys[0] for cell in by_day.cells
    )


@pytest.mark.long
async def test_a_month_of_a_thousand_hosts_adds_up_to_the_ledger(tmp_path):
    with opened_store(tmp_path, ManualClock(NOW)) as store:
        store.write_now(people, name="test")
        await adds_up(store, 1_000)


async def test_every_cell_is_the_sum_of_its_rows(store):
    store.write_now(history(hosts=6, first_day=FIRST_DAY, days=30).write, name="test")
    service = reports(store)
    for by in ((Dimension.DAY,), (Dimension.PROJECT, Dimension.MODEL), (Dimension.REGION, Dimension.ORGANISATION)):
        for cell in (await service.report(query(by))).cells[:8]:
            keys = dict(zip(by, cell.keys, strict=True))
            day = keys.pop(Dimension.DAY, None)
            asked = replace(query(days=MONTH if day is None else MONTH.only(day)), filters=keys)
            rows, count = await service.rows(asked, 0, 1_000)
            assert count == len(rows) and rows
            for measure in MONEY:
                assert sum(row.values[measure] for row in rows) == cell.values[measure], (by, cell.keys)
    first, count = await service.rows(query(), 0, 10)
    second, _ = await service.rows(query(), 10, 10)
    assert count > 20 and not {one.workload_id for one in first} & {one.workload_id for one in second}
    costs = [one.values[Measure.COST] for one in (*first, *second)]
    assert costs == sorted(costs, reverse=True) and all(one.id.startswith("rental_") for one in first)


async def test_what_runs_on_is_told_as_it_is_and_a_closed_rental_is_read_once(store):
    begin_ns, price = FIRST_DAY * DAY, Microcents(7 * 10**6)
    rental = replace(rental_of(price, 100), state=RentalState.OPEN, opened_at_ns=begin_ns, held=Microcents(10**12))
    line = replace(line_of(price), lease_from_ns=begin_ns, lease_until_ns=begin_ns + 9 * DAY, runs_from_ns=begin_ns)
    ran = iter((HOUR, 2 * HOUR, 30 * HOUR))

    def run(uow, *, is_new=False, **changes):
        ran_ns = next(ran)
        cost = Microcents(price * ran_ns // HOUR)
        now = replace(rental, charged=cost, **changes)
        its = replace(line, charged=cost, fee_charged=Microcents(cost // 10), signed_ns=ran_ns)
        rows = uow[RentalRepository]
        (rows.add if is_new else rows.save)(now)
        (rows.add_line if is_new else rows.save_line)(its)

    service = reports(store)
    assert (await service.report(query())).cells == []
    store.write_now(lambda uow: run(uow, is_new=True), name="test")
    assert (await service.report(query())).totals[Measure.COST] == price
    store.write_now(run, name="test")
    assert (await service.report(query((Dimension.HOST,)))).totals[Measure.COST] == 2 * price
    store.write_now(lambda uow: run(uow, state=RentalState.CLOSED), name="test")
    for _ in range(2):
        found = await service.report(query((Dimension.DAY,)))
        assert found.totals[Measure.COST] == 30 * price and len(found.cells) == 2
    later = replace(rental, rental_id=RentalId("rental_b"), state=RentalState.CLOSED, charged=price)
    its = replace(
        line, workload_id=WorkloadId("workload_b"), rental_id=RentalId("rental_b"), charged=price, signed_ns=HOUR
    )
    store.write_now(lambda uow: (uow[RentalRepository].add(later), uow[RentalRepository].add_line(its)), name="test")
    assert (await service.report(query())).totals[Measure.COST] == 31 * price


async def test_a_day_in_which_clocks_change_has_its_hours(store):
    """2025-03-30 has 23 hours in Berlin: a rental over the whole of it and two days around."""
    begin_ns, ran_ns, price = FIRST_DAY * DAY, 30 * DAY, Microcents(36 * 10**8)
    cost = Microcents(720 * price)
    rental = replace(rental_of(price), state=RentalState.CLOSED, held=cost, charged=cost)
    line = replace(line_of(price), lease_from_ns=begin_ns, lease_until_ns=begin_ns + ran_ns, runs_from_ns=begin_ns)
    line = replace(line, signed_ns=ran_ns, charged=cost)
    store.write_now(lambda uow: (uow[RentalRepository].add(rental), uow[RentalRepository].add_line(line)), name="test")
    days = Days(date(2025, 3, 29), date(2025, 3, 31), "Europe/Berlin")
    found = await reports(store).report(query((Dimension.DAY,), days=days))
    assert [cell.values[Measure.HELD] // HOUR for cell in found.cells] == [24, 23, 24]
    assert [cell.values[Measure.COST] // price for cell in found.cells] == [24, 23, 24]


async def test_everybody_sees_the_own_figures_only(store):
    store.write_now(history(hosts=8, first_day=FIRST_DAY, days=30).write, name="test")
    service = reports(store)
    whole = await service.report(query((Dimension.PROJECT,)))
    mine = Scope(View.PROJECT, (AccountId("account_renter1"), AccountId("account_renter2")))
    found = await service.report(query((Dimension.PROJECT,), (Measure.COST,), scope=mine))
    wanted = {cell.keys[0]: cell.values[Measure.COST] for cell in whole.cells if cell.keys[0] in mine.accounts}
    assert {cell.keys[0]: cell.values[Measure.COST] for cell in found.cells} == wanted
    for measures, by, scope in (
        ((Measure.EARNINGS,), (), mine),
        ((Measure.COST,), (Dimension.PROVIDER,), mine),
        ((Measure.COST,), (), Scope(View.HOSTS, (AccountId("account_provider1"),))),
        ((Measure.EARNINGS,), (Dimension.PROJECT,), Scope(View.HOSTS, (AccountId("account_provider1"),))),
    ):
        with pytest.raises(Forbidden):
            await service.report(query(by, measures, scope=scope))
    its = Scope(View.HOSTS, (AccountId("account_provider1"),))
    earned = await service.report(query((Dimension.HOST,), (Measure.EARNINGS,), scope=its))
    by_provider = await service.report(query((Dimension.PROVIDER,), (Measure.EARNINGS,)))
    (all_of_it,) = [cell.values for cell in by_provider.cells if cell.keys == ("account_provider1",)]
    assert earned.totals == all_of_it


async def test_a_report_that_is_too_large_is_refused_and_says_what_to_do(store):
    store.write_now(history(hosts=3, first_day=FIRST_DAY, days=30).write, name="test")
    with pytest.raises(InvalidInput, match="shorter period"):
        await reports(store, cells=50).report(query((Dimension.DAY, Dimension.PROJECT)))
    service, week = reports(store, lines=100, page=10), replace(MONTH, first=MONTH.last - timedelta(days=6))
    assert (await service.report(query(days=week))).cells
    for _ in range(2):
        with pytest.raises(InvalidInput, match="Ask for a shorter one"):
            await service.report(query())
    assert (await service.report(query(days=week))).cells  # what was read before still answers
