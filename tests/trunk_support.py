"""An Access and agents reduced to what the Master sees of them, for tests of the trunk."""

import asyncio
from contextlib import suppress

from tests.waiting import PATIENCE_S
from windrow_master.fleet.model import HostFacts
from windrow_proto.errors import LinkClosed
from windrow_proto.ids import BootId, HostId
from windrow_proto.keys import DOMAIN_DOWN, DOMAIN_UP, ExchangeKey, LinkProver, LinkVerifier, SigningKey
from windrow_proto.messages import PROTOCOL_VERSION, Ack, Heartbeat, Hello, Record
from windrow_proto.model import FrameClass, Kind, Lane
from windrow_proto.session import Admitted, AgentSession
from windrow_proto.v1 import services_pb2
from windrow_proto.wire import Envelope, encode_record, seal, signed_digest, unseal
from windrow_proto.wire_link import decode_ack, decode_welcome, encode_heartbeat, encode_hello

DAY_NS = 86_400_000_000_000


class FakeAccess:
    """One trunk: sends what its agents say, sorts what comes down by route."""

    def __init__(self, link, access_id="access_1", region="local-a") -> None:
        self.link, self.access_id, self.region = link, access_id, region
        self.down: dict[int, asyncio.Queue] = {}
        self.closed: dict[int, str] = {}
        self.bans: list[str] = []
        self.letters: asyncio.Queue = asyncio.Queue()
        self.drained: list[bool] = []
        self.welcomed = asyncio.Event()
        self.is_gone = False
        self._routes = 0

    async def say(self, *items) -> None:
        await self.link.send(services_pb2.TrunkBatch(items=items))

    async def hello(self) -> None:
        hello = services_pb2.TrunkHello(
            access_id=self.access_id, region=self.region, address="127.0.0.1:7443", version="0.1.0"
        )
        await self.say(services_pb2.TrunkItem(hello=hello))

    async def run(self) -> None:
        with suppress(LinkClosed):
            while True:
                for item in (await self.link.receive()).items:
                    self._take(item)
        self.is_gone = True

    def _take(self, item) -> None:
        what = item.WhichOneof("what")
        if what == "welcome":
            self.drained.append(item.welcome.draining)
            self.welcomed.set()
        elif what == "drain":
            self.drained.append(item.drain.draining)
        elif what == "frame":
            self.down[item.route].put_nowait(item.frame)
        elif what == "close":
            self.closed[item.route] = item.close.code
        elif what == "letter":
            self.letters.put_nowait(item.letter)
        elif what == "bans":
            self.bans = list(item.bans.host_ids)

    async def open(self, agent, generation=1, not_after_ns=None) -> int:
        self._routes += 1
        number = self._routes
        self.down[number] = asyncio.Queue()
        opened = services_pb2.RouteOpened(
            host_id=agent.host_id,
            generation=generation,
            not_after_ns=agent.clock.wall_ns() + DAY_NS if not_after_ns is None else not_after_ns,
            peer="ipv4:127.0.0.1:1",
        )
        await self.say(services_pb2.TrunkItem(route=number, opened=opened))
        return number


