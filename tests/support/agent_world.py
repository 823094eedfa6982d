"""A whole agent on this machine against a small Master, and what tests ask of both."""

import asyncio
import os
from collections.abc import Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.tiny_master import TinyMaster
from tests.waiting import PATIENCE_S, poll_async
from windrow_agent.app.service import AgentService, Parts
from windrow_agent.core.inventory import HostFacts
from windrow_agent.gpu.no_gpus import NoGpus
from windrow_agent.link.bandwidth_budget import LineLimits
from windrow_agent.report.bought_host import BoughtHost
from windrow_agent.report.sampler import Sampler
from windrow_agent.runtimes.port import Runtime
from windrow_agent.runtimes.process import ProcessRuntime
from windrow_agent.runtimes.shim import boot_id
from windrow_agent.threads import ThreadRunner
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.disk import OsDisk
from windrow_proto.ids import ClusterId, CommandId, HostId, SlotId, WorkloadId
from windrow_proto.keys import SigningKey
from windrow_proto.link_memory import MemoryNetwork
from windrow_proto.messages import (
    AccessPoint,
    RegionMap,
)
from windrow_proto.model import (
    Command,
    CommandKind,
    CommandPhase,
    DeleteSpec,
    SlotGrant,
    WorkloadSpec,
)
from windrow_proto.ports import PeerFacts
from windrow_proto.units import MINUTE

HOST = HostId("host_" + "1" * 32)
PEER = PeerFacts("host", HOST, 1, 1 << 62, "memory", b"c" * 32)


class Reader:
    """A host that says little."""

    simulated = False

    def facts(self) -> HostFacts:
        return HostFacts(hostname="tester", cpu_count=2, memory_bytes=1 << 30)

    def sample(self):
        return {101: 5, 103: 7}


@dataclass
class World:
    """Two Accesses in one network, one Master behind both, and agents over one folder."""

    folder: Path
    network: MemoryNetwork
    runtimes: Mapping[str, Runtime] = field(default_factory=dict)
    """Of its agents; none given: each has processes."""
    signing: SigningKey = field(default_factory=SigningKey.generate)
    clock: SystemClock = field(default_factory=SystemClock)
    faults: list[str] = field(default_factory=list)
    """Conditions of the process that its agents run in."""
    line: LineLimits = field(default_factory=LineLimits)
    bought: BoughtHost | None = None
    """Of its agents: they are of a machine that the market bought."""

    def __post_init__(self) -> None:
        self.master = TinyMaster(self.signing.public, self.clock)
        self.addresses: tuple[str, ...] = ("near:1", "far:2")

    async def open(self) -> None:
        for address in self.addresses:
            await self.network.serve_agents(address, self.master)

    def agent(self) -> AgentService:
        regions = RegionMap(1, tuple(AccessPoint(f"acc_{n}", "test", a) for n, a in enumerate(self.addresses)))
        parts = Parts(
            host_id=HOST,
            signing=self.signing,
            master_public=self.master.signing.public,
            generation=lambda: 1,
            regions=regions,
            dialer=self.network.dialer(PEER),
            clock=self.clock,
            rng=SystemRng(),
            disk=OsDisk(),
            directory=str(self.folder),
            runner=ThreadRunner("test-disk"),
            kernel_boot=boot_id(),
            sampler=Sampler(self.clock, NoGpus(), Reader()),
            runtimes=self.runtimes or {"process": ProcessRuntime(self.folder / "process", self.folder, HOST, False)},
            agent_version="test",
            measure_benchmarks=no_benchmarks,
            faults=lambda: self.faults,
            line=self.line,
            bought=self.bought,
        )
        return AgentService(parts)

    @asynccontextmanager
    async def running(self):
        """One life of the agent, ended in order."""
        service = self.agent()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(service.run())
            try:
                await asyncio.wait_for(service.connected.wait(), PATIENCE_S)
                yield service
            finally:
                service.stop()
                await asyncio.wait({task}, timeout=PATIENCE_S)

    async def killed(self, work) -> None:
        """One life of the agent that ends without a last word."""
        service = self.agent()
        task = asyncio.get_running_loop().create_task(service.run())
        await asyncio.wait_for(service.connected.wait(), PATIENCE_S)
        await work(service)
        task.cancel()
        await asyncio.wait({task}, timeout=PATIENCE_S)


async def no_benchmarks():
    return ()


@pytest.fixture
async def world(tmp_path):
    async with MemoryNetwork(SystemClock(), SystemRng()) as network:
        here = World(tmp_path, network)
        await here.open()
        try:
            yield here
        finally:
            cleaner = ProcessRuntime(tmp_path / "process", tmp_path, HOST, False)
            for run in await cleaner.list():
                await cleaner.remove(run.workload_id)


def new_id(prefix: str) -> str:
    return f"{prefix}_{os.urandom(16).hex()}"


def creation(*argv, token=1, **more):
    spec = WorkloadSpec(
        WorkloadId(new_id("work")),
        ClusterId(new_id("cluster")),
        (SlotGrant(SlotId("cpu/0"), token),),
        "process",
        argv=argv,
        lease_ns=more.pop("lease_ns", 5 * MINUTE),
        paid_ns=more.pop("paid_ns", 5 * MINUTE),
        **more,
    )
    return Command(CommandId(new_id("cmd")), CommandKind.CREATE, create=spec)


def deletion(create, grace_ns=MINUTE):
    spec = create.create
    return Command(
        CommandId(new_id("cmd")), CommandKind.DELETE, delete=DeleteSpec(spec.workload_id, spec.slots, grace_ns)
    )


async def until_done(world: World, command: Command, wanted: CommandPhase = CommandPhase.SUCCEEDED):
    await poll_async(
        lambda: wanted in world.master.phases(command.command_id), what=f"{command.kind.name} {wanted.name}"
    )
    return world.master.statuses(command.command_id)[-1]


async def final_receipt(world: World, create):
    def found():
        return [r for r in world.master.receipts(create.create.workload_id) if r.final]

    return (await poll_async(found, what="the final receipt"))[0]
