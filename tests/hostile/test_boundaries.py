"""One bad row fails alone: each loop of the Master goes on for all others, and operators are told of the one."""

import gc
import json
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import pytest
from sqlalchemy import text

from tests.hostile.two_of_each import HOST, OTHER, Pair
from tests.hostile.two_of_each import pair as pair
from windrow_master.acceptance.service import ProofService
from windrow_master.clusters.model import WorkPhase
from windrow_master.clusters.repository import WorkloadRepository
from windrow_master.fleet.presence import Change
from windrow_master.fleet.reliability_counts import _counted
from windrow_master.fleet.reliability_repository import ReliabilityRepository
from windrow_master.fleet.repository import HostRepository
from windrow_master.fleet.states import LinkEvent, VerifyState
from windrow_master.jobs import entries
from windrow_master.jobs.repository import JobRepository
from windrow_master.loops import CRASHES_MAX
from windrow_master.storage.results import ResultService
from windrow_master.storage.volume_sync import VolumeController
from windrow_master.store import prepared
from windrow_master.store.unit import UnitOfWork
from windrow_master.verification.scheduler import VerificationService
from windrow_proto.conditions import ConditionCode
from windrow_proto.units import DAY, MINUTE

pytestmark = pytest.mark.row("F5")


class Crashing:
    """In the place of what a loop does for each row: it has a bug that the bad row meets."""

    def __init__(self, real: Callable[..., Any], is_bad: Callable[..., bool]) -> None:
        self.real, self.is_bad = real, is_bad
        self.bad, self.good = 0, 0

    def __call__(self, *asked: Any, **more: Any) -> Any:
        if self.is_bad(*asked, **more):
            self.bad += 1
            raise ZeroDivisionError("of one row")
        self.good += 1
        return self.real(*asked, **more)


def planted(monkeypatch: pytest.MonkeyPatch, place: Any, name: str, bad: str) -> Crashing:
    """A crash wherever this id is among what is asked."""

    def is_bad(*asked: Any, **more: Any) -> bool:
        return any(bad in str(one) for one in (*asked, *more.values()))

    crashing = Crashing(getattr(place, name), is_bad)
    monkeypatch.setattr(place, name, crashing)
    return crashing


async def told(pair: Pair, *names: str) -> None:
    """Operators hear of what was given up."""
    gc.collect()  # of earlier tests
    found = [
        detail
        for source in pair.services.health.conditions
        for code, detail, _ in source()
        if code == ConditionCode.MASTER_ITEM_GIVEN_UP
    ]
    assert found, "the condition is missing"
    for name in names:
        assert name in found[0]


async def test_a_renewal_that_crashes_keeps_no_other_lease_from_being_renewed(pair: Pair, monkeypatch: Any) -> None:
    bad, good = await pair.workload(HOST), await pair.workload(OTHER)
    planted(monkeypatch, pair.opened.market, "renew", bad.workload_id)
    for _ in range(CRASHES_MAX):
        found = await pair.opened.clusters.running.renewals()
        assert [lease.workload_id for leases in found.values() for lease in leases] == [good.workload_id]
    await told(pair, bad.cluster_id)


async def test_a_rental_and_an_end_that_crash_keep_no_other_from_its_end(pair: Pair, monkeypatch: Any) -> None:
    bad, good = await pair.workload(HOST), await pair.workload(OTHER)
    for one in (bad, good):
        await pair.opened.clusters.delete(pair.owner, one.cluster_id)
    again = planted(monkeypatch, pair.opened.clusters.lifecycle, "order_again", bad.workload_id)
    rental = planted(monkeypatch, pair.opened.market, "judge", bad.cluster_id)
    for _ in range(CRASHES_MAX):
        await pair.opened.clusters.tick()
    assert again.bad and again.good and rental.bad and rental.good, good
    await told(pair, bad.cluster_id)


@pytest.mark.parametrize(
    ("step", "place", "name"),
    [
        ("_time_out", "fleet.commands", "judge"),
        ("_judge_claims", "fleet.hosts", "judge_claims"),
        ("reconcile", "clusters.running", "desired"),
    ],
)
async def test_a_host_that_crashes_a_step_of_the_fleet_is_alone_with_it(
    pair: Pair, monkeypatch: Any, step: str, place: str, name: str
) -> None:
    fleet = pair.opened.fleet
    await pair.workload(HOST), await pair.workload(OTHER)
    pair.observe(HOST, OTHER)
    monkeypatch.setattr("windrow_master.fleet.service.FLEET_CODES", ("",))  # every condition makes a rival
    crashing = planted(monkeypatch, attrgetter(place)(pair.opened), name, HOST)
    for _ in range(CRASHES_MAX):
        pair.clock.advance(6 * MINUTE)
        await getattr(fleet, step)()
    assert crashing.bad and crashing.good


