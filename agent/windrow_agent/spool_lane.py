"""One lane of the spool on disk: its segment log and the index of what it holds. What may go is decided in spool.py."""

import struct
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from windrow_proto.errors import InvalidInput
from windrow_proto.ids import BootId
from windrow_proto.intervals import Intervals
from windrow_proto.messages import Record
from windrow_proto.model import Kind, Lane
from windrow_proto.ports import Disk
from windrow_proto.segments import TORN_TAIL, Position, SegmentLog, segment_path
from windrow_proto.units import MIB
from windrow_proto.windows import RecordKey
from windrow_proto.wire import decode_record

STAMP: Final = struct.Struct("<q")
RECORD_HEADER_BYTES: Final = 8
"""Length and checksum before each payload, as segments.py writes them."""
EMPTY_ROLL_BYTES: Final = MIB // 4
"""A segment of which nothing is wanted is ended beyond this size, so that it can go."""


@dataclass(slots=True)
class Held:
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
        self.held: OrderedDict[RecordKey, Held] = OrderedDict()
        self.ring: OrderedDict[RecordKey, Held] = OrderedDict()
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
            self.index(record, Held(position, len(payload), record.kind, stamp))

    def index(self, record: Record, held: Held) -> RecordKey:
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
        """It is to be sent again."""
        held = self.ring.pop(key)
        self.ring_bytes -= held.size
        held.acked_ns = None
        self.held[key] = held

    def move(self, key: RecordKey, position: Position) -> None:
        """It was written anew elsewhere."""
        self._count(self.held[key], -1)
        self.held[key].position = position
        self._count(self.held[key], 1)

    def _count(self, held: Held, by: int) -> None:
        segment = held.position.segment
        self._per_segment[segment] = self._per_segment.get(segment, 0) + by
        if not self._per_segment[segment]:
            del self._per_segment[segment]

    def read(self, held: Held) -> Record:
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
