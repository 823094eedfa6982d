"""Copies of an array that start together: the rows are those of copies that start one after another, and whatever one
of them meets is met by it alone."""

import re
from typing import Any

import pytest

from tests.unit.clusters.world import HOST, OTHER, OWNER, principal
from tests.unit.jobs.world import World, world
from windrow_master.app.tables import whole_schema
from windrow_master.clusters.repository import ClusterRepository
from windrow_master.fleet.repository import SlotRepository
from windrow_master.jobs.model import JobRequest, JobState
from windrow_master.jobs.request import attempt_key
from windrow_master.market.ledger import hold_amount
from windrow_master.market.limit_repository import LimitRepository
from windrow_master.market.limits import Limits, SpendingLimit
from windrow_master.queue.model import MILLI
from windrow_master.queue.quota import NodeLevel, Quota, QuotaItem
from windrow_master.queue.repository import QuotaRepository
from windrow_proto.errors import Conflict
from windrow_proto.units import Microcents

COPIES = 5
_ID = re.compile(r"\b[a-z]+_[0-9a-f]{10,}\b")
_DRAWN = frozenset({"chain", "sealed", "sealed_env", "request_sha256", "body", "record"})
"""Columns that are drawn, sealed or a digest of ids."""


async def _submitted(it: World, **more: Any) -> list[Any]:
    it.market.join()
    it.market.join(OTHER)
    asked = JobRequest(argv=("true",), array_size=COPIES, name="sweep", cpus=1, **more)
    return [view.job for view in await it.jobs.submit(principal(), asked)]


def _one_by_one(it: World) -> None:
    async def none(entries: Any, closed: Any) -> tuple[()]:
        return ()

    it.jobs.controller.place_copies = none  # type: ignore[method-assign]


def _quota(it: World) -> None:
    quota = Quota(node_id=OWNER, level=NodeLevel.PROJECT, item=QuotaItem.CLUSTERS, limit=3)
    it.market.write(lambda uow: uow[QuotaRepository].save(quota))


def _leases(it: World) -> None:
    limit = SpendingLimit(OWNER, OWNER, "p", Limits(max_leases=2), Microcents(0), "", Microcents(0), 0, "test")
    it.market.write(lambda uow: uow[LimitRepository].save(limit))


def _rows(it: World) -> dict[str, list[str]]:
    """All rows with ids in the order of their first appearance, since ids are drawn."""
    named: dict[str, str] = {}

    def plain(text: str, is_ordered: bool) -> str:
        def name(match: re.Match[str]) -> str:
            kind = match[0].partition("_")[0]
            return named.setdefault(match[0], f"{kind}-{len(named)}") if is_ordered else named.get(match[0], kind)

        return _ID.sub(name, text)

    def read(uow: Any) -> dict[str, list[str]]:
        found = {}
        tables = {one.name: one for one in whole_schema().sorted_tables}
        for name in dict.fromkeys(("audit", "events", *tables)):
            columns = [one for one in tables[name].columns if one.name not in _DRAWN]
            order = "number" if "number" in tables[name].columns else columns[0].name
            said = ", ".join(f'"{one.name}"' for one in columns)
            rows = uow.connection.exec_driver_sql(f"SELECT {said} FROM {name} ORDER BY {order}").fetchall()
            texts = [plain(repr(tuple(row)), order == "number") for row in rows]
            found[name] = texts if order == "number" else sorted(texts)
        return found

    return it.store.read_now(read)


@pytest.mark.parametrize("bound", [None, _quota, _leases])
async def test_copies_that_start_together_leave_the_rows_of_copies_that_start_one_after_another(
    tmp_path, bound
) -> None:
    found, commits = [], []
    for name, is_alone in (("together", False), ("alone", True)):
        async with world(tmp_path / name) as it:
            if bound is not None:
                bound(it)
            if is_alone:
                _one_by_one(it)
            await _submitted(it)
            before = it.store.figures.commits
            await it.tick(3)
            commits.append(it.store.figures.commits - before)
            found.append(_rows(it))
    for table, rows in found[0].items():
        assert rows == found[1][table], table
    assert commits[0] < commits[1]


def _cpus(it: World, price: Microcents) -> None:
    quota = Quota(node_id=OWNER, level=NodeLevel.PROJECT, item=QuotaItem.CPUS, limit=2 * MILLI)
    it.market.write(lambda uow: uow[QuotaRepository].save(quota))


def _spend(it: World, price: Microcents) -> None:
    quota = Quota(node_id=OWNER, level=NodeLevel.PROJECT, item=QuotaItem.SPEND, limit=price * 5 // 2)
    it.market.write(lambda uow: uow[QuotaRepository].save(quota))


def _hourly(it: World, price: Microcents) -> None:
    limits = Limits(max_hourly_cost=Microcents(price * 5 // 2))
    limit = SpendingLimit(OWNER, OWNER, "p", limits, Microcents(0), "", Microcents(0), 0, "test")
    it.market.write(lambda uow: uow[LimitRepository].save(limit))


def _balance(it: World, price: Microcents) -> None:
    """For the first 15 minutes of two."""
    balance, beyond = it.market.market.balance, it.market.balance() - hold_amount(price) * 5 // 2
    market: Any = it.market.market
    market.balance = lambda uow, account: Microcents(max(0, balance(uow, account) - beyond))


@pytest.mark.parametrize("bound", [_cpus, _spend, _hourly, _balance])
async def test_copies_that_start_together_pass_no_bound_together(tmp_path, bound) -> None:
    async with world(tmp_path / "free") as it:
        (first, *_) = await _submitted(it)
        await it.tick(3)
        price = it.market.rental((await it.get(first)).attempts[-1].cluster_id).price_per_hour
    async with world(tmp_path / "bound") as it:
        bound(it, price)
        jobs = await _submitted(it)
        await it.tick(4)
        states = [(await it.get(job)).state for job in jobs]
        assert states == [JobState.STARTING] * 2 + [JobState.QUEUED] * 3


async def test_a_copy_that_meets_something_is_left_out_and_the_others_start(tmp_path) -> None:
    async with world(tmp_path) as it:
        jobs = await _submitted(it)
        made: list[str] = []
        create = it.market.clusters.new

        def new(uow, who, request, key, *more):
            made.append(key)
            if key == attempt_key(jobs[2]) and made.count(key) == 1:
                raise Conflict("Somebody else took the slot in the meantime.")
            return create(uow, who, request, key, *more)

        it.market.clusters.new = new
        await it.tick(3)
        states = [(await it.get(job)).state for job in jobs]
        assert states == [JobState.STARTING] * COPIES
        clusters = it.market.write(lambda uow: [uow[ClusterRepository].by_key(OWNER, attempt_key(one)) for one in jobs])
        assert all(clusters), "each has one, which nothing that was undone has left"
        held = it.market.write(lambda uow: [one for one in uow[SlotRepository].list_all() if one.holder is not None])
        assert sorted(one.holder for one in held) == sorted(one[0].cluster_id for one in clusters if one)


async def test_copies_that_find_no_place_wait_and_say_why(tmp_path) -> None:
    async with world(tmp_path) as it:
        it.market.join(HOST)
        asked = JobRequest(argv=("true",), array_size=COPIES, cpus=2, max_price_per_hour=Microcents(10**12))
        jobs = [view.job for view in await it.jobs.submit(principal(), asked)]
        await it.tick(3)
        found = [await it.get(job) for job in jobs]
        assert [one.state for one in found] == [JobState.STARTING] * 2 + [JobState.QUEUED] * 3
        assert all(one.reason for one in found[2:])
