"""Telemetry's service: one interface for the log, the live view, the watch leases and the view of history.

append ──▶ segment log ──fsync──▶ marks, ack ──▶ live view (latest sample)
                │
                └── followed by the views of history (DuckDB, a metrics store), each of which may be late or gone
                    without anybody else noticing; one of them answers the charts
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from windrow_master.loops import ends_alone
from windrow_master.telemetry.duckdb_view import HistoryView
from windrow_master.telemetry.follow import stored_since
from windrow_master.telemetry.live import LiveView
from windrow_master.telemetry.model import (
    GroupPoints,
    GroupQuery,
    LogRecord,
    SeriesPoints,
    SeriesQuery,
    Tiers,
    ViewHealth,
)
from windrow_master.telemetry.ports import Executor, HistoryPort
from windrow_master.telemetry.remote.service import RemoteView
from windrow_master.telemetry.segment_log import Forced, Retention, TelemetryLog
from windrow_master.telemetry.watch import WatchBook
from windrow_proto.errors import WindrowError
from windrow_proto.ids import BootId, HostId
from windrow_proto.intervals import Intervals
from windrow_proto.messages import Record
from windrow_proto.model import FrameClass, Kind
from windrow_proto.ports import Clock, Disk
from windrow_proto.units import SECOND, seconds

RETENTION_EVERY_NS: Final = 5 * SECOND
CATCH_UP_NS: Final = 2 * SECOND
"""For each view, at a stop."""
EVENTS_MAX: Final = 64
"""Waiting to be written; beyond it the oldest is in the log and in the figures only."""

Event = Callable[[str, str, Mapping[str, str]], Awaitable[None]]
"""Writes an event: kind, text, fields."""

log = structlog.get_logger(__name__)


async def _untold(kind: str, text: str, fields: Mapping[str, str]) -> None:
    """Nobody is there to write events."""


class TelemetryService:
    """Samples of all hosts. Used on one loop."""

    def __init__(
        self,
        disk: Disk,
        directory: Path,
        epoch: int,
        clock: Clock,
        *,
        log_executor: Executor,
        view_executor: Executor,
        fleet_size: Callable[[], int] = lambda: 0,
        retention: Retention | None = None,
        has_embedded: bool = True,
        remote: RemoteView | None = None,
        tiers: Tiers = dict,
        reserved: Disk | None = None,
        admit: Callable[[], None] = lambda: None,
        check_term: Callable[[], None] = lambda: None,
    ) -> None:
        """Open the log of this term below `directory`/log; blocking, for the start. The views open in `run`.

        has_embedded: whether DuckDB follows the log and answers the charts. remote: a metrics store that follows, too,
        and answers them where DuckDB does not. tiers: what charts of the fleet are grouped by. reserved, admit and
        check_term: as the log is given them.
        """
        log_directory = f"{directory}/log"
        self._clock = clock
        self._stored = partial(stored_since, disk, log_directory, epoch)
        self._reader = log_executor
        self._fleet_size = fleet_size
        self.log = TelemetryLog(
            disk,
            log_directory,
            epoch,
            clock,
            log_executor,
            retention,
            reserved=reserved,
            admit=admit,
            check_term=check_term,
        )
        self.live = LiveView()
        self.view = HistoryView(disk, log_directory, epoch, directory / "history", clock, view_executor, tiers)
        self.remote = remote
        embedded: tuple[HistoryPort, ...] = (self.view,) if has_embedded or remote is None else ()
        self.views: tuple[HistoryPort, ...] = (*embedded, *((remote,) if remote is not None else ()))
        self.charts: HistoryPort = self.views[0]
        self._watched = WatchBook()
        self._on_period: Callable[[HostId], None] = lambda host_id: None
        self._on_event: Event = _untold
        self._events: deque[tuple[str, str, Mapping[str, str]]] = deque(maxlen=EVENTS_MAX)
        self.log.on_forced(self._tell_forced)
        if remote is not None:
            remote.on_tell(self._tell)

    # --- what the trunk calls -------------------------------------------------------------------------------

    def have(self, host_id: HostId, boot: BootId) -> Intervals:
        """Return the durable records of one boot of a host."""
        return self.log.marks.have(host_id, boot)

    async def append(self, host_id: HostId, records: Sequence[tuple[Record, FrameClass]]) -> None:
        """Store records of one host; returns after the fsync, then they may be acknowledged."""
        await self.append_many([(host_id, one, frame_class) for one, frame_class in records])

    async def append_many(self, items: Sequence[tuple[HostId, Record, FrameClass]]) -> None:
        """The same for records of many hosts, which stand or fall together."""
        now_ns = self._clock.wall_ns()
        await self.log.append(
            [LogRecord(h, one.origin_boot, one.origin_sequence, one.kind, now_ns, one.body) for h, one, _ in items]
        )
        for host_id, one, frame_class in items:
            if frame_class is FrameClass.LIVE and one.kind is Kind.TELEMETRY:
                self.live.put(host_id, one.origin_boot, one.origin_sequence, one.body)

    def forgive(self, host_id: HostId, boot: BootId, ranges: tuple[tuple[int, int], ...]) -> None:
        """A gap told in the evidence lane: these will never come."""
        self.log.marks.add_ranges(host_id, boot, ranges, self._clock.wall_ns())

    def period_ns(self, host_id: HostId) -> int:
        """Return how often this host is to send a batch now."""
        return self._watched.period_ns(host_id, self._fleet_size(), self._clock.monotonic_ns())

    def on_period(self, listener: Callable[[HostId], None]) -> None:
        """Call `listener` on the loop when a host's period may have changed."""
        self._on_period = listener

    def on_event(self, listener: Event) -> None:
        """Have `listener` write what people should know of the log and the views."""
        self._on_event = listener

    def _tell(self, kind: str, text: str, fields: Mapping[str, str]) -> None:
        self._events.append((kind, text, fields))

    def _tell_forced(self, forced: Forced) -> None:
        text = f"The disk budget took {len(forced.segments)} segments of the telemetry log before their time; "
        text += f"{len(forced.unread)} of them are not in every view of history." if forced.unread else "all were read."
        fields = {"epoch": str(forced.epoch), "segments": str(len(forced.segments)), "unread": str(len(forced.unread))}
        self._tell("telemetry_log_forced", text, fields)

    # --- what people call -----------------------------------------------------------------------------------

    @asynccontextmanager
    async def watch(self, host_id: HostId) -> AsyncIterator[None]:
        """While this is open the host is asked for a batch each second."""
        self._watched.begin(host_id)
        self._on_period(host_id)
        try:
            yield
        finally:
            self._watched.end(host_id, self._clock.monotonic_ns())

    async def series(self, query: SeriesQuery) -> tuple[SeriesPoints, ...]:
        """Points of history. Raises Unavailable, soon, with the reason when the view that answers charts is gone."""
        return await self.charts.series(query)

    async def grouped(self, query: GroupQuery) -> GroupPoints:
        """Means by tier."""
        return await self.charts.grouped(query)

    async def workload_use(self, from_ms: int, to_ms: int) -> Mapping[str, float]:
        """How busy the GPUs of each workload were, from 0 to 1. Raises Unavailable."""
        return await self.charts.workload_use(from_ms, to_ms)

    async def stored_since(self, wall_ns: int | None) -> list[LogRecord]:
        """Return the marks of the log's files, read anew: of this term, from the segment on that was begun at this
        time or before; None: everything of all terms."""
        return await self._reader.read(partial(self._stored, wall_ns))

    def health(self) -> ViewHealth:
        """Return how the view that answers the charts is doing."""
        return self.charts.health()

    # --- life -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow the log, and delete what is old, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for view in self.views:
                tasks.create_task(view.run())
            tasks.create_task(self._run_retention())

    async def _run_retention(self) -> None:
        while True:
            await self._clock.sleep_ns(RETENTION_EVERY_NS)
            with ends_alone("telemetry_house"):
                for host_id in self._watched.lapsed(self._clock.monotonic_ns()):
                    self._on_period(host_id)
                self.log.run_retention([view.cursor for view in self.views])
                await self.tell_events()

    async def tell_events(self) -> None:
        """Write the events that wait; what cannot be written now waits on."""
        while self._events:
            try:
                await self._on_event(*self._events[0])
            except WindrowError as error:
                log.warning("event_not_written", kind=self._events[0][0], error=str(error))
                return
            except Exception:  # the top level of one event
                log.exception("event_crashed", kind=self._events[0][0])
            self._events.popleft()

    async def catch_up(self) -> None:
        """Let the views take in the end of the log, before a stop. What one cannot take in soon, it takes in after the
        next start."""
        for view in self.views:
            try:
                async with asyncio.timeout(seconds(CATCH_UP_NS)):
                    await view.catch_up()
            except Exception as error:  # whatever a view suffers, the stop goes on
                log.warning("history_left_behind", error=str(error)[:300])

    def close(self) -> None:
        """Let go of the files; call after `run` has ended."""
        for view in self.views:
            view.close()
        if self.view not in self.views:
            self.view.close()
        self.log.close()
