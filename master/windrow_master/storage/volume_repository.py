"""Reads and writes volumes, and which clusters have them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import bindparam, delete, func, insert, select, update

from windrow_master.clusters.model import Use, Volume
from windrow_master.clusters.tables import volume_uses as uses
from windrow_master.storage.tables import volumes as table
from windrow_master.store.prepared import Made, readable
from windrow_master.store.repository import Repository
from windrow_proto.ids import AccountId, ClusterId

_COLUMNS: Final = tuple(column.name for column in table.c)
_OF_CLUSTER: Final = Made(select(uses).where(uses.c.cluster_id == bindparam("wanted")).order_by(uses.c.volume_id))


class VolumeRepository(Repository):
    """The volumes."""

    def add(self, volume: Volume) -> None:
        """Add one; its name must be new in its account."""
        self._connection.execute(insert(table).values(_values(volume)))

    def save(self, volume: Volume) -> None:
        """Write one as it is now."""
        query = update(table).where(table.c.volume_id == volume.volume_id)
        self._connection.execute(query.values(_values(volume)))

    def get(self, account_id: AccountId, name: str) -> Volume | None:
        """The one of this name."""
        query = select(table).where(table.c.account_id == account_id, table.c.name == name)
        row = self._connection.execute(query).one_or_none()
        return None if row is None else _volume(row._mapping)

    def by_id(self, volume_id: str) -> Volume | None:
        """The one of this id."""
        row = self._connection.execute(select(table).where(table.c.volume_id == volume_id)).one_or_none()
        return None if row is None else _volume(row._mapping)

    def of_account(self, account_id: AccountId) -> Sequence[Volume]:
        """All of an account, by name."""
        query = select(table).where(table.c.account_id == account_id).order_by(table.c.name)
        return readable(self._connection, query, _volume)

    def used(self, account_id: AccountId) -> int:
        """Bytes of the newest versions of an account's."""
        query = select(func.coalesce(func.sum(table.c.size_bytes), 0)).where(table.c.account_id == account_id)
        return int(self._connection.scalar(query) or 0)

    def advance(self, volume_id: str, base: int) -> bool:
        """Begin the version after `base`; False: another was begun since."""
        query = update(table).where(table.c.volume_id == volume_id, table.c.version == base)
        return self._connection.execute(query.values(version=base + 1)).rowcount == 1

    def remove(self, volume_id: str) -> None:
        """Forget one, and whoever had it."""
        self._connection.execute(delete(uses).where(uses.c.volume_id == volume_id))
        self._connection.execute(delete(table).where(table.c.volume_id == volume_id))

    def use(self, use: Use) -> None:
        """Write down that a cluster has it."""
        self._connection.execute(
            insert(uses).values(volume_id=use.volume_id, cluster_id=use.cluster_id, writes=use.writes)
        )

    def let_go(self, use: Use) -> None:
        """Forget it again."""
        is_it = (uses.c.volume_id == use.volume_id) & (uses.c.cluster_id == use.cluster_id)
        self._connection.execute(delete(uses).where(is_it))

    def uses(self, volume_id: str | None = None) -> Sequence[Use]:
        """Return the clusters that have a volume, or any volume where none is named."""
        query = select(uses).order_by(uses.c.cluster_id, uses.c.volume_id)
        if volume_id is not None:
            query = query.where(uses.c.volume_id == volume_id)
        return [
            Use(row.volume_id, ClusterId(row.cluster_id), bool(row.writes)) for row in self._connection.execute(query)
        ]

    def uses_of_cluster(self, cluster_id: ClusterId) -> Sequence[Use]:
        """Return the volumes of a cluster."""
        rows = _OF_CLUSTER.rows(self._connection, {"wanted": cluster_id})
        return [Use(row["volume_id"], ClusterId(row["cluster_id"]), bool(row["writes"])) for row in rows]


def _values(volume: Volume) -> dict[str, Any]:
    return {name: getattr(volume, name) for name in _COLUMNS}


def _volume(row: Mapping[Any, Any]) -> Volume:
    return Volume(**{name: row[name] for name in _COLUMNS})
