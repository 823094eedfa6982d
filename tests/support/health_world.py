"""A host's whole way in one process: the real nvidia-ml-py over the fake driver, the shipped agent, Access and Master.

Only the network is in memory. The Master is the services behind the trunk without market and clusters, so that a test
grants slots by itself; the workload that then holds one is a real process, started by a real command.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fake_nvml.build import FakeNvml
from tests.master_support import SeededRng
from tests.support.agent_world import HOST, PEER, Reader, new_id, no_benchmarks
from tests.support.wired import answers
from tests.trunk_world import ACCESS_KEY, ADDRESS, MASTER, Master
from tests.waiting import PATIENCE_S, poll_async
from windrow_access.core.admission import Limits
from windrow_access.probes import Bandwidth
from windrow_access.relay import Relay, RelayFacts
from windrow_agent.app.service import AgentService, Parts
from windrow_agent.challenge.prover_pool import COMMAND as PROVER
from windrow_agent.core.gpu_port import GpuBackend
from windrow_agent.core.layout import Layouts
from windrow_agent.core.sharing import Shares, share_of
from windrow_agent.gpu.combined import CombinedGpus
from windrow_agent.gpu.nvml import NvmlBackend
from windrow_agent.report.sampler import Sampler
from windrow_agent.runtimes.mps import MpsControl, NvidiaMps
from windrow_agent.runtimes.process import ProcessRuntime
from windrow_agent.runtimes.process_mps import MpsProcessRuntime
from windrow_agent.runtimes.shim import boot_id
from windrow_agent.threads import ThreadRunner
from windrow_master.fleet.availability import headline
from windrow_master.fleet.evidence_repository import EvidenceRepository
from windrow_master.fleet.messages import Holds
from windrow_master.fleet.model import CommandState, HostFacts, Slot
from windrow_master.fleet.repository import CommandRepository, HostRepository, SlotRepository
from windrow_master.fleet.slices import SHARED
from windrow_master.fleet.states import AdminEvent
from windrow_master.fleet.view import Entry
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.conditions import ConditionCode
from windrow_proto.disk import OsDisk
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.ids import AccessId, AccountId, ClusterId, CommandId, SlotId, WorkloadId
from windrow_proto.keys import SigningKey
from windrow_proto.link_memory import MemoryNetwork, Weather
from windrow_proto.messages import AccessPoint, RegionMap
from windrow_proto.model import Command, CommandKind, Kind, SlotGrant, WorkloadSpec
from windrow_proto.ports import PeerFacts
from windrow_proto.units import MINUTE

ACCESS = AccessId("access_1")
ACCESS_ADDRESS = "access:7443"
OWNER = AccountId("account_1")
GPUS = 8


@dataclass(frozen=True, slots=True)
class Seen:
    """The Master's record of a host. slots: state and why it is not offered, by slot; conditions: codes,
    but for that of processes without a sandbox, which these have."""

    slots: Mapping[str, tuple[str, str | None]]
    conditions: frozenset[str]
    headline: str
    link: str


class HealthWorld:
    """One host with the cards of the fake driver, under a Master."""

    def __init__(self, master: Master, fake: FakeNvml, agent: AgentService) -> None:
        self.master, self.fake, self.agent = master, fake, agent

    def uuid(self, index: int) -> str:
        """The UUID of one card."""
        return self.fake.state.uuid(index)

    async def look(self) -> Seen:
        """The store's rows as they are now."""

        def read(uow) -> Seen:
            host, slots = uow[HostRepository].get(HOST), tuple(uow[SlotRepository].of_host(HOST))
            return Seen(
                {slot.slot_id: (str(slot.state), slot.unavailable) for slot in slots},
                frozenset(condition.code for condition in host.conditions) - {ConditionCode.PROCESS_UNCONFINED},
                headline(Entry(host, slots, 0)).word,
                str(host.link_state),
            )

        return await self.master.store.read(read)

    async def until(self, holds: Callable[[Seen], bool], what: str) -> Seen:
        """The first look at which this holds."""
        found: list[Seen] = []

        async def looked() -> bool:
            found[:] = [await self.look()]
            return holds(found[0])

        await poll_async(looked, what=what)
        return found[0]

    async def events(self, kind: str) -> list[tuple[str, Mapping[str, str]]]:
        """Text and fields of this host's events of a kind, oldest first."""
        rows = await self.master.store.read(lambda uow: uow.events.newest(HOST))
        return [(row.text, row.fields) for row in reversed(list(rows)) if row.kind == kind]

    async def rent(self, index: int, slot_id: SlotId | None = None) -> WorkloadId:
        """Let a real process hold one card's slot, or the one that is named, until the end of the test."""
        slot_id = slot_id or SlotId(self.uuid(index))
        cluster_id = ClusterId(new_id("cluster"))
        fleet = self.master.fleet
        workload_id = WorkloadId(new_id("work"))

        def start(uow) -> tuple[CommandId, tuple[SlotGrant, ...]]:
            grants = fleet.grant(uow, [slot_id], cluster_id, "test", "rented")
            spec = WorkloadSpec(
                *(workload_id, cluster_id, grants, "process"),
                argv=("sleep", "600"),
                lease_ns=5 * MINUTE,
                paid_ns=5 * MINUTE,
            )
            return fleet.issue(uow, HOST, Command(CommandId(""), CommandKind.CREATE, create=spec)), grants

        command_id, grants = await self.master.store.write(start, name="rent")

        async def state() -> bool:
            row = await self.master.store.read(lambda uow: uow[CommandRepository].get(command_id))
            assert row is not None
            assert row.state is not CommandState.FAILED, row.error_detail
            return row.state is CommandState.SUCCEEDED

        await poll_async(state, what="the workload to run")
        await self.master.store.write(lambda uow: fleet.slots_running(uow, grants, "test", "runs"), name="runs")
        others = self.master.store.messages._answers[Holds]
        answers(self.master.store, Holds, lambda uow, it: it.workload_id == workload_id or others(uow, it))
        return workload_id

    async def inventories(self) -> int:
        """How many this host's agent has told."""
        return len(await self.master.store.read(lambda uow: uow[EvidenceRepository].list(HOST, (Kind.INVENTORY,))))

    async def verify(self, reason: str) -> None:
        """Let an operator say that this host's GPUs are sound."""
        await self.master.fleet.decide(HOST, AdminEvent.ACTIVATE, "account/account_1", reason)

    async def slot(self, index: int) -> Slot:
        """One card's slot."""
        found = await self.master.store.read(lambda uow: uow[SlotRepository].get(SlotId(self.uuid(index))))
        assert found is not None
        return found


