"""Keeps messages for the Master on disk until the Master has them, in two lanes: evidence and telemetry.

Nothing is handed out for sending before it is on the disk. What is acknowledged goes; telemetry stays ten minutes or
16 MiB longer, in case the Master loses what it acknowledged last. What a cap or damage forced out is told as a gap,
never silently. Receipts and command results are never forced out: when no space can be made the write is refused.
Blocking: it has a thread of its own, and one caller.
"""

import struct
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from windrow_proto.errors import InvalidInput, StorageFailed, TooMany
from windrow_proto.ids import BootId
from windrow_proto.intervals import Intervals
from windrow_proto.messages import Gap, LaneMarks, Record
from windrow_proto.model import Kind, Lane
from windrow_proto.ports import Disk
from windrow_proto.segments import TORN_TAIL, Position, SegmentLog, segment_path
from windrow_proto.units import MIB, MINUTE
from windrow_proto.windows import RecordKey
from windrow_proto.wire import decode_record, encode_record
from windrow_proto.wire_link import decode_gap, encode_gap

STAMP: Final = struct.Struct("<q")
RECORD_HEADER_BYTES: Final = 8
"""Length and checksum before each payload, as segments.py writes them."""
EMPTY_ROLL_BYTES: Final = MIB // 4
"""A segment of which nothing is wanted is ended beyond this size, so that it can go."""
CACHE_BYTES: Final = 1 * MIB
"""Of the newest records, which are nearly always sent at once and need not be read again."""
MARKS_PER_LANE_MAX: Final = 100
"""Boots named in one hello; a host that restarts more often unheard names the rest in the next."""
RANGES_MAX: Final = 512
LANES: Final = (Lane.EVIDENCE, Lane.TELEMETRY)
SPOOL_CAP: Final = "spool_cap"
SPOOL_CORRUPT: Final = "spool_corrupt"
EXPENDABLE: Final = frozenset({Kind.OBSERVED, Kind.EVENT, Kind.INVENTORY, Kind.BANDWIDTH})
"""Evidence that a cap may force out, since it is superseded or only explains; receipts and results are not."""


@dataclass(frozen=True, slots=True)
class SpoolCaps:
    """Limits of one host's spool: 256 MiB holds days of telemetry. None goes by age: a clock may jump by years."""

    telemetry_bytes: int = 256 * MIB
    evidence_bytes: int = 64 * MIB
    ring_bytes: int = 16 * MIB
    ring_age_ns: int = 10 * MINUTE
    segment_bytes: int = 2 * MIB
    free_bytes_min: int = 32 * MIB
    """Left free by telemetry, so that evidence and the journal still have space on a full disk."""


@dataclass(slots=True)
class StoredRecord:
    """One record on disk: where, how long, what, from when, and (telemetry) when it was acknowledged."""

    position: Position
    size: int
    kind: Kind
    wall_ns: int
    acked_ns: int | None = None


