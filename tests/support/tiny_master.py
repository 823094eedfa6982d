"""An Access and a Master in one acceptor, just able enough to drive an agent: it keeps all that it was told."""

import asyncio
from collections.abc import Callable
from typing import Any

from tests.waiting import PATIENCE_S
from windrow_proto.ids import HostId
from windrow_proto.intervals import Intervals
from windrow_proto.keys import DOMAIN_DOWN, DOMAIN_UP, ExchangeKey, LinkProver, LinkVerifier, SigningKey
from windrow_proto.link_warm import reply_to
from windrow_proto.messages import (
    PROTOCOL_VERSION,
    Ack,
    Channel,
    Heartbeat,
    HeartbeatReply,
    Query,
    Record,
    Settings,
    Welcome,
)
from windrow_proto.model import (
    Command,
    CommandPhase,
    CommandStatus,
    FrameClass,
    Inventory,
    Kind,
    Lane,
    LeaseRenewal,
    Observed,
    Receipt,
)
from windrow_proto.ports import BandwidthLink, Clock, FrameLink, PeerFacts, PingFacts, PingLink
from windrow_proto.session import Admitted, MasterSession
from windrow_proto.units import MINUTE, SECOND
from windrow_proto.v1 import services_pb2
from windrow_proto.wire import decode_record, seal, signed_digest, unseal
from windrow_proto.wire_command import decode_status, encode_command, encode_leases
from windrow_proto.wire_host import decode_inventory, decode_observed, decode_receipt, encode_claim
from windrow_proto.wire_link import (
    decode_channel,
    decode_heartbeat,
    decode_hello,
    encode_ack,
    encode_channel,
    encode_heartbeat_reply,
    encode_query,
    encode_welcome,
)

