"""Appends the samples that hosts sent to the term's segment log, fsyncs many appends at once, and answers only after
the fsync.

append(records) ──▶ pending ──▶ one write, one fsync (own thread) ──▶ marks grow ──▶ futures: may be acknowledged
                    (bounded)    fails: nothing of it is acknowledged; the next write begins a new segment

 <data>/log/<epoch>/NNNNNNNNNNNN.seg   one directory per term, older ones stay readable
 <data>/log/marks.json                 checkpoint of the marks; what the log holds behind it is read again at a start
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from windrow_master.telemetry import record as records
from windrow_master.telemetry.follow import terms
from windrow_master.telemetry.marks import MarkBook
from windrow_master.telemetry.model import LogPosition, LogRecord
from windrow_master.telemetry.ports import Executor
from windrow_proto.errors import DeadlineExceeded, InvalidInput, StorageFailed, Unavailable, WindrowError
from windrow_proto.ids import BootId, HostId
from windrow_proto.messages import Gap
from windrow_proto.model import Kind, Lane
from windrow_proto.ports import Clock, Disk
from windrow_proto.segments import (
    Position,
    SegmentLog,
    created_wall_ns,
    read_log,
    segment_numbers,
    segment_path,
)
from windrow_proto.units import DAY, HOUR, MIB, SECOND, seconds
from windrow_proto.wire_link import decode_gap, encode_gap

PENDING_BYTES_MAX: Final = 64 * MIB
"""Waiting for the disk; beyond it appends are refused, credits run dry and agents spool."""
GROUP_BYTES_MAX: Final = 2 * MIB
"""Of one write and fsync: below a segment's size, and a fraction of a second on a slow disk."""
APPEND_DEADLINE_NS: Final = 30 * SECOND
CHECKPOINT_EVERY_NS: Final = 300 * SECOND
KEEP_NS: Final = 24 * HOUR
"""A segment goes when it is this old and every view has passed it."""
BYTES_MAX: Final = 64 << 30
"""Of all segments together; beyond it the oldest go early, read or not, and what was not read is told as a gap."""
OWN_NAME: Final = HostId("master")
"""The name under which the log holds the Master's own records: gaps that retention made."""
MARKS_KEEP_NS: Final = 30 * DAY
_CHECKPOINT: Final = "marks.json"

log = structlog.get_logger(__name__)

Key = tuple[HostId, BootId, int]


def _key(one: LogRecord) -> Key:
    """By what a record is known, however often it comes."""
    return one.host_id, one.origin_boot, one.origin_sequence


@dataclass(slots=True)
class _Job:
    """Records of one host that stand or fall together."""

    batch: tuple[LogRecord, ...]
    payloads: list[bytes]
    future: "asyncio.Future[None]"
    error: WindrowError | None = None


@dataclass(slots=True)
class LogFigures:
    """The counters of the log."""

    records: int = 0
    bytes: int = 0
    fsyncs: int = 0
    failed_fsyncs: int = 0
    dropped_segments: int = 0
    forced_segments: int = 0
    unread_segments: int = 0
    kept_bytes: int = 0
    damage: int = 0


@dataclass(frozen=True, slots=True)
class Retention:
    """The time and the size up to which samples are kept."""

    keep_ns: int = KEEP_NS
    bytes_max: int = BYTES_MAX


@dataclass(frozen=True, slots=True)
class Forced:
    """Segments of one term that the disk budget took early. unread: those which some view had not read."""

    epoch: int
    segments: tuple[int, ...]
    unread: tuple[int, ...]


