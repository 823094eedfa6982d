"""A host that looks for its Access calls no more often than Accesses allow, whatever becomes of their Master."""

import asyncio

from tests.master_support import SeededRng
from tests.simulation.loop import VirtualClock, VirtualLoop, run
from tests.unit.agent_runtime.test_access_connector import FAR, NEAR, Network
from windrow_access.core.admission import Callers, Limits, Wait, masterless_ns
from windrow_agent.link.access_connector import AccessConnector
from windrow_proto.errors import LinkClosed, TooMany, Unavailable
from windrow_proto.ids import HostId
from windrow_proto.link_warm import PINGS_MIN
from windrow_proto.messages import AccessPoint, RegionMap
from windrow_proto.units import MINUTE, SECOND


class Guarded(Network):
    """Accesses that count calls as shipped ones do, and have no Master for three of four seconds."""

    def __init__(self, clock):
        super().__init__(clock, {})
        self.callers = {address: Callers(Limits()) for address in (NEAR, FAR)}
        self.came_ns, self.refused = [], 0

    def ask(self, address):
        answer = self.callers[address].enter("host_1", self.clock.monotonic_ns())
        if isinstance(answer, Wait):
            self.refused += 1
            raise LinkClosed("Could not connect.") from TooMany("Too often.", retry_after_ns=answer.retry_after_ns)
        self.callers[address].leave("host_1")

    async def ping(self, address, deadline_ns):
        for _ in range(PINGS_MIN):
            self.ask(address)
        return await super().ping(address, deadline_ns)

    async def connect(self, address, deadline_ns):
        self.ask(address)
        away_ns = self.clock.monotonic_ns() % (4 * SECOND)
        if away_ns < 3 * SECOND:
            raise LinkClosed("No Master.") from Unavailable("", retry_after_ns=masterless_ns(away_ns, 1))
        self.came_ns.append(self.clock.monotonic_ns())


def test_a_master_that_comes_and_goes_does_not_make_its_hosts_call_too_often():
    async def history(loop: VirtualLoop) -> Guarded:
        clock = VirtualClock(loop)
        network = Guarded(clock)

        async def serve(link):
            await clock.sleep_ns(4 * SECOND - clock.monotonic_ns() % (4 * SECOND))
            raise LinkClosed("Its Master has gone.") from Unavailable("", retry_after_ns=masterless_ns(0, 1))

        regions = RegionMap(1, (AccessPoint("a", "eu", NEAR), AccessPoint("b", "eu", FAR)))
        connector = AccessConnector(HostId("host_1"), network, clock, SeededRng(3), regions, serve)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(connector.run())
            await clock.sleep_ns(20 * MINUTE)
            task.cancel()
        return network

    network = run(1, history)
    assert network.refused == 0
    assert len(network.came_ns) > 250, "of 300 chances"
