"""The observations of an onlooker on the wire and at the hosts: the judges' own record, apart from what the shells
keep.

Taps decode the frames between agents and Accesses by themselves; a host's diary says what really ran there, by the
machine's own clock. Everything seen goes into the trace, whose hash is the same for the same seed.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from tests.simulation.hush import MARK
from tests.simulation.order import Order
from tests.simulation.proofs import body_of
from windrow_agent.runtimes.port import Progress, Run
from windrow_agent.runtimes.simulated import SimulatedMachine, SimulatedRuntime
from windrow_master.identity.model import RenewRequest
from windrow_proto.intervals import Intervals
from windrow_proto.link_memory import MemoryDialer
from windrow_proto.messages import LaneMarks
from windrow_proto.model import CommandKind, CommandPhase, Kind, Lane, Receipt, SlotGrant, WorkloadSpec
from windrow_proto.ports import BandwidthLink, DialledLink, FrameLink, PeerFacts, PingAnswer, WarmLink
from windrow_proto.v1 import link_pb2
from windrow_proto.wire import decode_record
from windrow_proto.wire_command import decode_command, decode_leases, decode_status
from windrow_proto.wire_host import decode_receipt
from windrow_proto.wire_link import decode_ack, decode_gap, decode_welcome

Origin = tuple[str, Lane, bytes]
"""Host, lane and boot that a sequence counts in."""


_KINDS: Final = {int(kind): kind for kind in Kind}
_LANES: Final = {int(lane): lane for lane in Lane}
_NAMES: Final = {kind: kind.name for kind in Kind}
_MARK: Final = MARK.encode()
"""Looked up for each frame: asking the enumeration costs ten times as much."""


class Read:
    """The parts that an onlooker reads of a frame: an onlooker has no keys, and believes every proof."""

    __slots__ = ("body", "boot_id", "epoch", "kind", "lane")

    def __init__(self, frame: link_pb2.Frame) -> None:
        inner = link_pb2.Envelope.FromString(link_pb2.Sealed.FromString(frame.sealed).signed)
        self.kind, self.lane = _KINDS[inner.kind], _LANES[inner.lane]
        self.epoch, self.boot_id, self.body = inner.epoch, inner.boot_id, body_of(inner)


class Trace:
    """The ordered list of what happened, as a running hash; `kept` has the last lines for people."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._hash = hashlib.sha256()
        self.look: Callable[[int, bool], int] = lambda now_ns, is_fault: 1 << 62
        """Asked at times of its own choice, and at each fault, before a line; returns the next."""
        self._look_ns = 0
        self.count = 0
        self.kept: list[str] = []
        self.keeps_all = False

    def add(self, what: str) -> None:
        """One thing happened now."""
        now_ns = self._now_ns()
        if now_ns >= self._look_ns or what.startswith("fault "):
            self._look_ns = self.look(now_ns, what.startswith("fault "))
        line = f"{now_ns} {what}"
        self._hash.update(line.encode() + b"\n")
        self.count += 1
        self.kept.append(line)
        if len(self.kept) > 4_000 and not self.keeps_all:
            del self.kept[:2_000]

    @property
    def hash(self) -> str:
        """Of everything so far."""
        return self._hash.hexdigest()


@dataclass
class Life:
    """One run of one workload on one machine. ended_ns None: nobody ended it; was_cut: the machine lost its power."""

    workload_id: str
    slots: tuple[SlotGrant, ...]
    started_ns: int
    planned_end_ns: int | None
    ended_ns: int | None = None
    was_cut: bool = False

    def end_ns(self, now_ns: int) -> int:
        """When it ended, or now."""
        ends = [at for at in (self.ended_ns, self.planned_end_ns) if at is not None and at <= now_ns]
        return min(ends, default=now_ns)


@dataclass(frozen=True, slots=True)
class Term:
    """The time that a host was told at one moment for a workload to run from then on."""

    at_ns: int
    lease_ns: int
    paid_ns: int

    @property
    def until_ns(self) -> int:
        """Until when, at the latest."""
        return self.at_ns + min(self.lease_ns, self.paid_ns)


@dataclass(frozen=True, slots=True)
class Granted:
    """A certificate that the Master gave: to which machine, who asked with which generation, and for which request."""

    host_id: str
    name: str
    asked: int
    generation: int
    request: bytes


@dataclass(frozen=True, slots=True)
class Heard:
    """The Master answered a heartbeat; once for each stretch of one connection. connection: counted in this history."""

    at_ns: int
    host_id: str
    name: str
    epoch: int
    boot: bytes
    generation: int
    connection: int


