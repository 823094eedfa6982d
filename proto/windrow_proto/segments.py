"""An append-only log in segment files: the agent's spool and the Master's telemetry log, one format, one reader.

A segment is a header (magic, version, creation) and records (u32 length, u32 CRC-32 of length and payload, payload),
all little-endian. Nothing is promised before `sync`. What a crash may leave and what is done about it at opening:
a torn tail of the last segment is cut off; a bad record elsewhere is damage: it is reported, the records around it
stay readable, and nothing is appended to that segment any more. Blocking; one writer at a time, any number of readers.
"""

import contextlib
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from windrow_proto.errors import InvalidInput, StorageFailed, TooLarge
from windrow_proto.ports import Disk

MAGIC: Final = b"WINDROWS"
VERSION: Final = 1
_HEADER: Final = struct.Struct("<8sIqI")
_RECORD: Final = struct.Struct("<II")
_LENGTH: Final = struct.Struct("<I")
HEADER_BYTES: Final = _HEADER.size
SEGMENT_BYTES: Final = 8 << 20
RECORD_BYTES_MAX: Final = 4 << 20
"""Above the largest message (1 MiB) with space to spare; a length beyond it can only be damage."""
_SUFFIX: Final = ".seg"
TORN_TAIL: Final = "torn_tail"
"""The reason in a Damage that a power cut explains: bytes after the last sync."""


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """The start of a record: the segment's number (from 1) and the byte in it."""

    segment: int
    offset: int

    def after(self, payload: bytes) -> "Position":
        """Returns the start of the next record of this segment, given this one's payload; fit for `read`."""
        return Position(self.segment, self.offset + _RECORD.size + len(payload))


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes of a segment that could not be read and whose content is lost; `reason` is a stable code."""

    segment: int
    offset: int
    lost_bytes: int
    reason: str


@dataclass(frozen=True, slots=True)
class Scan:
    """The contents of one segment: good records, damage, and where a torn tail begins (its size if there is none)."""

    records: tuple[tuple[int, bytes], ...]
    damage: tuple[Damage, ...]
    end: int


def segment_path(directory: str, segment: int) -> str:
    """The file of a segment."""
    return f"{directory}/{segment:012d}{_SUFFIX}"


def segment_numbers(disk: Disk, directory: str) -> tuple[int, ...]:
    """The numbers of the segments there are, ascending."""
    names = (name.removesuffix(_SUFFIX) for name in disk.list(directory) if name.endswith(_SUFFIX))
    return tuple(sorted(int(name) for name in names if name.isdigit()))


def scan_segment(disk: Disk, directory: str, segment: int, start: int = HEADER_BYTES) -> Scan:
    """Read one segment from a record's beginning on, good records and damage alike."""
    path = segment_path(directory, segment)
    header = disk.read(path, 0, HEADER_BYTES)
    size = disk.size(path)
    if len(header) < HEADER_BYTES:
        return Scan((), (), 0)
    fault = _header_fault(header)
    if fault == "version":
        return Scan((), (Damage(segment, 0, size, fault),), size)
    damage = [] if fault is None else [Damage(segment, 0, HEADER_BYTES, fault)]
    records: list[tuple[int, bytes]] = []
    data = disk.read(path, start, size - start) if size > start else b""
    bad_from: int | None = None
    at = 0
    while at < len(data):
        payload, following = _record_at(data, at)
        if payload is not None:
            if bad_from is not None:
                damage.append(Damage(segment, start + bad_from, at - bad_from, "record"))
                bad_from = None
            records.append((start + at, payload))
        elif bad_from is None:
            bad_from = at
        at = following
    end = start + (len(data) if bad_from is None else bad_from)
    return Scan(tuple(records), tuple(damage), end)


def _header_fault(data: bytes) -> str | None:
    magic, version, created, checksum = _HEADER.unpack_from(data)
    if magic != MAGIC or checksum != zlib.crc32(_HEADER.pack(magic, version, created, 0)[:-4]):
        return "header"
    return None if version == VERSION else "version"


