"""Clusters from asking to gone, on a real store with a host that reports."""

import pytest

from tests.unit.clusters.world import HOST, OPERATOR, OTHER, OWNER, STRANGER, market_world, principal
from windrow_master.clusters.model import ClusterPhase, ClusterRequest, Results, WorkPhase
from windrow_master.clusters.needs import Refused
from windrow_master.clusters.reports import LOST_AFTER_NS
from windrow_master.fleet.repository import SlotRepository
from windrow_master.fleet.states import AdminEvent, LinkEvent
from windrow_master.identity.model import Role
from windrow_master.market.model import MINT, RentalState, Transfer, TransferKind, account_of
from windrow_master.market.repository import LedgerRepository
from windrow_master.market.service import LEASE_NS
from windrow_master.placement.model import Decision
from windrow_master.store.model import OperationState
from windrow_proto.errors import IdempotencyMismatch, InsufficientFunds, InvalidInput, NoCapacity, NotFound
from windrow_proto.ids import ClusterId, TransferId
from windrow_proto.model import CommandKind, CommandPhase, Isolation, WorkloadPhase
from windrow_proto.units import MICROCENTS_PER_UNIT, MINUTE, SECOND, Microcents, charge

FULL = 100 * MICROCENTS_PER_UNIT


@pytest.fixture
def m(tmp_path):
    with market_world(tmp_path) as made:
        yield made


async def operation_state(m, operation):
    return (await m.store.read(lambda uow: uow.operations.get(operation.id))).state


async def test_a_plan_says_where_and_for_how_much_and_changes_nothing(m):
    preview = await m.clusters.plan(principal(), ClusterRequest(cpus=2))
    assert preview.chosen is not None and preview.chosen.host_id == HOST
    assert preview.chosen.price_per_hour == 2 * 175 * MICROCENTS_PER_UNIT // 10_000
    assert (preview.balance, m.balance()) == (FULL, FULL)
    assert set(m.slots().values()) == {"free"}


async def test_creating_holds_money_leases_the_slot_and_orders_the_work_together(m):
    view = await m.create(cpus=2, env={"A": "b"}, await_files=True)
    spec = m.spec()
    assert (view.cluster.phase, view.workloads[0].phase) == (ClusterPhase.CREATING, WorkPhase.PENDING)
    assert (spec.runtime, spec.cpu_milli, spec.await_files, dict(spec.env)) == ("process", 2000, True, {"A": "b"})
    assert (spec.entrypoint, spec.starts_in_workspace) == (None, True)
    assert (spec.slots[0].slot_id, spec.slots[0].token) == (f"{HOST}/cpu/0", 1)
    assert (spec.lease_ns, spec.paid_ns) == (30 * MINUTE, 15 * MINUTE)
    assert m.balance() == FULL - m.rental(view.cluster.cluster_id).held
    assert set(m.slots().values()) == {"starting"}


async def test_work_without_files_starts_in_its_images_folder_and_with_the_entry_point_that_was_asked_for(m):
    await m.create(image="debian", argv=("serve",), entrypoint="", runtime="docker")
    assert (m.spec().entrypoint, m.spec().starts_in_workspace) == ("", False)


async def test_the_preview_and_the_creation_agree(m):
    for number in range(4):
        m.join(f"host_{number}")
    preview = await m.clusters.plan(principal(), ClusterRequest())
    view = await m.create()
    assert view.workloads[0].host_id == preview.chosen.host_id


async def test_a_request_that_nothing_fits_gets_the_reason_of_all_hosts_and_changes_nothing(m):
    m.join(OTHER)
    with pytest.raises(Refused) as refused:
        await m.create(gpus=1)
    (reason,) = refused.value.refusal.reasons
    assert (reason.text, sorted(host_id for host_id, _ in reason.hosts)) == ("2 of your hosts: no GPU", [HOST, OTHER])
    assert m.balance() == FULL and not m.commands(CommandKind.CREATE)


