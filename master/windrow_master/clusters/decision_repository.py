"""Reads and writes the records of why clusters run where they run."""

from typing import Final

from sqlalchemy import bindparam, select

from windrow_master.clusters.tables import decisions
from windrow_master.placement.model import Decision
from windrow_master.placement.service import parse_record, record_bytes
from windrow_master.store.prepared import Made, Upsert
from windrow_master.store.repository import Repository
from windrow_proto.ids import ClusterId

_PUT: Final = Upsert(decisions, ["cluster_id", "at_ns"], ["engine", "record"], is_late=True)
_LATEST: Final = Made(
    select(decisions).where(decisions.c.cluster_id == bindparam("wanted")).order_by(decisions.c.at_ns.desc()).limit(1)
)


class DecisionRepository(Repository):
    """The records, one for each start."""

    def add(self, cluster_id: ClusterId, at_ns: int, decision: Decision) -> None:
        """Keep one; of two of the same moment the later."""
        record = record_bytes(decision)
        values = {"cluster_id": cluster_id, "at_ns": at_ns, "engine": decision.engine, "record": record}
        _PUT.run(self._connection, values)

    def latest(self, cluster_id: ClusterId) -> tuple[int, Decision] | None:
        """That of its last start, and when that was; None: none is kept."""
        row = _LATEST.row(self._connection, {"wanted": cluster_id})
        return None if row is None else (row["at_ns"], parse_record(bytes(row["record"])))
