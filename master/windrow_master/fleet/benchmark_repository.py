"""Reads and writes the benchmark figures that test rentals measured of cards; rows are only added, and the oldest
are deleted."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import bindparam, delete, func, insert, select

from windrow_master.fleet.model import CardBenchmark
from windrow_master.fleet.tables import gpu_benchmarks as table
from windrow_master.store.prepared import Found
from windrow_master.store.repository import Repository
from windrow_proto.ids import HostId
from windrow_proto.model import Benchmark

KEPT_PER_FIGURE: Final = 64
"""Of one figure of one card: two months of daily ones."""
_RANKED: Final = (
    select(
        table,
        func.row_number()
        .over(partition_by=(table.c.gpu_uuid, table.c.name), order_by=table.c.number.desc())
        .label("place"),
    )
    .where(table.c.host_id == bindparam("wanted"))
    .subquery()
)
_NEWEST: Final = Found(
    select(_RANKED).where(_RANKED.c.place <= bindparam("runs")).order_by(_RANKED.c.number.desc()),
    lambda row: _benchmark(row),
)
_PLACED: Final = select(
    table,
    func.row_number()
    .over(partition_by=(table.c.host_id, table.c.gpu_uuid, table.c.name), order_by=table.c.number.desc())
    .label("place"),
).subquery()


class BenchmarkRepository(Repository):
    """The measurements of cards by test rentals."""

    def add(self, host_id: HostId, proof_id: str, figure: Benchmark) -> None:
        """Add one; of its card's figure only the newest KEPT_PER_FIGURE stay."""
        values: dict[str, Any] = {"host_id": host_id, "proof_id": proof_id, "gpu_uuid": figure.subject}
        values |= {"name": figure.name, "value": figure.value, "unit": figure.unit, "at_ns": figure.measured_wall_ns}
        self._connection.execute(insert(table).values(**values))
        mine = (table.c.host_id == host_id, table.c.gpu_uuid == figure.subject, table.c.name == figure.name)
        kept = select(table.c.number).where(*mine).order_by(table.c.number.desc()).limit(KEPT_PER_FIGURE).subquery()
        self._connection.execute(delete(table).where(*mine, table.c.number.not_in(select(kept.c.number))))

    def newest(self, host_id: HostId, runs: int) -> Sequence[Benchmark]:
        """The newest so many of each figure of each card of a host, the newest first."""
        return _NEWEST.all(self._connection, {"wanted": host_id, "runs": runs})

    def newest_of_all(self, runs: int) -> Sequence[Benchmark]:
        """The same of every host."""
        query = select(_PLACED).where(_PLACED.c.place <= runs).order_by(_PLACED.c.number.desc())
        return [_benchmark(row._mapping) for row in self._connection.execute(query)]

    def of_card(self, host_id: HostId, gpu_uuid: str, limit: int = 20) -> Sequence[CardBenchmark]:
        """Of one card on one host, the newest first."""
        mine = (table.c.host_id == host_id, table.c.gpu_uuid == gpu_uuid)
        query = select(table).where(*mine).order_by(table.c.number.desc()).limit(limit)
        rows = [row._mapping for row in self._connection.execute(query)]
        return [CardBenchmark(_benchmark(row), row["proof_id"]) for row in rows]


def _benchmark(row: Mapping[Any, Any]) -> Benchmark:
    return Benchmark(row["name"], row["value"], row["unit"], row["at_ns"], row["gpu_uuid"])