async def test_a_stranger_without_an_image_is_told_what_to_do(m):
    with pytest.raises(NoCapacity, match="name an image"):
        await m.create(principal(STRANGER))


async def test_without_fifteen_minutes_of_funds_nothing_starts(m):
    await m.market.set_ask(OWNER, "cpu/C", Microcents(401 * MICROCENTS_PER_UNIT), "account/1")
    with pytest.raises(InsufficientFunds, match=r"The first 15 minutes cost 100\.25, the account has 100\.00"):
        await m.create()
    assert set(m.slots().values()) == {"free"} and not m.commands(CommandKind.CREATE)


async def test_the_same_key_makes_one_cluster_and_another_request_under_it_is_refused(m):
    first = await m.create(key="k1", cpus=2)
    again = await m.create(key="k1", cpus=2)
    assert again.cluster.cluster_id == first.cluster.cluster_id
    assert len(m.commands(CommandKind.CREATE)) == 1
    with pytest.raises(IdempotencyMismatch):
        await m.create(key="k1", cpus=1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"cpus": 0},
        {"gpus": -1},
        {"gpu_model": "h100"},
        {"argv": ("a\0b",)},
        {"env": {"1A": ""}},
        {"ports": (0,)},
        {"image": "no spaces"},
        {"runtime": "process", "image": "busybox"},
    ],
)
async def test_a_request_beyond_its_limits_names_the_field(m, wrong):
    with pytest.raises(InvalidInput) as refused:
        await m.create(**wrong)
    assert refused.value.subject in wrong


async def test_a_name_full_of_control_characters_and_markup_is_refused_with_the_rule(m):
    with pytest.raises(InvalidInput, match="1 to 64 of A-Z"):
        await m.create(name="<b>\x1b[31m\u202eevil</b>\n")


async def test_progress_of_the_host_becomes_steps_and_running_ends_the_operation(m):
    operation, view = await m.clusters.create(principal(), ClusterRequest(argv=("true",)))
    spec, cluster_id = m.spec(), view.cluster.cluster_id
    m.status(CommandKind.CREATE, CommandPhase.ACCEPTED)
    m.status(CommandKind.CREATE, CommandPhase.RUNNING, step="preparing", progress_permille=500)
    m.report(spec, WorkloadPhase.PREPARING)
    assert [step.name for step in (await m.cluster(cluster_id)).steps] == ["placed", "preparing"]
    assert await operation_state(m, operation) is OperationState.RUNNING
    m.report(spec, WorkloadPhase.RUNNING, ports={"80": 4000})
    cluster = await m.cluster(cluster_id)
    assert (cluster.phase, set(m.slots().values())) == (ClusterPhase.RUNNING, {"running"})
    assert (await m.workload(cluster_id)).ports == {"80": 4000}
    assert await operation_state(m, operation) is OperationState.SUCCEEDED


async def test_an_unknown_image_fails_with_its_reason_and_gives_back_slot_and_money(m):
    operation, view = await m.clusters.create(principal(), ClusterRequest(image="nobody/nothing"))
    m.status(CommandKind.CREATE, CommandPhase.FAILED, error_code="image_unavailable", error_detail="pull access denied")
    cluster = await m.cluster(view.cluster.cluster_id)
    assert (cluster.phase, cluster.reason) == (ClusterPhase.FAILED, "image_unavailable: pull access denied")
    assert await operation_state(m, operation) is OperationState.FAILED
    m.status(CommandKind.DELETE, CommandPhase.SUCCEEDED)
    assert set(m.slots().values()) == {"free"}
    assert (m.balance(), m.rental(view.cluster.cluster_id).state) == (FULL, RentalState.CLOSED)


async def test_a_command_that_is_never_taken_fails_the_cluster(m):
    view = await m.create()
    m.clock.advance(2 * MINUTE)
    await m.fleet._time_out()
    cluster = await m.cluster(view.cluster.cluster_id)
    assert cluster.phase is ClusterPhase.FAILED and "deadline_exceeded" in cluster.reason


