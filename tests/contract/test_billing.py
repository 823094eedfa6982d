"""Spending and earnings by month on either database: exact to the microcent, split at midnight by billed time."""

from dataclasses import replace

import pytest

from tests.master_support import ManualClock, opened_store
from tests.unit.clusters.made import cluster
from tests.unit.hybrid.purchases.examples import purchase
from tests.unit.market.rentals import HOST, PROVIDER, RENTER, START
from tests.unit.market.rentals import line as line_of
from tests.unit.market.rentals import rental as rental_of
from windrow_master.billing.repository import SPENDING, BillingRepository, Rented
from windrow_master.clusters.model import ClusterPhase
from windrow_master.clusters.repository import ClusterRepository
from windrow_master.hybrid.purchases.repository import PurchaseRepository
from windrow_master.jobs.model import Job, JobId, JobRequest, JobState
from windrow_master.jobs.repository import JobRepository
from windrow_master.jobs.request import attempt_key
from windrow_master.market.model import RentalId, RentalState
from windrow_master.market.occupancy import YES, Change, Fact
from windrow_master.market.repository import RentalRepository
from windrow_proto.ids import ClusterId, HostId, SlotId, WorkloadId
from windrow_proto.model import SlotGrant
from windrow_proto.units import DAY, HOUR, MICROCENTS_PER_UNIT, SECOND, Microcents, charge

PRICE = Microcents(3 * MICROCENTS_PER_UNIT + 7)
TODAY = START // DAY + 40
DAYS = range(TODAY, TODAY + 4)
SERVED = pytest.mark.proves("sums of spending and earnings on a real PostgreSQL")
SLOTS = tuple(SlotGrant(SlotId(f"GPU-{n}"), 7) for n in range(3))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=SERVED)])
def store(request, tmp_path):
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    with opened_store(tmp_path, ManualClock(), database=url) as opened:
        yield opened


