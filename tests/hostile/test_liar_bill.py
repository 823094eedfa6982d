"""Hosts that sign time that nobody used: the bill is cut by the Master's own clock, and the receipt says so."""

from functools import partial

import pytest

from tests.unit.clusters.world import HOST, OTHER, STRANGER, market_world, principal
from windrow_master.api.market_routes import ReceiptOut
from windrow_master.clusters.model import ClusterPhase, Results
from windrow_master.fleet.states import LinkEvent
from windrow_master.market.model import RentalState
from windrow_master.market.repository import RentalRepository
from windrow_proto.model import CommandKind, CommandPhase, WorkloadPhase
from windrow_proto.units import HOUR, MICROCENTS_PER_UNIT, MINUTE, SECOND, Microcents, charge

GRACE_NS = 10 * SECOND
CLAIMS = (10**16, 2**63 - 1)


@pytest.fixture
def m(tmp_path):
    with market_world(tmp_path) as made:
        yield made


async def rented(m, **asked):
    """A cluster of a renter who is not the host's owner, whose host says nothing but receipts."""
    view = await m.create(principal(STRANGER), image="alpine", **asked)
    return view.cluster.cluster_id, m.spec()


def signs(m, spec, number, running_ns, host_id=HOST, **other):
    """The host signs this, whatever has passed."""
    m.receipt(spec, number, 0, host_id, running_ns=running_ns, **other)


def most(m, cluster_id, wish_ns):
    """Returns the most that a renter may be charged who wanted it for so long."""
    return charge(m.rental(cluster_id).price_per_hour, wish_ns + GRACE_NS)


def shown(m, cluster_id):
    """The receipt as its renter reads it."""
    rental_id = m.rental(cluster_id).rental_id

    def look(uow):
        return m.market._statement(uow, uow[RentalRepository].get(rental_id))

    return ReceiptOut.of(m.read(look))


async def deleted(m, cluster_id):
    await m.clusters.delete(principal(STRANGER), cluster_id)


@pytest.mark.row("F10")
@pytest.mark.parametrize("claim_ns", CLAIMS)
async def test_a_host_that_signs_years_is_paid_for_what_passed(m, claim_ns):
    cluster_id, spec = await rented(m)
    m.clock.advance(3 * SECOND)
    signs(m, spec, 1, claim_ns)
    await deleted(m, cluster_id)
    signs(m, spec, 2, claim_ns, final=True, end_reason="deleted")
    assert 0 < m.rental(cluster_id).charged <= most(m, cluster_id, 3 * SECOND)
    (line,) = shown(m, cluster_id)["lines"]
    assert "not charged: what it signed beyond" in line["note"]
    assert m.events(HOST).count("receipt.impossible") == 1


@pytest.mark.row("F10")
async def test_a_host_that_is_deaf_to_the_delete_gets_nothing_for_it_and_its_renter_has_the_rest_back(m):
    before = m.balance(STRANGER)
    cluster_id, spec = await rented(m)
    m.clock.advance(5 * SECOND)
    await deleted(m, cluster_id)
    for number in range(60):
        m.clock.advance(10 * SECOND)
        signs(m, spec, number + 1, (number + 1) * 10 * SECOND + 5 * SECOND)
        await m.clusters.running.renewals()
        await m.clusters.tick()
    rental = m.rental(cluster_id)
    assert rental.state is RentalState.CLOSED and rental.charged <= most(m, cluster_id, 5 * SECOND)
    assert m.balance(STRANGER) == before - rental.charged
    assert "10 s after the end was asked for" in shown(m, cluster_id)["lines"][0]["note"]


@pytest.mark.row("F10")
async def test_receipts_before_the_start_and_after_the_end_count_for_nothing(m):
    cluster_id, spec = await rented(m)
    signs(m, spec, 1, HOUR, started_wall_ns=-(10**18))  # before it can have started
    assert m.rental(cluster_id).charged <= charge(m.rental(cluster_id).price_per_hour, 2 * SECOND)
    m.clock.advance(20 * SECOND)
    await deleted(m, cluster_id)
    signs(m, spec, 2, 20 * SECOND, final=True, end_reason="deleted")
    charged = m.rental(cluster_id).charged
    m.clock.advance(HOUR)
    for number in (1, 2, 3, 10**6):
        signs(m, spec, number, 10**15, final=True, end_reason="deleted")
    assert m.rental(cluster_id).charged == charged <= most(m, cluster_id, 20 * SECOND)
    assert shown(m, cluster_id)["started_at"] > "2020"


