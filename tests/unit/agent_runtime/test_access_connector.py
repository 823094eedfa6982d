"""A host that an Access sends away leaves it alone for as long as it was told, and goes to another meanwhile."""

import asyncio
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest

from tests.master_support import ManualClock, SeededRng
from tests.simulation.loop import VirtualClock, VirtualLoop, run
from windrow_agent.core.access_distrust import DISTRUST_NS
from windrow_agent.link import access_connector
from windrow_agent.link.access_connector import AccessConnector
from windrow_agent.link.connection import Connection, Greeting
from windrow_proto.errors import LinkClosed, TooMany, Unavailable
from windrow_proto.ids import BootId, HostId
from windrow_proto.keys import SigningKey
from windrow_proto.messages import AccessPoint, RegionMap
from windrow_proto.ports import PingAnswer
from windrow_proto.session import AgentSession
from windrow_proto.units import HOUR, MILLISECOND, MINUTE, SECOND

NEAR, FAR = "near:1", "far:1"


class SleepingClock(ManualClock):
    """Time passes while somebody sleeps, until it is over."""

    def __init__(self, end_ns):
        super().__init__()
        self.end_ns = end_ns

    async def sleep_ns(self, duration_ns):
        if self.monotonic_ns() >= self.end_ns:
            await asyncio.Event().wait()
        self.advance(duration_ns)
        await asyncio.sleep(0)


@dataclass
class Network:
    """Two Accesses that answer pings, and what each says to who dials it (nanoseconds to wait; None: a dead line)."""

    clock: SleepingClock
    busy_ns: dict[str, int | None]
    dialled: list[tuple[str, int]] = field(default_factory=list)

    async def connect(self, address, deadline_ns):
        self.dialled.append((address, self.clock.monotonic_ns()))
        busy_ns = self.busy_ns[address]
        if busy_ns is None:
            raise LinkClosed("Could not connect.")
        raise LinkClosed("Could not connect.") from TooMany("Busy.", retry_after_ns=busy_ns)

    async def ping(self, address, deadline_ns):
        return PingAnswer({NEAR: 1, FAR: 90}[address] * MILLISECOND, address, "eu", 0, draining=False)

    async def warm(self, address, deadline_ns):
        raise LinkClosed("No connection is kept here.")

    async def bandwidth(self, address, deadline_ns):
        raise LinkClosed("Nothing is measured here.")

    async def close(self):
        pass


async def unused(_):
    raise AssertionError("nobody is let in")


async def dialled(busy_ns, for_ns, kind=Network):
    """When each Access was dialled, by address."""
    clock = SleepingClock(for_ns)
    network = kind(clock, busy_ns)
    regions = RegionMap(1, (AccessPoint("a", "eu", NEAR), AccessPoint("b", "eu", FAR)))

    async def serve(link):
        raise AssertionError("nobody is let in")

    connector = AccessConnector(HostId("host_1"), network, clock, SeededRng(3), regions, serve)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(connector.run())
        while clock.monotonic_ns() < for_ns:
            await asyncio.sleep(0)
        task.cancel()
    return {address: [at_ns for to, at_ns in network.dialled if to == address] for address in (NEAR, FAR)}


@pytest.mark.parametrize("busy_ns", [5 * SECOND, 40 * SECOND])
async def test_an_access_is_left_alone_for_as_long_as_it_asked_and_a_half_more_at_most(busy_ns):
    tries = await dialled({NEAR: busy_ns, FAR: None}, 4 * MINUTE)
    gaps = [later - earlier for earlier, later in zip(tries[NEAR], tries[NEAR][1:], strict=False)]
    assert gaps and all(gap >= busy_ns for gap in gaps)
    assert len(tries[FAR]) > len(tries[NEAR])


async def test_while_all_are_busy_the_first_that_may_be_dialled_is_waited_for():
    tries = await dialled({NEAR: 20 * SECOND, FAR: 30 * SECOND}, MINUTE)
    assert tries[NEAR][0] == tries[FAR][0] == 0
    assert 20 * SECOND <= tries[NEAR][1] <= 30 * SECOND and tries[FAR][1] >= 30 * SECOND


async def test_while_all_say_when_to_come_the_hosts_own_back_off_is_not_added_to_it():
    tries = await dialled({NEAR: SECOND, FAR: SECOND}, MINUTE)
    gaps = [later - earlier for earlier, later in pairwise(tries[NEAR])]
    assert len(gaps) > 10 and max(gaps) <= 3 * SECOND


