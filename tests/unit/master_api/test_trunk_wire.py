"""Frames go down a trunk together, and some do not wait for company."""

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from tests.simulation.loop import VirtualLoop, run
from tests.waiting import PATIENCE_S
from windrow_master.link import route as trunk_route
from windrow_master.link import wire
from windrow_master.link.route import HostRoute, Opening
from windrow_master.link.wire import Trunk, hello_of
from windrow_proto.canary import Outflow
from windrow_proto.errors import DeadlineExceeded
from windrow_proto.gather import Gather
from windrow_proto.ids import HostId
from windrow_proto.model import Kind, Lane
from windrow_proto.v1 import link_pb2, services_pb2


class Line:
    """The near end of a trunk that keeps what is sent."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[services_pb2.TrunkBatch] = asyncio.Queue()

    async def send(self, batch: services_pb2.TrunkBatch) -> None:
        self.sent.put_nowait(batch)

    async def receive(self) -> services_pb2.TrunkBatch:
        return await asyncio.Future()

    async def close(self) -> None:
        """Nothing is held."""


async def test_frames_that_can_wait_go_with_the_first_that_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "Gather", lambda: Gather(3600.0))
    line = Line()
    trunk = Trunk(line, services_pb2.TrunkHello(access_id="access_1"), "127.0.0.1:1", 1)
    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(trunk.write())
        for number in (1, 2):
            trunk.put_frame(number, link_pb2.Frame(sequence=number), False)
            for _ in range(20):
                await asyncio.sleep(0)
        assert line.sent.empty()
        trunk.put_frame(3, link_pb2.Frame(sequence=3), True)
        batch = await asyncio.wait_for(line.sent.get(), PATIENCE_S)
        assert [item.route for item in batch.items] == [1, 2, 3]
        writing.cancel()


@pytest.mark.parametrize(
    ("kind", "is_urgent"),
    [(Kind.ACK, False), (Kind.HEARTBEAT_REPLY, False), (Kind.REGION_MAP, False), (Kind.QUERY, True)],
)
def test_nobody_waits_for_an_ack_or_the_answer_to_a_beat(
    kind: Kind, is_urgent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[bool] = []
    opening = Opening(HostId("host_" + "0" * 32), 1, 1 << 62, "127.0.0.1:1")
    route = HostRoute(opening, "access_1", 1, 1, lambda _, urgent: told.append(urgent))
    monkeypatch.setattr(route, "session", SimpleNamespace(envelope=lambda *_: None))
    monkeypatch.setattr(route, "_prover", object())
    monkeypatch.setattr(trunk_route, "seal", lambda *_: link_pb2.Frame())
    route.send(kind, Lane.CONTROL, b"")
    assert told == [is_urgent]


def test_what_an_access_says_of_its_queue_is_counted_for_canaries() -> None:
    trunk = Trunk(Line(), services_pb2.TrunkHello(), "127.0.0.1:1", 0)
    assert trunk.outflow == Outflow()
    for queued_bytes, shed_frames in ((0, 0), (7, 2), (0, 3)):
        trunk.hear_load(services_pb2.LoadReport(queued_bytes=queued_bytes, shed_frames=shed_frames))
    assert (trunk.outflow, trunk.load.shed_frames) == (Outflow(empty=2, shed=3), 3)


class Deaf(Line):
    """The near end of a trunk whose other end takes nothing and says nothing."""

    is_closed = False

    async def send(self, batch: services_pb2.TrunkBatch) -> None:
        await asyncio.Event().wait()

    async def close(self) -> None:
        self.is_closed = True


def _in_virtual_time(work: Callable[[Trunk], Coroutine[Any, Any, None]]) -> tuple[float, bool]:
    """How long this took on a trunk that is deaf, and whether the trunk was closed."""
    line = Deaf()

    async def history(loop: VirtualLoop) -> float:
        await work(Trunk(line, services_pb2.TrunkHello(access_id="access_1"), "127.0.0.1:1", 1))
        return loop.time()

    return run(1, history), line.is_closed


def test_a_trunk_that_takes_nothing_is_closed() -> None:
    async def write(trunk: Trunk) -> None:
        trunk.put_frame(1, link_pb2.Frame(sequence=1), True)
        await trunk.write()

    took_s, is_closed = _in_virtual_time(write)
    assert is_closed
    assert took_s == pytest.approx(wire.SEND_DEADLINE_S)


def test_a_trunk_that_says_nothing_is_read_no_longer() -> None:
    took_s, _ = _in_virtual_time(lambda trunk: trunk.read(lambda item: None))
    assert took_s == pytest.approx(wire.SILENCE_S)


def test_a_trunk_without_a_hello_is_refused_in_time() -> None:
    """With an error of the market's own: what else an acceptor ends with is taken for a crash of the server."""

    async def history(loop: VirtualLoop) -> float:
        with pytest.raises(DeadlineExceeded, match="hello did not come"):
            await hello_of(Line(), "access_1")
        return loop.time()

    assert run(1, history) == pytest.approx(wire.HELLO_DEADLINE_S)