@pytest.mark.row("F10")
@pytest.mark.parametrize("says_it_runs", [True, False])
async def test_a_budget_and_a_duration_hold_against_a_liar_who_may_not_even_say_that_it_runs(m, says_it_runs):
    budget = Microcents(MICROCENTS_PER_UNIT // 1_000)
    for asked, wish_ns in (({"max_duration_ns": MINUTE}, MINUTE), ({"budget": budget}, None)):
        cluster_id, spec = await rented(m, **asked)
        if says_it_runs:
            m.status(CommandKind.CREATE, CommandPhase.SUCCEEDED)
            m.report(spec, WorkloadPhase.RUNNING)
        for number in range(3_000):
            m.clock.advance(5 * SECOND)
            signs(m, spec, number + 1, 10**14 + number, started_wall_ns=number)
            await m.clusters.tick()
            if number % 6 == 0:
                await m.clusters.running.renewals()
            if (await m.cluster(cluster_id)).phase is ClusterPhase.DELETING:
                break
        bound = budget if wish_ns is None else most(m, cluster_id, wish_ns + 5 * SECOND)
        assert 0 < m.rental(cluster_id).charged <= bound, asked
        signs(m, spec, 10**5, 10**15, final=True, end_reason="deleted")
        m.report(spec, WorkloadPhase.GONE)
        lost = Results(m.clock.wall_ns(), problem="its host cleared them away")
        keep = partial(m.clusters.lifecycle.keep_results, workload_id=spec.workload_id, results=lost)
        m.store.write_now(keep, name="test")
        m.status(CommandKind.DELETE, CommandPhase.SUCCEEDED)
        assert m.rental(cluster_id).charged <= bound, asked


@pytest.mark.row("F10")
async def test_a_liar_changes_nobody_elses_bill(m):
    m.join(OTHER)
    first, spec = await rented(m, host_id=HOST)
    view = await m.create(principal(STRANGER), image="alpine", host_id=OTHER)
    other, other_spec = view.cluster.cluster_id, m.spec(OTHER)
    m.clock.advance(10 * SECOND)
    m.receipt(other_spec, 1, 10, OTHER)
    before = m.rental(other), m.read(lambda uow: uow[RentalRepository].line(other_spec.workload_id))
    signs(m, spec, 1, 10**16)
    signs(m, other_spec, 2, 10**16)  # HOST signs for what OTHER runs
    signs(m, other_spec, 3, 10**16, final=True, end_reason="exited")
    assert (m.rental(other), m.read(lambda uow: uow[RentalRepository].line(other_spec.workload_id))) == before
    await deleted(m, first)
    assert m.rental(other).state is RentalState.OPEN


@pytest.mark.row("F10")
async def test_of_a_silence_a_minute_is_charged_although_the_work_ran_on(m):
    cluster_id, spec = await rented(m)
    m.status(CommandKind.CREATE, CommandPhase.SUCCEEDED)
    m.report(spec, WorkloadPhase.RUNNING)
    m.clock.advance(100 * SECOND)
    signs(m, spec, 1, 100 * SECOND)
    m.clock.advance(15 * SECOND)
    m.link(LinkEvent.SILENT)
    m.clock.advance(585 * SECOND)
    m.link(LinkEvent.SILENT_LONG)
    m.link(LinkEvent.HEARD)
    signs(m, spec, 2, 700 * SECOND)
    price = m.rental(cluster_id).price_per_hour
    assert m.rental(cluster_id).charged <= charge(price, 162 * SECOND)
    assert "540 s in which its host was not heard of" in shown(m, cluster_id)["lines"][0]["note"]
    m.clock.advance(10 * SECOND)
    signs(m, spec, 3, 710 * SECOND)
    assert charge(price, 168 * SECOND) <= m.rental(cluster_id).charged <= charge(price, 172 * SECOND)


@pytest.mark.row("F10")
async def test_an_honest_host_is_paid_to_the_second_and_no_money_is_made(m):
    cluster_id, spec = await rented(m)
    m.clock.advance(125 * SECOND)  # its image was pulled for two minutes
    signs(m, spec, 1, 0)
    for number in range(2, 12):
        m.clock.advance(10 * SECOND)
        signs(m, spec, number, (number - 1) * 10 * SECOND)
    await deleted(m, cluster_id)
    m.clock.advance(4 * SECOND)
    signs(m, spec, 12, 104 * SECOND, final=True, end_reason="deleted")
    rental = m.rental(cluster_id)
    assert rental.charged == charge(rental.price_per_hour, 104 * SECOND) and rental.state is RentalState.CLOSED
    assert shown(m, cluster_id)["lines"][0]["note"] is None

    assert m.read(m.market.verify) == ()
