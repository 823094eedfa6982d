"""A host that loses its right to be here loses its streams within five seconds; in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.simulation.loop import VirtualClock, VirtualLoop, run
from tests.unit.access import test_relay
from tests.unit.access.test_relay import HOST, Pipe, expect, frame, pair, peer, world
from windrow_proto.errors import Banned, CertificateRefused, LinkClosed, WindrowError
from windrow_proto.ports import PeerFacts
from windrow_proto.units import MINUTE, SECOND
from windrow_proto.v1 import services_pb2

END_NS = 5 * SECOND
"""Between the end of the right and the end of what was opened with it, at most."""
Opens = Callable[[PeerFacts, Pipe], Awaitable[None]]


@pytest.mark.parametrize("what", ["a stream", "a connection kept warm"])
@pytest.mark.parametrize("why", ["a ban", "the end of its certificate"])
def test_it_ends_within_five_seconds(what: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def history(loop: VirtualLoop) -> None:
        clock = VirtualClock(loop)
        monkeypatch.setattr(test_relay, "TestClock", lambda: clock)
        ends_ns = clock.wall_ns() + MINUTE + SECOND // 2
        facts = peer(not_after_ns=ends_ns) if why != "a ban" else peer()
        async with world() as w, asyncio.TaskGroup() as tasks:
            near, agent = pair()
            opens: Opens = w.relay.accepted if what == "a stream" else w.relay.warmed
            error: type[WindrowError] = LinkClosed
            if what == "a stream":
                error = Banned if why == "a ban" else CertificateRefused
            serving = tasks.create_task(expect(error, opens(facts, near)))
            await agent.send(frame() if what == "a stream" else services_pb2.PingRequest())
            await clock.sleep_ns(ends_ns - clock.wall_ns() - 1)
            assert not serving.done()
            if why == "a ban":
                bans = services_pb2.BanList(host_ids=[HOST])
                await w.master.send(services_pb2.TrunkBatch(items=[services_pb2.TrunkItem(bans=bans)]))
            async with asyncio.timeout(END_NS / SECOND):
                await serving

    run(1, history)
