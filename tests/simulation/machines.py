"""The machines of a simulated market, each a process with its own clock and disks: a Master, an Access, a GPU host.

`start` runs the shipped shells as the daemons' main modules wire them; `kill` ends the process between two of its
steps. SIGKILL leaves what was written, a power cut only what was synced, with a torn tail by the seed.
"""

import asyncio
import copy
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.simulation.breakages import FailingRuntime, Mischief, Trouble, UnfaithfulLink
from tests.simulation.database import MemoryFile, Power, migrated, sharing_engines
from tests.simulation.full_disk import SharedDisk
from tests.simulation.identities import Folder, Renewals, SimulatedMembership
from tests.simulation.loop import Process, SeededRng, VirtualClock
from tests.simulation.witness import Read, TappedDialer
from windrow_access.core.admission import Limits
from windrow_access.probes import Bandwidth
from windrow_access.relay import Relay, RelayFacts
from windrow_agent.app.service import AgentService, Parts
from windrow_agent.gpu.simulated import SimulatedGpus
from windrow_agent.host.simulated import SimulatedHost
from windrow_agent.report.sampler import Sampler
from windrow_agent.runtimes.simulated import SimulatedMachine
from windrow_agent.threads import InlineRunner
from windrow_master.app import wiring
from windrow_master.app.clock import SteadyClock
from windrow_master.app.wiring import Master
from windrow_master.store.executors import InlineExecutor
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.errors import WindrowError
from windrow_proto.ids import AccessId, HostId
from windrow_proto.keys import ExchangeKey, SigningKey
from windrow_proto.messages import AccessPoint, RegionMap
from windrow_proto.model import Benchmark, Kind
from windrow_proto.ports import BandwidthLink, FrameLink, PeerFacts, PingFacts, PingLink
from windrow_proto.units import SECOND
from windrow_proto.v1 import link_pb2
from windrow_proto.wire_command import decode_command

if TYPE_CHECKING:
    from tests.simulation.world import World

PERSONAS = ("cpu", "2xRTX3090", "cpu", "4xRTX4090")
"""Small machines: an hour of samples of eight-card hosts is a minute of real time, and tells nothing more."""


def forked(disk: MemoryDisk, luck: random.Random | None) -> MemoryDisk:
    """The disk as the next process finds it; the old process may go on with the old one. luck: the power was cut."""
    survivor = copy.deepcopy(disk)
    if luck is not None:
        survivor.crash(keep_unsynced=lambda _, count: luck.randrange(count + 1))
    return survivor


