"""Commands end in one result, hosts in one state, and every verdict of time comes in its time."""

import asyncio

import pytest

from tests.support.wired import answers
from tests.unit.fleet.world import BOOT, GPU_1, HOST, OTHER, world
from windrow_master.fleet.bandwidth_schedule import BandwidthSchedule
from windrow_master.fleet.evidence_repository import EvidenceRepository, MarkRepository
from windrow_master.fleet.messages import CommandChanged, DesiredOn, LinkChanged, WorkloadReported
from windrow_master.fleet.model import AdminState, CommandState, DesiredWorkload, LinkState
from windrow_master.fleet.repository import CommandRepository
from windrow_master.fleet.service import TICK_NS
from windrow_master.fleet.states import AdminEvent, LinkEvent
from windrow_master.store.executors import ThreadExecutor
from windrow_master.store.model import AuditQuery
from windrow_proto.errors import Conflict
from windrow_proto.ids import CommandId, SlotId, WorkloadId
from windrow_proto.messages import Gap
from windrow_proto.model import (
    Command,
    CommandKind,
    CommandPhase,
    CommandStatus,
    DeleteSpec,
    Kind,
    Lane,
    Observed,
    ObservedWorkload,
    SlotGrant,
    WorkloadPhase,
)
from windrow_proto.units import GIB, MINUTE, SECOND
from windrow_proto.wire_command import decode_command, encode_status
from windrow_proto.wire_host import encode_observed
from windrow_proto.wire_link import encode_gap

WORK = WorkloadId("work_1")


@pytest.fixture
def w(tmp_path):
    with world(tmp_path) as made:
        yield made


def issue(w, **options):
    command = Command(CommandId(""), CommandKind.DELETE, delete=DeleteSpec(WORK))
    return w.write(lambda uow: w.fleet.issue(uow, HOST, command, **options))


def status(w, command_id, phase, **fields):
    w.take(w.record(Kind.COMMAND_STATUS, encode_status(CommandStatus(command_id, phase, **fields))))


def command(w, command_id):
    return w.read(lambda uow: uow[CommandRepository].get(command_id))


async def settle(w, *seconds):
    """Let time pass in these steps, with a tick after each."""
    for step in seconds:
        w.clock.advance(step * SECOND)
        await w.fleet.tick()


async def bring_online(w):
    w.fleet.start()
    w.connect()
    w.beat()
    await w.fleet.tick()


@pytest.fixture
def drained(tmp_path):
    """A host that was drained a moment ago, on a store that is read beside the loop; the view was not read since."""
    with world(tmp_path, executor=ThreadExecutor()) as made:
        made.equip(GPU_1)
        made.write(lambda uow: made.fleet.hosts.decide(uow, HOST, AdminEvent.DRAIN, "t", ""))
        yield made


async def test_a_change_is_in_the_view_for_whoever_made_it_though_another_reads_it_at_that_moment(drained):
    async with asyncio.TaskGroup() as group:
        group.create_task(drained.fleet.refresh())
        await asyncio.sleep(0)
        await drained.fleet.refresh()
        assert drained.fleet.entry(HOST).host.admin_state is AdminState.DRAINING


async def test_what_a_reader_of_the_view_gave_up_is_read_by_the_next(drained):
    async with asyncio.TaskGroup() as group:
        gave_up = group.create_task(drained.fleet.refresh())
        await asyncio.sleep(0)
        gave_up.cancel()
    await drained.fleet.refresh()
    assert drained.fleet.entry(HOST).host.admin_state is AdminState.DRAINING


async def test_a_host_goes_from_unseen_to_online_suspect_lost_and_back(w):
    told = []
    w.store.messages.on(LinkChanged, lambda uow, it: told.append(it.state))
    await bring_online(w)
    assert w.host().is_settled(w.clock.wall_ns())
    await settle(w, 16)
    assert w.host().link_state is LinkState.SUSPECT
    await settle(w, 110)
    assert w.host().link_state is LinkState.LOST
    w.beat()
    await settle(w, 1)
    assert told == [LinkState.ONLINE, LinkState.SUSPECT, LinkState.LOST, LinkState.ONLINE]
    assert not w.host().is_settled(w.clock.wall_ns())
    assert w.host().is_settled(w.clock.wall_ns() + 60 * SECOND)


