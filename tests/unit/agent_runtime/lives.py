"""A host in virtual time on which agents live one after another, for tests of what outlives them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from tests.simulation.loop import VirtualClock, VirtualLoop, run
from windrow_agent.link.outbox import Outbox
from windrow_agent.link.spool import Spool
from windrow_agent.runtimes.simulated import SimulatedMachine, SimulatedRuntime
from windrow_agent.storage.journal import Journal, JournalWriter
from windrow_agent.threads import InlineRunner
from windrow_agent.workloads.commands import CommandExecutor
from windrow_agent.workloads.lease_exit_check import LeaseExitCheck
from windrow_agent.workloads.manager import WorkloadManager
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.errors import WindrowError
from windrow_proto.ids import BootId, ClusterId, CommandId, SlotId, WorkloadId
from windrow_proto.keys import SigningKey
from windrow_proto.model import (
    Command,
    CommandKind,
    DeleteSpec,
    Kind,
    Receipt,
    SlotGrant,
    WorkloadPhase,
    WorkloadSpec,
)
from windrow_proto.sealed import SealKey
from windrow_proto.units import DAY, MINUTE, SECOND
from windrow_proto.windows import RecordKey
from windrow_proto.wire_host import decode_receipt

KEY = SealKey.of(SigningKey.from_raw(bytes(32)))
GPU = SlotId("GPU-1")
WORK = WorkloadId("work_1")
YEARS = 10 * 365 * DAY
SLACK_NS = 3 * SECOND
"""The manager of workloads looks each second; a look, a journal write and the runtime's own poll."""


def create(work: str = WORK, token: int = 1, lease_ns: int = MINUTE, paid_ns: int = MINUTE) -> Command:
    spec = WorkloadSpec(
        WorkloadId(work),
        ClusterId("cluster_1"),
        (SlotGrant(GPU, token),),
        "simulated",
        lease_ns=lease_ns,
        paid_ns=paid_ns,
    )
    return Command(CommandId(f"create_{work}_{token}"), CommandKind.CREATE, create=spec)


DELETE = Command(CommandId("delete_1"), CommandKind.DELETE, delete=DeleteSpec(WORK, (SlotGrant(GPU, 1),), 0))


class MoodyRuntime(SimulatedRuntime):
    """Does not answer when it is asked for a list."""

    hangs = False

    async def list(self):
        while self.hangs:
            await self._machine.clock.sleep_ns(SECOND)
        return await super().list()


class Host:
    """A machine with a disk, on which agents live one after another. No link: nobody is there to be heard."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.clock, self.disk = VirtualClock(loop), MemoryDisk()
        self.machine = SimulatedMachine(self.clock)
        self.runtime = MoodyRuntime(self.machine, {})
        self.boot = 0
        self.receipts: list[Receipt] = []

    def box(self, work: str = WORK):
        return self.machine.boxes.get(WorkloadId(work))

    def ran_ns(self, work: str = WORK) -> int:
        """The time that it ran, by the machine itself."""
        box = self.box(work)
        return (box.stopped_ns or self.clock.monotonic_ns()) - box.started_ns

    async def appear(self, work: str) -> None:
        """Something with our mark runs here that no agent has started."""
        spec = create(work).create
        assert spec is not None
        await self.runtime.prepare(spec, lambda *_, **__: None)
        await self.runtime.start(spec.workload_id)

    async def live(self, work: Callable[["Life"], Awaitable[None]], lease_exit: LeaseExitCheck | None = None) -> None:
        """One life of the agent, ended as by SIGKILL after `work`."""
        self.boot += 1
        runner = InlineRunner(self.clock)
        writer = JournalWriter(Journal(self.disk, "/journal", self.clock.wall_ns, "kernel"), runner)
        spool = Spool(self.disk, "/spool", BootId(bytes([self.boot]) * 16), self.clock.wall_ns)
        outbox = Outbox(spool, runner, self.clock)
        put_all, receipts = outbox.put_all, self.receipts

        async def noting(lane: Any, messages: Sequence[tuple[Kind, bytes]]) -> RecordKey:
            key = await put_all(lane, messages)
            receipts.extend(decode_receipt(body) for kind, body in messages if kind is Kind.RECEIPT)
            return key

        outbox.put_all = noting  # type: ignore[method-assign]
        tasks: set[asyncio.Task[None]] = set()

        def spawn(doing: Any, name: str) -> "asyncio.Task[None]":
            async def guarded() -> None:
                try:
                    await doing
                except WindrowError:
                    pass  # the agent's own loops tell it and go on

            task = asyncio.get_running_loop().create_task(guarded(), name=name)
            task.add_done_callback(lambda _: doing.close())
            tasks.add(task)
            return task

        workloads = WorkloadManager(
            writer, outbox, {"simulated": self.runtime}, self.clock, "kernel", spawn, lease_exit
        )
        commands = CommandExecutor(writer, outbox, workloads, self.clock, "kernel", spawn, _never, _never, seal_key=KEY)
        await workloads.recover()
        await commands.recover()
        spawn(workloads.run(), "workloads")
        try:
            await work(Life(self, workloads, commands))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


class Life:
    """One life of an agent, as a test drives it."""

    def __init__(self, host: Host, workloads: WorkloadManager, commands: CommandExecutor) -> None:
        self.host, self.workloads, self.commands = host, workloads, commands

    async def started(self, command: Command) -> None:
        await self.commands.arrived(command)
        await self.pass_ns(SECOND)
        assert self.host.machine.starts == 1

    @property
    def phase(self) -> WorkloadPhase | None:
        """Of the one workload."""
        state = self.workloads.state(WORK)
        return state.phase if state is not None else None

    async def pass_ns(self, duration_ns: int) -> None:
        await self.host.clock.sleep_ns(duration_ns)


async def _never(*_: object) -> dict[str, str]:
    return {}


def played(story: Callable[[Host], Awaitable[None]]) -> Host:
    async def history(loop: VirtualLoop) -> Host:
        host = Host(loop)
        await story(host)
        return host

    return run(1, history)


def final(host: Host) -> Receipt:
    (found,) = [receipt for receipt in host.receipts if receipt.final]
    return found
