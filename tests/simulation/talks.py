"""Words through channels: a workload is told what to say, and what comes back as the whole of it is the whole."""

import asyncio
import random
from typing import TYPE_CHECKING, Final

from windrow_agent.runtimes.port import RunState
from windrow_agent.runtimes.simulated import _run
from windrow_master.app.wiring import Master
from windrow_proto.errors import LinkClosed, WindrowError
from windrow_proto.ids import HostId, WorkloadId
from windrow_proto.messages import ChannelClose, ChannelOpen
from windrow_proto.model import ChannelPurpose

if TYPE_CHECKING:
    from tests.simulation.world import World

LENGTHS: Final = (1, 100, 700)
"""Of one piece, in bytes: some that are small beside the smallest queue, and some that fill it with two others."""
PIECES_MAX: Final = 4
AT_ONCE: Final = (1, 1, 1, 12)
DEADLINE_S: Final = 30.0
"""For all of it; a line may be dead for longer than that."""


class Talker:
    """Has workloads say things, now and then. broken: in words, what came back and was not what was said."""

    def __init__(self, world: "World", luck: random.Random) -> None:
        self._world, self._luck = world, luck
        self.broken: list[str] = []

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(self._luck.choice((0.2, 1, 5)))
            running = [
                (host.host_id, workload_id)
                for host in self._world.hosts
                for workload_id, box in host.machine.boxes.items()
                if _run(box, host.clock.monotonic_ns()).state is RunState.RUNNING
            ]
            at_once = self._luck.sample(running, min(len(running), self._luck.choice(AT_ONCE)))
            async with asyncio.TaskGroup() as talks:
                for one in at_once:
                    talks.create_task(self._talk(*one))

    async def _talk(self, host_id: HostId, workload_id: WorkloadId) -> None:
        words, *more = (self._piece() for _ in range(self._luck.randint(1, PIECES_MAX)))

        async def talk(rooms: Master) -> bytes | None:
            opening = ChannelOpen(workload_id, ChannelPurpose.EXEC, argv=("echo", words.decode()), stdin=True)
            channel = await rooms.services.inside._broker.open(host_id, opening)
            try:
                for piece in more:
                    await channel.send(piece)
            except LinkClosed:
                pass  # it has ended: an echo waits for nothing
            try:
                heard = b""
                while not isinstance(step := await channel.receive(), ChannelClose):
                    heard += step.data
                return None if step.error_code else heard
            finally:
                await channel.close(ChannelClose())

        try:
            heard = await self._world.master.ask(talk, DEADLINE_S)
        except (WindrowError, TimeoutError):
            return  # the Master, the host or the line went meanwhile, and said so
        if heard is None:
            return
        self._world.count("words through a channel")
        wholes = [words + b"\n" + b"".join(more[:count]) for count in range(len(more) + 1)]
        if heard not in wholes:
            said = f"{len(heard)} bytes for one of {[len(whole) for whole in wholes]}"
            self.broken.append(f"{workload_id} on {host_id[-6:]}: {said}")

    def _piece(self) -> bytes:
        return self._luck.randbytes(self._luck.choice(LENGTHS)).hex().encode()