class TelemetryLog:
    """The log of this term and the marks over all terms. Used on the loop; the disk is touched by the executor only."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        epoch: int,
        clock: Clock,
        executor: Executor,
        retention: Retention | None = None,
        *,
        reserved: Disk | None = None,
        admit: Callable[[], None] = lambda: None,
        check_term: Callable[[], None] = lambda: None,
    ) -> None:
        """Open the term's directory and rebuild the marks; blocking, for the start. Raises StorageFailed.

        reserved: the same disk for the checkpoint, with space kept for it: before it is written nothing can be deleted.
        admit: raises DiskFull while there is no space for samples. check_term: raises Fenced when this term is over, in
        any thread; nothing is written then.
        """
        self._retention = retention or Retention()
        self._disk, self._directory, self._epoch = disk, directory, epoch
        self._clock, self._executor = clock, executor
        self._reserved, self._admit, self._check_term = reserved or disk, admit, check_term
        self.figures = LogFigures()
        try:
            self._disk.make_directory(directory)
            self.marks = self._rebuild()
        except OSError as error:
            raise StorageFailed(f"The telemetry log could not be read: {error}", subject=directory) from error
        self._log = SegmentLog(disk, self._folder(epoch), wall_ns=clock.wall_ns)
        end = self._log.end
        self._marked_through = LogPosition(epoch, end.segment, end.offset)
        self._pending: deque[_Job] = deque()
        self._pending_bytes = 0
        self._under_way: dict[Key, _Job] = {}
        self._is_flushing = False
        self._own_boot = BootId(epoch.to_bytes(16, "big"))
        self._own_sequence = self.marks.have(OWN_NAME, self._own_boot).highest
        self._checkpoint_due_ns = clock.monotonic_ns() + CHECKPOINT_EVERY_NS
        self._problem = ""
        self.problem_since_ns = 0
        self._listeners: list[Callable[[], None]] = []
        self._on_forced: Callable[[Forced], None] = lambda forced: None

    # --- on the loop -----------------------------------------------------------------------------------------------

    async def append(self, batch: Sequence[LogRecord]) -> None:
        """Store records; returns after the fsync that covers them. Raises StorageFailed (DiskFull where that is why),
        Fenced or Unavailable: not stored.

        What is stored already, or about to be, is not stored again: a host's dying connection and its next one may
        bring the same record, and no window knows of both.
        """
        self._admit()
        wanted = {_key(one): one for one in batch}
        futures = list(dict.fromkeys(self._under_way[key].future for key in wanted if key in self._under_way))
        fresh = [one for key, one in wanted.items() if key not in self._under_way and not self._has(one)]
        if fresh:
            futures.append(self._asked(fresh))
        try:
            async with asyncio.timeout(seconds(APPEND_DEADLINE_NS)):
                for future in futures:
                    await asyncio.shield(future)
        except TimeoutError:
            raise DeadlineExceeded("The disk of the telemetry log does not answer.") from None
        # Again: the next leader reads what was here when it began, and knows nothing of what came later.
        self._check_term()

    def _has(self, one: LogRecord) -> bool:
        return self.marks.have(one.host_id, one.origin_boot).contains(one.origin_sequence)

    def _asked(self, batch: Sequence[LogRecord]) -> "asyncio.Future[None]":
        """Have records stored; the future that says so."""
        job = _Job(tuple(batch), [records.encode(one) for one in batch], asyncio.get_running_loop().create_future())
        size = sum(map(len, job.payloads))
        if self._pending_bytes + size > PENDING_BYTES_MAX:
            raise Unavailable("Too much telemetry waits for the disk; the agents keep theirs and send it again.")
        job.future.add_done_callback(lambda future: None if future.cancelled() else future.exception())
        self._under_way.update(dict.fromkeys(map(_key, batch), job))
        self._pending.append(job)
        self._pending_bytes += size
        self._flush_soon()
        return job.future

    def on_append(self, listener: Callable[[], None]) -> None:
        """Call `listener` on the loop after each fsync: there is something to follow."""
        self._listeners.append(listener)

    def on_forced(self, listener: Callable[[Forced], None]) -> None:
        """Call `listener` on the loop when the disk budget took segments early."""
        self._on_forced = listener

    @property
    def pending(self) -> int:
        """Records that wait for the disk."""
        return sum(len(job.payloads) for job in self._pending)

    @property
    def problem(self) -> str:
        """Why the last write failed; empty while it works."""
        return self._problem

    def _flush_soon(self) -> None:
        if self._is_flushing or not self._pending:
            return
        self._is_flushing = True
        group: list[_Job] = []
        ends: list[Position] = []

        def work() -> None:
            size = 0
            # Taken here: what arrived while the disk was busy shares this fsync.
            while self._pending and size < GROUP_BYTES_MAX:
                job = self._pending.popleft()
                group.append(job)
                size += sum(map(len, job.payloads))
            self._write(group)
            ends.append(self._log.end)

        self._executor.write(work, lambda: self._flushed(group, ends[0]))

    def _flushed(self, group: list[_Job], end: Position) -> None:
        self._is_flushing = False
        for job in group:
            self._pending_bytes -= sum(map(len, job.payloads))
            for one in job.batch:
                self._under_way.pop(_key(one), None)
            if job.error is None:
                self._mark(self.marks, job.batch)
            if not job.future.done():
                if job.error is None:
                    job.future.set_result(None)
                else:
                    job.future.set_exception(job.error)
        self._marked_through = LogPosition(self._epoch, end.segment, end.offset)
        for listener in self._listeners:
            listener()
        self._flush_soon()

    # --- on the executor -------------------------------------------------------------------------------------------

    def _write(self, group: list[_Job]) -> None:
        """Append each job, then make all of them durable. A job that does not fit on the disk fails alone; a failed
        fsync fails all. Nobody knows what of such a segment is on the disk: it is cut to what was known to be there,
        never trusted again, and the next write begins another."""
        try:
            if self._log.is_broken:
                self._log.begin_anew()
            for job in group:
                try:
                    self._check_term()  # here, not when it was asked for: this process may have been stopped since
                    self._log.append_all(job.payloads)
                except WindrowError as error:
                    job.error = error
            self._log.sync()
        except WindrowError as error:
            if not self._problem:
                self.problem_since_ns = self._clock.wall_ns()
            self._problem = error.detail
            self.figures.failed_fsyncs += 1
            for job in group:
                job.error = job.error or error
        else:
            if self._problem:
                log.warning("telemetry_log_goes_on", after=self._problem)
            self._problem = ""
        stored = [job for job in group if job.error is None]
        for job in group:
            if job.error is not None:
                log.error("telemetry_not_stored", host_id=job.batch[0].host_id, error=job.error.detail)
        self.figures.fsyncs += 1
        self.figures.records += sum(len(job.batch) for job in stored)
        self.figures.bytes += sum(len(payload) for job in stored for payload in job.payloads)

    @staticmethod
    def _mark(book: MarkBook, batch: Sequence[LogRecord]) -> None:
        for one in batch:
            book.add(one.host_id, one.origin_boot, one.origin_sequence, one.received_ns)
            if one.kind is Kind.GAP:
                _mark_gap(book, one)

    # --- start, checkpoints, retention -------------------------------------------------------------------------------

    def _folder(self, epoch: int) -> str:
        return f"{self._directory}/{epoch:012d}"

    def epochs(self) -> tuple[int, ...]:
        """The terms that have segments, and this one, ascending."""
        past = terms(self._disk, self._directory, 1, self._epoch)[:-1]
        return (*(epoch for epoch in past if segment_numbers(self._disk, self._folder(epoch))), self._epoch)

    def _rebuild(self) -> MarkBook:
        book, start = self._load_checkpoint()
        for position, one in self._read(start):
            have = book.have(one.host_id, one.origin_boot)
            if not have.contains(one.origin_sequence) or one.kind is Kind.GAP:
                self._mark(book, (one,))
            start = position
        return book

    def _load_checkpoint(self) -> tuple[MarkBook, LogPosition]:
        path = f"{self._directory}/{_CHECKPOINT}"
        nothing = MarkBook(), LogPosition(0, 0, 0)
        if _CHECKPOINT not in self._disk.list(self._directory):
            return nothing
        try:
            return MarkBook.from_checkpoint(self._disk.read(path, 0, self._disk.size(path)))
        except InvalidInput as error:
            # The log itself still tells what it holds; only what was dropped from it is forgotten.
            log.error("telemetry_marks_damaged", error=str(error))
            return nothing

    def _read(self, start: LogPosition) -> Iterator[tuple[LogPosition, LogRecord]]:
        for epoch in self.epochs():
            if epoch < start.epoch:
                continue
            place = Position(start.segment, start.offset) if epoch == start.epoch else None
            for position, payload in read_log(self._disk, self._folder(epoch), place):
                try:
                    yield LogPosition(epoch, position.segment, position.offset), records.decode(payload)
                except InvalidInput:
                    self.figures.damage += 1

    def run_retention(self, cursors: Sequence[LogPosition | None] = ()) -> None:
        """Write a checkpoint and drop what is old, when it is due; the disk's part runs on the executor.

        cursors: where each view is; None of one that does not know it yet, so that nothing is taken from it.
        """
        now_ns = self._clock.monotonic_ns()
        if now_ns < self._checkpoint_due_ns or self._problem:
            return
        self._checkpoint_due_ns = now_ns + CHECKPOINT_EVERY_NS
        self.marks.forget_before(self._clock.wall_ns() - MARKS_KEEP_NS)
        # Both taken here, where both change: a position the marks are behind would forget what lies between.
        data = self.marks.to_checkpoint(self._marked_through)
        slowest = min((cursor or LogPosition(0, 0, 0) for cursor in cursors), default=None)
        forced: list[Forced] = []

        def work() -> None:
            try:
                self._checkpoint(data)  # before anything goes: what was in it stays known
                forced.extend(self._drop_old(slowest))
            except (OSError, WindrowError) as error:
                log.error("telemetry_housekeeping_failed", error=str(error))

        self._executor.write(work, lambda: self._tell_forced(forced))

    def _tell_forced(self, forced: Sequence[Forced]) -> None:
        """Say what the budget took: in the log itself as a gap, to the listener, and as figures."""
        for one in forced:
            self.figures.forced_segments += len(one.segments)
            self.figures.unread_segments += len(one.unread)
            log.warning("telemetry_budget_forced", epoch=one.epoch, segments=len(one.segments), unread=len(one.unread))
            if one.unread:
                self._own_sequence += 1
                gap = Gap(Lane.TELEMETRY, self._own_boot, ((one.unread[0], one.unread[-1]),), "log_budget")
                now_ns = self._clock.wall_ns()
                told = LogRecord(OWN_NAME, self._own_boot, self._own_sequence, Kind.GAP, now_ns, encode_gap(gap))
                future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                future.add_done_callback(lambda done: None if done.cancelled() else done.exception())
                job = _Job((told,), [records.encode(told)], future)
                self._pending.append(job)
                self._pending_bytes += sum(map(len, job.payloads))
                self._flush_soon()
            self._on_forced(one)

    def _checkpoint(self, data: bytes) -> None:
        self._check_term()  # the file is the next leader's as well
        draft, path = f"{self._directory}/{_CHECKPOINT}.new", f"{self._directory}/{_CHECKPOINT}"
        self._reserved.delete(draft)
        self._reserved.append(draft, data)
        self._reserved.sync(draft)
        self._reserved.release(draft)
        self._reserved.rename(draft, path)
        self._reserved.sync_directory(self._directory)

    def _drop_old(self, slowest: LogPosition | None) -> list[Forced]:
        """Delete segments that are old and that every view has passed, then what the budget does not allow; never the
        one being written. Age: when the segment after it began. Returns what the budget took early."""
        limit_ns = self._clock.wall_ns() - self._retention.keep_ns
        kept: list[tuple[int, int, int, bool]] = []
        current = self._log.end.segment
        for epoch in self.epochs():
            folder = self._folder(epoch)
            numbers = segment_numbers(self._disk, folder)
            for number, following in zip(numbers, (*numbers[1:], None), strict=True):
                if epoch == self._epoch and number >= current:
                    continue
                ended_ns = self._ended_ns(epoch, following)
                passed = slowest is None or slowest >= LogPosition(epoch, number + 1, 0) or slowest.epoch > epoch
                if ended_ns is not None and ended_ns <= limit_ns and passed:
                    self._disk.delete(segment_path(folder, number))
                    self.figures.dropped_segments += 1
                else:
                    kept.append((epoch, number, self._disk.size(segment_path(folder, number)), passed))
        forced = self._drop_over_budget(kept)
        mine = segment_numbers(self._disk, self._folder(self._epoch))
        self._log.drop_before(mine[0] if mine else 0)
        return forced

    def _drop_over_budget(self, kept: list[tuple[int, int, int, bool]]) -> list[Forced]:
        """kept: epoch, segment, bytes and whether every view has read it, oldest first."""
        total = sum(size for _, _, size, _ in kept)
        taken: dict[int, tuple[list[int], list[int]]] = {}
        for epoch, number, size, is_read in kept:
            if total <= self._retention.bytes_max:
                break
            self._disk.delete(segment_path(self._folder(epoch), number))
            total -= size
            segments, unread = taken.setdefault(epoch, ([], []))
            segments.append(number)
            if not is_read:
                unread.append(number)
        self.figures.kept_bytes = total
        return [Forced(epoch, tuple(segments), tuple(unread)) for epoch, (segments, unread) in taken.items()]

    def _ended_ns(self, epoch: int, following: int | None) -> int | None:
        if following is not None:
            return created_wall_ns(self._disk, self._folder(epoch), following)
        later = [e for e in self.epochs() if e > epoch]
        if not later:
            return None  # the segment being written
        numbers = segment_numbers(self._disk, self._folder(later[0]))
        return created_wall_ns(self._disk, self._folder(later[0]), numbers[0]) if numbers else None

    def close(self) -> None:
        """Write what is known and let go of the files; call when nothing is pending."""
        self._executor.close()
        try:
            self._log.close()
            if not self._problem:
                self._checkpoint(self.marks.to_checkpoint(self._marked_through))
        except (OSError, WindrowError) as error:
            log.warning("telemetry_log_not_closed", error=str(error))


def _mark_gap(book: MarkBook, one: LogRecord) -> None:
    try:
        gap = decode_gap(one.body)
    except WindrowError:
        return  # it was proven, so the host is wrong; the record itself is had, the hole stays asked for
    if gap.lane is Lane.TELEMETRY:
        book.add_ranges(one.host_id, gap.origin_boot, gap.ranges, one.received_ns)
