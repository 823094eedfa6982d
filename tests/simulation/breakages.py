"""Failures of one host or one relay: a container daemon, a program, a card, a stream not passed on whole."""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.simulation.witness import DiaryRuntime, Witness
from windrow_agent.gpu.simulated import SimulatedGpus
from windrow_agent.runtimes.port import Progress, Run
from windrow_agent.runtimes.simulated import SimulatedMachine
from windrow_proto.errors import RuntimeUnavailable
from windrow_proto.model import WorkloadSpec
from windrow_proto.ports import FrameLink
from windrow_proto.v1 import link_pb2

if TYPE_CHECKING:
    from tests.simulation.machines import HostMachine

SEGFAULT = 139
FALLEN_OFF, TENANTS = 79, 31
"""XIDs: a card that fell off its bus, which is the host's fault, and a program that touched what it may not."""
DAEMON_FAILS = (("prepare", "start", "stop", "remove", "observe", "list"), ("start", "remove"), ("stop", "remove"))
"""The calls that a failing daemon refuses."""
FAILS, IS_LATE = 0.7, 0.4
"""How often a failing daemon fails, and how often it had done what was asked before it failed to say so."""


@dataclass
class Trouble:
    """Until when (of the loop) something misbehaves, and the luck by which it does."""

    now_ns: Callable[[], int]
    luck: random.Random
    until_ns: int = 0
    what: tuple[str, ...] = ()
    """Only this of what it does."""

    @property
    def is_on(self) -> bool:
        """True if it misbehaves now."""
        return self.now_ns() < self.until_ns

    def strikes(self, chance: float) -> bool:
        """True if it does so this time."""
        return self.is_on and self.luck.random() < chance


class FailingRuntime(DiaryRuntime):
    """The runtime of a host whose container daemon fails at times, before it has done something or after."""

    def __init__(
        self,
        machine: SimulatedMachine,
        host_id: str,
        witness: Witness,
        prepare_ns: Callable[[], int],
        trouble: Trouble,
    ) -> None:
        super().__init__(machine, host_id, witness, prepare_ns)
        self._trouble = trouble

    def _fail(self) -> None:
        raise RuntimeUnavailable("The simulated daemon did not answer.")

    def _before(self, what: str) -> bool:
        """Fail at once, or say whether to fail afterwards."""
        fails = what in self._trouble.what and self._trouble.strikes(FAILS)
        if fails and self._trouble.luck.random() >= IS_LATE:
            self._fail()
        return fails

    async def prepare(self, spec: WorkloadSpec, progress: Progress) -> None:
        """As it is, or not."""
        fails = self._before("prepare")
        await super().prepare(spec, progress)
        if fails:
            self._fail()

    async def start(self, workload_id: str) -> Run:
        """As it is, or not."""
        fails = self._before("start")
        run = await super().start(workload_id)
        if fails:
            self._fail()
        return run

    async def stop(self, workload_id: str, grace_ns: int) -> None:
        """As it is, or not."""
        fails = self._before("stop")
        await super().stop(workload_id, grace_ns)
        if fails:
            self._fail()

    async def remove(self, workload_id: str) -> None:
        """As it is, or not."""
        fails = self._before("remove")
        await super().remove(workload_id)
        if fails:
            self._fail()

    async def observe(self, workload_id: str) -> Run | None:
        """As it is, or not."""
        if "observe" in self._trouble.what and self._trouble.strikes(FAILS):
            self._fail()
        return await super().observe(workload_id)  # type: ignore[arg-type]

    async def list(self) -> tuple[Run, ...]:
        """As it is, or not."""
        if "list" in self._trouble.what and self._trouble.strikes(FAILS):
            self._fail()
        return await super().list()


def crash_a_program(host: "HostMachine", luck: random.Random) -> bool:
    """One workload of this host ends by itself; False where none runs."""
    now_ns = host.clock.monotonic_ns()
    running = [
        box
        for _, box in sorted(host.machine.boxes.items())
        if box.started_ns is not None and box.stopped_ns is None and (box.ends_ns is None or box.ends_ns > now_ns)
    ]
    if not running:
        return False
    box = luck.choice(running)
    box.ends_ns, box.exit_code = now_ns, SEGFAULT
    for life in host.world.witness.lives[host.host_id]:
        if life.workload_id == box.spec.workload_id and life.ended_ns is None:
            life.planned_end_ns = host.world.witness.now_ns()
    return True


def break_a_card(gpus: SimulatedGpus, luck: random.Random) -> Callable[[], None] | None:
    """One card of a host fails in one of its ways. Returns what mends it, None where there is none to break."""
    try:
        count = len(gpus.inventory().gpus)
    except BlockingIOError:
        return None  # the driver hangs already
    if not count:
        return None
    index = luck.randrange(count)
    match luck.choice(("lost", "fault", "ecc", "tenant", "hot", "hung")):
        case "lost":
            gpus.lose(index)
            return lambda: gpus.recover(index)
        case "fault":
            gpus.xid(index, FALLEN_OFF)
        case "ecc":
            gpus.corrupt(index)
        case "tenant":
            gpus.xid(index, TENANTS)
        case "hot":
            gpus.heat(index)
            return lambda: gpus.heat(index, False)
        case _:
            gpus.hang()
            return lambda: gpus.hang(False)
    return lambda: None


@dataclass
class Mischief:
    """How a relay treats the frames that it should pass on."""

    trouble: Trouble
    doubled: float = 0.05
    swapped: float = 0.05
    dropped: float = 0.03


@dataclass
class UnfaithfulLink:
    """A stream through a relay that says things twice, out of turn, or not at all."""

    link: FrameLink
    mischief: Mischief
    _held: link_pb2.Frame | None = None
    _more: deque[link_pb2.Frame] = field(default_factory=deque)

    async def send(self, frame: link_pb2.Frame) -> None:
        """Down to the agent."""
        held, self._held = self._held, None
        if held is None and not self.mischief.trouble.is_on:
            await self.link.send(frame)
            return
        for one in self._treated(frame, held):
            await self.link.send(one)

    def _treated(self, frame: link_pb2.Frame, held: link_pb2.Frame | None) -> list[link_pb2.Frame]:
        after = [] if held is None else [held]
        trouble, chance = self.mischief.trouble, self.mischief
        if trouble.strikes(chance.dropped):
            return after
        if trouble.strikes(chance.doubled):
            return [frame, frame, *after]
        if held is None and trouble.strikes(chance.swapped):
            self._held = frame
            return []
        return [frame, *after]

    async def receive(self) -> link_pb2.Frame:
        """Up from the agent: what comes next may come before this."""
        while not self._more:
            frame = await self.link.receive()
            trouble, chance = self.mischief.trouble, self.mischief
            if not trouble.is_on:
                return frame
            if trouble.strikes(chance.dropped):
                continue
            self._more.append(frame)
            if trouble.strikes(chance.doubled):
                self._more.append(frame)
            elif trouble.strikes(chance.swapped):
                self._more.appendleft(await self.link.receive())
        return self._more.popleft()

    async def close(self) -> None:
        """As it is."""
        await self.link.close()
