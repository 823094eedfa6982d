"""A host whose cards are this machine's processors, challenged by the shipped Master through Access and agent."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.master_support import SeededRng
from tests.support.agent_world import HOST
from tests.support.health_world import ACCESS_ADDRESS, OWNER, HealthWorld, agent_of, relay_of
from tests.trunk_world import Master
from tests.waiting import PATIENCE_S, poll_async
from windrow_agent.app.service import AgentService
from windrow_agent.core.gpu_port import Condition, GpuHealth, GpuInventory
from windrow_agent.gpu.no_gpus import NoGpus
from windrow_master.fleet.bandwidth_schedule import BandwidthSchedule
from windrow_master.fleet.model import Host, HostFacts, Verification, VerifyState
from windrow_master.fleet.repository import HostRepository
from windrow_master.fleet.view import Entry
from windrow_master.verification.scheduler import VerificationService
from windrow_master.verification.times import TIMES, Timing, Work
from windrow_proto.clock import SystemClock
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.ids import GpuUuid, HostId
from windrow_proto.keys import SigningKey
from windrow_proto.link_memory import MemoryNetwork, Weather
from windrow_proto.model import GpuFacts
from windrow_proto.units import GIB

CARDS = ("CPU-0", "CPU-1")


def prover(way: str) -> tuple[str, ...]:
    """A prover in numpy that behaves like this."""
    return (sys.executable, "-m", "tests.support.cheating_prover", way)


class Processors(NoGpus):
    """Two cards with the names that OpenCL gives processors."""

    def open(self) -> Condition | None:
        return None

    def inventory(self) -> GpuInventory:
        facts = (GpuFacts(GpuUuid(uuid), n, "pocl", "a processor", memory_bytes=GIB) for n, uuid in enumerate(CARDS))
        return GpuInventory(tuple(facts), "3.1")

    def health(self) -> tuple[GpuHealth, ...]:
        return tuple(GpuHealth(uuid) for uuid in CARDS)

    def conditions(self) -> tuple[Condition, ...]:
        return ()


class NoMeasures(BandwidthSchedule):
    """Nobody's bandwidth is due."""

    def due(
        self, entries: Iterable[Entry], is_connected: Callable[[HostId], bool], now_ns: int
    ) -> tuple[list[Host], list[Host]]:
        return [], []


class ChallengeWorld(HealthWorld):
    """One host of two cards, which is challenged as soon as it is there."""

    verification: VerificationService

    def __init__(self, network: MemoryNetwork, folder: Path, tasks: asyncio.TaskGroup) -> None:
        self.network, self.folder, self.tasks = network, folder, tasks
        self.key = SigningKey.generate()
        self.master = Master(folder / "master", MemoryDisk(), network)

    def uuid(self, index: int) -> str:
        return CARDS[index]

    async def start(self, times: Mapping[tuple[str, Work], Timing]) -> None:
        """The Master with one joined host, and an Access."""
        master = self.master
        await master.start(self.tasks)
        # A line that is measured while its host dies would be what the test waits for.
        self.master.fleet.measures = NoMeasures(master.fleet.hosts, master.fleet.commands, 0)
        master.facts[HOST] = HostFacts(self.key.public, 1, False)
        await master.store.write(
            lambda uow: master.fleet.enrol(uow, HOST, "box", OWNER, False, "account/account_1"), name="enrol"
        )
        self.verification = VerificationService(
            *(master.store, master.clock, SeededRng(), master.fleet, master.routes, master.host_facts, "test", times)
        )
        relay = relay_of(self.network)
        await self.network.serve_agents(ACCESS_ADDRESS, relay)
        self.running = [self.tasks.create_task(work) for work in (relay.run(), self.verification.run())]

    @asynccontextmanager
    async def agent_with(self, command: tuple[str, ...]) -> AsyncIterator[AgentService]:
        """One life of the agent, ended without a last word."""
        agent = agent_of(self.network, self.folder / "agent", Processors(), command, self.key)
        serving = self.tasks.create_task(agent.run())
        try:
            await asyncio.wait_for(agent.connected.wait(), PATIENCE_S)
            yield agent
        finally:
            serving.cancel()
            await asyncio.wait({serving}, timeout=PATIENCE_S)

    async def host(self) -> Host:
        """The host's row."""
        found = await self.master.store.read(lambda uow: uow[HostRepository].get(HOST))
        assert found is not None
        return found

    async def until_it_is(self, *states: VerifyState) -> Host:
        """The host once its verification is in one of these states."""

        async def reached() -> bool:
            return (await self.host()).verify_state in states

        await poll_async(reached, what=f"a host that is {' or '.join(states)}")
        return await self.host()

    async def found(self) -> tuple[Verification, ...]:
        """Returns the challenges' outcomes, the newest first."""
        return await self.verification.of_host(HOST)

    async def stop(self) -> None:
        for task in self.running:
            task.cancel()
        await asyncio.wait(self.running)
        await self.master.stop()


@asynccontextmanager
async def challenged(folder: Path, times: Mapping[tuple[str, Work], Timing] = TIMES) -> AsyncIterator[ChallengeWorld]:
    """A Master that waits for the host's agent."""
    async with MemoryNetwork(SystemClock(), SeededRng(), Weather(0, 0, 0.0)) as network, asyncio.TaskGroup() as tasks:
        world = ChallengeWorld(network, folder, tasks)
        await world.start(times)
        try:
            yield world
        finally:
            with suppress(asyncio.CancelledError):
                await world.stop()