async def test_a_host_whose_record_crashes_keeps_no_other_from_being_counted(pair: Pair, monkeypatch: Any) -> None:
    counted = "windrow_master.fleet.reliability_counts._counted"
    monkeypatch.setattr(counted, Crashing(_counted, lambda before, *_: before.host_id == HOST))
    for _ in range(CRASHES_MAX):
        pair.clock.advance(6 * MINUTE)
        await pair.opened.fleet._count_reliability()
    assert list(pair.opened.store.read_now(lambda uow: uow[ReliabilityRepository].all())) == [OTHER]
    await told(pair, HOST)


async def test_a_step_of_the_fleet_that_crashes_keeps_no_later_one_from_its_turn(pair: Pair, monkeypatch: Any) -> None:
    fleet, turns = pair.opened.fleet, list[str]()

    async def crash() -> None:
        raise ZeroDivisionError

    async def refresh() -> None:
        turns.append("refresh")

    for name in ("_time_out", "reconcile", "_judge_claims", "_forget", "_count_reliability"):
        monkeypatch.setattr(fleet, name, crash)
    monkeypatch.setattr(fleet, "refresh", refresh)
    pair.clock.advance(DAY)
    await fleet.tick()
    assert turns == ["refresh"]


async def test_what_a_host_says_of_itself_is_written_whatever_another_said(pair: Pair, monkeypatch: Any) -> None:
    fleet = pair.opened.fleet
    crashing = planted(monkeypatch, fleet.hosts, "link", HOST)
    for _ in range(CRASHES_MAX + 3):
        fleet.presence.put_back((Change(HOST, event=LinkEvent.HEARD), Change(OTHER, event=LinkEvent.HEARD)))
        await fleet.flush()
        await fleet.flush()  # what was not written is tried again, until it was too often
    assert crashing.bad >= CRASHES_MAX and crashing.good
    fleet.presence.take_changes()
    await told(pair, HOST)


async def test_a_host_whose_proof_or_challenge_cannot_begin_keeps_no_other_from_its_own(
    pair: Pair, monkeypatch: Any
) -> None:
    fleet = pair.opened.fleet
    monkeypatch.setattr(fleet, "is_connected", lambda host_id: True)
    proofs, checks = pair.services.proofs, pair.services.verification
    assert isinstance(proofs, ProofService) and isinstance(checks, VerificationService)
    monkeypatch.setattr(proofs, "is_automatic", True)
    for service, rules in ((proofs, "windrow_master.acceptance"), (checks, "windrow_master.verification")):
        with monkeypatch.context() as changed:
            due = Crashing(lambda host, *_: True, lambda host, *_: host.host_id == HOST)
            changed.setattr(f"{rules}.schedule.is_due", due)
            begin = Crashing(lambda *_, **__: None, lambda *_, **__: False)
            changed.setattr(service, "_begin", begin)
            for _ in range(CRASHES_MAX):
                await service.tick()
            assert due.bad == CRASHES_MAX and begin.good == CRASHES_MAX

            due.is_bad = lambda host, *_: False
            begin.is_bad = lambda *_, **asked: asked["host_id"] == HOST
            for _ in range(CRASHES_MAX + 3):
                await service.tick()
            assert CRASHES_MAX <= begin.bad <= CRASHES_MAX + 1 and begin.good >= 2 * CRASHES_MAX
        await told(pair, HOST)


async def test_what_an_earlier_master_left_is_given_back_host_by_host(pair: Pair, monkeypatch: Any) -> None:
    checks = pair.services.verification
    assert isinstance(checks, VerificationService)
    pair.verifying(HOST, OTHER)
    planted(monkeypatch, checks, "_conclude", HOST)
    await pair.opened.store.write(checks._pick_up, name="test")
    states = {
        host.host_id: host.verify_state
        for host in pair.opened.store.read_now(lambda uow: uow[HostRepository].list_all())
    }
    assert states[OTHER] != states[HOST] == VerifyState.VERIFYING


async def test_a_challenge_that_crashes_gives_its_cards_back(pair: Pair, monkeypatch: Any) -> None:
    checks = pair.services.verification
    assert isinstance(checks, VerificationService)
    monkeypatch.setattr(checks, "_host_facts", None)
    pair.verifying(HOST)
    host = pair.opened.store.read_now(lambda uow: uow[HostRepository].get(HOST))
    for _ in range(CRASHES_MAX):
        await checks._done(HOST, pair.begun(host))
    after = pair.opened.store.read_now(lambda uow: uow[HostRepository].get(HOST))
    assert after is not None and after.verify_state is not VerifyState.VERIFYING
    await told(pair, HOST)


