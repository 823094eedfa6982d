"""One host's disk work in virtual time: create, run, tell, delete, on a disk that fails at one chosen call."""

import asyncio
import random
from dataclasses import dataclass, field, replace

from tests.simulation.loop import VirtualClock, VirtualLoop
from tests.torture.platter import Fault, Platter
from windrow_agent.core.command import FINAL, Phase
from windrow_agent.link.outbox import Outbox
from windrow_agent.link.spool import Spool, SpoolCaps
from windrow_agent.runtimes.simulated import SimulatedMachine, SimulatedRuntime
from windrow_agent.storage.disk_space import DiskSpace
from windrow_agent.storage.journal import Journal, JournalWriter
from windrow_agent.threads import InlineRunner
from windrow_agent.workloads.commands import CommandExecutor
from windrow_agent.workloads.manager import WorkloadManager
from windrow_proto.conditions import ConditionCode
from windrow_proto.errors import WindrowError
from windrow_proto.ids import BootId, ClusterId, CommandId, SlotId, WorkloadId
from windrow_proto.keys import SigningKey
from windrow_proto.model import Command, CommandKind, CommandPhase, DeleteSpec, Kind, Lane, SlotGrant, WorkloadSpec
from windrow_proto.sealed import SealKey
from windrow_proto.segments import TORN_TAIL
from windrow_proto.units import KIB, SECOND
from windrow_proto.wire_command import decode_status

BALLAST = 64 * KIB
CAPS = SpoolCaps(
    telemetry_bytes=16 * KIB, evidence_bytes=64 * KIB, ring_bytes=2 * KIB, segment_bytes=4 * KIB, free_bytes_min=0
)
TELLINGS = 40
"""Each may meet one of the faults and no more."""
BOOT, NEXT = BootId(b"b" * 16), BootId(b"c" * 16)


def creation(number: int) -> Command:
    slots = (SlotGrant(SlotId(f"cpu/{number}"), number),)
    spec = WorkloadSpec(
        WorkloadId(f"work_{number}"), ClusterId("cluster_1"), slots, "simulated", lease_ns=10**12, paid_ns=10**12
    )
    return Command(CommandId(f"create_{number}"), CommandKind.CREATE, create=spec)


def deletion(create: Command) -> Command:
    assert create.create is not None
    spec = DeleteSpec(create.create.workload_id, create.create.slots, 0)
    return Command(CommandId(f"delete_{spec.workload_id}"), CommandKind.DELETE, delete=spec)


@dataclass
class Seen:
    """The outcome."""

    calls: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list)
    was_full: bool = False


