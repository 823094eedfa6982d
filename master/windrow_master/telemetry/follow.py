"""Reads the segment log of all terms from a cursor on, for views that follow it; changes nothing. Pure."""

from dataclasses import dataclass

from windrow_master.telemetry import record as records
from windrow_master.telemetry.model import LogPosition
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import HostId
from windrow_proto.model import Kind
from windrow_proto.ports import Disk
from windrow_proto.segments import Position, read_tail

BEGINNING = LogPosition(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Followed:
    """What was read: bodies of samples, where to go on, when the newest arrived (None: nothing was there), and how
    many records could not be read."""

    batches: tuple[tuple[HostId, bytes], ...]
    cursor: LogPosition
    taken_ns: int | None
    bad: int


def follow(disk: Disk, log_directory: str, epoch: int, cursor: LogPosition, bytes_max: int) -> Followed:
    """The next records behind the cursor in the terms up to `epoch`, about `bytes_max` of them.

    A term's directory that is read to its end is left for the next one; what retention took away is skipped.
    """
    batches: list[tuple[HostId, bytes]] = []
    taken_ns: int | None = None
    bad = 0
    for term in range(max(cursor.epoch, 1), epoch + 1):
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
    return Followed(tuple(batches), cursor, taken_ns, bad)


def term_folder(log_directory: str, epoch: int) -> str:
    """The directory of one term."""
    return f"{log_directory}/{epoch:012d}"