@pytest.mark.parametrize(("hosts", "seconds"), [(1, 5), (5_000, 5), (10_000, 10), (60_000, 60)])
def test_a_large_fleet_is_told_to_beat_so_seldom_that_a_thousand_come_in_a_second(w, hosts, seconds):
    w.fleet.view = range(hosts)

    assert w.fleet.heartbeat_interval_ns() == seconds * SECOND


async def test_heartbeats_cost_no_write_while_nothing_changes(w):
    await bring_online(w)
    await settle(w, 5)
    before = w.store.figures.commits
    for _ in range(10):
        w.beat()
        await w.fleet.flush()
    assert w.store.figures.commits == before


async def test_a_condition_is_written_down_when_it_comes_and_when_it_goes(w):
    w.equip(GPU_1)
    await bring_online(w)
    w.beat(conditions=(f"gpu.hot:{GPU_1}",))
    await settle(w, 1)
    assert not w.slots()[SlotId(GPU_1)].is_offered
    w.beat(inventory="")
    await settle(w, 1)
    assert not w.slots()[SlotId(GPU_1)].is_offered, "an agent that has just started has not looked yet"
    w.beat()
    await settle(w, 1)
    assert w.slots()[SlotId(GPU_1)].is_offered
    assert {"condition.raised", "condition.cleared"} <= set(w.events())


def test_a_command_runs_from_queued_to_its_result(w):
    changes = []
    w.store.messages.on(CommandChanged, lambda uow, it: changes.append((str(it.row.state), it.row.progress_permille)))
    command_id = issue(w)
    assert decode_command(command(w, command_id).body).command_id == command_id
    w.write(lambda uow: w.fleet.commands.sent(uow, (command_id,)))
    status(w, command_id, CommandPhase.ACCEPTED)
    status(w, command_id, CommandPhase.RUNNING, progress_permille=400, step="stopping")
    status(w, command_id, CommandPhase.SUCCEEDED, result={"ok": "1"})
    assert changes == [("accepted", 0), ("running", 400), ("succeeded", 1000)]
    assert command(w, command_id).result == {"ok": "1"}


def test_the_first_result_stays(w):
    command_id = issue(w)
    status(w, command_id, CommandPhase.SUCCEEDED)
    done = command(w, command_id)
    status(w, command_id, CommandPhase.FAILED, error_code="internal")
    assert command(w, command_id) == done


def test_a_host_cannot_speak_of_another_hosts_command(w):
    w.join(OTHER)
    command_id = issue(w)
    body = encode_status(CommandStatus(command_id, CommandPhase.SUCCEEDED))
    w.take(w.record(Kind.COMMAND_STATUS, body, host_id=OTHER))
    assert command(w, command_id).state is CommandState.QUEUED


def test_a_start_says_once_that_no_host_was_heard_yet(w):
    w.join(OTHER)
    for host_id in (HOST, OTHER):
        w.write(lambda uow, one=host_id: w.fleet.hosts.link(uow, one, LinkEvent.HEARD, uow.now_wall_ns))
    w.fleet.start()
    assert w.host().link_state is LinkState.UNKNOWN
    w.fleet.start()  # nothing changes any more
    (told,) = w.read(lambda uow: [row for row in uow.events.newest(None, limit=100) if row.kind == "fleet.not_heard"])
    assert told.fields == {"hosts": "2"}
    audited = w.read(lambda uow: uow.audit_log.newest(AuditQuery(action="fleet.start"), None, 10))
    assert [entry.fields for entry in audited] == [{"hosts": "2"}]


