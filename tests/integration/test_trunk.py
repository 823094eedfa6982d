"""The Master's end of the link, with a real store, a real segment log and real proofs, over the link in memory."""

import pytest

from tests.trunk_support import FakeAgent
from tests.trunk_world import ACCESS_KEY, HOST, MASTER, running
from tests.waiting import poll_async
from windrow_master.fleet.bandwidth_repository import BandwidthRepository
from windrow_master.fleet.evidence_repository import EvidenceRepository, MarkRepository
from windrow_master.fleet.model import AdminState, CommandState, HostFacts, LinkState
from windrow_master.fleet.repository import CommandRepository, HostRepository
from windrow_master.store.executors import InlineExecutor
from windrow_master.telemetry.service import TelemetryService
from windrow_proto.bandwidth import BandwidthClaim, BandwidthResult
from windrow_proto.conditions import ConditionCode
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.errors import HostUnreachable, LinkClosed, StorageFailed
from windrow_proto.ids import CommandId, GpuUuid, HostId, WorkloadId
from windrow_proto.keys import DOMAIN_CLAIM, SigningKey
from windrow_proto.messages import (
    Channel,
    ChannelClose,
    ChannelCredit,
    ChannelData,
    ChannelOpen,
    Gap,
    LaneMarks,
)
from windrow_proto.model import (
    ChannelPurpose,
    Command,
    CommandKind,
    CommandPhase,
    CommandStatus,
    Event,
    GpuFacts,
    Inventory,
    Kind,
    Lane,
    LeaseRenewal,
)
from windrow_proto.samples import Sample, encode_batch
from windrow_proto.wire_command import decode_command, decode_leases, encode_status
from windrow_proto.wire_host import encode_bandwidth, encode_claim, encode_event, encode_inventory
from windrow_proto.wire_link import (
    decode_channel,
    decode_query,
    decode_region_map,
    decode_settings,
    encode_channel,
    encode_gap,
)


@pytest.fixture
async def m(tmp_path):
    async with running(tmp_path) as master:
        yield master


async def greet(m, agent=None, access=None, **options):
    return await (agent or m.agent).greet(access or m.access, MASTER.public, **options)


def samples(m, value=1):
    return encode_batch([Sample(m.clock.wall_ns(), {("", 101): value})])


async def test_a_host_is_online_with_its_first_heartbeat(m):
    welcome = await greet(m)
    assert welcome.inventory_wanted
    await m.agent.beat()
    reply = await m.agent.next(Kind.HEARTBEAT_REPLY)
    assert reply.epoch == m.store.epoch
    await poll_async(lambda: m.fleet.entry(HOST).host.link_state is LinkState.ONLINE)
    assert m.fleet.entry(HOST).host.access_id == "access_1"
    assert m.fleet.entry(HOST).host.region == "local-a"


async def test_evidence_is_committed_before_it_is_acknowledged(m):
    await greet(m)
    inventory = Inventory(hostname="box", cpu_count=2, gpus=(GpuFacts(GpuUuid("GPU-1"), 0, "nvidia", "X"),))
    await m.agent.record(Kind.INVENTORY, encode_inventory(inventory))
    await m.agent.acked(Lane.EVIDENCE, 1)
    host = await m.store.read(lambda uow: uow[HostRepository].get(HOST))
    assert host.inventory == inventory
    assert host.admin_state is AdminState.ACTIVE
    assert await m.store.read(lambda uow: uow[MarkRepository].of_host(HOST)) == {m.agent.boot: ((1, 1),)}


async def test_telemetry_is_acknowledged_after_its_fsync(m):
    await greet(m)
    await m.agent.record(Kind.TELEMETRY, samples(m), Lane.TELEMETRY)
    await m.agent.acked(Lane.TELEMETRY, 1)
    m.disk.crash()
    kept = TelemetryService(
        m.disk, m.directory, 99, m.clock, log_executor=InlineExecutor(), view_executor=InlineExecutor()
    )
    assert kept.have(HOST, m.agent.boot).ranges == ((1, 1),)
    assert m.telemetry.live.get(HOST).get("", 101) == 0.001


async def test_telemetry_that_the_disk_refuses_is_not_acknowledged_and_may_come_again(m):
    await greet(m)
    m.disk.inject("append", 28)
    await m.agent.record(Kind.TELEMETRY, samples(m), Lane.TELEMETRY)
    await poll_async(lambda: m.telemetry.log.figures.fsyncs)
    await poll_async(lambda: not m.hub._routes[HOST].lane(Lane.TELEMETRY, m.agent.boot)._uncommitted.ranges)
    await m.agent.record(Kind.TELEMETRY, samples(m), Lane.TELEMETRY, sequence=1)
    await m.agent.acked(Lane.TELEMETRY, 1)


