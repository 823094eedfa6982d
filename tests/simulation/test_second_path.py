"""An Access that keeps messages back is found out over another one within a minute, and left; in virtual time."""

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.simulation import loop as loops
from tests.simulation import machines
from tests.simulation.breakages import Mischief
from tests.simulation.proofs import remembered
from tests.simulation.witness import Read
from tests.simulation.world import Plan, World, listening, terms
from windrow_access import relay
from windrow_access.core.queues import FairQueues
from windrow_master.link.route import HostRoute
from windrow_master.telemetry.service import TelemetryService
from windrow_proto.errors import DiskFull
from windrow_proto.model import Kind
from windrow_proto.ports import FrameLink
from windrow_proto.units import MINUTE, SECOND, seconds
from windrow_proto.v1 import link_pb2
from windrow_proto.wire import put_together, take_apart

ALL = bool(os.environ.get("SIM"))
"""`make sim`: every kind of message is kept back."""
PLAN = Plan(3, hosts=4, accesses=2, renters=0)
RENTED = Plan(3, hosts=4, accesses=2, renters=4, withhold_chance=0.0, turns_chance=0.0, lease_ns=2 * MINUTE)
"""A plan in which renters come and go, so that there are commands, receipts and leases to be kept back."""


@dataclass
class Keeper:
    """The frames that the dishonest Access keeps back, once it has begun: every other message of this kind, or all of
    them."""

    kind: Kind
    is_whole: bool = False
    is_keeping: bool = False
    kept: int = 0
    _turn: dict[int, bool] = field(default_factory=dict)

    def wants(self, link: object, frame: link_pb2.Frame) -> bool:
        if not self.is_keeping or Read(frame).kind is not self.kind:
            return False
        self._turn[id(link)] = self.is_whole or not self._turn.get(id(link), False)
        self.kept += self._turn[id(link)]
        return self._turn[id(link)]


def keeping(keeper: Keeper) -> type:
    class KeepingLink:
        """A stream through such an Access, in place of the one that is only clumsy."""

        def __init__(self, link: FrameLink, _: Mischief) -> None:
            self._link = link

        async def send(self, frame: link_pb2.Frame) -> None:
            if not keeper.wants(self, frame):
                await self._link.send(frame)

        async def receive(self) -> link_pb2.Frame:
            while True:
                frames = list(take_apart(await self._link.receive()))
                passed = [frame for frame in frames if not keeper.wants(self, frame)]
                if passed:
                    return put_together(passed)

        async def close(self) -> None:
            await self._link.close()

    return KeepingLink


async def begun(world: World, keeper: Keeper) -> None:
    """Wait until the first message is kept back, if any of its kind is ever sent."""
    while not keeper.kept and keeper.kind is not Kind.UNSPECIFIED:
        await world.clock.sleep_ns(SECOND)


def history(directory: Path, keeper: Keeper, look: Callable[[World], None], plan: Plan = PLAN) -> None:
    """Four minutes without a fault, then one in which the Accesses keep messages back."""

    async def play(loop: loops.VirtualLoop) -> None:
        world = World(plan, loop, directory)
        with listening(world), terms(plan):
            async with world.network, asyncio.TaskGroup() as tasks:
                try:
                    await world._join()
                    for machine in (*world.accesses, *world.hosts):
                        machine.start()
                    renting = [tasks.create_task(renter.run()) for renter in world.renters]
                    await world.clock.sleep_ns(4 * MINUTE)
                    keeper.is_keeping = True
                    async with asyncio.timeout(seconds(20 * MINUTE)):
                        await begun(world, keeper)
                    await world.clock.sleep_ns(MINUTE)
                    for task in renting:
                        task.cancel()
                    look(world)
                finally:
                    world.master.kill(world.luck)
                    await world.loop.thaw()
        assert not world.crashes

    with mock.patch.object(machines, "UnfaithfulLink", keeping(keeper)), remembered():
        loops.run(plan.seed, play)


def events(world: World) -> list[str]:
    assert world.master.rooms is not None
    found = world.master.rooms.store.read_now(lambda view: view.events.newest(limit=500))
    return [event.kind for event in found]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", [Kind.HEARTBEAT, Kind.HEARTBEAT_REPLY])
def test_messages_kept_back_are_found_out_within_a_minute(kind: Kind, tmp_path: Path) -> None:
    keeper = Keeper(kind)

    def look(world: World) -> None:
        assert keeper.kept > 0
        assert events(world).count("access.kept_back") >= PLAN.hosts

    history(tmp_path, keeper, look)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", [Kind.COMMAND, Kind.ACK, Kind.RECEIPT, Kind.LEASES] if ALL else [Kind.COMMAND])
def test_so_are_those_that_are_kept_back_of_the_work(kind: Kind, tmp_path: Path) -> None:
    keeper = Keeper(kind)

    def look(world: World) -> None:
        assert "access.kept_back" in events(world)

    history(tmp_path, keeper, look, RENTED)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("plan", [PLAN, RENTED], ids=["quiet", "rented"])
def test_nothing_is_found_where_nothing_is_kept(plan: Plan, tmp_path: Path) -> None:
    asked = 0
    answer = HostRoute.answer_canary

    def counted(route: HostRoute, frame: link_pb2.Frame) -> tuple[link_pb2.Frame, bool] | None:
        nonlocal asked
        answered = answer(route, frame)
        asked += answered is not None
        return answered

    def look(world: World) -> None:
        assert asked > 5 * PLAN.hosts
        assert "access.kept_back" not in events(world)

    with mock.patch.object(HostRoute, "answer_canary", counted):
        history(tmp_path, Keeper(Kind.UNSPECIFIED), look, plan)


@pytest.mark.timeout(300)
def test_an_access_that_passes_no_telemetry_on_is_found_out_within_a_minute(tmp_path: Path) -> None:
    keeper = Keeper(Kind.TELEMETRY, is_whole=True)

    def look(world: World) -> None:
        assert keeper.kept > 0
        assert "access.kept_back" in events(world)

    history(tmp_path, keeper, look)


@pytest.mark.timeout(300)
def test_no_access_is_accused_while_the_masters_log_takes_no_telemetry(tmp_path: Path) -> None:
    refused = 0

    async def full(service: TelemetryService, items: Sequence[object]) -> None:
        nonlocal refused
        refused += 1
        raise DiskFull

    def look(world: World) -> None:
        assert refused > 60
        assert "access.kept_back" not in events(world)

    with mock.patch.object(TelemetryService, "append_many", full):
        history(tmp_path, Keeper(Kind.UNSPECIFIED), look)


@pytest.mark.timeout(300)
def test_no_access_is_accused_that_sheds_all_telemetry_for_want_of_room_and_says_so(tmp_path: Path) -> None:
    shed = 0
    offer = FairQueues.offer

    def counted(queues: FairQueues[int, object], *frame: Any) -> int:
        nonlocal shed
        found = offer(queues, *frame)
        shed += found
        return found

    def look(world: World) -> None:
        assert shed > 60
        assert "access.kept_back" not in events(world)

    with mock.patch.object(relay, "QUEUE_BYTES_MAX", 1), mock.patch.object(FairQueues, "offer", counted):
        history(tmp_path, Keeper(Kind.UNSPECIFIED), look)