class Machine:
    """The shared part of all machines: a name, a clock, and at most one living process."""

    def __init__(self, world: "World", name: str, skew_ns: int = 0) -> None:
        self.world, self.name = world, name
        self.clock = VirtualClock(world.loop, skew_ns)
        self.process: Process | None = None
        self.lives = 0

    @property
    def is_up(self) -> bool:
        """True if its process runs."""
        return self.process is not None

    def rng(self, what: str = "") -> SeededRng:
        """Randomness of this machine's present life."""
        return SeededRng(f"{self.world.seed}|{self.name}|{self.lives}|{what}")

    def start(self) -> None:
        """Start its process."""
        raise AssertionError(f"{self.name} is no particular machine")

    def _launch(self, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.lives += 1
        self.process = process = Process(f"{self.name}#{self.lives}")

        async def guarded() -> None:
            try:
                await main()
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                self.world.crashes.append(f"{process.name} ended with {error!r}")
                raise

        self.world.loop.create_task(guarded(), name=process.name, context=process.context.copy())

    def _die(self) -> None:
        assert self.process is not None
        self.world.loop.kill(self.process)
        self.process = None


class MasterMachine(Machine):
    """The control plane's machine: its database and its log are on its own disks."""

    def __init__(self, world: "World", directory: Path, name: str = "master") -> None:
        super().__init__(world, name)
        self.address = f"{name}:7444"
        self.directory = directory
        shared = SharedDisk() if world.plan.fills_disk else None
        self.power: Power = migrated() if shared is None else shared.power
        self.disk: MemoryDisk = shared or MemoryDisk()
        self.rooms: Master | None = None

    def start(self) -> None:
        """Open the services and serve the trunk."""
        self._launch(self._main)

    async def _main(self) -> None:
        clock, exchange = SteadyClock(self.clock), self.rng("exchange")
        self.rooms = rooms = wiring.build(
            self.directory,
            clock,
            self.rng(),
            wiring.Settings(
                disk_space=self.disk.room(clock) if isinstance(self.disk, SharedDisk) else None,
                exchange_key=lambda: ExchangeKey.from_raw(exchange.random_bytes(32)),
            ),
            database="sqlite:///master.sqlite3",
            disk=self.disk,
            make_executor=InlineExecutor,
            open_engines=lambda _: sharing_engines(self.power),
        )
        await self._serve(rooms)

    async def _serve(self, rooms: Master) -> None:
        rooms.telemetry.views = (NoHistory(),)  # type: ignore[assignment]  # DuckDB has a file and threads of its own
        self.world.tap(rooms)
        rooms.fleet.start()
        await self.world.network.serve_trunk(self.address, rooms.hub)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(rooms.hub.run())
            tasks.create_task(rooms.fleet.run())
            tasks.create_task(rooms.telemetry.run())
            tasks.create_task(self._tick(rooms))
            for work in rooms.watching():
                tasks.create_task(work)

    async def _tick(self, rooms: Master) -> None:
        while True:
            try:
                await rooms.clusters.tick()
            except WindrowError as error:
                self.world.witness.trace.add(f"master tick failed {error.code}")
            await self.clock.sleep_ns(5 * SECOND)

    async def ask(self, work: Callable[[Master], Awaitable[Any]], deadline_s: float = 10.0) -> Any:
        """Have something done by the living Master as HTTP would; TimeoutError when it does not answer."""
        process, rooms = self.process, self.rooms
        if process is None or rooms is None:
            await asyncio.sleep(0.5)
            raise TimeoutError("no Master")

        async def ask() -> Any:
            return await work(rooms)

        task = self.world.loop.create_task(ask(), context=process.context.copy())
        # One that was stopped answers when nobody listens any more.
        task.add_done_callback(lambda late: None if late.cancelled() else late.exception())
        done, _ = await asyncio.wait({task}, timeout=deadline_s)
        if not done:
            raise TimeoutError("the Master did not answer")
        return task.result()

    def kill(self, luck: random.Random | None) -> None:
        """End it; with `luck` the power is cut."""
        rooms, self.rooms = self.rooms, None
        self._die()
        self.world.network.remove(self.address)
        if luck is None:
            kept = {path: MemoryFile(bytearray(file.content), bytearray(file.content)) for path, file in self._files()}
            self.power = Power(kept)
        else:
            self.power = self.power.cut(luck)
        self.disk = forked(self.disk, luck)
        if rooms is not None and rooms.store._lock is not None:
            rooms.store._lock.release()  # as the kernel does for a process that is gone

    def mend(self) -> None:
        """After the last fault: have it run."""
        if not self.is_up:
            self.start()

    def _files(self) -> list[tuple[str, MemoryFile]]:
        return list(self.power.files.items())


class NoHistory:
    """In place of the DuckDB view: nothing follows the log."""

    cursor = None

    async def run(self) -> None:
        """For ever."""
        await asyncio.Event().wait()

    def close(self) -> None:
        """Nothing is open."""


class AccessMachine(Machine):
    """A relay's machine. It keeps nothing but its identity."""

    def __init__(self, world: "World", number: int, peer: PeerFacts, signing: SigningKey) -> None:
        super().__init__(world, f"access-{number}")
        self.peer, self.signing = peer, signing
        self.address, self.region = f"access-{number}:7443", f"region-{number}"
        self.withheld: dict[str, dict[str, link_pb2.Frame]] = {}
        self.luck = random.Random(f"{world.seed}|{self.name}|withhold")
        trouble = Trouble(world.clock.monotonic_ns, random.Random(f"{world.seed}|{self.name}|mischief"))
        self.mischief = Mischief(trouble)

    def start(self) -> None:
        """Listen for agents and attach to the Master."""
        self._launch(self._main)

    async def _main(self) -> None:
        rng, network = self.rng(), self.world.network
        access_id = AccessId(self.peer.subject_id)
        facts = RelayFacts(access_id, self.region, 0, self.address, "0.1.0", self.signing.public)
        bandwidth = Bandwidth(access_id, self.signing, self.clock, rng)
        addresses = [master.address for master in self.world.masters]
        relay = Relay(facts, lambda: network.dial_trunk(addresses, self.peer), bandwidth, self.clock, rng, Limits())
        await network.serve_agents(self.address, Withholding(relay, self))
        await relay.run()

    def kill(self) -> None:
        """End it."""
        self._die()
        self.world.network.remove(self.address)
        self.world.network.reset(dialer=self.peer.subject_id)


class Withholding:
    """An Access that is not honest: it keeps back creations and plays them to the host's next connection."""

    def __init__(self, relay: Relay, access: AccessMachine) -> None:
        self._relay, self._access = relay, access

    async def accepted(self, peer: PeerFacts, link: FrameLink) -> None:
        """Serve the stream, with what was kept back and may be kept back."""
        unfaithful = UnfaithfulLink(link, self._access.mischief)
        await self._relay.accepted(peer, WithholdingLink(unfaithful, peer.subject_id, self._access))

    async def pinged(self, peer: PeerFacts) -> PingFacts:
        """As it is."""
        return await self._relay.pinged(peer)

    async def warmed(self, peer: PeerFacts, link: PingLink) -> None:
        """As it is."""
        await self._relay.warmed(peer, link)

    async def measured(self, peer: PeerFacts, link: BandwidthLink) -> None:
        """As it is."""
        await self._relay.measured(peer, link)


class WithholdingLink:
    """One agent's stream through such an Access."""

    def __init__(self, link: FrameLink, host_id: str, access: AccessMachine) -> None:
        self._link, self.host_id, self._access = link, host_id, access
        self.route: int | None = None
        self._old = access.withheld.pop(host_id, {})
        self._kept = access.withheld[host_id] = {}

    async def send(self, frame: link_pb2.Frame) -> None:
        """Send it, or keep it; right after the welcome what was kept back before is played."""
        if frame.lane == link_pb2.LANE_CONTROL and not self._old:  # commands have another lane, and nothing is owed
            await self._link.send(frame)
            return
        envelope = Read(frame)
        if envelope.kind is Kind.COMMAND:
            command = decode_command(envelope.body)
            about = command.create
            if about is not None and self._wants(about.workload_id):
                self._kept[about.workload_id] = frame
                return
        await self._link.send(frame)
        if envelope.kind is Kind.WELCOME:
            old, self._old = self._old, {}
            for kept in old.values():
                await self._link.send(kept)

    def _wants(self, workload_id: str) -> bool:
        return workload_id in self._kept or self._access.luck.random() < self._access.world.plan.withhold_chance

    async def receive(self) -> link_pb2.Frame:
        """As it is."""
        frame = await self._link.receive()
        self._access.world.witness.order.came(frame)
        self._access.world.watch.read_on(self._access, self)
        return frame

    async def close(self) -> None:
        """As it is."""
        await self._link.close()


class SeldomSampler(Sampler):
    """Samples at the fleet's usual period of five seconds (Plan.sample_ns), where the product's hosts do each second.

    A batch goes every five seconds either way and takes the same way; it has one instant instead of five. Between two
    samples it sleeps: a shorter period, for which the product's looks each second, cannot come here.
    """

    least_ns = 0

    def set_period(self, period_ns: int) -> None:
        """Sample at this period from now on, but no more often than the plan wants."""
        super().set_period(max(self.least_ns, period_ns))


class HostMachine(Machine):
    """A simulated GPU host with a real agent on it. folder: its identity, which a copy of this machine has, too."""

    def __init__(self, world: "World", number: int, name: str, peer: PeerFacts, folder: Folder, skew_ns: int) -> None:
        super().__init__(world, name, skew_ns)
        self.number, self._peer, self.folder = number, peer, folder
        self.is_copy = False
        self.disk = MemoryDisk()
        self.machine = SimulatedMachine(self.clock)
        self.boots = 1
        self.service: AgentService | None = None
        self._luck = random.Random(f"{world.seed}|{self.name}|prepare")
        self.daemon = Trouble(world.clock.monotonic_ns, random.Random(f"{world.seed}|{self.name}|daemon"))
        self.gpus: SimulatedGpus | None = None
        self.was_sick = False
        """One of its cards failed, and its driver was not opened anew since."""

    @property
    def peer(self) -> PeerFacts:
        """Returns the facts of its present certificate."""
        identity = self.folder.identity
        return replace(self._peer, generation=identity.generation, not_after_ns=identity.not_after_ns)

    @property
    def host_id(self) -> HostId:
        """Its id."""
        return HostId(self._peer.subject_id)

    def copied(self) -> "HostMachine":
        """Another machine with all that is on this one's disk; nothing runs there yet."""
        copy = HostMachine(self.world, self.number, f"{self.name}-copy", self._peer, self.folder.copied(), 0)
        copy.disk, copy.is_copy = forked(self.disk, None), True
        return copy

    def start(self) -> None:
        """Start the agent."""
        if not self.is_copy:
            self.world.witness.agent_started(self.host_id)
        self._launch(self._main)

    def steal(self) -> None:
        """Renew with what was copied, and start the agent with the new certificate."""
        self.folder.is_due = True
        self._launch(self._renew_first)

    async def _renew_first(self) -> None:
        renewed = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            keeping = group.create_task(self._membership().keep(lambda: False, renewed.set))
            await renewed.wait()
            keeping.cancel()
        await self._main()

    async def _main(self) -> None:
        service, membership = AgentService(self._parts()), self._membership()
        self.service = service
        async with asyncio.TaskGroup() as group:
            keeping = group.create_task(
                membership.keep(lambda: service.is_certificate_refused, lambda: service.renewed(self._regions()))
            )
            await service.run()
            keeping.cancel()

    def _membership(self) -> SimulatedMembership:
        renewals = Renewals(self.world, self.name, self.folder, self.clock)
        return SimulatedMembership(self.folder, self.clock, self.rng("membership"), renewals)

    def _regions(self) -> RegionMap:
        points = (AccessPoint(a.peer.subject_id, a.region, a.address, 0, False) for a in self.world.accesses)
        return RegionMap(1, tuple(points))

    def _parts(self) -> Parts:
        world, rng = self.world, self.rng()
        host = SimulatedHost(world.seed, self.number, self.clock, PERSONAS[self.number % len(PERSONAS)])
        self.gpus, self.was_sick = host.gpus, False
        sampler = SeldomSampler(self.clock, host.gpus, host.reader)
        sampler.least_ns = sampler.look_ns = world.plan.sample_ns

        async def benchmarks() -> tuple[Benchmark, ...]:
            return host.benchmarks()

        return Parts(
            host_id=self.host_id,
            signing=self.folder.identity.signing,
            master_public=self.folder.identity.master_public,
            generation=lambda: self.folder.identity.generation,
            regions=self._regions(),
            dialer=TappedDialer(world.network.dialer, lambda: self.peer, self.name, world.witness),
            clock=self.clock,
            rng=rng,
            disk=self.disk,
            directory="/agent",
            runner=InlineRunner(self.clock),
            kernel_boot=f"{self.name} boot {self.boots}",
            sampler=sampler,
            runtimes={
                "simulated": FailingRuntime(self.machine, self.host_id, world.witness, self._prepare_ns, self.daemon)
            },
            agent_version="0.1.0",
            measure_benchmarks=benchmarks,
        )

    def fill_disk(self) -> None:
        """Somebody takes all that is left of its disk."""
        self.disk.capacity_bytes = sum(len(file.data) for file in self.disk._names.values())

    def empty_disk(self) -> None:
        """Somebody gives it back."""
        self.disk.capacity_bytes = None

    def _prepare_ns(self) -> int:
        return int(self._luck.choice((0, 0.2, 1, 4)) * SECOND)

    def kill(self, luck: random.Random | None) -> None:
        """End the agent; with `luck` the machine loses its power, and all that ran with it."""
        self._die()
        if not self.is_copy:
            self.world.witness.agent_ended(self.host_id, was_cut=luck is not None)
        self.world.network.reset(dialer=self.host_id)
        self.disk = forked(self.disk, luck)
        if luck is None:
            return
        for life in self.world.witness.lives[self.host_id]:
            if life.ended_ns is None:
                life.ended_ns, life.was_cut = self.world.witness.now_ns(), True
        self.machine.reboot()
        self.boots += 1
        self.clock.reboot()