def agent_of(
    network: MemoryNetwork,
    folder: Path,
    backend: GpuBackend,
    prover: tuple[str, ...] = PROVER,
    key: SigningKey | None = None,
    layouts: Layouts | None = None,
    shares: Shares | None = None,
    control: MpsControl | None = None,
) -> AgentService:
    """An agent with the cards of this backend."""
    clock, signing = SystemClock(), key or SigningKey.generate()
    sampler = Sampler(clock, backend, Reader(), shares=shares)
    parts = Parts(
        host_id=HOST,
        signing=signing,
        master_public=MASTER.public,
        generation=lambda: 1,
        regions=RegionMap(1, (AccessPoint(ACCESS, "test", ACCESS_ADDRESS),)),
        dialer=network.dialer(PEER),
        clock=clock,
        rng=SystemRng(),
        disk=OsDisk(),
        directory=str(folder),
        runner=ThreadRunner("test-disk"),
        kernel_boot=boot_id(),
        sampler=sampler,
        runtimes={
            "process": MpsProcessRuntime(
                *(folder / "process", folder, HOST, False, (), lambda: sampler.gpus.gpus),
                share_of=lambda uuid: share_of(uuid, sampler.gpus.gpus),
                control=control or NvidiaMps(),
            )
        },
        agent_version="test",
        measure_benchmarks=no_benchmarks,
        prover=prover,
        layouts=layouts or {},
    )
    return AgentService(parts)


def relay_of(network: MemoryNetwork) -> Relay:
    """An Access that dials the Master."""
    clock, rng = SystemClock(), SystemRng()
    peer = PeerFacts("access", ACCESS, 1, 2**62, "127.0.0.1:1", b"")
    facts = RelayFacts(ACCESS, "test", 0, ACCESS_ADDRESS, "test", ACCESS_KEY.public)
    bandwidth = Bandwidth(ACCESS, ACCESS_KEY, clock, rng)
    return Relay(facts, lambda: network.dial_trunk([ADDRESS], peer), bandwidth, clock, rng, Limits())


@asynccontextmanager
async def watched_host(
    fake: FakeNvml,
    folder: Path,
    layouts: Layouts | None = None,
    shares: Shares | None = None,
    control: MpsControl | None = None,
    others: tuple[GpuBackend, int] | None = None,
) -> AsyncIterator[HealthWorld]:
    """Everything up, all slots free and, but for shared cards, offered; ended in order, workloads included.

    others: a backend of other makers' cards beside NVIDIA's, and how many they are.
    """
    async with MemoryNetwork(SystemClock(), SeededRng(), Weather(0, 0, 0.0)) as network, asyncio.TaskGroup() as tasks:
        master = Master(folder / "master", MemoryDisk(), network)
        await master.start(tasks)
        nvidia = NvmlBackend(pci_devices=folder / "agent" / "pci")
        backend: GpuBackend = CombinedGpus((nvidia, others[0])) if others else nvidia
        agent = agent_of(network, folder / "agent", backend, layouts=layouts, shares=shares, control=control)
        relay = relay_of(network)
        master.facts[HOST] = HostFacts(agent.parts.signing.public, 1, False)
        await master.store.write(
            lambda uow: master.fleet.enrol(uow, HOST, "box", OWNER, False, "account/account_1"), name="enrol"
        )
        await network.serve_agents(ACCESS_ADDRESS, relay)
        relaying, serving = tasks.create_task(relay.run()), tasks.create_task(agent.run())
        world = HealthWorld(master, fake, agent)
        try:
            await asyncio.wait_for(agent.connected.wait(), PATIENCE_S)
            whole = [("free", None)] * (GPUS + 1 - len(shares or ()) + (others[1] if others else 0))
            await world.until(
                lambda seen: [s for slot, s in seen.slots.items() if s[1] != SHARED and slot[:4] != "MPS-"] == whole,
                "a sound host",
            )
            await world.until(lambda seen: seen.link == "online" and not seen.conditions, "an online host")
            yield world
        finally:
            agent.stop()
            await asyncio.wait({serving}, timeout=PATIENCE_S)
            relaying.cancel()
            await master.stop()
            cleaner = ProcessRuntime(folder / "agent" / "process", folder / "agent", HOST, False)
            for run in await cleaner.list():
                await cleaner.remove(run.workload_id)