def begin(uow, number, at_ns, ran_ns, *, cluster_id="cluster_a", state=RentalState.CLOSED, **line):
    cost = charge(PRICE, ran_ns)
    rental = replace(
        rental_of(PRICE, 100), rental_id=RentalId(f"rental_{number}"), cluster_id=ClusterId(cluster_id), state=state,
        opened_at_ns=at_ns, held=Microcents(cost + 5), charged=cost, spenders=("token_a", "token_b"),
    )  # fmt: skip
    uow[RentalRepository].add(rental)
    made = replace(
        line_of(PRICE), workload_id=WorkloadId(f"workload_{number}"), rental_id=rental.rental_id, slots=SLOTS,
        lease_from_ns=at_ns, lease_until_ns=at_ns + ran_ns, signed_ns=ran_ns, charged=cost,
        fee_charged=Microcents(cost // 10), runs_from_ns=at_ns,
    )  # fmt: skip
    uow[RentalRepository].add_line(replace(made, **line))
    return cost


def look(store, find):
    return store.read_now(lambda uow: find(uow[BillingRepository]))


def test_a_run_over_midnight_counts_for_both_days_and_adds_up_to_its_charge(store):
    ran_ns = 2 * DAY + 7 * HOUR + 11 * SECOND
    cost = store.write_now(lambda uow: begin(uow, 1, TODAY * DAY - 5 * HOUR, ran_ns), name="test")
    for by in SPENDING:
        cells = look(store, lambda sums, by=by: sums.spent(by, RENTER, range(TODAY - 1, TODAY + 4)))
        amounts = {cell.day: cell.amount for cell in cells}
        assert sorted(amounts) == [TODAY - 1, TODAY, TODAY + 1, TODAY + 2]
        assert sum(amounts.values()) == cost
        assert abs(amounts[TODAY - 1] - charge(PRICE, 5 * HOUR)) <= PRICE // 3600
        assert abs(amounts[TODAY] - charge(PRICE, DAY)) <= PRICE // 3600
        assert sum(cell.seconds for cell in cells) == (ran_ns - SECOND) // SECOND
    assert look(store, lambda sums: sums.spent("gpu", PROVIDER, DAYS)) == []
    assert look(store, lambda sums: sums.first_ns(renter=RENTER)) == TODAY * DAY - 5 * HOUR


def test_what_was_earned_is_the_charge_without_the_fee_by_slot_and_for_all_with_it(store):
    costs = store.write_now(
        lambda uow: [
            begin(uow, 1, TODAY * DAY, HOUR),
            begin(uow, 2, TODAY * DAY + 23 * HOUR, 2 * HOUR + SECOND),
            begin(uow, 3, TODAY * DAY, HOUR, host_id=HostId("host_b"), slots=SLOTS[:1]),
        ],
        name="test",
    )
    earned = [cost - cost // 10 for cost in costs]
    cells = look(store, lambda sums: sums.earned_by_slot(PROVIDER, DAYS))
    by_slot = {key: sum(one.amount for one in cells if one.key == key) for key in {one.key for one in cells}}
    assert set(by_slot) == {f"{HOST} GPU-0", f"{HOST} GPU-1", f"{HOST} GPU-2", "host_b GPU-0"}
    assert sum(by_slot.values()) == sum(earned) and by_slot["host_b GPU-0"] == earned[2]
    assert (
        max(by_slot[f"{HOST} {one.slot_id}"] for one in SLOTS) - min(by_slot[f"{HOST} GPU-{n}"] for n in range(3)) <= 2
    )
    (whole, after) = sorted(look(store, lambda sums: sums.earned("project", DAYS)), key=lambda cell: cell.day)
    assert (whole.key, after.day) == (PROVIDER, TODAY + 1)
    assert whole.amount + after.amount == sum(earned)
    assert whole.fee + after.fee == sum(cost // 10 for cost in costs)
    assert whole.seconds + after.seconds >= 10 * 3600  # three GPUs for three hours, one for one


def test_the_cluster_or_run_of_an_attempt_counts_for_its_job_and_no_other(store):
    request = JobRequest(argv=("true",), name="train")
    mine = Job(JobId("job_" + "0" * 32), RENTER, "group", request, JobState.QUEUED, TODAY * DAY)

    def make(uow):
        uow[JobRepository].add(mine, None, bytes(32))
        made = replace(cluster(ClusterPhase.RUNNING), account_id=RENTER)
        uow[ClusterRepository].add(made, attempt_key(mine), bytes(32))
        other = replace(made, cluster_id=ClusterId("cluster_other"), rental_id=RentalId("rental_other"))
        uow[ClusterRepository].add(other, "mine", bytes(32))
        ids = (made.cluster_id, "cluster_other", "cluster_gone")
        run = purchase(account_id=RENTER, for_id=mine.job_id)
        uow[PurchaseRepository].save(run)
        rented = (*ids, run.purchase_id)
        return [begin(uow, n, TODAY * DAY, HOUR * (n + 1), cluster_id=one) for n, one in enumerate(rented)]

    costs = store.write_now(make, name="test")
    found = {cell.key: cell.amount for cell in look(store, lambda sums: sums.spent("job", RENTER, DAYS))}
    assert found == {mine.job_id: costs[0] + costs[3], "": costs[1] + costs[2]}
    assert look(store, lambda sums: sums.job_names([mine.job_id])) == {mine.job_id: mine.name}


def test_what_runs_now_is_told_of_one_project_and_of_all(store):
    store.write_now(lambda uow: begin(uow, 1, TODAY * DAY, HOUR, state=RentalState.OPEN), name="test")
    store.write_now(lambda uow: begin(uow, 2, TODAY * DAY, HOUR), name="test")
    assert look(store, lambda sums: sums.rented_now(RENTER)) == look(store, lambda sums: sums.rented_now(None))
    assert look(store, lambda sums: sums.rented_now(RENTER)) == Rented(Microcents(5), PRICE, 1)
    assert look(store, lambda sums: sums.rented_now(PROVIDER)) == Rented(Microcents(0), Microcents(0), 0)
    assert look(store, lambda sums: sums.earning_now(PROVIDER)) == PRICE - PRICE // 10
    assert look(store, lambda sums: sums.earning_now(RENTER)) == 0


def test_the_states_of_hosts_and_slots_are_read_from_the_audit_log(store):
    def say(uow):
        for subject, action, fields, reason in (
            ("host_a", "host.silent_long", {"from": "suspect", "to": "lost"}, ""),
            ("host_a", "host.drain", {"from": "active", "to": "draining"}, ""),
            ("GPU-1", "slot.fault", {"from": "free", "to": "faulted"}, ""),
            ("GPU-1", "slot.ran", {"from": "starting", "to": "running"}, ""),
            ("GPU-2", "slot.offer", {}, "it is too hot"),
            ("GPU-2", "slot.offer", {}, "nothing stands against it any more"),
        ):
            uow.audit("master", action, subject, reason, fields)
        return uow.now_wall_ns

    at_ns = store.write_now(say, name="test")
    hot = [Change(at_ns, Fact.CLOSED, "", YES), Change(at_ns, Fact.CLOSED, YES, "")]
    assert look(store, lambda sums: sums.changes(at_ns, None)) == {
        "host_a": [Change(at_ns, Fact.LINK, "suspect", "lost"), Change(at_ns, Fact.ADMIN, "active", "draining")],
        "GPU-1": [Change(at_ns, Fact.FAULTY, "", YES)],
        "GPU-2": hot,
    }
    assert look(store, lambda sums: sums.changes(at_ns, {"GPU-2"})) == {"GPU-2": hot}
    assert look(store, lambda sums: sums.changes(at_ns + 1, None)) == {}