async def test_what_comes_again_over_another_connection_is_stored_once_and_acknowledged_again(m):
    await greet(m)
    body = encode_event(Event("agent.storage_damaged", m.clock.wall_ns(), detail="once"))
    await m.agent.record(Kind.EVENT, body)
    await m.agent.acked(Lane.EVIDENCE, 1)
    old = m.agent.boot
    m.agent.restart(b"b" * 16)
    welcome = await greet(m, unacked=(LaneMarks(Lane.EVIDENCE, old, ((1, 1),)),))
    assert LaneMarks(Lane.EVIDENCE, old, ((1, 1),)) in welcome.have
    await m.agent.record(Kind.EVENT, body, sequence=1, boot=old)
    await m.agent.acked(Lane.EVIDENCE, 1, boot=old)
    rows = await m.store.read(lambda uow: uow.events.newest(HOST))
    assert [row.kind for row in rows].count("agent.storage_damaged") == 1


async def test_a_gap_is_recorded_and_its_records_are_not_asked_for(m):
    await greet(m)
    gap = Gap(Lane.EVIDENCE, m.agent.boot, ((1, 3),), "spool_cap")
    await m.agent.record(Kind.GAP, encode_gap(gap), sequence=4)
    await m.agent.acked(Lane.EVIDENCE, 4)
    (row,) = await m.store.read(lambda uow: uow[EvidenceRepository].gaps_of_host(HOST))
    assert (row.ranges, row.reason) == (((1, 3),), "spool_cap")


async def test_a_poisoned_record_is_put_aside_and_its_neighbours_are_taken(m):
    await greet(m)
    await m.agent.record(Kind.INVENTORY, b"\xff\xff")
    await m.agent.record(Kind.EVENT, encode_event(Event("agent.storage_damaged", 1)))
    await m.agent.acked(Lane.EVIDENCE, 2)
    assert await m.store.read(lambda uow: uow[EvidenceRepository].buried(HOST)) == 1
    kinds = [row.kind for row in await m.store.read(lambda uow: uow.events.newest(HOST))]
    assert {"agent.storage_damaged", "evidence.put_aside"} <= set(kinds)


async def test_a_replayed_frame_is_dropped_and_counted(m):
    await greet(m)
    await m.agent.beat()
    await m.agent.next(Kind.HEARTBEAT_REPLY)
    await m.agent.resend(m.agent.last_frame)
    await m.agent.beat()
    await m.agent.next(Kind.HEARTBEAT_REPLY)
    route = m.hub._routes[HOST]
    assert route.figures.refused == {"replayed": 1}


async def test_a_forged_frame_is_dropped_and_counted(m):
    await greet(m)
    await m.agent.beat()
    await m.agent.next(Kind.HEARTBEAT_REPLY)
    frame = m.agent.last_frame
    frame.sealed = frame.sealed[:-1] + bytes([frame.sealed[-1] ^ 1])
    await m.agent.resend(frame)
    await m.agent.beat()
    await m.agent.next(Kind.HEARTBEAT_REPLY)
    assert m.hub.figures.bad_proofs == 1


@pytest.mark.parametrize(
    ("facts", "route", "code"),
    [
        (None, {}, "certificate_refused"),
        ({"is_banned": True}, {}, "banned"),
        ({}, {"not_after_ns": 1}, "certificate_refused"),
        ({}, {"generation": 7}, "certificate_refused"),
    ],
)
async def test_an_unwelcome_host_is_told_why_and_its_route_is_ended(m, facts, route, code):
    agent = FakeAgent(m.clock, HostId("host_2"))
    if facts is not None:
        m.facts[agent.host_id] = agent.facts(**facts)
    await agent.connect(m.access, MASTER.public, **route)
    await poll_async(lambda: m.access.closed.get(agent.number) == code)


