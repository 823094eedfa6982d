"""One host's connection as the Master sees it: its session, its proofs, its acknowledged records, its messages under
way.

Pure of waiting: every method returns at once; what goes down is handed to the trunk through `put`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from windrow_master.link.channels import ChannelPipe
from windrow_proto.canary import MasterCanary, Outflow
from windrow_proto.errors import BadProof, Fenced, KeptBack, LinkClosed, TooMany
from windrow_proto.ids import BootId, CommandId, HostId
from windrow_proto.intervals import Intervals
from windrow_proto.keys import DOMAIN_DOWN, DOMAIN_UP, ExchangeKey, LinkProver, LinkVerifier, SigningKey
from windrow_proto.messages import (
    PROTOCOL_VERSION,
    Ack,
    Channel,
    ChannelOpen,
    Hello,
    LaneMarks,
    Settings,
    Welcome,
)
from windrow_proto.model import FrameClass, Kind, Lane
from windrow_proto.session import Admitted, MasterSession, Reason, Refused
from windrow_proto.v1 import link_pb2
from windrow_proto.windows import Accepted, ReceiveLane
from windrow_proto.wire import Envelope, seal, signed_digest, unseal
from windrow_proto.wire_link import (
    decode_canary,
    decode_hello,
    encode_ack,
    encode_canary_reply,
    encode_channel,
    encode_welcome,
)

BOOTS_MAX: Final = 64
"""Boots of origin one connection may bring records of; a spool that outlived more restarts sends the rest later."""
CHANNELS_MAX: Final = 192
"""Of one host: its own limits are 64, and 128 tunnels."""
PATIENT: Final = frozenset({Kind.ACK, Kind.HEARTBEAT_REPLY, Kind.REGION_MAP})
"""Messages that go down with the next one that comes: nobody waits for one of these."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The Access's description of a route, from the certificate that it saw."""

    host_id: HostId
    generation: int
    not_after_ns: int
    address: str


@dataclass(slots=True)
class RouteFigures:
    """The messages dropped of one route, by reason."""

    bad_proofs: int = 0
    refused: dict[str, int] = field(default_factory=dict)


