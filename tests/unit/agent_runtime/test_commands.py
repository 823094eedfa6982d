"""Every command that was taken gets a result, however the commands of one workload cross each other."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.loop import VirtualClock, VirtualLoop, run
from windrow_agent.core.command import FINAL, Phase
from windrow_agent.link.outbox import Outbox
from windrow_agent.link.spool import Spool
from windrow_agent.runtimes.simulated import SimulatedMachine, SimulatedRuntime
from windrow_agent.storage.journal import Journal, JournalWriter
from windrow_agent.threads import InlineRunner
from windrow_agent.workloads.commands import CommandExecutor
from windrow_agent.workloads.manager import WorkloadManager
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.ids import BootId, ClusterId, CommandId, SlotId, WorkloadId
from windrow_proto.keys import SigningKey
from windrow_proto.messages import Query
from windrow_proto.model import (
    Command,
    CommandKind,
    CommandPhase,
    DeleteSpec,
    Kind,
    SlotGrant,
    WorkloadPhase,
    WorkloadSpec,
)
from windrow_proto.sealed import SealKey
from windrow_proto.units import MILLISECOND, SECOND
from windrow_proto.wire_command import decode_status

KEY = SealKey.of(SigningKey.from_raw(bytes(32)))
SLOTS = (SlotGrant(SlotId("host_1/cpu/0"), 1),)
WORKLOAD = WorkloadId("workload_1")
SPEC = WorkloadSpec(WORKLOAD, ClusterId("cluster_1"), SLOTS, "simulated", lease_ns=10**12, paid_ns=10**12)
CREATE = Command(CommandId("command_1"), CommandKind.CREATE, create=SPEC)
DELETE = Command(CommandId("command_2"), CommandKind.DELETE, delete=DeleteSpec(WORKLOAD, SLOTS, 0))


async def _never(*_: object) -> dict[str, str]:
    return {}


async def _cross(loop: VirtualLoop) -> dict[str, bool]:
    """Let a create and its delete arrive at once; says which of them has a result."""
    clock, disk = VirtualClock(loop), MemoryDisk()
    runner = InlineRunner(clock)
    writer = JournalWriter(Journal(disk, "/journal", clock.wall_ns, "boot"), runner)
    outbox = Outbox(Spool(disk, "/spool", BootId(b"b" * 16), clock.wall_ns), runner, clock)
    async with asyncio.TaskGroup() as group:

        def spawn(work, name):
            return group.create_task(work, name=name)

        workloads = WorkloadManager(
            writer, outbox, {"simulated": SimulatedRuntime(SimulatedMachine(clock), {})}, clock, "boot", spawn
        )
        commands = CommandExecutor(writer, outbox, workloads, clock, "boot", spawn, _never, _never, seal_key=KEY)
        async with asyncio.TaskGroup() as both:
            both.create_task(commands.arrived(CREATE))
            both.create_task(commands.arrived(DELETE))
    return {key: entry.state.phase in FINAL for key, entry in writer.journal.commands.items()}


@pytest.mark.parametrize("seed", range(12))
def test_a_creation_that_is_deleted_at_once_has_a_result_in_whatever_order_their_steps_come(seed: int) -> None:
    assert run(seed, _cross) == {"command_1": True, "command_2": True}


class SlowRuntime(SimulatedRuntime):
    """Takes two seconds to prepare."""

    async def prepare(self, spec, progress):
        await self._machine.clock.sleep_ns(2 * SECOND)
        await super().prepare(spec, progress)


async def _lapse(loop: VirtualLoop) -> tuple[int, list[str]]:
    """Let a lease run out while its work is still being prepared; says what started and what is left."""
    clock, disk = VirtualClock(loop), MemoryDisk()
    runner, machine = InlineRunner(clock), SimulatedMachine(clock)
    writer = JournalWriter(Journal(disk, "/journal", clock.wall_ns, "boot"), runner)
    outbox = Outbox(Spool(disk, "/spool", BootId(b"b" * 16), clock.wall_ns), runner, clock)
    async with asyncio.TaskGroup() as group:

        def spawn(work, name):
            return group.create_task(work, name=name)

        workloads = WorkloadManager(writer, outbox, {"simulated": SlowRuntime(machine, {})}, clock, "boot", spawn)
        commands = CommandExecutor(writer, outbox, workloads, clock, "boot", spawn, _never, _never, seal_key=KEY)
        keeping = group.create_task(workloads.run())
        await commands.arrived(replace(CREATE, create=replace(SPEC, lease_ns=SECOND)))
        await clock.sleep_ns(10 * SECOND)
        keeping.cancel()
    assert writer.journal.commands[CREATE.command_id].state.phase is Phase.FAILED
    return machine.starts, sorted(machine.boxes)


def test_work_whose_lease_lapses_while_it_is_prepared_never_starts() -> None:
    assert run(1, _lapse) == (0, [])


class SlowDisk(InlineRunner):
    """Takes a millisecond for each call, so that what is said meanwhile has to wait."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self._own, self._turn = clock, asyncio.Lock()

    async def call(self, work):
        async with self._turn:
            await self._own.sleep_ns(MILLISECOND)
            return await super().call(work)