def _record_at(data: bytes, at: int) -> tuple[bytes | None, int]:
    """The payload at `at` (None if it is bad) and where to look next (the end, where the length cannot be believed)."""
    if at + _RECORD.size > len(data):
        return None, len(data)
    length, checksum = _RECORD.unpack_from(data, at)
    end = at + _RECORD.size + length
    if not 0 < length <= RECORD_BYTES_MAX or end > len(data):
        return None, len(data)
    payload = data[at + _RECORD.size : end]
    return (payload, end) if _checksum(payload) == checksum else (None, end)


def _checksum(payload: bytes) -> int:
    # The length is covered, too: otherwise a run of zeros would read as empty records that are whole.
    return zlib.crc32(payload, zlib.crc32(_LENGTH.pack(len(payload))))


def read_log(disk: Disk, directory: str, start: Position | None = None) -> Iterator[tuple[Position, bytes]]:
    """Records from `start` (inclusive; None: the beginning) in order, while others may append; changes nothing.

    `start` is a Position that an append, a read or `Position.after` gave: a record begins there. A segment that is
    gone is skipped, as is damage. What is not yet whole at the end ends the iteration.
    """
    for segment in segment_numbers(disk, directory):
        if start is not None and segment < start.segment:
            continue
        begin = start.offset if start is not None and segment == start.segment else HEADER_BYTES
        try:
            scan = scan_segment(disk, directory, segment, begin)
        except FileNotFoundError:
            continue
        for offset, payload in scan.records:
            yield Position(segment, offset), payload


def created_wall_ns(disk: Disk, directory: str, segment: int) -> int | None:
    """When a segment was begun, as its header says; None where the header is damaged or the file is gone."""
    try:
        data = disk.read(segment_path(directory, segment), 0, HEADER_BYTES)
    except FileNotFoundError:
        return None
    if _header_fault(data) is not None:
        return None
    created: int = _HEADER.unpack_from(data)[2]
    return created


def read_tail(
    disk: Disk, directory: str, start: Position | None, bytes_max: int
) -> tuple[list[tuple[Position, bytes]], Position | None]:
    """Some records from `start` (where a record begins; None: the beginning), and where to go on; changes nothing.

    Reads at most about `bytes_max`, from `start` and not from the segment's beginning: for followers that come back
    every second. Where nothing new is whole yet, the same place is given back. Damage is skipped like in `read_log`.
    """
    numbers = [n for n in segment_numbers(disk, directory) if start is None or n >= start.segment]
    for number in numbers:
        at = start.offset if start is not None and start.segment == number else HEADER_BYTES
        try:
            data = disk.read(segment_path(directory, number), at, max(bytes_max, RECORD_BYTES_MAX + _RECORD.size))
        except FileNotFoundError:
            continue
        records: list[tuple[Position, bytes]] = []
        used = 0
        while used < min(len(data), bytes_max):
            payload, following = _record_at(data, used)
            if payload is None:
                break
            records.append((Position(number, at + used), payload))
            used = following
        if records:
            return records, Position(number, at + used)
        if number == numbers[-1]:
            return [], Position(number, at)
        if used < len(data):  # damage in a segment that is finished: what is good behind it is read the slow way
            rest = [(o, p) for o, p in scan_segment(disk, directory, number).records if o >= at]
            if rest:
                return [(Position(number, o), p) for o, p in rest], Position(number + 1, HEADER_BYTES)
    return [], start


