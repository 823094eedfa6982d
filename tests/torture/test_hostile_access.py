"""An Access that forges, rewrites, replays and reorders: both ends take what the other said, once and in order, or
nothing. The real ends (HostRoute, Connection) over several connections of two hosts; `CASES=n`, `SEED=n`."""

import asyncio
import itertools
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from google.protobuf.message import DecodeError

from tests.master_support import SeededRng
from tests.torture.mutate import mutated
from tests.unit.proto.values import SETTINGS
from windrow_agent.link.connection import Connection, Greeting
from windrow_master.link.route import HostRoute, Opening
from windrow_proto.clock import SystemClock
from windrow_proto.errors import KeptBack, WindrowError
from windrow_proto.ids import BootId, HostId
from windrow_proto.intervals import Intervals
from windrow_proto.keys import DOMAIN_DOWN, DOMAIN_UP, ExchangeKey, LinkProver, SigningKey
from windrow_proto.model import FrameClass, Kind, Lane
from windrow_proto.session import AgentSession
from windrow_proto.units import HOUR
from windrow_proto.v1 import link_pb2
from windrow_proto.wire import Envelope, seal

CASES = int(os.environ.get("CASES") or ("200000" if os.environ.get("TORTURE") else "8000"))
SEED = int(os.environ.get("SEED") or "1")
CONNECTIONS = 10
"""Of each host, one after the other: what was said on one is replayed on the next."""
UP = (
    (Kind.HEARTBEAT, Lane.CONTROL, FrameClass.EVIDENCE),
    (Kind.EVENT, Lane.EVIDENCE, FrameClass.EVIDENCE),
    (Kind.RECEIPT, Lane.EVIDENCE, FrameClass.EVIDENCE),
    (Kind.TELEMETRY, Lane.TELEMETRY, FrameClass.LIVE),
    (Kind.CHANNEL, Lane.CHANNEL, FrameClass.CHANNEL),
)
DOWN = (
    (Kind.HEARTBEAT_REPLY, Lane.CONTROL),
    (Kind.ACK, Lane.CONTROL),
    (Kind.COMMAND, Lane.EVIDENCE),
    (Kind.LEASES, Lane.CONTROL),
    (Kind.CHANNEL, Lane.CHANNEL),
)
MASTER = SigningKey.generate()


class Line:
    """The link of a Connection, in the Access's hands."""

    def __init__(self) -> None:
        self.sent: list[link_pb2.Frame] = []
        self.coming: asyncio.Queue[link_pb2.Frame] = asyncio.Queue()

    async def send(self, frame: link_pb2.Frame) -> None:
        self.sent.append(frame)

    async def receive(self) -> link_pb2.Frame:
        return await self.coming.get()

    async def close(self) -> None:
        """Nothing to close."""


class Nothing:
    """An outbox and a receiver that have and do nothing."""

    async def named(self) -> tuple[()]:
        return ()

    async def welcomed(self, *_: object) -> None:
        return None


@dataclass
class Ends:
    """Both ends of one connection of one host, and what each has said and taken."""

    route: HostRoute
    agent: Connection
    down: list[link_pb2.Frame]
    luck: random.Random
    said: dict[bool, list[Envelope]] = field(default_factory=lambda: {True: [], False: []})
    taken: dict[bool, dict[Lane, int]] = field(default_factory=lambda: {True: {}, False: {}})
    is_ended: bool = False

    def speak(self, is_up: bool) -> link_pb2.Frame:
        """One end says something; returns the frame as it leaves."""
        body = self.luck.randbytes(self.luck.randint(0, 80))
        if is_up:
            envelope = self.agent.session.envelope(*self.luck.choice(UP), body)
            self.said[True].append(envelope)
            return seal(envelope, self.agent._prover)
        kind, lane = self.luck.choice(DOWN)
        not_after_ns = SystemClock().wall_ns() + HOUR if kind in (Kind.COMMAND, Kind.LEASES) else 0
        self.route.send(kind, lane, body, not_after_ns)
        sequence = self.route.session._sent[lane]
        frame_class = FrameClass.CHANNEL if lane is Lane.CHANNEL else FrameClass.EVIDENCE
        host, boot = self.route.host_id, self.route.boot_id
        assert boot is not None
        self.said[False].append(Envelope(host, boot, 5, frame_class, lane, sequence, kind, body, not_after_ns))
        return self.down[-1]

    def deliver(self, is_up: bool, frame: link_pb2.Frame) -> bool:
        """Bring a frame to an end; returns whether it was taken. Asserts that what was taken was said, in its turn."""
        if self.is_ended:
            return False
        try:
            envelope = self.route.hear(frame) if is_up else self.agent._open(frame)
        except WindrowError as error:
            self.is_ended = isinstance(error, KeptBack)
            return False
        if envelope is None:
            return False
        assert envelope in self.said[is_up], f"taken, and never said: {envelope}"
        assert envelope.sequence > self.taken[is_up].get(envelope.lane, 0), f"taken again or late: {envelope}"
        self.taken[is_up][envelope.lane] = envelope.sequence
        return True


async def connect(signing: SigningKey, session: AgentSession, number: int, luck: random.Random) -> Ends:
    clock, line = SystemClock(), Line()
    down: list[link_pb2.Frame] = []
    none: Any = Nothing()
    agent = Connection(line, session, signing, MASTER.public, none, none, clock, SeededRng(SEED * 1000 + number))
    opening = Opening(session.host_id, 1, 1 << 62, "127.0.0.1:1")
    route = HostRoute(opening, "access_1", 5, number, lambda frame, _: down.append(frame))
    async with asyncio.TaskGroup() as tasks:
        greeting = tasks.create_task(agent._greet(Greeting("1", 1, "", simulated=False)))
        while not line.sent:
            await asyncio.sleep(0)
        hello = route.hear_hello(line.sent[0], signing.public)
        route.welcome(
            hello,
            line.sent[0],
            public_key=signing.public,
            signing=MASTER,
            exchange=ExchangeKey.generate(),
            settings=SETTINGS,
            committed={},
            telemetry_have=lambda boot: Intervals(),
            inventory_wanted=False,
            wall_ns=clock.wall_ns(),
        )
        line.coming.put_nowait(down[0])
        await greeting
    return Ends(route, agent, down, luck)