async def test_a_host_that_comes_online_is_shown_before_the_next_turn_is_due(w, monkeypatch):
    turns, shown = asyncio.Event(), asyncio.Event()

    async def only_short(duration_ns):
        if duration_ns >= TICK_NS:
            turns.set()
            await asyncio.Event().wait()
        await asyncio.sleep(0)

    monkeypatch.setattr(w.clock, "sleep_ns", only_short)
    w.fleet.on_change(lambda host_ids: shown.set())
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        running = group.create_task(w.fleet.run())
        await turns.wait()
        shown.clear()
        w.connect()
        w.beat()
        await shown.wait()
        running.cancel()
    assert w.fleet.entry(HOST).host.link_state is LinkState.ONLINE


async def test_a_command_that_never_left_times_out_and_one_that_left_becomes_unknown(w):
    w.fleet.start()
    stayed, left = issue(w), issue(w)
    w.write(lambda uow: w.fleet.commands.sent(uow, (left,)))
    await settle(w, 11 * 60)
    assert command(w, stayed).state is CommandState.TIMED_OUT
    assert command(w, stayed).error_code == "deadline_exceeded"
    assert command(w, left).state is CommandState.UNKNOWN
    status(w, left, CommandPhase.NEVER_SEEN)
    assert command(w, left).state is CommandState.TIMED_OUT


async def test_silence_about_an_accepted_command_makes_it_unknown_and_a_late_result_counts(w):
    w.fleet.start()
    command_id = issue(w)
    status(w, command_id, CommandPhase.ACCEPTED)
    await settle(w, 11 * 60)
    assert command(w, command_id).state is CommandState.UNKNOWN
    status(w, command_id, CommandPhase.SUCCEEDED)
    assert command(w, command_id).state is CommandState.SUCCEEDED


async def test_retiring_a_host_ends_its_open_commands(w):
    w.fleet.start()
    command_id = issue(w)
    await w.fleet.decide(HOST, AdminEvent.RETIRE, "account/1", "sold")
    assert command(w, command_id).state is CommandState.FAILED
    assert w.host().admin_state is AdminState.RETIRED


async def test_a_host_in_use_is_not_taken_into_maintenance(w):
    w.equip(GPU_1)
    w.fleet.start()
    w.write(lambda uow: w.fleet.grant(uow, [SlotId(GPU_1)], "cluster_a", "account/1", ""))
    with pytest.raises(Conflict, match="still in use"):
        await w.fleet.decide(HOST, AdminEvent.MAINTAIN, "account/1", "fan")
    assert w.host().admin_state is AdminState.ACTIVE


async def test_bandwidth_is_measured_at_joining_and_the_real_hosts_come_first(w):
    w.join(OTHER, simulated=True)
    w.equip()
    w.equip(host_id=OTHER)
    w.fleet.start()
    for host in (OTHER, HOST):
        w.connect(host)
        w.beat(host)
    due, _ = BandwidthSchedule(w.fleet.hosts, w.fleet.commands, GIB).due(
        w.fleet.view, lambda host_id: True, w.clock.wall_ns()
    )
    assert [host.host_id for host in due] == [HOST, OTHER]
    await settle(w, 1, 5)
    rows = [
        row for row in w.read(lambda uow: uow[CommandRepository].list()) if row.kind is CommandKind.MEASURE_BANDWIDTH
    ]
    assert sorted(row.host_id for row in rows) == [HOST, OTHER]
    assert {row.not_after_ns - row.created_at_ns for row in rows} == {MINUTE}
    pretended, real = (
        decode_command(row.body).bandwidth for host in (OTHER, HOST) for row in rows if row.host_id == host
    )
    assert pretended and real and pretended.cap_bytes * 100 < real.cap_bytes, "what is simulated takes next to nothing"
    kinds = [row.kind for row in w.read(lambda uow: uow[CommandRepository].list(HOST))]
    assert kinds.count(CommandKind.BENCHMARK) == 1
    await settle(w, 5, 5)
    assert len(w.read(lambda uow: uow[CommandRepository].list())) == 4, "nothing is asked twice"


