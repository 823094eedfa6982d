"""Tracks which telemetry records the log holds, per host and boot: acks and the search for duplicates rest on it. Pure.

The book is rebuilt at each start from its last checkpoint and the records after it.
"""

import json
from collections.abc import Mapping
from typing import Final

from windrow_master.telemetry.model import LogPosition
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import BootId, HostId
from windrow_proto.intervals import Intervals

CHECKPOINT_VERSION: Final = 1


class MarkBook:
    """Interval sets by host and boot, each with the time it last grew."""

    def __init__(self) -> None:
        self._sets: dict[HostId, dict[BootId, tuple[Intervals, int]]] = {}

    def have(self, host_id: HostId, boot: BootId) -> Intervals:
        """Return the records in the log of one boot."""
        found = self._sets.get(host_id, {}).get(boot)
        return found[0] if found is not None else Intervals()

    def of_host(self, host_id: HostId) -> Mapping[BootId, Intervals]:
        """Return the records in the log of one host."""
        return {boot: have for boot, (have, _) in self._sets.get(host_id, {}).items()}

    def add(self, host_id: HostId, boot: BootId, sequence: int, at_ns: int) -> None:
        """One more record is in the log."""
        self._sets.setdefault(host_id, {})[boot] = self.have(host_id, boot).add(sequence), at_ns

    def add_ranges(self, host_id: HostId, boot: BootId, ranges: tuple[tuple[int, int], ...], at_ns: int) -> None:
        """These will never come and count as had."""
        have = self.have(host_id, boot).union(Intervals.of(ranges))
        self._sets.setdefault(host_id, {})[boot] = have, at_ns

    def forget_before(self, at_ns: int) -> int:
        """Drop boots that have not grown since; returns how many."""
        old = [(h, b) for h, boots in self._sets.items() for b, (_, grown) in boots.items() if grown < at_ns]
        for host_id, boot in old:
            del self._sets[host_id][boot]
        self._sets = {host_id: boots for host_id, boots in self._sets.items() if boots}
        return len(old)

    def to_checkpoint(self, through: LogPosition) -> bytes:
        """The book as a file's content; `through` is where the first record after it begins."""
        marks = [
            [host_id, boot.hex(), [list(pair) for pair in have.ranges], grown]
            for host_id, boots in self._sets.items()
            for boot, (have, grown) in boots.items()
        ]
        position = [through.epoch, through.segment, through.offset]
        return json.dumps({"version": CHECKPOINT_VERSION, "through": position, "marks": marks}).encode()

    @staticmethod
    def from_checkpoint(data: bytes) -> "tuple[MarkBook, LogPosition]":
        """Read a checkpoint; raises InvalidInput when it is damaged or of another version."""
        book = MarkBook()
        try:
            content = json.loads(data)
            if content["version"] != CHECKPOINT_VERSION:
                raise InvalidInput(f"A checkpoint of marks of version {content['version']} is not understood.")
            for host_id, boot, ranges, grown in content["marks"]:
                have = Intervals.of((first, last) for first, last in ranges)
                book._sets.setdefault(HostId(host_id), {})[BootId(bytes.fromhex(boot))] = have, int(grown)
            return book, LogPosition(*map(int, content["through"]))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise InvalidInput("The checkpoint of telemetry marks is damaged.") from error
