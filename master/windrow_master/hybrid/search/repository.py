"""Reads and writes searches."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import delete, insert, select, update

from windrow_master.hybrid.search.model import Search, Try, TryState
from windrow_master.hybrid.search.tables import searches
from windrow_master.jobs.model import AttemptPlace
from windrow_master.store.repository import Repository
from windrow_proto.ids import AccountId


class SearchRepository(Repository):
    """The searches."""

    def save(self, search: Search) -> None:
        """Add or replace one."""
        record = asdict(search)
        own = {name: record.pop(name) for name in ("entry_id", "account_id")}
        values = {**own, "living_of": None if search.has_ended else search.account_id, "record": record}
        is_it = searches.c.entry_id == search.entry_id
        if self._connection.execute(update(searches).where(is_it).values(values)).rowcount == 0:
            self._connection.execute(insert(searches).values(values))

    def get(self, entry_id: str) -> Search | None:
        """One, or None."""
        row = self._connection.execute(select(searches).where(searches.c.entry_id == entry_id)).mappings().one_or_none()
        return None if row is None else _search(row)

    def of_ids(self, entry_ids: Collection[str]) -> Mapping[str, Search]:
        """Those of these that are there."""
        rows = self._connection.execute(select(searches).where(searches.c.entry_id.in_(entry_ids))).mappings()
        return {row["entry_id"]: _search(row) for row in rows}

    def living_ids(self, account_id: AccountId | None = None) -> Sequence[str]:
        """The ids of all whose work is not over; of this account alone, where it is given."""
        query = select(searches.c.entry_id).order_by(searches.c.entry_id)
        is_living = searches.c.living_of.is_not(None) if account_id is None else searches.c.living_of == account_id
        return [row.entry_id for row in self._connection.execute(query.where(is_living))]

    def forget(self, account_id: AccountId) -> None:
        """Delete those of an account."""
        self._connection.execute(delete(searches).where(searches.c.account_id == account_id))


def _search(row: Mapping[Any, Any]) -> Search:
    record = dict(row["record"])
    tries = tuple(_try(one) for one in record.pop("tries"))
    return Search(entry_id=row["entry_id"], account_id=row["account_id"], tries=tries, **record)


def _try(raw: Mapping[str, Any]) -> Try:
    return Try(**{**raw, "place": AttemptPlace(**raw["place"]), "state": TryState(raw["state"])})
