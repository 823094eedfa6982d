"""Reads and writes registered resources."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import delete, func, insert, select, update

from windrow_master.hybrid.model import Declared, Resource, declared_of, kept
from windrow_master.hybrid.tables import resources as table
from windrow_master.store.prepared import readable
from windrow_master.store.repository import Repository


class ResourceRepository(Repository):
    """The registered resources."""

    def add(self, resource_id: str, declared: Declared, now_ns: int) -> Resource:
        """Add one whose id is new; returns it with its number."""
        values = {"resource_id": resource_id, "declared": kept(declared), "created_at_ns": now_ns}
        done = self._connection.execute(insert(table).values(values))
        assert done.inserted_primary_key is not None
        return Resource(int(done.inserted_primary_key[0]), resource_id, declared, now_ns)

    def save(self, resource: Resource) -> None:
        """Write one as it is now."""
        query = update(table).where(table.c.number == resource.number)
        self._connection.execute(query.values(_changing(resource)))

    def get(self, resource_id: str) -> Resource | None:
        """The one of this id."""
        row = self._connection.execute(select(table).where(table.c.resource_id == resource_id)).one_or_none()
        return None if row is None else _resource(row._mapping)

    def bound_to(self, host_id: str) -> Resource | None:
        """The one that this host is bound to."""
        row = self._connection.execute(select(table).where(table.c.bound_host == host_id)).one_or_none()
        return None if row is None else _resource(row._mapping)

    def all(self) -> Sequence[Resource]:
        """Every one, in the order of their numbers."""
        return readable(self._connection, select(table).order_by(table.c.number), _resource)

    def count(self) -> int:
        """The number of resources."""
        return int(self._connection.scalar(select(func.count()).select_from(table)) or 0)

    def remove(self, resource: Resource) -> None:
        """Forget one."""
        self._connection.execute(delete(table).where(table.c.number == resource.number))


def _changing(resource: Resource) -> Mapping[str, Any]:
    return {
        "declared": kept(resource.declared),
        "updated_at_ns": resource.updated_at_ns,
        "bound_host": resource.bound_host,
    }


def _resource(row: Mapping[Any, Any]) -> Resource:
    declared = declared_of(row["declared"])
    return Resource(
        row["number"], row["resource_id"], declared, row["created_at_ns"], row["updated_at_ns"], row["bound_host"]
    )