def rewritten(luck: random.Random, frame: link_pb2.Frame) -> link_pb2.Frame:
    """The frame with other words to the Access, or with other words under its proof."""
    made = link_pb2.Frame.FromString(frame.SerializeToString())
    match luck.randint(0, 3):
        case 0:
            setattr(made, "lane", luck.randint(0, 5))  # noqa: B010  # any number, known or not
        case 1:
            made.sequence += luck.randint(1, 1000)
        case 2:
            setattr(made, "frame_class", luck.randint(0, 4))  # noqa: B010
        case _:
            sealed = link_pb2.Sealed.FromString(made.sealed)
            signed = link_pb2.Envelope.FromString(sealed.signed)
            signed.sequence += 1
            made.sequence = signed.sequence
            sealed.signed = signed.SerializeToString()
            made.sealed = sealed.SerializeToString()
    return made


def forged(luck: random.Random, ends: Ends, is_up: bool) -> link_pb2.Frame:
    """Perfect in everything but its proof, which is of keys that the Access made."""
    last = ends.said[is_up][-1]
    prover = LinkProver(luck.randbytes(32), SigningKey.generate(), DOMAIN_UP if is_up else DOMAIN_DOWN)
    return seal(last._replace(sequence=last.sequence + 1, body=b"forged"), prover)


def attack(luck: random.Random, ends: Ends, is_up: bool, old: Sequence[link_pb2.Frame]) -> link_pb2.Frame | None:
    """One frame that the Access makes of what it has seen; None for noise that is no frame."""
    frame = luck.choice(old)
    match luck.randint(0, 4):
        case 0:
            return frame
        case 1:
            return rewritten(luck, frame)
        case 2:
            return forged(luck, ends, is_up) if luck.random() < 0.2 else rewritten(luck, old[-1])
        case _:
            try:
                return link_pb2.Frame.FromString(mutated(luck, [frame.SerializeToString()]))
            except DecodeError:
                return None


@pytest.mark.proves("an Access reads neither commands nor what goes through channels")
async def test_what_a_hostile_access_carries_it_cannot_read() -> None:
    luck = random.Random(SEED)
    session = AgentSession(HostId("host_1"), BootId(bytes(16)), 0)
    ends, hidden = await connect(SigningKey.generate(), session, 1, luck), 0
    for _ in range(2_000):
        is_up = luck.random() < 0.5
        frame = ends.speak(is_up)
        said = ends.said[is_up][-1]
        if len(said.body) >= 8:
            is_hidden = said.kind in (Kind.COMMAND, Kind.CHANNEL)
            assert (said.body in frame.SerializeToString()) is not is_hidden, said.kind.name
            hidden += is_hidden
        assert ends.deliver(is_up, frame)
    assert hidden > 100


@pytest.mark.timeout(900)
@pytest.mark.proves(f"a hostile Access: {CASES:,} forged, rewritten, replayed or reordered envelopes, none is taken")
async def test_what_a_hostile_access_makes_of_messages_is_never_taken() -> None:
    luck = random.Random(SEED)
    keys = [SigningKey.generate() for _ in range(2)]
    sessions = [AgentSession(HostId(f"host_{n}"), BootId(bytes([n]) * 16), 0) for n in range(2)]
    old: list[link_pb2.Frame] = []
    numbers = itertools.count(1)
    tried = taken = said = ended = 0
    for number in range(1, CONNECTIONS + 1):
        pairs = [await connect(k, s, next(numbers), luck) for k, s in zip(keys, sessions, strict=True)]
        while tried < CASES * number // CONNECTIONS:
            host, is_up = luck.randrange(len(pairs)), luck.random() < 0.5
            if pairs[host].is_ended:
                pairs[host], ended = await connect(keys[host], sessions[host], next(numbers), luck), ended + 1
            ends = pairs[host]
            frames = [ends.speak(is_up) for _ in range(luck.choice((1, 1, 1, 2, 3)))]
            old += frames
            if len(frames) > 1 and luck.random() < 0.5:
                frames.reverse()
            said += len(frames)
            for frame in frames:
                taken += ends.deliver(is_up, frame)
            for _ in range(luck.randint(2, 8)):
                tried += 1
                made = attack(luck, ends, is_up, old[-500:] if luck.random() < 0.5 else old)
                to_master = is_up if luck.random() < 0.9 else not is_up  # now and then to whoever said it
                assert made is None or not ends.deliver(to_master, made), f"taken: {made}"
    assert tried >= CASES
    assert said / 2 < taken <= said  # the others came out of turn, or were overtaken
    assert ended  # where that was in a channel


async def test_an_empty_letter_is_no_answer_of_the_master_and_one_that_somebody_made_up_is_dropped() -> None:
    luck = random.Random(SEED)
    ends = await connect(SigningKey.generate(), AgentSession(HostId("host_1"), BootId(bytes(16)), 0), 1, luck)
    assert ends.agent.canary()

    assert not ends.agent.on_letter(b"")
    assert ends.agent.dropped == 0

    ends.speak(is_up=False)
    assert not ends.agent.on_letter(forged(luck, ends, is_up=False).SerializeToString())
    assert ends.agent.dropped == 1
