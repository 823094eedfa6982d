"""Reads the segment log of all terms from a cursor on, for views that follow it; changes nothing. Pure."""

from dataclasses import dataclass

from windrow_master.telemetry import record as records
from windrow_master.telemetry.model import LogPosition, LogRecord
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import HostId
from windrow_proto.model import Kind
from windrow_proto.ports import Disk
from windrow_proto.segments import HEADER_BYTES, Position, created_wall_ns, read_log, read_tail, segment_numbers
from windrow_proto.units import KIB

BEGINNING = LogPosition(0, 0, 0)
FAR_BYTES = 256 * KIB
"""Of log found at once: more of it is likely to be there already, and taking it in costs more than a cycle itself."""


@dataclass(frozen=True, slots=True)
class Followed:
    """The result of one read: bodies of samples, where to go on, when the newest arrived (None: nothing was there),
    how many records could not be read, and whether the log's end may be far: else this was all there is, and who
    follows waits a moment, since a cycle costs the same for one batch as for a thousand."""

    batches: tuple[tuple[HostId, bytes], ...]
    cursor: LogPosition
    taken_ns: int | None
    bad: int
    is_far: bool


def follow(disk: Disk, log_directory: str, epoch: int, cursor: LogPosition, bytes_max: int) -> Followed:
    """The next records behind the cursor in the terms up to `epoch`, about `bytes_max` of them.

    A term's directory that is read to its end is left for the next one; what retention took away is skipped.
    """
    batches: list[tuple[HostId, bytes]] = []
    taken_ns: int | None = None
    bad = 0
    begun = cursor
    for term in terms(disk, log_directory, cursor.epoch, epoch):
        is_here = term == cursor.epoch and cursor.segment > 0
        start = Position(cursor.segment, cursor.offset) if is_here else None
        found, after = read_tail(disk, term_folder(log_directory, term), start, bytes_max)
        if after is not None and (found or is_here):
            cursor = LogPosition(term, after.segment, after.offset)
        for _, payload in found:
            try:
                one = records.decode(payload)
            except InvalidInput:
                bad += 1
                continue
            taken_ns = one.received_ns
            if one.kind is Kind.TELEMETRY:
                batches.append((one.host_id, one.body))
        if found:
            taken_ns = 0 if taken_ns is None else taken_ns
            break
    is_elsewhere = (cursor.epoch, cursor.segment) != (begun.epoch, begun.segment)
    is_far = taken_ns is not None and (is_elsewhere or cursor.offset - begun.offset >= FAR_BYTES)
    return Followed(tuple(batches), cursor, taken_ns, bad, is_far)


def stored_since(disk: Disk, log_directory: str, epoch: int, wall_ns: int | None) -> list[LogRecord]:
    """The records of this term from the last segment on that was begun at `wall_ns` or before; None: of all terms."""
    folders: list[tuple[str, Position | None]]
    if wall_ns is None:
        folders = [(term_folder(log_directory, term), None) for term in terms(disk, log_directory, 1, epoch)]
    else:
        folder = term_folder(log_directory, epoch)
        begun = [(number, created_wall_ns(disk, folder, number)) for number in segment_numbers(disk, folder)]
        before = [number for number, at_ns in begun if at_ns is not None and at_ns <= wall_ns]
        folders = [(folder, Position(before[-1], HEADER_BYTES) if before else None)]
    found: list[LogRecord] = []
    for folder, start in folders:
        for _, payload in read_log(disk, folder, start):
            try:
                found.append(records.decode(payload))
            except InvalidInput:
                continue  # the views count those
    return found


def terms(disk: Disk, log_directory: str, first: int, last: int) -> tuple[int, ...]:
    """The terms from `first` to `last` that have a directory, and `last`, ascending: a restore leaves out very many."""
    if first >= last:
        return (last,) if first == last else ()
    past = (int(name) for name in disk.folders(log_directory) if name.isdecimal())
    return (*sorted(term for term in past if first <= term < last), last)


def term_folder(log_directory: str, epoch: int) -> str:
    """The directory of one term."""
    return f"{log_directory}/{epoch:012d}"