class SegmentLog:
    """The writer of one directory. Every method that touches the disk raises StorageFailed when the disk refuses."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        segment_bytes: int = SEGMENT_BYTES,
        wall_ns: Callable[[], int] = lambda: 0,
    ) -> None:
        """Open or make the log: cut a torn tail, note damage, and make durable whatever an earlier process left."""
        if segment_bytes < HEADER_BYTES + _RECORD.size + 1:
            raise InvalidInput(f"A segment of {segment_bytes} bytes holds no record.")
        self._disk, self._directory, self._segment_bytes, self._wall_ns = disk, directory, segment_bytes, wall_ns
        self._sizes: dict[int, int] = {}
        self._current: int | None = None
        self._highest = 0
        self._dirty = False
        self._synced_end = 0
        self._broken = ""
        self._damaged: list[Damage] = []
        try:
            self._open()
        except OSError as error:
            raise StorageFailed(f"The log in {directory} could not be opened: {error}", subject=directory) from error

    def _open(self) -> None:
        self._disk.make_directory(self._directory)
        numbers = segment_numbers(self._disk, self._directory)
        for number in numbers:
            scan = scan_segment(self._disk, self._directory, number)
            path = segment_path(self._directory, number)
            size = self._disk.size(path)
            self._damaged += scan.damage
            if scan.end < size and number == numbers[-1]:
                self._disk.truncate(path, scan.end)
                self._damaged.append(Damage(number, scan.end, size - scan.end, TORN_TAIL))
                size = scan.end
            elif scan.end < size:
                self._damaged.append(Damage(number, scan.end, size - scan.end, "record"))
            self._sizes[number] = size
        if numbers:
            last = numbers[-1]
            self._disk.sync(segment_path(self._directory, last))
            self._disk.sync_directory(self._directory)
            usable = self._sizes[last] >= HEADER_BYTES and all(
                d.segment != last or d.reason == TORN_TAIL for d in self._damaged
            )
            self._current = last if usable else None
            self._synced_end = self._sizes[last]

    @property
    def damaged(self) -> tuple[Damage, ...]:
        """Returns the damage that was found at opening, for a report. A cut tail (torn_tail) is normal after a power
        cut and told once; damage is told again at every opening until its segment is dropped."""
        return tuple(self._damaged)

    @property
    def segments(self) -> tuple[tuple[int, int], ...]:
        """Number and size in bytes of each segment, ascending."""
        return tuple(sorted(self._sizes.items()))

    @property
    def size_bytes(self) -> int:
        """Of all segments together."""
        return sum(self._sizes.values())

    @property
    def end(self) -> Position:
        """The position at which the next record begins, unless the segment is full by then."""
        if self._current is None:
            return Position(self._following, HEADER_BYTES)
        return Position(self._current, self._sizes[self._current])

    def append(self, payload: bytes) -> Position:
        """Write one record; durable only after `sync`. A full disk leaves the log as it was, and usable."""
        return self.append_all((payload,))[0]

    def append_all(self, payloads: Sequence[bytes]) -> list[Position]:
        """Write records in one go, all of them or none; they stay together in one segment."""
        self._refuse_if_broken()
        for payload in payloads:
            if not 0 < len(payload) <= RECORD_BYTES_MAX:
                raise TooLarge(f"A record of {len(payload)} bytes; it must have 1 to {RECORD_BYTES_MAX}.")
        if not payloads:
            return []
        parts = [part for p in payloads for part in (_RECORD.pack(len(p), _checksum(p)), p)]
        data = b"".join(parts)
        segment = self._segment_for(len(data))
        at = self._sizes[segment]
        self._write(segment, data)
        positions = []
        for payload in payloads:
            positions.append(Position(segment, at))
            at += _RECORD.size + len(payload)
        return positions

    def _segment_for(self, size: int) -> int:
        if self._current is not None:
            used = self._sizes[self._current]
            if used == HEADER_BYTES or used + size <= self._segment_bytes:
                return self._current
            self.roll()
        number = self._following
        path = segment_path(self._directory, number)
        bare = _HEADER.pack(MAGIC, VERSION, self._wall_ns(), 0)[:-4]
        try:
            self._disk.append(path, bare + _LENGTH.pack(zlib.crc32(bare)))
            self._disk.sync_directory(self._directory)
        except OSError as error:
            with contextlib.suppress(OSError):  # a file that stays is an empty segment; the next is numbered after it
                self._sizes[number] = 0
                self._disk.release(path)
                self._disk.delete(path)
                del self._sizes[number]
            raise StorageFailed(f"A new segment could not be started: {error}", subject=self._directory) from error
        self._sizes[number] = self._synced_end = HEADER_BYTES
        self._current, self._highest, self._dirty = number, number, True
        return number

    @property
    def _following(self) -> int:
        """Never a number that was used: a follower may stand in a segment that was taken back."""
        return max(self._highest, *self._sizes, 0) + 1

    def _write(self, segment: int, data: bytes) -> None:
        path = segment_path(self._directory, segment)
        try:
            self._disk.append(path, data)
        except OSError as error:
            try:
                self._disk.truncate(path, self._sizes[segment])
            except OSError as second:
                raise self._break(f"a failed write could not be taken back: {second}") from error
            raise StorageFailed(f"The disk refused a write: {error}", subject=self._directory) from error
        self._sizes[segment] += len(data)
        self._dirty = True

    def sync(self) -> None:
        """Make every record appended so far survive a power cut. If that fails nothing more is ever appended here:
        after a failed fsync nobody knows which pages are on the disk."""
        self._refuse_if_broken()
        if self._current is None or not self._dirty:
            return
        try:
            self._disk.sync(segment_path(self._directory, self._current))
        except OSError as error:
            raise self._break(f"fsync failed: {error}") from error
        self._dirty, self._synced_end = False, self._sizes[self._current]

    @property
    def is_broken(self) -> bool:
        """True if it refuses writes, since an fsync failed or a write could not be taken back."""
        return bool(self._broken)

    def begin_anew(self) -> None:
        """Write again after a failure, in a fresh segment: what was appended since the last sync is cut off.

        Only for an owner who promised nothing of that to anybody. The file whose fsync failed is never synced again,
        so nothing is believed that was only in its pages. Raises StorageFailed while the disk goes on refusing.
        """
        number = self._current
        if number is not None:
            path = segment_path(self._directory, number)
            try:
                self._disk.release(path)
                if self._synced_end > HEADER_BYTES:
                    self._disk.truncate(path, self._synced_end)
                    self._sizes[number] = self._synced_end
                    with contextlib.suppress(OSError):  # else a power cut may show the rest again, as damage
                        self._disk.sync(path)
                        self._disk.release(path)
                else:
                    self._disk.delete(path)
                    del self._sizes[number]
            except OSError as error:
                raise self._break(f"what failed could not be taken back: {error}") from error
        self._current, self._dirty, self._broken = None, False, ""

    def roll(self) -> None:
        """Make the current segment durable and end it; the next record begins a new one."""
        self.sync()
        if self._current is not None:
            self._disk.release(segment_path(self._directory, self._current))
        self._current = None

    def read(self, start: Position | None = None) -> Iterator[tuple[Position, bytes]]:
        """Records from `start` (inclusive) in order, those not yet durable included."""
        return read_log(self._disk, self._directory, start)

    def drop_before(self, segment: int) -> int:
        """Delete whole segments below `segment`, never the one being written; returns the bytes freed."""
        freed = 0
        try:
            for number in sorted(n for n in self._sizes if n < segment and n != self._current):
                self._disk.delete(segment_path(self._directory, number))
                freed += self._sizes.pop(number)
            if freed:
                self._disk.sync_directory(self._directory)
        except OSError as error:
            raise StorageFailed(f"A segment could not be deleted: {error}", subject=self._directory) from error
        self._damaged = [damage for damage in self._damaged if damage.segment in self._sizes]
        return freed

    def close(self) -> None:
        """Sync what is left and let go of the files; a broken log is let go of as it is."""
        if not self._broken:
            self.sync()
        for number in self._sizes:
            self._disk.release(segment_path(self._directory, number))

    def _refuse_if_broken(self) -> None:
        if self._broken:
            raise StorageFailed(f"The log in {self._directory} refuses writes since {self._broken}.")

    def _break(self, reason: str) -> StorageFailed:
        self._broken = reason
        return StorageFailed(f"The log in {self._directory} failed: {reason}", subject=self._directory)
