"""Reads and writes the owners of artefacts; their bytes lie in an object store."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import delete, func, insert, select, update

from windrow_master.clusters.model import Artefact, ObjectKey
from windrow_master.storage.tables import artefacts as table
from windrow_master.store.prepared import page
from windrow_master.store.repository import Repository
from windrow_proto.ids import AccountId

_COLUMNS: Final = tuple(column.name for column in table.c)


class ArtefactRepository(Repository):
    """The artefacts."""

    def add(self, artefact: Artefact) -> None:
        """Add one; its owner must have none of its name."""
        self._connection.execute(insert(table).values({name: getattr(artefact, name) for name in _COLUMNS}))

    def get(self, owner_kind: str, owner_id: str, name: str) -> Artefact | None:
        """The one of this name."""
        is_it = (table.c.owner_kind == owner_kind, table.c.owner_id == owner_id, table.c.name == name)
        row = self._connection.execute(select(table).where(*is_it)).one_or_none()
        return None if row is None else _artefact(row._mapping)

    def remove(self, artefact_id: str) -> None:
        """Forget one."""
        self._connection.execute(delete(table).where(table.c.artefact_id == artefact_id))

    def page(
        self, account_id: AccountId, owner: tuple[str, str] | None, before: str | None, limit: int
    ) -> Sequence[Artefact]:
        """An account's, the latest first; of one owner where it is named."""
        query = select(table).where(table.c.account_id == account_id)
        if owner is not None:
            query = query.where(table.c.owner_kind == owner[0], table.c.owner_id == owner[1])
        if before is not None:
            query = query.where(table.c.artefact_id < before)
        return page(self._connection, query.order_by(table.c.artefact_id.desc()), _artefact, limit)

    def used(self, account_id: AccountId) -> tuple[int, int]:
        """Return how many an account has, and their bytes."""
        query = select(func.count(), func.coalesce(func.sum(table.c.size_bytes), 0))
        count, size = self._connection.execute(query.where(table.c.account_id == account_id)).one()
        return int(count), int(size)

    def used_below(self, account_id: AccountId, prefix: str) -> int:
        """The bytes of those of an account's clusters whose names begin so."""
        is_it = (table.c.account_id == account_id, table.c.owner_kind == "cluster", table.c.name.startswith(prefix))
        return int(self._connection.scalar(select(func.coalesce(func.sum(table.c.size_bytes), 0)).where(*is_it)) or 0)

    def expired(self, now_ns: int, limit: int) -> Sequence[Artefact]:
        """Those whose time is over, the oldest first."""
        query = select(table).where(table.c.expires_at_ns <= now_ns).order_by(table.c.expires_at_ns)
        return page(self._connection, query, _artefact, limit)

    def expire_all(self, account_id: AccountId, now_ns: int) -> None:
        """Let all of an account expire now."""
        self._connection.execute(update(table).where(table.c.account_id == account_id).values(expires_at_ns=now_ns))

    def known(self, keys: Sequence[ObjectKey]) -> frozenset[ObjectKey]:
        """Return which of these objects belong to an artefact."""
        found = self._connection.execute(select(table.c.object_key).where(table.c.object_key.in_(keys)))
        return frozenset(ObjectKey(row.object_key) for row in found)


def _artefact(row: Mapping[Any, Any]) -> Artefact:
    values = {name: row[name] for name in _COLUMNS}
    values["wrapped_key"] = bytes(values["wrapped_key"])
    return Artefact(**values)