@pytest.mark.parametrize(("code", "phase"), [(0, ClusterPhase.FINISHED), (3, ClusterPhase.FAILED)])
async def test_a_command_that_ends_by_itself_ends_its_cluster_and_its_rental_at_once(m, code, phase):
    cluster_id, spec = await m.running()
    m.clock.advance(12 * SECOND)
    m.receipt(spec, 2, 12, final=True, end_reason="exited", exit_code=code)
    m.report(spec, WorkloadPhase.EXITED, exit_code=code, running_ns=12 * SECOND)
    cluster, rental = await m.cluster(cluster_id), m.rental(cluster_id)
    assert (cluster.phase, cluster.reason) == (phase, f"exit {code}")
    assert (rental.state, rental.charged) == (RentalState.CLOSED, charge(rental.price_per_hour, 12 * SECOND))
    assert (await m.workload(cluster_id)).exit_code == code
    assert set(m.slots().values()) == {"scrubbing"} and not m.commands(CommandKind.DELETE)


async def test_what_has_ended_is_wanted_on_its_host_until_its_results_are_in_and_is_then_cleared_away(m):
    cluster_id, spec = await m.running()
    m.receipt(spec, 2, 1, final=True, end_reason="exited", exit_code=0)
    m.report(spec, WorkloadPhase.EXITED, exit_code=0)
    (wanted,) = m.read(lambda uow: m.clusters.running.desired(uow, HOST))
    (renewal,) = (await m.clusters.running.renewals())[HOST]
    assert wanted.should_run and renewal.paid_ns == renewal.lease_ns == LEASE_NS
    for _ in range(2):
        kept = Results(m.clock.wall_ns(), 5, False, None, "files: its disk is gone")
        m.write(lambda uow, kept=kept: m.clusters.lifecycle.keep_results(uow, spec.workload_id, kept))
    assert (await m.cluster(cluster_id)).reason == "exit 0; not kept: rank 0 on host_a: files: its disk is gone"
    assert len(m.commands(CommandKind.DELETE)) == 1 and await m.clusters.running.renewals() == {}
    m.report(spec, WorkloadPhase.GONE)
    m.status(CommandKind.DELETE, CommandPhase.SUCCEEDED)
    assert set(m.slots().values()) == {"free"}
    assert (await m.cluster(cluster_id)).phase is ClusterPhase.FINISHED
    assert (await m.workload(cluster_id)).results.log_bytes == 5


async def test_a_command_that_ends_before_it_was_seen_running_has_run(m):
    operation, view = await m.clusters.create(principal(), ClusterRequest(argv=("true",)))
    spec = m.spec()
    m.report(spec, WorkloadPhase.EXITED, exit_code=0)
    m.status(CommandKind.CREATE, CommandPhase.SUCCEEDED)
    cluster = await m.cluster(view.cluster.cluster_id)
    assert cluster.phase is ClusterPhase.FINISHED and cluster.started_at_ns == cluster.ended_at_ns
    assert await operation_state(m, operation) is OperationState.SUCCEEDED


async def test_what_has_ended_stays_so_when_it_is_deleted(m):
    cluster_id, spec = await m.running()
    m.report(spec, WorkloadPhase.EXITED, exit_code=0)
    operation, view = await m.clusters.delete(principal(), cluster_id)
    assert (operation.state, view.cluster.phase) == (OperationState.SUCCEEDED, ClusterPhase.FINISHED)
    assert not m.commands(CommandKind.DELETE)