@dataclass(frozen=True, slots=True)
class Served:
    """The Master has acknowledged samples. sent_ns: when the newest of them was sent first; connection: as above."""

    at_ns: int
    connection: int
    sent_ns: int


@dataclass
class Witness:
    """Everything seen in one history. Times are those of the loop, which no machine's clock can shift."""

    trace: Trace
    now_ns: Callable[[], int]
    sent: dict[tuple[str, Lane, bytes, int], bytes] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    acked: dict[Origin, Intervals] = field(default_factory=lambda: defaultdict(Intervals))
    gaps: dict[Origin, Intervals] = field(default_factory=lambda: defaultdict(Intervals))
    receipts: dict[str, list[Receipt]] = field(default_factory=lambda: defaultdict(list))
    told: dict[str, list[tuple[int, str, CommandPhase, str]]] = field(default_factory=lambda: defaultdict(list))
    commands: dict[str, tuple[CommandKind, str]] = field(default_factory=dict)
    deletes_told: dict[str, int] = field(default_factory=dict)
    ran_told: dict[str, int] = field(default_factory=dict)
    lives: dict[str, list[Life]] = field(default_factory=lambda: defaultdict(list))
    receipt_of: dict[tuple[str, bytes, int], Receipt] = field(default_factory=dict)
    sent_ns: dict[tuple[str, Lane, bytes, int], int] = field(default_factory=dict)
    terms: dict[str, list[Term]] = field(default_factory=lambda: defaultdict(list))
    up_times: dict[str, list[tuple[int, int | None]]] = field(default_factory=lambda: defaultdict(list))
    cuts: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    removed: dict[str, Any] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    epochs_fell: list[str] = field(default_factory=list)
    grants: list[Granted] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    connections: int = 0
    frames: int = 0
    served: dict[str, list[Served]] = field(default_factory=lambda: defaultdict(list))
    delivered_ns: dict[str, int] = field(default_factory=dict)
    spoken: list[tuple[int, str, str, int, str]] = field(default_factory=list)
    """The messages to hosts beside answers to heartbeats: when, host, its name, its generation, the kind."""
    in_the_open: list[str] = field(default_factory=list)
    order: Order = field(default_factory=Order)

    def agent_started(self, host_id: str) -> None:
        """An agent's process has begun."""
        self.up_times[host_id].append((self.now_ns(), None))

    def agent_ended(self, host_id: str, was_cut: bool) -> None:
        """It has ended; was_cut: with its machine."""
        began_ns, _ = self.up_times[host_id].pop()
        self.up_times[host_id].append((began_ns, self.now_ns()))
        if was_cut:
            self.cuts[host_id].append(self.now_ns())

    def granted(self, host: str, asked: RenewRequest, generation: int) -> None:
        """The Master gave a certificate."""
        self.grants.append(Granted(asked.id, host, asked.generation, generation, asked.tls_csr_pem))
        self.trace.add(f"{host} renews {asked.generation} {generation}")

    def up(self, host: str, host_id: str, frame: link_pb2.Frame) -> None:
        """An agent has sent a frame."""
        self.frames += 1
        envelope = Read(frame)
        self.trace.add(f"{host} up {_NAMES[envelope.kind]} {frame.frame_class} {frame.sequence} {len(frame.sealed)}")
        if envelope.kind is not Kind.HELLO:  # a hello serves nobody yet
            if envelope.epoch < self.epochs.get(host, 0):
                self.epochs_fell.append(f"{host} served epoch {envelope.epoch} after {self.epochs[host]}")
            self.epochs[host] = max(envelope.epoch, self.epochs.get(host, 0))
        if envelope.lane not in (Lane.EVIDENCE, Lane.TELEMETRY):
            return
        if _MARK in frame.sealed:
            self.in_the_open.append(f"{host} up {_NAMES[envelope.kind]}")
        record = decode_record(envelope.body)
        key = (host_id, envelope.lane, bytes(record.origin_boot), record.origin_sequence)
        digest = hashlib.sha256(bytes([record.kind]) + record.body).digest()
        if self.sent.setdefault(key, digest) != digest:
            self.changed.append(
                f"{host} sent sequence {record.origin_sequence} of {envelope.lane.name} in two versions"
            )
        self.sent_ns.setdefault(key, self.now_ns())
        if record.kind is Kind.RECEIPT:
            self.receipt_of[host_id, key[2], key[3]] = decode_receipt(record.body)
        self._note(host_id, record.kind, record.body)

    def _note(self, host_id: str, kind: Kind, body: bytes) -> None:
        if kind is Kind.GAP:
            gap = decode_gap(body)
            origin = (host_id, gap.lane, bytes(gap.origin_boot))
            self.gaps[origin] = self.gaps[origin].union(Intervals.of(gap.ranges))
        elif kind is Kind.RECEIPT:
            receipt = decode_receipt(body)
            self.receipts[receipt.workload_id].append(receipt)
        elif kind is Kind.COMMAND_STATUS:
            status = decode_status(body)
            self.told[status.command_id].append((self.now_ns(), host_id, status.phase, status.error_code))
            known, workload_id = self.commands.get(status.command_id, (CommandKind.UNSPECIFIED, ""))
            has_it = status.phase not in (CommandPhase.NEVER_SEEN, CommandPhase.REFUSED, CommandPhase.FAILED)
            if known is CommandKind.DELETE and has_it:
                self.deletes_told.setdefault(workload_id, self.now_ns())
            if known is CommandKind.CREATE and status.phase is CommandPhase.SUCCEEDED:
                self.ran_told.setdefault(workload_id, self.now_ns())

    def down(self, host: str, host_id: str, frame: link_pb2.Frame, generation: int, connection: int) -> None:
        """An agent has received a frame, on a connection made with this generation of its certificate."""
        self.frames += 1
        envelope = Read(frame)
        self.trace.add(f"{host} down {_NAMES[envelope.kind]} {frame.frame_class} {frame.sequence} {len(frame.sealed)}")
        if envelope.kind is Kind.HEARTBEAT_REPLY:
            heard = (host_id, host, envelope.epoch, envelope.boot_id, generation, connection)
            self.heard.append(Heard(self.now_ns(), *heard))
            return
        if _MARK in frame.sealed:
            self.in_the_open.append(f"{host} down {_NAMES[envelope.kind]}")
        self.spoken.append((self.now_ns(), host_id, host, generation, _NAMES[envelope.kind]))
        if envelope.kind is Kind.ACK:
            have = decode_ack(envelope.body).have
            self._acked(host_id, have)
            self._served(host_id, have, connection)
        elif envelope.kind is Kind.WELCOME:
            self._acked(host_id, decode_welcome(envelope.body).have)
        elif envelope.kind is Kind.COMMAND:
            command = decode_command(envelope.body)
            about = command.create or command.delete
            self.delivered_ns.setdefault(command.command_id, self.now_ns())
            self.commands[command.command_id] = (command.kind, about.workload_id if about is not None else "")
            if command.create is not None:
                spec = command.create
                self.terms[spec.workload_id].append(Term(self.now_ns(), spec.lease_ns, spec.paid_ns))
        elif envelope.kind is Kind.LEASES:
            for renewal in decode_leases(envelope.body):
                self.terms[renewal.workload_id].append(Term(self.now_ns(), renewal.lease_ns, renewal.paid_ns))

    def _served(self, host_id: str, have: tuple[LaneMarks, ...], connection: int) -> None:
        for marks in have:
            if marks.lane is Lane.TELEMETRY and marks.ranges:
                key = (host_id, marks.lane, bytes(marks.origin_boot), marks.ranges[-1][1])
                self.served[host_id].append(Served(self.now_ns(), connection, self.sent_ns.get(key, 0)))

    def _acked(self, host_id: str, have: tuple[LaneMarks, ...]) -> None:
        for marks in have:
            origin = (host_id, marks.lane, bytes(marks.origin_boot))
            self.acked[origin] = self.acked[origin].union(Intervals(marks.ranges))