class HostRoute:
    """One connection, from the hello to its end."""

    def __init__(
        self,
        opening: Opening,
        access_id: str,
        epoch: int,
        connection: int,
        put: Callable[[link_pb2.Frame, bool], None],
        tunnels: tuple[str, str] = ("", ""),
        number: int = 0,
        outflow: Callable[[], Outflow] = Outflow,
    ) -> None:
        """tunnels: where renters, and the host, find its Access for tunnels; empty: none. number: on its trunk.
        outflow: what its Access says of what waits there."""
        self.tunnels, self.number, self._outflow = tunnels, number, outflow
        self.opening, self.access_id = opening, access_id
        self.host_id = opening.host_id
        self.figures = RouteFigures()
        self.session = MasterSession(opening.host_id, epoch, connection)
        self.is_closed = False
        self.is_greeting = False
        self.is_confirmed = False
        self.is_second = False
        self.map_version = 0
        self.samples_acked_s = float("-inf")
        self.commands_sent: dict[CommandId, int] = {}
        self.asked_ns: dict[str, int] = {}
        self.settings: Settings | None = None
        self._epoch = epoch
        self._put = put
        self._prover: LinkProver | None = None
        self._verifier: LinkVerifier | None = None
        self._lanes: dict[tuple[Lane, BootId], ReceiveLane] = {}
        self._moving: dict[tuple[Lane, BootId], ReceiveLane] = {}
        """Those to which something came since they were seen whole."""
        self._committed: Mapping[BootId, tuple[tuple[int, int], ...]] = {}
        self._telemetry_have: Callable[[BootId], Intervals] = lambda boot: Intervals()
        self._to_ack: set[tuple[Lane, BootId]] = set()
        self._channels: dict[int, ChannelPipe] = {}
        self._canary = MasterCanary(self.session.tally)

    @property
    def boot_id(self) -> BootId | None:
        """Of the live agent process; None before the hello."""
        return self.session.boot_id

    @property
    def is_open(self) -> bool:
        """True if something can be sent down."""
        return self._prover is not None and not self.is_closed

    # --- greeting --------------------------------------------------------------------------------------------------

    def hear_hello(self, frame: link_pb2.Frame, public_key: bytes) -> Hello:
        """Check a hello. Raises BadProof; Fenced when the host has seen a later Master than this one."""
        envelope = unseal(frame, LinkVerifier(None, public_key, DOMAIN_UP))
        if envelope.kind is not Kind.HELLO:
            raise BadProof("A connection begins with a hello.", subject=self.host_id)
        hello = decode_hello(envelope.body)
        answer = self.session.on_hello(envelope, hello, self.opening.generation)
        if isinstance(answer, Refused):
            self.refuse(answer.reason)
            if answer.reason is Reason.STALE_MASTER:
                raise Fenced("The host has seen a later Master than this one.", subject=self.host_id)
            raise BadProof(f"The hello was refused: {answer.reason}.", subject=self.host_id)
        return hello

    def welcome(
        self,
        hello: Hello,
        frame: link_pb2.Frame,
        *,
        public_key: bytes,
        signing: SigningKey,
        exchange: ExchangeKey,
        settings: Settings,
        committed: Mapping[BootId, tuple[tuple[int, int], ...]],
        telemetry_have: Callable[[BootId], Intervals],
        inventory_wanted: bool,
        wall_ns: int,
    ) -> None:
        """Answer a hello that was heard; from here on both ends share a key."""
        boot = self.session.boot_id
        assert boot is not None, "welcome follows hear_hello"
        self._committed, self._telemetry_have, self.settings = committed, telemetry_have, settings
        self.is_second = hello.second
        mac_key = exchange.derive(hello.x25519_public, self.host_id, boot, self._epoch)
        self._prover = LinkProver(mac_key, signing, DOMAIN_DOWN, hello.encrypts)
        self._verifier = LinkVerifier(mac_key, public_key, DOMAIN_UP)
        named = {(marks.lane, marks.origin_boot) for marks in hello.unacked[: 2 * BOOTS_MAX]}
        answer = Welcome(
            protocol_version=PROTOCOL_VERSION,
            epoch=self._epoch,
            x25519_public=exchange.public,
            have=self._marks(key for key in sorted(named) if key[0] in (Lane.EVIDENCE, Lane.TELEMETRY)),
            settings=settings,
            wall_ns=wall_ns,
            hello_digest=signed_digest(frame),
            inventory_wanted=inventory_wanted,
            encrypts=hello.encrypts,
        )
        self.send(Kind.WELCOME, Lane.CONTROL, encode_welcome(answer))

    # --- a second connection ---------------------------------------------------------------------------------------

    def committed(self) -> Mapping[BootId, tuple[tuple[int, int], ...]]:
        """Return the committed evidence of this host, by boot of origin, as far as this connection knows."""
        lanes = {boot: window.have.ranges for (lane, boot), window in self._lanes.items() if lane is Lane.EVIDENCE}
        return {**self._committed, **lanes}

    def learn(self, first: "HostRoute") -> None:
        """Note what the connection that served knew last, or knows now; messages under way on it come again."""
        self._committed = {**self._committed, **first.committed()}

    def resume(self, unacked: Iterable[LaneMarks]) -> None:
        """Serve from now on in the place of the first connection, and say what is had of what the host still holds."""
        self.is_second = False
        named = {(marks.lane, marks.origin_boot) for marks in tuple(unacked)[: 2 * BOOTS_MAX]}
        self._to_ack |= {key for key in named if key[0] in (Lane.EVIDENCE, Lane.TELEMETRY)}
        self.flush_acks()

    # --- up --------------------------------------------------------------------------------------------------------

    def hear(self, frame: link_pb2.Frame) -> Envelope | None:
        """Check any later frame; None when it is not believed (it is counted). Raises BadProof or InvalidInput, and
        KeptBack when one of a channel before this one never came."""
        if self._verifier is None:
            self.refuse(Reason.WRONG_PHASE)
            return None
        answer = self.session.admit(unseal(frame, self._verifier))
        if isinstance(answer, Admitted):
            return answer.envelope
        self.refuse(answer.reason)
        if answer.reason is Reason.KEPT_BACK:
            raise KeptBack("A part of what the host sent of a workload never came.", subject=self.host_id)
        return None

    def answer_canary(self, frame: link_pb2.Frame) -> tuple[link_pb2.Frame, bool] | None:
        """The answer to a canary that came over another Access, and whether it is certain now that the Access of this
        route keeps messages back; None for what is not believed, which is nobody's fault here. Raises InvalidInput."""
        if self._verifier is None or self._prover is None or not self.is_confirmed:
            return None
        envelope = unseal(frame, self._verifier)
        if envelope.kind is not Kind.CANARY or not isinstance(self.session.admit(envelope), Admitted):
            return None
        reply = self._canary.judge(decode_canary(envelope.body), self._outflow())
        body = encode_canary_reply(reply)
        answer = self.session.envelope(Kind.CANARY_REPLY, Lane.SECOND, FrameClass.EVIDENCE, body)
        return seal(answer, self._prover), self._canary.is_certain

    def refuse(self, reason: str) -> None:
        """Count a message that was dropped."""
        self.figures.refused[reason] = self.figures.refused.get(reason, 0) + 1

    def lane(self, lane: Lane, boot: BootId) -> ReceiveLane:
        """The window of one lane and boot of origin; raises TooMany for too many boots."""
        key = lane, boot
        found = self._lanes.get(key)
        if found is None:
            if len(self._lanes) >= 2 * BOOTS_MAX:
                raise TooMany(f"Records of more than {BOOTS_MAX} boots at once.", subject=self.host_id)
            ranges = self._committed.get(boot, ())
            have = Intervals(tuple(ranges)) if lane is Lane.EVIDENCE else self._telemetry_have(boot)
            found = self._lanes[key] = self._moving[key] = ReceiveLane(have)
        return found

    def accept(self, lane: Lane, boot: BootId, sequence: int) -> bool:
        """Return whether a record is new; one that was had before is acknowledged again."""
        window = self.lane(lane, boot)
        answer = window.accept(sequence)
        self._moving[lane, boot] = window
        if answer is Accepted.DUPLICATE:
            self._to_ack.add((lane, boot))
        return answer is Accepted.NEW

    def commit(self, lane: Lane, boot: BootId, sequences: Iterable[int]) -> None:
        """These are durable; the next ack says so."""
        self.lane(lane, boot).commit(sequences)
        self._to_ack.add((lane, boot))

    def fill(self, lane: Lane, boot: BootId, ranges: tuple[tuple[int, int], ...]) -> None:
        """A committed gap: these will never come."""
        window = self._moving[lane, boot] = self.lane(lane, boot)
        window.fill(ranges)
        self._to_ack.add((lane, boot))

    def abort(self, lane: Lane, boot: BootId, sequences: Iterable[int]) -> None:
        """These could not be stored; they come again."""
        self.lane(lane, boot).abort(sequences)

    def flush_acks(self) -> None:
        """Say what was committed since the last time."""
        if self._to_ack and self.is_open:
            keys, self._to_ack = sorted(self._to_ack), set()
            self._send_ack(self._marks(keys), ())

    def ask_missing(self, now_ns: int) -> None:
        """Ask again for holes that have lasted."""
        missing = []
        for (lane, boot), window in tuple(self._moving.items()):
            holes = window.missing(now_ns)
            if holes.ranges:
                missing.append(holes.to_marks(lane, boot))
            if window.is_whole:
                del self._moving[lane, boot]
        if missing and self.is_open:
            self._send_ack((), tuple(missing))

    def _marks(self, keys: Iterable[tuple[Lane, BootId]]) -> tuple[LaneMarks, ...]:
        return tuple(self.lane(lane, boot).ack(lane, boot) for lane, boot in keys)

    def _send_ack(self, have: tuple[LaneMarks, ...], missing: tuple[LaneMarks, ...]) -> None:
        self.send(Kind.ACK, Lane.CONTROL, encode_ack(Ack(have, missing, self._epoch)))

    # --- down ------------------------------------------------------------------------------------------------------

    def send(self, kind: Kind, lane: Lane, body: bytes, not_after_ns: int = 0) -> None:
        """Seal a message and hand it to the trunk. Raises LinkClosed when the route has ended."""
        if self.is_closed or self._prover is None:
            raise LinkClosed("The host is not connected (any more).", subject=self.host_id)
        frame_class = FrameClass.CHANNEL if lane is Lane.CHANNEL else FrameClass.EVIDENCE
        frame = seal(self.session.envelope(kind, lane, frame_class, body, not_after_ns), self._prover)
        self._put(frame, kind not in PATIENT)

    def may_ask(self, what: str, now_ns: int, every_ns: int) -> bool:
        """Return whether it is time to ask for this (again); remembers that it was."""
        if now_ns - self.asked_ns.get(what, -every_ns) < every_ns:
            return False
        self.asked_ns[what] = now_ns
        return True

    # --- channels --------------------------------------------------------------------------------------------------

    def open_channel(self, channel_id: int, opening: ChannelOpen) -> ChannelPipe:
        """A new channel. Raises TooMany, LinkClosed."""
        if len(self._channels) >= CHANNELS_MAX:
            raise TooMany(f"{CHANNELS_MAX} channels to this host are open already.", subject=self.host_id)
        assert self.settings is not None, "channels open after the welcome"
        pipe = ChannelPipe(
            channel_id,
            self.settings.channel_credit_bytes,
            lambda step: self.send(Kind.CHANNEL, Lane.CHANNEL, encode_channel(step)),
            lambda number: self._forget_channel(number),
        )
        self._channels[channel_id] = pipe
        pipe.open(opening)
        return pipe

    def on_channel(self, channel: Channel) -> None:
        """A step of a channel; one for a channel that is over is dropped."""
        pipe = self._channels.get(channel.channel_id)
        if pipe is not None and not isinstance(channel.step, ChannelOpen):
            pipe.on_step(channel.step)

    def keep_time(self, now_ns: int) -> None:
        """Called each second."""
        if self._moving:
            self.ask_missing(now_ns)
        if self._channels:
            self.sweep_channels()

    def sweep_channels(self) -> None:
        """Forget channels that the host does not close."""
        for number in [number for number, pipe in self._channels.items() if pipe.sweep()]:
            del self._channels[number]

    def _forget_channel(self, channel_id: int) -> None:
        self._channels.pop(channel_id, None)

    def close(self, reason: str) -> None:
        """The route has ended; safe to call twice."""
        self.is_closed = True
        for pipe in tuple(self._channels.values()):
            pipe.fail(reason)
