"""The intervals at which an agent speaks, and its patience with the Master's silence; in virtual time."""

import asyncio
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.simulation.loop import SeededRng, VirtualClock, VirtualLoop, run
from tests.support import tiny_master
from tests.support.agent_world import HOST, PEER, Reader, no_benchmarks
from tests.unit.agent_runtime.test_resume import GREETING, SETTINGS, Host
from windrow_agent.app.service import AgentService, Parts
from windrow_agent.gpu.no_gpus import NoGpus
from windrow_agent.link.connection import Connection
from windrow_agent.report.sampler import Sampler
from windrow_agent.threads import InlineRunner
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.errors import LinkClosed
from windrow_proto.keys import SigningKey
from windrow_proto.link_memory import MemoryNetwork, Weather
from windrow_proto.messages import AccessPoint, Heartbeat, HeartbeatReply, RegionMap
from windrow_proto.model import Kind, Lane
from windrow_proto.units import HOUR, MINUTE, SECOND, seconds
from windrow_proto.wire_link import encode_heartbeat, encode_heartbeat_reply


def waited_s(interval_ns: int, *, is_answered: bool) -> int:
    """Seconds from the Master's last word to the end of a connection that stays open, where heartbeats leave so often.

    is_answered: whether it answered one heartbeat before it fell silent.
    """
    gone: list[int] = []

    async def history(loop: VirtualLoop) -> None:
        clock = VirtualClock(loop)
        host = Host(clock, replace(SETTINGS, heartbeat_interval_ns=interval_ns))
        await host.prepare()

        async def beat(connection: Connection) -> None:
            while True:
                connection.say(Kind.HEARTBEAT, encode_heartbeat(Heartbeat(1, 1, "", b"")))
                await clock.sleep_ns(interval_ns)

        async def answer() -> None:
            await clock.sleep_ns(SECOND)
            host.route.send(Kind.HEARTBEAT_REPLY, Lane.CONTROL, encode_heartbeat_reply(HeartbeatReply(5, 1)))

        async with asyncio.TaskGroup() as tasks:
            last_ns = clock.monotonic_ns()
            if is_answered:
                last_ns += SECOND
                tasks.create_task(answer())
            with pytest.raises(LinkClosed, match="has not been heard for too long"):
                async with asyncio.timeout(seconds(HOUR)):
                    await host.connection.run(GREETING, beat)
            gone.append((clock.monotonic_ns() - last_ns) // SECOND)

    run(1, history)
    return gone[0]


@pytest.mark.parametrize(("interval_s", "patience_s"), [(1, 16), (5, 16), (60, 181)])
def test_a_master_that_is_silent_on_an_open_link_for_three_heartbeats_or_fifteen_seconds_is_left(
    interval_s: int, patience_s: int
) -> None:
    assert waited_s(interval_s * SECOND, is_answered=True) == patience_s


def test_a_master_that_never_answers_what_was_resumed_is_left_sooner() -> None:
    assert waited_s(60 * SECOND, is_answered=False) == 10


@pytest.mark.parametrize("interval_s", [5, 60])
def test_an_agent_beats_as_often_as_it_was_told_and_is_content_with_as_many_answers(
    interval_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = replace(tiny_master.SETTINGS, heartbeat_interval_ns=interval_s * SECOND)
    monkeypatch.setattr(tiny_master, "SETTINGS", told)
    masters: list[tiny_master.TinyMaster] = []

    async def history(loop: VirtualLoop) -> None:
        clock, signing = VirtualClock(loop), SigningKey.from_raw(bytes([7]) * 32)
        masters.append(tiny_master.TinyMaster(signing.public, clock))
        async with MemoryNetwork(clock, SeededRng("network"), Weather(0, 0, 0.0)) as network:
            await network.serve_agents("near:1", masters[0])
            parts = Parts(
                host_id=HOST,
                signing=signing,
                master_public=masters[0].signing.public,
                generation=lambda: 1,
                regions=RegionMap(1, (AccessPoint("acc_1", "test", "near:1"),)),
                dialer=network.dialer(PEER),
                clock=clock,
                rng=SeededRng("agent"),
                disk=MemoryDisk(),
                directory="/agent",
                runner=InlineRunner(clock),
                kernel_boot="boot",
                sampler=Sampler(clock, NoGpus(), Reader()),
                runtimes={},
                agent_version="test",
                measure_benchmarks=no_benchmarks,
            )
            service = AgentService(parts)
            async with asyncio.TaskGroup() as tasks:
                task = tasks.create_task(service.run())
                await service.connected.wait()
                await clock.sleep_ns(10 * MINUTE)
                service.stop()
                await task

    run(1, history)
    assert masters[0].connections == 1
    uptimes_ns = [heartbeat.uptime_ns for heartbeat in masters[0].heartbeats]
    gaps_ns = [later - earlier for earlier, later in pairwise(uptimes_ns)]
    assert len(gaps_ns) >= 9 and set(gaps_ns) == {interval_s * SECOND}