class TappedLink:
    """A frame link that its agent's onlooker reads along."""

    def __init__(self, link: DialledLink, host: str, host_id: str, generation: int, witness: Witness) -> None:
        self._link, self._host, self._host_id, self._witness = link, host, host_id, witness
        witness.connections += 1
        self._generation, self._connection = generation, witness.connections

    @property
    def is_closed(self) -> bool:
        """As it is."""
        return self._link.is_closed

    async def send(self, frame: link_pb2.Frame) -> None:
        """Send it, and say that it was sent."""
        self._witness.order.said(self._host, self, frame)
        for one in (frame, *frame.more):
            self._witness.up(self._host, self._host_id, one)
        await self._link.send(frame)

    async def receive(self) -> link_pb2.Frame:
        """Receive it, and say that it was received."""
        frame = await self._link.receive()
        self._witness.down(self._host, self._host_id, frame, self._generation, self._connection)
        return frame

    async def close(self) -> None:
        """As it is."""
        await self._link.close()


class TappedDialer:
    """A dialer whose links are read along; each connection shows the certificate that the host has by then."""

    def __init__(
        self, dial: Callable[[PeerFacts], MemoryDialer], peer: Callable[[], PeerFacts], host: str, witness: Witness
    ) -> None:
        self._dial, self._peer, self._host, self._witness = dial, peer, host, witness
        self._dialers: dict[int, MemoryDialer] = {}

    def _dialer(self) -> MemoryDialer:
        peer = self._peer()
        if peer.generation not in self._dialers:
            self._dialers[peer.generation] = self._dial(peer)
        return self._dialers[peer.generation]

    async def connect(self, address: str, deadline_ns: int) -> FrameLink:
        """Connect, with a tap."""
        peer = self._peer()
        return self._tap(peer, await self._dialer().connect(address, deadline_ns))

    async def ping(self, address: str, deadline_ns: int) -> PingAnswer:
        """As it is."""
        return await self._dialer().ping(address, deadline_ns)

    async def warm(self, address: str, deadline_ns: int) -> WarmLink:
        """As it is, with a tap on what is sent there later."""
        peer = self._peer()
        return TappedWarmLink(await self._dialer().warm(address, deadline_ns), partial(self._tap, peer))

    def _tap(self, peer: PeerFacts, link: DialledLink) -> DialledLink:
        return TappedLink(link, self._host, peer.subject_id, peer.generation, self._witness)

    async def bandwidth(self, address: str, deadline_ns: int) -> BandwidthLink:
        """As it is: random bytes."""
        return await self._dialer().bandwidth(address, deadline_ns)

    async def close(self) -> None:
        """As it is."""
        for dialer in self._dialers.values():
            await dialer.close()


