"""A second connection that takes the first one's place says everything at once, and the disk is not asked."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.master_support import SeededRng
from windrow_agent.link.connection import Connection, Greeting
from windrow_agent.link.outbox import Outbox
from windrow_agent.link.spool import Spool
from windrow_agent.threads import InlineRunner
from windrow_master.link.route import HostRoute, Opening
from windrow_proto.clock import SystemClock
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.ids import BootId, HostId
from windrow_proto.intervals import Intervals
from windrow_proto.keys import ExchangeKey, SigningKey
from windrow_proto.messages import Heartbeat, LaneMarks, Settings
from windrow_proto.model import Event, Kind, Lane
from windrow_proto.ports import Clock
from windrow_proto.session import AgentSession
from windrow_proto.units import SECOND
from windrow_proto.v1 import link_pb2
from windrow_proto.wire import Envelope, take_apart
from windrow_proto.wire_host import encode_event
from windrow_proto.wire_link import decode_resume, encode_heartbeat

MASTER, BOOT, HOST = SigningKey.from_raw(bytes(32)), BootId(b"b" * 16), HostId("host_1")
SETTINGS = Settings(SECOND, SECOND, 5 * SECOND, 64, 64, 262_144)
GREETING = Greeting("1", 1, "", simulated=True)


class Line:
    """The agent's end of a stream; the test is the other."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[link_pb2.Frame] = asyncio.Queue()
        self.coming: asyncio.Queue[link_pb2.Frame] = asyncio.Queue()

    async def send(self, frame: link_pb2.Frame) -> None:
        self.sent.put_nowait(frame)

    async def receive(self) -> link_pb2.Frame:
        return await self.coming.get()

    async def close(self) -> None:
        """Nothing to close."""


class Counting(InlineRunner):
    """Counts what is asked of the disk."""

    calls = 0

    async def call(self, work: Callable[[], Any]) -> Any:
        self.calls += 1
        return await super().call(work)


class Silent:
    """A receiver that does nothing."""

    async def welcomed(self, *_: object) -> None:
        """Nothing to note."""

    async def received(self, *_: object) -> None:
        """Nothing to do."""


class Host:
    """An agent whose second connection the Master has greeted."""

    def __init__(self, clock: Clock | None = None, settings: Settings = SETTINGS) -> None:
        clock, signing = clock or SystemClock(), SigningKey.from_raw(bytes([7]) * 32)
        self.settings = settings
        self.runner, self.line = Counting(clock), Line()
        self.outbox = Outbox(Spool(MemoryDisk(), "/spool", BOOT, clock.wall_ns), self.runner, clock)
        session = AgentSession(HOST, BOOT, 0).second()
        parts = self.outbox, Silent(), clock, SeededRng(5)
        self.connection = Connection(self.line, session, signing, MASTER.public, *parts)
        self._signing, self._clock = signing, clock
        self.route = HostRoute(Opening(HOST, 1, 1 << 62, ""), "access_2", 5, 1, self._down)

    def _down(self, frame: link_pb2.Frame, _: bool) -> None:
        self.line.coming.put_nowait(frame)

    async def prepare(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.connection.prepare(GREETING))
            frame = await self.line.sent.get()
            self.route.welcome(
                self.route.hear_hello(frame, self._signing.public),
                frame,
                public_key=self._signing.public,
                signing=MASTER,
                exchange=ExchangeKey.generate(),
                settings=self.settings,
                committed={},
                telemetry_have=lambda boot: Intervals(),
                inventory_wanted=False,
                wall_ns=self._clock.wall_ns(),
            )

    @asynccontextmanager
    async def served(self) -> AsyncIterator[list[Envelope]]:
        """The connection serves; what its first message carries."""

        async def beat(connection: Connection) -> None:
            connection.say(Kind.HEARTBEAT, encode_heartbeat(Heartbeat(1, 1, "", b"")))

        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(self.connection.run(GREETING, beat))
            heard = [self.route.hear(frame) for frame in take_apart(await self.line.sent.get())]
            yield [envelope for envelope in heard if envelope is not None]
            running.cancel()


async def settled(host: Host) -> None:
    """As after some time on the first connection: the Master has all, and is not asked what it has."""
    await host.outbox.welcomed((), (), SETTINGS)
    for lane in (Lane.EVIDENCE, Lane.TELEMETRY):
        await host.outbox.take(lane, 10)
    host.outbox.on_disconnect()


async def test_the_resume_and_the_first_heartbeat_are_one_message_and_the_disk_is_not_asked() -> None:
    host = Host()
    await settled(host)
    await host.prepare()
    before = host.runner.calls

    async with host.served() as heard:
        assert [envelope.kind for envelope in heard] == [Kind.RESUME, Kind.HEARTBEAT]
        assert decode_resume(heard[0].body) == ()
        assert (host.runner.calls, host.line.sent.qsize()) == (before, 0)


async def test_what_is_not_acknowledged_is_named_and_comes_again() -> None:
    host = Host()
    await settled(host)
    await host.outbox.put(Lane.EVIDENCE, Kind.EVENT, encode_event(Event("test", 1, "", "")))
    await host.prepare()

    async with host.served() as heard:
        assert decode_resume(heard[0].body) == (LaneMarks(Lane.EVIDENCE, BOOT, ((1, 1),)),)
        again = host.route.hear(await host.line.sent.get())
        assert again is not None and again.kind is Kind.EVENT