class LaneStore:
    """One lane's log with the index of what it holds."""

    def __init__(self, disk: Disk, directory: str, lane: Lane, segment_bytes: int, wall_ns: Callable[[], int]) -> None:
        self.lane, self.disk, self.directory = lane, disk, directory
        self.log = SegmentLog(disk, directory, segment_bytes, wall_ns)
        self.held: OrderedDict[RecordKey, StoredRecord] = OrderedDict()
        self.ring: OrderedDict[RecordKey, StoredRecord] = OrderedDict()
        self.ring_bytes = 0
        self._per_segment: dict[int, int] = {}
        self.last: dict[BootId, int] = {}
        self.gapped: dict[BootId, Intervals] = {}
        self.lost_bytes = sum(d.lost_bytes for d in self.log.damaged if d.reason != TORN_TAIL)
        for position, payload in self.log.read():
            try:
                record = decode_record(payload[STAMP.size :])
            except InvalidInput:
                self.lost_bytes += len(payload)
                continue
            (stamp,) = STAMP.unpack_from(payload)
            self.index(record, StoredRecord(position, len(payload), record.kind, stamp))

    def index(self, record: Record, held: StoredRecord) -> RecordKey:
        key = RecordKey(record.origin_boot, record.origin_sequence)
        if key in self.held:
            self._count(self.held[key], -1)
        self.held[key] = held
        self._count(held, 1)
        self.last[key.origin_boot] = max(self.last.get(key.origin_boot, 0), key.origin_sequence)
        return key

    def drop(self, key: RecordKey) -> None:
        """Forget a record for good."""
        self._count(self.held.pop(key), -1)

    def drop_ringed(self, key: RecordKey) -> None:
        """Forget an acknowledged record for good."""
        held = self.ring.pop(key)
        self.ring_bytes -= held.size
        self._count(held, -1)

    def to_ring(self, key: RecordKey, now_ns: int) -> None:
        """Keep an acknowledged record for a while."""
        held = self.held.pop(key)
        held.acked_ns = now_ns
        self.ring[key] = held
        self.ring_bytes += held.size

    def from_ring(self, key: RecordKey) -> None:
        """Moves a record back, to be sent again."""
        held = self.ring.pop(key)
        self.ring_bytes -= held.size
        held.acked_ns = None
        self.held[key] = held

    def move(self, key: RecordKey, position: Position) -> None:
        """Notes that a record was written anew elsewhere."""
        self._count(self.held[key], -1)
        self.held[key].position = position
        self._count(self.held[key], 1)

    def _count(self, held: StoredRecord, by: int) -> None:
        segment = held.position.segment
        self._per_segment[segment] = self._per_segment.get(segment, 0) + by
        if not self._per_segment[segment]:
            del self._per_segment[segment]

    def read(self, held: StoredRecord) -> Record:
        path = segment_path(self.directory, held.position.segment)
        payload = self.disk.read(path, held.position.offset + RECORD_HEADER_BYTES, held.size)
        return decode_record(payload[STAMP.size :])

    def free_segments(self) -> None:
        """Drop every segment at the front that holds nothing any more."""
        oldest = self.oldest_segment()
        if self.log.is_broken:
            self.log.begin_anew()
        if oldest is None and self.log.end.offset > EMPTY_ROLL_BYTES:
            self.log.roll()
        self.log.drop_before(self.log.end.segment if oldest is None else oldest)

    def oldest_segment(self) -> int | None:
        """The first segment that holds anything."""
        return min(self._per_segment, default=None)