async def test_volumes_that_crash_fail_their_own_work_only(pair: Pair, monkeypatch: Any) -> None:
    controller = pair.services.volume_controller
    assert isinstance(controller, VolumeController)
    bad = await pair.waiting_for_volume("one")
    good = await pair.waiting_for_volume("two")
    done: list[str] = []

    async def work(what: Any, held: Any) -> None:
        if held.workload.workload_id == bad.workload_id:
            raise ZeroDivisionError("of one row")
        done.append(held.workload.workload_id)

    monkeypatch.setattr(controller, "_done", work)
    await pair.ticks(controller, 4 * CRASHES_MAX)
    assert done.count(good.workload_id) > CRASHES_MAX
    workload = pair.opened.store.read_now(lambda uow: uow[WorkloadRepository].get(bad.workload_id))
    assert workload is not None
    assert (workload.phase, "met a bug" in workload.detail) == (WorkPhase.FAILED, True)


async def test_results_that_crash_are_given_up_and_said(pair: Pair, monkeypatch: Any) -> None:
    results = pair.services.results
    assert isinstance(results, ResultService)
    bad, good = await pair.ended(HOST), await pair.ended(OTHER)
    done: list[str] = []

    async def take(workload: Any, cluster: Any) -> None:
        if workload.workload_id == bad.workload_id:
            raise ZeroDivisionError("of one row")
        done.append(workload.workload_id)

    monkeypatch.setattr(results, "_take", take)
    await pair.ticks(results, 2 * CRASHES_MAX)
    assert done.count(good.workload_id) > CRASHES_MAX
    workload = pair.opened.store.read_now(lambda uow: uow[WorkloadRepository].get(bad.workload_id))
    assert workload is not None and workload.results is not None and "met a bug" in workload.results.problem


async def test_a_job_whose_entry_cannot_be_made_keeps_no_other_waiting(pair: Pair, monkeypatch: Any) -> None:
    bad, good = await pair.job("bad"), await pair.job("good")
    made = entries.entry_of
    crashing = Crashing(made, lambda job, costs: job.job_id == bad)
    monkeypatch.setattr("windrow_master.jobs.controller.entry_of", crashing)
    for _ in range(CRASHES_MAX + 1):
        await pair.jobs.controller.tick()
        await pair.services.queue.tick()
    found = pair.opened.store.read_now(lambda uow: uow[JobRepository].all_of([bad, good]))
    assert found[bad].state.value == "Failed" and "bug" in found[bad].reason
    assert found[good].attempts or found[good].reason


@pytest.mark.parametrize(
    ("table", "key", "damage"),
    [
        ("jobs", "job_id", {"request": "{not json"}),
        ("jobs", "job_id", {"state": "Nowhere"}),
        ("clusters", "cluster_id", {"phase": "Nowhere"}),
        ("clusters", "cluster_id", {"request": json.dumps([1])}),
        ("workloads", "workload_id", {"phase": "nowhere"}),
        ("commands", "command_id", {"state": "nowhere"}),
        ("rentals", "rental_id", {"state": "nowhere"}),
        ("hosts", "host_id", {"link_state": "nowhere"}),
        ("slots", "slot_id", {"state": "nowhere"}),
    ],
)
async def test_a_row_that_cannot_be_read_ends_no_list_and_no_loop(
    pair: Pair, monkeypatch: Any, table: str, key: str, damage: dict[str, str]
) -> None:
    monkeypatch.setattr(prepared, "PASSED_OVER", {})
    await pair.workload(HOST), await pair.workload(OTHER)
    good = max(await pair.job("one"), await pair.job("two"))

    def plant(uow: UnitOfWork) -> None:
        first = uow.connection.execute(text(f"SELECT {key} FROM {table} ORDER BY {key} LIMIT 1")).scalar_one()
        changed = ", ".join(f"{name} = :{name}" for name in damage)
        uow.connection.execute(text(f"UPDATE {table} SET {changed} WHERE {key} = :key"), {**damage, "key": first})

    await pair.opened.store.write(plant, name="test")
    await pair.jobs.controller.tick()
    await pair.services.queue.tick()
    await pair.opened.clusters.tick()
    await pair.opened.clusters.running.renewals()
    await pair.opened.fleet.tick()
    for path in ("jobs", "clusters", "commands", "receipts", "hosts", "operations"):
        answer = await pair.client.get(f"/api/v1/{path}", params={"limit": "1"})
        assert answer.status_code == 200, (path, answer.text)
        assert answer.json()["items"] or path == "operations", path
    tried = pair.opened.store.read_now(lambda uow: uow[JobRepository].get(good))
    assert tried is not None and (tried.attempts or tried.reason)
    assert any(
        code == ConditionCode.MASTER_ROW_UNREADABLE
        for source in pair.services.health.conditions
        for code, *_ in source()
    )
