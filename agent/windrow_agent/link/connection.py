"""One connection to an Access: greets, then sends and receives until the connection ends. It decides nothing about
workloads.

A single sender seals and sends, most urgent first: control, then evidence, then channels, then telemetry, so that a
slow history never holds up a result.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, Protocol

import structlog

from windrow_agent.link.outbox import Outbox
from windrow_proto.canary import AgentCanary
from windrow_proto.errors import InvalidInput, KeptBack, LinkClosed, TooLarge, WindrowError
from windrow_proto.keys import DOMAIN_DOWN, DOMAIN_UP, ExchangeKey, LinkProver, LinkVerifier, SigningKey
from windrow_proto.messages import PROTOCOL_VERSION, Channel, Hello, LaneMarks, Record, Settings, Welcome
from windrow_proto.model import FrameClass, Kind, Lane
from windrow_proto.once import Once
from windrow_proto.ports import Clock, FrameLink, Rng
from windrow_proto.session import Admitted, AgentSession, Phase, Reason
from windrow_proto.units import MILLISECOND, SECOND, seconds
from windrow_proto.v1 import link_pb2
from windrow_proto.wire import (
    Envelope,
    encode_record,
    gathered,
    seal,
    signed_digest,
    unseal,
)
from windrow_proto.wire_fields import parse
from windrow_proto.wire_link import (
    decode_canary_reply,
    decode_welcome,
    encode_canary,
    encode_channel,
    encode_hello,
    encode_resume,
)

log = structlog.get_logger()

GREETING_NS: Final = 10 * SECOND
"""For the Master's welcome, which crosses two hops and one signature, and for its first word to whoever resumes."""
SILENCE_NS: Final = 15 * SECOND
"""Without a word of the Master's own the connection counts as dead; at least three heartbeat intervals."""
UNDER_WAY_NS: Final = SECOND
"""More than that: the answer to a heartbeat that left in time may be on its way."""
LOOK_NS_MIN: Final = 100 * MILLISECOND
"""Between two looks for what is overdue, at the least: many records become so one after the other."""
RECORDS_PER_TURN: Final = 16
"""Telemetry between two looks at what is more urgent."""
CONTROL_MAX: Final = 64
"""Messages of the control lane that wait; more means the line has stopped."""
CHANNEL_MAX: Final = 32
LETTER_BYTES_MAX: Final = 4096