async def test_once_a_certificate_was_heard_older_ones_are_refused_and_it_is_written_down(m):
    noted, refusals = [], [StorageFailed("the database is away")]

    async def generations_used(heard):
        if refusals:
            raise refusals.pop()
        noted.append(dict(heard))

    m.generations_used = generations_used
    m.facts[HOST] = m.agent.facts(generation=2)
    await greet(m, generation=2)
    await m.agent.beat()
    await m.agent.next(Kind.HEARTBEAT_REPLY)
    clone = FakeAgent(m.clock, boot=b"b" * 16, signing=m.agent.signing)
    await clone.connect(m.access, MASTER.public, generation=1)
    await poll_async(lambda: m.access.closed.get(clone.number) == "certificate_refused")
    await poll_async(lambda: noted == [{HOST: 2}])


async def test_a_master_that_never_heard_the_newest_certificate_refuses_an_older_one(m):
    agent = FakeAgent(m.clock, HostId("host_2"))
    m.facts[agent.host_id] = HostFacts(agent.signing.public, 3, is_banned=False, used_generation=2)
    await agent.connect(m.access, MASTER.public, generation=1)
    await poll_async(lambda: m.access.closed.get(agent.number) == "certificate_refused")
    await agent.greet(m.access, MASTER.public, generation=3)


async def test_after_a_restore_a_newer_certificate_than_is_known_counts_once_and_only_with_the_key(m):
    found = []

    async def generation_found(host_id, generation, _not_after_ns):
        found.append((host_id, generation))
        m.facts[host_id] = HostFacts(agent.signing.public, generation, is_banned=False)

    m.generation_found = generation_found
    agent = FakeAgent(m.clock, HostId("host_2"))
    m.facts[agent.host_id] = HostFacts(agent.signing.public, 1, is_banned=False, may_jump=True)
    thief = FakeAgent(m.clock, HostId("host_2"), boot=b"t" * 16)
    await thief.connect(m.access, MASTER.public, generation=9)
    await poll_async(lambda: m.access.closed.get(thief.number) == "bad_proof")
    assert found == []
    await agent.greet(m.access, MASTER.public, generation=3)
    assert found == [(agent.host_id, 3)]
    copy = FakeAgent(m.clock, HostId("host_2"), boot=b"c" * 16, signing=agent.signing)
    await copy.connect(m.access, MASTER.public, generation=4)
    await poll_async(lambda: m.access.closed.get(copy.number) == "certificate_refused")


async def test_a_hello_under_another_key_is_refused(m):
    stranger = FakeAgent(m.clock)
    await stranger.connect(m.access, MASTER.public)
    await poll_async(lambda: m.access.closed.get(stranger.number) == "bad_proof")


async def test_a_host_that_obeys_a_later_master_is_refused_and_operators_are_told(m):
    await m.agent.connect(m.access, MASTER.public, epoch_seen=m.store.epoch + 1)
    await poll_async(lambda: m.access.closed.get(m.agent.number) == "fenced")
    ((code, detail, _),) = m.hub.conditions()
    assert code is ConditionCode.MASTER_LATER_SEEN and HOST in detail


async def issue(m, kind=CommandKind.BENCHMARK):
    command = Command(CommandId(""), kind)
    return await m.store.write(lambda uow: m.fleet.issue(uow, HOST, command), name="issue")


async def test_a_command_goes_at_once_and_its_result_is_written_down(m):
    await greet(m)
    command_id = await issue(m)
    envelope = await m.agent.next(Kind.COMMAND)
    assert envelope.not_after_ns > m.clock.wall_ns()
    assert decode_command(envelope.body).command_id == command_id
    for phase in (CommandPhase.ACCEPTED, CommandPhase.SUCCEEDED):
        status = CommandStatus(command_id, phase, result={"score": "7"})
        await m.agent.record(Kind.COMMAND_STATUS, encode_status(status))
    await m.agent.acked(Lane.EVIDENCE, 2)
    row = await m.store.read(lambda uow: uow[CommandRepository].get(command_id))
    assert row.state is CommandState.SUCCEEDED
    assert row.result == {"score": "7"}


async def test_a_command_for_a_host_that_is_away_goes_when_it_is_back(m):
    command_id = await issue(m)
    await greet(m)
    assert decode_command((await m.agent.next(Kind.COMMAND)).body).command_id == command_id
    await poll_async(lambda: state_is(m, command_id, CommandState.SENT))


async def state_is(m, command_id, state):
    row = await m.store.read(lambda uow: uow[CommandRepository].get(command_id))
    return row.state is state


