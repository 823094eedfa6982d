"""Reads and writes the results of acceptance tests; the oldest results of a host are deleted."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from sqlalchemy import delete, insert, select, update

from windrow_master.acceptance.model import Proof, ProofStep, StepName, StepState
from windrow_master.acceptance.tables import host_proofs as table
from windrow_master.fleet.model import ProofOutcome
from windrow_master.store.repository import Repository
from windrow_proto.ids import HostId

KEPT_PER_HOST: Final = 64
"""Two months of daily ones."""
_COLUMNS: Final = tuple(column.name for column in table.c if column.name != "number")


class ProofRepository(Repository):
    """The results of test rentals."""

    def add(self, proof: Proof) -> None:
        """Add one that begins; of its host only the newest KEPT_PER_HOST stay."""
        self._connection.execute(insert(table).values(**_values(proof)))
        is_hosts = table.c.host_id == proof.host_id
        kept = select(table.c.number).where(is_hosts).order_by(table.c.number.desc()).limit(KEPT_PER_HOST).subquery()
        self._connection.execute(delete(table).where(is_hosts, table.c.number.not_in(select(kept.c.number))))

    def save(self, proof: Proof) -> None:
        """Write one that was added before."""
        self._connection.execute(update(table).where(table.c.proof_id == proof.proof_id).values(**_values(proof)))

    def of_host(self, host_id: HostId, limit: int = 10) -> Sequence[Proof]:
        """The newest first."""
        query = select(table).where(table.c.host_id == host_id).order_by(table.c.number.desc()).limit(limit)
        return [_proof(row._mapping) for row in self._connection.execute(query)]

    def open_all(self) -> Sequence[Proof]:
        """Those that have not ended."""
        query = select(table).where(table.c.ended_at_ns.is_(None)).order_by(table.c.number)
        return [_proof(row._mapping) for row in self._connection.execute(query)]


def _values(proof: Proof) -> dict[str, Any]:
    values = {name: getattr(proof, name) for name in _COLUMNS}
    values["outcome"] = None if proof.outcome is None else proof.outcome.value
    values["steps"] = [asdict(step) | {"name": step.name.value, "state": step.state.value} for step in proof.steps]
    return values


def _proof(row: Mapping[Any, Any]) -> Proof:
    values = {name: row[name] for name in _COLUMNS}
    values["outcome"] = None if values["outcome"] is None else ProofOutcome(values["outcome"])
    values["steps"] = tuple(
        ProofStep(**step | {"name": StepName(step["name"]), "state": StepState(step["state"])})
        for step in values["steps"]
    )
    return Proof(**values)