async def test_an_access_whose_time_has_come_while_another_was_dialled_is_not_waited_for_any_longer():
    class Slow(Network):
        async def connect(self, address, deadline_ns):
            self.clock.advance(SECOND)
            return await super().connect(address, deadline_ns)

    tries = await dialled({NEAR: SECOND // 2, FAR: SECOND // 2}, MINUTE, Slow)
    gaps = [later - earlier for earlier, later in pairwise(tries[NEAR])]
    assert len(gaps) > 10 and max(gaps) <= 4 * SECOND


async def test_who_says_when_to_come_is_dialled_then_however_long_another_has_been_dead():
    tries = await dialled({NEAR: SECOND, FAR: None}, MINUTE)
    gaps = [later - earlier for earlier, later in pairwise(tries[NEAR])]
    assert len(gaps) > 15 and max(gaps) <= 4 * SECOND


async def test_an_address_that_told_a_time_long_ago_is_forgotten():
    clock = SleepingClock(HOUR)
    connector = AccessConnector(HostId("host_1"), Network(clock, {}), clock, SeededRng(3), RegionMap(1, ()), unused)
    for number in range(100):
        connector._note_busy(f"told-{number}:1", TooMany("Busy.", retry_after_ns=SECOND))
        clock.advance(2 * SECOND)
    assert len(connector._busy_until_ns) <= 40


@pytest.mark.parametrize("said", [LinkClosed("Gone."), TooMany("Busy.", retry_after_ns=SECOND)])
async def test_who_kept_messages_back_is_left_alone_even_if_its_stream_ends_as_the_host_moves_away(said):
    clock = SleepingClock(HOUR)
    connector = AccessConnector(HostId("host_1"), Network(clock, {}), clock, SeededRng(3), RegionMap(1, ()), unused)
    connector._note_kept_back(NEAR)

    connector._note_busy(NEAR, said)

    assert connector._distrust_ns(NEAR) == DISTRUST_NS


async def test_what_an_access_named_as_it_ended_the_stream_reaches_whoever_dials_next():
    class Ended:
        async def send(self, message):
            pass

        async def receive(self):
            raise LinkClosed("The stream has ended.") from Unavailable("No Master.", retry_after_ns=SECOND)

        async def close(self):
            pass

    class Empty:
        async def named(self):
            return ()

        def on_disconnect(self):
            pass

    signing = SigningKey.from_raw(bytes(32))
    session = AgentSession(HostId("host_1"), BootId(bytes(16)), 0)
    clock = ManualClock()
    parts: tuple[Any, Any] = Empty(), None
    connection = Connection(Ended(), session, signing, signing.public, *parts, clock, SeededRng(3))

    with pytest.raises(LinkClosed) as ended:
        await connection.run(Greeting("1", 1, "", simulated=True), unused)

    assert isinstance(ended.value.__cause__, Unavailable)
    assert ended.value.__cause__.retry_after_ns == SECOND


async def test_nobody_is_believed_that_he_is_busy_for_hours():
    tries = await dialled({NEAR: 3600 * SECOND, FAR: 3600 * SECOND}, 5 * MINUTE)
    assert len(tries[NEAR]) > 2
    assert tries[NEAR][1] <= 1.5 * access_connector.BUSY_NS_MAX + SECOND


async def test_a_dead_line_is_dialled_again_without_such_a_wait():
    tries = await dialled({NEAR: None, FAR: None}, 20 * SECOND)
    assert len(tries[NEAR]) >= 3 and tries[NEAR][1] < 5 * SECOND


async def test_a_newer_map_is_asked_for_less_and_less_often_while_nobody_is_reached():
    class Silence(Network):
        async def ping(self, address, deadline_ns):
            raise LinkClosed("Nobody is there.")

    clock = SleepingClock(HOUR)
    network = Silence(clock, {NEAR: None, FAR: None})
    asked: list[int] = []

    async def ask(judge):
        asked.append(clock.monotonic_ns())

    async def serve(link):
        raise AssertionError("nobody is let in")

    regions = RegionMap(1, (AccessPoint("a", "eu", NEAR),))
    connector = AccessConnector(HostId("host_1"), network, clock, SeededRng(3), regions, serve, ask=ask)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(connector.run())
        while clock.monotonic_ns() < HOUR:
            await asyncio.sleep(0)
        task.cancel()
    gaps = [later - earlier for earlier, later in pairwise(asked)]
    assert asked[0] < MINUTE
    assert gaps[0] >= access_connector.ASK_NS_FIRST / 2
    assert all(access_connector.ASK_NS_MAX / 2 <= gap <= 1.5 * access_connector.ASK_NS_MAX + MINUTE for gap in gaps[4:])
    assert 6 <= len(asked) <= 20


async def test_a_move_asked_for_while_it_dials_is_not_forgotten():
    class Open:
        async def receive(self):
            await asyncio.Event().wait()

    class Meanwhile(Network):
        async def connect(self, address, deadline_ns):
            self.dialled.append((address, self.clock.monotonic_ns()))
            if len(self.dialled) == 1:
                connector.move()
            return Open()

    network = Meanwhile(SleepingClock(MINUTE), {})

    async def serve(link):
        await link.receive()

    regions = RegionMap(1, (AccessPoint("a", "eu", NEAR),))
    connector = AccessConnector(HostId("host_1"), network, network.clock, SeededRng(3), regions, serve)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(connector.run())
        for _ in range(200):
            await asyncio.sleep(0)
        task.cancel()
    assert len(network.dialled) == 2


@dataclass
class Ending:
    """A connection that the other end closes after so long."""

    clock: SleepingClock
    lasts_ns: int

    async def receive(self):
        await self.clock.sleep_ns(self.lasts_ns)
        raise LinkClosed("It was killed.")

    async def close(self):
        pass


async def test_when_a_connection_ends_the_accesses_that_were_added_meanwhile_are_dialled_at_once(monkeypatch):
    monkeypatch.setattr(access_connector, "WARM_AFTER_NS", HOUR)  # nor does a second connection

    class Growing(Network):
        async def connect(self, address, deadline_ns):
            self.dialled.append((address, self.clock.monotonic_ns()))
            if len(self.dialled) == 1:
                connector.regions = RegionMap(2, (AccessPoint("a", "eu", NEAR), AccessPoint("b", "eu", FAR)))
                return Ending(self.clock, MINUTE)
            raise LinkClosed("Could not connect.")

    class Unmeasured(SleepingClock):
        """On which the next measurement never comes."""

        async def sleep_ns(self, duration_ns):
            if duration_ns > 2 * MINUTE:
                await asyncio.Event().wait()
            await super().sleep_ns(duration_ns)

    network = Growing(Unmeasured(HOUR), {})
    ended_at: list[int] = []

    async def serve(link):
        try:
            await link.receive()
        finally:
            ended_at.append(network.clock.monotonic_ns())

    regions = RegionMap(1, (AccessPoint("a", "eu", NEAR),))
    connector = AccessConnector(HostId("host_1"), network, network.clock, SeededRng(3), regions, serve)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(connector.run())
        while len(network.dialled) < 3 and network.clock.monotonic_ns() < HOUR:
            await asyncio.sleep(0)
        task.cancel()
    (_, first), (second, at_ns) = network.dialled[:2]
    assert (first, second) == (0, FAR)  # and not the one that has just gone, nor after a pause
    assert at_ns - ended_at[0] <= access_connector.FAILOVER_JITTER_NS
    assert network.dialled[2][0] == NEAR


async def test_over_a_bad_line_each_round_that_leads_nowhere_leaves_a_dial_more_time():
    given: list[int] = []

    class Patient(Network):
        async def connect(self, address, deadline_ns):
            given.append(deadline_ns)
            self.clock.advance(deadline_ns)
            raise LinkClosed("No answer in time.")

    clock = SleepingClock(5 * MINUTE)
    regions = RegionMap(1, (AccessPoint("a", "eu", NEAR), AccessPoint("b", "eu", FAR)))

    async def serve(link):
        raise AssertionError("nobody is let in")

    connector = AccessConnector(HostId("host_1"), Patient(clock, {}), clock, SeededRng(3), regions, serve)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(connector.run())
        while clock.monotonic_ns() < 5 * MINUTE:
            await asyncio.sleep(0)
        task.cancel()
    assert (
        given[:6]
        == [access_connector.DIAL_NS] * 2 + [2 * access_connector.DIAL_NS] * 2 + [4 * access_connector.DIAL_NS] * 2
    )
    assert max(given) == access_connector.DIAL_NS_MAX


class Letting(Network):
    """Lets everybody in while it is up."""

    def __init__(self, clock, is_up=lambda now_ns: True):
        super().__init__(clock, {})
        self.is_up = is_up

    async def connect(self, address, deadline_ns):
        now_ns = self.clock.monotonic_ns()
        if not self.is_up(now_ns):
            raise LinkClosed("Could not connect.")
        self.dialled.append((address, now_ns))


def let_in(served_ns, is_up):
    """When a host was let in and when each connection ended, in three minutes of virtual time; served_ns: how long each
    lasts."""
    left_ns = []

    async def history(loop: VirtualLoop) -> list[int]:
        clock = VirtualClock(loop)
        network = Letting(clock, is_up)

        async def serve(link):
            await clock.sleep_ns(served_ns)
            left_ns.append(clock.monotonic_ns())
            raise LinkClosed("The stream has ended.")

        regions = RegionMap(1, (AccessPoint("a", "eu", NEAR), AccessPoint("b", "eu", FAR)))
        connector = AccessConnector(HostId("host_1"), network, clock, SeededRng(3), regions, serve)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(connector.run())
            await clock.sleep_ns(3 * MINUTE)
            task.cancel()
        return [at_ns for _, at_ns in network.dialled]

    return run(1, history), left_ns


@pytest.mark.parametrize("served_ns", [2 * SECOND, 5 * SECOND])
def test_a_host_that_is_dropped_time_and_again_is_away_for_moments_only(served_ns):
    """Two Accesses, each killed a little after the host has come."""
    came_ns, left_ns = let_in(served_ns, lambda now_ns: True)
    away_ns = [again - left for left, again in zip(left_ns, came_ns[1:], strict=False)]
    assert len(away_ns) > 20 and max(away_ns) <= access_connector.FAILOVER_JITTER_NS + SECOND // 2
    assert min(later - earlier for earlier, later in pairwise(came_ns)) >= access_connector.STABLE_NS


def test_all_accesses_are_away_for_a_moment_and_the_host_is_there_soon_after():
    """Every 20 s all of them are killed, and are up again after eight."""
    came_ns, left_ns = let_in(12 * SECOND, lambda now_ns: now_ns % (20 * SECOND) < 12 * SECOND)
    assert len(left_ns) > 5
    late_ns = [came % (20 * SECOND) for came in came_ns[1:]]
    assert max(late_ns) <= 2 * SECOND


@pytest.mark.parametrize(
    ("slow_until", "rtt_ms", "is_left"), [(2, 400, False), (99, 400, True), (2, None, False), (99, None, False)]
)
async def test_a_host_leaves_its_access_only_when_a_second_measurement_says_so_too(slow_until, rtt_ms, is_left):
    """One round trip may be long since a machine at either end was busy; who serves the host need not answer pings."""

    asked_ns: list[int] = []

    class Slowing(Network):
        asked = 0

        async def connect(self, address, deadline_ns):
            self.dialled.append((address, self.clock.monotonic_ns()))
            return Ending(self.clock, HOUR)

        async def ping(self, address, deadline_ns):
            answer = await super().ping(address, deadline_ns)
            if address == NEAR:
                self.asked += 1
                asked_ns.append(self.clock.monotonic_ns())
                if 2 <= self.asked <= slow_until:
                    if rtt_ms is None:
                        raise LinkClosed("No answer in time.")
                    return replace(answer, rtt_ns=rtt_ms * MILLISECOND)
            return answer

    network = Slowing(SleepingClock(9 * MINUTE), {})

    async def serve(link):
        await asyncio.Event().wait()

    regions = RegionMap(1, (AccessPoint("a", "eu", NEAR), AccessPoint("b", "eu", FAR)))
    connector = AccessConnector(HostId("host_1"), network, network.clock, SeededRng(3), regions, serve)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(connector.run())
        for _ in range(2000):
            await asyncio.sleep(0)
        task.cancel()
    assert network.asked > 2 and asked_ns[2] - asked_ns[1] >= access_connector.AGREE_NS / 2
    assert [to for to, _ in network.dialled] == ([NEAR, FAR] if is_left else [NEAR])


async def test_a_host_with_one_access_dials_it_twice_again_before_a_ping_costs_it_a_connection():
    clock, said = SleepingClock(MINUTE), []

    class OneAccess(Network):
        async def connect(self, address, deadline_ns):
            said.append("dial")
            return await super().connect(address, deadline_ns)

        async def ping(self, address, deadline_ns):
            said.append("ping")
            return await super().ping(address, deadline_ns)

    regions = RegionMap(1, (AccessPoint("near", "eu", NEAR),))
    connector = AccessConnector(HostId("host_x"), OneAccess(clock, {NEAR: None}), clock, SeededRng(), regions, unused)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(connector.run())
        while said.count("ping") < 2:
            await asyncio.sleep(0)
        running.cancel()
    assert said[:6] == ["dial", "dial", "dial", "ping", "dial", "ping"]
