"""Sends everything that must arrive: each message is stored first, then offered to its lane's window until the Master
has it."""

import asyncio
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

import structlog

from windrow_agent.link.spool import LANES, Spool
from windrow_agent.threads import Runner
from windrow_proto.errors import StorageFailed
from windrow_proto.messages import Ack, LaneMarks, Record, Settings
from windrow_proto.model import FrameClass, Kind, Lane
from windrow_proto.ports import Clock
from windrow_proto.windows import OVERDUE_NS, RecordKey, SendWindow

log = structlog.get_logger()
T = TypeVar("T")

BACKLOG_BATCH: Final = 32
"""Records taken at a time: evidence comes between two batches."""


class Outbox:
    """The spool and the windows of one host; every spool call is made on the runner's one thread."""

    def __init__(self, spool: Spool, runner: Runner, clock: Clock) -> None:
        self._spool, self._runner, self._clock = spool, runner, clock
        self._windows = {lane: SendWindow(lane, 0) for lane in LANES}
        self._unoffered = dict.fromkeys(LANES, True)
        self.wake = asyncio.Event()
        self.spool_bytes = spool.size_bytes
        self.lost_telemetry = 0

    async def put(self, lane: Lane, kind: Kind, body: bytes) -> RecordKey:
        """Store one message and have it sent. Returns its key when it is on the disk; raises StorageFailed if it cannot
        be."""
        return await self.put_all(lane, [(kind, body)])

    async def put_all(self, lane: Lane, messages: Sequence[tuple[Kind, bytes]]) -> RecordKey:
        """The same for several, at least one, with one fsync; the key is the last one's."""
        keys = await self._call(lambda: self._spool.append(lane, messages))
        self._offer(lane, keys, is_live=True)
        return keys[-1]

    def is_on_its_way(self, lane: Lane, key: RecordKey) -> bool:
        """True if this message is about to be sent, or was sent and is not acknowledged yet."""
        return self._windows[lane].holds(key)

    async def put_telemetry(self, body: bytes) -> None:
        """Store a batch; a disk that has no space for it costs the batch, and that is counted, not the agent."""
        try:
            await self.put(Lane.TELEMETRY, Kind.TELEMETRY, body)
        except StorageFailed as error:
            self.lost_telemetry += 1
            log.warning("telemetry_not_spooled", detail=error.detail, lost=self.lost_telemetry)

    async def named(self) -> tuple[LaneMarks, ...]:
        """The marks of the spool, for a hello."""
        return await self._runner.call(self._spool.marks)

    async def welcomed(self, named: Iterable[LaneMarks], have: tuple[LaneMarks, ...], settings: Settings) -> None:
        """A connection is open: drop what the Master has, offer everything else."""
        named = tuple(named)
        for window in self._windows.values():
            window.on_ack(Ack(have, (), 0))
        await self._call(lambda: self._spool.reconcile(named, have))
        self.set_credits(settings)
        self._unoffered = dict.fromkeys(LANES, True)
        self.wake.set()

    async def unacknowledged(self) -> tuple[LaneMarks, ...]:
        """The marks of records that the Master may lack, for a resume: mostly none, and no disk is asked then."""
        return await self.named() if any(map(self._is_waiting, LANES)) else ()

    def resumed(self, settings: Settings) -> None:
        """Another connection takes the place of one that was open: offer everything that is not acknowledged."""
        self.set_credits(settings)
        self._unoffered = {lane: self._is_waiting(lane) for lane in LANES}

    def set_credits(self, settings: Settings) -> None:
        """Sets the number of records that may be in flight."""
        self._windows[Lane.EVIDENCE].credits = settings.evidence_credits
        self._windows[Lane.TELEMETRY].credits = settings.telemetry_credits
        self.wake.set()

    async def take(self, lane: Lane, limit: int) -> list[tuple[Record, FrameClass]]:
        """Records of a lane that may go now, evidence in the order it was born in."""
        window = self._windows[lane]
        if self._unoffered[lane] and window.pending < BACKLOG_BATCH:
            await self._offer_waiting(lane)
        ready = window.take(limit, self._clock.monotonic_ns())
        if not ready:
            return []
        found = await self._runner.call(lambda: [(self._spool.record(lane, one.key), one) for one in ready])
        for record, one in found:
            if record is None:
                window.forget(one.key)  # gone since it was offered; the Master asks and is told of the gap
        return [(record, one.frame_class) for record, one in found if record is not None]

    @property
    def is_evidence_waiting(self) -> bool:
        """True if the Master has not taken everything that was offered."""
        return self._is_waiting(Lane.EVIDENCE)

    def _is_waiting(self, lane: Lane) -> bool:
        window = self._windows[lane]
        return window.pending + window.in_flight > 0 or self._unoffered[lane]

    def may_go(self, lane: Lane) -> bool:
        """True if `take` might find something."""
        window = self._windows[lane]
        return (window.pending > 0 or self._unoffered[lane]) and window.in_flight < window.credits

    async def on_ack(self, ack: Ack) -> None:
        """Drop what the Master holds; bring back what it misses."""
        for lane, window in self._windows.items():
            keys = window.on_ack(ack)
            if keys:
                await self._call(functools.partial(self._spool.acknowledged, lane, keys))
        if ack.missing:
            keys = await self._call(lambda: self._spool.asked_again(ack.missing))
            lanes = {marks.lane for marks in ack.missing}
            for lane in lanes & set(LANES):
                self._unoffered[lane] = self._unoffered[lane] or bool(keys)
        if any(map(self.may_go, LANES)):
            self.wake.set()

    def on_disconnect(self) -> None:
        """Everything in flight waits again."""
        for window in self._windows.values():
            window.on_disconnect()
            window.credits = 0

    def send_overdue(self) -> int:
        """Let what was never acknowledged go again. Returns when to call it next, on the monotonic clock: what is sent
        from now on is not overdue before."""
        now_ns = self._clock.monotonic_ns()
        if sum(window.overdue(now_ns) for window in self._windows.values()):
            self.wake.set()
        due = (window.overdue_at_ns() for window in self._windows.values())
        return min((at_ns for at_ns in due if at_ns is not None), default=now_ns + OVERDUE_NS)

    async def close(self) -> None:
        """Sync and let go of the files."""
        await self._call(self._spool.close)

    async def _call(self, work: Callable[[], T]) -> T:
        """Make one call on the spool's thread that may change its size; nothing of it is read elsewhere."""

        def both() -> tuple[T, int]:
            return work(), self._spool.size_bytes

        answer, self.spool_bytes = await self._runner.call(both)
        return answer

    async def _offer_waiting(self, lane: Lane) -> None:
        waiting = await self._call(lambda: self._spool.waiting(lane))
        self._unoffered[lane] = False
        self._offer(lane, waiting, is_live=False)

    def _offer(self, lane: Lane, keys: Sequence[RecordKey], is_live: bool) -> None:
        window = self._windows[lane]
        for key in keys:
            if not window.offer(key, is_live):
                self._unoffered[lane] = True  # full: the rest stays in the spool until there is space
                break
        self.wake.set()
