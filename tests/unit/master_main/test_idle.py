"""A Master with many jobs that wait and many that have ended rests: what its loops ask of the database is counted, and
none of it reads a table that grows with what has ended. `make bench B=idle` has the processor time."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import closing

import pytest
from sqlalchemy import event, text

from tests.master_support import ManualClock, SeededRng
from tests.support.many_jobs import ACCOUNTS, add_jobs
from windrow_master.app import wiring
from windrow_master.app.wiring import Master
from windrow_master.queue.service import AGAIN_MAX_NS
from windrow_master.store.executors import InlineExecutor
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.units import SECOND

WAITING, ENDED = 10_000, 100_000
LIVING = ("ix_jobs_living", "ix_workloads_held", "ix_rentals_live", "ix_clusters_phase")
"""Indexes whose whole is what lives, or of which only that is looked at."""
BIG = re.compile(r"SCAN (jobs|clusters|workloads|rentals)\b")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def opened(tmp_path, clock) -> Iterator[Master]:
    made = wiring.build(tmp_path, clock, SeededRng(), disk=MemoryDisk(), make_executor=InlineExecutor)
    with closing(made):
        made.store.write_now(lambda uow: add_jobs(uow, WAITING, ENDED), name="test")
        yield made


@pytest.fixture
def asked(opened) -> list[str]:
    """Every statement from now on, with its values."""
    found: list[str] = []

    def trace(connection, record, proxy) -> None:
        connection.set_trace_callback(found.append)

    for engine in (opened.store._engines.reader, opened.store._engines.writer):
        event.listen(engine, "checkout", trace)
    return found


async def look(opened) -> None:
    """Every loop of the Master over what it keeps has its turn."""
    services = opened.services
    async with asyncio.TaskGroup() as group:
        for one in (services.jobs.controller, services.results, services.volume_controller):
            one._group = group
            await one.tick()
    for tick in (services.queue.tick, opened.clusters.tick, opened.clusters.running.renewals, opened.fleet.tick):
        await tick()
    await services.proofs.tick()
    await services.verification.tick()
    await opened.store.read(services.overlay._wanted)


def selects(asked: list[str]) -> list[str]:
    return [one for one in asked if one.lstrip().startswith(("SELECT", "WITH"))]


def scans(opened, statements: list[str]) -> set[str]:
    """The steps of their plans that read a table, or an index of it, from end to end."""
    with opened.store._engines.reader.connect() as connection:
        plans = (connection.execute(text("EXPLAIN QUERY PLAN " + one.replace(":", r"\:"))) for one in statements)
        steps = {row.detail for plan in plans for row in plan}
    return {one for one in steps if BIG.match(one) and not any(name in one for name in LIVING)}


async def test_an_idle_master_reads_no_job_and_nothing_that_grows_with_what_has_ended(opened, clock, asked) -> None:
    await look(opened)
    assert len(opened.services.queue) == WAITING
    assert any(" jobs" in one for one in selects(asked)), "it is seen what is asked"
    assert scans(opened, ["SELECT 1 FROM clusters WHERE created_at_ns > 1"]) == {"SCAN clusters"}
    assert scans(opened, list(dict.fromkeys(selects(asked)))[:500]) == set()
    for _ in range(WAITING // ACCOUNTS // 64 + 2):  # until all say why they wait
        clock.advance(AGAIN_MAX_NS)
        await look(opened)
    asked.clear()
    for _ in range(AGAIN_MAX_NS // SECOND - 2):
        clock.advance(SECOND)
        await look(opened)
    assert [one for one in asked if " jobs" in one] == []
    assert scans(opened, list(dict.fromkeys(selects(asked)))) == set()
    assert len(selects(asked)) <= 12 * AGAIN_MAX_NS // SECOND, "a dozen reads a second, whatever there is"