async def _told(loop: VirtualLoop) -> list[list[Any]]:
    """Let a creation run on a slow disk; says what went into the spool, write by write."""
    clock, disk = VirtualClock(loop), MemoryDisk()
    runner, machine = SlowDisk(clock), SimulatedMachine(clock)
    writer = JournalWriter(Journal(disk, "/journal", clock.wall_ns, "boot"), runner)
    outbox = Outbox(Spool(disk, "/spool", BootId(b"b" * 16), clock.wall_ns), runner, clock)
    put_all, writes = outbox.put_all, []

    async def noting(lane, messages):
        writes.append([decode_status(b).phase if k is Kind.COMMAND_STATUS else k for k, b in messages])
        await put_all(lane, messages)

    outbox.put_all = noting  # type: ignore[method-assign]
    async with asyncio.TaskGroup() as group:

        def spawn(work, name):
            return group.create_task(work, name=name)

        workloads = WorkloadManager(writer, outbox, {"simulated": SimulatedRuntime(machine, {})}, clock, "boot", spawn)
        commands = CommandExecutor(writer, outbox, workloads, clock, "boot", spawn, _never, _never, seal_key=KEY)
        keeping = group.create_task(workloads.run())
        await commands.arrived(CREATE)
        for _ in range(20):
            await commands.asked(Query((CREATE.command_id,)))  # twenty answers while the disk is at its first
        await clock.sleep_ns(SECOND)
        keeping.cancel()
        machine.boxes.clear()  # gone: whoever watches it sees that and ends
        await clock.sleep_ns(10 * SECOND)
    return writes


def test_the_first_receipt_and_the_word_that_it_runs_cost_one_write() -> None:
    writes = run(1, _told)
    assert [Kind.RECEIPT, Kind.OBSERVED] in writes


def test_of_one_command_only_the_newest_status_waits_for_the_disk() -> None:
    statuses = [phase for write in run(1, _told) for phase in write if isinstance(phase, CommandPhase)]
    assert statuses[-1] is CommandPhase.SUCCEEDED
    assert len(statuses) < 10


class WrongRuntime(SimulatedRuntime):
    """Has a mistake of ours in it."""

    async def start(self, workload_id):
        raise KeyError(workload_id)


async def _crash(loop: VirtualLoop) -> tuple[Any, Any, list[str]]:
    """Let a creation meet a mistake of our own; its result, what is known of the work, and what is left of it."""
    clock, disk = VirtualClock(loop), MemoryDisk()
    runner, machine = InlineRunner(clock), SimulatedMachine(clock)
    writer = JournalWriter(Journal(disk, "/journal", clock.wall_ns, "boot"), runner)
    outbox = Outbox(Spool(disk, "/spool", BootId(b"b" * 16), clock.wall_ns), runner, clock)
    async with asyncio.TaskGroup() as group:

        def spawn(work, name):
            return group.create_task(work, name=name)

        workloads = WorkloadManager(writer, outbox, {"simulated": WrongRuntime(machine, {})}, clock, "boot", spawn)
        await CommandExecutor(writer, outbox, workloads, clock, "boot", spawn, _never, _never, seal_key=KEY).arrived(
            CREATE
        )
    return writer.journal.commands[CREATE.command_id].state, workloads.state(WORKLOAD), sorted(machine.boxes)


def test_a_mistake_of_our_own_fails_the_command_and_leaves_nobody_waiting() -> None:
    command, workload, left = run(1, _crash)
    assert (command.phase, command.error_code, left) == (Phase.FAILED, "internal", [])
    assert "The agent itself failed (KeyError)" in command.error_detail
    assert (workload.phase, workload.detail) == (WorkloadPhase.FAILED, command.error_detail)