class FakeAgent:
    """The agent's end of the link, step by step."""

    def __init__(self, clock, host_id=HostId("host_1"), boot=b"a" * 16, signing=None) -> None:  # noqa: B008
        self.clock, self.host_id = clock, host_id
        self.signing = signing or SigningKey.generate()
        self.restart(boot)

    def restart(self, boot) -> None:
        """Another process on the same key."""
        self.boot = BootId(boot)
        self.session = AgentSession(self.host_id, self.boot, 0)
        self.exchange = ExchangeKey.generate()
        self.sequences: dict[Lane, int] = {}

    def facts(self, is_banned=False, generation=1) -> HostFacts:
        return HostFacts(self.signing.public, generation, is_banned)

    def beside(self) -> "FakeAgent":
        """The same process on a second connection."""
        second = FakeAgent(self.clock, self.host_id, self.boot, self.signing)
        second.session, second.sequences = self.session.second(), self.sequences
        return second

    async def connect(
        self, access, master_public, *, generation=1, unacked=(), epoch_seen=0, second=False, **route
    ) -> None:
        """Open a route, say hello and take the welcome."""
        self.access, self.master_public = access, master_public
        self.number = await access.open(self, generation, **route)
        hello = Hello(
            PROTOCOL_VERSION,
            "1",
            self.exchange.public,
            generation,
            self.clock.wall_ns(),
            "",
            False,
            unacked,
            epoch_seen,
            second,
        )
        self.prover = LinkProver(None, self.signing, DOMAIN_UP)
        await self.send(Kind.HELLO, Lane.CONTROL, encode_hello(hello))

    async def finish_connect(self):
        """Take the welcome."""
        frame = await self.next_frame()
        envelope = unseal(frame, LinkVerifier(None, self.master_public, DOMAIN_DOWN))
        welcome = decode_welcome(envelope.body)
        assert isinstance(self.session.admit(envelope, self.clock.monotonic_ns()), Admitted)
        self.session.on_welcome(welcome, self.hello_digest, self.clock.monotonic_ns())
        mac = self.exchange.derive(welcome.x25519_public, self.host_id, self.boot, welcome.epoch)
        self.prover = LinkProver(mac, self.signing, DOMAIN_UP)
        self.verifier = LinkVerifier(mac, self.master_public, DOMAIN_DOWN)
        return welcome

    async def greet(self, access, master_public, **options):
        await self.connect(access, master_public, **options)
        return await self.finish_connect()

    async def send(self, kind, lane, body, frame_class=FrameClass.EVIDENCE) -> None:
        frame = seal(self.session.envelope(kind, lane, frame_class, body), self.prover)
        if kind is Kind.HELLO:
            self.hello_digest = signed_digest(frame)
        self.last_frame = frame
        await self.resend(frame)

    async def resend(self, frame) -> None:
        await self.access.say(services_pb2.TrunkItem(route=self.number, frame=frame))

    async def record(self, kind, body, lane=Lane.EVIDENCE, sequence=None, boot=None, frame_class=None) -> int:
        """Send a record of the spool; returns its sequence of origin."""
        if sequence is None:
            sequence = self.sequences[lane] = self.sequences.get(lane, 0) + 1
        default = FrameClass.LIVE if lane is Lane.TELEMETRY else FrameClass.EVIDENCE
        one = Record(boot or self.boot, sequence, kind, body)
        await self.send(kind, lane, encode_record(one), frame_class or default)
        return sequence

    async def beat(self, conditions=()) -> None:
        beat = Heartbeat(self.clock.wall_ns(), 1, "", b"\0" * 32, tuple(conditions))
        await self.send(Kind.HEARTBEAT, Lane.CONTROL, encode_heartbeat(beat))

    async def next_frame(self, deadline_s=PATIENCE_S):
        async with asyncio.timeout(deadline_s):
            return await self.access.down[self.number].get()

    async def next(self, *kinds, deadline_s=PATIENCE_S) -> Envelope:
        """The next message of one of these kinds; others are passed over."""
        while True:
            envelope = unseal(await self.next_frame(deadline_s), self.verifier)
            assert isinstance(self.session.admit(envelope, self.clock.monotonic_ns()), Admitted)
            if envelope.kind in kinds:
                return envelope

    async def acked(self, lane, through, boot=None) -> Ack:
        """Wait for an ack that covers 1..through of this lane."""
        while True:
            ack = decode_ack((await self.next(Kind.ACK)).body)
            for marks in ack.have:
                ranges = marks.ranges
                if (marks.lane, marks.origin_boot) == (lane, boot or self.boot) and ranges and ranges[0][1] >= through:
                    return ack