async def test_a_delete_ends_the_work_gives_back_the_slot_and_closes_the_rental_at_the_last_signed_second(m):
    cluster_id, spec = await m.running()
    m.clock.advance(25 * SECOND)
    await m.ended(cluster_id, spec, 3, 24.5)
    cluster, rental = await m.cluster(cluster_id), m.rental(cluster_id)
    assert cluster.phase is ClusterPhase.DELETED and cluster.ended_at_ns is not None
    assert set(m.slots().values()) == {"free"}
    assert rental.state is RentalState.CLOSED
    assert rental.charged == charge(rental.price_per_hour, int(24.5 * SECOND))


async def test_a_delete_is_answered_in_every_phase_and_twice(m):
    view = await m.create()
    cluster_id = view.cluster.cluster_id
    first, _ = await m.clusters.delete(principal(), cluster_id)
    second, _ = await m.clusters.delete(principal(), cluster_id)
    assert first.id == second.id and len(m.commands(CommandKind.DELETE)) == 1
    m.status(CommandKind.DELETE, CommandPhase.SUCCEEDED)
    assert await operation_state(m, first) is OperationState.SUCCEEDED
    third, after = await m.clusters.delete(principal(), cluster_id)
    assert (third.state, after.cluster.phase) == (OperationState.SUCCEEDED, ClusterPhase.DELETED)
    assert m.balance() == FULL


async def test_what_is_deleted_never_comes_back_by_a_late_report(m):
    cluster_id, spec = await m.running()
    await m.ended(cluster_id, spec, 2, 5)
    m.report(spec, WorkloadPhase.RUNNING)
    m.receipt(spec, 9, 500)
    assert (await m.cluster(cluster_id)).phase is ClusterPhase.DELETED
    assert m.rental(cluster_id).charged == charge(m.rental(cluster_id).price_per_hour, 5 * SECOND)
    assert "receipt.refused" in m.events(HOST)


async def test_a_lost_host_degrades_comes_back_or_is_given_up(m):
    cluster_id, spec = await m.running()
    for _ in range(2):
        m.link(LinkEvent.SILENT)
        assert (await m.cluster(cluster_id)).phase is ClusterPhase.RUNNING
        m.link(LinkEvent.SILENT_LONG)
        assert (await m.cluster(cluster_id)).phase is ClusterPhase.DEGRADED
        m.link(LinkEvent.HEARD)
        assert (await m.cluster(cluster_id)).phase is ClusterPhase.RUNNING
    m.link(LinkEvent.SILENT)
    m.link(LinkEvent.SILENT_LONG)
    m.clock.advance(LOST_AFTER_NS + 2 * MINUTE)
    await m.clusters.tick()
    cluster = await m.cluster(cluster_id)
    assert cluster.phase is ClusterPhase.FAILED and cluster.reason.startswith("host_lost")
    assert m.rental(cluster_id).state is RentalState.CLOSED
    assert set(m.slots().values()) == {"stopping"}, "the slot stays taken until the host says that it has ended"
    m.report(spec, WorkloadPhase.GONE)
    assert set(m.slots().values()) == {"free"}


async def test_deleting_on_a_lost_host_does_not_wait_beyond_its_lease(m):
    cluster_id, _ = await m.running()
    m.link(LinkEvent.SILENT)
    m.link(LinkEvent.SILENT_LONG)
    await m.clusters.delete(principal(), cluster_id)
    await m.clusters.tick()
    assert (await m.cluster(cluster_id)).phase is ClusterPhase.DELETING
    m.clock.advance(LOST_AFTER_NS + 2 * MINUTE)
    await m.clusters.tick()
    assert (await m.cluster(cluster_id)).phase is ClusterPhase.DELETED
    assert m.rental(cluster_id).state is RentalState.CLOSED


async def test_a_delete_that_a_host_could_not_do_is_ordered_again(m):
    cluster_id, _ = await m.running()
    await m.clusters.delete(principal(), cluster_id)
    m.status(CommandKind.DELETE, CommandPhase.FAILED, error_code="runtime_unavailable", error_detail="no daemon")
    assert (await m.cluster(cluster_id)).steps[-1].name == "delete_failed"
    m.clock.advance(MINUTE)
    await m.clusters.tick()
    m.status(CommandKind.DELETE, CommandPhase.SUCCEEDED)
    assert (await m.cluster(cluster_id)).phase is ClusterPhase.DELETED