class Spool:
    """Both lanes of one host under one directory."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        boot_id: BootId,
        wall_ns: Callable[[], int],
        caps: SpoolCaps | None = None,
        reserved: Disk | None = None,
    ) -> None:
        """Open it and read what earlier boots left. wall_ns: for ages; a wrong clock only shifts them.

        reserved: the same disk for evidence, with space kept for it (ballast.py)."""
        self.caps = caps or SpoolCaps()
        self._disk, self._directory, self._boot_id, self._wall_ns = disk, directory, boot_id, wall_ns
        self._cache: OrderedDict[tuple[Lane, RecordKey], Record] = OrderedDict()
        self._cache_bytes = 0
        self._owed: dict[BootId, Intervals] = {}
        """Telemetry that made space for results and is not told yet: there was no space for that either."""
        self._told: list[RecordKey] = []
        """Gaps on disk that tell of such telemetry, until they are handed out with the telemetry that comes next."""
        self._lanes = {
            lane: LaneStore(on, f"{directory}/{lane.name.lower()}", lane, self.caps.segment_bytes, wall_ns)
            for lane, on in ((Lane.EVIDENCE, reserved or disk), (Lane.TELEMETRY, disk))
        }

    @property
    def size_bytes(self) -> int:
        """On disk, both lanes."""
        return sum(store.log.size_bytes for store in self._lanes.values())

    @property
    def lost_bytes(self) -> int:
        """Bytes that could not be read at opening, apart from torn tails."""
        return sum(store.lost_bytes for store in self._lanes.values())

    def waiting(self, lane: Lane) -> list[RecordKey]:
        """The records that the Master is not known to have, oldest first."""
        return list(self._lanes[lane].held)

    def append(self, lane: Lane, messages: Sequence[tuple[Kind, bytes]]) -> list[RecordKey]:
        """Store messages; returns their keys once they are on the disk, with those of gaps that had to be told.

        Raises StorageFailed when there is no space for them and none can be made.
        """
        store = self._lanes[lane]
        if store.log.is_broken:
            store.log.begin_anew()  # nothing that was appended since its last fsync was ever handed out
        keys = self._make_room(lane, sum(len(body) + 64 for _, body in messages))
        try:
            keys += self._store(store, messages)
        except StorageFailed:
            if not self._free_telemetry():
                raise
            if store.log.is_broken:
                store.log.begin_anew()
            keys += self._store(store, messages)
        if lane is Lane.TELEMETRY:
            self._tell_owed()
            keys, self._told = self._told + keys, []
        return keys

    def record(self, lane: Lane, key: RecordKey) -> Record | None:
        """The record of this key; None if it is not here any more, or unreadable (then a gap is told when asked)."""
        cached = self._cache.get((lane, key))
        store = self._lanes[lane]
        held = store.held.get(key)
        if held is None or cached is not None:
            return cached if held is not None else None
        try:
            record = store.read(held)
        except (OSError, InvalidInput):
            return None
        return record if RecordKey(record.origin_boot, record.origin_sequence) == key else None

    def acknowledged(self, lane: Lane, keys: Iterable[RecordKey]) -> None:
        """The Master has these: drop them, telemetry after its time in the ring."""
        store, now_ns = self._lanes[lane], self._wall_ns()
        for key in keys:
            if key not in store.held:
                continue
            self._uncache(lane, key)
            if lane is Lane.TELEMETRY:
                store.to_ring(key, now_ns)
            else:
                store.drop(key)
        self._age_ring(store, now_ns)
        store.free_segments()

    def marks(self) -> tuple[LaneMarks, ...]:
        """The marks of the records here, ring included, for a hello: newest boots first if there are too many."""
        found: list[LaneMarks] = []
        for lane, store in self._lanes.items():
            numbers: dict[BootId, list[int]] = {}
            for key in (*store.ring, *store.held):
                numbers.setdefault(key.origin_boot, []).append(key.origin_sequence)
            for boot, sequences in list(numbers.items())[-MARKS_PER_LANE_MAX:]:
                found.append(LaneMarks(lane, boot, _ranges(sequences)))
        return tuple(found)

    def reconcile(self, named: Iterable[LaneMarks], have: Iterable[LaneMarks]) -> None:
        """Compare what a hello named with what the welcome says the Master has: both ways it counts."""
        held_there = {(marks.lane, marks.origin_boot): Intervals(marks.ranges) for marks in have}
        for marks in named:
            there = held_there.get((marks.lane, marks.origin_boot), Intervals())
            store = self._lanes[marks.lane]
            ours = [key for key in (*store.ring, *store.held) if key.origin_boot == marks.origin_boot]
            self.acknowledged(marks.lane, [key for key in ours if there.contains(key.origin_sequence)])
            for key in ours:
                if key in store.ring and not there.contains(key.origin_sequence):
                    store.from_ring(key)

    def asked_again(self, missing: Iterable[LaneMarks]) -> list[RecordKey]:
        """Queues again the records that the Master has not received; reports those that the ring has lost as a gap.

        Returns keys to be sent, in any lane's window that does not know them yet.
        """
        keys: list[RecordKey] = []
        for marks in missing:
            store = self._lanes.get(marks.lane)
            if store is None:
                continue
            back = [
                key
                for key in store.ring
                if key.origin_boot == marks.origin_boot and Intervals(marks.ranges).contains(key.origin_sequence)
            ]
            for key in back:
                store.from_ring(key)
            keys += back
            gone = self._gone(store, marks)
            if gone.ranges:
                keys += self._tell_gap(store, {marks.origin_boot: gone}, SPOOL_CORRUPT)
        return keys

    def close(self) -> None:
        """Sync and let go of the files."""
        for store in self._lanes.values():
            store.log.close()

    # --- inside ---------------------------------------------------------------------------------------------------

    def _store(self, store: LaneStore, messages: Sequence[tuple[Kind, bytes]]) -> list[RecordKey]:
        now_ns = self._wall_ns()
        following = store.last.get(self._boot_id, 0) + 1
        records = [Record(self._boot_id, following + n, kind, body) for n, (kind, body) in enumerate(messages)]
        payloads = [STAMP.pack(now_ns) + encode_record(record) for record in records]
        positions = store.log.append_all(payloads)
        store.log.sync()
        keys = []
        for record, payload, position in zip(records, payloads, positions, strict=True):
            keys.append(store.index(record, StoredRecord(position, len(payload), record.kind, now_ns)))
            self._remember(store.lane, keys[-1], record)
        return keys

    def _remember(self, lane: Lane, key: RecordKey, record: Record) -> None:
        self._cache[(lane, key)] = record
        self._cache_bytes += len(record.body)
        while self._cache_bytes > CACHE_BYTES:
            _, old = self._cache.popitem(last=False)
            self._cache_bytes -= len(old.body)

    def _uncache(self, lane: Lane, key: RecordKey) -> None:
        old = self._cache.pop((lane, key), None)
        self._cache_bytes -= len(old.body) if old is not None else 0

    def _make_room(self, lane: Lane, size: int) -> list[RecordKey]:
        store = self._lanes[lane]
        if lane is Lane.EVIDENCE:
            if store.log.size_bytes + size <= self.caps.evidence_bytes:
                return []
            return self._force_out_evidence(store, size)
        keys: list[RecordKey] = []
        while self._is_telemetry_full(store, size):
            before = store.log.size_bytes
            forced = self._force_out_oldest(store)
            if forced is None:
                break
            keys += forced
            if store.log.size_bytes >= before:
                break  # only gaps are left, and telling them anew frees nothing: the write itself will say
        return keys

    def _is_telemetry_full(self, store: LaneStore, size: int) -> bool:
        if store.log.size_bytes + size > self.caps.telemetry_bytes:
            return True
        try:
            return self._disk.free_bytes(self._directory) < self.caps.free_bytes_min + size
        except OSError:
            return False  # the write itself will say

    def _force_out_oldest(self, store: LaneStore) -> list[RecordKey] | None:
        """Drop the oldest segment with all it holds; None if there is nothing to drop."""
        segment = store.oldest_segment()
        if segment is None:
            store.free_segments()
            return None
        if segment == store.log.end.segment:
            store.log.roll()
        gaps = self._lose(store, [k for k, held in store.held.items() if held.position.segment <= segment])
        for key in [k for k, held in store.ring.items() if held.position.segment <= segment]:
            store.drop_ringed(key)
        return self._tell_and_drop(store, gaps, segment + 1)

    def _force_out_evidence(self, store: LaneStore, size: int) -> list[RecordKey]:
        """Write what must stay of the oldest segments anew and drop them; the rest is told as a gap."""
        gaps = self._lose(store, [k for k, held in store.held.items() if held.kind in EXPENDABLE])
        kept = [(key, record) for key in store.held if (record := self.record(store.lane, key)) is not None]
        if sum(len(record.body) + 96 for _, record in kept) + size > self.caps.evidence_bytes:
            raise StorageFailed("The spool is full of results and receipts that no Master has taken.")
        store.log.roll()
        boundary = store.log.end.segment
        moved = [store.log.append(STAMP.pack(store.held[key].wall_ns) + encode_record(record)) for key, record in kept]
        store.log.sync()
        for (key, _), position in zip(kept, moved, strict=True):
            store.move(key, position)
        return self._tell_and_drop(store, gaps, boundary)

    def _tell_and_drop(self, store: LaneStore, gaps: dict[BootId, Intervals], boundary: int) -> list[RecordKey]:
        """Delete the segments below `boundary`; what goes with them is told on disk before, if there is
        space."""
        try:
            keys = self._tell_gap(store, gaps, SPOOL_CAP)
        except StorageFailed:
            self._drop_before(store, boundary)
            return self._tell_gap(store, gaps, SPOOL_CAP)
        self._drop_before(store, boundary)
        return keys

    def _drop_before(self, store: LaneStore, boundary: int) -> None:
        if store.log.is_broken:
            store.log.begin_anew()
        store.log.drop_before(boundary)

    def _free_telemetry(self) -> bool:
        store = self._lanes[Lane.TELEMETRY]
        before = store.log.size_bytes
        for key in list(store.ring):
            store.drop_ringed(key)
        segment = store.oldest_segment()
        lost = self._lose(store, [k for k, held in store.held.items() if held.position.segment == segment])
        for boot, ranges in lost.items():
            with suppress(TooMany):  # so many holes are told when the Master asks for them
                self._owed[boot] = self._owed.get(boot, Intervals()).union(ranges)
        try:
            if segment == store.log.end.segment:
                store.log.roll()
            store.free_segments()
        except StorageFailed:
            return False
        has_room = store.log.size_bytes < before
        self._tell_owed()
        return has_room

    def _tell_owed(self) -> None:
        """The Master asks for holes, but of a boot's last records it does not know. Where this has no space, too, it is
        tried again with the next telemetry."""
        store = self._lanes[Lane.TELEMETRY]
        untold = {boot: lost.without(store.gapped.get(boot, Intervals())) for boot, lost in self._owed.items()}
        try:
            self._told += self._tell_gap(store, {boot: lost for boot, lost in untold.items() if lost.ranges}, SPOOL_CAP)
        except StorageFailed:
            if store.log.is_broken:
                with suppress(StorageFailed):
                    store.log.begin_anew()
        else:
            self._owed.clear()

    def _lose(self, store: LaneStore, keys: Iterable[RecordKey]) -> dict[BootId, Intervals]:
        """Forget these records; returns what has to be told, with what lost gaps among them were to tell."""
        gaps: dict[BootId, Intervals] = {}
        for key in keys:
            record = self.record(store.lane, key) if store.held[key].kind is Kind.GAP else None
            store.drop(key)
            self._uncache(store.lane, key)
            lost = {key.origin_boot: ((key.origin_sequence, key.origin_sequence),)}
            if record is not None:
                gap = decode_gap(record.body)
                store.gapped[gap.origin_boot] = store.gapped.get(gap.origin_boot, Intervals()).without(
                    Intervals(gap.ranges)
                )
                lost = {**lost, gap.origin_boot: (*lost.get(gap.origin_boot, ()), *gap.ranges)}
            for boot, ranges in lost.items():
                gaps[boot] = gaps.get(boot, Intervals()).union(Intervals.of(ranges))
        return gaps

    def _tell_gap(self, store: LaneStore, gaps: dict[BootId, Intervals], reason: str) -> list[RecordKey]:
        messages = []
        for boot, lost in gaps.items():
            for start in range(0, len(lost.ranges), RANGES_MAX):
                gap = Gap(store.lane, boot, lost.ranges[start : start + RANGES_MAX], reason)
                messages.append((Kind.GAP, encode_gap(gap)))
        keys = self._store(store, messages) if messages else []
        for boot, lost in gaps.items():  # only now: what could not be told is still to be told when it is asked for
            store.gapped[boot] = store.gapped.get(boot, Intervals()).union(lost)
        return keys

    def _gone(self, store: LaneStore, marks: LaneMarks) -> Intervals:
        here = [key.origin_sequence for key in store.held if key.origin_boot == marks.origin_boot]
        last = store.last.get(marks.origin_boot, 0)
        if marks.origin_boot == self._boot_id:
            asked = [(first, min(end, last)) for first, end in marks.ranges if first <= last]
        else:
            asked = list(marks.ranges)
        told = store.gapped.get(marks.origin_boot, Intervals())
        try:
            return Intervals.of(asked).without(Intervals.of((n, n) for n in here)).without(told)
        except TooMany:
            return Intervals()  # asked again when fewer holes are open

    def _age_ring(self, store: LaneStore, now_ns: int) -> None:
        while store.ring:
            key, held = next(iter(store.ring.items()))
            is_old = now_ns - (held.acked_ns or 0) > self.caps.ring_age_ns
            if not is_old and store.ring_bytes <= self.caps.ring_bytes:
                return
            store.drop_ringed(key)


def _ranges(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Sorted inclusive ranges, at most RANGES_MAX of them; the rest of a hello is named in the next one."""
    merged: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if merged and number <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(number, merged[-1][1]))
        else:
            merged.append((number, number))
    return tuple(merged[:RANGES_MAX])