class TappedWarmLink:
    """A connection kept warm whose frames are read along once there are any."""

    def __init__(self, link: WarmLink, tap: Callable[[DialledLink], DialledLink]) -> None:
        self._link, self._tap = link, tap

    async def ping(self, deadline_ns: int, letter: bytes = b"") -> PingAnswer:
        """As it is."""
        return await self._link.ping(deadline_ns, letter)

    async def connect(self, deadline_ns: int) -> DialledLink:
        """Connect, with a tap."""
        return self._tap(await self._link.connect(deadline_ns))

    async def close(self) -> None:
        """As it is."""
        await self._link.close()


class DiaryRuntime(SimulatedRuntime):
    """The simulated runtime with a diary of what ran, and with preparation that takes its time.

    prepare_ns: how long the next preparation takes.
    """

    def __init__(
        self, machine: SimulatedMachine, host_id: str, witness: Witness, prepare_ns: Callable[[], int]
    ) -> None:
        super().__init__(machine, {})
        self._host_id, self._witness, self._prepare_ns = host_id, witness, prepare_ns

    async def prepare(self, spec: WorkloadSpec, progress: Progress) -> None:
        """As it is, later."""
        await self._machine.clock.sleep_ns(self._prepare_ns())
        await super().prepare(spec, progress)

    async def start(self, workload_id: str) -> Run:
        """Start it, and write down when it really started."""
        before = self._machine.starts
        run = await super().start(workload_id)  # type: ignore[arg-type]
        if self._machine.starts != before:
            box = self._machine.boxes[workload_id]  # type: ignore[index]
            now_ns = self._witness.now_ns()
            planned = None if box.ends_ns is None or box.started_ns is None else now_ns + box.ends_ns - box.started_ns
            self._witness.lives[self._host_id].append(Life(workload_id, box.spec.slots, now_ns, planned))
            self._witness.trace.add(f"{self._host_id[-6:]} runs {workload_id}")
        return run

    async def stop(self, workload_id: str, grace_ns: int) -> None:
        """Stop it, and write down when."""
        await super().stop(workload_id, grace_ns)  # type: ignore[arg-type]
        self._over(workload_id)

    async def remove(self, workload_id: str) -> None:
        """Remove it, and write down when."""
        box = self._machine.boxes.get(workload_id)  # type: ignore[call-overload]
        if box is not None:
            self._witness.removed[workload_id] = box
        await super().remove(workload_id)  # type: ignore[arg-type]
        self._over(workload_id)

    def _over(self, workload_id: str) -> None:
        for life in self._witness.lives[self._host_id]:
            if life.workload_id == workload_id and life.ended_ns is None:
                life.ended_ns = self._witness.now_ns()