async def test_work_that_vanished_from_its_host_fails_the_cluster_and_frees_the_slot(m):
    cluster_id, spec = await m.running()
    m.receipt(spec, 2, 7, final=True, end_reason="unpaid")
    m.report(spec, WorkloadPhase.GONE, running_ns=7 * SECOND)
    cluster = await m.cluster(cluster_id)
    assert cluster.phase is ClusterPhase.FAILED and "funds ran out" in cluster.reason
    assert set(m.slots().values()) == {"free"}
    assert m.rental(cluster_id).state is RentalState.CLOSED
    assert len(m.commands(CommandKind.DELETE)) == 1, "its tombstone still goes out"


async def test_work_that_ends_for_want_of_money_says_so_in_the_order_in_which_hosts_tell_it(m):
    cluster_id, spec = await m.running()
    m.report(spec, WorkloadPhase.STOPPING, running_ns=7 * SECOND, detail="unpaid")
    assert set(m.slots().values()) == {"stopping"}
    m.receipt(spec, 2, 7, final=True, end_reason="unpaid")
    assert set(m.slots().values()) == {"scrubbing"}
    m.report(spec, WorkloadPhase.GONE, running_ns=7 * SECOND, detail="unpaid")
    assert set(m.slots().values()) == {"free"}
    cluster = await m.cluster(cluster_id)
    assert cluster.phase is ClusterPhase.FAILED and "funds ran out" in cluster.reason
    assert m.rental(cluster_id).state is RentalState.CLOSED
    assert {"cluster.failed", "rental.unpaid", "rental.closed"} <= set(m.events(cluster_id))


async def test_a_slot_is_scrubbed_between_the_end_of_its_work_and_the_next_holder(m):
    cluster_id, spec = await m.running()
    await m.clusters.delete(principal(), cluster_id)
    assert set(m.slots().values()) == {"stopping"}
    m.receipt(spec, 2, 5, final=True, end_reason="deleted")
    assert set(m.slots().values()) == {"scrubbing"}
    with pytest.raises(NoCapacity, match="too few CPUs"):
        await m.create(cpus=4)
    m.status(CommandKind.DELETE, CommandPhase.SUCCEEDED)
    assert set(m.slots().values()) == {"free"}
    rows = m.read(lambda uow: uow.audit_log.list(spec.slots[0].slot_id))
    assert [row.action for row in rows][-4:] == ["slot.ran", "slot.stop", "slot.stopped", "slot.scrubbed"]


async def test_a_renter_hears_once_that_the_funds_run_out_before_they_do(m):
    cluster_id, spec = await m.running(who=principal(STRANGER), image="alpine")
    spent, now = m.balance(STRANGER), m.clock.wall_ns()
    take = Transfer(TransferId("transfer_x"), account_of(STRANGER), MINT, spent, TransferKind.VOID, None, now, "test")
    m.write(lambda uow: uow[LedgerRepository].post(take))
    m.clock.advance(10 * MINUTE)
    m.receipt(spec, 2, 600)
    for _ in range(3):
        (renewal,) = (await m.clusters.running.renewals())[HOST]
        m.clock.advance(30 * SECOND)
    assert 0 < renewal.paid_ns < renewal.lease_ns
    assert m.events(cluster_id).count("rental.funds_low") == 1


async def test_a_gpu_that_breaks_fails_the_work_on_it_only(m):
    m.join(OTHER, gpus=2)
    one, spec = await m.running(gpus=1)
    two, _ = await m.running(gpus=1)
    m.write(
        lambda uow: m.clusters.lifecycle.on_slots_lost(uow, OTHER, (spec.slots[0].slot_id,), "the GPU is out of order")
    )
    assert (await m.cluster(one)).phase is ClusterPhase.FAILED
    assert (await m.cluster(two)).phase is ClusterPhase.RUNNING