async def test_who_joins_between_two_rounds_of_measuring_does_not_wait_for_the_next(w):
    w.fleet.start()
    await settle(w, 0)
    w.equip()
    w.connect()
    w.beat()
    await settle(w, 1)
    kinds = {row.kind for row in w.read(lambda uow: uow[CommandRepository].list())}
    assert kinds == {CommandKind.MEASURE_BANDWIDTH, CommandKind.BENCHMARK}


async def test_an_orphan_is_ended_and_a_lost_workload_is_told(w):
    seen = []
    w.store.messages.on(WorkloadReported, lambda uow, it: seen.append((it.workload.workload_id, it.workload.phase)))
    lost = DesiredWorkload(WorkloadId("work_2"), (SlotGrant(SlotId(GPU_1), 1),), should_run=True)
    answers(w.store, DesiredOn, lambda uow, it: (lost,))
    await bring_online(w)
    report = Observed((ObservedWorkload(WORK, WorkloadPhase.RUNNING),), b"\0" * 32, 1)
    w.take(w.record(Kind.OBSERVED, encode_observed(report)))
    for _ in range(12):
        w.clock.advance(30 * SECOND)
        w.beat()
        await w.fleet.tick()
    assert (WorkloadId("work_2"), WorkloadPhase.GONE) in seen
    deletes = [row for row in w.read(lambda uow: uow[CommandRepository].list(HOST)) if row.kind is CommandKind.DELETE]
    assert [row.subject for row in deletes] == [WORK], "one, however often it is looked at"


def test_a_record_that_comes_twice_is_taken_once(w):
    item = w.record(Kind.GAP, encode_gap(Gap(Lane.TELEMETRY, BOOT, ((1, 2),), "spool_cap")))
    w.take(item, item)
    w.take(item)
    assert len(w.read(lambda uow: uow[EvidenceRepository].gaps_of_host(HOST))) == 1
    assert w.read(lambda uow: uow[MarkRepository].of_host(HOST)) == {BOOT: ((1, 1),)}


def test_control_without_marks_the_same_record_is_taken_twice(w):
    item = w.record(Kind.GAP, encode_gap(Gap(Lane.TELEMETRY, BOOT, ((1, 2),), "spool_cap")))
    for _ in range(2):
        w.write(lambda uow: w.fleet.evidence._take_one(uow, item))
    assert len(w.read(lambda uow: uow[EvidenceRepository].gaps_of_host(HOST))) == 2


def test_marks_and_effects_are_committed_together_or_not_at_all(w):
    item = w.record(Kind.GAP, encode_gap(Gap(Lane.TELEMETRY, BOOT, ((1, 2),), "spool_cap")))

    def fail_late(uow):
        w.fleet.evidence.take(uow, [item])
        raise Conflict("something later in the same unit of work")

    with pytest.raises(Conflict):
        w.write(fail_late)
    assert w.read(lambda uow: uow[MarkRepository].of_host(HOST)) == {}
    assert w.read(lambda uow: uow[EvidenceRepository].gaps_of_host(HOST)) == []


async def test_a_host_that_is_back_is_compared_at_once_and_not_half_a_minute_later(w):
    looks = []

    def desired(uow, it):
        looks.append(it.host_id)
        return ()

    answers(w.store, DesiredOn, desired)
    report = Observed((ObservedWorkload(WORK, WorkloadPhase.RUNNING),), b"\1" * 32, 1)
    w.connect()
    w.beat(digest=report.digest)
    await w.fleet.tick()
    w.take(w.record(Kind.OBSERVED, encode_observed(report)))
    looks.clear()
    await w.fleet.tick()
    assert looks == [HOST], "the first word of it counts as a return"
    for _ in range(2):
        w.clock.advance(SECOND)
        await w.fleet.tick()
    assert looks == [HOST]
    w.connect(access="acc_2")
    w.beat(digest=b"\2" * 32)
    await w.fleet.tick()
    assert looks == [HOST], "what is known of it is not what it says it is: it is asked first"
    w.beat(digest=report.digest)
    await w.fleet.tick()
    assert looks == [HOST, HOST]
