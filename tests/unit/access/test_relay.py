"""The relay over links in memory: what it lets in, what it moves, and what happens when either side goes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from tests.waiting import PATIENCE_S, poll_async
from windrow_access import relay
from windrow_access.core.admission import MASTERLESS_NS_MIN, Limits
from windrow_access.core.leaving import leave_gap_ns
from windrow_access.probes import Bandwidth
from windrow_access.relay import Relay, RelayFacts
from windrow_proto import keys, wire_host
from windrow_proto.errors import (
    Banned,
    CertificateRefused,
    DeadlineExceeded,
    Forbidden,
    InvalidInput,
    LinkClosed,
    TooMany,
    Unavailable,
    WindrowError,
)
from windrow_proto.gather import Gather
from windrow_proto.ids import AccessId, HostId
from windrow_proto.ports import PeerFacts
from windrow_proto.units import MILLISECOND, SECOND
from windrow_proto.v1 import link_pb2, services_pb2
from windrow_proto.wire import TOGETHER_MAX, put_together

HOST = HostId("host_" + "0" * 32)
FAR_NS = 1 << 62


class Pipe:
    """One side of an in-memory stream of anything."""

    def __init__(self) -> None:
        self.inbox: asyncio.Queue[object] = asyncio.Queue()
        self.peer: Pipe | None = None
        self.closed = False

    async def send(self, message) -> None:
        if self.closed:
            raise LinkClosed
        assert self.peer is not None
        self.peer.inbox.put_nowait(message)
        await asyncio.sleep(0)

    async def receive(self):
        message = await self.inbox.get()
        if isinstance(message, WindrowError):
            raise message
        return message

    async def close(self) -> None:
        if not self.closed and self.peer is not None:
            self.closed = True
            self.peer.inbox.put_nowait(LinkClosed())
            self.inbox.put_nowait(LinkClosed())


def pair() -> tuple[Pipe, Pipe]:
    near, far = Pipe(), Pipe()
    near.peer, far.peer = far, near
    return near, far


class TestClock:
    """Time that a test moves by waiting for nothing."""

    __test__ = False

    def monotonic_ns(self) -> int:
        return 10**9

    def wall_ns(self) -> int:
        return 10**18

    async def sleep_ns(self, duration_ns: int) -> None:
        await asyncio.sleep(3600 if duration_ns > 10**9 else 0)


class TestRng:
    """Half of everything."""

    __test__ = False

    def random_bytes(self, count: int) -> bytes:
        return bytes(count)

    def uniform(self) -> float:
        return 0.5


def peer(role: str = "host", not_after_ns: int = FAR_NS, host: str = HOST) -> PeerFacts:
    return PeerFacts(role, host, 1, not_after_ns, "10.0.0.1:5000", b"c" * 32)


def frame(sequence: int = 1, frame_class: int = 0, lane: int = 1, sealed: bytes = b"opaque") -> link_pb2.Frame:
    made = link_pb2.Frame(sequence=sequence, sealed=sealed)
    for name, number in (("frame_class", frame_class), ("lane", lane)):
        setattr(made, name, number)
    return made


class World:
    """A relay with its trunk's far end in the test's hands."""

    def __init__(self, limits: Limits | None = None, bugs: Callable[[], services_pb2.BugsMet | None] = lambda: None):
        self.trunks: asyncio.Queue[Pipe] = asyncio.Queue()
        clock, rng = TestClock(), TestRng()
        self.signing = keys.SigningKey.generate()
        facts = RelayFacts("access_1", "local-a", 0, "127.0.0.1:7443", "0.1.0", self.signing.public, bugs=bugs)
        bandwidth = Bandwidth(AccessId("access_1"), self.signing, clock, rng)
        self.relay = Relay(facts, self.dial, bandwidth, clock, rng, limits or Limits())
        self.master: Pipe

    async def dial(self) -> Pipe:
        near, far = pair()
        self.trunks.put_nowait(far)
        return near

    async def welcome(self, draining: bool = False) -> None:
        self.master = await asyncio.wait_for(self.trunks.get(), PATIENCE_S)
        hello = (await self.master.receive()).items[0].hello
        assert hello.region == "local-a"
        item = services_pb2.TrunkItem(welcome=services_pb2.TrunkWelcome(epoch=1, leader=True, draining=draining))
        await self.master.send(services_pb2.TrunkBatch(items=[item]))
        await asyncio.wait_for(self.relay.attached.wait(), PATIENCE_S)

    async def next_item(self, kind: str) -> services_pb2.TrunkItem:
        while True:
            for item in (await asyncio.wait_for(self.master.receive(), PATIENCE_S)).items:
                if item.WhichOneof("what") == kind:
                    return item


@asynccontextmanager
async def world(limits: Limits | None = None) -> AsyncIterator[World]:
    made = World(limits)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(made.relay.run())
        await made.welcome()
        yield made
        running.cancel()


async def test_bugs_that_the_log_counts_are_told_with_the_load() -> None:
    w = World(bugs=lambda: services_pb2.BugsMet(count=2, last="turn_crashed", last_ns=1))
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(w.relay.run())
        await w.welcome()
        assert (await w.next_item("load")).load.bugs == services_pb2.BugsMet(count=2, last="turn_crashed", last_ns=1)
        running.cancel()
    async with world() as well:
        assert not (await well.next_item("load")).load.HasField("bugs")


async def test_frames_pass_unopened_both_ways_after_their_route_is_opened() -> None:
    async with world() as w, asyncio.TaskGroup() as tasks:
        near, agent = pair()
        serving = tasks.create_task(w.relay.accepted(peer(), near))
        opened = await w.next_item("opened")
        assert opened.opened.host_id == HOST
        await agent.send(frame(7))
        moved = await w.next_item("frame")
        assert (moved.route, moved.frame.sequence, moved.frame.sealed) == (opened.route, 7, b"opaque")
        down = services_pb2.TrunkItem(route=opened.route, frame=frame(1, sealed=b"down"))
        await w.master.send(services_pb2.TrunkBatch(items=[down]))
        assert (await asyncio.wait_for(agent.receive(), PATIENCE_S)).sealed == b"down"
        serving.cancel()


async def test_frames_of_one_message_pass_as_if_each_had_come_alone() -> None:
    async with world() as w, asyncio.TaskGroup() as tasks:
        near, agent = pair()
        serving = tasks.create_task(w.relay.accepted(peer(), near))
        await w.next_item("opened")
        await agent.send(put_together([frame(n) for n in range(1, TOGETHER_MAX + 1)]))
        await agent.send(frame(TOGETHER_MAX + 1))
        moved: list[link_pb2.Frame] = []
        while len(moved) <= TOGETHER_MAX:
            batch = await asyncio.wait_for(w.master.receive(), PATIENCE_S)
            moved += [item.frame for item in batch.items if item.WhichOneof("what") == "frame"]
        assert moved == [frame(n) for n in range(1, TOGETHER_MAX + 2)]
        serving.cancel()


@pytest.mark.parametrize("lane", [link_pb2.LANE_EVIDENCE, link_pb2.LANE_TELEMETRY])
async def test_beats_and_backlogs_go_up_with_the_first_frame_that_cannot_wait(
    lane: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "Gather", lambda: Gather(3600.0))
    async with world() as w, asyncio.TaskGroup() as tasks:
        near, agent = pair()
        serving = tasks.create_task(w.relay.accepted(peer(), near))
        await w.next_item("opened")
        backlog = frame(2, link_pb2.FRAME_CLASS_BACKLOG, lane=link_pb2.LANE_TELEMETRY)
        for patient in (frame(1, lane=link_pb2.LANE_CONTROL), backlog):
            await agent.send(patient)
            for _ in range(20):
                await asyncio.sleep(0)
        await agent.send(frame(3, int(lane == link_pb2.LANE_TELEMETRY), lane=lane))
        batch = await asyncio.wait_for(w.master.receive(), PATIENCE_S)
        assert sorted(item.frame.sequence for item in batch.items) == [1, 2, 3]
        serving.cancel()


async def test_an_agent_that_goes_is_reported_to_the_master() -> None:
    async with world() as w:
        near, agent = pair()
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(expect(LinkClosed, w.relay.accepted(peer(), near)))
            opened = await w.next_item("opened")
            await agent.close()
            assert (await w.next_item("closed")).route == opened.route
            await serving


async def expect(error: type[WindrowError], work) -> WindrowError:
    with pytest.raises(error) as caught:
        await work
    return caught.value


async def test_a_lost_master_ends_every_stream_so_that_agents_dial_again() -> None:
    async with world() as w, asyncio.TaskGroup() as tasks:
        near, _ = pair()
        ended = tasks.create_task(expect(Unavailable, w.relay.accepted(peer(), near)))
        await w.next_item("opened")
        await w.master.close()
        error = await asyncio.wait_for(ended, PATIENCE_S)
        assert error.retry_after_ns == MASTERLESS_NS_MIN
        await w.welcome()
        tasks.create_task(expect(LinkClosed, w.relay.accepted(peer(), (again := pair())[0])))
        await w.next_item("opened")
        await again[1].close()


async def test_nobody_is_let_in_without_a_master_a_host_role_or_a_live_certificate() -> None:
    made = World()
    await expect(Unavailable, made.relay.accepted(peer(), pair()[0]))
    async with world() as w:
        await expect(Forbidden, w.relay.accepted(peer(role="access"), pair()[0]))
        await expect(CertificateRefused, w.relay.accepted(peer(not_after_ns=1), pair()[0]))


async def test_nobody_is_let_in_while_too_many_wait_for_the_masters_first_word() -> None:
    other, third = "host_" + "6" * 32, "host_" + "7" * 32
    async with world(Limits(greetings_max=1)) as w, asyncio.TaskGroup() as tasks:
        serving = [tasks.create_task(w.relay.accepted(peer(), pair()[0]))]
        first = await w.next_item("opened")
        refused = await expect(TooMany, w.relay.accepted(peer(host=other), pair()[0]))
        assert refused.retry_after_ns == relay.CROWD_WAIT_NS
        down = services_pb2.TrunkItem(route=first.route, frame=frame(1, sealed=b"welcome"))
        await w.master.send(services_pb2.TrunkBatch(items=[down]))
        for _ in range(20):
            await asyncio.sleep(0)
        serving.append(tasks.create_task(w.relay.accepted(peer(host=other), pair()[0])))
        await w.next_item("opened")
        serving[-1].cancel()  # gone without an answer
        await w.next_item("closed")
        serving.append(tasks.create_task(w.relay.accepted(peer(host=third), pair()[0])))
        await w.next_item("opened")
        for one in serving:
            one.cancel()


async def test_a_stream_that_was_greeted_and_kept_still_serves_while_newcomers_are_kept_out() -> None:
    """The Access of its host has died, and others come by the thousand."""
    limits = Limits(greetings_max=1, handshakes_per_s=1, handshakes_burst=2, per_peer_per_s=1, per_peer_burst=2)
    async with world(limits) as w, asyncio.TaskGroup() as tasks:
        near, agent = pair()
        kept = tasks.create_task(w.relay.accepted(peer(), near))
        await agent.send(frame(1, sealed=b"hello"))
        route = (await w.next_item("frame")).route
        down = services_pb2.TrunkItem(route=route, frame=frame(1, sealed=b"welcome"))
        await w.master.send(services_pb2.TrunkBatch(items=[down]))
        assert (await agent.receive()).sealed == b"welcome"
        newcomer = tasks.create_task(w.relay.accepted(peer(host="host_" + "6" * 32), pair()[0]))
        await w.next_item("opened")
        await expect(TooMany, w.relay.accepted(peer(host="host_" + "7" * 32), pair()[0]))

        await agent.send(frame(2, sealed=b"resume"))
        assert (await w.next_item("frame")).frame.sealed == b"resume"
        kept.cancel()
        newcomer.cancel()


async def test_a_ban_ends_the_stream() -> None:
    async with world() as w, asyncio.TaskGroup() as tasks:
        ended = tasks.create_task(expect(Banned, w.relay.accepted(peer(), pair()[0])))
        await w.next_item("opened")
        item = services_pb2.TrunkItem(bans=services_pb2.BanList(host_ids=[HOST]))
        await w.master.send(services_pb2.TrunkBatch(items=[item]))
        await asyncio.wait_for(ended, PATIENCE_S)


def drain(draining: bool) -> services_pb2.TrunkBatch:
    return services_pb2.TrunkBatch(items=[services_pb2.TrunkItem(drain=services_pb2.TrunkDrain(draining=draining))])


async def test_a_drained_access_says_so_sends_its_agents_elsewhere_and_lets_nobody_in_until_it_is_resumed() -> None:
    async with world() as w, asyncio.TaskGroup() as tasks:
        hosts = [HostId("host_" + str(number) * 32) for number in range(3)]
        ended = [tasks.create_task(expect(Unavailable, w.relay.accepted(peer(host=h), pair()[0]))) for h in hosts]
        await poll_async(lambda: len(w.relay._routes) == len(hosts))
        await w.master.send(drain(True))
        await asyncio.wait_for(asyncio.gather(*ended), PATIENCE_S)
        assert (await w.relay.pinged(peer())).draining
        await expect(Unavailable, w.relay.accepted(peer(), pair()[0]))

        await w.master.send(drain(False))
        await poll_async(lambda: not w.relay._is_draining)
        assert not (await w.relay.pinged(peer())).draining
        near, agent = pair()
        tasks.create_task(expect(LinkClosed, w.relay.accepted(peer(), near)))
        await w.next_item("opened")
        await agent.close()


async def test_a_new_trunk_repeats_whether_the_access_is_drained() -> None:
    async with world() as w:
        await w.master.close()
        await w.welcome(draining=True)
        assert (await w.relay.pinged(peer())).draining
        await expect(Unavailable, w.relay.accepted(peer(), pair()[0]))
        await w.master.close()
        await w.welcome()
        assert not (await w.relay.pinged(peer())).draining


@pytest.mark.parametrize(
    ("agents", "gap_ms", "all_s"), [(1, 1000, 1), (5, 1000, 5), (50, 100, 5), (500, 10, 5), (12_000, 10, 120)]
)
def test_agents_leave_a_drained_access_one_after_the_other(agents: int, gap_ms: int, all_s: int) -> None:
    assert leave_gap_ns(agents) == gap_ms * MILLISECOND
    assert agents * leave_gap_ns(agents) == all_s * SECOND


@pytest.mark.parametrize(
    "bad",
    [
        frame(frame_class=0, lane=2),
        frame(frame_class=1, lane=1),
        frame(frame_class=1, lane=2, sealed=b"x" * (257 << 10)),
        frame(lane=9),
        put_together([frame(1), frame(2, frame_class=1, lane=1)]),
        put_together([frame(1), put_together([frame(2), frame(3)])]),
        put_together([frame(n) for n in range(1, TOGETHER_MAX + 2)]),
    ],
)
async def test_a_frame_in_a_class_that_is_not_its_lanes_ends_the_stream(bad: link_pb2.Frame) -> None:
    async with world() as w, asyncio.TaskGroup() as tasks:
        near, agent = pair()
        ended = tasks.create_task(expect(InvalidInput, w.relay.accepted(peer(), near)))
        await w.next_item("opened")
        await agent.send(bad)
        await asyncio.wait_for(ended, PATIENCE_S)


async def test_the_newer_stream_of_a_host_wins() -> None:
    async with world() as w, asyncio.TaskGroup() as tasks:
        old = tasks.create_task(expect(LinkClosed, w.relay.accepted(peer(), pair()[0])))
        first = await w.next_item("opened")
        near, agent = pair()
        new = tasks.create_task(expect(LinkClosed, w.relay.accepted(peer(), near)))
        second = await w.next_item("opened")
        assert second.route > first.route
        await asyncio.wait_for(old, PATIENCE_S)
        assert not new.done()
        await agent.close()


async def test_a_measurement_counts_what_arrived_and_is_signed() -> None:
    made = World()
    near, agent = pair()
    bandwidth = Bandwidth(AccessId("access_1"), made.signing, StepClock(), TestRng())
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(bandwidth.serve(HOST, near))
        start = services_pb2.BandwidthStart(nonce="n1", duration_ns=10**9, cap_bytes=1 << 20)
        await agent.send(services_pb2.BandwidthChunk(start=start))
        for _ in range(4):
            await agent.send(services_pb2.BandwidthChunk(payload=bytes(1000)))
        await agent.send(services_pb2.BandwidthChunk(direction_done=True))
        received = 0
        while not (chunk := await asyncio.wait_for(agent.receive(), PATIENCE_S)).direction_done:
            received += len(chunk.payload)
        await agent.send(services_pb2.BandwidthChunk(direction_done=True))
        answer = await asyncio.wait_for(agent.receive(), PATIENCE_S)
    keys.verify_signature(made.signing.public, keys.DOMAIN_CLAIM, answer.claim, answer.claim_signature)
    claim = wire_host.decode_claim(answer.claim)
    assert (claim.host_id, claim.nonce, claim.up_bytes, claim.down_bytes) == (HOST, "n1", 4000, received)
    assert claim.up_bits_per_s > 0
    assert received <= 1 << 20


class StepClock(TestClock):
    """Each look at the clock is ten milliseconds later."""

    __test__ = False

    def __init__(self) -> None:
        self._now_ns = 0

    def monotonic_ns(self) -> int:
        self._now_ns += 10_000_000
        return self._now_ns


async def test_a_measurement_that_sends_more_than_agreed_is_refused() -> None:
    made = World()
    near, agent = pair()
    bandwidth = Bandwidth(AccessId("access_1"), made.signing, StepClock(), TestRng())
    async with asyncio.TaskGroup() as tasks:
        refused = tasks.create_task(expect(InvalidInput, bandwidth.serve(HOST, near)))
        start = services_pb2.BandwidthStart(nonce="n1", duration_ns=10**9, cap_bytes=1000)
        await agent.send(services_pb2.BandwidthChunk(start=start))
        await agent.send(services_pb2.BandwidthChunk(payload=bytes(1001)))
        await asyncio.wait_for(refused, PATIENCE_S)


async def test_who_says_nothing_loses_his_stream_and_who_has_said_hello_keeps_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    silent_host = "host_" + "5" * 32
    monkeypatch.setattr(relay, "EXPIRY_PERIOD_NS", 0)
    async with world() as w, asyncio.TaskGroup() as tasks:
        near, agent = pair()
        speaking = tasks.create_task(w.relay.accepted(peer(), near))
        await agent.send(frame(1))
        await w.next_item("frame")
        monkeypatch.setattr(relay, "HELLO_NS_MAX", -1)  # the time is over at once
        silent = tasks.create_task(expect(DeadlineExceeded, w.relay.accepted(peer(host=silent_host), pair()[0])))
        assert (await w.next_item("closed")).closed.reason == "deadline_exceeded"
        await asyncio.wait_for(silent, PATIENCE_S)
        await agent.send(frame(2))
        assert (await w.next_item("frame")).frame.sequence == 2
        speaking.cancel()
