"""Reads and writes spending limits, and adds up what counts for one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from sqlalchemy import Text, bindparam, case, delete, func, literal_column, or_, select, update

from windrow_master.market.limits import Limits, SpendingLimit, Use
from windrow_master.market.model import RentalState, TransferKind
from windrow_master.market.tables import rentals, spending_limits, transfers
from windrow_master.store.prepared import Found, Made, Upsert, flat
from windrow_master.store.repository import Repository
from windrow_proto.ids import AccountId
from windrow_proto.units import Microcents

_LIMITS: Final = tuple(Limits.__dataclass_fields__)
_GET: Final = Found(
    select(spending_limits).where(spending_limits.c.spender_id == bindparam("wanted")), lambda row: _limit(row)
)
_PUT: Final = Upsert(spending_limits, ["spender_id"], [c.key for c in spending_limits.c if not c.primary_key])
_ITS: Final = or_(
    rentals.c.renter == bindparam("spender"), rentals.c.spenders.cast(Text).like(bindparam("among", type_=Text()))
)
"""The rentals that count for a spender."""
_IS_LIVE: Final = rentals.c.state != literal_column(f"'{RentalState.CLOSED.value}'")  # as the index of these says it
_IS_OPEN: Final = rentals.c.state == RentalState.OPEN.value
_USE: Final = Made(
    select(
        func.coalesce(func.sum(rentals.c.held - rentals.c.charged), 0).label("held"),
        func.coalesce(func.sum(case((_IS_OPEN, rentals.c.price_per_hour), else_=0)), 0).label("hourly_cost"),
        func.coalesce(func.sum(case((_IS_OPEN, 1), else_=0)), 0).label("leases"),
    ).where(_IS_LIVE, _ITS)
)


class LimitRepository(Repository):
    """Spending limits, one row for each spender that has any."""

    def get(self, spender_id: str) -> SpendingLimit | None:
        """One spender's, or None."""
        return _GET.one(self._connection, {"wanted": spender_id})

    def of(self, spender_ids: Iterable[str]) -> list[SpendingLimit]:
        """Those of these spenders that have any."""
        return [found for one in spender_ids if (found := self.get(one)) is not None]

    def of_projects(self, account_ids: Sequence[AccountId]) -> list[SpendingLimit]:
        """Those of these projects, of their tokens and service accounts, in the order of their ids."""
        query = select(spending_limits).where(spending_limits.c.account_id.in_(account_ids))
        rows = self._connection.execute(query.order_by(spending_limits.c.spender_id))
        return [_limit(row._mapping) for row in rows]

    def save(self, one: SpendingLimit) -> None:
        """Write one, in place of the same spender's."""
        values = {name: value for name, value in flat(one).items() if name != "limits"}
        _PUT.run(self._connection, values | asdict(one.limits))

    def remove(self, spender_id: str) -> bool:
        """Return whether there was one."""
        is_it = spending_limits.c.spender_id == spender_id
        return self._connection.execute(delete(spending_limits).where(is_it)).rowcount > 0

    def forget_names(self, spender_ids: Sequence[str]) -> None:
        """Let the ids of these stand for their names. Their limits stay for what still runs."""
        is_it = spending_limits.c.spender_id.in_(spender_ids)
        self._connection.execute(update(spending_limits).where(is_it).values(name=spending_limits.c.spender_id))

    def forget_account(self, account_id: AccountId) -> None:
        """Remove those of a project, of its tokens and service accounts."""
        self._connection.execute(delete(spending_limits).where(spending_limits.c.account_id == account_id))

    def use(self, spender_id: str) -> Use:
        """What the rentals that count for a spender take now."""
        (row,) = _USE.rows(self._connection, _its(spender_id))
        return Use(Microcents(int(row["held"])), Microcents(int(row["hourly_cost"])), int(row["leases"]))

    def spent(self, spender_id: str, since_ns: int) -> tuple[Microcents, Microcents]:
        """What was charged that counts for a spender: in all, and posted since then."""
        in_all = self._connection.scalar(select(func.sum(rentals.c.charged)).where(_ITS), _its(spender_id))
        since = (
            select(func.sum(transfers.c.amount))
            .join(rentals, rentals.c.rental_id == transfers.c.rental_id)
            .where(transfers.c.kind.in_((TransferKind.CHARGE.value, TransferKind.FEE.value)), _ITS)
            .where(transfers.c.at_ns >= since_ns)
        )
        return Microcents(int(in_all or 0)), Microcents(int(self._connection.scalar(since, _its(spender_id)) or 0))


def _its(spender_id: str) -> dict[str, str]:
    return {"spender": spender_id, "among": f'%"{spender_id}"%'}


def _limit(row: Mapping[Any, Any]) -> SpendingLimit:
    values = {name: value for name, value in dict(row).items() if name not in _LIMITS}
    return SpendingLimit(**values, limits=Limits(**{name: row[name] for name in _LIMITS}))