class Host:
    """The agent's modules that touch the disk, wired as the service wires them."""

    def __init__(self, clock: VirtualClock, disk: Platter, machine: SimulatedMachine, group: asyncio.TaskGroup) -> None:
        self.disk, self.clock = disk, clock
        self.runner = InlineRunner(clock)
        self.room = DiskSpace(disk, "/agent", BALLAST, self.runner, clock)
        self.room._ballast._spare = 0
        self.group, self.machine = group, machine
        self.tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        await self.room.look()
        clock, on = self.clock, self.room.reserved
        self.journal = Journal(on, "/agent/journal", clock.wall_ns, "boot", compact_bytes=8 * KIB)
        self.spool = Spool(self.disk, "/agent/spool", BOOT, clock.wall_ns, CAPS, on)
        self.writer = JournalWriter(self.journal, self.runner)
        self.outbox = Outbox(self.spool, self.runner, clock)
        runtimes = {"simulated": SimulatedRuntime(self.machine, {})}
        self.workloads = WorkloadManager(self.writer, self.outbox, runtimes, clock, "boot", self.spawn)
        never = self._never
        self.commands = CommandExecutor(
            *(self.writer, self.outbox, self.workloads, clock, "boot", self.spawn, never, never),
            is_disk_full=lambda: self.room.is_full,
            seal_key=SealKey.of(SigningKey.from_raw(bytes(32))),
        )

    async def _never(self, *_: object) -> dict[str, str]:
        return {}

    def spawn(self, work, name):
        async def guarded() -> None:
            try:
                await work
            except WindrowError:
                self.failed = name

        task = self.group.create_task(guarded(), name=name)
        task.add_done_callback(lambda _: work.close())
        self.tasks.append(task)
        return task

    def stop(self) -> None:
        """As a killed process: whatever was under way is over."""
        for task in self.tasks:
            task.cancel()

    async def told(self, command: Command) -> None:
        """The Master says it until it has an answer, as it does; for longer than any fault lasts."""
        for _ in range(TELLINGS):
            try:
                await self.commands.arrived(command)
            except WindrowError as error:
                self.room.note(error)
            await self.clock.sleep_ns(5 * SECOND)
            entry = self.journal.commands.get(command.command_id)
            if entry is not None and entry.state.phase in FINAL:
                return

    def phase(self, command: Command) -> Phase | None:
        entry = self.journal.commands.get(command.command_id)
        return None if entry is None else entry.state.phase

    async def acknowledge(self) -> None:
        """The Master takes half of what waits, and says so."""
        for lane in (Lane.EVIDENCE, Lane.TELEMETRY):
            waiting = self.spool.waiting(lane)
            try:
                self.spool.acknowledged(lane, waiting[: len(waiting) // 2])
            except WindrowError as error:
                self.room.note(error)


async def live(loop: VirtualLoop, fault: Fault | None, seed: int = 1) -> Seen:
    """One life on a disk with this fault, then what the next start finds after a power cut."""
    clock, disk, seen = VirtualClock(loop), Platter(), Seen()
    machine = SimulatedMachine(clock)
    first, second, third = creation(1), creation(2), creation(3)
    async with asyncio.TaskGroup() as group:
        host = Host(clock, disk, machine, group)
        await host.open()
        disk.calls, disk.fault = 0, fault
        keeping = group.create_task(_keep(host), name="workloads")
        await host.told(first)
        await host.told(second)
        for _ in range(6):
            await host.outbox.put_telemetry(bytes(3_000))
            await clock.sleep_ns(5 * SECOND)
        await host.acknowledge()
        await host.told(deletion(first))
        await host.told(deletion(second))
        if {"work_1", "work_2"} & machine.boxes.keys():
            seen.faults.append("a delete was not done")
        if {host.phase(deletion(one)) for one in (first, second)} != {Phase.SUCCEEDED}:
            seen.faults.append("a delete has no good result")
        await host.room.look()
        seen.was_full = host.room.is_full
        seen.calls, seen.refused = disk.calls, disk.refused
        if seen.was_full:
            await host.told(third)
            if "work_3" in machine.boxes or ConditionCode.AGENT_DISK_FULL not in host.room.faults:
                seen.faults.append("new work was taken on a full disk")
        keeping.cancel()
        seen.faults += await _judged(host, disk, seed)
        disk.fault, disk.capacity_bytes = None, None
        if await host.room.look():
            seen.faults.append("it stays full when there is room")
        again = replace(third, command_id=CommandId("create_again"))
        await host.told(again)
        if host.phase(again) is not Phase.SUCCEEDED:
            seen.faults.append("no new work is taken when there is room")
        host.stop()
    return seen


async def _keep(host: Host) -> None:
    while True:
        try:
            await host.workloads.run()
        except WindrowError as error:
            host.room.note(error)
        await host.clock.sleep_ns(SECOND)


async def _judged(host: Host, disk: Platter, seed: int) -> list[str]:
    """Cut the power now: what waits to be sent must be there, what was said must be remembered, nothing is damaged."""
    left = disk.image(random.Random(seed))
    spool = Spool(left, "/agent/spool", NEXT, host.clock.wall_ns, CAPS)
    journal = Journal(left, "/agent/journal", host.clock.wall_ns, "boot")
    faults: list[str] = []
    for lane in (Lane.EVIDENCE, Lane.TELEMETRY):
        for key in host.spool.waiting(lane):
            if spool.record(lane, key) != host.spool.record(lane, key):
                faults.append(f"{lane.name} {key.origin_sequence} was promised and is lost")
    for key in host.spool.waiting(Lane.EVIDENCE):
        record = host.spool.record(Lane.EVIDENCE, key)
        if record is None or record.kind is not Kind.COMMAND_STATUS:
            continue
        status = decode_status(record.body)
        entry = journal.commands.get(status.command_id)
        if status.phase is CommandPhase.SUCCEEDED and (entry is None or entry.state.phase is not Phase.SUCCEEDED):
            faults.append(f"{status.command_id} was told as done and is not remembered")
        if entry is None:
            faults.append(f"{status.command_id} was answered and is forgotten")
    if journal.unreadable or not set(host.journal.tombstones) <= set(journal.tombstones):
        faults.append("the journal has forgotten what it was told")
    is_lasting = disk.fault is not None and disk.fault.times != 1  # then what failed could not even be cleared away
    if not is_lasting and (spool.lost_bytes or any(damage.reason != TORN_TAIL for damage in journal.damaged)):
        faults.append(f"the disk is damaged: {journal.damaged} {spool.lost_bytes}")
    return faults
