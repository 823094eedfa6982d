"""Both ends of the agent's link as decisions without I/O: what may be sent, what is believed, what is sent again. Pure.

    agent                                                    master
    CLOSED --envelope(HELLO)--> GREETING                     CLOSED --on_hello--> GREETED
    GREETING --admit(WELCOME), on_welcome--> OPEN            GREETED --envelope(WELCOME)--> OPEN
    any --on_disconnect--> CLOSED                            (one MasterSession per connection)

Which records go and what became of them: windows.py.
Proofs are checked before (wire.unseal); what a peer does wrong is an answer (Refused), what we do wrong a ValueError.
Replay is answered three ways: the MAC key is new with every connection (the Master makes a fresh exchange key for each
welcome), outer sequences must grow, and records are known by the boot and sequence they were born with. Commands and
leases, which are signed, expire. Both ends' sequences begin higher with each connection, in every lane above its hello
or welcome, so that what a relay kept of an older one is old here, too, and cannot make the genuine ones look so.
What is missing of evidence and telemetry is sent again. Channels carry files and words as they are, so none of their
frames may be missing: an Access sheds none and keeps their order, and each one is the next of its connection.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from windrow_proto.canary import Tally
from windrow_proto.errors import BadProof, Fenced, InvalidInput
from windrow_proto.ids import BootId, HostId
from windrow_proto.messages import PROTOCOL_VERSION, Hello, Welcome
from windrow_proto.model import FrameClass, Kind, Lane
from windrow_proto.wire import Envelope

LANES: Final[dict[Kind, frozenset[Lane]]] = {
    Kind.HELLO: frozenset({Lane.CONTROL}),
    Kind.HEARTBEAT: frozenset({Lane.CONTROL}),
    Kind.INVENTORY: frozenset({Lane.EVIDENCE}),
    Kind.COMMAND_STATUS: frozenset({Lane.EVIDENCE}),
    Kind.RECEIPT: frozenset({Lane.EVIDENCE}),
    Kind.EVENT: frozenset({Lane.EVIDENCE}),
    Kind.OBSERVED: frozenset({Lane.EVIDENCE}),
    Kind.BANDWIDTH: frozenset({Lane.EVIDENCE}),
    Kind.TELEMETRY: frozenset({Lane.TELEMETRY}),
    Kind.GAP: frozenset({Lane.EVIDENCE, Lane.TELEMETRY}),
    Kind.WELCOME: frozenset({Lane.CONTROL}),
    Kind.HEARTBEAT_REPLY: frozenset({Lane.CONTROL}),
    Kind.ACK: frozenset({Lane.CONTROL}),
    Kind.COMMAND: frozenset({Lane.CONTROL, Lane.EVIDENCE}),
    Kind.SETTINGS: frozenset({Lane.CONTROL}),
    Kind.REGION_MAP: frozenset({Lane.CONTROL}),
    Kind.LEASES: frozenset({Lane.CONTROL}),
    Kind.QUERY: frozenset({Lane.CONTROL}),
    Kind.CHANNEL: frozenset({Lane.CHANNEL}),
    Kind.CANARY: frozenset({Lane.SECOND}),
    Kind.CANARY_REPLY: frozenset({Lane.SECOND}),
    Kind.RESUME: frozenset({Lane.CONTROL}),
}
"""Which lanes a kind may travel in."""
CONNECTION_SEQUENCES: Final = 1 << 24
"""Sequences set aside for each lane of a connection: months at ten messages a second."""
EXPIRING_KINDS: Final = frozenset({Kind.COMMAND, Kind.LEASES})
"""Must carry a not-after: kept by a relay and delivered later they would do harm."""


class Phase(StrEnum):
    """How far a connection is."""

    CLOSED = "closed"
    GREETING = "greeting"
    GREETED = "greeted"
    OPEN = "open"


class Reason(StrEnum):
    """Why a message was not believed; stable, counted by whoever drops it."""

    WRONG_HOST = "wrong_host"
    WRONG_BOOT = "wrong_boot"
    WRONG_DIRECTION = "wrong_direction"
    WRONG_LANE = "wrong_lane"
    WRONG_PHASE = "wrong_phase"
    WRONG_GENERATION = "wrong_generation"
    WRONG_VERSION = "wrong_version"
    REPLAYED = "replayed"
    FENCED = "fenced"
    STALE_MASTER = "stale_master"
    KEPT_BACK = "kept_back"
    NO_NOT_AFTER = "no_not_after"
    EXPIRED = "expired"


class Admitted(NamedTuple):
    """Believed; act on its body."""

    envelope: Envelope


@dataclass(frozen=True, slots=True)
class Refused:
    """Not believed; drop and count it."""

    reason: Reason


def is_upward(kind: Kind) -> bool:
    """True if agents send this kind."""
    return 0 < kind < 32 or kind >= 64


def is_downward(kind: Kind) -> bool:
    """True if Masters send this kind."""
    return kind >= 32


def is_kept_back(envelope: Envelope, before: int) -> bool:
    """True if a frame of a channel between this one and the one that came `before` it is missing."""
    return envelope.lane is Lane.CHANNEL and envelope.sequence != before + 1


class AgentSession:
    """The agent's end: its outer sequences never begin again; a hello is above all of them.

    One serves at a time; `second` makes the one of a connection that waits beside it.
    """

    def __init__(self, host_id: HostId, boot_id: BootId, epoch_seen: int) -> None:
        """epoch_seen: the highest Master epoch this host ever admitted, from its disk; 0 if none."""
        self.host_id, self.boot_id, self.epoch = host_id, boot_id, epoch_seen
        self.phase = Phase.CLOSED
        self._sent: dict[Lane, int] = {}
        self._received: dict[Lane, int] = {}
        self._floor = 0
        self._master_wall_ns: int | None = None
        self._welcomed_at_ns = 0
        self.tally = Tally()

    def envelope(self, kind: Kind, lane: Lane, frame_class: FrameClass, body: bytes, not_after_ns: int = 0) -> Envelope:
        """The next message up, with its outer sequence; HELLO begins a new connection. Raises ValueError for what the
        agent may not send now."""
        if not is_upward(kind) or lane not in LANES[kind]:
            raise ValueError(f"an agent does not send {kind.name} in lane {lane.name}")
        if kind is Kind.HELLO:
            self.phase = Phase.GREETING
            self._received, self._floor, self.tally = {}, 0, Tally()
            top = max(self._sent.values(), default=0)
            self._sent = {each: top if each is lane else top + 1 for each in Lane}
        elif self.phase is not Phase.OPEN:
            raise ValueError(f"{kind.name} cannot be sent while {self.phase}")
        self._sent[lane] = self._sent.get(lane, 0) + 1
        if kind is not Kind.HELLO:
            self.tally.count_sent(lane, self._sent[lane])
        return Envelope(
            self.host_id, self.boot_id, self.epoch, frame_class, lane, self._sent[lane], kind, body, not_after_ns
        )

    def admit(self, envelope: Envelope, now_ns: int) -> Admitted | Refused:
        """Judge a message whose proof holds. now_ns: of the clock that on_welcome was given."""
        reason = self._objection(envelope, now_ns)
        if reason in (None, Reason.EXPIRED):  # late or not, it is heard, once
            self._received[envelope.lane] = envelope.sequence
            self.tally.count_heard(envelope.lane, envelope.sequence)
        if reason is not None:
            return Refused(reason)
        return Admitted(envelope)

    def _objection(self, envelope: Envelope, now_ns: int) -> Reason | None:
        kind = envelope.kind
        wanted = Phase.GREETING if kind is Kind.WELCOME else Phase.OPEN
        if envelope.host_id != self.host_id:
            return Reason.WRONG_HOST
        if envelope.boot_id != self.boot_id:
            return Reason.WRONG_BOOT
        if not is_downward(kind):
            return Reason.WRONG_DIRECTION
        if envelope.lane not in LANES[kind]:
            return Reason.WRONG_LANE
        if self.phase is not wanted:
            return Reason.WRONG_PHASE
        if envelope.epoch < self.epoch or (envelope.epoch > self.epoch and kind is not Kind.WELCOME):
            return Reason.FENCED
        before = self._received.get(envelope.lane, self._floor)
        if envelope.sequence <= before:
            return Reason.REPLAYED
        if is_kept_back(envelope, before):
            return Reason.KEPT_BACK
        if kind in EXPIRING_KINDS and envelope.not_after_ns == 0:
            return Reason.NO_NOT_AFTER
        if envelope.not_after_ns and envelope.not_after_ns < self._master_now(now_ns):
            return Reason.EXPIRED
        return None

    def _master_now(self, now_ns: int) -> int:
        if self._master_wall_ns is None:
            return now_ns
        return self._master_wall_ns + now_ns - self._welcomed_at_ns

    def on_welcome(self, welcome: Welcome, hello_digest: bytes, now_ns: int | None = None) -> None:
        """Open the connection. hello_digest: of the hello this process sent last.

        now_ns: of the monotonic clock; expiry is then judged by the Master's wall clock, carried on from this moment,
        so that a host whose own clock is years off still obeys. Without it, `admit` is given wall time.
        Raises BadProof if this answers another hello, Fenced for a Master older than one seen, InvalidInput for
        another protocol.
        """
        if self.phase is not Phase.GREETING or welcome.hello_digest != hello_digest:
            raise BadProof("The welcome answers another hello.", subject=self.host_id)
        if welcome.epoch < self.epoch:
            raise Fenced(f"A Master of epoch {welcome.epoch} answered, but epoch {self.epoch} has been seen.")
        if welcome.protocol_version != PROTOCOL_VERSION:
            raise InvalidInput(f"The Master speaks protocol {welcome.protocol_version}, this agent {PROTOCOL_VERSION}.")
        self.epoch = welcome.epoch
        self._floor = max(0, self._received.get(Lane.CONTROL, 0) - 1)
        if now_ns is not None:
            self._master_wall_ns, self._welcomed_at_ns = welcome.wall_ns, now_ns
        self.phase = Phase.OPEN

    def on_disconnect(self) -> None:
        """The stream has ended; nothing may be sent but a new hello."""
        self.phase = Phase.CLOSED

    def second(self) -> "AgentSession":
        """Of a second connection beside this one, which may take its place: above all that this one will send."""
        beside = AgentSession(self.host_id, self.boot_id, self.epoch)
        top = max(self._sent.values(), default=0) + CONNECTION_SEQUENCES
        beside._sent = dict.fromkeys(Lane, top)
        return beside


class MasterSession:
    """The Master's end of one connection of one host."""

    def __init__(self, host_id: HostId, epoch: int, connection: int = 0) -> None:
        """host_id: from the certificate, as the route says; epoch: this Master's; connection: grows with each one that
        this Master serves."""
        self._base = connection * CONNECTION_SEQUENCES
        self.host_id, self.epoch = host_id, epoch
        self.phase = Phase.CLOSED
        self.boot_id: BootId | None = None
        self._sent: dict[Lane, int] = {}
        self._received: dict[Lane, int] = {}
        self.tally = Tally()

    def on_hello(self, envelope: Envelope, hello: Hello, generation: int) -> Admitted | Refused:
        """Judge a hello whose signature holds. generation: of the certificate, as the route says.

        STALE_MASTER: the host has seen a later Master than this one, which must step down.
        """
        reason = self._hello_objection(envelope, hello, generation)
        if reason is not None:
            return Refused(reason)
        self.phase, self.boot_id = Phase.GREETED, envelope.boot_id
        self._received = dict.fromkeys(Lane, envelope.sequence)
        return Admitted(envelope)

    def _hello_objection(self, envelope: Envelope, hello: Hello, generation: int) -> Reason | None:
        if envelope.host_id != self.host_id:
            return Reason.WRONG_HOST
        if envelope.kind is not Kind.HELLO or envelope.lane is not Lane.CONTROL:
            return Reason.WRONG_LANE
        if self.phase is not Phase.CLOSED:
            return Reason.WRONG_PHASE
        if hello.generation != generation:
            return Reason.WRONG_GENERATION
        if hello.protocol_version != PROTOCOL_VERSION:
            return Reason.WRONG_VERSION
        return Reason.STALE_MASTER if max(hello.epoch_seen, envelope.epoch) > self.epoch else None

    def envelope(self, kind: Kind, lane: Lane, frame_class: FrameClass, body: bytes, not_after_ns: int = 0) -> Envelope:
        """The next message down, with its outer sequence; WELCOME opens. Raises ValueError for what may not be sent."""
        if not is_downward(kind) or lane not in LANES[kind]:
            raise ValueError(f"a Master does not send {kind.name} in lane {lane.name}")
        if kind in EXPIRING_KINDS and not_after_ns == 0:
            raise ValueError(f"{kind.name} needs a not-after")
        if self.boot_id is None or self.phase is not (Phase.GREETED if kind is Kind.WELCOME else Phase.OPEN):
            raise ValueError(f"{kind.name} cannot be sent while {self.phase}")
        self.phase = Phase.OPEN
        self._sent[lane] = self._sent.get(lane, self._base) + 1
        self.tally.count_sent(lane, self._sent[lane])
        return Envelope(
            self.host_id, self.boot_id, self.epoch, frame_class, lane, self._sent[lane], kind, body, not_after_ns
        )

    def admit(self, envelope: Envelope) -> Admitted | Refused:
        """Judge a message whose proof holds, other than the hello."""
        reason = self._objection(envelope)
        if reason is not None:
            return Refused(reason)
        self._received[envelope.lane] = envelope.sequence
        self.tally.count_heard(envelope.lane, envelope.sequence)
        return Admitted(envelope)

    def _objection(self, envelope: Envelope) -> Reason | None:
        if envelope.host_id != self.host_id:
            return Reason.WRONG_HOST
        if not is_upward(envelope.kind):
            return Reason.WRONG_DIRECTION
        if envelope.lane not in LANES[envelope.kind]:
            return Reason.WRONG_LANE
        if self.phase is not Phase.OPEN or envelope.kind is Kind.HELLO:
            return Reason.WRONG_PHASE
        if envelope.boot_id != self.boot_id:
            return Reason.WRONG_BOOT
        if envelope.epoch != self.epoch:
            return Reason.STALE_MASTER if envelope.epoch > self.epoch else Reason.FENCED
        before = self._received.get(envelope.lane, 0)
        if envelope.sequence <= before:
            return Reason.REPLAYED
        return Reason.KEPT_BACK if is_kept_back(envelope, before) else None
