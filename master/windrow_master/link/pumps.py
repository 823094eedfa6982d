"""Writes records from the routes to the disk and sends acks back: one commit for evidence of many hosts, one append for
samples.

Each pump holds at most so many records. What does not fit is not accepted: the agent keeps it and sends it again.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from windrow_master.fleet.intake import EvidenceItem
from windrow_master.fleet.service import FleetService
from windrow_master.link.route import HostRoute
from windrow_master.loops import ends_alone
from windrow_master.telemetry.service import TelemetryService
from windrow_proto.errors import WindrowError
from windrow_proto.ids import BootId
from windrow_proto.messages import Record
from windrow_proto.model import FrameClass, Kind, Lane
from windrow_proto.units import MIB
from windrow_proto.wire_link import decode_gap

EVIDENCE_WAITING_MAX: Final = 16_384
EVIDENCE_AT_ONCE: Final = 512
TELEMETRY_WAITING_MAX: Final = 32_768
TELEMETRY_AT_ONCE: Final = 1_024
TELEMETRY_ACK_EVERY_S: Final = 2.5
"""A host whose backlog comes in gets no more acks than this for its samples: each costs more than a batch, and the
credits reach for twenty minutes of them. Who sends a batch now and then is answered at once; a backlog's first batch is
not, since the rest of it is about to come."""
FAILURE_PAUSE_S: Final = 0.5
"""After a failed write, before the next: a full disk does not get better by being asked a thousand times a second."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Waiting:
    """One accepted record that is not durable yet: evidence with the bytes that prove it, samples with their class."""

    route: HostRoute
    record: Record
    sealed: bytes = b""
    frame_class: FrameClass = FrameClass.EVIDENCE


class Pump:
    """Takes what waits in one lane, stores it, and lets the routes acknowledge it."""

    def __init__(
        self,
        lane: Lane,
        store: Callable[[Sequence[Waiting]], Awaitable[None]],
        *,
        waiting_max: int,
        at_once: int,
        bytes_at_once: int,
        ack_every_s: float = 0.0,
    ) -> None:
        """store: makes records durable, all or none, or raises a WindrowError. ack_every_s: between two acks to one
        host at least this long passes; the second then tells of all that came meanwhile."""
        self._lane, self._store = lane, store
        self._waiting_max, self._at_once, self._bytes_at_once = waiting_max, at_once, bytes_at_once
        self._waiting: deque[Waiting] = deque()
        self._wake = asyncio.Event()
        self._ack_every_s = ack_every_s
        self._acked_late: dict[int, HostRoute] = {}

    def offer(self, waiting: Waiting) -> None:
        """Have an accepted record stored; one that does not fit is given back to its route as if it had not come."""
        if len(self._waiting) >= self._waiting_max:
            self._abort([waiting])
            waiting.route.refuse("queue_full")
            return
        self._waiting.append(waiting)
        self._wake.set()

    async def run(self) -> None:
        """Pump until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                taken = self._take()
                with ends_alone("storing", lane=self._lane.name.lower(), records=len(taken)):
                    await self._store(taken)
                    self._acknowledge(taken)
                    continue
                self._abort(taken)
                await asyncio.sleep(FAILURE_PAUSE_S)

    def _take(self) -> list[Waiting]:
        taken: list[Waiting] = []
        size = 0
        while self._waiting and len(taken) < self._at_once and size < self._bytes_at_once:
            one = self._waiting.popleft()
            size += len(one.record.body)
            taken.append(one)
        return taken

    def _abort(self, taken: Sequence[Waiting]) -> None:
        for one in taken:
            one.route.abort(self._lane, one.record.origin_boot, (one.record.origin_sequence,))

    def _acknowledge(self, taken: Sequence[Waiting]) -> None:
        routes: dict[int, HostRoute] = {}
        stored: dict[tuple[int, BootId], list[int]] = {}
        for one in taken:
            place = id(one.route)
            routes[place] = one.route
            stored.setdefault((place, one.record.origin_boot), []).append(one.record.origin_sequence)
        for (place, boot), sequences in stored.items():
            routes[place].commit(self._lane, boot, sequences)
        for one in taken:
            if one.record.kind is Kind.GAP:
                _fill(one)
        live = {id(one.route) for one in taken if one.frame_class is not FrameClass.BACKLOG}
        self._flush(route for place, route in routes.items() if not self._is_late(route, is_live=place in live))

    def _is_late(self, route: HostRoute, *, is_live: bool) -> bool:
        """Return whether this route brings a backlog or has been acked a moment ago; then it is acked with the
        others like it, soon."""
        if not self._ack_every_s:
            return False
        loop = asyncio.get_running_loop()
        if is_live and loop.time() - route.samples_acked_s >= self._ack_every_s:
            route.samples_acked_s = loop.time()
            return False
        if not self._acked_late:
            loop.call_later(self._ack_every_s, self._flush_late)
        self._acked_late[id(route)] = route
        return True

    def _flush_late(self) -> None:
        late, self._acked_late = self._acked_late, {}
        now = asyncio.get_running_loop().time()
        for route in late.values():
            route.samples_acked_s = now
        self._flush(late.values())

    @staticmethod
    def _flush(routes: Iterable[HostRoute]) -> None:
        for route in routes:
            try:
                route.flush_acks()
            except WindrowError:
                pass  # the route has ended; the next hello is told what is had


def _fill(one: Waiting) -> None:
    """Count the records that a stored gap names as received."""
    try:
        gap = decode_gap(one.record.body)
        one.route.fill(gap.lane, gap.origin_boot, gap.ranges)
    except WindrowError:
        pass  # it was put aside as a dead letter


def evidence_pump(fleet: FleetService) -> Pump:
    """One commit for the evidence of many hosts."""

    async def store(taken: Sequence[Waiting]) -> None:
        await fleet.take([EvidenceItem(one.route.host_id, one.record, one.sealed) for one in taken])

    return Pump(Lane.EVIDENCE, store, waiting_max=EVIDENCE_WAITING_MAX, at_once=EVIDENCE_AT_ONCE, bytes_at_once=4 * MIB)


def telemetry_pump(telemetry: TelemetryService) -> Pump:
    """One append for the samples of many hosts."""

    async def store(taken: Sequence[Waiting]) -> None:
        await telemetry.append_many([(one.route.host_id, one.record, one.frame_class) for one in taken])

    return Pump(
        Lane.TELEMETRY,
        store,
        waiting_max=TELEMETRY_WAITING_MAX,
        at_once=TELEMETRY_AT_ONCE,
        bytes_at_once=MIB,
        ack_every_s=TELEMETRY_ACK_EVERY_S,
    )