class Receiver(Protocol):
    """The receiver of the Master's messages."""

    async def welcomed(self, welcome: Welcome, connection: "Connection") -> None:
        """The connection serves from now on. A second one was welcomed a while ago."""

    async def received(self, envelope: Envelope, connection: "Connection") -> None:
        """One admitted message other than the welcome."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """The facts of this host in a hello."""

    agent_version: str
    generation: int
    inventory_hash: str
    simulated: bool


class Connection:
    """One open stream with the session's keys; `run` serves it."""

    def __init__(
        self,
        link: FrameLink,
        session: AgentSession,
        signing: SigningKey,
        master_public: bytes,
        outbox: Outbox,
        receiver: Receiver,
        clock: Clock,
        rng: Rng,
    ) -> None:
        self.session, self.clock = session, clock
        self.dropped = 0
        self.settings: Settings | None = None
        self._link, self._signing, self._master_public = link, signing, master_public
        self._outbox, self._receiver = outbox, receiver
        self._exchange = ExchangeKey.from_raw(rng.random_bytes(32))
        self._prover = LinkProver(None, signing, DOMAIN_UP)
        self._verifier = LinkVerifier(None, master_public, DOMAIN_DOWN)
        self._control: deque[tuple[Kind, bytes]] = deque()
        self._channel: deque[Channel] = deque()
        self._channel_room = asyncio.Event()
        self._heard_ns = clock.monotonic_ns()
        self._canary: AgentCanary | None = None
        self._welcomed: Welcome | None = None
        self._named: tuple[LaneMarks, ...] = ()
        self.is_second = False
        self.answered = Once()
        self.group: asyncio.TaskGroup | None = None

    async def close(self) -> None:
        """End it; safe to call twice."""
        self.session.on_disconnect()
        await self._link.close()

    async def prepare(self, greeting: Greeting) -> None:
        """Greet as a second connection, which keeps still until `run`. Raises LinkClosed, or what the Master refused us
        with, and the link is closed then."""
        self.is_second = True
        try:
            await self._greet(greeting)
        except BaseException:
            await self.close()
            raise

    async def run(self, greeting: Greeting, on_open: Callable[["Connection"], Coroutine[Any, Any, None]]) -> None:
        """Greet, or resume what was prepared, and serve until the link ends; raises LinkClosed then, or what the Master
        refused us with.

        on_open runs beside it from the welcome on, and is cancelled with it.
        """
        ended: WindrowError | None = None
        try:
            if self._welcomed is None:
                await self._greet(greeting)
            await self._serve()
            async with asyncio.TaskGroup() as group:
                self.group = group
                group.create_task(on_open(self), name="open")  # first: what it says goes with the resume
                group.create_task(self._send_all(), name="send")
                group.create_task(self._receive_all(), name="receive")
                group.create_task(self._watch_silence(), name="silence")
        except* WindrowError as errors:
            ended = _first(errors)  # raised below: until Python 3.11.4 what is raised here comes out as a group
        finally:
            self._outbox.on_disconnect()
            await self.close()
        if ended is not None:
            raise ended from ended.__cause__  # which says what the Access named, such as when to come back

    async def _greet(self, greeting: Greeting) -> None:
        if not self.is_second:
            self._named = await self._outbox.named()
        hello = Hello(
            protocol_version=PROTOCOL_VERSION,
            agent_version=greeting.agent_version,
            x25519_public=self._exchange.public,
            generation=greeting.generation,
            wall_ns=self.clock.wall_ns(),
            inventory_hash=greeting.inventory_hash,
            simulated=greeting.simulated,
            unacked=self._named,
            epoch_seen=self.session.epoch,
            second=self.is_second,
            encrypts=True,
        )
        envelope = self.session.envelope(Kind.HELLO, Lane.CONTROL, FrameClass.EVIDENCE, encode_hello(hello))
        frame = seal(envelope, self._prover)
        digest = signed_digest(frame)
        await self._link.send(frame)
        try:
            async with asyncio.timeout(seconds(GREETING_NS)):
                welcome = await self._welcome(digest)
        except TimeoutError:
            raise LinkClosed("The Master did not answer the hello in time.") from None
        key = self._exchange.derive(
            welcome.x25519_public, self.session.host_id, self.session.boot_id, self.session.epoch
        )
        self._prover = LinkProver(key, self._signing, DOMAIN_UP, welcome.encrypts)
        self._verifier = LinkVerifier(key, self._master_public, DOMAIN_DOWN)
        self.settings = welcome.settings
        self._canary = AgentCanary(self.session.tally)
        self._welcomed = welcome

    async def _serve(self) -> None:
        """Let the host's messages go this way from now on."""
        welcome = self._welcomed
        assert welcome is not None, "greeted"
        self._heard_ns = self.clock.monotonic_ns()
        await self._receiver.welcomed(welcome, self)
        if self.is_second:
            self.say(Kind.RESUME, encode_resume(await self._outbox.unacknowledged()))
            self._outbox.resumed(self.settings or welcome.settings)
        else:
            self.answered.set()
            await self._outbox.welcomed(self._named, welcome.have, welcome.settings)

    async def _welcome(self, digest: bytes) -> Welcome:
        while True:
            admitted = self._open(await self._link.receive())
            if admitted is not None and admitted.kind is Kind.WELCOME:
                welcome = decode_welcome(admitted.body)
                self.session.on_welcome(welcome, digest, self.clock.monotonic_ns())
                return welcome

    # --- sending --------------------------------------------------------------------------------------------------

    def say(self, kind: Kind, body: bytes) -> None:
        """Have one message of the control lane sent; raises LinkClosed when the line has stopped."""
        if len(self._control) >= CONTROL_MAX:
            raise LinkClosed("This host cannot send any more: its connection has stopped.")
        self._control.append((kind, body))
        self._outbox.wake.set()

    async def send_channel(self, channel: Channel) -> None:
        """Have one step of a channel sent; waits while the line is busy."""
        while len(self._channel) >= CHANNEL_MAX:
            self._channel_room.clear()
            await self._channel_room.wait()
        self._channel.append(channel)
        self._outbox.wake.set()

    # --- over a second Access -------------------------------------------------------------------------------------

    def canary(self) -> bytes:
        """A letter that asks the Master, over another Access, whether this one keeps messages back; empty while the
        connection is not open."""
        if self._canary is None or not self.is_open:
            return b""
        return self._sealed(
            Kind.CANARY, Lane.SECOND, FrameClass.EVIDENCE, encode_canary(self._canary.next())
        ).SerializeToString()

    def on_letter(self, letter: bytes) -> bool:
        """The answer, or what somebody says it is, empty if none came in time; returns whether it is certain now that
        messages are kept back."""
        if self._canary is None or not letter:
            return False
        try:
            envelope = self._open(parse(link_pb2.Frame, letter, LETTER_BYTES_MAX), is_letter=True)
            if envelope is None:
                return False
            return self._canary.on_reply(decode_canary_reply(envelope.body))
        except (InvalidInput, TooLarge):
            return False

    async def _send_all(self) -> None:
        wake = self._outbox.wake
        while True:
            wake.clear()
            is_idle = not await self._send_urgent()
            if self._outbox.may_go(Lane.TELEMETRY):
                records = await self._outbox.take(Lane.TELEMETRY, RECORDS_PER_TURN)
                await self._send_samples(records)
                is_idle = is_idle and not records
            if is_idle:
                await wake.wait()

    async def _send_samples(self, records: list[tuple[Record, FrameClass]]) -> None:
        """Sends all ready samples together, as far as more urgent messages can wait behind them."""
        frames = (self._sealed(one.kind, Lane.TELEMETRY, kind, encode_record(one)) for one, kind in records)
        for message in gathered(frames):
            await self._link.send(message)
            await self._send_urgent()

    async def _send_urgent(self) -> bool:
        """Everything more urgent than telemetry, control messages together; returns whether there was any."""
        is_any = False
        while True:
            if self._control:
                said = [self._control.popleft() for _ in range(len(self._control))]
                frames = (self._sealed(kind, Lane.CONTROL, FrameClass.EVIDENCE, body) for kind, body in said)
                for message in gathered(frames):
                    await self._link.send(message)
            elif self._outbox.may_go(Lane.EVIDENCE) and (
                records := await self._outbox.take(Lane.EVIDENCE, RECORDS_PER_TURN)
            ):
                for record, frame_class in records:
                    await self._link.send(self._sealed(record.kind, Lane.EVIDENCE, frame_class, encode_record(record)))
            elif self._channel:
                body = encode_channel(self._channel.popleft())
                self._channel_room.set()
                await self._link.send(self._sealed(Kind.CHANNEL, Lane.CHANNEL, FrameClass.CHANNEL, body))
            else:
                return is_any
            is_any = True

    def _sealed(self, kind: Kind, lane: Lane, frame_class: FrameClass, body: bytes) -> link_pb2.Frame:
        return seal(self.session.envelope(kind, lane, frame_class, body), self._prover)

    # --- receiving ------------------------------------------------------------------------------------------------

    async def _receive_all(self) -> None:
        while True:
            envelope = self._open(await self._link.receive())
            if envelope is None:
                continue
            self._heard_ns = self.clock.monotonic_ns()
            self.answered.set()
            try:
                await self._receiver.received(envelope, self)
            except InvalidInput as error:
                self._drop("malformed", envelope.kind.name, error.detail)

    def _open(self, frame: link_pb2.Frame, *, is_letter: bool = False) -> Envelope | None:
        """Check proof and session; what does not hold is counted and dropped, as a hostile relay may send anything, and
        by either way what belongs on the other. Raises KeptBack."""
        try:
            envelope = unseal(frame, self._verifier)
        except WindrowError as error:
            self._drop(error.code, "", error.detail)
            return None
        if is_letter is not (envelope.lane is Lane.SECOND):
            self._drop(Reason.WRONG_LANE.value, envelope.kind.name, "")
            return None
        judged = self.session.admit(envelope, self.clock.monotonic_ns())
        if isinstance(judged, Admitted):
            return envelope
        self._drop(judged.reason.value, envelope.kind.name, "")
        if judged.reason is Reason.KEPT_BACK:
            raise KeptBack("A part of what the Master sent to a workload never came.")
        return None

    def _drop(self, reason: str, kind: str, detail: str) -> None:
        self.dropped += 1
        log.warning("message_dropped", reason=reason, kind=kind, detail=detail[:200], dropped=self.dropped)

    async def _watch_silence(self) -> None:
        while True:
            patience_ns = self._patience_ns()
            due_ns = min(self._outbox.send_overdue(), self._heard_ns + patience_ns)
            await self.clock.sleep_ns(max(LOOK_NS_MIN, due_ns - self.clock.monotonic_ns()))
            if self.clock.monotonic_ns() - self._heard_ns >= max(patience_ns, self._patience_ns()):
                raise LinkClosed("The Master has not been heard for too long.")

    def _patience_ns(self) -> int:
        if not self.answered.is_set():
            return GREETING_NS
        interval_ns = self.settings.heartbeat_interval_ns if self.settings is not None else 0
        return max(SILENCE_NS, 3 * interval_ns) + UNDER_WAY_NS

    @property
    def is_open(self) -> bool:
        """True if messages may be sent."""
        return self.session.phase is Phase.OPEN


def _first(errors: "BaseExceptionGroup[WindrowError]") -> WindrowError:
    """Chooses one of several failures to report: the first that is more than the line's own end, or that has a
    cause."""
    found: list[WindrowError] = []
    todo: list[BaseException] = [errors]
    while todo:
        error = todo.pop(0)
        if isinstance(error, BaseExceptionGroup):
            todo += error.exceptions
        elif isinstance(error, WindrowError):
            found.append(error)
    return next((error for error in found if not isinstance(error, LinkClosed) or error.__cause__), found[0])