async def test_others_see_nothing_operators_see_all_and_only_the_owner_goes_inside(m):
    view = await m.create()
    cluster_id = view.cluster.cluster_id
    stranger = principal(STRANGER)
    auditor = principal(STRANGER, {Role.AUDITOR, Role.RENTER})
    for ask in (m.clusters.get, m.clusters.delete, m.clusters.explain):
        with pytest.raises(NotFound):
            await ask(stranger, cluster_id)
    assert list(await m.clusters.list(stranger, None, 10)) == []
    assert len(await m.clusters.list(OPERATOR, None, 10)) == 1
    assert (await m.clusters.get(auditor, cluster_id)).cluster.cluster_id == cluster_id
    with pytest.raises(NotFound):
        await m.clusters.delete(auditor, cluster_id)
    with pytest.raises(NotFound):
        await m.clusters.get_own(OPERATOR, cluster_id)
    with pytest.raises(NotFound):
        await m.clusters.get(principal(), ClusterId("cluster_none"))


async def test_why_it_runs_there_is_answered_from_the_record(m):
    m.join(OTHER)
    m.decide(AdminEvent.DRAIN, OTHER)
    view = await m.create()
    at_ns, decision = await m.clusters.explain(principal(), view.cluster.cluster_id)
    assert at_ns == m.clock.wall_ns()
    assert isinstance(decision, Decision) and decision.chosen is not None
    assert decision.chosen.host_id == HOST
    assert [verdict.reason for verdict in decision.verdicts if verdict.reason] == ["takes no new work (it is draining)"]


async def test_a_drained_host_keeps_its_work_and_gets_no_new_one(m):
    cluster_id, _ = await m.running()
    m.decide(AdminEvent.DRAIN)
    assert (await m.cluster(cluster_id)).phase is ClusterPhase.RUNNING
    with pytest.raises(NoCapacity, match="it is draining"):
        await m.create()


async def test_desired_is_what_holds_slots_and_whether_it_should_run(m):
    cluster_id, spec = await m.running()
    (wanted,) = m.read(lambda uow: m.clusters.running.desired(uow, HOST))
    assert (wanted.workload_id, wanted.slots, wanted.should_run) == (spec.workload_id, spec.slots, True)
    await m.clusters.delete(principal(), cluster_id)
    (wanted,) = m.read(lambda uow: m.clusters.running.desired(uow, HOST))
    assert not wanted.should_run
    m.status(CommandKind.DELETE, CommandPhase.SUCCEEDED)
    assert m.read(lambda uow: m.clusters.running.desired(uow, HOST)) == ()


async def test_leases_are_renewed_while_the_host_is_online_and_the_work_lives(m):
    cluster_id, spec = await m.running()
    (renewal,) = (await m.clusters.running.renewals())[HOST]
    assert (renewal.workload_id, renewal.token, renewal.lease_ns) == (spec.workload_id, 1, 30 * MINUTE)
    m.link(LinkEvent.SILENT)
    assert await m.clusters.running.renewals() == {}
    m.link(LinkEvent.HEARD)
    assert HOST in await m.clusters.running.renewals()
    await m.clusters.delete(principal(), cluster_id)
    assert await m.clusters.running.renewals() == {}


async def test_two_clusters_do_not_share_a_processor_slot(m):
    views = [await m.create() for _ in range(4)]
    assert len({slot.slot_id for view in views for slot in view.workloads[0].slots}) == 4
    with pytest.raises(NoCapacity, match="too few CPUs"):
        await m.create()


async def test_simulated_hosts_serve_only_those_who_ask_for_them(m):
    m.join(OTHER, simulated=True, runtimes=("simulated",))
    view = await m.create(simulated=True, cpus=4)
    assert (view.workloads[0].host_id, view.workloads[0].runtime) == (OTHER, "simulated")
    offers = await m.clusters.offers()
    assert [(offer.tier, offer.simulated, offer.free) for offer in offers] == [("cpu/C", False, 1), ("cpu/C", True, 0)]


