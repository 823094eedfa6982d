"""Reads and writes what was received of hosts: marks of the evidence lane, sealed messages, gaps, dead letters."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sqlalchemy import bindparam, delete, insert, select

from windrow_master.fleet.model import EvidenceRow, GapRow
from windrow_master.fleet.tables import dead_letters, evidence, gaps, marks
from windrow_master.store.prepared import Made, Upsert
from windrow_master.store.repository import Repository
from windrow_proto.ids import BootId, HostId
from windrow_proto.model import Kind, Lane

Ranges = tuple[tuple[int, int], ...]

# Made once: building a statement costs more than running it, and these run with every record.
_MARKS_OF_HOST: Final = Made(select(marks.c.origin_boot, marks.c.ranges).where(marks.c.host_id == bindparam("wanted")))
_PUT_MARKS: Final = Upsert(marks, ["host_id", "origin_boot"], ["ranges", "updated_at_ns"])
_KEEP: Final = Made(insert(evidence), ("host_id", "origin_boot", "origin_sequence", "kind", "sealed", "at_ns"))


class MarkRepository(Repository):
    """The committed records of the evidence lane, per host and boot of origin."""

    def of_host(self, host_id: HostId) -> Mapping[BootId, Ranges]:
        """Sorted inclusive ranges per boot of origin."""
        return {
            BootId(bytes(row["origin_boot"])): tuple((first, last) for first, last in row["ranges"])
            for row in _MARKS_OF_HOST.rows(self._connection, {"wanted": host_id})
        }

    def put(self, host_id: HostId, origin_boot: BootId, ranges: Ranges, now_ns: int) -> None:
        """Write the marks of one boot, in the transaction that stores what they mark."""
        values = {"ranges": [list(pair) for pair in ranges], "updated_at_ns": now_ns}
        _PUT_MARKS.run(self._connection, {"host_id": host_id, "origin_boot": origin_boot, **values})

    def forget_before(self, at_ns: int) -> int:
        """Drop the marks of boots that have sent nothing since; returns how many."""
        return self._connection.execute(delete(marks).where(marks.c.updated_at_ns < at_ns)).rowcount


class EvidenceRepository(Repository):
    """Sealed messages, gaps and what could not be taken in."""

    def keep(self, row: EvidenceRow) -> None:
        """Keep one sealed message."""
        values = {
            "host_id": row.host_id,
            "origin_boot": row.origin_boot,
            "origin_sequence": row.origin_sequence,
            "kind": int(row.kind),
            "sealed": row.sealed,
            "at_ns": row.at_ns,
        }
        _KEEP.run(self._connection, values)

    def list(self, host_id: HostId, kinds: Iterable[Kind], limit: int = 100) -> Sequence[EvidenceRow]:
        """The newest kept messages of one host."""
        wanted = [int(kind) for kind in kinds]
        query = select(evidence).where(evidence.c.host_id == host_id, evidence.c.kind.in_(wanted))
        rows = self._connection.execute(query.order_by(evidence.c.number.desc()).limit(limit))
        return [
            EvidenceRow(
                HostId(row.host_id),
                BootId(bytes(row.origin_boot)),
                row.origin_sequence,
                Kind(row.kind),
                bytes(row.sealed),
                row.at_ns,
            )
            for row in rows
        ]

    def forget_before(self, at_ns: int) -> int:
        """Drop what was kept before; returns how many."""
        return self._connection.execute(delete(evidence).where(evidence.c.at_ns < at_ns)).rowcount

    def add_gap(self, gap: GapRow) -> None:
        """Record a loss."""
        self._connection.execute(
            insert(gaps).values(
                host_id=gap.host_id,
                lane=int(gap.lane),
                origin_boot=gap.origin_boot,
                ranges=[list(pair) for pair in gap.ranges],
                reason=gap.reason,
                at_ns=gap.at_ns,
            )
        )

    def gaps_of_host(self, host_id: HostId, limit: int = 100) -> Sequence[GapRow]:
        """The newest losses of one host."""
        query = select(gaps).where(gaps.c.host_id == host_id).order_by(gaps.c.number.desc()).limit(limit)
        return [
            GapRow(
                HostId(row.host_id),
                Lane(row.lane),
                BootId(bytes(row.origin_boot)),
                tuple((first, last) for first, last in row.ranges),
                row.reason,
                row.at_ns,
            )
            for row in self._connection.execute(query)
        ]

    def bury(self, row: EvidenceRow, error: str) -> None:
        """Put aside a proven record that could not be taken in, so that it is neither lost nor tried for ever."""
        self._connection.execute(
            insert(dead_letters).values(
                host_id=row.host_id,
                origin_boot=row.origin_boot,
                origin_sequence=row.origin_sequence,
                kind=int(row.kind),
                sealed=row.sealed,
                error=error[:1000],
                at_ns=row.at_ns,
            )
        )

    def buried(self, host_id: HostId) -> int:
        """Return how many records of a host were put aside."""
        query = select(dead_letters.c.number).where(dead_letters.c.host_id == host_id)
        return len(self._connection.execute(query).all())