SETTINGS = Settings(SECOND // 2, SECOND // 4, SECOND // 2, 16, 4, 65_536)


class TinyMaster:
    """Accepts one agent at a time; commits in memory, so that it survives its own connections but no restart."""

    def __init__(self, host_public: bytes, clock: Clock, access_id: str = "acc_" + "2" * 32, epoch: int = 3) -> None:
        self.signing = SigningKey.generate()
        self.epoch, self.clock, self.access_id = epoch, clock, access_id
        self.host_public = host_public
        self.generation = 1
        self.records: dict[tuple[Lane, bytes, int], Record] = {}
        self.duplicates = 0
        self.have: dict[tuple[Lane, bytes], Intervals] = {}
        self.heartbeats: list[Heartbeat] = []
        self.refusals: list[str] = []
        self.channels: dict[int, asyncio.Queue[Channel]] = {}
        self.is_acking = True
        self.connections = 0
        self.link: FrameLink | None = None
        self._session: MasterSession | None = None
        self._prover: LinkProver | None = None

    # --- as an Access ---------------------------------------------------------------------------------------------

    async def pinged(self, peer: PeerFacts) -> PingFacts:
        return PingFacts(self.access_id, "test", 10, False)

    async def warmed(self, peer: PeerFacts, link: PingLink) -> None:
        while True:
            await link.send(reply_to(await link.receive(), await self.pinged(peer)))

    async def accepted(self, peer: PeerFacts, link: FrameLink) -> None:
        self.connections += 1
        self.link = link
        session = MasterSession(HostId(peer.subject_id), self.epoch)
        frame = await link.receive()
        verifier = LinkVerifier(None, self.host_public, DOMAIN_UP)
        envelope = unseal(frame, verifier)
        hello = decode_hello(envelope.body)
        judged = session.on_hello(envelope, hello, peer.generation)
        if not isinstance(judged, Admitted):
            self.refusals.append(judged.reason.value)
            return
        exchange = ExchangeKey.generate()
        have = tuple(
            self.have.get((m.lane, m.origin_boot), Intervals()).to_marks(m.lane, m.origin_boot) for m in hello.unacked
        )
        welcome = Welcome(
            PROTOCOL_VERSION,
            self.epoch,
            exchange.public,
            have,
            SETTINGS,
            self.clock.wall_ns(),
            signed_digest(frame),
            True,
        )
        out = session.envelope(Kind.WELCOME, Lane.CONTROL, FrameClass.EVIDENCE, encode_welcome(welcome))
        await link.send(seal(out, LinkProver(None, self.signing, DOMAIN_DOWN)))
        key = exchange.derive(hello.x25519_public, session.host_id, envelope.boot_id, self.epoch)
        self._session, self._prover = session, LinkProver(key, self.signing, DOMAIN_DOWN)
        verifier = LinkVerifier(key, self.host_public, DOMAIN_UP)
        while True:
            message = unseal(await link.receive(), verifier)
            admitted = session.admit(message)
            if isinstance(admitted, Admitted):
                await self._received(message.kind, message.lane, message.body)
            else:
                self.refusals.append(admitted.reason.value)

    async def measured(self, peer: PeerFacts, link: BandwidthLink) -> None:
        from windrow_proto.bandwidth import BandwidthClaim

        start = (await link.receive()).start
        await link.send(services_pb2.BandwidthChunk(start=start))
        up = 0
        while not (chunk := await link.receive()).direction_done:
            up += len(chunk.payload)
        for _ in range(4):
            await link.send(services_pb2.BandwidthChunk(payload=bytes(65_536)))
        await link.send(services_pb2.BandwidthChunk(direction_done=True))
        await link.receive()
        claim = BandwidthClaim(
            *(start.nonce, self.access_id, HostId(peer.subject_id)),
            up_bits_per_s=10**9,
            down_bits_per_s=10**9,
            up_bytes=up,
            down_bytes=4 * 65_536,
            duration_ns=SECOND,
            at_wall_ns=self.clock.wall_ns(),
        )
        await link.send(services_pb2.BandwidthChunk(claim=encode_claim(claim), claim_signature=b"s" * 64))

    # --- as a Master ----------------------------------------------------------------------------------------------

    async def _received(self, kind: Kind, lane: Lane, body: bytes) -> None:
        if kind is Kind.HEARTBEAT:
            self.heartbeats.append(decode_heartbeat(body))
            await self.send(
                Kind.HEARTBEAT_REPLY, encode_heartbeat_reply(HeartbeatReply(self.epoch, self.clock.wall_ns()))
            )
        elif kind is Kind.CHANNEL:
            channel = decode_channel(body)
            self.channels.setdefault(channel.channel_id, asyncio.Queue()).put_nowait(channel)
        elif lane in (Lane.EVIDENCE, Lane.TELEMETRY):
            record = decode_record(body)
            key = (lane, bytes(record.origin_boot), record.origin_sequence)
            self.duplicates += key in self.records
            self.records[key] = record
            marks = self.have.get(key[:2], Intervals()).add(record.origin_sequence)
            self.have[key[:2]] = marks
            if self.is_acking:
                await self.ack()

    async def ack(self) -> None:
        marks = tuple(have.to_marks(lane, boot) for (lane, boot), have in self.have.items())  # type: ignore[arg-type]
        await self.send(Kind.ACK, encode_ack(Ack(marks, (), self.epoch)))

    async def send(self, kind: Kind, body: bytes, lane: Lane = Lane.CONTROL, not_after_ns: int = 0) -> None:
        assert self._session is not None and self._prover is not None and self.link is not None
        frame_class = FrameClass.CHANNEL if lane is Lane.CHANNEL else FrameClass.EVIDENCE
        envelope = self._session.envelope(kind, lane, frame_class, body, not_after_ns)
        await self.link.send(seal(envelope, self._prover))

    async def command(self, command: Command) -> None:
        await self.send(Kind.COMMAND, encode_command(command), not_after_ns=self.clock.wall_ns() + MINUTE)

    async def renew(self, *renewals: LeaseRenewal) -> None:
        await self.send(Kind.LEASES, encode_leases(renewals), not_after_ns=self.clock.wall_ns() + MINUTE)

    async def query(self, *command_ids: Any) -> None:
        await self.send(Kind.QUERY, encode_query(Query(tuple(command_ids), True)))

    async def channel(self, channel: Channel) -> None:
        await self.send(Kind.CHANNEL, encode_channel(channel), Lane.CHANNEL)

    async def next(self, channel_id: int) -> Any:
        queue = self.channels.setdefault(channel_id, asyncio.Queue())
        return (await asyncio.wait_for(queue.get(), PATIENCE_S)).step

    async def drop(self) -> None:
        """Cut the present connection, as a dying Access does."""
        if self.link is not None:
            await self.link.close()

    # --- what it was told -----------------------------------------------------------------------------------------

    def _all(self, kind: Kind, decode: Callable[[bytes], Any]) -> list[Any]:
        return [decode(record.body) for record in self.records.values() if record.kind is kind]

    def statuses(self, command_id: Any) -> list[CommandStatus]:
        return [s for s in self._all(Kind.COMMAND_STATUS, decode_status) if s.command_id == command_id]

    def phases(self, command_id: Any) -> list[CommandPhase]:
        return [status.phase for status in self.statuses(command_id)]

    def receipts(self, workload_id: Any) -> list[Receipt]:
        return [r for r in self._all(Kind.RECEIPT, decode_receipt) if r.workload_id == workload_id]

    def inventories(self) -> list[Inventory]:
        return self._all(Kind.INVENTORY, decode_inventory)

    def observed(self) -> list[Observed]:
        return self._all(Kind.OBSERVED, decode_observed)

    def count(self, kind: Kind) -> int:
        return sum(record.kind is kind for record in self.records.values())
