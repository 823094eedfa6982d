"""Reads and writes the results of challenges of cards; rows are only added, and the oldest of a card are deleted."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import bindparam, delete, func, insert, or_, select

from windrow_master.fleet.model import Verification, VerifyOutcome
from windrow_master.fleet.tables import gpu_verifications as table
from windrow_master.store.prepared import Found, Made
from windrow_master.store.repository import Repository
from windrow_proto.ids import GpuUuid, HostId

KEPT_PER_CARD: Final = 64
"""Of one card on one host: more than a year of weekly ones, and the last verdict whatever came after it."""
DECISIVE: Final = (VerifyOutcome.PASSED, VerifyOutcome.FAILED)

_COLUMNS: Final = tuple(column.name for column in table.c if column.name != "number")
_ADD: Final = Made(insert(table), _COLUMNS)
_IS_VERDICT: Final = or_(*(table.c.outcome == outcome.value for outcome in DECISIVE))
_OF_HOST: Final = table.c.host_id == bindparam("wanted")
_LATEST: Final = Found(
    select(table).where(
        table.c.number.in_(select(func.max(table.c.number)).where(_OF_HOST).group_by(table.c.gpu_uuid))
    ),
    lambda row: _verification(row),
)
_VERDICTS: Final = Found(
    select(table).where(
        table.c.number.in_(select(func.max(table.c.number)).where(_OF_HOST, _IS_VERDICT).group_by(table.c.gpu_uuid))
    ),
    lambda row: _verification(row),
)


class VerificationRepository(Repository):
    """The results of challenges."""

    def add(self, verification: Verification) -> None:
        """Add one; of its card only the newest KEPT_PER_CARD stay, and the last verdict."""
        values = {name: getattr(verification, name) for name in _COLUMNS}
        values |= {"outcome": verification.outcome.value, "reasons": list(verification.reasons)}
        _ADD.insert(self._connection, values | {"evidence": dict(verification.evidence)})
        card = (table.c.host_id == verification.host_id, table.c.gpu_uuid == verification.gpu_uuid)
        newest = select(table.c.number).where(*card).order_by(table.c.number.desc()).limit(KEPT_PER_CARD).subquery()
        oldest = select(func.min(newest.c.number)).scalar_subquery()
        verdict = select(func.max(table.c.number)).where(*card, _IS_VERDICT).scalar_subquery()
        is_old = (table.c.number < oldest, table.c.number != func.coalesce(verdict, 0))
        self._connection.execute(delete(table).where(*card, *is_old))

    def latest(self, host_id: HostId) -> dict[GpuUuid, Verification]:
        """The newest of each card of a host, of whatever outcome."""
        return {one.gpu_uuid: one for one in _LATEST.all(self._connection, {"wanted": host_id})}

    def verdicts(self, host_id: HostId) -> dict[GpuUuid, Verification]:
        """The newest of each card of a host that passed or failed."""
        return {one.gpu_uuid: one for one in _VERDICTS.all(self._connection, {"wanted": host_id})}

    def of_host(self, host_id: HostId, limit: int = 100) -> Sequence[Verification]:
        """The newest first."""
        query = select(table).where(table.c.host_id == host_id).order_by(table.c.number.desc()).limit(limit)
        return [_verification(row._mapping) for row in self._connection.execute(query)]


def _verification(row: Mapping[Any, Any]) -> Verification:
    values = {name: row[name] for name in _COLUMNS}
    values |= {"outcome": VerifyOutcome(values["outcome"]), "reasons": tuple(values["reasons"])}
    return Verification(**values)
