"""Random requests, gangs among them, ends and disturbances, with the Master killed between any two statements: no slot
is given twice, no gang runs in part, and the engine in memory equals one made of the rows."""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from tests.unit.clusters.test_nominations import disturbed, joined, over
from tests.unit.clusters.world import OPERATOR, OWNER, STRANGER, Market, market_world, principal
from windrow_master.clusters.model import ClusterKind
from windrow_master.clusters.needs import Refused
from windrow_master.clusters.repository import ClusterRepository, WorkloadRepository
from windrow_master.clusters.states import HOLDING
from windrow_master.fleet.repository import HostRepository
from windrow_master.store import prepared
from windrow_proto.errors import Conflict, StorageFailed
from windrow_proto.units import Microcents

LAST = 60
"""Statements from the begin of a deadly write, at most, to the kill: creations have some forty."""
SERVED = pytest.mark.proves("stores on a real PostgreSQL")


class Killed(BaseException):
    """The Master's process ends here."""


class Death:
    """Kills after so many statements of the database; None: it does not."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.count = 0

    def step(self, *_: Any) -> None:
        """One statement is about to run."""
        if self.left is None:
            return
        self.left -= 1
        if self.left < 0:
            self.left = None
            self.count += 1
            raise Killed


@contextmanager
def deadly(m: Market, death: Death) -> Iterator[None]:
    """Statements of this market's store are counted down."""
    run, writer = prepared._cursor, m.store._engines.writer

    def cursor(*args: Any, **how: Any) -> Any:
        death.step()
        return run(*args, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepared, "_cursor", cursor)
        event.listen(writer, "before_cursor_execute", death.step)
        try:
            yield
        finally:
            event.remove(writer, "before_cursor_execute", death.step)


async def history(m: Market, operations: int, seed: int, check_every: int) -> Counter[str]:
    """How often each thing happened."""
    chance, seen, death = random.Random(seed), Counter[str](), Death()
    hosts = await joined(m, 24, gpus=2)
    living = list[Any]()
    with deadly(m, death):
        for number in range(operations):
            death.left, before = chance.randrange(LAST) if chance.random() < 0.15 else None, death.count
            with suppress(Killed, StorageFailed):  # the store takes it for a fault of the database
                await _operate(m, chance, living, hosts, seen)
            if death.count > before:  # the next Master begins, with nothing but the rows
                m.wired(m.store, m.clock)
                await m.fleet.refresh()
                living = await _living(m)
            death.left = None
            if number % check_every == 0 or number == operations - 1:
                assert faults(m) == [], (seed, number)
    seen["killed"] = death.count
    return seen


async def _operate(m: Market, chance: random.Random, living: list[Any], hosts: list[Any], seen: Counter[str]) -> None:
    act = chance.random()
    if act < 0.5:
        size = chance.choice((1, 1, 1, 2, 3))
        asked: dict[str, Any] = {"image": "busybox", "gpus": chance.choice((0, 1, 1, 2)), "cpus": chance.choice((1, 2))}
        asked |= {"kind": ClusterKind.GANG, "hosts": size} if size > 1 else {}
        try:
            living.append(await m.create(principal(chance.choice((OWNER, STRANGER))), **asked))
            seen["gang" if size > 1 else "placed"] += 1
        except (Refused, Conflict):
            seen["refused"] += 1
    elif act < 0.85 and living:
        await _over(m, living.pop(chance.randrange(len(living))))
        seen["ended"] += 1
    else:
        disturbed(m, chance, hosts)


async def _over(m: Market, view: Any) -> None:
    for workload in view.workloads:
        with suppress(Conflict, ValueError):  # its command has been answered already
            await over(m, view, workload)


async def _living(m: Market) -> list[Any]:
    """The clusters of the rows, as a Master finds them that begins anew."""
    ids = m.read(lambda uow: [one.cluster_id for one in uow[ClusterRepository].living()])
    return [await m.clusters.get(OPERATOR, one) for one in ids]


def faults(m: Market) -> list[str]:
    """All that must never be, by the rows alone but for the last."""

    def look(uow: Any) -> list[str]:
        held = [one for one in uow[WorkloadRepository].held() if not one.is_released]
        slots = Counter(slot.slot_id for one in held for slot in one.slots)
        found = [f"{slot} is given twice" for slot, count in slots.items() if count > 1]
        for host in uow[HostRepository].list_all():
            cpus = sum(one.cpus for one in held if one.host_id == host.host_id)
            if host.inventory is not None and cpus > host.inventory.cpu_count:
                found.append(f"{host.host_id} gives {cpus} of {host.inventory.cpu_count} processors")
        members = Counter(one.cluster_id for one in held)
        for cluster in uow[ClusterRepository].living():
            if cluster.phase in HOLDING and members[cluster.cluster_id] not in (0, cluster.request.hosts):
                found.append(f"{cluster.cluster_id} has {members[cluster.cluster_id]} of {cluster.request.hosts}")
        return found

    return m.read(look) + [f"the engine has {one} otherwise" for one in m.read(m.clusters.nominations.differing)]


def funded(m: Market) -> None:
    """Nobody is refused for want of money."""
    for who in (OWNER, STRANGER):
        m.write(partial(m.market.credit, account_id=who, amount=Microcents(10**13), key="more", actor="test"))


async def test_kills_between_statements_leave_no_slot_given_twice_and_no_gang_in_part(tmp_path: Path):
    with market_world(tmp_path) as m:
        funded(m)
        seen = await history(m, 150, seed=3, check_every=10)
    assert min(seen["placed"], seen["gang"], seen["ended"], seen["killed"]) > 3, seen


@SERVED
@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_20_000_operations_with_kills_on_postgresql(tmp_path: Path, postgres_url: str):
    with market_world(tmp_path, postgres_url) as m:
        funded(m)
        seen = await history(m, 20_000, seed=4, check_every=50)
    assert min(seen["placed"], seen["gang"], seen["ended"], seen["killed"]) > 500, seen