@pytest.mark.parametrize("gone", [LinkEvent.SILENT, AdminEvent.DRAIN])
async def test_an_offer_counts_and_prices_no_host_that_is_offline_or_drained(m, gone):
    m.join(OTHER, owner=STRANGER)
    tier = (await m.clusters.offers())[0].tier
    for owner, price in ((OWNER, 7), (STRANGER, 0)):
        await m.market.set_ask(owner, tier, Microcents(price), "account/1")
    (both,) = await m.clusters.offers()
    assert (both.price_per_hour, both.free, both.total, both.hosts) == (0, 2, 2, 2)
    await m.create(cpus=4)
    (m.link if isinstance(gone, LinkEvent) else m.decide)(gone, OTHER)
    (rest,) = await m.clusters.offers()
    assert (rest.price_per_hour, rest.free, rest.total, rest.hosts) == (7, 0, 1, 1)
    m.link(LinkEvent.SILENT, HOST)
    assert await m.clusters.offers() == ()


async def test_listeners_hear_of_each_change_after_its_commit(m):
    heard: list[ClusterId] = []
    m.clusters.on_change(heard.append)
    cluster_id, _ = await m.running()
    assert heard and set(heard) == {cluster_id}


async def test_a_card_that_its_host_found_unclean_is_faulted_and_not_given_to_the_next(m):
    m.join(OTHER, gpus=1)
    cluster_id, spec = await m.running(gpus=1)
    slot_id = spec.slots[0].slot_id
    await m.clusters.delete(principal(), cluster_id)
    m.report(spec, WorkloadPhase.GONE, OTHER, faults={slot_id: "its MIG mode was off and is on"})
    m.status(CommandKind.DELETE, CommandPhase.SUCCEEDED, OTHER)
    assert m.slots(OTHER)[slot_id] == "faulted"
    (slot,) = [one for one in m.read(lambda uow: uow[SlotRepository].of_host(OTHER)) if one.slot_id == slot_id]
    assert (slot.holder, slot.unavailable) == (None, "after a lease: its MIG mode was off and is on")
    assert (await m.cluster(cluster_id)).phase is ClusterPhase.DELETED


async def test_a_slice_is_rented_by_its_profile_at_its_share_of_the_cards_price(m):
    m.join(OTHER, gpus=1, cut=("3g.40gb", "1g.10gb"))
    view = await m.create(gpus=1, slice="1g.10gb")
    (slot,) = m.spec(OTHER).slots
    assert (slot.gpu_uuid[:4], slot.isolation) == ("MIG-", Isolation.MIG)
    card = m.read(m.market.book).price(OWNER, "h100-pcie/C")
    assert 0.1 * card < view.cluster.price_per_hour < 0.2 * card
    assert view.cluster.tier.startswith("h100-pcie:1g.10gb/")
    with pytest.raises(NoCapacity):
        await m.create(gpus=1)


async def test_a_slot_that_is_being_cleaned_up_after_work_that_ended_is_back_in_a_moment(m):
    _, spec = await m.running(argv=("true",), cpus=4)
    with pytest.raises(NoCapacity) as refused:
        await m.create()
    assert refused.value.retry_after_ns == 0
    m.report(spec, WorkloadPhase.EXITED, exit_code=0)
    with pytest.raises(NoCapacity) as refused:
        await m.create()
    assert refused.value.retry_after_ns > 0


async def test_a_renter_reads_that_an_operator_ended_their_cluster(m):
    cluster_id, _ = await m.running()
    _, view = await m.clusters.delete(principal(STRANGER, {Role.OPERATOR}), cluster_id)
    assert view.cluster.reason == "an operator of this market ended it"