async def test_an_accepted_command_is_asked_for_and_never_sent_again_on_another_connection(m):
    await greet(m)
    command_id = await issue(m)
    await m.agent.next(Kind.COMMAND)
    await m.agent.record(Kind.COMMAND_STATUS, encode_status(CommandStatus(command_id, CommandPhase.ACCEPTED)))
    await m.agent.acked(Lane.EVIDENCE, 1)
    m.agent.restart(b"b" * 16)
    await greet(m)
    await m.agent.beat()
    while True:
        envelope = await m.agent.next(Kind.QUERY, Kind.COMMAND)
        assert envelope.kind is Kind.QUERY
        if decode_query(envelope.body).command_ids == (command_id,):
            break


async def asked_nonce(m, relays=()):
    """Of a measurement that the host is asked for now."""
    command_id = await m.store.write(lambda uow: m.fleet.measures.ask(uow, HOST, "master", relays), name="test")
    row = await m.store.read(lambda uow: uow[CommandRepository].get(command_id))
    spec = decode_command(row.body).bandwidth
    assert spec is not None
    return spec.nonce


async def test_a_bandwidth_counts_as_the_lower_of_both_if_it_was_asked_for_and_with_the_relays_signature(m):
    await greet(m)

    async def report(key, nonce):
        claim = encode_claim(BandwidthClaim(nonce, "access_1", HOST, 900, 500, 1, 1, 1, 1))
        signature = key.sign(DOMAIN_CLAIM, claim)
        result = BandwidthResult(nonce, "access_1", "local-a", 800, 700, 1, 1, 1, 1, claim, signature)
        sequence = await m.agent.record(Kind.BANDWIDTH, encode_bandwidth(result))
        await m.agent.acked(Lane.EVIDENCE, sequence)
        return (await m.store.read(lambda uow: uow[HostRepository].get(HOST))).bandwidth

    nonce = await asked_nonce(m)
    assert await report(SigningKey.generate(), nonce) is None
    assert await report(ACCESS_KEY, "its own idea") is None
    measured = await report(ACCESS_KEY, nonce)
    assert (measured.up_bps, measured.down_bps) == (800, 500)


async def test_each_round_is_kept_region_by_region_as_the_median_of_the_relays_of_that_region(m):
    regions = {"access_1": "north", "access_2": "north", "access_3": "south"}
    m.fleet.relays.by_region = regions
    m.keys.known = dict.fromkeys(regions, ACCESS_KEY.public)
    await greet(m)

    async def report(nonce, access_id, up, down):
        claim = encode_claim(BandwidthClaim(nonce, access_id, HOST, up, down, 1, 1, 1, 1))
        signature = ACCESS_KEY.sign(DOMAIN_CLAIM, claim)
        result = BandwidthResult(nonce, access_id, "as the host says", up, down, 1, 1, 1, 1, claim, signature)
        await m.agent.acked(Lane.EVIDENCE, await m.agent.record(Kind.BANDWIDTH, encode_bandwidth(result)))

    first, second = [await asked_nonce(m, ("access_2", "access_3")) for _ in range(2)]
    await report(first, "access_1", 900, 500)
    await report(first, "access_3", 100, 200)
    await report(first, "access_2", 800, 700)
    await report(second, "access_1", 5, 6)
    rounds = await m.store.read(lambda uow: uow[BandwidthRepository].of_host(HOST, 10))
    assert [(r.nonce, r.region, r.up_bps, r.down_bps, len(r.relays)) for r in rounds] == [
        (second, "north", 5, 6, 1),
        (first, "south", 100, 200, 1),
        (first, "north", 850, 600, 2),
    ]


async def test_watching_a_host_makes_it_send_each_second(m):
    welcome = await greet(m)
    assert welcome.settings.telemetry_period_ns == 5_000_000_000
    async with m.telemetry.watch(HOST):
        settings = decode_settings((await m.agent.next(Kind.SETTINGS)).body)
        assert settings.telemetry_period_ns == 1_000_000_000


