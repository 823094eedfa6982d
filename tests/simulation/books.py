"""Reads the Master's disks by SQL and struct of our own and never through its services."""

import hashlib
import json
import struct
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import apsw

from tests.simulation.database import MemoryFile, Power
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.model import Lane
from windrow_proto.segments import read_log

if TYPE_CHECKING:
    from tests.simulation.world import World

HEAD = struct.Struct("<BBq16sQH")
CHAIN_START = b"\0" * 32


def copy_of(power: Power) -> Power:
    """The same disk for a reader of its own, as it is now."""
    return Power(
        {path: MemoryFile(bytearray(file.content), bytearray(file.content)) for path, file in power.files.items()}
    )


@dataclass
class Stored:
    """The telemetry log of all terms: how often each record is there, and what it says."""

    times: Counter[tuple[str, bytes, int]] = field(default_factory=Counter)
    digests: dict[tuple[str, bytes, int], bytes] = field(default_factory=dict)


class Books:
    """Everything that one Master's disks hold at one moment."""

    def __init__(self, power: Power, disk: MemoryDisk) -> None:
        self._power = power
        self._raw = apsw.Connection("/master.sqlite3", vfs=power.name)
        self._raw.execute("PRAGMA locking_mode=EXCLUSIVE")
        self._disk = disk

    @classmethod
    def now(cls, world: "World") -> "Books":
        """Returns the Master's rows so far, synced or not."""
        return cls(copy_of(world.master.power), world.master.disk)

    def rows(self, query: str, *parameters: Any) -> list[dict[str, Any]]:
        """All rows of a query by column."""
        cursor = self._raw.cursor()
        names: list[str] = []

        def begun(running: apsw.Cursor, *_: object) -> bool:
            names[:] = [name for name, _ in running.get_description()]
            return True

        cursor.exec_trace = begun
        return [dict(zip(names, row, strict=True)) for row in cursor.execute(query, parameters or None)]

    def raw(self) -> bytes:
        """Everything that the database's files hold."""
        return b"".join(bytes(file.content) for file in self._power.files.values())

    def close(self) -> None:
        """Let go of the copy."""
        self._raw.close(True)

    def stored(self) -> Stored:
        """The telemetry log."""
        found = Stored()
        epochs = sorted({path.split("/")[-2] for path in self._disk._names if path.endswith(".seg")})
        folder = next((path.rsplit("/", 2)[0] for path in self._disk._names if path.endswith(".seg")), "")
        for epoch in epochs:
            for _, payload in read_log(self._disk, f"{folder}/{epoch}", None):
                _, kind, _, boot, sequence, length = HEAD.unpack_from(payload)
                host = payload[HEAD.size : HEAD.size + length].decode()
                key = (host, boot, sequence)
                found.times[key] += 1
                found.digests[key] = hashlib.sha256(bytes([kind]) + payload[HEAD.size + length :]).digest()
        return found

    def marks(self) -> dict[tuple[str, bytes], list[tuple[int, int]]]:
        """Returns the committed marks of the evidence lanes."""
        found = self.rows("SELECT host_id, origin_boot, ranges FROM evidence_marks")
        return {
            (row["host_id"], bytes(row["origin_boot"])): [(a, b) for a, b in json.loads(row["ranges"])] for row in found
        }

    def gaps(self) -> dict[tuple[str, Lane, bytes], list[tuple[int, int]]]:
        """Returns the gaps that were reported as lost."""
        found: dict[tuple[str, Lane, bytes], list[tuple[int, int]]] = defaultdict(list)
        for row in self.rows("SELECT host_id, lane, origin_boot, ranges FROM gaps"):
            key = (row["host_id"], Lane(row["lane"]), bytes(row["origin_boot"]))
            found[key] += [(a, b) for a, b in json.loads(row["ranges"])]
        return found

    def audit(self) -> list[dict[str, Any]]:
        """The audit log in its order, fields read."""
        rows = self.rows("SELECT * FROM audit ORDER BY number")
        return [{**row, "fields": json.loads(row["fields"])} for row in rows]