async def test_a_channel_carries_data_both_ways_within_its_credit(m):
    await greet(m)
    stream = await m.routes.open(HOST, ChannelOpen(WorkloadId("work_1"), ChannelPurpose.EXEC, argv=("ls",)))
    opening = decode_channel((await m.agent.next(Kind.CHANNEL)).body)
    assert opening.step == ChannelOpen(WorkloadId("work_1"), ChannelPurpose.EXEC, argv=("ls",))
    number = opening.channel_id

    async def say(step):
        await m.agent.send(Kind.CHANNEL, Lane.CHANNEL, encode_channel(Channel(number, step)), 2)

    await say(ChannelData(b"out", 1))
    assert await stream.receive() == ChannelData(b"out", 1)
    credit = 1 << 20
    for _ in range(credit // 65536):
        await stream.send(b"x" * 65536)
    blocked = m.group.create_task(stream.send(b"more"))
    for _ in range(credit // 65536):
        assert decode_channel((await m.agent.next(Kind.CHANNEL)).body).step == ChannelData(b"x" * 65536)
    assert not blocked.done()
    await say(ChannelCredit(10))
    await blocked
    await say(ChannelClose(exit_code=3))
    assert (await stream.receive()).exit_code == 3
    with pytest.raises(LinkClosed):
        await stream.receive()


async def test_a_channel_breaks_with_its_trunk(m):
    await greet(m)
    stream = await m.routes.open(HOST, ChannelOpen(WorkloadId("work_1"), ChannelPurpose.LOGS))
    await m.access.link.close()
    with pytest.raises(LinkClosed):
        await stream.receive()
    with pytest.raises(HostUnreachable):
        await m.routes.open(HOST, ChannelOpen(WorkloadId("work_1"), ChannelPurpose.LOGS))


async def test_an_access_that_is_drained_is_told_and_so_are_its_agents_and_a_new_trunk_hears_it_again(m):
    drained = m.drained
    await m.agent.greet(m.access, MASTER.public)
    await m.agent.beat()

    drained.add("access_1")
    m.hub.drain_changed("access_1")

    def regions(envelope):
        return [(point.access_id, point.draining) for point in decode_region_map(envelope.body).points]

    while regions(await m.agent.next(Kind.REGION_MAP)) != [("access_1", True)]:
        pass
    assert m.access.drained == [False, True]
    again = await m.attach(m.group)
    assert again.drained == [True]

    drained.clear()
    m.hub.drain_changed("access_1")
    await poll_async(lambda: (m.access.drained, again.drained) == ([False, True, False], [True, False]))
    assert [(p.access_id, p.draining) for p in m.hub.accesses.points()] == [("access_1", False)]
    await again.link.close()


async def test_an_access_that_went_stays_known_to_operators_until_it_is_back(m):
    assert m.hub.accesses.departed() == []
    await m.access.link.close()
    await poll_async(lambda: m.hub.accesses.departed())
    (gone,) = m.hub.accesses.departed()
    assert (gone["access_id"], gone["region"], gone["version"]) == ("access_1", "local-a", "0.1.0")
    assert m.hub.accesses.summaries() == []
    again = await m.attach(m.group)
    assert m.hub.accesses.departed() == []
    await again.link.close()


async def test_an_access_that_goes_leaves_the_map_as_draining(m):
    assert [(p.access_id, p.draining) for p in m.hub.accesses.points()] == [("access_1", False)]
    await m.access.link.close()
    await poll_async(lambda: [(p.access_id, p.draining) for p in m.hub.accesses.points()] == [("access_1", True)])


async def test_leases_are_renewed_with_a_time_after_which_they_are_worth_nothing(tmp_path):
    async with running(tmp_path) as m:
        await greet(m)
        renewal = LeaseRenewal(WorkloadId("work_1"), 10, 10, 3)

        async def renewals():
            return {HOST: (renewal,)}

        m.renewals = renewals
        await m.hub.down.renew_once()
        envelope = await m.agent.next(Kind.LEASES)
        assert decode_leases(envelope.body) == (renewal,)
        assert envelope.not_after_ns > m.clock.wall_ns()


async def test_after_a_restart_of_the_master_nothing_acknowledged_is_forgotten(tmp_path):
    disk = MemoryDisk()
    async with running(tmp_path, disk) as m:
        await greet(m)
        await m.agent.record(Kind.EVENT, encode_event(Event("agent.storage_damaged", 1)))
        await m.agent.acked(Lane.EVIDENCE, 1)
        await m.agent.record(Kind.TELEMETRY, samples(m), Lane.TELEMETRY)
        await m.agent.acked(Lane.TELEMETRY, 1)
        agent = m.agent
    disk.crash()
    async with running(tmp_path, disk) as m:
        m.facts[HOST] = agent.facts()
        agent.clock = m.clock
        unacked = (LaneMarks(Lane.EVIDENCE, agent.boot, ((1, 1),)), LaneMarks(Lane.TELEMETRY, agent.boot, ((1, 1),)))
        welcome = await greet(m, agent, unacked=unacked)
        assert welcome.epoch == 2
        assert set(welcome.have) == set(unacked)
